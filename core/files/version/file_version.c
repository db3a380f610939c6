/* SPDX-License-Identifier: MIT */
/* file_version.c - the versions of a file, which are the revisions of its document. */
#include "file_version.h"

#include "core/base/merge/line_counts.h"
#include "core/base/merge/splice.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/json/json.h"

/* Bytes of the JSON of a version; it has up to two paths. */
#define VERSION_JSON_MAX ((size_t)1024 * 1024)
/* Largest content in a shared database: a document and its newest revision go into one of
 * 16 MiB. */
#define VERSION_SHARED_MAX ((size_t)7 * 1024 * 1024)

size_t file_version_room(const struct call *call)
{
    const struct gateway *gateway = call->gateway;
    if (gateway == NULL) {
        return 0;
    }
    size_t room = atomic_load(&gateway->limits.version);
    return store_is_shared(gateway->store) ? size_min(room, VERSION_SHARED_MAX) : room;
}

/* ---- the JSON of a version ---- */

/* The body of a version that is there; NULL: there is none. */
static const struct ng_value *version_body(const struct ng_doc *doc)
{
    return doc->revision != 0 && !doc->deleted ? doc->body : NULL;
}

static bool version_has_hash(const struct ng_doc *doc, const char *hash)
{
    const struct ng_value *body = version_body(doc);
    return body == NULL ? hash[0] == '\0' : str_is(json_get_text(body, "hash"), hash);
}

/* The collections of the changes so far, as words; the newest one is the first. */
static void put_collections(struct buf *out, struct ng_str newest, struct ng_str words)
{
    (void)buf_add_str(out, newest);
    while (words.len > 0) {
        const char *blank = memchr(words.data, ' ', words.len);
        size_t len = blank != NULL ? (size_t)(blank - words.data) : words.len;
        struct ng_str word = str_make(words.data, len);
        if (len > 0 && !str_equal(word, newest)) {
            (void)buf_add_char(out, ' ');
            (void)buf_add_str(out, word);
        }
        len += blank != NULL;
        words = str_make(words.data + len, words.len - len);
    }
}

static void put_member(struct buf *out, const char *name, struct ng_str text)
{
    (void)buf_printf(out, ",\"%s\":", name);
    (void)buf_add_json(out, text);
}

static void put_version(struct buf *out, const struct file_version *version,
                        const struct ng_doc *present)
{
    struct ng_str collection = str_or(version->collection, ng_str_of("files"));
    struct ng_str known = json_get_text(version_body(present), "collections");
    (void)buf_printf(out, "{\"op\":\"%.*s\",\"hash\":\"%s\",\"mode\":%u,\"collections\":\"",
                     (int)version->op.len, version->op.data, version->hash, version->mode);
    put_collections(out, collection, known);
    (void)buf_add_char(out, '"');
    if (version->other.len > 0) {
        put_member(out, "from", version->other);
        (void)buf_printf(out, ",\"from_version\":%llu",
                         (unsigned long long)version->other_version);
    }
    if (version->has_gap) {
        (void)buf_add_c(out, ",\"gap\":true");
    }
    (void)buf_add_char(out, '}');
}

/* ---- the next state of the document ---- */

static void count_lines(struct file_version *version, const struct ng_doc *present,
                        struct ng_str next)
{
    bool there = version_body(present) != NULL;
    struct ng_str old = there ? str_or(present->text, ng_str_of("")) : ng_str_of("");
    const struct ng_splice splice = splice_between(old, next);
    (void)line_counts(old, &splice, &version->lines_added, &version->lines_removed);
    version->number = present->revision + 1;
}

/* A found one has the time of the file. */
static void draft_data(struct call *call, const struct file_version *version,
                       struct ng_draft *next)
{
    if (version->modified_ms != 0) {
        store_draft_event(next, arena_printf(&call->arena, "{\"modified\":%lld}",
                                             (long long)version->modified_ms));
    } else if (version->has_gap) {
        store_draft_event(next, ng_str_of("{\"gap\":true}"));
    }
}

static int draft_content(struct call *call, struct file_version *version,
                         const struct ng_doc *present, struct ng_draft *next)
{
    struct buf json;
    buf_init(&json, VERSION_JSON_MAX);
    put_version(&json, version, present);
    int rc = json.rc == NG_OK ? store_draft_json(next, buf_str(&json))
                              : call_fail(call, NG_EINTERNAL, "out of memory for a version");
    buf_done(&json);
    if (rc == NG_OK) {
        rc = store_draft_text(next, &version->content, 1);
    }
    if (rc == NG_OK) {
        draft_data(call, version, next);
        count_lines(version, present, version->content);
    }
    return rc;
}

