// SPDX-License-Identifier: GPL-2.0-only
/*
 * aclrtMalloc(), aclrtMallocAlign32(), aclrtMallocHost() and their ends: sizes,
 * alignment, policies, and what can't be freed.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api_fixture.h"

static const size_t sizes[] = { 1, 31, 32, 33, 4095, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The two functions, and the bytes that they set apart beyond the rounded size. */
FIXTURE(device)
{
	int fd;
	uint64_t used;
	size_t free;
};

FIXTURE_VARIANT(device)
{
	const char *name;
	__typeof__(aclrtMalloc) *allocate;
	size_t extra;
};

FIXTURE_VARIANT_ADD(device, malloc) {
	.name = "aclrtMalloc",
	.allocate = aclrtMalloc,
	.extra = 32,
};

FIXTURE_VARIANT_ADD(device, malloc_align32) {
	.name = "aclrtMallocAlign32",
	.allocate = aclrtMallocAlign32,
	.extra = 0,
};

FIXTURE_SETUP(device)
{
	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	self->free = free_memory();
}

FIXTURE_TEARDOWN(device)
{
	EXPECT_EQ(self->free, free_memory());
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

static size_t usable(size_t size, size_t extra)
{
	return (size + 31) / 32 * 32 + extra;
}

TEST_F(device, gives_all_bytes_at_aligned_addresses_apart_from_others)
{
	void *blocks[2 * SIZES];
	size_t i;

	for (i = 0; i < 2 * SIZES; i++) {
		ASSERT_EQ(0, variant->allocate(&blocks[i], sizes[i % SIZES], 0));
		EXPECT_EQ(0, (uintptr_t)blocks[i] % 64);
		EXPECT_EQ(0, (uintptr_t)blocks[i] % GRANULE);
		EXPECT_EQ(-1, byte_differs(blocks[i], usable(sizes[i % SIZES], variant->extra), 0));
		pattern_set(blocks[i], usable(sizes[i % SIZES], variant->extra), i);
	}
	for (i = 0; i < 2 * SIZES; i++)
		EXPECT_EQ(-1, pattern_differs(blocks[i],
					      usable(sizes[i % SIZES], variant->extra), i));
	for (i = 0; i < 2 * SIZES; i++)
		EXPECT_EQ(0, aclrtFree(blocks[i]));
}

TEST_F(device, counts_in_granules_with_the_extra_bytes)
{
	size_t i, size, taken;
	void *address;

	for (i = 0; i < SIZES; i++) {
		size = sizes[i];
		taken = (usable(size, variant->extra) + GRANULE - 1) / GRANULE * GRANULE;
		ASSERT_EQ(0, variant->allocate(&address, size, 0));
		EXPECT_EQ(self->free - taken, free_memory())
			TH_LOG("for size %zu", size);
		EXPECT_EQ(0, aclrtFree(address));
		EXPECT_EQ(self->free, free_memory());
	}
}

TEST_F(device, takes_every_policy_but_those_for_1_gib_pages)
{
	static const int policies[] = { 0, 1, 2, 3, 4, 5, 8, 99, 0x0100, 0x1000, 0x100000, -1,
					INT_MAX, INT_MIN };
	void *address = UNTOUCHED;
	size_t i;

	EXPECT_EQ(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		  variant->allocate(&address, 1, ACL_MEM_MALLOC_HUGE1G_ONLY));
	EXPECT_STREQ("", complaint(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, variant->name, "policy|6"));
	EXPECT_EQ(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		  variant->allocate(&address, 1, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P));
	EXPECT_STREQ("", complaint(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, variant->name, "policy|7"));
	EXPECT_EQ(UNTOUCHED, address);
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		ASSERT_EQ(0, variant->allocate(&address, GRANULE + 1, policies[i]));
		EXPECT_EQ(0, try_write((char *)address + GRANULE, 1));
		EXPECT_EQ(0, aclrtFree(address));
	}
}

TEST_F(device, is_checked_in_order)
{
	void *address = UNTOUCHED;

#define REFUSED(code, words, address, size, policy) do { \
	EXPECT_EQ(code, variant->allocate(address, size, policy)); \
	EXPECT_STREQ("", complaint(code, variant->name, words)); \
} while (0)
	ASSERT_EQ(0, aclrtResetDevice(0));
	REFUSED(ACL_ERROR_INVALID_PARAM, "devPtr|NULL", NULL, 0, 6);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", &address, 0, 6);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|18446744073709551615", &address, SIZE_MAX, 6);
	REFUSED(ACL_ERROR_RT_CONTEXT_NULL, "context", &address, 1, 6);
	ASSERT_EQ(0, aclrtSetDevice(0));
	REFUSED(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "policy|6", &address, (size_t)1 << 60, 6);
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, (size_t)1 << 60, 0);

	/* Sizes that can't be rounded up, from the first on. */
	REFUSED(ACL_ERROR_INVALID_PARAM, "size", &address, SIZE_MAX - 30, 0);
	REFUSED(variant->extra ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		&address, SIZE_MAX - 31, 0);
	REFUSED(variant->extra ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		&address, SIZE_MAX - 62, 0);
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, SIZE_MAX - 63, 0);
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, SIZE_MAX / 2, 0);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED, address);
}

