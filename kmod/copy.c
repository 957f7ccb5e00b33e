// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans of copies and fills. A plan resolves every address and checks every
 * rule for all items before a byte moves, and holds references to all memory it
 * names, so that its execution needs no lock: an unmap or a free at the same
 * time is safe. Building it takes client->map_sem for reading; user memory is
 * read before that.
 *
 * The order of the checks is the vendor's: item by item the destination's
 * place, the source's place, and that they differ; then for all items, that
 * none is empty, that all go one way on one device; then where ranges end.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "aclmem.h"

/* Items, or segments, after which a loop lets others run. */
#define RESCHED 64

/* A plan in the making: the caller's attributes, and where it looked last. */
struct request {
	struct aclmem_plan *plan;
	struct aclmem_client *client;
	struct aclmem_copy_attr *attrs;
	u64 *attr_index;
	u32 nr_attrs;
	struct aclmem_mapping *hint;
	struct aclmem_why *why;
};

static void *array_from_user(u64 address, size_t count, size_t size, int *error,
			     struct aclmem_why *why)
{
	void *array = kvmalloc_array(count, size, ACLMEM_GFP);

	if (!array) {
		*error = aclmem_no_memory(why);
		return NULL;
	}
	if (copy_from_user(array, u64_to_user_ptr(address), count * size)) {
		kvfree(array);
		*error = aclmem_refuse(why, -EFAULT, ACLMEM_REASON_ARRAY,
				       address);
		return NULL;
	}
	return array;
}

static int load_items(struct aclmem_plan *plan, const struct aclmem_copy *arg,
		      struct aclmem_why *why)
{
	const u64 from[] = { arg->dst, arg->src, arg->length };
	struct aclmem_item *item;
	int error = 0;
	u32 i, which;
	u64 *values;

	plan->items = kvmalloc_array(arg->count, sizeof(*plan->items),
				     ACLMEM_GFP);
	if (!plan->items)
		return aclmem_no_memory(why);
	plan->nr_items = arg->count;
	for (which = 0; which < ARRAY_SIZE(from); which++) {
		values = array_from_user(from[which], arg->count,
					 sizeof(*values), &error, why);
		if (!values)
			return error;
		for (i = 0; i < arg->count; i++) {
			item = &plan->items[i];
			switch (which) {
			case 0:
				item->dst = (struct aclmem_end){ values[i] };
				break;
			case 1:
				item->src = (struct aclmem_end){ values[i] };
				break;
			default:
				item->length = values[i];
			}
		}
		kvfree(values);
	}
	return 0;
}

static int load_attrs(struct request *request, const struct aclmem_copy *arg)
{
	struct aclmem_why *why = request->why;
	int error;
	u64 start;
	u32 i;

	if (!arg->attr_count || arg->attr_count > arg->count)
		return aclmem_refuse(why, -EINVAL, ACLMEM_REASON_ATTR_COUNT,
				     arg->attr_count);
	request->attr_index = array_from_user(arg->attr_index, arg->attr_count,
					      sizeof(*request->attr_index),
					      &error, why);
	if (!request->attr_index)
		return error;
	for (i = 0; i < arg->attr_count; i++) {
		start = request->attr_index[i];
		if (i ? start <= request->attr_index[i - 1] : start)
			break;
		if (start >= arg->count)
			break;
	}
	if (i < arg->attr_count)
		return aclmem_refuse_item(why, -EINVAL, ACLMEM_REASON_ATTR_INDEX,
					  i, request->attr_index[i]);
	request->attrs = array_from_user(arg->attr, arg->attr_count,
					 sizeof(*request->attrs), &error, why);
	if (!request->attrs)
		return error;
	for (i = 0; i < arg->attr_count; i++)
		if (memchr_inv(request->attrs[i].reserved, 0,
			       sizeof(request->attrs[i].reserved)))
			return aclmem_refuse_item(why, -EINVAL,
						  ACLMEM_REASON_RESERVED, i, 0);
	request->nr_attrs = arg->attr_count;
	return 0;
}

/* Neighbours in a batch are neighbours in memory more often than not. */
static struct aclmem_mapping *find(struct request *request, u64 address)
{
	struct aclmem_mapping *mapping = request->hint;

	if (mapping && address >= mapping->start && address <= mapping->last)
		return mapping;
	mapping = aclmem_mapping_find(request->client, address);
	if (mapping)
		request->hint = mapping;
	return mapping;
}

