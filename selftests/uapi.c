// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract itself: layouts, and the rules of size, tail, flags and reserved
 * members that every command keeps, from 64-bit and from 32-bit programs; and
 * that a structure which can't be written back means that nothing happened.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fixture.h"
#include "uapi_rules.h"

#define LAYOUT(type, last_member, size)						\
	_Static_assert(sizeof(struct type) == (size), #type " has padding");	\
	_Static_assert(offsetof(struct type, last_member) +			\
		       sizeof(((struct type *)0)->last_member) == (size),	\
		       #last_member " isn't the last of " #type)
LAYOUT(aclmem_head, out_value, ACLMEM_HEAD_SIZE);
LAYOUT(aclmem_query, out_max_pids, ACLMEM_QUERY_SIZE);
LAYOUT(aclmem_device, out_peak, ACLMEM_DEVICE_SIZE);
LAYOUT(aclmem_alloc, reserved, ACLMEM_ALLOC_SIZE);
LAYOUT(aclmem_free, reserved, ACLMEM_FREE_SIZE);
LAYOUT(aclmem_retain, reserved, ACLMEM_RETAIN_SIZE);
LAYOUT(aclmem_handle_info, reserved, ACLMEM_HANDLE_SIZE);
LAYOUT(aclmem_map, reserved, ACLMEM_MAP_SIZE);
LAYOUT(aclmem_unmap, address, ACLMEM_UNMAP_SIZE);
LAYOUT(aclmem_release, address, ACLMEM_RELEASE_SIZE);
LAYOUT(aclmem_address, out_handle, ACLMEM_ADDRESS_SIZE);
LAYOUT(aclmem_export, out_share, ACLMEM_EXPORT_SIZE);
LAYOUT(aclmem_whitelist, reserved, ACLMEM_WHITELIST_SIZE);
LAYOUT(aclmem_import, out_handle, ACLMEM_IMPORT_SIZE);
LAYOUT(aclmem_copy_attr, reserved, ACLMEM_COPY_ATTR_SIZE);
LAYOUT(aclmem_copy, out_bytes, ACLMEM_COPY_SIZE);
LAYOUT(aclmem_fill, reserved, ACLMEM_FILL_SIZE);

/* Where a member is, is for ever. */
#define AT(type, member, offset)						\
	_Static_assert(offsetof(struct type, member) == (offset), #member " moved")
AT(aclmem_head, flags, 4);
AT(aclmem_head, out_reason, 8);
AT(aclmem_head, out_index, 16);
AT(aclmem_head, out_value, 24);
AT(aclmem_query, out_tgid, 44);
AT(aclmem_query, out_features, 48);
AT(aclmem_device, out_node, 36);
AT(aclmem_device, out_total, 40);
AT(aclmem_device, out_used, 48);
AT(aclmem_alloc, location, 40);
AT(aclmem_alloc, page, 48);
AT(aclmem_alloc, out_handle, 56);
AT(aclmem_handle_info, out_length, 40);
AT(aclmem_handle_info, out_location, 48);
AT(aclmem_handle_info, out_users, 56);
AT(aclmem_map, handle, 56);
AT(aclmem_address, out_state, 40);
AT(aclmem_address, out_location, 48);
AT(aclmem_address, out_base, 56);
AT(aclmem_address, out_map_flags, 88);
AT(aclmem_export, out_share, 40);
AT(aclmem_whitelist, pids, 40);
AT(aclmem_import, device, 40);
AT(aclmem_copy_attr, src, 8);
AT(aclmem_copy, count, 56);
AT(aclmem_copy, attr, 64);
AT(aclmem_copy, out_bytes, 80);
AT(aclmem_fill, value, 48);

/* The numbers of the commands, and of the reasons at the ends. */
_Static_assert(ACLMEM_QUERY == 0xbc80, "QUERY");
_Static_assert(ACLMEM_HANDLE == 0xbc8e, "HANDLE");
_Static_assert(ACLMEM_REASON_NONE == 0 && ACLMEM_REASON_HOST_FAULT == 55, "reasons");

static int device = -1;

int uapi_call(unsigned int cmd, void *arg)
{
	return ioctl(device, cmd, arg) ? -errno : 0;
}

TEST_F(client, every_command_keeps_the_rules_of_its_structure)
{
	static char scratch[8192] __attribute__((aligned(4096)));
	size_t i;
	int rc;

	device = self->fd;
	for (i = 0; i < RULES; i++) {
		rc = rule_check(&rules[i], scratch);
		EXPECT_EQ(0, rc)
			TH_LOG("%s: check %d, reason %s", rules[i].name, rc,
			       reason_name(((struct aclmem_head *)scratch)->out_reason));
	}
	EXPECT_EQ(self->used, used(self->fd));
}

TEST_F(client, other_commands_are_unknown)
{
	static char scratch[8192] __attribute__((aligned(4096)));

	device = self->fd;
	EXPECT_EQ(0, rule_check_numbers(scratch));
	/* The only numbers without a structure. */
	EXPECT_EQ(-1, ioctl(self->fd, ACLMEM_HANDLE + 1, NULL));
	EXPECT_EQ(ENOTTY, errno);
}

TEST_F(client, a_32_bit_program_finds_the_same)
{
	struct stat st;
	pid_t pid;
	int rc;

	if (stat("./uapi32", &st) || !st.st_size)
		SKIP(return, "%s: no 32-bit program was built", _metadata->name);
	pid = fork_child();
	if (!pid) {
		execl("./uapi32", "uapi32", NULL);
		_exit(errno == ENOEXEC ? 3 : 4);
	}
	rc = wait_child(pid);
	if (rc == 3)
		SKIP(return, "%s: no 32-bit programs here (CONFIG_IA32_EMULATION)",
		     _metadata->name);
	EXPECT_EQ(0, rc);
	EXPECT_TRUE(used_becomes(self->fd, self->used));
}

/*
 * A command that can't answer must not have done anything: no handle that
 * nobody can name.
 */
static char *read_only_page(const void *arg, size_t size)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	memcpy(page, arg, size);
	mprotect(page, 4096, PROT_READ);
	return page;
}

/* The head can be written, the results behind it can't. */
static char *half_writable(const void *arg, size_t size, char **base)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	char *at = pages + 4096 - ACLMEM_HEAD_SIZE;

	if (pages == MAP_FAILED)
		return NULL;
	memcpy(at, arg, size);
	mprotect(pages + 4096, 4096, PROT_READ);
	*base = pages;
	return at;
}

static int raw(int fd, unsigned int cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

TEST_F(client, no_answer_means_that_nothing_happened)
{
	struct aclmem_alloc alloc_arg = {
		.head.size = sizeof(alloc_arg),
		.length = 2 * GRANULE,
		.location.type = ACLMEM_LOCATION_DEVICE,
	};
	struct aclmem_retain retain_arg = { .head.size = sizeof(retain_arg) };
	struct aclmem_export export_arg = { .head.size = sizeof(export_arg) };
	struct aclmem_free free_arg = { .head.size = sizeof(free_arg) };
	struct aclmem_unmap unmap_arg = { .head.size = sizeof(unmap_arg) };
	struct aclmem_handle_info info;
	uint32_t handle, next;
	uint64_t share;
	char *at, *base, *half;

	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_ALLOC,
			       read_only_page(&alloc_arg, sizeof(alloc_arg))));
	half = half_writable(&alloc_arg, sizeof(alloc_arg), &base);
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_ALLOC, half));
	EXPECT_EQ(self->used, used(self->fd));
	/* Made readable and writable again it works, with no handle in between. */
	ASSERT_EQ(0, mprotect(base + 4096, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, raw(self->fd, ACLMEM_ALLOC, half));
	handle = ((struct aclmem_alloc *)half)->out_handle;
	EXPECT_EQ(self->used + 2 * GRANULE, used(self->fd));

	at = reserve(self->fd, 2 * GRANULE);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, map(self->fd, handle, at, 2 * GRANULE, 0));
	retain_arg.address = (uintptr_t)at;
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_RETAIN,
			       half_writable(&retain_arg, sizeof(retain_arg), &base)));
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(1, info.out_users);

	export_arg.handle = handle;
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_EXPORT,
			       half_writable(&export_arg, sizeof(export_arg), &base)));
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_EXPORT,
			       read_only_page(&export_arg, sizeof(export_arg))));
	EXPECT_EQ(0, export_handle(self->fd, handle, 0, &share));

	/* Commands without results must find their head writable first. */
	unmap_arg.address = (uintptr_t)at;
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_UNMAP,
			       read_only_page(&unmap_arg, sizeof(unmap_arg))));
	EXPECT_EQ(0, try_read(at, NULL));
	free_arg.handle = handle;
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_FREE,
			       read_only_page(&free_arg, sizeof(free_arg))));
	ASSERT_EQ(0, handle_info(self->fd, handle, &info));
	EXPECT_EQ(1, info.out_users);

	EXPECT_EQ(0, unmap_old(self->fd, at, 2 * GRANULE, handle));
	EXPECT_EQ(self->used, used(self->fd));
	/* No name was given away either, or at least none that works. */
	ASSERT_EQ(0, alloc(self->fd, 0, GRANULE, &next));
	for (; handle < next; handle++)
		EXPECT_REFUSED(ENOENT, HANDLE, free_handle(self->fd, handle));
}

