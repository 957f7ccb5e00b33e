// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device node of aclmem_probe.ko: takes the commands apart and hands them
 * to page.c and inject.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "internal.h"

static long probe_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	union {
		struct aclmem_probe_page page;
		struct aclmem_probe_pfn pfn;
		struct aclmem_probe_inject inject;
		struct aclmem_probe_injected injected;
	} u = {};
	int rc = 0;

	if (_IOC_SIZE(cmd) > sizeof(u))
		return -ENOTTY;
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&u, user, _IOC_SIZE(cmd)))
		return -EFAULT;

	switch (cmd) {
	case ACLMEM_PROBE_GET_PAGE:
		probe_page(&u.page);
		break;
	case ACLMEM_PROBE_GET_PFN:
		probe_pfn(&u.pfn);
		break;
	case ACLMEM_PROBE_PUT_TABLE:
		rc = probe_table(&u.page);
		break;
	case ACLMEM_PROBE_ARM:
		rc = probe_arm(file, &u.inject);
		break;
	case ACLMEM_PROBE_DISARM:
		rc = probe_disarm(file, &u.injected);
		break;
	default:
		return -ENOTTY;
	}

	if (!rc && (_IOC_DIR(cmd) & _IOC_READ) &&
	    copy_to_user(user, &u, _IOC_SIZE(cmd)))
		return -EFAULT;
	return rc;
}

static int probe_open(struct inode *inode, struct file *file)
{
	return capable(CAP_SYS_ADMIN) ? nonseekable_open(inode, file) : -EPERM;
}

static int probe_release(struct inode *inode, struct file *file)
{
	struct aclmem_probe_injected ignored;

	probe_disarm(file, &ignored);
	return 0;
}

static const struct file_operations probe_fops = {
	.owner = THIS_MODULE,
	.open = probe_open,
	.release = probe_release,
	.unlocked_ioctl = probe_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice probe_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "aclmem_probe",
	.fops = &probe_fops,
	.mode = 0600,
};

static int __init probe_init(void)
{
	return misc_register(&probe_device);
}
module_init(probe_init);

static void __exit probe_exit(void)
{
	misc_deregister(&probe_device);
	probe_inject_exit();
}
module_exit(probe_exit);

MODULE_DESCRIPTION("Looks at page tables and fails allocations for the aclmem selftests");
MODULE_LICENSE("GPL");
MODULE_INFO(test, "Y");
