// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an ordinary program may do in excess: signals all the time, descriptors by
 * the hundred, host memory until it's refused. Without the usual fixture, whose
 * descriptor would be bound already.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "helpers.h"

#define VMAS 300
#define MANY 500

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Registering with the address space takes time by its number of areas, and the
 * kernel gives up when any signal is pending.
 */
TEST(a_signal_is_no_reason_to_refuse_the_first_command)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = count_signal };
	struct aclmem_query query;
	int i, fd, failed = 0;
	char *areas;

	fd = open_client(&query);
	if (fd < 0)
		SKIP(return, "no " DEVICE_PATH);
	close(fd);
	areas = mmap(NULL, VMAS * 8192, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, areas);
	for (i = 0; i < VMAS; i++)
		ASSERT_EQ(0, mprotect(areas + i * 8192, 4096, PROT_READ));

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (i = 0; i < 100; i++) {
		fd = open_device();
		ASSERT_LE(0, fd);
		memset(&query, 0, sizeof(query));
		if (command(fd, ACLMEM_QUERY, &query, sizeof(query)))
			failed++;
		close(fd);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	EXPECT_EQ(0, failed);
	/* Else this has shown nothing. */
	EXPECT_LT(20, signals);
	munmap(areas, VMAS * 8192);
}

TEST(many_descriptors_close_in_no_time)
{
	struct aclmem_query query;
	double start, took;
	int ready[2], i, fd;
	pid_t child;
	char byte;

	fd = open_client(&query);
	if (fd < 0)
		SKIP(return, "no " DEVICE_PATH);
	close(fd);
	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		for (i = 0; i < MANY; i++)
			if (open_client(&query) < 0)
				_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(ready[0]);
	start = now_s();
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	took = now_s() - start;
	TH_LOG("%d descriptors closed in %.3f s", MANY, took);
	/* One grace period each would be 5 s and more. */
	EXPECT_GT(2.0, took);
}

/*
 * What one process takes outside devices is limited for all of them together;
 * else the OOM killer would kill those who don't have it.
 */
TEST(host_memory_is_limited)
{
	uint64_t total = 0, kills = 0, after = 0, taken = 0;
	struct aclmem_query query;
	uint32_t handle;
	int fd, rc;

	fd = open_client(&query);
	if (fd < 0)
		SKIP(return, "no " DEVICE_PATH);
	ASSERT_EQ(0, read_number("/proc/meminfo", "MemTotal:", &total));
	read_number("/proc/vmstat", "oom_kill ", &kills);
	for (;;) {
		rc = alloc_at(fd, ACLMEM_LOCATION_HOST, 0, 32 * MIB, &handle);
		if (rc)
			break;
		taken += 32 * MIB;
		ASSERT_GT(total * 1024, taken);
	}
	EXPECT_EQ(-ENOMEM, rc);
	EXPECT_STREQ("CAPACITY", reason_name(last.out_reason));
	EXPECT_GT(32 * MIB, last.out_value);
	EXPECT_GE(total * 1024 / 4, taken);
	EXPECT_LT(0, taken);
	/* A device's memory is counted apart. */
	EXPECT_EQ(0, alloc(fd, 0, 2 * MIB, &handle));
	read_number("/proc/vmstat", "oom_kill ", &after);
	EXPECT_EQ(kills, after);
	close(fd);
}

TEST_HARNESS_MAIN
