/* SPDX-License-Identifier: MIT */
/*
 * host_undo.c - takes back the last change of a document: the one rule of undo for documents.
 *
 * The revisions are read first, as a change function must not read. The change then expects the
 * newest of them; if another change was faster, all of it is done again. A refusal, too, is
 * made under the lock of the document, so that it is never made of an old state.
 */
#include <inttypes.h>

#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/call/gateway.h"
#include "core/fault/module_run.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "core/store/idempotency.h"
#include "core/store/store.h"
#include "host.h"

/* Tries against other changes of the same document. */
#define UNDO_ATTEMPTS_MAX 64
/* Bytes of a failure message; the name of a document may be long. */
#define UNDO_MESSAGE_MAX ((size_t)128 * 1024)

enum undo_refusal {
    UNDO_MAY = 0,
    UNDO_NOTHING,  /* no change is left */
    UNDO_FOREIGN,  /* the last change is of another agent */
    UNDO_MOST,     /* NG_UNDO_MAX are undone */
    UNDO_NOT_KEPT, /* a revision that it needs was removed */
};

struct undo {
    struct call *call;
    struct ng_undo what;
    struct ng_undo_step step;
    enum undo_refusal refusal;
    bool stale; /* another change was faster than the one that this attempt makes */
};

/* One change of an undo: the plugin's, on exactly one revision. */
struct undo_change {
    struct undo *undo;
    ng_change_fn *fn;
    void *user;
    uint64_t revision;
};

/* ---- which change is the last ---- */

/* The revision with the content of this one that a change, not an undo, made. */
static uint64_t undo_base(const struct ng_doc *doc)
{
    int64_t base = json_get_integer(doc->body, "undo_base");
    return base > 0 && (uint64_t)base < doc->revision ? (uint64_t)base : doc->revision;
}

/* The number of undos in a row that led to it. */
static uint64_t undo_count(const struct ng_doc *doc)
{
    int64_t undos = json_get_integer(doc->body, "undos");
    return undos > 0 ? (uint64_t)undos : 0;
}

/* *ret stays as it is if the revision is not kept, which is a refusal, no failure. */
static int undo_read(struct undo *undo, uint64_t revision, const struct ng_doc **ret)
{
    struct call *call = undo->call;
    struct result before = call->staged;
    int rc = store_get(call->gateway->store, call, &undo->what.key, revision, ret);
    if (rc == NG_ENOTFOUND) {
        call->staged = before;
        undo->refusal = UNDO_NOT_KEPT;
        rc = NG_OK;
    }
    return rc;
}

/* The revision that the last change made; 0: none is left. The undo of a creation leaves a
 * deleted document, which has no JSON: its base follows from the revision before it. */
static int undo_find_last(struct undo *undo, uint64_t *ret)
{
    struct ng_undo_step *step = &undo->step;
    const struct ng_doc *doc = step->present;
    uint64_t last = undo_base(doc);
    step->undos = undo_count(doc) + 1;
    for (int i = 0; doc->deleted && str_is(doc->action, NG_ACTION_UNDONE); i++) {
        int rc = i < NG_UNDO_MAX ? undo_read(undo, last - 1, &doc) : NG_OK;
        if (i == NG_UNDO_MAX) {
            undo->refusal = UNDO_MOST;
        }
        if (rc != NG_OK || undo->refusal != UNDO_MAY) {
            return rc;
        }
        if (i == 0) {
            step->undos = undo_count(doc) + 2;
        }
        last = undo_base(doc) - 1;
        if (last == 0) {
            break;
        }
        rc = undo_read(undo, last, &doc);
        if (rc != NG_OK || undo->refusal != UNDO_MAY) {
            return rc;
        }
    }
    *ret = last;
    return NG_OK;
}

