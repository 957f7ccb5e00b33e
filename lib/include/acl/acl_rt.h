/* SPDX-License-Identifier: MIT */
/*
 * acl_rt.h: the functions, as this library implements them. Owns no state.
 * Usable from C (C99 on) and C++ (C++11 on).
 *
 * What holds for all functions:
 * - They return 0 (ACL_SUCCESS) or a positive number of acl_base.h. A call that
 *   fails changes nothing, writes none of its outputs (exceptions are stated),
 *   leaves a sentence for aclGetRecentErrMsg() and its number for
 *   aclrtGetLastError(), both for the calling thread. A success clears neither.
 * - They may be called from any thread at any time. A context belongs to the
 *   thread that made it current; everything else belongs to the process. None
 *   may be called from a signal handler.
 * - Sizes, offsets and free amounts are bytes. Granularity means 2 MiB.
 * - Device ids are the program's: 0 ... aclrtGetDeviceCount() - 1, see
 *   aclrtGetLogicDevIdByUserDevId().
 * - All memory of a device can be read and written by the CPU at the address
 *   that the program has for it. The product doesn't promise that.
 * - After fork() the child has no device, context or memory of the parent and
 *   starts as a new process does; handles and addresses of the parent are refused
 *   there. After exec() nothing is left, and what ends a process returns its
 *   memory.
 *
 * A letter tells where a rule comes from: [D] the product's documentation, [C]
 * its published source code, [M] somebody's measurement on hardware, [L] this
 * library's decision where those say nothing. An unmarked list of errors is in
 * the order in which they are checked, by [C].
 */
#ifndef ACL_RT_H
#define ACL_RT_H

#include "acl_rt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * aclrtGetVersion() - version of the API
 * @majorVersion: 1
 * @minorVersion: 17
 * @patchVersion: 0
 *
 * Return: 0; 100000 a pointer is NULL.
 */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
			 int32_t *patchVersion);

/**
 * aclrtGetLastError() - number of the thread's last failure; clears it
 * @level: ACL_RT_THREAD_LEVEL
 *
 * Return: that number, 0 if there is none; 107000 another level [L].
 */
aclError aclrtGetLastError(aclrtLastErrLevel level);

/**
 * aclrtPeekAtLastError() - number of the thread's last failure; keeps it
 * @level: ACL_RT_THREAD_LEVEL
 *
 * Return: as aclrtGetLastError().
 */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/**
 * aclrtSetDevice() - use a device, and make it the thread's current one
 * @deviceId: device
 *
 * Makes the device's default context current, which is one for all threads.
 * Calls are counted for the process and undone by aclrtResetDevice() [D].
 *
 * Return: 0; 107001 no such device; 207004 there's no aclmem module; 507899 it
 * can't be used (rights of /dev/aclmem, or its version) [L].
 */
aclError aclrtSetDevice(int32_t deviceId);

/**
 * aclrtResetDevice() - undo one aclrtSetDevice()
 * @deviceId: device
 *
 * The last one removes the device's default context, from all threads. That is
 * what the documentation lists as the resources of a reset [D]; memory isn't on
 * the list and stays valid, mapped or not, until it's freed or the process ends,
 * as do explicit contexts until they are destroyed [L].
 *
 * Return: 0; 107001 no such device; 507007 the device isn't set [C].
 */
aclError aclrtResetDevice(int32_t deviceId);

/**
 * aclrtResetDeviceForce() - undo all aclrtSetDevice() of a device at once
 * @deviceId: device
 *
 * Return: as aclrtResetDevice(); so a second thread's gets 507007 [D].
 */
aclError aclrtResetDeviceForce(int32_t deviceId);

/**
 * aclrtGetDevice() - the thread's current device
 * @deviceId: where to put it
 *
 * Return: 0; 100000 NULL; 107002 the thread has no context.
 */
aclError aclrtGetDevice(int32_t *deviceId);

