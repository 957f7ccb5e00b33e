/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs that test the library's functions share, beside helpers.h:
 * the check of a failure in all its parts, short forms of frequent calls, and
 * other processes that make calls on demand.
 *
 * The commands of helpers.h, on a descriptor of the test's own, serve as the
 * second opinion about what the library did.
 */
#ifndef _API_H
#define _API_H

#include <acl/acl.h>

#include "helpers.h"

#define UNTOUCHED ((void *)0x5a5a5a5a5a5a5a5a)
#define UNTOUCHED_SIZE ((size_t)0x5a5a5a5a5a5a5a5a)
#define UNTOUCHED_ID 0x5a5a5a5a

/* An address that the process never uses. */
#define NOWHERE ((void *)0x10000)

void forget_failure(void);
const char *complaint(aclError code, const char *call, const char *words);

/*
 * The call returns the code, and leaves it and a text for the thread. The text
 * names the function and has all of the words, which are separated by "|"; it's
 * gone when it was read.
 */
#define EXPECT_FAILS(code, words, call) do { \
	forget_failure(); \
	EXPECT_EQ((code), (call)); \
	EXPECT_STREQ("", complaint((code), #call, (words))); \
} while (0)

/* ACL_HBM_MEM_HUGE on the device. */
aclrtPhysicalMemProp memory_of(uint32_t device);
aclError new_memory(aclrtDrvMemHandle *handle, size_t size, uint32_t device);
/* Reserve and map; NULL if that fails. */
void *map_memory(aclrtDrvMemHandle handle, size_t size);
/* All in one; the handle isn't held. */
void *new_mapping(size_t size, uint32_t device);
aclError end_mapping(void *address);
/* Free memory of the current device, or 0. */
size_t free_memory(void);
/* Free memory is back at the amount within 5 s. */
bool free_becomes(size_t bytes);
/* Lines of /proc/self/maps, entries of /proc/self/fd. */
unsigned int count_mappings(void);
unsigned int count_descriptors(void);

/* Run the function in a thread, wait for it, and return its result. */
int in_thread(int (*function)(void *), void *argument);

/*
 * Another process, which makes calls when told to: forked, or forked and
 * executed anew, before this process uses the library or after. It ends with its
 * creator.
 */
struct aide {
	pid_t pid;
	int socket;
};

enum aide_op {
	AIDE_SET_DEVICE,	/* id */
	AIDE_TGID,		/* out: the id */
	AIDE_PID,		/* out: getpid() */
	AIDE_COUNT,		/* out: number of devices */
	AIDE_LOGIC,		/* id; out: the module's number */
	AIDE_ALLOC,		/* size, device; out: handle */
	AIDE_PROPERTY,		/* handle; out: id of its location */
	AIDE_FREE,		/* handle */
	AIDE_EXPORT,		/* handle, flags; out: number */
	AIDE_LIST,		/* number, pid */
	AIDE_IMPORT,		/* number, device; out: handle */
	AIDE_IMPORT_IN_THREAD,	/* likewise */
	AIDE_IMPORT_IN_CHILD,	/* likewise, the handle is of no use */
	AIDE_MAP,		/* handle, size; out: address */
	AIDE_UNMAP,		/* address; releases, too */
	AIDE_FILL,		/* address, size, seed of the pattern */
	AIDE_CHECK,		/* address, size, seed; out: place that differs, or -1 */
	AIDE_UPLOAD,		/* address, size, device: batch of one; out: failIndex */
	AIDE_COPY_FOREVER,	/* address, size: no answer */
	AIDE_EXIT,
};

#define AIDE_EXEC 1		/* execute the program anew */
#define AIDE_PID_NAMESPACE 2	/* and in a new pid namespace */

bool aide_start(struct aide *aide, unsigned int flags);
/* Send without waiting, and wait. */
bool aide_send(struct aide *aide, enum aide_op op, uint64_t a, uint64_t b, uint64_t c);
aclError aide_receive(struct aide *aide, uint64_t *out);
/* The call's result; -1 if the process is gone. */
aclError aide_call(struct aide *aide, enum aide_op op, uint64_t a, uint64_t b,
		   uint64_t c, uint64_t *out);
/* Tell it to exit; wait_child()'s answer. */
int aide_end(struct aide *aide);
int aide_kill(struct aide *aide);

#define AIDE(aide, op, a, b, out) aide_call(aide, AIDE_##op, a, b, 0, out)

#endif /* _API_H */
