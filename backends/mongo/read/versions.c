/* SPDX-License-Identifier: MIT */
/* versions.c - earlier revisions: those in the versions collection, and those still in the
 * document's outbox. */
#include "read.h"

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

void version_origin(const bson_t *version, struct ng_doc *ret)
{
    ret->tool = member_str(version, "tool");
    ret->event_data = member_str(version, "data");
    ret->origin = origin_of(version);
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
    version_origin(version, ret);
}

/* ---- the versions of one document, from both places ---- */

struct version_walk {
    op_each_fn *each;
    void *user;
    bool ascending, stopped;
    uint64_t last; /* last revision given; 0: none */
    uint32_t left;
    const bson_t *doc; /* its outbox is merged in */
    uint64_t from, to;
};

static int walk_report(void *user, const bson_t *version)
{
    struct version_walk *walk = user;
    uint64_t revision = member_u64(version, "revision");
    bool passed = revision >= walk->last;
    if (walk->ascending) {
        passed = revision <= walk->last;
    }
    if (walk->last != 0 && passed) {
        return 0; /* moved while we read: already given from the other place */
    }
    walk->stopped = walk->left == 0;
    if (!walk->stopped) {
        walk->last = revision;
        walk->left--;
        walk->stopped = walk->each(walk->user, version) != 0;
    }
    return walk->stopped;
}

/* The entries of the outbox, in the order of the walk. */
static int walk_outbox(struct version_walk *walk)
{
    bson_iter_t iter, entries;
    struct docs found = {.count = 0};
    if (walk->doc == NULL || !bson_iter_init_find(&iter, walk->doc, "outbox") ||
        !bson_iter_recurse(&iter, &entries)) {
        return NG_OK;
    }
    while (found.rc == NG_OK && bson_iter_next(&entries)) {
        bson_t view;
        if (iter_doc(&entries, &view)) {
            uint64_t revision = member_u64(&view, "revision");
            if (revision >= walk->from && revision <= walk->to &&
                member_i64(&view, "kept") != KEPT_NONE) {
                (void)docs_keep(&found, &view);
            }
        }
    }
    for (size_t i = 0; i < found.count && !walk->stopped && found.rc == NG_OK; i++) {
        size_t at = i;
        if (!walk->ascending) {
            at = found.count - 1 - i;
        }
        (void)walk_report(walk, found.list[at]);
    }
    docs_done(&found);
    return found.rc;
}

int versions_each(struct mongo *db, const char *collection, struct ng_str name,
                  const bson_t *doc, const struct ng_range *range, op_each_fn *each, void *user,
                  struct fault *fault)
{
    struct version_walk walk = {.each = each,
                                .user = user,
                                .ascending = range->ascending,
                                .left = range->limit,
                                .doc = doc,
                                .from = range->from,
                                .to = range->to};
    memset(fault, 0, sizeof(*fault));
    if (walk.to == 0) {
        walk.to = UINT64_MAX;
    }
    bson_t *filter = version_range(collection, name, walk.from, walk.to);
    if (filter == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory for the versions");
    }
    bson_t *opts = bson_of("sort:{_id:i}", 2 * range->ascending - 1);
    bson_add(filter, "kept:{$gt:i}", KEPT_NONE);
    if (!range->with_body) {
        bson_add(opts, "projection:{json:0, text:0}");
    }
    int rc = NG_OK;
    if (!range->ascending) {
        rc = walk_outbox(&walk);
    }
    if (rc == NG_OK && !walk.stopped && walk.left > 0) {
        (void)op_find(db, NULL, OWN_VERSIONS, filter, opts, walk_report, &walk, fault);
    } else {
        bson_destroy(filter);
        bson_destroy(opts);
    }
    if (rc == NG_OK && fault->rc == NG_OK && range->ascending && !walk.stopped) {
        rc = walk_outbox(&walk);
    }
    if (rc != NG_OK) {
        return fault_refuse(fault, rc, "no memory for the versions");
    }
    return fault->rc;
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

static int load_once(struct mongo *db, const char *collection, struct ng_str name,
                     const bson_t *doc, uint64_t revision, struct state *state,
                     struct fault *fault)
{
    struct load_state load = {.state = state};
    struct ng_range range = {
        .size = sizeof(range), .from = 1, .to = revision, .limit = UINT32_MAX};
    memset(fault, 0, sizeof(*fault));
    if (state->revision == revision) {
        return NG_OK;
    }
    int rc = versions_each(db, collection, name, doc, &range, find_whole, &load, fault);
    if (rc == NG_OK && load.start == 0) {
        rc = NG_ENOTFOUND;
    }
    if (rc != NG_OK) {
        return rc;
    }
    range.from = load.start;
    range.ascending = true;
    range.with_body = true;
    if (state->revision >= load.start && state->revision < revision) {
        range.from = state->revision + 1;
    } else {
        state->revision = 0;
    }
    rc = versions_each(db, collection, name, doc, &range, load_step, &load, fault);
    rc = int_min(rc, load.rc);
    if (rc == NG_OK && state->revision != revision) {
        rc = NG_ENOTFOUND;
    }
    if (rc != NG_OK) {
        state->revision = 0;
    }
    return rc;
}

/* Another gateway may thin the history between the two reads: once more shows what it left. */
int version_load(struct mongo *db, const char *collection, struct ng_str name,
                 const bson_t *doc, uint64_t revision, struct state *state, struct fault *fault)
{
    int rc = load_once(db, collection, name, doc, revision, state, fault);
    if (rc == NG_EUNAVAILABLE && fault->rc == NG_OK) {
        rc = load_once(db, collection, name, doc, revision, state, fault);
    }
    return rc;
}

int version_make_whole(struct mongo *db, const char *collection, struct ng_str name,
                       uint64_t revision, struct fault *fault)
{
    struct state state = {0};
    struct bytes ref = {0};
    int rc = version_load(db, collection, name, NULL, revision, &state, fault);
    if (rc == NG_OK) {
        rc = name_version(collection, name, revision, &ref);
    }
    if (rc == NG_OK) {
        (void)op_update(db, NULL, OWN_VERSIONS,
                        bson_of("_id:s, kept:i", bytes_str(&ref), KEPT_SPLICE),
                        bson_of("$set:{kept:i, json:s, text:s}, $unset:{json_at:1, "
                                "json_removed:1, text_at:1, text_removed:1}",
                                KEPT_WHOLE, bytes_str(&state.json), bytes_str(&state.text)),
                        NULL, fault);
        rc = fault->rc;
    }
    state_done(&state);
    bytes_done(&ref);
    return rc;
}