/**
 * aclrtGetDeviceCount() - how many devices the program can use
 * @count: where to put it
 *
 * All devices of the module, or those that ASCEND_RT_VISIBLE_DEVICES lists.
 *
 * Return: 0; 100000 NULL; 207004, 507899 as aclrtSetDevice().
 */
aclError aclrtGetDeviceCount(uint32_t *count);

/**
 * aclrtGetRunMode() - where the program runs
 * @runMode: ACL_HOST, always [D]
 *
 * Return: 0; 100000 NULL.
 */
aclError aclrtGetRunMode(aclrtRunMode *runMode);

/**
 * aclrtGetLogicDevIdByUserDevId() - the module's number of a device
 * @userDevid: the program's number of it
 * @logicDevId: where to put the module's
 *
 * They differ if ASCEND_RT_VISIBLE_DEVICES was set when the process first asked
 * for devices: "3,1" makes the module's device 3 the program's 0, and 1 its 1.
 * The list ends before the first entry that isn't a device, or is there twice;
 * an empty list leaves no device [L].
 *
 * Return: 0; 100000 NULL; 107001 no such device.
 */
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
				       int32_t *const logicDevId);

/**
 * aclrtCreateContext() - make a context of one's own, and make it current
 * @context: where to put it; free with aclrtDestroyContext()
 * @deviceId: device, which needn't be set [D]; it counts as used from now on
 *
 * Return: 0; 100000 NULL; 107001 no such device; 207001 out of memory.
 */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/**
 * aclrtDestroyContext() - destroy a context made by aclrtCreateContext()
 * @context: context; threads that use it have none afterwards
 *
 * Return: 0; 100000 NULL; 107002 no such context, or not any more; 107000 the
 * default context of a device [D: it can't be destroyed].
 */
aclError aclrtDestroyContext(aclrtContext context);

/**
 * aclrtSetCurrentContext() - make a context, and so its device, current
 * @context: from aclrtCreateContext() or aclrtGetCurrentContext()
 *
 * Return: 0; 100000 NULL; 107002 no such context, or not any more.
 */
aclError aclrtSetCurrentContext(aclrtContext context);

/**
 * aclrtGetCurrentContext() - the thread's current context
 * @context: where to put it
 *
 * Return: 0; 100000 NULL; 107002 the thread has none.
 */
aclError aclrtGetCurrentContext(aclrtContext *context);

/**
 * aclrtMalloc() - allocate memory of the current device
 * @devPtr: where to put the address, a multiple of 2 MiB [L] (64 is promised
 *	[D]); free with aclrtFree()
 * @size: any; the caller may use it rounded up to a multiple of 32
 * @policy: any number; the policies for 1 GiB pages aren't supported
 *
 * The memory is zero, though nobody promises that. It's made of 2 MiB pages
 * whatever the policy, and counts in 2 MiB steps [L]. 32 bytes more than rounded
 * up are set apart, as the product does [D].
 *
 * Return: 0; 100000 NULL, size 0, or a size that can't be rounded up; 107002 the
 * thread has no context; 207000 1 GiB pages; 207001 out of memory.
 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/**
 * aclrtMallocAlign32() - the same without the 32 extra bytes
 * @devPtr: as aclrtMalloc()
 * @size: as aclrtMalloc()
 * @policy: as aclrtMalloc()
 *
 * Return: as aclrtMalloc().
 */
aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy);

/**
 * aclrtFree() - free memory of aclrtMalloc() or aclrtMallocAlign32()
 * @devPtr: the address that was given
 *
 * Needs no context. The address can't be accessed afterwards.
 *
 * Return: 0; 100000 NULL; 107000 any other address: inside an allocation, of a
 * reservation, of the host, or freed already.
 */
aclError aclrtFree(void *devPtr);

