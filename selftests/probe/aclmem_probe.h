/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aclmem_probe: what the selftests ask a second module about the first.
 *
 * The node is /dev/aclmem_probe, for CAP_SYS_ADMIN only. Nothing here looks at
 * the state of aclmem.ko: page tables, page counts and allocations are read
 * from, and changed in, the kernel itself.
 */
#ifndef _ACLMEM_PROBE_H
#define _ACLMEM_PROBE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * enum aclmem_probe_level - what the page tables hold for an address
 * @ACLMEM_PROBE_NONE: nothing, at the level of the 2 MiB entry or above
 * @ACLMEM_PROBE_TABLE: a page table of 4 KiB entries whose entry is empty
 * @ACLMEM_PROBE_PTE: a 4 KiB entry
 * @ACLMEM_PROBE_PMD: a 2 MiB entry
 * @ACLMEM_PROBE_PUD: a 1 GiB entry
 */
enum aclmem_probe_level {
	ACLMEM_PROBE_NONE = 0,
	ACLMEM_PROBE_TABLE = 1,
	ACLMEM_PROBE_PTE = 2,
	ACLMEM_PROBE_PMD = 3,
	ACLMEM_PROBE_PUD = 4,
};

/* Of the page table entry. */
#define ACLMEM_PROBE_WRITE	0x0001
#define ACLMEM_PROBE_DIRTY	0x0002
#define ACLMEM_PROBE_SPECIAL	0x0004
#define ACLMEM_PROBE_DEVMAP	0x0008
/* Of the page; without PAGE the number has no struct page. */
#define ACLMEM_PROBE_PAGE	0x0100
#define ACLMEM_PROBE_COMPOUND	0x0200
#define ACLMEM_PROBE_HWPOISON	0x0400
#define ACLMEM_PROBE_BUDDY	0x0800
#define ACLMEM_PROBE_RESERVED	0x1000
#define ACLMEM_PROBE_CHARGED	0x2000

/**
 * struct aclmem_probe_pfn - one page
 * @pfn: page frame number; an argument of ACLMEM_PROBE_GET_PFN
 * @out_refcount: reference count of the compound head, raw: the page may be
 *	free
 * @out_order: order of the compound page, 0 for another
 * @out_flags: ACLMEM_PROBE_... of the page
 * @reserved: unused
 */
struct aclmem_probe_pfn {
	__u64 pfn;
	__s32 out_refcount;
	__u32 out_order;
	__u32 out_flags;
	__u32 reserved;
};

/**
 * struct aclmem_probe_page - the page at an address of the caller
 * @address: any address
 * @out_level: &enum aclmem_probe_level
 * @out_entry: ACLMEM_PROBE_... of the entry
 * @out_page: the page, if there is an entry
 */
struct aclmem_probe_page {
	__u64 address;
	__u32 out_level;
	__u32 out_entry;
	struct aclmem_probe_pfn out_page;
};

/* All from the n-th on fail, not the n-th alone. */
#define ACLMEM_PROBE_REPEAT	0x0001
/* Count only allocations that may sleep and reclaim. */
#define ACLMEM_PROBE_RECLAIM	0x0002

/**
 * struct aclmem_probe_inject - fail memory allocations of the calling thread
 * @nth: 1 for the first allocation from now on; 0 counts without failing
 * @flags: ACLMEM_PROBE_REPEAT, ACLMEM_PROBE_RECLAIM
 * @syscall: only inside this system call, -1 for everywhere
 * @reserved: unused
 *
 * Slab objects, pages and bulks of them count, in the calling thread and in
 * process context only. __GFP_NOFAIL never counts. One thread at a time can be
 * armed; ending the thread doesn't disarm, closing the descriptor does.
 */
struct aclmem_probe_inject {
	__u32 nth;
	__u32 flags;
	__s32 syscall;
	__u32 reserved;
};

/**
 * struct aclmem_probe_injected - what came of it, and disarm
 * @out_seen: allocations counted
 * @out_failed: how many of them were made to fail
 * @out_function: the function that failed first, empty if none
 */
struct aclmem_probe_injected {
	__u32 out_seen;
	__u32 out_failed;
	char out_function[32];
};

/*
 * Puts a table of 4 KiB entries, all empty, where a 2 MiB entry would go: what
 * stays in a place that held smaller pages. Nothing may be mapped there.
 */
#define ACLMEM_PROBE_PUT_TABLE	_IOW(0xBD, 0x84, struct aclmem_probe_page)
#define ACLMEM_PROBE_GET_PAGE	_IOWR(0xBD, 0x80, struct aclmem_probe_page)
#define ACLMEM_PROBE_GET_PFN	_IOWR(0xBD, 0x81, struct aclmem_probe_pfn)
#define ACLMEM_PROBE_ARM	_IOW(0xBD, 0x82, struct aclmem_probe_inject)
#define ACLMEM_PROBE_DISARM	_IOR(0xBD, 0x83, struct aclmem_probe_injected)

#endif /* _ACLMEM_PROBE_H */
