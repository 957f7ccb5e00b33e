// SPDX-License-Identifier: MIT
/*
 * physical.c: physical memory by handle: what may be asked for, allocating,
 * freeing, and asking what a handle stands for; and how much a device has. Owns
 * nothing and takes no lock: the kernel keeps the handles.
 */
#include "internal.h"

#include <inttypes.h>

/* Upper half of a handle, so that a stray pointer isn't taken for one. */
#define HANDLE_TAG 0xAC1DULL

/* What can be told from a memAttr. */
enum {
	ACCEPTED = 1 << 0,	/* by aclrtMallocPhysical() */
	HUGE = 1 << 1,
	GIANT = 1 << 2,		/* 1 GiB pages */
	P2P = 1 << 3,
	DDR = 1 << 4,
	HBM = 1 << 5,
};

static const uint8_t attributes[] = {
	[ACL_DDR_MEM] = DDR,
	[ACL_HBM_MEM] = HBM,
	[ACL_DDR_MEM_HUGE] = ACCEPTED | DDR | HUGE,
	[ACL_DDR_MEM_NORMAL] = ACCEPTED | DDR,
	[ACL_HBM_MEM_HUGE] = ACCEPTED | HBM | HUGE,
	[ACL_HBM_MEM_NORMAL] = ACCEPTED | HBM,
	[ACL_DDR_MEM_P2P_HUGE] = ACCEPTED | DDR | P2P | HUGE,
	[ACL_DDR_MEM_P2P_NORMAL] = ACCEPTED | DDR | P2P,
	[ACL_HBM_MEM_P2P_HUGE] = HBM | P2P | HUGE,
	[ACL_HBM_MEM_P2P_NORMAL] = HBM | P2P,
	[ACL_HBM_MEM_HUGE1G] = ACCEPTED | HBM | GIANT,
	[ACL_HBM_MEM_P2P_HUGE1G] = HBM | P2P | GIANT,
	[ACL_MEM_NORMAL] = ACCEPTED,
	[ACL_MEM_HUGE] = ACCEPTED | HUGE,
	[ACL_MEM_HUGE1G] = ACCEPTED | GIANT,
	[ACL_MEM_P2P_NORMAL] = ACCEPTED | P2P,
	[ACL_MEM_P2P_HUGE] = ACCEPTED | P2P | HUGE,
	[ACL_MEM_P2P_HUGE1G] = ACCEPTED | P2P | GIANT,
};

aclrtDrvMemHandle aclmem_handle_make(uint32_t id)
{
	return (aclrtDrvMemHandle)(uintptr_t)(HANDLE_TAG << 32 | id);
}

/* False if it can't be a handle; whether it is one, the kernel knows. */
bool aclmem_handle_id(aclrtDrvMemHandle handle, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)handle;
	return aclmem_handle_make(*id) == handle;
}

/* What is the same for an allocation and for the granularity, first part. */
static aclError check_property(const char *name,
			       const aclrtPhysicalMemProp *prop)
{
	uint32_t type = prop->location.type;
	uint32_t attr = prop->memAttr;

	if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
				   "allocationType %d isn't ACL_MEM_ALLOCATION_TYPE_PINNED",
				   (int)prop->allocationType);
	if (type != ACL_MEM_LOCATION_TYPE_HOST &&
	    type != ACL_MEM_LOCATION_TYPE_DEVICE &&
	    type != ACL_MEM_LOCATION_TYPE_HOST_NUMA)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
				   "location.type %u isn't HOST, DEVICE or HOST_NUMA", type);
	if (attr >= ARRAY_SIZE(attributes) || !(attributes[attr] & ACCEPTED))
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
				   "memAttr %u isn't 2 to 7, 10, or 12 to 17", attr);
	if (type == ACL_MEM_LOCATION_TYPE_DEVICE && attributes[attr] & DDR)
		return aclmem_fail(ACL_ERROR_INVALID_PARAM, name,
				   "memAttr %u: a device has no DDR memory", attr);
	return ACL_SUCCESS;
}

