/* SPDX-License-Identifier: MIT */
/*
 * as_of.c - the revision that a document had at a point. The backend finds the kept revisions
 * around the point, or else the core: the newest ones one after the other, then by a binary
 * search. Where the next kept one after the point is not the next revision, some were thinned
 * out between the two: the changes between them tell whether one of those lies before the
 * point.
 *
 * Versions of files are quiet, and a content that is too large gets none: the events of the
 * changes at the path tell which version was there, or that there was a content without one.
 */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/call.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "notegate/files.h"
#include "trail.h"

/* Revisions that are read one after the other: most points are recent. */
#define AS_OF_NEWEST 32
/* Memory of the data of an event of a file's change, which has up to two paths, and of a found
 * version. */
#define FILE_DATA_MAX ((size_t)1024 * 1024)

enum kept_end { KEPT_NEWEST, KEPT_OLDEST };

/* A kept revision; number 0: none. */
struct kept {
    uint64_t revision, seq;
    int64_t time_ms;
};

static int take_row(void *user, const struct ng_doc *row)
{
    *(struct kept *)user = (struct kept){row->revision, row->seq, row->updated_ms};
    return 1;
}

static bool is_after(const struct point *point, uint64_t seq, int64_t time_ms)
{
    return point->kind == POINT_SEQ ? seq > point->number : time_ms > point->time_ms;
}

struct as_of {
    struct call *call;
    const struct ng_key *key;
    const struct point *point;
};

static bool is_file(const struct ng_key *key)
{
    return str_is(key->collection, NG_FILE_VERSIONS);
}

/* The newest or the oldest of the kept revisions from `from` to `to`. */
static int kept_between(const struct as_of *find, uint64_t from, uint64_t to,
                        enum kept_end which, struct kept *ret)
{
    const struct ng_range range = {.size = sizeof(range),
                                   .from = from,
                                   .to = to,
                                   .limit = 1,
                                   .ascending = which == KEPT_OLDEST};
    *ret = (struct kept){0};
    if (from > to) {
        return NG_OK;
    }
    return store_history(find->call->gateway->store, find->call, find->key, &range, take_row,
                         ret);
}

/* The newest kept revisions, as far as they lie after the point. */
struct newest {
    const struct as_of *find;
    struct kept before; /* the first that does not; number 0: none of those read */
    struct kept after;  /* the last that does */
};

static int take_newest(void *user, const struct ng_doc *row)
{
    struct newest *newest = user;
    struct kept kept = {row->revision, row->seq, row->updated_ms};
    bool after = is_after(newest->find->point, kept.seq, kept.time_ms);
    *(after ? &newest->after : &newest->before) = kept;
    return !after;
}

/* The newest kept revision that is not after the point, and the next kept one, which is. */
static int ask_kept(const struct as_of *find, struct kept *ret_before, struct kept *inout_after)
{
    const struct point *point = find->point;
    struct ng_kept kept;
    uint64_t seq = point->kind == POINT_SEQ ? point->number : UINT64_MAX;
    int64_t time_ms = point->kind == POINT_TIME ? point->time_ms : INT64_MAX;
    int rc = store_revision_at(find->call->gateway->store, find->call, find->key, seq, time_ms,
                               &kept);
    if (rc == NG_OK) {
        *ret_before = (struct kept){kept.before, kept.before_seq, kept.before_ms};
    }
    if (rc == NG_OK && kept.after != 0) {
        *inout_after = (struct kept){kept.after, kept.after_seq, kept.after_ms};
    }
    return rc;
}

/* The same, of a backend that cannot be asked. */
static int search_kept(const struct as_of *find, struct kept *ret_before,
                       struct kept *inout_after)
{
    struct newest newest = {.find = find, .after = *inout_after};
    const struct ng_range range = {.size = sizeof(range), .limit = AS_OF_NEWEST};
    int rc = store_history(find->call->gateway->store, find->call, find->key, &range,
                           take_newest, &newest);
    *ret_before = newest.before;
    *inout_after = newest.after;
    uint64_t floor = newest.before.revision; /* between it and the one after none is kept */
    if (floor != 0) {
        return rc;
    }
    while (rc == NG_OK && floor + 1 < inout_after->revision) {
        uint64_t middle = floor + (inout_after->revision - floor) / 2;
        struct kept row;
        rc = kept_between(find, floor + 1, middle, KEPT_NEWEST, &row);
        if (rc == NG_OK && row.revision != 0 && is_after(find->point, row.seq, row.time_ms)) {
            *inout_after = row;
        } else if (rc == NG_OK) {
            *ret_before = row.revision != 0 ? row : *ret_before;
            floor = middle;
        }
    }
    return rc;
}

