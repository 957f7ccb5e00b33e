// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physical memory by handle: which properties are accepted, in which order they
 * are refused, how often a handle is held, and what a device has left.
 */
#include <string.h>
#include <unistd.h>

#include "api_fixture.h"

/*
 * One letter for each memAttr, by the list of what is accepted: D for DDR, G for
 * 1 GiB pages, x for the rest; a dot for what is refused, or isn't an attribute.
 */
static const char kinds[] = "..DDxxDD..G.xxGxxG...";

#define ATTRS (sizeof(kinds) - 1)

FIXTURE(place)
{
	int fd;
	uint64_t used;
};

FIXTURE_VARIANT(place)
{
	aclrtMemLocationType type;
	bool allowed;
	/* What memory asked for by each accepted attribute is called. */
	aclrtMemAttr attr[ATTRS];
};

FIXTURE_VARIANT_ADD(place, host) {
	.type = ACL_MEM_LOCATION_TYPE_HOST,
	.allowed = true,
	.attr = {
		[ACL_DDR_MEM_HUGE] = ACL_MEM_HUGE,
		[ACL_DDR_MEM_NORMAL] = ACL_MEM_NORMAL,
		[ACL_HBM_MEM_HUGE] = ACL_HBM_MEM_HUGE,
		[ACL_HBM_MEM_NORMAL] = ACL_HBM_MEM_NORMAL,
		[ACL_DDR_MEM_P2P_HUGE] = ACL_MEM_P2P_HUGE,
		[ACL_DDR_MEM_P2P_NORMAL] = ACL_DDR_MEM_P2P_NORMAL,
		[ACL_MEM_NORMAL] = ACL_MEM_NORMAL,
		[ACL_MEM_HUGE] = ACL_MEM_HUGE,
		[ACL_MEM_P2P_NORMAL] = ACL_DDR_MEM_P2P_NORMAL,
		[ACL_MEM_P2P_HUGE] = ACL_MEM_P2P_HUGE,
	},
};

FIXTURE_VARIANT_ADD(place, device) {
	.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	.allowed = true,
	.attr = {
		[ACL_HBM_MEM_HUGE] = ACL_HBM_MEM_HUGE,
		[ACL_HBM_MEM_NORMAL] = ACL_HBM_MEM_NORMAL,
		[ACL_MEM_NORMAL] = ACL_HBM_MEM_NORMAL,
		[ACL_MEM_HUGE] = ACL_HBM_MEM_HUGE,
		[ACL_MEM_P2P_NORMAL] = ACL_MEM_P2P_NORMAL,
		[ACL_MEM_P2P_HUGE] = ACL_MEM_P2P_HUGE,
	},
};

FIXTURE_VARIANT_ADD(place, unregistered) {
	.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED,
};

FIXTURE_VARIANT_ADD(place, managed) {
	.type = ACL_MEM_LOCATION_TYPE_MANAGED,
};

FIXTURE_VARIANT_ADD(place, host_numa) {
	.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA,
	.allowed = true,
	.attr = {
		[ACL_DDR_MEM_HUGE] = ACL_MEM_HUGE,
		[ACL_DDR_MEM_NORMAL] = ACL_MEM_NORMAL,
		[ACL_HBM_MEM_HUGE] = ACL_HBM_MEM_HUGE,
		[ACL_HBM_MEM_NORMAL] = ACL_HBM_MEM_NORMAL,
		[ACL_DDR_MEM_P2P_HUGE] = ACL_MEM_P2P_HUGE,
		[ACL_DDR_MEM_P2P_NORMAL] = ACL_DDR_MEM_P2P_NORMAL,
		[ACL_MEM_NORMAL] = ACL_MEM_NORMAL,
		[ACL_MEM_HUGE] = ACL_MEM_HUGE,
		[ACL_MEM_P2P_NORMAL] = ACL_DDR_MEM_P2P_NORMAL,
		[ACL_MEM_P2P_HUGE] = ACL_MEM_P2P_HUGE,
	},
};

FIXTURE_VARIANT_ADD(place, unknown) {
	.type = 5,
};

FIXTURE_SETUP(place)
{
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
}

FIXTURE_TEARDOWN(place)
{
	EXPECT_EQ(self->used, used(self->fd));
	close(self->fd);
}

