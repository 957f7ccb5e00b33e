// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules of ACLMEM_COPY and ACLMEM_FILL: each refusal with its reason, the item
 * it is about, and no byte moved.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fixture.h"

/*
 * A reservation of device 0 with two mappings, a hole, and a read-only mapping;
 * one of device 1; plain memory.
 */
FIXTURE(copy)
{
	int fd;
	struct aclmem_query query;
	unsigned char *device;
	unsigned char *hole;
	unsigned char *read_only;
	unsigned char *other;
	unsigned char *host;
};

FIXTURE_SETUP(copy)
{
	uint32_t handle;
	int i;

	catch_faults();
	self->fd = open_client(&self->query);
	REQUIRE_CLIENT(self->fd);
	self->device = reserve(self->fd, 5 * GRANULE);
	ASSERT_NE(MAP_FAILED, (void *)self->device);
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, map(self->fd, handle, self->device + i * GRANULE, GRANULE, 0));
		ASSERT_EQ(0, free_handle(self->fd, handle));
		ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	}
	self->hole = self->device + 2 * GRANULE;
	self->read_only = self->device + 3 * GRANULE;
	ASSERT_EQ(0, map(self->fd, handle, self->read_only, GRANULE, ACLMEM_MAP_READ_ONLY));
	if (self->query.out_devices > 1) {
		ASSERT_EQ(0, alloc(self->fd, 1, GRANULE, &handle));
		self->other = reserve(self->fd, GRANULE);
		ASSERT_EQ(0, map(self->fd, handle, self->other, GRANULE, 0));
	}
	self->host = mmap(NULL, 2 * GRANULE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->host);
	memset(self->host, 0x11, GRANULE);
}

FIXTURE_TEARDOWN(copy)
{
	close(self->fd);
}

/* Good items before and after the one in question: none of them may be done. */
struct items {
	uint64_t dst[5], src[5], length[5];
};

static void fill_items(struct items *items, struct _test_data_copy *self)
{
	int i;

	for (i = 0; i < 5; i++) {
		items->dst[i] = (uintptr_t)self->device + i * 8192;
		items->src[i] = (uintptr_t)self->host + i * 8192;
		items->length[i] = 4096;
	}
}

static int copy_all(int fd, struct items *items)
{
	return copy_items(fd, items->dst, items->src, items->length, 5, NULL);
}

#define EXPECT_ITEM_REFUSED(error, reason, value, index, call) do {	\
	EXPECT_REFUSED(error, reason, call);				\
	EXPECT_EQ((uint64_t)(value), last.out_value);			\
	EXPECT_EQ((uint64_t)(index), last.out_index);			\
	EXPECT_EQ(-1, byte_differs(self->device, 2 * GRANULE, 0));	\
} while (0)

TEST_F(copy, addresses_are_checked_item_by_item)
{
	struct items items;
	uint64_t end;

	fill_items(&items, self);
	items.dst[3] = 0;
	EXPECT_ITEM_REFUSED(EINVAL, ADDRESS_NULL, 0, 3, copy_all(self->fd, &items));
	fill_items(&items, self);
	items.src[2] = 0;
	EXPECT_ITEM_REFUSED(EINVAL, ADDRESS_NULL, 1, 2, copy_all(self->fd, &items));

	/* Not of user space, and around the end of all numbers. */
	fill_items(&items, self);
	items.src[1] = 0xffff888000000000ULL;
	EXPECT_ITEM_REFUSED(EFAULT, ADDRESS_RANGE, items.src[1], 1, copy_all(self->fd, &items));
	fill_items(&items, self);
	items.dst[4] = -4096ULL;
	items.src[4] = (uintptr_t)self->device;
	items.length[4] = 8192;
	EXPECT_ITEM_REFUSED(EFAULT, ADDRESS_RANGE, items.dst[4], 4, copy_all(self->fd, &items));
	fill_items(&items, self);
	items.length[0] = ~0ULL;
	EXPECT_ITEM_REFUSED(ENXIO, DEVICE_END, (uintptr_t)self->hole, 0,
			    copy_all(self->fd, &items));

	fill_items(&items, self);
	items.dst[4] = (uintptr_t)self->hole + 12;
	EXPECT_ITEM_REFUSED(ENXIO, UNMAPPED, items.dst[4], 4, copy_all(self->fd, &items));
	fill_items(&items, self);
	items.dst[0] = (uintptr_t)self->hole - 4095;
	EXPECT_ITEM_REFUSED(ENXIO, DEVICE_END, (uintptr_t)self->hole, 0,
			    copy_all(self->fd, &items));
	/* As a source, and at the end of the reservation. */
	end = (uintptr_t)self->read_only + GRANULE;
	fill_items(&items, self);
	items.src[2] = end - 1;
	items.dst[2] = (uintptr_t)self->host;
	EXPECT_ITEM_REFUSED(ENXIO, DEVICE_END, end, 2, copy_all(self->fd, &items));
}

