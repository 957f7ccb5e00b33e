/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rooms of the module know of each other. A room calls only those
 * below it:
 *
 *	main    the device node and the table of commands
 *	copy    plans of copies; cpu executes them
 *	share   export, whitelist, import
 *	vm      reservations and mappings; fault fills page tables
 *	handle  a process's names for physical memory
 *	client  one open descriptor and the address space it serves
 *	phys    physical memory
 *	device  capacity
 *
 * Lock order, outermost first:
 *
 *	client->bind_lock	(takes mmap_lock when it finds the process)
 *	client->import_lock
 *	mmap_lock
 *	process->lock		the process's clients
 *	client->map_sem		ranges and mappings of the client
 *	i_mmap_rwsem, page table locks
 *	client->handles.xa_lock	handles and their counts
 *	phys->lock		list of the handles of a phys
 *	share->lock		whitelist; takes none of the others
 *	device->lock
 *
 * User memory is touched with none of them held: a fault on it may end in our
 * own fault handler, or wait for another process as long as that likes.
 */
#ifndef ACLMEM_H
#define ACLMEM_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <linux/aclmem.h>

#define ACLMEM_CHUNK_SIZE ((unsigned long)ACLMEM_GRANULARITY)
#define ACLMEM_CHUNK_SHIFT 21
#define ACLMEM_CHUNK_ORDER (ACLMEM_CHUNK_SHIFT - PAGE_SHIFT)

#define ACLMEM_MAX_DEVICES 64
#define ACLMEM_MAX_ITEMS 65536
#define ACLMEM_MAX_SEGMENTS 1048576
#define ACLMEM_MAX_PIDS 65535

/*
 * For records kept on behalf of a process: charged to its memory cgroup, and
 * refused rather than had by the OOM killer, the cgroup's or the system's.
 */
#define ACLMEM_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct file;
struct inode;
struct vm_area_struct;

/* Why a command failed; becomes head.out_... of the caller's structure. */
struct aclmem_why {
	u32 reason;
	u32 reserved;
	u64 index;
	u64 value;
};

static inline int aclmem_refuse(struct aclmem_why *why, int error, u32 reason,
				u64 value)
{
	why->reason = reason;
	why->value = value;
	return error;
}

static inline int aclmem_refuse_item(struct aclmem_why *why, int error,
				     u32 reason, u64 index, u64 value)
{
	why->index = index;
	return aclmem_refuse(why, error, reason, value);
}

static inline int aclmem_no_memory(struct aclmem_why *why)
{
	return aclmem_refuse(why, -ENOMEM, ACLMEM_REASON_KERNEL_MEMORY, 0);
}

static inline int aclmem_killed(struct aclmem_why *why)
{
	return aclmem_refuse(why, -EINTR, ACLMEM_REASON_KILLED, 0);
}

static inline u64 aclmem_location_value(struct aclmem_location location)
{
	return (u64)location.type << 32 | location.id;
}

static inline bool aclmem_same_location(struct aclmem_location a,
					struct aclmem_location b)
{
	return a.type == b.type && a.id == b.id;
}

/* One command in flight: the caller's structure, copied, and how to answer. */
struct aclmem_cmd {
	struct aclmem_client *client;
	struct aclmem_why *why;
	void __user *user;
	u32 user_size;
	u32 size;
	union {
		u8 bytes[128];
		struct aclmem_head head;
		struct aclmem_query query;
		struct aclmem_device device;
		struct aclmem_alloc alloc;
		struct aclmem_free free;
		struct aclmem_retain retain;
		struct aclmem_handle_info handle;
		struct aclmem_map map;
		struct aclmem_unmap unmap;
		struct aclmem_release release;
		struct aclmem_address address;
		struct aclmem_export export;
		struct aclmem_whitelist whitelist;
		struct aclmem_import import;
		struct aclmem_copy copy;
		struct aclmem_fill fill;
	};
};

int aclmem_cmd_reply(struct aclmem_cmd *cmd);

/* device.c */
int aclmem_devices_init(unsigned int count, unsigned long mib, long host_mib);
void aclmem_devices_exit(void);
unsigned int aclmem_device_count(void);
int aclmem_device_node(unsigned int id);
int aclmem_device_charge(struct aclmem_location location, u64 length,
			 struct aclmem_why *why);
void aclmem_device_uncharge(struct aclmem_location location, u64 length);
int aclmem_ioctl_device(struct aclmem_cmd *cmd);

/* phys.c */

