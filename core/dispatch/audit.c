/* SPDX-License-Identifier: MIT */
/* audit.c - the calls and events that have an audit line or an entry, and the text of lines. */
#include "audit.h"

#include "audit_put.h"
#include "audit_refusals.h"
#include "core/base/clock.h"
#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/plugin.h"

#define ASKED_NAME_MAX 128

/* Documents and resources that a caller may not see are answered as if they were not there. */
static bool may_hide(const struct call *call)
{
    return call->tool == NULL || call->tool->plugin->desc.collection_count > 0;
}

/* Refused because of the caller and what it may reach, not because of the request's form. */
static bool is_refusal(const struct call *call, int rc)
{
    if (rc == NG_OK || rc == NG_ENOTCONFIGURED) {
        return false;
    }
    int status = call_error_status(call, rc);
    bool limited = call->key != NULL && !call->caller.all_spaces;
    bool strange_uri = call->tool == NULL && rc == NG_EINVAL; /* no resource has such a URI */
    return status == 401 || status == 403 || status == 429 || rc == NG_EUNKNOWN_TOOL ||
           (limited && (strange_uri || (status == 404 && may_hide(call))));
}

/* The tool by its name, or as it was asked for. */
static struct ng_str asked_tool(const struct call *call)
{
    if (call->pub.tool.len > 0) {
        return call->pub.tool;
    }
    return utf8_cut(call->tool_name, ASKED_NAME_MAX);
}

/* Of arguments that name what a tool works on, the first one that the call has. */
static struct ng_str asked_target(const struct call *call)
{
    static const char *const names[] = {
        "path", "notebook_id", "checkpoint_id", "notebook", "id", "uri", "name", "run",
    };
    if (call->target.data != NULL || !json_is(call->pub.args, NG_TYPE_OBJECT)) {
        return call->target;
    }
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        const struct ng_value *value = json_get(call->pub.args, names[i]);
        if (json_is(value, NG_TYPE_STRING)) {
            return value->text;
        }
    }
    return call->target;
}

/* Which of a tool's operations it is, where the tool says that one argument decides it; or that
 * it is a preview. */
static struct ng_str operation(const struct call *call)
{
    if (call_has(call, CALL_PREVIEWS)) {
        return ng_str_of("preview");
    }
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
    size_t kept = 0;
    for (const struct call_change *at = call->changes; at != NULL; at = at->next) {
        kept++;
    }
    log_record_list(record, "changes");
    for (const struct call_change *at = call->changes; at != NULL; at = at->next) {
        if (kept-- <= CALL_CHANGES_MAX) { /* the first of them */
            log_record_change(record, at->collection, utf8_cut(at->id, LOG_VALUE_MAX),
                              at->revision);
        }
    }
    log_record_list_end(record);
    if (call->change_count > CALL_CHANGES_MAX) {
        log_record_int(record, "more", (int64_t)call->change_count - CALL_CHANGES_MAX);
    }
}

/* Of the documents that it changed, if it did: a folder of notes has a space of its own. */
static struct ng_str space_of(const struct call *call)
{
    if (call->changes != NULL) {
        return call->changes->space;
    }
    return call->caller.space;
}

/* 0: no line is due. */
static unsigned count_refusal(const struct call *call, const char *outcome)
{
    struct ng_str tool = asked_tool(call);
    struct audit_refusal refusal = {
        .code = outcome,
        .agent = call->caller.agent,
        .key = call->key != NULL ? ng_str_of(call->key->id) : str_make(NULL, 0),
        .remote = call->remote,
        .tool = str_or(tool, str_make(NULL, 0)),
        .method = tool.len == 0 ? call->method : str_make(NULL, 0),
        .target = asked_target(call),
    };
    return audit_refusals_count(call->gateway->refusals, &refusal, clock_monotonic_ns());
}

/* Does a call that was not refused have a line, or an entry? with_reads: also where it only
 * reads. */
static bool is_told(const struct call *call, bool with_reads)
{
    bool reads = (call->read_only || call_has(call, CALL_PREVIEWS)) && call->change_count == 0;
    if (call->tool == NULL && !reads) {
        return false; /* the gateway's own work */
    }
    return !reads || (with_reads && asked_tool(call).len + call->method.len > 0);
}

