// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physical memory and its handles: what may be asked for, what a refusal
 * leaves, that memory is clean, and how handles are counted and named.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fixture.h"

TEST_F(client, lengths_are_checked)
{
	static const uint64_t skewed[] = {
		1, 4096, GRANULE - 1, GRANULE + 1, GRANULE + 4096, SIZE_MAX, SIZE_MAX - 31,
		(1ULL << 60) + 1,
	};
	static const uint64_t huge[] = {
		1ULL << 62, 1ULL << 63, SIZE_MAX - GRANULE + 1, 1ULL << 60, 1ULL << 56,
	};
	uint32_t handle = 77;
	size_t i;

	EXPECT_REFUSED(EINVAL, LENGTH_ZERO, alloc(self->fd, 0, 0, &handle));
	for (i = 0; i < ARRAY_SIZE(skewed); i++) {
		EXPECT_REFUSED(EINVAL, LENGTH_ALIGN, alloc(self->fd, 0, skewed[i], &handle));
		EXPECT_EQ(skewed[i], last.out_value);
	}
	for (i = 0; i < ARRAY_SIZE(huge); i++) {
		int rc = alloc(self->fd, 0, huge[i], &handle);

		/* Which of both is a matter of how much can be addressed. */
		EXPECT_TRUE((rc == -EINVAL && last.out_reason == ACLMEM_REASON_LENGTH_LIMIT) ||
			    (rc == -ENOMEM && last.out_reason == ACLMEM_REASON_CAPACITY))
			TH_LOG("%#llx: %d, %s", (unsigned long long)huge[i], rc,
			       reason_name(last.out_reason));
	}
	EXPECT_REFUSED(EINVAL, LENGTH_LIMIT, alloc(self->fd, 0, 1ULL << 62, &handle));
	EXPECT_EQ(77, handle);
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, locations_are_checked)
{
	static const uint32_t types[] = {
		ACLMEM_LOCATION_UNREGISTERED, ACLMEM_LOCATION_MANAGED, 5, 1000, ~0U,
	};
	uint32_t handle, devices = self->query.out_devices;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_REFUSED(EINVAL, LOCATION_TYPE,
			       alloc_at(self->fd, types[i], 0, GRANULE, &handle));
		EXPECT_EQ(types[i], last.out_value);
	}
	EXPECT_REFUSED(ENODEV, DEVICE, alloc(self->fd, devices, GRANULE, &handle));
	EXPECT_EQ(devices, last.out_value);
	EXPECT_REFUSED(ENODEV, DEVICE, alloc(self->fd, ~0U, GRANULE, &handle));
	EXPECT_REFUSED(ENODEV, DEVICE, alloc(self->fd, 1U << 31, GRANULE, &handle));

	EXPECT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST, 0, GRANULE, &handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_REFUSED(EINVAL, LOCATION_ID,
		       alloc_at(self->fd, ACLMEM_LOCATION_HOST, 1, GRANULE, &handle));
	EXPECT_EQ(1, last.out_value);
	EXPECT_EQ(0, alloc_at(self->fd, ACLMEM_LOCATION_HOST_NUMA, 0, GRANULE, &handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_REFUSED(ENODEV, LOCATION_ID,
		       alloc_at(self->fd, ACLMEM_LOCATION_HOST_NUMA, 1000, GRANULE, &handle));
	EXPECT_REFUSED(ENODEV, LOCATION_ID,
		       alloc_at(self->fd, ACLMEM_LOCATION_HOST_NUMA, ~0U, GRANULE, &handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, page_sizes_are_checked)
{
	static const uint32_t unknown[] = { 2, 3, 4096, ~0U };
	struct aclmem_alloc arg = {
		.length = GRANULE,
		.location.type = ACLMEM_LOCATION_DEVICE,
		.page = ACLMEM_PAGE_2M,
		.attribute = 0xabcd,
	};
	struct aclmem_handle_info info;
	size_t i;

	ASSERT_EQ(0, command(self->fd, ACLMEM_ALLOC, &arg, sizeof(arg)));
	ASSERT_EQ(0, handle_info(self->fd, arg.out_handle, &info));
	EXPECT_EQ(0xabcd, info.out_attribute);
	EXPECT_EQ(GRANULE, info.out_length);
	EXPECT_EQ(ACLMEM_LOCATION_DEVICE, info.out_location.type);
	EXPECT_EQ(0, info.out_location.id);
	EXPECT_EQ(1, info.out_users);
	EXPECT_EQ(0, info.out_mappings);
	EXPECT_EQ(0, info.out_imported);
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		arg.page = unknown[i];
		EXPECT_REFUSED(EOPNOTSUPP, ATTRIBUTE,
			       command(self->fd, ACLMEM_ALLOC, &arg, sizeof(arg)));
		EXPECT_EQ(unknown[i], last.out_value);
	}
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
}

TEST_F_TIMEOUT(client, a_full_device_refuses_and_recovers, 120)
{
	struct aclmem_device info, other;
	uint32_t handle, small;
	uint64_t peak, left;

	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	EXPECT_EQ(0, info.out_total % GRANULE);
	EXPECT_LE(info.out_used, info.out_peak);
	left = info.out_total - info.out_used;
	EXPECT_REFUSED(ENOMEM, CAPACITY, alloc(self->fd, 0, left + GRANULE, &handle));
	EXPECT_EQ(left, last.out_value);
	EXPECT_EQ(self->used, used(self->fd));

	/* To the last byte. */
	ASSERT_EQ(0, alloc(self->fd, 0, left, &handle));
	EXPECT_REFUSED(ENOMEM, CAPACITY, alloc(self->fd, 0, GRANULE, &small));
	EXPECT_EQ(0, last.out_value);
	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	EXPECT_EQ(info.out_total, info.out_used);
	EXPECT_EQ(info.out_total, info.out_peak);
	peak = info.out_peak;
	/* Others aren't full because of it. */
	if (!device_info(self->fd, 1, &other)) {
		EXPECT_EQ(0, other.out_used);
		EXPECT_EQ(0, alloc(self->fd, 1, GRANULE, &small));
		EXPECT_EQ(0, free_handle(self->fd, small));
	}
	ASSERT_EQ(0, free_handle(self->fd, handle));
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &small));
	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	EXPECT_EQ(GRANULE, info.out_used);
	EXPECT_EQ(peak, info.out_peak);
}

