/* SPDX-License-Identifier: MIT */
/* history_diff.c - history_diff: a document at two points. */
#include <notegate/files.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of a whole diff: of two texts with other lines, and the signs before them. */
#define DIFF_BYTES_MAX (4 * HISTORY_TEXT_MAX)
/* Bytes of an answer besides the diff. */
#define DIFF_AROUND ((size_t)400)

struct diffed {
    struct ng_call *call;
    struct history_target target;
    struct history_target old;   /* as `target`, or the path that the file was moved from */
    struct history_version from; /* of it; doc NULL: there was none */
    struct history_version to;
};

static int add_piece(void *user, struct ng_str piece)
{
    return buf_add_str(user, piece);
}

static bool same_value(struct ng_call *call, const struct ng_value *a, const struct ng_value *b)
{
    struct ng_writer *left = call->host->json_writer(call);
    struct ng_writer *right = call->host->json_writer(call);
    if (a == NULL || b == NULL || left == NULL || right == NULL) {
        return a == b;
    }
    call->host->json_copy(left, a);
    call->host->json_copy(right, b);
    return str_equal(call->host->json_result(left), call->host->json_result(right));
}

static const struct ng_value *member_of(struct ng_call *call, const struct ng_value *members,
                                        struct ng_str name)
{
    const struct ng_value *value = call->host->json_first(members);
    while (value != NULL && !str_equal(call->host->json_key(value), name)) {
        value = call->host->json_next(value);
    }
    return value;
}

void history_put_changed(struct ng_call *call, struct ng_writer *writer,
                         const struct ng_collection *collection, const struct ng_value *before,
                         const struct ng_value *after)
{
    const struct ng_host *host = call->host;
    struct ng_str name = ng_str_of(collection != NULL ? collection->name : NULL);
    const struct ng_value *old = host->members(call, name, before);
    const struct ng_value *new = host->members(call, name, after);
    json_name(writer, "changed");
    json_array(writer);
    for (const struct ng_value *at = host->json_first(new); at != NULL;
         at = host->json_next(at)) {
        if (!same_value(call, at, member_of(call, old, host->json_key(at)))) {
            json_string(writer, host->json_key(at));
        }
    }
    for (const struct ng_value *at = host->json_first(old); at != NULL;
         at = host->json_next(at)) {
        if (member_of(call, new, host->json_key(at)) == NULL) {
            json_string(writer, host->json_key(at)); /* it is gone */
        }
    }
    json_end(writer);
}

struct ng_str history_version_name(struct ng_call *call, const struct ng_key *key,
                                   uint64_t revision)
{
    if (str_is(key->collection, NG_FILE_VERSIONS)) {
        return call->host->format(call, "%.*s@%llu", (int)key->id.len, key->id.data,
                                  (unsigned long long)revision);
    }
    return call->host->format(call, "%.*s/%.*s/%.*s@%llu", (int)key->space.len, key->space.data,
                              (int)key->collection.len, key->collection.data, (int)key->id.len,
                              key->id.data, (unsigned long long)revision);
}

/* Whole lines of it. */
static struct ng_str diff_cut(struct ng_str text, size_t room)
{
    struct ng_str part = json_cut(text, room);
    while (part.len < text.len && part.len > 0 && part.data[part.len - 1] != '\n') {
        part.len--;
    }
    return part;
}

static int diff_answer(struct diffed *diffed, const struct diff *diff, struct ng_str text)
{
    struct ng_call *call = diffed->call;
    struct ng_writer *writer = call->host->reply_json(call);
    json_object(writer);
    history_put_key(writer, &diffed->target.shown);
    json_member_int(writer, "from", (int64_t)diffed->from.revision);
    if (!doc_key_equal(&diffed->old.key, &diffed->target.key)) {
        json_member_string(writer, "from_path", diffed->old.key.id);
    }
    json_member_int(writer, "to", (int64_t)diffed->to.revision);
    json_member_int(writer, "added", (int64_t)diff->added);
    json_member_int(writer, "removed", (int64_t)diff->removed);
    history_put_changed(call, writer, diffed->target.collection,
                        diffed->from.doc != NULL ? diffed->from.doc->body : NULL,
                        diffed->to.doc->body);
    size_t room = call->host->answer_room(call);
    struct ng_str part = diff_cut(text, room - size_min(room, DIFF_AROUND));
    json_member_string(writer, "diff", part);
    if (part.len < text.len) {
        json_member_bool(writer, "truncated", part.len < text.len);
    }
    json_end(writer);
    return NG_OK;
}

