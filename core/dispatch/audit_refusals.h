/* SPDX-License-Identifier: MIT */
/*
 * audit_refusals.h - the rate of audit lines for refused calls and requests: one a second for
 * each agent and error code, with the count of the refusals since the last one. An agent that
 * probes is seen and cannot flood the log. Requests that are refused before their call have
 * entries of the audit log at the same rate.
 */
#ifndef NOTEGATE_CORE_AUDIT_REFUSALS_H
#define NOTEGATE_CORE_AUDIT_REFUSALS_H

#include "notegate/plugin.h"

/* Pairs of agent and code that are kept; a further one displaces the oldest. */
#define AUDIT_REFUSALS_MAX 64

struct audit_refusals;

/* LINES: refusals between two lines are told by the next one, or later. ENTRIES: they are not
 * told. */
enum audit_refusals_kind { AUDIT_REFUSALS_LINES = 0, AUDIT_REFUSALS_ENTRIES };

/* NULL: out of memory. */
struct audit_refusals *audit_refusals_new(enum audit_refusals_kind kind);
/* With the lines that are due. NULL is a no-op. */
void audit_refusals_free(struct audit_refusals *refusals);

/* One refused call, or request (`event`); its texts are copied, and cut. */
struct audit_refusal {
    const char *code; /* static */
    struct ng_str agent, key, remote, event, tool, method, target;
};

/* Counts it. Returns 0, or the count for the line or entry that the caller writes now. now_ns:
 * CLOCK_MONOTONIC. Any thread. */
unsigned audit_refusals_count(struct audit_refusals *refusals,
                              const struct audit_refusal *refusal, int64_t now_ns);

/* Each minute: writes a line for each pair with refusals that no line has told. */
void audit_refusals_tell(struct audit_refusals *refusals);

#endif
