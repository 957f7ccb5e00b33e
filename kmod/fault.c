// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VMA of a reservation: what the kernel may do with it, and how page tables
 * get filled. Faults take client->map_sem for reading, below mmap_lock.
 *
 * Rules that were learned from provoked failures:
 * - Which kind of entry an address gets follows from geometry alone, and
 *   everything here is made of whole, aligned chunks: a PMD entry. The one
 *   exception is a slot that already has a page table: unmap_mapping_range()
 *   leaves tables, and a refused mremap() brings them; a PMD entry on top would
 *   warn and loop. Such a slot gets its PTEs, all of them at once.
 * - An entry is inserted as writable as its mapping is, whatever the fault was,
 *   and a write to a read-only mapping is refused before any insert, in fault()
 *   and in pfn_mkwrite(); without the latter the kernel would make a read-only
 *   entry writable by itself.
 * - No entry can be pinned: see aclmem_insert_pmd(); PTEs by
 *   vmf_insert_pfn_prot() are special on every version.
 */
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include "aclmem.h"
#include "compat.h"

static bool may_write(const struct aclmem_mapping *mapping)
{
	return !(mapping->flags & ACLMEM_MAP_READ_ONLY);
}

/*
 * The protection of a 4 KiB entry. vma->vm_page_prot isn't it: with a
 * pfn_mkwrite the kernel keeps the write bit out of that.
 */
static pgprot_t entry_prot(struct vm_area_struct *vma, bool write)
{
	return vm_get_page_prot(write ? vma->vm_flags :
					vma->vm_flags & ~VM_WRITE);
}

static vm_fault_t insert_ptes(struct vm_fault *vmf, unsigned long base,
			      unsigned long pfn, bool write)
{
	pgprot_t prot = entry_prot(vmf->vma, write);
	unsigned long hit = (vmf->address - base) >> PAGE_SHIFT;
	vm_fault_t result;
	unsigned long i;

	result = vmf_insert_pfn_prot(vmf->vma, base + (hit << PAGE_SHIFT),
				     pfn + hit, prot);
	/* The neighbours save faults; one that can't be had is no failure. */
	for (i = 0; i < PTRS_PER_PTE && result == VM_FAULT_NOPAGE; i++)
		if (i != hit &&
		    vmf_insert_pfn_prot(vmf->vma, base + (i << PAGE_SHIFT),
					pfn + i, prot) != VM_FAULT_NOPAGE)
			break;
	return result;
}

static vm_fault_t insert_chunk(struct vm_fault *vmf,
			       const struct aclmem_mapping *mapping)
{
	unsigned long base = vmf->address & PMD_MASK;
	bool write = may_write(mapping);
	unsigned long pfn;
	pmd_t pmd = READ_ONCE(*vmf->pmd);

	BUILD_BUG_ON(PMD_SIZE != ACLMEM_GRANULARITY);
	pfn = aclmem_phys_pfn(mapping->handle->phys, base - mapping->start);
	if (pmd_none(pmd) || pmd_leaf(pmd))
		return aclmem_insert_pmd(vmf, pfn, write);
	return insert_ptes(vmf, base, pfn, write);
}

static vm_fault_t aclmem_fault(struct vm_fault *vmf)
{
	struct aclmem_range *range = vmf->vma->vm_private_data;
	struct aclmem_client *client = range->client;
	struct aclmem_mapping *mapping;
	vm_fault_t result = VM_FAULT_SIGBUS;

	/* A VMA that mremap() made lives for a moment, and isn't the place. */
	if (vmf->vma->vm_mm != client->mm ||
	    vmf->vma->vm_start != range->start)
		return VM_FAULT_SIGBUS;

	down_read(&client->map_sem);
	mapping = aclmem_mapping_find(client, vmf->address);
	if (mapping) {
		if ((vmf->flags & FAULT_FLAG_WRITE) && !may_write(mapping))
			result = VM_FAULT_SIGSEGV;
		else
			result = insert_chunk(vmf, mapping);
	}
	up_read(&client->map_sem);
	return result;
}

/*
 * A write hit a present, read-only entry. Zero would make the entry writable
 * after map_sem is dropped, so it's never the answer: a mapping that may be
 * written has writable entries, and what was seen then is an entry that has
 * been replaced meanwhile; look again.
 */
static vm_fault_t aclmem_pfn_mkwrite(struct vm_fault *vmf)
{
	struct aclmem_range *range = vmf->vma->vm_private_data;
	struct aclmem_client *client = range->client;
	struct aclmem_mapping *mapping;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&client->map_sem);
	mapping = aclmem_mapping_find(client, vmf->address);
	if (mapping)
		result = may_write(mapping) ? VM_FAULT_NOPAGE :
					      VM_FAULT_SIGSEGV;
	up_read(&client->map_sem);
	return result;
}

