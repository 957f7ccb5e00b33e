// SPDX-License-Identifier: GPL-2.0-only
/*
 * A descriptor serves the address space that opened it: not a child's, not a
 * stranger's, not the next program's. What a process owns ends with it, and
 * with nobody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fixture.h"

/* Every command, with arguments that would work, or do harm, in the owner. */
static int refused_commands(int fd, char *at, uint32_t handle)
{
	static const struct {
		unsigned int cmd;
		size_t size;
	} commands[] = {
		{ ACLMEM_QUERY, ACLMEM_QUERY_SIZE },
		{ ACLMEM_DEVICE, ACLMEM_DEVICE_SIZE },
		{ ACLMEM_ALLOC, ACLMEM_ALLOC_SIZE },
		{ ACLMEM_FREE, ACLMEM_FREE_SIZE },
		{ ACLMEM_RETAIN, ACLMEM_RETAIN_SIZE },
		{ ACLMEM_MAP, ACLMEM_MAP_SIZE },
		{ ACLMEM_UNMAP, ACLMEM_UNMAP_SIZE },
		{ ACLMEM_RELEASE, ACLMEM_RELEASE_SIZE },
		{ ACLMEM_ADDRESS, ACLMEM_ADDRESS_SIZE },
		{ ACLMEM_EXPORT, ACLMEM_EXPORT_SIZE },
		{ ACLMEM_WHITELIST, ACLMEM_WHITELIST_SIZE },
		{ ACLMEM_IMPORT, ACLMEM_IMPORT_SIZE },
		{ ACLMEM_COPY, ACLMEM_COPY_SIZE },
		{ ACLMEM_FILL, ACLMEM_FILL_SIZE },
		{ ACLMEM_HANDLE, ACLMEM_HANDLE_SIZE },
	};
	union {
		struct aclmem_head head;
		struct aclmem_free free;
		struct aclmem_unmap unmap;
		struct aclmem_handle_info handle;
		struct aclmem_fill fill;
		char space[256];
	} arg;
	size_t i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		memset(&arg, 0, sizeof(arg));
		if (commands[i].cmd == ACLMEM_FREE)
			arg.free.handle = handle;
		else if (commands[i].cmd == ACLMEM_UNMAP)
			arg.unmap.address = (uintptr_t)at;
		else if (commands[i].cmd == ACLMEM_HANDLE)
			arg.handle.handle = handle;
		else if (commands[i].cmd == ACLMEM_FILL)
			arg.fill = (struct aclmem_fill){ .address = (uintptr_t)at, .length = 1 };
		rc = command(fd, commands[i].cmd, &arg, commands[i].size);
		if (rc != -EPERM || last.out_reason != ACLMEM_REASON_WRONG_PROCESS) {
			fprintf(stderr, "# command %zu: %s, %s\n", i, strerror(-rc),
				reason_name(last.out_reason));
			return i + 1;
		}
	}
	if (reserve(fd, GRANULE) != MAP_FAILED)
		return 100;
	return 0;
}

TEST_F(client, a_descriptor_is_useless_in_a_forked_child)
{
	uint32_t handle;
	char *at = map_new(self->fd, GRANULE, 0, &handle);
	pid_t pid;

	ASSERT_NE(MAP_FAILED, at);
	at[0] = 5;
	pid = fork_child();
	if (!pid) {
		int rc = refused_commands(self->fd, at, handle);

		/* Nor is the reservation there. */
		if (!rc && try_read(at, NULL) != SIGSEGV)
			rc = 101;
		close(self->fd);
		_exit(rc);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(5, at[0]);
	EXPECT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, a_descriptor_is_useless_to_a_stranger)
{
	uint32_t handle;
	char *at = map_new(self->fd, GRANULE, 0, &handle);
	int sockets[2], fd;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, at);
	at[0] = 5;
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork_child();
	if (!pid) {
		close(self->fd);
		fd = receive_fd(sockets[1]);
		_exit(fd < 0 ? 200 : refused_commands(fd, at, handle));
	}
	ASSERT_TRUE(send_fd(sockets[0], self->fd));
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(5, at[0]);
	EXPECT_EQ(0, unmap_old(self->fd, at, GRANULE, handle));
}

/* An unused descriptor belongs to its opener already, not to its first user. */
TEST_F(client, a_fresh_descriptor_is_useless_in_a_child)
{
	int fd = open_device();
	pid_t pid;

	ASSERT_GE(fd, 0);
	pid = fork_child();
	if (!pid)
		_exit(refused_commands(fd, NULL, 1));
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_NE(MAP_FAILED, reserve(self->fd, GRANULE));
	close(fd);
}