/* Finds out what an end's first byte is in. */
static int locate(struct request *request, struct aclmem_end *end, u32 index)
{
	end->mapping = find(request, end->address);
	if (!end->mapping && aclmem_range_find(request->client, end->address))
		return aclmem_refuse_item(request->why, -ENXIO,
					  ACLMEM_REASON_UNMAPPED, index,
					  end->address);
	return 0;
}

/* Where a located end is; memory that isn't ours is the host's. */
static struct aclmem_location location_of(const struct aclmem_end *end)
{
	if (end->mapping)
		return end->mapping->handle->location;
	return (struct aclmem_location){ .type = ACLMEM_LOCATION_HOST };
}

static bool on_device(struct aclmem_location location)
{
	return location.type == ACLMEM_LOCATION_DEVICE;
}

/* For memory of the host the id means nothing, nor does the node. */
static bool matches(struct aclmem_location found, struct aclmem_location wanted)
{
	if (on_device(found))
		return aclmem_same_location(found, wanted);
	return wanted.type == ACLMEM_LOCATION_HOST ||
	       wanted.type == ACLMEM_LOCATION_HOST_NUMA;
}

/* One end of item @index against what its attribute says. */
static int check_end(struct request *request, struct aclmem_end *end, u32 index,
		     const struct aclmem_location *wanted, bool source)
{
	struct aclmem_why *why = request->why;
	int error;

	if (!end->address)
		return aclmem_refuse_item(why, -EINVAL,
					  ACLMEM_REASON_ADDRESS_NULL, index,
					  source);
	error = locate(request, end, index);
	if (error)
		return error;
	if (wanted && !matches(location_of(end), *wanted))
		return aclmem_refuse_item(why, -EINVAL,
					  source ? ACLMEM_REASON_SRC_LOCATION :
						   ACLMEM_REASON_DST_LOCATION,
					  index,
					  aclmem_location_value(location_of(end)));
	return 0;
}

/* Item @index's ends against its attribute and each other. */
static int check_places(struct request *request, u32 index,
			const struct aclmem_copy_attr *attr)
{
	struct aclmem_item *item = &request->plan->items[index];
	struct aclmem_location dst;
	int error;

	error = check_end(request, &item->dst, index, attr ? &attr->dst : NULL,
			  false);
	if (error)
		return error;
	error = check_end(request, &item->src, index, attr ? &attr->src : NULL,
			  true);
	if (error)
		return error;
	dst = location_of(&item->dst);
	if (attr && on_device(dst) == on_device(location_of(&item->src)))
		return aclmem_refuse_item(request->why, -EINVAL,
					  ACLMEM_REASON_SAME_SIDE, index,
					  dst.type);
	if (!item->dst.mapping && !item->src.mapping)
		return aclmem_refuse_item(request->why, -EINVAL,
					  ACLMEM_REASON_HOST_TO_HOST, index, 0);
	return 0;
}

/* The rules of a batch that compare items with the first one. */
static int check_uniform(struct request *request)
{
	struct aclmem_plan *plan = request->plan;
	u32 i, here, device = 0;
	bool to_device = false;
	bool up;

	for (i = 0; i < plan->nr_items; i++)
		if (!plan->items[i].length)
			return aclmem_refuse_item(request->why, -EINVAL,
						  ACLMEM_REASON_LENGTH_ZERO, i,
						  0);
	for (i = 0; i < plan->nr_items; i++) {
		up = on_device(location_of(&plan->items[i].dst));
		here = location_of(up ? &plan->items[i].dst :
					&plan->items[i].src).id;
		if (!i) {
			device = here;
			to_device = up;
		}
		if (up != to_device)
			return aclmem_refuse_item(request->why, -EINVAL,
						  ACLMEM_REASON_MIXED_DIRECTION,
						  i, 0);
		if (here != device)
			return aclmem_refuse_item(request->why, -EINVAL,
						  ACLMEM_REASON_MIXED_DEVICE, i,
						  here);
	}
	return 0;
}

static int check_rules(struct request *request)
{
	struct aclmem_plan *plan = request->plan;
	u32 i, attr = 0;
	int error;

	for (i = 0; i < plan->nr_items; i++) {
		if (!request->nr_attrs && !plan->items[i].length)
			continue;
		if (attr + 1 < request->nr_attrs &&
		    request->attr_index[attr + 1] == i)
			attr++;
		error = check_places(request, i,
				     request->nr_attrs ? &request->attrs[attr] :
							 NULL);
		if (error)
			return error;
		if (!(i % RESCHED))
			cond_resched();
	}
	return request->nr_attrs ? check_uniform(request) : 0;
}

