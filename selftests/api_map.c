// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings in use: the same memory at several places, memory side by side, very
 * many mappings, many threads. What is refused is in api_address.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api_fixture.h"

TEST_F(acl, unmapping_one_of_two_leaves_the_other)
{
	aclrtDrvMemHandle handle;
	unsigned char *a, *b;

	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	a = map_memory(handle, GRANULE);
	b = map_memory(handle, GRANULE);
	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	pattern_set(a, GRANULE, 1);
	EXPECT_EQ(-1, pattern_differs(b, GRANULE, 1));
	EXPECT_EQ(0, aclrtUnmapMem(a));
	EXPECT_EQ(SIGBUS, try_read(a, NULL));
	EXPECT_EQ(-1, pattern_differs(b, GRANULE, 1));
	EXPECT_EQ(0, aclrtReleaseMemAddress(a));
	EXPECT_FAILS(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "virPtr", aclrtReleaseMemAddress(b));
	EXPECT_EQ(-1, pattern_differs(b, GRANULE, 1));
	EXPECT_EQ(0, aclrtUnmapMem(b));
	EXPECT_EQ(0, aclrtReleaseMemAddress(b));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

TEST_F(acl, a_handle_may_be_mapped_twice_in_one_reservation)
{
	aclrtDrvMemHandle handle;
	void *address;
	char *base;

	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, 3 * GRANULE, 0, NULL, 0));
	base = address;
	ASSERT_EQ(0, aclrtMapMem(base, GRANULE, 0, handle, 0));
	ASSERT_EQ(0, aclrtMapMem(base + 2 * GRANULE, GRANULE, 0, handle, 0));
	pattern_set(base, GRANULE, 2);
	EXPECT_EQ(-1, pattern_differs(base + 2 * GRANULE, GRANULE, 2));
	pattern_set(base + 2 * GRANULE, GRANULE, 3);
	EXPECT_EQ(-1, pattern_differs(base, GRANULE, 3));
	EXPECT_EQ(0, aclrtUnmapMem(base));
	EXPECT_EQ(-1, pattern_differs(base + 2 * GRANULE, GRANULE, 3));
	EXPECT_EQ(0, aclrtUnmapMem(base + 2 * GRANULE));
	EXPECT_EQ(0, aclrtReleaseMemAddress(base));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

/* Segments of different sizes, as an expandable allocator has them. */
TEST_F(acl, memory_side_by_side_is_one_range)
{
	static const size_t granules[] = { 1, 3, 2, 5, 1 };
	aclrtDrvMemHandle handles[5];
	size_t i, at, total = 12 * GRANULE;
	void *address;
	char *base;

	ASSERT_EQ(0, aclrtReserveMemAddress(&address, total, 0, NULL, 1));
	base = address;
	for (i = 0, at = 0; i < 5; at += granules[i++] * GRANULE) {
		ASSERT_EQ(0, new_memory(&handles[i], granules[i] * GRANULE, 0));
		ASSERT_EQ(0, aclrtMapMem(base + at, granules[i] * GRANULE, 0, handles[i], 0));
	}
	pattern_set(base, total, 7);
	EXPECT_EQ(-1, pattern_differs(base, total, 7));

	/* The one in the middle goes, comes back elsewhere, and again here. */
	EXPECT_EQ(0, aclrtUnmapMem(base + 4 * GRANULE));
	EXPECT_EQ(SIGBUS, try_read(base + 4 * GRANULE, NULL));
	EXPECT_EQ(-1, pattern_differs(base, 4 * GRANULE, 7));
	address = map_memory(handles[2], 2 * GRANULE);
	ASSERT_NE(NULL, address);
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(0, aclrtMapMem(base + 4 * GRANULE, 2 * GRANULE, 0, handles[2], 0));
	EXPECT_EQ(-1, pattern_differs(base, total, 7));
	for (i = 0, at = 0; i < 5; at += granules[i++] * GRANULE) {
		EXPECT_EQ(0, aclrtUnmapMem(base + at));
		EXPECT_EQ(0, aclrtFreePhysical(handles[i]));
	}
	EXPECT_EQ(0, aclrtReleaseMemAddress(base));
}

