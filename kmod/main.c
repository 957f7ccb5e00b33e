// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, its device node and its commands. Checks what all commands have
 * in common (whose descriptor, sizes, flags), gives each a zero-extended copy
 * of its structure, and writes the reason of a failure back. Takes no lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "aclmem.h"

static unsigned int devices = 2;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "Number of devices, 1 to 64 (default 2)");

static unsigned long device_mib;
module_param(device_mib, ulong, 0444);
MODULE_PARM_DESC(device_mib, "Memory of each device, MiB (default: all devices together half of the RAM)");

static long host_mib = -1;
module_param(host_mib, long, 0444);
MODULE_PARM_DESC(host_mib, "Memory outside devices that all processes together may have, MiB (default: a quarter of the RAM)");

struct aclmem_op {
	u32 size;
	u32 min_size;
	u32 flags;
	int (*run)(struct aclmem_cmd *cmd);
};

static int aclmem_ioctl_query(struct aclmem_cmd *cmd)
{
	struct aclmem_query *arg = &cmd->query;

	arg->out_major = ACLMEM_UAPI_MAJOR;
	arg->out_minor = ACLMEM_UAPI_MINOR;
	arg->out_devices = aclmem_device_count();
	arg->out_tgid = pid_nr(task_tgid(current));
	arg->out_features = ACLMEM_FEATURE_HUGE_MAPPING |
			    ACLMEM_FEATURE_READ_ONLY;
	if (IS_ENABLED(CONFIG_MEMCG_KMEM) || IS_ENABLED(CONFIG_MEMCG))
		arg->out_features |= ACLMEM_FEATURE_CGROUP;
	arg->out_granularity = ACLMEM_GRANULARITY;
	arg->out_max_items = ACLMEM_MAX_ITEMS;
	arg->out_max_pids = ACLMEM_MAX_PIDS;
	return aclmem_cmd_reply(cmd);
}

/*
 * The layouts are for ever: no padding, and the sizes that the header states.
 * What is added later comes behind them.
 */
#define ASSERT_LAYOUT(type, last, size)                                \
	static_assert(offsetofend(struct type, last) == (size) &&       \
		      sizeof(struct type) <=                            \
			      sizeof_field(struct aclmem_cmd, bytes))
ASSERT_LAYOUT(aclmem_head, out_value, ACLMEM_HEAD_SIZE);
ASSERT_LAYOUT(aclmem_query, out_max_pids, ACLMEM_QUERY_SIZE);
ASSERT_LAYOUT(aclmem_device, out_peak, ACLMEM_DEVICE_SIZE);
ASSERT_LAYOUT(aclmem_alloc, reserved, ACLMEM_ALLOC_SIZE);
ASSERT_LAYOUT(aclmem_free, reserved, ACLMEM_FREE_SIZE);
ASSERT_LAYOUT(aclmem_retain, reserved, ACLMEM_RETAIN_SIZE);
ASSERT_LAYOUT(aclmem_handle_info, reserved, ACLMEM_HANDLE_SIZE);
ASSERT_LAYOUT(aclmem_map, reserved, ACLMEM_MAP_SIZE);
ASSERT_LAYOUT(aclmem_unmap, address, ACLMEM_UNMAP_SIZE);
ASSERT_LAYOUT(aclmem_release, address, ACLMEM_RELEASE_SIZE);
ASSERT_LAYOUT(aclmem_address, out_handle, ACLMEM_ADDRESS_SIZE);
ASSERT_LAYOUT(aclmem_export, out_share, ACLMEM_EXPORT_SIZE);
ASSERT_LAYOUT(aclmem_whitelist, reserved, ACLMEM_WHITELIST_SIZE);
ASSERT_LAYOUT(aclmem_import, out_handle, ACLMEM_IMPORT_SIZE);
ASSERT_LAYOUT(aclmem_copy_attr, reserved, ACLMEM_COPY_ATTR_SIZE);
ASSERT_LAYOUT(aclmem_copy, out_bytes, ACLMEM_COPY_SIZE);
ASSERT_LAYOUT(aclmem_fill, reserved, ACLMEM_FILL_SIZE);

#define OP(command, type, minimum, known_flags, function)               \
	[ACLMEM_CMD_##command - ACLMEM_CMD_QUERY] = {                   \
		.size = sizeof(struct type),                            \
		.min_size = (minimum),                                  \
		.flags = (known_flags),                                 \
		.run = (function),                                      \
	}

