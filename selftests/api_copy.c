// SPDX-License-Identifier: GPL-2.0-only
/*
 * aclrtMemcpy() and aclrtMemset(): every direction, kind and awkward size, and the
 * order of their checks. Ends that can't be copied are in api_copy_bad.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api_fixture.h"

/* What an end is. Each has room for the largest size, and a margin on both sides. */
enum place {
	PLAIN,		/* malloc() */
	PINNED,		/* aclrtMallocHost() */
	ALLOCATED,	/* aclrtMalloc() */
	MAPPED,		/* two handles side by side, copies cross the seam */
	OTHER,		/* the same on device 1, if there is one */
	HOST,		/* physical memory of the host */
	PLACES,
};

static const char * const names[] = { "plain", "pinned", "allocated", "mapped", "other", "host" };

#define ROOM (6 * MIB)

FIXTURE(ends)
{
	int fd;
	uint64_t used;
	unsigned char *from[PLACES];
	unsigned char *to[PLACES];
};

/* Two handles of 2 and 4 MiB side by side. */
static void *two_mappings(aclrtMemLocationType type, uint32_t id)
{
	aclrtPhysicalMemProp prop = memory_of(id);
	aclrtDrvMemHandle handle;
	void *address;
	int i;

	prop.location.type = type;
	if (aclrtReserveMemAddress(&address, ROOM, 0, NULL, 0))
		return NULL;
	for (i = 0; i < 2; i++)
		if (aclrtMallocPhysical(&handle, (i + 1) * GRANULE, &prop, 0) ||
		    aclrtMapMem(address + i * GRANULE, (i + 1) * GRANULE, 0, handle, 0) ||
		    aclrtFreePhysical(handle))
			return NULL;
	return address;
}

static unsigned char *new_end(enum place place, uint32_t last)
{
	void *address = NULL;

	switch (place) {
	case PLAIN:
		return malloc(ROOM);
	case PINNED:
		return aclrtMallocHost(&address, ROOM) ? NULL : address;
	case ALLOCATED:
		return aclrtMalloc(&address, ROOM, 0) ? NULL : address;
	case MAPPED:
		return two_mappings(ACL_MEM_LOCATION_TYPE_DEVICE, 0);
	case OTHER:
		return two_mappings(ACL_MEM_LOCATION_TYPE_DEVICE, last);
	default:
		return two_mappings(ACL_MEM_LOCATION_TYPE_HOST, 0);
	}
}

static aclError end_of_end(enum place place, void *address)
{
	aclError ret;

	switch (place) {
	case PLAIN:
		free(address);
		return 0;
	case PINNED:
		return aclrtFreeHost(address);
	case ALLOCATED:
		return aclrtFree(address);
	default:
		ret = aclrtUnmapMem(address + GRANULE);
		return ret ? ret : end_mapping(address);
	}
}

FIXTURE_SETUP(ends)
{
	uint32_t devices;
	int i;

	catch_faults();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtGetDeviceCount(&devices));
	ASSERT_EQ(0, aclrtSetDevice(devices - 1));
	ASSERT_EQ(0, aclrtSetDevice(0));
	for (i = 0; i < PLACES; i++) {
		self->from[i] = new_end(i, devices - 1);
		self->to[i] = new_end(i, devices - 1);
		ASSERT_NE(NULL, self->from[i]);
		ASSERT_NE(NULL, self->to[i]);
	}
}

FIXTURE_TEARDOWN(ends)
{
	int i;

	for (i = 0; i < PLACES; i++) {
		EXPECT_EQ(0, end_of_end(i, self->from[i]));
		EXPECT_EQ(0, end_of_end(i, self->to[i]));
	}
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

/* Just these bytes are copied: the result, or -1 if others are. */
static aclError copy_exactly(unsigned char *to, const unsigned char *from, size_t size,
			     aclrtMemcpyKind kind)
{
	aclError ret;

	memset(to - 16, 0xcc, size + 32);
	ret = aclrtMemcpy(to, size, from, size, kind);
	if (ret)
		return ret;
	if (memcmp(to, from, size) || byte_differs(to - 16, 16, 0xcc) >= 0 ||
	    byte_differs(to + size, 16, 0xcc) >= 0)
		return -1;
	return 0;
}

/* The addresses decide: each pair of places with each kind, across the seams. */
TEST_F_TIMEOUT(ends, each_direction_copies_with_each_kind, 60)
{
	static const size_t sizes[] = { 1, 7, 4095, 65537, GRANULE + 1 };
	unsigned char *from, *to;
	int i, j, kind;
	size_t k;

	for (i = 0; i < PLACES; i++)
		pattern_set(self->from[i], ROOM, i);
	for (i = 0; i < PLACES; i++) {
		for (j = 0; j < PLACES; j++) {
			for (kind = 0; kind < 6; kind++) {
				k = (i + j + kind) % 5;
				from = self->from[i] + GRANULE - sizes[k] / 2;
				to = self->to[j] + GRANULE - sizes[k] / 3;
				EXPECT_EQ(0, copy_exactly(to, from, sizes[k], kind))
					TH_LOG("%s to %s, kind %d, %zu bytes", names[i], names[j],
					       kind, sizes[k]);
			}
		}
	}
}

TEST_F_TIMEOUT(ends, every_size_and_alignment_is_copied_exactly, 60)
{
	static const size_t sizes[] = { 1, 2, 3, 8, 31, 32, 33, 4095, 4096, 4097, 65535, 65536,
					2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB + 5 };
	static const enum place pairs[][2] = {
		{ PLAIN, MAPPED }, { MAPPED, PLAIN }, { MAPPED, ALLOCATED }, { OTHER, MAPPED },
		{ PLAIN, PINNED },
	};
	unsigned char *from, *to;
	size_t i, j;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		pattern_set(self->from[pairs[i][0]], ROOM, i);
		for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			from = self->from[pairs[i][0]] + GRANULE - 1 - j;
			to = self->to[pairs[i][1]] + GRANULE - 17 + j;
			EXPECT_EQ(0, copy_exactly(to, from, sizes[j], ACL_MEMCPY_DEFAULT))
				TH_LOG("%s to %s, %zu bytes", names[pairs[i][0]],
				       names[pairs[i][1]], sizes[j]);
		}
	}
}