/* Weights saved to the host while asleep. */
TEST_F(acl, data_survives_two_hundred_sleeps)
{
	unsigned char *address, *saved = malloc(GRANULE);
	aclrtDrvMemHandle handle;
	unsigned int i;

	ASSERT_NE(NULL, saved);
	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	address = map_memory(handle, GRANULE);
	ASSERT_NE(NULL, address);
	pattern_set(address, GRANULE, 8);
	for (i = 0; i < rounds(200); i++) {
		ASSERT_EQ(0, aclrtMemcpy(saved, GRANULE, address, GRANULE,
					 ACL_MEMCPY_DEVICE_TO_HOST));
		ASSERT_EQ(0, aclrtUnmapMem(address));
		ASSERT_EQ(0, aclrtFreePhysical(handle));
		ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
		ASSERT_EQ(0, aclrtMapMem(address, GRANULE, 0, handle, 0));
		ASSERT_EQ(0, aclrtMemcpy(address, GRANULE, saved, GRANULE,
					 ACL_MEMCPY_HOST_TO_DEVICE));
		memset(saved, 0, GRANULE);
	}
	EXPECT_EQ(-1, pattern_differs(address, GRANULE, 8));
	EXPECT_EQ(0, end_mapping(address));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
	free(saved);
}

#define SEGMENTS 70000UL

static volatile uint64_t *segment(char *base, size_t i)
{
	return (volatile uint64_t *)(base + i * GRANULE);
}

TEST_F_TIMEOUT(acl, seventy_thousand_segments_of_one_handle, 60)
{
	unsigned int mappings = count_mappings();
	size_t i, failed = 0, left = free_memory();
	aclrtDrvMemHandle handle;
	void *address;
	char *base;

	ASSERT_EQ(0, new_memory(&handle, GRANULE, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, SEGMENTS * GRANULE, 0, NULL, 0));
	base = address;
	for (i = 0; i < SEGMENTS && !failed; i++)
		failed = aclrtMapMem(base + i * GRANULE, GRANULE, 0, handle, 0);
	ASSERT_EQ(0, failed);
	EXPECT_EQ(left - GRANULE, free_memory());
	EXPECT_GE(mappings + 10, count_mappings());

	/* All are the same memory, each at its place. */
	*segment(base, 0) = 0x1234;
	for (i = 0; i < SEGMENTS; i += 997)
		failed += *segment(base, i) != 0x1234;
	EXPECT_EQ(0x1234, *segment(base, SEGMENTS - 1));
	*segment(base, SEGMENTS - 1) = 0x5678;
	EXPECT_EQ(0x5678, *segment(base, 0));
	EXPECT_EQ(0, failed);

	/* Every other first, so that the rest stand alone. */
	for (i = 0; i < SEGMENTS; i += 2)
		failed += aclrtUnmapMem(base + i * GRANULE) != 0;
	EXPECT_EQ(SIGBUS, try_read(base, NULL));
	EXPECT_EQ(0, try_read(base + GRANULE, NULL));
	EXPECT_EQ(ACL_ERROR_RT_DRV_INTERNAL_ERROR, aclrtReleaseMemAddress(base));
	for (i = 1; i < SEGMENTS; i += 2)
		failed += aclrtUnmapMem(base + i * GRANULE) != 0;
	EXPECT_EQ(0, failed);
	EXPECT_EQ(0, aclrtReleaseMemAddress(base));
	EXPECT_EQ(left - GRANULE, free_memory());
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

#define TOUCHERS 16
#define PAGES 32

/*
 * Threads that touch fresh pages at the same time, in rounds, while the granules
 * before and behind are mapped and unmapped all the time.
 */
struct touch {
	pthread_barrier_t begin;
	pthread_barrier_t end;
	unsigned char *pages;
	unsigned int rounds;
	unsigned int wrong;
	aclrtDrvMemHandle neighbour;
	bool stop;
	int index;
};

/* Where a thread writes in a page, and what. */
static unsigned char *own_byte(struct touch *touch, unsigned int page, unsigned int index)
{
	return touch->pages + page * GRANULE + index * 64;
}

static unsigned char own_value(unsigned int round, unsigned int page, unsigned int index)
{
	return round * 31 + page * 7 + index;
}

static void *touch_pages(void *data)
{
	struct touch *touch = data;
	unsigned int index = __atomic_fetch_add(&touch->index, 1, __ATOMIC_RELAXED);
	unsigned int round, page;

	for (round = 0; round < touch->rounds; round++) {
		pthread_barrier_wait(&touch->begin);
		for (page = 0; page < PAGES; page++)
			*own_byte(touch, page, index) = own_value(round, page, index);
		pthread_barrier_wait(&touch->end);
	}
	return NULL;
}

static unsigned int wrong_bytes(struct touch *touch, unsigned int round)
{
	unsigned int page, i, wrong = 0;

	for (page = 0; page < PAGES; page++)
		for (i = 0; i < TOUCHERS; i++)
			wrong += *own_byte(touch, page, i) != own_value(round, page, i);
	return wrong;
}

static void *map_neighbours(void *data)
{
	struct touch *touch = data;
	unsigned char *before = touch->pages - GRANULE, *behind = touch->pages + PAGES * GRANULE;
	bool failed = false;

	while (!failed && !__atomic_load_n(&touch->stop, __ATOMIC_RELAXED))
		failed = aclrtMapMem(before, GRANULE, 0, touch->neighbour, 0) ||
			 try_write(before + GRANULE - 1, 1) ||
			 aclrtMapMem(behind, GRANULE, 0, touch->neighbour, 0) ||
			 aclrtUnmapMem(before) || try_write(behind, 2) ||
			 aclrtUnmapMem(behind);
	return (void *)(intptr_t)failed;
}

/* 10,000 pages in all. */
TEST_F_TIMEOUT(acl, sixteen_threads_may_touch_fresh_pages_at_once, 60)
{
	struct touch touch = { .rounds = rounds(313) };
	pthread_t threads[TOUCHERS], mapper;
	aclrtDrvMemHandle handle;
	unsigned int i, round;
	void *address, *failed;

	ASSERT_EQ(0, new_memory(&handle, PAGES * GRANULE, 0));
	ASSERT_EQ(0, new_memory(&touch.neighbour, GRANULE, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&address, (PAGES + 2) * GRANULE, 0, NULL, 0));
	touch.pages = address + GRANULE;
	pthread_barrier_init(&touch.begin, NULL, TOUCHERS + 1);
	pthread_barrier_init(&touch.end, NULL, TOUCHERS + 1);
	for (i = 0; i < TOUCHERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_pages, &touch));
	ASSERT_EQ(0, pthread_create(&mapper, NULL, map_neighbours, &touch));
	for (round = 0; round < touch.rounds; round++) {
		ASSERT_EQ(0, aclrtMapMem(touch.pages, PAGES * GRANULE, 0, handle, 0));
		pthread_barrier_wait(&touch.begin);
		pthread_barrier_wait(&touch.end);
		touch.wrong += wrong_bytes(&touch, round);
		ASSERT_EQ(0, aclrtUnmapMem(touch.pages));
	}
	__atomic_store_n(&touch.stop, true, __ATOMIC_RELAXED);
	EXPECT_EQ(0, pthread_join(mapper, &failed));
	EXPECT_EQ(NULL, failed);
	for (i = 0; i < TOUCHERS; i++)
		EXPECT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, touch.wrong);
	EXPECT_EQ(0, aclrtReleaseMemAddress(address));
	EXPECT_EQ(0, aclrtFreePhysical(touch.neighbour));
	EXPECT_EQ(0, aclrtFreePhysical(handle));
}

