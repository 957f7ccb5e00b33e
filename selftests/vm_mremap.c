// SPDX-License-Identifier: GPL-2.0-only
/*
 * mremap() and mprotect() of a reservation are refused, and although the kernel
 * moves page tables to and fro before it asks, data, faults and unmap stay
 * right.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "fixture.h"

#define LENGTH (4 * GRANULE)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

FIXTURE(mremap)
{
	int fd;
	int probe;
	uint64_t used;
	uint32_t handle;
	unsigned char *at;
};

FIXTURE_VARIANT(mremap)
{
	bool table;
};

FIXTURE_VARIANT_ADD(mremap, by_2_mib)
{
	.table = false,
};

FIXTURE_VARIANT_ADD(mremap, by_4_kib)
{
	.table = true,
};

FIXTURE_SETUP(mremap)
{
	catch_faults();
	self->probe = probe_open();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	if (variant->table && self->probe < 0)
		SKIP(_exit(HARNESS_SKIP), "%s: needs aclmem_probe.ko", _metadata->name);
	self->used = used(self->fd);
	self->at = map_new(self->fd, LENGTH, 0, &self->handle);
	ASSERT_NE(MAP_FAILED, (void *)self->at);
	if (variant->table)
		ASSERT_EQ(0, probe_put_table(self->probe, self->at + GRANULE));
	pattern_set(self->at, LENGTH, 1);
}

FIXTURE_TEARDOWN(mremap)
{
	close(self->fd);
	if (self->probe >= 0)
		close(self->probe);
}

/* A free place for a move, skewed by so much from a multiple of 2 MiB. */
static char *free_place(size_t skew)
{
	size_t length = LENGTH + 2 * GRANULE;
	char *at = mmap(NULL, length, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	munmap(at, length);
	return (char *)(((uintptr_t)at + GRANULE - 1) & ~(GRANULE - 1)) + skew;
}

/* The n-th way to ask for it. */
static void *try_mremap(unsigned char *at, unsigned int n)
{
	static const size_t skews[] = { 0, 4096, GRANULE / 2, GRANULE - 4096 };
	char *place = free_place(skews[n / 8 % 4]);

	switch (n % 8) {
	case 0:
	case 1:
	case 2:
		return mremap(at, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	case 3:
		return mremap(at, LENGTH, LENGTH + GRANULE, MREMAP_MAYMOVE);
	case 4:
		return mremap(at, LENGTH, LENGTH - GRANULE, 0);
	case 5:
		return mremap(at, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	case 6:
		return mremap(at, 0, LENGTH, MREMAP_MAYMOVE);
	default:
		return mremap(at + GRANULE, GRANULE, GRANULE, MREMAP_MAYMOVE | MREMAP_FIXED,
			      place);
	}
}

struct watcher {
	const unsigned char *at;
	atomic_int stop;
	atomic_ulong seen;
	int signal;
};

/* Another thread sees the data whenever it looks. */
static void *watch(void *arg)
{
	struct watcher *watcher = arg;
	unsigned char expected[4], value;
	size_t i;

	for (i = 0; i < 4; i++)
		expected[i] = watcher->at[i * GRANULE];
	while (!atomic_load(&watcher->stop)) {
		for (i = 0; i < 4; i++) {
			watcher->signal = try_read(watcher->at + i * GRANULE, &value);
			if (watcher->signal || value != expected[i])
				return (void *)(i + 1);
		}
		atomic_fetch_add(&watcher->seen, 1);
	}
	return NULL;
}

TEST_F_TIMEOUT(mremap, a_thousand_refusals_leave_data_and_unmap_right, 60)
{
	unsigned int n, count = rounds(1000), level = 0;
	struct watcher watcher = { .at = self->at };
	struct aclmem_address info;
	pthread_t thread;
	void *wrong;
	size_t i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, watch, &watcher));
	for (n = 0; n < count; n++) {
		ASSERT_EQ(MAP_FAILED, try_mremap(self->at, n));
		ASSERT_NE(ENOSYS, errno);
		if (n % 97)
			continue;
		ASSERT_EQ(-1, pattern_differs(self->at, LENGTH, 1));
	}
	atomic_store(&watcher.stop, 1);
	ASSERT_EQ(0, pthread_join(thread, &wrong));
	EXPECT_EQ(NULL, wrong);
	EXPECT_EQ(0, watcher.signal);
	EXPECT_LT(0, atomic_load(&watcher.seen));

	ASSERT_EQ(-1, pattern_differs(self->at, LENGTH, 1));
	for (i = 0; self->probe >= 0 && i < LENGTH; i += GRANULE) {
		level = probe_level(self->probe, self->at + i);
		EXPECT_TRUE(level == ACLMEM_PROBE_PMD || level == ACLMEM_PROBE_PTE);
	}
	ASSERT_EQ(0, address_info(self->fd, self->at, &info));
	EXPECT_EQ((uintptr_t)self->at, info.out_range_base);
	EXPECT_EQ(LENGTH, info.out_range_length);

	ASSERT_EQ(0, unmap(self->fd, self->at));
	for (i = 0; i < LENGTH; i += GRANULE)
		EXPECT_EQ(SIGBUS, try_read(self->at + i, NULL));
	ASSERT_EQ(0, free_handle(self->fd, self->handle));
	EXPECT_EQ(self->used, used(self->fd));
	EXPECT_EQ(0, release(self->fd, self->at));
	EXPECT_EQ(0, munmap(self->at, LENGTH));
}

/*
 * What a refused move leaves in the page tables must not matter to the next
 * mapping, whichever kind of entry it gets.
 */
TEST_F(mremap, remapping_works_after_refusals)
{
	unsigned char *at = self->at;
	unsigned int n;

	for (n = 0; n < rounds(64); n++) {
		ASSERT_EQ(MAP_FAILED, try_mremap(at, n));
		if (n % 2)
			ASSERT_EQ(-1, pattern_differs(at, LENGTH, 1));
		ASSERT_EQ(0, unmap(self->fd, at));
		ASSERT_EQ(SIGBUS, try_read(at + GRANULE, NULL));
		ASSERT_EQ(MAP_FAILED, try_mremap(at, n + 1));
		ASSERT_EQ(0, map(self->fd, self->handle, at, LENGTH, 0));
		ASSERT_EQ(MAP_FAILED, try_mremap(at, n));
		ASSERT_EQ(-1, pattern_differs(at + GRANULE * (n % 3), 1, 1));
	}
	EXPECT_EQ(-1, pattern_differs(at, LENGTH, 1));
}

/* Refused moves of an ended reservation must not bring it back, nor end it twice. */
TEST_F(mremap, refusals_of_a_released_reservation)
{
	unsigned int n;

	ASSERT_EQ(0, unmap(self->fd, self->at));
	ASSERT_EQ(0, release(self->fd, self->at));
	for (n = 0; n < 32; n++)
		ASSERT_EQ(MAP_FAILED, try_mremap(self->at, n));
	EXPECT_REFUSED(EBUSY, CLOSING, map(self->fd, self->handle, self->at, LENGTH, 0));
	ASSERT_EQ(0, munmap(self->at, LENGTH));
	EXPECT_REFUSED(ENXIO, NOT_RANGE_START, release(self->fd, self->at));
}

TEST_F(mremap, protection_cannot_be_changed)
{
	static const int protections[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC,
		PROT_READ | PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(protections); i++) {
		EXPECT_EQ(-1, mprotect(self->at, LENGTH, protections[i]));
		EXPECT_EQ(-1, mprotect(self->at + GRANULE, GRANULE, protections[i]));
		EXPECT_EQ(-1, mprotect(self->at + 4096, 4096, protections[i]));
		EXPECT_EQ(0, try_write(self->at + i, 1));
		self->at[i] = 0;
	}
	pattern_set(self->at, 16, 1);
	EXPECT_EQ(-1, pattern_differs(self->at, LENGTH, 1));
}

TEST_F(mremap, parts_cannot_be_unmapped_or_replaced)
{
	void *other;

	EXPECT_EQ(-1, munmap(self->at, GRANULE));
	EXPECT_EQ(-1, munmap(self->at + GRANULE, GRANULE));
	EXPECT_EQ(-1, munmap(self->at + 3 * GRANULE, GRANULE));
	EXPECT_EQ(-1, munmap(self->at + 4096, 4096));
	EXPECT_EQ(-1, munmap(self->at + LENGTH - 4096, 8192));
	other = mmap(self->at + GRANULE, GRANULE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT_EQ(MAP_FAILED, other);
	other = mmap(self->at, GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     self->fd, 0);
	EXPECT_EQ(MAP_FAILED, other);
	EXPECT_EQ(-1, pattern_differs(self->at, LENGTH, 1));

	/* The whole may be replaced, as munmap() may end it. */
	other = mmap(self->at, LENGTH, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_EQ(self->at, other);
	EXPECT_EQ(0, self->at[0]);
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->at));
	ASSERT_EQ(0, free_handle(self->fd, self->handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_HARNESS_MAIN
