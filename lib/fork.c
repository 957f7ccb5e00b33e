// SPDX-License-Identifier: MIT
/*
 * fork.c: a child starts as a new process does. Owns the order of all locks,
 * which it takes around fork(), so that the child finds no list half changed; and
 * lets every file forget what the parent had. No lock is ever held around a
 * command that takes long, so that fork() doesn't wait for other threads' copies.
 *
 * vfork() and posix_spawn() run no handlers and need none: nothing of the library
 * runs in such a child, and exec() closes the descriptor.
 */
#include "internal.h"

/* In the order in which they would have to be taken inside each other. */
static const struct {
	pthread_mutex_t *lock;
	void (*forget)(void);
} parts[] = {
	{ &aclmem_init_lock, aclmem_init_forget },
	{ &aclmem_device_lock, aclmem_device_forget },
	{ &aclmem_block_lock, aclmem_block_forget },
	{ &aclmem_kernel_lock, aclmem_kernel_forget },
};

void aclmem_fork_prepare(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		pthread_mutex_lock(parts[i].lock);
}

void aclmem_fork_parent(void)
{
	size_t i;

	for (i = ARRAY_SIZE(parts); i-- > 0;)
		pthread_mutex_unlock(parts[i].lock);
}

void aclmem_fork_child(void)
{
	size_t i;

	for (i = ARRAY_SIZE(parts); i-- > 0;) {
		parts[i].forget();
		pthread_mutex_unlock(parts[i].lock);
	}
}