TEST_F(client, unknown_devices_have_no_state)
{
	struct aclmem_device info;

	EXPECT_REFUSED(ENODEV, DEVICE, device_info(self->fd, self->query.out_devices, &info));
	EXPECT_EQ(self->query.out_devices, last.out_value);
	EXPECT_REFUSED(ENODEV, DEVICE, device_info(self->fd, ~0U, &info));
	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	EXPECT_LE(0, info.out_node);
}

TEST_F_TIMEOUT(client, memory_is_zero_whoever_used_it_before, 120)
{
	size_t length = rounds(64) * 2 * MIB;
	uint32_t handle;
	unsigned int n;
	char *at;
	pid_t pid;

	/* This process, then one that exits, then one that is killed. */
	for (n = 0; n < 3; n++) {
		pid = n ? fork_child() : 0;
		if (!pid) {
			int fd = n ? open_client(NULL) : self->fd;

			at = map_new(fd, length, 0, &handle);
			if (at == MAP_FAILED)
				_exit(1);
			memset(at, 0xd1, length);
			if (n == 1)
				_exit(0);
			if (n == 2)
				kill(getpid(), SIGKILL);
			ASSERT_EQ(0, unmap_old(fd, at, length, handle));
		} else {
			EXPECT_EQ(n == 1 ? 0 : 256 + SIGKILL, wait_child(pid));
		}
		ASSERT_TRUE(used_becomes(self->fd, self->used));
		at = map_new(self->fd, length, 0, &handle);
		ASSERT_NE(MAP_FAILED, at);
		EXPECT_EQ(-1, byte_differs(at, length, 0));
		ASSERT_EQ(0, unmap_old(self->fd, at, length, handle));
	}
}

