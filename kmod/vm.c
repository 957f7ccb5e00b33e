// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reservations and mappings. A reservation is one VMA; what is mapped in it is
 * kept in the client's interval trees, keyed by address, and not in VMAs, of
 * which a process may have 65,530 only. Tree nodes are part of the objects, so
 * that taking something out needs no memory. client->map_sem protects both
 * trees and the lists; it is held for writing around "change the tree, zap",
 * else a fault could bring back an entry that has just been zapped.
 */
#include <linux/interval_tree_generic.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "aclmem.h"

#define FIRST(object) ((object)->start)
#define LAST(object) ((object)->last)

INTERVAL_TREE_DEFINE(struct aclmem_range, node, unsigned long, subtree_last,
		     FIRST, LAST, static __maybe_unused, range_tree)
INTERVAL_TREE_DEFINE(struct aclmem_mapping, node, unsigned long, subtree_last,
		     FIRST, LAST, static __maybe_unused, mapping_tree)

static struct kmem_cache *range_cache;
static struct kmem_cache *mapping_cache;

int aclmem_vm_init(void)
{
	range_cache = kmem_cache_create("aclmem_range",
					sizeof(struct aclmem_range), 0,
					SLAB_ACCOUNT, NULL);
	if (!range_cache)
		return -ENOMEM;
	mapping_cache = kmem_cache_create("aclmem_mapping",
					  sizeof(struct aclmem_mapping), 0,
					  SLAB_ACCOUNT, NULL);
	if (!mapping_cache) {
		kmem_cache_destroy(range_cache);
		return -ENOMEM;
	}
	return 0;
}

void aclmem_vm_exit(void)
{
	kmem_cache_destroy(mapping_cache);
	kmem_cache_destroy(range_cache);
}

struct aclmem_range *aclmem_range_find(struct aclmem_client *client,
				       unsigned long address)
{
	return range_tree_iter_first(&client->ranges, address, address);
}

struct aclmem_mapping *aclmem_mapping_find(struct aclmem_client *client,
					   unsigned long address)
{
	return mapping_tree_iter_first(&client->mappings, address, address);
}

static unsigned long length_of(const struct aclmem_mapping *mapping)
{
	return mapping->last - mapping->start + 1;
}

/* Makes the reservation of a new VMA; mmap_lock is held. */
int aclmem_range_open(struct aclmem_client *client, struct vm_area_struct *vma)
{
	struct aclmem_range *range;
	int error = 0;

	range = kmem_cache_zalloc(range_cache, ACLMEM_GFP);
	if (!range)
		return -ENOMEM;
	range->start = vma->vm_start;
	range->last = vma->vm_end - 1;
	range->client = client;
	range->vmas = 1;
	INIT_LIST_HEAD(&range->mappings);

	if (down_write_killable(&client->map_sem)) {
		error = -EINTR;
		goto free_range;
	}
	/* The place of a VMA that is half gone: its close is still to come. */
	if (range_tree_iter_first(&client->ranges, range->start, range->last))
		error = -EBUSY;
	else
		range_tree_insert(range, &client->ranges);
	up_write(&client->map_sem);
	if (error)
		goto free_range;
	vma->vm_private_data = range;
	return 0;

free_range:
	kmem_cache_free(range_cache, range);
	return error;
}

/* mremap() copies the VMA before our refusal makes it close the copy. */
void aclmem_range_dup(struct aclmem_range *range)
{
	struct aclmem_client *client = range->client;

	down_write(&client->map_sem);
	range->vmas++;
	up_write(&client->map_sem);
}

/*
 * A VMA is gone, and so are its page tables. With the last one all that was
 * mapped goes too.
 */
void aclmem_range_close(struct aclmem_range *range)
{
	struct aclmem_client *client = range->client;
	struct aclmem_mapping *mapping, *next;
	bool last;

	down_write(&client->map_sem);
	last = !--range->vmas;
	if (last) {
		range_tree_remove(range, &client->ranges);
		list_for_each_entry(mapping, &range->mappings, link) {
			mapping_tree_remove(mapping, &client->mappings);
			cond_resched();
		}
	}
	up_write(&client->map_sem);
	if (!last)
		return;

	list_for_each_entry_safe(mapping, next, &range->mappings, link) {
		aclmem_handle_unmap(mapping->handle);
		kmem_cache_free(mapping_cache, mapping);
		cond_resched();
	}
	kmem_cache_free(range_cache, range);
}

