/* SPDX-License-Identifier: MIT */
/*
 * journal_cursor.c - the stored cursor of the delivery, and the mark by which it notices that
 * the journal lost data.
 *
 * A journal on a server of its own holds a random mark and the number of the last event that it
 * took; the cursor in the database holds both as well. A journal with another mark, or none,
 * was emptied; one with an earlier number lost its newest entries. The delivery then puts a new
 * mark into the journal, stores it with an earlier cursor, and delivers from there. In this
 * order a stored mark is always in the journal: a failure between the two steps is not taken
 * for a loss. All gateways take the mark from the database, so that several that notice the
 * loss agree; the marks of the others stay in the journal, unused.
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "journal_delivery.h"
#include "journal_documents.h"

#define CURSOR_ID "cursor"
/* The cursor belongs to the gateway, not to a space; it is stored beside the pointers. */
#define CURSOR_SPACE "shared"

/* As it is stored. */
struct cursor {
    uint64_t seq;       /* all events up to this one are delivered */
    uint64_t delivered; /* the last one that the journal took */
    char mark[DELIVERY_MARK_SIZE];
};

/* False: there is none of the present journal. A different one (the setting `journal` was
 * changed, or a backup restored) gets all events and ignores those it has. */
static bool cursor_read(const struct journal_front *front, const struct ng_value *body,
                        struct cursor *ret)
{
    int64_t seq = 0;
    int64_t delivered = 0;
    *ret = (struct cursor){0};
    if (!str_is(json_get_text(body, "journal"), front->inner->name)) {
        return false;
    }
    struct ng_str mark = json_get_text(body, "mark");
    (void)json_integer(json_get(body, "seq"), &seq);
    (void)json_integer(json_get(body, "delivered"), &delivered);
    if (mark.len == DELIVERY_MARK_SIZE - 1) {
        memcpy(ret->mark, mark.data, mark.len);
    }
    ret->seq = (uint64_t)i64_max(seq, 0);
    ret->delivered = (uint64_t)i64_max(delivered, 0);
    return true;
}

static struct ng_key cursor_key(void)
{
    return journal_key(JOURNAL_STATE, ng_str_of(CURSOR_SPACE), ng_str_of(CURSOR_ID));
}

static int cursor_load(struct journal_front *front, struct call *call, struct cursor *ret)
{
    struct ng_key key = cursor_key();
    const struct ng_doc *doc = NULL;
    *ret = (struct cursor){0};
    int rc = store_get(front->store, call, &key, 0, &doc);
    if (rc == NG_OK && doc->revision > 0 && !doc->deleted) {
        (void)cursor_read(front, doc->body, ret);
    }
    return rc;
}

struct cursor_write {
    const struct journal_front *front;
    const char *mark; /* the one that it replaces */
    struct cursor next;
};

static int cursor_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct cursor_write *write = user;
    const struct cursor *to = &write->next;
    struct cursor there;
    if (cursor_read(write->front, present->body, &there)) {
        bool same = strcmp(there.mark, to->mark) == 0;
        /* Another gateway went back, or has stored a later one. */
        if (strcmp(there.mark, write->mark) != 0 || (same && there.seq >= to->seq)) {
            return NG_OK;
        }
    }
    struct ng_str json =
        arena_printf(&call_of(call)->arena,
                     "{\"seq\":%llu,\"journal\":\"%s\",\"mark\":\"%s\",\"delivered\":%llu}",
                     (unsigned long long)to->seq, write->front->inner->name, to->mark,
                     (unsigned long long)to->delivered);
    if (json.data == NULL) {
        return call_no_memory(call_of(call));
    }
    return store_draft_json(next, json);
}

static int cursor_store(struct journal_front *front, struct call *call,
                        struct cursor_write *write)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = cursor_key(),
        .fn = cursor_change,
        .user = write,
    };
    return store_write_wait(front->store, call, &change, 1);
}

