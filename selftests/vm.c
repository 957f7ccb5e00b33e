// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reservations and mappings: what may be mapped where, what a refusal says and
 * that it changes nothing, and that only the named mapping ends.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "fixture.h"

/* Three granules reserved, none mapped; one handle of one granule. */
FIXTURE(place)
{
	int fd;
	int probe;
	uint64_t used;
	char *base;
	uint32_t handle;
};

#define PLACE (3 * GRANULE)

FIXTURE_SETUP(place)
{
	catch_faults();
	self->probe = probe_open();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	self->base = reserve(self->fd, PLACE);
	ASSERT_NE(MAP_FAILED, self->base);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &self->handle));
}

FIXTURE_TEARDOWN(place)
{
	close(self->fd);
	if (self->probe >= 0)
		close(self->probe);
}

/* What is at the address, by the module. */
static int state_at(int fd, const void *address)
{
	struct aclmem_address info;
	int rc = address_info(fd, address, &info);

	return rc ? rc : (int)info.out_state;
}

static int mappings_of(int fd, uint32_t handle)
{
	struct aclmem_handle_info info;
	int rc = handle_info(fd, handle, &info);

	return rc ? rc : (int)info.out_mappings;
}

TEST_F(place, map_refuses_handles_it_cannot_map)
{
	EXPECT_REFUSED(ENOENT, HANDLE, map(self->fd, 0, self->base, GRANULE, 0));
	EXPECT_REFUSED(ENOENT, HANDLE, map(self->fd, self->handle + 1, self->base, GRANULE, 0));
	EXPECT_EQ(self->handle + 1, last.out_value);
	EXPECT_REFUSED(ENOENT, HANDLE, map(self->fd, ~0U, self->base, GRANULE, 0));

	/* Freed while mapped: the mapping keeps it, a new one may not. */
	ASSERT_EQ(0, map(self->fd, self->handle, self->base, GRANULE, 0));
	ASSERT_EQ(0, free_handle(self->fd, self->handle));
	EXPECT_REFUSED(ENOENT, OVER_FREED,
		       map(self->fd, self->handle, self->base + GRANULE, GRANULE, 0));
	EXPECT_EQ(self->handle, last.out_value);
	ASSERT_EQ(0, unmap(self->fd, self->base));
	EXPECT_REFUSED(ENOENT, HANDLE, map(self->fd, self->handle, self->base, GRANULE, 0));
	EXPECT_EQ(ACLMEM_ADDRESS_RESERVED, state_at(self->fd, self->base));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(place, map_refuses_other_sizes_and_offsets)
{
	struct aclmem_map arg = {
		.address = (uintptr_t)self->base,
		.length = GRANULE,
		.handle = self->handle,
	};
	static const uint64_t offsets[] = { 1, 4096, GRANULE, 1ULL << 63 };
	size_t i;

	EXPECT_REFUSED(EINVAL, LENGTH_ZERO, map(self->fd, self->handle, self->base, 0, 0));
	EXPECT_REFUSED(EINVAL, SIZE_MISMATCH, map(self->fd, self->handle, self->base, 4096, 0));
	EXPECT_EQ(GRANULE, last.out_value);
	EXPECT_REFUSED(EINVAL, SIZE_MISMATCH,
		       map(self->fd, self->handle, self->base, 2 * GRANULE, 0));
	EXPECT_REFUSED(EINVAL, SIZE_MISMATCH,
		       map(self->fd, self->handle, self->base, SIZE_MAX - GRANULE + 1, 0));
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		arg.offset = offsets[i];
		EXPECT_REFUSED(EINVAL, OFFSET,
			       command(self->fd, ACLMEM_MAP, &arg, sizeof(arg)));
		EXPECT_EQ(offsets[i], last.out_value);
	}
	EXPECT_EQ(0, mappings_of(self->fd, self->handle));
	EXPECT_EQ(ACLMEM_ADDRESS_RESERVED, state_at(self->fd, self->base));
}

