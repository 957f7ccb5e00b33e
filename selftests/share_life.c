// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long shared memory lives, and the number of its share: until the last
 * process that holds or maps it lets go, in any order and by any death.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fixture.h"
#include "peer.h"

/* Two peers; this process only watches. */
FIXTURE(life)
{
	int fd;
	uint64_t used;
	struct peer exporter;
	struct peer importer;
	uint64_t share;
	uint64_t out, out_at;
	uint64_t in, in_at;
};

#define LENGTH (2 * GRANULE)

FIXTURE_SETUP(life)
{
	signal(SIGPIPE, SIG_IGN);
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, peer_start(&self->exporter, 0, 0));
	ASSERT_EQ(0, peer_start(&self->importer, 0, 0));
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_ALLOC, LENGTH, 0, 0));
	self->out = self->exporter.value;
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_MAP, self->out, LENGTH, 0));
	self->out_at = self->exporter.value;
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_EXPORT, self->out, 0, 0));
	self->share = self->exporter.value;
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_WHITELIST, self->share,
			       self->importer.tgid, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_IMPORT, self->share, 0, 0));
	self->in = self->importer.value;
	ASSERT_EQ(0, peer_call(&self->importer, PEER_MAP, self->in, LENGTH, 0));
	self->in_at = self->importer.value;
}

FIXTURE_TEARDOWN(life)
{
	if (self->exporter.pid > 0)
		peer_kill(&self->exporter);
	if (self->importer.pid > 0)
		peer_kill(&self->importer);
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

TEST_F(life, both_see_the_same_memory)
{
	uint64_t read_only;

	ASSERT_EQ(0, peer_call(&self->exporter, PEER_WRITE, self->out_at + 5, 55, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_READ, self->in_at + 5, 0, 0));
	EXPECT_EQ(55, self->importer.value);
	ASSERT_EQ(0, peer_call(&self->importer, PEER_WRITE, self->in_at + LENGTH - 1, 66, 0));
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_READ, self->out_at + LENGTH - 1, 0, 0));
	EXPECT_EQ(66, self->exporter.value);
	/* Sharing takes no more of the device. */
	EXPECT_EQ(self->used + LENGTH, used(self->fd));
	/* A read-only mapping beside the other. */
	ASSERT_EQ(0, peer_call(&self->importer, PEER_MAP, self->in, LENGTH,
			       ACLMEM_MAP_READ_ONLY));
	read_only = self->importer.value;
	EXPECT_EQ(SIGSEGV, peer_call(&self->importer, PEER_WRITE, read_only, 1, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_READ, read_only + 5, 0, 0));
	EXPECT_EQ(55, self->importer.value);
}

/* One of the four holds on the memory ends. */
static int let_go(struct _test_data_life *self, int which)
{
	switch (which) {
	case 0:
		return peer_call(&self->exporter, PEER_UNMAP, self->out_at, LENGTH, 0);
	case 1:
		return peer_call(&self->exporter, PEER_FREE, self->out, 0, 0);
	case 2:
		return peer_call(&self->importer, PEER_UNMAP, self->in_at, LENGTH, 0);
	default:
		return peer_call(&self->importer, PEER_FREE, self->in, 0, 0);
	}
}

static void start_over(struct __test_metadata *_metadata, struct _test_data_life *self)
{
	life_teardown(_metadata, self, NULL);
	memset(self, 0, sizeof(*self));
	life_setup(_metadata, self, NULL);
}

TEST_F_TIMEOUT(life, memory_lives_until_the_last_of_four_holds_ends, 60)
{
	int order[4], i, n;

	for (n = 0; n < 256; n++) {
		for (i = 0; i < 4; i++)
			order[i] = n >> (2 * i) & 3;
		/* Permutations only. */
		if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
			continue;
		ASSERT_EQ(0, peer_call(&self->exporter, PEER_WRITE, self->out_at, n, 0));
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(self->used + LENGTH, used(self->fd));
			ASSERT_EQ(0, let_go(self, order[i]));
		}
		EXPECT_TRUE(used_becomes(self->fd, self->used));
		EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->importer, PEER_IMPORT,
				    self->share, 0, 0);
		start_over(_metadata, self);
	}
}

TEST_F(life, the_importer_reads_on_after_the_exporters_death)
{
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_WRITE, self->out_at + 4096, 44, 0));
	ASSERT_TRUE(peer_kill(&self->exporter));
	self->exporter.pid = 0;
	/* Of a place it hadn't touched before. */
	ASSERT_EQ(0, peer_call(&self->importer, PEER_READ, self->in_at + 4096, 0, 0));
	EXPECT_EQ(44, self->importer.value);
	EXPECT_EQ(self->used + LENGTH, used(self->fd));

	/* Those admitted may come yet. */
	ASSERT_EQ(0, peer_call(&self->importer, PEER_IMPORT, self->share, 0, 0));
	EXPECT_EQ(self->in, self->importer.value);
	EXPECT_PEER_REFUSED(EPERM, NOT_EXPORTER, &self->importer, PEER_WHITELIST,
			    self->share, self->importer.tgid, 0);
	ASSERT_EQ(0, peer_call(&self->importer, PEER_FREE, self->in, 0, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_FREE, self->in, 0, 0));
	EXPECT_EQ(self->used + LENGTH, used(self->fd));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_UNMAP, self->in_at, LENGTH, 0));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->importer, PEER_IMPORT, self->share, 0, 0);
}

