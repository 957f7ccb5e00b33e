// SPDX-License-Identifier: MIT
/*
 * device.c: devices as the program numbers and uses them, and contexts. Owns the
 * list of visible devices, how often each was set, and the contexts in a search
 * tree by handle, all under one mutex; and, without a lock, each thread's current
 * context.
 *
 * A context's handle is a number that points nowhere and is never used again, so
 * that a stale one is refused whatever was made since. A thread remembers the
 * device of its current context, and looks it up again only after a context was
 * removed: copies don't meet at the mutex.
 */
#include "internal.h"

#include <inttypes.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Upper half of a context's handle, where pointers have other bits. */
#define CONTEXT_TAG (0xAC1CULL << 32)

struct context {
	uintptr_t handle;	/* the key */
	uint32_t device;	/* as the module counts */
	bool is_default;
};

struct device {
	uint32_t sets;		/* aclrtSetDevice() not yet undone */
	uint32_t contexts;	/* explicit ones */
	struct context *first;	/* the default context, while sets isn't 0 */
};

pthread_mutex_t aclmem_device_lock = PTHREAD_MUTEX_INITIALIZER;
static void *contexts;
static uint64_t last_context;
static struct device *devices;		/* by the module's numbers */
static uint32_t *visible;		/* the module's number of each */
static uint32_t visible_count;
static bool renumbered;
static atomic_bool any_used;		/* at any time so far */
static atomic_uint removals;		/* of contexts */

static _Thread_local struct {
	uintptr_t handle;	/* 0: none */
	uint32_t device;
	unsigned int removals;	/* when it was looked up */
} current;

static int compare(const void *a, const void *b)
{
	uintptr_t x = ((const struct context *)a)->handle;
	uintptr_t y = ((const struct context *)b)->handle;

	return (x > y) - (x < y);
}

static struct context *find_locked(uintptr_t handle)
{
	struct context key = { .handle = handle };
	struct context **node = tfind(&key, &contexts, compare);

	return node ? *node : NULL;
}

static bool is_visible(uint32_t device)
{
	uint32_t i;

	for (i = 0; i < visible_count; i++)
		if (visible[i] == device)
			return true;
	return false;
}

/* Stops before the first entry that isn't a device, or is there twice. */
static void read_list(const char *list, uint32_t count)
{
	unsigned long device;
	char *end;

	while (*list >= '0' && *list <= '9') {
		device = strtoul(list, &end, 10);
		if (device >= count || is_visible((uint32_t)device))
			return;
		if (*end != ',' && *end != '\0')
			return;
		visible[visible_count++] = (uint32_t)device;
		if (*end == '\0')
			return;
		list = end + 1;
	}
}

/* Once in the life of a process. */
static aclError prepare_locked(const char *name, uint32_t count)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	uint32_t i;

	if (devices)
		return ACL_SUCCESS;
	devices = calloc((size_t)count + 1, sizeof(*devices));
	visible = calloc((size_t)count + 1, sizeof(*visible));
	if (!devices || !visible) {
		free(devices);
		free(visible);
		devices = NULL;
		visible = NULL;
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
				   "out of memory for the list of devices");
	}
	visible_count = 0;
	renumbered = list;
	if (list) {
		read_list(list, count);
	} else {
		for (i = 0; i < count; i++)
			visible[i] = i;
		visible_count = count;
	}
	return ACL_SUCCESS;
}

