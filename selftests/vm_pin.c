// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nobody gets a reference to a page of device memory: every way of the kernel
 * to pin user memory answers EFAULT, at 2 MiB and at 4 KiB entries, and the
 * page's count stays one. A reference that outlived an unmap would be a use
 * after free.
 */
#include <linux/futex.h>
#include <linux/io_uring.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "fixture.h"

#define LENGTH (2 * GRANULE)

FIXTURE(pin)
{
	int fd;
	int probe;
	unsigned char *at;
	/* Ordinary memory, on which the same must succeed. */
	unsigned char *plain;
};

FIXTURE_VARIANT(pin)
{
	bool table;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(pin, by_2_mib)
{
	.table = false,
};

FIXTURE_VARIANT_ADD(pin, by_4_kib)
{
	.table = true,
};

FIXTURE_VARIANT_ADD(pin, read_only)
{
	.flags = ACLMEM_MAP_READ_ONLY,
};

FIXTURE_SETUP(pin)
{
	size_t i;

	catch_faults();
	self->probe = probe_open();
	self->fd = open_client(NULL);
	REQUIRE_CLIENT(self->fd);
	if (variant->table && self->probe < 0)
		SKIP(_exit(HARNESS_SKIP), "%s: needs aclmem_probe.ko", _metadata->name);
	self->at = map_new(self->fd, LENGTH, variant->flags, NULL);
	ASSERT_NE(MAP_FAILED, (void *)self->at);
	for (i = 0; variant->table && i < LENGTH; i += GRANULE)
		ASSERT_EQ(0, probe_put_table(self->probe, self->at + i));
	/* gup_fast needs an entry that is there. */
	for (i = 0; i < LENGTH; i += 4096)
		ASSERT_EQ(0, self->at[i]);
	self->plain = aligned_alloc(GRANULE, LENGTH);
	ASSERT_NE(NULL, self->plain);
	memset(self->plain, 1, LENGTH);
}

FIXTURE_TEARDOWN(pin)
{
	struct aclmem_probe_page page;
	size_t i;

	for (i = 0; self->probe >= 0 && i < LENGTH; i += GRANULE / 4) {
		/* If need be, have it mapped again. */
		EXPECT_EQ(0, try_read(self->at + i, NULL));
		EXPECT_EQ(0, probe_page(self->probe, self->at + i, &page));
		EXPECT_EQ(1, page.out_page.out_refcount);
		EXPECT_EQ(9, page.out_page.out_order);
	}
	EXPECT_EQ(0, unmap(self->fd, self->at));
	EXPECT_EQ(SIGBUS, try_read(self->at, NULL));
	close(self->fd);
	if (self->probe >= 0)
		close(self->probe);
	free(self->plain);
}

static ssize_t splice_in(int pipe, void *at, size_t length, unsigned int flags)
{
	struct iovec iov = { .iov_base = at, .iov_len = length };

	return vmsplice(pipe, &iov, 1, flags | SPLICE_F_NONBLOCK);
}

TEST_F(pin, vmsplice)
{
	static const size_t lengths[] = { 1, 4096, 65536, 65537 };
	int pipes[2];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, pipe(pipes));
		EXPECT_LT(0, splice_in(pipes[1], self->plain, lengths[i], 0));
		close(pipes[0]);
		close(pipes[1]);
		ASSERT_EQ(0, pipe(pipes));
		EXPECT_EQ(-1, splice_in(pipes[1], self->at, lengths[i], 0));
		EXPECT_EQ(EFAULT, errno);
		EXPECT_EQ(-1, splice_in(pipes[1], self->at + GRANULE - 8192, lengths[i],
					SPLICE_F_GIFT));
		EXPECT_EQ(EFAULT, errno);
		/* What a pipe took it would hold, so leave it full. */
		close(pipes[0]);
		close(pipes[1]);
	}
}

/* A RAM disk takes O_DIRECT whatever the file systems here do. */
static int open_disk(bool *loaded)
{
	int fd = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC);

	*loaded = false;
	if (fd < 0 && !system("modprobe brd rd_nr=1 rd_size=16384 2>/dev/null")) {
		*loaded = true;
		usleep(100000);
		fd = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC);
	}
	return fd;
}

TEST_F(pin, direct_io)
{
	static const size_t lengths[] = { 4096, 65536, 1 << 20 };
	bool loaded;
	int disk = open_disk(&loaded);
	size_t i, skew;

	if (disk < 0)
		SKIP(return, "%s: no RAM disk (CONFIG_BLK_DEV_RAM)", _metadata->name);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(lengths[i], pwrite(disk, self->plain, lengths[i], 0));
		EXPECT_EQ(lengths[i], pread(disk, self->plain, lengths[i], 0));
		for (skew = 0; skew <= GRANULE; skew += GRANULE / 2) {
			if (skew + lengths[i] > LENGTH)
				continue;
			EXPECT_EQ(-1, pread(disk, self->at + skew, lengths[i], 0));
			EXPECT_EQ(EFAULT, errno);
			EXPECT_EQ(-1, pwrite(disk, self->at + skew, lengths[i], 0));
			EXPECT_EQ(EFAULT, errno);
		}
	}
	EXPECT_EQ(-1, byte_differs(self->at, LENGTH, 0));
	close(disk);
	if (loaded && system("modprobe -r brd"))
		TH_LOG("brd stays loaded");
}

