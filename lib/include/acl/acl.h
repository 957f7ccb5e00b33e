/* SPDX-License-Identifier: MIT */
/*
 * acl.h: the one header a program includes. It brings results and handles
 * (acl_base.h), the functions (acl_rt.h) with their types (acl_rt_types.h), and
 * has what concerns the library as a whole: beginning, end, and error texts. The
 * letters that tell where a rule comes from are explained in acl_rt.h.
 */
#ifndef ACL_H
#define ACL_H

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * aclInit() - begin to use the library
 * @configPath: JSON file with settings, or NULL or "" for none; read once
 *
 * Needs no device and no module [L]. No other function requires it [C]. The
 * settings are checked to be a JSON object, at most 10 levels deep and 10 MiB
 * long, and else have no effect here: they concern dumps and profiles [L].
 *
 * Return: 0; 100003 the file can't be read; 100005 it's too long; 200000 out of
 * memory; 100006 it isn't such JSON; 100000 the
 * content differs from that of the process's first aclInit() [C]; 100002 the
 * library is initialised already: the call counts, and the program may go on [D].
 */
aclError aclInit(const char *configPath);

/**
 * aclFinalize() - end the use, however often aclInit() was called
 *
 * Frees no memory and resets no device: those have their own functions [L].
 *
 * Return: 0, also if aclInit() was never called [C]; 100037 the use has been
 * ended already.
 */
aclError aclFinalize(void);

/**
 * aclFinalizeReference() - undo one aclInit(); the last one ends the use
 * @refCount: how many are left, or NULL; also written on failure
 *
 * Return: 0; 100037 no aclInit() is left to be undone [C].
 */
aclError aclFinalizeReference(uint64_t *refCount);

/**
 * aclGetRecentErrMsg() - why the thread's last failing call failed
 *
 * Names the function, its arguments, the value at fault and the rule. Reading
 * clears it [D]. The text belongs to the library and stays as it is until the
 * thread calls this function again, or ends.
 *
 * Return: the text, or NULL if no call failed since the last reading.
 */
const char *aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif

#endif /* ACL_H */
