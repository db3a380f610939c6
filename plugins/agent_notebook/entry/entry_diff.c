/* SPDX-License-Identifier: MIT */
/* entry_diff.c - notebook_diff: two versions of an entry compared, as a unified diff. */
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"
#include "core/base/text/json_writer.h"
#include "core/base/utf8.h"
#include "entry.h"
#include "entry_tools.h"

/* Default number of bytes of the diff in one answer. */
#define DIFF_BYTES_DEFAULT ((int64_t)256 * 1024)
/* Bytes of an answer behind the diff. */
#define DIFF_END_MAX ((size_t)400)
/* Bytes of a whole diff: of two entries with other lines, and the signs before them. */
#define DIFF_BYTES_MAX ((size_t)256 * 1024 * 1024)

static int diff_piece(void *user, struct ng_str piece)
{
    return buf_add_str(user, piece);
}

static int diff_get(struct ng_call *call, const struct ng_key *key, uint64_t version,
                    const struct ng_doc **ret)
{
    int rc = call->host->get(call, key, version, ret);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && !entry_exists(*ret))) {
        return entry_no_version(call, key, version);
    }
    return rc;
}

/* The versions to compare: `to` is the newest one by default. */
static int diff_versions(struct ng_call *call, struct ng_key *ret_key, uint64_t *ret_from,
                         uint64_t *ret_to)
{
    const struct ng_doc *newest = NULL;
    int rc = entry_find(call, ret_key, &newest);
    if (rc != NG_OK) {
        return rc;
    }
    if (newest->revision == 0 || entry_is_purged(newest)) {
        return entry_not_found(call, ret_key, newest);
    }
    uint64_t last = newest->revision - newest->deleted;
    *ret_from = (uint64_t)ng_arg_int(call, "from", 1);
    *ret_to = (uint64_t)ng_arg_int(call, "to", (int64_t)last);
    return NG_OK;
}

static bool diff_member_differs(struct ng_call *call, const struct ng_value *a,
                                const struct ng_value *b)
{
    const struct ng_host *host = call->host;
    struct ng_writer *left = host->json_writer(call);
    struct ng_writer *right = host->json_writer(call);
    if (left == NULL || right == NULL || (a == NULL) != (b == NULL)) {
        return (a == NULL) != (b == NULL);
    }
    if (a == NULL) {
        return false;
    }
    host->json_copy(left, a);
    host->json_copy(right, b);
    return !str_equal(host->json_result(left), host->json_result(right));
}

/* Lists the names of the members that differ, apart from the text. */
static void diff_put_changed(struct ng_call *call, struct ng_writer *writer,
                             const struct ng_value *a, const struct ng_value *b,
                             unsigned collection)
{
    static const struct entry_own all[] = {
        {"title", false}, {"summary", false}, {"tags", true}, {"status", true}};
    const struct ng_host *host = call->host;
    host->json_name(writer, "changed");
    host->json_array(writer);
    for (size_t i = 0; i < NG_COUNT(all) + ENTRY_OWN_MAX; i++) {
        const struct entry_own *own = &all[i % NG_COUNT(all)];
        const char *group = "metadata";
        if (i >= NG_COUNT(all)) {
            own = &entry_own[collection][i - NG_COUNT(all)];
        }
        const char *name = own->name;
        if (!own->in_metadata) {
            group = own->name;
            name = NULL;
        }
        if (own->name != NULL && diff_member_differs(call, entry_member(call, a, group, name),
                                                     entry_member(call, b, group, name))) {
            host->json_string(writer, ng_str_of(own->name));
        }
    }
    host->json_end(writer);
}

static int diff_text(struct ng_call *call, const struct diff *diff, const struct ng_key *key,
                     const uint64_t versions[2], struct ng_str *ret)
{
    const struct ng_host *host = call->host;
    struct ng_str names[2];
    struct buf text;
    for (int i = 0; i < 2; i++) {
        names[i] =
            host->format(call, "%.*s/%.*s@%llu", (int)key->collection.len, key->collection.data,
                         (int)key->id.len, key->id.data, (unsigned long long)versions[i]);
    }
    buf_init(&text, DIFF_BYTES_MAX);
    (void)diff_unified(diff, DIFF_CONTEXT, names[0], names[1], diff_piece, &text);
    struct ng_str whole = buf_str(&text);
    bool complete = text.rc == NG_OK;
    if (complete) {
        *ret = entry_join(call, &whole, 1);
    }
    buf_done(&text);
    if (complete) {
        return NG_OK;
    }
    return entry_no_memory(call);
}

