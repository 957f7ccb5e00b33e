// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read-only mappings stay so: against stores, the kernel's own writes on the
 * caller's behalf, debuggers, and however often one tries; at 2 MiB entries
 * and at 4 KiB entries alike.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "fixture.h"

/* Two granules mapped twice: read-only, and writable elsewhere. */
FIXTURE(readonly)
{
	int fd;
	int probe;
	uint32_t handle;
	unsigned char *ro;
	unsigned char *rw;
};

FIXTURE_VARIANT(readonly)
{
	bool table;
	int level;
};

FIXTURE_VARIANT_ADD(readonly, by_2_mib)
{
	.table = false,
	.level = ACLMEM_PROBE_PMD,
};

FIXTURE_VARIANT_ADD(readonly, by_4_kib)
{
	.table = true,
	.level = ACLMEM_PROBE_PTE,
};

#define LENGTH (2 * GRANULE)

FIXTURE_SETUP(readonly)
{
	size_t i;

	catch_faults();
	self->probe = probe_open();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	if (variant->table && self->probe < 0)
		SKIP(_exit(HARNESS_SKIP), "%s: needs aclmem_probe.ko", _metadata->name);
	self->rw = map_new(self->fd, LENGTH, 0, &self->handle);
	ASSERT_NE(MAP_FAILED, (void *)self->rw);
	self->ro = reserve(self->fd, LENGTH);
	ASSERT_NE(MAP_FAILED, (void *)self->ro);
	ASSERT_EQ(0, map(self->fd, self->handle, self->ro, LENGTH, ACLMEM_MAP_READ_ONLY));
	for (i = 0; variant->table && i < LENGTH; i += GRANULE)
		ASSERT_EQ(0, probe_put_table(self->probe, self->ro + i));
}

FIXTURE_TEARDOWN(readonly)
{
	close(self->fd);
	if (self->probe >= 0)
		close(self->probe);
}

static void expect_entry(struct __test_metadata *_metadata, int probe, const void *at,
			 int level)
{
	struct aclmem_probe_page page;

	if (probe < 0)
		return;
	ASSERT_EQ(0, probe_page(probe, at, &page));
	EXPECT_EQ(level, page.out_level);
	EXPECT_FALSE(page.out_entry & ACLMEM_PROBE_WRITE);
	EXPECT_EQ(1, page.out_page.out_refcount);
}

TEST_F(readonly, a_first_access_that_writes_is_refused)
{
	EXPECT_EQ(SIGSEGV, try_write(self->ro, 1));
	EXPECT_EQ(SIGSEGV, try_write(self->ro + LENGTH - 1, 1));
	EXPECT_EQ(0, self->rw[0]);
	EXPECT_EQ(0, self->ro[0]);
	EXPECT_EQ(-1, byte_differs(self->rw, LENGTH, 0));
}

/*
 * Without a word from the module the kernel would make a shared entry writable
 * on the first write to it, or on a later one.
 */
TEST_F(readonly, writes_are_refused_however_often)
{
	unsigned char seen;
	unsigned int i;
	size_t place;

	for (i = 0; i < rounds(1000); i++) {
		place = (i * 40961UL) % LENGTH;
		self->rw[place] = i;
		ASSERT_EQ(0, try_read(self->ro + place, &seen));
		ASSERT_EQ((unsigned char)i, seen);
		ASSERT_EQ(SIGSEGV, try_write(self->ro + place, ~i));
		ASSERT_EQ((unsigned char)i, self->rw[place]);
		ASSERT_EQ((unsigned char)i, self->ro[place]);
	}
	expect_entry(_metadata, self->probe, self->ro, variant->level);
	expect_entry(_metadata, self->probe, self->ro + LENGTH - 1, variant->level);
}

TEST_F(readonly, the_kernel_does_not_write_for_the_caller)
{
	int zero = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	int pipes[2];

	ASSERT_GE(zero, 0);
	ASSERT_EQ(0, pipe(pipes));
	/* Empty places, then filled ones. */
	EXPECT_EQ(-1, read(zero, self->ro, 4096));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, self->ro[0]);
	EXPECT_EQ(-1, read(zero, self->ro, 4096));
	EXPECT_EQ(EFAULT, errno);
	/* Reads of it go well. */
	self->rw[7] = 77;
	EXPECT_EQ(4096, write(pipes[1], self->ro, 4096));
	EXPECT_EQ(4096, read(pipes[0], self->rw + GRANULE, 4096));
	EXPECT_EQ(77, self->ro[GRANULE + 7]);
	self->rw[7] = 0;
	EXPECT_EQ(-1, byte_differs(self->rw, GRANULE, 0));
	expect_entry(_metadata, self->probe, self->ro, variant->level);
	close(zero);
}

