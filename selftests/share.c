// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares: who may export, whitelist and import, and what a refusal says. All
 * between real processes.
 */
#include <linux/sched.h>

#include <errno.h>
#include <sys/mman.h>

#include "fixture.h"
#include "peer.h"

/* An exported granule of this process, and a peer that isn't admitted yet. */
FIXTURE(share)
{
	int fd;
	uint64_t used;
	struct aclmem_query query;
	uint32_t handle;
	uint64_t share;
	struct peer peer;
};

FIXTURE_SETUP(share)
{
	signal(SIGPIPE, SIG_IGN);
	catch_faults();
	self->fd = open_client(&self->query);
	REQUIRE_CLIENT(self->fd);
	ASSERT_EQ(0, peer_start(&self->peer, 0, 0));
	self->used = used(self->fd);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &self->handle));
	ASSERT_EQ(0, export_handle(self->fd, self->handle, 0, &self->share));
}

FIXTURE_TEARDOWN(share)
{
	peer_kill(&self->peer);
	close(self->fd);
}

TEST_F(share, export_takes_a_held_handle_once)
{
	uint64_t other;
	uint32_t handle;
	char *at;

	EXPECT_NE(0, self->share);
	EXPECT_REFUSED(EEXIST, EXPORTED, export_handle(self->fd, self->handle, 0, &other));
	EXPECT_EQ(self->handle, last.out_value);
	EXPECT_REFUSED(EEXIST, EXPORTED, export_handle(self->fd, self->handle,
						       ACLMEM_EXPORT_ANY_PROCESS, &other));
	EXPECT_REFUSED(ENOENT, HANDLE, export_handle(self->fd, 0, 0, &other));
	EXPECT_REFUSED(ENOENT, HANDLE, export_handle(self->fd, self->handle + 1, 0, &other));
	EXPECT_EQ(self->handle + 1, last.out_value);
	EXPECT_REFUSED(EINVAL, FLAGS, export_handle(self->fd, self->handle, 2, &other));

	/* Freed, and alive only by a mapping. */
	at = map_new(self->fd, GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, free_handle(self->fd, handle));
	EXPECT_REFUSED(ENOENT, OVER_FREED, export_handle(self->fd, handle, 0, &other));
}

TEST_F(share, an_importer_cannot_export)
{
	uint32_t handle;

	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	handle = self->peer.value;
	EXPECT_PEER_REFUSED(EINVAL, IMPORTED, &self->peer, PEER_EXPORT, handle, 0, 0);
	EXPECT_EQ(handle, self->peer.reason_value);
	EXPECT_PEER_REFUSED(EINVAL, IMPORTED, &self->peer, PEER_EXPORT, handle,
			    ACLMEM_EXPORT_ANY_PROCESS, 0);
}

TEST_F(share, whitelist_checks_share_and_exporter)
{
	uint32_t handle;
	uint64_t any;

	EXPECT_REFUSED(ENOENT, SHARE, whitelist(self->fd, 0, &self->peer.tgid, 1));
	EXPECT_REFUSED(ENOENT, SHARE,
		       whitelist(self->fd, self->share ^ 1, &self->peer.tgid, 1));
	EXPECT_EQ(self->share ^ 1, last.out_value);

	EXPECT_PEER_REFUSED(EPERM, NOT_EXPORTER, &self->peer, PEER_WHITELIST,
			    self->share, self->peer.tgid, 0);
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &self->peer, PEER_IMPORT, self->share, 0, 0);

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, export_handle(self->fd, handle, ACLMEM_EXPORT_ANY_PROCESS, &any));
	EXPECT_REFUSED(EPERM, NO_WHITELIST, whitelist(self->fd, any, &self->peer.tgid, 1));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, any, 0, 0));

	/* An importer is no exporter either. */
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_PEER_REFUSED(EPERM, NOT_EXPORTER, &self->peer, PEER_WHITELIST,
			    self->share, self->peer.tgid, 0);
}

TEST_F(share, whitelist_checks_the_list)
{
	uint32_t limit = self->query.out_max_pids, i;
	int32_t *pids = calloc(limit + 1, sizeof(*pids));
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	ASSERT_NE(NULL, pids);
	EXPECT_LT(0, limit);
	EXPECT_REFUSED(EINVAL, PIDS_EMPTY, whitelist(self->fd, self->share, pids, 0));
	EXPECT_REFUSED(EINVAL, PIDS_EMPTY, whitelist(self->fd, self->share, NULL, 0));
	/* Zeros only. */
	EXPECT_REFUSED(EINVAL, PIDS_EMPTY, whitelist(self->fd, self->share, pids, 1));
	EXPECT_REFUSED(EINVAL, PIDS_EMPTY, whitelist(self->fd, self->share, pids, limit));
	for (i = 0; i <= limit; i++)
		pids[i] = self->peer.tgid;
	EXPECT_REFUSED(E2BIG, PIDS_LIMIT, whitelist(self->fd, self->share, pids, limit + 1));
	EXPECT_EQ(limit, last.out_value);
	EXPECT_REFUSED(E2BIG, PIDS_LIMIT, whitelist(self->fd, self->share, pids, ~0U));

	EXPECT_REFUSED(EFAULT, ARRAY, whitelist(self->fd, self->share, NULL, 1));
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	*(int32_t *)(page + 4092) = self->peer.tgid;
	EXPECT_REFUSED(EFAULT, ARRAY,
		       whitelist(self->fd, self->share, (int32_t *)(page + 4092), 2));
	EXPECT_EQ((uintptr_t)page + 4092, last.out_value);
	/* None of these admitted anybody. */
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &self->peer, PEER_IMPORT, self->share, 0, 0);

	EXPECT_EQ(0, whitelist(self->fd, self->share, (int32_t *)(page + 4092), 1));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_EQ(0, whitelist(self->fd, self->share, pids, limit));
}

