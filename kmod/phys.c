// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physical memory: allocates it in 2 MiB chunks from the buddy allocator, zero
 * before anybody can see it, accounts it, and frees it when the last reference
 * goes. Each chunk is one compound page, so that a reference anybody should
 * ever get to a part of it keeps all of it. Takes no lock but, through
 * device.c, the device's; may sleep.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include "aclmem.h"

static struct kmem_cache *phys_cache;

int aclmem_phys_init(void)
{
	phys_cache = kmem_cache_create("aclmem_phys", sizeof(struct aclmem_phys),
				       0, SLAB_ACCOUNT, NULL);
	return phys_cache ? 0 : -ENOMEM;
}

void aclmem_phys_exit(void)
{
	kmem_cache_destroy(phys_cache);
}

/*
 * The last free pages are not for us: once they are gone, the next page fault of
 * anybody ends in the OOM killer.
 */
static bool enough_left(void)
{
	long reserve = max_t(long, SZ_64M >> PAGE_SHIFT, totalram_pages() / 32);

	return si_mem_available() > reserve;
}

/*
 * Asks first for what is there, then with full effort: reclaim and compaction,
 * but nobody gets killed for it, neither by the page allocator nor by the
 * memory cgroup.
 */
static struct page *alloc_chunk(int node, gfp_t where)
{
	gfp_t gfp = GFP_USER | __GFP_COMP | __GFP_ZERO | __GFP_ACCOUNT |
		    __GFP_NOWARN | where;
	struct page *page;

	page = alloc_pages_node(node, (gfp & ~__GFP_DIRECT_RECLAIM) |
				__GFP_NORETRY, ACLMEM_CHUNK_ORDER);
	if (!page)
		page = alloc_pages_node(node, gfp | __GFP_RETRY_MAYFAIL,
					ACLMEM_CHUNK_ORDER);
	return page;
}

static void free_chunks(struct aclmem_phys *phys)
{
	unsigned long i;

	for (i = 0; i < phys->nr_chunks; i++) {
		__free_pages(phys->chunks[i], ACLMEM_CHUNK_ORDER);
		cond_resched();
	}
	kvfree(phys->chunks);
}

static int alloc_chunks(struct aclmem_phys *phys, int node, gfp_t where,
			struct aclmem_why *why)
{
	unsigned long count = phys->length >> ACLMEM_CHUNK_SHIFT;
	int error;

	phys->chunks = kvcalloc(count, sizeof(*phys->chunks), ACLMEM_GFP);
	if (!phys->chunks)
		return aclmem_no_memory(why);

	while (phys->nr_chunks < count) {
		struct page *page;

		if (fatal_signal_pending(current) || !enough_left())
			goto free_chunks;
		page = alloc_chunk(node, where);
		if (!page)
			goto free_chunks;
		phys->chunks[phys->nr_chunks++] = page;
		cond_resched();
	}
	return 0;

free_chunks:
	error = fatal_signal_pending(current) ?
			aclmem_killed(why) :
			aclmem_refuse(why, -ENOMEM, ACLMEM_REASON_NO_PAGES,
				      (u64)phys->nr_chunks << ACLMEM_CHUNK_SHIFT);
	free_chunks(phys);
	return error;
}

/* Where the pages of a location come from. */
static int place(struct aclmem_location location, int *node, gfp_t *where,
		 struct aclmem_why *why)
{
	*where = 0;
	switch (location.type) {
	case ACLMEM_LOCATION_DEVICE:
		if (location.id >= aclmem_device_count())
			return aclmem_refuse(why, -ENODEV, ACLMEM_REASON_DEVICE,
					     location.id);
		*node = aclmem_device_node(location.id);
		return 0;
	case ACLMEM_LOCATION_HOST:
		if (location.id)
			return aclmem_refuse(why, -EINVAL,
					     ACLMEM_REASON_LOCATION_ID,
					     location.id);
		*node = numa_mem_id();
		return 0;
	case ACLMEM_LOCATION_HOST_NUMA:
		if (location.id >= MAX_NUMNODES ||
		    !node_state(location.id, N_MEMORY))
			return aclmem_refuse(why, -ENODEV,
					     ACLMEM_REASON_LOCATION_ID,
					     location.id);
		*node = location.id;
		*where = __GFP_THISNODE;
		return 0;
	default:
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_LOCATION_TYPE,
				     location.type);
	}
}

static int check_length(u64 length, struct aclmem_why *why)
{
	if (!length)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_LENGTH_ZERO, 0);
	if (length % ACLMEM_GRANULARITY)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_LENGTH_ALIGN,
				     length);
	if (length > TASK_SIZE_MAX)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_LENGTH_LIMIT,
				     length);
	return 0;
}

struct aclmem_phys *aclmem_phys_alloc(const struct aclmem_alloc *request,
				      struct aclmem_why *why)
{
	struct aclmem_phys *phys;
	gfp_t where;
	int node, error;

	error = check_length(request->length, why);
	if (error)
		return ERR_PTR(error);
	error = place(request->location, &node, &where, why);
	if (error)
		return ERR_PTR(error);
	if (request->page > ACLMEM_PAGE_2M) {
		error = aclmem_refuse(why, -EOPNOTSUPP, ACLMEM_REASON_ATTRIBUTE,
				      request->page);
		return ERR_PTR(error);
	}
	error = aclmem_device_charge(request->location, request->length, why);
	if (error)
		return ERR_PTR(error);

	phys = kmem_cache_zalloc(phys_cache, ACLMEM_GFP);
	if (!phys) {
		error = aclmem_no_memory(why);
		goto uncharge;
	}
	kref_init(&phys->ref);
	spin_lock_init(&phys->lock);
	INIT_LIST_HEAD(&phys->handles);
	phys->length = request->length;
	phys->location = request->location;
	phys->attribute = request->attribute;
	error = alloc_chunks(phys, node, where, why);
	if (error)
		goto free_phys;
	return phys;

free_phys:
	kmem_cache_free(phys_cache, phys);
uncharge:
	aclmem_device_uncharge(request->location, request->length);
	return ERR_PTR(error);
}

static void phys_free_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(phys_cache, container_of(rcu, struct aclmem_phys, rcu));
}

static void phys_release(struct kref *ref)
{
	struct aclmem_phys *phys = container_of(ref, struct aclmem_phys, ref);

	if (phys->share)
		phys->unshare(phys->share);
	free_chunks(phys);
	aclmem_device_uncharge(phys->location, phys->length);
	call_rcu(&phys->rcu, phys_free_rcu);
}

void aclmem_phys_get(struct aclmem_phys *phys)
{
	kref_get(&phys->ref);
}

/* For whoever found @phys without a reference, under RCU. */
bool aclmem_phys_get_live(struct aclmem_phys *phys)
{
	return kref_get_unless_zero(&phys->ref);
}

void aclmem_phys_put(struct aclmem_phys *phys)
{
	kref_put(&phys->ref, phys_release);
}

/* The kernel's address of the byte at @offset, and how many follow it there. */
void *aclmem_phys_address(const struct aclmem_phys *phys, u64 offset,
			  size_t *room)
{
	unsigned long inside = offset & (ACLMEM_CHUNK_SIZE - 1);

	*room = ACLMEM_CHUNK_SIZE - inside;
	return page_address(phys->chunks[offset >> ACLMEM_CHUNK_SHIFT]) + inside;
}

unsigned long aclmem_phys_pfn(const struct aclmem_phys *phys, u64 offset)
{
	return page_to_pfn(phys->chunks[offset >> ACLMEM_CHUNK_SHIFT]);
}
