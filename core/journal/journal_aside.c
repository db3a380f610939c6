/* SPDX-License-Identifier: MIT */
/* journal_aside.c - generations that a restore keeps beside the present one; removal of
 * checkpoints and of old entries. */
#include <string.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Format of a checkpoint that refers to a kept generation. */
#define JOURNAL_KEPT_FORMAT "notegate-journal-kept-1"

/* ---- copying a kept generation ---- */

struct journal_copy {
    struct call *call;
    struct journal_batch *batch;
    uint64_t last_seq;
    int rc;
};

static int journal_copy_row(void *user, const struct ng_doc *doc)
{
    struct journal_copy *copy = user;
    size_t at = copy->batch->count++;
    copy->last_seq = doc->created_seq;
    copy->rc = journal_row(copy->call, doc, &copy->batch->entries[at], &copy->batch->dates[at]);
    return copy->rc != NG_OK;
}

/* Copies one page of a part. copy->batch->count: its rows. */
static int journal_copy_batch(struct journal_documents *journal, struct call *step,
                              const struct ng_query *query, enum journal_place place,
                              uint64_t to, struct journal_copy *copy)
{
    struct journal_batch *batch = arena_zalloc(&step->arena, sizeof(*batch));
    if (batch == NULL) {
        return call_fail(step, NG_EINTERNAL, "out of memory for the journal");
    }
    copy->call = step;
    copy->batch = batch;
    int rc = store_query(journal->store, step, query, journal_copy_row, copy, NULL);
    if (rc == NG_OK) {
        rc = copy->rc;
    }
    for (size_t i = 0; rc == NG_OK && i < batch->count; i++) {
        rc = journal_put(step, place, to, batch->dates[i], &batch->entries[i],
                         &batch->changes[i]);
    }
    if (rc != NG_OK || batch->count == 0) {
        return rc;
    }
    return store_write_wait(journal->store, step, batch->changes, batch->count);
}

static int journal_copy_part(struct journal_documents *journal, struct call *call, size_t part,
                             struct ng_str space, uint64_t from, uint64_t to)
{
    struct journal_copy copy = {0};
    struct ng_term terms[2];
    struct ng_query query = journal_part_query(part, space, from, terms);
    query.limit = JOURNAL_BATCH;
    size_t count = 0;
    int rc = NG_OK;
    do {
        struct call *step = journal_step(call);
        if (step == NULL) {
            return NG_EINTERNAL;
        }
        terms[1].number = (double)copy.last_seq;
        rc = journal_copy_batch(journal, step, &query, journal_parts[part].place, to, &copy);
        if (rc == NG_OK) {
            count = copy.batch->count;
        }
        rc = journal_step_end(call, step, rc);
    } while (rc == NG_OK && count == JOURNAL_BATCH);
    return rc;
}

static int journal_copy_all(struct journal_documents *journal, struct call *call,
                            struct ng_str space, uint64_t from, uint64_t to)
{
    struct ng_str summary = {NULL, 0};
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < JOURNAL_PARTS; i++) {
        rc = journal_copy_part(journal, call, i, space, from, to);
    }
    if (rc == NG_OK) {
        rc = journal_summary_of(journal, call, space, from, &summary);
    }
    if (rc == NG_OK && summary.data != NULL) {
        rc = journal_summary_store(journal, call, to, space, summary);
    }
    return rc;
}

/* ---- restoring ---- */

/* Writes the journal that `json` contains or refers to into a new generation. */
static int journal_aside_fill(struct journal_documents *journal, struct call *call,
                              struct ng_str space, const struct journal_generation *generation,
                              const struct ng_value *json, uint64_t to)
{
    const struct ng_value *format = json_get(json, "format");
    const struct ng_value *id = json_get(json, "id");
    uint64_t from = 0;
    if (format != NULL && str_is(format->text, JOURNAL_FORMAT)) {
        return journal_restore_all(journal, call, space, to, json);
    }
    if (format == NULL || !str_is(format->text, JOURNAL_KEPT_FORMAT) || id == NULL) {
        return journal_damaged(call, "its format is not " JOURNAL_FORMAT);
    }
    if (!journal_generation_kept(generation, id->text, &from)) {
        return call_fail(call, NG_ENOTFOUND, "no journal is kept under '%.*s'",
                         (int)id->text.len, id->text.data);
    }
    return journal_copy_all(journal, call, space, from, to);
}

static int journal_aside_once(struct journal_documents *journal, struct call *call,
                              struct ng_str space, struct ng_str id,
                              const struct ng_value *json)
{
    struct journal_generation generation;
    uint64_t kept = 0;
    int rc = journal_generation_get(journal, call, space, &generation);
    if (rc != NG_OK || journal_generation_kept(&generation, id, &kept)) {
        return rc;
    }
    struct journal_move move = {.number = generation.last + 1, .keep = id};
    rc = journal_sweep(journal, call, space, &generation);
    if (rc == NG_OK) {
        rc = journal_aside_fill(journal, call, space, &generation, json, move.number);
    }
    if (rc == NG_OK) {
        rc = journal_generation_move(journal, call, space, &generation, &move);
    }
    return rc;
}

