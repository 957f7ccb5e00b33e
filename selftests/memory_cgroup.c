// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory is charged to the memory cgroup of the process that allocates it, and
 * a cgroup at its limit gets a clean refusal, never an OOM kill.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fixture.h"
#include "peer.h"

/* A cgroup, and a peer in it. */
FIXTURE(cgroup)
{
	int fd;
	uint64_t used;
	char path[64];
	struct peer peer;
	/* Charged before anything was allocated. */
	uint64_t base;
};

static uint64_t cgroup_number(const char *path, const char *file, const char *key)
{
	char name[96];
	uint64_t value = 0;

	snprintf(name, sizeof(name), "%s/%s", path, file);
	read_number(name, key, &value);
	return value;
}

static int cgroup_set(const char *path, const char *file, uint64_t value)
{
	char name[96], text[32];

	snprintf(name, sizeof(name), "%s/%s", path, file);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_file(name, text);
}

FIXTURE_SETUP(cgroup)
{
	int rc;

	signal(SIGPIPE, SIG_IGN);
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	snprintf(self->path, sizeof(self->path), "/sys/fs/cgroup/aclmem-test-%d", getpid());
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(self->path, 0755))
		SKIP(_exit(HARNESS_SKIP), "%s: can't make %s: %s", _metadata->name,
		     self->path, strerror(errno));
	rc = cgroup_set(self->path, "memory.max", 1ULL << 40);
	if (rc) {
		rmdir(self->path);
		SKIP(_exit(HARNESS_SKIP), "%s: no memory cgroups: %s", _metadata->name,
		     strerror(-rc));
	}
	ASSERT_EQ(0, peer_start(&self->peer, 0, 0));
	ASSERT_EQ(0, cgroup_set(self->path, "cgroup.procs", self->peer.pid));
	/* What the peer needs for itself. */
	ASSERT_EQ(0, peer_call(&self->peer, PEER_ALLOC, GRANULE, 0, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_FREE, self->peer.value, 0, 0));
	self->base = cgroup_number(self->path, "memory.current", NULL);
}

FIXTURE_TEARDOWN(cgroup)
{
	int i;

	EXPECT_TRUE(peer_kill(&self->peer));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	for (i = 0; i < 100 && rmdir(self->path); i++)
		usleep(10000);
	EXPECT_GT(100, i);
	close(self->fd);
}

/* The kernel keeps up to 64 pages of charges in stock per CPU. */
#define SLACK MIB

static bool charge_becomes(struct _test_data_cgroup *self, uint64_t bytes)
{
	uint64_t current = 0;
	int i;

	for (i = 0; i < 300; i++) {
		current = cgroup_number(self->path, "memory.current", NULL);
		if (current + SLACK >= self->base + bytes &&
		    current <= self->base + bytes + SLACK)
			return true;
		usleep(10000);
	}
	fprintf(stderr, "# charged %llu, at first %llu, expected %llu more\n",
		(unsigned long long)current, (unsigned long long)self->base,
		(unsigned long long)bytes);
	return false;
}

TEST_F(cgroup, memory_is_charged_as_long_as_it_lives)
{
	uint64_t handle, at;

	ASSERT_EQ(0, peer_call(&self->peer, PEER_ALLOC, 16 * MIB, 0, 0));
	handle = self->peer.value;
	EXPECT_TRUE(charge_becomes(self, 16 * MIB));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_MAP, handle, 16 * MIB, 0));
	at = self->peer.value;
	ASSERT_EQ(0, peer_call(&self->peer, PEER_WRITE, at, 1, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_FREE, handle, 0, 0));
	EXPECT_TRUE(charge_becomes(self, 16 * MIB));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_UNMAP, at, 16 * MIB, 0));
	EXPECT_TRUE(charge_becomes(self, 0));
}

