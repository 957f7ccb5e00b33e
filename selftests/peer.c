// SPDX-License-Identifier: GPL-2.0-only
/* The other process of the tests that need two; see peer.h. */
#include <linux/sched.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

struct call {
	uint64_t op;
	uint64_t args[3];
};

struct answer {
	int64_t rc;
	uint64_t reason;
	uint64_t reason_value;
	uint64_t value;
};

struct import {
	int fd;
	uint64_t share;
	uint32_t device;
	struct answer *answer;
};

static void *do_import(void *arg)
{
	struct import *import = arg;
	struct answer *answer = import->answer;
	uint32_t handle = 0;

	answer->rc = import_share(import->fd, import->share, import->device, &handle);
	answer->reason = last.out_reason;
	answer->reason_value = last.out_value;
	answer->value = handle;
	return NULL;
}

static void import_in_child(struct import *import)
{
	struct answer answer = {};
	int pipes[2];
	pid_t pid;

	import->answer->rc = -EIO;
	if (pipe(pipes))
		return;
	pid = fork_child();
	if (!pid) {
		import->fd = open_client(NULL);
		import->answer = &answer;
		do_import(import);
		_exit(write(pipes[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(pipes[1]);
	if (read(pipes[0], &answer, sizeof(answer)) == sizeof(answer))
		*import->answer = answer;
	close(pipes[0]);
	waitpid(pid, NULL, 0);
}

static unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static int map_somewhere(int fd, uint32_t handle, size_t length, uint32_t flags,
			 uint64_t *address)
{
	void *at = reserve(fd, length);
	int rc;

	if (at == MAP_FAILED)
		return -errno;
	rc = map(fd, handle, at, length, flags);
	if (rc)
		munmap(at, length);
	*address = (uintptr_t)at;
	return rc;
}

static void import_as(int fd, const struct call *call, struct answer *answer)
{
	struct import import = {
		.fd = fd,
		.share = call->args[0],
		.device = call->args[1],
		.answer = answer,
	};
	pthread_t thread;

	if (call->op == PEER_IMPORT_IN_CHILD)
		import_in_child(&import);
	else if (call->op == PEER_IMPORT)
		do_import(&import);
	else if (!pthread_create(&thread, NULL, do_import, &import))
		pthread_join(thread, NULL);
	/* Reported by the importer, not by this thread. */
	last.out_reason = answer->reason;
	last.out_value = answer->reason_value;
}

static void obey(int fd, const struct call *call, struct answer *answer)
{
	struct aclmem_handle_info info = {};
	void *at = (void *)call->args[0];
	int32_t pid = call->args[1];
	unsigned char byte = 0;
	uint32_t handle = 0;

	memset(&last, 0, sizeof(last));
	switch ((enum peer_op)call->op) {
	case PEER_ALLOC:
		answer->rc = alloc(fd, 0, call->args[0], &handle);
		answer->value = handle;
		break;
	case PEER_FREE:
		answer->rc = free_handle(fd, call->args[0]);
		break;
	case PEER_EXPORT:
		answer->rc = export_handle(fd, call->args[0], call->args[1], &answer->value);
		break;
	case PEER_WHITELIST:
		answer->rc = whitelist(fd, call->args[0], &pid, 1);
		break;
	case PEER_IMPORT:
	case PEER_IMPORT_IN_THREAD:
	case PEER_IMPORT_IN_CHILD:
		import_as(fd, call, answer);
		break;
	case PEER_MAP:
		answer->rc = map_somewhere(fd, call->args[0], call->args[1],
					   call->args[2], &answer->value);
		break;
	case PEER_UNMAP:
		answer->rc = unmap(fd, at);
		if (!answer->rc && munmap(at, call->args[1]))
			answer->rc = -errno;
		break;
	case PEER_READ:
		answer->rc = try_read(at, &byte);
		answer->value = byte;
		break;
	case PEER_WRITE:
		answer->rc = try_write(at, call->args[1]);
		break;
	case PEER_USERS:
		answer->rc = handle_info(fd, call->args[0], &info);
		answer->value = info.out_users;
		break;
	case PEER_DEVICE:
		answer->rc = handle_info(fd, call->args[0], &info);
		answer->value = info.out_location.id;
		break;
	case PEER_OWN_PID:
		answer->value = getpid();
		break;
	case PEER_DESCRIPTORS:
		answer->value = open_descriptors();
		break;
	case PEER_LIMIT:
		answer->rc = setrlimit(RLIMIT_NOFILE,
				       &(struct rlimit){ call->args[0], call->args[0] });
		break;
	default:
		answer->rc = -ENOSYS;
	}
	answer->reason = last.out_reason;
	answer->reason_value = last.out_value;
}

static void be_peer(int from)
{
	struct aclmem_query query;
	struct call call;
	int fd, socket;

	/* Nothing else is inherited: another peer's socket would keep that up. */
	socket = dup2(from, STDERR_FILENO + 1);
	close_range(socket + 1, ~0U, 0);
	fd = open_client(&query);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	catch_faults();
	if (fd < 0 || !send_u64(socket, query.out_tgid))
		_exit(1);
	while (recv(socket, &call, sizeof(call), MSG_WAITALL) == sizeof(call)) {
		struct answer answer = {};

		obey(fd, &call, &answer);
		if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			_exit(1);
	}
	_exit(0);
}

int peer_start(struct peer *peer, unsigned long flags, pid_t tid)
{
	struct clone_args args = {
		.flags = flags,
		.exit_signal = SIGCHLD,
		.set_tid = tid ? (uintptr_t)&tid : 0,
		.set_tid_size = tid ? 1 : 0,
	};
	int sockets[2];
	uint64_t tgid;

	memset(peer, 0, sizeof(*peer));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	peer->pid = syscall(__NR_clone3, &args, sizeof(args));
	if (!peer->pid)
		be_peer(sockets[1]);
	close(sockets[1]);
	peer->socket = sockets[0];
	if (peer->pid < 0 || !receive_u64(peer->socket, &tgid)) {
		int rc = peer->pid < 0 ? -errno : -EIO;

		close(peer->socket);
		return rc;
	}
	peer->tgid = tgid;
	return 0;
}

int peer_call(struct peer *peer, enum peer_op op, uint64_t a, uint64_t b, uint64_t c)
{
	struct call call = { .op = op, .args = { a, b, c } };
	struct answer answer;

	if (send(peer->socket, &call, sizeof(call), MSG_NOSIGNAL) != sizeof(call) ||
	    recv(peer->socket, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		return -EIO;
	peer->reason = answer.reason;
	peer->reason_value = answer.reason_value;
	peer->value = answer.value;
	return answer.rc;
}

bool peer_stop(struct peer *peer)
{
	close(peer->socket);
	return wait_child(peer->pid) == 0;
}

bool peer_kill(struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	close(peer->socket);
	return wait_child(peer->pid) == 256 + SIGKILL;
}