TEST_F(device, more_than_there_is_cannot_be_had)
{
	void *address = UNTOUCHED;
	struct aclmem_device info;

	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	EXPECT_EQ(ACL_ERROR_RT_MEMORY_ALLOCATION,
		  variant->allocate(&address, info.out_total + 1, ACL_MEM_MALLOC_HUGE_FIRST));
	EXPECT_STREQ("", complaint(ACL_ERROR_RT_MEMORY_ALLOCATION, variant->name, "size"));
	EXPECT_EQ(UNTOUCHED, address);
}

TEST_F(device, only_the_start_of_an_allocation_can_be_freed)
{
	void *address, *other, *reserved, *host, *mapped;

	ASSERT_EQ(0, variant->allocate(&address, 3 * GRANULE, 0));
	ASSERT_EQ(0, variant->allocate(&other, 1, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&reserved, 1, 0, NULL, 0));
	ASSERT_EQ(0, aclrtMallocHost(&host, 1));
	mapped = new_mapping(GRANULE, 0);
	ASSERT_NE(NULL, mapped);
	pattern_set(address, 3 * GRANULE, 1);
#define REFUSED(code, words, address) \
	EXPECT_FAILS(code, words, aclrtFree(address))
	REFUSED(ACL_ERROR_INVALID_PARAM, "devPtr|NULL", NULL);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", address + 1);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", address + 32);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", address + GRANULE);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", reserved);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", mapped);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", host);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", &host);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", NOWHERE);
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", aclrtFreeHost(address));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", aclrtUnmapMem(address));
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "virPtr", aclrtReleaseMemAddress(address));
	EXPECT_EQ(-1, pattern_differs(address, 3 * GRANULE, 1));
	EXPECT_EQ(0, try_write(mapped, 1));
	EXPECT_EQ(0, try_write(host, 1));
	EXPECT_EQ(0, aclrtFree(address));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "devPtr", address);
	EXPECT_EQ(SIGSEGV, try_read(address, NULL));
	EXPECT_EQ(0, try_write(other, 1));
#undef REFUSED
	EXPECT_EQ(0, aclrtFree(other));
	EXPECT_EQ(0, aclrtReleaseMemAddress(reserved));
	EXPECT_EQ(0, aclrtFreeHost(host));
	EXPECT_EQ(0, end_mapping(mapped));
}

TEST_F(device, memory_is_of_the_current_device)
{
	struct aclmem_device first, second, now;
	void *address;

	if (device_info(self->fd, 1, &second))
		SKIP(return, "%s: needs two devices", _metadata->name);
	ASSERT_EQ(0, device_info(self->fd, 0, &first));
	ASSERT_EQ(0, aclrtSetDevice(1));
	ASSERT_EQ(0, variant->allocate(&address, 1, 0));
	ASSERT_EQ(0, device_info(self->fd, 1, &now));
	EXPECT_EQ(second.out_used + GRANULE, now.out_used);
	ASSERT_EQ(0, device_info(self->fd, 0, &now));
	EXPECT_EQ(first.out_used, now.out_used);
	ASSERT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtFree(address));
}

#define THREADS 8

static void *allocate_and_free(void *data)
{
	__typeof__(aclrtMalloc) *allocate = data;
	unsigned char *blocks[4];
	size_t i, j, wrong = 0;

	if (aclrtSetDevice(0))
		return (void *)1;
	for (i = 0; i < rounds(10); i++) {
		for (j = 0; j < 4; j++) {
			wrong += allocate((void **)&blocks[j], sizes[(i + j) % SIZES], 0) != 0;
			*blocks[j] = i + j;
		}
		for (j = 0; j < 4; j++) {
			wrong += *blocks[j] != (unsigned char)(i + j);
			wrong += aclrtFree(blocks[j]) != 0;
		}
	}
	wrong += aclrtResetDevice(0) != 0;
	return (void *)wrong;
}

TEST_F(device, threads_allocate_and_free_at_once)
{
	pthread_t threads[THREADS];
	void *wrong;
	int i;

	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, allocate_and_free,
					    variant->allocate));
	for (i = 0; i < THREADS; i++) {
		EXPECT_EQ(0, pthread_join(threads[i], &wrong));
		EXPECT_EQ(NULL, wrong);
	}
}

TEST_F(acl, host_memory_is_all_there_apart_from_others)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	struct rusage before, after;
	void *blocks[SIZES];

	for (i = 0; i < SIZES; i++) {
		ASSERT_EQ(0, aclrtMallocHost(&blocks[i], sizes[i]));
		EXPECT_EQ(0, (uintptr_t)blocks[i] % page);
		getrusage(RUSAGE_SELF, &before);
		EXPECT_EQ(-1, byte_differs(blocks[i], sizes[i], 0));
		pattern_set(blocks[i], sizes[i], i);
		getrusage(RUSAGE_SELF, &after);
		/* 512 pages at most, all present: a few are of the program. */
		EXPECT_GT(16, after.ru_minflt - before.ru_minflt);
	}
	for (i = 0; i < SIZES; i++)
		EXPECT_EQ(-1, pattern_differs(blocks[i], sizes[i], i));
	for (i = 0; i < SIZES; i++) {
		EXPECT_EQ(0, aclrtFreeHost(blocks[i]));
		EXPECT_EQ(SIGSEGV, try_read(blocks[i], NULL));
	}
}

