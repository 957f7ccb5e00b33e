// SPDX-License-Identifier: MIT
/*
 * The main job with real processes: an exporter, an importer that it has put on
 * the whitelist, a stranger that it has not, and a director who starts them,
 * passes messages, kills the exporter and looks whether every byte came back.
 * Each role is this program, run anew; each prints what it does and how long
 * that took. Ends with aclmem-bench's table. Single-threaded, takes no lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <acl/acl.h>

#define MIB ((size_t)1 << 20)
#define TOTAL (1024 * MIB)
#define ITEMS 4096
#define ITEM (TOTAL / ITEMS)

static const char *role = "director";

/* The roles talk by one line each way at a time, on these descriptors. */
static FILE *in, *out;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void say(double since, const char *format, ...)
{
	va_list arguments;

	printf("%-9s ", role);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	if (since > 0)
		printf("  [%.1f ms]", now_ms() - since);
	putchar('\n');
	fflush(stdout);
}

static void fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: FAILED: ", role);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static void check(aclError error, const char *what)
{
	const char *text;

	if (error == ACL_SUCCESS)
		return;
	text = aclGetRecentErrMsg();
	fail("%s: %d: %s", what, error, text ? text : "(no text)");
}

static void tell(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	if (fputc('\n', out) == EOF || fflush(out))
		fail("can't send a message: %s", strerror(errno));
}

static void hear(const char *format, void *value)
{
	char line[128];

	if (!fgets(line, sizeof(line), in))
		fail("the other side ended");
	if (value && sscanf(line, format, value) != 1)
		fail("unexpected message: %s", line);
}

/*
 * What item @i shall hold: the same pseudo-random bytes in every process, for
 * each item from another place on, so that no two items are equal.
 */
static const unsigned char *expected(size_t i)
{
	static unsigned char *pattern;
	uint64_t state = 88172645463325252ULL;
	size_t at;

	if (!pattern) {
		pattern = malloc(ITEM + ITEMS);
		if (!pattern)
			fail("out of memory");
		for (at = 0; at < ITEM + ITEMS; at++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			pattern[at] = (unsigned char)(state >> 32);
		}
	}
	return pattern + i;
}

static void check_bytes(const unsigned char *memory)
{
	size_t i, at;

	for (i = 0; i < ITEMS; i++) {
		if (!memcmp(memory + i * ITEM, expected(i), ITEM))
			continue;
		for (at = 0; memory[i * ITEM + at] == expected(i)[at];)
			at++;
		fail("byte %zu of item %zu is wrong", at, i);
	}
}

static void open_device(void)
{
	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
}

static void *map(aclrtDrvMemHandle handle)
{
	void *memory;

	check(aclrtReserveMemAddress(&memory, TOTAL, 0, NULL, 0),
	      "aclrtReserveMemAddress");
	check(aclrtMapMem(memory, TOTAL, 0, handle, 0), "aclrtMapMem");
	return memory;
}

static void fill(unsigned char *memory)
{
	static void *dsts[ITEMS], *srcs[ITEMS];
	static size_t sizes[ITEMS];
	aclrtMemcpyBatchAttr attr = {
		.dstLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
		.srcLoc = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	size_t first = 0, failed, i;

	for (i = 0; i < ITEMS; i++) {
		dsts[i] = memory + i * ITEM;
		srcs[i] = (void *)(uintptr_t)expected(i);
		sizes[i] = ITEM;
	}
	check(aclrtMemcpyBatch(dsts, sizes, srcs, sizes, ITEMS, &attr, &first,
			       1, &failed),
	      "aclrtMemcpyBatch");
}

static _Noreturn void exporter(int importer_tgid)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtDrvMemHandle handle;
	uint64_t share;
	void *memory;
	double t;

	open_device();
	t = now_ms();
	check(aclrtMallocPhysical(&handle, TOTAL, &prop, 0),
	      "aclrtMallocPhysical");
	say(t, "allocated 1 GiB on device 0, zeroed");
	t = now_ms();
	memory = map(handle);
	say(t, "mapped it at %p", memory);
	expected(0);
	t = now_ms();
	fill(memory);
	say(t, "filled it by one batch copy of %d items", ITEMS);
	t = now_ms();
	check(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
					      ACL_RT_VMM_EXPORT_FLAG_DEFAULT,
					      &share),
	      "aclrtMemExportToShareableHandle");
	check(aclrtMemSetPidToShareableHandle(share, &importer_tgid, 1),
	      "aclrtMemSetPidToShareableHandle");
	say(t, "exported it as %016" PRIx64 ", whitelisted process %d only",
	    share, importer_tgid);
	tell("%" PRIu64, share);
	for (;;)
		pause();
}

static int importer(void)
{
	aclrtDrvMemHandle handle;
	uint64_t share;
	void *memory;
	int tgid;
	double t;

	open_device();
	check(aclrtDeviceGetBareTgid(&tgid), "aclrtDeviceGetBareTgid");
	tell("%d", tgid);
	hear("%" SCNu64, &share);
	t = now_ms();
	check(aclrtMemImportFromShareableHandle(share, 0, &handle),
	      "aclrtMemImportFromShareableHandle");
	memory = map(handle);
	say(t, "imported and mapped it at %p", memory);
	expected(0);
	t = now_ms();
	check_bytes(memory);
	say(t, "checked all 1,073,741,824 bytes: right");
	tell("checked");
	hear(NULL, NULL);
	t = now_ms();
	check_bytes(memory);
	say(t, "the exporter is gone; checked all bytes again: right");
	check(aclrtUnmapMem(memory), "aclrtUnmapMem");
	check(aclrtReleaseMemAddress(memory), "aclrtReleaseMemAddress");
	check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	tell("left");
	return 0;
}

