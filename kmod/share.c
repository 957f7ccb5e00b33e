// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares: memory that other processes may import by a random 64-bit number. A
 * share belongs to its memory and is importable until the last process that
 * holds the memory lets go; the table holds no reference to either, a lookup
 * takes both if they are still alive. Who may import is kept as struct pid,
 * never as a number, which a later process could get. share->lock protects the
 * whitelist.
 */
#include <linux/bsearch.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include "aclmem.h"

/**
 * struct aclmem_share - what Export makes
 * @ref: the memory's reference, and lookups
 * @number: the secret by which it's found
 * @node: in the table of shares
 * @phys: the memory; valid for whoever has a reference to that
 * @exporter: the process that may whitelist and may not import
 * @any_process: no whitelist
 * @lock: protects what follows
 * @listed: who may import, sorted by address, each referenced
 * @nr_listed: how many
 * @rcu: frees it after all lookups that may have seen it
 */
struct aclmem_share {
	refcount_t ref;
	u64 number;
	struct rhash_head node;
	struct aclmem_phys *phys;
	struct pid *exporter;
	bool any_process;
	struct mutex lock; /* protects listed, nr_listed */
	struct pid **listed;
	u32 nr_listed;
	struct rcu_head rcu;
};

static const struct rhashtable_params share_params = {
	.key_len = sizeof(u64),
	.key_offset = offsetof(struct aclmem_share, number),
	.head_offset = offsetof(struct aclmem_share, node),
	.automatic_shrinking = true,
};

static struct rhashtable shares;
static struct kmem_cache *share_cache;

int aclmem_share_init(void)
{
	int error;

	share_cache = kmem_cache_create("aclmem_share",
					sizeof(struct aclmem_share), 0,
					SLAB_ACCOUNT, NULL);
	if (!share_cache)
		return -ENOMEM;
	error = rhashtable_init(&shares, &share_params);
	if (error)
		kmem_cache_destroy(share_cache);
	return error;
}

void aclmem_share_exit(void)
{
	rhashtable_destroy(&shares);
	kmem_cache_destroy(share_cache);
}

static void share_free_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(share_cache,
			container_of(rcu, struct aclmem_share, rcu));
}

static void share_put(struct aclmem_share *share)
{
	u32 i;

	if (!refcount_dec_and_test(&share->ref))
		return;
	for (i = 0; i < share->nr_listed; i++)
		put_pid(share->listed[i]);
	kvfree(share->listed);
	put_pid(share->exporter);
	call_rcu(&share->rcu, share_free_rcu);
}

/* The memory goes, or the export is taken back. */
static void share_end(struct aclmem_share *share)
{
	rhashtable_remove_fast(&shares, &share->node, share_params);
	share_put(share);
}

/* With a reference to the share and one to its memory. */
static struct aclmem_share *share_find(u64 number, struct aclmem_why *why)
{
	struct aclmem_share *share;

	rcu_read_lock();
	share = rhashtable_lookup(&shares, &number, share_params);
	if (share && !aclmem_phys_get_live(share->phys))
		share = NULL;
	if (share && !refcount_inc_not_zero(&share->ref)) {
		struct aclmem_phys *phys = share->phys;

		rcu_read_unlock();
		aclmem_phys_put(phys);
		goto unknown;
	}
	rcu_read_unlock();
	if (share)
		return share;
unknown:
	aclmem_refuse(why, -ENOENT, ACLMEM_REASON_SHARE, number);
	return NULL;
}

static void share_found_put(struct aclmem_share *share)
{
	struct aclmem_phys *phys = share->phys;

	share_put(share);
	aclmem_phys_put(phys);
}

/* Draws a number that's free, and makes the share visible under it. */
static int publish(struct aclmem_share *share)
{
	int error;

	do {
		share->number = get_random_u64();
		error = share->number ?
				rhashtable_lookup_insert_fast(&shares,
							      &share->node,
							      share_params) :
				-EEXIST;
	} while (error == -EEXIST);
	return error;
}

static int share_create(struct aclmem_phys *phys, bool any_process,
			struct aclmem_share **made, struct aclmem_why *why)
{
	struct aclmem_share *share;