/*
 * The mapping that adjoins @mapping at @address. One of another reservation is
 * none: that it lies there is chance, and a copy that runs into it is an overrun.
 */
static struct aclmem_mapping *next_mapping(struct request *request,
					   const struct aclmem_mapping *mapping,
					   u64 address)
{
	struct aclmem_mapping *next = find(request, address);

	return next && next->range == mapping->range ? next : NULL;
}

/*
 * Adds a run of bytes to the plan, while there's room. Runs of the same memory
 * in a row share the first one's reference.
 */
static void add_segment(struct aclmem_plan *plan, struct aclmem_end *end,
			struct aclmem_phys *phys, u64 offset, u64 length)
{
	struct aclmem_segment *segment = &plan->segments[plan->nr_segments];

	if (plan->nr_segments == plan->max_segments)
		return;
	segment->phys = phys;
	segment->offset = offset;
	segment->length = length;
	segment->holds = !plan->nr_segments || segment[-1].phys != phys;
	if (segment->holds)
		aclmem_phys_get(phys);
	plan->nr_segments++;
	end->count++;
}

/* Walks the mappings under an end, adjacent ones in turn, and counts them. */
static int walk(struct request *request, struct aclmem_end *end, u64 length,
		u32 index, bool write, u32 *count)
{
	struct aclmem_mapping *mapping = end->mapping;
	u64 address = end->address, left = length;
	struct aclmem_plan *plan = request->plan;
	u64 here;

	end->first = plan->nr_segments;
	end->count = 0;
	if (!mapping) {
		if (access_ok((void __user *)end->address, length))
			return 0;
		return aclmem_refuse_item(request->why, -EFAULT,
					  ACLMEM_REASON_ADDRESS_RANGE, index,
					  address);
	}
	while (left) {
		if (!mapping)
			return aclmem_refuse_item(request->why, -ENXIO,
						  ACLMEM_REASON_DEVICE_END,
						  index, address);
		if (write && mapping->flags & ACLMEM_MAP_READ_ONLY)
			return aclmem_refuse_item(request->why, -EROFS,
						  ACLMEM_REASON_READ_ONLY,
						  index, address);
		if (++*count > ACLMEM_MAX_SEGMENTS)
			return aclmem_refuse_item(request->why, -E2BIG,
						  ACLMEM_REASON_SEGMENTS, index,
						  ACLMEM_MAX_SEGMENTS);
		here = min_t(u64, left, mapping->last - address + 1);
		add_segment(plan, end, mapping->handle->phys,
			    address - mapping->start, here);
		address += here;
		left -= here;
		if (left)
			mapping = next_mapping(request, mapping, address);
	}
	return 0;
}

static int walk_all(struct request *request, bool fill, u32 *count)
{
	struct aclmem_plan *plan = request->plan;
	struct aclmem_item *item;
	int error = 0;
	u32 i;

	for (i = 0; i < plan->nr_items && !error; i++) {
		item = &plan->items[i];
		if (!item->length)
			continue;
		if (!(i % RESCHED))
			cond_resched();
		error = walk(request, &item->dst, item->length, i, true, count);
		if (!error && !fill)
			error = walk(request, &item->src, item->length, i,
				     false, count);
	}
	return error;
}

static void free_segments(struct aclmem_plan *plan)
{
	u32 i;

	for (i = 0; i < plan->nr_segments; i++) {
		if (plan->segments[i].holds)
			aclmem_phys_put(plan->segments[i].phys);
		if (!(i % RESCHED))
			cond_resched();
	}
	kvfree(plan->segments);
	plan->nr_segments = 0;
}

static int alloc_segments(struct aclmem_plan *plan, u32 count,
			  struct aclmem_why *why)
{
	plan->max_segments = count;
	plan->segments = kvmalloc_array(count, sizeof(*plan->segments),
					ACLMEM_GFP);
	return plan->segments ? 0 : aclmem_no_memory(why);
}

/*
 * Nothing but a kill ends a copy early, so a stop, a freezer or a debugger waits
 * for all of it. Called after the walk, which keeps the sum from overflowing.
 */
static int check_total(struct request *request)
{
	struct aclmem_plan *plan = request->plan;
	u64 total = 0;
	u32 i;

	for (i = 0; i < plan->nr_items; i++)
		total += plan->items[i].length;
	if (total > ACLMEM_MAX_COPY)
		return aclmem_refuse(request->why, -E2BIG,
				     ACLMEM_REASON_LENGTH_LIMIT,
				     ACLMEM_MAX_COPY);
	return 0;
}

