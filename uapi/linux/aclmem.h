/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * aclmem: physically backed device memory - the contract between the kernel
 * module and user space.
 */
#ifndef _UAPI_LINUX_ACLMEM_H
#define _UAPI_LINUX_ACLMEM_H

#include <linux/const.h>
#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every command takes one structure by pointer. It begins with &struct
 * aclmem_head, whose first member is the size of the whole structure as the
 * caller knows it. A longer structure from a newer program is accepted if the
 * part that the kernel doesn't know is zero; a shorter one from an older
 * program is extended with zeros. Unknown bits in flags, and reserved members
 * that are not zero, make the call fail. Numbers are the caller's byte order,
 * sizes and addresses are bytes, addresses are those of the calling process.
 *
 * On return, head.out_reason, head.out_index and head.out_value tell why a
 * call failed (&enum aclmem_reason). They are zeroed before the command starts
 * and so are zero after a success. Members named out_... are results; they are
 * written only on success. A call that fails has changed nothing, with one
 * exception that is stated at ACLMEM_COPY and ACLMEM_FILL: bytes that were
 * copied before a fault or a fatal signal stay copied.
 *
 * A descriptor serves the address space that opened it and no other: after
 * fork() or exec(), or received over a socket, it answers EPERM. All that a
 * process owns is released when the process ends, however it ends and whoever
 * else still holds the descriptor. All commands may be used from several
 * threads at once.
 *
 * Meaning of each errno:
 *
 * - ENOTTY: the command's number is unknown.
 * - E2BIG: the structure is longer than known and its tail isn't zero; a count
 *   is over its limit.
 * - EINVAL: a value breaks a rule of the command (out_reason tells which).
 * - EOPNOTSUPP: a known structure asks for something not supported here.
 * - EPERM: the descriptor belongs to another address space; the caller isn't
 *   the share's exporter, or the share takes no whitelist.
 * - EACCES: the caller isn't on the share's whitelist.
 * - ENOENT: no such handle, or share.
 * - ENODEV: no such device or memory node.
 * - ENXIO: nothing is reserved, or mapped, at the address.
 * - EADDRINUSE: something is mapped at the address already.
 * - EBUSY: mappings are left in a reservation that shall be released.
 * - EEXIST: the handle has been exported already.
 * - ENOMEM: out of device capacity, of memory, or over the memory cgroup's
 *   limit. It's never answered by killing a process.
 * - EFAULT: memory given to the command can't be read or written.
 * - EINTR: a fatal signal ended the call.
 * - EROFS: a write to a read-only mapping.
 */

#define ACLMEM_IOCTL_TYPE 0xBC

/* Raised when a program built for an older one could not work any more. */
#define ACLMEM_UAPI_MAJOR 0
/* Raised with every addition. */
#define ACLMEM_UAPI_MINOR 1

/* Granularity of physical memory, of reservations and of mappings. */
#define ACLMEM_GRANULARITY _BITULL(21)

/* Most bytes, all items together, that one ACLMEM_COPY or ACLMEM_FILL takes. */
#define ACLMEM_MAX_COPY _BITULL(36)

