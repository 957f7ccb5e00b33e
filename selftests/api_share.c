// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may import shared memory: exports, whitelists, and the processes, threads,
 * children and containers that are on them or not. How long shared memory lives
 * is in api_share_life.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api_fixture.h"

/* A number that stands for nothing. */
#define NO_SHARE 0x123456789abcdefULL

#define ANYBODY ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION

/* A granule that is mapped here and exported, and an aide with device 0 set. */
FIXTURE(share)
{
	int fd;
	uint64_t used;
	aclrtDrvMemHandle handle;
	unsigned char *address;
	uint64_t share;
	struct aide aide;
	uint64_t pid;
};

FIXTURE_VARIANT(share)
{
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(share, forked) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(share, executed) {
	.flags = AIDE_EXEC,
};

FIXTURE_SETUP(share)
{
	signal(SIGPIPE, SIG_IGN);
	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_TRUE(aide_start(&self->aide, variant->flags));
	ASSERT_EQ(0, aclrtSetDevice(0));
	ASSERT_EQ(0, new_memory(&self->handle, GRANULE, 0));
	self->address = map_memory(self->handle, GRANULE);
	ASSERT_NE(NULL, self->address);
	pattern_set(self->address, GRANULE, 1);
	ASSERT_EQ(0, aclrtMemExportToShareableHandle(self->handle, ACL_MEM_HANDLE_TYPE_NONE,
						     ACL_RT_VMM_EXPORT_FLAG_DEFAULT, &self->share));
	ASSERT_EQ(0, AIDE(&self->aide, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, AIDE(&self->aide, TGID, 0, 0, &self->pid));
}

FIXTURE_TEARDOWN(share)
{
	if (self->aide.pid)
		EXPECT_EQ(0, aide_end(&self->aide));
	EXPECT_EQ(-1, pattern_differs(self->address, GRANULE, 1));
	EXPECT_EQ(0, end_mapping(self->address));
	EXPECT_EQ(0, aclrtFreePhysical(self->handle));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

static aclError name_process(uint64_t share, int32_t pid)
{
	return aclrtMemSetPidToShareableHandle(share, &pid, 1);
}

TEST_F(share, a_named_process_reads_and_writes_the_memory)
{
	uint64_t handle, address, differs;

	EXPECT_EQ(self->aide.pid, (pid_t)self->pid);
	ASSERT_EQ(0, name_process(self->share, self->pid));
	ASSERT_EQ(0, AIDE(&self->aide, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->aide, MAP, handle, GRANULE, &address));
	ASSERT_EQ(0, aide_call(&self->aide, AIDE_CHECK, address, GRANULE, 1, &differs));
	EXPECT_EQ(-1, (int64_t)differs);
	ASSERT_EQ(0, aide_call(&self->aide, AIDE_FILL, address, GRANULE, 2, NULL));
	EXPECT_EQ(-1, pattern_differs(self->address, GRANULE, 2));

	/* Batches take imported memory, too: the pattern of device 0. */
	ASSERT_EQ(0, aide_call(&self->aide, AIDE_UPLOAD, address, 4096, 0, NULL));
	EXPECT_EQ(-1, pattern_differs(self->address, 4096, 0));
	pattern_set(self->address, GRANULE, 1);
	EXPECT_EQ(0, AIDE(&self->aide, UNMAP, address, 0, NULL));
	EXPECT_EQ(0, AIDE(&self->aide, FREE, handle, 0, NULL));
}

TEST_F(share, a_process_is_refused_until_it_is_named)
{
	struct aide other;
	uint64_t handle;

	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT, self->share, 0, &handle));
	ASSERT_TRUE(aide_start(&other, variant->flags));
	ASSERT_EQ(0, AIDE(&other, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, name_process(self->share, other.pid));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT, self->share, 0, &handle));

	/* The second name adds to the first. */
	ASSERT_EQ(0, name_process(self->share, self->pid));
	EXPECT_EQ(0, AIDE(&self->aide, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&self->aide, FREE, handle, 0, NULL));
	EXPECT_EQ(0, AIDE(&other, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&other, FREE, handle, 0, NULL));
	EXPECT_EQ(0, aide_end(&other));
}