/* ---- what is not kept ---- */

/* The changes between two kept revisions, newest first. */
struct between {
    const struct as_of *find;
    uint64_t before, after; /* the kept revisions around the point; after 0: none */
    uint64_t revision;      /* the one at the point, which is not kept; 0: none */
    uint64_t next;          /* of the oldest change after the point; 0: none */
    bool is_unversioned;    /* a file's content at the point has no version */
    bool is_over;
};

/* Returns the number of the version that a change of a file has made; 0: none. */
static uint64_t version_of(const struct ng_event *event, bool *ret_has_content)
{
    const struct ng_value *data = NULL;
    struct arena arena;
    int64_t version = 0;
    *ret_has_content = false;
    arena_init(&arena, FILE_DATA_MAX);
    if (event->data.len > 0 &&
        json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK) {
        (void)json_integer(json_get(data, "version"), &version);
        *ret_has_content = json_get(data, "revision") != NULL || json_get(data, "from") != NULL;
    }
    arena_done(&arena);
    return version > 0 ? (uint64_t)version : 0;
}

static int take_between(void *user, const struct ng_event *event)
{
    struct between *between = user;
    bool has_content = true;
    uint64_t revision =
        is_file(between->find->key) ? version_of(event, &has_content) : event->revision;
    if (is_after(between->find->point, event->seq, event->time_ms)) {
        between->next = revision > between->before ? revision : between->next;
        return 0;
    }
    between->revision = revision > between->before ? revision : 0;
    between->is_unversioned = revision == 0 && has_content;
    between->is_over = between->revision != 0 || between->is_unversioned;
    return between->is_over;
}

static int walk_between(const struct kept *before, const struct kept *after,
                        struct between *between)
{
    const struct ng_key *key = between->find->key;
    uint64_t next = after->seq != 0 ? after->seq - 1 : UINT64_MAX;
    int rc = NG_OK;
    while (rc == NG_OK && next > before->seq && !between->is_over) {
        struct ng_trail wanted = {.size = sizeof(wanted),
                                  .since = before->seq,
                                  .until = next,
                                  .spaces = {&key->space, 1},
                                  .id = key->id};
        if (!is_file(key)) { /* its changes are in the collections of the tools */
            wanted.collections = (struct ng_names){&key->collection, 1};
        }
        rc = trail_walk(between->find->call, &wanted, take_between, between, &next);
    }
    return rc;
}

/* A content of a file that was found has no change of its own, and may be older than the change
 * that found it: a version that is thinned out, without a change up to the point, may have been
 * there. */
static int find_unkept(const struct as_of *find, const struct kept *before,
                       const struct kept *after, struct ng_as_of *ret)
{
    struct between between = {
        .find = find, .before = before->revision, .after = after->revision};
    int rc = walk_between(before, after, &between);
    uint64_t next = between.next != 0 ? between.next : between.after;
    if (is_file(find->key) && !between.is_over && next > before->revision + 1) {
        between.revision = before->revision + 1;
    }
    if (rc == NG_OK && (between.revision != 0 || between.is_unversioned)) {
        *ret = (struct ng_as_of){.size = ret->size,
                                 .revision = u64_max(between.revision, before->revision),
                                 .before = before->revision,
                                 .after = after->revision};
    }
    return rc;
}

static int find_point(const struct as_of *find, const struct ng_doc *newest,
                      struct ng_as_of *ret)
{
    struct kept before = {newest->revision, newest->seq, newest->updated_ms};
    struct kept after = {0};
    int rc = NG_OK;
    if (is_after(find->point, newest->seq, newest->updated_ms)) {
        void *db = NULL;
        bool asks = store_backend(find->call->gateway->store, &db)->revision_at != NULL;
        after = before;
        before = (struct kept){0};
        rc = asks ? ask_kept(find, &before, &after) : search_kept(find, &before, &after);
    }
    ret->revision = before.revision;
    ret->kept = before.revision != 0;
    if (rc == NG_OK && (is_file(find->key) || after.revision > before.revision + 1)) {
        rc = find_unkept(find, &before, &after, ret);
    }
    return rc;
}