/* Second part: the device as the module counts, in place. */
static aclError check_location(const char *name,
			       const aclrtPhysicalMemProp *prop,
			       struct aclmem_location *place)
{
	place->type = prop->location.type;
	place->id = prop->location.id;
	if (place->type != ACLMEM_LOCATION_DEVICE)
		return ACL_SUCCESS;
	return aclmem_device_find(name, "location.id", prop->location.id,
				  &place->id);
}

static aclError check_pages(const char *name, const aclrtPhysicalMemProp *prop)
{
	if (attributes[prop->memAttr] & GIANT)
		return aclmem_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, name,
				   "memAttr %d: 1 GiB pages aren't supported",
				   (int)prop->memAttr);
	return ACL_SUCCESS;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option,
					  size_t *granularity)
{
	struct aclmem_location place;
	const struct aclmem_query *query;
	aclError ret;

	if (!prop)
		return fail(ACL_ERROR_INVALID_PARAM, "prop is NULL");
	if (!granularity)
		return fail(ACL_ERROR_INVALID_PARAM, "granularity is NULL");
	ret = check_property(__func__, prop);
	if (!ret)
		ret = check_location(__func__, prop, &place);
	if (ret)
		return ret;
	if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
	    option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
			    "option %d isn't MINIMUM or RECOMMENDED", (int)option);
	ret = check_pages(__func__, prop);
	if (!ret)
		ret = aclmem_kernel_use(__func__, &query);
	if (!ret)
		*granularity = (size_t)query->out_granularity;
	return ret;
}

/* What the driver of the product checks, after the runtime. */
static aclError check_driver(const char *name, size_t size,
			     const aclrtPhysicalMemProp *prop,
			     const struct aclmem_location *place,
			     size_t granularity)
{
	if (place->type == ACLMEM_LOCATION_DEVICE ?
	    !aclmem_device_in_use(place->id) : !aclmem_device_any_used())
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "location.type %d, id %u: this process doesn't use the device: call aclrtSetDevice first",
				   (int)prop->location.type, prop->location.id);
	if (size % granularity)
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "size %zu isn't a multiple of %zu (aclrtMemGetAllocationGranularity)",
				   size, granularity);
	if (prop->reserve)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "reserve %" PRIu64 " isn't 0", prop->reserve);
	if (place->type == ACLMEM_LOCATION_HOST && place->id)
		return aclmem_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, name,
				   "location.id %u isn't 0, which is the host's", place->id);
	return ACL_SUCCESS;
}

static aclError allocate(const char *name, aclrtDrvMemHandle *handle,
			 size_t size, const aclrtPhysicalMemProp *prop)
{
	struct aclmem_alloc alloc = {
		.length = size,
		.page = attributes[prop->memAttr] & HUGE ?
			ACLMEM_PAGE_2M : ACLMEM_PAGE_ANY,
		.attribute = (uint32_t)prop->memAttr,
	};
	const struct aclmem_query *query;
	aclError ret;
	int error;

	ret = check_location(name, prop, &alloc.location);
	if (!ret && alloc.location.type == ACLMEM_LOCATION_HOST_NUMA)
		ret = aclmem_device_current(name, NULL);
	if (!ret)
		ret = check_pages(name, prop);
	if (!ret)
		ret = aclmem_kernel_use(name, &query);
	if (!ret)
		ret = check_driver(name, size, prop, &alloc.location,
				   (size_t)query->out_granularity);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_ALLOC, &alloc.head, sizeof(alloc));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_MALLOC_PHYSICAL, name,
					  error, &alloc.head,
					  "size %zu, location.type %d, id %u",
					  size, (int)prop->location.type,
					  prop->location.id);
	*handle = aclmem_handle_make(alloc.out_handle);
	return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	aclError ret;

	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	if (!prop)
		return fail(ACL_ERROR_INVALID_PARAM, "prop is NULL");
	if (!size)
		return fail(ACL_ERROR_INVALID_PARAM, "size is 0");
	if (flags)
		return fail(ACL_ERROR_INVALID_PARAM, "flags 0x%" PRIx64 " isn't 0", flags);
	if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return fail(ACL_ERROR_INVALID_PARAM,
			    "handleType %d isn't ACL_MEM_HANDLE_TYPE_NONE",
			    (int)prop->handleType);
	ret = check_property(__func__, prop);
	if (ret)
		return ret;
	return allocate(__func__, handle, size, prop);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	struct aclmem_free free = { 0 };
	aclError ret;
	int error;

	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	if (!aclmem_handle_id(handle, &free.handle))
		return fail(ACL_ERROR_RT_PARAM_INVALID,
			    "handle %p isn't a handle of this library", handle);
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_FREE, &free.head, sizeof(free));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_FREE_PHYSICAL, __func__,
					  error, &free.head, "handle %p", handle);
	return ACL_SUCCESS;
}