/* By the list of what is accepted, before the device is looked at. */
static aclError expected_result(aclrtMemLocationType type, bool allowed, unsigned int attr)
{
	if (!allowed || kinds[attr] == '.')
		return ACL_ERROR_INVALID_PARAM;
	if (type == ACL_MEM_LOCATION_TYPE_DEVICE && kinds[attr] == 'D')
		return ACL_ERROR_INVALID_PARAM;
	if (kinds[attr] == 'G')
		return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
	return 0;
}

TEST_F(place, takes_the_attributes_of_the_list)
{
	aclrtPhysicalMemProp prop = memory_of(0), seen;
	aclrtDrvMemHandle handle;
	unsigned int attr;
	aclError ret;

	prop.location.type = variant->type;
	for (attr = 0; attr < ATTRS; attr++) {
		prop.memAttr = attr;
		handle = UNTOUCHED;
		ret = expected_result(variant->type, variant->allowed, attr);
		EXPECT_EQ(ret, aclrtMallocPhysical(&handle, GRANULE, &prop, 0))
			TH_LOG("for memAttr %u", attr);
		if (ret) {
			EXPECT_EQ(UNTOUCHED, handle);
			continue;
		}
		seen = (aclrtPhysicalMemProp){ .reserve = 1 };
		EXPECT_EQ(0, aclrtMemGetAllocationPropertiesFromHandle(handle, &seen));
		EXPECT_EQ(ACL_MEM_HANDLE_TYPE_NONE, seen.handleType);
		EXPECT_EQ(ACL_MEM_ALLOCATION_TYPE_PINNED, seen.allocationType);
		EXPECT_EQ(variant->attr[attr], seen.memAttr)
			TH_LOG("for memAttr %u", attr);
		EXPECT_EQ(0, seen.location.id);
		EXPECT_EQ(variant->type, seen.location.type);
		EXPECT_EQ(0, aclrtFreePhysical(handle));
	}
	prop.memAttr = -1;
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "", aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
}

TEST_F(place, has_a_granularity_for_the_attributes_of_the_list)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	unsigned int attr, option;
	size_t size;
	aclError ret;

	prop.location.type = variant->type;
	for (attr = 0; attr < ATTRS; attr++) {
		for (option = 0; option < 2; option++) {
			prop.memAttr = attr;
			size = UNTOUCHED_SIZE;
			ret = expected_result(variant->type, variant->allowed, attr);
			EXPECT_EQ(ret, aclrtMemGetAllocationGranularity(&prop, option, &size))
				TH_LOG("for memAttr %u", attr);
			EXPECT_EQ(ret ? UNTOUCHED_SIZE : 2 * MIB, size);
		}
	}
}

/* Everything is wrong, and set right in the order in which it's found. */
TEST_F(acl, an_allocation_is_checked_in_order)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_POSIX,
		.allocationType = 1,
		.memAttr = ACL_DDR_MEM,
		.location = { .id = self->devices, .type = ACL_MEM_LOCATION_TYPE_MANAGED },
		.reserve = 1,
	};
	aclrtDrvMemHandle handle = UNTOUCHED;

#define REFUSED(code, words, handle, size, prop, flags) \
	EXPECT_FAILS(code, words, aclrtMallocPhysical(handle, size, prop, flags))
	REFUSED(ACL_ERROR_INVALID_PARAM, "handle|NULL", NULL, 0, NULL, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "prop|NULL", &handle, 0, NULL, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "size|0", &handle, 0, &prop, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "flags|1", &handle, 1, &prop, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "handleType|2", &handle, 1, &prop, 0);
	prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
	REFUSED(ACL_ERROR_INVALID_PARAM, "allocationType|1", &handle, 1, &prop, 0);
	prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
	REFUSED(ACL_ERROR_INVALID_PARAM, "location|3", &handle, 1, &prop, 0);
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	REFUSED(ACL_ERROR_INVALID_PARAM, "memAttr|0", &handle, 1, &prop, 0);
	prop.memAttr = ACL_DDR_MEM_HUGE;
	REFUSED(ACL_ERROR_INVALID_PARAM, "memAttr|2", &handle, 1, &prop, 0);
	prop.memAttr = ACL_HBM_MEM_HUGE1G;
	REFUSED(ACL_ERROR_RT_INVALID_DEVICEID, "location.id", &handle, 1, &prop, 0);
	prop.location.id = 0;
	REFUSED(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "memAttr|10", &handle, 1, &prop, 0);
	prop.memAttr = ACL_HBM_MEM_HUGE;
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size|1", &handle, 1, &prop, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "reserve|1", &handle, GRANULE, &prop, 0);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED, handle);
	prop.reserve = 0;
	EXPECT_EQ(0, aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

TEST_F(acl, granularity_is_checked_in_order)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_POSIX,
		.allocationType = 1,
		.memAttr = ACL_HBM_MEM_P2P_HUGE,
		.location = { .id = self->devices, .type = ACL_MEM_LOCATION_TYPE_UNREGISTERED },
	};
	size_t size = UNTOUCHED_SIZE;