static const struct aclmem_op ops[] = {
	OP(QUERY, aclmem_query, ACLMEM_QUERY_SIZE, 0, aclmem_ioctl_query),
	OP(DEVICE, aclmem_device, ACLMEM_DEVICE_SIZE, 0, aclmem_ioctl_device),
	OP(ALLOC, aclmem_alloc, ACLMEM_ALLOC_SIZE, 0, aclmem_ioctl_alloc),
	OP(FREE, aclmem_free, ACLMEM_FREE_SIZE, 0, aclmem_ioctl_free),
	OP(RETAIN, aclmem_retain, ACLMEM_RETAIN_SIZE, 0, aclmem_ioctl_retain),
	OP(MAP, aclmem_map, ACLMEM_MAP_SIZE, ACLMEM_MAP_READ_ONLY,
	   aclmem_ioctl_map),
	OP(UNMAP, aclmem_unmap, ACLMEM_UNMAP_SIZE, 0, aclmem_ioctl_unmap),
	OP(RELEASE, aclmem_release, ACLMEM_RELEASE_SIZE, 0,
	   aclmem_ioctl_release),
	OP(ADDRESS, aclmem_address, ACLMEM_ADDRESS_SIZE, 0,
	   aclmem_ioctl_address),
	OP(EXPORT, aclmem_export, ACLMEM_EXPORT_SIZE, ACLMEM_EXPORT_ANY_PROCESS,
	   aclmem_ioctl_export),
	OP(WHITELIST, aclmem_whitelist, ACLMEM_WHITELIST_SIZE, 0,
	   aclmem_ioctl_whitelist),
	OP(IMPORT, aclmem_import, ACLMEM_IMPORT_SIZE, 0, aclmem_ioctl_import),
	OP(COPY, aclmem_copy, ACLMEM_COPY_SIZE, ACLMEM_COPY_BATCH,
	   aclmem_ioctl_copy),
	OP(FILL, aclmem_fill, ACLMEM_FILL_SIZE, 0, aclmem_ioctl_fill),
	OP(HANDLE, aclmem_handle_info, ACLMEM_HANDLE_SIZE, 0,
	   aclmem_ioctl_handle),
};

static const struct aclmem_op *find_op(unsigned int number)
{
	unsigned int index = _IOC_NR(number) - ACLMEM_CMD_QUERY;

	if (number != _IO(ACLMEM_IOCTL_TYPE, _IOC_NR(number)) ||
	    index >= ARRAY_SIZE(ops))
		return NULL;
	return &ops[array_index_nospec(index, ARRAY_SIZE(ops))];
}

static_assert(sizeof(struct aclmem_why) ==
	      sizeof(struct aclmem_head) -
	      offsetof(struct aclmem_head, out_reason));

static bool write_why(struct aclmem_cmd *cmd)
{
	return !copy_to_user(cmd->user + offsetof(struct aclmem_head,
						  out_reason),
			     cmd->why, sizeof(*cmd->why));
}

/*
 * Writes the results. Commands call it before, or undo themselves when it
 * fails: no failed call leaves anything behind.
 */
int aclmem_cmd_reply(struct aclmem_cmd *cmd)
{
	return copy_to_user(cmd->user, cmd->bytes,
			    min(cmd->user_size, cmd->size)) ?
		       -EFAULT :
		       0;
}

/* Takes the caller's structure over, zero-extended, and checks its head. */
static int load(struct aclmem_cmd *cmd, const struct aclmem_op *op)
{
	int error;

	if (cmd->user_size < op->min_size)
		return aclmem_refuse(cmd->why, -EINVAL,
				     ACLMEM_REASON_SIZE_FIELD, cmd->user_size);
	if (cmd->user_size > PAGE_SIZE)
		return aclmem_refuse(cmd->why, -E2BIG, ACLMEM_REASON_TAIL,
				     cmd->user_size);
	error = copy_struct_from_user(cmd->bytes, op->size, cmd->user,
				      cmd->user_size);
	if (error == -E2BIG)
		aclmem_refuse(cmd->why, error, ACLMEM_REASON_TAIL,
			      cmd->user_size);
	if (error)
		return error;
	/* A second read of the size could differ: the first one counts. */
	cmd->head.size = cmd->user_size;
	if (cmd->head.reserved)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     cmd->head.reserved);
	if (cmd->head.flags & ~op->flags)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_FLAGS,
				     cmd->head.flags);
	cmd->head.out_reason = 0;
	cmd->head.out_index = 0;
	cmd->head.out_value = 0;
	/*
	 * Most commands write nothing after a success. Doing it now also tells
	 * a structure that can't be written from one that can, before anything
	 * has happened.
	 */
	return write_why(cmd) ? 0 : -EFAULT;
}

