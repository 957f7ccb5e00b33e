// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and contexts: what's counted, what's current in which thread, and what
 * works without. Fork and the visible devices are in api_process.c.
 */
#include <limits.h>
#include <unistd.h>

#include "api_fixture.h"

TEST_F(acl, as_many_devices_as_the_module_has)
{
	uint32_t count = UNTOUCHED_ID;
	int32_t id;
	uint32_t i;

	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "count|NULL", aclrtGetDeviceCount(NULL));
	EXPECT_EQ(0, aclrtGetDeviceCount(&count));
	EXPECT_EQ(self->devices, count);

	/* Numbered alike, as nothing is hidden. */
	for (i = 0; i < count; i++) {
		EXPECT_EQ(0, aclrtGetLogicDevIdByUserDevId(i, &id));
		EXPECT_EQ((int32_t)i, id);
	}
	id = UNTOUCHED_ID;
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "logicDevId|NULL",
		     aclrtGetLogicDevIdByUserDevId(-1, NULL));
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "userDevid|-1",
		     aclrtGetLogicDevIdByUserDevId(-1, &id));
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "userDevid",
		     aclrtGetLogicDevIdByUserDevId(count, &id));
	EXPECT_EQ(UNTOUCHED_ID, id);
}

/* For threads: the current device, or the result without one. */
static int current_device(void *data)
{
	int32_t id = UNTOUCHED_ID;
	aclError ret = aclrtGetDevice(&id);

	(void)data;
	if (ret)
		return id == UNTOUCHED_ID ? ret : -1;
	return id;
}

TEST_F(acl, a_device_that_is_not_there_cannot_be_set)
{
	const int32_t bad[] = { -1, INT_MIN, INT_MAX, self->devices };
	aclrtContext context = UNTOUCHED;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId", aclrtSetDevice(bad[i]));
		EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId", aclrtResetDevice(bad[i]));
		EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId",
			     aclrtResetDeviceForce(bad[i]));
		EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId",
			     aclrtCreateContext(&context, bad[i]));
	}
	EXPECT_EQ(UNTOUCHED, context);
	EXPECT_EQ(0, current_device(NULL));
}

TEST_F(acl, setting_a_device_is_counted)
{
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "deviceId|NULL", aclrtGetDevice(NULL));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtResetDevice(0));
	EXPECT_EQ(0, aclrtResetDevice(0));
	EXPECT_EQ(0, current_device(NULL));
	EXPECT_EQ(0, aclrtResetDevice(0));
	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_NULL, current_device(NULL));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "deviceId|0", aclrtResetDevice(0));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "deviceId|NULL", aclrtGetDevice(NULL));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, current_device(NULL));
}

static int force(void *data)
{
	(void)data;
	return aclrtResetDeviceForce(0);
}

TEST_F(acl, a_forced_reset_undoes_all_and_only_once)
{
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtResetDeviceForce(0));
	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_NULL, current_device(NULL));
	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, in_thread(force, NULL));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "deviceId|0", aclrtResetDeviceForce(0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "deviceId|0", aclrtResetDevice(0));
}

TEST_F(acl, the_device_set_last_is_current)
{
	REQUIRE_TWO_DEVICES();
	EXPECT_EQ(0, aclrtSetDevice(1));
	EXPECT_EQ(1, current_device(NULL));
	EXPECT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, current_device(NULL));
	/* The other's end is none for this one. */
	EXPECT_EQ(0, aclrtResetDevice(1));
	EXPECT_EQ(0, current_device(NULL));
	EXPECT_EQ(0, aclrtSetDevice(1));
	EXPECT_EQ(0, aclrtResetDevice(1));
	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_NULL, current_device(NULL));
}

