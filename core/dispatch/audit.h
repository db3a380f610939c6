/* SPDX-License-Identifier: MIT */
/*
 * audit.h - the account of a call or an event: a line of the gateway's log (log.audit; where
 * that is not set, once there is a key), and an entry of the audit log (audit_put.h).
 *
 * One line for each call that changes something or tries to; with log.audit: reads also for
 * one that only reads. Refused calls and requests have a line a second for each agent and error
 * code (audit_refusals.h), with what was asked as `target`. Lines of their own have keys and
 * reloads. Names, ids and revisions only: never a document's content,
 * never a key.
 */
#ifndef NOTEGATE_CORE_AUDIT_H
#define NOTEGATE_CORE_AUDIT_H

#include "core/call/call.h"

/* Bytes of the name of a client that a line tells. */
#define AUDIT_CLIENT_MAX 128

/* The end of a call: a line if it belongs there. rc: the code of the answer; for TIMEOUT, the
 * line also has the later result of the tool ("ended"). took_ns: time since its arrival. */
void audit_call(const struct call *call, int rc, int64_t took_ns);

/* Events that are not calls: "reload", "key_add", "key_set", "key_pause", "key_resume",
 * "key_revoke", "backup", "refused". All texts may be absent. outcome: "ok" or an error code.
 * members: those of `target` that changed. */
struct audit_event {
    const struct gateway *gateway;
    const char *what, *outcome;
    const char *face;        /* as that of a call, or NULL */
    const struct call *call; /* of a change of keys, or NULL */
    bool is_of_keys;         /* a key was made, changed or ended: also where no key is left */
    bool is_refusal;         /* counted, as refused calls are */
    struct ng_str agent, key, remote, client, target, members, run, request_id, traceparent;
};
void audit_event(const struct audit_event *event);
/* Agent, key, address and ids are those of the call's caller; lent from it. */
void audit_event_by(struct audit_event *event, const struct call *call);

#endif
