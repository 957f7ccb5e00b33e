// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process's names for physical memory. A handle counts separately how often
 * the process holds it and how often it is mapped, and lives while either is
 * not zero; so memory may be freed while mapped and stays until the last unmap.
 * Ids are handed out in a circle, so that a stale one fails instead of naming
 * newer memory. The lock of client->handles protects handles and their counts;
 * phys->lock, inside it, the phys's list.
 */
#include <linux/limits.h>
#include <linux/slab.h>
#include "aclmem.h"

static struct kmem_cache *handle_cache;

int aclmem_handle_init(void)
{
	handle_cache = kmem_cache_create("aclmem_handle",
					 sizeof(struct aclmem_handle), 0,
					 SLAB_ACCOUNT, NULL);
	return handle_cache ? 0 : -ENOMEM;
}

void aclmem_handle_exit(void)
{
	kmem_cache_destroy(handle_cache);
}

/*
 * Names @phys, whose reference becomes the handle's; the handle is held once.
 * On failure the reference stays with the caller.
 */
int aclmem_handle_create(struct aclmem_client *client, struct aclmem_phys *phys,
			 struct aclmem_location location, bool imported,
			 u32 *id, struct aclmem_why *why)
{
	struct aclmem_handle *handle;
	int error;

	handle = kmem_cache_zalloc(handle_cache, ACLMEM_GFP);
	if (!handle)
		return aclmem_no_memory(why);
	handle->client = client;
	handle->imported = imported;
	handle->users = 1;
	handle->location = location;
	handle->phys = phys;

	xa_lock(&client->handles);
	error = __xa_alloc_cyclic(&client->handles, &handle->id, handle,
				  XA_LIMIT(1, INT_MAX), &client->next_handle,
				  ACLMEM_GFP);
	if (error >= 0) {
		spin_lock(&phys->lock);
		list_add(&handle->link, &phys->handles);
		spin_unlock(&phys->lock);
		*id = handle->id;
	}
	xa_unlock(&client->handles);
	if (error < 0) {
		kmem_cache_free(handle_cache, handle);
		return aclmem_no_memory(why);
	}
	return 0;
}

/*
 * Takes @handle out of sight if nothing keeps it any more; the caller then
 * passes it to destroy() without the lock.
 */
static bool retire(struct aclmem_handle *handle)
{
	struct aclmem_phys *phys = handle->phys;

	if (handle->users || handle->mappings)
		return false;
	__xa_erase(&handle->client->handles, handle->id);
	spin_lock(&phys->lock);
	list_del(&handle->link);
	spin_unlock(&phys->lock);
	return true;
}

static void destroy(struct aclmem_handle *handle)
{
	aclmem_phys_put(handle->phys);
	kmem_cache_free(handle_cache, handle);
}

/* Looks up a handle that the process still holds; under the lock. */
static struct aclmem_handle *held(struct aclmem_client *client, u32 id,
				  int *error, struct aclmem_why *why)
{
	struct aclmem_handle *handle = xa_load(&client->handles, id);

	if (!handle)
		*error = aclmem_refuse(why, -ENOENT, ACLMEM_REASON_HANDLE, id);
	else if (!handle->users)
		*error = aclmem_refuse(why, -ENOENT, ACLMEM_REASON_OVER_FREED,
				       id);
	else
		return handle;
	return NULL;
}

/* Holds once more the handle under which @phys was imported before, if any. */
bool aclmem_handle_reuse(struct aclmem_client *client, struct aclmem_phys *phys,
			 struct aclmem_location location, u32 *id)
{
	struct aclmem_handle *handle;
	bool found = false;

	xa_lock(&client->handles);
	spin_lock(&phys->lock);
	list_for_each_entry(handle, &phys->handles, link) {
		if (handle->client == client && handle->imported &&
		    aclmem_same_location(handle->location, location)) {
			handle->users++;
			*id = handle->id;
			found = true;
			break;
		}
	}
	spin_unlock(&phys->lock);
	xa_unlock(&client->handles);
	return found;
}

int aclmem_handle_free(struct aclmem_client *client, u32 id,
		       struct aclmem_why *why)
{
	struct aclmem_handle *handle;
	bool last = false;
	int error = 0;

