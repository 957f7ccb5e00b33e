// SPDX-License-Identifier: GPL-2.0-only
/*
 * Beginning and end of the library's use, what failures leave behind, devices
 * and contexts. Fork and the visible devices are in api_process.c.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"

/* A file with this content. */
static const char *config(const char *content)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		strcpy(path, "/tmp/api_device_XXXXXX");
		fd = mkstemp(path);
	}
	if (fd < 0 || ftruncate(fd, 0) ||
	    pwrite(fd, content, strlen(content), 0) != (ssize_t)strlen(content))
		return NULL;
	return path;
}

TEST(finalize_may_come_without_init_but_once)
{
	EXPECT_EQ(0, aclFinalize());
	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalize());
}

TEST(one_finalize_ends_any_number_of_inits)
{
	EXPECT_EQ(0, aclInit(NULL));
	EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, "", aclInit(NULL));
	EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, "", aclInit(""));
	EXPECT_EQ(0, aclFinalize());
	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalize());
	EXPECT_EQ(0, aclInit(NULL));
	EXPECT_EQ(0, aclFinalize());
}

TEST(finalize_reference_counts_down)
{
	uint64_t left = 77;

	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalizeReference(&left));
	EXPECT_EQ(0, left);
	EXPECT_EQ(0, aclInit(NULL));
	EXPECT_EQ(ACL_ERROR_REPEAT_INITIALIZE, aclInit(NULL));
	EXPECT_EQ(ACL_ERROR_REPEAT_INITIALIZE, aclInit(NULL));
	EXPECT_EQ(0, aclFinalizeReference(&left));
	EXPECT_EQ(2, left);
	EXPECT_EQ(0, aclFinalizeReference(NULL));
	EXPECT_EQ(0, aclFinalizeReference(&left));
	EXPECT_EQ(0, left);
	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalizeReference(NULL));
	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalize());
}

TEST(init_takes_a_file_of_json)
{
	const char *path = config("{\"dump\": {\"levels\": [1, 2.5e3, true, null, \"x\"]}}");

	ASSERT_NE(NULL, path);
	EXPECT_EQ(0, aclInit(path));
	EXPECT_EQ(0, aclFinalize());
	/* The content counts, not the name. */
	EXPECT_EQ(0, aclInit(path));
	EXPECT_EQ(0, aclFinalize());
	ASSERT_NE(NULL, config("{\"other\": 1}"));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "configPath", aclInit(path));
	EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, "", aclFinalize());
	EXPECT_EQ(0, unlink(path));
}

TEST(init_refuses_files_that_are_not_json)
{
	static const char * const bad[] = {
		"{", "{]", "{\"a\": }", "{\"a\": 1,}", "hello", "{} {}",
		"{\"a\": \"\\x\"}", "{\"a\": [[[[[[[[[[[]]]]]]]]]]]}",
	};
	const char *path;
	size_t i;

	EXPECT_FAILS(ACL_ERROR_INVALID_FILE, "/nonexistent/acl.json",
		     aclInit("/nonexistent/acl.json"));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		path = config(bad[i]);
		ASSERT_NE(NULL, path);
		EXPECT_FAILS(ACL_ERROR_PARSE_FILE, path, aclInit(path));
		if (!_metadata->passed)
			TH_LOG("for '%s'", bad[i]);
	}
	EXPECT_EQ(0, unlink(path));
	/* None of that was a beginning. */
	EXPECT_EQ(0, aclInit(NULL));
	EXPECT_EQ(0, aclFinalize());
}

TEST(init_takes_ten_levels_of_json)
{
	const char *path = config("{\"a\": [[[[[[[[[[]]]]]]]]]]}");

	ASSERT_NE(NULL, path);
	EXPECT_EQ(0, aclInit(path));
	EXPECT_EQ(0, unlink(path));
}

TEST(version_is_that_of_the_headers)
{
	int32_t a = UNTOUCHED_ID, b = UNTOUCHED_ID, c = UNTOUCHED_ID;

	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "majorVersion|NULL", aclrtGetVersion(NULL, &b, &c));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "minorVersion|NULL", aclrtGetVersion(&a, NULL, &c));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "patchVersion|NULL", aclrtGetVersion(&a, &b, NULL));
	EXPECT_EQ(UNTOUCHED_ID, a);
	EXPECT_EQ(UNTOUCHED_ID, b);
	EXPECT_EQ(UNTOUCHED_ID, c);
	EXPECT_EQ(0, aclrtGetVersion(&a, &b, &c));
	EXPECT_EQ(ACL_MAJOR_VERSION, a);
	EXPECT_EQ(ACL_MINOR_VERSION, b);
	EXPECT_EQ(ACL_PATCH_VERSION, c);
	EXPECT_EQ(1, a);
	EXPECT_EQ(17, b);
	EXPECT_EQ(0, c);
}

TEST(a_program_runs_on_the_host)
{
	aclrtRunMode mode = ACL_DEVICE;

	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "runMode|NULL", aclrtGetRunMode(NULL));
	EXPECT_EQ(0, aclrtGetRunMode(&mode));
	EXPECT_EQ(ACL_HOST, mode);
}

static int failure_of_a_new_thread(void *data)
{
	(void)data;
	if (aclGetRecentErrMsg())
		return -1;
	return aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
}

TEST(a_failure_stays_until_it_is_asked_for)
{
	aclrtRunMode mode;
	const char *text;
	char copy[512];

	EXPECT_EQ(NULL, aclGetRecentErrMsg());
	EXPECT_EQ(0, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	EXPECT_EQ(0, aclrtGetLastError(ACL_RT_THREAD_LEVEL));

	/* A success clears neither, and other threads have their own. */
	EXPECT_EQ(ACL_ERROR_INVALID_PARAM, aclrtFree(NULL));
	EXPECT_EQ(0, aclrtGetRunMode(&mode));
	EXPECT_EQ(0, in_thread(failure_of_a_new_thread, NULL));
	EXPECT_EQ(ACL_ERROR_INVALID_PARAM, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	EXPECT_EQ(ACL_ERROR_INVALID_PARAM, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	EXPECT_EQ(0, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	text = aclGetRecentErrMsg();
	ASSERT_NE(NULL, text);
	EXPECT_NE(NULL, strstr(text, "aclrtFree"));

	/* The text that was handed out isn't that of the next failure. */
	snprintf(copy, sizeof(copy), "%s", text);
	EXPECT_EQ(ACL_ERROR_INVALID_PARAM, aclrtGetRunMode(NULL));
	EXPECT_STREQ(copy, text);
	text = aclGetRecentErrMsg();
	ASSERT_NE(NULL, text);
	EXPECT_NE(NULL, strstr(text, "aclrtGetRunMode"));
	EXPECT_EQ(NULL, aclGetRecentErrMsg());
}

TEST(only_the_threads_last_error_is_kept)
{
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, aclrtGetLastError(1));
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, aclrtPeekAtLastError(1));
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, aclrtPeekAtLastError(-1));
}

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
