/* SPDX-License-Identifier: MIT */
/*
 * audit_refusals.h - the rate of audit lines for refused calls and requests: one a second for
 * each agent and error code, with the count of the refusals since the last one. An agent that
 * probes is seen and cannot flood the log.
 */
#ifndef NOTEGATE_CORE_AUDIT_REFUSALS_H
#define NOTEGATE_CORE_AUDIT_REFUSALS_H

#include "notegate/plugin.h"

/* Pairs of agent and code that are kept; a further one displaces the oldest. */
#define AUDIT_REFUSALS_MAX 64

struct audit_refusals;

/* NULL: out of memory. */
struct audit_refusals *audit_refusals_new(void);
/* With the lines that are due. */
void audit_refusals_free(struct audit_refusals *refusals);

/* One refused call, or request (`event`); its texts are copied, and cut. */
struct audit_refusal {
    const char *code; /* static */
    struct ng_str agent, key, remote, event, tool, method, target;
};

/* Counts it. Returns 0, or the count for the line that the caller writes now. now_ns:
 * CLOCK_MONOTONIC. Any thread. */
unsigned audit_refusals_count(struct audit_refusals *refusals,
                              const struct audit_refusal *refusal, int64_t now_ns);

/* Each minute: writes a line for each pair with refusals that no line has told. */
void audit_refusals_tell(struct audit_refusals *refusals);

#endif
