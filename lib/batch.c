// SPDX-License-Identifier: MIT
/*
 * batch.c: many copies between host and device in one call. Owns nothing and
 * takes no lock. What the API checks before it looks at addresses is checked
 * here, in its order; where addresses are, and everything that follows from it,
 * is the kernel's to check, with the caller's own arrays where their layout is
 * the kernel's.
 */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ITEMS 4096

/* The arguments, for functions that would else have nine. */
struct batch {
	void **dsts;
	size_t *dest_maxs;
	void **srcs;
	size_t *sizes;
	size_t count;
	aclrtMemcpyBatchAttr *attrs;
	size_t *indexes;
	size_t attr_count;
};

static_assert(sizeof(aclrtMemcpyBatchAttr) == ACLMEM_COPY_ATTR_SIZE,
	      "attributes go to the kernel as they are");
static_assert(sizeof(struct aclmem_copy_attr) == ACLMEM_COPY_ATTR_SIZE,
	      "attributes go to the kernel as they are");
static_assert(offsetof(aclrtMemcpyBatchAttr, srcLoc) ==
	      offsetof(struct aclmem_copy_attr, src),
	      "attributes go to the kernel as they are");
static_assert(sizeof(size_t) == sizeof(void *), "one conversion for both");

static bool all_empty(const struct batch *batch)
{
	size_t i;

	for (i = 0; i < batch->count; i++)
		if (batch->sizes[i])
			return false;
	return true;
}

static bool reserved_is_zero(const aclrtMemcpyBatchAttr *attr)
{
	size_t i;

	for (i = 0; i < sizeof(attr->rsv); i++)
		if (attr->rsv[i])
			return false;
	return true;
}

/* First layer: its failures leave *failIndex alone. */
static aclError check_arguments(const char *name, const struct batch *batch)
{
	const char *missing = NULL;
	size_t i;

	if (!batch->dsts)
		missing = "dsts";
	else if (!batch->dest_maxs)
		missing = "destMaxs";
	else if (!batch->srcs)
		missing = "srcs";
	else if (!batch->attrs)
		missing = "attrs";
	else if (!batch->indexes)
		missing = "attrsIndexes";
	if (missing)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, name, "%s is NULL",
				   missing);
	for (i = 0; i < batch->count; i++)
		if (batch->dest_maxs[i] < batch->sizes[i])
			return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
					   "item %zu: size %zu doesn't fit into destMax %zu",
					   i, batch->sizes[i],
					   batch->dest_maxs[i]);
	for (i = 0; i < batch->attr_count; i++)
		if (!reserved_is_zero(&batch->attrs[i]))
			return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
					   "attrs[%zu]: rsv isn't all 0", i);
	return ACL_SUCCESS;
}

/* Second layer: *failIndex says no item. */
static aclError check_counts(const char *name, const struct batch *batch)
{
	size_t i;

	if (!batch->attr_count)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "numAttrs is 0");
	if (batch->attr_count > batch->count)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "numAttrs %zu is more than numBatches %zu",
				   batch->attr_count, batch->count);
	if (batch->count > MOST_ITEMS)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "numBatches %zu is more than %d",
				   batch->count, MOST_ITEMS);
	for (i = 0; i < batch->attr_count; i++)
		if ((i ? batch->indexes[i] <= batch->indexes[i - 1] :
			 batch->indexes[0] != 0) ||
		    batch->indexes[i] >= batch->count)
			return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
					   "attrsIndexes[%zu] is %zu: they begin with 0, increase, and stay below numBatches %zu",
					   i, batch->indexes[i], batch->count);
	return ACL_SUCCESS;
}

/* A process that never used a device has no answer to where an address is. */
static aclError check_used(const char *name, const struct batch *batch,
			   size_t *fail_index)
{
	if (aclmem_device_any_used())
		return ACL_SUCCESS;
	*fail_index = 0;
	if (!batch->dsts[0])
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "item 0: the destination is NULL");
	return aclmem_fail(ACL_ERROR_RT_INVALID_HANDLE, name,
			   "item 0: this process never used a device: call aclrtSetDevice first");
}

static uint32_t module_id(uint32_t id)
{
	uint32_t device;

	/* An id that isn't a device matches no address. */
	return aclmem_device_number(id, &device) ? device : UINT32_MAX;
}

/* A copy of the attributes in the module's numbering, or NULL. */
static struct aclmem_copy_attr *translate(const struct batch *batch)
{
	struct aclmem_copy_attr *attrs;
	size_t i;

	attrs = calloc(batch->attr_count, sizeof(*attrs));
	if (!attrs)
		return NULL;
	memcpy(attrs, batch->attrs, batch->attr_count * sizeof(*attrs));
	for (i = 0; i < batch->attr_count; i++) {
		if (attrs[i].dst.type == ACLMEM_LOCATION_DEVICE)
			attrs[i].dst.id = module_id(attrs[i].dst.id);
		if (attrs[i].src.type == ACLMEM_LOCATION_DEVICE)
			attrs[i].src.id = module_id(attrs[i].src.id);
	}
	return attrs;
}