/**
 * enum aclmem_reason - the rule that a failed call broke
 *
 * One value per rule. What out_value and out_index hold is given in brackets;
 * otherwise they are zero.
 *
 * @ACLMEM_REASON_NONE: no failure, or none that belongs to a rule (EFAULT on
 *	the structure itself)
 * @ACLMEM_REASON_SIZE_FIELD: head.size is too small for the command [size]
 * @ACLMEM_REASON_TAIL: unknown members beyond the known size aren't zero [size]
 * @ACLMEM_REASON_FLAGS: unknown bit in head.flags [flags]
 * @ACLMEM_REASON_RESERVED: a reserved member isn't zero
 * @ACLMEM_REASON_WRONG_PROCESS: descriptor of another address space
 * @ACLMEM_REASON_KILLED: a fatal signal is pending
 * @ACLMEM_REASON_KERNEL_MEMORY: no memory for the kernel's own records
 * @ACLMEM_REASON_DEVICE: no such device [device id]
 * @ACLMEM_REASON_LOCATION_TYPE: location type not usable here [type]
 * @ACLMEM_REASON_LOCATION_ID: location id not usable with its type [id]
 * @ACLMEM_REASON_ATTRIBUTE: memory attribute unknown or not supported
 *	[attribute]
 * @ACLMEM_REASON_LENGTH_ZERO: a size of zero [index of the item]
 * @ACLMEM_REASON_LENGTH_ALIGN: size isn't a multiple of the granularity [size]
 * @ACLMEM_REASON_LENGTH_LIMIT: size is beyond what can be addressed [size], or
 *	copied by one command [ACLMEM_MAX_COPY]
 * @ACLMEM_REASON_CAPACITY: the device, or the host's share (module parameter
 *	host_mib), has not that much left [bytes left]
 * @ACLMEM_REASON_NO_PAGES: the system has no pages to give, or the memory
 *	cgroup is at its limit [bytes that could be had]
 * @ACLMEM_REASON_HANDLE: no such handle in this process [handle]
 * @ACLMEM_REASON_OVER_FREED: the handle is freed as often as it was allocated,
 *	imported and retained; only mappings keep it [handle]
 * @ACLMEM_REASON_OFFSET: offset into the handle isn't zero [offset]
 * @ACLMEM_REASON_SIZE_MISMATCH: only whole handles can be mapped [the handle's
 *	size]
 * @ACLMEM_REASON_ADDRESS_ALIGN: address isn't a multiple of the granularity
 *	[address]
 * @ACLMEM_REASON_NOT_RESERVED: address is in no reservation [address]
 * @ACLMEM_REASON_RANGE_END: range leaves the reservation [its end]
 * @ACLMEM_REASON_MAPPED: range overlaps a mapping [start of that mapping]
 * @ACLMEM_REASON_OTHER_LOCATION: the reservation already serves another
 *	location [type in the upper, id in the lower 32 bits]
 * @ACLMEM_REASON_NOT_MAPPED: address isn't the start of a mapping [address]
 * @ACLMEM_REASON_NOT_RANGE_START: address isn't the start of a reservation
 *	[address]
 * @ACLMEM_REASON_STILL_MAPPED: reservation has mappings [start of the first]
 * @ACLMEM_REASON_CLOSING: reservation is being released [its start]
 * @ACLMEM_REASON_IMPORTED: only the process that allocated may export [handle]
 * @ACLMEM_REASON_EXPORTED: the memory was exported before [handle]
 * @ACLMEM_REASON_SHARE: no such share: never existed, or all who held its
 *	memory have let go [share]
 * @ACLMEM_REASON_NOT_EXPORTER: another process exported the share
 * @ACLMEM_REASON_NO_WHITELIST: the share was exported without validation
 * @ACLMEM_REASON_PIDS_EMPTY: no process id in the list, or only zeros
 * @ACLMEM_REASON_PIDS_LIMIT: too many process ids in one call [the limit]
 * @ACLMEM_REASON_NOT_LISTED: the caller isn't on the whitelist [its host-wide
 *	process id]
 * @ACLMEM_REASON_SAME_PROCESS: the exporter imports its own share
 * @ACLMEM_REASON_ITEM_COUNT: no item, or too many [the limit]
 * @ACLMEM_REASON_ATTR_COUNT: attributes are none, or more than items [count]
 * @ACLMEM_REASON_ATTR_INDEX: attribute indices don't start at 0, don't
 *	increase, or reach beyond the items [value; index of the attribute]
 * @ACLMEM_REASON_ARRAY: an array can't be read [its address]
 * @ACLMEM_REASON_ADDRESS_NULL: an item's address is NULL [0 for the
 *	destination, 1 for the source; index of the item]
 * @ACLMEM_REASON_ADDRESS_RANGE: an item's range is no user address range
 *	[address; index]
 * @ACLMEM_REASON_UNMAPPED: an item's device address has no memory [address;
 *	index]
 * @ACLMEM_REASON_DEVICE_END: an item's range leaves the memory mapped in its
 *	reservation [first address beyond; index]
 * @ACLMEM_REASON_DST_LOCATION: destination isn't where its attribute says
 *	[type in the upper, id in the lower 32 bits, as found; index]
 * @ACLMEM_REASON_SRC_LOCATION: source isn't where its attribute says [as above;
 *	index]
 * @ACLMEM_REASON_SAME_SIDE: both ends are host memory, or both device memory
 *	[location type of both; index]
 * @ACLMEM_REASON_MIXED_DIRECTION: item copies the other way than item 0 [index]
 * @ACLMEM_REASON_MIXED_DEVICE: item uses another device than item 0 [device id;
 *	index]
 * @ACLMEM_REASON_HOST_TO_HOST: both ends are plain memory of the caller, which
 *	needs no kernel [index]
 * @ACLMEM_REASON_READ_ONLY: destination is mapped read-only [address; index]
 * @ACLMEM_REASON_SEGMENTS: the call crosses too many mappings [the limit]
 * @ACLMEM_REASON_HOST_FAULT: the caller's memory faulted while being copied;
 *	what came before in the order of items is copied [address; index]
 */
