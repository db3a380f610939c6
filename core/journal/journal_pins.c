/* SPDX-License-Identifier: MIT */
/* journal_pins.c - pins the versions that checkpoints name, against the upkeep of the store.
 * Their hashes are in documents, one for each checkpoint. */
#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* All pins are in one space, so that one query finds them. The id is SPACE/CHECKPOINT. */
#define PINS_SPACE "shared"
/* Most versions of one checkpoint. */
#define PINS_OF_ONE_MAX ((size_t)800000)
#define PINS_PAGE 8

/* ---- storing the pins of one checkpoint ---- */

static int pins_write(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)call;
    (void)present;
    return store_draft_text(next, user, 1);
}

/* The hashes of the members of `entries`: objects with collection, id and version. */
static int pins_text(struct call *call, struct ng_str space, const struct ng_value *entries,
                     struct ng_str *ret)
{
    char *text = NULL;
    size_t at = 0;
    if (entries->count <= PINS_OF_ONE_MAX) {
        text = arena_alloc(&call->arena, entries->count * STORE_PIN_CHARS + 1);
    }
    if (text == NULL) {
        return call_fail(call, NG_ETOOLARGE,
                         "the checkpoint names %zu versions, at most %zu can be kept",
                         (size_t)entries->count, PINS_OF_ONE_MAX);
    }
    for (const struct ng_value *item = entries->first; item != NULL; item = item->next) {
        const struct ng_value *collection = json_get(item, "collection");
        const struct ng_value *id = json_get(item, "id");
        const struct ng_value *version = json_get(item, "version");
        int64_t revision = 0;
        if (collection == NULL || id == NULL || version == NULL ||
            json_integer(version, &revision) != NG_OK || revision < 0) {
            continue;
        }
        const struct ng_key key = {collection->text, space, id->text};
        store_pin_write(&key, (uint64_t)revision, text + at);
        at += STORE_PIN_CHARS;
    }
    text[at] = '\0';
    *ret = str_make(text, at);
    return NG_OK;
}

/* *ret: the hashes of a checkpoint; {NULL, 0}: it names no version. */
static int pins_of(struct call *call, struct ng_str space, struct ng_str json,
                   struct ng_str *ret)
{
    const struct ng_value *body = NULL;
    const struct ng_value *entries = NULL;
    struct json_error error;
    struct arena tree;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = json_parse(&tree, json, JSON_DEPTH_DEFAULT, &body, &error);
    call->arena.oom |= tree.oom;
    if (rc == NG_OK) {
        entries = json_get(body, "entries");
    } else if (rc == NG_EJSON) {
        rc = NG_OK; /* the journal reports the error */
    } else {
        rc = call_fail(call, NG_ETOOLARGE, "a checkpoint of %zu bytes is too large to keep",
                       json.len);
    }
    if (entries != NULL && entries->type == NG_TYPE_ARRAY && entries->count > 0) {
        rc = pins_text(call, space, entries, ret);
    }
    arena_done(&tree);
    return rc;
}

/* Sets the text of the document of one checkpoint; NULL: removes the document. */
static int pins_change(struct journal_front *front, struct call *call, struct ng_str space,
                       struct ng_str id, struct ng_str *text)
{
    struct ng_str name = arena_printf(&call->arena, "%.*s/%.*s", (int)space.len, space.data,
                                      (int)id.len, id.data);
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(JOURNAL_PINS, ng_str_of(PINS_SPACE), name),
        .fn = text == NULL ? journal_remove_doc : pins_write,
        .user = text,
    };
    if (name.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    return store_write_wait(front->store, call, &change, 1);
}

int journal_pins_put(struct journal_front *front, struct call *call, struct ng_str space,
                     struct ng_str id, struct ng_str json)
{
    struct ng_str text = {NULL, 0};
    int rc = pins_of(call, space, json, &text);
    if (rc != NG_OK || text.data == NULL) {
        return rc;
    }
    return pins_change(front, call, space, id, &text);
}

int journal_pins_delete(struct journal_front *front, struct call *call, struct ng_str space,
                        struct ng_str id)
{
    return pins_change(front, call, space, id, NULL);
}

/* ---- for the upkeep of the store ---- */

static bool pins_has(void *user, const struct ng_key *key, uint64_t revision)
{
    const struct journal_front *front = user;
    return store_pins_have(&front->pins, key, revision);
}

static int pins_load(void *user, struct call *call)
{
    static const struct store_pins_in in = {JOURNAL_PINS, PINS_SPACE, PINS_PAGE};
    struct journal_front *front = user;
    return store_pins_load(front->store, call, &in, &front->pins);
}

void journal_pins_offer(struct journal_front *front)
{
    const struct store_pinner pinner = {pins_load, pins_has, front};
    store_pin_revisions(front->store, &pinner);
}