/* The file is gone. Where it went is in the data of the event. */
static int draft_removal(struct call *call, struct file_version *version,
                         const struct ng_doc *present, struct ng_draft *next)
{
    struct buf data;
    if (version_body(present) == NULL) {
        return NG_OK;
    }
    buf_init(&data, VERSION_JSON_MAX);
    (void)buf_add_c(&data, "{\"collections\":\"");
    put_collections(&data, str_or(version->collection, ng_str_of("files")),
                    json_get_text(version_body(present), "collections"));
    (void)buf_add_char(&data, '"');
    if (version->other.len > 0) {
        put_member(&data, "to", version->other);
    }
    if (version->has_gap) {
        (void)buf_add_c(&data, ",\"gap\":true");
    }
    (void)buf_add_char(&data, '}');
    if (data.rc == NG_OK) {
        store_draft_event(next, buf_str(&data));
        store_draft_delete(next);
        count_lines(version, present, ng_str_of(""));
    }
    int rc =
        data.rc == NG_OK ? NG_OK : call_fail(call, NG_EINTERNAL, "out of memory for a version");
    buf_done(&data);
    return rc;
}

static int draft_version(struct call *call, struct file_version *version,
                         const struct ng_doc *present, struct ng_draft *next)
{
    if (version->hash[0] == '\0') {
        return draft_removal(call, version, present, next);
    }
    return version->content.data != NULL ? draft_content(call, version, present, next) : NG_OK;
}

static void forget_outcome(struct file_version *version)
{
    version->number = 0;
    version->has_gap = false;
    version->lines_added = 0;
    version->lines_removed = 0;
}

int file_version_found_fn(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    struct file_version *version = user;
    forget_outcome(version);
    if (version_has_hash(present, version->hash)) {
        return NG_OK;
    }
    return draft_version(call_of(call), version, present, next);
}

int file_version_saved_fn(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    struct file_version *version = user;
    forget_outcome(version);
    if (version->is_done != NULL && *version->is_done) {
        return NG_OK;
    }
    if (str_equal(json_get_text(version_body(present), "op"), version->op)) {
        version->number = present->revision; /* an earlier attempt has added it */
        version->has_gap = json_is(json_get(version_body(present), "gap"), NG_TYPE_TRUE);
        return NG_OK;
    }
    version->has_gap = version->moves_gap ||
                       (version->before != NULL && !version_has_hash(present, version->before));
    return draft_version(call_of(call), version, present, next);
}

static void set_change(struct file_version *version, ng_change_fn *fn, const char *action,
                       struct ng_change *ret)
{
    *ret = (struct ng_change){
        .size = sizeof(*ret),
        .key = {ng_str_of(NG_FILE_VERSIONS), version->space, version->real},
        .fn = fn,
        .user = version,
        .action = action,
    };
}

void file_version_found(struct file_version *version, struct ng_change *ret)
{
    set_change(version, file_version_found_fn, NG_FILE_FOUND, ret);
}

void file_version_saved(struct file_version *version, struct ng_change *ret)
{
    set_change(version, file_version_saved_fn, NULL, ret);
}

/* ---- the end of a history ---- */

struct tail {
    struct call *call;
    struct file_version_tail *ret;
};

static int tail_take(void *user, const struct ng_doc *row)
{
    const struct tail *tail = user;
    struct arena *arena = &tail->call->arena;
    struct ng_str data = arena_copy(arena, row->event_data);
    const struct ng_value *body = NULL;
    if (data.data != NULL &&
        json_parse(arena, data, JSON_DEPTH_DEFAULT, &body, NULL) == NG_OK) {
        tail->ret->to = json_get_text(body, "to");
        tail->ret->collections = json_get_text(body, "collections");
    }
    return 1;
}

/* A removal has them in the data of its event. */
int file_version_tail(struct store *store, struct call *call, const struct ng_key *key,
                      struct file_version_tail *ret)
{
    const struct ng_range range = {.size = sizeof(range), .limit = 1};
    const struct ng_doc *newest = NULL;
    struct tail tail = {call, ret};
    *ret = (struct file_version_tail){.number = 0};
    int rc = store_get(store, call, key, 0, &newest);
    if (rc != NG_OK || newest->revision == 0) {
        return rc;
    }
    ret->number = newest->revision;
    ret->collections = json_get_text(newest->body, "collections");
    if (newest->deleted) {
        rc = store_history(store, call, key, &range, tail_take, &tail);
    }
    size_t end = str_find(ret->collections, ng_str_of(" "), 0);
    ret->collection = str_make(ret->collections.data, size_min(end, ret->collections.len));
    return rc;
}

int file_version_newest(struct store *store, struct call *call, struct ng_str space,
                        struct ng_str real, struct file_version *ret)
{
    const struct ng_key key = {ng_str_of(NG_FILE_VERSIONS), space, real};
    const struct ng_doc *doc = NULL;
    *ret = (struct file_version){.space = space, .real = real};
    int rc = store_get(store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *body = version_body(doc);
    struct ng_str hash = json_get_text(body, "hash");
    ret->number = doc->revision;
    if (body != NULL && hash.len < sizeof(ret->hash)) {
        memcpy(ret->hash, hash.data, hash.len);
        ret->content = str_or(doc->text, ng_str_of(""));
        ret->mode = (uint32_t)json_get_integer(body, "mode");
    }
    return NG_OK;
}