enum aclmem_reason {
	ACLMEM_REASON_NONE = 0,
	ACLMEM_REASON_SIZE_FIELD = 1,
	ACLMEM_REASON_TAIL = 2,
	ACLMEM_REASON_FLAGS = 3,
	ACLMEM_REASON_RESERVED = 4,
	ACLMEM_REASON_WRONG_PROCESS = 5,
	ACLMEM_REASON_KILLED = 6,
	ACLMEM_REASON_KERNEL_MEMORY = 7,
	ACLMEM_REASON_DEVICE = 8,
	ACLMEM_REASON_LOCATION_TYPE = 9,
	ACLMEM_REASON_LOCATION_ID = 10,
	ACLMEM_REASON_ATTRIBUTE = 11,
	ACLMEM_REASON_LENGTH_ZERO = 12,
	ACLMEM_REASON_LENGTH_ALIGN = 13,
	ACLMEM_REASON_LENGTH_LIMIT = 14,
	ACLMEM_REASON_CAPACITY = 15,
	ACLMEM_REASON_NO_PAGES = 16,
	ACLMEM_REASON_HANDLE = 17,
	ACLMEM_REASON_OVER_FREED = 18,
	ACLMEM_REASON_OFFSET = 19,
	ACLMEM_REASON_SIZE_MISMATCH = 20,
	ACLMEM_REASON_ADDRESS_ALIGN = 21,
	ACLMEM_REASON_NOT_RESERVED = 22,
	ACLMEM_REASON_RANGE_END = 23,
	ACLMEM_REASON_MAPPED = 24,
	ACLMEM_REASON_OTHER_LOCATION = 25,
	ACLMEM_REASON_NOT_MAPPED = 26,
	ACLMEM_REASON_NOT_RANGE_START = 27,
	ACLMEM_REASON_STILL_MAPPED = 28,
	ACLMEM_REASON_CLOSING = 29,
	ACLMEM_REASON_IMPORTED = 30,
	ACLMEM_REASON_EXPORTED = 31,
	ACLMEM_REASON_SHARE = 32,
	ACLMEM_REASON_NOT_EXPORTER = 33,
	ACLMEM_REASON_NO_WHITELIST = 34,
	ACLMEM_REASON_PIDS_EMPTY = 35,
	ACLMEM_REASON_PIDS_LIMIT = 36,
	ACLMEM_REASON_NOT_LISTED = 37,
	ACLMEM_REASON_SAME_PROCESS = 38,
	ACLMEM_REASON_ITEM_COUNT = 39,
	ACLMEM_REASON_ATTR_COUNT = 40,
	ACLMEM_REASON_ATTR_INDEX = 41,
	ACLMEM_REASON_ARRAY = 42,
	ACLMEM_REASON_ADDRESS_NULL = 43,
	ACLMEM_REASON_ADDRESS_RANGE = 44,
	ACLMEM_REASON_UNMAPPED = 45,
	ACLMEM_REASON_DEVICE_END = 46,
	ACLMEM_REASON_DST_LOCATION = 47,
	ACLMEM_REASON_SRC_LOCATION = 48,
	ACLMEM_REASON_SAME_SIDE = 49,
	ACLMEM_REASON_MIXED_DIRECTION = 50,
	ACLMEM_REASON_MIXED_DEVICE = 51,
	ACLMEM_REASON_HOST_TO_HOST = 52,
	ACLMEM_REASON_READ_ONLY = 53,
	ACLMEM_REASON_SEGMENTS = 54,
	ACLMEM_REASON_HOST_FAULT = 55,
};