TEST_F(client, a_descriptor_is_useless_after_exec)
{
	char number[16], program[256];
	uint32_t handle;
	ssize_t n;
	pid_t pid;
	int fd;

	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	ASSERT_LT(0, n);
	program[n] = 0;
	pid = fork_child();
	if (!pid) {
		fd = open_client(NULL);
		if (fd < 0 || alloc(fd, 0, GRANULE, &handle) || fcntl(fd, F_SETFD, 0))
			_exit(99);
		snprintf(number, sizeof(number), "%d", fd);
		execl(program, program, "--refused", number, NULL);
		_exit(98);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

/* exec() ends the address space and so all it owned, descriptor or not. */
TEST_F(client, exec_releases_everything)
{
	uint64_t ready;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	pid = fork_child();
	if (!pid) {
		int fd = open_client(NULL);
		char *at = map_new(fd, 4 * GRANULE, 0, NULL);

		if (at == MAP_FAILED || fcntl(fd, F_SETFD, 0))
			_exit(1);
		at[0] = 1;
		send_u64(pipes[1], 1);
		execlp("sleep", "sleep", "60", NULL);
		_exit(2);
	}
	close(pipes[1]);
	ASSERT_TRUE(receive_u64(pipes[0], &ready));
	/* The end of the pipe is the exec. */
	EXPECT_FALSE(receive_u64(pipes[0], &ready));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
	kill(pid, SIGKILL);
	wait_child(pid);
}

TEST_F(client, a_childs_exit_leaves_the_parents_objects)
{
	uint32_t handle;
	char *at = map_new(self->fd, 2 * GRANULE, 0, &handle);
	unsigned int i;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, at);
	pattern_set(at, 2 * GRANULE, 9);
	for (i = 0; i < 3; i++) {
		pid = fork_child();
		if (!pid) {
			if (i == 1)
				close_range(3, ~0U, 0);
			if (i == 2) {
				unmap(self->fd, at);
				free_handle(self->fd, handle);
				munmap(at, 2 * GRANULE);
			}
			_exit(0);
		}
		EXPECT_EQ(0, wait_child(pid));
		EXPECT_EQ(-1, pattern_differs(at, 2 * GRANULE, 9));
		EXPECT_EQ(self->used + 2 * GRANULE, used(self->fd));
	}
	EXPECT_EQ(0, unmap_old(self->fd, at, 2 * GRANULE, handle));
	EXPECT_EQ(self->used, used(self->fd));
}

/* The owner of memory, with a child that holds the descriptor meanwhile. */
static void owner(int up, bool exits)
{
	int fd = open_client(NULL), other = open_client(NULL);
	char *at = map_new(fd, 8 * GRANULE, 0, NULL);
	uint32_t handle;
	uint64_t share;
	pid_t pid;

	if (at == MAP_FAILED || alloc(other, 0, 3 * GRANULE, &handle) ||
	    alloc(fd, 0, GRANULE, &handle) || export_handle(fd, handle, 0, &share))
		_exit(1);
	at[0] = 1;
	/* Not bound to this process' life. */
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	send_u64(up, pid);
	if (exits)
		_exit(0);
	for (;;)
		at[3 * GRANULE]++;
}

TEST_F(client, all_is_released_though_a_child_holds_the_descriptor)
{
	uint64_t keeper;
	int exits, up[2];
	pid_t pid;

	for (exits = 0; exits < 2; exits++) {
		ASSERT_EQ(0, pipe2(up, O_CLOEXEC));
		pid = fork_child();
		if (!pid)
			owner(up[1], exits);
		close(up[1]);
		ASSERT_TRUE(receive_u64(up[0], &keeper));
		if (!exits) {
			EXPECT_EQ(self->used + 12 * GRANULE, used(self->fd));
			ASSERT_EQ(0, kill(pid, SIGKILL));
		}
		EXPECT_EQ(exits ? 0 : 256 + SIGKILL, wait_child(pid));
		EXPECT_TRUE(used_becomes(self->fd, self->used));
		/* The keeper is there yet, and with it the descriptor. */
		EXPECT_EQ(0, kill(keeper, 0));
		ASSERT_EQ(0, kill(keeper, SIGKILL));
		close(up[0]);
	}
}

/*
 * Another process in the same address space is served as a thread is, and its
 * end isn't the end of that.
 */
struct guest {
	int fd;
	uint32_t handle;
	uint32_t imported;
	uint64_t share;
	int rc;
};

static int be_guest(void *arg)
{
	struct guest *guest = arg;

	guest->rc = alloc(guest->fd, 0, GRANULE, &guest->handle);
	/* It isn't the exporter; whether it may import, it's no way to a leak. */
	import_share(guest->fd, guest->share, 0, &guest->imported);
	return 0;
}

TEST_F(client, a_process_in_the_same_address_space_is_served)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct guest guest = { .fd = self->fd };
	uint32_t handle;
	pid_t pid;

	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &handle));
	ASSERT_EQ(0, export_handle(self->fd, handle, ACLMEM_EXPORT_ANY_PROCESS, &guest.share));
	pid = clone(be_guest, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &guest);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(0, guest.rc);
	EXPECT_EQ(self->used + 2 * GRANULE, used(self->fd));
	EXPECT_EQ(0, free_handle(self->fd, guest.handle));
	EXPECT_EQ(0, free_handle(self->fd, handle));
	if (guest.imported)
		EXPECT_EQ(0, free_handle(self->fd, guest.imported));
	EXPECT_EQ(self->used, used(self->fd));
}

