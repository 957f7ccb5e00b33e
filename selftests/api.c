// SPDX-License-Identifier: GPL-2.0-only
/* Checks of failures, and short forms of frequent calls; see api.h. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api.h"

#define TEXT_SIZE 2048

void forget_failure(void)
{
	aclGetRecentErrMsg();
	aclrtGetLastError(ACL_RT_THREAD_LEVEL);
}

/* Why the text isn't one of that function with these words, or NULL. */
static const char *fault_of_text(const char *text, const char *call,
				 const char *words)
{
	static __thread char fault[2 * TEXT_SIZE];
	char list[256], name[128];
	char *word, *save;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(call, "("), call);
	if (!strstr(text, name)) {
		snprintf(fault, sizeof(fault), "no '%s' in: %s", name, text);
		return fault;
	}
	snprintf(list, sizeof(list), "%s", words);
	for (word = strtok_r(list, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
		if (strstr(text, word))
			continue;
		snprintf(fault, sizeof(fault), "no '%s' in: %s", word, text);
		return fault;
	}
	return NULL;
}

/* "", or what's wrong about what the failed call left behind. */
const char *complaint(aclError code, const char *call, const char *words)
{
	static __thread char text[TEXT_SIZE];
	const char *shown, *fault;

	if (aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) != code)
		return "the last error is another";
	if (aclrtGetLastError(ACL_RT_THREAD_LEVEL) != code)
		return "the last error changes by looking at it";
	if (aclrtGetLastError(ACL_RT_THREAD_LEVEL))
		return "the last error stays when it was taken";
	shown = aclGetRecentErrMsg();
	if (!shown)
		return "there is no text";
	snprintf(text, sizeof(text), "%s", shown);
	fault = fault_of_text(text, call, words);
	if (fault)
		return fault;
	if (aclGetRecentErrMsg())
		return "the text stays when it was read";
	return "";
}

aclrtPhysicalMemProp memory_of(uint32_t device)
{
	return (aclrtPhysicalMemProp){
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE,
		.location = { .id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
}

aclError new_memory(aclrtDrvMemHandle *handle, size_t size, uint32_t device)
{
	aclrtPhysicalMemProp prop = memory_of(device);

	return aclrtMallocPhysical(handle, size, &prop, 0);
}

void *map_memory(aclrtDrvMemHandle handle, size_t size)
{
	void *address;

	if (aclrtReserveMemAddress(&address, size, 0, NULL, 0))
		return NULL;
	if (!aclrtMapMem(address, size, 0, handle, 0))
		return address;
	aclrtReleaseMemAddress(address);
	return NULL;
}

void *new_mapping(size_t size, uint32_t device)
{
	aclrtDrvMemHandle handle;
	void *address;

	if (new_memory(&handle, size, device))
		return NULL;
	address = map_memory(handle, size);
	if (aclrtFreePhysical(handle))
		return NULL;
	return address;
}

aclError end_mapping(void *address)
{
	aclError ret = aclrtUnmapMem(address);

	return ret ? ret : aclrtReleaseMemAddress(address);
}

size_t free_memory(void)
{
	size_t free, total;

	return aclrtGetMemInfo(ACL_HBM_MEM, &free, &total) ? 0 : free;
}

bool free_becomes(size_t bytes)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (free_memory() == bytes)
			return true;
		usleep(10000);
	}
	fprintf(stderr, "# %zu bytes are free, not %zu\n", free_memory(), bytes);
	return false;
}

unsigned int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int lines = 0;
	int c;

	if (!file)
		return 0;
	while ((c = getc_unlocked(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

unsigned int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int entries = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		entries++;
	closedir(dir);
	return entries;
}

struct thread_call {
	int (*function)(void *argument);
	void *argument;
	int result;
};

static void *run_call(void *data)
{
	struct thread_call *call = data;

	call->result = call->function(call->argument);
	return NULL;
}

int in_thread(int (*function)(void *), void *argument)
{
	struct thread_call call = { .function = function, .argument = argument };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_call, &call))
		return -1;
	pthread_join(thread, NULL);
	return call.result;
}
