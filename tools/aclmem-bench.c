// SPDX-License-Identifier: MIT
/*
 * A short table of times: device memory against memfd, and a batch copy against
 * loops of memcpy and process_vm_readv, all in one run. Under emulation only
 * the ratios mean something. Single-threaded, takes no lock.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <acl/acl.h>

#define MIB ((size_t)1 << 20)
#define TOTAL (1024 * MIB)
#define PAGE 4096
#define ITEMS 4096
#define STRIDE (8 * PAGE)
#define ROUNDS 9
#define MAX_WAYS 3

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "aclmem-bench: %s: %s\n", what, why);
	exit(1);
}

static void check(aclError error, const char *what)
{
	const char *text;

	if (error == ACL_SUCCESS)
		return;
	text = aclGetRecentErrMsg();
	die(what, text ? text : "failed");
}

static long touch(char *memory, double *ms)
{
	struct rusage before, after;
	double t;
	size_t i;

	getrusage(RUSAGE_SELF, &before);
	t = now_ms();
	for (i = 0; i < TOTAL; i += PAGE)
		__atomic_store_n(&memory[i], 1, __ATOMIC_RELAXED);
	*ms = now_ms() - t;
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

static char *device_memory(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtDrvMemHandle handle;
	void *memory;

	check(aclrtMallocPhysical(&handle, TOTAL, &prop, 0),
	      "aclrtMallocPhysical");
	check(aclrtReserveMemAddress(&memory, TOTAL, 0, NULL, 0),
	      "aclrtReserveMemAddress");
	check(aclrtMapMem(memory, TOTAL, 0, handle, 0), "aclrtMapMem");
	/* The mapping keeps the memory from here on. */
	check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	return memory;
}

static char *memfd_memory(void)
{
	int fd = memfd_create("aclmem-bench", MFD_CLOEXEC);
	char *memory;

	if (fd < 0 || ftruncate(fd, TOTAL))
		die("memfd", strerror(errno));
	memory = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		die("mmap", strerror(errno));
	close(fd);
	return memory;
}

static void compare_touch(char **device)
{
	double t, all[2], alone[2];
	long faults[2];
	char *memory;

	/* An emulator's own memory comes with the first use; not measured. */
	memory = memfd_memory();
	touch(memory, &t);
	munmap(memory, TOTAL);

	t = now_ms();
	*device = device_memory();
	faults[0] = touch(*device, &alone[0]);
	all[0] = now_ms() - t;
	t = now_ms();
	memory = memfd_memory();
	faults[1] = touch(memory, &alone[1]);
	all[1] = now_ms() - t;
	munmap(memory, TOTAL);

	printf("%-34s %12s %12s %8s\n", "1 GiB", "aclmem", "memfd, 4 KiB",
	       "times");
	printf("%-34s %9.1f ms %9.1f ms %8.1f\n", "allocate + touch each 4 KiB",
	       all[0], all[1], all[1] / all[0]);
	printf("%-34s %9.1f ms %9.1f ms %8.1f\n", "touch alone", alone[0],
	       alone[1], alone[1] / alone[0]);
	printf("%-34s %12ld %12ld\n\n", "page faults of the touch", faults[0],
	       faults[1]);
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static void *dsts[ITEMS], *srcs[ITEMS];
static size_t sizes[ITEMS];

static void copy_batch(void)
{
	aclrtMemcpyBatchAttr attr = {
		.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
		.srcLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	size_t first = 0, failed;

	check(aclrtMemcpyBatch(dsts, sizes, srcs, sizes, ITEMS, &attr, &first,
			       1, &failed),
	      "aclrtMemcpyBatch");
}

static void copy_memcpy(void)
{
	size_t i;

	for (i = 0; i < ITEMS; i++)
		memcpy(dsts[i], srcs[i], sizes[i]);
}

static void copy_readv(void)
{
	struct iovec local, remote;
	pid_t self = getpid();
	size_t i;

	for (i = 0; i < ITEMS; i++) {
		local.iov_base = dsts[i];
		remote.iov_base = srcs[i];
		local.iov_len = sizes[i];
		remote.iov_len = sizes[i];
		if (process_vm_readv(self, &local, 1, &remote, 1, 0) !=
		    (ssize_t)sizes[i])
			die("process_vm_readv", strerror(errno));
	}
}

typedef void (*copier)(void);

/*
 * Median times, after one round to warm up. The ways take turns, so that
 * whatever else the machine does meets them alike.
 */
static void compare(const copier *ways, int count, double *medians)
{
	double ms[MAX_WAYS][ROUNDS], t;
	int i, way;

	for (i = -1; i < ROUNDS; i++) {
		for (way = 0; way < count; way++) {
			t = now_ms();
			ways[way]();
			if (i >= 0)
				ms[way][i] = now_ms() - t;
		}
	}
	for (way = 0; way < count; way++) {
		qsort(ms[way], ROUNDS, sizeof(ms[way][0]), by_value);
		medians[way] = ms[way][ROUNDS / 2];
	}
}

static void compare_copy(char *device, size_t size)
{
	const copier ways[MAX_WAYS] = { copy_batch, copy_memcpy, copy_readv };
	double ms[MAX_WAYS];
	char *host;
	size_t i;

	host = malloc((size_t)ITEMS * STRIDE);
	if (!host)
		die("malloc", strerror(errno));
	memset(host, 2, (size_t)ITEMS * STRIDE);
	for (i = 0; i < ITEMS; i++) {
		dsts[i] = device + i * STRIDE;
		srcs[i] = host + (ITEMS - 1 - i) * STRIDE;
		sizes[i] = size;
	}
	compare(ways, MAX_WAYS, ms);
	printf("%4zu KiB %18.2f ms %9.2f ms (%4.2f) %9.2f ms (%4.2f)\n",
	       size / 1024, ms[0], ms[1], ms[1] / ms[0], ms[2], ms[2] / ms[0]);
	free(host);
}

int main(void)
{
	char *device;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	compare_touch(&device);
	printf("%d items %22s %19s %20s\n", ITEMS, "batch", "memcpy loop",
	       "process_vm_readv");
	compare_copy(device, PAGE);
	compare_copy(device, STRIDE);
	printf("(medians of %d; in brackets: how many times as long as the batch)\n",
	       ROUNDS);
	check(aclrtUnmapMem(device), "aclrtUnmapMem");
	check(aclrtReleaseMemAddress(device), "aclrtReleaseMemAddress");
	return 0;
}