	xa_lock(&client->handles);
	handle = held(client, id, &error, why);
	if (handle) {
		handle->users--;
		last = retire(handle);
	} else if (why->reason == ACLMEM_REASON_OVER_FREED) {
		error = -EINVAL;
	}
	xa_unlock(&client->handles);
	if (last)
		destroy(handle);
	return error;
}

/* For a mapping, which keeps the handle until aclmem_handle_unmap(). */
struct aclmem_handle *aclmem_handle_map(struct aclmem_client *client, u32 id,
					struct aclmem_why *why)
{
	struct aclmem_handle *handle;
	int error;

	xa_lock(&client->handles);
	handle = held(client, id, &error, why);
	if (handle)
		handle->mappings++;
	xa_unlock(&client->handles);
	return handle ?: ERR_PTR(error);
}

void aclmem_handle_unmap(struct aclmem_handle *handle)
{
	struct xarray *handles = &handle->client->handles;
	bool last;

	xa_lock(handles);
	handle->mappings--;
	last = retire(handle);
	xa_unlock(handles);
	if (last)
		destroy(handle);
}

/* The caller knows of a mapping that can't go meanwhile. */
u32 aclmem_handle_retain(struct aclmem_handle *handle)
{
	xa_lock(&handle->client->handles);
	handle->users++;
	xa_unlock(&handle->client->handles);
	return handle->id;
}

/* The memory of a handle that this process allocated, with a reference. */
struct aclmem_phys *aclmem_handle_phys(struct aclmem_client *client, u32 id,
				       struct aclmem_why *why)
{
	struct aclmem_phys *phys = NULL;
	struct aclmem_handle *handle;
	int error;

	xa_lock(&client->handles);
	handle = held(client, id, &error, why);
	if (handle && handle->imported) {
		error = aclmem_refuse(why, -EINVAL, ACLMEM_REASON_IMPORTED, id);
	} else if (handle) {
		phys = handle->phys;
		aclmem_phys_get(phys);
	}
	xa_unlock(&client->handles);
	return phys ?: ERR_PTR(error);
}

/*
 * The process is gone and holds nothing any more; what it had mapped stays
 * until its VMAs close.
 */
void aclmem_handle_drop_all(struct aclmem_client *client)
{
	struct aclmem_handle *handle;
	unsigned long id;
	bool last;

	xa_lock(&client->handles);
	xa_for_each(&client->handles, id, handle) {
		handle->users = 0;
		last = retire(handle);
		xa_unlock(&client->handles);
		if (last)
			destroy(handle);
		cond_resched();
		xa_lock(&client->handles);
	}
	xa_unlock(&client->handles);
}

int aclmem_ioctl_alloc(struct aclmem_cmd *cmd)
{
	struct aclmem_alloc *arg = &cmd->alloc;
	struct aclmem_phys *phys;
	int error;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	phys = aclmem_phys_alloc(arg, cmd->why);
	if (IS_ERR(phys))
		return PTR_ERR(phys);
	error = aclmem_handle_create(cmd->client, phys, phys->location, false,
				     &arg->out_handle, cmd->why);
	if (error) {
		aclmem_phys_put(phys);
		return error;
	}
	error = aclmem_cmd_reply(cmd);
	if (error)
		aclmem_handle_free(cmd->client, arg->out_handle, cmd->why);
	return error;
}

int aclmem_ioctl_free(struct aclmem_cmd *cmd)
{
	struct aclmem_free *arg = &cmd->free;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	return aclmem_handle_free(cmd->client, arg->handle, cmd->why);
}

int aclmem_ioctl_handle(struct aclmem_cmd *cmd)
{
	struct aclmem_handle_info *arg = &cmd->handle;
	struct xarray *handles = &cmd->client->handles;
	struct aclmem_handle *handle;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	xa_lock(handles);
	handle = xa_load(handles, arg->handle);
	if (handle) {
		arg->out_attribute = handle->phys->attribute;
		arg->out_length = handle->phys->length;
		arg->out_location = handle->location;
		arg->out_users = min_t(u64, handle->users, U32_MAX);
		arg->out_mappings = min_t(u64, handle->mappings, U32_MAX);
		arg->out_imported = handle->imported;
	}
	xa_unlock(handles);
	if (!handle)
		return aclmem_refuse(cmd->why, -ENOENT, ACLMEM_REASON_HANDLE,
				     arg->handle);
	return aclmem_cmd_reply(cmd);
}
