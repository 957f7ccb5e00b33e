/* SPDX-License-Identifier: MIT */
/*
 * acl_rt_types.h: the values and structures that the functions in acl_rt.h
 * take. Owns no state. Usable from C and C++.
 *
 * Names, numbers and layouts are those of AscendCL 1.17, asserted at the end. A
 * value that is listed here isn't thereby supported; the functions say what they
 * do with it.
 */
#ifndef ACL_RT_TYPES_H
#define ACL_RT_TYPES_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the machine is to the program: it runs on a host beside its devices. */
typedef enum aclrtRunMode {
	ACL_DEVICE = 0,
	ACL_HOST = 1,
} aclrtRunMode;

/* Whose last error is asked for: only the calling thread's is kept. */
typedef enum aclrtLastErrLevel {
	ACL_RT_THREAD_LEVEL = 0,
} aclrtLastErrLevel;

/*
 * Direction of a copy. The addresses decide what is done; values up to
 * HOST_TO_BUF_TO_DEVICE are accepted by aclrtMemcpy(), whether they fit or not.
 */
typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

/* Pages for aclrtMalloc(). A number that isn't listed acts as HUGE_FIRST. */
typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,
	ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

/*
 * Kind of physical memory: HBM and DDR name the memory, MEM alone lets the
 * location decide (HBM on a device, DDR on the host); P2P may be reached by
 * other devices.
 */
typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,
	ACL_HBM_MEM_NORMAL = 5,
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10,
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

/* Form of a handle in aclrtPhysicalMemProp: always NONE here. */
typedef enum aclrtMemHandleType {
	ACL_MEM_HANDLE_TYPE_NONE = 0,
	ACL_MEM_HANDLE_TYPE_POSIX = 2,
} aclrtMemHandleType;

typedef enum aclrtMemSharedHandleType {
	ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 0x1,
	ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 0x2,
} aclrtMemSharedHandleType;

typedef enum aclrtMemAllocationType {
	ACL_MEM_ALLOCATION_TYPE_PINNED = 0,
} aclrtMemAllocationType;

typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
	ACL_MEM_LOCATION_TYPE_MANAGED = 3,
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

typedef enum aclrtMemGranularityOptions {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF,
} aclrtMemGranularityOptions;

typedef enum aclrtMemAccessFlags {
	ACL_RT_MEM_ACCESS_FLAGS_NONE = 0x0,
	ACL_RT_MEM_ACCESS_FLAGS_READ = 0x1,
	ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 0x3,
} aclrtMemAccessFlags;

typedef enum aclrtHostRegisterType {
	ACL_HOST_REGISTER_MAPPED = 0,
	ACL_HOST_REGISTER_IOMEMORY = 4,
	ACL_HOST_REGISTER_READONLY = 8,
} aclrtHostRegisterType;

typedef enum aclrtMallocAttrType {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,
	ACL_RT_MEM_ATTR_VA_FLAG = 3,
} aclrtMallocAttrType;

typedef enum aclrtIpcMemAttrType {
	ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0,
} aclrtIpcMemAttrType;

typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

/* Mind the order: the reverse of aclrtEventStatus. */
typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
	ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
	ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
	ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF,
} aclrtEventWaitStatus;

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 0xFFFF,
} aclrtStreamStatus;

/* Flags of exports and imports. */
#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION	0x1UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT		0x0UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT		0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS	0x1UL
#define ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x02UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS	0x02UL

/* Flags of host registration. */
#define ACL_HOST_REG_MAPPED		0x2UL
#define ACL_HOST_REG_IOMEMORY		0x4UL
#define ACL_HOST_REG_READONLY		0x8UL
#define ACL_HOST_REG_PINNED		0x10000000UL

/* Flags of events. */
#define ACL_EVENT_SYNC			0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE		0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY	0x00000010U
#define ACL_EVENT_EXTERNAL		0x00000020U
#define ACL_EVENT_IPC			0x00000040U

/* Flags of streams. */
#define ACL_STREAM_FAST_LAUNCH		0x00000001U
#define ACL_STREAM_FAST_SYNC		0x00000002U
#define ACL_STREAM_PERSISTENT		0x00000004U
#define ACL_STREAM_HUGE			0x00000008U
#define ACL_STREAM_CPU_SCHEDULE		0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY	0x00000020U