/**
 * enum aclmem_location_type - where memory is
 *
 * The numbers are those of aclrtMemLocationType.
 *
 * @ACLMEM_LOCATION_HOST: memory of the host, id 0: the node of the caller first
 * @ACLMEM_LOCATION_DEVICE: memory of the device with that id
 * @ACLMEM_LOCATION_UNREGISTERED: memory that is not the module's (a result
 *	only)
 * @ACLMEM_LOCATION_MANAGED: not supported
 * @ACLMEM_LOCATION_HOST_NUMA: memory of the NUMA node with that id
 */
enum aclmem_location_type {
	ACLMEM_LOCATION_HOST = 0,
	ACLMEM_LOCATION_DEVICE = 1,
	ACLMEM_LOCATION_UNREGISTERED = 2,
	ACLMEM_LOCATION_MANAGED = 3,
	ACLMEM_LOCATION_HOST_NUMA = 4,
};

/**
 * struct aclmem_location - a place for memory
 * @id: device, or NUMA node; 0 for the host
 * @type: &enum aclmem_location_type
 */
struct aclmem_location {
	__u32 id;
	__u32 type;
};

/**
 * struct aclmem_head - what every command's structure begins with
 * @size: sizeof() the whole structure
 * @flags: zero but for the command's own flags
 * @out_reason: &enum aclmem_reason of a failure, 0 after success
 * @reserved: must be 0
 * @out_index: which item or entry of a failure, else 0
 * @out_value: the offending or limiting value, see &enum aclmem_reason
 */
struct aclmem_head {
	__u32 size;
	__u32 flags;
	__u32 out_reason;
	__u32 reserved;
	__u64 out_index;
	__u64 out_value;
};

enum {
	ACLMEM_CMD_QUERY = 0x80,
	ACLMEM_CMD_DEVICE,
	ACLMEM_CMD_ALLOC,
	ACLMEM_CMD_FREE,
	ACLMEM_CMD_RETAIN,
	ACLMEM_CMD_MAP,
	ACLMEM_CMD_UNMAP,
	ACLMEM_CMD_RELEASE,
	ACLMEM_CMD_ADDRESS,
	ACLMEM_CMD_EXPORT,
	ACLMEM_CMD_WHITELIST,
	ACLMEM_CMD_IMPORT,
	ACLMEM_CMD_COPY,
	ACLMEM_CMD_FILL,
	ACLMEM_CMD_HANDLE,
};

/* Bits of aclmem_query.out_features. */
#define ACLMEM_FEATURE_HUGE_MAPPING _BITULL(0) /* 2 MiB page table entries */
#define ACLMEM_FEATURE_CGROUP _BITULL(1)	/* pages are charged */
#define ACLMEM_FEATURE_READ_ONLY _BITULL(2)	/* ACLMEM_MAP_READ_ONLY */

/**
 * struct aclmem_query - ioctl(ACLMEM_QUERY): versions, limits, features
 * @head: common part; no flags
 * @out_major: ACLMEM_UAPI_MAJOR of the module
 * @out_minor: ACLMEM_UAPI_MINOR of the module
 * @out_devices: number of devices; their ids are 0 ... out_devices - 1
 * @out_tgid: process id of the caller in the host's (initial) pid namespace,
 *	as ACLMEM_WHITELIST takes it
 * @out_features: ACLMEM_FEATURE_... bits
 * @out_granularity: of allocations, reservations and mappings, bytes
 * @out_max_items: most items of one ACLMEM_COPY
 * @out_max_pids: most process ids of one ACLMEM_WHITELIST
 *
 * The first command on a descriptor, whichever it is, binds it to the calling
 * process; mmap() needs that to have happened, so QUERY comes first.
 */
struct aclmem_query {
	struct aclmem_head head;
	__u32 out_major;
	__u32 out_minor;
	__u32 out_devices;
	__s32 out_tgid;
	__u64 out_features;
	__u64 out_granularity;
	__u32 out_max_items;
	__u32 out_max_pids;
};

#define ACLMEM_QUERY _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_QUERY)

