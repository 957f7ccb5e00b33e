// SPDX-License-Identifier: GPL-2.0-only
/* Rules of every command's structure; see uapi_rules.h. */
#include <linux/errno.h>

#include "uapi_rules.h"

#define RULE(command, type, known_flags, reserved_offset)	\
	{							\
		.name = #command,				\
		.cmd = ACLMEM_##command,			\
		.size = ACLMEM_##command##_SIZE,		\
		.flags = known_flags,				\
		.reserved = reserved_offset,			\
	}
#define RESERVED(type) __builtin_offsetof(struct type, reserved)

const struct rule rules[RULES] = {
	RULE(QUERY, aclmem_query, 0, 0),
	RULE(DEVICE, aclmem_device, 0, 0),
	RULE(ALLOC, aclmem_alloc, 0, RESERVED(aclmem_alloc)),
	RULE(FREE, aclmem_free, 0, RESERVED(aclmem_free)),
	RULE(RETAIN, aclmem_retain, 0, RESERVED(aclmem_retain)),
	RULE(HANDLE, aclmem_handle_info, 0, RESERVED(aclmem_handle_info)),
	RULE(MAP, aclmem_map, ACLMEM_MAP_READ_ONLY, RESERVED(aclmem_map)),
	RULE(UNMAP, aclmem_unmap, 0, 0),
	RULE(RELEASE, aclmem_release, 0, 0),
	RULE(ADDRESS, aclmem_address, 0, 0),
	RULE(EXPORT, aclmem_export, ACLMEM_EXPORT_ANY_PROCESS, RESERVED(aclmem_export)),
	RULE(WHITELIST, aclmem_whitelist, 0, RESERVED(aclmem_whitelist)),
	RULE(IMPORT, aclmem_import, 0, 0),
	RULE(COPY, aclmem_copy, ACLMEM_COPY_BATCH, 0),
	RULE(FILL, aclmem_fill, 0, RESERVED(aclmem_fill)),
};

#define SCRATCH 4096U

static void clear(void *scratch)
{
	volatile unsigned char *bytes = scratch;
	unsigned int i;

	for (i = 0; i < SCRATCH; i++)
		bytes[i] = 0;
}

static int refused(const struct rule *rule, struct aclmem_head *head, int error,
		   unsigned int reason)
{
	return uapi_call(rule->cmd, head) == -error && head->out_reason == reason;
}

/* The command with its own size and only zeros: the rules let it pass. */
static int passes(const struct rule *rule, struct aclmem_head *head)
{
	return uapi_call(rule->cmd, head) != -EFAULT &&
	       head->out_reason != ACLMEM_REASON_SIZE_FIELD &&
	       head->out_reason != ACLMEM_REASON_TAIL &&
	       head->out_reason != ACLMEM_REASON_FLAGS &&
	       head->out_reason != ACLMEM_REASON_RESERVED;
}

static int check_size(const struct rule *rule, struct aclmem_head *head)
{
	static const unsigned int long_by[] = { 1, 4, 8, 64, SCRATCH - 128 };
	unsigned char *bytes = (unsigned char *)head;
	unsigned int i;

	for (i = ACLMEM_HEAD_SIZE; i < rule->size; i += 4) {
		clear(head);
		head->size = i;
		head->out_reason = 77;
		if (!refused(rule, head, EINVAL, ACLMEM_REASON_SIZE_FIELD) ||
		    head->out_value != i)
			return 10;
	}
	/* Too short to be told why. */
	for (i = 0; i < ACLMEM_HEAD_SIZE; i += 4) {
		clear(head);
		head->size = i;
		head->out_value = 77;
		if (uapi_call(rule->cmd, head) != -EINVAL || head->out_value != 77)
			return 11;
	}
	for (i = 0; i < sizeof(long_by) / sizeof(long_by[0]); i++) {
		clear(head);
		head->size = rule->size + long_by[i];
		if (!passes(rule, head))
			return 12;
		clear(head);
		head->size = rule->size + long_by[i];
		bytes[head->size - 1] = 1;
		if (!refused(rule, head, E2BIG, ACLMEM_REASON_TAIL) ||
		    head->out_value != head->size)
			return 13;
		/* Behind the end, nobody looks. */
		clear(head);
		head->size = rule->size + long_by[i];
		bytes[head->size] = 1;
		if (!passes(rule, head))
			return 14;
	}
	clear(head);
	head->size = ~0U;
	if (!refused(rule, head, E2BIG, ACLMEM_REASON_TAIL))
		return 15;
	return 0;
}

