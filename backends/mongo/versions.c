/* SPDX-License-Identifier: MIT */
/* versions.c - earlier revisions: those in the versions collection, and those still in the
 * document's outbox. */
#include "db.h"

#include <stdio.h>

int state_apply(struct state *state, const bson_t *version)
{
    int rc;
    struct ng_str json = member_str(version, "json");
    struct ng_str text = member_str(version, "text");
    enum kept kept = (enum kept)member_i64(version, "kept");
    if (kept == KEPT_WHOLE) {
        rc = bytes_set(&state->json, json);
        if (rc == NG_OK) {
            rc = bytes_set(&state->text, text);
        }
    } else if (kept == KEPT_SPLICE) {
        rc = bytes_splice(&state->json, member_u64(version, "json_at"),
                          member_u64(version, "json_removed"), json);
        if (rc == NG_OK) {
            rc = bytes_splice(&state->text, member_u64(version, "text_at"),
                              member_u64(version, "text_removed"), text);
        }
    } else {
        rc = NG_EUNAVAILABLE;
    }
    if (rc == NG_OK) {
        state->revision = member_u64(version, "revision");
    } else {
        state->revision = 0;
    }
    return rc;
}

void state_done(struct state *state)
{
    bytes_done(&state->json);
    bytes_done(&state->text);
    state->revision = 0;
}

void version_row(const bson_t *version, const struct ng_key *key, struct ng_doc *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->key = *key;
    ret->revision = member_u64(version, "revision");
    ret->deleted = member_bool(version, "deleted");
    ret->text_size = member_u64(version, "text_size");
    ret->seq = member_u64(version, "seq");
    ret->created_seq = member_u64(version, "created_seq");
    ret->created_ms = member_i64(version, "created");
    ret->updated_ms = member_i64(version, "time");
    ret->author = member_str(version, "agent");
    ret->action = member_str(version, "action");
}

/* ---- the versions of one document, from both places ---- */

struct walk {
    op_each_fn *each;
    void *user;
    bool ascending, stopped;
    uint64_t last; /* last revision given; 0: none */
    uint32_t left;
    const bson_t *doc; /* its outbox is merged in */
    uint64_t from, to;
    int rc;
};

static int walk_report(struct walk *walk, const bson_t *version)
{
    uint64_t revision = member_u64(version, "revision");
    if (walk->last != 0 &&
        (walk->ascending ? revision <= walk->last : revision >= walk->last)) {
        return 0; /* moved while we read: already given from the other place */
    }
    if (walk->left == 0 || walk->stopped) {
        walk->stopped = true;
        return 1;
    }
    walk->last = revision;
    walk->left--;
    if (walk->each(walk->user, version) != 0) {
        walk->stopped = true;
        return 1;
    }
    return 0;
}

static int walk_moved(void *user, const bson_t *version)
{
    return walk_report(user, version);
}

/* Position of an entry in the document, as a libbson view itself must not be moved. */
struct place {
    const uint8_t *data;
    uint32_t len;
};

/* The wanted entries of the outbox, in the order of revisions; free() the list. Out of memory
 * is reported in walk->rc, as missing entries would be an error. */
static struct place *outbox_list(struct walk *walk, size_t *ret_count)
{
    bson_iter_t iter, entries;
    struct place *list = NULL;
    size_t count = 0;
    size_t cap = 0;
    *ret_count = 0;
    if (walk->doc == NULL || !bson_iter_init_find(&iter, walk->doc, "outbox") ||
        !bson_iter_recurse(&iter, &entries)) {
        return NULL;
    }
    while (bson_iter_next(&entries)) {
        struct place place = {NULL, 0};
        bson_t view;
        if (count == cap) {
            if (cap == 0) {
                cap = 16;
            } else {
                cap = cap * 2;
            }
            struct place *grown = realloc(list, cap * sizeof(*grown));
            if (grown == NULL) {
                walk->rc = NG_EINTERNAL;
                walk->stopped = true;
                break;
            }
            list = grown;
        }
        if (!BSON_ITER_HOLDS_DOCUMENT(&entries)) {
            continue;
        }
        bson_iter_document(&entries, &place.len, &place.data);
        if (bson_init_static(&view, place.data, place.len)) {
            uint64_t revision = member_u64(&view, "revision");
            bool inside = revision >= walk->from && revision <= walk->to;
            list[count] = place;
            count += inside && member_i64(&view, "kept") != KEPT_NONE;
        }
    }
    *ret_count = count;
    return list;
}

