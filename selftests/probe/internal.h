/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of aclmem_probe.ko share. */
#ifndef _INTERNAL_H
#define _INTERNAL_H

#include <linux/fs.h>

#include "aclmem_probe.h"

void probe_page(struct aclmem_probe_page *page);
int probe_table(const struct aclmem_probe_page *page);
void probe_pfn(struct aclmem_probe_pfn *pfn);

int probe_arm(struct file *file, const struct aclmem_probe_inject *inject);
int probe_disarm(struct file *file, struct aclmem_probe_injected *injected);
void probe_inject_exit(void);

#endif /* _INTERNAL_H */