/* A thread that outlives main() keeps all. */
static void *linger(void *arg)
{
	char *at = arg;

	usleep(200000);
	_exit(at[0] == 8 ? 0 : 1);
}

TEST_F(client, the_first_thread_may_go_first)
{
	pthread_t thread;
	pid_t pid;

	pid = fork_child();
	if (!pid) {
		int fd = open_client(NULL);
		char *at = map_new(fd, GRANULE, 0, NULL);

		if (at == MAP_FAILED)
			_exit(2);
		at[0] = 8;
		pthread_create(&thread, NULL, linger, at);
		pthread_exit(NULL);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

TEST_F(client, closing_the_descriptor_leaves_the_mappings)
{
	int fd = open_client(NULL);
	uint32_t handle;
	char *at, *other;

	ASSERT_GE(fd, 0);
	at = map_new(fd, GRANULE, 0, &handle);
	ASSERT_NE(MAP_FAILED, at);
	at[0] = 3;
	close(fd);
	EXPECT_EQ(3, at[0]);
	EXPECT_EQ(0, at[4096]);
	/* Its handles aren't those of another descriptor of the process. */
	EXPECT_REFUSED(ENOENT, HANDLE, free_handle(self->fd, handle));
	EXPECT_REFUSED(ENXIO, NOT_MAPPED, unmap(self->fd, at));
	other = map_new(self->fd, GRANULE, 0, NULL);
	EXPECT_NE(MAP_FAILED, other);
	EXPECT_EQ(0, munmap(at, GRANULE));
	EXPECT_TRUE(used_becomes(self->fd, self->used + GRANULE));
}

/* Threads open, use and close descriptors, and meet at the first and the last. */
static void *come_and_go(void *arg)
{
	unsigned int n, *failures = arg;
	uint32_t handle;
	char *at;
	int fd;

	for (n = 0; n < rounds(150); n++) {
		fd = open_client(NULL);
		if (fd < 0) {
			__atomic_fetch_add(failures, 1, __ATOMIC_RELAXED);
			continue;
		}
		if (n % 3 == 0 && alloc(fd, 0, GRANULE, &handle))
			__atomic_fetch_add(failures, 1, __ATOMIC_RELAXED);
		if (n % 3 == 1) {
			at = map_new(fd, GRANULE, 0, NULL);
			if (at == MAP_FAILED || try_write(at, 1) || munmap(at, GRANULE))
				__atomic_fetch_add(failures, 1, __ATOMIC_RELAXED);
		}
		close(fd);
	}
	return NULL;
}

TEST_F_TIMEOUT(client, descriptors_come_and_go_in_threads, 60)
{
	pthread_t threads[4];
	unsigned int failures = 0;
	pid_t pid;
	size_t i;

	/* In a process without another descriptor, and then in this one. */
	pid = fork_child();
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, come_and_go, &failures));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	if (!pid)
		_exit(failures ? 1 : 0);
	EXPECT_EQ(0, failures);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

/* Started anew with a descriptor of its former life. */
static void __attribute__((constructor)) refused_main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--refused"))
		_exit(refused_commands(atoi(argv[2]), NULL, 1));
}

TEST_HARNESS_MAIN
