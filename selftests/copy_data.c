// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies and fills move the right bytes: any alignment and length, across
 * seams of adjacent mappings, between devices, many items at once; and what a
 * fault of the caller's own memory leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "fixture.h"

#define CHUNKS 4
#define LENGTH (CHUNKS * GRANULE)

/*
 * Device memory of several mappings side by side, and a model of what must be
 * in it, in plain memory.
 */
FIXTURE(data)
{
	int fd;
	struct aclmem_query query;
	unsigned char *device;
	unsigned char *model;
	unsigned char *plain;
	uint64_t random;
};

FIXTURE_SETUP(data)
{
	static const unsigned int parts[] = { 1, 2, 1 };
	uint32_t handle;
	size_t i, at = 0;

	catch_faults();
	self->fd = open_client(&self->query);
	REQUIRE_CLIENT(self->fd);
	self->random = 12345;
	self->device = reserve(self->fd, LENGTH);
	ASSERT_NE(MAP_FAILED, (void *)self->device);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t length = parts[i] * GRANULE;

		ASSERT_EQ(0, alloc(self->fd, 0, length, &handle));
		ASSERT_EQ(0, map(self->fd, handle, self->device + at, length, 0));
		at += length;
	}
	self->model = mmap(NULL, 2 * LENGTH, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->model);
	self->plain = self->model + LENGTH;
	pattern_set(self->plain, LENGTH, 1);
}

FIXTURE_TEARDOWN(data)
{
	close(self->fd);
}

static uint64_t next_random(struct _test_data_data *self)
{
	self->random = self->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return self->random >> 24;
}

/* Lengths around powers of two, near and over seams more often than not. */
static void random_range(struct _test_data_data *self, size_t limit, size_t *at,
			 size_t *length)
{
	*length = 1ULL << next_random(self) % 22;
	*length += next_random(self) % (*length + 1) - *length / 2;
	if (!*length || *length > limit)
		*length = 1;
	if (next_random(self) % 2)
		*at = next_random(self) % (limit - *length + 1);
	else
		*at = (next_random(self) % CHUNKS + 1) * GRANULE - next_random(self) % *length - 1;
	if (*at > limit - *length)
		*at = limit - *length;
}

TEST_F_TIMEOUT(data, odd_ranges_arrive_whole_and_touch_nothing_else, 60)
{
	size_t from, to, length, wrong;
	unsigned int i;

	for (i = 0; i < rounds(300); i++) {
		random_range(self, LENGTH, &to, &length);
		from = next_random(self) % (LENGTH - length + 1);
		switch (i % 3) {
		case 0:
			ASSERT_EQ(0, copy(self->fd, self->device + to, self->plain + from, length));
			memcpy(self->model + to, self->plain + from, length);
			break;
		case 1:
			ASSERT_EQ(0, copy(self->fd, self->plain + from, self->device + to, length));
			if (memcmp(self->plain + from, self->model + to, length))
				ASSERT_EQ(0, i);
			break;
		default:
			ASSERT_EQ(0, fill(self->fd, self->device + to, length, i & 0xff));
			memset(self->model + to, i & 0xff, length);
		}
		if (i % 32 == 31)
			ASSERT_EQ(0, memcmp(self->device, self->model, LENGTH));
	}
	for (wrong = 0; wrong < LENGTH && self->device[wrong] == self->model[wrong]; wrong++)
		;
	EXPECT_EQ(LENGTH, wrong);
}

