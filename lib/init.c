// SPDX-License-Identifier: MIT
/*
 * init.c: beginning and end of the use of the library, and its version. Owns the
 * count of aclInit() calls and the first one's settings, under one mutex. The
 * rest of the library doesn't depend on either: it sets itself up where it's
 * first needed.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_FILE ((off_t)10 << 20)

pthread_mutex_t aclmem_init_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t count;		/* of aclInit(), not yet undone */
static bool finalized;		/* since the last aclInit() */
static char *first_settings;	/* of the process; NULL: none so far */

static int read_all(int fd, char *text, size_t length)
{
	size_t done = 0;
	ssize_t got;

	while (done < length) {
		got = read(fd, text + done, length - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -EIO;
		done += (size_t)got;
	}
	text[length] = '\0';
	return 0;
}

static aclError fail_file(const char *name, const char *path, int error)
{
	return aclmem_fail(ACL_ERROR_INVALID_FILE, name, "configPath \"%s\": %s",
			   path, strerror(error));
}

static aclError load(const char *name, const char *path, int fd, char **text)
{
	struct stat info;
	size_t length;
	int error;

	if (fstat(fd, &info))
		return fail_file(name, path, errno);
	if (!S_ISREG(info.st_mode))
		return aclmem_fail(ACL_ERROR_INVALID_FILE, name,
				   "configPath \"%s\" isn't a regular file",
				   path);
	if (info.st_size > LARGEST_FILE)
		return aclmem_fail(ACL_ERROR_INVALID_FILE_SIZE, name,
				   "configPath \"%s\": the file is over 10 MiB",
				   path);
	length = (size_t)info.st_size;
	*text = malloc(length + 1);
	if (!*text)
		return aclmem_fail(ACL_ERROR_BAD_ALLOC, name,
				   "configPath \"%s\": out of memory", path);
	error = read_all(fd, *text, length);
	if (error) {
		free(*text);
		return fail_file(name, path, -error);
	}
	if (!aclmem_json_valid(*text, length)) {
		free(*text);
		return aclmem_fail(ACL_ERROR_PARSE_FILE, name,
				   "configPath \"%s\": the file isn't a JSON object of at most 10 levels",
				   path);
	}
	return ACL_SUCCESS;
}

/* No settings are like an empty object to everybody but the comparison. */
static aclError settings(const char *name, const char *path, char **text)
{
	aclError ret;
	int fd;

	if (!path || !*path) {
		*text = strdup("");
		return *text ? ACL_SUCCESS :
			aclmem_fail(ACL_ERROR_BAD_ALLOC, name, "out of memory");
	}
	/* Never wait for the other end of a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fail_file(name, path, errno);
	ret = load(name, path, fd, text);
	close(fd);
	return ret;
}

static aclError repeated_locked(const char *name)
{
	count++;
	return aclmem_fail(ACL_ERROR_REPEAT_INITIALIZE, name,
			   "the library is initialised already (%llu times now), which can be ignored",
			   (unsigned long long)count);
}

aclError aclInit(const char *configPath)
{
	aclError ret = ACL_SUCCESS;
	char *text = NULL;

	pthread_mutex_lock(&aclmem_init_lock);
	if (count)
		ret = repeated_locked(__func__);
	pthread_mutex_unlock(&aclmem_init_lock);
	if (ret)
		return ret;

	/* Files can be slow, and the lock holds up fork(). */
	ret = settings(__func__, configPath, &text);
	if (ret)
		return ret;

	pthread_mutex_lock(&aclmem_init_lock);
	if (count) {
		ret = repeated_locked(__func__);
	} else if (first_settings && strcmp(first_settings, text)) {
		ret = fail(ACL_ERROR_INVALID_PARAM,
			   "configPath \"%s\": the settings differ from those of this process's first call",
			   configPath ? configPath : "");
	} else {
		count = 1;
		finalized = false;
		if (!first_settings) {
			first_settings = text;
			text = NULL;
		}
	}
	pthread_mutex_unlock(&aclmem_init_lock);
	free(text);
	return ret;
}

aclError aclFinalize(void)
{
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&aclmem_init_lock);
	if (finalized) {
		ret = fail(ACL_ERROR_REPEAT_FINALIZE,
			   "the library is finalised already");
	} else {
		finalized = true;
		count = 0;
	}
	pthread_mutex_unlock(&aclmem_init_lock);
	return ret;
}

aclError aclFinalizeReference(uint64_t *refCount)
{
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&aclmem_init_lock);
	if (!count)
		ret = fail(ACL_ERROR_REPEAT_FINALIZE,
			   "no aclInit is left to be undone");
	else if (!--count)
		finalized = true;
	if (refCount)
		*refCount = count;
	pthread_mutex_unlock(&aclmem_init_lock);
	return ret;
}

/* In a child. */
void aclmem_init_forget(void)
{
	count = 0;
	finalized = false;
	free(first_settings);
	first_settings = NULL;
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
			 int32_t *patchVersion)
{
	if (!majorVersion)
		return fail(ACL_ERROR_INVALID_PARAM, "majorVersion is NULL");
	if (!minorVersion)
		return fail(ACL_ERROR_INVALID_PARAM, "minorVersion is NULL");
	if (!patchVersion)
		return fail(ACL_ERROR_INVALID_PARAM, "patchVersion is NULL");
	*majorVersion = ACL_MAJOR_VERSION;
	*minorVersion = ACL_MINOR_VERSION;
	*patchVersion = ACL_PATCH_VERSION;
	return ACL_SUCCESS;
}
