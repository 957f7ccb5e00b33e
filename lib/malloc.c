// SPDX-License-Identifier: MIT
/*
 * malloc.c: device memory with an address, in one call. An allocation is a
 * reservation of its own with one handle mapped in it; the handle is let go at
 * once, so that the mapping is all that keeps the memory. Owns nothing: block.c
 * knows the addresses. Takes no lock of its own.
 */
#include "internal.h"

#include <inttypes.h>

#define ALIGNMENT 32
#define PADDING 32	/* of aclrtMalloc(), as in the product */

/* How to ask for one block. */
struct request {
	const char *name;	/* of the function of the API */
	size_t size;		/* as the program said */
	size_t padding;
	aclrtMemMallocPolicy policy;
	uint32_t device;
};

/* Of no consequence yet, but kept with the memory. */
static uint32_t attribute_of(aclrtMemMallocPolicy policy)
{
	switch (policy) {
	case ACL_MEM_MALLOC_NORMAL_ONLY:
		return ACL_HBM_MEM_NORMAL;
	case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		return ACL_HBM_MEM_P2P_HUGE;
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		return ACL_HBM_MEM_P2P_NORMAL;
	default:
		return ACL_HBM_MEM_HUGE;
	}
}

static aclError fail_request(const struct request *request, int error,
			     const struct aclmem_head *head)
{
	return aclmem_fail_kernel(ACLMEM_CALL_MALLOC, request->name, error,
				  head, "size %zu, policy %d, device %u",
				  request->size, (int)request->policy,
				  aclmem_device_user(request->device));
}

/* Memory at an address that is reserved already. */
static aclError populate(const struct request *request, void *address,
			 size_t length)
{
	struct aclmem_alloc alloc = {
		.length = length,
		.location.id = request->device,
		.location.type = ACLMEM_LOCATION_DEVICE,
		.attribute = attribute_of(request->policy),
	};
	struct aclmem_map map = {
		.address = aclmem_u64(address),
		.length = length,
	};
	struct aclmem_free free = { 0 };
	aclError ret = ACL_SUCCESS;
	int error;

	error = aclmem_kernel_do(ACLMEM_ALLOC, &alloc.head, sizeof(alloc));
	if (error)
		return fail_request(request, error, &alloc.head);
	map.handle = alloc.out_handle;
	error = aclmem_kernel_do(ACLMEM_MAP, &map.head, sizeof(map));
	if (error)
		ret = fail_request(request, error, &map.head);
	/* From here on the mapping alone holds the memory, if there is one. */
	free.handle = alloc.out_handle;
	aclmem_kernel_do(ACLMEM_FREE, &free.head, sizeof(free));
	return ret;
}

static aclError allocate(const struct request *request, void **address,
			 size_t length)
{
	void *start;
	aclError ret;

	ret = aclmem_kernel_reserve(request->name, NULL, length, &start);
	if (ret)
		return ret;
	ret = populate(request, start, length);
	if (ret)
		goto release;
	if (!aclmem_block_add(start, length, ACLMEM_BLOCK_DEVICE)) {
		ret = aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, request->name,
				  "size %zu: out of memory for a record",
				  request->size);
		goto release;
	}
	*address = start;
	return ACL_SUCCESS;
release:
	/* Ends the reservation and what is mapped in it. */
	munmap(start, length);
	return ret;
}

static aclError check(struct request *request, void **address, size_t *length)
{
	size_t aligned;
	aclError ret;

	if (!address)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, request->name,
				   "devPtr is NULL");
	if (!request->size)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, request->name,
				   "size is 0");
	aligned = aclmem_round_up(request->size, ALIGNMENT);
	if (!aligned || aligned > SIZE_MAX - request->padding)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, request->name,
				   "size %zu can't be rounded up",
				   request->size);
	ret = aclmem_device_current(request->name, &request->device);
	if (ret)
		return ret;
	if (request->policy == ACL_MEM_MALLOC_HUGE1G_ONLY ||
	    request->policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P)
		return aclmem_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   request->name,
				   "policy %d: 1 GiB pages aren't supported",
				   (int)request->policy);
	*length = aclmem_round_up(aligned + request->padding,
				  ACLMEM_GRANULARITY);
	if (!*length)
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				   request->name,
				   "size %zu: no machine has that much memory",
				   request->size);
	return ACL_SUCCESS;
}

static aclError run(struct request *request, void **address)
{
	aclError ret;
	size_t length;

	ret = check(request, address, &length);
	if (ret)
		return ret;
	return allocate(request, address, length);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	struct request request = {
		.name = __func__,
		.size = size,
		.padding = PADDING,
		.policy = policy,
	};

	if (policy == ACL_MEM_MALLOC_HUGE1G_ONLY ||
	    policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P)
		request.padding = 0;
	return run(&request, devPtr);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy)
{
	struct request request = {
		.name = __func__,
		.size = size,
		.policy = policy,
	};

	return run(&request, devPtr);
}

aclError aclrtFree(void *devPtr)
{
	struct aclmem_unmap unmap = { .address = aclmem_u64(devPtr) };
	struct aclmem_release release = { .address = aclmem_u64(devPtr) };
	struct aclmem_head *head = &unmap.head;
	size_t length;
	int error;

	if (!devPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
	length = aclmem_block_claim(devPtr, ACLMEM_BLOCK_DEVICE);
	if (!length)
		return fail(ACL_ERROR_RT_PARAM_INVALID, "devPtr %p: %s",
			    devPtr, aclmem_block_advice(devPtr));
	/*
	 * munmap() alone would do, but takes away whatever is there; the kernel
	 * knows whether it's still the block that was handed out.
	 */
	error = aclmem_kernel_do(ACLMEM_UNMAP, head, sizeof(unmap));
	if (!error) {
		head = &release.head;
		error = aclmem_kernel_do(ACLMEM_RELEASE, head, sizeof(release));
	}
	if (!error) {
		aclmem_block_remove(devPtr);
		munmap(devPtr, length);
		return ACL_SUCCESS;
	}
	if (head->out_reason == ACLMEM_REASON_NOT_MAPPED ||
	    head->out_reason == ACLMEM_REASON_NOT_RANGE_START)
		aclmem_block_remove(devPtr);
	else
		aclmem_block_unclaim(devPtr);
	return aclmem_fail_kernel(ACLMEM_CALL_FREE, __func__, error, head,
				  "devPtr %p", devPtr);
}
