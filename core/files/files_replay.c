/* SPDX-License-Identifier: MIT */
/* files_replay.c - retries of a call with an idempotency key whose answer was lost: an intent
 * of the first attempt, here or at another gateway, is recovered before the file is read. */
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "core/store/idempotency.h"
#include "core/store/store.h"
#include "files_state.h"

struct replay {
    struct call *call;
    struct ng_str json, text;
    struct ng_str gateway; /* the gateway that committed the intent; absent: this one */
    int rc;
};

static int replay_keep(struct replay *replay, struct ng_str json, struct ng_str text)
{
    struct arena *arena = &replay->call->arena;
    replay->json = arena_copy(arena, json);
    replay->text = arena_copy(arena, files_or_empty(text));
    if (replay->json.data == NULL || replay->text.data == NULL) {
        return call_no_memory(replay->call);
    }
    return NG_OK;
}

/* ---- intents of this gateway */

static int replay_look(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    struct replay *replay = user;
    (void)call;
    (void)next;
    replay->json = str_make(NULL, 0);
    if (present->revision == 0 || present->deleted) {
        return NG_OK;
    }
    return replay_keep(replay, present->json, present->text);
}

/* Reads the intent in a transaction, which sees queued changes: the completion may be queued.
 */
static int replay_recover_own(struct files *files, struct call *call, struct ng_str real,
                              bool *ret_found)
{
    struct replay replay = {.call = call};
    struct ng_str space = files_intent_space(call);
    struct ng_change look = {
        .size = sizeof(look),
        .key = {ng_str_of(FILES_INTENTS), space, real},
        .fn = replay_look,
        .user = &replay,
    };
    int rc = store_write_wait(files->store, call, &look, 1);
    if (rc != NG_OK || replay.json.data == NULL) {
        return rc;
    }
    *ret_found = true;
    return files_recover(files, call, space, replay.json, replay.text);
}

/* ---- intents of other gateways */

static int replay_row(void *user, const struct ng_doc *row)
{
    struct replay *replay = user;
    struct call *call = replay->call;
    struct file_record record;
    struct ng_str json = arena_copy(&call->arena, row->json);
    size_t prefix = strlen(FILES_INTENT_SPACE_OF);
    if (json.data == NULL || row->key.space.len < prefix ||
        files_record_parse(call, json, row->text, &record) != NG_OK) {
        call_reset_result(call);
        return 0;
    }
    if (record.has_answer && str_equal(record.answer.scope, idempotency_scope_of(call))) {
        replay->gateway = arena_copy(
            &call->arena, str_make(row->key.space.data + prefix, row->key.space.len - prefix));
        replay->rc = replay_keep(replay, row->json, row->text);
        return 1;
    }
    return 0;
}

/* The spaces of other gateways' intents. */
static int replay_spaces(struct call *call, struct ng_str **ret, size_t *ret_count)
{
    int rc = cluster_peers(call->gateway->cluster, call, ret, ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        (*ret)[i] = arena_printf(&call->arena, FILES_INTENT_SPACE_OF "%.*s", (int)(*ret)[i].len,
                                 (*ret)[i].data);
    }
    return rc;
}

/* The open intents of other gateways for this file. */
static int replay_query(struct files *files, struct call *call, struct ng_str real,
                        ng_row_fn *row, void *user)
{
    struct ng_str *spaces = NULL;
    struct ng_term term = {
        .field = ng_str_of("id"),
        .op = NG_TERM_EQ,
        .value = real,
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(FILES_INTENTS),
        .terms = &term,
        .term_count = 1,
        .with_text = true,
    };
    int rc = replay_spaces(call, &spaces, &query.space_count);
    if (rc != NG_OK || query.space_count == 0) {
        return rc;
    }
    query.spaces = spaces;
    query.limit = (uint32_t)query.space_count;
    return store_query(files->store, call, &query, row, user, NULL);
}

static int replay_find(struct files *files, struct call *call, struct ng_str real,
                       struct replay *ret)
{
    *ret = (struct replay){.call = call};
    int rc = replay_query(files, call, real, replay_row, ret);
    return rc != NG_OK ? rc : ret->rc;
}

struct built_on_search {
    struct call *call;
    struct file_record *record;
    struct ng_str real;
    const char *before; /* hash of the content that the change found */
    size_t count;
};

