/* SPDX-License-Identifier: MIT */
/* host_history.c - the history of all documents for plugins: points, revisions at them, the
 * changes that a caller may see, and how they are taken back. */
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatch_space.h"
#include "core/files/files.h"
#include "core/files/version/file_version.h"
#include "core/history/content_kind.h"
#include "core/history/trail.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "core/store/store.h"
#include "core/undo/undo.h"
#include "host.h"

/* Bytes of a wrong point that a sentence shows. */
#define HOST_POINT_SHOWN 80

const struct ng_collection *host_collection(struct ng_call *pub, struct ng_str name)
{
    struct call *call = call_of(pub);
    if (!dispatch_sees_collection(call, name)) {
        return NULL;
    }
    return store_collection(call->gateway->store, name);
}

int host_use_collection(struct ng_call *pub, struct ng_str collection)
{
    return dispatch_space_of(call_of(pub), collection);
}

static int host_not_a_point(struct call *call, const char *name, struct ng_str point,
                            const char *forms)
{
    point = utf8_cut(point, HOST_POINT_SHOWN);
    return call_fail(call, NG_EINVAL, "`%s` is \"%.*s\", it must be %s", name, (int)point.len,
                     text_or(point.data, ""), forms);
}

int host_point_seq(struct ng_call *pub, const char *name, struct ng_str text, uint64_t *ret_seq)
{
    struct call *call = call_of(pub);
    struct store *store = call->gateway->store;
    struct point point;
    if (!point_parse(text, store_change_ms(store), &point) || point.kind == POINT_REVISION) {
        return host_not_a_point(call, name, text, POINT_FORMS);
    }
    return point_seq(store, call, &point, ret_seq);
}

int host_revision_at(struct ng_call *pub, const struct ng_key *key, const char *name,
                     struct ng_str text, struct ng_as_of *ret)
{
    struct call *call = call_of(pub);
    struct point point;
    int rc = abi_check(call, &abi_as_of, ret);
    if (rc != NG_OK) {
        return rc;
    }
    if (!point_parse(text, store_change_ms(call->gateway->store), &point)) {
        return host_not_a_point(call, name, text, "a revision such as 7, or " POINT_FORMS);
    }
    struct ng_as_of found = {.size = sizeof(found)};
    rc = as_of_find(call, key, name, &point, &found);
    if (rc == NG_OK) {
        ng_fill(ret, &found);
    }
    return rc;
}

int host_trail(struct ng_call *pub, const struct ng_trail *trail, ng_event_fn *event,
               void *user, uint64_t *ret_next)
{
    struct call *call = call_of(pub);
    struct ng_trail mine;
    int rc = abi_take(call, &abi_trail, &mine, trail);
    if (rc != NG_OK) {
        return rc;
    }
    return trail_walk(call, &mine, event, user, ret_next);
}

int host_runs(struct ng_call *pub, const struct ng_trail *trail, ng_run_fn *run, void *user)
{
    struct call *call = call_of(pub);
    struct ng_trail mine;
    int rc = abi_take(call, &abi_trail, &mine, trail);
    if (rc != NG_OK) {
        return rc;
    }
    return trail_runs(call, &mine, run, user);
}

const struct ng_value *host_members(struct ng_call *pub, struct ng_str collection,
                                    const struct ng_value *body)
{
    struct call *call = call_of(pub);
    const struct ng_collection *declared = store_collection(call->gateway->store, collection);
    return declared != NULL ? content_members(&call->arena, declared, body) : NULL;
}

int host_restore(struct ng_call *pub, const struct ng_restore *restore)
{
    struct call *call = call_of(pub);
    struct ng_restore mine;
    int rc = abi_take(call, &abi_restore, &mine, restore);
    if (rc == NG_OK && !call->may_block) {
        rc = NG_EWOULDBLOCK;
    }
    return rc == NG_OK ? undo_restore(call, &mine) : rc;
}

int host_undo_changes(struct ng_call *pub, const struct ng_undo_work *work,
                      struct ng_undo_done *ret)
{
    struct call *call = call_of(pub);
    struct ng_undo_work mine;
    struct ng_trail what;
    int rc = abi_take(call, &abi_undo_work, &mine, work);
    if (rc == NG_OK) {
        rc = abi_check(call, &abi_undo_done, ret);
    }
    if (rc == NG_OK && mine.again.data == NULL) {
        rc = abi_take(call, &abi_trail, &what, mine.what);
        mine.what = &what;
    }
    if (rc == NG_OK && !call->may_block) {
        rc = NG_EWOULDBLOCK;
    }
    return rc == NG_OK ? undo_changes(call, &mine, ret) : rc;
}

