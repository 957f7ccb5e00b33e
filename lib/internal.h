/* SPDX-License-Identifier: MIT */
/*
 * internal.h: what the library's files offer each other. Nothing here is
 * exported from the shared library: only the functions of the API are.
 *
 * Who may call whom, downwards only:
 *
 *   init.c (aclInit, versions)            json.c
 *   malloc.c  address.c  physical.c  share.c  batch.c  copy.c  host.c
 *   device.c (devices, contexts)          block.c (addresses handed out)
 *   kernel.c (the descriptor)             error.c (texts and results)
 *
 * Locks: one mutex each in init.c, device.c, block.c and kernel.c. Each is taken
 * inside its own file only, around memory operations, never around a command
 * that can take long; fork.c takes all of them, in the order above, around a
 * fork().
 */
#ifndef ACLMEM_INTERNAL_H
#define ACLMEM_INTERNAL_H

/* Before the first header of the C library: every file begins with this one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <acl/acl.h>
#include <linux/aclmem.h>

/* Linux 5.14, but not every C library that is still around. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#pragma GCC visibility push(hidden)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define __printf(text, first) __attribute__((__format__(__printf__, text, first)))

/* error.c */

/* The functions whose commands the kernel may refuse, as keys of one table. */
enum aclmem_call {
	ACLMEM_CALL_ANY,
	ACLMEM_CALL_MALLOC_PHYSICAL,
	ACLMEM_CALL_FREE_PHYSICAL,
	ACLMEM_CALL_PROPERTIES,
	ACLMEM_CALL_RETAIN,
	ACLMEM_CALL_MAP,
	ACLMEM_CALL_UNMAP,
	ACLMEM_CALL_RELEASE,
	ACLMEM_CALL_EXPORT,
	ACLMEM_CALL_SET_PID,
	ACLMEM_CALL_IMPORT,
	ACLMEM_CALL_MALLOC,
	ACLMEM_CALL_FREE,
	ACLMEM_CALL_MEMCPY,
	ACLMEM_CALL_MEMSET,
	ACLMEM_CALL_BATCH,
	ACLMEM_CALL_MEM_INFO,
};

aclError __printf(3, 4)
aclmem_fail(aclError code, const char *name, const char *format, ...);
aclError __printf(5, 6)
aclmem_fail_kernel(enum aclmem_call call, const char *name, int error,
		   const struct aclmem_head *head, const char *format, ...);

/* Fail in the function of the API that is running. */
#define fail(code, ...) aclmem_fail(code, __func__, __VA_ARGS__)

/* kernel.c */
extern pthread_mutex_t aclmem_kernel_lock;
void aclmem_kernel_forget(void);
aclError aclmem_kernel_use(const char *name, const struct aclmem_query **query);
int aclmem_kernel_do(unsigned long command, struct aclmem_head *head,
		     size_t size);
aclError aclmem_kernel_reserve(const char *name, void *wanted, size_t length,
			       void **start);

/* fork.c */
void aclmem_fork_prepare(void);
void aclmem_fork_parent(void);
void aclmem_fork_child(void);

/* device.c */
extern pthread_mutex_t aclmem_device_lock;
void aclmem_device_forget(void);
aclError aclmem_device_find(const char *name, const char *what, int64_t user,
			    uint32_t *device);
aclError aclmem_device_current(const char *name, uint32_t *device);
bool aclmem_device_in_use(uint32_t device);
bool aclmem_device_any_used(void);
bool aclmem_device_renumbered(void);
bool aclmem_device_number(int64_t user, uint32_t *device);
uint32_t aclmem_device_user(uint32_t device);

/* block.c */
enum aclmem_block_kind {
	ACLMEM_BLOCK_NONE,
	ACLMEM_BLOCK_DEVICE,	/* aclrtMalloc() */
	ACLMEM_BLOCK_HOST,	/* aclrtMallocHost() */
	ACLMEM_BLOCK_RESERVED,	/* aclrtReserveMemAddress() */
};

extern pthread_mutex_t aclmem_block_lock;
void aclmem_block_forget(void);
bool aclmem_block_add(void *address, size_t length, enum aclmem_block_kind kind);
size_t aclmem_block_claim(void *address, enum aclmem_block_kind kind);
void aclmem_block_unclaim(void *address);
void aclmem_block_remove(void *address);
enum aclmem_block_kind aclmem_block_kind(void *address);
const char *aclmem_block_advice(void *address);

/* physical.c */
aclrtDrvMemHandle aclmem_handle_make(uint32_t id);
bool aclmem_handle_id(aclrtDrvMemHandle handle, uint32_t *id);

/* init.c and json.c */
extern pthread_mutex_t aclmem_init_lock;
void aclmem_init_forget(void);
bool aclmem_json_valid(const char *text, size_t length);

#pragma GCC visibility pop

/* 0 if the result can't be represented. */
static inline size_t aclmem_round_up(size_t size, size_t multiple)
{
	size_t over = size % multiple;

	if (!over)
		return size;
	if (size > SIZE_MAX - (multiple - over))
		return 0;
	return size + (multiple - over);
}

static inline uint64_t aclmem_u64(const void *address)
{
	return (uintptr_t)address;
}

#endif /* ACLMEM_INTERNAL_H */
