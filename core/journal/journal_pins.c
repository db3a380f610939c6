/* SPDX-License-Identifier: MIT */
/* journal_pins.c - the versions that checkpoints name stay: their hashes lie in documents, one
 * document for each checkpoint, and the store's upkeep is told of them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"

#define PINS_COLLECTION "journal_pins"
/* All pins lie in one space, so that one query finds them: a document's id is SPACE/CHECKPOINT.
 */
#define PINS_SPACE "shared"
/* Versions that all checkpoints together may name, and those of one. */
#define PINS_MAX ((size_t)8 * 1024 * 1024)
#define PINS_OF_ONE_MAX ((size_t)800000)
#define PIN_CHARS 16 /* a hash in hexadecimal digits */
#define PINS_PAGE 8

static const struct ng_collection pins_collection = {
    .name = PINS_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

int journal_pins_declare(struct journal_front *front, struct call *call)
{
    if (store_collection(front->store, ng_str_of(PINS_COLLECTION)) != NULL) {
        return NG_OK;
    }
    return store_declare(front->store, call, &pins_collection);
}

/* FNV-1a, with the length behind each text. Stored: never to be changed. Two versions of one
 * hash only keep one too many. */
static uint64_t pin_mix(uint64_t hash, struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(1099511628211);
    }
    for (size_t i = 0; i < sizeof(uint32_t); i++) {
        hash = (hash ^ ((text.len >> (8 * i)) & 0xff)) * UINT64_C(1099511628211);
    }
    return hash;
}

static uint64_t pin_hash(struct ng_str collection, struct ng_str space, struct ng_str id,
                         uint64_t revision)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    hash = pin_mix(pin_mix(pin_mix(hash, collection), space), id);
    for (size_t i = 0; i < sizeof(revision); i++) {
        hash = (hash ^ ((revision >> (8 * i)) & 0xff)) * UINT64_C(1099511628211);
    }
    return hash;
}

/* ---- noting those of one checkpoint ---- */

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
    static const char digits[] = "0123456789abcdef";
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
        uint64_t hash = pin_hash(collection->text, space, id->text, (uint64_t)revision);
        for (size_t i = 0; i < PIN_CHARS; i++) {
            text[at++] = digits[(hash >> (60 - 4 * i)) & 0xf];
        }
    }
    text[at] = '\0';
    *ret = str_make(text, at);
    return NG_OK;
}

/* *ret: the hashes of what the checkpoint names; {NULL, 0}: it names nothing. */
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
        rc = NG_OK; /* the journal says what is wrong with it */
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

/* The document of one checkpoint gets this text; NULL: it goes. */
static int pins_change(struct journal_front *front, struct call *call, struct ng_str space,
                       struct ng_str id, struct ng_str *text)
{
    struct ng_str name = arena_printf(&call->arena, "%.*s/%.*s", (int)space.len, space.data,
                                      (int)id.len, id.data);
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(PINS_COLLECTION, ng_str_of(PINS_SPACE), name),
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

/* ---- telling the store ---- */

struct pins_reading {
    uint64_t *list;
    size_t count, room;
    uint64_t last_seq;
    uint32_t rows;
    int rc;
};

static int pins_grow(struct pins_reading *reading, size_t more)
{
    if (reading->count + more <= reading->room) {
        return NG_OK;
    }
    size_t room = reading->room * 2 + more;
    uint64_t *grown = NULL;
    if (room <= 2 * PINS_MAX) {
        grown = alloc_resize(reading->list, room * sizeof(*grown));
    }
    if (grown == NULL) {
        if (room > 2 * PINS_MAX) {
            return NG_ETOOLARGE;
        }
        return NG_EINTERNAL;
    }
    reading->list = grown;
    reading->room = room;
    return NG_OK;
}

static unsigned pin_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) & 0xfU;
}

static int pins_row(void *user, const struct ng_doc *row)
{
    struct pins_reading *reading = user;
    reading->rows++;
    reading->last_seq = row->created_seq;
    reading->rc = pins_grow(reading, row->text.len / PIN_CHARS);
    for (size_t at = 0; reading->rc == NG_OK && at + PIN_CHARS <= row->text.len;
         at += PIN_CHARS) {
        uint64_t hash = 0;
        for (size_t i = 0; i < PIN_CHARS; i++) {
            hash = hash << 4 | pin_digit(row->text.data[at + i]);
        }
        reading->list[reading->count++] = hash;
    }
    return reading->rc != NG_OK;
}

static int pin_compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    if (a < b) {
        return -1;
    }
    return a > b;
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
    struct pins_reading reading = {0};
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(PINS_COLLECTION),
        .space = ng_str_of(PINS_SPACE),
        .terms = &after,
        .term_count = 1,
        .sort = ng_str_of("created_seq"),
        .limit = PINS_PAGE,
        .with_text = true,
    };
    int rc = NG_OK;
    do {
        reading.rows = 0;
        after.number = (double)reading.last_seq;
        rc = store_query(front->store, call, &query, pins_row, &reading, NULL);
        if (rc == NG_OK) {
            rc = reading.rc;
        }
    } while (rc == NG_OK && reading.rows == PINS_PAGE);
    if (rc != NG_OK) {
        free(reading.list);
        if (reading.rc == NG_OK) {
            return rc;
        }
        return call_fail(call, rc, "what checkpoints keep does not fit into memory");
    }
    if (reading.count > 0) {
        qsort(reading.list, reading.count, sizeof(*reading.list), pin_compare);
    }
    free(front->pins);
    front->pins = reading.list;
    front->pin_count = reading.count;
    store_pin_revisions(front->store, pins_has, front);
    return NG_OK;
}
