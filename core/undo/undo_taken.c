/* SPDX-License-Identifier: MIT */
/* undo_taken.c - changes that an undo has taken back already. They are no conflict once more:
 * there is nothing left to take back. */
#include "core/base/str.h"
#include "core/history/trail.h"
#include "core/json/json.h"
#include "undo.h"

/* Revisions that undos have taken back. */
#define TAKEN_MAX ((size_t)4096)
/* Memory of the data of one event. */
#define TAKEN_DATA_MAX ((size_t)1 << 20)

struct taken_one {
    struct ng_str id;
    uint64_t revision; /* of a document, or version of a file */
};

/* The events of one document, and of the file that it is now, newest first. */
struct taken {
    struct undo_plan *plan;
    struct taken_one items[TAKEN_MAX];
    size_t count;
    bool fits;
};

/* revision 0: any one. */
static bool taken_has(const struct taken *taken, struct ng_str id, uint64_t revision)
{
    for (size_t i = 0; i < taken->count; i++) {
        const struct taken_one *item = &taken->items[i];
        if ((revision == 0 || item->revision == revision) && str_equal(item->id, id)) {
            return true;
        }
    }
    return false;
}

const struct ng_value *undo_taken_next(const struct ng_value *data, const struct ng_value *at)
{
    if (at == NULL) {
        return json_get(data, "undo") != NULL ? data : NULL;
    }
    return at == data ? json_first(json_get(data, "also")) : at->next;
}

/* The revisions of one document. A file is named by its path at that time. */
static void taken_add(struct taken *taken, const struct ng_event *event,
                      const struct ng_value *document)
{
    const struct ng_value *at = json_first(json_get(document, "of"));
    struct ng_str id = str_or(json_get_text(document, "path"), event->key.id);
    id = arena_copy(&taken->plan->call->arena, id);
    taken->fits = id.data != NULL;
    for (; at != NULL && taken->fits; at = at->next) {
        int64_t revision = 0;
        taken->fits = taken->count < TAKEN_MAX && json_integer(at, &revision) == NG_OK;
        if (taken->fits) {
            taken->items[taken->count++] = (struct taken_one){id, (uint64_t)revision};
        }
    }
}

/* Has a newer undo taken back this one? A move is told at both paths, and counts at the new
 * one. */
static bool taken_is_undone(const struct taken *taken, const struct ng_event *event,
                            const struct ng_value *data)
{
    struct ng_str to = json_get_text(data, "to");
    int64_t version = (int64_t)event->revision;
    if (to.len > 0) {
        return taken_has(taken, to, 0);
    }
    (void)json_integer(json_get(data, "version"), &version);
    return taken_has(taken, event->key.id, (uint64_t)version);
}

static int taken_take(void *user, const struct ng_event *event)
{
    struct taken *taken = user;
    const struct undo_doc *doc = taken->plan->doc;
    const struct ng_value *data = NULL;
    struct arena arena;
    bool is_other = !doc->is_file && !str_equal(event->key.collection, doc->key.collection);
    if (event->data.len == 0 || is_other) {
        return 0;
    }
    arena_init(&arena, TAKEN_DATA_MAX);
    if (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK &&
        !taken_is_undone(taken, event, data)) {
        const struct ng_value *at = undo_taken_next(data, NULL);
        for (; at != NULL && taken->fits; at = undo_taken_next(data, at)) {
            taken_add(taken, event, at);
        }
    }
    arena_done(&arena);
    return !taken->fits;
}

static int taken_walk(struct taken *taken, struct ng_str id)
{
    const struct undo_doc *doc = undo_doc_oldest(taken->plan->doc);
    const struct ng_trail what = {.size = sizeof(what),
                                  .since = doc->first_seq,
                                  .until = UINT64_MAX,
                                  .spaces = {&doc->key.space, 1},
                                  .id = id};
    uint64_t next = 0;
    int rc = trail_walk(taken->plan->undo->call, &what, taken_take, taken, &next);
    taken->fits = taken->fits && next == 0; /* there are too many changes to know */
    return rc;
}

/* Reads the events at the paths of the file, and at the one where it is or would be. */
static int taken_read(struct taken *taken)
{
    const struct undo_plan *plan = taken->plan;
    struct ng_str home = undo_doc_home(plan->doc);
    struct ng_str now = plan->file != NULL ? plan->file->path : STR_NONE;
    int rc = NG_OK;
    for (const struct undo_doc *doc = plan->doc; rc == NG_OK && doc != NULL; doc = doc->older) {
        rc = taken_walk(taken, doc->key.id);
        now = str_equal(now, doc->key.id) ? STR_NONE : now;
    }
    if (rc == NG_OK && !str_equal(home, undo_doc_oldest(plan->doc)->key.id) &&
        !str_equal(home, now)) {
        rc = taken_walk(taken, home);
    }
    return rc == NG_OK && now.len > 0 ? taken_walk(taken, now) : rc;
}

int undo_taken(struct undo_plan *plan, bool *ret_taken)
{
    struct taken *taken = arena_zalloc(&plan->call->arena, sizeof(*taken));
    *ret_taken = false;
    if (taken == NULL) {
        return call_no_memory(plan->undo->call);
    }
    taken->plan = plan;
    taken->fits = true;
    int rc = taken_read(taken);
    bool all = rc == NG_OK && taken->fits;
    for (const struct undo_doc *doc = plan->doc; doc != NULL; doc = doc->older) {
        all = all && doc->count > 0;
        for (size_t i = 0; i < doc->count && all; i++) {
            all = taken_has(taken, doc->key.id, doc->revisions[i]);
        }
    }
    *ret_taken = all;
    return rc;
}
