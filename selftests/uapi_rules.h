/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules that all commands keep about their structure, as one table and one
 * function: for the 64-bit test program, and for a 32-bit one without a C
 * library.
 */
#ifndef _UAPI_RULES_H
#define _UAPI_RULES_H

#include <linux/aclmem.h>

struct rule {
	const char *name;
	unsigned int cmd;
	unsigned int size;
	/* Bits of head.flags that the command knows. */
	unsigned int flags;
	/* Offset of a reserved member besides the head's, or 0. */
	unsigned int reserved;
};

#define RULES 15

extern const struct rule rules[RULES];

/* What the program provides: the raw call, 0 or a negative errno. */
int uapi_call(unsigned int cmd, void *arg);

/*
 * Check one command; @scratch is a page of memory. Returns 0, or the number of
 * the check that failed.
 */
int rule_check(const struct rule *rule, void *scratch);
/* Commands that don't exist. */
int rule_check_numbers(void *scratch);

#endif /* _UAPI_RULES_H */
