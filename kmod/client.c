// SPDX-License-Identifier: GPL-2.0-only
/*
 * One open descriptor and the address space it serves. Holds the mm by mmgrab
 * only: mmget would be a circle (mm, VMA, file, client, mm) that never ends.
 * What the process owns ends with the process, even if a child forked before
 * still has the descriptor: the notifier's release drops it when the address
 * space goes, mapped memory follows when the VMAs close, and the client itself
 * goes with the last reference to the file.
 */
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "aclmem.h"
#include "compat.h"

#define ACLMEM_FS_MAGIC 0x61636c6d /* "aclm" */

static struct kmem_cache *client_cache;
static struct vfsmount *client_mount;
static atomic64_t client_ids;
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
	int error;

	client_drop = drop;
	client_cache = kmem_cache_create("aclmem_client",
					 sizeof(struct aclmem_client), 0,
					 SLAB_ACCOUNT, NULL);
	if (!client_cache)
		return -ENOMEM;
	client_mount = kern_mount(&client_fs);
	if (IS_ERR(client_mount)) {
		error = PTR_ERR(client_mount);
		goto destroy_cache;
	}
	return 0;

destroy_cache:
	kmem_cache_destroy(client_cache);
	return error;
}

void aclmem_client_exit(void)
{
	kern_unmount(client_mount);
	kmem_cache_destroy(client_cache);
}

/*
 * The address space is at its end, or the last file reference is: both may call
 * at the same time. Page tables still exist, so nothing that is mapped may be
 * freed here; the handles of mapped memory end with their mappings.
 */
static void client_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	client_drop(container_of(notifier, struct aclmem_client, notifier));
}

static const struct mmu_notifier_ops client_notifier_ops = {
	.release = client_release,
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

	client->id = atomic64_inc_return(&client_ids);
	client->notifier.ops = &client_notifier_ops;
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

/*
 * Not done by open(), which runs under a mutex of all misc devices: the
 * registration waits for mmap_lock, and a thread of the process that faults on
 * user-managed memory can hold that for as long as it likes.
 */
int aclmem_client_bind(struct aclmem_client *client)
{
	int error = 0;

	/* Pairs with the release below: a bound client's notifier is in place. */
	if (smp_load_acquire(&client->bound))
		return 0;
	if (mutex_lock_killable(&client->bind_lock))
		return -EINTR;
	if (!client->bound) {
		error = mmu_notifier_register(&client->notifier, client->mm);
		if (!error)
			/* Pairs with the acquire above and in aclmem_mmap(). */
			smp_store_release(&client->bound, true);
	}
	mutex_unlock(&client->bind_lock);
	return error;
}

/* The file is going, so no VMA is left and no command is under way. */
void aclmem_client_destroy(struct aclmem_client *client)
{
	if (client->bound)
		mmu_notifier_unregister(&client->notifier, client->mm);
	xa_destroy(&client->handles);
	iput(client->inode);
	mmdrop(client->mm);
	kmem_cache_free(client_cache, client);
}