/**
 * struct aclmem_device - ioctl(ACLMEM_DEVICE): one device's state
 * @head: common part; no flags
 * @device: which device
 * @out_node: NUMA node its memory comes from first
 * @out_total: capacity, bytes
 * @out_used: bytes allocated now, by all processes
 * @out_peak: most bytes that were ever allocated at once
 *
 * Fails with ENODEV (DEVICE).
 */
struct aclmem_device {
	struct aclmem_head head;
	__u32 device;
	__s32 out_node;
	__u64 out_total;
	__u64 out_used;
	__u64 out_peak;
};

#define ACLMEM_DEVICE _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_DEVICE)

/**
 * enum aclmem_page - page sizes a caller can ask for
 * @ACLMEM_PAGE_ANY: 2 MiB pages
 * @ACLMEM_PAGE_2M: 2 MiB pages
 */
enum aclmem_page {
	ACLMEM_PAGE_ANY = 0,
	ACLMEM_PAGE_2M = 1,
};

/**
 * struct aclmem_alloc - ioctl(ACLMEM_ALLOC): allocate physical memory
 * @head: common part; no flags
 * @length: bytes, a multiple of ACLMEM_GRANULARITY, not 0
 * @location: DEVICE with a device's id, HOST with id 0, or HOST_NUMA with a
 *	node's id
 * @page: &enum aclmem_page
 * @attribute: opaque to the kernel, kept with the memory and returned by
 *	ACLMEM_HANDLE (the library keeps the aclrtMemAttr here)
 * @out_handle: the caller's name for the memory; names aren't used again soon
 *
 * The memory is zero, made of 2 MiB pages, charged to the caller's memory
 * cgroup and, for DEVICE, to the device's capacity. The handle is held once.
 *
 * Fails with EINVAL (LENGTH_ZERO, LENGTH_ALIGN, LENGTH_LIMIT, LOCATION_TYPE,
 * LOCATION_ID), EOPNOTSUPP (ATTRIBUTE), ENODEV (DEVICE, LOCATION_ID), ENOMEM
 * (CAPACITY, NO_PAGES, KERNEL_MEMORY), EINTR (KILLED).
 */
struct aclmem_alloc {
	struct aclmem_head head;
	__u64 length;
	struct aclmem_location location;
	__u32 page;
	__u32 attribute;
	__u32 out_handle;
	__u32 reserved;
};

#define ACLMEM_ALLOC _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_ALLOC)

/**
 * struct aclmem_free - ioctl(ACLMEM_FREE): let go of a handle once
 * @head: common part; no flags
 * @handle: from ALLOC, IMPORT or RETAIN
 * @reserved: must be 0
 *
 * The memory lives until nobody holds or maps it, in any process.
 *
 * Fails with ENOENT (HANDLE), EINVAL (OVER_FREED).
 */
struct aclmem_free {
	struct aclmem_head head;
	__u32 handle;
	__u32 reserved;
};

#define ACLMEM_FREE _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_FREE)

/**
 * struct aclmem_retain - ioctl(ACLMEM_RETAIN): hold the handle mapped somewhere
 * @head: common part; no flags
 * @address: start of a mapping
 * @out_handle: its handle, now held once more
 * @reserved: must be 0
 *
 * Fails with ENXIO (NOT_MAPPED).
 */
struct aclmem_retain {
	struct aclmem_head head;
	__u64 address;
	__u32 out_handle;
	__u32 reserved;
};

#define ACLMEM_RETAIN _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_RETAIN)

/**
 * struct aclmem_handle_info - ioctl(ACLMEM_HANDLE): what a handle stands for
 * @head: common part; no flags
 * @handle: from ALLOC, IMPORT or RETAIN
 * @out_attribute: as given to ALLOC, also by another process
 * @out_length: bytes
 * @out_location: where this process sees the memory: for an imported handle
 *	the device it was imported to
 * @out_users: how often the handle must be freed
 * @out_mappings: how often the handle is mapped
 * @out_imported: 1 for an imported handle, else 0
 * @reserved: must be 0
 *
 * Fails with ENOENT (HANDLE).
 */
struct aclmem_handle_info {
	struct aclmem_head head;
	__u32 handle;
	__u32 out_attribute;
	__u64 out_length;
	struct aclmem_location out_location;
	__u32 out_users;
	__u32 out_mappings;
	__u32 out_imported;
	__u32 reserved;
};

