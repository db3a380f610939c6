/* SPDX-License-Identifier: MIT */
/* journal_referenced.c - the collections of all gateways, and whether their events become
 * entries. They are listed in the database: the gateway that delivers may lack a plugin or a
 * setting of another one. The list is one text: names between spaces, those without references
 * behind a '-'. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"

#define REFERENCED_SPACE "shared"
#define REFERENCED_ID "referenced"
/* Bytes of the list. */
#define REFERENCED_MAX ((size_t)1024 * 1024)

bool delivery_declares(const struct journal_front *front, struct ng_str collection)
{
    const struct ng_collection *found = store_collection(front->store, collection);
    return found != NULL && (found->flags & NG_COLLECTION_REFERENCED) != 0;
}

bool delivery_wants(struct journal_front *front, struct ng_str collection)
{
    if (delivery_declares(front, collection)) {
        return true;
    }
    lock_take(&front->lock);
    bool listed = front->referenced != NULL && str_in_words(collection, front->referenced);
    lock_release(&front->lock);
    return listed;
}

static struct ng_key referenced_key(void)
{
    return journal_key(JOURNAL_STATE, ng_str_of(REFERENCED_SPACE), ng_str_of(REFERENCED_ID));
}

/* Shared documents: the backend numbers the events of declared collections, also of those that
 * only other gateways use. Their fields are unknown here. */
static int referenced_declare(struct journal_front *front, struct call *call,
                              struct ng_str list)
{
    void *db = NULL;
    const struct ng_documents *backend = store_backend(front->store, &db);
    int rc = NG_OK;
    for (size_t at = 0; rc == NG_OK && store_is_shared(front->store) && at < list.len;) {
        size_t end = size_min(str_find(list, ng_str_of(" "), at), list.len);
        at += list.data[at] == '-';
        struct ng_str name = arena_copy(&call->arena, str_make(list.data + at, end - at));
        if (name.data == NULL) {
            return call_no_memory(call);
        }
        struct ng_collection collection = {.name = name.data,
                                           .field_size = sizeof(struct ng_field)};
        if (store_collection(front->store, name) == NULL) {
            rc = backend->declare(db, &call->pub, &collection);
        }
        at = end + 1;
    }
    return rc;
}

int delivery_look_referenced(struct journal_front *front, struct call *call, bool *ret_grew)
{
    struct ng_key key = referenced_key();
    const struct ng_doc *doc = NULL;
    int rc = store_get(front->store, call, &key, 0, &doc);
    if (rc != NG_OK || doc->revision == 0 || doc->deleted) {
        return rc;
    }
    struct ng_str list = json_get_text(doc->body, "collections");
    lock_take(&front->lock);
    bool same = front->referenced != NULL && str_is(list, front->referenced);
    lock_release(&front->lock);
    if (same || list.len == 0) {
        return NG_OK;
    }
    rc = referenced_declare(front, call, list);
    if (rc != NG_OK) {
        return rc;
    }
    char *copy = str_dup(list);
    if (copy == NULL) {
        return call_no_memory(call);
    }
    lock_take(&front->lock);
    char *old = front->referenced;
    front->referenced = copy;
    lock_release(&front->lock);
    free(old);
    if (ret_grew != NULL) {
        *ret_grew = true;
    }
    return NG_OK;
}

/* ---- entering those of this gateway ---- */

/* Adds the collections of this gateway that are not in the list. *ret_grew: there are some. */
static int referenced_add(struct journal_front *front, struct buf *list, bool *ret_grew)
{
    const struct ng_collection *collection = NULL;
    for (size_t i = 0; (collection = store_collection_at(front->store, i)) != NULL; i++) {
        char name[NG_COLLECTION_MAX + 2];
        bool referenced = (collection->flags & NG_COLLECTION_REFERENCED) != 0;
        (void)snprintf(name, sizeof(name), "-%s", collection->name);
        const char *word = referenced ? name + 1 : name;
        if (str_in_words(ng_str_of(word), buf_cstr(list))) {
            continue;
        }
        if (list->len > 0) {
            (void)buf_add_char(list, ' ');
        }
        (void)buf_add_c(list, word);
        *ret_grew = true;
    }
    return list->rc;
}

static int referenced_write(struct ng_call *pub, const struct ng_doc *present,
                            struct ng_draft *next, void *user)
{
    struct ng_str old = json_get_text(present->body, "collections");
    struct ng_str list = {NULL, 0};
    struct buf buf;
    bool grew = false;
    buf_init(&buf, REFERENCED_MAX);
    (void)buf_add_str(&buf, old);
    (void)referenced_add(user, &buf, &grew);
    int rc = journal_take_buf(&call_of(pub)->arena, &buf, &list);
    if (rc != NG_OK || !grew) {
        return rc;
    }
    struct ng_str json = arena_printf(&call_of(pub)->arena, "{\"collections\":\"%.*s\"}",
                                      (int)list.len, list.data);
    if (json.data == NULL) {
        return call_no_memory(call_of(pub));
    }
    return store_draft_json(next, json);
}

int delivery_enter_referenced(struct journal_front *front, struct call *call)
{
    size_t mine = 0;
    if (!store_is_shared(front->store)) {
        return NG_OK;
    }
    while (store_collection_at(front->store, mine) != NULL) {
        mine++;
    }
    if (mine == atomic_load(&front->entered)) {
        return NG_OK;
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = referenced_key(),
        .fn = referenced_write,
        .user = front,
    };
    int rc = store_write_wait(front->store, call, &change, 1);
    if (rc == NG_OK) {
        atomic_store(&front->entered, mine);
        store_release_referenced(front->store, mine);
        rc = delivery_look_referenced(front, call, NULL);
    }
    return rc;
}