TEST_F(life, a_late_importer_comes_after_the_exporters_death)
{
	struct peer late;

	ASSERT_EQ(0, peer_start(&late, 0, 0));
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_WHITELIST, self->share, late.tgid, 0));
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_WRITE, self->out_at, 33, 0));
	ASSERT_TRUE(peer_stop(&self->exporter));
	self->exporter.pid = 0;
	ASSERT_EQ(0, peer_call(&late, PEER_IMPORT, self->share, 0, 0));
	ASSERT_TRUE(peer_kill(&self->importer));
	self->importer.pid = 0;
	ASSERT_EQ(0, peer_call(&late, PEER_MAP, late.value, LENGTH, 0));
	ASSERT_EQ(0, peer_call(&late, PEER_READ, late.value, 0, 0));
	EXPECT_EQ(33, late.value);
	EXPECT_EQ(self->used + LENGTH, used(self->fd));
	EXPECT_TRUE(peer_stop(&late));
}

TEST_F(life, the_importers_death_leaves_the_exporter_alone)
{
	ASSERT_EQ(0, peer_call(&self->importer, PEER_WRITE, self->in_at, 22, 0));
	ASSERT_TRUE(peer_kill(&self->importer));
	self->importer.pid = 0;
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_READ, self->out_at, 0, 0));
	EXPECT_EQ(22, self->exporter.value);
	ASSERT_EQ(0, let_go(self, 1));
	ASSERT_EQ(0, peer_call(&self->exporter, PEER_READ, self->out_at, 0, 0));
	EXPECT_EQ(self->used + LENGTH, used(self->fd));
	ASSERT_EQ(0, let_go(self, 0));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(life, a_share_that_nobody_holds_is_unknown)
{
	ASSERT_EQ(0, let_go(self, 2));
	ASSERT_EQ(0, let_go(self, 3));
	/* The exporter holds it yet: importable again. */
	ASSERT_EQ(0, peer_call(&self->importer, PEER_IMPORT, self->share, 0, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_FREE, self->importer.value, 0, 0));
	ASSERT_EQ(0, let_go(self, 1));
	/* By its mapping alone, too. */
	ASSERT_EQ(0, peer_call(&self->importer, PEER_IMPORT, self->share, 0, 0));
	ASSERT_EQ(0, peer_call(&self->importer, PEER_FREE, self->importer.value, 0, 0));
	ASSERT_EQ(0, let_go(self, 0));
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->importer, PEER_IMPORT, self->share, 0, 0);
	EXPECT_PEER_REFUSED(ENOENT, SHARE, &self->exporter, PEER_WHITELIST,
			    self->share, self->importer.tgid, 0);
	EXPECT_EQ(self->used, used(self->fd));
}

/* Export, import, map, unmap, free: no descriptor and no object stays. */
TEST_F_TIMEOUT(life, rounds_of_sharing_leave_nothing, 60)
{
	struct peer *out = &self->exporter, *in = &self->importer;
	unsigned int i, count = rounds(200);
	uint64_t handle, imported, at, share, descriptors, whole;

	ASSERT_EQ(0, peer_call(out, PEER_LIMIT, 64, 0, 0));
	ASSERT_EQ(0, peer_call(in, PEER_LIMIT, 64, 0, 0));
	ASSERT_EQ(0, peer_call(in, PEER_DESCRIPTORS, 0, 0, 0));
	descriptors = in->value;
	whole = used(self->fd);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, peer_call(out, PEER_ALLOC, GRANULE, 0, 0));
		handle = out->value;
		ASSERT_EQ(0, peer_call(out, PEER_EXPORT, handle, 0, 0));
		share = out->value;
		ASSERT_EQ(0, peer_call(out, PEER_WHITELIST, share, in->tgid, 0));
		ASSERT_EQ(0, peer_call(in, PEER_IMPORT, share, 0, 0));
		imported = in->value;
		ASSERT_EQ(0, peer_call(in, PEER_MAP, imported, GRANULE, 0));
		at = in->value;
		ASSERT_EQ(0, peer_call(in, PEER_WRITE, at, 1, 0));
		if (i % 2)
			ASSERT_EQ(0, peer_call(out, PEER_FREE, handle, 0, 0));
		ASSERT_EQ(0, peer_call(in, PEER_FREE, imported, 0, 0));
		ASSERT_EQ(0, peer_call(in, PEER_UNMAP, at, GRANULE, 0));
		if (i % 2 == 0)
			ASSERT_EQ(0, peer_call(out, PEER_FREE, handle, 0, 0));
		ASSERT_EQ(whole, used(self->fd));
	}
	ASSERT_EQ(0, peer_call(in, PEER_DESCRIPTORS, 0, 0, 0));
	EXPECT_EQ(descriptors, in->value);
}

TEST_HARNESS_MAIN