TEST_F(acl, a_copy_is_checked_in_order)
{
	unsigned char from[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, to[8] = {};
	static const int bad[] = { -1, 6, 7, 8, 99 };
	size_t i;

	/* Nothing but the count is looked at if it's 0. */
	ASSERT_EQ(0, aclrtResetDevice(0));
	EXPECT_EQ(0, aclrtMemcpy(NULL, 0, NULL, 0, 99));
	EXPECT_EQ(0, aclrtMemcpy(to, 8, from, 0, 0));
#define REFUSED(code, words, dst, max, src, count, kind) \
	EXPECT_FAILS(code, words, aclrtMemcpy(dst, max, src, count, kind))
	REFUSED(ACL_ERROR_INVALID_PARAM, "dst|NULL", NULL, 0, NULL, 9, 6);
	REFUSED(ACL_ERROR_INVALID_PARAM, "src|NULL", to, 0, NULL, 9, 6);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		REFUSED(ACL_ERROR_INVALID_PARAM, "kind", to, 0, from, 9, bad[i]);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "destMax|0", to, 0, from, 1, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "destMax|7|8", to, 7, from, 8, 0);
	REFUSED(ACL_ERROR_RT_PARAM_INVALID, "destMax", to, 7, to, 8, 0);
	EXPECT_EQ(0, aclrtMemcpy(to, 8, to, 8, 0));
	EXPECT_EQ(0, aclrtMemcpy(NOWHERE, 8, NOWHERE, 8, 0));
	REFUSED(ACL_ERROR_RT_CONTEXT_NULL, "context", to, 8, from, 8, 0);
#undef REFUSED
	EXPECT_EQ(-1, byte_differs(to, 8, 0));
	ASSERT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtMemcpy(to, SIZE_MAX, from, 8, 0));
	EXPECT_EQ(0, memcmp(to, from, 8));
}

TEST_F(acl, setting_is_checked_in_order)
{
	unsigned char bytes[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

	ASSERT_EQ(0, aclrtResetDevice(0));
	EXPECT_EQ(0, aclrtMemset(NULL, 0, 1, 0));
	EXPECT_EQ(0, aclrtMemset(bytes, 0, 2, 0));
	EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, "devPtr|NULL", aclrtMemset(NULL, 0, 2, 9));
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "maxCount|7|8", aclrtMemset(bytes, 7, 2, 8));
	EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, "maxCount|0|1", aclrtMemset(bytes, 0, 2, 1));
	EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, "context", aclrtMemset(bytes, 8, 2, 8));
	EXPECT_EQ(-1, byte_differs(bytes, 8, 1));
	ASSERT_EQ(0, aclrtSetDevice(0));
	EXPECT_EQ(0, aclrtMemset(bytes, SIZE_MAX, 2, 7));
	EXPECT_EQ(-1, byte_differs(bytes, 7, 2));
	EXPECT_EQ(1, bytes[7]);
}

TEST_F(ends, exactly_the_count_is_set_to_the_low_byte)
{
	static const size_t sizes[] = { 1, 4095, 4097, 65537, 2 * MIB + 3 };
	static const int32_t values[] = { 0, 0x7f, 0xff, -1, 0x1234, INT32_MIN };
	unsigned char *at;
	size_t i, j;
	int place;

	for (place = 0; place < PLACES; place++) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			j = (i + place) % 6;
			at = self->to[place] + GRANULE - sizes[i] / 2;
			memset(at - 16, 0x55, sizes[i] + 32);
			EXPECT_EQ(0, aclrtMemset(at, sizes[i], values[j], sizes[i]));
			EXPECT_EQ(-1, byte_differs(at, sizes[i], values[j]));
			EXPECT_EQ(-1, byte_differs(at - 16, 16, 0x55));
			EXPECT_EQ(-1, byte_differs(at + sizes[i], 16, 0x55));
		}
	}
}

struct copier {
	unsigned char *memory;
	int index;
	size_t wrong;
};

/* Each thread copies its own quarter to and fro. */
static void *copy_to_and_fro(void *data)
{
	struct copier *copier = data;
	unsigned char *own = copier->memory + copier->index * MIB;
	unsigned char *host = malloc(MIB);
	unsigned int i;

	if (!host || aclrtSetDevice(0))
		copier->wrong++;
	for (i = 0; i < rounds(20) && !copier->wrong; i++) {
		pattern_set(host, MIB, copier->index * 1000 + i);
		copier->wrong += aclrtMemcpy(own, MIB, host, MIB, 1) != 0;
		memset(host, 0, MIB);
		copier->wrong += aclrtMemcpy(host, MIB, own, MIB, 2) != 0;
		copier->wrong += pattern_differs(host, MIB, copier->index * 1000 + i) != -1;
	}
	free(host);
	aclrtResetDevice(0);
	return NULL;
}

TEST_F(ends, threads_copy_at_once)
{
	struct copier copiers[4] = {};
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++) {
		copiers[i].memory = self->from[MAPPED];
		copiers[i].index = i;
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, copy_to_and_fro, &copiers[i]));
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, copiers[i].wrong);
	}
}

TEST_HARNESS_MAIN