TEST_F(data, device_to_device)
{
	size_t half = LENGTH / 2, lengths[] = { 1, 63, 4097, GRANULE - 1, GRANULE + 1 }, i;
	unsigned char *other;
	uint32_t handle;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, copy(self->fd, self->device, self->plain, LENGTH));
		ASSERT_EQ(0, copy(self->fd, self->device + half + 5, self->device + 3, lengths[i]));
		EXPECT_EQ(0, memcmp(self->device + half + 5, self->plain + 3, lengths[i]));
		EXPECT_EQ(-1, pattern_differs(self->device, half, 1));
		EXPECT_EQ(self->plain[half + 5 + lengths[i]],
			  self->device[half + 5 + lengths[i]]);
		EXPECT_EQ(self->plain[half + 4], self->device[half + 4]);
	}
	if (self->query.out_devices < 2)
		return;
	ASSERT_EQ(0, alloc(self->fd, 1, GRANULE, &handle));
	other = reserve(self->fd, GRANULE);
	ASSERT_EQ(0, map(self->fd, handle, other, GRANULE, 0));
	ASSERT_EQ(0, copy(self->fd, other + 1, self->device + GRANULE - 7, GRANULE - 1));
	EXPECT_EQ(0, memcmp(other + 1, self->device + GRANULE - 7, GRANULE - 1));
	EXPECT_EQ(0, other[0]);
}

TEST_F(data, ranges_that_overlap_end_somehow)
{
	ASSERT_EQ(0, copy(self->fd, self->device, self->plain, LENGTH));
	EXPECT_EQ(0, copy(self->fd, self->device + 100, self->device, LENGTH - 100));
	EXPECT_EQ(0, copy(self->fd, self->device, self->device, LENGTH));
	EXPECT_EQ(0, memcmp(self->device, self->plain, 100));
}

TEST_F_TIMEOUT(data, as_many_items_as_query_tells, 60)
{
	uint32_t count = self->query.out_max_items, i;
	uint64_t *dst = calloc(3 * (size_t)count, sizeof(*dst)), bytes, whole = 0;
	uint64_t *src = dst + count, *length = src + count;
	size_t step = LENGTH / count;

	ASSERT_NE(NULL, dst);
	ASSERT_LT(16, step);
	for (i = 0; i < count; i++) {
		/* Backwards, with gaps. */
		dst[i] = (uintptr_t)self->device + (count - 1 - i) * step;
		src[i] = (uintptr_t)self->plain + i * step;
		length[i] = step - i % 16;
		whole += length[i];
	}
	ASSERT_EQ(0, copy_items(self->fd, dst, src, length, count, &bytes));
	EXPECT_EQ(whole, bytes);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, memcmp((void *)dst[i], (void *)src[i], length[i]));
		if (i % 16)
			ASSERT_EQ(0, ((char *)dst[i])[length[i]]);
	}
	free(dst);
}

TEST_F(data, untouched_and_shared_pages_of_the_caller)
{
	unsigned char *fresh = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int file = memfd_create("copy", MFD_CLOEXEC);
	unsigned char *shared;
	pid_t pid;

	ASSERT_EQ(0, ftruncate(file, LENGTH));
	shared = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_EQ(0, copy(self->fd, self->device, self->plain, LENGTH));
	/* Never touched: as a target, then (another) as a source. */
	EXPECT_EQ(0, copy(self->fd, fresh, self->device, LENGTH));
	EXPECT_EQ(-1, pattern_differs(fresh, LENGTH, 1));
	EXPECT_EQ(0, copy(self->fd, shared, self->device, LENGTH / 2));
	EXPECT_EQ(0, copy(self->fd, self->device, shared + LENGTH / 2, LENGTH / 2));
	EXPECT_EQ(-1, pattern_differs(shared, LENGTH / 2, 1));
	EXPECT_EQ(-1, byte_differs(self->device, LENGTH / 2, 0));
	/* The caller's page that is shared with a child is copied for it. */
	fresh[0] = 99;
	pid = fork_child();
	if (!pid) {
		usleep(50000);
		_exit(fresh[0] == 99 ? 0 : 1);
	}
	EXPECT_EQ(0, copy(self->fd, fresh, self->device, 4096));
	EXPECT_EQ(0, wait_child(pid));
	close(file);
}

/* A range of the caller that ends in a page it can't use. */
static unsigned char *cliff(size_t length, int protection)
{
	unsigned char *at = mmap(NULL, length + 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 0x77, length);
	mprotect(at + length, 4096, protection);
	return at;
}

