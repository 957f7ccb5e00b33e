// SPDX-License-Identifier: MIT
/*
 * address.c: reservations, and mappings in them. Owns nothing: block.c knows the
 * reservations that were handed out, the kernel knows the mappings. Takes no lock
 * of its own.
 */
#include "internal.h"

#include <inttypes.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/* What an address that the program wants has to be. */
static aclError check_expected(const char *name, const void *expected,
			       uint64_t length)
{
	uint64_t address = aclmem_u64(expected);
	uint64_t unit = 2 * MIB;

	if (length > 512 * MIB)
		unit = GIB;
	else
		while (unit < length)
			unit *= 2;
	if (address < 16 * TIB || address > 24 * TIB ||
	    length > 24 * TIB - address)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "expectPtr %p isn't between 16 and 24 TiB, with all of its size",
				   expected);
	if (address % unit)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "expectPtr %p isn't a multiple of %llu bytes, as its size requires",
				   expected, (unsigned long long)unit);
	return ACL_SUCCESS;
}

static aclError reserve(const char *name, void **address, size_t length,
			void *expected)
{
	aclError ret;
	void *start;

	ret = aclmem_kernel_reserve(name, expected, length, &start);
	if (ret)
		return ret;
	if (!aclmem_block_add(start, length, ACLMEM_BLOCK_RESERVED)) {
		munmap(start, length);
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
				   "size %zu: out of memory for a record", length);
	}
	*address = start;
	return ACL_SUCCESS;
}

static aclError check_used(const char *name)
{
	if (aclmem_device_any_used())
		return ACL_SUCCESS;
	return aclmem_fail(ACL_ERROR_RT_INVALID_HANDLE, name,
			   "this process never used a device: call aclrtSetDevice first");
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
				void *expectPtr, uint64_t flags)
{
	aclError ret;
	size_t length;

	if (!virPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
	if (!size)
		return fail(ACL_ERROR_INVALID_PARAM, "size is 0");
	if (flags > 1)
		return fail(ACL_ERROR_INVALID_PARAM,
			    "flags 0x%" PRIx64 " isn't 0 or 1", flags);
	if (alignment)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "alignment %zu isn't 0", alignment);
	length = aclmem_round_up(size, ACLMEM_GRANULARITY);
	if (expectPtr) {
		/* A length of 0 is over every limit, and fails below. */
		ret = check_expected(__func__, expectPtr, length ? length : size);
		if (ret)
			return ret;
	}
	ret = check_used(__func__);
	if (ret)
		return ret;
	if (!length)
		return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
			    "size %zu: no such range of addresses exists", size);
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	return reserve(__func__, virPtr, length, expectPtr);
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
	struct aclmem_release release = { .address = aclmem_u64(virPtr) };
	aclError ret;
	size_t length;
	int error;

	if (!virPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
	ret = check_used(__func__);
	if (!ret)
		ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	length = aclmem_block_claim(virPtr, ACLMEM_BLOCK_RESERVED);
	if (!length)
		return fail(ACL_ERROR_RT_PARAM_INVALID, "virPtr %p: %s",
			    virPtr, aclmem_block_advice(virPtr));
	error = aclmem_kernel_do(ACLMEM_RELEASE, &release.head, sizeof(release));
	if (!error) {
		aclmem_block_remove(virPtr);
		/* One whole mapping of the process: that can't fail. */
		munmap(virPtr, length);
		return ACL_SUCCESS;
	}
	/* The program may have taken the reservation away by munmap(). */
	if (release.head.out_reason == ACLMEM_REASON_NOT_RANGE_START)
		aclmem_block_remove(virPtr);
	else
		aclmem_block_unclaim(virPtr);
	return aclmem_fail_kernel(ACLMEM_CALL_RELEASE, __func__, error,
				  &release.head, "virPtr %p", virPtr);
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
		     aclrtDrvMemHandle handle, uint64_t flags)
{
	struct aclmem_map map = {
		.address = aclmem_u64(virPtr),
		.length = size,
	};
	aclError ret;
	int error;

	if (!virPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	if (!size)
		return fail(ACL_ERROR_INVALID_PARAM, "size is 0");
	if (flags)
		return fail(ACL_ERROR_INVALID_PARAM,
			    "flags 0x%" PRIx64 " isn't 0", flags);
	if (offset)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "offset %zu isn't 0: only a whole handle can be mapped", offset);
	if (!aclmem_handle_id(handle, &map.handle))
		return fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
			    "handle %p isn't a handle of this library", handle);
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_MAP, &map.head, sizeof(map));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_MAP, __func__, error,
					  &map.head,
					  "virPtr %p, size %zu, handle %p",
					  virPtr, size, handle);
	return ACL_SUCCESS;
}

/* Memory of aclrtMalloc() is mapped too, but not by aclrtMapMem(). */
static aclError check_mapping(const char *name, void *address)
{
	if (aclmem_block_kind(address) == ACLMEM_BLOCK_DEVICE)
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "virPtr %p: %s", address,
				   aclmem_block_advice(address));
	return aclmem_kernel_use(name, NULL);
}

aclError aclrtUnmapMem(void *virPtr)
{
	struct aclmem_unmap unmap = { .address = aclmem_u64(virPtr) };
	aclError ret;
	int error;

	if (!virPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
	ret = check_mapping(__func__, virPtr);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_UNMAP, &unmap.head, sizeof(unmap));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_UNMAP, __func__, error,
					  &unmap.head, "virPtr %p", virPtr);
	return ACL_SUCCESS;
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	struct aclmem_retain retain = { .address = aclmem_u64(virPtr) };
	aclError ret;
	int error;

	if (!virPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	ret = check_mapping(__func__, virPtr);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_RETAIN, &retain.head, sizeof(retain));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_RETAIN, __func__, error,
					  &retain.head, "virPtr %p", virPtr);
	*handle = aclmem_handle_make(retain.out_handle);
	return ACL_SUCCESS;
}
