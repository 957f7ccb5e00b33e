// SPDX-License-Identifier: GPL-2.0-only
/* What the selftest programs share; see helpers.h. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

__thread struct aclmem_head last;

static const char * const reasons[] = {
#define REASON(name) [ACLMEM_REASON_##name] = #name
	REASON(NONE),
	REASON(SIZE_FIELD),
	REASON(TAIL),
	REASON(FLAGS),
	REASON(RESERVED),
	REASON(WRONG_PROCESS),
	REASON(KILLED),
	REASON(KERNEL_MEMORY),
	REASON(DEVICE),
	REASON(LOCATION_TYPE),
	REASON(LOCATION_ID),
	REASON(ATTRIBUTE),
	REASON(LENGTH_ZERO),
	REASON(LENGTH_ALIGN),
	REASON(LENGTH_LIMIT),
	REASON(CAPACITY),
	REASON(NO_PAGES),
	REASON(HANDLE),
	REASON(OVER_FREED),
	REASON(OFFSET),
	REASON(SIZE_MISMATCH),
	REASON(ADDRESS_ALIGN),
	REASON(NOT_RESERVED),
	REASON(RANGE_END),
	REASON(MAPPED),
	REASON(OTHER_LOCATION),
	REASON(NOT_MAPPED),
	REASON(NOT_RANGE_START),
	REASON(STILL_MAPPED),
	REASON(CLOSING),
	REASON(IMPORTED),
	REASON(EXPORTED),
	REASON(SHARE),
	REASON(NOT_EXPORTER),
	REASON(NO_WHITELIST),
	REASON(PIDS_EMPTY),
	REASON(PIDS_LIMIT),
	REASON(NOT_LISTED),
	REASON(SAME_PROCESS),
	REASON(ITEM_COUNT),
	REASON(ATTR_COUNT),
	REASON(ATTR_INDEX),
	REASON(ARRAY),
	REASON(ADDRESS_NULL),
	REASON(ADDRESS_RANGE),
	REASON(UNMAPPED),
	REASON(DEVICE_END),
	REASON(DST_LOCATION),
	REASON(SRC_LOCATION),
	REASON(SAME_SIDE),
	REASON(MIXED_DIRECTION),
	REASON(MIXED_DEVICE),
	REASON(HOST_TO_HOST),
	REASON(READ_ONLY),
	REASON(SEGMENTS),
	REASON(HOST_FAULT),
#undef REASON
};

const char *reason_name(unsigned int reason)
{
	if (reason >= sizeof(reasons) / sizeof(reasons[0]) || !reasons[reason])
		return "unknown";
	return reasons[reason];
}

int command(int fd, unsigned int cmd, void *arg, size_t size)
{
	struct aclmem_head *head = arg;
	int rc;

	head->size = size;
	rc = ioctl(fd, cmd, arg) ? -errno : 0;
	last = *head;
	return rc;
}

int open_device(void)
{
	int fd = open(DEVICE_PATH, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int open_client(struct aclmem_query *query)
{
	struct aclmem_query own = {};
	int fd = open_device();
	int rc;

	if (fd < 0)
		return fd;
	if (!query)
		query = &own;
	memset(query, 0, sizeof(*query));
	rc = command(fd, ACLMEM_QUERY, query, sizeof(*query));
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int device_info(int fd, unsigned int device, struct aclmem_device *info)
{
	memset(info, 0, sizeof(*info));
	info->device = device;
	return command(fd, ACLMEM_DEVICE, info, sizeof(*info));
}

/* In use on all devices together. */
uint64_t used(int fd)
{
	struct aclmem_device info;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; !device_info(fd, i, &info); i++)
		sum += info.out_used;
	return sum;
}

bool used_becomes(int fd, uint64_t bytes)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (used(fd) == bytes)
			return true;
		usleep(10000);
	}
	fprintf(stderr, "# %llu bytes in use, not %llu\n",
		(unsigned long long)used(fd), (unsigned long long)bytes);
	return false;
}