/* Checks of a map that need the trees; map_sem is held. */
static int check_map(struct aclmem_client *client,
		     const struct aclmem_mapping *mapping,
		     struct aclmem_range **where, struct aclmem_why *why)
{
	struct aclmem_location location = mapping->handle->location;
	struct aclmem_range *range = aclmem_range_find(client, mapping->start);
	struct aclmem_mapping *other;

	if (!range)
		return aclmem_refuse(why, -ENXIO, ACLMEM_REASON_NOT_RESERVED,
				     mapping->start);
	if (mapping->last > range->last)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_RANGE_END,
				     range->last + 1);
	if (range->closing)
		return aclmem_refuse(why, -EBUSY, ACLMEM_REASON_CLOSING,
				     range->start);
	other = mapping_tree_iter_first(&client->mappings, mapping->start,
					mapping->last);
	if (other)
		return aclmem_refuse(why, -EADDRINUSE, ACLMEM_REASON_MAPPED,
				     other->start);
	if (range->located && !aclmem_same_location(range->location, location))
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_OTHER_LOCATION,
				     aclmem_location_value(range->location));
	*where = range;
	return 0;
}

/* Puts a complete mapping in its place. */
static int insert_mapping(struct aclmem_client *client,
			  struct aclmem_mapping *mapping, struct aclmem_why *why)
{
	struct aclmem_range *range;
	int error;

	if (down_write_killable(&client->map_sem))
		return aclmem_killed(why);
	error = check_map(client, mapping, &range, why);
	if (!error) {
		range->located = true;
		range->location = mapping->handle->location;
		mapping->range = range;
		list_add_tail(&mapping->link, &range->mappings);
		mapping_tree_insert(mapping, &client->mappings);
	}
	up_write(&client->map_sem);
	return error;
}

/* Checks of a map that need the caller's numbers only. */
static int check_map_args(const struct aclmem_map *arg, struct aclmem_why *why)
{
	if (arg->reserved)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	if (!arg->length)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_LENGTH_ZERO, 0);
	if (arg->offset)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_OFFSET,
				     arg->offset);
	if (arg->address % ACLMEM_GRANULARITY)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_ADDRESS_ALIGN,
				     arg->address);
	if (arg->address >= TASK_SIZE_MAX)
		return aclmem_refuse(why, -ENXIO, ACLMEM_REASON_NOT_RESERVED,
				     arg->address);
	return 0;
}

int aclmem_ioctl_map(struct aclmem_cmd *cmd)
{
	struct aclmem_client *client = cmd->client;
	struct aclmem_map *arg = &cmd->map;
	struct aclmem_mapping *mapping;
	struct aclmem_handle *handle;
	int error;

	error = check_map_args(arg, cmd->why);
	if (error)
		return error;
	handle = aclmem_handle_map(client, arg->handle, cmd->why);
	if (IS_ERR(handle))
		return PTR_ERR(handle);
	if (arg->length != handle->phys->length) {
		error = aclmem_refuse(cmd->why, -EINVAL,
				      ACLMEM_REASON_SIZE_MISMATCH,
				      handle->phys->length);
		goto unmap_handle;
	}
	mapping = kmem_cache_zalloc(mapping_cache, ACLMEM_GFP);
	if (!mapping) {
		error = aclmem_no_memory(cmd->why);
		goto unmap_handle;
	}
	mapping->start = arg->address;
	mapping->last = arg->address + arg->length - 1;
	mapping->flags = arg->head.flags;
	mapping->handle = handle;
	error = insert_mapping(client, mapping, cmd->why);
	if (error)
		goto free_mapping;
	return 0;

free_mapping:
	kmem_cache_free(mapping_cache, mapping);
unmap_handle:
	aclmem_handle_unmap(handle);
	return error;
}

