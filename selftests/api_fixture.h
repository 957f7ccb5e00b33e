/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture of most tests: device 0 is set. In the end nothing may be left on
 * the devices.
 * Include once, after kselftest_harness.h.
 */
#ifndef _API_FIXTURE_H
#define _API_FIXTURE_H

#include <signal.h>

#include "kselftest_harness.h"
#include "api.h"

FIXTURE(acl)
{
	int fd;
	uint64_t used;
	unsigned int devices;
};

FIXTURE_SETUP(acl)
{
	struct aclmem_query query;

	signal(SIGPIPE, SIG_IGN);
	catch_faults();
	self->fd = open_client(&query);
	REQUIRE_CLIENT(self->fd);
	self->devices = query.out_devices;
	self->used = used(self->fd);
	ASSERT_EQ(0, aclrtSetDevice(0));
}

FIXTURE_TEARDOWN(acl)
{
	if (_metadata->passed && !_metadata->skip)
		EXPECT_TRUE(used_becomes(self->fd, self->used));
	close(self->fd);
}

#define REQUIRE_TWO_DEVICES() do { \
	if (self->devices < 2) \
		SKIP(return, "%s: needs two devices", _metadata->name); \
} while (0)

#define REQUIRE_ROOT() do { \
	if (geteuid()) \
		SKIP(return, "%s: needs root", _metadata->name); \
} while (0)

#endif /* _API_FIXTURE_H */
