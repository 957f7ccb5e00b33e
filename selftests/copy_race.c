// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies beside everything else: unmap and free at the same time, memory of the
 * caller that is served by user space and so takes as long as that likes, and
 * fatal signals.
 */
#include <linux/userfaultfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "fixture.h"

#define LENGTH (2 * GRANULE)

struct copier {
	int fd;
	unsigned char *device;
	unsigned char *host;
	atomic_int stop;
	atomic_uint good, refused, strange;
	atomic_uint strange_reason;
	int rc;
};

static void count(struct copier *copier, int rc)
{
	if (!rc)
		atomic_fetch_add(&copier->good, 1);
	else if (rc == -ENXIO && (last.out_reason == ACLMEM_REASON_UNMAPPED ||
				  last.out_reason == ACLMEM_REASON_DEVICE_END ||
				  last.out_reason == ACLMEM_REASON_NOT_RESERVED))
		atomic_fetch_add(&copier->refused, 1);
	else if (rc == -EINVAL && last.out_reason == ACLMEM_REASON_HOST_TO_HOST)
		/* The reservation itself was away. */
		atomic_fetch_add(&copier->refused, 1);
	else if (!atomic_fetch_add(&copier->strange, 1))
		atomic_store(&copier->strange_reason, last.out_reason);
}

static void *copy_always(void *arg)
{
	static __thread unsigned char own[LENGTH];
	struct copier *copier = arg;
	unsigned int i;

	for (i = 0; !atomic_load(&copier->stop); i++) {
		switch (i % 4) {
		case 0:
			count(copier, copy(copier->fd, copier->device + 9, own, LENGTH - 9));
			break;
		case 1:
			count(copier, copy(copier->fd, own, copier->device + 9, LENGTH - 9));
			break;
		case 2:
			count(copier, copy(copier->fd, copier->device + GRANULE,
					   copier->device, GRANULE));
			break;
		default:
			count(copier, fill(copier->fd, copier->device + 1, LENGTH - 1, i & 0xff));
		}
	}
	return NULL;
}

TEST_F_TIMEOUT(client, unmap_and_free_during_copies, 60)
{
	struct copier copier = { .fd = self->fd };
	pthread_t threads[3];
	uint32_t handle;
	unsigned int i;

	copier.device = reserve(self->fd, LENGTH);
	ASSERT_NE(MAP_FAILED, (void *)copier.device);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, copy_always, &copier));
	for (i = 0; i < rounds(400); i++) {
		ASSERT_EQ(0, alloc(self->fd, 0, LENGTH, &handle));
		ASSERT_EQ(0, map(self->fd, handle, copier.device, LENGTH, 0));
		ASSERT_EQ(0, free_handle(self->fd, handle));
		if (i % 4)
			sched_yield();
		if (i % 8 == 7)
			usleep(1000);
		ASSERT_EQ(0, unmap(self->fd, copier.device));
		if (i % 16)
			continue;
		/* The place itself goes, and comes back. */
		ASSERT_EQ(0, munmap(copier.device, LENGTH));
		ASSERT_EQ(copier.device, reserve_at(self->fd, copier.device, LENGTH));
	}
	atomic_store(&copier.stop, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, atomic_load(&copier.strange))
		TH_LOG("first: %s", reason_name(atomic_load(&copier.strange_reason)));
	EXPECT_LT(0, atomic_load(&copier.good));
	EXPECT_LT(0, atomic_load(&copier.refused));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

/* Memory whose first touch waits for this test to answer. */
static void *slow_memory(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	*uffd = syscall(__NR_userfaultfd, O_CLOEXEC);
	reg.range.start = (uintptr_t)at;
	reg.range.len = LENGTH;
	if (*uffd < 0 || ioctl(*uffd, UFFDIO_API, &api) ||
	    ioctl(*uffd, UFFDIO_REGISTER, &reg))
		return NULL;
	return at;
}

static void wait_for_fault(int uffd)
{
	struct uffd_msg message;

	while (read(uffd, &message, sizeof(message)) < 0 && errno == EINTR)
		;
}

static void answer_fault(int uffd, void *at)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)at & ~4095UL, .len = 4096 },
	};

	ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
}

static void *copy_slowly(void *arg)
{
	struct copier *copier = arg;

	copier->rc = copy(copier->fd, copier->device, copier->host, 4096);
	return NULL;
}

/* No lock is held while the caller's memory is touched. */
TEST_F(client, a_copy_that_waits_holds_up_nobody)
{
	struct copier copier = { .fd = self->fd };
	unsigned char *other;
	uint32_t handle;
	pthread_t thread;
	int uffd;

	copier.host = slow_memory(&uffd);
	if (!copier.host)
		SKIP(return, "%s: no userfaultfd here", _metadata->name);
	copier.device = map_new(self->fd, LENGTH, 0, NULL);
	ASSERT_NE(MAP_FAILED, (void *)copier.device);
	memset(copier.device, 0xff, 4096);
	ASSERT_EQ(0, pthread_create(&thread, NULL, copy_slowly, &copier));
	wait_for_fault(uffd);

	/* All of it, and a test that hangs here is killed by the harness. */
	other = map_new(self->fd, LENGTH, 0, &handle);
	ASSERT_NE(MAP_FAILED, (void *)other);
	other[0] = 1;
	EXPECT_EQ(0, copy(self->fd, other + 4096, other, 4096));
	EXPECT_EQ(0, unmap_old(self->fd, other, LENGTH, handle));
	EXPECT_EQ(0, unmap(self->fd, copier.device));
	EXPECT_EQ(SIGBUS, try_read(copier.device, NULL));
	EXPECT_EQ(0, munmap(copier.device, LENGTH));
	/* The copy holds its memory as long as it needs it. */
	EXPECT_EQ(self->used + LENGTH, used(self->fd));

	answer_fault(uffd, copier.host);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, copier.rc);
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(uffd);
}

