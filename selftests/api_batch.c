// SPDX-License-Identifier: GPL-2.0-only
/*
 * aclrtMemcpyBatch(): each rule with its code and index, the order of the rules,
 * and that nothing is copied if one is broken. What it copies is in
 * api_batch_data.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_fixture.h"

#define ITEMS 8
#define ITEM 4096UL
#define MOST 4096UL

/* Eight items from the host to device 0, which are right as they are. */
FIXTURE(batch)
{
	int fd;
	uint64_t used;
	unsigned char *dev;	/* a granule, with none behind it */
	unsigned char *host;
	void *reserved;
	void *dsts[ITEMS + 1];
	size_t maxs[ITEMS + 1];
	void *srcs[ITEMS + 1];
	size_t sizes[ITEMS + 1];
	size_t count;
	aclrtMemcpyBatchAttr attrs[ITEMS + 1];
	size_t indexes[ITEMS + 1];
	size_t attr_count;
	size_t fail;
};

static const aclrtMemcpyBatchAttr upload = {
	.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	.srcLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST },
};

static const aclrtMemcpyBatchAttr download = {
	.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST },
	.srcLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
};

/* Everything right, and the memory as nobody copied. */
static void make_right(FIXTURE_DATA(batch) * self)
{
	size_t i;

	for (i = 0; i <= ITEMS; i++) {
		self->dsts[i] = self->dev + i * ITEM;
		self->srcs[i] = self->host + i * ITEM;
		self->maxs[i] = ITEM;
		self->sizes[i] = ITEM;
		self->attrs[i] = upload;
		self->indexes[i] = i;
	}
	self->count = ITEMS;
	self->attr_count = 1;
	memset(self->dev, 0xdd, GRANULE);
	memset(self->host, 0x11, GRANULE);
}

FIXTURE_SETUP(batch)
{
	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
	/* The one that's made later is below the other, in general. */
	ASSERT_EQ(0, aclrtReserveMemAddress(&self->reserved, 2 * GRANULE, 0, NULL, 0));
	self->dev = new_mapping(GRANULE, 0);
	ASSERT_NE(NULL, self->dev);
	self->host = malloc(GRANULE);
	ASSERT_NE(NULL, self->host);
	make_right(self);
}

FIXTURE_TEARDOWN(batch)
{
	free(self->host);
	EXPECT_EQ(0, end_mapping(self->dev));
	EXPECT_EQ(0, aclrtReleaseMemAddress(self->reserved));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

static aclError run(FIXTURE_DATA(batch) * self)
{
	forget_failure();
	self->fail = UNTOUCHED_SIZE;
	return aclrtMemcpyBatch(self->dsts, self->maxs, self->srcs, self->sizes, self->count,
				self->attrs, self->indexes, self->attr_count, &self->fail);
}

static bool untouched(FIXTURE_DATA(batch) * self)
{
	return byte_differs(self->dev, GRANULE, 0xdd) == -1 &&
	       byte_differs(self->host, GRANULE, 0x11) == -1;
}

/* It fails with this code and index, nothing is copied; then all is right again. */
#define EXPECT_BATCH(code, index, words) do { \
	EXPECT_EQ(code, run(self)); \
	EXPECT_EQ(index, self->fail); \
	EXPECT_STREQ("", complaint(code, "aclrtMemcpyBatch", words)); \
	EXPECT_TRUE(untouched(self)); \
	make_right(self); \
} while (0)

TEST_F(batch, null_is_refused_in_order)
{
	size_t zero[2] = {}, fail = UNTOUCHED_SIZE;
	void **dsts = self->dsts, **srcs = self->srcs;
	size_t *maxs = self->maxs, *sizes = self->sizes;
	aclrtMemcpyBatchAttr *attrs = self->attrs;

#define REFUSED(words, ...) \
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, words, aclrtMemcpyBatch(__VA_ARGS__))
	REFUSED("failIndex|NULL", NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL);
	REFUSED("failIndex|NULL", dsts, maxs, srcs, zero, 2, attrs, zero, 1, NULL);
	REFUSED("sizes|NULL", NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &fail);
	REFUSED("numBatches|0", NULL, NULL, NULL, sizes, 0, NULL, NULL, 0, &fail);
	REFUSED("dsts|NULL", NULL, NULL, NULL, sizes, 8, NULL, NULL, 0, &fail);
	REFUSED("destMaxs|NULL", dsts, NULL, NULL, sizes, 8, NULL, NULL, 0, &fail);
	REFUSED("srcs|NULL", dsts, maxs, NULL, sizes, 8, NULL, NULL, 0, &fail);
	REFUSED("attrs |NULL", dsts, maxs, srcs, sizes, 8, NULL, NULL, 0, &fail);
	maxs[0] = 0;
	REFUSED("attrsIndexes|NULL", dsts, maxs, srcs, sizes, 8, attrs, NULL, 0, &fail);
	REFUSED("attrs |NULL", dsts, maxs, srcs, sizes, 8, NULL, zero, 1, &fail);