/**
 * struct aclmem_phys - refcounted physical memory
 * @ref: handles, mappings' copies in flight, and whoever looks at it now
 * @length: bytes
 * @location: where it is
 * @attribute: the allocating process's word, kept for it
 * @chunks: its pages, each the head of one compound page of 2 MiB
 * @nr_chunks: how many
 * @lock: protects @handles
 * @handles: the handles that stand for it, of all clients
 * @share: its share, once exported; the share's owner is this memory
 * @unshare: how to end @share when the memory goes
 * @rcu: frees the structure once nobody can be looking up the share any more
 */
struct aclmem_phys {
	struct kref ref;
	u64 length;
	struct aclmem_location location;
	u32 attribute;
	struct page **chunks;
	unsigned long nr_chunks;
	spinlock_t lock; /* protects handles */
	struct list_head handles;
	struct aclmem_share *share;
	void (*unshare)(struct aclmem_share *share);
	struct rcu_head rcu;
};

int aclmem_phys_init(void);
void aclmem_phys_exit(void);
struct aclmem_phys *aclmem_phys_alloc(const struct aclmem_alloc *request,
				      struct aclmem_why *why);
void aclmem_phys_get(struct aclmem_phys *phys);
bool aclmem_phys_get_live(struct aclmem_phys *phys);
void aclmem_phys_put(struct aclmem_phys *phys);
void *aclmem_phys_address(const struct aclmem_phys *phys, u64 offset,
			  size_t *room);
unsigned long aclmem_phys_pfn(const struct aclmem_phys *phys, u64 offset);

/* client.c */

/**
 * struct aclmem_client - one open descriptor
 * @mm: the address space it serves, held by mmgrab
 * @process: tells of the address space's end; NULL until the first command
 * @link: in the process's list
 * @bind_lock: serialises the first command
 * @inode: gives the client an address_space of its own, whose offsets are
 *	addresses, so that one mapping can be zapped without mmap_lock
 * @handles: its handles by id; the lock protects their counts too
 * @next_handle: where the search for a free id starts
 * @import_lock: one import at a time, so that the same share gives one handle
 * @map_sem: read by faults, written around "change the trees, zap"
 * @ranges: reservations by address
 * @mappings: mappings by address
 */
struct aclmem_client {
	struct mm_struct *mm;
	struct aclmem_process *process;
	struct list_head link;
	struct mutex bind_lock; /* serialises the setting of process */
	struct inode *inode;
	struct xarray handles;
	u32 next_handle;
	struct mutex import_lock; /* makes find-or-create of an import one step */
	struct rw_semaphore map_sem;
	struct rb_root_cached ranges;
	struct rb_root_cached mappings;
};

int aclmem_client_init(void (*drop)(struct aclmem_client *client));
void aclmem_client_exit(void);
struct aclmem_client *aclmem_client_create(void);
int aclmem_client_bind(struct aclmem_client *client);
bool aclmem_client_bound(struct aclmem_client *client);
void aclmem_client_destroy(struct aclmem_client *client);

/* handle.c */

/**
 * struct aclmem_handle - a client's name for physical memory
 * @client: whose
 * @id: index in the client's handles
 * @imported: from a share
 * @users: how often the process holds it: alloc, import, retain, less free
 * @mappings: how often it's mapped; it lives while either isn't zero
 * @location: where this process sees the memory
 * @phys: the memory, referenced
 * @link: in the phys's list
 */
struct aclmem_handle {
	struct aclmem_client *client;
	u32 id;
	bool imported;
	u64 users;
	u64 mappings;
	struct aclmem_location location;
	struct aclmem_phys *phys;
	struct list_head link;
};

int aclmem_handle_init(void);
void aclmem_handle_exit(void);
int aclmem_handle_create(struct aclmem_client *client, struct aclmem_phys *phys,
			 struct aclmem_location location, bool imported,
			 u32 *id, struct aclmem_why *why);
bool aclmem_handle_reuse(struct aclmem_client *client, struct aclmem_phys *phys,
			 struct aclmem_location location, u32 *id);
int aclmem_handle_free(struct aclmem_client *client, u32 id,
		       struct aclmem_why *why);
struct aclmem_handle *aclmem_handle_map(struct aclmem_client *client, u32 id,
					struct aclmem_why *why);
void aclmem_handle_unmap(struct aclmem_handle *handle);
u32 aclmem_handle_retain(struct aclmem_handle *handle);
struct aclmem_phys *aclmem_handle_phys(struct aclmem_client *client, u32 id,
				       struct aclmem_why *why);
void aclmem_handle_drop_all(struct aclmem_client *client);
int aclmem_ioctl_alloc(struct aclmem_cmd *cmd);
int aclmem_ioctl_free(struct aclmem_cmd *cmd);
int aclmem_ioctl_handle(struct aclmem_cmd *cmd);

