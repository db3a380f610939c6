/* SPDX-License-Identifier: MIT */
/* history_changed.c - the documents that the selected changes changed, the one with the newest
 * of these changes first. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "history.h"

/* Documents of one selection. */
#define CHANGED_MAX ((size_t)100000)

static bool changed_is(const struct hash_link *link, const void *user)
{
    return doc_key_equal(&HASH_ITEM(link, struct history_document, link)->key, user);
}

/* A change of a document or file, for its row. */
struct changed_by {
    struct ng_key key;
    struct ng_str collection; /* of the event */
    uint64_t revision;
    struct ng_origin origin;
    bool is_file;
    bool has_gap;
};

static struct history_document *changed_make(const struct changed_by *by)
{
    const struct ng_key *key = &by->key;
    size_t texts = key->collection.len + key->space.len + key->id.len + by->collection.len;
    struct history_document *made = calloc(1, sizeof(*made) + texts);
    if (made != NULL) {
        char *at = made->texts;
        made->key.collection = str_move_in(&at, key->collection);
        made->key.space = str_move_in(&at, key->space);
        made->key.id = str_move_in(&at, key->id);
        made->shown = made->key;
        made->shown.collection = str_move_in(&at, by->collection);
        made->is_file = by->is_file;
        made->first = UINT64_MAX;
    }
    return made;
}

/* The document of the change; a new one is added at the end. NULL: out of memory. */
static struct history_document *changed_find(struct history_changed *changed,
                                             const struct changed_by *by)
{
    uint64_t hash = doc_key_hash(&by->key);
    struct hash_link *link = hash_table_find(&changed->table, hash, changed_is, &by->key);
    if (link != NULL) {
        return HASH_ITEM(link, struct history_document, link);
    }
    struct history_document *made = changed_make(by);
    if (made == NULL || hash_table_add(&changed->table, &made->link, hash) != NG_OK) {
        free(made);
        return NULL;
    }
    if (changed->newest == NULL) {
        changed->newest = made;
    } else {
        changed->oldest->next = made;
    }
    changed->oldest = made;
    return made;
}

/* A change of a file counts by its versions. */
static struct changed_by changed_by(struct ng_call *call, const struct ng_event *event)
{
    struct changed_by by = {.key = event->key,
                            .collection = event->key.collection,
                            .revision = event->revision,
                            .origin = event->origin};
    const struct ng_value *data = NULL;
    bool may_be_file = event->key.id.len > 0 && event->key.id.data[0] == '/';
    if (may_be_file && event->data.len > 0 &&
        call->host->json_parse(call, event->data, &data) == NG_OK) {
        by.is_file = history_file_version(call, event, data, &by.key, &by.revision);
        by.origin = history_origin(call, event, data);
        by.has_gap = call->host->json_get(data, "gap") != NULL;
    }
    return by;
}

/* Changes come newest first, and so do the documents. */
static int changed_take(void *user, const struct ng_event *event)
{
    struct history_changed *changed = user;
    if (changed->table.count == CHANGED_MAX) {
        changed->rc = ng_fail(changed->call, NG_ETOOLARGE,
                              "more than %zu documents are selected: set `since` or `until`",
                              CHANGED_MAX);
        return 1;
    }
    const struct changed_by by = changed_by(changed->call, event);
    struct history_document *document = changed_find(changed, &by);
    if (document == NULL) {
        changed->rc = history_no_memory(changed->call);
        return 1;
    }
    if (by.revision <= document->first) {
        document->has_gap = by.is_file && by.has_gap;
    }
    document->first = u64_min(document->first, by.revision);
    document->last = u64_max(document->last, by.revision);
    document->last_seq = u64_max(document->last_seq, event->seq);
    document->changes++;
    document->counted += by.origin.has_lines;
    document->added += by.origin.lines_added;
    document->removed += by.origin.lines_removed;
    return 0;
}

int history_changed(struct ng_call *call, const struct ng_trail *selected,
                    struct history_changed *ret)
{
    struct ng_trail trail = *selected;
    *ret = (struct history_changed){.call = call};
    int rc = NG_OK;
    bool more = true;
    while (rc == NG_OK && more) {
        uint64_t next = 0;
        rc = call->host->trail(call, &trail, changed_take, ret, &next);
        rc = rc == NG_OK ? ret->rc : rc;
        more = next != 0;
        trail.until = next;
        if (rc == NG_OK && more && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "cancelled while changes were read");
        }
    }
    return rc;
}

void history_changed_done(struct history_changed *changed)
{
    struct history_document *document = changed->newest;
    while (document != NULL) {
        struct history_document *next = document->next;
        free(document);
        document = next;
    }
    hash_table_done(&changed->table);
}
