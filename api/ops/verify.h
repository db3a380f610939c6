/* SPDX-License-Identifier: MIT */
/* verify.h - the integrity of the data as JSON, for the command and for the running gateway. */
#ifndef NOTEGATE_API_VERIFY_H
#define NOTEGATE_API_VERIFY_H

#include "core/call/gateway.h"

/* Faults told at most; further ones are counted. */
#define VERIFY_FAULTS_MAX 1000
#define VERIFY_TEXT_MAX ((size_t)16 * 1024 * 1024)

/* {"ok":bool,"count":N,"faults":["...", ...],"data_dir","backend","documents","revisions",
 * "events"}. Not NG_OK: it could not be verified, the call says why. May block. */
int verify_print(struct gateway *gateway, struct call *call, struct buf *out);

#endif