/**
 * aclrtMallocHost() - allocate host memory that stays in place
 * @hostPtr: where to put the address, a multiple of the page size; free with
 *	aclrtFreeHost()
 * @size: any
 *
 * Ordinary memory of the process in every respect (O_DIRECT, io_uring, RDMA),
 * present from the beginning, zero, locked as far as RLIMIT_MEMLOCK allows [L],
 * and not inherited by a child.
 *
 * Return: 0; 100000 NULL or size 0; 107002 the thread has no context; 207001 out
 * of memory, or more than the machine has available.
 */
aclError aclrtMallocHost(void **hostPtr, size_t size);

/**
 * aclrtFreeHost() - free memory of aclrtMallocHost()
 * @hostPtr: the address that was given
 *
 * Return: 0; 100000 NULL; 107000 any other address.
 */
aclError aclrtFreeHost(void *hostPtr);

/**
 * aclrtMemcpy() - copy, wherever the two ends are
 * @dst: destination: device memory or any other memory of the process
 * @destMax: size of what is behind @dst
 * @src: source, likewise
 * @count: how much; any alignment; ends may cross adjacent mappings
 * @kind: a formality: 0 ... 5; the addresses decide
 *
 * The copy is done when the call returns. Overlapping ends give unspecified
 * bytes, except within host memory. Mapped memory that is unmapped or freed by
 * another thread meanwhile stays in existence until the copy is done.
 *
 * Return: 0, also for @count 0, then without a look at the rest; 100000 an end is
 * NULL, or another kind; 107000 @destMax is 0 or less than @count; 0 if both ends
 * are the same; 107002 the thread has no context; 507899 an end is reserved but
 * has no memory, is too short, or can't be accessed (host memory too); bytes
 * before the fault may be copied [L].
 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind);

/**
 * aclrtMemset() - fill memory with one byte value
 * @devPtr: device memory, or any other memory of the process
 * @maxCount: size of what is behind @devPtr
 * @value: its low 8 bits are used [C]
 * @count: how much
 *
 * Return: 0, also for @count 0; 100000 NULL; 107000 @count is more than
 * @maxCount; 107002 the thread has no context; 507899 as aclrtMemcpy().
 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
		     size_t count);

/**
 * aclrtMemcpyBatch() - copy many ranges between host and device, in one call
 * @dsts: @numBatches destinations
 * @destMaxs: size of what is behind each
 * @srcs: @numBatches sources
 * @sizes: how much of each; none 0 unless all are
 * @numBatches: how many, up to 4096
 * @attrs: @numAttrs places between which the items copy
 * @attrsIndexes: @numAttrs numbers: the first item of each attribute; they begin
 *	with 0 and increase
 * @numAttrs: how many, up to @numBatches
 * @failIndex: which item is at fault, or SIZE_MAX
 *
 * All items go one way and use one device; their order isn't specified. Arrays
 * belong to the caller and are only read during the call. Everything is checked
 * for all items before a byte moves. Imported memory is accepted; the product
 * answers 207000 for it [C].
 *
 * Return: 100000 without touching @failIndex: @failIndex or @sizes NULL,
 * @numBatches 0, an array NULL, a size over its destMax, a byte of rsv not 0.
 * 0 with SIZE_MAX: all sizes 0 (before the arrays are looked at), or done.
 * 107000 with SIZE_MAX: @numAttrs 0 or over @numBatches, @numBatches over 4096, a
 * bad index, some sizes 0. With the item's number: 107000 an address is NULL, an
 * end isn't where its attribute says, both ends are host or both device; 507899
 * an end is reserved but has no memory; 107017 the process never used a device.
 * 507899 with SIZE_MAX: items go different ways or use different devices, a range
 * leaves its memory, memory can't be accessed.
 */
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
			  size_t *sizes, size_t numBatches,
			  aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex);