	share = kmem_cache_zalloc(share_cache, ACLMEM_GFP);
	if (!share)
		return aclmem_no_memory(why);
	refcount_set(&share->ref, 1);
	mutex_init(&share->lock);
	share->phys = phys;
	share->exporter = get_pid(task_tgid(current));
	share->any_process = any_process;

	phys->unshare = share_end;
	if (cmpxchg(&phys->share, NULL, share)) {
		share_put(share);
		return aclmem_refuse(why, -EEXIST, ACLMEM_REASON_EXPORTED, 0);
	}
	if (publish(share)) {
		WRITE_ONCE(phys->share, NULL);
		share_put(share);
		return aclmem_no_memory(why);
	}
	*made = share;
	return 0;
}

int aclmem_ioctl_export(struct aclmem_cmd *cmd)
{
	struct aclmem_export *arg = &cmd->export;
	struct aclmem_share *share;
	struct aclmem_phys *phys;
	int error;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	phys = aclmem_handle_phys(cmd->client, arg->handle, cmd->why);
	if (IS_ERR(phys))
		return PTR_ERR(phys);
	error = share_create(phys, arg->head.flags & ACLMEM_EXPORT_ANY_PROCESS,
			     &share, cmd->why);
	if (error) {
		if (error == -EEXIST)
			cmd->why->value = arg->handle;
		goto put_phys;
	}
	arg->out_share = share->number;
	error = aclmem_cmd_reply(cmd);
	if (error) {
		WRITE_ONCE(phys->share, NULL);
		share_end(share);
	}
put_phys:
	aclmem_phys_put(phys);
	return error;
}

/*
 * The process that has this host-wide id now, with a reference. NULL if none
 * has, or if it's the id of a thread only.
 */
static struct pid *process_of(s32 number)
{
	struct pid *pid = NULL;

	rcu_read_lock();
	if (number > 0)
		pid = find_pid_ns(number, &init_pid_ns);
	if (pid && pid_task(pid, PIDTYPE_TGID))
		get_pid(pid);
	else
		pid = NULL;
	rcu_read_unlock();
	return pid;
}

static bool process_lives(struct pid *pid)
{
	bool lives;

	rcu_read_lock();
	lives = pid_task(pid, PIDTYPE_TGID);
	rcu_read_unlock();
	return lives;
}

static int compare_pids(const void *a, const void *b)
{
	const struct pid *left = *(const struct pid **)a;
	const struct pid *right = *(const struct pid **)b;

	return left < right ? -1 : left > right;
}

/*
 * Adds the processes to the whitelist: a new array takes the place of the old
 * one, without duplicates and without the dead, so that a share never keeps
 * more than its living importers.
 */
static int admit(struct aclmem_share *share, const s32 *pids, u32 count,
		 struct aclmem_why *why)
{
	struct pid **listed, *pid;
	u32 i, total = 0, unique = 0;

	listed = kvmalloc_array((size_t)share->nr_listed + count,
				sizeof(*listed), ACLMEM_GFP);
	if (!listed)
		return aclmem_no_memory(why);
	for (i = 0; i < share->nr_listed; i++) {
		pid = share->listed[i];
		if (process_lives(pid))
			listed[total++] = pid;
		else
			put_pid(pid);
	}
	for (i = 0; i < count; i++) {
		pid = process_of(pids[i]);
		if (pid)
			listed[total++] = pid;
		cond_resched();
	}
	sort(listed, total, sizeof(*listed), compare_pids, NULL);
	for (i = 0; i < total; i++) {
		if (unique && listed[unique - 1] == listed[i])
			put_pid(listed[i]);
		else
			listed[unique++] = listed[i];
	}
	kvfree(share->listed);
	share->listed = listed;
	share->nr_listed = unique;
	return 0;
}

static int whitelist(struct aclmem_share *share, const s32 *pids, u32 count,
		     struct aclmem_why *why)
{
	int error;