/* Nor when it is the command's structure that lets wait. */
static void *query_slowly(void *arg)
{
	struct copier *copier = arg;

	copier->rc = ioctl(copier->fd, ACLMEM_QUERY, copier->host) ? -errno : 0;
	return NULL;
}

TEST_F(client, a_structure_that_waits_holds_up_nobody)
{
	struct copier copier = { .fd = self->fd };
	struct aclmem_query query;
	pthread_t thread;
	uint32_t handle;
	void *at;
	int uffd, fresh;

	copier.host = slow_memory(&uffd);
	if (!copier.host)
		SKIP(return, "%s: no userfaultfd here", _metadata->name);
	ASSERT_EQ(0, pthread_create(&thread, NULL, query_slowly, &copier));
	wait_for_fault(uffd);
	at = map_new(self->fd, GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));
	fresh = open_client(&query);
	EXPECT_LE(0, fresh);
	close(fresh);
	answer_fault(uffd, copier.host);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	/* Of size 0, and the page is writable by now. */
	EXPECT_EQ(-EINVAL, copier.rc);
	close(uffd);
}

TEST_F(client, a_copy_that_waits_can_be_killed)
{
	uint64_t begun;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipes));
	pid = fork_child();
	if (!pid) {
		struct copier copier = { .fd = open_client(NULL) };
		pthread_t thread;
		int uffd;

		copier.host = slow_memory(&uffd);
		copier.device = map_new(copier.fd, LENGTH, 0, NULL);
		if (!copier.host || copier.device == MAP_FAILED)
			_exit(1);
		pthread_create(&thread, NULL, copy_slowly, &copier);
		wait_for_fault(uffd);
		send_u64(pipes[1], 1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	if (!receive_u64(pipes[0], &begun))
		SKIP(return, "%s: no userfaultfd here", _metadata->name);
	EXPECT_EQ(self->used + LENGTH, used(self->fd));
	begun = now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_child(pid));
	EXPECT_GT(5000, now_ms() - begun);
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

/* One call that takes long: many items over and over the same memory. */
static void copy_for_long(int up)
{
	uint32_t count = ACLMEM_MAX_COPY / GRANULE, i;
	int fd = open_client(NULL);
	unsigned char *device = map_new(fd, LENGTH, 0, NULL), *host = malloc(GRANULE);
	uint64_t *dst = calloc(3 * count, sizeof(*dst));
	uint64_t *src = dst + count, *length = src + count;

	if (device == MAP_FAILED)
		_exit(1);
	memset(host, 1, GRANULE);
	for (i = 0; i < count; i++) {
		dst[i] = (uintptr_t)device + i % GRANULE;
		src[i] = (uintptr_t)host;
		length[i] = GRANULE;
	}
	send_u64(up, 1);
	/* As much as one call may: many seconds here, and some anywhere. */
	copy_items(fd, dst, src, length, count, NULL);
	_exit(2);
}

TEST_F_TIMEOUT(client, a_long_copy_ends_at_a_fatal_signal, 60)
{
	unsigned int n;
	uint64_t begun;
	int pipes[2];
	pid_t pid;

	for (n = 0; n < rounds(5); n++) {
		ASSERT_EQ(0, pipe(pipes));
		pid = fork_child();
		if (!pid)
			copy_for_long(pipes[1]);
		close(pipes[1]);
		ASSERT_TRUE(receive_u64(pipes[0], &begun));
		usleep(20000 + n * 30000);
		begun = now_ms();
		ASSERT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, wait_child(pid));
		EXPECT_GT(5000, now_ms() - begun);
		EXPECT_TRUE(used_becomes(self->fd, self->used));
		close(pipes[0]);
	}
}

/* Another's signals that aren't fatal don't tear a copy apart. */
static atomic_uint alarms;

static void on_alarm(int signal)
{
	(void)signal;
	atomic_fetch_add(&alarms, 1);
}

TEST_F_TIMEOUT(client, harmless_signals_do_not_end_a_copy, 60)
{
	struct sigaction action = { .sa_handler = on_alarm };
	static unsigned char host[LENGTH];
	unsigned char *device = map_new(self->fd, LENGTH, 0, NULL);
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = {
		.it_interval.tv_nsec = 2000000,
		.it_value.tv_nsec = 2000000,
	};
	unsigned int n;
	timer_t timer;

	ASSERT_NE(MAP_FAILED, (void *)device);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &often, NULL));
	pattern_set(host, LENGTH, 4);
	for (n = 0; n < rounds(100); n++)
		ASSERT_EQ(0, copy(self->fd, device, host, LENGTH));
	timer_delete(timer);
	EXPECT_LT(0, atomic_load(&alarms));
	EXPECT_EQ(-1, pattern_differs(device, LENGTH, 4));
}

TEST_HARNESS_MAIN