static long aclmem_ioctl(struct file *file, unsigned int number,
			 unsigned long argument)
{
	const struct aclmem_op *op = find_op(number);
	struct aclmem_why why = {};
	struct aclmem_cmd cmd = {
		.client = file->private_data,
		.why = &why,
		.user = (void __user *)argument,
	};
	int error;

	if (!op)
		return -ENOTTY;
	if (get_user(cmd.user_size, (u32 __user *)cmd.user))
		return -EFAULT;
	cmd.size = op->size;
	if (current->mm != cmd.client->mm)
		error = aclmem_refuse(&why, -EPERM,
				      ACLMEM_REASON_WRONG_PROCESS, 0);
	else
		error = load(&cmd, op);
	if (!error) {
		error = aclmem_client_bind(cmd.client);
		/* Any signal can end that. Nothing has happened: start anew. */
		if (error == -EINTR && !fatal_signal_pending(current))
			return -ERESTARTNOINTR;
		if (error == -EINTR)
			aclmem_killed(&why);
		else if (error)
			aclmem_no_memory(&why);
	}
	if (!error)
		error = op->run(&cmd);
	/* A caller whose head is too short to hold the reason gets none. */
	if (error && cmd.user_size >= sizeof(struct aclmem_head) &&
	    !write_why(&cmd))
		return -EFAULT;
	return error;
}

static int aclmem_open(struct inode *inode, struct file *file)
{
	struct aclmem_client *client;

	if (!current->mm)
		return -EPERM;
	client = aclmem_client_create();
	if (IS_ERR(client))
		return PTR_ERR(client);
	file->private_data = client;
	file->f_mapping = client->inode->i_mapping;
	return 0;
}

static int aclmem_release(struct inode *inode, struct file *file)
{
	aclmem_client_destroy(file->private_data);
	return 0;
}

static const struct file_operations aclmem_fops = {
	.owner = THIS_MODULE,
	.open = aclmem_open,
	.release = aclmem_release,
	.unlocked_ioctl = aclmem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = aclmem_mmap,
	.get_unmapped_area = aclmem_get_unmapped_area,
	.llseek = noop_llseek,
};

static struct miscdevice aclmem_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "aclmem",
	.fops = &aclmem_fops,
	.mode = 0660,
};

static int __init aclmem_init(void)
{
	int error;

	error = aclmem_devices_init(devices, device_mib, host_mib);
	if (error)
		return error;
	error = aclmem_phys_init();
	if (error)
		goto exit_devices;
	error = aclmem_handle_init();
	if (error)
		goto exit_phys;
	error = aclmem_vm_init();
	if (error)
		goto exit_handle;
	error = aclmem_share_init();
	if (error)
		goto exit_vm;
	error = aclmem_client_init(aclmem_handle_drop_all);
	if (error)
		goto exit_share;
	error = misc_register(&aclmem_misc);
	if (error)
		goto exit_client;
	return 0;

exit_client:
	aclmem_client_exit();
exit_share:
	aclmem_share_exit();
exit_vm:
	aclmem_vm_exit();
exit_handle:
	aclmem_handle_exit();
exit_phys:
	aclmem_phys_exit();
exit_devices:
	aclmem_devices_exit();
	return error;
}

static void __exit aclmem_exit(void)
{
	misc_deregister(&aclmem_misc);
	aclmem_client_exit();
	/* Memory and shares are freed by RCU; the caches wait for that. */
	rcu_barrier();
	aclmem_share_exit();
	aclmem_vm_exit();
	aclmem_handle_exit();
	aclmem_phys_exit();
	aclmem_devices_exit();
}

module_init(aclmem_init);
module_exit(aclmem_exit);

MODULE_DESCRIPTION("Physically backed device memory, mapped, shared and copied");
MODULE_AUTHOR("The aclmem developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