/*
 * Turns addresses into segments; the trees must not change meanwhile. Nearly
 * always an item has one segment; else we know how many there are afterwards.
 */
static int resolve(struct request *request, bool fill)
{
	struct aclmem_plan *plan = request->plan;
	u32 count = 0;
	int error;

	error = alloc_segments(plan, plan->nr_items, request->why);
	if (!error)
		error = walk_all(request, fill, &count);
	if (!error)
		error = check_total(request);
	if (error || count <= plan->max_segments)
		return error;
	free_segments(plan);
	error = alloc_segments(plan, count, request->why);
	count = 0;
	return error ?: walk_all(request, fill, &count);
}

static void plan_free(struct aclmem_plan *plan)
{
	free_segments(plan);
	kvfree(plan->items);
}

static int plan_copy(struct request *request, const struct aclmem_copy *arg)
{
	bool batch = arg->head.flags & ACLMEM_COPY_BATCH;
	struct aclmem_client *client = request->client;
	int error;

	if (!arg->count || arg->count > ACLMEM_MAX_ITEMS)
		return aclmem_refuse(request->why,
				     arg->count ? -E2BIG : -EINVAL,
				     ACLMEM_REASON_ITEM_COUNT,
				     ACLMEM_MAX_ITEMS);
	if (!batch && (arg->attr_count || arg->attr || arg->attr_index))
		return aclmem_refuse(request->why, -EINVAL,
				     ACLMEM_REASON_RESERVED, arg->attr_count);
	if (batch) {
		error = load_attrs(request, arg);
		if (error)
			return error;
	}
	error = load_items(request->plan, arg, request->why);
	if (error)
		return error;

	if (down_read_killable(&client->map_sem))
		return aclmem_killed(request->why);
	error = check_rules(request);
	if (!error)
		error = resolve(request, false);
	up_read(&client->map_sem);
	return error;
}

int aclmem_ioctl_copy(struct aclmem_cmd *cmd)
{
	struct aclmem_plan plan = {};
	struct request request = {
		.plan = &plan,
		.client = cmd->client,
		.why = cmd->why,
	};
	int error;

	error = plan_copy(&request, &cmd->copy);
	kvfree(request.attr_index);
	kvfree(request.attrs);
	if (!error)
		error = aclmem_cpu_copy(&plan, &cmd->copy.out_bytes, cmd->why);
	plan_free(&plan);
	return error ?: aclmem_cmd_reply(cmd);
}

static int plan_fill(struct request *request, const struct aclmem_fill *arg)
{
	struct aclmem_client *client = request->client;
	struct aclmem_plan *plan = request->plan;
	int error;

	plan->items = kvcalloc(1, sizeof(*plan->items), ACLMEM_GFP);
	if (!plan->items)
		return aclmem_no_memory(request->why);
	plan->nr_items = 1;
	plan->items->dst.address = arg->address;
	plan->items->length = arg->length;

	if (down_read_killable(&client->map_sem))
		return aclmem_killed(request->why);
	error = locate(request, &plan->items->dst, 0);
	if (!error && !plan->items->dst.mapping)
		error = aclmem_refuse(request->why, -ENXIO,
				      ACLMEM_REASON_NOT_RESERVED, arg->address);
	if (!error)
		error = resolve(request, true);
	up_read(&client->map_sem);
	return error;
}

int aclmem_ioctl_fill(struct aclmem_cmd *cmd)
{
	struct aclmem_fill *arg = &cmd->fill;
	struct aclmem_plan plan = {};
	struct request request = {
		.plan = &plan,
		.client = cmd->client,
		.why = cmd->why,
	};
	int error;

	if (arg->reserved || arg->value > U8_MAX)
		return aclmem_refuse(cmd->why, -EINVAL, ACLMEM_REASON_RESERVED,
				     arg->reserved ?: arg->value);
	if (!arg->length)
		return aclmem_refuse(cmd->why, -EINVAL,
				     ACLMEM_REASON_LENGTH_ZERO, 0);
	if (!arg->address)
		return aclmem_refuse(cmd->why, -EINVAL,
				     ACLMEM_REASON_ADDRESS_NULL, 0);
	error = plan_fill(&request, arg);
	if (!error)
		error = aclmem_cpu_fill(&plan, arg->value, cmd->why);
	plan_free(&plan);
	return error;
}
