// SPDX-License-Identifier: GPL-2.0-only
/*
 * Promises about speed, as ratios of what is measured in the same run: touching
 * fresh memory, which takes one fault for 2 MiB, and copying in batches, which
 * costs little more than the copies.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "api_fixture.h"

#define GIB ((size_t)1 << 30)
#define PAGE 4096UL
#define TOUCHES 3
#define COPIES 15
#define ITEMS 4096UL

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *times, size_t n)
{
	qsort(times, n, sizeof(*times), compare);
	return times[n / 2];
}

/* Write to each 4 KiB page. */
static double touch(unsigned char *address, size_t size)
{
	double start = seconds();
	size_t at;

	for (at = 0; at < size; at += PAGE)
		*(volatile unsigned char *)(address + at) = 1;
	return seconds() - start;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* A mapping of a file in memory, whose pages are there but not in the page table. */
static double touch_memfd(int file, size_t size, long *count)
{
	unsigned char *address;
	double time;
	long before;

	address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (address == MAP_FAILED || madvise(address, size, MADV_NOHUGEPAGE))
		return 0;
	before = faults();
	time = touch(address, size);
	*count = faults() - before;
	return munmap(address, size) ? 0 : time;
}

TEST_F_TIMEOUT(acl, touching_fresh_memory_is_thirty_times_faster_than_by_4_kib, 120)
{
	double device[TOUCHES], file[TOUCHES];
	size_t size = free_memory() / GRANULE * GRANULE;
	aclrtDrvMemHandle handle;
	unsigned char *address;
	long before, after, by_4_kib;
	void *reserved;
	int memfd, i;

	if (size > GIB)
		size = GIB;
	memfd = memfd_create("touch", 0);
	ASSERT_LE(0, memfd);
	if (posix_fallocate(memfd, 0, size) || new_memory(&handle, size, 0))
		SKIP(return, "%s: the machine hasn't the memory", _metadata->name);
	ASSERT_EQ(0, aclrtReserveMemAddress(&reserved, size, 0, NULL, 0));
	address = reserved;
	for (i = 0; i < TOUCHES; i++) {
		ASSERT_EQ(0, aclrtMapMem(address, size, 0, handle, 0));
		before = faults();
		device[i] = touch(address, size);
		after = faults();
		/* 520 for 1 GiB. */
		EXPECT_GE((long)(size / GRANULE) + 8, after - before);
		ASSERT_EQ(0, aclrtUnmapMem(address));
		file[i] = touch_memfd(memfd, size, &by_4_kib);
		/* It is what it shall be compared with. */
		EXPECT_LE((long)(size / PAGE), by_4_kib);
	}
	TH_LOG("touching %zu MiB: %.1f ms, %ld faults; by 4 KiB: %.1f ms, %ld faults; %.0f times",
	       size / MIB, median(device, TOUCHES) * 1e3, after - before,
	       median(file, TOUCHES) * 1e3, by_4_kib,
	       median(file, TOUCHES) / median(device, TOUCHES));
	EXPECT_LE(30, median(file, TOUCHES) / median(device, TOUCHES));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	close(memfd);
}

struct items {
	void *dsts[ITEMS];
	void *srcs[ITEMS];
	size_t sizes[ITEMS];
};

static double copy_in_a_loop(struct items *items)
{
	double start = seconds();
	size_t i;

	for (i = 0; i < ITEMS; i++)
		memcpy(items->dsts[i], items->srcs[i], items->sizes[i]);
	return seconds() - start;
}

static double copy_in_a_batch(struct items *items, aclError *ret)
{
	aclrtMemcpyBatchAttr attr = {
		.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
		.srcLoc = { .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	size_t index = 0, fail;
	double start = seconds();

	*ret = aclrtMemcpyBatch(items->dsts, items->sizes, items->srcs, items->sizes, ITEMS,
				&attr, &index, 1, &fail);
	return seconds() - start;
}

/* Of one kind of page on both sides, where no item is beside the one before. */
TEST_F_TIMEOUT(acl, a_batch_is_not_much_slower_than_a_loop_of_memcpy, 120)
{
	static struct items items;
	double loop[COPIES], batch[COPIES];
	unsigned char *host, *dev;
	aclError ret;
	size_t i;

	host = malloc(ITEMS * PAGE);
	dev = new_mapping(ITEMS * PAGE, 0);
	ASSERT_NE(NULL, host);
	ASSERT_NE(NULL, dev);
	pattern_set(host, ITEMS * PAGE, 1);
	for (i = 0; i < ITEMS; i++) {
		items.srcs[i] = host + i * PAGE;
		items.dsts[i] = dev + (i * 1031 % ITEMS) * PAGE;
		items.sizes[i] = PAGE;
	}
	/* Both warm: memory, page tables, caches. */
	copy_in_a_loop(&items);
	copy_in_a_batch(&items, &ret);
	ASSERT_EQ(0, ret);
	for (i = 0; i < COPIES; i++) {
		memset(dev, 0, ITEMS * PAGE);
		loop[i] = copy_in_a_loop(&items);
		memset(dev, 0, ITEMS * PAGE);
		batch[i] = copy_in_a_batch(&items, &ret);
		ASSERT_EQ(0, ret);
	}
	for (i = 0; i < ITEMS; i++)
		ASSERT_EQ(0, memcmp(items.dsts[i], items.srcs[i], PAGE));
	TH_LOG("%lu items of 4 KiB: %.2f ms by memcpy(), %.2f ms in a batch; %.2f of its speed",
	       ITEMS, median(loop, COPIES) * 1e3, median(batch, COPIES) * 1e3,
	       median(loop, COPIES) / median(batch, COPIES));
	EXPECT_LE(0.55, median(loop, COPIES) / median(batch, COPIES));
	EXPECT_EQ(0, end_mapping(dev));
	free(host);
}

TEST_HARNESS_MAIN