static void write_line(const struct call *call, const struct audit_outcome *end)
{
    struct log_record record;
    const struct ng_caller *caller = &call->caller;
    const struct result *staged = &call->staged;
    const char *outcome = end->name;
    struct ng_str tool = end->tool;
    bool refused = end->is_refusal;
    unsigned count = 0;
    if (refused) {
        count = count_refusal(call, outcome);
    }
    if (refused ? count == 0 : !is_told(call, log_switched_on(LOG_AUDIT_READS))) {
        return;
    }
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "tool", str_or(tool, str_make(NULL, 0)));
    if (tool.len == 0) {
        log_record_text(&record, "method", call->method);
    } else if (call->tool != NULL) {
        log_record_text(&record, "operation", end->operation);
    }
    log_record_text(&record, "outcome", ng_str_of(outcome));
    if (refused) {
        log_record_int(&record, "count", count);
    }
    if (refused || call->read_only) {
        log_record_text(&record, "target", asked_target(call));
    }
    if (end->rc != staged->rc) {
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
    log_record_text(&record, "client", utf8_cut(caller->client, AUDIT_CLIENT_MAX));
    log_record_text(&record, "space", space_of(call));
    log_record_text(&record, "role", ng_str_of(key_role_name(caller->role)));
    log_record_text(&record, "mode", ng_str_of(key_mode_name(caller->mode)));
    log_record_ms(&record, "duration_ms", end->took_ns);
    if (staged->rc == NG_OK && staged->revision_kind == REVISION_TEXT) {
        log_record_text(&record, "revision", staged->revision_text);
    } else if (staged->rc == NG_OK && staged->revision_kind == REVISION_NUMBER) {
        log_record_int(&record, "revision", (int64_t)staged->revision_number);
    }
    log_record_text(&record, "run", caller->run_id);
    log_record_text(&record, "request_id", caller->request_id);
    log_record_text(&record, "traceparent", caller->traceparent);
    add_changes(&record, call);
    char asked[ASKED_NAME_MAX * 2];
    log_record_shown(asked, sizeof(asked), tool.len > 0 ? tool : call->method);
    log_record_end(&record, "%s %s", asked, outcome);
}

void audit_call(const struct call *call, int rc, int64_t took_ns)
{
    const struct gateway *gateway = call->gateway;
    struct audit_outcome end = {
        .rc = rc,
        .name = rc == NG_OK ? "ok" : call_error_name(call, rc),
        .tool = asked_tool(call),
        .operation = call->tool != NULL ? operation(call) : STR_NONE,
        .took_ns = took_ns,
    };
    end.is_refusal = is_refusal(call, rc) && end.tool.len + call->method.len > 0;
    if (call_is_audited(gateway)) {
        write_line(call, &end);
    }
    if (gateway_keeps_audit(gateway) &&
        (end.is_refusal || is_told(call, atomic_load(&gateway->audit.reads)))) {
        audit_put_call(call, &end);
    }
}

void audit_event_by(struct audit_event *event, const struct call *call)
{
    event->face = call->face;
    event->agent = call->caller.agent;
    event->key = ng_str_of(call->key != NULL ? call->key->id : NULL);
    event->remote = call->remote;
    event->client = call->caller.client;
    event->run = call->caller.run_id;
    event->request_id = call->caller.request_id;
    event->traceparent = call->caller.traceparent;
}

/* 0: no line is due. */
static unsigned count_request(struct audit_refusals *refusals, const struct audit_event *event)
{
    struct audit_refusal refusal = {
        .code = event->outcome,
        .agent = str_or(event->agent, ng_str_of("")),
        .key = event->key,
        .remote = event->remote,
        .event = ng_str_of(event->what),
        .target = event->target,
    };
    return audit_refusals_count(refusals, &refusal, clock_monotonic_ns());
}

void audit_event(const struct audit_event *event)
{
    struct log_record record;
    bool stranger = strcmp(event->outcome, error_name(NULL, NG_EUNAUTHENTICATED)) == 0;
    bool on = call_is_audited(event->gateway) ||
              (event->is_of_keys && log_switched_on(LOG_AUDIT_KEYED));
    bool has_line = on && (!stranger || log_switched_on(LOG_AUDIT));
    bool has_entry = gateway_keeps_audit(event->gateway) ||
                     (event->is_of_keys && event->gateway->audit.writer != NULL);
    unsigned count = 0;
    if (has_entry &&
        (!event->is_refusal || count_request(event->gateway->audit.refusals, event) > 0)) {
        audit_put_event(event);
    }
    if (!has_line ||
        (event->is_refusal && (count = count_request(event->gateway->refusals, event)) == 0)) {
        return;
    }
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "event", ng_str_of(event->what));
    log_record_text(&record, "outcome", ng_str_of(event->outcome));
    if (event->is_refusal) {
        log_record_int(&record, "count", count);
    }
    log_record_text(&record, "agent", event->agent);
    log_record_text(&record, "key", event->key);
    log_record_text(&record, "remote", event->remote);
    log_record_text(&record, "client", utf8_cut(event->client, AUDIT_CLIENT_MAX));
    log_record_text(&record, "target", event->target);
    log_record_text(&record, "members", event->members);
    log_record_text(&record, "run", event->run);
    log_record_text(&record, "request_id", event->request_id);
    log_record_text(&record, "traceparent", event->traceparent);
    log_record_end(&record, "%s %s", event->what, event->outcome);
}
