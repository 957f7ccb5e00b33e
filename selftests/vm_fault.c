// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults: what the page tables hold after a touch, what raises SIGBUS, and
 * that an unmap ends access at once and everywhere.
 */
#include <linux/userfaultfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fixture.h"

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

TEST_F_TIMEOUT(client, first_touch_of_1_gib_takes_a_fault_per_2_mib, 120)
{
	size_t length = (size_t)1 << 30, i;
	volatile char *at;
	uint32_t handle;
	long before;
	int level;

	/* Where a device hasn't that much, the host's memory is as good. */
	if (alloc(self->fd, 0, length, &handle))
		ASSERT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, length, &handle));
	at = reserve(self->fd, length);
	ASSERT_NE(MAP_FAILED, (void *)at);
	ASSERT_EQ(0, map(self->fd, handle, (void *)at, length, 0));
	before = minor_faults();
	for (i = 0; i < length; i += 4096)
		at[i] = i >> 12;
	EXPECT_LE(minor_faults() - before, 520);
	/* A touch does take a fault: nothing was filled in before. */
	EXPECT_GE(minor_faults() - before, 512);

	for (i = 0; i < length; i += 4096)
		if (at[i] != (char)(i >> 12))
			break;
	EXPECT_EQ(length, i);
	if (self->probe >= 0) {
		for (i = 0; i < length; i += GRANULE) {
			level = probe_level(self->probe, (void *)(at + i));
			ASSERT_EQ(ACLMEM_PROBE_PMD, level);
		}
	}

	ASSERT_EQ(0, unmap(self->fd, (void *)at));
	for (i = 0; self->probe >= 0 && i < length; i += GRANULE)
		ASSERT_EQ(ACLMEM_PROBE_NONE, probe_level(self->probe, (void *)(at + i)));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, a_page_is_compound_charged_and_held_once)
{
	struct aclmem_probe_page page;
	struct aclmem_probe_pfn after;
	uint32_t handle;
	char *at;

	REQUIRE_PROBE(self->probe);
	at = map_new(self->fd, 2 * GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	at[GRANULE] = 1;

	ASSERT_EQ(0, probe_page(self->probe, at, &page));
	EXPECT_EQ(ACLMEM_PROBE_NONE, page.out_level);
	ASSERT_EQ(0, probe_page(self->probe, at + GRANULE + 5 * 4096, &page));
	EXPECT_EQ(ACLMEM_PROBE_PMD, page.out_level);
	EXPECT_EQ(5, page.out_page.pfn % 512);
	EXPECT_TRUE(page.out_entry & ACLMEM_PROBE_WRITE);
	/* What keeps gup_fast away: devmap below 6.12, special from there on. */
	EXPECT_TRUE(page.out_entry & (ACLMEM_PROBE_DEVMAP | ACLMEM_PROBE_SPECIAL));
	EXPECT_EQ(1, page.out_page.out_refcount);
	EXPECT_EQ(9, page.out_page.out_order);
	EXPECT_TRUE(page.out_page.out_flags & ACLMEM_PROBE_COMPOUND);
	EXPECT_FALSE(page.out_page.out_flags & (ACLMEM_PROBE_HWPOISON | ACLMEM_PROBE_BUDDY |
						ACLMEM_PROBE_RESERVED));
	if (self->query.out_features & ACLMEM_FEATURE_CGROUP)
		EXPECT_TRUE(page.out_page.out_flags & ACLMEM_PROBE_CHARGED);

	ASSERT_EQ(0, unmap_old(self->fd, at, 2 * GRANULE, handle));
	/* Back in the kernel's hands; who has it by now is not known. */
	ASSERT_EQ(0, probe_pfn(self->probe, page.out_page.pfn, &after));
	EXPECT_FALSE(after.out_refcount == 1 && after.out_order == 9 &&
		     (after.out_flags & ACLMEM_PROBE_CHARGED));
}

/* Huge pages of the system's own are another matter. */
TEST_F(client, the_administrators_thp_setting_does_not_matter)
{
	static const char * const file = "/sys/kernel/mm/transparent_hugepage/enabled";
	uint32_t handle;
	char *at;
	int level;

	REQUIRE_PROBE(self->probe);
	if (write_file(file, "never"))
		SKIP(return, "%s: can't set %s", _metadata->name, file);
	at = map_new(self->fd, GRANULE, 0, &handle);
	at[0] = 1;
	level = probe_level(self->probe, at);
	EXPECT_EQ(0, write_file(file, "always"));
	EXPECT_EQ(ACLMEM_PROBE_PMD, level);
	EXPECT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));

	ASSERT_EQ(0, prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	at = map_new(self->fd, GRANULE, 0, &handle);
	at[0] = 1;
	EXPECT_EQ(ACLMEM_PROBE_PMD, probe_level(self->probe, at));
	EXPECT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));
}

TEST_F(client, reserved_memory_raises_sigbus)
{
	char *at = reserve(self->fd, 2 * GRANULE);
	uint32_t handle;

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(SIGBUS, try_read(at, NULL));
	EXPECT_EQ(SIGBUS, try_write(at + 2 * GRANULE - 1, 1));

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, map(self->fd, handle, at, GRANULE, 0));
	EXPECT_EQ(0, try_write(at + GRANULE - 1, 1));
	EXPECT_EQ(SIGBUS, try_read(at + GRANULE, NULL));
}

struct reader {
	const char *at;
	atomic_int stop;
	atomic_int unmapped;
	atomic_ulong reads;
	int before, after;
	bool wrong;
};

