// SPDX-License-Identifier: MIT
/*
 * copy.c: one copy, or one fill. Owns nothing and takes no lock. The library has
 * no idea where an address is: the kernel finds that out, and leaves to the
 * library what has nothing to do with devices.
 */
#include "internal.h"

#include <string.h>
#include <unistd.h>

/*
 * Brings host memory in, which is what touching it is going to do anyway, so
 * that a bad address is an error of the call instead of the end of the process.
 */
static bool bring_in(const void *address, size_t length, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)address & ~(page - 1);
	uintptr_t end = (uintptr_t)address + length;

	if (end < (uintptr_t)address || end > UINTPTR_MAX - page)
		return false;
	end = (end + page - 1) & ~(page - 1);
	return !madvise((void *)start, end - start, advice);
}

static aclError copy_host(const char *name, void *dst, const void *src,
			  size_t count)
{
	if (!bring_in(src, count, MADV_POPULATE_READ))
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "dst %p, src %p, count %zu: the source can't be read",
				   dst, src, count);
	if (!bring_in(dst, count, MADV_POPULATE_WRITE))
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "dst %p, src %p, count %zu: the destination can't be written",
				   dst, src, count);
	memmove(dst, src, count);
	return ACL_SUCCESS;
}

static aclError set_host(const char *name, void *address, uint8_t value,
			 size_t count)
{
	if (!bring_in(address, count, MADV_POPULATE_WRITE))
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "devPtr %p, count %zu: host memory can't be written",
				   address, count);
	memset(address, value, count);
	return ACL_SUCCESS;
}

/* One command's worth: what the kernel takes at once, or the rest. */
static size_t worth(size_t left)
{
	return left < ACLMEM_MAX_COPY ? left : (size_t)ACLMEM_MAX_COPY;
}

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
	if (copy.head.out_reason == ACLMEM_REASON_HOST_TO_HOST)
		return copy_host(name, dst, src, count);
	return aclmem_fail_kernel(ACLMEM_CALL_MEMCPY, name, error, &copy.head,
				  "dst %p, src %p, count %zu", dst, src, count);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind)
{
	size_t done;
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
	for (done = 0; !ret && done < count; done += worth(count - done))
		ret = copy(__func__, (char *)dst + done,
			   (const char *)src + done, worth(count - done));
	return ret;
}

static aclError set(const char *name, void *address, uint8_t value, size_t count)
{
	struct aclmem_fill fill = {
		.address = aclmem_u64(address),
		.length = count,
		.value = value,
	};
	int error;

	error = aclmem_kernel_do(ACLMEM_FILL, &fill.head, sizeof(fill));
	if (!error)
		return ACL_SUCCESS;
	if (fill.head.out_reason == ACLMEM_REASON_NOT_RESERVED)
		return set_host(name, address, value, count);
	return aclmem_fail_kernel(ACLMEM_CALL_MEMSET, name, error, &fill.head,
				  "devPtr %p, count %zu", address, count);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	size_t done;
	aclError ret;

	if (!count)
		return ACL_SUCCESS;
	if (!devPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
	if (count > maxCount)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "count %zu is more than maxCount %zu", count,
			    maxCount);
	ret = aclmem_device_current(__func__, NULL);
	for (done = 0; !ret && done < count; done += worth(count - done))
		ret = set(__func__, (char *)devPtr + done, (uint8_t)value,
			  worth(count - done));
	return ret;
}
