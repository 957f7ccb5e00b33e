// SPDX-License-Identifier: MIT
/*
 * share.c: memory that several processes use: export, naming processes, import.
 * Owns nothing and takes no lock; the kernel keeps the shares and who may have
 * them.
 */
#include "internal.h"

#include <inttypes.h>

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
					 aclrtMemHandleType handleType,
					 uint64_t flags,
					 uint64_t *shareableHandle)
{
	struct aclmem_export export = { 0 };
	aclError ret;
	int error;

	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	if (!shareableHandle)
		return fail(ACL_ERROR_INVALID_PARAM, "shareableHandle is NULL");
	if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return fail(ACL_ERROR_INVALID_PARAM,
			    "handleType %d isn't ACL_MEM_HANDLE_TYPE_NONE",
			    (int)handleType);
	if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "flags 0x%" PRIx64 " isn't 0 or 1", flags);
	if (!aclmem_handle_id(handle, &export.handle))
		return fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
			    "handle %p isn't a handle of this library", handle);
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	if (flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		export.head.flags = ACLMEM_EXPORT_ANY_PROCESS;
	error = aclmem_kernel_do(ACLMEM_EXPORT, &export.head, sizeof(export));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_EXPORT, __func__, error,
					  &export.head, "handle %p", handle);
	*shareableHandle = export.out_share;
	return ACL_SUCCESS;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
					 size_t pidNum)
{
	struct aclmem_whitelist list = {
		.share = shareableHandle,
		.pids = aclmem_u64(pid),
		/* The kernel knows the limit, which is far below. */
		.count = pidNum < UINT32_MAX ? (uint32_t)pidNum : UINT32_MAX,
	};
	aclError ret;
	int error;

	if (!pid)
		return fail(ACL_ERROR_INVALID_PARAM, "pid is NULL");
	if (!pidNum)
		return fail(ACL_ERROR_INVALID_PARAM, "pidNum is 0");
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_WHITELIST, &list.head, sizeof(list));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_SET_PID, __func__, error,
					  &list.head,
					  "shareableHandle 0x%" PRIx64 ", pidNum %zu",
					  shareableHandle, pidNum);
	return ACL_SUCCESS;
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
					   int32_t deviceId,
					   aclrtDrvMemHandle *handle)
{
	struct aclmem_import import = { .share = shareableHandle };
	aclError ret;
	int error;

	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	ret = aclmem_device_find(__func__, "deviceId", deviceId, &import.device);
	if (!ret)
		ret = aclmem_device_current(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_IMPORT, &import.head, sizeof(import));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_IMPORT, __func__, error,
					  &import.head,
					  "shareableHandle 0x%" PRIx64 ", deviceId %d",
					  shareableHandle, deviceId);
	*handle = aclmem_handle_make(import.out_handle);
	return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
	const struct aclmem_query *query;
	aclError ret;

	if (!pid)
		return fail(ACL_ERROR_INVALID_PARAM, "pid is NULL");
	ret = aclmem_kernel_use(__func__, &query);
	if (!ret)
		*pid = query->out_tgid;
	return ret;
}
