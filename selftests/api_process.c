// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process has after fork() and exec(), which devices it sees by its
 * environment, and what it's told without a module or without rights.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api_fixture.h"

#define VISIBLE "ASCEND_RT_VISIBLE_DEVICES"

/* The module's numbers of the devices that a program started with the list sees. */
static bool visible_are(const char *list, uint32_t count, uint64_t first, uint64_t second)
{
	struct aide aide;
	uint64_t out;
	bool right;

	setenv(VISIBLE, list, 1);
	if (!aide_start(&aide, AIDE_EXEC))
		return false;
	right = !AIDE(&aide, COUNT, 0, 0, &out) && out == count;
	if (count > 0)
		right = right && !AIDE(&aide, LOGIC, 0, 0, &out) && out == first;
	if (count > 1)
		right = right && !AIDE(&aide, LOGIC, 1, 0, &out) && out == second;
	right = right && AIDE(&aide, LOGIC, count, 0, NULL) == ACL_ERROR_RT_INVALID_DEVICEID;
	right = right && AIDE(&aide, SET_DEVICE, count, 0, NULL) == ACL_ERROR_RT_INVALID_DEVICEID;
	return !aide_end(&aide) && right;
}

TEST_F(acl, the_environment_says_which_devices_are_visible)
{
	char list[64];

	REQUIRE_TWO_DEVICES();
	EXPECT_TRUE(visible_are("1,0", 2, 1, 0));
	EXPECT_TRUE(visible_are("0,1", 2, 0, 1));
	EXPECT_TRUE(visible_are("0", 1, 0, 0));
	EXPECT_TRUE(visible_are("1", 1, 1, 0));

	/* Nothing after what isn't a device, or is there already. */
	EXPECT_TRUE(visible_are("", 0, 0, 0));
	EXPECT_TRUE(visible_are("x", 0, 0, 0));
	EXPECT_TRUE(visible_are("-1,0", 0, 0, 0));
	EXPECT_TRUE(visible_are("1x,0", 0, 0, 0));
	EXPECT_TRUE(visible_are("1,0x", 1, 1, 0));
	EXPECT_TRUE(visible_are("1,x,0", 1, 1, 0));
	EXPECT_TRUE(visible_are("1,1,0", 1, 1, 0));
	EXPECT_TRUE(visible_are("1,-1,0", 1, 1, 0));
	EXPECT_TRUE(visible_are("1,4294967296", 1, 1, 0));
	EXPECT_TRUE(visible_are("1,99999999999999999999,0", 1, 1, 0));
	snprintf(list, sizeof(list), "1,%u,0", self->devices);
	EXPECT_TRUE(visible_are(list, 1, 1, 0));
}

TEST_F(acl, a_program_counts_the_devices_it_sees)
{
	struct aclmem_device before, after;
	uint64_t handle, id, address, out;
	struct aide aide;

	REQUIRE_TWO_DEVICES();
	setenv(VISIBLE, "1", 1);
	ASSERT_EQ(0, device_info(self->fd, 1, &before));
	ASSERT_TRUE(aide_start(&aide, AIDE_EXEC));
	ASSERT_EQ(0, AIDE(&aide, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, AIDE(&aide, ALLOC, GRANULE, 0, &handle));
	ASSERT_EQ(0, device_info(self->fd, 1, &after));
	EXPECT_EQ(before.out_used + GRANULE, after.out_used);
	EXPECT_EQ(0, AIDE(&aide, PROPERTY, handle, 0, &id));
	EXPECT_EQ(0, id);

	/* The attribute of a batch, and an import, use its numbers, too. */
	EXPECT_EQ(0, AIDE(&aide, MAP, handle, GRANULE, &address));
	EXPECT_EQ(0, aide_call(&aide, AIDE_UPLOAD, address, 100, 0, &out));
	EXPECT_EQ(0, aide_call(&aide, AIDE_CHECK, address, 100, 0, &out));
	EXPECT_EQ(-1, (int64_t)out);
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID,
		  aide_call(&aide, AIDE_UPLOAD, address, 100, 1, &out));
	EXPECT_EQ(0, out);
	EXPECT_EQ(ACL_ERROR_RT_INVALID_DEVICEID, AIDE(&aide, IMPORT, 1, 1, NULL));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_DEVICEID, AIDE(&aide, ALLOC, GRANULE, 1, NULL));
	EXPECT_EQ(0, aide_end(&aide));
}