static aclError prepare(const char *name)
{
	const struct aclmem_query *query;
	aclError ret;

	ret = aclmem_kernel_use(name, &query);
	if (ret)
		return ret;
	pthread_mutex_lock(&aclmem_device_lock);
	ret = prepare_locked(name, query->out_devices);
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

/* Without a text, for those whose rules don't end in 107001. */
bool aclmem_device_number(int64_t user, uint32_t *device)
{
	if (user < 0 || user >= visible_count)
		return false;
	*device = visible[user];
	return true;
}

/**
 * aclmem_device_find() - the module's number of a device
 * @name: function of the API, for the text of a failure
 * @what: name of the argument
 * @user: the program's number
 * @device: where to put the module's
 *
 * Return: 0 or the result for the program
 */
aclError aclmem_device_find(const char *name, const char *what, int64_t user,
			    uint32_t *device)
{
	aclError ret = prepare(name);

	if (ret)
		return ret;
	if (aclmem_device_number(user, device))
		return ACL_SUCCESS;
	return aclmem_fail(ACL_ERROR_RT_INVALID_DEVICEID, name,
			   "%s %" PRId64 " isn't a device: there are %u, from 0 on%s",
			   what, user, visible_count,
			   renumbered ? " (ASCEND_RT_VISIBLE_DEVICES is set)" : "");
}

/* The program's number of a device. One that it can't see keeps the module's. */
uint32_t aclmem_device_user(uint32_t device)
{
	uint32_t i;

	for (i = 0; i < visible_count; i++)
		if (visible[i] == device)
			return i;
	return device;
}

bool aclmem_device_renumbered(void)
{
	return renumbered;
}

bool aclmem_device_any_used(void)
{
	return atomic_load(&any_used);
}

bool aclmem_device_in_use(uint32_t device)
{
	bool used;

	pthread_mutex_lock(&aclmem_device_lock);
	used = devices[device].sets || devices[device].contexts;
	pthread_mutex_unlock(&aclmem_device_lock);
	return used;
}

static void make_current_locked(const struct context *context)
{
	current.handle = context->handle;
	current.device = context->device;
	current.removals = atomic_load(&removals);
}

/**
 * aclmem_device_current() - the device of the thread's current context
 * @name: function of the API, for the text of a failure
 * @device: where to put the module's number of it, or NULL
 *
 * Return: 0, or 107002 as the result for the program
 */
aclError aclmem_device_current(const char *name, uint32_t *device)
{
	const struct context *context;

	if (current.handle &&
	    current.removals != atomic_load_explicit(&removals, memory_order_acquire)) {
		pthread_mutex_lock(&aclmem_device_lock);
		context = find_locked(current.handle);
		if (context)
			make_current_locked(context);
		else
			current.handle = 0;
		pthread_mutex_unlock(&aclmem_device_lock);
	}
	if (!current.handle)
		return aclmem_fail(ACL_ERROR_RT_CONTEXT_NULL, name,
				   "this thread has no context: call aclrtSetDevice or aclrtSetCurrentContext in it first");
	if (device)
		*device = current.device;
	return ACL_SUCCESS;
}

static struct context *add_locked(uint32_t device, bool is_default)
{
	struct context *context = malloc(sizeof(*context));

	if (!context)
		return NULL;
	context->handle = (uintptr_t)(CONTEXT_TAG + ++last_context);
	context->device = device;
	context->is_default = is_default;
	if (!tsearch(context, &contexts, compare)) {
		free(context);
		return NULL;
	}
	atomic_store(&any_used, true);
	return context;
}

static void remove_locked(struct context *context)
{
	tdelete(context, &contexts, compare);
	free(context);
	atomic_fetch_add(&removals, 1);
}

/* In a child, whose one thread is the caller. The handles go on counting. */
void aclmem_device_forget(void)
{
	tdestroy(contexts, free);
	contexts = NULL;
	free(devices);
	devices = NULL;
	free(visible);
	visible = NULL;
	visible_count = 0;
	renumbered = false;
	atomic_store(&any_used, false);
	current.handle = 0;
}

aclError aclrtSetDevice(int32_t deviceId)
{
	struct device *state;
	aclError ret = ACL_SUCCESS;
	uint32_t device;

	ret = aclmem_device_find(__func__, "deviceId", deviceId, &device);
	if (ret)
		return ret;
	pthread_mutex_lock(&aclmem_device_lock);
	state = &devices[device];
	if (!state->sets)
		state->first = add_locked(device, true);
	if (state->first) {
		state->sets++;
		make_current_locked(state->first);
	} else {
		ret = fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
			   "deviceId %d: out of memory for a context", deviceId);
	}
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

static aclError undo_set(const char *name, int32_t user, bool all)
{
	struct device *state;
	aclError ret = ACL_SUCCESS;
	uint32_t device;

	ret = aclmem_device_find(name, "deviceId", user, &device);
	if (ret)
		return ret;
	pthread_mutex_lock(&aclmem_device_lock);
	state = &devices[device];
	if (!state->sets) {
		ret = aclmem_fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, name,
				  "deviceId %d isn't set, or has been reset already",
				  user);
		goto unlock;
	}
	state->sets = all ? 0 : state->sets - 1;
	if (!state->sets) {
		remove_locked(state->first);
		state->first = NULL;
	}
unlock:
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return undo_set(__func__, deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return undo_set(__func__, deviceId, true);
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	aclError ret;
	uint32_t device;

	if (!deviceId)
		return fail(ACL_ERROR_INVALID_PARAM, "deviceId is NULL");
	ret = aclmem_device_current(__func__, &device);
	if (!ret)
		*deviceId = (int32_t)aclmem_device_user(device);
	return ret;
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
	aclError ret;

	if (!count)
		return fail(ACL_ERROR_INVALID_PARAM, "count is NULL");
	ret = prepare(__func__);
	if (!ret)
		*count = visible_count;
	return ret;
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	if (!runMode)
		return fail(ACL_ERROR_INVALID_PARAM, "runMode is NULL");
	*runMode = ACL_HOST;
	return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
				       int32_t *const logicDevId)
{
	uint32_t device = 0;
	aclError ret;

	if (!logicDevId)
		return fail(ACL_ERROR_INVALID_PARAM, "logicDevId is NULL");
	ret = aclmem_device_find(__func__, "userDevid", userDevid, &device);
	if (!ret)
		*logicDevId = (int32_t)device;
	return ret;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
	struct context *added;
	aclError ret;
	uint32_t device;

	if (!context)
		return fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
	ret = aclmem_device_find(__func__, "deviceId", deviceId, &device);
	if (ret)
		return ret;
	pthread_mutex_lock(&aclmem_device_lock);
	added = add_locked(device, false);
	if (added) {
		devices[device].contexts++;
		make_current_locked(added);
		*context = (aclrtContext)added->handle;
	} else {
		ret = fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
			   "deviceId %d: out of memory for a context", deviceId);
	}
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

aclError aclrtDestroyContext(aclrtContext context)
{
	struct context *found;
	aclError ret = ACL_SUCCESS;

	if (!context)
		return fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
	pthread_mutex_lock(&aclmem_device_lock);
	found = find_locked((uintptr_t)context);
	if (!found) {
		ret = fail(ACL_ERROR_RT_CONTEXT_NULL,
			   "context %p: no such context, or not any more", context);
	} else if (found->is_default) {
		ret = fail(ACL_ERROR_RT_PARAM_INVALID,
			   "context %p is a device's default one: aclrtResetDevice ends it",
			   context);
	} else {
		devices[found->device].contexts--;
		remove_locked(found);
	}
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
	const struct context *found;
	aclError ret = ACL_SUCCESS;

	if (!context)
		return fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
	pthread_mutex_lock(&aclmem_device_lock);
	found = find_locked((uintptr_t)context);
	if (found)
		make_current_locked(found);
	else
		ret = fail(ACL_ERROR_RT_CONTEXT_NULL,
			   "context %p: no such context, or not any more", context);
	pthread_mutex_unlock(&aclmem_device_lock);
	return ret;
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
	aclError ret;

	if (!context)
		return fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
	ret = aclmem_device_current(__func__, NULL);
	if (!ret)
		*context = (aclrtContext)current.handle;
	return ret;
}
