// SPDX-License-Identifier: GPL-2.0-only
/*
 * aclrtMemcpy() and aclrtMemset() where something can't be copied: an error each
 * time, never a signal, and no byte changed that isn't theirs.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"

/* Addresses where there's nothing to copy, with what's wrong about them. */
struct bad_places {
	unsigned char *reserved;
	unsigned char *mapped;
	unsigned char *gap;
	unsigned char *allocated;
	unsigned char *hole;
	unsigned char *file;
};

FIXTURE(bad)
{
	int fd;
	uint64_t used;
	struct bad_places places;
};

static void *reserve_two(void)
{
	void *address;

	return aclrtReserveMemAddress(&address, 2 * GRANULE, 0, NULL, 0) ? NULL : address;
}

FIXTURE_SETUP(bad)
{
	struct bad_places *places = &self->places;
	void *address;
	int file;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	/* From above downwards, so that no memory is behind memory. */
	places->reserved = reserve_two();
	ASSERT_NE(NULL, places->reserved);
	places->mapped = new_mapping(GRANULE, 0);
	ASSERT_NE(NULL, places->mapped);
	places->gap = reserve_two();
	ASSERT_NE(NULL, places->gap);
	ASSERT_EQ(0, aclrtMallocAlign32(&address, GRANULE, 0));
	places->allocated = address;
	/* Three pages, of which the second can't be accessed; one that has no file. */
	places->hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	ASSERT_EQ(0, mprotect(places->hole + 4096, 4096, PROT_NONE));
	file = memfd_create("empty", 0);
	places->file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, places->file);
	close(file);
}

FIXTURE_TEARDOWN(bad)
{
	EXPECT_EQ(0, munmap(self->places.hole, 3 * 4096));
	EXPECT_EQ(0, munmap(self->places.file, 4096));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->places.reserved));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->places.gap));
	EXPECT_EQ(0, end_mapping(self->places.mapped));
	EXPECT_EQ(0, aclrtFree(self->places.allocated));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

#define BAD_COUNT 9
#define FIRST_HOST 4

/* 100 bytes there can't all be copied. */
static void *bad_end(const struct bad_places *places, int i)
{
	void * const ends[BAD_COUNT] = {
		places->reserved, places->reserved + GRANULE, places->mapped + GRANULE - 99,
		places->allocated + GRANULE - 1, places->hole + 4096, places->hole + 4096 - 99,
		places->file, NOWHERE, (void *)((uintptr_t)1 << 63),
	};

	return ends[i];
}

#define REFUSED(dst, src) \
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "dst|src|100", \
		     aclrtMemcpy(dst, 100, src, 100, ACL_MEMCPY_DEFAULT))

TEST_F(bad, ends_fail_on_the_other_side_of_device_memory)
{
	unsigned char *dev = self->places.mapped;
	int i;

	for (i = 0; i < BAD_COUNT; i++) {
		memset(dev, 2, 100);
		REFUSED(bad_end(&self->places, i), dev);
		EXPECT_EQ(-1, byte_differs(dev, 100, 2));
		REFUSED(dev, bad_end(&self->places, i));
		/* The byte behind the fault can't have been copied. */
		EXPECT_EQ(2, dev[99]);
	}
}

TEST_F(bad, ends_fail_on_the_other_side_of_host_memory)
{
	unsigned char host[100];
	int i;

	for (i = 0; i < FIRST_HOST; i++) {
		memset(host, 1, 100);
		REFUSED(bad_end(&self->places, i), host);
		EXPECT_EQ(-1, byte_differs(host, 100, 1));
		REFUSED(host, bad_end(&self->places, i));
		EXPECT_EQ(1, host[99]);
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "devPtr|100",
			     aclrtMemset(bad_end(&self->places, i), 100, 3, 100));
	}
}