struct parent {
	aclrtDrvMemHandle handle;
	aclrtContext context;
	unsigned char *mapped;
	unsigned char *empty;
	void *allocated;
	void *host;
};

/* The check that fails first, as the child's exit code. */
#define CHECK(condition) do { \
	if (!(condition)) { \
		fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
		_exit(1); \
	} \
} while (0)

/* All that a new process can do. */
static void use_afresh(void)
{
	unsigned char byte = 77, back = 0;
	void *address;
	int32_t id;

	CHECK(!aclrtSetDevice(0));
	CHECK(!aclrtGetDevice(&id) && id == 0);
	CHECK(!aclrtMalloc(&address, GRANULE, ACL_MEM_MALLOC_HUGE_FIRST));
	CHECK(!aclrtMemset(address, GRANULE, 5, GRANULE));
	CHECK(byte_differs(address, GRANULE, 5) == -1);
	CHECK(!aclrtMemcpy(address, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
	CHECK(!aclrtMemcpy(&back, 1, address, 1, ACL_MEMCPY_DEVICE_TO_HOST));
	CHECK(back == 77);
	CHECK(!aclrtFree(address));
	CHECK(!aclrtResetDevice(0));
}

/* Nothing of the parent's can be used, read or ended. */
static void try_what_is_the_parents(const struct parent *parent)
{
	aclrtDrvMemHandle handle;
	uint64_t share;

	CHECK(aclrtFreePhysical(parent->handle) == ACL_ERROR_RT_PARAM_INVALID);
	CHECK(aclrtMapMem(parent->empty, GRANULE, 0, parent->handle, 0) ==
	      ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	CHECK(aclrtMemExportToShareableHandle(parent->handle, 0, 0, &share) ==
	      ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	CHECK(aclrtMemRetainAllocationHandle(parent->mapped, &handle) ==
	      ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	CHECK(aclrtUnmapMem(parent->mapped) == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	CHECK(aclrtFree(parent->allocated) == ACL_ERROR_RT_PARAM_INVALID);
	CHECK(aclrtFreeHost(parent->host) == ACL_ERROR_RT_PARAM_INVALID);
	CHECK(aclrtSetCurrentContext(parent->context) == ACL_ERROR_RT_CONTEXT_NULL);
	CHECK(try_read(parent->mapped, NULL));
	CHECK(try_read(parent->allocated, NULL));
	CHECK(try_read(parent->host, NULL));
	CHECK(try_write(parent->mapped, 1));
}

static void child_starts_afresh(const struct parent *parent)
{
	void *address;
	int32_t id;

	CHECK(aclrtGetDevice(&id) == ACL_ERROR_RT_CONTEXT_NULL);
	CHECK(aclrtMalloc(&address, 1, 0) == ACL_ERROR_RT_CONTEXT_NULL);
	CHECK(aclrtReserveMemAddress(&address, 1, 0, NULL, 0) == ACL_ERROR_RT_INVALID_HANDLE);
	CHECK(aclrtReleaseMemAddress(parent->mapped) == ACL_ERROR_RT_INVALID_HANDLE);
	CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
	try_what_is_the_parents(parent);
	use_afresh();
	CHECK(aclrtReleaseMemAddress(parent->mapped) == ACL_ERROR_RT_PARAM_INVALID);
	try_what_is_the_parents(parent);
}

static void child_exits(const struct parent *parent)
{
	(void)parent;
}

static void child_closes_all(const struct parent *parent)
{
	CHECK(!syscall(SYS_close_range, 3, ~0U, 0));
	/* Others may have taken the numbers by now. */
	CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
	CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
	try_what_is_the_parents(parent);
	use_afresh();
}

static void child_leaves_memory(const struct parent *parent)
{
	void *address;

	(void)parent;
	CHECK(!aclrtSetDevice(0));
	CHECK(!aclrtMalloc(&address, 3 * GRANULE, 0));
	CHECK(new_mapping(GRANULE, 0));
}

static void child_forks(const struct parent *parent)
{
	pid_t pid;

	use_afresh();
	pid = fork();
	if (!pid) {
		child_starts_afresh(parent);
		_exit(0);
	}
	CHECK(!wait_child(pid));
	use_afresh();
}

FIXTURE(parent)
{
	struct parent own;
	int fd;
	uint64_t used;
};

FIXTURE_VARIANT(parent)
{
	void (*child)(const struct parent *parent);
};

FIXTURE_VARIANT_ADD(parent, child_exits) {
	.child = child_exits,
};

FIXTURE_VARIANT_ADD(parent, child_starts_afresh) {
	.child = child_starts_afresh,
};

FIXTURE_VARIANT_ADD(parent, child_closes_all) {
	.child = child_closes_all,
};

FIXTURE_VARIANT_ADD(parent, child_leaves_memory) {
	.child = child_leaves_memory,
};

FIXTURE_VARIANT_ADD(parent, child_forks) {
	.child = child_forks,
};

FIXTURE_SETUP(parent)
{
	void *address;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	ASSERT_EQ(0, aclrtGetCurrentContext(&self->own.context));
	ASSERT_EQ(0, new_memory(&self->own.handle, GRANULE, 0));
	self->own.mapped = map_memory(self->own.handle, GRANULE);
	ASSERT_NE(NULL, self->own.mapped);
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, GRANULE, 0, NULL, 0));
	self->own.empty = address;
	ASSERT_EQ(0, aclrtMalloc(&self->own.allocated, GRANULE, 0));
	ASSERT_EQ(0, aclrtMallocHost(&self->own.host, 4096));
	pattern_set(self->own.mapped, GRANULE, 1);
	pattern_set(self->own.allocated, GRANULE, 2);
	pattern_set(self->own.host, 4096, 3);
}

/* Whatever the child did, the parent has all that it had. */
FIXTURE_TEARDOWN(parent)
{
	EXPECT_EQ(-1, pattern_differs(self->own.mapped, GRANULE, 1));
	EXPECT_EQ(-1, pattern_differs(self->own.allocated, GRANULE, 2));
	EXPECT_EQ(-1, pattern_differs(self->own.host, 4096, 3));
	/* Two granules and the page that aclrtMalloc() adds. */
	EXPECT_TRUE(used_becomes(self->fd, self->used + 3 * GRANULE));
	EXPECT_EQ(0, end_mapping(self->own.mapped));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->own.empty));
	EXPECT_EQ(0, aclrtFreePhysical(self->own.handle));
	EXPECT_EQ(0, aclrtFree(self->own.allocated));
	EXPECT_EQ(0, aclrtFreeHost(self->own.host));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	EXPECT_EQ(0, aclrtResetDevice(0));
	close(self->fd);
}

TEST_F(parent, is_unaffected_by_a_fork)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		alarm(5);
		variant->child(&self->own);
		_exit(0);
	}
	EXPECT_EQ(0, wait_child(pid));
}

