// SPDX-License-Identifier: GPL-2.0-only
/*
 * As inject.c, for what isn't a command: open and the first command, mmap,
 * mremap, faults, and the end of a process.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sweep.h"

static int call_open(struct sweep *sweep)
{
	sweep->opened = open(DEVICE_PATH, O_RDWR | O_CLOEXEC);
	return sweep->opened < 0 ? -errno : 0;
}

static bool undo_open(struct sweep *sweep)
{
	return !close(sweep->opened);
}

/* The first command binds the descriptor, which it does once per process. */
static int call_first(struct sweep *sweep)
{
	struct aclmem_query query = {};

	return command(sweep->opened, ACLMEM_QUERY, &query, sizeof(query));
}

/* A new process each time: 0 if the call went well, 2 if it failed cleanly. */
static int first_command(struct sweep *sweep, unsigned int n, unsigned int flags)
{
	struct aclmem_probe_injected injected;
	uint32_t handle;
	int rc;

	if (call_open(sweep))
		return 10;
	if (probe_arm(sweep->probe, n, flags, __NR_ioctl))
		return 11;
	rc = call_first(sweep);
	if (probe_disarm(sweep->probe, &injected))
		return 12;
	if (!injected.out_failed)
		return rc ? 13 : 0;
	if (rc && (rc != -ENOMEM || last.out_reason != ACLMEM_REASON_KERNEL_MEMORY))
		return 14;
	/* Not bound, unless it had another way: no mmap. */
	if (rc && reserve(sweep->opened, GRANULE) != MAP_FAILED)
		return 15;
	if (call_first(sweep) || reserve(sweep->opened, GRANULE) == MAP_FAILED)
		return 16;
	if (alloc(sweep->opened, 0, GRANULE, &handle))
		return 17;
	return rc ? 2 : 3;
}

TEST_F_TIMEOUT(client, open_and_first_command, 60)
{
	struct sweep sweep = {
		.call = call_open,
		.undo = undo_open,
		.unchanged = nothing_used,
		.syscall = __NR_openat,
		.fd = self->fd,
		.probe = self->probe,
		.used = self->used,
	};
	unsigned int n, failures = 0, flags;
	pid_t pid;
	int rc;

	REQUIRE_PROBE(self->probe);
	sweep_all(_metadata, &sweep);
	for (flags = 0; flags <= ACLMEM_PROBE_REPEAT; flags++) {
		for (n = 1, rc = 2; rc && n < 100; n++) {
			pid = fork_child();
			if (!pid)
				_exit(first_command(&sweep, n, flags));
			rc = wait_child(pid);
			failures += rc == 2;
			ASSERT_TRUE(rc == 0 || rc == 2 || rc == 3)
				TH_LOG("n = %u: %d", n, rc);
			ASSERT_TRUE(used_becomes(self->fd, self->used));
		}
	}
	EXPECT_LT(0, failures);
}

static int call_reserve(struct sweep *sweep)
{
	return reserve_at(sweep->fd, sweep->at, 4 * GRANULE) == sweep->at ? 0 : -errno;
}

static bool undo_reserve(struct sweep *sweep)
{
	return !munmap(sweep->at, 4 * GRANULE);
}

static bool nothing_reserved(struct sweep *sweep)
{
	struct aclmem_address address;

	return !address_info(sweep->fd, sweep->at, &address) &&
	       address.out_state == ACLMEM_ADDRESS_FOREIGN;
}

TEST_F_TIMEOUT(client, mmap, 60)
{
	struct sweep sweep = {
		.call = call_reserve,
		.undo = undo_reserve,
		.unchanged = nothing_reserved,
		.syscall = __NR_mmap,
		.fd = self->fd,
		.probe = self->probe,
	};

	REQUIRE_PROBE(self->probe);
	sweep.at = reserve(self->fd, 4 * GRANULE);
	ASSERT_NE(MAP_FAILED, sweep.at);
	ASSERT_EQ(0, munmap(sweep.at, 4 * GRANULE));
	sweep_all(_metadata, &sweep);
}