int alloc_at(int fd, uint32_t type, uint32_t id, size_t length, uint32_t *handle)
{
	struct aclmem_alloc arg = {
		.length = length,
		.location = { .id = id, .type = type },
	};
	int rc = command(fd, ACLMEM_ALLOC, &arg, sizeof(arg));

	if (!rc)
		*handle = arg.out_handle;
	return rc;
}

int alloc(int fd, unsigned int device, size_t length, uint32_t *handle)
{
	return alloc_at(fd, ACLMEM_LOCATION_DEVICE, device, length, handle);
}

int free_handle(int fd, uint32_t handle)
{
	struct aclmem_free arg = { .handle = handle };

	return command(fd, ACLMEM_FREE, &arg, sizeof(arg));
}

int retain(int fd, const void *address, uint32_t *handle)
{
	struct aclmem_retain arg = { .address = (uintptr_t)address };
	int rc = command(fd, ACLMEM_RETAIN, &arg, sizeof(arg));

	if (!rc)
		*handle = arg.out_handle;
	return rc;
}

int handle_info(int fd, uint32_t handle, struct aclmem_handle_info *info)
{
	memset(info, 0, sizeof(*info));
	info->handle = handle;
	return command(fd, ACLMEM_HANDLE, info, sizeof(*info));
}