/* vm.c */

/**
 * struct aclmem_range - a reservation
 * @node: in the client's ranges
 * @start: first address
 * @last: last address
 * @subtree_last: of the interval tree
 * @client: whose
 * @vmas: VMAs that carry it: two for a moment when a refused mremap undoes
 *	itself
 * @closing: nothing may be mapped any more
 * @located: @location is fixed
 * @location: what it serves
 * @mappings: what is mapped in it
 */
struct aclmem_range {
	struct rb_node node;
	unsigned long start;
	unsigned long last;
	unsigned long subtree_last;
	struct aclmem_client *client;
	unsigned int vmas;
	bool closing;
	bool located;
	struct aclmem_location location;
	struct list_head mappings;
};

/**
 * struct aclmem_mapping - a handle at an address
 * @node: in the client's mappings
 * @start: first address
 * @last: last address
 * @subtree_last: of the interval tree
 * @flags: ACLMEM_MAP_...
 * @range: the reservation it's in
 * @handle: what is mapped; its count of mappings includes this one
 * @link: in the range's list
 */
struct aclmem_mapping {
	struct rb_node node;
	unsigned long start;
	unsigned long last;
	unsigned long subtree_last;
	u32 flags;
	struct aclmem_range *range;
	struct aclmem_handle *handle;
	struct list_head link;
};

int aclmem_vm_init(void);
void aclmem_vm_exit(void);
struct aclmem_range *aclmem_range_find(struct aclmem_client *client,
				       unsigned long address);
struct aclmem_mapping *aclmem_mapping_find(struct aclmem_client *client,
					   unsigned long address);
int aclmem_range_open(struct aclmem_client *client, struct vm_area_struct *vma);
void aclmem_range_dup(struct aclmem_range *range);
void aclmem_range_close(struct aclmem_range *range);
int aclmem_ioctl_map(struct aclmem_cmd *cmd);
int aclmem_ioctl_unmap(struct aclmem_cmd *cmd);
int aclmem_ioctl_release(struct aclmem_cmd *cmd);
int aclmem_ioctl_retain(struct aclmem_cmd *cmd);
int aclmem_ioctl_address(struct aclmem_cmd *cmd);

/* fault.c */
int aclmem_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long aclmem_get_unmapped_area(struct file *file, unsigned long hint,
				       unsigned long length, unsigned long pgoff,
				       unsigned long flags);

/* share.c */
int aclmem_share_init(void);
void aclmem_share_exit(void);
int aclmem_ioctl_export(struct aclmem_cmd *cmd);
int aclmem_ioctl_whitelist(struct aclmem_cmd *cmd);
int aclmem_ioctl_import(struct aclmem_cmd *cmd);

/* copy.c */

/**
 * struct aclmem_segment - a run of bytes inside one mapping
 * @phys: the memory
 * @offset: into it
 * @length: bytes
 * @holds: has a reference to @phys; else a segment before it has
 */
struct aclmem_segment {
	struct aclmem_phys *phys;
	u64 offset;
	u64 length;
	bool holds;
};

/**
 * struct aclmem_end - one end of a copy
 * @address: first byte
 * @mapping: what is mapped there, NULL for plain memory of the caller; only
 *	while the plan is made
 * @first: its first segment
 * @count: its segments, none for plain memory and for empty items
 */
struct aclmem_end {
	unsigned long address;
	struct aclmem_mapping *mapping;
	u32 first;
	u32 count;
};

/**
 * struct aclmem_item - one validated copy or fill
 * @dst: where to
 * @src: where from
 * @length: bytes
 */
struct aclmem_item {
	struct aclmem_end dst;
	struct aclmem_end src;
	u64 length;
};

/**
 * struct aclmem_plan - work that passed all rules and holds its memory
 * @items: what to do
 * @nr_items: how many
 * @segments: their segments
 * @nr_segments: how many
 * @max_segments: room in @segments
 */
struct aclmem_plan {
	struct aclmem_item *items;
	u32 nr_items;
	struct aclmem_segment *segments;
	u32 nr_segments;
	u32 max_segments;
};

int aclmem_ioctl_copy(struct aclmem_cmd *cmd);
int aclmem_ioctl_fill(struct aclmem_cmd *cmd);

/* cpu.c */
int aclmem_cpu_copy(const struct aclmem_plan *plan, u64 *bytes,
		    struct aclmem_why *why);
int aclmem_cpu_fill(const struct aclmem_plan *plan, u8 value,
		    struct aclmem_why *why);

#endif /* ACLMEM_H */