TEST_F(share, threads_of_a_named_process_may_and_children_may_not)
{
	uint64_t handle, address, differs;

	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT_IN_THREAD, self->share, 0, &handle));
	ASSERT_EQ(0, name_process(self->share, self->pid));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT_IN_CHILD, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->aide, IMPORT_IN_THREAD, self->share, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->aide, MAP, handle, GRANULE, &address));
	ASSERT_EQ(0, aide_call(&self->aide, AIDE_CHECK, address, GRANULE, 1, &differs));
	EXPECT_EQ(-1, (int64_t)differs);
	/* Not a child of one that has it mapped either. */
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT_IN_CHILD, self->share, 0, &handle));
}

TEST_F(share, naming_a_thread_does_not_name_another_process)
{
	uint64_t handle;

	/* The exporter's own id, and ids of nobody. */
	EXPECT_EQ(0, name_process(self->share, getpid()));
	EXPECT_EQ(0, name_process(self->share, 0x3fffffff));
	EXPECT_EQ(0, name_process(self->share, -1));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT, self->share, 0, &handle));
}

TEST_F(share, without_validation_everybody_may_import)
{
	struct aide other;
	uint64_t share, handle;
	aclrtDrvMemHandle memory;

	ASSERT_TRUE(aide_start(&other, variant->flags));
	ASSERT_EQ(0, AIDE(&other, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, new_memory(&memory, GRANULE, 0));
	ASSERT_EQ(0, aclrtMemExportToShareableHandle(memory, 0, ANYBODY, &share));
	EXPECT_EQ(0, AIDE(&self->aide, IMPORT, share, 0, &handle));
	EXPECT_EQ(0, AIDE(&other, IMPORT, share, 0, &handle));
	EXPECT_EQ(0, AIDE(&other, IMPORT_IN_CHILD, share, 0, NULL));
	EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, "shareableHandle",
		     aclrtMemSetPidToShareableHandle(share, &(int32_t){ self->pid }, 1));
	EXPECT_EQ(0, aclrtFreePhysical(memory));
	EXPECT_EQ(0, aide_end(&other));
}

TEST_F(share, an_export_is_checked_in_order)
{
	uint64_t share = UNTOUCHED_SIZE;

#define REFUSED(code, words, handle, type, flags, share) \
	EXPECT_FAILS(code, words, aclrtMemExportToShareableHandle(handle, type, flags, share))
	REFUSED(ACL_ERROR_INVALID_PARAM, "handle|NULL", NULL, 1, 2, NULL);
	REFUSED(ACL_ERROR_INVALID_PARAM, "shareableHandle|NULL", NOWHERE, 1, 2, NULL);
	REFUSED(ACL_ERROR_INVALID_PARAM, "handleType|1", NOWHERE, 1, 2, &share);
	REFUSED(ACL_ERROR_INVALID_PARAM, "handleType|2", NOWHERE, ACL_MEM_HANDLE_TYPE_POSIX, 2,
		&share);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "flags|2", NOWHERE, 0, 2, &share);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "flags", NOWHERE, 0, (uint64_t)1 << 32, &share);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", NOWHERE, 0, 0, &share);
	/* Once only, however. */
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", self->handle, 0, 0, &share);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "handle", self->handle, 0, ANYBODY, &share);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED_SIZE, share);
	/* The first one is as good as before. */
	EXPECT_EQ(0, name_process(self->share, self->pid));
	EXPECT_EQ(0, AIDE(&self->aide, IMPORT, self->share, 0, NULL));
}

TEST_F(share, imported_memory_cannot_be_exported)
{
	uint64_t handle, share;

	ASSERT_EQ(0, name_process(self->share, self->pid));
	ASSERT_EQ(0, AIDE(&self->aide, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, EXPORT, handle, 0, &share));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, EXPORT, handle, ANYBODY, &share));
}