#undef REFUSED
	EXPECT_EQ(UNTOUCHED_SIZE, fail);
	EXPECT_TRUE(untouched(self));
}

TEST_F(batch, nothing_to_copy_succeeds_whatever_the_rest_is)
{
	size_t *zero = calloc(2 * MOST, sizeof(*zero)), fail = 0;

	ASSERT_NE(NULL, zero);
	EXPECT_EQ(0, aclrtMemcpyBatch(NULL, NULL, NULL, zero, 1, NULL, NULL, 0, &fail));
	EXPECT_EQ(SIZE_MAX, fail);
	fail = 0;
	EXPECT_EQ(0, aclrtMemcpyBatch(NULL, NULL, NULL, zero, 2 * MOST, NULL, NULL, 9, &fail));
	EXPECT_EQ(SIZE_MAX, fail);
	free(zero);
}

TEST_F(batch, every_item_has_to_fit)
{
	self->maxs[5] = ITEM - 1;
	EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "destMax|5|4095|4096");
	self->maxs[7] = 0;
	EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "destMax|7");
	/* Before the attributes are looked at. */
	self->maxs[0] = ITEM - 1;
	self->attrs[0].rsv[0] = 1;
	self->attr_count = 0;
	EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "destMax");
}

TEST_F(batch, reserved_bytes_of_attributes_are_zero)
{
	int i;

	for (i = 0; i < 16; i++) {
		self->attrs[0].rsv[i] = 0x80;
		EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "rsv|0");
	}
	self->attr_count = 3;
	self->attrs[2].rsv[15] = 1;
	EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "rsv|2");
	/* Also before their number is looked at; but only those that count. */
	self->attr_count = ITEMS + 1;
	self->attrs[ITEMS].rsv[0] = 1;
	EXPECT_BATCH(ACL_ERROR_INVALID_PARAM, UNTOUCHED_SIZE, "rsv|8");
	self->attrs[1].rsv[0] = 1;
	EXPECT_EQ(0, run(self));
	EXPECT_EQ(SIZE_MAX, self->fail);
}

TEST_F(batch, numbers_of_attributes_and_items_are_limited)
{
	self->attr_count = 0;
	self->dsts[0] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "numAttrs|0");
	self->attr_count = ITEMS + 1;
	self->dsts[0] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "numAttrs|9|8");
}

TEST_F(batch, indexes_begin_with_0_and_increase_below_the_items)
{
	static const struct {
		size_t count;
		size_t indexes[4];
	} bad[] = {
		{ 1, { 1 } }, { 1, { SIZE_MAX } }, { 2, { 0, 0 } }, { 2, { 3, 0 } },
		{ 3, { 0, 3, 2 } }, { 3, { 0, 3, 3 } }, { 2, { 0, ITEMS } }, { 2, { 0, SIZE_MAX } },
		{ 4, { 0, 1, 2, ITEMS } }, { 4, { 0, 5, 6, 1 } }, { 2, { 0, (size_t)1 << 32 } },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(self->indexes, bad[i].indexes, sizeof(bad[i].indexes));
		self->attr_count = bad[i].count;
		/* Before the items are looked at. */
		self->dsts[0] = NULL;
		EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "attrsIndexes");
	}
}

