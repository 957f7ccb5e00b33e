// SPDX-License-Identifier: GPL-2.0-only
/*
 * What aclrtMemcpyBatch() copies, how it reads its arrays, and from several
 * threads. What it refuses is in api_batch.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"

#define MOST 4096UL
#define ROOM (16 * MIB)

/* Four handles of 4 MiB side by side on device 0, and as much of the host. */
FIXTURE(data)
{
	int fd;
	uint64_t used;
	unsigned char *dev;
	unsigned char *host;
	void *dsts[MOST];
	void *srcs[MOST];
	size_t sizes[MOST];
	size_t maxs[MOST];
	aclrtMemcpyBatchAttr attrs[MOST];
	size_t indexes[MOST];
	size_t fail;
};

static const aclrtMemLocation host_location = { .type = ACL_MEM_LOCATION_TYPE_HOST };
static const aclrtMemLocation dev_location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE };

FIXTURE_SETUP(data)
{
	aclrtDrvMemHandle handle;
	void *address;
	size_t at;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, ROOM, 0, NULL, 0));
	self->dev = address;
	for (at = 0; at < ROOM; at += 4 * MIB) {
		ASSERT_EQ(0, new_memory(&handle, 4 * MIB, 0));
		ASSERT_EQ(0, aclrtMapMem(self->dev + at, 4 * MIB, 0, handle, 0));
		ASSERT_EQ(0, aclrtFreePhysical(handle));
	}
	self->host = malloc(ROOM);
	ASSERT_NE(NULL, self->host);
	self->attrs[0].dstLoc = dev_location;
	self->attrs[0].srcLoc = host_location;
}

FIXTURE_TEARDOWN(data)
{
	size_t at;

	free(self->host);
	for (at = 0; at < ROOM; at += 4 * MIB)
		EXPECT_EQ(0, aclrtUnmapMem(self->dev + at));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->dev));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

static aclError run(FIXTURE_DATA(data) * self, size_t count, size_t attrs)
{
	self->fail = UNTOUCHED_SIZE;
	return aclrtMemcpyBatch(self->dsts, self->maxs, self->srcs, self->sizes, count,
				self->attrs, self->indexes, attrs, &self->fail);
}

/* Items of awkward sizes, with gaps between them, in no order of addresses. */
static void scatter(FIXTURE_DATA(data) * self, unsigned char *to, unsigned char *from,
		    size_t count)
{
	size_t slot = ROOM / count, i, place;

	for (i = 0; i < count; i++) {
		place = (i * 1031 + 7) % count;
		self->sizes[i] = 1 + (i * 2654435761UL) % (slot - 2);
		self->maxs[i] = self->sizes[i] + i % 3;
		self->srcs[i] = from + i * slot + i % 2;
		self->dsts[i] = to + place * slot + (slot - self->sizes[i]) / 2;
	}
}

/* Every item arrived, and nothing else changed from the value. */
static bool arrived(FIXTURE_DATA(data) * self, unsigned char *to, size_t count,
		    unsigned char value)
{
	bool right = true;
	size_t i;

	for (i = 0; i < count; i++) {
		right = right && !memcmp(self->dsts[i], self->srcs[i], self->sizes[i]);
		memset(self->dsts[i], value, self->sizes[i]);
	}
	return right && byte_differs(to, ROOM, value) == -1;
}

TEST_F(data, goes_from_the_host_to_a_device)
{
	pattern_set(self->host, ROOM, 1);
	memset(self->dev, 0xaa, ROOM);
	scatter(self, self->dev, self->host, MOST);
	EXPECT_EQ(0, run(self, MOST, 1));
	EXPECT_EQ(SIZE_MAX, self->fail);
	EXPECT_TRUE(arrived(self, self->dev, MOST, 0xaa));
}

TEST_F(data, goes_from_a_device_to_the_host)
{
	pattern_set(self->dev, ROOM, 2);
	memset(self->host, 0xbb, ROOM);
	scatter(self, self->host, self->dev, MOST);
	self->attrs[0].dstLoc = host_location;
	self->attrs[0].srcLoc = dev_location;
	EXPECT_EQ(0, run(self, MOST, 1));
	EXPECT_EQ(SIZE_MAX, self->fail);
	EXPECT_TRUE(arrived(self, self->host, MOST, 0xbb));
}

/* Three items, each across a seam or two, to an end that is exactly there. */
TEST_F(data, goes_across_adjacent_mappings)
{
	pattern_set(self->host, ROOM, 3);
	memset(self->dev, 0xaa, ROOM);
	scatter(self, self->dev, self->host, 3);
	self->dsts[0] = self->dev + 4 * MIB - 5;
	self->sizes[0] = 11;
	self->dsts[1] = self->dev + 5 * MIB + 3;
	self->sizes[1] = 5 * MIB;
	self->dsts[2] = self->dev + 11 * MIB + 1;
	self->sizes[2] = 5 * MIB - 1;
	self->srcs[1] = self->host + 1;
	self->srcs[2] = self->host + ROOM - self->sizes[2];
	memcpy(self->maxs, self->sizes, 3 * sizeof(size_t));
	EXPECT_EQ(0, run(self, 3, 1));
	EXPECT_TRUE(arrived(self, self->dev, 3, 0xaa));
}

