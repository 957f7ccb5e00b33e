// SPDX-License-Identifier: MIT
/*
 * copy.c: one copy, or one fill. Owns nothing and takes no lock. The library has
 * no idea where an address is: the kernel finds that out, and leaves what has
 * nothing to do with devices to the C library.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

static aclError copy(const char *name, void *dst, const void *src, size_t count)
{
	uint64_t to = aclmem_u64(dst);
	uint64_t from = aclmem_u64(src);
	uint64_t length = count;
	struct aclmem_copy copy = {
		.dst = aclmem_u64(&to),
		.src = aclmem_u64(&from),
		.length = aclmem_u64(&length),
		.count = 1,
	};
	int error;

	error = aclmem_kernel_do(ACLMEM_COPY, &copy.head, sizeof(copy));
	if (!error)
		return ACL_SUCCESS;
	if (copy.head.out_reason == ACLMEM_REASON_HOST_TO_HOST) {
		memmove(dst, src, count);
		return ACL_SUCCESS;
	}
	return aclmem_fail_kernel(ACLMEM_CALL_MEMCPY, name, error, &copy.head,
				  "dst %p, src %p, count %zu", dst, src, count);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind)
{
	aclError ret;

	if (!count)
		return ACL_SUCCESS;
	if (!dst)
		return fail(ACL_ERROR_INVALID_PARAM, "dst is NULL");
	if (!src)
		return fail(ACL_ERROR_INVALID_PARAM, "src is NULL");
	if ((uint32_t)kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
		return fail(ACL_ERROR_INVALID_PARAM, "kind %d isn't 0 to 5",
			    (int)kind);
	if (!destMax || count > destMax)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "count %zu doesn't fit into destMax %zu", count,
			    destMax);
	if (dst == src)
		return ACL_SUCCESS;
	ret = aclmem_device_current(__func__, NULL);
	if (ret)
		return ret;
	return copy(__func__, dst, src, count);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	struct aclmem_fill fill = {
		.address = aclmem_u64(devPtr),
		.length = count,
		.value = (uint8_t)value,
	};
	aclError ret;
	int error;

	if (!count)
		return ACL_SUCCESS;
	if (!devPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
	if (count > maxCount)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "count %zu is more than maxCount %zu", count,
			    maxCount);
	ret = aclmem_device_current(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_FILL, &fill.head, sizeof(fill));
	if (!error)
		return ACL_SUCCESS;
	if (fill.head.out_reason == ACLMEM_REASON_NOT_RESERVED) {
		memset(devPtr, (uint8_t)value, count);
		return ACL_SUCCESS;
	}
	return aclmem_fail_kernel(ACLMEM_CALL_MEMSET, __func__, error,
				  &fill.head, "devPtr %p, count %zu", devPtr,
				  count);
}
