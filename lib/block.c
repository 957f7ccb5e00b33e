// SPDX-License-Identifier: MIT
/*
 * block.c: the addresses that the library handed out, each with its length and
 * the function it belongs to, in a search tree by start address. That is how an
 * address is freed by its own function only, by its start only, and once only.
 * Owns the tree and its mutex. Whether memory is there is the kernel's knowledge,
 * not this one's.
 */
#include "internal.h"

#include <search.h>
#include <stdlib.h>

struct block {
	uintptr_t address;	/* the key */
	size_t length;
	enum aclmem_block_kind kind;
	bool claimed;		/* a thread is freeing it */
};

pthread_mutex_t aclmem_block_lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks;

static int compare(const void *a, const void *b)
{
	uintptr_t x = ((const struct block *)a)->address;
	uintptr_t y = ((const struct block *)b)->address;

	return (x > y) - (x < y);
}

static struct block *find_locked(const void *address)
{
	struct block key = { .address = (uintptr_t)address };
	struct block **node = tfind(&key, &blocks, compare);

	return node ? *node : NULL;
}

/**
 * aclmem_block_add() - note an address before it's handed out
 * @address: start
 * @length: what munmap() will have to be given
 * @kind: whose it is
 *
 * Return: false if there's no memory for the record
 */
bool aclmem_block_add(void *address, size_t length, enum aclmem_block_kind kind)
{
	struct block *block = malloc(sizeof(*block));
	struct block **node;
	struct block *stale;

	if (!block)
		return false;
	block->address = (uintptr_t)address;
	block->length = length;
	block->kind = kind;
	block->claimed = false;

	pthread_mutex_lock(&aclmem_block_lock);
	node = tsearch(block, &blocks, compare);
	stale = node ? *node : block;
	if (node && stale != block)
		/*
		 * The kernel gave out an address that is noted already: the
		 * program took the old block away with its own munmap().
		 */
		*node = block;
	pthread_mutex_unlock(&aclmem_block_lock);

	if (stale != block)
		free(stale);
	else if (!node)
		free(block);
	return node;
}

/**
 * aclmem_block_claim() - be the one who frees a block
 * @address: its start
 * @kind: the kind that the caller frees
 *
 * What was claimed is either removed or given up, by the same thread.
 *
 * Return: its length, or 0 if there's no such block or somebody else frees it
 */
size_t aclmem_block_claim(void *address, enum aclmem_block_kind kind)
{
	struct block *block;
	size_t length = 0;

	pthread_mutex_lock(&aclmem_block_lock);
	block = find_locked(address);
	if (block && block->kind == kind && !block->claimed) {
		block->claimed = true;
		length = block->length;
	}
	pthread_mutex_unlock(&aclmem_block_lock);
	return length;
}

/* The block can't be freed now. */
void aclmem_block_unclaim(void *address)
{
	struct block *block;

	pthread_mutex_lock(&aclmem_block_lock);
	block = find_locked(address);
	if (block)
		block->claimed = false;
	pthread_mutex_unlock(&aclmem_block_lock);
}

/*
 * Forget a claimed block. This comes before the munmap(): afterwards another
 * thread may be given the same address at any moment, and note it.
 */
void aclmem_block_remove(void *address)
{
	struct block key = { .address = (uintptr_t)address };
	struct block *block;

	pthread_mutex_lock(&aclmem_block_lock);
	block = find_locked(address);
	if (block)
		tdelete(&key, &blocks, compare);
	pthread_mutex_unlock(&aclmem_block_lock);
	free(block);
}

/* What starts at an address, if it isn't being freed. */
enum aclmem_block_kind aclmem_block_kind(void *address)
{
	enum aclmem_block_kind kind = ACLMEM_BLOCK_NONE;
	struct block *block;

	pthread_mutex_lock(&aclmem_block_lock);
	block = find_locked(address);
	if (block && !block->claimed)
		kind = block->kind;
	pthread_mutex_unlock(&aclmem_block_lock);
	return kind;
}

/* For the text of a failure: what to do with an address instead. */
const char *aclmem_block_advice(void *address)
{
	switch (aclmem_block_kind(address)) {
	case ACLMEM_BLOCK_DEVICE:
		return "it's from aclrtMalloc and goes to aclrtFree";
	case ACLMEM_BLOCK_HOST:
		return "it's from aclrtMallocHost and goes to aclrtFreeHost";
	case ACLMEM_BLOCK_RESERVED:
		return "it's from aclrtReserveMemAddress and goes to aclrtReleaseMemAddress";
	case ACLMEM_BLOCK_NONE:
		break;
	}
	return "nothing that was allocated starts there, or it has been freed";
}

/* In a child, which inherits none of the blocks. */
void aclmem_block_forget(void)
{
	tdestroy(blocks, free);
	blocks = NULL;
}