static int check_bits(const struct rule *rule, struct aclmem_head *head)
{
	unsigned char *bytes = (unsigned char *)head;
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		clear(head);
		head->size = rule->size;
		head->flags = 1U << bit;
		if (rule->flags & head->flags) {
			if (!passes(rule, head))
				return 20;
			continue;
		}
		if (!refused(rule, head, EINVAL, ACLMEM_REASON_FLAGS) ||
		    head->out_value != 1U << bit)
			return 21;
	}
	for (bit = 0; bit < 32; bit += 31) {
		clear(head);
		head->size = rule->size;
		head->reserved = 1U << bit;
		if (!refused(rule, head, EINVAL, ACLMEM_REASON_RESERVED))
			return 22;
		if (!rule->reserved)
			continue;
		clear(head);
		head->size = rule->size;
		bytes[rule->reserved + bit / 8] = 1;
		if (!refused(rule, head, EINVAL, ACLMEM_REASON_RESERVED))
			return 23;
	}
	return 0;
}

/* Old answers don't stay, and none is given after a success. */
static int check_answers(const struct rule *rule, struct aclmem_head *head)
{
	int rc;

	clear(head);
	head->size = rule->size;
	head->out_reason = ~0U;
	head->out_index = ~0ULL;
	head->out_value = ~0ULL;
	rc = uapi_call(rule->cmd, head);
	if (head->size != rule->size)
		return 30;
	if (rc ? head->out_reason == 0 || head->out_reason == ~0U :
		 head->out_reason || head->out_value)
		return 31;
	return head->out_index ? 32 : 0;
}

static int check_pointer(const struct rule *rule)
{
	if (uapi_call(rule->cmd, 0) != -EFAULT)
		return 40;
	if (uapi_call(rule->cmd, (void *)8) != -EFAULT)
		return 41;
	/* The last page below 4 GiB, for 64 bits the last of all. */
	if (uapi_call(rule->cmd, (void *)-4096L) != -EFAULT)
		return 42;
	if (uapi_call(rule->cmd, (void *)-4L) != -EFAULT)
		return 43;
	return 0;
}

int rule_check(const struct rule *rule, void *scratch)
{
	int rc = check_size(rule, scratch);

	if (!rc)
		rc = check_bits(rule, scratch);
	if (!rc)
		rc = check_answers(rule, scratch);
	if (!rc)
		rc = check_pointer(rule);
	return rc;
}

int rule_check_numbers(void *scratch)
{
	static const unsigned int numbers[] = {
		_IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_QUERY - 1),
		_IO(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_HANDLE + 1),
		_IO(ACLMEM_IOCTL_TYPE, 0),
		_IO(ACLMEM_IOCTL_TYPE, 0x7f),
		_IO(ACLMEM_IOCTL_TYPE, 0xff),
		_IO(ACLMEM_IOCTL_TYPE + 1, ACLMEM_CMD_QUERY),
		_IOWR(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_QUERY, struct aclmem_query),
		_IOR(ACLMEM_IOCTL_TYPE, ACLMEM_CMD_QUERY, struct aclmem_head),
		_IOC(0, ACLMEM_IOCTL_TYPE, ACLMEM_CMD_QUERY, 72),
		0, ~0U, 0x5401,
	};
	struct aclmem_head *head = scratch;
	unsigned int i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		clear(head);
		head->size = 256;
		head->out_value = 99;
		if (uapi_call(numbers[i], head) != -ENOTTY)
			return 50 + i;
		if (head->out_value != 99)
			return 70;
	}
	return 0;
}