/* ---- versions of files that were found ---- */

/* The next version, if its content was found: the time of the file. */
struct found {
    bool is_found;
    int64_t modified_ms;
};

static int take_found(void *user, const struct ng_doc *row)
{
    struct found *found = user;
    const struct ng_value *data = NULL;
    struct arena arena;
    if (!str_is(row->action, NG_FILE_FOUND)) {
        return 1;
    }
    arena_init(&arena, FILE_DATA_MAX);
    found->is_found =
        json_parse(&arena, row->event_data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK &&
        json_integer(json_get(data, "modified"), &found->modified_ms) == NG_OK;
    arena_done(&arena);
    return 1;
}

/* Another program had saved a version before a tool found it: it was there from the time of the
 * file on, and not from the time of its revision. */
static int find_found(const struct as_of *find, uint64_t newest, struct ng_as_of *ret)
{
    int rc = NG_OK;
    bool more = find->point->kind == POINT_TIME;
    while (rc == NG_OK && more && ret->revision < newest) {
        uint64_t next = ret->after != 0 ? ret->after : ret->revision + 1;
        struct found found = {.modified_ms = 0};
        const struct ng_range range = {
            .size = sizeof(range), .from = next, .to = next, .limit = 1};
        rc = store_history(find->call->gateway->store, find->call, find->key, &range,
                           take_found, &found);
        more = rc == NG_OK && found.is_found && found.modified_ms <= find->point->time_ms;
        if (more) {
            *ret = (struct ng_as_of){.size = ret->size, .revision = next, .kept = more};
        }
    }
    return rc;
}

/* A revision that the caller names. */
static int find_number(const struct as_of *find, uint64_t newest, const char *name,
                       struct ng_as_of *ret)
{
    struct kept row;
    uint64_t number = find->point->number;
    if (number == 0 || number > newest) {
        return call_fail(find->call, NG_ENOTFOUND,
                         "there is no revision %llu (`%s`): the newest one is %llu",
                         (unsigned long long)number, name, (unsigned long long)newest);
    }
    ret->revision = number;
    int rc = kept_between(find, number, number, KEPT_NEWEST, &row);
    ret->kept = rc == NG_OK && row.revision != 0;
    if (rc == NG_OK && !ret->kept) {
        rc = kept_between(find, 1, number - 1, KEPT_NEWEST, &row);
        ret->before = row.revision;
    }
    if (rc == NG_OK && !ret->kept) {
        rc = kept_between(find, number + 1, newest, KEPT_OLDEST, &row);
        ret->after = row.revision;
    }
    return rc;
}

/* For calls and for commands, which name the space in front of the collection. */
static int no_document(struct call *call, const struct ng_key *key)
{
    const char *others = "; SPACE/COLLECTION/ID, or `space`, names one of another space";
    return call_fail(
        call, NG_ENOTFOUND, "there is no document \"%.*s\" in %.*s of the space %.*s%s",
        (int)key->id.len, key->id.data, (int)key->collection.len, key->collection.data,
        (int)key->space.len, key->space.data, text_if(!call->caller.space_named, others));
}

int as_of_find(struct call *call, const struct ng_key *key, const char *name,
               const struct point *point, struct ng_as_of *ret)
{
    const struct as_of find = {call, key, point};
    const struct ng_doc *newest = NULL;
    int rc = store_get(call->gateway->store, call, key, 0, &newest);
    bool needs_seq = point->kind == POINT_SEQ || (point->kind == POINT_TIME && is_file(key));
    if (rc == NG_OK && needs_seq && newest->revision != 0 && newest->seq == 0) {
        rc = trail_settle(call); /* without a number it would lie before all points */
        if (rc == NG_OK) {
            rc = store_get(call->gateway->store, call, key, 0, &newest);
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (newest->revision == 0) {
        return no_document(call, key);
    }
    if (point->kind == POINT_REVISION) {
        return find_number(&find, newest->revision, name, ret);
    }
    rc = find_point(&find, newest, ret);
    if (rc == NG_OK && is_file(key)) {
        rc = find_found(&find, newest->revision, ret);
    }
    return rc;
}
