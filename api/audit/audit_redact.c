/* SPDX-License-Identifier: MIT */
/* audit_redact.c - the writer's thread removes the lines, and the log gets an entry of it. */
#include "audit_redact.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "core/audit/writer/audit_writer.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit_put.h"
#include "core/gateway/gateway_audit.h"

static int redact_fail(struct call *call, int rc, struct buf *why)
{
    return call_fail(call, rc, "nothing was redacted: %s", buf_cstr(why));
}

int audit_redact(struct call *call, struct ng_str value, uint64_t *ret_count)
{
    const struct gateway *gateway = call->gateway;
    char path[PATH_MAX];
    struct buf error;
    *ret_count = 0;
    if (gateway->audit.writer == NULL) {
        return call_fail(call, NG_ENOTCONFIGURED,
                         "the audit log is off; set audit=on to redact what it has");
    }
    (void)snprintf(path, sizeof(path), "%s/" GATEWAY_AUDIT_FOLDER, gateway->data_dir);
    if (access(path, F_OK) != 0) {
        return call_fail(call, NG_ENOTFOUND, "there is no audit log in %s", gateway->data_dir);
    }
    buf_init(&error, CALL_MESSAGE_MAX);
    int rc = audit_writer_redact(gateway->audit.writer, value, ret_count, &error);
    if (rc != NG_OK) {
        rc = redact_fail(call, NG_EUNAVAILABLE, &error);
    } else if (*ret_count == 0) {
        rc = call_fail(call, NG_ENOTFOUND,
                       "no name in the audit log stands for \"%.*s\"; `notegate audit list` "
                       "shows those that can be told",
                       (int)value.len, value.data);
    } else {
        audit_put_event(&(struct audit_event){
            .gateway = gateway,
            .what = "audit_redact",
            .outcome = "ok",
            .face = call->face,
            .agent = call->caller.agent,
            .key = call->caller.key_id,
            .remote = call->remote,
            .client = call->caller.client,
            .run = call->caller.run_id,
            .request_id = call->caller.request_id,
            .traceparent = call->caller.traceparent,
        });
    }
    buf_done(&error);
    return rc;
}
