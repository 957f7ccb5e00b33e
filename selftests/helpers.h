/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the selftest programs share: the module's commands as functions, its
 * probe, and small help with processes, faults and memory.
 *
 * Commands return 0 or a negative errno; `last` then holds the head that the
 * kernel answered, of this thread's last command.
 */
#ifndef _HELPERS_H
#define _HELPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/aclmem.h>

#include "aclmem_probe.h"

#define GRANULE ((size_t)ACLMEM_GRANULARITY)
#define MIB ((size_t)1 << 20)
#define DEVICE_PATH "/dev/aclmem"

/* Exit code by which the harness knows a skipped test. */
#define HARNESS_SKIP 255

extern __thread struct aclmem_head last;

/* The raw command; cmd's structure is given with its size. */
int command(int fd, unsigned int cmd, void *arg, size_t size);
const char *reason_name(unsigned int reason);

int open_device(void);
int open_client(struct aclmem_query *query);
int device_info(int fd, unsigned int device, struct aclmem_device *info);
uint64_t used(int fd);
int alloc(int fd, unsigned int device, size_t length, uint32_t *handle);
int alloc_at(int fd, uint32_t type, uint32_t id, size_t length, uint32_t *handle);
int free_handle(int fd, uint32_t handle);
int retain(int fd, const void *address, uint32_t *handle);
int handle_info(int fd, uint32_t handle, struct aclmem_handle_info *info);

void *reserve(int fd, size_t length);
void *reserve_at(int fd, void *address, size_t length);
int map(int fd, uint32_t handle, void *address, size_t length, uint32_t flags);
int unmap(int fd, const void *address);
int release(int fd, const void *address);
int address_info(int fd, const void *address, struct aclmem_address *info);
/* Allocate on device 0, reserve, map, and free the handle if not wanted. */
void *map_new(int fd, size_t length, uint32_t flags, uint32_t *handle);
/* Unmap, free the handle if it is one, and munmap. */
int unmap_old(int fd, void *address, size_t length, uint32_t handle);

int export_handle(int fd, uint32_t handle, uint32_t flags, uint64_t *share);
int whitelist(int fd, uint64_t share, const int32_t *pids, uint32_t count);
int import_share(int fd, uint64_t share, uint32_t device, uint32_t *handle);
int copy(int fd, void *dst, const void *src, size_t length);
int copy_items(int fd, const uint64_t *dst, const uint64_t *src,
	       const uint64_t *length, uint32_t count, uint64_t *bytes);
int fill(int fd, void *address, size_t length, uint32_t value);

/*
 * The probe. Those that return a level give ACLMEM_PROBE_NONE without it, so
 * that a test which needs it skips by probe_open() first.
 */
int probe_open(void);
int probe_level(int probe, const void *address);
int probe_page(int probe, const void *address, struct aclmem_probe_page *page);
int probe_pfn(int probe, uint64_t pfn, struct aclmem_probe_pfn *page);
/* Leave a table for 4 KiB entries where a 2 MiB entry would go. */
int probe_put_table(int probe, const void *address);
int probe_arm(int probe, unsigned int nth, unsigned int flags, int syscall);
int probe_disarm(int probe, struct aclmem_probe_injected *injected);

/*
 * Access that may fault: 0, or the signal it raised. Each program calls
 * catch_faults() once before.
 */
void catch_faults(void);
int try_read(const void *address, unsigned char *value);
int try_write(void *address, unsigned char value);

/* n rounds, at the scale that ACLMEM_TEST_SCALE (percent) asks for. */
unsigned int rounds(unsigned int n);
uint64_t now_ms(void);

/* A pattern that differs by place and seed, and the first place that differs. */
void pattern_set(void *address, size_t length, uint64_t seed);
ssize_t pattern_differs(const void *address, size_t length, uint64_t seed);
/* -1, or the first byte that isn't the value. */
ssize_t byte_differs(const void *address, size_t length, unsigned char value);

/* Numbers and descriptors between processes; false at the end of the other. */
bool send_u64(int fd, uint64_t value);
bool receive_u64(int fd, uint64_t *value);
bool send_fd(int socket, int fd);
int receive_fd(int socket);
/* fork(), and the child dies with its parent. */
pid_t fork_child(void);
/* Exit status of the child, or 256 + its fatal signal; -1 after 20 s. */
int wait_child(pid_t pid);
/* The device has as much in use as before, within 5 s. */
bool used_becomes(int fd, uint64_t bytes);

/* Write a string to a file; 0 or a negative errno. */
int write_file(const char *path, const char *text);
int read_number(const char *path, const char *key, uint64_t *value);

/*
 * For a fixture's setup: skip the test if the module, or the probe, isn't
 * there. (The harness of 6.1 would run a test that its setup skipped.)
 */
#define REQUIRE_CLIENT(fd) do { \
	if ((fd) == -ENOENT || (fd) == -EACCES) \
		SKIP(_exit(HARNESS_SKIP), "%s: can't open " DEVICE_PATH, \
		     _metadata->name); \
	ASSERT_GE(fd, 0); \
} while (0)

#define REQUIRE_PROBE(probe) do { \
	if ((probe) < 0) \
		SKIP(return, "%s: needs aclmem_probe.ko", _metadata->name); \
} while (0)

/* The call fails with this errno for this reason. */
#define EXPECT_REFUSED(error, reason, call) do { \
	EXPECT_EQ(-(error), (call)); \
	EXPECT_STREQ(#reason, reason_name(last.out_reason)); \
} while (0)

#endif /* _HELPERS_H */