static int stranger(void)
{
	aclrtDrvMemHandle handle = NULL;
	const char *text;
	uint64_t share;
	aclError error;
	double t;

	open_device();
	hear("%" SCNu64, &share);
	t = now_ms();
	error = aclrtMemImportFromShareableHandle(share, 0, &handle);
	if (error != ACL_ERROR_RT_DRV_INTERNAL_ERROR || handle)
		fail("the import answered %d, handle %p", error, handle);
	text = aclGetRecentErrMsg();
	if (!text)
		fail("the refusal has no text");
	say(t, "knows the number, but was refused: %d", error);
	printf("%-9s   \"%s\"\n", "", text);
	tell("refused");
	return 0;
}

struct child {
	pid_t pid;
	FILE *in;
	FILE *out;
};

/* Starts this program anew in a role; argv[2] is the role's number, if any. */
static struct child start(const char *self, const char *what, int number)
{
	int to[2], from[2];
	struct child child;
	char argument[16];

	snprintf(argument, sizeof(argument), "%d", number);
	if (pipe(to) || pipe(from))
		fail("pipe: %s", strerror(errno));
	child.pid = fork();
	if (child.pid < 0)
		fail("fork: %s", strerror(errno));
	if (!child.pid) {
		dup2(to[0], 3);
		dup2(from[1], 4);
		closefrom(5);
		execl(self, self, what, argument, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	child.in = fdopen(from[0], "r");
	child.out = fdopen(to[1], "w");
	if (!child.in || !child.out)
		fail("fdopen: %s", strerror(errno));
	return child;
}

static void with(const struct child *child)
{
	in = child->in;
	out = child->out;
}

static void expect_success(const struct child *child, const char *what)
{
	int status;

	if (waitpid(child->pid, &status, 0) < 0 || status)
		fail("the %s ended with status %#x", what, status);
}

static size_t free_bytes(void)
{
	size_t free, total;

	check(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), "aclrtGetMemInfo");
	return free;
}

static void kill_exporter(const struct child *child)
{
	int status;
	double t;

	t = now_ms();
	kill(child->pid, SIGKILL);
	if (waitpid(child->pid, &status, 0) < 0 || !WIFSIGNALED(status))
		fail("the exporter didn't die of the signal: %#x", status);
	say(t, "killed the exporter with SIGKILL");
}

static int director(const char *self)
{
	struct child a, b, c;
	size_t before, after;
	uint64_t share;
	int tgid;

	open_device();
	before = free_bytes();
	say(0, "device 0 has %zu MiB free", before / MIB);

	b = start(self, "importer", 0);
	with(&b);
	hear("%d", &tgid);
	a = start(self, "exporter", tgid);
	with(&a);
	hear("%" SCNu64, &share);
	if (free_bytes() != before - TOTAL)
		fail("free memory fell by %zu", before - free_bytes());

	c = start(self, "stranger", 0);
	with(&c);
	tell("%" PRIu64, share);
	hear(NULL, NULL);
	expect_success(&c, "stranger");

	with(&b);
	tell("%" PRIu64, share);
	hear(NULL, NULL);
	kill_exporter(&a);
	if (free_bytes() != before - TOTAL)
		fail("the memory went with the exporter");
	tell("go on");
	hear(NULL, NULL);
	expect_success(&b, "importer");

	after = free_bytes();
	if (after != before)
		fail("%zu bytes did not come back", before - after);
	say(0, "all have left: every byte is back, %zu MiB free", after / MIB);
	return 0;
}

/* The table is a program of its own, beside this one. */
static int show_table(const char *self)
{
	char path[4096];
	const char *slash = strrchr(self, '/');

	snprintf(path, sizeof(path), "%.*saclmem-bench",
		 slash ? (int)(slash - self + 1) : 0, self);
	putchar('\n');
	fflush(stdout);
	execl(path, path, (char *)NULL);
	fail("can't run %s: %s", path, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	static char self[4096];
	ssize_t length;

	if (argc < 2) {
		length = readlink("/proc/self/exe", self, sizeof(self) - 1);
		if (length < 0)
			fail("/proc/self/exe: %s", strerror(errno));
		return director(self) ? 1 : show_table(self);
	}
	role = argv[1];
	in = fdopen(3, "r");
	out = fdopen(4, "w");
	if (!in || !out || argc < 3) {
		fprintf(stderr, "usage: %s (without arguments)\n", argv[0]);
		return 2;
	}
	if (!strcmp(role, "exporter"))
		exporter(atoi(argv[2]));
	if (!strcmp(role, "importer"))
		return importer();
	if (!strcmp(role, "stranger"))
		return stranger();
	fprintf(stderr, "%s: no role '%s'\n", argv[0], role);
	return 2;
}
