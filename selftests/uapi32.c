// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules of uapi_rules.c asked by a 32-bit program, and what it gets of
 * memory: allocate, reserve, map, write, read, unmap. No C library; exit status
 * 0, or 2 without the device, else 100 + a number that uapi.c prints.
 */
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <asm/unistd_32.h>

#include "uapi_rules.h"

static int device;

static int call3(int number, unsigned long a, unsigned long b, unsigned long c)
{
	int rc;

	asm volatile("int $0x80" : "=a" (rc)
		     : "a" (number), "b" (a), "c" (b), "d" (c) : "memory");
	return rc;
}

/* The older call: its arguments are in memory. */
static unsigned char *map_device(unsigned long length)
{
	unsigned long args[6] = { 0, length, 3, 1, device, 0 };
	long rc = call3(__NR_mmap, (unsigned long)args, 0, 0);

	return rc < 0 && rc > -4096 ? 0 : (unsigned char *)rc;
}

int uapi_call(unsigned int cmd, void *arg)
{
	return call3(__NR_ioctl, device, cmd, (unsigned long)arg);
}

static int command(unsigned int cmd, void *arg, unsigned int size)
{
	((struct aclmem_head *)arg)->size = size;
	return uapi_call(cmd, arg);
}

static int use_memory(void)
{
	static struct aclmem_query query;
	static struct aclmem_alloc alloc;
	static struct aclmem_map map;
	static struct aclmem_unmap unmap;
	static struct aclmem_free free;
	static unsigned char plain[64];
	static __u64 dst, src, length;
	static struct aclmem_copy copy;
	volatile unsigned char *at;

	if (command(ACLMEM_QUERY, &query, ACLMEM_QUERY_SIZE) ||
	    query.out_granularity != ACLMEM_GRANULARITY)
		return 1;
	alloc.length = ACLMEM_GRANULARITY;
	alloc.location.type = ACLMEM_LOCATION_DEVICE;
	if (command(ACLMEM_ALLOC, &alloc, ACLMEM_ALLOC_SIZE))
		return 2;
	at = map_device(ACLMEM_GRANULARITY);
	if (!at)
		return 3;
	map.address = (unsigned long)at;
	map.length = ACLMEM_GRANULARITY;
	map.handle = alloc.out_handle;
	if (command(ACLMEM_MAP, &map, ACLMEM_MAP_SIZE))
		return 4;
	at[4097] = 5;
	src = (unsigned long)at + 4096;
	dst = (unsigned long)plain;
	length = sizeof(plain);
	copy.src = (unsigned long)&src;
	copy.dst = (unsigned long)&dst;
	copy.length = (unsigned long)&length;
	copy.count = 1;
	if (command(ACLMEM_COPY, &copy, ACLMEM_COPY_SIZE) || plain[1] != 5)
		return 5;
	/* Beyond 4 GiB there is nothing that this program could mean. */
	src |= 1ULL << 32;
	if (!command(ACLMEM_COPY, &copy, ACLMEM_COPY_SIZE))
		return 6;
	unmap.address = map.address | 1ULL << 32;
	if (!command(ACLMEM_UNMAP, &unmap, ACLMEM_UNMAP_SIZE))
		return 7;
	unmap.address = map.address;
	if (command(ACLMEM_UNMAP, &unmap, ACLMEM_UNMAP_SIZE))
		return 8;
	free.handle = alloc.out_handle;
	if (command(ACLMEM_FREE, &free, ACLMEM_FREE_SIZE))
		return 9;
	return 0;
}

static int run(void)
{
	static unsigned char scratch[8192] __attribute__((aligned(4096)));
	unsigned int i;
	int rc;

	device = call3(__NR_open, (unsigned long)"/dev/aclmem", O_RDWR, 0);
	if (device < 0)
		return 2;
	rc = use_memory();
	if (rc)
		return 100 + rc;
	for (i = 0; i < RULES; i++) {
		rc = rule_check(&rules[i], scratch);
		if (rc)
			return 100 + rc;
	}
	rc = rule_check_numbers(scratch);
	return rc ? 100 + rc : 0;
}

void _start(void)
{
	int rc = run();

	for (;;)
		call3(__NR_exit, rc, 0, 0);
}
