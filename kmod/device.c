// SPDX-License-Identifier: GPL-2.0-only
/*
 * The devices: emulated in system memory, each with a capacity that all its
 * users share and a NUMA node that its memory comes from first; and the host,
 * whose capacity is what all processes together may have of the machine's
 * memory outside devices. All of it together leaves a tenth of the machine to
 * others: the module's memory is in nobody's RSS, so the OOM killer would kill
 * everybody but the one who has it. Owns the counters, protected by the lock
 * beside them, the innermost one.
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
static struct aclmem_dev host;

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

/* What the module may have in all. */
static u64 all_mib(void)
{
	return ((u64)totalram_pages() << PAGE_SHIFT >> 20) * 9 / 10;
}

/* Capacity of each device: as asked, or an equal part of half of the RAM. */
static int size_devices(unsigned int count, unsigned long mib, u64 *each)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT >> 20;

	if (!count || count > ACLMEM_MAX_DEVICES) {
		pr_err("devices=%u is not in 1 ... %u\n", count,
		       ACLMEM_MAX_DEVICES);
		return -EINVAL;
	}
	*each = round_down(mib ?: ram / 2 / count, ACLMEM_GRANULARITY >> 20);
	if (!*each || *each > all_mib() / count) {
		pr_err("device_mib=%lu for each of %u devices: each needs 2 MiB at least, and all together may have %llu MiB of this machine\n",
		       mib, count, all_mib());
		return -EINVAL;
	}
	return 0;
}

/* Capacity of the host: as asked, or a quarter of the RAM if that's left. */
static int size_host(u64 devices_mib, long mib, u64 *size)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT >> 20;
	u64 left = all_mib() - devices_mib;

	*size = mib < 0 ? min(ram / 4, left) : mib;
	*size = round_down(*size, ACLMEM_GRANULARITY >> 20);
	if (*size > left) {
		pr_err("host_mib=%ld: beside the devices %llu MiB are left\n",
		       mib, left);
		return -EINVAL;
	}
	return 0;
}

int aclmem_devices_init(unsigned int count, unsigned long mib, long host_mib)
{
	u64 each, rest;
	unsigned int i;
	int error;

	error = size_devices(count, mib, &each);
	if (error)
		return error;
	error = size_host(each * count, host_mib, &rest);
	if (error)
		return error;

	devices = kcalloc(count, sizeof(*devices), GFP_KERNEL);
	if (!devices)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		spin_lock_init(&devices[i].lock);
		devices[i].node = pick_node(i);
		devices[i].total = each << 20;
	}
	nr_devices = count;
	spin_lock_init(&host.lock);
	host.total = rest << 20;
	return 0;
}

void aclmem_devices_exit(void)
{
	kfree(devices);
	nr_devices = 0;
}

static struct aclmem_dev *charged(struct aclmem_location location)
{
	if (location.type == ACLMEM_LOCATION_DEVICE)
		return &devices[location.id];
	return &host;
}

int aclmem_device_charge(struct aclmem_location location, u64 length,
			 struct aclmem_why *why)
{
	struct aclmem_dev *dev = charged(location);
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

void aclmem_device_uncharge(struct aclmem_location location, u64 length)
{
	struct aclmem_dev *dev = charged(location);

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