TEST_F(copy, read_only_memory_is_a_source_only)
{
	struct items items;

	fill_items(&items, self);
	items.dst[3] = (uintptr_t)self->read_only + 8;
	EXPECT_ITEM_REFUSED(EROFS, READ_ONLY, items.dst[3], 3, copy_all(self->fd, &items));
	EXPECT_EQ(-1, byte_differs(self->read_only, GRANULE, 0));
	fill_items(&items, self);
	items.dst[3] = (uintptr_t)self->host + 8;
	items.src[3] = (uintptr_t)self->read_only + 8;
	EXPECT_EQ(0, copy_all(self->fd, &items));
	EXPECT_EQ(0x11, self->host[7]);
	EXPECT_EQ(-1, byte_differs(self->host + 8, 4096, 0));
}

TEST_F(copy, plain_memory_on_both_ends_needs_no_kernel)
{
	struct items items;

	fill_items(&items, self);
	items.dst[2] = (uintptr_t)self->host + GRANULE;
	EXPECT_ITEM_REFUSED(EINVAL, HOST_TO_HOST, 0, 2, copy_all(self->fd, &items));
	EXPECT_EQ(0, self->host[GRANULE]);
}

TEST_F(copy, counts_and_arrays_are_checked)
{
	uint32_t limit = self->query.out_max_items;
	struct items items;
	struct aclmem_copy arg = {
		.dst = (uintptr_t)items.dst,
		.src = (uintptr_t)items.src,
		.length = (uintptr_t)items.length,
	};
	char *page;

	fill_items(&items, self);
	EXPECT_ITEM_REFUSED(EINVAL, ITEM_COUNT, limit, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	arg.count = limit + 1;
	EXPECT_ITEM_REFUSED(E2BIG, ITEM_COUNT, limit, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	arg.count = ~0U;
	EXPECT_ITEM_REFUSED(E2BIG, ITEM_COUNT, limit, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));

	arg.count = 5;
	arg.attr_count = 1;
	EXPECT_EQ(-EINVAL, command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	EXPECT_EQ(-1, byte_differs(self->device, GRANULE, 0));
	arg.attr_count = 0;

	/* An array that ends too early, at a page's end. */
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, mprotect(page + 4096, 4096, PROT_NONE));
	memcpy(page + 4096 - 32, items.src, 32);
	arg.src = (uintptr_t)page + 4096 - 32;
	EXPECT_ITEM_REFUSED(EFAULT, ARRAY, arg.src, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	arg.count = 4;
	EXPECT_EQ(0, command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	EXPECT_EQ(4 * 4096, arg.out_bytes);
	memset(self->device, 0, GRANULE);
	arg.src = (uintptr_t)items.src;
	arg.length = 0;
	EXPECT_ITEM_REFUSED(EFAULT, ARRAY, 0, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
	arg.length = (uintptr_t)items.length;
	arg.dst = 0xffff888000000000ULL;
	EXPECT_ITEM_REFUSED(EFAULT, ARRAY, arg.dst, 0,
			    command(self->fd, ACLMEM_COPY, &arg, sizeof(arg)));
}

TEST_F(copy, empty_items_are_skipped)
{
	struct items items;
	uint64_t bytes;

	fill_items(&items, self);
	items.length[1] = 0;
	items.length[3] = 0;
	EXPECT_EQ(0, copy_items(self->fd, items.dst, items.src, items.length, 5, &bytes));
	EXPECT_EQ(3 * 4096, bytes);
	EXPECT_EQ(0x11, self->device[0]);
	EXPECT_EQ(0, self->device[8192]);
	EXPECT_EQ(0x11, self->device[16384]);
}

/* One attribute that says: from the host to device 0. */
FIXTURE(batch)
{
	struct _test_data_copy copy;
	struct items items;
	struct aclmem_copy_attr attrs[5];
	uint64_t indices[5];
	struct aclmem_copy arg;
};

FIXTURE_SETUP(batch)
{
	int i;

	copy_setup(_metadata, &self->copy, NULL);
	fill_items(&self->items, &self->copy);
	for (i = 0; i < 5; i++) {
		self->attrs[i] = (struct aclmem_copy_attr){
			.dst.type = ACLMEM_LOCATION_DEVICE,
			.src.type = ACLMEM_LOCATION_HOST,
		};
		self->indices[i] = i;
	}
	self->arg = (struct aclmem_copy){
		.head.flags = ACLMEM_COPY_BATCH,
		.dst = (uintptr_t)self->items.dst,
		.src = (uintptr_t)self->items.src,
		.length = (uintptr_t)self->items.length,
		.count = 5,
		.attr = (uintptr_t)self->attrs,
		.attr_index = (uintptr_t)self->indices,
		.attr_count = 1,
	};
}

FIXTURE_TEARDOWN(batch)
{
	copy_teardown(_metadata, &self->copy, NULL);
}

static int run_batch(struct _test_data_batch *self)
{
	return command(self->copy.fd, ACLMEM_COPY, &self->arg, sizeof(self->arg));
}

#define EXPECT_BATCH_REFUSED(error, reason, value, index) do {			\
	EXPECT_REFUSED(error, reason, run_batch(self));				\
	EXPECT_EQ((uint64_t)(value), last.out_value);				\
	EXPECT_EQ((uint64_t)(index), last.out_index);				\
	EXPECT_EQ(-1, byte_differs(self->copy.device, 2 * GRANULE, 0));		\
} while (0)

#define LOCATION(type, id) ((uint64_t)(type) << 32 | (id))

TEST_F(batch, a_good_batch_copies_all)
{
	ASSERT_EQ(0, run_batch(self));
	EXPECT_EQ(5 * 4096, self->arg.out_bytes);
	EXPECT_EQ(-1, byte_differs(self->copy.device + 4 * 8192, 4096, 0x11));
	EXPECT_EQ(0, self->copy.device[4096]);
	/* As many attributes as items, and two ranges of the same. */
	self->arg.attr_count = 5;
	EXPECT_EQ(0, run_batch(self));
	self->arg.attr_count = 2;
	self->indices[1] = 3;
	EXPECT_EQ(0, run_batch(self));
}

TEST_F(batch, attributes_are_counted_and_ordered)
{
	self->arg.attr_count = 0;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_COUNT, 0, 0);
	self->arg.attr_count = 6;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_COUNT, 6, 0);
	self->arg.attr_count = 3;
	self->indices[0] = 1;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_INDEX, 1, 0);
	self->indices[0] = 0;
	self->indices[1] = 0;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_INDEX, 0, 1);
	self->indices[1] = 3;
	self->indices[2] = 2;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_INDEX, 2, 2);
	self->indices[2] = 5;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_INDEX, 5, 2);
	self->indices[2] = ~0ULL;
	EXPECT_BATCH_REFUSED(EINVAL, ATTR_INDEX, ~0ULL, 2);
	self->indices[2] = 4;
	EXPECT_EQ(0, run_batch(self));
}

