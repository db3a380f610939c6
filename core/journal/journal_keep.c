/* SPDX-License-Identifier: MIT */
/* journal_keep.c - journal.keep: trims older entries from the journal of every space. The
 * delivery notes the spaces, because a journal cannot list them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* All notes are in one space, so that one query finds them. The id is the noted space. */
#define KEEP_SPACE "shared"
#define KEEP_PAGE 256
/* Time between two trims. */
#define KEEP_EVERY_MS (INT64_C(60) * 60 * 1000)

/* ---- the spaces ---- */

static int keep_compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static bool keep_knows(const struct journal_front *front, const char *space)
{
    return front->space_count > 0 && bsearch(&space, front->spaces, front->space_count,
                                             sizeof(*front->spaces), keep_compare) != NULL;
}

static int keep_write(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)call;
    (void)user;
    bool exists = present->revision > 0 && !present->deleted;
    return exists ? NG_OK : store_draft_json(next, ng_str_of("{}"));
}

static int keep_note(struct journal_front *front, struct call *call, const char *space)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(JOURNAL_SPACES, ng_str_of(KEEP_SPACE), ng_str_of(space)),
        .fn = keep_write,
    };
    char **grown = alloc_resize(front->spaces, (front->space_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return call_no_memory(call);
    }
    front->spaces = grown;
    char *copy = strdup(space);
    if (copy == NULL) {
        return call_no_memory(call);
    }
    int rc = store_write_wait(front->store, call, &change, 1);
    if (rc != NG_OK) {
        free(copy);
        return rc;
    }
    front->spaces[front->space_count++] = copy;
    qsort(front->spaces, front->space_count, sizeof(*front->spaces), keep_compare);
    return NG_OK;
}

int journal_keep_note(struct journal_front *front, struct call *call,
                      const struct ng_entry *const *entries, size_t count)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        if (i > 0 && str_equal(entries[i]->space, entries[i - 1]->space)) {
            continue;
        }
        struct ng_str space = arena_copy(&call->arena, entries[i]->space);
        if (space.data == NULL) {
            return call_no_memory(call);
        }
        if (!keep_knows(front, space.data)) {
            rc = keep_note(front, call, space.data);
        }
    }
    return rc;
}

void journal_keep_close(struct journal_front *front)
{
    for (size_t i = 0; i < front->space_count; i++) {
        free(front->spaces[i]);
    }
    free(front->spaces);
}

/* ---- trimming ---- */

void journal_set_keep(struct journal_front *front, int64_t keep_ms)
{
    if (front != NULL) {
        atomic_store(&front->keep_ms, keep_ms);
        atomic_store(&front->kept_ms, 0);
    }
}

struct keep_page {
    struct call *call;
    struct ng_str spaces[KEEP_PAGE];
    size_t count;
    uint64_t last_seq;
};

static int keep_row(void *user, const struct ng_doc *row)
{
    struct keep_page *page = user;
    struct ng_str space = arena_copy(&page->call->arena, row->key.id);
    page->last_seq = row->created_seq;
    page->spaces[page->count++] = space;
    return space.data == NULL;
}

/* In a call of its own, whose memory is freed after each space. */
static int keep_trim(struct journal_front *front, struct call *call, struct ng_str space,
                     int64_t before_ms)
{
    struct call *step = journal_step(call);
    if (step == NULL) {
        return NG_EINTERNAL;
    }
    int rc = space.data == NULL ? call_no_memory(step)
                                : front->inner->trim(front->db, &step->pub, space, before_ms);
    return journal_step_end(call, step, rc);
}

static int keep_trim_all(struct journal_front *front, struct call *call, int64_t before_ms)
{
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(JOURNAL_SPACES),
        .space = ng_str_of(KEEP_SPACE),
        .terms = &after,
        .term_count = 1,
        .sort = after.field,
        .limit = KEEP_PAGE,
    };
    struct keep_page *page = arena_zalloc(&call->arena, sizeof(*page));
    if (page == NULL) {
        return call_no_memory(call);
    }
    int rc = NG_OK;
    size_t count = KEEP_PAGE;
    while (rc == NG_OK && count == KEEP_PAGE) {
        page->call = call;
        page->count = 0;
        after.number = (double)page->last_seq;
        rc = store_query(front->store, call, &query, keep_row, page, NULL);
        count = page->count;
        for (size_t i = 0; rc == NG_OK && i < count; i++) {
            rc = keep_trim(front, call, page->spaces[i], before_ms);
        }
    }
    return rc;
}

int journal_keep_run(struct journal_front *front, struct call *call)
{
    int64_t keep = atomic_load(&front->keep_ms);
    int64_t before = atomic_load(&front->kept_ms);
    int64_t now = store_now(front->store);
    if (keep <= 0 || front->inner->trim == NULL ||
        (now >= before && now - before < KEEP_EVERY_MS)) {
        return NG_OK;
    }
    int rc = keep_trim_all(front, call, now - keep);
    if (rc == NG_OK) {
        /* Unless journal_set_keep() has reset it meanwhile. */
        (void)atomic_compare_exchange_strong(&front->kept_ms, &before, now);
    }
    return rc;
}