static int built_on_row(void *user, const struct ng_doc *row)
{
    struct built_on_search *search = user;
    struct call *call = search->call;
    struct file_record *record = search->record;
    struct file_record there;
    struct ng_str json = arena_copy(&call->arena, row->json);
    struct ng_str space = arena_copy(&call->arena, row->key.space);
    struct result before = call->staged;
    if (json.data == NULL || space.data == NULL ||
        files_record_parse(call, json, row->text, &there) != NG_OK) {
        call->staged = before;
        return 0;
    }
    if (!there.happened && there.group == NULL && strcmp(there.after, search->before) == 0) {
        record->marks[record->mark_count++] =
            (struct file_built_on){space, search->real, search->before};
        search->count++;
    }
    return search->count == FILES_MARKS_EACH;
}

int files_replay_built_on(struct files *files, struct call *call, struct file_record *record)
{
    struct built_on_search from = {call, record, record->real, record->before, 0};
    struct built_on_search to = {call, record, record->to, "", 0};
    record->mark_count = 0;
    if (!store_is_shared(files->store)) {
        return NG_OK;
    }
    int rc = replay_query(files, call, record->real, built_on_row, &from);
    if (rc != NG_OK || record->to.len == 0) {
        return rc;
    }
    return replay_query(files, call, record->to, built_on_row, &to);
}

static int replay_busy(struct call *call, struct ng_str real)
{
    return call_fail(
        call, NG_EBUSY,
        "Another gateway is making this same change of %.*s. Try again in a moment.",
        (int)real.len, real.data);
}

/* A gateway that is alive completes its own intents. */
static int replay_recover_other(struct files *files, struct call *call, struct ng_str real,
                                bool *ret_found)
{
    struct replay replay;
    int fd = -1;
    int rc = replay_find(files, call, real, &replay);
    if (rc != NG_OK || replay.json.data == NULL) {
        return rc;
    }
    if (cluster_is_alive(call->gateway->cluster, replay.gateway) ||
        files_busy_elsewhere(files, call, real, &fd)) {
        rc = replay_busy(call, real);
    } else {
        struct ng_str space = arena_printf(&call->arena, FILES_INTENT_SPACE_OF "%.*s",
                                           (int)replay.gateway.len, replay.gateway.data);
        *ret_found = true;
        rc = files_recover(files, call, space, replay.json, replay.text);
    }
    files_close_fd(&fd);
    return rc;
}

/* ---- steps of the call */

int files_replay_answer(struct call *call, bool *ret_answered)
{
    int rc = idempotency_adopt(call);
    *ret_answered = rc == NG_OK;
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

int files_replay_recover(struct files *files, struct call *call, const struct ng_str *names,
                         size_t count, bool *ret_answered)
{
    int rc = NG_OK;
    bool shared = store_is_shared(files->store);
    *ret_answered = false;
    if (call->idempotency == NULL) {
        return NG_OK;
    }
    bool found = !shared; /* with shared documents files_replay_check() looks again */
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = replay_recover_own(files, call, names[i], &found);
        if (rc == NG_OK && shared) {
            rc = replay_recover_other(files, call, names[i], &found);
        }
    }
    /* Another call may have recovered the intent while this one waited for the lock. */
    if (rc != NG_OK || !found) {
        return rc;
    }
    return files_replay_answer(call, ret_answered);
}

/* NG_EBUSY if another gateway has an intent of this call. */
static int replay_elsewhere(struct files *files, struct call *call, const struct ng_str *names,
                            size_t count)
{
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        struct replay replay;
        rc = replay_find(files, call, names[i], &replay);
        if (rc == NG_OK && replay.json.data != NULL) {
            rc = replay_busy(call, names[i]);
        }
    }
    return rc;
}

int files_replay_check(struct files *files, struct call *call, const struct ng_str *names,
                       size_t count, bool *ret_answered)
{
    *ret_answered = false;
    if (call->idempotency == NULL || !store_is_shared(files->store)) {
        return NG_OK;
    }
    int rc = replay_elsewhere(files, call, names, count);
    return rc != NG_OK ? rc : files_replay_answer(call, ret_answered);
}

