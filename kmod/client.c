// SPDX-License-Identifier: GPL-2.0-only
/*
 * One open descriptor and the address space it serves. Holds the mm by mmgrab
 * only: mmget would be a circle (mm, VMA, file, client, mm) that never ends.
 * What the process owns ends with the process, even if a child forked before
 * still has the descriptor: the notifier's release drops it when the address
 * space goes, mapped memory follows when the VMAs close, and the client itself
 * goes with the last reference to the file.
 *
 * All clients of an address space share one notifier: each costs every
 * invalidation of that address space, and to unregister one takes a grace
 * period, which a process with many descriptors would have to wait for one by
 * one. process->lock protects the list of clients.
 */
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mmu_notifier.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "aclmem.h"
#include "compat.h"

#define ACLMEM_FS_MAGIC 0x61636c6d /* "aclm" */

/**
 * struct aclmem_process - the clients of one address space
 * @notifier: tells of the address space's end; counts the clients
 * @lock: protects @clients
 * @clients: those that have had a command
 */
struct aclmem_process {
	struct mmu_notifier notifier;
	struct mutex lock; /* protects clients */
	struct list_head clients;
};

static struct kmem_cache *client_cache;
static struct kmem_cache *process_cache;
static struct vfsmount *client_mount;
static atomic_t nr_processes;
static void (*client_drop)(struct aclmem_client *client);

static int client_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, ACLMEM_FS_MAGIC) ? 0 : -ENOMEM;
}

/* No owner: the mount would pin the module, which unmounts it itself. */
static struct file_system_type client_fs = {
	.name = "aclmem",
	.init_fs_context = client_fs_context,
	.kill_sb = kill_anon_super,
};

/*
 * @drop gives back all that a client holds; it must stand being repeated, and
 * two at the same time.
 */
int aclmem_client_init(void (*drop)(struct aclmem_client *client))
{
	int error = -ENOMEM;

	client_drop = drop;
	client_cache = kmem_cache_create("aclmem_client",
					 sizeof(struct aclmem_client), 0,
					 SLAB_ACCOUNT, NULL);
	if (!client_cache)
		return -ENOMEM;
	process_cache = kmem_cache_create("aclmem_process",
					  sizeof(struct aclmem_process), 0,
					  SLAB_ACCOUNT, NULL);
	if (!process_cache)
		goto destroy_client;
	client_mount = kern_mount(&client_fs);
	if (IS_ERR(client_mount)) {
		error = PTR_ERR(client_mount);
		goto destroy_process;
	}
	return 0;

destroy_process:
	kmem_cache_destroy(process_cache);
destroy_client:
	kmem_cache_destroy(client_cache);
	return error;
}

void aclmem_client_exit(void)
{
	kern_unmount(client_mount);
	/* Processes are freed after a grace period, by our own code. */
	wait_var_event(&nr_processes, !atomic_read(&nr_processes));
	mmu_notifier_synchronize();
	kmem_cache_destroy(process_cache);
	kmem_cache_destroy(client_cache);
}

/*
 * The address space is at its end. Page tables still exist, so nothing that is
 * mapped may be freed here; the handles of mapped memory end with their mappings.
 */
static void process_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct aclmem_process *process =
		container_of(notifier, struct aclmem_process, notifier);
	struct aclmem_client *client;

	mutex_lock(&process->lock);
	list_for_each_entry(client, &process->clients, link)
		client_drop(client);
	mutex_unlock(&process->lock);
}

static struct mmu_notifier *process_alloc(struct mm_struct *mm)
{
	struct aclmem_process *process;

	process = kmem_cache_zalloc(process_cache, ACLMEM_GFP);
	if (!process)
		return ERR_PTR(-ENOMEM);
	mutex_init(&process->lock);
	INIT_LIST_HEAD(&process->clients);
	atomic_inc(&nr_processes);
	return &process->notifier;
}

static void process_free(struct mmu_notifier *notifier)
{
	kmem_cache_free(process_cache,
			container_of(notifier, struct aclmem_process, notifier));
	if (atomic_dec_and_test(&nr_processes))
		wake_up_var(&nr_processes);
}

static const struct mmu_notifier_ops process_ops = {
	.release = process_release,
	.alloc_notifier = process_alloc,
	.free_notifier = process_free,
};

struct aclmem_client *aclmem_client_create(void)
{
	struct aclmem_client *client;
	int error;

	client = kmem_cache_zalloc(client_cache, ACLMEM_GFP);
	if (!client)
		return ERR_PTR(-ENOMEM);
	client->inode = alloc_anon_inode(client_mount->mnt_sb);
	if (IS_ERR(client->inode)) {
		error = PTR_ERR(client->inode);
		goto free_client;
	}
	client->inode->i_mode |= S_IFCHR;

	mutex_init(&client->bind_lock);
	mutex_init(&client->import_lock);
	init_rwsem(&client->map_sem);
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1);
	client->ranges = RB_ROOT_CACHED;
	client->mappings = RB_ROOT_CACHED;
	mmgrab(current->mm);
	client->mm = current->mm;
	return client;

free_client:
	kmem_cache_free(client_cache, client);
	return ERR_PTR(error);
}

bool aclmem_client_bound(struct aclmem_client *client)
{
	/* Pairs with the release in bind(): what is seen is in place. */
	return smp_load_acquire(&client->process);
}

static int bind(struct aclmem_client *client)
{
	struct aclmem_process *process;
	struct mmu_notifier *notifier;

	notifier = mmu_notifier_get(&process_ops, client->mm);
	if (IS_ERR(notifier))
		return PTR_ERR(notifier);
	process = container_of(notifier, struct aclmem_process, notifier);
	mutex_lock(&process->lock);
	list_add(&client->link, &process->clients);
	mutex_unlock(&process->lock);
	/* Pairs with the acquire in aclmem_client_bound(). */
	smp_store_release(&client->process, process);
	return 0;
}

/*
 * Not done by open(), which runs under a mutex of all misc devices: this waits
 * for mmap_lock, and a thread of the process that faults on user-managed memory
 * can hold that for as long as it likes.
 */
int aclmem_client_bind(struct aclmem_client *client)
{
	int error = 0;

	if (aclmem_client_bound(client))
		return 0;
	if (mutex_lock_killable(&client->bind_lock))
		return -EINTR;
	if (!client->process)
		error = bind(client);
	mutex_unlock(&client->bind_lock);
	return error;
}

/*
 * The file is going, so no VMA is left and no command is under way; but the
 * address space may be ending at this moment.
 */
void aclmem_client_destroy(struct aclmem_client *client)
{
	struct aclmem_process *process = client->process;

	if (process) {
		mutex_lock(&process->lock);
		list_del(&client->link);
		mutex_unlock(&process->lock);
		client_drop(client);
		mmu_notifier_put(&process->notifier);
	}
	xa_destroy(&client->handles);
	iput(client->inode);
	mmdrop(client->mm);
	kmem_cache_free(client_cache, client);
}