TEST_F(share, an_import_is_checked_in_order)
{
	aclrtDrvMemHandle handle = UNTOUCHED;
	uint32_t devices;

	ASSERT_EQ(0, aclrtGetDeviceCount(&devices));
#define REFUSED(code, words, share, device, handle) \
	EXPECT_FAILS(code, words, aclrtMemImportFromShareableHandle(share, device, handle))
	ASSERT_EQ(0, aclrtResetDevice(0));
	REFUSED(ACL_ERROR_INVALID_PARAM, "handle|NULL", NO_SHARE, -1, NULL);
	REFUSED(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId|-1", NO_SHARE, -1, &handle);
	REFUSED(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId", NO_SHARE, devices, &handle);
	REFUSED(ACL_ERROR_RT_CONTEXT_NULL, "context", NO_SHARE, 0, &handle);
	ASSERT_EQ(0, aclrtSetDevice(0));
	REFUSED(ACL_ERROR_RT_INVALID_HANDLE, "shareableHandle", NO_SHARE, 0, &handle);
	REFUSED(ACL_ERROR_RT_INVALID_HANDLE, "shareableHandle", 0, 0, &handle);
	/* In the process that exported, to whichever device, named or not. */
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "shareableHandle", self->share, 0, &handle);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "shareableHandle", self->share, devices - 1,
		&handle);
	ASSERT_EQ(0, name_process(self->share, getpid()));
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "shareableHandle", self->share, 0, &handle);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED, handle);
}

TEST_F(share, naming_processes_is_checked_in_order)
{
	static int32_t pids[65536], zeros[3];
	uint64_t handle, share;

#define REFUSED(code, words, share, pids, n) \
	EXPECT_FAILS(code, words, aclrtMemSetPidToShareableHandle(share, pids, n))
	REFUSED(ACL_ERROR_INVALID_PARAM, "pid|NULL", NO_SHARE, NULL, 0);
	REFUSED(ACL_ERROR_INVALID_PARAM, "pid|NULL", self->share, NULL, 1);
	REFUSED(ACL_ERROR_INVALID_PARAM, "pidNum|0", self->share, pids, 0);
	pids[65534] = self->pid;
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "pidNum|65536", self->share, pids, 65536);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "pidNum", self->share, pids, SIZE_MAX);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "pidNum", self->share, pids, (size_t)1 << 32 | 1);
	REFUSED(ACL_ERROR_RT_INVALID_HANDLE, "shareableHandle", NO_SHARE, pids, 65535);
	REFUSED(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "shareableHandle", self->share, zeros, 3);
#undef REFUSED
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, IMPORT, self->share, 0, &handle));

	/* As many as are allowed, all 0 but the last. */
	EXPECT_EQ(0, aclrtMemSetPidToShareableHandle(self->share, pids, 65535));
	EXPECT_EQ(0, AIDE(&self->aide, IMPORT, self->share, 0, &handle));

	/* Nobody but the exporter may, not for others, nor for themselves. */
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&self->aide, LIST, self->share, self->pid, NULL));
	ASSERT_EQ(0, AIDE(&self->aide, ALLOC, GRANULE, 0, &handle));
	ASSERT_EQ(0, AIDE(&self->aide, EXPORT, handle, 0, &share));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "shareableHandle",
		     aclrtMemSetPidToShareableHandle(share, &(int32_t){ getpid() }, 1));
}

TEST_F(share, a_refused_import_says_why)
{
	aclrtDrvMemHandle handle = UNTOUCHED;
	uint64_t memory, share;
	char id[16];

	ASSERT_EQ(0, AIDE(&self->aide, ALLOC, GRANULE, 0, &memory));
	ASSERT_EQ(0, AIDE(&self->aide, EXPORT, memory, 0, &share));
	snprintf(id, sizeof(id), "%d", getpid());
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "aclrtMemSetPidToShareableHandle",
		     aclrtMemImportFromShareableHandle(share, 0, &handle));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, id,
		     aclrtMemImportFromShareableHandle(share, 0, &handle));
	EXPECT_EQ(UNTOUCHED, handle);
}