static int diff_texts(struct diffed *diffed, struct ng_str old, struct ng_str new)
{
    struct ng_call *call = diffed->call;
    struct diff diff = {0};
    struct buf text;
    if (size_max(old.len, new.len) > HISTORY_TEXT_MAX) {
        return ng_fail(call, NG_ETOOLARGE, "texts of more than %zu bytes are not compared",
                       HISTORY_TEXT_MAX);
    }
    if (!utf8_valid(old) || !utf8_valid(new)) {
        return ng_fail(call, NG_EINVAL, "the content is not UTF-8, so it has no lines");
    }
    buf_init(&text, DIFF_BYTES_MAX);
    int rc = diff_lines(old, new, &diff);
    if (rc == NG_OK) {
        size_t context = (size_t)ng_arg_int(call, "context", (int64_t)DIFF_CONTEXT);
        (void)diff_unified(&diff, context,
                           history_version_name(call, &diffed->old.key, diffed->from.revision),
                           history_version_name(call, &diffed->target.key, diffed->to.revision),
                           add_piece, &text);
        rc = text.rc;
    }
    rc = rc == NG_OK ? diff_answer(diffed, &diff, buf_str(&text)) : history_no_memory(call);
    buf_done(&text);
    diff_done(&diff);
    return rc;
}

/* A file that was moved: as it was at its old path. *ret_found: it is kept there. */
static int diff_moved(struct diffed *diffed, bool *ret_found)
{
    struct ng_call *call = diffed->call;
    uint64_t version = 0;
    struct history_target old;
    *ret_found = false;
    if (diffed->target.collection != NULL || ng_has_arg(call, "from")) {
        return NG_OK;
    }
    int rc = history_came_from(call, &diffed->target, diffed->to.doc->body, &old, &version);
    if (rc != NG_OK || version == 0) {
        return rc;
    }
    rc = history_revision(call, &old, version, &diffed->from);
    *ret_found = rc == NG_OK && !diffed->from.doc->deleted;
    if (*ret_found) {
        diffed->old = old;
    }
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

/* Without `from`: the revision before `to`, which may be none or thinned out. */
static int diff_before(struct diffed *diffed)
{
    struct ng_call *call = diffed->call;
    uint64_t before = diffed->to.revision - 1;
    diffed->from = (struct history_version){.doc = NULL};
    if (before == 0 && !ng_has_arg(call, "from")) {
        return NG_OK;
    }
    struct ng_str number = call->host->format(call, "%llu", (unsigned long long)before);
    if (ng_has_arg(call, "from")) {
        return history_at(call, &diffed->target, "from", number, &diffed->from);
    }
    struct ng_as_of found = {.size = sizeof(found)};
    int rc = call->host->revision_at(call, &diffed->target.key, "from", number, &found);
    if (rc == NG_OK && found.kept) {
        rc = history_revision(call, &diffed->target, before, &diffed->from);
    } else if (rc == NG_OK) {
        rc = history_at(call, &diffed->target, "from", number, &diffed->from);
    }
    if (rc == NG_OK && diffed->from.doc->deleted) {
        diffed->from.doc = NULL; /* made anew */
    }
    return rc;
}

static int diff_from(struct diffed *diffed)
{
    struct ng_call *call = diffed->call;
    bool found = false;
    diffed->old = diffed->target;
    if (history_has_gap(call, &diffed->target, diffed->to.doc) && !ng_has_arg(call, "from")) {
        return history_fail_gap(call, &diffed->target, diffed->to.revision);
    }
    int rc = diff_moved(diffed, &found);
    return rc == NG_OK && !found ? diff_before(diffed) : rc;
}

/* Texts are compared, and of files views. */
static int diff_contents(struct diffed *diffed)
{
    struct ng_str old = diffed->from.doc != NULL ? diffed->from.doc->text : ng_str_of("");
    struct ng_str new = diffed->to.doc->text;
    int rc = history_view(diffed->call, &diffed->target, old, &old);
    if (rc == NG_OK) {
        rc = history_view(diffed->call, &diffed->target, new, &new);
    }
    return rc == NG_OK ? diff_texts(diffed, old, new) : rc;
}

/* Does the call select changes, or does it name one document? `space` and `collection` are of
 * both. */
static bool diff_selects(struct ng_call *call)
{
    static const char *const filters[] = {"agent", "run",   "tool",  "action",
                                          "since", "until", "cursor"};
    bool selects = !ng_has_arg(call, "id") && !ng_has_arg(call, "path");
    for (size_t i = 0; i < NG_COUNT(filters) && !selects; i++) {
        selects = ng_has_arg(call, filters[i]);
    }
    return selects;
}

int history_diff_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct diffed diffed = {.call = call};
    (void)self;
    (void)args;
    if (diff_selects(call)) {
        return history_diff_rows(call);
    }
    int rc = history_target(call, &diffed.target);
    if (rc == NG_OK) {
        rc = history_at(call, &diffed.target, "to", ng_str_of("now"), &diffed.to);
    }
    if (rc == NG_OK) {
        rc = diff_from(&diffed);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return diff_contents(&diffed);
}