/* The boundary of characters at or before the byte `at`. */
static size_t diff_character(struct ng_str text, size_t at)
{
    while (at > 0 && at < text.len && !utf8_is_start(text.data[at])) {
        at--;
    }
    return at;
}

/* The part of the diff that one answer holds, from *ret_from on: whole lines if one fits, but
 * at least a character, so that repeated calls reach the end. */
static struct ng_str diff_part(struct ng_call *call, struct ng_str whole, size_t room,
                               size_t *ret_from)
{
    uint64_t offset = (uint64_t)ng_arg_int(call, "offset", 0);
    size_t most = (size_t)ng_arg_int(call, "max_bytes", DIFF_BYTES_DEFAULT);
    size_t from = diff_character(whole, offset < whole.len ? (size_t)offset : whole.len);
    size_t to = whole.len;
    if (whole.len - from > most) {
        to = diff_character(whole, from + most);
    }
    to = from + json_cut(str_make(whole.data + from, to - from), room).len;
    size_t line = to;
    while (to < whole.len && line > from && whole.data[line - 1] != '\n') {
        line--;
    }
    if (line > from) {
        to = line;
    }
    if (to <= from && from < whole.len) { /* `max_bytes` is less than a character */
        to = from + 1;
        while (to < whole.len && diff_character(whole, to) != to) {
            to++;
        }
    }
    *ret_from = from;
    struct ng_str part = {whole.data + from, to - from};
    return part;
}

static int diff_reply(struct ng_call *call, const struct ng_key *key,
                      const struct ng_doc *const docs[2], const struct diff *diff)
{
    const struct ng_host *host = call->host;
    const uint64_t versions[2] = {docs[0]->revision, docs[1]->revision};
    const struct ng_value *bodies[2];
    struct ng_str text = {NULL, 0};
    int rc = entry_body(call, docs[0], &bodies[0]);
    if (rc == NG_OK) {
        rc = entry_body(call, docs[1], &bodies[1]);
    }
    if (rc == NG_OK) {
        rc = diff_text(call, diff, key, versions, &text);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    entry_put(call, writer, "notebook_id", key->id);
    entry_put(call, writer, "collection", key->collection);
    entry_put_int(call, writer, "from", versions[0]);
    entry_put_int(call, writer, "to", versions[1]);
    size_t at = 0;
    size_t room = host->answer_room(call);
    struct ng_str part = diff_part(call, text, room - size_min(room, DIFF_END_MAX), &at);
    entry_put(call, writer, "diff", part);
    host->json_name(writer, "truncated");
    host->json_bool(writer, at + part.len < text.len);
    if (at + part.len < text.len) {
        entry_put_int(call, writer, "next_offset", at + part.len);
    }
    entry_put_int(call, writer, "lines_added", diff->added);
    entry_put_int(call, writer, "lines_removed", diff->removed);
    diff_put_changed(call, writer, bodies[0], bodies[1], entry_collection(key->collection));
    host->json_end(writer);
    return NG_OK;
}

int entry_diff_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_key key;
    uint64_t from = 0;
    uint64_t to = 0;
    const struct ng_doc *docs[2] = {NULL, NULL};
    struct diff diff = {0};
    (void)self;
    (void)args;
    int rc = diff_versions(call, &key, &from, &to);
    if (rc != NG_OK) {
        return rc;
    }
    rc = diff_get(call, &key, from, &docs[0]);
    if (rc != NG_OK) {
        return rc;
    }
    rc = diff_get(call, &key, to, &docs[1]);
    if (rc != NG_OK) {
        return rc;
    }
    rc = diff_lines(docs[0]->text, docs[1]->text, &diff);
    if (rc != NG_OK) {
        rc = entry_no_memory(call);
    } else {
        rc = diff_reply(call, &key, docs, &diff);
    }
    diff_done(&diff);
    return rc;
}
