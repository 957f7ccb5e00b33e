// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine's memory runs out: a clean refusal that gives back what it had,
 * and nobody is killed for it. Takes all memory there is, so it's for a test
 * machine.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fixture.h"

static uint64_t oom_kills(void)
{
	uint64_t kills = 0;

	read_number("/proc/vmstat", "oom_kill ", &kills);
	return kills;
}

static uint64_t available_kib(void)
{
	uint64_t kib = 0;

	read_number("/proc/meminfo", "MemAvailable:", &kib);
	return kib;
}

/* Ordinary memory of the process, as much as leaves @left KiB. */
static char *take_all_but(uint64_t left, size_t *length)
{
	uint64_t available = available_kib();
	char *at;
	size_t i;

	if (available <= left)
		return NULL;
	*length = (available - left) * 1024 / GRANULE * GRANULE;
	at = mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	for (i = 0; i < *length; i += 4096)
		at[i] = 1;
	return at;
}

TEST_F_TIMEOUT(client, no_memory_is_no_reason_to_kill, 120)
{
	uint64_t kills = oom_kills(), after;
	size_t length;
	uint32_t handle;
	char *taken;
	int rc;

	taken = take_all_but(600 * 1024, &length);
	ASSERT_NE(NULL, taken);
	/* More than is left, and no more than the host's share. */
	rc = alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, 800 * MIB, &handle);
	EXPECT_EQ(-ENOMEM, rc);
	EXPECT_STREQ("NO_PAGES", reason_name(last.out_reason));
	EXPECT_LT(64 * MIB, last.out_value);
	EXPECT_GT(800 * MIB, last.out_value);
	EXPECT_EQ(kills, oom_kills());
	EXPECT_EQ(1, taken[length - 4096]);

	/* What it had is back, and it goes on as if nothing had been. */
	after = available_kib();
	EXPECT_LT(400 * 1024, after);
	ASSERT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, 64 * MIB, &handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
	munmap(taken, length);
}

/* No contiguity beyond 2 MiB is needed, and that much can be made. */
TEST_F_TIMEOUT(client, fragmented_memory_will_do, 60)
{
	size_t length = available_kib() * 1024 / 4 & ~4095UL, i;
	uint32_t handle;
	char *at;

	/* Every second page of what was a large area stays in use. */
	at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	madvise(at, length, MADV_NOHUGEPAGE);
	for (i = 0; i < length; i += 4096)
		at[i] = 1;
	for (i = 0; i < length; i += 8192)
		madvise(at + i, 4096, MADV_DONTNEED);
	EXPECT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, 512 * MIB, &handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	for (i = 4096; i < length; i += 8192)
		ASSERT_EQ(1, at[i]);
}

TEST_HARNESS_MAIN