struct busy {
	pthread_barrier_t started;
	bool stop;
	bool failed;
};

static void *copy_until_stopped(void *data)
{
	struct busy *busy = data;
	size_t size = 64 * MIB;
	void *address, *host = malloc(size);
	bool first = true;

	busy->failed = !host || aclrtSetDevice(0) || aclrtMalloc(&address, size, 0);
	if (busy->failed)
		pthread_barrier_wait(&busy->started);
	while (!busy->failed && !__atomic_load_n(&busy->stop, __ATOMIC_RELAXED)) {
		if (first)
			pthread_barrier_wait(&busy->started);
		first = false;
		busy->failed = aclrtMemcpy(address, size, host, size, ACL_MEMCPY_HOST_TO_DEVICE);
	}
	if (!busy->failed)
		busy->failed = aclrtFree(address);
	free(host);
	return NULL;
}

/* Every lock of the library is taken and given back, again and again. */
static void *allocate_until_stopped(void *data)
{
	struct busy *busy = data;
	aclrtContext context;
	void *address;

	pthread_barrier_wait(&busy->started);
	while (!busy->failed && !__atomic_load_n(&busy->stop, __ATOMIC_RELAXED))
		busy->failed = aclrtSetDevice(0) ||
			aclrtReserveMemAddress(&address, GRANULE, 0, NULL, 0) ||
			aclrtReleaseMemAddress(address) ||
			aclrtCreateContext(&context, 0) || aclrtDestroyContext(context) ||
			aclrtResetDevice(0);
	return NULL;
}

