// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long shared memory and its number live, whoever of those that hold it lets
 * go, exits or is killed, and in which order.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api_fixture.h"

#define ANYBODY ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION

/* One that allocates and exports, and two that import; none of them is this one. */
FIXTURE(trio)
{
	int fd;
	uint64_t used;
	unsigned int devices;
	struct aide exporter;
	struct aide first;
	struct aide second;
	uint64_t handle;
	uint64_t address;
	uint64_t share;
};

#define SIZE (4 * GRANULE)

FIXTURE_SETUP(trio)
{
	struct aclmem_query query;

	signal(SIGPIPE, SIG_IGN);
	self->fd = open_client(&query);
	REQUIRE_CLIENT(self->fd);
	self->devices = query.out_devices;
	self->used = used(self->fd);
	ASSERT_TRUE(aide_start(&self->exporter, 0));
	ASSERT_TRUE(aide_start(&self->first, AIDE_EXEC));
	ASSERT_TRUE(aide_start(&self->second, AIDE_EXEC));
	ASSERT_EQ(0, AIDE(&self->exporter, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, AIDE(&self->first, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, AIDE(&self->second, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, AIDE(&self->exporter, ALLOC, SIZE, 0, &self->handle));
	ASSERT_EQ(0, AIDE(&self->exporter, MAP, self->handle, SIZE, &self->address));
	ASSERT_EQ(0, aide_call(&self->exporter, AIDE_FILL, self->address, SIZE, 3, NULL));
	ASSERT_EQ(0, AIDE(&self->exporter, EXPORT, self->handle, 0, &self->share));
	ASSERT_EQ(0, AIDE(&self->exporter, LIST, self->share, self->first.pid, NULL));
	ASSERT_EQ(0, AIDE(&self->exporter, LIST, self->share, self->second.pid, NULL));
}

FIXTURE_TEARDOWN(trio)
{
	struct aide *all[] = { &self->exporter, &self->first, &self->second };
	int i;

	for (i = 0; i < 3; i++)
		if (all[i]->pid)
			EXPECT_EQ(0, aide_end(all[i]));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

static aclError let_go(struct aide *aide, uint64_t handle, uint64_t address)
{
	aclError ret = 0;

	if (address)
		ret = AIDE(aide, UNMAP, address, 0, NULL);
	return ret ? ret : AIDE(aide, FREE, handle, 0, NULL);
}

static bool killed(struct aide *aide)
{
	bool as_told = aide_kill(aide) == 256 + SIGKILL;

	aide->pid = 0;
	return as_told;
}

/* The memory has what the exporter put there. */
static bool intact(struct aide *aide, uint64_t address)
{
	uint64_t differs;

	return !aide_call(aide, AIDE_CHECK, address, SIZE, 3, &differs) && differs == ~0ULL;
}

TEST_F(trio, importers_keep_the_memory_when_the_exporter_lets_go)
{
	uint64_t handle, address;

	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->first, MAP, handle, SIZE, &address));
	EXPECT_EQ(0, let_go(&self->exporter, self->handle, self->address));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(self->used + SIZE, used(self->fd));

	/* A mapping alone keeps it, and so does a handle alone. */
	EXPECT_EQ(0, AIDE(&self->first, FREE, handle, 0, NULL));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(self->used + SIZE, used(self->fd));
	ASSERT_EQ(0, AIDE(&self->second, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&self->first, UNMAP, address, 0, NULL));
	EXPECT_EQ(self->used + SIZE, used(self->fd));
	ASSERT_EQ(0, AIDE(&self->second, MAP, handle, SIZE, &address));
	EXPECT_TRUE(intact(&self->second, address));
	EXPECT_EQ(0, let_go(&self->second, handle, address));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_HANDLE,
		  AIDE(&self->second, IMPORT, self->share, 0, &handle));
}

TEST_F(trio, importers_keep_the_memory_when_the_exporter_exits)
{
	uint64_t handle, address, again;

	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->first, MAP, handle, SIZE, &address));
	EXPECT_EQ(0, aide_end(&self->exporter));
	self->exporter.pid = 0;
	EXPECT_TRUE(intact(&self->first, address));

	/* The number is good for those that were named. */
	EXPECT_EQ(0, AIDE(&self->second, IMPORT, self->share, 0, &again));
	EXPECT_EQ(0, let_go(&self->first, handle, address));
	EXPECT_EQ(self->used + SIZE, used(self->fd));
	EXPECT_EQ(0, let_go(&self->second, again, 0));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_HANDLE, AIDE(&self->first, IMPORT, self->share, 0, NULL));
}