#define ACLMEM_HANDLE _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_HANDLE)

/*
 * Reservations. mmap() of the descriptor with MAP_SHARED, PROT_READ (and
 * PROT_WRITE), offset 0 and a length that is a multiple of ACLMEM_GRANULARITY
 * reserves address space. It holds no memory until something is mapped into
 * it; touching an address without memory raises SIGBUS. A reservation can't be
 * split, moved, grown, re-protected, made executable or inherited by a child;
 * munmap() of all of it ends it, with all mappings in it. Other offsets are
 * reserved for other kinds of memory.
 */

/* aclmem_map: the CPU and the copy engine may only read. */
#define ACLMEM_MAP_READ_ONLY _BITUL(0)

/**
 * struct aclmem_map - ioctl(ACLMEM_MAP): make memory addressable
 * @head: common part; flags: ACLMEM_MAP_READ_ONLY
 * @address: multiple of ACLMEM_GRANULARITY inside one reservation
 * @length: the whole handle's size
 * @offset: must be 0
 * @handle: from ALLOC, IMPORT or RETAIN
 * @reserved: must be 0
 *
 * The mapping holds the memory until UNMAP, or until the reservation ends. One
 * handle may be mapped at several addresses. The first mapping decides which
 * location a reservation serves.
 *
 * Fails with ENOENT (HANDLE, OVER_FREED), EINVAL (LENGTH_ZERO, OFFSET,
 * SIZE_MISMATCH, ADDRESS_ALIGN, RANGE_END, OTHER_LOCATION), ENXIO
 * (NOT_RESERVED), EADDRINUSE (MAPPED), EBUSY (CLOSING), ENOMEM (KERNEL_MEMORY),
 * EINTR (KILLED).
 */
struct aclmem_map {
	struct aclmem_head head;
	__u64 address;
	__u64 length;
	__u64 offset;
	__u32 handle;
	__u32 reserved;
};

#define ACLMEM_MAP _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_MAP)

/**
 * struct aclmem_unmap - ioctl(ACLMEM_UNMAP): end one mapping
 * @head: common part; no flags
 * @address: start of the mapping
 *
 * When it returns no CPU can reach the memory through the mapping any more.
 * Needs no memory and so can't fail for lack of it.
 *
 * Fails with ENXIO (NOT_MAPPED), EINTR (KILLED).
 */
struct aclmem_unmap {
	struct aclmem_head head;
	__u64 address;
};

#define ACLMEM_UNMAP _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_UNMAP)

/**
 * struct aclmem_release - ioctl(ACLMEM_RELEASE): close an empty reservation
 * @head: common part; no flags
 * @address: start of the reservation
 *
 * Nothing can be mapped into the reservation afterwards; the caller's munmap()
 * then gives the address space back. (The kernel leaves that to the caller, who
 * alone knows that no other mmap() took the place meanwhile.)
 *
 * Fails with ENXIO (NOT_RANGE_START), EBUSY (STILL_MAPPED, CLOSING), EINTR
 * (KILLED).
 */
struct aclmem_release {
	struct aclmem_head head;
	__u64 address;
};

#define ACLMEM_RELEASE _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_RELEASE)

/**
 * enum aclmem_address_state - what is at an address
 * @ACLMEM_ADDRESS_FOREIGN: not the module's
 * @ACLMEM_ADDRESS_RESERVED: in a reservation, without memory
 * @ACLMEM_ADDRESS_MAPPED: in a mapping
 */
enum aclmem_address_state {
	ACLMEM_ADDRESS_FOREIGN = 0,
	ACLMEM_ADDRESS_RESERVED = 1,
	ACLMEM_ADDRESS_MAPPED = 2,
};

/**
 * struct aclmem_address - ioctl(ACLMEM_ADDRESS): what is at an address
 * @head: common part; no flags
 * @address: any address
 * @out_state: &enum aclmem_address_state
 * @out_page_size: bytes a page table entry of the mapping covers at best; 0
 *	without a mapping
 * @out_location: of the mapping; type UNREGISTERED without one
 * @out_base: start of the mapping, 0 without one
 * @out_length: length of the mapping
 * @out_range_base: start of the reservation, 0 without one
 * @out_range_length: length of the reservation
 * @out_map_flags: ACLMEM_MAP_... flags of the mapping
 * @out_handle: handle of the mapping, not held by this call
 */