/**
 * aclrtMemGetAllocationGranularity() - unit of sizes of physical memory
 * @prop: what the memory shall be; checked as by aclrtMallocPhysical()
 * @option: smallest or recommended unit, which are the same
 * @granularity: 2 MiB
 *
 * Needs no context and no device in use.
 *
 * Return: 0; 100000 NULL or a bad @prop; 107001 no such device; 207000 another
 * option, or 1 GiB pages.
 */
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option,
					  size_t *granularity);

/**
 * aclrtMallocPhysical() - allocate physical memory, without an address
 * @handle: where to put the handle, held once; free with aclrtFreePhysical()
 * @size: a multiple of 2 MiB
 * @prop: what the memory shall be and where: on a device that the process uses,
 *	on the host (id 0), or on a NUMA node of the host
 * @flags: 0
 *
 * The memory is zero and made of 2 MiB pages.
 *
 * Return: 0; 100000 NULL, size 0, @flags, handleType or allocationType not 0,
 * another location type, a memAttr that isn't accepted (2 ... 7, 10 and 12 ... 17
 * are; DDR isn't on a device); 107001 no such device; 107002 HOST_NUMA without a
 * context; 207000 1 GiB pages; 507899 the process doesn't use the device [M], or
 * uses none; 507899 size not a multiple; 107000 reserve not 0; 207000 HOST with
 * another id; 107000 no such NUMA node [L]; 207001 out of memory.
 */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags);

/**
 * aclrtFreePhysical() - let go of a handle once
 * @handle: from an allocation, an import or a retain
 *
 * The memory lives until it's held and mapped by nobody, in any process.
 *
 * Return: 0; 100000 NULL; 107000 freed more often than held, or no handle.
 */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/**
 * aclrtMemRetainAllocationHandle() - hold the handle of a mapping once more
 * @virPtr: start of a mapping of aclrtMapMem()
 * @handle: where to put the handle; free with aclrtFreePhysical()
 *
 * Return: 0; 100000 NULL; 507899 no mapping starts there.
 */
aclError aclrtMemRetainAllocationHandle(void *virPtr,
					aclrtDrvMemHandle *handle);

/**
 * aclrtMemGetAllocationPropertiesFromHandle() - what a handle stands for
 * @handle: handle
 * @prop: where to put its properties
 *
 * memAttr names the kind of memory that was given, which isn't always the number
 * asked for: ACL_HBM_MEM_* for a device's, ACL_MEM_* for the host's (also asked
 * for as HBM: then HBM), ACL_MEM_P2P_* for P2P [C].
 *
 * Return: 0; 100000 NULL; 507899 no handle.
 */
aclError
aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
					  aclrtPhysicalMemProp *prop);

/**
 * aclrtReserveMemAddress() - reserve addresses, without memory
 * @virPtr: where to put the start, a multiple of 2 MiB; free with
 *	aclrtReleaseMemAddress()
 * @size: any; rounded up to a multiple of 2 MiB, without an upper limit [L]
 * @alignment: 0
 * @expectPtr: NULL, or the address wanted: between 16 and 24 TiB, a multiple of
 *	2 MiB and of the next power of two of @size up to 512 MiB, of 1 GiB above
 * @flags: 0, or 1 with the same effect
 *
 * Costs no memory. Touching an address without a mapping raises SIGBUS.
 *
 * Return: 0; 100000 NULL, size 0 or other flags; 107000 @alignment not 0, or
 * @expectPtr against its rules; 107017 the process never used a device; 107000
 * @expectPtr is in use; 207001 out of addresses.
 */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
				void *expectPtr, uint64_t flags);

/**
 * aclrtReleaseMemAddress() - give a reservation back
 * @virPtr: its start; nothing may be mapped in it any more
 *
 * Return: 0; 100000 NULL; 107017 the process never used a device; 107000 no
 * reservation starts there; 507899 something is mapped [D; code as the 950's].
 */
aclError aclrtReleaseMemAddress(void *virPtr);