int files_replay_end(struct files *files, struct call *call, const struct ng_str *names,
                     size_t count, int rc)
{
    bool answered = false;
    if (rc >= NG_OK || rc == NG_EBUSY || call->idempotency == NULL ||
        !store_is_shared(files->store)) {
        return rc;
    }
    struct result kept = call->staged;
    /* The cause of the failure may be another attempt of this call that came meanwhile. */
    if (replay_elsewhere(files, call, names, count) == NG_EBUSY) {
        return NG_EBUSY;
    }
    call->staged = kept;
    if (files_replay_answer(call, &answered) != NG_OK || !answered) {
        call->staged = kept;
        return rc;
    }
    return NG_OK;
}

/* ---- a call that its tool refused */

#define REPEAT_PAGE 256

/* The intent of an earlier attempt, which may be of any file. */
struct repeat {
    struct call *call;
    struct ng_str space, real; /* absent: there is none */
    size_t seen;
    int rc;
};

static int repeat_row(void *user, const struct ng_doc *row)
{
    struct repeat *repeat = user;
    struct call *call = repeat->call;
    struct file_record record;
    struct ng_str json = arena_copy(&call->arena, row->json);
    repeat->seen++;
    if (json.data == NULL || files_record_parse(call, json, row->text, &record) != NG_OK) {
        call_reset_result(call);
        return 0;
    }
    if (!record.has_answer || !str_equal(record.answer.scope, idempotency_scope_of(call))) {
        return 0;
    }
    repeat->space = arena_copy(&call->arena, row->key.space);
    repeat->real = arena_copy(&call->arena, row->key.id);
    if (repeat->space.data == NULL || repeat->real.data == NULL) {
        repeat->rc = call_no_memory(call);
    }
    return 1;
}

static int repeat_query(struct files *files, const struct ng_str *spaces, size_t count,
                        struct repeat *repeat)
{
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(FILES_INTENTS),
        .spaces = spaces,
        .space_count = count,
        .limit = REPEAT_PAGE,
        .with_text = true,
    };
    int rc = NG_OK;
    do {
        repeat->seen = 0;
        rc = store_query(files->store, repeat->call, &query, repeat_row, repeat, NULL);
        query.offset += REPEAT_PAGE;
    } while (rc == NG_OK && repeat->real.data == NULL && repeat->seen == REPEAT_PAGE);
    return rc != NG_OK ? rc : repeat->rc;
}

static int repeat_find(struct files *files, struct repeat *repeat)
{
    struct ng_str own = files_intent_space(repeat->call);
    struct ng_str *others = NULL;
    size_t count = 0;
    int rc = repeat_query(files, &own, 1, repeat);
    if (rc == NG_OK && repeat->real.data == NULL && store_is_shared(files->store)) {
        rc = replay_spaces(repeat->call, &others, &count);
    }
    return rc != NG_OK || count == 0 ? rc : repeat_query(files, others, count, repeat);
}

static int repeat_recover(struct files *files, const struct repeat *repeat)
{
    struct call *call = repeat->call;
    size_t prefix = strlen(FILES_INTENT_SPACE_OF);
    bool busy = false;
    int rc = NG_OK;
    if (!str_equal(repeat->space, files_intent_space(call))) {
        struct ng_str gateway =
            str_make(repeat->space.data + prefix, repeat->space.len - prefix);
        busy = cluster_is_alive(call->gateway->cluster, gateway);
    }
    if (!busy) {
        rc = files_recover_one(files, call, repeat->space, repeat->real, &busy);
    }
    return busy ? replay_busy(call, repeat->real) : rc;
}

int files_repeat_refused(struct call *call, int rc)
{
    struct files *files = call->gateway->files;
    struct repeat repeat = {.call = call};
    struct result kept = call->staged;
    bool answered = false;
    int found_rc = repeat_find(files, &repeat);
    if (found_rc == NG_OK && repeat.real.data != NULL) {
        found_rc = repeat_recover(files, &repeat);
        if (found_rc != NG_OK) {
            return found_rc; /* it is not known whether the refusal is right */
        }
    }
    if (found_rc == NG_OK) {
        found_rc = files_replay_answer(call, &answered);
    }
    if (found_rc != NG_OK || !answered) {
        call->staged = kept;
        return rc;
    }
    return NG_OK;
}
