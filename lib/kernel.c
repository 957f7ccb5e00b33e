// SPDX-License-Identifier: MIT
/*
 * kernel.c: the way to the module. Owns the process's one descriptor of
 * /dev/aclmem, opened when it's first needed, and what the module says about
 * itself. The mutex serialises opening; commands take no lock, so that a copy of
 * an hour in one thread holds up nobody, least of all a fork().
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(sizeof(struct aclmem_head) == ACLMEM_HEAD_SIZE, "uapi");
static_assert(sizeof(struct aclmem_query) == ACLMEM_QUERY_SIZE, "uapi");
static_assert(sizeof(struct aclmem_device) == ACLMEM_DEVICE_SIZE, "uapi");
static_assert(sizeof(struct aclmem_alloc) == ACLMEM_ALLOC_SIZE, "uapi");
static_assert(sizeof(struct aclmem_free) == ACLMEM_FREE_SIZE, "uapi");
static_assert(sizeof(struct aclmem_retain) == ACLMEM_RETAIN_SIZE, "uapi");
static_assert(sizeof(struct aclmem_handle_info) == ACLMEM_HANDLE_SIZE, "uapi");
static_assert(sizeof(struct aclmem_map) == ACLMEM_MAP_SIZE, "uapi");
static_assert(sizeof(struct aclmem_unmap) == ACLMEM_UNMAP_SIZE, "uapi");
static_assert(sizeof(struct aclmem_release) == ACLMEM_RELEASE_SIZE, "uapi");
static_assert(sizeof(struct aclmem_address) == ACLMEM_ADDRESS_SIZE, "uapi");
static_assert(sizeof(struct aclmem_export) == ACLMEM_EXPORT_SIZE, "uapi");
static_assert(sizeof(struct aclmem_whitelist) == ACLMEM_WHITELIST_SIZE, "uapi");
static_assert(sizeof(struct aclmem_import) == ACLMEM_IMPORT_SIZE, "uapi");
static_assert(sizeof(struct aclmem_copy) == ACLMEM_COPY_SIZE, "uapi");
static_assert(sizeof(struct aclmem_fill) == ACLMEM_FILL_SIZE, "uapi");

pthread_mutex_t aclmem_kernel_lock = PTHREAD_MUTEX_INITIALIZER;

/* The descriptor is published last: whoever sees it may read the rest. */
static atomic_int descriptor = -1;
static struct aclmem_query module;
/* What the descriptor refers to, to recognise it after a fork(). */
static struct stat identity;

/*
 * At load time, so that it precedes whatever the program registers: handlers of
 * the program that use the library in a child then find it ready. Here, because
 * whoever links the static library and needs a device has this file in it.
 */
static void __attribute__((constructor)) watch_forks(void)
{
	pthread_atfork(aclmem_fork_prepare, aclmem_fork_parent,
		       aclmem_fork_child);
}

static aclError fail_open(const char *name, int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return aclmem_fail(ACL_ERROR_RT_NO_DEVICE, name,
				   "/dev/aclmem: %s: load the aclmem module (modprobe aclmem)",
				   strerror(error));
	case EACCES:
	case EPERM:
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "/dev/aclmem: %s: the user has to be in the node's group (usermod -aG render NAME, then log in again)",
				   strerror(error));
	case ENOMEM:
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
				   "/dev/aclmem: %s", strerror(error));
	default:
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "/dev/aclmem: %s", strerror(error));
	}
}

static int query_module(int fd, struct aclmem_query *query)
{
	memset(query, 0, sizeof(*query));
	query->head.size = sizeof(*query);
	return ioctl(fd, ACLMEM_QUERY, query) ? errno : 0;
}

static aclError open_locked(const char *name)
{
	aclError ret;
	int fd, error;

	fd = open("/dev/aclmem", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail_open(name, errno);
	error = query_module(fd, &module);
	if (error) {
		ret = aclmem_fail_kernel(ACLMEM_CALL_ANY, name, error,
					 &module.head, "/dev/aclmem");
		goto close;
	}
	if (module.out_major != ACLMEM_UAPI_MAJOR) {
		ret = aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				  "/dev/aclmem: the module speaks version %u.%u, this library %u.%u: install module and library of one release",
				  module.out_major, module.out_minor,
				  ACLMEM_UAPI_MAJOR, ACLMEM_UAPI_MINOR);
		goto close;
	}
	if (fstat(fd, &identity)) {
		ret = fail_open(name, errno);
		goto close;
	}
	atomic_store_explicit(&descriptor, fd, memory_order_release);
	return ACL_SUCCESS;
close:
	close(fd);
	return ret;
}

