/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer: another real process, with a client of its own, that does what a
 * test tells it over a socket and answers what came of it. It dies with the
 * test, or by peer_kill().
 */
#ifndef _PEER_H
#define _PEER_H

#include "helpers.h"

enum peer_op {
	PEER_ALLOC,		/* length -> handle */
	PEER_FREE,		/* handle */
	PEER_EXPORT,		/* handle, flags -> share */
	PEER_WHITELIST,		/* share, pid */
	PEER_IMPORT,		/* share, device -> handle */
	PEER_IMPORT_IN_THREAD,	/* the same from another thread */
	PEER_IMPORT_IN_CHILD,	/* from a forked child, with its own client */
	PEER_MAP,		/* handle, length, flags -> address */
	PEER_UNMAP,		/* address, length */
	PEER_READ,		/* address -> byte; rc is the signal it raised */
	PEER_WRITE,		/* address, byte; rc as above */
	PEER_USERS,		/* handle -> out_users */
	PEER_DEVICE,		/* handle -> device it is seen at */
	PEER_OWN_PID,		/* -> getpid() */
	PEER_DESCRIPTORS,	/* -> open descriptors */
	PEER_LIMIT,		/* descriptors it may have at most */
};

struct peer {
	pid_t pid;
	int socket;
	/* As the peer's own QUERY told it. */
	int32_t tgid;
	/* Of the last peer_call(). */
	unsigned int reason;
	uint64_t reason_value;
	uint64_t value;
};

/* flags of clone(2): 0, or CLONE_NEWPID; tid: the pid to take, or 0. */
int peer_start(struct peer *peer, unsigned long flags, pid_t tid);
int peer_call(struct peer *peer, enum peer_op op, uint64_t a, uint64_t b, uint64_t c);
/* Let it exit by itself, or not; false if it ended otherwise. */
bool peer_stop(struct peer *peer);
bool peer_kill(struct peer *peer);

#define EXPECT_PEER_REFUSED(error, name, peer, ...) do { \
	EXPECT_EQ(-(error), peer_call(peer, __VA_ARGS__)); \
	EXPECT_STREQ(#name, reason_name((peer)->reason)); \
} while (0)

#endif /* _PEER_H */