int aclmem_ioctl_unmap(struct aclmem_cmd *cmd)
{
	struct aclmem_client *client = cmd->client;
	unsigned long address = cmd->unmap.address;
	struct aclmem_mapping *mapping;

	if (down_write_killable(&client->map_sem))
		return aclmem_killed(cmd->why);
	mapping = aclmem_mapping_find(client, address);
	if (!mapping || mapping->start != address) {
		up_write(&client->map_sem);
		return aclmem_refuse(cmd->why, -ENXIO, ACLMEM_REASON_NOT_MAPPED,
				     address);
	}
	list_del(&mapping->link);
	mapping_tree_remove(mapping, &client->mappings);
	unmap_mapping_range(client->inode->i_mapping, address,
			    length_of(mapping), 1);
	up_write(&client->map_sem);

	aclmem_handle_unmap(mapping->handle);
	kmem_cache_free(mapping_cache, mapping);
	return 0;
}

int aclmem_ioctl_release(struct aclmem_cmd *cmd)
{
	struct aclmem_client *client = cmd->client;
	unsigned long address = cmd->release.address;
	struct aclmem_mapping *mapping;
	struct aclmem_range *range;
	int error = 0;

	if (down_write_killable(&client->map_sem))
		return aclmem_killed(cmd->why);
	range = aclmem_range_find(client, address);
	if (!range || range->start != address) {
		error = aclmem_refuse(cmd->why, -ENXIO,
				      ACLMEM_REASON_NOT_RANGE_START, address);
	} else if (range->closing) {
		error = aclmem_refuse(cmd->why, -EBUSY, ACLMEM_REASON_CLOSING,
				      address);
	} else if (!list_empty(&range->mappings)) {
		mapping = mapping_tree_iter_first(&client->mappings,
						  range->start, range->last);
		error = aclmem_refuse(cmd->why, -EBUSY,
				      ACLMEM_REASON_STILL_MAPPED,
				      mapping->start);
	} else {
		range->closing = true;
	}
	up_write(&client->map_sem);
	return error;
}

int aclmem_ioctl_retain(struct aclmem_cmd *cmd)
{
	struct aclmem_retain *arg = &cmd->retain;
	struct aclmem_client *client = cmd->client;
	struct aclmem_mapping *mapping;
	int error;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	if (down_read_killable(&client->map_sem))
		return aclmem_killed(cmd->why);
	mapping = aclmem_mapping_find(client, arg->address);
	if (mapping && mapping->start == arg->address)
		arg->out_handle = aclmem_handle_retain(mapping->handle);
	else
		mapping = NULL;
	up_read(&client->map_sem);
	if (!mapping)
		return aclmem_refuse(cmd->why, -ENXIO, ACLMEM_REASON_NOT_MAPPED,
				     arg->address);
	error = aclmem_cmd_reply(cmd);
	if (error)
		aclmem_handle_free(client, arg->out_handle, cmd->why);
	return error;
}

int aclmem_ioctl_address(struct aclmem_cmd *cmd)
{
	struct aclmem_address *arg = &cmd->address;
	struct aclmem_client *client = cmd->client;
	struct aclmem_mapping *mapping;
	struct aclmem_range *range;

	arg->out_location.type = ACLMEM_LOCATION_UNREGISTERED;
	if (down_read_killable(&client->map_sem))
		return aclmem_killed(cmd->why);
	range = aclmem_range_find(client, arg->address);
	if (range) {
		arg->out_state = ACLMEM_ADDRESS_RESERVED;
		arg->out_range_base = range->start;
		arg->out_range_length = range->last - range->start + 1;
	}
	mapping = aclmem_mapping_find(client, arg->address);
	if (mapping) {
		arg->out_state = ACLMEM_ADDRESS_MAPPED;
		arg->out_page_size = ACLMEM_CHUNK_SIZE;
		arg->out_location = mapping->handle->location;
		arg->out_base = mapping->start;
		arg->out_length = length_of(mapping);
		arg->out_map_flags = mapping->flags;
		arg->out_handle = mapping->handle->id;
	}
	up_read(&client->map_sem);
	return aclmem_cmd_reply(cmd);
}