/* The kernel needs memory to copy an area and to move its page tables. */
TEST_F_TIMEOUT(client, refused_mremap, 60)
{
	struct aclmem_probe_injected injected;
	unsigned int n, flags;
	uint32_t handle;
	void *to;
	char *at;

	REQUIRE_PROBE(self->probe);
	at = map_new(self->fd, 4 * GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	pattern_set(at, 4 * GRANULE, 1);
	ASSERT_EQ(0, unmap(self->fd, at));
	ASSERT_EQ(0, probe_put_table(self->probe, at + GRANULE));
	ASSERT_EQ(0, map(self->fd, handle, at, 4 * GRANULE, 0));
	for (flags = 0; flags <= ACLMEM_PROBE_REPEAT; flags++) {
		for (n = 1; n < 200; n++) {
			ASSERT_EQ(-1, pattern_differs(at, 4 * GRANULE, 1));
			to = mmap(NULL, 6 * GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
			munmap(to, 6 * GRANULE);
			ASSERT_EQ(0, probe_arm(self->probe, n, flags, __NR_mremap));
			to = mremap(at, 4 * GRANULE, 4 * GRANULE,
				    MREMAP_MAYMOVE | MREMAP_FIXED, to + (n % 2) * 4096);
			ASSERT_EQ(0, probe_disarm(self->probe, &injected));
			ASSERT_EQ(MAP_FAILED, to);
			if (!injected.out_failed)
				break;
		}
		EXPECT_LT(1, n);
		EXPECT_GT(200, n);
	}
	ASSERT_EQ(0, unmap(self->fd, at));
	EXPECT_EQ(SIGBUS, try_read(at, NULL));
	EXPECT_EQ(SIGBUS, try_read(at + GRANULE, NULL));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/* A fault that finds no memory for page tables is taken again. */
TEST_F_TIMEOUT(client, faults, 60)
{
	struct aclmem_probe_injected injected;
	unsigned int n, failures = 0;
	uint32_t handle;
	unsigned char seen;
	int signal;
	char *at;

	REQUIRE_PROBE(self->probe);
	for (n = 1; n < 50; n++) {
		/* A place of its own, so that upper levels are new too. */
		at = map_new(self->fd, GRANULE, 0, &handle);
		ASSERT_NE(MAP_FAILED, at);
		ASSERT_EQ(0, try_read(&seen, NULL));
		ASSERT_EQ(0, probe_arm(self->probe, n, 0, -1));
		signal = try_read(at, &seen);
		ASSERT_EQ(0, probe_disarm(self->probe, &injected));
		EXPECT_EQ(0, signal);
		EXPECT_EQ(0, seen);
		failures += !!injected.out_failed;
		ASSERT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));
		if (!injected.out_failed)
			break;
	}
	EXPECT_LT(0, failures);
	EXPECT_EQ(self->used, used(self->fd));
}

/* The end of a process must not need memory. */
TEST_F(client, exit)
{
	uint32_t handle;
	uint64_t share;
	int table;
	pid_t pid;

	REQUIRE_PROBE(self->probe);
	for (table = 0; table < 2; table++) {
		pid = fork_child();
		if (!pid) {
			int fd = open_client(NULL);
			char *at = map_new(fd, 4 * GRANULE, 0, NULL);

			if (at == MAP_FAILED || alloc(fd, 0, GRANULE, &handle) ||
			    export_handle(fd, handle, 0, &share))
				_exit(1);
			if (table && probe_put_table(self->probe, at))
				_exit(2);
			at[0] = 1;
			at[GRANULE] = 1;
			/* A descriptor that ends with it: this one's would stay. */
			if (probe_arm(probe_open(), 1, ACLMEM_PROBE_REPEAT, -1))
				_exit(3);
			syscall(__NR_exit_group, 0);
		}
		EXPECT_EQ(0, wait_child(pid));
		EXPECT_TRUE(used_becomes(self->fd, self->used));
	}
}

TEST_HARNESS_MAIN