TEST_F(trio, an_importer_reads_on_when_the_exporter_is_killed)
{
	uint64_t handle, address;

	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->first, MAP, handle, SIZE, &address));
	/* In the middle of a copy, and of a read. */
	ASSERT_TRUE(aide_send(&self->exporter, AIDE_COPY_FOREVER, self->address, SIZE, 0));
	ASSERT_TRUE(aide_send(&self->first, AIDE_CHECK, address, SIZE, 3));
	usleep(20000);
	EXPECT_TRUE(killed(&self->exporter));
	EXPECT_EQ(0, aide_receive(&self->first, NULL));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(self->used + SIZE, used(self->fd));
	EXPECT_TRUE(killed(&self->first));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

TEST_F(trio, the_exporter_keeps_the_memory_when_importers_go)
{
	uint64_t handle, address;

	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->first, MAP, handle, SIZE, &address));
	ASSERT_TRUE(aide_send(&self->first, AIDE_COPY_FOREVER, address, SIZE, 0));
	usleep(20000);
	EXPECT_TRUE(killed(&self->first));
	EXPECT_TRUE(intact(&self->exporter, self->address));
	EXPECT_EQ(0, AIDE(&self->second, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, aide_end(&self->second));
	self->second.pid = 0;
	EXPECT_TRUE(intact(&self->exporter, self->address));
	EXPECT_EQ(0, let_go(&self->exporter, self->handle, self->address));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

TEST_F(trio, the_number_dies_with_the_last_holder)
{
	uint64_t memory, share, handle;

	/* The exporter's mapping holds it, too. */
	EXPECT_EQ(0, AIDE(&self->exporter, FREE, self->handle, 0, NULL));
	EXPECT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&self->first, FREE, handle, 0, NULL));
	EXPECT_EQ(0, AIDE(&self->exporter, UNMAP, self->address, 0, NULL));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_HANDLE, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_HANDLE,
		  AIDE(&self->exporter, LIST, self->share, self->first.pid, NULL));

	/* Before anybody imported. */
	ASSERT_EQ(0, AIDE(&self->exporter, ALLOC, GRANULE, 0, &memory));
	ASSERT_EQ(0, AIDE(&self->exporter, EXPORT, memory, ANYBODY, &share));
	ASSERT_EQ(0, AIDE(&self->exporter, FREE, memory, 0, NULL));
	EXPECT_EQ(ACL_ERROR_RT_INVALID_HANDLE, AIDE(&self->first, IMPORT, share, 0, &handle));
}

TEST_F(trio, importing_again_gives_the_same_handle_counted)
{
	uint64_t handle, again, address;

	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &again));
	EXPECT_EQ(handle, again);
	EXPECT_EQ(0, AIDE(&self->first, FREE, handle, 0, NULL));
	ASSERT_EQ(0, AIDE(&self->first, MAP, handle, SIZE, &address));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(0, AIDE(&self->first, FREE, handle, 0, NULL));
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, AIDE(&self->first, FREE, handle, 0, NULL));
	EXPECT_EQ(0, AIDE(&self->first, UNMAP, address, 0, NULL));

	/* And again after all that. */
	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &again));
	ASSERT_EQ(0, AIDE(&self->first, MAP, again, SIZE, &address));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(0, let_go(&self->first, again, address));
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, AIDE(&self->first, FREE, again, 0, NULL));
}

