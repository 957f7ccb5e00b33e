// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much a device has: what aclrtGetMemInfo() says and when it moves, and that
 * running out changes nothing and can be recovered from.
 */
#include <string.h>
#include <unistd.h>

#include "api_fixture.h"

/* 1 for each attr of which a device here has memory: not DDR, not 1 GiB pages. */
static const char has[] = "010011001100110110";

TEST_F(acl, memory_information_is_by_kind)
{
	struct aclmem_device info;
	size_t free, total;
	unsigned int attr;

	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	for (attr = 0; attr < 18; attr++) {
		EXPECT_EQ(0, aclrtGetMemInfo(attr, &free, &total));
		EXPECT_EQ(has[attr] == '1' ? info.out_total : 0, total)
			TH_LOG("for attr %u", attr);
		EXPECT_EQ(has[attr] == '1' ? info.out_total - info.out_used : 0, free)
			TH_LOG("for attr %u", attr);
	}
}

TEST_F(acl, memory_information_is_checked_in_order)
{
	size_t free = UNTOUCHED_SIZE, total = UNTOUCHED_SIZE;

	EXPECT_EQ(0, aclrtResetDevice(0));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "free|NULL", aclrtGetMemInfo(18, NULL, NULL));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "total|NULL", aclrtGetMemInfo(18, &free, NULL));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtGetMemInfo(18, &free, &total));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_MEMORY_TYPE, "attr|18",
		     aclrtGetMemInfo(18, &free, &total));
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_MEMORY_TYPE, "attr", aclrtGetMemInfo(-1, &free, &total));
	EXPECT_EQ(UNTOUCHED_SIZE, free);
	EXPECT_EQ(UNTOUCHED_SIZE, total);
}

TEST_F(acl, free_memory_moves_with_allocations_alone)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtDrvMemHandle handle, host;
	size_t free = free_memory();
	void *address;

	ASSERT_EQ(0, new_memory(&handle, 5 * GRANULE, 0));
	EXPECT_EQ(free - 5 * GRANULE, free_memory());
	address = map_memory(handle, 5 * GRANULE);
	ASSERT_NE(NULL, address);
	memset(address, 1, 5 * GRANULE);
	EXPECT_EQ(free - 5 * GRANULE, free_memory());
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(free - 5 * GRANULE, free_memory());

	/* The host's memory isn't a device's. */
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	ASSERT_EQ(0, aclrtMallocPhysical(&host, GRANULE, &prop, 0));
	EXPECT_EQ(free - 5 * GRANULE, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(host));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(free, free_memory());
}

TEST_F(acl, memory_information_is_of_the_current_device)
{
	aclrtDrvMemHandle handle;
	size_t first, second;

	REQUIRE_TWO_DEVICES();
	first = free_memory();
	ASSERT_EQ(0, aclrtSetDevice(1));
	second = free_memory();
	ASSERT_EQ(0, new_memory(&handle, 3 * GRANULE, 1));
	EXPECT_EQ(second - 3 * GRANULE, free_memory());
	ASSERT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(first, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(first, free_memory());
}

/*
 * A device with little left. The rest is held by one handle, since what has to
 * be allocated has to be zeroed first.
 */
FIXTURE(full)
{
	int fd;
	uint64_t used;
	aclrtDrvMemHandle rest;
	size_t left;
};

#define LEFT (3 * GRANULE)

FIXTURE_SETUP(full)
{
	size_t free;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	free = free_memory() / GRANULE * GRANULE;
	ASSERT_GT(free, LEFT);
	if (new_memory(&self->rest, free - LEFT, 0))
		SKIP(_exit(HARNESS_SKIP), "%s: the machine hasn't the device's memory",
		     _metadata->name);
	self->left = free_memory();
	ASSERT_EQ(LEFT, self->left / GRANULE * GRANULE);
}

FIXTURE_TEARDOWN(full)
{
	EXPECT_EQ(self->left, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(self->rest));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

TEST_F_TIMEOUT(full, an_allocation_that_does_not_fit_changes_nothing, 60)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtDrvMemHandle handle = UNTOUCHED;
	void *address = UNTOUCHED;

	EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		     aclrtMallocPhysical(&handle, LEFT + GRANULE, &prop, 0));
	EXPECT_EQ(UNTOUCHED, handle);
	EXPECT_EQ(self->left, free_memory());
	EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		     aclrtMalloc(&address, LEFT, ACL_MEM_MALLOC_HUGE_FIRST));
	EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "size",
		     aclrtMallocAlign32(&address, LEFT + 1, ACL_MEM_MALLOC_HUGE_FIRST));
	EXPECT_EQ(UNTOUCHED, address);
	EXPECT_EQ(self->left, free_memory());

	/* What fits exactly is had. */
	EXPECT_EQ(0, new_memory(&handle, LEFT, 0));
	EXPECT_EQ(self->left - LEFT, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(0, aclrtMallocAlign32(&address, LEFT, ACL_MEM_MALLOC_NORMAL_ONLY));
	EXPECT_EQ(self->left - LEFT, free_memory());
	EXPECT_EQ(0, aclrtFree(address));
}