int delivery_store_cursor(struct journal_front *front, struct call *call, uint64_t seq)
{
    struct cursor_write write = {
        .front = front,
        .mark = front->mark,
        .next = {.seq = seq, .delivered = front->delivered},
    };
    memcpy(write.next.mark, front->mark, sizeof(write.next.mark));
    int rc = cursor_store(front, call, &write);
    if (rc == NG_OK) {
        lock_take(&front->lock);
        front->stored = seq;
        lock_release(&front->lock);
    }
    return rc;
}

int delivery_stored_cursor(struct journal_front *front, struct call *call, uint64_t *ret)
{
    struct cursor cursor;
    int rc = cursor_load(front, call, &cursor);
    *ret = cursor.seq;
    return rc;
}

int delivery_load_cursor(struct journal_front *front, struct call *call)
{
    struct cursor cursor;
    bool shared = store_is_shared(front->store);
    int rc = cursor_load(front, call, &cursor);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&front->lock);
    uint64_t from = front->cursor;
    bool back = strcmp(cursor.mark, front->mark) != 0;
    if (back) {
        memcpy(front->mark, cursor.mark, sizeof(front->mark));
        front->delivered = cursor.delivered;
        front->cursor = cursor.seq;
    } else {
        /* Keeps a later cursor in memory, so that skipped events are not read again. */
        front->cursor = u64_max(cursor.seq, front->cursor);
        front->delivered = u64_max(cursor.delivered, front->delivered);
    }
    front->stored = cursor.seq;
    if (back && shared) {
        front->seen = front->cursor;
        front->backlog = 0;
    }
    bool moved = !back && shared && front->cursor > from;
    lock_release(&front->lock);
    if (moved) {
        delivery_count_moved(front, from);
    }
    return NG_OK;
}

/* ---- the mark ---- */

/* After the cursor went back: the backlog from there on. */
static void cursor_count(struct journal_front *front)
{
    if (store_is_shared(front->store)) {
        delivery_count_newer(front);
        return;
    }
    lock_take(&front->lock);
    uint64_t until = front->seen;
    front->backlog = 0;
    lock_release(&front->lock);
    delivery_count_older(front, until);
}

/* Goes on behind the event `seq` with a new mark. */
static int cursor_begin_anew(struct journal_front *front, struct call *call, uint64_t seq)
{
    struct cursor_write write = {
        .front = front,
        .mark = front->mark,
        .next = {.seq = seq, .delivered = seq},
    };
    if (!random_hex((DELIVERY_MARK_SIZE - 1) / 2, write.next.mark)) {
        return call_fail(call, NG_EINTERNAL, "the system has no random bytes");
    }
    int rc = front->inner->deliver_marked(front->db, &call->pub, ng_str_of(write.next.mark),
                                          write.next.delivered, NULL, 0);
    if (rc == NG_OK) {
        rc = cursor_store(front, call, &write);
    }
    if (rc == NG_OK) {
        rc = delivery_load_cursor(front, call);
    }
    if (rc == NG_OK) {
        cursor_count(front);
    }
    return rc;
}

int delivery_check_journal(struct journal_front *front, struct call *call, bool *ret_more)
{
    uint64_t seq = 0;
    front->checked_ns = clock_monotonic_ns();
    if (front->inner->mark == NULL) {
        return front->remote ? front->inner->health(front->db, &call->pub) : NG_OK;
    }
    if (front->mark[0] == '\0') {
        int rc = cursor_begin_anew(front, call, front->cursor);
        *ret_more = rc == NG_OK;
        return rc;
    }
    int rc = front->inner->mark(front->db, &call->pub, ng_str_of(front->mark), &seq);
    if (rc == NG_OK || rc == NG_ENOTFOUND) {
        call_reset_result(call);
    }
    if (rc == NG_ENOTFOUND) {
        seq = 0;
    } else if (rc != NG_OK || seq >= front->delivered) {
        return rc;
    }
    uint64_t from = u64_min(seq, front->cursor);
    rc = cursor_begin_anew(front, call, from);
    /* A failure: the next round comes after a wait, should a server lose the mark each time. */
    return rc != NG_OK ? rc
                       : call_fail(call, NG_EUNAVAILABLE,
                                   "it lost its data behind event %llu, which is delivered "
                                   "again; its summaries and checkpoints are not",
                                   (unsigned long long)from);
}