TEST_F(client, a_handle_is_freed_as_often_as_it_is_held)
{
	struct aclmem_handle_info info;
	uint32_t handle, again;
	char *at = map_new(self->fd, GRANULE, 0, &handle);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, retain(self->fd, at, &again));
	EXPECT_EQ(handle, again);
	EXPECT_EQ(0, retain(self->fd, at, &again));
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(3, info.out_users);
	EXPECT_EQ(1, info.out_mappings);
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	/* The mapping keeps it, and its name, but nobody may free it. */
	EXPECT_REFUSED(EINVAL, OVER_FREED, free_handle(self->fd, handle));
	EXPECT_EQ(handle, last.out_value);
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(0, info.out_users);
	EXPECT_EQ(0, try_write(at, 1));
	/* RETAIN holds it anew. */
	EXPECT_EQ(0, retain(self->fd, at, &again));
	EXPECT_EQ(handle, again);
	EXPECT_EQ(0, unmap(self->fd, at));
	EXPECT_EQ(0, map(self->fd, handle, at, GRANULE, 0));
	EXPECT_EQ(1, at[0]);
	EXPECT_EQ(0, unmap(self->fd, at));
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	EXPECT_EQ(self->used, used(self->fd));
	EXPECT_REFUSED(ENOENT, HANDLE, free_handle(self->fd, handle));
	EXPECT_REFUSED(ENOENT, HANDLE, handle_info(self->fd, handle, &info));
}

TEST_F(client, retain_takes_the_start_of_a_mapping)
{
	uint32_t handle, again = 5;
	char *at = map_new(self->fd, 2 * GRANULE, 0, &handle);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, retain(self->fd, at + GRANULE, &again));
	EXPECT_EQ((uintptr_t)at + GRANULE, last.out_value);
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, retain(self->fd, at + 1, &again));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, retain(self->fd, NULL, &again));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, retain(self->fd, self, &again));
	ASSERT_EQ(0, unmap(self->fd, at));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, retain(self->fd, at, &again));
	EXPECT_EQ(5, again);
}

TEST_F(client, names_are_not_used_again_soon)
{
	static uint32_t names[2000];
	unsigned int i, j, n = rounds(1000);
	uint32_t other;

	if (n > ARRAY_SIZE(names))
		n = ARRAY_SIZE(names);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &names[i]));
		EXPECT_NE(0, names[i]);
		ASSERT_EQ(0, free_handle(self->fd, names[i]));
		if (i && names[i] == names[i - 1])
			break;
	}
	EXPECT_EQ(n, i);
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			ASSERT_NE(names[i], names[j]);
	/* A stale name hits nothing while others live. */
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &other));
	for (i = 0; i < n; i++)
		ASSERT_EQ(-ENOENT, free_handle(self->fd, names[i]));
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
}

TEST_F(client, another_process_has_other_names)
{
	uint32_t handle;
	pid_t pid;

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	pid = fork_child();
	if (!pid) {
		int fd = open_client(NULL);
		uint32_t i;

		for (i = 0; i < handle + 10; i++)
			if (free_handle(fd, i) != -ENOENT)
				_exit(1);
		_exit(0);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(self->used + GRANULE, used(self->fd));
	EXPECT_EQ(0, free_handle(self->fd, handle));
}

/* An allocation that takes seconds ends soon after a fatal signal. */
TEST_F_TIMEOUT(client, a_large_allocation_ends_at_a_fatal_signal, 60)
{
	struct aclmem_device info;
	unsigned int n, early = 0;
	uint32_t handle;
	uint64_t begun;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, device_info(self->fd, 0, &info));
	for (n = 0; n < 4; n++) {
		ASSERT_EQ(0, pipe(pipes));
		pid = fork_child();
		if (!pid) {
			int fd = open_client(NULL);

			send_u64(pipes[1], 1);
			_exit(alloc(fd, 0, info.out_total - info.out_used, &handle) ? 1 : 0);
		}
		close(pipes[1]);
		ASSERT_TRUE(receive_u64(pipes[0], &begun));
		usleep(1000 + n * 30000);
		begun = now_ms();
		ASSERT_EQ(0, kill(pid, SIGKILL));
		early += wait_child(pid) == 256 + SIGKILL;
		EXPECT_GT(5000, now_ms() - begun);
		EXPECT_TRUE(used_becomes(self->fd, self->used));
		close(pipes[0]);
	}
	EXPECT_LT(0, early);
}

TEST_HARNESS_MAIN