/*
 * The kind of memory there is, not the number asked for: memory of a device is
 * HBM; the host's is DDR unless it was asked for as HBM, and has the numbers that
 * don't name it.
 */
static aclrtMemAttr attribute_of(uint32_t attr, bool on_device)
{
	uint8_t bits = attr < ARRAY_SIZE(attributes) ? attributes[attr] : HUGE;
	bool huge = bits & HUGE;

	if (bits & P2P) {
		if (huge)
			return ACL_MEM_P2P_HUGE;
		return on_device ? ACL_MEM_P2P_NORMAL : ACL_DDR_MEM_P2P_NORMAL;
	}
	if (on_device || bits & HBM)
		return huge ? ACL_HBM_MEM_HUGE : ACL_HBM_MEM_NORMAL;
	return huge ? ACL_MEM_HUGE : ACL_MEM_NORMAL;
}

aclError
aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
					  aclrtPhysicalMemProp *prop)
{
	struct aclmem_handle_info info = { 0 };
	bool on_device;
	aclError ret;
	int error;

	if (!handle)
		return fail(ACL_ERROR_INVALID_PARAM, "handle is NULL");
	if (!prop)
		return fail(ACL_ERROR_INVALID_PARAM, "prop is NULL");
	if (!aclmem_handle_id(handle, &info.handle))
		return fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
			    "handle %p isn't a handle of this library", handle);
	ret = aclmem_kernel_use(__func__, NULL);
	if (ret)
		return ret;
	error = aclmem_kernel_do(ACLMEM_HANDLE, &info.head, sizeof(info));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_PROPERTIES, __func__,
					  error, &info.head, "handle %p", handle);
	on_device = info.out_location.type == ACLMEM_LOCATION_DEVICE;
	*prop = (aclrtPhysicalMemProp){
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = attribute_of(info.out_attribute, on_device),
		.location.id = on_device ?
			aclmem_device_user(info.out_location.id) :
			info.out_location.id,
		.location.type = (aclrtMemLocationType)info.out_location.type,
	};
	return ACL_SUCCESS;
}

static size_t to_size(uint64_t bytes)
{
	return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	struct aclmem_device info = { 0 };
	aclError ret;
	int error;

	if (!free)
		return fail(ACL_ERROR_INVALID_PARAM, "free is NULL");
	if (!total)
		return fail(ACL_ERROR_INVALID_PARAM, "total is NULL");
	ret = aclmem_device_current(__func__, &info.device);
	if (ret)
		return ret;
	if ((uint32_t)attr >= ARRAY_SIZE(attributes))
		return fail(ACL_ERROR_RT_INVALID_MEMORY_TYPE,
			    "attr %d isn't 0 to 17", (int)attr);
	if (attributes[attr] & (DDR | GIANT)) {
		*free = 0;
		*total = 0;
		return ACL_SUCCESS;
	}
	error = aclmem_kernel_do(ACLMEM_DEVICE, &info.head, sizeof(info));
	if (error)
		return aclmem_fail_kernel(ACLMEM_CALL_MEM_INFO, __func__, error,
					  &info.head, "attr %d", (int)attr);
	/* Never more in use than there is, but that is the kernel's promise. */
	*free = info.out_used < info.out_total ?
		to_size(info.out_total - info.out_used) : 0;
	*total = to_size(info.out_total);
	return ACL_SUCCESS;
}