TEST_F(cgroup, an_importer_is_not_charged)
{
	uint32_t handle;
	uint64_t share;

	ASSERT_EQ(0, alloc(self->fd, 0, 16 * MIB, &handle));
	ASSERT_EQ(0, export_handle(self->fd, handle, ACLMEM_EXPORT_ANY_PROCESS, &share));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_IMPORT, share, 0, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_MAP, self->peer.value, 16 * MIB, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_WRITE, self->peer.value, 1, 0));
	EXPECT_TRUE(charge_becomes(self, 0));
	ASSERT_EQ(0, free_handle(self->fd, handle));
}

TEST_F(cgroup, at_the_limit_there_is_a_refusal_and_no_kill)
{
	unsigned int n;
	uint64_t handle;

	ASSERT_EQ(0, cgroup_set(self->path, "memory.max", self->base + 32 * MIB));
	for (n = 0; n < 5; n++) {
		EXPECT_PEER_REFUSED(ENOMEM, NO_PAGES, &self->peer, PEER_ALLOC, 64 * MIB, 0, 0);
		EXPECT_LT(0, self->peer.reason_value);
		EXPECT_GT(64 * MIB, self->peer.reason_value);
		EXPECT_EQ(self->used, used(self->fd));
		EXPECT_TRUE(charge_becomes(self, 0));
	}
	ASSERT_EQ(0, peer_call(&self->peer, PEER_ALLOC, 16 * MIB, 0, 0));
	handle = self->peer.value;
	EXPECT_PEER_REFUSED(ENOMEM, NO_PAGES, &self->peer, PEER_ALLOC, 32 * MIB, 0, 0);
	EXPECT_EQ(self->used + 16 * MIB, used(self->fd));
	EXPECT_EQ(0, peer_call(&self->peer, PEER_FREE, handle, 0, 0));
	EXPECT_EQ(0, cgroup_number(self->path, "memory.events", "oom_kill "));
	EXPECT_EQ(0, cgroup_number(self->path, "memory.events", "oom "));
	/* It did meet the limit. */
	EXPECT_LT(0, cgroup_number(self->path, "memory.events", "max "));
}

/* Wake-up runs out half-way: what was had is given back, later all works. */
TEST_F(cgroup, three_of_five_fit_and_five_when_the_limit_is_lifted)
{
	uint64_t handles[5];
	int round, n, fit;

	ASSERT_EQ(0, cgroup_set(self->path, "memory.max",
				self->base + 3 * 8 * MIB + 2 * MIB));
	for (round = 0; round < 3; round++) {
		for (n = 0, fit = 0; n < 5; n++) {
			if (peer_call(&self->peer, PEER_ALLOC, 8 * MIB, 0, 0))
				break;
			handles[fit++] = self->peer.value;
		}
		EXPECT_EQ(round < 2 ? 3 : 5, fit);
		EXPECT_EQ(self->used + fit * 8 * MIB, used(self->fd));
		while (fit--)
			EXPECT_EQ(0, peer_call(&self->peer, PEER_FREE, handles[fit], 0, 0));
		EXPECT_EQ(self->used, used(self->fd));
		EXPECT_TRUE(charge_becomes(self, 0));
		if (round == 1)
			ASSERT_EQ(0, cgroup_set(self->path, "memory.max", 1ULL << 40));
	}
	EXPECT_EQ(0, cgroup_number(self->path, "memory.events", "oom_kill "));
}

/* The kernel's own records count, and 10,000 mappings don't come for free. */
TEST_F(cgroup, death_gives_the_charge_back)
{
	ASSERT_EQ(0, peer_call(&self->peer, PEER_ALLOC, 32 * MIB, 0, 0));
	ASSERT_EQ(0, peer_call(&self->peer, PEER_MAP, self->peer.value, 32 * MIB, 0));
	EXPECT_TRUE(charge_becomes(self, 32 * MIB));
	ASSERT_TRUE(peer_kill(&self->peer));
	self->base = 0;
	EXPECT_TRUE(charge_becomes(self, 0));
	ASSERT_EQ(0, peer_start(&self->peer, 0, 0));
}

TEST_HARNESS_MAIN
