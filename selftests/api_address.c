// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reserving addresses and mapping memory there: what is refused, in which order,
 * and that a refusal changes nothing. More of mapping is in api_map.c.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"

#define TIB ((uintptr_t)1 << 40)
#define GIB ((size_t)1 << 30)

TEST_F(acl, a_reservation_is_checked_in_order)
{
	void *address = UNTOUCHED;

#define REFUSED(code, words, address, size, alignment, expected, flags) \
	EXPECT_FAILS(code, words, aclrtReserveMemAddress(address, size, alignment, expected, flags))
	REFUSED(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", NULL, 0, 1, (void *)1, 2);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", &address, 0, 1, (void *)1, 2);
	REFUSED(ACL_ERROR_INVALID_PARAM, "flags|2", &address, 1, 1, (void *)1, 2);
	REFUSED(ACL_ERROR_INVALID_PARAM, "flags", &address, 1, 1, (void *)1, (uint64_t)1 << 63);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "alignment|1", &address, 1, 1, (void *)1, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "alignment", &address, 1, GRANULE, (void *)1, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &address, 1, 0, (void *)1, 0);
	EXPECT_EQ(UNTOUCHED, address);
}

TEST(a_reservation_needs_a_device)
{
	void *address = UNTOUCHED;
	int fd = open_device();

	REQUIRE_CLIENT(fd);
	close(fd);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", &address, 0, 0, NULL, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "alignment", &address, 1, 1, NULL, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &address, 1, 0, (void *)1, 0);
	REFUSED(ACL_ERROR_RT_INVALID_HANDLE, "aclrtSetDevice", &address, 1, 0, NULL, 0);
	EXPECT_EQ(UNTOUCHED, address);
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", aclrtReleaseMemAddress(NULL));
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, "aclrtSetDevice",
		     aclrtReleaseMemAddress(NOWHERE));
	ASSERT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtReserveMemAddress(&address, 1, 0, NULL, 0));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
}

TEST_F(acl, any_size_can_be_reserved)
{
	const size_t sizes[] = { 1, 512, 4096, GRANULE - 1, GRANULE, GRANULE + 1, 64 * GIB };
	size_t i, length, free = free_memory();
	void *address;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ASSERT_EQ(0, aclrtReserveMemAddress(&address, sizes[i], 0, NULL, i % 2));
		EXPECT_EQ(0, (uintptr_t)address % GRANULE);
		EXPECT_EQ(free, free_memory());
		EXPECT_EQ(SIGBUS, try_read(address, NULL));
		length = (sizes[i] + GRANULE - 1) / GRANULE * GRANULE;
		EXPECT_EQ(SIGBUS, try_write((char *)address + length - 1, 1));
		EXPECT_EQ(0, aclrtReleaseMemAddress(address));
		EXPECT_EQ(SIGSEGV, try_read(address, NULL));
	}
}

TEST_F(acl, absurd_sizes_are_out_of_addresses)
{
	const size_t sizes[] = { (size_t)1 << 47, (size_t)1 << 62, (size_t)1 << 63,
				 SIZE_MAX - GRANULE + 1, SIZE_MAX };
	void *address = UNTOUCHED;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		REFUSED(ACL_ERROR_RT_MEMORY_ALLOCATION, "size", &address, sizes[i], 0, NULL, 0);
	EXPECT_EQ(UNTOUCHED, address);
}

TEST_F(acl, an_expected_address_is_given_or_refused)
{
	static const struct {
		uintptr_t address;
		size_t size;
		bool right;
	} wishes[] = {
		{ 16 * TIB, GRANULE, true },
		{ 16 * TIB + GRANULE, GRANULE, true },
		{ 16 * TIB + GRANULE, 1, true },
		{ 17 * TIB + 2 * GRANULE, 3 * MIB, true },
		{ 17 * TIB + 512 * MIB, 512 * MIB, true },
		{ 17 * TIB + 512 * MIB, 512 * MIB - 1, true },
		{ 18 * TIB + GIB, 512 * MIB + 1, true },
		{ 18 * TIB + 3 * GIB, 3 * GIB, true },
		{ 24 * TIB - GIB, GIB, true },
		{ 16 * TIB - GRANULE, GRANULE, false },
		{ 15 * TIB, GIB, false },
		{ GRANULE, GRANULE, false },
		{ 24 * TIB + GIB, GRANULE, false },
		{ (uintptr_t)1 << 63, GRANULE, false },
		{ 17 * TIB + 1, 1, false },
		{ 17 * TIB + 4096, GRANULE, false },
		{ 17 * TIB + GRANULE, 3 * MIB, false },
		{ 17 * TIB + GRANULE, GRANULE + 1, false },
		{ 17 * TIB + 256 * MIB, 257 * MIB, false },
		{ 17 * TIB + 256 * MIB, 512 * MIB, false },
		{ 17 * TIB + 512 * MIB, 512 * MIB + 1, false },
		{ 17 * TIB + 512 * MIB, 3 * GIB, false },
	};
	void *address, *expected;
	size_t i;

	for (i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		address = UNTOUCHED;
		expected = (void *)wishes[i].address;
		if (!wishes[i].right) {
			REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &address,
				wishes[i].size, 0, expected, 0);
			EXPECT_EQ(UNTOUCHED, address);
			continue;
		}
		EXPECT_EQ(0, aclrtReserveMemAddress(&address, wishes[i].size, 0, expected, 0))
			TH_LOG("for 0x%zx at %p", wishes[i].size, expected);
		EXPECT_EQ(expected, address);
		if (address == expected)
			EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	}
}