/* Map handles of one granule side by side, until one can't be had. */
static unsigned int map_side_by_side(unsigned char *place, unsigned int n,
				     aclrtDrvMemHandle *handles, aclError *ret)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		*ret = new_memory(&handles[i], GRANULE, 0);
		if (!*ret)
			*ret = aclrtMapMem(place + i * GRANULE, GRANULE, 0, handles[i], 0);
		if (*ret)
			break;
		pattern_set(place + i * GRANULE, GRANULE, i);
	}
	return i;
}

static aclError take_apart(unsigned char *place, unsigned int n, aclrtDrvMemHandle *handles)
{
	aclError ret = 0;
	unsigned int i;

	for (i = 0; i < n && !ret; i++) {
		ret = aclrtUnmapMem(place + i * GRANULE);
		if (!ret)
			ret = aclrtFreePhysical(handles[i]);
	}
	return ret;
}

TEST_F_TIMEOUT(full, a_wake_up_that_runs_out_can_be_undone_and_repeated, 60)
{
	aclrtDrvMemHandle handles[5] = {};
	unsigned char *place;
	void *address;
	aclError ret;
	unsigned int i;

	ASSERT_EQ(0, aclrtReserveMemAddress(&address, 5 * GRANULE, 0, NULL, 0));
	place = address;
	EXPECT_EQ(3, map_side_by_side(place, 5, handles, &ret));
	EXPECT_EQ(ACL_ERROR_RT_MEMORY_ALLOCATION, ret);

	/* Its handle is none, and its place is as empty as before. */
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "handle",
		     aclrtMapMem(place + 3 * GRANULE, GRANULE, 0, handles[3], 0));
	EXPECT_EQ(SIGBUS, try_read(place + 3 * GRANULE, NULL));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-1, pattern_differs(place + i * GRANULE, GRANULE, i));
	EXPECT_EQ(0, take_apart(place, 3, handles));
	EXPECT_EQ(self->left, free_memory());

	/* With the limit lifted. */
	EXPECT_EQ(0, aclrtFreePhysical(self->rest));
	EXPECT_EQ(5, map_side_by_side(place, 5, handles, &ret));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(-1, pattern_differs(place + i * GRANULE, GRANULE, i));
	EXPECT_EQ(0, take_apart(place, 5, handles));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, new_memory(&self->rest, free_memory() - self->left, 0));
}

TEST_F_TIMEOUT(full, memory_is_returned_while_its_addresses_stay_reserved, 60)
{
	aclrtDrvMemHandle handle, again;
	void *address;

	ASSERT_EQ(0, new_memory(&handle, LEFT, 0));
	address = map_memory(handle, LEFT);
	ASSERT_NE(NULL, address);
	memset(address, 3, LEFT);
	EXPECT_EQ(ACL_ERROR_RT_MEMORY_ALLOCATION, new_memory(&again, GRANULE, 0));
	EXPECT_EQ(0, aclrtUnmapMem(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(self->left, free_memory());
	EXPECT_EQ(0, new_memory(&again, LEFT, 0));
	EXPECT_EQ(0, aclrtMapMem(address, LEFT, 0, again, 0));
	EXPECT_EQ(-1, byte_differs(address, LEFT, 0));
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(0, aclrtFreePhysical(again));
}

TEST_F_TIMEOUT(full, memory_of_a_process_that_ended_is_there_for_the_next, 60)
{
	aclrtDrvMemHandle handle;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		if (aclrtSetDevice(0) || !new_mapping(LEFT, 0))
			_exit(1);
		if (new_memory(&handle, GRANULE, 0) != ACL_ERROR_RT_MEMORY_ALLOCATION)
			_exit(2);
		raise(SIGKILL);
	}
	EXPECT_EQ(256 + SIGKILL, wait_child(pid));
	EXPECT_TRUE(free_becomes(self->left));
	EXPECT_EQ(0, new_memory(&handle, LEFT, 0));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

/* Unmap, free, allocate, map at the same place, touch. */
static aclError sleep_and_wake(void *address, aclrtDrvMemHandle *handle, unsigned char value)
{
	aclError ret;

	ret = aclrtUnmapMem(address);
	if (!ret)
		ret = aclrtFreePhysical(*handle);
	if (!ret)
		ret = new_memory(handle, 2 * GRANULE, 0);
	if (!ret)
		ret = aclrtMapMem(address, 2 * GRANULE, 0, *handle, 0);
	if (!ret)
		memset(address, value, 2 * GRANULE);
	return ret;
}

TEST_F(acl, two_hundred_rounds_of_sleep_and_wake_lose_nothing)
{
	unsigned int i, descriptors = 0, mappings = 0;
	aclrtDrvMemHandle handle;
	unsigned char *address;
	size_t free = 0;

	ASSERT_EQ(0, new_memory(&handle, 2 * GRANULE, 0));
	address = map_memory(handle, 2 * GRANULE);
	ASSERT_NE(NULL, address);
	for (i = 0; i < rounds(200); i++) {
		ASSERT_EQ(0, sleep_and_wake(address, &handle, i));
		EXPECT_EQ((unsigned char)i, address[0]);
		EXPECT_EQ((unsigned char)i, address[2 * GRANULE - 1]);
		if (i)
			continue;
		free = free_memory();
		descriptors = count_descriptors();
		mappings = count_mappings();
	}
	EXPECT_EQ(free, free_memory());
	EXPECT_EQ(descriptors, count_descriptors());
	EXPECT_EQ(mappings, count_mappings());
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

TEST_HARNESS_MAIN
