/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture of most tests: an own descriptor, bound to this process, and the
 * probe if there is one (else -1). Include once, after kselftest_harness.h.
 */
#ifndef _FIXTURE_H
#define _FIXTURE_H

#include <signal.h>

#include "kselftest_harness.h"
#include "helpers.h"

FIXTURE(client)
{
	int fd;
	int probe;
	uint64_t used;
	struct aclmem_query query;
};

FIXTURE_SETUP(client)
{
	/* The other ends of pipes may be killed. */
	signal(SIGPIPE, SIG_IGN);
	catch_faults();
	self->probe = probe_open();
	self->fd = open_client(&self->query);
	REQUIRE_CLIENT(self->fd);
	self->used = used(self->fd);
}

FIXTURE_TEARDOWN(client)
{
	close(self->fd);
	if (self->probe >= 0)
		close(self->probe);
}

#endif /* _FIXTURE_H */