struct aclmem_address {
	struct aclmem_head head;
	__u64 address;
	__u32 out_state;
	__u32 out_page_size;
	struct aclmem_location out_location;
	__u64 out_base;
	__u64 out_length;
	__u64 out_range_base;
	__u64 out_range_length;
	__u32 out_map_flags;
	__u32 out_handle;
};

#define ACLMEM_ADDRESS _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_ADDRESS)

/* aclmem_export: whoever knows the number may import. */
#define ACLMEM_EXPORT_ANY_PROCESS _BITUL(0)

/**
 * struct aclmem_export - ioctl(ACLMEM_EXPORT): make a share of a handle
 * @head: common part; flags: ACLMEM_EXPORT_ANY_PROCESS
 * @handle: from ALLOC, not from IMPORT
 * @reserved: must be 0
 * @out_share: 64 random bits, never 0, valid on this machine until the last
 *	process that holds the memory lets go
 *
 * Without the flag nobody may import until ACLMEM_WHITELIST names them.
 *
 * Fails with ENOENT (HANDLE, OVER_FREED), EINVAL (IMPORTED), EEXIST (EXPORTED),
 * ENOMEM (KERNEL_MEMORY).
 */
struct aclmem_export {
	struct aclmem_head head;
	__u32 handle;
	__u32 reserved;
	__u64 out_share;
};

#define ACLMEM_EXPORT _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_EXPORT)

/**
 * struct aclmem_whitelist - ioctl(ACLMEM_WHITELIST): admit processes to a share
 * @head: common part; no flags
 * @share: from EXPORT in this process
 * @pids: address of @count numbers (__s32): host-wide process ids, as their
 *	processes get them from aclmem_query.out_tgid
 * @count: 1 ... aclmem_query.out_max_pids
 * @reserved: must be 0
 *
 * The processes that have these ids now are admitted, with all their threads;
 * their children, and later owners of the ids, are not. Ids of no process, and
 * 0, are skipped without a word. Several calls add up; nobody can be removed.
 *
 * Fails with EINVAL (PIDS_EMPTY), E2BIG (PIDS_LIMIT), EFAULT (ARRAY), ENOENT
 * (SHARE), EPERM (NOT_EXPORTER, NO_WHITELIST), ENOMEM (KERNEL_MEMORY).
 */
struct aclmem_whitelist {
	struct aclmem_head head;
	__u64 share;
	__u64 pids;
	__u32 count;
	__u32 reserved;
};

#define ACLMEM_WHITELIST _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_WHITELIST)

/**
 * struct aclmem_import - ioctl(ACLMEM_IMPORT): get a handle of shared memory
 * @head: common part; no flags
 * @share: the number that EXPORT gave
 * @device: device on which this process uses the memory
 * @out_handle: a handle; the same one, held once more, if this process imported
 *	the share to this device before and still holds that
 *
 * Fails with ENODEV (DEVICE), ENOENT (SHARE), EINVAL (SAME_PROCESS), EACCES
 * (NOT_LISTED), ENOMEM (KERNEL_MEMORY).
 */
struct aclmem_import {
	struct aclmem_head head;
	__u64 share;
	__u32 device;
	__u32 out_handle;
};

#define ACLMEM_IMPORT _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_IMPORT)

/**
 * struct aclmem_copy_attr - where a run of items copies from and to
 * @dst: location of the destinations
 * @src: location of the sources
 * @reserved: must be 0
 *
 * Laid out as aclrtMemcpyBatchAttr.
 */
struct aclmem_copy_attr {
	struct aclmem_location dst;
	struct aclmem_location src;
	__u8 reserved[16];
};

/*
 * aclmem_copy: the rules of a batch copy of the API. Attributes are required
 * and every item must be where they say, each item copies between host and
 * device, no item is empty, all go one way and use one device.
 */
#define ACLMEM_COPY_BATCH _BITUL(0)