int journal_documents_restore_aside(void *user, struct ng_call *pub, struct ng_str space,
                                    struct ng_str id, struct ng_str text)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    const struct ng_value *json = NULL;
    struct arena tree;
    int tries = 0;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = journal_parse(call, &tree, text, &json);
    if (rc == NG_OK) {
        do {
            rc = journal_aside_once(journal, call, space, id, json);
        } while (journal_try_again(call, rc, &tries));
    }
    arena_done(&tree);
    return rc;
}

/* ---- removing ---- */

static int journal_delete_once(struct journal_documents *journal, struct call *call,
                               struct ng_str space, struct ng_str id)
{
    struct journal_generation generation;
    const struct ng_doc *doc = NULL;
    uint64_t kept = 0;
    size_t count = 1;
    struct ng_change changes[2] = {{
        .size = sizeof(changes[0]),
        .key = journal_key(JOURNAL_CHECKPOINTS, space, id),
        .fn = journal_remove_doc,
    }};
    int rc = store_get(journal->store, call, &changes[0].key, 0, &doc);
    if (rc == NG_OK && (doc->revision == 0 || doc->deleted)) {
        rc = call_fail(call, NG_ENOTFOUND, "there is no checkpoint '%.*s'", (int)id.len,
                       id.data);
    }
    if (rc == NG_OK) {
        rc = journal_generation_get(journal, call, space, &generation);
    }
    bool beside = rc == NG_OK && journal_generation_kept(&generation, id, &kept);
    if (beside) {
        struct journal_move move = {.number = generation.number, .drop = id};
        rc = journal_generation_change(call, space, &generation, &move, &changes[count++]);
    } else if (rc == NG_OK) {
        journal_generation_hold(space, &generation, &changes[count++]);
    }
    if (rc == NG_OK) {
        rc = store_write_wait(journal->store, call, changes, count);
    }
    if (rc == NG_OK && beside && generation.last > 0) {
        /* After a failure here the next restore sweeps. */
        rc = journal_generation_get(journal, call, space, &generation);
        if (rc == NG_OK) {
            rc = journal_sweep(journal, call, space, &generation);
        }
        if (rc == NG_ECONFLICT) {
            call_reset_result(call);
            rc = NG_OK;
        }
    }
    return rc;
}

int journal_documents_checkpoint_delete(void *user, struct ng_call *pub, struct ng_str space,
                                        struct ng_str id)
{
    struct call *call = call_of(pub);
    int tries = 0;
    int rc;
    do {
        rc = journal_delete_once(user, call, space, id);
    } while (journal_try_again(call, rc, &tries));
    return rc;
}

static int journal_trim_once(struct journal_documents *journal, struct call *call,
                             struct ng_str space, int64_t before_ms)
{
    struct journal_generation generation;
    struct ng_change hold;
    int rc = journal_generation_get(journal, call, space, &generation);
    if (rc != NG_OK) {
        return rc;
    }
    /* The pointer may have moved, and kept generations must stay complete. */
    journal_generation_hold(space, &generation, &hold);
    char date[RFC3339_DAY_SIZE];
    journal_zone_day(before_ms, date);
    struct ng_term terms[2] = {
        {.field = ng_str_of("gen"), .op = NG_TERM_EQ, .number = (double)generation.number},
    };
    for (size_t i = 0; rc == NG_OK && i < JOURNAL_PARTS; i++) {
        terms[1] = (struct ng_term){.op = NG_TERM_LT};
        if (journal_parts[i].place == JOURNAL_IN_DAY) {
            terms[1].field = ng_str_of("date");
            terms[1].value = ng_str_of(date);
        } else {
            terms[1].field = ng_str_of("time");
            terms[1].number = (double)before_ms;
        }
        struct ng_query query = {
            .size = sizeof(query),
            .collection = ng_str_of(journal_parts[i].collection),
            .space = space,
            .terms = terms,
            .term_count = NG_COUNT(terms),
        };
        bool more = true;
        /* Stops early: the next start continues. */
        while (rc == NG_OK && more && !atomic_load(&call->gateway->stopping)) {
            rc = journal_remove_some(journal, call, &query, &hold, &more);
        }
    }
    return rc;
}

int journal_documents_trim(void *user, struct ng_call *pub, struct ng_str space,
                           int64_t before_ms)
{
    struct call *call = call_of(pub);
    int tries = 0;
    int rc;
    do {
        rc = journal_trim_once(user, call, space, before_ms);
    } while (journal_try_again(call, rc, &tries));
    return rc;
}
