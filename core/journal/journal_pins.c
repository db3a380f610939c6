/* SPDX-License-Identifier: MIT */
/* journal_pins.c - pins the versions that checkpoints name, against the upkeep of the store.
 * Their hashes are in documents, one for each checkpoint. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* All pins are in one space, so that one query finds them. The id is SPACE/CHECKPOINT. */
#define PINS_SPACE "shared"
/* Most versions of all checkpoints together, and of one. */
#define PINS_MAX ((size_t)8 * 1024 * 1024)
#define PINS_OF_ONE_MAX ((size_t)800000)
#define PIN_CHARS 16 /* a hash in hexadecimal digits */
#define PINS_PAGE 8

/* The length follows each text. These hashes are stored, so the function must never change. A
 * collision pins one version too many. */
static uint64_t pin_mix(uint64_t hash, struct ng_str text)
{
    hash = hash_fnv(hash, text);
    for (size_t i = 0; i < sizeof(uint32_t); i++) {
        hash = hash_fnv_byte(hash, (unsigned char)(text.len >> (8 * i) & 0xff));
    }
    return hash;
}

static uint64_t pin_hash(struct ng_str collection, struct ng_str space, struct ng_str id,
                         uint64_t revision)
{
    uint64_t hash = pin_mix(HASH_FNV_BASIS, collection);
    hash = pin_mix(pin_mix(hash, space), id);
    return hash_fnv_u64(hash, revision);
}

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
        text = arena_alloc(&call->arena, entries->count * PIN_CHARS + 1);
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
        uint64_t hash =
            htobe64(pin_hash(collection->text, space, id->text, (uint64_t)revision));
        hex_write(&hash, sizeof(hash), text + at);
        at += PIN_CHARS;
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

/* ---- passing the pins to the store ---- */

struct pin_list {
    uint64_t *list;
    size_t count, room;
    uint64_t last_seq;
    uint32_t rows;
    int rc;
};

static int pins_row(void *user, const struct ng_doc *row)
{
    struct pin_list *pins = user;
    size_t count = pins->count + row->text.len / PIN_CHARS;
    pins->rows++;
    pins->last_seq = row->created_seq;
    pins->rc = array_reserve((void **)&pins->list, &pins->room, count, sizeof(*pins->list),
                             2 * PINS_MAX);
    for (size_t at = 0; pins->rc == NG_OK && at + PIN_CHARS <= row->text.len; at += PIN_CHARS) {
        uint64_t hash = 0;
        (void)hex_read(str_make(row->text.data + at, PIN_CHARS), &hash);
        pins->list[pins->count++] = be64toh(hash);
    }
    return pins->rc != NG_OK;
}

static int pin_compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static bool pins_has(void *user, const struct ng_key *key, uint64_t revision)
{
    const struct journal_front *front = user;
    uint64_t hash = pin_hash(key->collection, key->space, key->id, revision);
    return front->pin_count > 0 &&
           bsearch(&hash, front->pins, front->pin_count, sizeof(hash), pin_compare) != NULL;
}

int journal_pins_load(struct journal_front *front, struct call *call)
{
    struct pin_list pins = {0};
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(JOURNAL_PINS),
        .space = ng_str_of(PINS_SPACE),
        .terms = &after,
        .term_count = 1,
        .sort = ng_str_of("created_seq"),
        .limit = PINS_PAGE,
        .with_text = true,
    };
    int rc = NG_OK;
    do {
        pins.rows = 0;
        after.number = (double)pins.last_seq;
        rc = store_query(front->store, call, &query, pins_row, &pins, NULL);
        if (rc == NG_OK && pins.rc != NG_OK) {
            rc = call_fail(call, pins.rc, "the pins of checkpoints do not fit into memory");
        }
    } while (rc == NG_OK && pins.rows == PINS_PAGE);
    if (rc != NG_OK) {
        free(pins.list);
        return rc;
    }
    if (pins.count > 0) {
        qsort(pins.list, pins.count, sizeof(*pins.list), pin_compare);
    }
    free(front->pins);
    front->pins = pins.list;
    front->pin_count = pins.count;
    store_pin_revisions(front->store, pins_has, front);
    return NG_OK;
}