TEST_F_TIMEOUT(acl, a_fork_beside_busy_threads_does_not_hang, 60)
{
	struct busy copy = {}, locks = {};
	pthread_t threads[2];
	unsigned int i;
	pid_t pid;

	pthread_barrier_init(&copy.started, NULL, 2);
	pthread_barrier_init(&locks.started, NULL, 2);
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, copy_until_stopped, &copy));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, allocate_until_stopped, &locks));
	pthread_barrier_wait(&copy.started);
	pthread_barrier_wait(&locks.started);
	for (i = 0; i < rounds(20); i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			alarm(5);
			use_afresh();
			_exit(0);
		}
		EXPECT_EQ(0, wait_child(pid));
	}
	__atomic_store_n(&copy.stop, true, __ATOMIC_RELAXED);
	__atomic_store_n(&locks.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_FALSE(copy.failed);
	EXPECT_FALSE(locks.failed);
}

/* In a mount namespace where /dev has nothing. */
static bool hide_devices(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/dev", "tmpfs", 0, NULL);
}

TEST(without_the_module_all_is_refused_in_words)
{
	uint32_t count = UNTOUCHED_ID;
	int32_t id = UNTOUCHED_ID;
	aclrtContext context = UNTOUCHED;
	aclrtDrvMemHandle handle = UNTOUCHED;
	aclrtPhysicalMemProp prop = memory_of(0);

	REQUIRE_ROOT();
	ASSERT_TRUE(hide_devices());
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem", aclrtSetDevice(0));
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem", aclrtResetDevice(0));
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem", aclrtGetDeviceCount(&count));
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem", aclrtDeviceGetBareTgid(&id));
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem", aclrtCreateContext(&context, 0));
	EXPECT_FAILS(ACL_ERROR_RT_NO_DEVICE, "/dev/aclmem",
		     aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	EXPECT_EQ(UNTOUCHED_ID, count);
	EXPECT_EQ(UNTOUCHED_ID, id);
	EXPECT_EQ(UNTOUCHED, context);
	EXPECT_EQ(UNTOUCHED, handle);

	/* What needs none works. */
	EXPECT_EQ(0, aclInit(NULL));
	EXPECT_EQ(0, aclFinalize());
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "NULL", aclrtFree(NULL));

	/* The module may come later. */
	ASSERT_EQ(0, umount2("/dev", MNT_DETACH));
	EXPECT_EQ(0, aclrtSetDevice(0));
}

TEST(without_rights_all_is_refused_in_words)
{
	uint32_t count = UNTOUCHED_ID;
	int32_t id = UNTOUCHED_ID;

	REQUIRE_ROOT();
	ASSERT_EQ(0, setresgid(65534, 65534, 65534));
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	if (!access(DEVICE_PATH, R_OK | W_OK))
		SKIP(return, "%s: everybody may use " DEVICE_PATH, _metadata->name);
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "/dev/aclmem", aclrtSetDevice(0));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "/dev/aclmem", aclrtGetDeviceCount(&count));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "/dev/aclmem", aclrtDeviceGetBareTgid(&id));
	EXPECT_EQ(UNTOUCHED_ID, count);
	EXPECT_EQ(UNTOUCHED_ID, id);
}

TEST_HARNESS_MAIN
