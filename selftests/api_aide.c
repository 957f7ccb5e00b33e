// SPDX-License-Identifier: GPL-2.0-only
/* Other processes that make calls on demand; see api.h. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api.h"

struct request {
	uint64_t op;
	uint64_t a;
	uint64_t b;
	uint64_t c;
};

struct answer {
	int64_t ret;
	uint64_t out;
};

struct import {
	uint64_t share;
	int32_t device;
	aclrtDrvMemHandle handle;
};

static void *pointer(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

static aclError import_in_thread(void *data)
{
	struct import *import = data;
	aclError ret;

	ret = aclrtSetDevice(import->device);
	if (ret)
		return ret;
	ret = aclrtMemImportFromShareableHandle(import->share, import->device,
						&import->handle);
	aclrtResetDevice(import->device);
	return ret;
}

static aclError import_in_child(struct import *import)
{
	aclError ret = -1;
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		ret = import_in_thread(import);
		_exit(write(ends[1], &ret, sizeof(ret)) != sizeof(ret));
	}
	if (pid < 0 || wait_child(pid) || read(ends[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -1;
	close(ends[0]);
	close(ends[1]);
	return ret;
}

static aclError do_share(const struct request *request, uint64_t *out)
{
	struct import import = { .share = request->a, .device = request->b };
	int32_t pid = request->b;
	aclError ret;

	switch (request->op) {
	case AIDE_EXPORT:
		return aclrtMemExportToShareableHandle(pointer(request->a),
						       ACL_MEM_HANDLE_TYPE_NONE,
						       request->b, out);
	case AIDE_LIST:
		return aclrtMemSetPidToShareableHandle(request->a, &pid, 1);
	case AIDE_IMPORT:
		ret = aclrtMemImportFromShareableHandle(request->a, request->b,
							&import.handle);
		break;
	case AIDE_IMPORT_IN_THREAD:
		ret = in_thread(import_in_thread, &import);
		break;
	default:
		return import_in_child(&import);
	}
	*out = (uintptr_t)import.handle;
	return ret;
}

static aclError upload(void *address, size_t size, uint32_t device, uint64_t *out)
{
	aclrtMemcpyBatchAttr attr = {
		.dstLoc = { .id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
		.srcLoc = { .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	size_t index = 0, fail = 0;
	void *from = malloc(size);
	aclError ret;

	if (!from)
		return -1;
	pattern_set(from, size, device);
	ret = aclrtMemcpyBatch(&address, &size, &from, &size, 1, &attr, &index, 1, &fail);
	free(from);
	*out = fail;
	return ret;
}

static aclError do_memory(const struct request *request, uint64_t *out)
{
	void *address = pointer(request->a);
	aclrtPhysicalMemProp prop = {};
	aclrtDrvMemHandle handle;
	aclError ret;

	switch (request->op) {
	case AIDE_ALLOC:
		ret = new_memory(&handle, request->a, request->b);
		*out = (uintptr_t)handle;
		return ret;
	case AIDE_PROPERTY:
		ret = aclrtMemGetAllocationPropertiesFromHandle(address, &prop);
		*out = prop.location.id;
		return ret;
	case AIDE_FREE:
		return aclrtFreePhysical(address);
	case AIDE_MAP:
		*out = (uintptr_t)map_memory(address, request->b);
		return *out ? 0 : -1;
	case AIDE_UNMAP:
		return end_mapping(address);
	case AIDE_FILL:
		pattern_set(address, request->b, request->c);
		return 0;
	case AIDE_CHECK:
		*out = pattern_differs(address, request->b, request->c);
		return 0;
	case AIDE_UPLOAD:
		return upload(address, request->b, request->c, out);
	default:
		return -1;
	}
}

static void copy_forever(void *address, size_t size)
{
	void *to = malloc(size);

	while (to && !aclrtMemcpy(to, size, address, size, ACL_MEMCPY_DEVICE_TO_HOST))
		;
	_exit(3);
}

static aclError serve_one(const struct request *request, uint64_t *out)
{
	int32_t number = 0;
	uint32_t count = 0;
	aclError ret;

	switch (request->op) {
	case AIDE_SET_DEVICE:
		return aclrtSetDevice(request->a);
	case AIDE_TGID:
		ret = aclrtDeviceGetBareTgid(&number);
		break;
	case AIDE_PID:
		number = getpid();
		ret = 0;
		break;
	case AIDE_COUNT:
		ret = aclrtGetDeviceCount(&count);
		number = count;
		break;
	case AIDE_LOGIC:
		ret = aclrtGetLogicDevIdByUserDevId(request->a, &number);
		break;
	case AIDE_EXPORT:
	case AIDE_LIST:
	case AIDE_IMPORT:
	case AIDE_IMPORT_IN_THREAD:
	case AIDE_IMPORT_IN_CHILD:
		return do_share(request, out);
	default:
		return do_memory(request, out);
	}
	*out = number;
	return ret;
}

static void serve(int socket)
{
	struct request request;
	struct answer answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(socket, &request, sizeof(request), MSG_WAITALL) == sizeof(request)) {
		if (request.op == AIDE_EXIT)
			_exit(0);
		if (request.op == AIDE_COPY_FOREVER)
			copy_forever(pointer(request.a), request.b);
		answer = (struct answer){};
		answer.ret = serve_one(&request, &answer.out);
		if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	_exit(2);
}

/* The program executed anew as an aide: PROGRAM aide SOCKET. */
static void __attribute__((constructor)) serve_after_exec(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "aide"))
		serve(atoi(argv[2]));
}

static void become_aide(int socket, unsigned int flags)
{
	char number[16];

	if (!(flags & AIDE_EXEC))
		serve(socket);
	/* Without close-on-exec. */
	snprintf(number, sizeof(number), "%d", dup(socket));
	execl("/proc/self/exe", "aide", "aide", number, NULL);
	_exit(127);
}

bool aide_start(struct aide *aide, unsigned int flags)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	if (flags & AIDE_PID_NAMESPACE)
		aide->pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	else
		aide->pid = fork();
	if (!aide->pid) {
		close(ends[0]);
		become_aide(ends[1], flags);
	}
	close(ends[1]);
	aide->socket = ends[0];
	if (aide->pid > 0)
		return true;
	close(ends[0]);
	return false;
}

bool aide_send(struct aide *aide, enum aide_op op, uint64_t a, uint64_t b, uint64_t c)
{
	struct request request = { .op = op, .a = a, .b = b, .c = c };

	return send(aide->socket, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request);
}

aclError aide_receive(struct aide *aide, uint64_t *out)
{
	struct answer answer;

	if (recv(aide->socket, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		return -1;
	if (out)
		*out = answer.out;
	return answer.ret;
}

aclError aide_call(struct aide *aide, enum aide_op op, uint64_t a, uint64_t b,
		   uint64_t c, uint64_t *out)
{
	return aide_send(aide, op, a, b, c) ? aide_receive(aide, out) : -1;
}

int aide_end(struct aide *aide)
{
	aide_send(aide, AIDE_EXIT, 0, 0, 0);
	close(aide->socket);
	return wait_child(aide->pid);
}

int aide_kill(struct aide *aide)
{
	kill(aide->pid, SIGKILL);
	close(aide->socket);
	return wait_child(aide->pid);
}
