// SPDX-License-Identifier: MIT
/*
 * host.c: host memory that stays in place. It's ordinary anonymous memory, so
 * that every part of the kernel can use it (O_DIRECT, io_uring, RDMA), populated
 * at once, locked as far as the process may, and not inherited by a child, as the
 * memory of a driver isn't. Owns nothing: block.c knows the addresses. Takes no
 * lock of its own.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * What can be had without pushing other programs out, or SIZE_MAX if the system
 * doesn't tell. Populating more than there is would end in somebody's OOM kill
 * instead of an error. (A memory cgroup's limit below that can still do so.)
 */
static size_t available(void)
{
	static const char key[] = "MemAvailable:";
	char text[4096];
	unsigned long long kib;
	const char *line;
	ssize_t length;
	int fd;

	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return SIZE_MAX;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return SIZE_MAX;
	text[length] = '\0';
	line = strstr(text, key);
	if (!line)
		return SIZE_MAX;
	kib = strtoull(line + sizeof(key) - 1, NULL, 10);
	return kib < SIZE_MAX / 1024 ? (size_t)kib * 1024 : SIZE_MAX;
}

static int prepare(void *start, size_t length)
{
	if (madvise(start, length, MADV_DONTFORK))
		return errno;
	if (madvise(start, length, MADV_POPULATE_WRITE)) {
		if (errno != EINVAL)
			return errno;
		memset(start, 0, length);
	}
	/* RLIMIT_MEMLOCK is often small; the memory is good all the same. */
	(void)!mlock(start, length);
	return 0;
}

static aclError fail_memory(const char *name, size_t size, const char *why)
{
	return aclmem_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, name, "size %zu: %s",
			   size, why);
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t length;
	aclError ret;
	void *start;
	int error;

	if (!hostPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "hostPtr is NULL");
	if (!size)
		return fail(ACL_ERROR_INVALID_PARAM, "size is 0");
	ret = aclmem_device_current(__func__, NULL);
	if (ret)
		return ret;
	length = aclmem_round_up(size, page);
	if (!length || length > available())
		return fail_memory(__func__, size,
				   "the machine hasn't that much memory available");
	start = mmap(NULL, length, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return fail_memory(__func__, size, strerror(errno));
	error = prepare(start, length);
	if (!error && !aclmem_block_add(start, length, ACLMEM_BLOCK_HOST))
		error = ENOMEM;
	if (error) {
		munmap(start, length);
		return fail_memory(__func__, size, strerror(error));
	}
	*hostPtr = start;
	return ACL_SUCCESS;
}

aclError aclrtFreeHost(void *hostPtr)
{
	size_t length;

	if (!hostPtr)
		return fail(ACL_ERROR_INVALID_PARAM, "hostPtr is NULL");
	length = aclmem_block_claim(hostPtr, ACLMEM_BLOCK_HOST);
	if (!length)
		return fail(ACL_ERROR_RT_PARAM_INVALID, "hostPtr %p: %s",
			    hostPtr, aclmem_block_advice(hostPtr));
	aclmem_block_remove(hostPtr);
	munmap(hostPtr, length);
	return ACL_SUCCESS;
}