TEST_F(acl, memory_outlives_a_reset)
{
	unsigned char *mapped = new_mapping(GRANULE, 0);
	void *allocated;

	ASSERT_NE(NULL, mapped);
	ASSERT_EQ(0, aclrtMalloc(&allocated, 100, ACL_MEM_MALLOC_HUGE_FIRST));
	pattern_set(mapped, GRANULE, 1);
	pattern_set(allocated, 100, 2);
	EXPECT_EQ(0, aclrtResetDeviceForce(0));
	EXPECT_EQ(-1, pattern_differs(mapped, GRANULE, 1));
	EXPECT_EQ(-1, pattern_differs(allocated, 100, 2));
	EXPECT_EQ(0, aclrtFree(allocated));
	EXPECT_EQ(0, end_mapping(mapped));
}

static int default_context(void *data)
{
	if (aclrtSetDevice(0) || aclrtGetCurrentContext(data))
		return -1;
	return aclrtResetDevice(0);
}

TEST_F(acl, the_default_context_is_one_for_all_threads)
{
	aclrtContext mine, theirs = NULL;

	EXPECT_EQ(0, aclrtGetCurrentContext(&mine));
	EXPECT_EQ(0, in_thread(default_context, &theirs));
	EXPECT_EQ(mine, theirs);
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "context", aclrtDestroyContext(mine));
	EXPECT_EQ(0, current_device(NULL));
}

static int use_context(void *data)
{
	int32_t id;

	if (aclrtSetCurrentContext(data) || aclrtGetDevice(&id))
		return -1;
	return id;
}

TEST_F(acl, a_created_context_is_current_and_can_be_destroyed)
{
	aclrtContext context, current, first;
	uint32_t device = self->devices - 1;

	EXPECT_EQ(0, aclrtGetCurrentContext(&first));
	EXPECT_EQ(0, aclrtCreateContext(&context, device));
	EXPECT_EQ(0, aclrtGetCurrentContext(&current));
	EXPECT_EQ(context, current);
	EXPECT_NE(first, current);
	EXPECT_EQ((int)device, current_device(NULL));
	EXPECT_EQ((int)device, in_thread(use_context, context));
	EXPECT_EQ(0, aclrtSetCurrentContext(first));
	EXPECT_EQ(0, current_device(NULL));
	EXPECT_EQ(0, aclrtSetCurrentContext(context));
	EXPECT_EQ(0, aclrtDestroyContext(context));

	/* Gone from the thread, and its name is of no use any more. */
	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_NULL, current_device(NULL));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtDestroyContext(context));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtSetCurrentContext(context));
	EXPECT_EQ(0, aclrtCreateContext(&current, device));
	EXPECT_NE(context, current);
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtSetCurrentContext(context));
	EXPECT_EQ(0, aclrtDestroyContext(current));
	EXPECT_EQ(0, aclrtSetCurrentContext(first));
}

TEST_F(acl, what_is_not_a_context_is_refused)
{
	aclrtContext context = UNTOUCHED, current;
	void * const bad[] = { (void *)1, NOWHERE, &context, UNTOUCHED };
	size_t i;

	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "context|NULL", aclrtCreateContext(NULL, -1));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "context|NULL", aclrtDestroyContext(NULL));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "context|NULL", aclrtSetCurrentContext(NULL));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "context|NULL", aclrtGetCurrentContext(NULL));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtDestroyContext(bad[i]));
		EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtSetCurrentContext(bad[i]));
	}
	EXPECT_EQ(0, aclrtGetCurrentContext(&current));
	EXPECT_EQ(0, aclrtResetDevice(0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "", aclrtGetCurrentContext(&context));
	EXPECT_EQ(UNTOUCHED, context);
	/* A default context ends with its device. */
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtSetCurrentContext(current));
}

TEST(a_context_suffices_to_use_a_device)
{
	aclrtDrvMemHandle handle;
	aclrtContext context;
	int fd = open_device();

	REQUIRE_CLIENT(fd);
	close(fd);
	ASSERT_EQ(0, aclrtCreateContext(&context, 0));
	EXPECT_EQ(0, new_memory(&handle, GRANULE, 0));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "deviceId", aclrtResetDevice(0));
	EXPECT_EQ(0, aclrtDestroyContext(context));
}

struct contextless {
	void *allocated;
	void *host;
	unsigned char *mapped;
	aclrtDrvMemHandle handle;
	struct __test_metadata *metadata;
};

