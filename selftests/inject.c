// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every way of the commands to run out of memory for the kernel's own use. A
 * command fails cleanly, changes nothing, and works when tried again; those
 * that must not need memory work without any.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sweep.h"

static int call_alloc(struct sweep *sweep)
{
	return alloc(sweep->fd, 0, 3 * GRANULE, &sweep->handle);
}

static bool undo_alloc(struct sweep *sweep)
{
	return !free_handle(sweep->fd, sweep->handle) && nothing_used(sweep);
}

TEST_F_TIMEOUT(client, alloc, 60)
{
	struct sweep sweep = {
		.call = call_alloc,
		.undo = undo_alloc,
		.unchanged = nothing_used,
		.syscall = __NR_ioctl,
		.reasons = true,
		.fd = self->fd,
		.probe = self->probe,
		.used = self->used,
	};

	REQUIRE_PROBE(self->probe);
	sweep_all(_metadata, &sweep);
}

static int call_map(struct sweep *sweep)
{
	return map(sweep->fd, sweep->handle, sweep->at, GRANULE, 0);
}

static bool undo_map(struct sweep *sweep)
{
	unsigned char seen;

	return !try_read(sweep->at, &seen) && seen == 123 && !unmap(sweep->fd, sweep->at);
}

static bool not_mapped(struct sweep *sweep)
{
	struct aclmem_handle_info handle;
	struct aclmem_address address;

	return !handle_info(sweep->fd, sweep->handle, &handle) && !handle.out_mappings &&
	       handle.out_users == 1 &&
	       !address_info(sweep->fd, sweep->at, &address) &&
	       address.out_state == ACLMEM_ADDRESS_RESERVED &&
	       try_read(sweep->at, NULL) == SIGBUS;
}

TEST_F_TIMEOUT(client, map, 60)
{
	struct sweep sweep = {
		.call = call_map,
		.undo = undo_map,
		.unchanged = not_mapped,
		.syscall = __NR_ioctl,
		.reasons = true,
		.fd = self->fd,
		.probe = self->probe,
	};

	REQUIRE_PROBE(self->probe);
	sweep.at = map_new(self->fd, GRANULE, 0, &sweep.handle);
	ASSERT_NE(MAP_FAILED, sweep.at);
	sweep.at[0] = 123;
	ASSERT_EQ(0, unmap(self->fd, sweep.at));
	sweep_all(_metadata, &sweep);
}

/* At what was a failure once, unmap must never be one. */
TEST_F(client, unmap_free_and_release_need_no_memory)
{
	struct aclmem_probe_injected injected;
	unsigned int n, table;
	uint32_t handle, held;
	int rc[5];
	char *at;

	REQUIRE_PROBE(self->probe);
	for (n = 0; n < rounds(50); n++) {
		table = n % 2;
		at = map_new(self->fd, 4 * GRANULE, 0, &handle);
		ASSERT_NE(MAP_FAILED, at);
		if (table)
			ASSERT_EQ(0, probe_put_table(self->probe, at + GRANULE));
		memset(at + GRANULE, 1, GRANULE);
		ASSERT_EQ(0, probe_arm(self->probe, 1, ACLMEM_PROBE_REPEAT, __NR_ioctl));
		rc[0] = retain(self->fd, at, &held);
		rc[1] = unmap(self->fd, at);
		rc[2] = free_handle(self->fd, handle);
		rc[3] = free_handle(self->fd, handle);
		rc[4] = release(self->fd, at);
		ASSERT_EQ(0, probe_disarm(self->probe, &injected));
		EXPECT_EQ(0, rc[0]);
		EXPECT_EQ(0, rc[1]);
		EXPECT_EQ(0, rc[2]);
		EXPECT_EQ(0, rc[3]);
		EXPECT_EQ(0, rc[4]);
		ASSERT_EQ(SIGBUS, try_read(at + GRANULE, NULL));
		ASSERT_EQ(0, munmap(at, 4 * GRANULE));
		ASSERT_EQ(self->used, used(self->fd));
	}
}