TEST_F(readonly, a_copy_into_it_is_refused)
{
	static char host[4096] = { 1 };

	EXPECT_REFUSED(EROFS, READ_ONLY, copy(self->fd, self->ro, host, sizeof(host)));
	EXPECT_REFUSED(EROFS, READ_ONLY, fill(self->fd, self->ro, 1, 5));
	EXPECT_EQ(0, self->rw[0]);
	self->rw[0] = 6;
	EXPECT_EQ(0, copy(self->fd, host, self->ro, sizeof(host)));
	EXPECT_EQ(6, host[0]);
}

TEST_F(readonly, proc_mem_reads_and_does_not_write)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	static unsigned char buffer[3 * 4096];
	size_t seam = GRANULE - 4096 - 5;

	ASSERT_GE(mem, 0);
	pattern_set(self->rw + seam, sizeof(buffer), 3);
	EXPECT_EQ(sizeof(buffer), pread(mem, buffer, sizeof(buffer),
					(uintptr_t)self->ro + seam));
	EXPECT_EQ(-1, pattern_differs(buffer, sizeof(buffer), 3));
	memset(buffer, 0xee, sizeof(buffer));
	EXPECT_EQ(-1, pwrite(mem, buffer, 100, (uintptr_t)self->ro + seam));
	EXPECT_EQ(-1, pattern_differs(self->rw + seam, sizeof(buffer), 3));

	EXPECT_EQ(sizeof(buffer), pwrite(mem, buffer, sizeof(buffer),
					 (uintptr_t)self->rw + seam));
	EXPECT_EQ(-1, byte_differs(self->ro + seam, sizeof(buffer), 0xee));

	/* A range that leaves the mapping ends there. */
	ASSERT_EQ(0, unmap(self->fd, self->ro));
	EXPECT_EQ(-1, pread(mem, buffer, 1, (uintptr_t)self->ro));
	close(mem);
}

TEST_F(readonly, a_debugger_reads_and_does_not_write)
{
	int up[2], status;
	uint64_t word;
	pid_t pid;
	long seen;

	/* The child has its own client, and mappings of both kinds. */
	ASSERT_EQ(0, pipe(up));
	pid = fork_child();
	ASSERT_GE(pid, 0);
	if (!pid) {
		int fd = open_client(NULL);
		uint32_t handle;
		char *rw = map_new(fd, GRANULE, 0, &handle);
		char *ro = reserve(fd, GRANULE);

		if (map(fd, handle, ro, GRANULE, ACLMEM_MAP_READ_ONLY))
			_exit(1);
		memset(rw, 0x5a, GRANULE);
		if (variant->table && probe_put_table(self->probe, ro))
			_exit(2);
		send_u64(up[1], (uintptr_t)rw);
		send_u64(up[1], (uintptr_t)ro);
		for (;;)
			pause();
	}
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, pid, 0, 0));
	self->rw = NULL;
	ASSERT_TRUE(receive_u64(up[0], &word));
	self->rw = (void *)word;
	ASSERT_TRUE(receive_u64(up[0], &word));
	self->ro = (void *)word;
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));

	errno = 0;
	seen = ptrace(PTRACE_PEEKDATA, pid, self->ro + 8, 0);
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0x5a5a5a5a5a5a5a5aL, seen);
	EXPECT_EQ(-1, ptrace(PTRACE_POKEDATA, pid, self->ro + 8, 0L));
	EXPECT_EQ(0, ptrace(PTRACE_POKEDATA, pid, self->rw + 16, 0x0102030405060708L));
	errno = 0;
	EXPECT_EQ(0x5a5a5a5a5a5a5a5aL, ptrace(PTRACE_PEEKDATA, pid, self->ro + 8, 0));
	EXPECT_EQ(0x0102030405060708L, ptrace(PTRACE_PEEKDATA, pid, self->ro + 16, 0));
	EXPECT_EQ(0, errno);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_child(pid));
}

TEST_HARNESS_MAIN
