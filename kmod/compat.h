/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernel versions that the module meets is answered
 * here, from 6.1 on; no other file asks for a version.
 */
#ifndef ACLMEM_COMPAT_H
#define ACLMEM_COMPAT_H

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#include <linux/pfn_t.h>
#endif

#ifndef CONFIG_64BIT
#error "aclmem keeps addresses in page offsets and needs a 64-bit kernel"
#endif
#ifndef CONFIG_MMU_NOTIFIER
#error "aclmem hears of a process's end by CONFIG_MMU_NOTIFIER"
#endif
#ifndef CONFIG_TRANSPARENT_HUGEPAGE
#error "aclmem maps huge pages and needs CONFIG_TRANSPARENT_HUGEPAGE"
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void aclmem_vma_flags(struct vm_area_struct *vma,
				    unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#else
static inline void aclmem_vma_flags(struct vm_area_struct *vma,
				    unsigned long set, unsigned long clear)
{
	vm_flags_mod(vma, set, clear);
}
#endif

/*
 * A PMD entry that nobody can pin. Before 6.12 gup_fast takes a plain huge
 * entry for ordinary memory and pins its pages; marked as a device's
 * (PFN_DEV | PFN_MAP) it looks for a dev_pagemap, finds none and gives up, and
 * the slow path refuses VM_PFNMAP. From 6.12 on the entry itself is special.
 */
static inline vm_fault_t aclmem_insert_pmd(struct vm_fault *vmf,
					   unsigned long pfn, bool write)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	return vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV | PFN_MAP),
				  write);
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	return vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV), write);
#else
	return vmf_insert_pfn_pmd(vmf, pfn, write);
#endif
}

/* A free stretch of the current address space, page-aligned. */
static inline unsigned long
aclmem_unmapped_area(struct file *file, unsigned long hint, unsigned long length,
		     unsigned long pgoff, unsigned long flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	return current->mm->get_unmapped_area(file, hint, length, pgoff, flags);
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
	return mm_get_unmapped_area(current->mm, file, hint, length, pgoff,
				    flags);
#else
	return mm_get_unmapped_area(file, hint, length, pgoff, flags);
#endif
}

#endif /* ACLMEM_COMPAT_H */