/**
 * aclmem_kernel_use() - make sure that commands can be sent
 * @name: function of the API, for the text of a failure
 * @query: where to put what the module says about itself, or NULL
 *
 * Tries again at every call until it has succeeded once, so that loading the
 * module, or rights given later, help a program that is running.
 *
 * Return: 0 or the result for the program
 */
aclError aclmem_kernel_use(const char *name, const struct aclmem_query **query)
{
	aclError ret = ACL_SUCCESS;

	if (atomic_load_explicit(&descriptor, memory_order_acquire) < 0) {
		pthread_mutex_lock(&aclmem_kernel_lock);
		if (atomic_load(&descriptor) < 0)
			ret = open_locked(name);
		pthread_mutex_unlock(&aclmem_kernel_lock);
	}
	if (!ret && query)
		*query = &module;
	return ret;
}

/**
 * aclmem_kernel_do() - send one command
 * @command: its number
 * @head: head of its structure, filled but for the size
 * @size: of the structure
 *
 * Return: 0 or an errno
 */
int aclmem_kernel_do(unsigned long command, struct aclmem_head *head,
		     size_t size)
{
	int fd = atomic_load_explicit(&descriptor, memory_order_acquire);

	head->size = (uint32_t)size;
	return ioctl(fd, command, head) ? errno : 0;
}

/*
 * Whether a number still stands for the library's descriptor. A program may have
 * closed it (closefrom() is popular with daemons), and opened something else.
 */
static bool is_ours(int fd)
{
	struct stat now;

	return fd >= 0 && !fstat(fd, &now) && now.st_dev == identity.st_dev &&
	       now.st_ino == identity.st_ino && now.st_rdev == identity.st_rdev;
}

static aclError fail_reserve(const char *name, int error, size_t length,
			     const void *wanted)
{
	if (error == EEXIST)
		return aclmem_fail(ACL_ERROR_RT_PARAM_INVALID, name,
				   "expectPtr %p: of the %zu bytes from there on some are in use",
				   wanted, length);
	if (error == ENOMEM)
		return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name,
				   "size (rounded up) %zu: no such range of addresses is free, or the process has all that /proc/sys/vm/max_map_count or ulimit -v allows",
				   length);
	if (error == EBADF)
		return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
				   "the program has closed the library's descriptor of /dev/aclmem");
	return aclmem_fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, name,
			   "size (rounded up) %zu: %s", length,
			   strerror(error));
}

/**
 * aclmem_kernel_reserve() - reserve addresses
 * @name: function of the API, for the text of a failure
 * @wanted: NULL, or the only address that will do
 * @length: a multiple of the granularity
 * @start: where to put the start
 *
 * Return: 0 or the result for the program
 */
aclError aclmem_kernel_reserve(const char *name, void *wanted, size_t length,
			       void **start)
{
	int fd = atomic_load_explicit(&descriptor, memory_order_acquire);
	int flags = MAP_SHARED;
	void *got;

	/* Commands fail on other files, but mmap() might not. */
	if (!is_ours(fd))
		return fail_reserve(name, EBADF, length, wanted);
	if (wanted)
		flags |= MAP_FIXED_NOREPLACE;
	got = mmap(wanted, length, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (got == MAP_FAILED)
		return fail_reserve(name, errno, length, wanted);
	if (wanted && got != wanted) {
		/* A kernel, or a checker, that ignores the flag. */
		munmap(got, length);
		return fail_reserve(name, EEXIST, length, wanted);
	}
	*start = got;
	return ACL_SUCCESS;
}

/* In a child, for whom the parent's descriptor is of no use. */
void aclmem_kernel_forget(void)
{
	int fd = atomic_exchange(&descriptor, -1);

	if (is_ours(fd))
		close(fd);
}