#define REFUSED(code, words, prop, size) \
	EXPECT_FAILS(code, words, aclrtMemGetAllocationGranularity(prop, 2, size))
	REFUSED(ACL_ERROR_INVALID_PARAM, "prop|NULL", NULL, NULL);
	REFUSED(ACL_ERROR_INVALID_PARAM, "granularity|NULL", &prop, NULL);
	REFUSED(ACL_ERROR_INVALID_PARAM, "allocationType|1", &prop, &size);
	prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
	REFUSED(ACL_ERROR_INVALID_PARAM, "location|2", &prop, &size);
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	REFUSED(ACL_ERROR_INVALID_PARAM, "memAttr|8", &prop, &size);
	prop.memAttr = ACL_HBM_MEM_HUGE;
	REFUSED(ACL_ERROR_RT_INVALID_DEVICEID, "location.id", &prop, &size);
	prop.location.id = 0;
	REFUSED(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "option|2", &prop, &size);
#undef REFUSED
	EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "option|65535",
		     aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF,
						      &size));
	EXPECT_EQ(UNTOUCHED_SIZE, size);
	/* The form of the handle doesn't matter. */
	EXPECT_EQ(0, aclrtMemGetAllocationGranularity(&prop, 1, &size));
	EXPECT_EQ(2 * MIB, size);
}

TEST(granularity_is_known_before_a_device_is_set)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	size_t size = UNTOUCHED_SIZE;
	int fd = open_device();

	REQUIRE_CLIENT(fd);
	close(fd);
	EXPECT_EQ(0, aclrtMemGetAllocationGranularity(&prop, 0, &size));
	EXPECT_EQ(2 * MIB, size);
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "prop",
		     aclrtMemGetAllocationGranularity(NULL, 0, &size));
}

TEST(memory_needs_a_device_in_use)
{
	aclrtDrvMemHandle handle = UNTOUCHED;
	aclrtPhysicalMemProp prop = memory_of(0);
	struct aclmem_query query;
	int fd = open_client(&query);

	REQUIRE_CLIENT(fd);
	close(fd);
	/* Before the size is looked at. */
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "location|aclrtSetDevice",
		     aclrtMallocPhysical(&handle, 1, &prop, 0));
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "location|aclrtSetDevice",
		     aclrtMallocPhysical(&handle, 1, &prop, 0));
	if (query.out_devices > 1) {
		ASSERT_EQ(0, aclrtSetDevice(0));
		prop = memory_of(1);
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "location|1|aclrtSetDevice",
			     aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	}
	EXPECT_EQ(UNTOUCHED, handle);
}

TEST_F(acl, sizes_are_multiples_of_the_granularity)
{
	const size_t bad[] = { 1, 4096, GRANULE - 1, GRANULE + 1, 3 * GRANULE / 2, SIZE_MAX,
			       SIZE_MAX - 31 };
	const size_t huge[] = { (size_t)1 << 60, (size_t)1 << 62, SIZE_MAX - GRANULE + 1 };
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtDrvMemHandle handle = UNTOUCHED;
	size_t i, free = free_memory();

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "size",
			     aclrtMallocPhysical(&handle, bad[i], &prop, 0));
	for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++)
		EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
			     aclrtMallocPhysical(&handle, huge[i], &prop, 0));
	EXPECT_EQ(UNTOUCHED, handle);
	EXPECT_EQ(free, free_memory());
}

TEST_F(acl, the_host_has_id_0_and_the_nodes_that_exist)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtDrvMemHandle handle = UNTOUCHED;

	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	prop.location.id = 1;
	EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "location.id|1",
		     aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	prop.location.id = 1023;
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "1023",
		     aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	prop.location.id = ~0U;
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "id",
		     aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	EXPECT_EQ(UNTOUCHED, handle);
}