TEST_F(acl, an_expected_address_in_use_is_refused)
{
	void *expected = (void *)(20 * TIB), *address, *again = UNTOUCHED;
	unsigned char *plain;

	ASSERT_EQ(0, aclrtReserveMemAddress(&address, 2 * GRANULE, 0, expected, 0));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &again, GRANULE, 0, expected, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &again, GRANULE, 0,
		(char *)expected + GRANULE, 0);
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));

	/* Also by memory of others, which stays as it is. */
	plain = mmap((char *)expected + GRANULE - 4096, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ASSERT_NE(MAP_FAILED, plain);
	*plain = 9;
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "expectPtr", &again, GRANULE, 0, expected, 0);
	EXPECT_EQ(9, *plain);
	EXPECT_EQ(UNTOUCHED, again);
	ASSERT_EQ(0, munmap(plain, 4096));
	EXPECT_EQ(0, aclrtReserveMemAddress(&again, GRANULE, 0, expected, 0));
	EXPECT_EQ(0, aclrtReleaseMemAddress(again));
}

#undef REFUSED

TEST_F(acl, running_out_of_addresses_is_clean)
{
	void *addresses[1024], *address;
	size_t n = 0, i;
	aclError ret = 0;

	/* 128 TiB at most, so that it ends before the array does. */
	for (n = 0; n < 1024 && !ret; n++)
		ret = aclrtReserveMemAddress(&addresses[n], TIB, 0, NULL, 0);
	n--;
	EXPECT_EQ(ACL_ERROR_RT_MEMORY_ALLOCATION, ret);
	EXPECT_GT(n, 8);
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, aclrtReleaseMemAddress(addresses[i]));
	EXPECT_EQ(0, aclrtReserveMemAddress(&address, TIB, 0, NULL, 0));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
}

TEST_F(acl, only_the_start_of_a_reservation_can_be_released)
{
	void *address, *allocated, *host;
	unsigned char *mapped;

	ASSERT_EQ(0, aclrtReserveMemAddress(&address, 4 * GRANULE, 0, NULL, 0));
	ASSERT_EQ(0, aclrtMalloc(&allocated, 1, 0));
	ASSERT_EQ(0, aclrtMallocHost(&host, 1));
#define REFUSED(code, words, address) \
	EXPECT_FAILS(code, words, aclrtReleaseMemAddress(address))
	REFUSED(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", NULL);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", (char *)address + 1);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", (char *)address + GRANULE);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", allocated);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", host);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", &address);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", NOWHERE);
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", address);

	/* Nor what the program itself gave back. */
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, GRANULE, 0, NULL, 0));
	ASSERT_EQ(0, munmap(address, GRANULE));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", address);

	/* Not while something is mapped in it, which goes on to be. */
	mapped = new_mapping(GRANULE, 0);
	ASSERT_NE(NULL, mapped);
	*mapped = 5;
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", mapped);
	EXPECT_EQ(5, *mapped);
	EXPECT_EQ(0, try_write(mapped + GRANULE - 1, 6));
	EXPECT_EQ(0, end_mapping(mapped));
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "virPtr", mapped);
#undef REFUSED
	EXPECT_EQ(0, aclrtFree(allocated));
	EXPECT_EQ(0, aclrtFreeHost(host));
}

/* Four granules reserved, the second one mapped; a handle of one, one of two. */
FIXTURE(range)
{
	int fd;
	uint64_t used;
	unsigned char *base;
	aclrtDrvMemHandle one;
	aclrtDrvMemHandle two;
};

FIXTURE_SETUP(range)
{
	void *address;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, 4 * GRANULE, 0, NULL, 0));
	self->base = address;
	ASSERT_EQ(0, new_memory(&self->one, GRANULE, 0));
	ASSERT_EQ(0, new_memory(&self->two, 2 * GRANULE, 0));
	ASSERT_EQ(0, aclrtMapMem(self->base + GRANULE, GRANULE, 0, self->one, 0));
	pattern_set(self->base + GRANULE, GRANULE, 1);
}