TEST_F(batch, only_attr_count_indices_are_read)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	uint64_t *index = (uint64_t *)(page + 4096 - sizeof(*index));

	ASSERT_EQ(0, mprotect(page + 4096, 4096, PROT_NONE));
	self->arg.attr_index = (uintptr_t)index;
	EXPECT_EQ(0, run_batch(self));
	memset(self->copy.device, 0, GRANULE);
	self->arg.attr_count = 2;
	EXPECT_BATCH_REFUSED(EFAULT, ARRAY, self->arg.attr_index, 0);
	self->arg.attr_index = (uintptr_t)self->indices;
	self->arg.attr = (uintptr_t)page + 4096 - 40;
	EXPECT_BATCH_REFUSED(EFAULT, ARRAY, self->arg.attr, 0);
}

TEST_F(batch, items_are_where_their_attributes_say)
{
	/* The other way than said. */
	self->items.src[2] = (uintptr_t)self->copy.device;
	self->items.dst[2] = (uintptr_t)self->copy.host;
	EXPECT_BATCH_REFUSED(EINVAL, DST_LOCATION, LOCATION(ACLMEM_LOCATION_HOST, 0), 2);
	fill_items(&self->items, &self->copy);
	self->items.src[3] = (uintptr_t)self->copy.device;
	EXPECT_BATCH_REFUSED(EINVAL, SRC_LOCATION, LOCATION(ACLMEM_LOCATION_DEVICE, 0), 3);
	/* The first of several wrong ones counts. */
	self->items.src[1] = (uintptr_t)self->copy.device;
	EXPECT_BATCH_REFUSED(EINVAL, SRC_LOCATION, LOCATION(ACLMEM_LOCATION_DEVICE, 0), 1);
	if (!self->copy.other)
		return;
	fill_items(&self->items, &self->copy);
	self->items.dst[4] = (uintptr_t)self->copy.other;
	EXPECT_BATCH_REFUSED(EINVAL, DST_LOCATION, LOCATION(ACLMEM_LOCATION_DEVICE, 1), 4);
}