TEST_F(bad, ends_fail_when_both_are_of_the_host)
{
	unsigned char host[100];
	int i;

	for (i = FIRST_HOST; i < BAD_COUNT; i++) {
		memset(host, 1, 100);
		REFUSED(bad_end(&self->places, i), host);
		EXPECT_EQ(-1, byte_differs(host, 100, 1));
		REFUSED(host, bad_end(&self->places, i));
		EXPECT_EQ(1, host[99]);
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "devPtr|100",
			     aclrtMemset(bad_end(&self->places, i), 100, 3, 100));
	}
}

#undef REFUSED

/* Their ends are beyond all addresses, or behind their start. */
TEST_F(bad, sizes_are_errors_on_any_side)
{
	static const size_t sizes[] = { (size_t)1 << 62, SIZE_MAX - 4095, SIZE_MAX };
	unsigned char *dev = self->places.mapped, host[2], other[2];
	size_t i;

	for (i = 0; i < 3; i++) {
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "count",
			     aclrtMemcpy(dev, SIZE_MAX, host, sizes[i], ACL_MEMCPY_DEFAULT));
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "count",
			     aclrtMemcpy(host, SIZE_MAX, dev, sizes[i], ACL_MEMCPY_DEFAULT));
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "count",
			     aclrtMemcpy(host, SIZE_MAX, other, sizes[i], ACL_MEMCPY_DEFAULT));
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "count",
			     aclrtMemset(dev, SIZE_MAX, 1, sizes[i]));
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "count",
			     aclrtMemset(host, SIZE_MAX, 1, sizes[i]));
	}
}

TEST_F(bad, read_only_memory_is_a_source_only)
{
	unsigned char *page = self->places.hole, *dev = self->places.mapped;

	memset(page, 5, 100);
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "dst",
		     aclrtMemcpy(page, 100, dev, 100, ACL_MEMCPY_DEVICE_TO_HOST));
	EXPECT_EQ(-1, byte_differs(page, 100, 5));
	EXPECT_EQ(0, aclrtMemcpy(dev, 100, page, 100, ACL_MEMCPY_HOST_TO_DEVICE));
	EXPECT_EQ(-1, byte_differs(dev, 100, 5));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "dst",
		     aclrtMemcpy(page, 100, page + 200, 100, ACL_MEMCPY_HOST_TO_HOST));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "devPtr", aclrtMemset(page, 100, 1, 100));
	EXPECT_EQ(-1, byte_differs(page, 100, 5));
}

/* Another reservation right behind the memory is none of its business. */
TEST_F(acl, a_copy_ends_where_its_reservation_ends)
{
	void *place = (void *)((uintptr_t)20 << 40), *address;
	aclrtDrvMemHandle handle;
	unsigned char host[100];
	unsigned char *end;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, aclrtReserveMemAddress(&address, GRANULE, 0, place + i * GRANULE, 0));
		ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
		ASSERT_EQ(0, aclrtMapMem(address, GRANULE, 0, handle, 0));
		ASSERT_EQ(0, aclrtFreePhysical(handle));
		memset(address, 0xb0 + i, GRANULE);
	}
	end = place + GRANULE;
	memset(host, 1, 100);
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "dst",
		     aclrtMemcpy(end - 50, 100, host, 100, ACL_MEMCPY_DEFAULT));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "src",
		     aclrtMemcpy(host, 100, end - 50, 100, ACL_MEMCPY_DEFAULT));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "devPtr",
		     aclrtMemset(end - 50, 100, 1, 100));
	EXPECT_EQ(-1, byte_differs(end, GRANULE, 0xb1));
	EXPECT_EQ(-1, byte_differs(host + 50, 50, 1));
	EXPECT_EQ(0, aclrtMemcpy(end - 50, 50, host, 50, ACL_MEMCPY_DEFAULT));
	EXPECT_EQ(0, end_mapping(place));
	EXPECT_EQ(0, end_mapping(end));
}

TEST_HARNESS_MAIN