TEST_F(share, ids_of_nobody_are_skipped)
{
	int32_t pids[] = { 0, -1, INT32_MAX, 4194304, INT32_MIN, 0, 0 };

	EXPECT_EQ(0, whitelist(self->fd, self->share, pids, 5));
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &self->peer, PEER_IMPORT, self->share, 0, 0);
	EXPECT_EQ(self->peer.tgid, (int32_t)self->peer.reason_value);
	pids[6] = self->peer.tgid;
	EXPECT_EQ(0, whitelist(self->fd, self->share, pids, ARRAY_SIZE(pids)));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
}

TEST_F(share, calls_add_to_the_whitelist)
{
	struct peer other;
	int32_t self_pid = self->query.out_tgid;

	ASSERT_EQ(0, peer_start(&other, 0, 0));
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &other, PEER_IMPORT, self->share, 0, 0);
	ASSERT_EQ(0, whitelist(self->fd, self->share, &other.tgid, 1));
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self_pid, 1));
	EXPECT_EQ(0, peer_call(&other, PEER_IMPORT, self->share, 0, 0));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_TRUE(peer_stop(&other));
}

TEST_F(share, import_checks_device_share_and_process)
{
	int32_t self_pid = self->query.out_tgid;
	uint32_t handle;

	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	EXPECT_PEER_REFUSED(ENODEV, DEVICE, &self->peer, PEER_IMPORT, self->share,
			    self->query.out_devices, 0);
	EXPECT_EQ(self->query.out_devices, self->peer.reason_value);
	EXPECT_PEER_REFUSED(ENODEV, DEVICE, &self->peer, PEER_IMPORT, self->share, ~0U, 0);
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->peer, PEER_IMPORT, self->share + 1, 0, 0);
	EXPECT_EQ(self->share + 1, self->peer.reason_value);
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->peer, PEER_IMPORT, 0, 0, 0);
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->peer, PEER_IMPORT, ~0ULL, 0, 0);

	EXPECT_REFUSED(EINVAL, SAME_PROCESS,
		       import_share(self->fd, self->share, 0, &handle));
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self_pid, 1));
	EXPECT_REFUSED(EINVAL, SAME_PROCESS,
		       import_share(self->fd, self->share, 0, &handle));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
}

TEST_F(share, a_second_client_of_the_exporter_is_the_same_process)
{
	int other = open_client(NULL);
	uint32_t handle;
	uint64_t any;

	ASSERT_GE(other, 0);
	EXPECT_REFUSED(EINVAL, SAME_PROCESS, import_share(other, self->share, 0, &handle));
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, export_handle(self->fd, handle, ACLMEM_EXPORT_ANY_PROCESS, &any));
	EXPECT_REFUSED(EINVAL, SAME_PROCESS, import_share(other, any, 0, &handle));
	close(other);
}

TEST_F(share, threads_are_admitted_and_children_are_not)
{
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT_IN_THREAD, self->share, 0, 0));
	EXPECT_EQ(-EACCES, peer_call(&self->peer, PEER_IMPORT_IN_CHILD, self->share, 0, 0));
	EXPECT_STREQ("NOT_LISTED", reason_name(self->peer.reason));
	EXPECT_NE(self->peer.tgid, (int32_t)self->peer.reason_value);
	/* Children before and after, and this process' own. */
	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->query.out_tgid, 1));
	EXPECT_EQ(-EACCES, peer_call(&self->peer, PEER_IMPORT_IN_CHILD, self->share, 0, 0));
}

TEST_F(share, importing_again_gives_the_same_handle_once_more)
{
	uint32_t first, second;

	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	first = self->peer.value;
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_EQ(first, self->peer.value);
	ASSERT_EQ(0, peer_call(&self->peer, PEER_USERS, first, 0, 0));
	EXPECT_EQ(2, self->peer.value);
	if (self->query.out_devices > 1) {
		ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 1, 0));
		second = self->peer.value;
		EXPECT_NE(first, second);
		ASSERT_EQ(0, peer_call(&self->peer, PEER_DEVICE, second, 0, 0));
		EXPECT_EQ(1, self->peer.value);
		EXPECT_EQ(0, peer_call(&self->peer, PEER_FREE, second, 0, 0));
	}
	ASSERT_EQ(0, peer_call(&self->peer, PEER_DEVICE, first, 0, 0));
	EXPECT_EQ(0, self->peer.value);

	EXPECT_EQ(0, peer_call(&self->peer, PEER_FREE, first, 0, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_USERS, first, 0, 0));
	EXPECT_EQ(1, self->peer.value);
	EXPECT_EQ(0, peer_call(&self->peer, PEER_FREE, first, 0, 0));
	EXPECT_PEER_REFUSED(ENOENT, HANDLE, &self->peer, PEER_FREE, first, 0, 0);
	/* Let go of, it is imported anew, under a new name. */
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_NE(first, self->peer.value);
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
}