TEST_F(batch, items_copy_between_host_and_device)
{
	self->attrs[0].src.type = ACLMEM_LOCATION_DEVICE;
	EXPECT_BATCH_REFUSED(EINVAL, SRC_LOCATION, LOCATION(ACLMEM_LOCATION_HOST, 0), 0);
	self->items.src[0] = (uintptr_t)self->copy.device + GRANULE;
	self->arg.count = 1;
	EXPECT_BATCH_REFUSED(EINVAL, SAME_SIDE, ACLMEM_LOCATION_DEVICE, 0);
	self->attrs[0].src.type = ACLMEM_LOCATION_HOST;
	self->attrs[0].dst.type = ACLMEM_LOCATION_HOST;
	self->items.src[0] = (uintptr_t)self->copy.host;
	self->items.dst[0] = (uintptr_t)self->copy.host + GRANULE;
	EXPECT_BATCH_REFUSED(EINVAL, SAME_SIDE, ACLMEM_LOCATION_HOST, 0);
	EXPECT_EQ(0, self->copy.host[GRANULE]);
}

TEST_F(batch, items_are_not_empty)
{
	self->items.length[4] = 0;
	EXPECT_BATCH_REFUSED(EINVAL, LENGTH_ZERO, 0, 4);
}

TEST_F(batch, all_items_go_one_way_on_one_device)
{
	self->arg.attr_count = 2;
	self->indices[1] = 3;
	self->attrs[1].dst.type = ACLMEM_LOCATION_HOST;
	self->attrs[1].src.type = ACLMEM_LOCATION_DEVICE;
	self->items.src[3] = (uintptr_t)self->copy.device;
	self->items.dst[3] = (uintptr_t)self->copy.host;
	self->items.src[4] = (uintptr_t)self->copy.device;
	self->items.dst[4] = (uintptr_t)self->copy.host;
	EXPECT_REFUSED(EINVAL, MIXED_DIRECTION, run_batch(self));
	EXPECT_EQ(3, last.out_index);
	EXPECT_EQ(-1, byte_differs(self->copy.device, 2 * GRANULE, 0));
	EXPECT_EQ(0x11, self->copy.host[0]);

	if (!self->copy.other)
		return;
	fill_items(&self->items, &self->copy);
	self->attrs[1] = self->attrs[0];
	self->attrs[1].dst.id = 1;
	self->items.dst[3] = (uintptr_t)self->copy.other;
	self->items.dst[4] = (uintptr_t)self->copy.other + 4096;
	EXPECT_BATCH_REFUSED(EINVAL, MIXED_DEVICE, 1, 3);
	EXPECT_EQ(0, self->copy.other[0]);
}

TEST_F(copy, fill_checks_its_range)
{
	struct aclmem_fill arg = { .address = (uintptr_t)self->device, .length = 1, .value = 256 };
	void *device = self->device, *hole = self->hole;

	EXPECT_REFUSED(EINVAL, LENGTH_ZERO, fill(self->fd, device, 0, 1));
	EXPECT_REFUSED(EINVAL, ADDRESS_NULL, fill(self->fd, NULL, 1, 1));
	EXPECT_REFUSED(EINVAL, RESERVED, command(self->fd, ACLMEM_FILL, &arg, sizeof(arg)));
	EXPECT_REFUSED(ENXIO, NOT_RESERVED, fill(self->fd, self->host, 1, 1));
	EXPECT_REFUSED(ENXIO, UNMAPPED, fill(self->fd, hole, 1, 1));
	EXPECT_REFUSED(ENXIO, DEVICE_END, fill(self->fd, device, 2 * GRANULE + 1, 1));
	EXPECT_EQ((uintptr_t)hole, last.out_value);
	EXPECT_REFUSED(EROFS, READ_ONLY, fill(self->fd, self->read_only, 1, 1));
	EXPECT_REFUSED(ENXIO, NOT_RESERVED, fill(self->fd, (void *)-2L, 4, 1));
	EXPECT_REFUSED(ENXIO, DEVICE_END, fill(self->fd, device, SIZE_MAX, 1));
	EXPECT_EQ((uintptr_t)hole, last.out_value);
	EXPECT_EQ(-1, byte_differs(self->device, 2 * GRANULE, 0));
	EXPECT_EQ(0x11, self->host[0]);
}

TEST_HARNESS_MAIN
