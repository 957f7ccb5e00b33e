// SPDX-License-Identifier: GPL-2.0-only
/*
 * Promises about speed, as ratios of what is measured in the same run: touching
 * fresh memory, which takes one fault for 2 MiB, and copying in batches, which
 * costs little more than the copies.
 */
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

/*
 * The same with a new mapping of a file in memory, a quarter of the size: four
 * times that. Returns 0 if it isn't what it shall be, a fault for each 4 KiB.
 */
static double touch_memfd(int file, size_t size)
{
	unsigned char *address;
	double time;
	long before;

	size /= 4;
	address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (address == MAP_FAILED || madvise(address, size, MADV_NOHUGEPAGE))
		return 0;
	before = faults();
	time = touch(address, size);
	if (faults() - before < (long)(size / PAGE) || munmap(address, size))
		return 0;
	return 4 * time;
}

/* Its pages are made when they are touched, or only mapped. */
static void touch_new_memfd(size_t size, double *made, double *mapped)
{
	int file = memfd_create("touch", 0);

	*made = 0;
	*mapped = 0;
	if (file < 0 || ftruncate(file, size / 4))
		return;
	*made = touch_memfd(file, size);
	*mapped = touch_memfd(file, size);
	close(file);
}

/*
 * Memory of a memfd is made by the first touch, and memory of a device before.
 * What mapping alone costs is shown, too; under an emulator, which looks up each
 * 4 KiB on the device's side as well, most of that isn't the kernel's.
 */
TEST_F_TIMEOUT(acl, touching_fresh_memory_is_thirty_times_faster_than_by_4_kib, 120)
{
	double device[TOUCHES], made[TOUCHES], mapped[TOUCHES];
	size_t size = free_memory() / GRANULE * GRANULE;
	aclrtDrvMemHandle handle;
	unsigned char *address;
	void *reserved;
	long count = 0;
	int i;

	if (size > GIB)
		size = GIB;
	if (new_memory(&handle, size, 0))
		SKIP(return, "%s: the machine hasn't the memory", _metadata->name);
	ASSERT_EQ(0, aclrtReserveMemAddress(&reserved, size, 0, NULL, 0));
	address = reserved;
	for (i = 0; i < TOUCHES; i++) {
		ASSERT_EQ(0, aclrtMapMem(address, size, 0, handle, 0));
		count = -faults();
		device[i] = touch(address, size);
		count += faults();
		/* 520 for 1 GiB. */
		EXPECT_GE((long)(size / GRANULE) + 8, count);
		ASSERT_EQ(0, aclrtUnmapMem(address));
		touch_new_memfd(size, &made[i], &mapped[i]);
		ASSERT_LT(0, made[i]);
		ASSERT_LT(0, mapped[i]);
	}
	TH_LOG("touching %zu MiB: %.1f ms, %ld faults", size / MIB, median(device, TOUCHES) * 1e3,
	       count);
	TH_LOG("touching memfd's 4 KiB pages: %.1f ms, %.0f times", median(made, TOUCHES) * 1e3,
	       median(made, TOUCHES) / median(device, TOUCHES));
	TH_LOG("mapping those alone: %.1f ms, %.0f times", median(mapped, TOUCHES) * 1e3,
	       median(mapped, TOUCHES) / median(device, TOUCHES));
	EXPECT_LE(30, median(made, TOUCHES) / median(device, TOUCHES));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
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