/**
 * struct aclmem_copy - ioctl(ACLMEM_COPY): copy a set of ranges
 * @head: common part; flags: ACLMEM_COPY_BATCH
 * @dst: address of @count destination addresses (__u64)
 * @src: address of @count source addresses (__u64)
 * @length: address of @count lengths (__u64), bytes, any alignment
 * @count: 1 ... aclmem_query.out_max_items
 * @attr_count: with ACLMEM_COPY_BATCH number of attributes, else 0
 * @attr: address of @attr_count &struct aclmem_copy_attr
 * @attr_index: address of @attr_count numbers (__u64): the first item of each
 *	attribute; the first is 0, and they increase
 * @out_bytes: bytes copied in all
 *
 * Each end is memory mapped in a reservation of this process (a range may cross
 * adjacent mappings of one reservation), or any other memory of the process; at
 * least one end is the former. Without ACLMEM_COPY_BATCH items are free to differ and an empty
 * item is skipped.
 *
 * All rules are checked for all items before a byte moves: item by item the
 * places of destination and source, then for all items the other batch rules,
 * then where ranges end. The memory of the
 * mappings is held meanwhile, so that an unmap or a free at the same time is
 * safe. Items are copied in no guaranteed order; ranges that overlap give
 * unspecified bytes.
 *
 * Fails with EINVAL (ITEM_COUNT, ATTR_COUNT, ATTR_INDEX, ADDRESS_NULL,
 * DST_LOCATION, SRC_LOCATION, SAME_SIDE, LENGTH_ZERO, MIXED_DIRECTION,
 * MIXED_DEVICE, HOST_TO_HOST), E2BIG (ITEM_COUNT, SEGMENTS, LENGTH_LIMIT for
 * more than ACLMEM_MAX_COPY in all), ENXIO (UNMAPPED,
 * DEVICE_END), EROFS (READ_ONLY), EFAULT (ARRAY, ADDRESS_RANGE, HOST_FAULT),
 * ENOMEM (KERNEL_MEMORY), EINTR (KILLED).
 */
struct aclmem_copy {
	struct aclmem_head head;
	__u64 dst;
	__u64 src;
	__u64 length;
	__u32 count;
	__u32 attr_count;
	__u64 attr;
	__u64 attr_index;
	__u64 out_bytes;
};

#define ACLMEM_COPY _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_COPY)

/**
 * struct aclmem_fill - ioctl(ACLMEM_FILL): set mapped memory to one byte value
 * @head: common part; no flags
 * @address: inside a mapping of a reservation of this process
 * @length: bytes, any alignment; may cross adjacent mappings of one reservation;
 *	not 0
 * @value: 0 ... 255
 * @reserved: must be 0
 *
 * Fails with EINVAL (LENGTH_ZERO, ADDRESS_NULL, RESERVED for a value over 255),
 * ENXIO (NOT_RESERVED for memory that isn't the module's, UNMAPPED,
 * DEVICE_END), EROFS (READ_ONLY), EFAULT (ADDRESS_RANGE), E2BIG (SEGMENTS,
 * LENGTH_LIMIT),
 * ENOMEM (KERNEL_MEMORY), EINTR (KILLED).
 */
struct aclmem_fill {
	struct aclmem_head head;
	__u64 address;
	__u64 length;
	__u32 value;
	__u32 reserved;
};

#define ACLMEM_FILL _IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_FILL)

/*
 * Sizes as of ACLMEM_UAPI_MINOR 1. Both sides assert them; members added later
 * come after these sizes.
 */
#define ACLMEM_HEAD_SIZE 32
#define ACLMEM_QUERY_SIZE 72
#define ACLMEM_DEVICE_SIZE 64
#define ACLMEM_ALLOC_SIZE 64
#define ACLMEM_FREE_SIZE 40
#define ACLMEM_RETAIN_SIZE 48
#define ACLMEM_HANDLE_SIZE 72
#define ACLMEM_MAP_SIZE 64
#define ACLMEM_UNMAP_SIZE 40
#define ACLMEM_RELEASE_SIZE 40
#define ACLMEM_ADDRESS_SIZE 96
#define ACLMEM_EXPORT_SIZE 48
#define ACLMEM_WHITELIST_SIZE 56
#define ACLMEM_IMPORT_SIZE 48
#define ACLMEM_COPY_ATTR_SIZE 32
#define ACLMEM_COPY_SIZE 88
#define ACLMEM_FILL_SIZE 56

#endif /* _UAPI_LINUX_ACLMEM_H */