/* The structure itself in device memory, which faults under the same locks. */
TEST_F(client, a_structure_may_lie_in_device_memory)
{
	struct aclmem_unmap *arg;
	uint32_t handle;
	char *at = map_new(self->fd, GRANULE, 0, &handle);
	struct aclmem_alloc *alloc_arg = (void *)at;

	ASSERT_NE(MAP_FAILED, at);
	alloc_arg->length = GRANULE;
	alloc_arg->location.type = ACLMEM_LOCATION_DEVICE;
	EXPECT_EQ(0, command(self->fd, ACLMEM_ALLOC, alloc_arg, sizeof(*alloc_arg)));
	EXPECT_NE(0, alloc_arg->out_handle);
	EXPECT_EQ(0, free_handle(self->fd, alloc_arg->out_handle));

	/* It unmaps the ground it stands on. */
	arg = (void *)(at + 4096);
	arg->head = (struct aclmem_head){ .size = sizeof(*arg) };
	arg->address = (uintptr_t)at;
	EXPECT_EQ(0, raw(self->fd, ACLMEM_UNMAP, arg));
	EXPECT_EQ(SIGBUS, try_read(at, NULL));
	/* And where nothing is mapped, there is nothing to read. */
	EXPECT_EQ(-EFAULT, raw(self->fd, ACLMEM_UNMAP, arg));
	EXPECT_EQ(0, free_handle(self->fd, handle));
}

TEST_F(client, query_tells_the_limits)
{
	EXPECT_EQ(ACLMEM_UAPI_MAJOR, self->query.out_major);
	EXPECT_LE(ACLMEM_UAPI_MINOR, self->query.out_minor);
	EXPECT_EQ(ACLMEM_GRANULARITY, self->query.out_granularity);
	EXPECT_LT(0, self->query.out_devices);
	EXPECT_LE(4096, self->query.out_max_items);
	EXPECT_LT(0, self->query.out_max_pids);
	EXPECT_TRUE(self->query.out_features & ACLMEM_FEATURE_HUGE_MAPPING);
	EXPECT_TRUE(self->query.out_features & ACLMEM_FEATURE_READ_ONLY);
}

TEST_HARNESS_MAIN