TEST_F(place, map_refuses_places_it_did_not_reserve)
{
	static const size_t skews[] = { 1, 4096, GRANULE / 2, GRANULE - 1 };
	uint32_t large;
	char *other;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(skews); i++) {
		EXPECT_REFUSED(EINVAL, ADDRESS_ALIGN,
			       map(self->fd, self->handle, self->base + skews[i], GRANULE, 0));
		EXPECT_EQ((uintptr_t)self->base + skews[i], last.out_value);
	}

	/* Nothing, memory of another kind, and no user address. */
	other = mmap(NULL, 2 * GRANULE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, other);
	other = (char *)(((uintptr_t)other + GRANULE - 1) & ~(GRANULE - 1));
	EXPECT_REFUSED(ENXIO, NOT_RESERVED, map(self->fd, self->handle, other, GRANULE, 0));
	EXPECT_EQ((uintptr_t)other, last.out_value);
	EXPECT_REFUSED(ENXIO, NOT_RESERVED, map(self->fd, self->handle, NULL, GRANULE, 0));
	EXPECT_REFUSED(ENXIO, NOT_RESERVED,
		       map(self->fd, self->handle, self->base + PLACE, GRANULE, 0));
	EXPECT_REFUSED(ENXIO, NOT_RESERVED,
		       map(self->fd, self->handle, (void *)-GRANULE, GRANULE, 0));

	ASSERT_EQ(0, alloc(self->fd, 0, 2 * GRANULE, &large));
	EXPECT_REFUSED(EINVAL, RANGE_END,
		       map(self->fd, large, self->base + 2 * GRANULE, 2 * GRANULE, 0));
	EXPECT_EQ((uintptr_t)self->base + PLACE, last.out_value);
	EXPECT_EQ(0, mappings_of(self->fd, self->handle));
	EXPECT_EQ(0, mappings_of(self->fd, large));
	EXPECT_EQ(0, map(self->fd, large, self->base + GRANULE, 2 * GRANULE, 0));
}

TEST_F(place, map_refuses_places_that_are_taken)
{
	uint32_t large;

	ASSERT_EQ(0, alloc(self->fd, 0, 2 * GRANULE, &large));
	ASSERT_EQ(0, map(self->fd, self->handle, self->base + GRANULE, GRANULE, 0));
	self->base[GRANULE] = 1;

	EXPECT_REFUSED(EADDRINUSE, MAPPED,
		       map(self->fd, self->handle, self->base + GRANULE, GRANULE, 0));
	EXPECT_EQ((uintptr_t)self->base + GRANULE, last.out_value);
	EXPECT_REFUSED(EADDRINUSE, MAPPED, map(self->fd, large, self->base, 2 * GRANULE, 0));
	EXPECT_EQ((uintptr_t)self->base + GRANULE, last.out_value);
	EXPECT_REFUSED(EADDRINUSE, MAPPED,
		       map(self->fd, large, self->base + GRANULE, 2 * GRANULE, 0));

	EXPECT_EQ(1, self->base[GRANULE]);
	EXPECT_EQ(1, mappings_of(self->fd, self->handle));
	EXPECT_EQ(0, mappings_of(self->fd, large));
	EXPECT_EQ(ACLMEM_ADDRESS_RESERVED, state_at(self->fd, self->base));
}

TEST_F(place, a_reservation_serves_one_location)
{
	uint32_t other;

	if (alloc(self->fd, 1, GRANULE, &other))
		SKIP(return, "%s: needs two devices", _metadata->name);
	ASSERT_EQ(0, map(self->fd, self->handle, self->base, GRANULE, 0));
	EXPECT_REFUSED(EINVAL, OTHER_LOCATION,
		       map(self->fd, other, self->base + GRANULE, GRANULE, 0));
	EXPECT_EQ((uint64_t)ACLMEM_LOCATION_DEVICE << 32, last.out_value);
	ASSERT_EQ(0, free_handle(self->fd, other));

	ASSERT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, GRANULE, &other));
	EXPECT_REFUSED(EINVAL, OTHER_LOCATION,
		       map(self->fd, other, self->base + GRANULE, GRANULE, 0));
	EXPECT_EQ(ACLMEM_ADDRESS_RESERVED, state_at(self->fd, self->base + GRANULE));
}