/* Which failures the API puts down to one item, by their reason. */
static bool names_item(uint32_t reason)
{
	return reason == ACLMEM_REASON_ADDRESS_NULL ||
	       reason == ACLMEM_REASON_UNMAPPED ||
	       reason == ACLMEM_REASON_DST_LOCATION ||
	       reason == ACLMEM_REASON_SRC_LOCATION ||
	       reason == ACLMEM_REASON_SAME_SIDE;
}

static aclError submit(const char *name, const struct batch *batch,
		       struct aclmem_copy *copy, size_t *fail_index)
{
	int error;

	error = aclmem_kernel_do(ACLMEM_COPY, &copy->head, sizeof(*copy));
	if (!error)
		return ACL_SUCCESS;
	if (names_item(copy->head.out_reason))
		*fail_index = (size_t)copy->head.out_index;
	return aclmem_fail_kernel(ACLMEM_CALL_BATCH, name, error, &copy->head,
				  "numBatches %zu, numAttrs %zu", batch->count,
				  batch->attr_count);
}

#if SIZE_MAX == UINT64_MAX

static aclError submit_arrays(const char *name, const struct batch *batch,
			      struct aclmem_copy *copy, size_t *fail_index)
{
	copy->dst = aclmem_u64(batch->dsts);
	copy->src = aclmem_u64(batch->srcs);
	copy->length = aclmem_u64(batch->sizes);
	copy->attr_index = aclmem_u64(batch->indexes);
	return submit(name, batch, copy, fail_index);
}

#else

/* The kernel's arrays are of 64 bits on all machines. */
static aclError submit_arrays(const char *name, const struct batch *batch,
			      struct aclmem_copy *copy, size_t *fail_index)
{
	size_t n = batch->count;
	uint64_t *wide;
	aclError ret;
	size_t i;

	wide = calloc(4 * n, sizeof(*wide));
	if (!wide)
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
				   "numBatches %zu: out of memory", n);
	for (i = 0; i < n; i++) {
		wide[i] = aclmem_u64(batch->dsts[i]);
		wide[n + i] = aclmem_u64(batch->srcs[i]);
		wide[2 * n + i] = batch->sizes[i];
	}
	for (i = 0; i < batch->attr_count; i++)
		wide[3 * n + i] = batch->indexes[i];
	copy->dst = aclmem_u64(wide);
	copy->src = aclmem_u64(wide + n);
	copy->length = aclmem_u64(wide + 2 * n);
	copy->attr_index = aclmem_u64(wide + 3 * n);
	ret = submit(name, batch, copy, fail_index);
	free(wide);
	return ret;
}

#endif

static aclError run(const char *name, const struct batch *batch,
		    size_t *fail_index)
{
	struct aclmem_copy copy = {
		.head.flags = ACLMEM_COPY_BATCH,
		.count = (uint32_t)batch->count,
		.attr_count = (uint32_t)batch->attr_count,
		.attr = aclmem_u64(batch->attrs),
	};
	struct aclmem_copy_attr *attrs = NULL;
	aclError ret;

	if (aclmem_device_renumbered()) {
		attrs = translate(batch);
		if (!attrs)
			return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
					   "numAttrs %zu: out of memory",
					   batch->attr_count);
		copy.attr = aclmem_u64(attrs);
	}
	ret = submit_arrays(name, batch, &copy, fail_index);
	free(attrs);
	return ret;
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
			  size_t *sizes, size_t numBatches,
			  aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex)
{
	struct batch batch = {
		.dsts = dsts,
		.dest_maxs = destMaxs,
		.srcs = srcs,
		.sizes = sizes,
		.count = numBatches,
		.attrs = attrs,
		.indexes = attrsIndexes,
		.attr_count = numAttrs,
	};
	aclError ret;

	if (!failIndex)
		return fail(ACL_ERROR_INVALID_PARAM, "failIndex is NULL");
	if (!sizes)
		return fail(ACL_ERROR_INVALID_PARAM, "sizes is NULL");
	if (!numBatches)
		return fail(ACL_ERROR_INVALID_PARAM, "numBatches is 0");
	if (all_empty(&batch)) {
		*failIndex = SIZE_MAX;
		return ACL_SUCCESS;
	}
	ret = check_arguments(__func__, &batch);
	if (ret)
		return ret;
	*failIndex = SIZE_MAX;
	ret = check_counts(__func__, &batch);
	if (!ret)
		ret = check_used(__func__, &batch, failIndex);
	if (ret)
		return ret;
	return run(__func__, &batch, failIndex);
}