/* The change and what was before it. */
static int undo_find(struct undo *undo)
{
    struct ng_undo_step *step = &undo->step;
    uint64_t last = 0;
    *step = (struct ng_undo_step){.size = sizeof(*step)};
    undo->refusal = UNDO_MAY;
    int rc = undo_read(undo, 0, &step->present);
    bool is_purged = rc == NG_OK && step->present->deleted &&
                     str_is(step->present->action, NG_ACTION_PURGED);
    if (rc == NG_OK && step->present->revision > 0 && !is_purged) {
        rc = undo_find_last(undo, &last);
    }
    if (rc != NG_OK || undo->refusal != UNDO_MAY) {
        return rc;
    }
    if (last == 0) {
        undo->refusal = UNDO_NOTHING;
        return NG_OK;
    }
    rc = undo_read(undo, last, &step->last);
    if (rc != NG_OK || undo->refusal != UNDO_MAY) {
        return rc;
    }
    if (last < step->present->revision && !step->present->deleted &&
        !str_equal(step->last->text, step->present->text)) {
        /* The number is of another store, out of a backup: this is a change as any other. */
        last = step->present->revision;
        step->last = step->present;
        step->undos = 1;
    }
    struct ng_str author = step->last->author; /* "": by another program */
    if (author.len > 0 && !str_equal(author, undo->call->caller.agent)) {
        undo->refusal = UNDO_FOREIGN;
    } else if (step->undos > NG_UNDO_MAX) {
        undo->refusal = UNDO_MOST;
    } else if (last > 1) {
        rc = undo_read(undo, last - 1, &step->former);
    }
    if (step->former != NULL && step->former->deleted) {
        step->former = NULL;
    }
    step->base = step->former != NULL ? undo_base(step->former) : 0;
    return rc;
}

/* ---- refusals ---- */

static void undo_add_reason(const struct undo *undo, struct buf *out)
{
    struct ng_str name = undo->what.name;
    const struct ng_doc *last = undo->step.last;
    char time[RFC3339_SIZE];
    switch (undo->refusal) {
    case UNDO_MAY:
    case UNDO_NOTHING:
        (void)buf_add_str(out, ng_str_of("No edit history found for "));
        (void)buf_add_str(out, name);
        (void)buf_add_str(out, ng_str_of("."));
        return;
    case UNDO_FOREIGN:
        rfc3339_write(last->updated_ms, RFC3339_SECONDS, time);
        (void)buf_add_str(out, ng_str_of("The last change of "));
        (void)buf_add_str(out, name);
        (void)buf_printf(out, " is not yours: the agent %.*s made it at %s.",
                         (int)last->author.len, last->author.data, time);
        break;
    case UNDO_MOST:
        (void)buf_printf(out, "The last %d changes of ", NG_UNDO_MAX);
        (void)buf_add_str(out, name);
        (void)buf_add_str(out, ng_str_of(" are undone, which is the most in a row."));
        break;
    case UNDO_NOT_KEPT:
        (void)buf_add_str(out, ng_str_of("What "));
        (void)buf_add_str(out, name);
        (void)buf_add_str(out, ng_str_of(" was before its last change is no longer kept "
                                         "(history.keep)."));
        break;
    }
    (void)buf_add_str(out, ng_str_of(" Nothing was undone; "));
    (void)buf_add_str(out, undo->what.instead);
    (void)buf_add_str(out, ng_str_of("."));
}

static void undo_details(const struct undo *undo)
{
    const struct ng_doc *last = undo->step.last;
    struct ng_writer *details = host_details(&undo->call->pub);
    char time[RFC3339_SIZE];
    rfc3339_write(last->updated_ms, RFC3339_SECONDS, time);
    json_object(details);
    json_name(details, "changed_by");
    json_string(details, last->author);
    json_name(details, "timestamp");
    json_cstring(details, time);
    json_end(details);
}