/* Debuggers and /proc/pid/mem: they can't pin the pages, so we copy. */
static int aclmem_access(struct vm_area_struct *vma, unsigned long address,
			 void *buffer, int length, int write)
{
	struct aclmem_range *range = vma->vm_private_data;
	struct aclmem_client *client = range->client;
	struct aclmem_mapping *mapping;
	int result = -EFAULT;
	void *memory;
	size_t room;

	if (vma->vm_mm != client->mm || length <= 0)
		return -EFAULT;
	down_read(&client->map_sem);
	mapping = aclmem_mapping_find(client, address);
	if (!mapping)
		goto unlock;
	if (write && !may_write(mapping)) {
		result = -EACCES;
		goto unlock;
	}
	memory = aclmem_phys_address(mapping->handle->phys,
				     address - mapping->start, &room);
	result = min_t(size_t, length, room);
	if (write)
		memcpy(memory, buffer, result);
	else
		memcpy(buffer, memory, result);
unlock:
	up_read(&client->map_sem);
	return result;
}

static void aclmem_vm_open(struct vm_area_struct *vma)
{
	aclmem_range_dup(vma->vm_private_data);
}

static void aclmem_vm_close(struct vm_area_struct *vma)
{
	aclmem_range_close(vma->vm_private_data);
}

static int aclmem_may_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int aclmem_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static int aclmem_mprotect(struct vm_area_struct *vma, unsigned long start,
			   unsigned long end, unsigned long flags)
{
	return -EACCES;
}

static const struct vm_operations_struct aclmem_vm_ops = {
	.open = aclmem_vm_open,
	.close = aclmem_vm_close,
	.may_split = aclmem_may_split,
	.mremap = aclmem_mremap,
	.mprotect = aclmem_mprotect,
	.fault = aclmem_fault,
	.pfn_mkwrite = aclmem_pfn_mkwrite,
	.access = aclmem_access,
};

/*
 * Chunk-aligned, also for 32-bit programs, which thp_get_unmapped_area() gives
 * any page. A hint that's free and aligned is taken.
 */
unsigned long aclmem_get_unmapped_area(struct file *file, unsigned long hint,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags)
{
	struct aclmem_client *client = file->private_data;
	unsigned long found;

	/*
	 * MAP_FIXED takes away what is there before ->mmap is asked, so what
	 * that is going to refuse is refused now. (An offset is mremap()'s.)
	 */
	if (flags & MAP_FIXED && !pgoff &&
	    (current->mm != client->mm || !aclmem_client_bound(client) ||
	     (flags & MAP_TYPE) == MAP_PRIVATE ||
	     !IS_ALIGNED(hint | length, ACLMEM_CHUNK_SIZE)))
		return -EINVAL;
	if (hint || flags & MAP_FIXED) {
		found = aclmem_unmapped_area(file, hint, length, pgoff, flags);
		if (flags & MAP_FIXED || (!IS_ERR_VALUE(found) &&
					  IS_ALIGNED(found, ACLMEM_CHUNK_SIZE)))
			return found;
	}
	if (length > TASK_SIZE - ACLMEM_CHUNK_SIZE)
		return -ENOMEM;
	found = aclmem_unmapped_area(file, 0, length + ACLMEM_CHUNK_SIZE -
				     PAGE_SIZE, pgoff, flags);
	return IS_ERR_VALUE(found) ? found : round_up(found, ACLMEM_CHUNK_SIZE);
}

/* Other offsets are for other kinds of memory, to come. */
int aclmem_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct aclmem_client *client = file->private_data;
	int error;

	if (current->mm != client->mm)
		return -EPERM;
	/* The end of the process must be heard of before there is anything. */
	if (!aclmem_client_bound(client))
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC) ||
	    vma->vm_pgoff)
		return -EINVAL;
	if (!IS_ALIGNED(vma->vm_start | vma->vm_end, ACLMEM_CHUNK_SIZE))
		return -EINVAL;

	error = aclmem_range_open(client, vma);
	if (error)
		return error;
	/* Offset = address: unmap_mapping_range() finds one mapping by it. */
	vma->vm_pgoff = vma->vm_start >> PAGE_SHIFT;
	aclmem_vma_flags(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP |
			 VM_DONTCOPY, VM_MAYEXEC);
	vma->vm_ops = &aclmem_vm_ops;
	return 0;
}