TEST_F(data, a_fault_of_the_caller_names_item_and_address)
{
	unsigned char *in = cliff(GRANULE, PROT_NONE), *out = cliff(GRANULE, PROT_READ);
	uint64_t dst[3], src[3], length[3] = { 4096, GRANULE, 4096 };

	/* The second item's source ends 100 bytes too early. */
	dst[0] = (uintptr_t)self->device;
	dst[1] = (uintptr_t)self->device + GRANULE - 50;
	dst[2] = (uintptr_t)self->device + 3 * GRANULE;
	src[0] = (uintptr_t)in;
	src[1] = (uintptr_t)in + 100;
	src[2] = (uintptr_t)in;
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy_items(self->fd, dst, src, length, 3, NULL));
	EXPECT_EQ(1, last.out_index);
	EXPECT_EQ((uintptr_t)in + GRANULE, last.out_value);
	EXPECT_EQ(-1, byte_differs(self->device, 4096, 0x77));
	EXPECT_EQ(0, self->device[4096]);
	/* Nothing beyond the item was written. */
	EXPECT_EQ(0, self->device[2 * GRANULE - 50]);

	/* The same with a target that is read-only. */
	src[0] = (uintptr_t)self->device;
	src[1] = (uintptr_t)self->device + GRANULE;
	src[2] = src[1];
	dst[0] = (uintptr_t)out;
	dst[1] = (uintptr_t)out + 4096;
	dst[2] = (uintptr_t)out;
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy_items(self->fd, dst, src, length, 3, NULL));
	EXPECT_EQ(1, last.out_index);
	EXPECT_EQ((uintptr_t)out + GRANULE, last.out_value);

	/* Afterwards the same works. */
	length[1] = GRANULE - 4096;
	EXPECT_EQ(0, copy_items(self->fd, dst, src, length, 3, NULL));
}

TEST_F(data, memory_that_is_not_there_is_a_fault)
{
	int file = memfd_create("short", MFD_CLOEXEC);
	unsigned char *at;

	ASSERT_EQ(0, ftruncate(file, 4096));
	at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy(self->fd, self->device, at, 8192));
	EXPECT_EQ((uintptr_t)at + 4096, last.out_value);
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy(self->fd, at, self->device, 8192));
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy(self->fd, self->device, (void *)8192, 1));
	EXPECT_EQ(8192, last.out_value);
	close(file);
}

/* Device memory of another descriptor is plain memory to this one. */
TEST_F(data, memory_of_the_processes_other_client)
{
	int other = open_client(NULL);
	unsigned char *at = map_new(other, GRANULE, 0, NULL);

	ASSERT_NE(MAP_FAILED, (void *)at);
	memset(at, 0x33, GRANULE);
	EXPECT_EQ(0, copy(self->fd, self->device + 1, at, GRANULE));
	EXPECT_EQ(-1, byte_differs(self->device + 1, GRANULE, 0x33));
	EXPECT_EQ(0, copy(self->fd, at, self->device + GRANULE, 4096));
	EXPECT_EQ(0x33, at[0]);
	EXPECT_EQ(0, at[1]);
	close(other);
}

TEST_F(data, fills_reach_exactly_as_far)
{
	static const size_t lengths[] = { 1, 7, 4095, 4097, GRANULE - 1, GRANULE, 3 * GRANULE };
	size_t i, at;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, fill(self->fd, self->device, LENGTH, 0xaa));
		at = (lengths[i] * 13) % (LENGTH - lengths[i] - 1) + 1;
		ASSERT_EQ(0, fill(self->fd, self->device + at, lengths[i], 0x55));
		EXPECT_EQ(-1, byte_differs(self->device + at, lengths[i], 0x55));
		EXPECT_EQ(-1, byte_differs(self->device, at, 0xaa));
		EXPECT_EQ(-1, byte_differs(self->device + at + lengths[i],
					   LENGTH - at - lengths[i], 0xaa));
	}
}

TEST_HARNESS_MAIN
