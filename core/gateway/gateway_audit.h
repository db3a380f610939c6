/* SPDX-License-Identifier: MIT */
/* gateway_audit.h - the audit log in the data directory of a gateway. */
#ifndef NOTEGATE_CORE_GATEWAY_AUDIT_H
#define NOTEGATE_CORE_GATEWAY_AUDIT_H

#include "core/call/gateway.h"

/* In the data directory. */
#define GATEWAY_AUDIT_FOLDER "audit"

/* Opens the log where `audit` says so: when the id of the gateway and its keys are known. */
int gateway_open_audit(struct gateway *gateway, struct buf *error);
/* The keys that a reload can change. */
void gateway_audit_limits(struct gateway *gateway, const struct config *config);
/* Before the store is closed: the log has the changes up to now, or gets them from calls. */
void gateway_audit_seen(struct gateway *gateway);
/* After the last call; writes what waits. */
void gateway_close_audit(struct gateway *gateway);

#endif
