// SPDX-License-Identifier: GPL-2.0-only
/*
 * devices: what is in use on each device. "devices unused" fails if anything
 * is, naming it. For selftests/run.
 */
#include <stdio.h>
#include <string.h>

#include "helpers.h"

int main(int argc, char **argv)
{
	bool quiet = argc > 1 && !strcmp(argv[1], "unused");
	struct aclmem_device info;
	unsigned int i;
	int rc = 0;
	int fd;

	fd = open_client(NULL);
	if (fd < 0) {
		printf("%s: %s\n", DEVICE_PATH, strerror(-fd));
		return 2;
	}
	for (i = 0; !device_info(fd, i, &info); i++) {
		if (quiet && !info.out_used)
			continue;
		printf("device %u: %llu of %llu bytes in use\n", i,
		       (unsigned long long)info.out_used,
		       (unsigned long long)info.out_total);
		if (quiet)
			rc = 1;
	}
	return rc;
}
