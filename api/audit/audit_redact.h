/* SPDX-License-Identifier: MIT */
/* audit_redact.h - removes what tells a value that entries of the audit log show as a name. */
#ifndef NOTEGATE_API_AUDIT_REDACT_H
#define NOTEGATE_API_AUDIT_REDACT_H

#include "core/call/call.h"

/* On a worker, or in a command. value: an agent, address, client, space or id, or a name as
 * entries have it ("~..."). The log gets an entry of it, by the call's caller. *ret_count:
 * names that were removed, one a month. NG_OK; NG_ENOTFOUND: nothing tells this value, or
 * there is no log; NG_ENOTCONFIGURED: `audit` is off; NG_EUNAVAILABLE: the call has failed. */
int audit_redact(struct call *call, struct ng_str value, uint64_t *ret_count);

#endif
