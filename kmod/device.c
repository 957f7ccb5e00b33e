// SPDX-License-Identifier: GPL-2.0-only
/*
 * The devices: emulated in system memory, each with a capacity that all its
 * users share and a NUMA node that its memory comes from first. Owns the
 * counters; device->lock protects them and is the innermost lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "aclmem.h"

struct aclmem_dev {
	spinlock_t lock; /* protects used and peak */
	int node;
	u64 total;
	u64 used;
	u64 peak;
};

static struct aclmem_dev *devices;
static unsigned int nr_devices;

unsigned int aclmem_device_count(void)
{
	return nr_devices;
}

int aclmem_device_node(unsigned int id)
{
	return devices[id].node;
}

/* Device @id's node: the nodes that have memory, in turn. */
static int pick_node(unsigned int id)
{
	unsigned int skip = id % num_node_state(N_MEMORY);
	int node;

	for_each_node_state(node, N_MEMORY)
		if (!skip--)
			return node;
	return first_memory_node;
}

int aclmem_devices_init(unsigned int count, unsigned long mib)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	u64 total = (u64)mib << 20;
	unsigned int i;

	if (!count || count > ACLMEM_MAX_DEVICES) {
		pr_err("devices=%u is not in 1 ... %u\n", count,
		       ACLMEM_MAX_DEVICES);
		return -EINVAL;
	}
	if (!mib)
		total = ram / 2 / count;
	total = round_down(total, ACLMEM_GRANULARITY);
	if (!total || mib > ram >> 20 || total > ram / count) {
		pr_err("device_mib=%lu for each of %u devices: they need 2 MiB each at least and %llu MiB together at most\n",
		       mib, count, ram >> 20);
		return -EINVAL;
	}

	devices = kcalloc(count, sizeof(*devices), GFP_KERNEL);
	if (!devices)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		spin_lock_init(&devices[i].lock);
		devices[i].node = pick_node(i);
		devices[i].total = total;
	}
	nr_devices = count;
	return 0;
}

void aclmem_devices_exit(void)
{
	kfree(devices);
	nr_devices = 0;
}

int aclmem_device_charge(unsigned int id, u64 length, struct aclmem_why *why)
{
	struct aclmem_dev *dev = &devices[id];
	u64 left;

	spin_lock(&dev->lock);
	left = dev->total - dev->used;
	if (length <= left) {
		dev->used += length;
		dev->peak = max(dev->peak, dev->used);
	}
	spin_unlock(&dev->lock);
	if (length > left)
		return aclmem_refuse(why, -ENOMEM, ACLMEM_REASON_CAPACITY, left);
	return 0;
}

void aclmem_device_uncharge(unsigned int id, u64 length)
{
	struct aclmem_dev *dev = &devices[id];

	spin_lock(&dev->lock);
	dev->used -= length;
	spin_unlock(&dev->lock);
}

int aclmem_ioctl_device(struct aclmem_cmd *cmd)
{
	struct aclmem_device *arg = &cmd->device;
	struct aclmem_dev *dev;

	if (arg->device >= nr_devices)
		return aclmem_refuse(cmd->why, -ENODEV, ACLMEM_REASON_DEVICE,
				     arg->device);
	dev = &devices[arg->device];
	spin_lock(&dev->lock);
	arg->out_node = dev->node;
	arg->out_total = dev->total;
	arg->out_used = dev->used;
	arg->out_peak = dev->peak;
	spin_unlock(&dev->lock);
	return aclmem_cmd_reply(cmd);
}