/* The probe itself: what it injects does arrive, and only where it shall. */
TEST_F(client, injection_is_real)
{
	struct aclmem_probe_injected injected;
	uint32_t handle;
	int rc;

	REQUIRE_PROBE(self->probe);
	ASSERT_EQ(0, probe_arm(self->probe, 1, ACLMEM_PROBE_REPEAT, __NR_ioctl));
	rc = alloc(self->fd, 0, GRANULE, &handle);
	ASSERT_EQ(0, probe_disarm(self->probe, &injected));
	EXPECT_EQ(-ENOMEM, rc);
	EXPECT_LT(0, injected.out_seen);
	EXPECT_EQ(injected.out_seen, injected.out_failed);
	EXPECT_STRNE("", injected.out_function);

	ASSERT_EQ(0, probe_arm(self->probe, 0, 0, __NR_ioctl));
	rc = alloc(self->fd, 0, GRANULE, &handle);
	ASSERT_EQ(0, probe_disarm(self->probe, &injected));
	EXPECT_EQ(0, rc);
	EXPECT_LT(0, injected.out_seen);
	EXPECT_EQ(0, injected.out_failed);
	EXPECT_EQ(0, free_handle(self->fd, handle));

	ASSERT_EQ(0, probe_arm(self->probe, 1, ACLMEM_PROBE_REPEAT, __NR_mmap));
	rc = alloc(self->fd, 0, GRANULE, &handle);
	ASSERT_EQ(0, probe_disarm(self->probe, &injected));
	EXPECT_EQ(0, rc);
	EXPECT_EQ(0, injected.out_seen);
}

static int call_export(struct sweep *sweep)
{
	return export_handle(sweep->fd, sweep->handle, 0, &sweep->share);
}

/* An export can't be taken back but by its handle's end. */
static bool undo_export(struct sweep *sweep)
{
	return !free_handle(sweep->fd, sweep->handle) && nothing_used(sweep) &&
	       !alloc(sweep->fd, 0, GRANULE, &sweep->handle);
}

static bool handle_untouched(struct sweep *sweep)
{
	struct aclmem_handle_info info;

	return !handle_info(sweep->fd, sweep->handle, &info) && info.out_users == 1 &&
	       used(sweep->fd) == sweep->used + GRANULE;
}

static int call_whitelist(struct sweep *sweep)
{
	int32_t pids[1500];
	unsigned int i;

	/* Real ones, of which any may be the one that doesn't fit. */
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = i + 1;
	return whitelist(sweep->fd, sweep->share, pids, ARRAY_SIZE(pids));
}

static bool undo_whitelist(struct sweep *sweep)
{
	return undo_export(sweep) && !call_export(sweep);
}

TEST_F_TIMEOUT(client, export_and_whitelist, 60)
{
	struct sweep sweep = {
		.call = call_export,
		.undo = undo_export,
		.unchanged = handle_untouched,
		.syscall = __NR_ioctl,
		.reasons = true,
		.fd = self->fd,
		.probe = self->probe,
		.used = self->used,
	};

	REQUIRE_PROBE(self->probe);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &sweep.handle));
	sweep_all(_metadata, &sweep);
	ASSERT_EQ(0, call_export(&sweep));
	sweep.call = call_whitelist;
	sweep.undo = undo_whitelist;
	sweep_all(_metadata, &sweep);
}

/*
 * The table of shares grows in the background, before it must. To see an export
 * fail for that, the worker mustn't get the processor.
 */
