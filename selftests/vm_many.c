// SPDX-License-Identifier: GPL-2.0-only
/*
 * More mappings than a process may have areas (vm.max_map_count), in one
 * reservation; and threads that fault, map and unmap at the same time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "fixture.h"

static unsigned int areas(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	while (maps && (c = getc(maps)) != EOF)
		n += c == '\n';
	if (maps)
		fclose(maps);
	return n;
}

#define SEGMENTS 70000U

TEST_F_TIMEOUT(client, seventy_thousand_mappings_are_one_area, 120)
{
	size_t length = SEGMENTS * GRANULE;
	struct aclmem_handle_info info;
	struct aclmem_address place;
	uint32_t handle;
	unsigned int before, i;
	unsigned char seen;
	char *base;

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	base = reserve(self->fd, length);
	ASSERT_NE(MAP_FAILED, base);
	before = areas();
	for (i = 0; i < SEGMENTS; i++)
		ASSERT_EQ(0, map(self->fd, handle, base + i * GRANULE, GRANULE, 0));
	EXPECT_EQ(before, areas());
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(SEGMENTS, info.out_mappings);
	EXPECT_EQ(self->used + GRANULE, used(self->fd));

	for (i = 0; i < SEGMENTS; i += 7) {
		ASSERT_EQ((char)(i ? (i - 7) / 7 : 0), base[i * GRANULE + 100]);
		base[i * GRANULE + 100] = i / 7;
	}
	EXPECT_REFUSED(EADDRINUSE, MAPPED,
		       map(self->fd, handle, base + (SEGMENTS - 1) * GRANULE, GRANULE, 0));

	/* Every second one ends; its neighbours stay. */
	for (i = 0; i < SEGMENTS; i += 2)
		ASSERT_EQ(0, unmap(self->fd, base + i * GRANULE));
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(SEGMENTS / 2, info.out_mappings);
	for (i = 0; i < SEGMENTS; i += 999) {
		ASSERT_EQ(0, address_info(self->fd, base + i * GRANULE, &place));
		ASSERT_EQ(i % 2 ? ACLMEM_ADDRESS_MAPPED : ACLMEM_ADDRESS_RESERVED,
			  place.out_state);
		ASSERT_EQ(i % 2 ? 0 : SIGBUS, try_read(base + i * GRANULE, &seen));
	}
	EXPECT_REFUSED(EBUSY, STILL_MAPPED, release(self->fd, base));
	EXPECT_EQ((uintptr_t)base + GRANULE, last.out_value);

	/* The rest goes with the reservation, in this one call. */
	ASSERT_EQ(0, munmap(base, length));
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(0, info.out_mappings);
	ASSERT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/* What one copy would have to hold at once has a limit. */
