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

/* The revisions in the event of an undo. A file is named by its path at that time. */
static void taken_add(struct taken *taken, const struct ng_event *event,
                      const struct ng_value *data)
{
    const struct ng_value *of = json_get(data, "of");
    const struct ng_value *at = json_is(of, NG_TYPE_ARRAY) ? of->first : NULL;
    struct ng_str id = str_or(json_get_text(data, "path"), event->key.id);
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
        json_get(data, "undo") != NULL && !taken_is_undone(taken, event, data)) {
        taken_add(taken, event, data);
    }
    arena_done(&arena);
    return !taken->fits;
}

static int taken_walk(struct taken *taken, struct ng_str id)
{
    const struct undo_doc *doc = taken->plan->doc;
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

int undo_taken(struct undo_plan *plan, bool *ret_taken)
{
    const struct undo_doc *doc = plan->doc;
    struct taken *taken = arena_zalloc(&plan->call->arena, sizeof(*taken));
    bool is_elsewhere = plan->file != NULL && plan->file->path.len > 0 &&
                        !str_equal(plan->file->path, doc->key.id);
    *ret_taken = false;
    if (taken == NULL) {
        return call_no_memory(plan->undo->call);
    }
    taken->plan = plan;
    taken->fits = true;
    int rc = is_elsewhere ? taken_walk(taken, plan->file->path) : NG_OK;
    rc = rc == NG_OK ? taken_walk(taken, doc->key.id) : rc;
    bool all = rc == NG_OK && taken->fits && doc->count > 0;
    for (size_t i = 0; i < doc->count && all; i++) {
        all = taken_has(taken, doc->key.id, doc->revisions[i]);
    }
    *ret_taken = all;
    return rc;
}