TEST_F_TIMEOUT(client, export_to_a_full_table, 60)
{
	struct sched_param fifo = { .sched_priority = 1 }, other = {};
	struct aclmem_probe_injected injected;
	unsigned int i, failures = 0, strange = 0;
	static uint32_t handles[300];
	uint64_t share;
	cpu_set_t cpu;
	int rc;

	REQUIRE_PROBE(self->probe);
	for (i = 0; i < ARRAY_SIZE(handles); i++)
		ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handles[i]));
	/* Places the probes, which takes its time. */
	ASSERT_EQ(0, probe_arm(self->probe, 0, 0, __NR_ioctl));
	ASSERT_EQ(0, probe_disarm(self->probe, &injected));

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &fifo));
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		if (probe_arm(self->probe, 2, ACLMEM_PROBE_REPEAT, __NR_ioctl))
			break;
		rc = export_handle(self->fd, handles[i], 0, &share);
		probe_disarm(self->probe, &injected);
		if (!rc)
			continue;
		failures++;
		if (rc != -ENOMEM || last.out_reason != ACLMEM_REASON_KERNEL_MEMORY ||
		    export_handle(self->fd, handles[i], 0, &share))
			strange++;
	}
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &other));
	EXPECT_EQ(ARRAY_SIZE(handles), i);
	EXPECT_LT(0, failures);
	EXPECT_EQ(0, strange);
	for (i = 0; i < ARRAY_SIZE(handles); i++)
		ASSERT_EQ(0, free_handle(self->fd, handles[i]));
	EXPECT_EQ(self->used, used(self->fd));
}

static int call_import(struct sweep *sweep)
{
	return import_share(sweep->fd, sweep->share, 0, &sweep->handle);
}

static bool undo_import(struct sweep *sweep)
{
	return !free_handle(sweep->fd, sweep->handle);
}

TEST_F_TIMEOUT(client, import, 60)
{
	struct sweep sweep = {
		.call = call_import,
		.undo = undo_import,
		.unchanged = nothing_used,
		.syscall = __NR_ioctl,
		.reasons = true,
		.probe = self->probe,
	};
	uint64_t share;
	uint32_t handle;
	pid_t pid;

	REQUIRE_PROBE(self->probe);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, export_handle(self->fd, handle, ACLMEM_EXPORT_ANY_PROCESS, &share));
	pid = fork_child();
	if (!pid) {
		sweep.fd = open_client(NULL);
		sweep.share = share;
		sweep.used = used(sweep.fd);
		sweep_all(_metadata, &sweep);
		_exit(_metadata->passed ? 0 : 1);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

static uint64_t item_dst[3000], item_src[3000], item_length[3000];

static int call_copy(struct sweep *sweep)
{
	return copy_items(sweep->fd, item_dst, item_src, item_length,
			  ARRAY_SIZE(item_dst), NULL);
}

static bool undo_copy(struct sweep *sweep)
{
	if (byte_differs(sweep->at, 2 * GRANULE, 0x5c) >= 0)
		return false;
	memset(sweep->at, 0, 2 * GRANULE);
	return true;
}

static bool nothing_copied(struct sweep *sweep)
{
	return byte_differs(sweep->at, 2 * GRANULE, 0) < 0;
}

static int call_fill(struct sweep *sweep)
{
	return fill(sweep->fd, sweep->at, 2 * GRANULE, 0x5c);
}

TEST_F_TIMEOUT(client, copy_and_fill, 60)
{
	struct sweep sweep = {
		.call = call_copy,
		.undo = undo_copy,
		.unchanged = nothing_copied,
		.syscall = __NR_ioctl,
		.reasons = true,
		.fd = self->fd,
		.probe = self->probe,
	};
	static char host[2 * GRANULE];
	size_t i, at = 0;

	REQUIRE_PROBE(self->probe);
	memset(host, 0x5c, sizeof(host));
	sweep.at = map_new(self->fd, 2 * GRANULE, 0, &sweep.handle);
	ASSERT_NE(MAP_FAILED, sweep.at);
	for (i = 0; i < ARRAY_SIZE(item_dst); i++) {
		item_dst[i] = (uintptr_t)sweep.at + at;
		item_src[i] = (uintptr_t)host + at;
		item_length[i] = i == ARRAY_SIZE(item_dst) - 1 ? sizeof(host) - at : 1398;
		at += item_length[i];
	}
	sweep_all(_metadata, &sweep);
	sweep.call = call_fill;
	sweep_kind(_metadata, &sweep, 0);
	sweep_kind(_metadata, &sweep, ACLMEM_PROBE_REPEAT);
}

TEST_HARNESS_MAIN
