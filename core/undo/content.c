/* SPDX-License-Identifier: MIT */
/* content.c - text and members of a document that people write, and how its plugin gives them
 * back. */
#include "content.h"

#include <string.h>

#include "core/base/merge/line_counts.h"
#include "core/base/merge/splice.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/module/registry.h"
#include "core/store/store.h"

/* ---- the members ---- */

/* A word of ng_collection.members: `path`, or `path?flag`. */
struct member_word {
    struct ng_str path, name, flag; /* name: the last one of the path; flag {NULL, 0}: none */
};

static bool next_word(const char **inout_words, struct member_word *ret)
{
    const char *at = *inout_words;
    if (at == NULL) {
        return false;
    }
    at += strspn(at, " ");
    size_t len = strcspn(at, " ");
    size_t path = strcspn(at, " ?");
    *inout_words = at + len;
    *ret = (struct member_word){.path = {at, path}, .name = {at, path}};
    if (path < len) {
        ret->flag = str_make(at + path + 1, len - path - 1);
    }
    const char *dot = path > 0 ? memrchr(at, '.', path) : NULL;
    if (dot != NULL) {
        size_t skip = (size_t)(dot - at) + 1;
        ret->name = str_make(at + skip, path - skip);
    }
    return len > 0;
}

static const struct ng_value *value_at(const struct ng_value *body, struct ng_str path)
{
    const struct ng_value *value = body;
    while (path.len > 0 && json_is(value, NG_TYPE_OBJECT)) {
        const char *dot = memchr(path.data, '.', path.len);
        size_t len = dot != NULL ? (size_t)(dot - path.data) : path.len;
        value = json_get_str(value, str_make(path.data, len));
        len += dot != NULL;
        path = str_make(path.data + len, path.len - len);
    }
    return path.len == 0 ? value : NULL;
}

size_t content_names(const struct ng_collection *collection,
                     struct ng_str ret[CONTENT_MEMBERS_MAX])
{
    const char *words = collection->members;
    struct member_word word;
    size_t count = 0;
    while (count < CONTENT_MEMBERS_MAX && next_word(&words, &word)) {
        ret[count++] = word.name;
    }
    return count;
}

const struct ng_value *content_members(struct arena *arena,
                                       const struct ng_collection *collection,
                                       const struct ng_value *body)
{
    struct ng_value *object = arena_zalloc(arena, (CONTENT_MEMBERS_MAX + 1) * sizeof(*object));
    if (object == NULL) {
        return NULL;
    }
    const char *words = collection->members;
    struct ng_value **at = &object->first;
    struct member_word word;
    object->type = NG_TYPE_OBJECT;
    while (object->count < CONTENT_MEMBERS_MAX && next_word(&words, &word)) {
        const struct ng_value *value = value_at(body, word.path);
        bool counts =
            word.flag.data == NULL || json_is(value_at(body, word.flag), NG_TYPE_TRUE);
        if (value != NULL && counts) {
            struct ng_value *copy = &object[++object->count];
            *copy = *value;
            copy->key = word.name;
            copy->next = NULL;
            *at = copy;
            at = &copy->next;
        }
    }
    return object;
}

int content_of(struct arena *arena, const struct ng_collection *collection,
               const struct ng_doc *doc, struct content *ret)
{
    *ret = (struct content){.exists = doc->revision != 0 && !doc->deleted};
    if (!ret->exists) {
        return NG_OK;
    }
    ret->text = str_or(doc->text, ng_str_of(""));
    ret->members = content_members(arena, collection, doc->body);
    return ret->members != NULL ? NG_OK : NG_EINTERNAL;
}

bool content_equal(const struct content *a, const struct content *b)
{
    if (!a->exists || !b->exists) {
        return a->exists == b->exists;
    }
    return str_equal(a->text, b->text) && json_equal(a->members, b->members);
}

void content_lines(struct ng_str old, struct ng_str next, uint64_t *ret_added,
                   uint64_t *ret_removed)
{
    const struct ng_splice splice = splice_between(old, next);
    (void)line_counts(old, &splice, ret_added, ret_removed); /* it fits */
}

/* ---- the plugin ---- */

static int fail_no_restore(struct call *call, struct ng_str collection)
{
    return call_fail(call, NG_EINVAL, "documents of %.*s cannot be given an earlier content",
                     (int)collection.len, collection.data);
}

int content_draft(struct call *call, const struct ng_content *content,
                  const struct ng_doc *present, struct ng_draft *next)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    const struct ng_collection *collection =
        store_collection(call->gateway->store, content->key.collection);
    if (collection == NULL || collection->restore == NULL) {
        return fail_no_restore(call, content->key.collection);
    }
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        for (size_t at = 0; at < desc->collection_count; at++) {
            if (str_is(content->key.collection, desc->collections[at].name)) {
                return collection->restore(plugins[i]->self, &call->pub, content, present,
                                           next);
            }
        }
    }
    return fail_no_restore(call, content->key.collection);
}