/* Kinds of memory that aclrtCheckMemType() tells apart. */
#define ACL_RT_MEM_TYPE_DEV		0x2U
#define ACL_RT_MEM_TYPE_DVPP		0x8U
#define ACL_RT_MEM_TYPE_RSVD		0x10U

/**
 * struct aclrtMemLocation - a place for memory
 * @id: device (in the program's numbering, see
 *	aclrtGetLogicDevIdByUserDevId()), or NUMA node; 0 for HOST
 * @type: what @id counts
 */
typedef struct aclrtMemLocation {
	uint32_t id;
	aclrtMemLocationType type;
} aclrtMemLocation;

/**
 * struct aclrtPhysicalMemProp - what physical memory shall be
 * @handleType: ACL_MEM_HANDLE_TYPE_NONE
 * @allocationType: ACL_MEM_ALLOCATION_TYPE_PINNED
 * @memAttr: kind of memory
 * @location: where
 * @reserve: 0
 */
typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

/**
 * struct aclrtMemcpyBatchAttr - between which places a run of items copies
 * @dstLoc: where the destinations are
 * @srcLoc: where the sources are
 * @rsv: all 0
 */
typedef struct aclrtMemcpyBatchAttr {
	aclrtMemLocation dstLoc;
	aclrtMemLocation srcLoc;
	uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

typedef struct aclrtMemAccessDesc {
	aclrtMemAccessFlags flags;
	aclrtMemLocation location;
	uint8_t rsv[12];
} aclrtMemAccessDesc;

typedef union aclrtMallocAttrValue {
	uint16_t moduleId;
	uint32_t deviceId;
	uint32_t vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize;
	uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct aclrtMemUsageInfo {
	char name[32];
	uint64_t curMemSize;
	uint64_t memPeakSize;
	size_t reserved[8];
} aclrtMemUsageInfo;

typedef struct aclrtMemFabricHandle {
	uint8_t data[128];
} aclrtMemFabricHandle;

typedef struct aclrtServerPid {
	uint32_t sdid;
	int32_t *pid;
	size_t num;
} aclrtServerPid;

/*
 * Programs are built with many compilers and options (-fshort-enums would
 * break the interface without a word), so that the header itself checks.
 */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define ACL_RT_ASSERT(what) static_assert(what, #what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ACL_RT_ASSERT(what) _Static_assert(what, #what)
#endif
#ifdef ACL_RT_ASSERT
ACL_RT_ASSERT(sizeof(aclrtMemLocation) == 8);
ACL_RT_ASSERT(offsetof(aclrtMemLocation, type) == 4);
ACL_RT_ASSERT(offsetof(aclrtPhysicalMemProp, memAttr) == 8);
ACL_RT_ASSERT(offsetof(aclrtPhysicalMemProp, location) == 12);
ACL_RT_ASSERT(sizeof(aclrtMemcpyBatchAttr) == 32);
ACL_RT_ASSERT(offsetof(aclrtMemcpyBatchAttr, srcLoc) == 8);
ACL_RT_ASSERT(offsetof(aclrtMemcpyBatchAttr, rsv) == 16);
ACL_RT_ASSERT(sizeof(aclrtMemAccessDesc) == 24);
ACL_RT_ASSERT(sizeof(aclrtMallocAttrValue) == 8);
ACL_RT_ASSERT(sizeof(aclrtMallocAttribute) == 12);
ACL_RT_ASSERT(sizeof(aclrtPtrAttributes) == 28);
ACL_RT_ASSERT(sizeof(aclrtMemFabricHandle) == 128);
#if UINTPTR_MAX == UINT64_MAX
ACL_RT_ASSERT(sizeof(aclrtPhysicalMemProp) == 32);
ACL_RT_ASSERT(offsetof(aclrtPhysicalMemProp, reserve) == 24);
ACL_RT_ASSERT(sizeof(aclrtMallocConfig) == 16);
ACL_RT_ASSERT(sizeof(aclrtMemUsageInfo) == 112);
ACL_RT_ASSERT(sizeof(aclrtServerPid) == 24);
#endif
#undef ACL_RT_ASSERT
#endif

#ifdef __cplusplus
}
#endif

#endif /* ACL_RT_TYPES_H */
