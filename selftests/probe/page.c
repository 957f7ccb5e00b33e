// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page tables and struct page, read by hand: pagemap and GUP answer nothing
 * about a VM_PFNMAP area. Owns nothing; takes the mmap_lock, for reading.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/pgtable.h>
#include <linux/sched.h>

#include "internal.h"

void probe_pfn(struct aclmem_probe_pfn *pfn)
{
	struct page *page = pfn_to_online_page(pfn->pfn);
	struct page *head;

	pfn->out_refcount = 0;
	pfn->out_order = 0;
	pfn->out_flags = 0;
	if (!page)
		return;

	head = compound_head(page);
	pfn->out_refcount = page_ref_count(head);
	pfn->out_flags = ACLMEM_PROBE_PAGE;
	if (PageHead(head)) {
		pfn->out_order = compound_order(head);
		pfn->out_flags |= ACLMEM_PROBE_COMPOUND;
	}
	if (PageHWPoison(page))
		pfn->out_flags |= ACLMEM_PROBE_HWPOISON;
	if (PageBuddy(head))
		pfn->out_flags |= ACLMEM_PROBE_BUDDY;
	if (PageReserved(page))
		pfn->out_flags |= ACLMEM_PROBE_RESERVED;
#ifdef CONFIG_MEMCG
	if (READ_ONCE(head->memcg_data))
		pfn->out_flags |= ACLMEM_PROBE_CHARGED;
#endif
}

static bool probe_pud(struct aclmem_probe_page *page, pud_t pud)
{
	if (!pud_leaf(pud))
		return false;

	page->out_level = ACLMEM_PROBE_PUD;
	page->out_page.pfn = pud_pfn(pud) +
			     ((page->address & ~PUD_MASK) >> PAGE_SHIFT);
	if (pud_write(pud))
		page->out_entry |= ACLMEM_PROBE_WRITE;
	return true;
}

static bool probe_pmd(struct aclmem_probe_page *page, pmd_t pmd)
{
	if (!pmd_leaf(pmd))
		return false;

	page->out_level = ACLMEM_PROBE_PMD;
	page->out_page.pfn = pmd_pfn(pmd) +
			     ((page->address & ~PMD_MASK) >> PAGE_SHIFT);
	if (pmd_write(pmd))
		page->out_entry |= ACLMEM_PROBE_WRITE;
	if (pmd_dirty(pmd))
		page->out_entry |= ACLMEM_PROBE_DIRTY;
	if (pmd_devmap(pmd))
		page->out_entry |= ACLMEM_PROBE_DEVMAP;
#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
	if (pmd_special(pmd))
		page->out_entry |= ACLMEM_PROBE_SPECIAL;
#endif
	return true;
}

static void probe_pte(struct aclmem_probe_page *page, pte_t pte)
{
	page->out_level = ACLMEM_PROBE_TABLE;
	if (!pte_present(pte))
		return;

	page->out_level = ACLMEM_PROBE_PTE;
	page->out_page.pfn = pte_pfn(pte);
	if (pte_write(pte))
		page->out_entry |= ACLMEM_PROBE_WRITE;
	if (pte_dirty(pte))
		page->out_entry |= ACLMEM_PROBE_DIRTY;
	if (pte_special(pte))
		page->out_entry |= ACLMEM_PROBE_SPECIAL;
	if (pte_devmap(pte))
		page->out_entry |= ACLMEM_PROBE_DEVMAP;
}

/*
 * Page tables of a mapped area go away under the mmap_lock held for writing.
 * (Those that are collapsed under less belong to files this isn't asked about.)
 */
static void probe_walk(struct mm_struct *mm, struct aclmem_probe_page *page)
{
	unsigned long address = page->address;
	pgd_t *pgdp = pgd_offset(mm, address);
	p4d_t *p4dp;
	pud_t *pudp, pud;
	pmd_t *pmdp, pmd;

	if (pgd_none(*pgdp) || pgd_bad(*pgdp))
		return;
	p4dp = p4d_offset(pgdp, address);
	if (p4d_none(*p4dp) || p4d_bad(*p4dp))
		return;
	pudp = pud_offset(p4dp, address);
	pud = READ_ONCE(*pudp);
	if (pud_none(pud) || !pud_present(pud) || probe_pud(page, pud))
		return;
	pmdp = pmd_offset(pudp, address);
	pmd = READ_ONCE(*pmdp);
	if (pmd_none(pmd) || !pmd_present(pmd) || probe_pmd(page, pmd))
		return;
	probe_pte(page, READ_ONCE(*pte_offset_kernel(pmdp, address)));
}

void probe_page(struct aclmem_probe_page *page)
{
	struct mm_struct *mm = current->mm;

	page->out_level = ACLMEM_PROBE_NONE;
	page->out_entry = 0;
	memset(&page->out_page, 0, sizeof(page->out_page));
	if (!mm || page->address >= TASK_SIZE)
		return;

	mmap_read_lock(mm);
	if (find_vma(mm, page->address))
		probe_walk(mm, page);
	if (page->out_level >= ACLMEM_PROBE_PTE)
		probe_pfn(&page->out_page);
	mmap_read_unlock(mm);
}

static int probe_no_entry(pte_t *pte, unsigned long address, void *data)
{
	return 0;
}

int probe_table(const struct aclmem_probe_page *page)
{
	unsigned long address = page->address & PMD_MASK;
	struct aclmem_probe_page found = { .address = address };
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int rc = -EINVAL;

	if (!mm || page->address >= TASK_SIZE - PMD_SIZE)
		return rc;

	mmap_read_lock(mm);
	vma = find_vma(mm, address);
	if (!vma || vma->vm_start > address ||
	    vma->vm_end - address < PMD_SIZE)
		goto out;
	rc = -EEXIST;
	probe_walk(mm, &found);
	if (found.out_level != ACLMEM_PROBE_NONE)
		goto out;
	/* Builds the levels it passes, then has nothing to do. */
	rc = apply_to_page_range(mm, address, PAGE_SIZE, probe_no_entry, NULL);
out:
	mmap_read_unlock(mm);
	return rc;
}