/* As an ordinary user, who may not lock as much. */
TEST_F(acl, host_memory_is_all_there_even_if_it_cannot_be_locked)
{
	const struct rlimit none = {};
	struct rusage before, after;
	void *address;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
	if (!geteuid())
		ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	ASSERT_EQ(0, aclrtMallocHost(&address, 8 * MIB));
	getrusage(RUSAGE_SELF, &before);
	memset(address, 1, 8 * MIB);
	getrusage(RUSAGE_SELF, &after);
	EXPECT_GT(16, after.ru_minflt - before.ru_minflt);
	EXPECT_EQ(0, aclrtFreeHost(address));
}

/*
 * The kernel grants addresses for nearly all memory that there is, though much of
 * it is in use: here by a half of a device.
 */
TEST_F(acl, host_memory_that_is_not_available_is_refused)
{
	void *address = UNTOUCHED, *taken;
	uint64_t available, total;

	ASSERT_EQ(0, aclrtMalloc(&taken, free_memory() / 2, 0));
	ASSERT_EQ(0, read_number("/proc/meminfo", "MemAvailable:", &available));
	ASSERT_EQ(0, read_number("/proc/meminfo", "MemTotal:", &total));
	EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		     aclrtMallocHost(&address, (available + total) / 2 * 1024));
	EXPECT_EQ(UNTOUCHED, address);
	EXPECT_EQ(0, aclrtFree(taken));
}

TEST_F(acl, host_allocation_is_checked_in_order)
{
	void *address = UNTOUCHED;

#define REFUSED(code, words, address, size) \
	EXPECT_FAILS(code, words, aclrtMallocHost(address, size))
	ASSERT_EQ(0, aclrtResetDevice(0));
	REFUSED(ACL_ERROR_INVALID_PARAM, "hostPtr|NULL", NULL, 0);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", &address, 0);
	REFUSED(ACL_ERROR_RT_CONTEXT_NULL, "context", &address, SIZE_MAX);
	ASSERT_EQ(0, aclrtSetDevice(0));
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, SIZE_MAX);
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, SIZE_MAX - 31);
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, (size_t)1 << 60);
	/* More than the machine has, which must not end in an OOM kill. */
	REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, (size_t)1 << 43);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED, address);
}

TEST_F(acl, only_the_start_of_host_memory_can_be_freed)
{
	void *address, *allocated, *plain = malloc(100);

	ASSERT_NE(NULL, plain);
	ASSERT_EQ(0, aclrtMallocHost(&address, 3 * 4096));
	ASSERT_EQ(0, aclrtMalloc(&allocated, 1, 0));
	pattern_set(address, 3 * 4096, 1);
#define REFUSED(code, words, address) \
	EXPECT_FAILS(code, words, aclrtFreeHost(address))
	REFUSED(ACL_ERROR_INVALID_PARAM, "hostPtr|NULL", NULL);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", address + 1);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", address + 4096);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", allocated);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", plain);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", &plain);
	EXPECT_EQ(-1, pattern_differs(address, 3 * 4096, 1));
	EXPECT_EQ(0, aclrtFreeHost(address));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "hostPtr", address);
#undef REFUSED
	EXPECT_EQ(0, aclrtFree(allocated));
	free(plain);
}

/* A RAM disk takes O_DIRECT whatever the file systems here do. */
static int open_disk(bool *loaded)
{
	int fd = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC);

	*loaded = false;
	if (fd < 0 && !system("modprobe brd rd_nr=1 rd_size=16384 2>/dev/null")) {
		*loaded = true;
		usleep(100000);
		fd = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC);
	}
	return fd;
}

TEST_F(acl, host_memory_takes_direct_io)
{
	size_t size = 4 * MIB;
	void *address;
	bool loaded;
	int disk;

	disk = open_disk(&loaded);
	if (disk < 0)
		SKIP(return, "%s: needs a RAM disk", _metadata->name);
	ASSERT_EQ(0, aclrtMallocHost(&address, size));
	pattern_set(address, size, 1);
	EXPECT_EQ((ssize_t)size, pwrite(disk, address, size, 0));
	memset(address, 0, size);
	EXPECT_EQ((ssize_t)size, pread(disk, address, size, 0));
	EXPECT_EQ(-1, pattern_differs(address, size, 1));
	EXPECT_EQ(0, aclrtFreeHost(address));
	close(disk);
	if (loaded && system("modprobe -r brd"))
		TH_LOG("brd stays loaded");
}

TEST_HARNESS_MAIN