TEST_F(trio, each_device_of_a_process_has_a_handle_of_its_own)
{
	uint64_t one, other, id, address;

	REQUIRE_TWO_DEVICES();
	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 0, &one));
	ASSERT_EQ(0, AIDE(&self->first, IMPORT, self->share, 1, &other));
	EXPECT_NE(one, other);
	EXPECT_EQ(0, AIDE(&self->first, PROPERTY, one, 0, &id));
	EXPECT_EQ(0, id);
	EXPECT_EQ(0, AIDE(&self->first, PROPERTY, other, 0, &id));
	EXPECT_EQ(1, id);
	EXPECT_EQ(self->used + SIZE, used(self->fd));
	EXPECT_EQ(0, AIDE(&self->first, FREE, one, 0, NULL));

	/* It counts as memory of the device it was imported to. */
	ASSERT_EQ(0, AIDE(&self->first, MAP, other, SIZE, &address));
	EXPECT_TRUE(intact(&self->first, address));
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID,
		  aide_call(&self->first, AIDE_UPLOAD, address, 64, 0, NULL));
	EXPECT_EQ(0, aide_call(&self->first, AIDE_UPLOAD, address, 64, 1, NULL));
	EXPECT_EQ(0, let_go(&self->first, other, address));
}

TEST_F(acl, memory_of_the_host_can_be_shared)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	uint64_t imported, address, differs, share;
	aclrtDrvMemHandle handle;
	struct aide aide;
	void *own;

	ASSERT_TRUE(aide_start(&aide, 0));
	ASSERT_EQ(0, AIDE(&aide, SET_DEVICE, 0, 0, NULL));
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	ASSERT_EQ(0, aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	own = map_memory(handle, GRANULE);
	ASSERT_NE(NULL, own);
	pattern_set(own, GRANULE, 6);
	ASSERT_EQ(0, aclrtMemExportToShareableHandle(handle, 0, ANYBODY, &share));
	ASSERT_EQ(0, AIDE(&aide, IMPORT, share, 0, &imported));
	ASSERT_EQ(0, AIDE(&aide, MAP, imported, GRANULE, &address));
	EXPECT_EQ(0, aide_call(&aide, AIDE_CHECK, address, GRANULE, 6, &differs));
	EXPECT_EQ(-1, (int64_t)differs);
	EXPECT_EQ(0, aide_end(&aide));
	EXPECT_EQ(0, end_mapping(own));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

#define CHUNKS 64

/* In a child: 64 chunks side by side, every fourth exported, copied for ever. */
static void map_export_and_copy(int pipe)
{
	aclrtDrvMemHandle handle;
	void *address, *to = malloc(CHUNKS * GRANULE);
	uint64_t share;
	int i;

	if (!to || aclrtSetDevice(0) ||
	    aclrtReserveMemAddress(&address, CHUNKS * GRANULE, 0, NULL, 0))
		_exit(1);
	for (i = 0; i < CHUNKS; i++)
		if (new_memory(&handle, GRANULE, 0) ||
		    aclrtMapMem(address + i * GRANULE, GRANULE, 0, handle, 0) ||
		    (i % 4 == 0 && aclrtMemExportToShareableHandle(handle, 0, ANYBODY, &share)))
			_exit(2);
	if (!send_u64(pipe, share))
		_exit(3);
	while (!aclrtMemcpy(to, CHUNKS * GRANULE, address, CHUNKS * GRANULE, ACL_MEMCPY_DEFAULT))
		;
	_exit(4);
}

TEST_F_TIMEOUT(acl, a_process_killed_in_a_copy_leaves_nothing, 120)
{
	uint64_t share, start;
	unsigned int i;
	int ends[2];
	pid_t pid;

	for (i = 0; i < rounds(20); i++) {
		ASSERT_EQ(0, pipe(ends));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			map_export_and_copy(ends[1]);
		close(ends[1]);
		ASSERT_TRUE(receive_u64(ends[0], &share));
		usleep(1000 * i);
		start = now_ms();
		kill(pid, SIGKILL);
		EXPECT_EQ(256 + SIGKILL, wait_child(pid));
		EXPECT_GT(5000, now_ms() - start);
		EXPECT_TRUE(used_becomes(self->fd, self->used));
		close(ends[0]);
	}
}

TEST_HARNESS_MAIN