/**
 * aclrtMapMem() - make physical memory addressable
 * @virPtr: a multiple of 2 MiB inside a reservation
 * @size: the whole size of @handle
 * @offset: 0
 * @handle: handle
 * @flags: 0
 *
 * The mapping keeps the memory, until aclrtUnmapMem(). A handle may be mapped at
 * several places, a reservation may take many handles of one location.
 *
 * Return: 0; 100000 NULL, size 0 or @flags not 0; 107000 @offset not 0; 507899
 * anything else: no handle, another size, an address outside a reservation or not
 * a multiple, something mapped there, handles of different locations; 207001 out
 * of memory.
 */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
		     aclrtDrvMemHandle handle, uint64_t flags);

/**
 * aclrtUnmapMem() - end a mapping
 * @virPtr: its start
 *
 * When it returns no CPU can reach the memory at that address.
 *
 * Return: 0; 100000 NULL; 507899 no mapping of aclrtMapMem() starts there.
 */
aclError aclrtUnmapMem(void *virPtr);

/**
 * aclrtMemExportToShareableHandle() - let other processes have the memory
 * @handle: from aclrtMallocPhysical(), not from an import; once only
 * @handleType: ACL_MEM_HANDLE_TYPE_NONE
 * @flags: 0, or ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION
 * @shareableHandle: where to put the number that stands for the memory on this
 *	machine: 64 random bits
 *
 * Without the flag nobody can import until aclrtMemSetPidToShareableHandle()
 * names them; with it whoever knows the number can. The number is good until the
 * last process that holds the memory lets go.
 *
 * Return: 0; 100000 NULL, or another handleType; 107000 other flags; 507899 no
 * handle, imported, or exported before.
 */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
					 aclrtMemHandleType handleType,
					 uint64_t flags,
					 uint64_t *shareableHandle);

/**
 * aclrtMemSetPidToShareableHandle() - name processes that may import
 * @shareableHandle: from an export in this process
 * @pid: their ids as aclrtDeviceGetBareTgid() gives them to them; 0 is skipped
 * @pidNum: how many, up to 65535
 *
 * A process has to exist when it's named. Calls add up.
 *
 * Return: 0; 100000 NULL or 0; 107000 too many; 107017 no such number; 507899 it
 * was exported by another process, or all ids are 0; 207006 it was exported
 * without validation.
 */
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
					 size_t pidNum);

/**
 * aclrtMemImportFromShareableHandle() - get a handle of shared memory
 * @shareableHandle: number from another process's export
 * @deviceId: device on which this process will use the memory; it needn't be set
 *	[L], nor be the current one [C]
 * @handle: where to put the handle; free with aclrtFreePhysical()
 *
 * Importing again to the same device gives the same handle, held once more [C].
 *
 * Return: 0; 100000 NULL; 107001 no such device; 107002 the thread has no
 * context; 107017 no such number, or all who held the memory let go; 507899 this
 * process exported it, or isn't named.
 */
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
					   int32_t deviceId,
					   aclrtDrvMemHandle *handle);

/**
 * aclrtDeviceGetBareTgid() - this process's id, as others must name it
 * @pid: where to put it: the id outside all containers
 *
 * Return: 0; 100000 NULL; 207004, 507899 as aclrtSetDevice().
 */
aclError aclrtDeviceGetBareTgid(int32_t *pid);

/**
 * aclrtGetMemInfo() - memory of the current device
 * @attr: which kind
 * @free: how much isn't allocated, by any process
 * @total: how much there is
 *
 * A device has one kind of memory, HBM, in 2 MiB pages: all values that name HBM,
 * or leave the kind to the device, give the same. Kinds it hasn't, DDR and 1 GiB
 * pages, give 0 and 0 [D].
 *
 * Return: 0; 100000 NULL; 107002 the thread has no context; 107016 attr over 17.
 */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

#ifdef __cplusplus
}
#endif

#endif /* ACL_RT_H */
