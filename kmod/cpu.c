// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU as copy engine: moves the bytes of a plan in the calling process,
 * straight between its memory and the chunks' kernel addresses, pinning
 * nothing. Holds no lock: the plan holds the memory, and the caller's own
 * memory may fault for as long as it likes. A piece never leaves a chunk, which
 * the check of hardened usercopy would take for an overflow.
 */
#include <linux/freezer.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include "aclmem.h"

/* Bytes after which others get the CPU, and a kill is heard. */
#define SLICE SZ_2M

/* A position in one end of an item. */
struct cursor {
	const struct aclmem_segment *segment;
	u64 done;
	void __user *user;
};

static struct cursor cursor_at(const struct aclmem_plan *plan,
			       const struct aclmem_end *end)
{
	struct cursor cursor = { .user = (void __user *)end->address };

	if (end->count)
		cursor.segment = &plan->segments[end->first];
	return cursor;
}

/* The kernel address of the position, and how many bytes follow it there. */
static void *cursor_memory(const struct cursor *cursor, size_t *room)
{
	const struct aclmem_segment *segment = cursor->segment;
	void *memory;

	memory = aclmem_phys_address(segment->phys,
				     segment->offset + cursor->done, room);
	*room = min_t(u64, *room, segment->length - cursor->done);
	return memory;
}

static void cursor_advance(struct cursor *cursor, size_t bytes)
{
	cursor->user += bytes;
	if (!cursor->segment)
		return;
	cursor->done += bytes;
	if (cursor->done == cursor->segment->length) {
		cursor->segment++;
		cursor->done = 0;
	}
}

/*
 * Without copy_from_user()'s habit of clearing what it could not read: bytes
 * after a fault stay as they were.
 */
static size_t read_user(void *to, const void __user *from, size_t bytes)
{
	if (!access_ok(from, bytes))
		return bytes;
	barrier_nospec();
	return __copy_from_user_inatomic(to, from, bytes);
}

/* Copies one piece and tells its size, and how much of it is left undone. */
static size_t copy_piece(const struct cursor *dst, const struct cursor *src,
			 u64 left, size_t *undone)
{
	size_t bytes = min_t(u64, left, SLICE), room;
	void *to, *from;

	*undone = 0;
	if (!dst->segment) {
		from = cursor_memory(src, &room);
		bytes = min(bytes, room);
		*undone = copy_to_user(dst->user, from, bytes);
	} else if (!src->segment) {
		to = cursor_memory(dst, &room);
		bytes = min(bytes, room);
		*undone = read_user(to, src->user, bytes);
	} else {
		to = cursor_memory(dst, &room);
		bytes = min(bytes, room);
		from = cursor_memory(src, &room);
		bytes = min(bytes, room);
		memmove(to, from, bytes);
	}
	return bytes;
}

static int copy_item(const struct aclmem_plan *plan, u32 index, u64 *bytes,
		     size_t *slice, struct aclmem_why *why)
{
	const struct aclmem_item *item = &plan->items[index];
	struct cursor dst = cursor_at(plan, &item->dst);
	struct cursor src = cursor_at(plan, &item->src);
	u64 left = item->length;
	size_t piece, undone;

	while (left) {
		piece = copy_piece(&dst, &src, left, &undone);
		*bytes += piece - undone;
		if (undone) {
			/* A kill makes faults fail: tell what happened. */
			if (fatal_signal_pending(current))
				return aclmem_killed(why);
			return aclmem_refuse_item(why, -EFAULT,
						  ACLMEM_REASON_HOST_FAULT,
						  index,
						  (unsigned long)(dst.segment ?
						  src.user : dst.user) +
						  piece - undone);
		}
		cursor_advance(&dst, piece);
		cursor_advance(&src, piece);
		left -= piece;
		*slice += piece;
		if (*slice < SLICE)
			continue;
		*slice = 0;
		cond_resched();
		try_to_freeze();
		if (fatal_signal_pending(current))
			return aclmem_killed(why);
	}
	return 0;
}

int aclmem_cpu_copy(const struct aclmem_plan *plan, u64 *bytes,
		    struct aclmem_why *why)
{
	size_t slice = 0;
	int error = 0;
	u32 i;

	*bytes = 0;
	for (i = 0; i < plan->nr_items && !error; i++)
		error = copy_item(plan, i, bytes, &slice, why);
	return error;
}

int aclmem_cpu_fill(const struct aclmem_plan *plan, u8 value,
		    struct aclmem_why *why)
{
	const struct aclmem_item *item = plan->items;
	struct cursor cursor = cursor_at(plan, &item->dst);
	u64 left = item->length;
	size_t piece, room;
	void *memory;

	while (left) {
		memory = cursor_memory(&cursor, &room);
		piece = min_t(u64, left, room);
		memset(memory, value, piece);
		cursor_advance(&cursor, piece);
		left -= piece;
		cond_resched();
		try_to_freeze();
		if (fatal_signal_pending(current))
			return aclmem_killed(why);
	}
	return 0;
}