TEST_F_TIMEOUT(client, a_copy_across_too_many_mappings_is_refused, 120)
{
	size_t length = SEGMENTS * GRANULE;
	uint64_t dst[16], src[16], lengths[16];
	uint32_t handle;
	unsigned int i;
	char *base;

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	base = reserve(self->fd, length);
	ASSERT_NE(MAP_FAILED, base);
	for (i = 0; i < SEGMENTS; i++)
		ASSERT_EQ(0, map(self->fd, handle, base + i * GRANULE, GRANULE, 0));
	for (i = 0; i < ARRAY_SIZE(dst); i++) {
		dst[i] = (uintptr_t)base;
		/* Nothing is there, but nothing gets as far as that. */
		src[i] = 65536;
		lengths[i] = length;
	}
	EXPECT_REFUSED(E2BIG, SEGMENTS, copy_items(self->fd, dst, src, lengths, 16, NULL));
	EXPECT_LT(SEGMENTS, last.out_value);
	EXPECT_GT(16 * SEGMENTS, last.out_value);
	EXPECT_EQ(0, base[0]);
	/* Nor may one call take more time than a stop or a freezer can wait. */
	EXPECT_REFUSED(E2BIG, LENGTH_LIMIT, copy_items(self->fd, dst, src, lengths, 1, NULL));
	EXPECT_EQ(ACLMEM_MAX_COPY, last.out_value);
	EXPECT_REFUSED(E2BIG, LENGTH_LIMIT, fill(self->fd, base, length, 1));
	EXPECT_EQ(0, base[0]);
	/* Many, but not too many: the fault comes with the first byte. */
	lengths[0] = ACLMEM_MAX_COPY;
	EXPECT_REFUSED(EFAULT, HOST_FAULT, copy_items(self->fd, dst, src, lengths, 1, NULL));
	EXPECT_EQ(65536, last.out_value);
	EXPECT_EQ(0, base[0]);
	ASSERT_EQ(0, munmap(base, length));
	ASSERT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

#define THREADS 16
#define SLOTS 2048

struct crowd {
	int fd;
	char *base;
	uint32_t handle;
	unsigned int first, slots;
	pthread_barrier_t barrier;
	atomic_int stop;
	atomic_uint wrong, signals;
	uint64_t neighbours;
};

/* All threads touch all slots, in one order, so that they meet in the faults. */
static void *touch_all(void *arg)
{
	struct crowd *crowd = arg;
	unsigned char seen;
	unsigned int i;

	pthread_barrier_wait(&crowd->barrier);
	for (i = 0; i < crowd->slots; i++) {
		char *at = crowd->base + (crowd->first + i) * GRANULE;

		if (try_read(at + 64, &seen))
			atomic_fetch_add(&crowd->signals, 1);
		else if (seen != 0x42)
			atomic_fetch_add(&crowd->wrong, 1);
	}
	pthread_barrier_wait(&crowd->barrier);
	return NULL;
}

/* Meanwhile one maps and unmaps the slot before and the slot behind. */
static void *map_neighbours(void *arg)
{
	struct crowd *crowd = arg;
	char *low = crowd->base + (crowd->first - 1) * GRANULE;
	char *high = crowd->base + (crowd->first + crowd->slots) * GRANULE;
	unsigned char seen;

	while (!atomic_load(&crowd->stop)) {
		char *at = crowd->neighbours % 2 ? low : high;

		if (map(crowd->fd, crowd->handle, at, GRANULE, 0) ||
		    try_read(at + 64, &seen) || seen != 0x42 ||
		    unmap(crowd->fd, at) || try_read(at + 64, &seen) != SIGBUS)
			atomic_fetch_add(&crowd->wrong, 1);
		crowd->neighbours++;
	}
	return NULL;
}

static void crowd_run(struct __test_metadata *_metadata, struct crowd *crowd)
{
	pthread_t threads[THREADS], mapper;
	unsigned int i;

	crowd->stop = 0;
	ASSERT_EQ(0, pthread_barrier_init(&crowd->barrier, NULL, THREADS));
	ASSERT_EQ(0, pthread_create(&mapper, NULL, map_neighbours, crowd));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_all, crowd));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	atomic_store(&crowd->stop, 1);
	ASSERT_EQ(0, pthread_join(mapper, NULL));
	pthread_barrier_destroy(&crowd->barrier);
}

static void crowd_make(struct __test_metadata *_metadata, struct crowd *crowd, int fd)
{
	*crowd = (struct crowd){ .fd = fd, .first = 1, .slots = SLOTS };
	ASSERT_EQ(0, alloc(fd, 0, GRANULE, &crowd->handle));
	crowd->base = reserve(fd, (SLOTS + 2) * GRANULE);
	ASSERT_NE(MAP_FAILED, crowd->base);
	ASSERT_EQ(0, map(fd, crowd->handle, crowd->base, GRANULE, 0));
	memset(crowd->base, 0x42, GRANULE);
	ASSERT_EQ(0, unmap(fd, crowd->base));
}