TEST_F(batch, four_thousand_and_ninety_six_items_are_the_most)
{
	size_t n = MOST + 1, i, fail = UNTOUCHED_SIZE, *ones;
	void **dsts, **srcs;

	dsts = calloc(n, sizeof(*dsts));
	srcs = calloc(n, sizeof(*srcs));
	ones = calloc(n, sizeof(*ones));
	ASSERT_NE(NULL, dsts);
	ASSERT_NE(NULL, srcs);
	ASSERT_NE(NULL, ones);
	for (i = 0; i < n; i++) {
		dsts[i] = self->dev + 2 * i;
		srcs[i] = self->host + i;
		ones[i] = 1;
		self->host[i] = i * 7;
	}
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "numBatches|4097|4096",
		     aclrtMemcpyBatch(dsts, ones, srcs, ones, n, self->attrs, self->indexes, 1,
				      &fail));
	EXPECT_EQ(SIZE_MAX, fail);
	EXPECT_EQ(-1, byte_differs(self->dev, GRANULE, 0xdd));
	fail = UNTOUCHED_SIZE;
	EXPECT_EQ(0, aclrtMemcpyBatch(dsts, ones, srcs, ones, MOST, self->attrs, self->indexes, 1,
				      &fail));
	EXPECT_EQ(SIZE_MAX, fail);
	for (i = 0; i < MOST; i++) {
		ASSERT_EQ((unsigned char)(i * 7), self->dev[2 * i]);
		ASSERT_EQ(0xdd, self->dev[2 * i + 1]);
	}
	free(dsts);
	free(srcs);
	free(ones);
}

TEST_F(batch, no_address_is_null)
{
	self->dsts[5] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 5, "5|NULL");
	self->srcs[6] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 6, "6|NULL");
	self->dsts[0] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0|NULL");
}

TEST_F(batch, device_addresses_have_memory)
{
	self->dsts[5] = self->reserved;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, 5, "5");
	self->dsts[7] = self->reserved + GRANULE + 1;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, 7, "7");
	self->srcs[2] = self->reserved;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, 2, "2");
	/* The destination is looked at before the source. */
	self->dsts[3] = self->reserved;
	self->srcs[3] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, 3, "3");
	self->dsts[3] = NULL;
	self->srcs[3] = self->reserved;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 3, "3|NULL");
}

TEST_F(batch, items_are_where_their_attribute_says)
{
	/* The wrong way round, on either side. */
	self->dsts[5] = self->host + 5 * ITEM;
	self->srcs[5] = self->dev + 5 * ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 5, "5");
	self->dsts[4] = self->host + 100 * ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 4, "4");
	self->srcs[0] = self->dev + 100 * ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");
	/* The first that's wrong. */
	self->srcs[5] = self->dev;
	self->srcs[3] = self->dev;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 3, "3");
	/* By its own attribute. */
	self->attr_count = 2;
	self->indexes[1] = 6;
	self->attrs[1] = download;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 6, "6");
}

TEST_F(batch, attributes_name_devices_and_types)
{
	static const int never[] = { ACL_MEM_LOCATION_TYPE_UNREGISTERED,
				     ACL_MEM_LOCATION_TYPE_MANAGED, 5, -1 };
	size_t i;

	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		self->attrs[0].dstLoc.type = never[i];
		EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");
		self->attrs[0].srcLoc.type = never[i];
		EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");
	}
	self->attrs[0].dstLoc.id = 1;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");
	self->attrs[0].dstLoc.id = ~0U;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");

	/* The host has no id, and no nodes either. */
	self->attrs[0].srcLoc.id = 77;
	EXPECT_EQ(0, run(self));
	EXPECT_EQ(-1, byte_differs(self->dev, ITEMS * ITEM, 0x11));
	make_right(self);
	self->attrs[0].srcLoc.id = 77;
	self->attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	EXPECT_EQ(0, run(self));
	EXPECT_EQ(-1, byte_differs(self->dev, ITEMS * ITEM, 0x11));
}

TEST_F(batch, items_copy_between_host_and_device)
{
	/* Both ends are where the attribute says, which is on one side. */
	self->attr_count = 2;
	self->indexes[1] = 3;
	self->attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
	self->dsts[3] = self->host + 100 * ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 3, "3");
	self->attr_count = 2;
	self->indexes[1] = 7;
	self->attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	self->srcs[7] = self->dev + 100 * ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 7, "7");

	/* All rules of an item before any of the next. */
	self->attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
	self->dsts[0] = self->host + 100 * ITEM;
	self->dsts[1] = NULL;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 0, "0");
	self->attr_count = 2;
	self->indexes[1] = 3;
	self->attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
	self->dsts[3] = self->host + 100 * ITEM;
	self->srcs[1] = self->reserved;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, 1, "1");
}