struct race {
	void *address;
	aclrtDrvMemHandle handle;
	unsigned int won;
};

static void *race_to_map(void *data)
{
	struct race *race = data;
	aclError ret = aclrtMapMem(race->address, GRANULE, 0, race->handle, 0);

	if (!ret)
		__atomic_fetch_add(&race->won, 1, __ATOMIC_RELAXED);
	return (void *)(intptr_t)(ret && ret != ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

static void *race_to_unmap(void *data)
{
	struct race *race = data;
	aclError ret = aclrtUnmapMem(race->address);

	if (!ret)
		__atomic_fetch_add(&race->won, 1, __ATOMIC_RELAXED);
	return (void *)(intptr_t)(ret && ret != ACL_ERROR_RT_DRV_INTERNAL_ERROR);
}

TEST_F(acl, one_of_two_threads_maps_and_one_unmaps)
{
	void *(*race_to[2])(void *data) = { race_to_map, race_to_unmap };
	struct race race = {};
	pthread_t threads[2];
	unsigned int i, j;
	void *wrong;

	ASSERT_EQ(0, new_memory(&race.handle, GRANULE, 0));
	ASSERT_EQ(0, aclrtReserveMemAddress(&race.address, GRANULE, 0, NULL, 0));
	for (i = 0; i < 2 * rounds(200); i++) {
		race.won = 0;
		for (j = 0; j < 2; j++)
			ASSERT_EQ(0, pthread_create(&threads[j], NULL, race_to[i % 2], &race));
		for (j = 0; j < 2; j++) {
			EXPECT_EQ(0, pthread_join(threads[j], &wrong));
			EXPECT_EQ(NULL, wrong);
		}
		EXPECT_EQ(1, race.won);
	}
	EXPECT_EQ(0, aclrtReleaseMemAddress(race.address));
	EXPECT_EQ(0, aclrtFreePhysical(race.handle));
}

TEST_HARNESS_MAIN
