/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sweeps over all memory allocations of a call: the n-th one fails, or all from
 * the n-th on, for every n there is. For the programs inject*.
 */
#ifndef _SWEEP_H
#define _SWEEP_H

#include <errno.h>

#include "fixture.h"

/* What a sweep is about. */
struct sweep {
	/* Makes the call: 0 or a negative errno. */
	int (*call)(struct sweep *sweep);
	/* Undoes it; true if that went well. */
	bool (*undo)(struct sweep *sweep);
	/* After a failure: true if all is as before. */
	bool (*unchanged)(struct sweep *sweep);
	int syscall;
	/* The reasons are those of a command. */
	bool reasons;

	int fd;
	int probe;
	uint64_t used;
	uint64_t share;
	uint32_t handle;
	char *at;
	int opened;
};

/* All n of one kind; returns for how many the call saw a failure. */
static inline unsigned int sweep_kind(struct __test_metadata *_metadata,
				      struct sweep *sweep, unsigned int flags)
{
	struct aclmem_probe_injected injected;
	unsigned int n, reason;
	int rc;

	for (n = 1; n < 2000; n++) {
		ASSERT_EQ(0, probe_arm(sweep->probe, n, flags, sweep->syscall));
		rc = sweep->call(sweep);
		reason = last.out_reason;
		ASSERT_EQ(0, probe_disarm(sweep->probe, &injected));
		if (!injected.out_failed) {
			EXPECT_EQ(0, rc);
			EXPECT_TRUE(sweep->undo(sweep));
			return n - 1;
		}
		if (!rc) {
			/* It had another way; that is as good. */
			ASSERT_TRUE(sweep->undo(sweep));
			continue;
		}
		ASSERT_EQ(-ENOMEM, rc)
			TH_LOG("n = %u: %s failed", n, injected.out_function);
		if (sweep->reasons)
			EXPECT_TRUE(reason == ACLMEM_REASON_KERNEL_MEMORY ||
				    reason == ACLMEM_REASON_NO_PAGES)
				TH_LOG("n = %u: %s failed, %s", n, injected.out_function,
				       reason_name(reason));
		ASSERT_TRUE(sweep->unchanged(sweep))
			TH_LOG("n = %u: %s failed", n, injected.out_function);
		ASSERT_EQ(0, sweep->call(sweep));
		ASSERT_TRUE(sweep->undo(sweep));
		ASSERT_TRUE(sweep->unchanged(sweep));
	}
	TH_LOG("no end of allocations");
	_metadata->passed = 0;
	return n;
}

static inline void sweep_all(struct __test_metadata *_metadata, struct sweep *sweep)
{
	unsigned int once = sweep_kind(_metadata, sweep, 0);
	unsigned int repeat = sweep_kind(_metadata, sweep, ACLMEM_PROBE_REPEAT);

	TH_LOG("%u allocations", repeat);
	/* A sweep that hits nothing shows nothing. */
	EXPECT_LT(0, once);
	EXPECT_LT(0, repeat);
}

static inline bool nothing_used(struct sweep *sweep)
{
	return used(sweep->fd) == sweep->used;
}

#endif /* _SWEEP_H */