/* In a thread that never set a device. */
static int call_what_needs_a_context(void *data)
{
	struct __test_metadata *_metadata = ((struct contextless *)data)->metadata;
	aclrtPhysicalMemProp prop = memory_of(0);
	size_t free = UNTOUCHED_SIZE, total = UNTOUCHED_SIZE;
	unsigned char byte = 1, other = 2;
	void *out = UNTOUCHED;
	int32_t id = UNTOUCHED_ID;

	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtGetDevice(&id));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtGetCurrentContext(&out));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMalloc(&out, 1, 0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMallocAlign32(&out, 1, 0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMallocHost(&out, 1));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMemset(&byte, 1, 3, 1));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMemcpy(&byte, 1, &other, 1, 0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context",
		     aclrtMallocPhysical(&out, GRANULE, &prop, 0));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context",
		     aclrtMemImportFromShareableHandle(1, 0, &out));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context",
		     aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	EXPECT_EQ(UNTOUCHED, out);
	EXPECT_EQ(UNTOUCHED_ID, id);
	EXPECT_EQ(UNTOUCHED_SIZE, free);
	EXPECT_EQ(UNTOUCHED_SIZE, total);
	EXPECT_EQ(1, byte);
	return 0;
}

static int call_what_needs_none(void *data)
{
	struct contextless *own = data;
	struct __test_metadata *_metadata = own->metadata;
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtMemcpyBatchAttr attr = {
		.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
		.srcLoc = { .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	size_t size = GRANULE, fail, index = 0, one = 1;
	unsigned char byte = 9;
	void *dst = own->mapped, *src = &byte, *address, *again;
	aclrtDrvMemHandle handle;
	uint64_t share;
	int32_t pid;
	uint32_t count;

	EXPECT_EQ(0, aclrtGetDeviceCount(&count));
	EXPECT_EQ(0, aclrtMemGetAllocationGranularity(&prop, 0, &size));
	EXPECT_EQ(0, aclrtMallocPhysical(&handle, size, &prop, 0));
	EXPECT_EQ(0, aclrtMemGetAllocationPropertiesFromHandle(handle, &prop));
	EXPECT_EQ(0, aclrtReserveMemAddress(&address, size, 0, NULL, 0));
	EXPECT_EQ(0, aclrtMapMem(address, size, 0, handle, 0));
	EXPECT_EQ(0, aclrtMemRetainAllocationHandle(address, &again));
	EXPECT_EQ(0, aclrtFreePhysical(again));
	EXPECT_EQ(0, aclrtMemExportToShareableHandle(handle, 0, 0, &share));
	EXPECT_EQ(0, aclrtDeviceGetBareTgid(&pid));
	EXPECT_EQ(0, aclrtMemSetPidToShareableHandle(share, &pid, 1));
	EXPECT_EQ(0, aclrtUnmapMem(address));
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(0, aclrtMemcpyBatch(&dst, &one, &src, &one, 1, &attr, &index, 1, &fail));
	EXPECT_EQ(9, own->mapped[0]);
	EXPECT_EQ(0, aclrtFree(own->allocated));
	EXPECT_EQ(0, aclrtFreeHost(own->host));
	return 0;
}

TEST_F(acl, a_thread_has_no_context_until_it_sets_one)
{
	struct contextless own = { .metadata = _metadata };

	EXPECT_EQ(ACL_ERROR_RT_CONTEXT_NULL, in_thread(current_device, NULL));
	ASSERT_EQ(0, aclrtMalloc(&own.allocated, 1, 0));
	ASSERT_EQ(0, aclrtMallocHost(&own.host, 1));
	own.mapped = new_mapping(GRANULE, 0);
	ASSERT_NE(NULL, own.mapped);
	EXPECT_EQ(0, in_thread(call_what_needs_a_context, &own));
	EXPECT_EQ(0, in_thread(call_what_needs_none, &own));
	EXPECT_EQ(0, current_device(NULL));
	EXPECT_EQ(0, end_mapping(own.mapped));
}

TEST_HARNESS_MAIN