TEST_F(batch, no_item_is_empty_unless_all_are)
{
	self->sizes[2] = 0;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "0");
	memset(self->sizes, 0, sizeof(self->sizes));
	self->sizes[7] = 1;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "0");
	/* After where they are, before which way they go and how far. */
	self->sizes[2] = 0;
	self->srcs[5] = self->dev;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 5, "5");
	self->sizes[2] = 0;
	self->attr_count = 2;
	self->indexes[1] = 4;
	self->attrs[1] = download;
	memcpy(&self->dsts[4], &self->srcs[4], 4 * sizeof(void *));
	memcpy(&self->srcs[4], &self->dsts[0], 4 * sizeof(void *));
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "0");
	self->sizes[7] = 0;
	self->dsts[0] = self->dev + GRANULE - 1;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX, "0");
}

TEST_F(batch, all_items_go_one_way)
{
	/* Each as its own attribute says. */
	self->attr_count = 2;
	self->indexes[1] = 4;
	self->attrs[1] = download;
	memcpy(&self->dsts[4], &self->srcs[4], 4 * sizeof(void *));
	memcpy(&self->srcs[4], &self->dsts[0], 4 * sizeof(void *));
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, SIZE_MAX, "4");
}

TEST_F(batch, all_items_use_one_device)
{
	unsigned char *other;
	uint32_t devices;

	ASSERT_EQ(0, aclrtGetDeviceCount(&devices));
	if (devices < 2)
		SKIP(return, "%s: needs two devices", _metadata->name);
	ASSERT_EQ(0, aclrtSetDevice(1));
	other = new_mapping(GRANULE, 1);
	ASSERT_NE(NULL, other);
	memset(other, 0xee, GRANULE);
	self->attr_count = 2;
	self->indexes[1] = 6;
	self->attrs[1].dstLoc.id = 1;
	self->dsts[6] = other;
	self->dsts[7] = other + ITEM;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, SIZE_MAX, "6");
	EXPECT_EQ(-1, byte_differs(other, GRANULE, 0xee));
	/* The attribute names device 0. */
	self->dsts[6] = other;
	EXPECT_BATCH(ACL_ERROR_RT_PARAM_INVALID, 6, "6");
	EXPECT_EQ(-1, byte_differs(other, GRANULE, 0xee));
	EXPECT_EQ(0, end_mapping(other));
}

TEST_F(batch, no_item_leaves_its_memory)
{
	void *none;

	self->dsts[5] = self->dev + GRANULE - ITEM + 1;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, SIZE_MAX, "5");
	self->sizes[7] = SIZE_MAX;
	self->maxs[7] = SIZE_MAX;
	EXPECT_BATCH(ACL_ERROR_RT_DRV_INTERNAL_ERROR, SIZE_MAX, "7");

	/* The host's memory is found out about while copying. */
	none = mmap(NULL, ITEM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	self->srcs[6] = none;
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR, run(self));
	EXPECT_EQ(SIZE_MAX, self->fail);
	EXPECT_STREQ("", complaint(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "aclrtMemcpyBatch", "6"));
	EXPECT_EQ(-1, byte_differs(self->dsts[6], ITEM, 0xdd));
	EXPECT_EQ(0, munmap(none, ITEM));
}

TEST(a_batch_needs_a_device_used_at_some_time)
{
	unsigned char bytes[2] = { 1, 2 };
	void *dst = &bytes[0], *src = &bytes[1];
	aclrtMemcpyBatchAttr attr = upload;
	size_t one = 1, index = 0, fail = UNTOUCHED_SIZE;
	int fd = open_device();

	REQUIRE_CLIENT(fd);
	close(fd);
	EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, "0|aclrtSetDevice",
		     aclrtMemcpyBatch(&dst, &one, &src, &one, 1, &attr, &index, 1, &fail));
	EXPECT_EQ(0, fail);
	EXPECT_EQ(1, bytes[0]);
	/* What comes before comes before. */
	dst = NULL;
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "0|NULL",
		     aclrtMemcpyBatch(&dst, &one, &src, &one, 1, &attr, &index, 1, &fail));
	EXPECT_EQ(0, fail);
	index = 1;
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "attrsIndexes",
		     aclrtMemcpyBatch(&dst, &one, &src, &one, 1, &attr, &index, 1, &fail));
	EXPECT_EQ(SIZE_MAX, fail);
}

TEST_HARNESS_MAIN
