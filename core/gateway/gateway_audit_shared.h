/* SPDX-License-Identifier: MIT */
/*
 * gateway_audit_shared.h - changes without an entry, where other gateways write to the same
 * store: those that this gateway made before it was killed are added to its log (recovered).
 *
 * A shared store numbers changes after their calls have ended, so entries lack the numbers, and
 * the start may find no database. So the thread of the cluster does it, once the database
 * answers, and sets the marks of the log (audit_mark.h) from then on.
 */
#ifndef NOTEGATE_CORE_GATEWAY_AUDIT_SHARED_H
#define NOTEGATE_CORE_GATEWAY_AUDIT_SHARED_H

#include "core/call/gateway.h"

/* path: of the log's folder; copied. begins: the log is open, and gets its first mark if it has
 * none. Before the first call. NG_OK, or an error with the sentence. */
int audit_shared_open(struct gateway *gateway, const char *path, bool begins,
                      struct buf *error);
/* A step of it, on the thread of the cluster. What fails is tried again later. */
void audit_shared_step(struct audit_shared *shared, struct call *call);
/* NULL is a no-op. */
void audit_shared_close(struct audit_shared *shared);

#endif