TEST_F(acl, the_numbers_of_shares_cannot_be_guessed)
{
	aclrtDrvMemHandle handles[64];
	uint64_t shares[64], all = 0, none = ~0ULL;
	int i, j;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, new_memory(&handles[i], GRANULE, 0));
		ASSERT_EQ(0, aclrtMemExportToShareableHandle(handles[i], 0, 0, &shares[i]));
		EXPECT_NE(0, shares[i]);
		all |= shares[i];
		none &= shares[i];
		for (j = 0; j < i; j++)
			EXPECT_NE(shares[j], shares[i]);
	}
	/* Each bit is 0 here and 1 there; all 64 of them, but for 1 in 2^57. */
	EXPECT_EQ(~0ULL, all);
	EXPECT_EQ(0, none);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(0, aclrtFreePhysical(handles[i]));
}

/* Let the next process have this id, if it's free. */
static bool next_pid(pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid - 1);
	return !write_file("/proc/sys/kernel/ns_last_pid", text);
}

TEST_F(share, a_process_has_to_exist_when_it_is_named)
{
	struct aide next;
	uint64_t handle;
	pid_t pid;

	REQUIRE_ROOT();
	/* One that ended, whose id the next process gets. */
	ASSERT_EQ(0, name_process(self->share, self->pid));
	pid = self->aide.pid;
	EXPECT_EQ(0, aide_end(&self->aide));
	self->aide.pid = 0;
	ASSERT_TRUE(next_pid(pid));
	ASSERT_TRUE(aide_start(&next, variant->flags));
	EXPECT_EQ(pid, next.pid);
	ASSERT_EQ(0, AIDE(&next, SET_DEVICE, 0, 0, NULL));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR, AIDE(&next, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, aide_end(&next));

	/* One that is named before it's there. */
	ASSERT_EQ(0, name_process(self->share, pid));
	ASSERT_TRUE(next_pid(pid));
	ASSERT_TRUE(aide_start(&next, variant->flags));
	EXPECT_EQ(pid, next.pid);
	ASSERT_EQ(0, AIDE(&next, SET_DEVICE, 0, 0, NULL));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR, AIDE(&next, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, name_process(self->share, pid));
	EXPECT_EQ(0, AIDE(&next, IMPORT, self->share, 0, &handle));
	EXPECT_EQ(0, aide_end(&next));
}

TEST_F(share, processes_in_containers_are_named_by_the_hosts_id)
{
	uint64_t tgid, inside, handle;
	struct aide contained;

	REQUIRE_ROOT();
	ASSERT_TRUE(aide_start(&contained, AIDE_EXEC | AIDE_PID_NAMESPACE));
	ASSERT_EQ(0, AIDE(&contained, TGID, 0, 0, &tgid));
	ASSERT_EQ(0, AIDE(&contained, PID, 0, 0, &inside));
	EXPECT_EQ(contained.pid, (pid_t)tgid);
	EXPECT_EQ(1, inside);
	ASSERT_EQ(0, AIDE(&contained, SET_DEVICE, 0, 0, NULL));
	ASSERT_EQ(0, name_process(self->share, inside));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&contained, IMPORT, self->share, 0, &handle));
	ASSERT_EQ(0, name_process(self->share, tgid));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
		  AIDE(&contained, IMPORT_IN_CHILD, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&contained, IMPORT_IN_THREAD, self->share, 0, &handle));
	EXPECT_EQ(0, AIDE(&contained, FREE, handle, 0, NULL));
	EXPECT_EQ(0, aide_end(&contained));
}

static int bare_tgid(void *data)
{
	(void)data;
	int32_t pid = UNTOUCHED_ID;

	return aclrtDeviceGetBareTgid(&pid) ? -1 : pid;
}

TEST(the_bare_tgid_is_the_process_id_in_every_thread)
{
	int fd = open_device();

	REQUIRE_CLIENT(fd);
	close(fd);
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "pid|NULL", aclrtDeviceGetBareTgid(NULL));
	EXPECT_EQ(getpid(), bare_tgid(NULL));
	EXPECT_EQ(getpid(), in_thread(bare_tgid, NULL));
}

TEST_HARNESS_MAIN