TEST_F(pin, process_vm_readv)
{
	struct iovec local = { .iov_base = self->plain, .iov_len = 4096 };
	struct iovec remote = { .iov_base = self->at, .iov_len = 4096 };
	struct iovec other = { .iov_base = self->plain + 8192, .iov_len = 4096 };

	EXPECT_EQ(4096, process_vm_readv(getpid(), &local, 1, &other, 1, 0));
	EXPECT_EQ(-1, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, self->at[0]);
}

TEST_F(pin, io_uring_buffers)
{
	struct io_uring_params params = {};
	int ring = syscall(__NR_io_uring_setup, 4, &params);
	struct iovec iov = { .iov_base = self->plain, .iov_len = 65536 };

	if (ring < 0)
		SKIP(return, "%s: io_uring_setup: %s", _metadata->name, strerror(errno));
	EXPECT_EQ(0, syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1));
	EXPECT_EQ(0, syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	iov.iov_base = self->at;
	EXPECT_EQ(-1, syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1));
	EXPECT_EQ(EFAULT, errno);
	iov.iov_len = LENGTH;
	EXPECT_EQ(-1, syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1));
	EXPECT_EQ(EFAULT, errno);
	close(ring);
}

TEST_F(pin, shared_futex)
{
	struct timespec soon = { .tv_nsec = 1000000 };

	self->plain[0] = 0;
	EXPECT_EQ(-1, syscall(SYS_futex, self->plain, FUTEX_WAIT, 1, &soon, NULL, 0));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, syscall(SYS_futex, self->at, FUTEX_WAIT, 0, &soon, NULL, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, syscall(SYS_futex, self->at, FUTEX_WAKE, 1, NULL, NULL, 0));
	EXPECT_EQ(EFAULT, errno);
}

static bool pages_are(const unsigned char *at, unsigned char value)
{
	size_t i;

	for (i = 0; i < LENGTH; i += 4096)
		if (at[i] != value || at[i + 4095] != value)
			return false;
	return true;
}

/* No pinning, but tries at pages all the same. */
TEST_F(pin, advice_and_locks_change_nothing)
{
	static const struct {
		int advice;
		const char *name;
	} advices[] = {
		{ MADV_DONTNEED, "DONTNEED" },
		{ MADV_WILLNEED, "WILLNEED" },
		{ MADV_COLD, "COLD" },
		{ MADV_PAGEOUT, "PAGEOUT" },
		{ MADV_FREE, "FREE" },
		{ MADV_REMOVE, "REMOVE" },
		{ MADV_HUGEPAGE, "HUGEPAGE" },
		{ MADV_NOHUGEPAGE, "NOHUGEPAGE" },
		{ MADV_MERGEABLE, "MERGEABLE" },
		{ MADV_DOFORK, "DOFORK" },
		{ MADV_DODUMP, "DODUMP" },
		{ 22, "POPULATE_READ" },
		{ 23, "POPULATE_WRITE" },
		{ 25, "COLLAPSE" },
		{ MADV_HWPOISON, "HWPOISON" },
		{ 101, "SOFT_OFFLINE" },
	};
	unsigned char residency[LENGTH / 4096];
	pid_t pid;
	size_t i;
	int rc;

	if (!variant->flags)
		memset(self->at, 0xa5, LENGTH);
	for (i = 0; i < ARRAY_SIZE(advices); i++) {
		rc = madvise(self->at, LENGTH, advices[i].advice);
		TH_LOG("%s: %s", advices[i].name, rc ? strerror(errno) : "0");
		/* Parts of a reservation as well. */
		madvise(self->at + 4096, 8192, advices[i].advice);
		ASSERT_TRUE(pages_are(self->at, variant->flags ? 0 : 0xa5));
	}
	/* The child must not have got it after all. */
	pid = fork_child();
	if (!pid)
		_exit(try_read(self->at, NULL) == SIGSEGV ? 0 : 1);
	EXPECT_EQ(0, wait_child(pid));

	rc = mlock(self->at, 4096);
	TH_LOG("mlock: %s", rc ? strerror(errno) : "0");
	munlock(self->at, 4096);
	rc = msync(self->at, LENGTH, MS_SYNC);
	TH_LOG("msync: %s", rc ? strerror(errno) : "0");
	rc = mincore(self->at, LENGTH, residency);
	TH_LOG("mincore: %s", rc ? strerror(errno) : "0");
	EXPECT_EQ(-1, byte_differs(self->at, LENGTH, variant->flags ? 0 : 0xa5));
}

TEST_HARNESS_MAIN