void *reserve(int fd, size_t length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

void *reserve_at(int fd, void *address, size_t length)
{
	return mmap(address, length, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
}

int map(int fd, uint32_t handle, void *address, size_t length, uint32_t flags)
{
	struct aclmem_map arg = {
		.head.flags = flags,
		.address = (uintptr_t)address,
		.length = length,
		.handle = handle,
	};

	return command(fd, ACLMEM_MAP, &arg, sizeof(arg));
}

int unmap(int fd, const void *address)
{
	struct aclmem_unmap arg = { .address = (uintptr_t)address };

	return command(fd, ACLMEM_UNMAP, &arg, sizeof(arg));
}

int release(int fd, const void *address)
{
	struct aclmem_release arg = { .address = (uintptr_t)address };

	return command(fd, ACLMEM_RELEASE, &arg, sizeof(arg));
}

int address_info(int fd, const void *address, struct aclmem_address *info)
{
	memset(info, 0, sizeof(*info));
	info->address = (uintptr_t)address;
	return command(fd, ACLMEM_ADDRESS, info, sizeof(*info));
}

void *map_new(int fd, size_t length, uint32_t flags, uint32_t *handle)
{
	uint32_t own;
	void *address;

	if (alloc(fd, 0, length, &own))
		return MAP_FAILED;
	address = reserve(fd, length);
	if (address != MAP_FAILED && map(fd, own, address, length, flags)) {
		munmap(address, length);
		address = MAP_FAILED;
	}
	if (!handle || address == MAP_FAILED)
		free_handle(fd, own);
	else
		*handle = own;
	return address;
}

int unmap_old(int fd, void *address, size_t length, uint32_t handle)
{
	int rc = unmap(fd, address);

	if (handle && !rc)
		rc = free_handle(fd, handle);
	if (munmap(address, length))
		return -errno;
	return rc;
}

int export_handle(int fd, uint32_t handle, uint32_t flags, uint64_t *share)
{
	struct aclmem_export arg = { .head.flags = flags, .handle = handle };
	int rc = command(fd, ACLMEM_EXPORT, &arg, sizeof(arg));

	if (!rc)
		*share = arg.out_share;
	return rc;
}

int whitelist(int fd, uint64_t share, const int32_t *pids, uint32_t count)
{
	struct aclmem_whitelist arg = {
		.share = share,
		.pids = (uintptr_t)pids,
		.count = count,
	};

	return command(fd, ACLMEM_WHITELIST, &arg, sizeof(arg));
}

int import_share(int fd, uint64_t share, uint32_t device, uint32_t *handle)
{
	struct aclmem_import arg = { .share = share, .device = device };
	int rc = command(fd, ACLMEM_IMPORT, &arg, sizeof(arg));

	if (!rc)
		*handle = arg.out_handle;
	return rc;
}

int copy_items(int fd, const uint64_t *dst, const uint64_t *src,
	       const uint64_t *length, uint32_t count, uint64_t *bytes)
{
	struct aclmem_copy arg = {
		.dst = (uintptr_t)dst,
		.src = (uintptr_t)src,
		.length = (uintptr_t)length,
		.count = count,
	};
	int rc = command(fd, ACLMEM_COPY, &arg, sizeof(arg));

	if (bytes)
		*bytes = arg.out_bytes;
	return rc;
}

int copy(int fd, void *dst, const void *src, size_t length)
{
	uint64_t d = (uintptr_t)dst, s = (uintptr_t)src, n = length;

	return copy_items(fd, &d, &s, &n, 1, NULL);
}

int fill(int fd, void *address, size_t length, uint32_t value)
{
	struct aclmem_fill arg = {
		.address = (uintptr_t)address,
		.length = length,
		.value = value,
	};

	return command(fd, ACLMEM_FILL, &arg, sizeof(arg));
}

int probe_open(void)
{
	return open("/dev/aclmem_probe", O_RDWR | O_CLOEXEC);
}

int probe_page(int probe, const void *address, struct aclmem_probe_page *page)
{
	memset(page, 0, sizeof(*page));
	page->address = (uintptr_t)address;
	return ioctl(probe, ACLMEM_PROBE_GET_PAGE, page) ? -errno : 0;
}

int probe_level(int probe, const void *address)
{
	struct aclmem_probe_page page;
	int rc = probe_page(probe, address, &page);

	return rc ? rc : (int)page.out_level;
}

int probe_pfn(int probe, uint64_t pfn, struct aclmem_probe_pfn *page)
{
	memset(page, 0, sizeof(*page));
	page->pfn = pfn;
	return ioctl(probe, ACLMEM_PROBE_GET_PFN, page) ? -errno : 0;
}

int probe_put_table(int probe, const void *address)
{
	struct aclmem_probe_page page = { .address = (uintptr_t)address };

	return ioctl(probe, ACLMEM_PROBE_PUT_TABLE, &page) ? -errno : 0;
}

int probe_arm(int probe, unsigned int nth, unsigned int flags, int syscall)
{
	struct aclmem_probe_inject inject = {
		.nth = nth,
		.flags = flags,
		.syscall = syscall,
	};

	return ioctl(probe, ACLMEM_PROBE_ARM, &inject) ? -errno : 0;
}

int probe_disarm(int probe, struct aclmem_probe_injected *injected)
{
	return ioctl(probe, ACLMEM_PROBE_DISARM, injected) ? -errno : 0;
}

static __thread sigjmp_buf fault_env;
static __thread volatile sig_atomic_t fault_expected;

static void on_fault(int signal)
{
	if (fault_expected)
		siglongjmp(fault_env, signal);
	/* Return, and die of it. */
	sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

void catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

int try_read(const void *address, unsigned char *value)
{
	int signal = sigsetjmp(fault_env, 1);
	unsigned char byte = 0;

	if (!signal) {
		fault_expected = 1;
		byte = *(const volatile unsigned char *)address;
	}
	fault_expected = 0;
	if (value && !signal)
		*value = byte;
	return signal;
}

int try_write(void *address, unsigned char value)
{
	int signal = sigsetjmp(fault_env, 1);

	if (!signal) {
		fault_expected = 1;
		*(volatile unsigned char *)address = value;
	}
	fault_expected = 0;
	return signal;
}

unsigned int rounds(unsigned int n)
{
	const char *scale = getenv("ACLMEM_TEST_SCALE");
	unsigned long percent = scale ? strtoul(scale, NULL, 10) : 100;

	n = n * percent / 100;
	return n ? n : 1;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}
