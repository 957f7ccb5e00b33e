// SPDX-License-Identifier: GPL-2.0-only
/* What mmap() of the device takes for a reservation. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include "fixture.h"

TEST_F(client, mmap_needs_a_command_first)
{
	int fd = open_device();
	struct aclmem_device info;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(MAP_FAILED, reserve(fd, GRANULE));
	/* Any command does, and a failed mmap spoils nothing. */
	ASSERT_EQ(0, device_info(fd, 0, &info));
	EXPECT_NE(MAP_FAILED, reserve(fd, GRANULE));
	close(fd);
}

TEST_F(client, mmap_takes_shared_multiples_at_offset_zero)
{
	static const struct {
		size_t length;
		int protection;
		int flags;
		off_t offset;
		const char *what;
	} refused[] = {
		{ GRANULE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, "private" },
		{ GRANULE, PROT_READ, MAP_PRIVATE, 0, "private, to read" },
		{ GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, 4096, "offset of a page" },
		{ GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, GRANULE, "offset of 2 MiB" },
		{ GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, 1L << 46, "offset far up" },
		{ GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, -4096L, "offset below 0" },
		{ 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0, "a page" },
		{ GRANULE - 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0, "a page less" },
		{ GRANULE + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0, "a page more" },
		{ GRANULE, PROT_READ | PROT_EXEC, MAP_SHARED, 0, "executable" },
		{ GRANULE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, 0, "all rights" },
		{ 1L << 62, PROT_READ | PROT_WRITE, MAP_SHARED, 0, "more than there is" },
		{ 0, PROT_READ | PROT_WRITE, MAP_SHARED, 0, "nothing" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		void *at = mmap(NULL, refused[i].length, refused[i].protection,
				refused[i].flags, self->fd, refused[i].offset);

		EXPECT_EQ(MAP_FAILED, at)
			TH_LOG("mapped: %s", refused[i].what);
	}
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, mmap_needs_a_descriptor_for_both)
{
	int fd = open(DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	struct aclmem_query query = {};

	if (fd >= 0) {
		if (!command(fd, ACLMEM_QUERY, &query, sizeof(query)))
			EXPECT_EQ(MAP_FAILED, reserve(fd, GRANULE));
		close(fd);
	}
	fd = open(DEVICE_PATH, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (!command(fd, ACLMEM_QUERY, &query, sizeof(query)))
			EXPECT_EQ(MAP_FAILED, reserve(fd, GRANULE));
		close(fd);
	}
}

TEST_F(client, a_reservation_is_aligned)
{
	unsigned int i;
	char *at[16];

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		/* Something odd between them. */
		ASSERT_NE(MAP_FAILED, mmap(NULL, 4096 * (i + 1), PROT_READ,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		at[i] = reserve(self->fd, (i + 1) * GRANULE);
		ASSERT_NE(MAP_FAILED, at[i]);
		EXPECT_EQ(0, (uintptr_t)at[i] % GRANULE);
	}
	for (i = 0; i < ARRAY_SIZE(at); i++)
		EXPECT_EQ(0, munmap(at[i], (i + 1) * GRANULE));
}

TEST_F(client, a_fixed_place_is_taken_or_refused)
{
	char *at = reserve(self->fd, 4 * GRANULE);
	struct aclmem_address info;
	void *again;

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(MAP_FAILED, reserve_at(self->fd, at + GRANULE, GRANULE));
	EXPECT_EQ(EEXIST, errno);
	ASSERT_EQ(0, munmap(at, 4 * GRANULE));
	again = reserve_at(self->fd, at + GRANULE, GRANULE);
	EXPECT_EQ(at + GRANULE, again);
	/* A skewed place would never hold a 2 MiB entry. */
	EXPECT_EQ(MAP_FAILED, reserve_at(self->fd, at + 2 * GRANULE + 4096, GRANULE));
	ASSERT_EQ(0, address_info(self->fd, at + 2 * GRANULE + 4096, &info));
	EXPECT_EQ(ACLMEM_ADDRESS_FOREIGN, info.out_state);
}

/* MAP_FIXED unmaps before the driver is asked, unless that has refused before. */
TEST_F(client, a_refused_fixed_place_loses_nothing)
{
	int fixed = MAP_SHARED | MAP_FIXED, rights = PROT_READ | PROT_WRITE, other;
	size_t length = 4 * GRANULE;
	char *area, *at;

	area = mmap(NULL, length, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, area);
	at = (char *)(((uintptr_t)area + GRANULE - 1) & ~(GRANULE - 1));
	memset(area, 7, length);

	EXPECT_EQ(MAP_FAILED, mmap(at + 4096, GRANULE, rights, fixed, self->fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(at, GRANULE + 4096, rights, fixed, self->fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(at, GRANULE, rights, MAP_PRIVATE | MAP_FIXED, self->fd, 0));
	other = open_device();
	ASSERT_LE(0, other);
	EXPECT_EQ(MAP_FAILED, mmap(at, GRANULE, rights, fixed, other, 0));
	close(other);
	EXPECT_EQ(7, at[0]);
	EXPECT_EQ(7, at[4096]);
	EXPECT_EQ(7, at[GRANULE]);
	ASSERT_EQ(at, mmap(at, GRANULE, rights, fixed, self->fd, 0));
	ASSERT_EQ(0, munmap(area, length));
}

TEST_F(client, neighbours_stay_apart)
{
	char *hole = reserve(self->fd, 2 * GRANULE), *low, *high;
	struct aclmem_address info;
	uint32_t handle;

	ASSERT_NE(MAP_FAILED, hole);
	ASSERT_EQ(0, munmap(hole, 2 * GRANULE));
	low = reserve_at(self->fd, hole, GRANULE);
	high = reserve_at(self->fd, hole + GRANULE, GRANULE);
	ASSERT_EQ(hole, low);
	ASSERT_EQ(hole + GRANULE, high);
	ASSERT_EQ(0, alloc(self->fd, 0, 2 * GRANULE, &handle));
	EXPECT_REFUSED(EINVAL, RANGE_END, map(self->fd, handle, low, 2 * GRANULE, 0));
	ASSERT_EQ(0, address_info(self->fd, high, &info));
	EXPECT_EQ((uintptr_t)high, info.out_range_base);
	EXPECT_EQ(GRANULE, info.out_range_length);
	/* One munmap may end both, and no other mapping may cross them. */
	EXPECT_EQ(0, munmap(hole, 2 * GRANULE));
	EXPECT_REFUSED(ENXIO, NOT_RANGE_START, release(self->fd, high));
}

/* The old call that maps another part of a file in place. */
TEST_F(client, pages_cannot_be_remapped)
{
	uint32_t handle;
	char *at = map_new(self->fd, 2 * GRANULE, 0, &handle);

	ASSERT_NE(MAP_FAILED, at);
	at[0] = 4;
	EXPECT_EQ(-1, remap_file_pages(at, GRANULE, 0, 512, 0));
	EXPECT_EQ(-1, remap_file_pages(at + GRANULE, GRANULE, 0, 0, 0));
	EXPECT_EQ(-1, remap_file_pages(at, 4096, 0, (uintptr_t)at >> 12, 0));
	EXPECT_EQ(4, at[0]);
	EXPECT_EQ(0, at[GRANULE]);
	/* All of it is as munmap and mmap: what is there then is no mapping. */
	remap_file_pages(at, 2 * GRANULE, 0, 0, 0);
	EXPECT_NE(0, try_read(at, NULL));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, at));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, a_reservation_may_be_read_only)
{
	char *at = mmap(NULL, GRANULE, PROT_READ, MAP_SHARED, self->fd, 0);
	uint32_t handle;

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, map(self->fd, handle, at, GRANULE, 0));
	EXPECT_EQ(0, at[0]);
	EXPECT_EQ(SIGSEGV, try_write(at, 1));
	EXPECT_EQ(-1, mprotect(at, GRANULE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(SIGSEGV, try_write(at, 1));
	EXPECT_EQ(0, at[0]);
}

TEST_F(client, other_file_operations_are_refused)
{
	struct pollfd poll_fd = { .fd = self->fd, .events = POLLIN | POLLOUT };
	char buffer[16] = {};

	EXPECT_EQ(-1, read(self->fd, buffer, sizeof(buffer)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, buffer, sizeof(buffer)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ftruncate(self->fd, GRANULE));
	EXPECT_EQ(-1, fallocate(self->fd, 0, 0, GRANULE));
	EXPECT_LE(0, poll(&poll_fd, 1, 0));
}

TEST_HARNESS_MAIN