TEST_F(place, unmap_takes_the_start_of_a_mapping_only)
{
	uint32_t large;

	ASSERT_EQ(0, alloc(self->fd, 0, 2 * GRANULE, &large));
	ASSERT_EQ(0, map(self->fd, large, self->base, 2 * GRANULE, 0));
	self->base[2 * GRANULE - 1] = 7;

	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->base + 1));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->base + GRANULE));
	EXPECT_EQ((uintptr_t)self->base + GRANULE, last.out_value);
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->base + 2 * GRANULE));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, NULL));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, (void *)-1));
	EXPECT_EQ(7, self->base[2 * GRANULE - 1]);

	EXPECT_EQ(0, unmap(self->fd, self->base));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->base));
	EXPECT_EQ(SIGBUS, try_read(self->base, NULL));
	EXPECT_EQ(SIGBUS, try_read(self->base + 2 * GRANULE - 1, NULL));
}

TEST_F(place, release_takes_empty_reservations_only)
{
	ASSERT_EQ(0, map(self->fd, self->handle, self->base + GRANULE, GRANULE, 0));
	EXPECT_REFUSED(ENXIO, NOT_RANGE_START, release(self->fd, self->base + GRANULE));
	EXPECT_EQ((uintptr_t)self->base + GRANULE, last.out_value);
	EXPECT_REFUSED(ENXIO, NOT_RANGE_START, release(self->fd, NULL));
	EXPECT_REFUSED(EBUSY, STILL_MAPPED, release(self->fd, self->base));
	EXPECT_EQ((uintptr_t)self->base + GRANULE, last.out_value);

	ASSERT_EQ(0, unmap(self->fd, self->base + GRANULE));
	EXPECT_EQ(0, release(self->fd, self->base));
	EXPECT_REFUSED(EBUSY, CLOSING, map(self->fd, self->handle, self->base, GRANULE, 0));
	EXPECT_EQ((uintptr_t)self->base, last.out_value);
	EXPECT_REFUSED(EBUSY, CLOSING, release(self->fd, self->base));
	EXPECT_EQ(SIGBUS, try_read(self->base, NULL));

	ASSERT_EQ(0, munmap(self->base, PLACE));
	EXPECT_REFUSED(ENXIO, NOT_RANGE_START, release(self->fd, self->base));
	/* The place is free again, for a reservation of the same kind too. */
	ASSERT_EQ(self->base, reserve_at(self->fd, self->base, PLACE));
	EXPECT_EQ(0, map(self->fd, self->handle, self->base, GRANULE, 0));
}

TEST_F(place, unmap_ends_one_of_two_mappings_of_a_handle)
{
	char *other = reserve(self->fd, GRANULE);
	unsigned char seen;

	ASSERT_NE(MAP_FAILED, other);
	ASSERT_EQ(0, map(self->fd, self->handle, self->base, GRANULE, 0));
	ASSERT_EQ(0, map(self->fd, self->handle, other, GRANULE, 0));
	EXPECT_EQ(2, mappings_of(self->fd, self->handle));
	self->base[12345] = 42;
	EXPECT_EQ(42, other[12345]);

	ASSERT_EQ(0, unmap(self->fd, self->base));
	EXPECT_EQ(SIGBUS, try_read(self->base + 12345, NULL));
	EXPECT_EQ(0, try_read(other + 12345, &seen));
	EXPECT_EQ(42, seen);
	EXPECT_REFUSED(EBUSY, STILL_MAPPED, release(self->fd, other));

	/* The last mapping keeps the memory when the handle is freed. */
	ASSERT_EQ(0, free_handle(self->fd, self->handle));
	EXPECT_EQ(42, other[12345]);
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
	ASSERT_EQ(0, unmap(self->fd, other));
	EXPECT_EQ(self->used, used(self->fd));
	EXPECT_EQ(0, release(self->fd, other));
}