static void *read_until_unmapped(void *arg)
{
	struct reader *reader = arg;
	unsigned char seen;

	reader->before = 0;
	while (!atomic_load(&reader->unmapped)) {
		reader->before = try_read(reader->at, &seen);
		if (reader->before)
			continue;
		if (seen != 7)
			reader->wrong = true;
		atomic_fetch_add(&reader->reads, 1);
	}
	reader->after = try_read(reader->at, &seen);
	return NULL;
}

TEST_F(client, access_after_unmap_faults_in_every_thread)
{
	struct reader reader;
	pthread_t thread;
	uint32_t handle, other;
	unsigned int i;
	char *at, *elsewhere;

	at = map_new(self->fd, GRANULE, 0, &handle);
	elsewhere = map_new(self->fd, GRANULE, 0, &other);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_NE(MAP_FAILED, elsewhere);
	memset(elsewhere, 9, GRANULE);
	for (i = 0; i < rounds(50); i++) {
		at[0] = 7;
		reader = (struct reader){ .at = at };
		ASSERT_EQ(0, pthread_create(&thread, NULL, read_until_unmapped, &reader));
		while (!atomic_load(&reader.reads))
			sched_yield();
		ASSERT_EQ(0, unmap(self->fd, at));
		atomic_store(&reader.unmapped, 1);
		EXPECT_EQ(SIGBUS, try_read(at, NULL));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(SIGBUS, reader.after);
		EXPECT_FALSE(reader.wrong);
		/* Other memory at the same place is other memory. */
		ASSERT_EQ(0, map(self->fd, other, at, GRANULE, 0));
		EXPECT_EQ(9, at[0]);
		ASSERT_EQ(0, unmap(self->fd, at));
		ASSERT_EQ(0, map(self->fd, handle, at, GRANULE, 0));
		EXPECT_EQ(7, at[0]);
	}
}

/* A place that held smaller pages keeps their page table. */
TEST_F(client, a_place_with_a_page_table_works_by_4_kib_entries)
{
	struct aclmem_probe_page page;
	uint32_t handle;
	char *at;
	long before;
	size_t i;

	REQUIRE_PROBE(self->probe);
	at = map_new(self->fd, 2 * GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, probe_put_table(self->probe, at));
	ASSERT_EQ(ACLMEM_PROBE_TABLE, probe_level(self->probe, at));

	/* The whole table is filled at once, not a page per fault. */
	before = minor_faults();
	for (i = 0; i < 2 * GRANULE; i += 4096)
		at[i] = i >> 12;
	EXPECT_LE(minor_faults() - before, 8);
	for (i = 0; i < 2 * GRANULE; i += 4096)
		ASSERT_EQ((char)(i >> 12), at[i]);

	ASSERT_EQ(0, probe_page(self->probe, at + 4096, &page));
	EXPECT_EQ(ACLMEM_PROBE_PTE, page.out_level);
	EXPECT_EQ(1, page.out_page.pfn % 512);
	EXPECT_EQ(1, page.out_page.out_refcount);
	EXPECT_TRUE(page.out_entry & ACLMEM_PROBE_SPECIAL);
	EXPECT_EQ(ACLMEM_PROBE_PMD, probe_level(self->probe, at + GRANULE));

	/* Unmap and map again: other memory, the same page table. */
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, unmap(self->fd, at));
		ASSERT_EQ(ACLMEM_PROBE_TABLE, probe_level(self->probe, at));
		EXPECT_EQ(SIGBUS, try_read(at, NULL));
		EXPECT_EQ(SIGBUS, try_read(at + GRANULE - 1, NULL));
		ASSERT_EQ(0, map(self->fd, handle, at, 2 * GRANULE, 0));
		EXPECT_EQ(511 & 0x7f, at[511 * 4096] & 0x7f);
		EXPECT_EQ(3, at[3 * 4096]);
	}
	ASSERT_EQ(0, unmap_old(self->fd, at, 2 * GRANULE, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/*
 * From 6.7 on any area can be write-protected through userfaultfd, in its
 * asynchronous mode; that puts page tables with markers into empty places, and
 * splits 2 MiB entries on a write.
 */
static int write_protect(void *at, size_t length)
{
	struct uffdio_api api = { .api = UFFD_API, .features = 1ULL << 15 };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)at, .len = length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = { .start = (uintptr_t)at, .len = length },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &protect)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

TEST_F(client, write_protection_by_userfaultfd_harms_nothing)
{
	uint32_t handle;
	char *at;
	int uffd;
	size_t i;

	at = map_new(self->fd, 2 * GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	/* One place is filled, the other empty. */
	at[0] = 1;
	uffd = write_protect(at, 2 * GRANULE);
	if (uffd < 0) {
		/* Refused is as good; the memory must not have suffered. */
		TH_LOG("userfaultfd: %s", strerror(-uffd));
		EXPECT_EQ(1, at[0]);
	}
	for (i = 0; i < 2 * GRANULE; i += 4096) {
		EXPECT_EQ(0, try_write(at + i + 1, i >> 12));
		ASSERT_EQ((char)(i >> 12), at[i + 1]);
	}
	EXPECT_EQ(1, at[0]);
	if (self->probe >= 0 && uffd >= 0)
		TH_LOG("levels %d and %d", probe_level(self->probe, at),
		       probe_level(self->probe, at + GRANULE));
	ASSERT_EQ(0, unmap(self->fd, at));
	EXPECT_EQ(SIGBUS, try_read(at, NULL));
	EXPECT_EQ(SIGBUS, try_write(at + GRANULE, 1));
	ASSERT_EQ(0, map(self->fd, handle, at, 2 * GRANULE, 0));
	EXPECT_EQ(2, at[2 * 4096 + 1]);
	if (uffd >= 0)
		close(uffd);
	EXPECT_EQ(0, try_write(at, 3));
	EXPECT_EQ(0, unmap_old(self->fd, at, 2 * GRANULE, handle));
}

TEST_HARNESS_MAIN
