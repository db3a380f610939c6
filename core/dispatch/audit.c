/* SPDX-License-Identifier: MIT */
/* audit.c - the audit log: the calls that have a line, and the text of it. */
#include "audit.h"

#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/plugin.h"

/* Refused because of the caller, not because of the request. */
static bool is_refusal(int rc)
{
    return rc == NG_EFORBIDDEN || rc == NG_EMODE || rc == NG_ERUN ||
           rc == NG_EUNAUTHENTICATED || rc == NG_ERATE;
}

/* Which of a tool's operations it is, where the tool says that one argument decides it. */
static struct ng_str operation(const struct call *call)
{
    const char *name = call->tool->desc.read_argument;
    const struct ng_value *value;
    if (name == NULL || call->pub.args == NULL) {
        value = NULL;
    } else {
        value = json_get(call->pub.args, name);
    }
    bool known = value != NULL && value->type == NG_TYPE_STRING;
    if (known) {
        return value->text;
    }
    return str_make(NULL, 0);
}

static void add_changes(struct log_record *record, const struct call *call)
{
    if (call->change_count == 0) {
        return;
    }
    log_record_list(record, "changes");
    for (const struct call_change *at = call->changes; at != NULL; at = at->next) {
        log_record_change(record, at->collection, at->id, at->revision);
    }
    log_record_list_end(record);
    if (call->change_count > CALL_CHANGES_MAX) {
        log_record_int(record, "more", (int64_t)call->change_count - CALL_CHANGES_MAX);
    }
}

void audit_call(const struct call *call, int rc, int64_t took_ns)
{
    struct log_record record;
    const struct ng_caller *caller = &call->caller;
    const struct result *staged = &call->staged;
    if (call->tool == NULL || (call->read_only && call->change_count == 0 && !is_refusal(rc))) {
        return;
    }
    const char *outcome = "ok";
    if (rc != NG_OK) {
        outcome = call_error_name(call, rc);
    }
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "tool", call->pub.tool);
    log_record_text(&record, "operation", operation(call));
    log_record_text(&record, "outcome", ng_str_of(outcome));
    if (rc != staged->rc) {
        log_record_text(&record, "ended", ng_str_of(staged->code));
    }
    if (call->answer_state == CALL_ANSWER_REPEATED) {
        log_record_word(&record, "repeated", "true"); /* nothing was done again */
    }
    log_record_text(&record, "agent", caller->agent);
    if (call->key != NULL) {
        log_record_text(&record, "key", ng_str_of(call->key->id));
    }
    log_record_text(&record, "remote", call->remote);
    log_record_text(&record, "client", utf8_cut(call->client, AUDIT_CLIENT_MAX));
    log_record_text(&record, "space", caller->space);
    log_record_text(&record, "role", ng_str_of(key_role_name(caller->role)));
    log_record_text(&record, "mode", ng_str_of(key_mode_name(caller->mode)));
    log_record_ms(&record, "duration_ms", took_ns);
    if (staged->rc == NG_OK && staged->revision_kind == REVISION_TEXT) {
        log_record_text(&record, "revision", staged->revision_text);
    } else if (staged->rc == NG_OK && staged->revision_kind == REVISION_NUMBER) {
        log_record_int(&record, "revision", (int64_t)staged->revision_number);
    }
    log_record_text(&record, "request_id", caller->request_id);
    log_record_text(&record, "traceparent", caller->traceparent);
    add_changes(&record, call);
    log_record_end(&record, "%.*s %s", (int)call->pub.tool.len, call->pub.tool.data, outcome);
}

void audit_event(const struct audit_event *event)
{
    struct log_record record;
    bool stranger = strcmp(event->outcome, error_name(NULL, NG_EUNAUTHENTICATED)) == 0;
    bool on = call_is_audited(event->gateway) ||
              (event->is_of_keys && log_switched_on(LOG_AUDIT_KEYED));
    if (!on || (stranger && !log_switched_on(LOG_AUDIT))) {
        return;
    }
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "event", ng_str_of(event->what));
    log_record_text(&record, "outcome", ng_str_of(event->outcome));
    log_record_text(&record, "agent", event->agent);
    log_record_text(&record, "key", event->key);
    log_record_text(&record, "remote", event->remote);
    log_record_text(&record, "client", utf8_cut(event->client, AUDIT_CLIENT_MAX));
    log_record_text(&record, "target", event->target);
    log_record_text(&record, "request_id", event->request_id);
    log_record_text(&record, "traceparent", event->traceparent);
    log_record_end(&record, "%s %s", event->what, event->outcome);
}
