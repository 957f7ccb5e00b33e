// SPDX-License-Identifier: GPL-2.0-only
/* Patterns in memory, messages between processes, files; see helpers.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

/* Every 8 bytes of a pattern are different from all others. */
static uint64_t pattern_word(uint64_t index, uint64_t seed)
{
	return (index + 1) * 0x9e3779b97f4a7c15ULL ^ seed * 0xc2b2ae3d27d4eb4fULL;
}

void pattern_set(void *address, size_t length, uint64_t seed)
{
	unsigned char *to = address;
	uint64_t word;
	size_t i;

	for (i = 0; i < length; i += sizeof(word)) {
		word = pattern_word(i / sizeof(word), seed);
		memcpy(to + i, &word,
		       length - i < sizeof(word) ? length - i : sizeof(word));
	}
}

ssize_t pattern_differs(const void *address, size_t length, uint64_t seed)
{
	const unsigned char *from = address;
	size_t i, n;
	uint64_t word;

	for (i = 0; i < length; i += sizeof(word)) {
		word = pattern_word(i / sizeof(word), seed);
		n = length - i < sizeof(word) ? length - i : sizeof(word);
		if (memcmp(from + i, &word, n))
			return i;
	}
	return -1;
}

ssize_t byte_differs(const void *address, size_t length, unsigned char value)
{
	const unsigned char *from = address;
	size_t i;

	if (!length)
		return -1;
	/* All are equal if the first is right and each equals the next. */
	if (from[0] == value && !memcmp(from, from + 1, length - 1))
		return -1;
	for (i = 0; i < length; i++)
		if (from[i] != value)
			return i;
	return -1;
}

bool send_u64(int fd, uint64_t value)
{
	ssize_t n;

	do {
		n = write(fd, &value, sizeof(value));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(value);
}

bool receive_u64(int fd, uint64_t *value)
{
	ssize_t n;

	do {
		n = read(fd, value, sizeof(*value));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(*value);
}

bool send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1;
}

int receive_fd(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	cmsg = CMSG_FIRSTHDR(&message);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

pid_t fork_child(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

int wait_child(pid_t pid)
{
	uint64_t deadline = now_ms() + 20000;
	int status;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
		if (now_ms() > deadline) {
			fprintf(stderr, "# process %d does not end\n", pid);
			kill(pid, SIGKILL);
			return -1;
		}
		usleep(1000);
	}
	if (ended != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -errno;
	close(fd);
	return rc;
}

/* The number that follows the key in a file of lines, or the first of all. */
int read_number(const char *path, const char *key, uint64_t *value)
{
	FILE *file = fopen(path, "re");
	char line[256];
	size_t length = key ? strlen(key) : 0;
	int rc = -ENOENT;

	if (!file)
		return -errno;
	while (rc && fgets(line, sizeof(line), file)) {
		if (key && strncmp(line, key, length))
			continue;
		*value = strtoull(line + length, NULL, 10);
		rc = 0;
	}
	fclose(file);
	return rc;
}