/* A round is a slot: 10,000 first touches by 16 threads in all. */
TEST_F_TIMEOUT(client, sixteen_threads_touch_first_at_once, 120)
{
	unsigned int n, i, count = rounds(5);
	struct aclmem_probe_page page;
	struct crowd crowd;

	crowd_make(_metadata, &crowd, self->fd);
	for (n = 0; n < count; n++) {
		for (i = 1; i <= SLOTS; i++)
			ASSERT_EQ(0, map(self->fd, crowd.handle, crowd.base + i * GRANULE,
					 GRANULE, n % 2 ? ACLMEM_MAP_READ_ONLY : 0));
		/* In some rounds, meet at page tables instead. */
		for (i = 1; n % 3 == 2 && self->probe >= 0 && i <= SLOTS; i += 16)
			probe_put_table(self->probe, crowd.base + i * GRANULE);
		crowd_run(_metadata, &crowd);
		ASSERT_EQ(0, atomic_load(&crowd.wrong));
		ASSERT_EQ(0, atomic_load(&crowd.signals));
		if (self->probe >= 0) {
			ASSERT_EQ(0, probe_page(self->probe, crowd.base + 5 * GRANULE, &page));
			EXPECT_EQ(ACLMEM_PROBE_PMD, page.out_level);
			EXPECT_EQ(1, page.out_page.out_refcount);
		}
		for (i = 1; i <= SLOTS; i++)
			ASSERT_EQ(0, unmap(self->fd, crowd.base + i * GRANULE));
	}
	EXPECT_LT(0, crowd.neighbours);
	ASSERT_EQ(0, free_handle(self->fd, crowd.handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/* Threads fault on a slot that another thread maps and unmaps all the time. */
static void *touch_one(void *arg)
{
	struct crowd *crowd = arg;
	char *at = crowd->base + GRANULE;
	unsigned char seen;
	int signal;

	while (!atomic_load(&crowd->stop)) {
		signal = try_read(at + 64, &seen);
		if (signal == SIGBUS)
			atomic_fetch_add(&crowd->signals, 1);
		else if (signal || seen != 0x42)
			atomic_fetch_add(&crowd->wrong, 1);
	}
	return NULL;
}

TEST_F_TIMEOUT(client, unmap_and_faults_at_once, 60)
{
	unsigned int n, i, stale = 0;
	pthread_t threads[4];
	struct crowd crowd;
	char *at;

	crowd_make(_metadata, &crowd, self->fd);
	at = crowd.base + GRANULE;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_one, &crowd));
	for (n = 0; n < rounds(3000); n++) {
		ASSERT_EQ(0, map(self->fd, crowd.handle, at, GRANULE, 0));
		if (n % 16 == 0)
			sched_yield();
		ASSERT_EQ(0, unmap(self->fd, at));
		/* A fault that came too late would have left an entry. */
		if (self->probe >= 0 && probe_level(self->probe, at) >= ACLMEM_PROBE_PTE)
			stale++;
	}
	atomic_store(&crowd.stop, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, stale);
	EXPECT_EQ(0, atomic_load(&crowd.wrong));
	EXPECT_LT(0, atomic_load(&crowd.signals));
	ASSERT_EQ(0, free_handle(self->fd, crowd.handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/* The same handle, from many threads: every call succeeds or says why not. */
static void *juggle(void *arg)
{
	struct crowd *crowd = arg;
	unsigned int n, mine;
	uint32_t handle;
	char *at;
	int rc;

	mine = atomic_fetch_add(&crowd->signals, 1);
	at = crowd->base + (mine % 4) * GRANULE;
	for (n = 0; n < rounds(300); n++) {
		rc = map(crowd->fd, crowd->handle, at, GRANULE, 0);
		if (rc && rc != -EADDRINUSE)
			atomic_fetch_add(&crowd->wrong, 1);
		if (!retain(crowd->fd, at, &handle) &&
		    (handle != crowd->handle || free_handle(crowd->fd, handle)))
			atomic_fetch_add(&crowd->wrong, 1);
		try_read(at, NULL);
		rc = unmap(crowd->fd, at);
		if (rc && rc != -ENXIO)
			atomic_fetch_add(&crowd->wrong, 1);
	}
	return NULL;
}

TEST_F_TIMEOUT(client, threads_share_handles_and_places, 60)
{
	struct aclmem_handle_info info;
	pthread_t threads[THREADS];
	struct crowd crowd;
	unsigned int i;

	crowd_make(_metadata, &crowd, self->fd);
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, juggle, &crowd));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, atomic_load(&crowd.wrong));
	ASSERT_EQ(0, handle_info(self->fd, crowd.handle, &info));
	EXPECT_EQ(0, info.out_mappings);
	EXPECT_EQ(1, info.out_users);
	ASSERT_EQ(0, free_handle(self->fd, crowd.handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_HARNESS_MAIN