static void walk_outbox(struct walk *walk)
{
    size_t count = 0;
    struct place *list = outbox_list(walk, &count);
    for (size_t i = 0; i < count && !walk->stopped; i++) {
        const struct place *place = &list[walk->ascending ? i : count - 1 - i];
        bson_t view;
        if (bson_init_static(&view, place->data, place->len)) {
            (void)walk_report(walk, &view);
        }
    }
    free(list);
}

int versions_each(struct mongo *db, const char *collection, struct ng_str name,
                  const bson_t *doc, const struct ng_range *range, op_each_fn *each, void *user,
                  struct fault *fault)
{
    struct bytes low = {0};
    struct bytes high = {0};
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    bson_t part;
    struct walk walk = {.each = each,
                        .user = user,
                        .ascending = range->ascending,
                        .left = range->limit,
                        .doc = doc,
                        .from = range->from,
                        .to = range->to == 0 ? UINT64_MAX : range->to};
    memset(fault, 0, sizeof(*fault));
    int rc = name_version(collection, name, walk.from, &low);
    if (rc == NG_OK) {
        rc = name_version(collection, name, walk.to, &high);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &part);
    put_str(&part, "$gte", bytes_str(&low));
    put_str(&part, "$lte", bytes_str(&high));
    (void)bson_append_document_end(&filter, &part);
    nest_i32(&filter, "kept", "$gt", KEPT_NONE);
    nest_i32(&opts, "sort", "_id", range->ascending ? 1 : -1);
    if (!range->with_body) {
        BSON_APPEND_DOCUMENT_BEGIN(&opts, "projection", &part);
        BSON_APPEND_INT32(&part, "json", 0);
        BSON_APPEND_INT32(&part, "text", 0);
        (void)bson_append_document_end(&opts, &part);
    }
    if (rc == NG_OK && !range->ascending) {
        walk_outbox(&walk);
    }
    if (rc == NG_OK && !walk.stopped && walk.left > 0) {
        (void)op_find(db, OWN_VERSIONS, &filter, &opts, walk_moved, &walk, fault);
        rc = fault->rc;
    }
    if (rc == NG_OK && range->ascending && !walk.stopped) {
        walk_outbox(&walk);
    }
    if (rc == NG_OK && walk.rc != NG_OK) {
        rc = walk.rc;
        fault->rc = rc;
        (void)snprintf(fault->text, sizeof(fault->text), "no memory for the versions");
    }
    bson_destroy(&filter);
    bson_destroy(&opts);
    bytes_done(&low);
    bytes_done(&high);
    return rc;
}

/* ---- the content of one revision ---- */

struct load_state {
    struct state *state;
    uint64_t start;
    int rc;
};

static int find_whole(void *user, const bson_t *version)
{
    struct load_state *load = user;
    if (member_i64(version, "kept") == KEPT_WHOLE) {
        load->start = member_u64(version, "revision");
        return 1;
    }
    return 0;
}

static int load_step(void *user, const bson_t *version)
{
    struct load_state *load = user;
    uint64_t revision = member_u64(version, "revision");
    bool whole = member_i64(version, "kept") == KEPT_WHOLE;
    if (!whole && load->state->revision + 1 != revision) {
        /* After thinning: a splice applies to the kept version before it only if that is its
         * base. */
        load->rc = NG_EUNAVAILABLE;
        return 1;
    }
    load->rc = state_apply(load->state, version);
    return load->rc != NG_OK;
}

int version_load(struct mongo *db, const char *collection, struct ng_str name,
                 const bson_t *doc, uint64_t revision, struct state *state, struct fault *fault)
{
    struct load_state load = {.state = state};
    struct ng_range range = {
        .size = sizeof(range), .from = 1, .to = revision, .limit = UINT32_MAX};
    memset(fault, 0, sizeof(*fault));
    if (state->revision == revision) {
        return NG_OK;
    }
    int rc = versions_each(db, collection, name, doc, &range, find_whole, &load, fault);
    if (rc != NG_OK || load.start == 0) {
        if (rc != NG_OK) {
            return rc;
        }
        return NG_ENOTFOUND;
    }
    bool onward = state->revision >= load.start && state->revision < revision;
    if (onward) {
        range.from = state->revision + 1;
    } else {
        range.from = load.start;
    }
    range.ascending = true;
    range.with_body = true;
    if (!onward) {
        state->revision = 0;
    }
    rc = versions_each(db, collection, name, doc, &range, load_step, &load, fault);
    if (rc == NG_OK) {
        rc = load.rc;
    }
    if (rc == NG_OK && state->revision != revision) {
        rc = NG_ENOTFOUND;
    }
    if (rc != NG_OK) {
        state->revision = 0;
    }
    return rc;
}
