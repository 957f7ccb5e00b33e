// SPDX-License-Identifier: GPL-2.0-only
/*
 * SIGKILL at any moment, to any participant: each round has an exporter, an
 * importer, a process that copies, and a child of the exporter that holds its
 * descriptor. All are busy when they are killed, in random order; afterwards
 * everything is back.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "fixture.h"

#define ROUNDS 50

struct cast {
	int shares[2];
	int up[2];
	int32_t importer;
	uint64_t seed;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

/* A second thread that faults where the first maps and unmaps. */
static void *touch_everything(void *arg)
{
	char *base = arg;
	unsigned int i;

	for (i = 0;; i++)
		try_write(base + i % 8 * GRANULE + i % 4096, i);
	return NULL;
}

static void be_exporter(struct cast *cast)
{
	int fd = open_client(NULL);
	char *base = reserve(fd, 8 * GRANULE);
	pthread_t thread;
	uint32_t handle;
	uint64_t share;
	size_t length;
	pid_t holder;
	char *at;

	/* Not to die with its parent: only the descriptor matters. */
	holder = fork();
	if (!holder)
		for (;;)
			pause();
	send_u64(cast->up[1], holder);
	if (base == MAP_FAILED || pthread_create(&thread, NULL, touch_everything, base))
		_exit(1);
	for (;;) {
		length = (1 + next_random(&cast->seed) % 4) * GRANULE;
		at = base + next_random(&cast->seed) % 5 * GRANULE;
		if (alloc(fd, 0, length, &handle))
			_exit(2);
		if (export_handle(fd, handle, 0, &share) ||
		    whitelist(fd, share, &cast->importer, 1))
			_exit(3);
		/* Without waiting for a reader. */
		if (write(cast->shares[1], &share, sizeof(share)) < 0 && errno != EAGAIN)
			_exit(4);
		if (map(fd, handle, at, length, next_random(&cast->seed) % 4 ? 0 :
			ACLMEM_MAP_READ_ONLY))
			_exit(5);
		try_write(at, 1);
		if (next_random(&cast->seed) % 2)
			free_handle(fd, handle);
		unmap(fd, at);
		/* Else over-freed or gone, as it may be. */
		free_handle(fd, handle);
	}
}

static void be_importer(struct cast *cast)
{
	int fd = open_client(NULL);
	size_t length;
	uint32_t handle;
	uint64_t share;
	char *at;

	send_u64(cast->up[1], getpid());
	while (receive_u64(cast->shares[0], &share)) {
		struct aclmem_handle_info info;

		/* The exporter may have let go of it long ago. */
		if (import_share(fd, share, 0, &handle))
			continue;
		if (handle_info(fd, handle, &info))
			_exit(2);
		length = info.out_length;
		at = reserve(fd, length);
		if (at == MAP_FAILED || map(fd, handle, at, length, 0))
			_exit(3);
		memset(at, 1, 4096);
		copy(fd, at + 4096, at, GRANULE / 2);
		/* Some stay until the end. */
		if (next_random(&cast->seed) % 8 == 0)
			continue;
		if (unmap_old(fd, at, length, handle))
			_exit(4);
	}
	_exit(0);
}

static void be_copier(struct cast *cast)
{
	int fd = open_client(NULL);
	char *device = map_new(fd, 4 * GRANULE, 0, NULL), *host;
	uint64_t dst[64], src[64], length[64];
	unsigned int i;

	host = mmap(NULL, 4 * GRANULE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (device == MAP_FAILED || host == MAP_FAILED)
		_exit(1);
	send_u64(cast->up[1], getpid());
	for (;;) {
		bool out = next_random(&cast->seed) % 2;

		for (i = 0; i < ARRAY_SIZE(dst); i++) {
			uint64_t a = next_random(&cast->seed) % (3 * GRANULE);
			uint64_t b = next_random(&cast->seed) % (3 * GRANULE);

			dst[i] = (uintptr_t)(out ? host : device) + a;
			src[i] = (uintptr_t)(out ? device : host) + b;
			length[i] = next_random(&cast->seed) % GRANULE;
		}
		if (copy_items(fd, dst, src, length, ARRAY_SIZE(dst), NULL))
			_exit(2);
		if (fill(fd, device, 4 * GRANULE, 7))
			_exit(3);
	}
}

static pid_t start(struct cast *cast, void (*be)(struct cast *))
{
	uint64_t pid;
	pid_t child = fork_child();

	if (!child) {
		catch_faults();
		be(cast);
	}
	/* It answers with its own number, or the exporter its child's. */
	if (child < 0 || !receive_u64(cast->up[0], &pid))
		return -1;
	return pid;
}

TEST_F_TIMEOUT(client, two_hundred_participants, 150)
{
	const char *chosen = getenv("ACLMEM_TEST_SEED");
	uint64_t seed = chosen ? strtoull(chosen, NULL, 0) : (uint64_t)now_ms(), begun, slowest = 0;
	unsigned int n, i, left;
	pid_t pids[4], children[3];
	struct cast cast;

	TH_LOG("ACLMEM_TEST_SEED=%llu", (unsigned long long)seed);
	for (n = 0; n < rounds(ROUNDS); n++) {
		ASSERT_EQ(0, pipe2(cast.shares, O_CLOEXEC));
		ASSERT_EQ(0, pipe2(cast.up, O_CLOEXEC));
		fcntl(cast.shares[1], F_SETFL, O_NONBLOCK);
		cast.seed = next_random(&seed);
		pids[0] = start(&cast, be_importer);
		children[0] = pids[0];
		ASSERT_LT(0, pids[0]);
		cast.importer = pids[0];
		pids[1] = start(&cast, be_copier);
		children[1] = pids[1];
		ASSERT_LT(0, pids[1]);
		children[2] = fork_child();
		if (!children[2]) {
			catch_faults();
			be_exporter(&cast);
		}
		ASSERT_TRUE(receive_u64(cast.up[0], &begun));
		pids[2] = children[2];
		pids[3] = begun;

		usleep(next_random(&seed) % 30000);
		begun = now_ms();
		for (left = 4; left; left--) {
			i = next_random(&seed) % left;
			ASSERT_EQ(0, kill(pids[i], SIGKILL))
				TH_LOG("round %u: %d", n, pids[i]);
			pids[i] = pids[left - 1];
			if (next_random(&seed) % 2)
				usleep(next_random(&seed) % 5000);
		}
		for (i = 0; i < 3; i++)
			ASSERT_EQ(256 + SIGKILL, wait_child(children[i]))
				TH_LOG("round %u, participant %u", n, i);
		ASSERT_TRUE(used_becomes(self->fd, self->used));
		if (now_ms() - begun > slowest)
			slowest = now_ms() - begun;
		close(cast.shares[0]);
		close(cast.shares[1]);
		close(cast.up[0]);
		close(cast.up[1]);
	}
	TH_LOG("slowest round: %llu ms", (unsigned long long)slowest);
	EXPECT_GT(5000, slowest);
}

TEST_HARNESS_MAIN
