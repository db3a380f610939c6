/* SPDX-License-Identifier: MIT */
/*
 * audit_put.h - the entries of the audit log (core/audit) for calls and events.
 *
 * Only where gateway_keeps_audit(), but for events of keys: the last key's end belongs there.
 * An entry never has content or arguments.
 */
#ifndef NOTEGATE_CORE_AUDIT_PUT_H
#define NOTEGATE_CORE_AUDIT_PUT_H

#include "audit.h"

/* How a call ended. */
struct audit_outcome {
    int rc;                        /* of the answer */
    const char *name;              /* "ok", or the code */
    bool is_refusal;               /* because of the caller */
    struct ng_str tool, operation; /* as asked for */
    int64_t took_ns;
};

void audit_put_call(const struct call *call, const struct audit_outcome *end);
void audit_put_event(const struct audit_event *event);
/* The documents that a plugin has changed outside of calls; nothing where there are none. */
void audit_put_background(const struct call *call);
/* Of a change that the store has, and the log has no entry of. */
void audit_put_recovered(struct gateway *gateway, const struct ng_event *event);

#endif
