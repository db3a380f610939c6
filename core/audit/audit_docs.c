/* SPDX-License-Identifier: MIT */
/* audit_docs.c - a sorted array of hashes. */
#include "audit_docs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit_disk.h"
#include "audit_entry.h"
#include "audit_read.h"
#include "audit_values.h"
#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "core/base/utf8.h"
#include "core/json/json.h"

#define ENTRY_DEPTH 4
#define ENTRY_MEMORY_MAX ((size_t)4 * 1024 * 1024)
/* Entries without it have no documents. Within a string of JSON its quotes would be escaped. */
#define DOCS_MEMBER "\"docs\":["
#define ANY_SPACE UINT64_C(0)

struct item {
    uint64_t what;  /* collection, id and revision */
    uint64_t space; /* or ANY_SPACE */
    bool taken;
};

struct audit_docs {
    struct item *items;
    size_t count, room;
};

/* Of the texts as an entry has them. id absent: it is not known. */
static uint64_t what_hash(struct ng_str collection, struct ng_str id, uint64_t revision)
{
    uint64_t hash = str_hash(json_cut(collection, AUDIT_ENTRY_COLLECTION_MAX)) * 131;
    if (id.data != NULL) {
        hash ^= str_hash(utf8_cut(id, AUDIT_NAMED_MAX));
    }
    return (hash ^ revision) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t space_hash(struct ng_str space)
{
    uint64_t hash = str_hash(utf8_cut(space, AUDIT_NAMED_MAX));
    return hash == ANY_SPACE ? 1 : hash;
}

/* ---- reading ---- */

struct docs_reader {
    struct audit_docs *docs;
    struct audit_values *values;
    struct buf *error;
};

static int docs_out_of_memory(struct buf *error)
{
    (void)buf_add_c(error, "the audit log: out of memory");
    return NG_EINTERNAL;
}

/* *ret: the value behind a name; absent: it was redacted. */
static int docs_value(const struct docs_reader *reader, struct ng_str time, struct ng_str name,
                      struct ng_str *ret)
{
    *ret = STR_NONE;
    return name.len > 0 ? audit_values_get(reader->values, time, name, ret, reader->error)
                        : NG_OK;
}

static int docs_add(const struct docs_reader *reader, const struct item *item)
{
    struct audit_docs *docs = reader->docs;
    if (docs->count == AUDIT_DOCS_MAX) {
        (void)buf_printf(reader->error,
                         "the audit log has more than %zu changes since its last mark",
                         AUDIT_DOCS_MAX);
        return NG_ETOOLARGE;
    }
    if (array_reserve((void **)&docs->items, &docs->room, docs->count + 1, sizeof(*docs->items),
                      AUDIT_DOCS_MAX) != NG_OK) {
        return docs_out_of_memory(reader->error);
    }
    docs->items[docs->count++] = *item;
    return NG_OK;
}

static int docs_take_value(const struct docs_reader *reader, const struct ng_value *entry)
{
    const struct ng_value *list = json_get(entry, "docs");
    struct ng_str time = json_get_text(entry, "time");
    struct ng_str space;
    uint64_t hash = ANY_SPACE;
    if (!json_is(list, NG_TYPE_ARRAY)) {
        return NG_OK;
    }
    int rc = docs_value(reader, time, json_get_text(entry, "space"), &space);
    if (space.data != NULL && list->count == 1) {
        hash = space_hash(space);
    }
    const struct ng_value *one = json_first(list);
    for (; rc == NG_OK && one != NULL; one = one->next) {
        struct ng_str id;
        rc = docs_value(reader, time, json_get_text(one, "id"), &id);
        struct item item = {what_hash(json_get_text(one, "collection"), id,
                                      (uint64_t)json_get_integer(one, "revision")),
                            hash, false};
        if (rc == NG_OK) {
            rc = docs_add(reader, &item);
        }
    }
    return rc;
}

static int docs_take_entry(const struct docs_reader *reader, uint64_t number,
                           struct ng_str text)
{
    struct arena arena;
    const struct ng_value *entry = NULL;
    if (str_find(text, ng_str_of(DOCS_MEMBER), 0) >= text.len) {
        return NG_OK;
    }
    arena_init(&arena, ENTRY_MEMORY_MAX);
    int rc = json_parse(&arena, text, ENTRY_DEPTH, &entry, NULL);
    if (rc == NG_OK) {
        rc = docs_take_value(reader, entry);
    } else if (arena.oom) {
        rc = docs_out_of_memory(reader->error);
    } else {
        (void)buf_printf(reader->error, "entry %" PRIu64 " of the audit log is no JSON object",
                         number);
        rc = NG_EFAILED;
    }
    arena_done(&arena);
    return rc;
}

static int item_compare(const void *a, const void *b)
{
    uint64_t first = ((const struct item *)a)->what;
    uint64_t second = ((const struct item *)b)->what;
    return (first > second) - (first < second);
}

static int docs_read_all(const char *path, uint64_t from, const struct docs_reader *reader)
{
    struct audit_reader *log = NULL;
    int rc = audit_reader_open(path, &log, reader->error);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t first = audit_reader_first(log);
    for (uint64_t i = from > first ? from : first; rc == NG_OK && i < audit_reader_size(log);
         i++) {
        struct ng_str text;
        rc = audit_reader_get(log, i, &text, reader->error);
        if (rc == NG_OK) {
            rc = docs_take_entry(reader, i, text);
        }
    }
    audit_reader_close(log);
    return rc;
}

int audit_docs_read(const char *path, uint64_t from, struct audit_docs **ret, struct buf *error)
{
    int dir = -1;
    struct docs_reader reader = {.docs = alloc_zeroed(1, sizeof(*reader.docs)), .error = error};
    int rc = reader.docs != NULL ? audit_disk_open(path, false, &dir, error) : NG_EINTERNAL;
    if (rc == NG_OK) {
        reader.values = audit_values_open(dir);
        rc = reader.values != NULL ? docs_read_all(path, from, &reader) : NG_EINTERNAL;
    }
    audit_values_close(reader.values);
    if (dir >= 0) {
        (void)close(dir);
    }
    if (rc != NG_OK) {
        audit_docs_free(reader.docs);
        return rc == NG_EINTERNAL && error->len == 0 ? docs_out_of_memory(error) : rc;
    }
    if (reader.docs->count > 0) {
        qsort(reader.docs->items, reader.docs->count, sizeof(*reader.docs->items),
              item_compare);
    }
    *ret = reader.docs;
    return NG_OK;
}

/* ---- looking ---- */

static size_t docs_lower(const struct audit_docs *docs, uint64_t what)
{
    size_t low = 0;
    size_t high = docs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (docs->items[middle].what < what) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool docs_take_item(struct audit_docs *docs, uint64_t what, uint64_t space)
{
    struct item *any = NULL;
    for (size_t i = docs_lower(docs, what); i < docs->count && docs->items[i].what == what;
         i++) {
        struct item *item = &docs->items[i];
        if (!item->taken && item->space == space) {
            item->taken = true;
            return true;
        }
        if (!item->taken && item->space == ANY_SPACE) {
            any = item;
        }
    }
    if (any != NULL) {
        any->taken = true;
    }
    return any != NULL;
}

bool audit_docs_take(struct audit_docs *docs, const struct ng_key *key, uint64_t revision)
{
    const struct ng_str ids[] = {key->id, STR_NONE};
    const uint64_t revisions[] = {revision, 0};
    uint64_t space = space_hash(key->space);
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        for (size_t j = 0; j < NG_COUNT(revisions); j++) {
            if (docs_take_item(docs, what_hash(key->collection, ids[i], revisions[j]), space)) {
                return true;
            }
        }
    }
    return false;
}

void audit_docs_free(struct audit_docs *docs)
{
    if (docs != NULL) {
        free(docs->items);
        free(docs);
    }
}
