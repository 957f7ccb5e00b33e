// SPDX-License-Identifier: MIT
/*
 * error.c: the result and the text of a call that failed. Owns, per thread, the
 * text that wasn't read yet, the text that was handed out, and the last result;
 * and the one table that turns the kernel's reason into both. Takes no lock.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 1024

/*
 * Two texts, so that one that was handed out stays as it is while the thread
 * goes on and fails again.
 */
static _Thread_local struct {
	char text[TEXT_SIZE];
	char shown[TEXT_SIZE];
	aclError last;
} failure;

/* What the kernel's out_value means, hence how it's printed. */
enum value {
	NOTHING,
	ADDRESS,
	NUMBER,
	BYTES,
	PLACE,
};

struct rule {
	enum aclmem_call call;
	enum aclmem_reason reason;
	aclError code;
	enum value value;
	bool index;	/* out_index names the item of a batch */
	const char *text;
};

#define ANY ACLMEM_CALL_ANY
#define WHY(reason) ACLMEM_REASON_##reason
#define FOR(call) ACLMEM_CALL_##call

/*
 * A rule for one function comes before the rule for any. What has no entry is a
 * refusal of the driver without a number of its own, as in the product.
 */
static const struct rule rules[] = {
	{ FOR(MALLOC_PHYSICAL), WHY(LOCATION_ID), ACL_ERROR_RT_PARAM_INVALID,
	  NUMBER, false, "there's no such NUMA node" },
	{ FOR(MALLOC_PHYSICAL), WHY(LOCATION_TYPE), ACL_ERROR_INVALID_PARAM,
	  NUMBER, false, "memory can't be allocated at this type of location" },
	{ FOR(FREE_PHYSICAL), WHY(HANDLE), ACL_ERROR_RT_PARAM_INVALID,
	  NOTHING, false, "this process has no such handle, or not any more" },
	{ FOR(FREE_PHYSICAL), WHY(OVER_FREED), ACL_ERROR_RT_PARAM_INVALID,
	  NOTHING, false,
	  "it has been freed as often as it was allocated, imported and retained; only mappings keep the memory"
	},
	{ FOR(RELEASE), WHY(NOT_RANGE_START), ACL_ERROR_RT_PARAM_INVALID,
	  NOTHING, false, "no reservation starts at this address" },
	{ FOR(MEMCPY), WHY(ADDRESS_NULL), ACL_ERROR_INVALID_PARAM,
	  NOTHING, false, "an address is NULL" },
	{ FOR(MEMSET), WHY(ADDRESS_NULL), ACL_ERROR_INVALID_PARAM,
	  NOTHING, false, "the address is NULL" },

	{ ANY, WHY(SIZE_FIELD), ACL_ERROR_RT_DRV_INTERNAL_ERROR, BYTES, false,
	  "the aclmem module is too new for this library: update the library" },
	{ ANY, WHY(TAIL), ACL_ERROR_RT_DRV_INTERNAL_ERROR, BYTES, false,
	  "the aclmem module is too old for this library: update the module" },
	{ ANY, WHY(FLAGS), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, false,
	  "the aclmem module is too old for this library: it doesn't know the flags" },
	{ ANY, WHY(RESERVED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "the aclmem module is too old for this library: update the module" },
	{ ANY, WHY(WRONG_PROCESS), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false,
	  "the descriptor of /dev/aclmem belongs to another process: this one was made by a bare fork or clone system call, which the library can't notice"
	},
	{ ANY, WHY(KILLED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "the process is being killed" },
	{ ANY, WHY(KERNEL_MEMORY), ACL_ERROR_RT_MEMORY_ALLOCATION,
	  NOTHING, false, "the kernel has no memory for its records" },
	{ ANY, WHY(DEVICE), ACL_ERROR_RT_INVALID_DEVICEID, NUMBER, false,
	  "there's no such device" },
	{ ANY, WHY(ATTRIBUTE), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, NUMBER, false,
	  "this kind of memory isn't supported" },
	{ ANY, WHY(LENGTH_ALIGN), ACL_ERROR_RT_DRV_INTERNAL_ERROR, BYTES, false,
	  "the size isn't a multiple of the granularity" },
	{ FOR(BATCH), WHY(LENGTH_LIMIT), ACL_ERROR_RT_OVER_LIMIT, BYTES, false,
	  "one call copies no more than that, all items together" },
	{ ANY, WHY(LENGTH_LIMIT), ACL_ERROR_RT_MEMORY_ALLOCATION, BYTES, false,
	  "no machine has that much memory" },
	{ ANY, WHY(CAPACITY), ACL_ERROR_RT_MEMORY_ALLOCATION, BYTES, false,
	  "the device (for memory of the host: the module's host_mib) has less left" },
	{ ANY, WHY(NO_PAGES), ACL_ERROR_RT_MEMORY_ALLOCATION, BYTES, false,
	  "the machine, or the memory cgroup, has fewer pages left" },
	{ ANY, WHY(HANDLE), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "this process has no such handle, or not any more" },
	{ ANY, WHY(OVER_FREED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "the handle has been freed; only mappings keep the memory" },
	{ ANY, WHY(OFFSET), ACL_ERROR_RT_PARAM_INVALID, BYTES, false,
	  "the offset isn't 0" },
	{ ANY, WHY(SIZE_MISMATCH), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  BYTES, false, "the size isn't the handle's, which is mapped whole" },
	{ ANY, WHY(ADDRESS_ALIGN), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false, "the address isn't a multiple of the granularity" },
	{ ANY, WHY(NOT_RESERVED), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false, "the address is in no reservation" },
	{ ANY, WHY(RANGE_END), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, false,
	  "the range leaves the reservation, which ends at" },
	{ ANY, WHY(MAPPED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, false,
	  "something is mapped there already, from" },
	{ ANY, WHY(OTHER_LOCATION), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  PLACE, false, "the reservation already holds memory of" },
	{ ANY, WHY(NOT_MAPPED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "no mapping starts at this address" },
	{ ANY, WHY(NOT_RANGE_START), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false, "no reservation starts at this address" },
	{ ANY, WHY(STILL_MAPPED), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  ADDRESS, false,
	  "something is still mapped in it (aclrtUnmapMem comes first), from" },
	{ ANY, WHY(CLOSING), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "another thread is releasing the reservation" },
	{ ANY, WHY(IMPORTED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "the handle was imported: only the process that allocated can export" },
	{ ANY, WHY(EXPORTED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "the handle was exported before, which is possible once" },
	{ ANY, WHY(SHARE), ACL_ERROR_RT_INVALID_HANDLE, NOTHING, false,
	  "no such shareable handle: it never existed, or all processes that held the memory let go"
	},
	{ ANY, WHY(NOT_EXPORTER), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false, "another process exported it" },
	{ ANY, WHY(NO_WHITELIST), ACL_ERROR_RT_NO_PERMISSION, NOTHING, false,
	  "it was exported with DISABLE_PID_VALIDATION and takes no process ids" },
	{ ANY, WHY(PIDS_EMPTY), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NOTHING, false,
	  "all process ids are 0" },
	{ ANY, WHY(PIDS_LIMIT), ACL_ERROR_RT_PARAM_INVALID, NUMBER, false,
	  "more process ids than one call takes" },
	{ ANY, WHY(NOT_LISTED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NUMBER, false,
	  "this process isn't on the whitelist (aclrtMemSetPidToShareableHandle in the exporting one); its id outside all containers"
	},
	{ ANY, WHY(SAME_PROCESS), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, false, "this process exported it: it has the handle already" },
	{ ANY, WHY(ITEM_COUNT), ACL_ERROR_RT_PARAM_INVALID, NUMBER, false,
	  "more items than one call takes" },
	{ ANY, WHY(ATTR_COUNT), ACL_ERROR_RT_PARAM_INVALID, NUMBER, false,
	  "there have to be attributes, but not more than items" },
	{ ANY, WHY(ATTR_INDEX), ACL_ERROR_RT_PARAM_INVALID, NUMBER, false,
	  "attrsIndexes don't begin with 0, don't increase, or reach beyond the items" },
	{ ANY, WHY(ARRAY), ACL_ERROR_RT_PARAM_INVALID, ADDRESS, false,
	  "an array can't be read, at" },
	{ ANY, WHY(ADDRESS_NULL), ACL_ERROR_RT_PARAM_INVALID, NOTHING, true,
	  "an address is NULL" },
	{ ANY, WHY(ADDRESS_RANGE), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  ADDRESS, true, "not an address of the process" },
	{ ANY, WHY(UNMAPPED), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, true,
	  "the address is reserved, but has no memory" },
	{ ANY, WHY(DEVICE_END), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, true,
	  "the range leaves its memory, at" },
	{ ANY, WHY(DST_LOCATION), ACL_ERROR_RT_PARAM_INVALID, PLACE, true,
	  "the destination isn't where its attribute says, but in" },
	{ ANY, WHY(SRC_LOCATION), ACL_ERROR_RT_PARAM_INVALID, PLACE, true,
	  "the source isn't where its attribute says, but in" },
	{ ANY, WHY(SAME_SIDE), ACL_ERROR_RT_PARAM_INVALID, NOTHING, true,
	  "source and destination are both in the host, or both in a device" },
	{ ANY, WHY(LENGTH_ZERO), ACL_ERROR_RT_PARAM_INVALID, NOTHING, true,
	  "the size is 0" },
	{ ANY, WHY(MIXED_DIRECTION), ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	  NOTHING, true, "it goes the other way than item 0" },
	{ ANY, WHY(MIXED_DEVICE), ACL_ERROR_RT_DRV_INTERNAL_ERROR, NUMBER, true,
	  "it uses another device than item 0" },
	{ ANY, WHY(READ_ONLY), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, true,
	  "the destination is mapped read-only" },
	{ ANY, WHY(SEGMENTS), ACL_ERROR_RT_OVER_LIMIT, NUMBER, false,
	  "the call crosses more mappings than one can" },
	{ ANY, WHY(HOST_FAULT), ACL_ERROR_RT_DRV_INTERNAL_ERROR, ADDRESS, true,
	  "host memory can't be accessed, at" },
};

static const struct rule *find_rule(enum aclmem_call call, uint32_t reason)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].reason == reason &&
		    (rules[i].call == call || rules[i].call == ANY))
			return &rules[i];
	return NULL;
}

/* Appends to the thread's text, as far as it fits. */
static void __printf(1, 2) append(const char *format, ...)
{
	size_t used = strlen(failure.text);
	va_list args;

	va_start(args, format);
	vsnprintf(failure.text + used, TEXT_SIZE - used, format, args);
	va_end(args);
}

static void append_arguments(const char *format, va_list args)
{
	size_t used = strlen(failure.text);

	vsnprintf(failure.text + used, TEXT_SIZE - used, format, args);
}

static void append_place(uint64_t place)
{
	uint32_t type = place >> 32;
	uint32_t id = (uint32_t)place;

	switch (type) {
	case ACLMEM_LOCATION_DEVICE:
		append(" the module's device %u", id);
		break;
	case ACLMEM_LOCATION_HOST_NUMA:
		append(" NUMA node %u", id);
		break;
	default:
		append(" the host");
		break;
	}
}

static void append_rule(const struct rule *rule, enum aclmem_call call,
			const struct aclmem_head *head)
{
	if (rule->index && call == ACLMEM_CALL_BATCH)
		append("item %" PRIu64 ": ", (uint64_t)head->out_index);
	append("%s", rule->text);
	switch (rule->value) {
	case NOTHING:
		break;
	case ADDRESS:
		append(" 0x%" PRIx64, (uint64_t)head->out_value);
		break;
	case NUMBER:
		append(": %" PRIu64, (uint64_t)head->out_value);
		break;
	case BYTES:
		append(" (%" PRIu64 " bytes)", (uint64_t)head->out_value);
		break;
	case PLACE:
		append_place(head->out_value);
		break;
	}
}

/**
 * aclmem_fail() - note why the running call fails
 * @code: its result
 * @name: its name
 * @format: arguments, value and rule
 *
 * Return: @code
 */
aclError aclmem_fail(aclError code, const char *name, const char *format, ...)
{
	va_list args;

	failure.last = code;
	failure.text[0] = '\0';
	append("%s: ", name);
	va_start(args, format);
	append_arguments(format, args);
	va_end(args);
	append(" [%d]", code);
	return code;
}

/**
 * aclmem_fail_kernel() - note why the kernel refuses a command
 * @call: what the program called, as a key
 * @name: what the program called
 * @error: errno of the command
 * @head: the command's head, with the kernel's reason
 * @format: the program's arguments
 *
 * Return: the result for the program
 */
aclError aclmem_fail_kernel(enum aclmem_call call, const char *name, int error,
			    const struct aclmem_head *head,
			    const char *format, ...)
{
	const struct rule *rule = find_rule(call, head->out_reason);
	va_list args;

	failure.last = rule ? rule->code : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
	failure.text[0] = '\0';
	append("%s: ", name);
	va_start(args, format);
	append_arguments(format, args);
	va_end(args);
	append(": ");
	if (rule)
		append_rule(rule, call, head);
	else if (error == EBADF || error == ENOTTY)
		append("the program has closed the library's descriptor of /dev/aclmem");
	else
		append("the kernel says: %s (reason %u)",
		       strerror(error), (uint32_t)head->out_reason);
	append(" [%d]", failure.last);
	return failure.last;
}

const char *aclGetRecentErrMsg(void)
{
	if (failure.text[0] == '\0')
		return NULL;
	memcpy(failure.shown, failure.text, sizeof(failure.shown));
	failure.text[0] = '\0';
	return failure.shown;
}

static aclError fail_level(const char *name, aclrtLastErrLevel level)
{
	return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
			   "level %d isn't ACL_RT_THREAD_LEVEL", (int)level);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
	if (level != ACL_RT_THREAD_LEVEL)
		return fail_level(__func__, level);
	return failure.last;
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
	aclError last = failure.last;

	if (level != ACL_RT_THREAD_LEVEL)
		return fail_level(__func__, level);
	failure.last = ACL_SUCCESS;
	return last;
}
