// SPDX-License-Identifier: GPL-2.0-only
/*
 * Beginning and end of the library's use, its settings and version, and what
 * failures leave behind.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

TEST(init_reads_regular_files_of_up_to_10_mib)
{
	const char *path = config("{}");

	ASSERT_NE(NULL, path);
	EXPECT_FAILS(ACL_ERROR_INVALID_FILE, "configPath|/tmp", aclInit("/tmp"));
	EXPECT_FAILS(ACL_ERROR_INVALID_FILE, "configPath|/dev/zero", aclInit("/dev/zero"));
	ASSERT_EQ(0, truncate(path, 10 * MIB + 1));
	EXPECT_FAILS(ACL_ERROR_INVALID_FILE_SIZE, path, aclInit(path));
	ASSERT_EQ(0, truncate(path, 0));
	EXPECT_FAILS(ACL_ERROR_PARSE_FILE, path, aclInit(path));
	ASSERT_EQ(0, unlink(path));

	/* A FIFO that nobody writes to isn't waited for. */
	ASSERT_EQ(0, mkfifo(path, 0600));
	alarm(5);
	EXPECT_FAILS(ACL_ERROR_INVALID_FILE, path, aclInit(path));
	alarm(0);
	EXPECT_EQ(0, unlink(path));
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

TEST_HARNESS_MAIN