TEST_F(share, numbers_cannot_be_guessed)
{
	uint64_t ones = 0, zeros = 0, before = 0, shares[200];
	unsigned int i, j, near = 0, flips = 0;
	uint32_t handle;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
		ASSERT_EQ(0, export_handle(self->fd, handle, 0, &shares[i]));
		for (j = 0; j < i; j++)
			ASSERT_NE(shares[i], shares[j]);
		ones |= shares[i];
		zeros |= ~shares[i];
		near += shares[i] - before < 1ULL << 32;
		flips += __builtin_popcountll(shares[i] ^ before);
		before = shares[i];
		ASSERT_EQ(0, free_handle(self->fd, handle));
	}
	/* Every bit takes both values; by chance one fails at 64 in 2^199. */
	EXPECT_EQ(~0ULL, ones);
	EXPECT_EQ(~0ULL, zeros);
	EXPECT_EQ(0, near);
	/* Half of the bits flip: 6400, with a standard deviation of 57. */
	EXPECT_LT(6400 - 8 * 57, flips);
	EXPECT_GT(6400 + 8 * 57, flips);
}

TEST_F(share, host_wide_ids_work_from_a_pid_namespace)
{
	struct peer inside;
	int32_t own;
	int rc;

	if (self->query.out_tgid != getpid())
		SKIP(return, "%s: this is a pid namespace already", _metadata->name);
	rc = peer_start(&inside, CLONE_NEWPID, 0);
	if (rc == -EPERM)
		SKIP(return, "%s: needs root", _metadata->name);
	ASSERT_EQ(0, rc);
	EXPECT_EQ(inside.pid, inside.tgid);
	ASSERT_EQ(0, peer_call(&inside, PEER_OWN_PID, 0, 0, 0));
	own = inside.value;
	EXPECT_EQ(1, own);

	/* Its own idea of its number admits process 1 of the host. */
	ASSERT_EQ(0, whitelist(self->fd, self->share, &own, 1));
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &inside, PEER_IMPORT, self->share, 0, 0);
	EXPECT_EQ(inside.tgid, (int32_t)inside.reason_value);
	ASSERT_EQ(0, whitelist(self->fd, self->share, &inside.tgid, 1));
	EXPECT_EQ(0, peer_call(&inside, PEER_IMPORT, self->share, 0, 0));
	EXPECT_EQ(0, peer_call(&inside, PEER_IMPORT_IN_THREAD, self->share, 0, 0));
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &inside, PEER_IMPORT_IN_CHILD,
			    self->share, 0, 0);
	EXPECT_TRUE(peer_stop(&inside));
}

TEST_F(share, an_exporter_in_a_pid_namespace_names_host_wide_ids)
{
	struct peer inside;
	uint64_t share;
	int rc;

	if (self->query.out_tgid != getpid())
		SKIP(return, "%s: this is a pid namespace already", _metadata->name);
	rc = peer_start(&inside, CLONE_NEWPID, 0);
	if (rc == -EPERM)
		SKIP(return, "%s: needs root", _metadata->name);
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, peer_call(&inside, PEER_ALLOC, GRANULE, 0, 0));
	ASSERT_EQ(0, peer_call(&inside, PEER_EXPORT, inside.value, 0, 0));
	share = inside.value;
	/* No process of its own has this number, and one of the host has. */
	ASSERT_EQ(0, peer_call(&inside, PEER_WHITELIST, share, self->peer.tgid, 0));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_IMPORT, share, 0, 0));
	EXPECT_TRUE(peer_stop(&inside));
}

TEST_F(share, a_recycled_pid_is_not_admitted)
{
	struct peer heir;
	pid_t pid = self->peer.pid;
	int rc;

	ASSERT_EQ(0, whitelist(self->fd, self->share, &self->peer.tgid, 1));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, self->share, 0, 0));
	ASSERT_TRUE(peer_kill(&self->peer));
	rc = peer_start(&heir, 0, pid);
	if (rc == -EPERM || rc == -EINVAL)
		SKIP(return, "%s: can't choose a pid", _metadata->name);
	ASSERT_EQ(0, rc);
	EXPECT_EQ(pid, heir.tgid);
	EXPECT_PEER_REFUSED(EACCES, NOT_LISTED, &heir, PEER_IMPORT, self->share, 0, 0);
	ASSERT_EQ(0, whitelist(self->fd, self->share, &heir.tgid, 1));
	EXPECT_EQ(0, peer_call(&heir, PEER_IMPORT, self->share, 0, 0));
	self->peer = heir;
}

TEST_HARNESS_MAIN