/* Nothing but that is there. */
FIXTURE_TEARDOWN(range)
{
	EXPECT_EQ(SIGBUS, try_read(self->base, NULL));
	EXPECT_EQ(-1, pattern_differs(self->base + GRANULE, GRANULE, 1));
	EXPECT_EQ(SIGBUS, try_read(self->base + 2 * GRANULE, NULL));
	EXPECT_EQ(SIGBUS, try_read(self->base + 3 * GRANULE, NULL));
	EXPECT_EQ(0, aclrtUnmapMem(self->base + GRANULE));
	EXPECT_EQ(0, aclrtFreePhysical(self->one));
	EXPECT_EQ(0, aclrtFreePhysical(self->two));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->base));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

#define REFUSED(code, words, address, size, offset, handle, flags) \
	EXPECT_FAILS(code, words, aclrtMapMem(address, size, offset, handle, flags))

TEST_F(range, mapping_is_checked_in_order)
{
	void *base = self->base;

	REFUSED(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", NULL, 0, 1, NULL, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "handle|NULL", base + 1, 0, 1, NULL, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", base + 1, 0, 1, (void *)1, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "flags|1", base + 1, 1, 1, (void *)1, 1);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "offset|1", base + 1, 1, 1, (void *)1, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "offset", base, GRANULE, GRANULE, self->two, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", base + 1, 1, 0, (void *)1, 0);
}

TEST_F(range, only_whole_handles_can_be_mapped)
{
	void *base = self->base + 2 * GRANULE;

	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size|4096", base, 4096, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size", base, GRANULE - 1, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size", base, GRANULE, 0, self->two, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size", base, 2 * GRANULE, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size", base, SIZE_MAX, 0, self->one, 0);
}

TEST_F(range, a_mapping_lies_inside_a_reservation_where_nothing_is)
{
	unsigned char *base = self->base;
	size_t one = GRANULE, two = 2 * GRANULE;
	void *host = mmap(NULL, two + GRANULE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *aligned = (void *)(((uintptr_t)host + GRANULE - 1) / GRANULE * GRANULE);

	/* Not a multiple; over what is mapped, from before and from inside. */
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base + 4096, one, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base, two, 0, self->two, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base + one, two, 0, self->two, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base + one, one, 0, self->one, 0);

	/* Beyond the end, outside of all. */
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base + 3 * one, two, 0, self->two, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base + 4 * one, one, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", aligned, one, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", (void *)one, one, 0, self->one, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", (void *)-one, one, 0, self->one, 0);
	EXPECT_EQ(0, munmap(host, two + GRANULE));
}

TEST_F(range, a_handle_that_is_not_held_cannot_be_mapped)
{
	unsigned char *base = self->base;
	aclrtDrvMemHandle again;

	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", base, GRANULE, 0, &again, 0);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", base, GRANULE, 0, UNTOUCHED, 0);
	ASSERT_EQ(0, aclrtFreePhysical(self->one));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", base, GRANULE, 0, self->one, 0);
	ASSERT_EQ(0, aclrtMemRetainAllocationHandle(base + GRANULE, &again));
	EXPECT_EQ(0, aclrtMapMem(base, GRANULE, 0, again, 0));
	EXPECT_EQ(0, aclrtUnmapMem(base));
}

TEST_F(range, a_reservation_serves_one_location)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	unsigned char *base = self->base;
	aclrtDrvMemHandle other;
	uint32_t devices = 0;

	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	ASSERT_EQ(0, aclrtMallocPhysical(&other, GRANULE, &prop, 0));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base, GRANULE, 0, other, 0);
	EXPECT_EQ(0, aclrtFreePhysical(other));
	ASSERT_EQ(0, aclrtGetDeviceCount(&devices));
	if (devices < 2)
		return;
	ASSERT_EQ(0, aclrtSetDevice(1));
	ASSERT_EQ(0, new_memory(&other, GRANULE, 1));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", base, GRANULE, 0, other, 0);
	EXPECT_EQ(0, aclrtFreePhysical(other));
}

#undef REFUSED

TEST_F(range, only_the_start_of_a_mapping_can_be_unmapped)
{
	void *allocated, *host;

	ASSERT_EQ(0, aclrtMalloc(&allocated, 1, 0));
	ASSERT_EQ(0, aclrtMallocHost(&host, 1));
#define REFUSED(code, words, address) \
	EXPECT_FAILS(code, words, aclrtUnmapMem(address))
	REFUSED(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", NULL);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base + GRANULE + 1);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base + GRANULE + 4096);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base + 2 * GRANULE);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", allocated);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", host);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", &host);
	EXPECT_EQ(0, aclrtMapMem(self->base + 2 * GRANULE, 2 * GRANULE, 0, self->two, 0));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base + 3 * GRANULE);
	EXPECT_EQ(0, try_read(self->base + 3 * GRANULE, NULL));
	EXPECT_EQ(0, aclrtUnmapMem(self->base + 2 * GRANULE));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", self->base + 2 * GRANULE);
#undef REFUSED
	EXPECT_EQ(0, aclrtFree(allocated));
	EXPECT_EQ(0, aclrtFreeHost(host));
}

TEST_HARNESS_MAIN
