// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the n-th memory allocation of one thread fail, in kernels that were
 * built without fault injection: kprobes on the entries of the allocator
 * return NULL to the caller.
 *
 * One thread is armed at a time. inject_lock guards who that is and whether
 * the probes are in place; the counters are written by the armed thread alone,
 * with preemption off.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include <asm/syscall.h>

#include "internal.h"

#define BUCKET_ARGUMENTS (IS_ENABLED(CONFIG_SLAB_BUCKETS) ? 2 : 1)

struct inject_point {
	struct kprobe kprobe;
	unsigned int gfp_argument;
};

#define POINT(function, argument)			\
	{						\
		.kprobe = { .symbol_name = #function },	\
		.gfp_argument = argument,		\
	}

/*
 * Every kernel has some of these. The innermost function that isn't inlined
 * stands for those that call it.
 */
static struct inject_point inject_points[] = {
	/* 6.1 */
	POINT(kmem_cache_alloc, 1),
	POINT(kmem_cache_alloc_lru, 2),
	POINT(kmem_cache_alloc_node, 1),
	POINT(kmem_cache_alloc_bulk, 1),
	POINT(kmalloc_trace, 1),
	POINT(kmalloc_node_trace, 1),
	POINT(kmalloc_large, 1),
	POINT(kmalloc_large_node, 1),
	POINT(__kmalloc, 1),
	POINT(__kmalloc_node, 1),
	POINT(__kmalloc_node_track_caller, 1),
	POINT(__alloc_pages, 0),
	POINT(__alloc_pages_bulk, 0),
	/* 6.10 and later */
	POINT(kmem_cache_alloc_noprof, 1),
	POINT(kmem_cache_alloc_lru_noprof, 2),
	POINT(kmem_cache_alloc_node_noprof, 1),
	POINT(kmem_cache_alloc_bulk_noprof, 1),
	POINT(__kmalloc_cache_noprof, 1),
	POINT(__kmalloc_cache_node_noprof, 1),
	POINT(__kmalloc_large_noprof, 1),
	POINT(__kmalloc_large_node_noprof, 1),
	POINT(__kmalloc_noprof, 1),
	POINT(__kmalloc_node_noprof, BUCKET_ARGUMENTS),
	POINT(__kmalloc_node_track_caller_noprof, BUCKET_ARGUMENTS),
	POINT(__alloc_pages_noprof, 0),
	POINT(alloc_pages_bulk_noprof, 0),
};

static DEFINE_MUTEX(inject_lock);
static bool inject_in_place;
static struct file *inject_file;
static struct task_struct *inject_task;
static struct aclmem_probe_inject inject_order;
static struct aclmem_probe_injected inject_result;

/* Runs in place of the function that shall fail, with its return address. */
static void *notrace noinline inject_null(void)
{
	return NULL;
}

NOKPROBE_SYMBOL(inject_null);

static bool inject_counts(gfp_t gfp)
{
	if (!in_task() || (gfp & __GFP_NOFAIL))
		return false;
	if ((inject_order.flags & ACLMEM_PROBE_RECLAIM) &&
	    !(gfp & __GFP_DIRECT_RECLAIM))
		return false;
	return inject_order.syscall < 0 ||
	       syscall_get_nr(current, task_pt_regs(current)) ==
	       inject_order.syscall;
}

NOKPROBE_SYMBOL(inject_counts);

static int inject_pre(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct inject_point *point =
		container_of(kprobe, struct inject_point, kprobe);
	u32 seen;

	if (READ_ONCE(inject_task) != current)
		return 0;
	if (!inject_counts((__force gfp_t)
			   regs_get_kernel_argument(regs, point->gfp_argument)))
		return 0;

	seen = ++inject_result.out_seen;
	if (!inject_order.nth || seen < inject_order.nth)
		return 0;
	if (seen > inject_order.nth &&
	    !(inject_order.flags & ACLMEM_PROBE_REPEAT))
		return 0;

	if (!inject_result.out_failed++)
		strscpy(inject_result.out_function, kprobe->symbol_name,
			sizeof(inject_result.out_function));
	instruction_pointer_set(regs, (unsigned long)inject_null);
	return 1;
}

NOKPROBE_SYMBOL(inject_pre);

/* A probe that has one may change the instruction pointer (IPMODIFY). */
static void inject_post(struct kprobe *kprobe, struct pt_regs *regs,
			unsigned long flags)
{
}

NOKPROBE_SYMBOL(inject_post);

static void inject_remove(void)
{
	struct kprobe *kprobe;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(inject_points); i++) {
		kprobe = &inject_points[i].kprobe;
		if (!kprobe->addr)
			continue;
		unregister_kprobe(kprobe);
		kprobe->addr = NULL;
		kprobe->flags = 0;
	}
	inject_in_place = false;
}

static int inject_place(void)
{
	struct kprobe *kprobe;
	int found = 0;
	size_t i;
	int rc;

	if (inject_in_place)
		return 0;

	for (i = 0; i < ARRAY_SIZE(inject_points); i++) {
		kprobe = &inject_points[i].kprobe;
		kprobe->pre_handler = inject_pre;
		kprobe->post_handler = inject_post;
		rc = register_kprobe(kprobe);
		if (rc) {
			kprobe->addr = NULL;
			kprobe->flags = 0;
			if (rc == -ENOENT)
				continue;
			goto fail;
		}
		found++;
		/*
		 * A probe by breakpoint runs as an interrupt does, and couldn't
		 * tell the caller's context.
		 */
		rc = -EOPNOTSUPP;
		if (!kprobe_ftrace(kprobe))
			goto fail;
	}
	rc = -ENOENT;
	if (!found)
		goto fail;
	inject_in_place = true;
	return 0;

fail:
	pr_warn("can't probe %s: %d\n", found ? kprobe->symbol_name : "the allocator", rc);
	inject_remove();
	return rc;
}

int probe_arm(struct file *file, const struct aclmem_probe_inject *inject)
{
	int rc;

	if (inject->flags & ~(ACLMEM_PROBE_REPEAT | ACLMEM_PROBE_RECLAIM))
		return -EINVAL;

	mutex_lock(&inject_lock);
	rc = -EBUSY;
	if (inject_file)
		goto out;
	rc = inject_place();
	if (rc)
		goto out;

	inject_file = file;
	inject_order = *inject;
	memset(&inject_result, 0, sizeof(inject_result));
	/* The count of references keeps the pointer from naming another task. */
	WRITE_ONCE(inject_task, get_task_struct(current));
out:
	mutex_unlock(&inject_lock);
	return rc;
}

int probe_disarm(struct file *file, struct aclmem_probe_injected *injected)
{
	struct task_struct *task = NULL;
	int rc = -EINVAL;

	mutex_lock(&inject_lock);
	if (inject_file == file) {
		task = inject_task;
		WRITE_ONCE(inject_task, NULL);
		/* Another thread may be in the handler. */
		if (task != current)
			synchronize_rcu();
		*injected = inject_result;
		inject_file = NULL;
		rc = 0;
	}
	mutex_unlock(&inject_lock);
	if (task)
		put_task_struct(task);
	return rc;
}

void probe_inject_exit(void)
{
	if (inject_in_place)
		inject_remove();
}