TEST_F(acl, what_is_not_a_handle_is_refused)
{
	aclrtDrvMemHandle handle, again;
	aclrtPhysicalMemProp prop = memory_of(77);
	void *bad[] = { (void *)1, &handle, UNTOUCHED, NULL };
	size_t i;

	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "handle|NULL", aclrtFreePhysical(NULL));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "handle|NULL",
		     aclrtMemGetAllocationPropertiesFromHandle(NULL, NULL));
	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "prop|NULL",
		     aclrtMemGetAllocationPropertiesFromHandle(handle, NULL));
	ASSERT_EQ(0, aclrtFreePhysical(handle));

	/* A stale one, which isn't given to the next memory either. */
	bad[3] = handle;
	ASSERT_EQ(0, new_memory(&again, GRANULE, 0));
	EXPECT_NE(handle, again);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "handle", aclrtFreePhysical(bad[i]));
		EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle",
			     aclrtMemGetAllocationPropertiesFromHandle(bad[i], &prop));
	}
	EXPECT_EQ(77, prop.location.id);
	EXPECT_EQ(0, aclrtFreePhysical(again));
}

TEST_F(acl, memory_lives_until_the_last_holder_lets_go)
{
	aclrtDrvMemHandle handle, again;
	size_t free = free_memory();
	unsigned char *address;

	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	address = map_memory(handle, GRANULE);
	ASSERT_NE(NULL, address);
	pattern_set(address, GRANULE, 4);
	EXPECT_EQ(0, aclrtMemRetainAllocationHandle(address, &again));
	EXPECT_EQ(handle, again);
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "handle", aclrtFreePhysical(handle));
	EXPECT_EQ(free - GRANULE, free_memory());
	EXPECT_EQ(-1, pattern_differs(address, GRANULE, 4));

	/* The mapping gives it a holder again. */
	EXPECT_EQ(0, aclrtMemRetainAllocationHandle(address, &again));
	EXPECT_EQ(handle, again);
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(free - GRANULE, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(free, free_memory());
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "handle", aclrtFreePhysical(handle));
}

TEST_F(acl, memory_freed_while_mapped_goes_with_the_mapping)
{
	aclrtDrvMemHandle handle;
	size_t free = free_memory();
	unsigned char *address;

	ASSERT_EQ(0, new_memory(&handle, 2 * GRANULE, 0));
	address = map_memory(handle, 2 * GRANULE);
	ASSERT_NE(NULL, address);
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(free - 2 * GRANULE, free_memory());
	pattern_set(address, 2 * GRANULE, 5);
	EXPECT_EQ(-1, pattern_differs(address, 2 * GRANULE, 5));
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "handle", aclrtFreePhysical(handle));
	EXPECT_EQ(0, aclrtUnmapMem(address));
	EXPECT_EQ(free, free_memory());
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
}

TEST_F(acl, only_the_start_of_a_mapping_has_a_handle)
{
	unsigned char *address = new_mapping(2 * GRANULE, 0);
	aclrtDrvMemHandle handle = UNTOUCHED;
	void *allocated, *reserved;

	ASSERT_NE(NULL, address);
	ASSERT_EQ(0, aclrtMalloc(&allocated, 1, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&reserved, 1, 0, NULL, 0));
#define REFUSED(code, words, address, handle) \
	EXPECT_FAILS(code, words, aclrtMemRetainAllocationHandle(address, handle))
	REFUSED(ACL_ERROR_INVALID_PARAM, "virPtr|NULL", NULL, NULL);
	REFUSED(ACL_ERROR_INVALID_PARAM, "handle|NULL", address, NULL);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", address + 1, &handle);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", address + GRANULE, &handle);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", reserved, &handle);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", allocated, &handle);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", &handle, &handle);
	EXPECT_EQ(0, aclrtUnmapMem(address));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", address, &handle);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED, handle);
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, aclrtReleaseMemAddress(reserved));
	EXPECT_EQ(0, aclrtFree(allocated));
}

TEST_F(acl, new_memory_is_zero)
{
	unsigned char *address;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		address = new_mapping(4 * GRANULE, 0);
		ASSERT_NE(NULL, address);
		EXPECT_EQ(-1, byte_differs(address, 4 * GRANULE, 0));
		memset(address, 0xa5, 4 * GRANULE);
		EXPECT_EQ(0, end_mapping(address));
	}
}

TEST_HARNESS_MAIN