TEST_F(place, munmap_ends_a_reservation_with_its_mappings)
{
	char *at;
	int i;

	for (i = 0; i < 3; i++) {
		at = self->base + i * GRANULE;
		ASSERT_EQ(0, map(self->fd, self->handle, at, GRANULE, 0));
		at[i] = i + 1;
	}
	ASSERT_EQ(3, mappings_of(self->fd, self->handle));
	ASSERT_EQ(0, munmap(self->base, PLACE));
	EXPECT_EQ(0, mappings_of(self->fd, self->handle));
	EXPECT_EQ(ACLMEM_ADDRESS_FOREIGN, state_at(self->fd, self->base));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, self->base));
	EXPECT_EQ(0, free_handle(self->fd, self->handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(place, an_address_is_described_as_it_is)
{
	struct aclmem_address info;
	uint32_t large;

	ASSERT_EQ(0, alloc(self->fd, 0, 2 * GRANULE, &large));
	ASSERT_EQ(0, map(self->fd, large, self->base + GRANULE, 2 * GRANULE,
			 ACLMEM_MAP_READ_ONLY));

	ASSERT_EQ(0, address_info(self->fd, self, &info));
	EXPECT_EQ(ACLMEM_ADDRESS_FOREIGN, info.out_state);
	EXPECT_EQ(ACLMEM_LOCATION_UNREGISTERED, info.out_location.type);
	EXPECT_EQ(0, info.out_base | info.out_length | info.out_range_base |
		  info.out_range_length | info.out_handle | info.out_page_size);

	ASSERT_EQ(0, address_info(self->fd, self->base + GRANULE - 1, &info));
	EXPECT_EQ(ACLMEM_ADDRESS_RESERVED, info.out_state);
	EXPECT_EQ(ACLMEM_LOCATION_UNREGISTERED, info.out_location.type);
	EXPECT_EQ(0, info.out_base | info.out_length | info.out_handle | info.out_page_size);
	EXPECT_EQ((uintptr_t)self->base, info.out_range_base);
	EXPECT_EQ(PLACE, info.out_range_length);

	ASSERT_EQ(0, address_info(self->fd, self->base + PLACE - 1, &info));
	EXPECT_EQ(ACLMEM_ADDRESS_MAPPED, info.out_state);
	EXPECT_EQ(GRANULE, info.out_page_size);
	EXPECT_EQ(ACLMEM_LOCATION_DEVICE, info.out_location.type);
	EXPECT_EQ(0, info.out_location.id);
	EXPECT_EQ((uintptr_t)self->base + GRANULE, info.out_base);
	EXPECT_EQ(2 * GRANULE, info.out_length);
	EXPECT_EQ((uintptr_t)self->base, info.out_range_base);
	EXPECT_EQ(PLACE, info.out_range_length);
	EXPECT_EQ(ACLMEM_MAP_READ_ONLY, info.out_map_flags);
	EXPECT_EQ(large, info.out_handle);
	EXPECT_EQ(1, mappings_of(self->fd, large));

	ASSERT_EQ(0, address_info(self->fd, self->base + PLACE, &info));
	EXPECT_EQ(ACLMEM_ADDRESS_FOREIGN, info.out_state);
}

/* Sleep and wake up, as serving engines do to lend memory for a while. */
TEST_F_TIMEOUT(place, two_hundred_cycles_lose_nothing, 60)
{
	size_t length = 4 * GRANULE;
	char *base = reserve(self->fd, length);
	uint64_t first = 0;
	uint32_t handle;
	unsigned int i;

	ASSERT_NE(MAP_FAILED, base);
	for (i = 0; i < rounds(200); i++) {
		ASSERT_EQ(0, alloc(self->fd, 0, length, &handle));
		ASSERT_EQ(0, map(self->fd, handle, base, length, 0));
		EXPECT_EQ(0, base[0]);
		EXPECT_EQ(0, base[length - 1]);
		base[0] = 1;
		base[length - 1] = 1;
		if (!i)
			first = used(self->fd);
		ASSERT_EQ(first, used(self->fd));
		ASSERT_EQ(0, unmap(self->fd, base));
		ASSERT_EQ(0, free_handle(self->fd, handle));
	}
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
}

TEST_F_TIMEOUT(place, reserving_costs_address_space_only, 60)
{
	static void *places[20000];
	size_t length = (size_t)10 << 30;
	unsigned int n = 0;

	while (n < ARRAY_SIZE(places)) {
		places[n] = reserve(self->fd, length);
		if (places[n] == MAP_FAILED)
			break;
		n++;
	}
	EXPECT_EQ(ENOMEM, errno);
	/* 128 TiB, less what the process itself is made of. */
	EXPECT_GT(n, 12000);
	EXPECT_LT(n, ARRAY_SIZE(places));
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
	while (n--)
		ASSERT_EQ(0, munmap(places[n], length));
	places[0] = reserve(self->fd, length);
	ASSERT_NE(MAP_FAILED, places[0]);
	EXPECT_EQ(0, map(self->fd, self->handle, places[0], GRANULE, 0));
}

TEST_HARNESS_MAIN