	if (share->exporter != task_tgid(current))
		return aclmem_refuse(why, -EPERM, ACLMEM_REASON_NOT_EXPORTER, 0);
	if (share->any_process)
		return aclmem_refuse(why, -EPERM, ACLMEM_REASON_NO_WHITELIST, 0);
	if (!memchr_inv(pids, 0, count * sizeof(*pids)))
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_PIDS_EMPTY, 0);
	if (mutex_lock_killable(&share->lock))
		return aclmem_killed(why);
	error = admit(share, pids, count, why);
	mutex_unlock(&share->lock);
	return error;
}

int aclmem_ioctl_whitelist(struct aclmem_cmd *cmd)
{
	struct aclmem_whitelist *arg = &cmd->whitelist;
	size_t size = (size_t)arg->count * sizeof(s32);
	struct aclmem_share *share;
	s32 *pids;
	int error;

	if (arg->reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved);
	if (!arg->count)
		return aclmem_refuse(cmd->why, -EINVAL,
				     ACLMEM_REASON_PIDS_EMPTY, 0);
	if (arg->count > ACLMEM_MAX_PIDS)
		return aclmem_refuse(cmd->why, -E2BIG, ACLMEM_REASON_PIDS_LIMIT,
				     ACLMEM_MAX_PIDS);
	pids = kvmalloc(size, ACLMEM_GFP);
	if (!pids)
		return aclmem_no_memory(cmd->why);
	if (copy_from_user(pids, u64_to_user_ptr(arg->pids), size)) {
		error = aclmem_refuse(cmd->why, -EFAULT, ACLMEM_REASON_ARRAY,
				      arg->pids);
		goto free_pids;
	}
	share = share_find(arg->share, cmd->why);
	if (!share) {
		error = -ENOENT;
		goto free_pids;
	}
	error = whitelist(share, pids, arg->count, cmd->why);
	share_found_put(share);
free_pids:
	kvfree(pids);
	return error;
}

/* May the calling process import? */
static int check_import(struct aclmem_share *share, struct aclmem_why *why)
{
	struct pid *self = task_tgid(current);
	bool listed;

	if (share->exporter == self)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_SAME_PROCESS,
				     0);
	if (share->any_process)
		return 0;
	if (mutex_lock_killable(&share->lock))
		return aclmem_killed(why);
	listed = bsearch(&self, share->listed, share->nr_listed, sizeof(self),
			 compare_pids);
	mutex_unlock(&share->lock);
	if (!listed)
		return aclmem_refuse(why, -EACCES, ACLMEM_REASON_NOT_LISTED,
				     pid_nr(self));
	return 0;
}

/* One handle for one share and device in a process, held once more. */
static int import(struct aclmem_client *client, struct aclmem_phys *phys,
		  u32 device, u32 *id, struct aclmem_why *why)
{
	struct aclmem_location location = phys->location;
	int error = 0;

	/* Host memory stays where it is whoever imports it. */
	if (location.type == ACLMEM_LOCATION_DEVICE)
		location.id = device;
	if (mutex_lock_killable(&client->import_lock))
		return aclmem_killed(why);
	if (!aclmem_handle_reuse(client, phys, location, id)) {
		aclmem_phys_get(phys);
		error = aclmem_handle_create(client, phys, location, true, id,
					     why);
		if (error)
			aclmem_phys_put(phys);
	}
	mutex_unlock(&client->import_lock);
	return error;
}

int aclmem_ioctl_import(struct aclmem_cmd *cmd)
{
	struct aclmem_import *arg = &cmd->import;
	struct aclmem_share *share;
	int error;

	if (arg->device >= aclmem_device_count())
		return aclmem_refuse(cmd->why, -ENODEV, ACLMEM_REASON_DEVICE,
				     arg->device);
	share = share_find(arg->share, cmd->why);
	if (!share)
		return -ENOENT;
	error = check_import(share, cmd->why);
	if (!error)
		error = import(cmd->client, share->phys, arg->device,
			       &arg->out_handle, cmd->why);
	share_found_put(share);
	if (error)
		return error;
	error = aclmem_cmd_reply(cmd);
	if (error)
		aclmem_handle_free(cmd->client, arg->out_handle, cmd->why);
	return error;
}