TEST_F(data, may_have_an_attribute_for_each_item_or_for_ranges)
{
	size_t i;

	pattern_set(self->host, ROOM, 4);
	memset(self->dev, 0xaa, ROOM);
	scatter(self, self->dev, self->host, MOST);
	for (i = 0; i < MOST; i++) {
		self->attrs[i] = self->attrs[0];
		self->attrs[i].srcLoc.id = i;
		self->indexes[i] = i;
	}
	EXPECT_EQ(0, run(self, MOST, MOST));
	EXPECT_EQ(SIZE_MAX, self->fail);
	EXPECT_TRUE(arrived(self, self->dev, MOST, 0xaa));

	scatter(self, self->dev, self->host, 8);
	self->indexes[1] = 3;
	EXPECT_EQ(0, run(self, 8, 2));
	EXPECT_EQ(SIZE_MAX, self->fail);
	EXPECT_TRUE(arrived(self, self->dev, 8, 0xaa));
}

/* The array of indexes has as many entries as attributes: one is read, not more. */
TEST_F(data, reads_no_entry_behind_the_arrays)
{
	size_t i, page = sysconf(_SC_PAGESIZE), room = 9 * page;
	unsigned char *at[6];
	aclrtMemcpyBatchAttr *attr;
	size_t fail = 0;

	pattern_set(self->host, ROOM, 5);
	memset(self->dev, 0xaa, ROOM);
	scatter(self, self->dev, self->host, MOST);
	/* Each array ends where a page begins that can't be accessed. */
	for (i = 0; i < 6; i++) {
		at[i] = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, at[i]);
		ASSERT_EQ(0, mprotect(at[i] + room, page, PROT_NONE));
		at[i] += room;
	}
	for (i = 0; i < 4; i++)
		at[i] -= MOST * 8;
	memcpy(at[0], self->dsts, MOST * 8);
	memcpy(at[1], self->maxs, MOST * 8);
	memcpy(at[2], self->srcs, MOST * 8);
	memcpy(at[3], self->sizes, MOST * 8);
	attr = (aclrtMemcpyBatchAttr *)at[4] - 1;
	*attr = self->attrs[0];
	/* Fresh pages are zero. Nothing is written either. */
	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, mprotect((void *)(((uintptr_t)at[i] - 1) & -page), page, PROT_READ));
	EXPECT_EQ(0, aclrtMemcpyBatch((void **)at[0], (size_t *)at[1], (void **)at[2],
				      (size_t *)at[3], MOST, attr, (size_t *)at[5] - 1, 1, &fail));
	EXPECT_EQ(SIZE_MAX, fail);
	EXPECT_TRUE(arrived(self, self->dev, MOST, 0xaa));
}

TEST_F(data, may_be_pinned_or_physical_memory_of_the_host)
{
	aclrtPhysicalMemProp prop = memory_of(0);
	aclrtDrvMemHandle handle;
	unsigned char *physical;
	void *pinned;

	prop.location = host_location;
	ASSERT_EQ(0, aclrtMallocPhysical(&handle, GRANULE, &prop, 0));
	physical = map_memory(handle, GRANULE);
	ASSERT_NE(NULL, physical);
	ASSERT_EQ(0, aclrtMallocHost(&pinned, 4096));
	pattern_set(physical, GRANULE, 6);
	pattern_set(pinned, 4096, 7);
	self->srcs[0] = physical + 1;
	self->srcs[1] = pinned;
	self->dsts[0] = self->dev;
	self->dsts[1] = self->dev + GRANULE;
	self->sizes[0] = GRANULE - 1;
	self->sizes[1] = 4096;
	memcpy(self->maxs, self->sizes, 2 * sizeof(size_t));
	EXPECT_EQ(0, run(self, 2, 1));
	EXPECT_EQ(0, memcmp(self->dev, physical + 1, GRANULE - 1));
	EXPECT_EQ(0, memcmp(self->dev + GRANULE, pinned, 4096));

	/* It is the host, not a device. */
	self->dsts[1] = physical;
	EXPECT_EQ(ACL_ERROR_RT_PARAM_INVALID, run(self, 2, 1));
	EXPECT_EQ(1, self->fail);
	EXPECT_EQ(-1, pattern_differs(physical, GRANULE, 6));
	EXPECT_EQ(0, end_mapping(physical));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	EXPECT_EQ(0, aclrtFreeHost(pinned));
}

struct batcher {
	unsigned char *dev;
	unsigned char *host;
	aclrtMemcpyBatchAttr attr;
	size_t wrong;
};

#define ITEMS 256

/* Each thread in its own quarter, in a thread without a context. */
static void *copy_in_batches(void *data)
{
	struct batcher *own = data;
	size_t sizes[ITEMS], index = 0, fail, i;
	void *dsts[ITEMS], *srcs[ITEMS];
	unsigned int round;

	for (i = 0; i < ITEMS; i++) {
		dsts[i] = own->dev + i * 16384;
		srcs[i] = own->host + (ITEMS - 1 - i) * 16384;
		sizes[i] = 16384 - i;
	}
	for (round = 0; round < rounds(20); round++) {
		memset(own->host, round, 4 * MIB);
		own->wrong += aclrtMemcpyBatch(dsts, sizes, srcs, sizes, ITEMS, &own->attr,
					       &index, 1, &fail) != 0;
		for (i = 0; i < ITEMS; i++)
			own->wrong += byte_differs(dsts[i], sizes[i], round) != -1;
	}
	return NULL;
}

TEST_F(data, goes_in_batches_of_several_threads)
{
	struct batcher batchers[4] = {};
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++) {
		batchers[i].dev = self->dev + i * 4 * MIB;
		batchers[i].host = self->host + i * 4 * MIB;
		batchers[i].attr = self->attrs[0];
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, copy_in_batches, &batchers[i]));
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, batchers[i].wrong);
	}
}

TEST_HARNESS_MAIN