int host_unfinished(struct ng_call *pub, ng_unfinished_fn *undo, void *user)
{
    struct call *call = call_of(pub);
    return call->may_block ? undo_unfinished(call, undo, user) : NG_EWOULDBLOCK;
}

/* ---- files ---- */

/* Is one of the collections, which are words, visible to the caller? */
static bool host_sees_one(struct call *call, struct ng_str words)
{
    bool sees = false;
    while (words.len > 0 && !sees) {
        const char *blank = memchr(words.data, ' ', words.len);
        size_t len = blank != NULL ? (size_t)(blank - words.data) : words.len;
        sees = len > 0 && dispatch_sees_collection(call, str_make(words.data, len));
        len += blank != NULL;
        words = str_make(words.data + len, words.len - len);
    }
    return sees;
}

/* A relative path begins in the first root. */
static struct ng_str host_absolute(struct call *call, struct ng_str path)
{
    const struct ng_str *roots = NULL;
    if (path.len > 0 && path.data[0] == '/') {
        return path;
    }
    size_t count = files_roots(call->gateway->files, call, &roots);
    return count == 0 ? path
                      : arena_printf(&call->arena, "%.*s/%.*s", (int)roots[0].len,
                                     roots[0].data, (int)path.len, path.data);
}

static int host_resolve_file(struct call *call, struct ng_str path, struct ng_key *ret)
{
    struct ng_file file = {.size = sizeof(file)};
    call->options |= CALL_ALL_FOLDERS;
    int rc = files_stat(call->gateway->files, call, host_absolute(call, path), &file);
    call->options &= ~(unsigned)CALL_ALL_FOLDERS;
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str space = arena_copy(&call->arena, file.space); /* of the roots' table */
    if (space.data == NULL) {
        return call_no_memory(call);
    }
    *ret = (struct ng_key){ng_str_of(NG_FILE_VERSIONS), space, file.real};
    call->caller.space = space;
    return NG_OK;
}

int host_use_file(struct ng_call *pub, struct ng_str path, struct ng_key *ret_key,
                  struct ng_str *ret_collection)
{
    struct call *call = call_of(pub);
    struct file_version_tail tail;
    int rc = host_resolve_file(call, path, ret_key);
    if (rc != NG_OK || ret_collection == NULL) {
        return rc;
    }
    rc = file_version_tail(call->gateway->store, call, ret_key, &tail);
    if (rc == NG_OK && !host_sees_one(call, tail.collections)) {
        rc = call_fail(call, NG_ENOTFOUND,
                       "no version of %.*s is kept: nothing has saved it through the gateway, "
                       "or files are not kept (history.files, history.max_file)",
                       (int)path.len, path.data);
    }
    if (rc == NG_OK) {
        *ret_collection = tail.collection;
    }
    return rc;
}

/* A call of its own has the memory of the view, which may be one of many. */
static int host_view(struct call *call, const struct content_kind *kind, struct ng_str content,
                     ng_chunk_fn *text, void *user)
{
    struct ng_str view = STR_NONE;
    struct call *own = dispatch_child(call);
    if (own == NULL) {
        return call_no_memory(call);
    }
    own->may_block = true;
    int rc = content_kind_view(kind, own, content, &view);
    if (rc == NG_OK) {
        (void)text(user, view);
    } else if (rc == NG_EINVAL) {
        (void)text(user, content);
        rc = NG_OK;
    } else if (rc == NG_ETOOLARGE) {
        rc = call_fail(call, rc, "contents of %zu bytes are not compared", content.len);
    } else {
        struct ng_str message = own->staged.message;
        rc = call_fail(call, rc, "%.*s", (int)message.len, text_or(message.data, ""));
    }
    call_unref(own);
    return rc;
}

int host_file_view(struct ng_call *pub, struct ng_str path, struct ng_str content,
                   ng_chunk_fn *text, void *user)
{
    struct call *call = call_of(pub);
    struct content_kind kind;
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    if (!content_kind_find(call, path, &kind) || kind.desc->view == NULL) {
        (void)text(user, content);
        return NG_OK;
    }
    return host_view(call, &kind, content, text, user);
}