static int undo_refuse(const struct undo *undo)
{
    struct buf message;
    int code = undo->refusal == UNDO_FOREIGN ? NG_ECONFLICT : NG_EFAILED;
    if (undo->step.present->revision == 0) {
        code = NG_ENOTFOUND;
    }
    buf_init(&message, UNDO_MESSAGE_MAX);
    undo_add_reason(undo, &message);
    code = host_fail_text(&undo->call->pub, code, buf_str(&message));
    buf_done(&message);
    if (undo->refusal == UNDO_FOREIGN) {
        undo_details(undo);
    }
    return code;
}

/* ---- the changes ---- */

/* Under the lock of the document. */
static int undo_change_run(struct ng_call *pub, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct undo_change *change = user;
    struct undo *undo = change->undo;
    undo->stale = present->revision != change->revision;
    if (undo->stale) {
        return call_fail(undo->call, NG_ECONFLICT,
                         "other changes of the document kept coming between; nothing was "
                         "undone, try again in a moment");
    }
    if (undo->refusal != UNDO_MAY) {
        return undo_refuse(undo);
    }
    return change->fn(pub, present, next, change->user);
}

/* Asks the plugin for its changes, as ng_undo_step_fn says. */
static int undo_plan(struct undo *undo, struct ng_change *changes, size_t *ret_count)
{
    struct call *call = undo->call;
    *ret_count = 1;
    changes[0] = (struct ng_change){
        .size = sizeof(changes[0]),
        .key = undo->what.key,
        .expected_revision = undo->step.present->revision,
    };
    if (undo->refusal != UNDO_MAY) {
        return NG_OK;
    }
    int rc = undo->what.fn(&call->pub, &undo->step, changes, ret_count, undo->what.user);
    for (size_t i = 0; rc == NG_OK && i < *ret_count; i++) {
        rc = host_may_change(call, changes[i].key.collection);
    }
    return rc;
}

/* Stores the answer of the call's idempotency key, if it has one, in the same commit. */
static int undo_write(struct undo *undo, const struct ng_change *changes, size_t count)
{
    struct call *call = undo->call;
    struct store *store = call->gateway->store;
    struct ng_answer answer;
    if (call->idempotency == NULL || undo->refusal != UNDO_MAY) {
        return store_write_wait(store, call, changes, count);
    }
    int rc = idempotency_answer(call, &answer);
    if (rc == NG_OK) {
        rc = store_write_answered_wait(store, call, changes, count, &answer);
    }
    if (rc == NG_OK) {
        call->answer_state = CALL_ANSWER_STORED;
    } else if (rc == NG_EKEYREUSED) {
        /* Another gateway has done this call. */
        call_reset_result(call);
        rc = idempotency_adopt(call);
        undo->stale = rc == NG_ENOTFOUND;
    }
    return rc;
}

static int undo_attempt(struct undo *undo)
{
    struct ng_change changes[NG_UNDO_CHANGES];
    struct undo_change runs[NG_UNDO_CHANGES];
    size_t count = 0;
    undo->stale = false;
    int rc = undo_find(undo);
    if (rc == NG_OK) {
        rc = undo_plan(undo, changes, &count);
    }
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        runs[i] = (struct undo_change){undo, changes[i].fn, changes[i].user,
                                       changes[i].expected_revision};
        changes[i].fn = undo_change_run;
        changes[i].user = &runs[i];
        changes[i].has_expected = i == 0 && undo->what.has_expected;
        changes[i].expected_revision = undo->what.expected_revision;
    }
    return undo_write(undo, changes, count);
}

int host_undo(struct ng_call *pub, const struct ng_undo *what)
{
    struct call *call = call_of(pub);
    struct undo undo = {.call = call};
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    int rc = abi_take(call, &abi_undo, &undo.what, what);
    if (rc == NG_OK) {
        rc = host_may_change(call, undo.what.key.collection);
    }
    if (rc != NG_OK) {
        return rc;
    }
    for (int i = 0; i < UNDO_ATTEMPTS_MAX; i++) {
        call_reset_result(call);
        rc = undo_attempt(&undo);
        if (!undo.stale || host_cancelled(pub)) {
            break;
        }
    }
    return rc;
}
