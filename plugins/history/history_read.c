/* SPDX-License-Identifier: MIT */
/* history_read.c - history_read: a document as of a point. */
#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of an answer behind the content. */
#define READ_END_MAX ((size_t)200)

static void put_members(struct ng_call *call, struct ng_writer *writer,
                        const struct history_target *target, const struct ng_doc *doc)
{
    if (target->collection == NULL || target->collection->members == NULL) {
        return;
    }
    json_name(writer, "members");
    call->host->json_copy(writer, call->host->members(call, target->key.collection, doc->body));
}

/* Bytes that are no text, as a whole. */
static int put_bytes(struct ng_call *call, struct ng_writer *writer, struct ng_str bytes,
                     size_t room)
{
    struct buf text;
    buf_init(&text, room);
    base64_encode(&text, bytes, BASE64_STANDARD);
    int rc = text.rc;
    if (rc == NG_OK) {
        json_member_string(writer, "content", buf_str(&text));
        json_member_cstring(writer, "encoding", "base64");
        json_member_int(writer, "total_lines", (int64_t)history_count_lines(bytes));
    }
    buf_done(&text);
    if (rc == NG_ETOOLARGE) {
        return ng_fail(call, NG_ETOOLARGE,
                       "the content is not UTF-8 and has %zu bytes, more than an answer holds "
                       "as base64 (tools.max_answer)",
                       bytes.len);
    }
    return rc == NG_OK ? NG_OK : history_no_memory(call);
}

static int put_text(struct ng_call *call, struct ng_writer *writer, struct ng_str text,
                    size_t room)
{
    struct history_part part;
    if (!utf8_valid(text)) {
        return put_bytes(call, writer, text, room);
    }
    int rc = history_part(call, text, room, &part);
    if (rc != NG_OK) {
        return rc;
    }
    json_member_string(writer, "content", part.text);
    json_member_int(writer, "total_lines", (int64_t)part.lines);
    if (part.next_line != 0) {
        json_member_int(writer, "next_line", (int64_t)part.next_line);
    }
    return NG_OK;
}

static int read_answer(struct ng_call *call, const struct history_target *target,
                       const struct history_version *version)
{
    struct ng_writer *writer = call->host->reply_json(call);
    const struct ng_doc *doc = version->doc;
    json_object(writer);
    history_put_key(writer, &target->shown);
    json_member_int(writer, "revision", (int64_t)version->revision);
    history_put_change(writer, &version->change);
    json_member_string(writer, "action", version->change.action);
    put_members(call, writer, target, doc);
    size_t room = call->host->answer_room(call);
    room -= size_min(room, READ_END_MAX);
    int rc = put_text(call, writer, doc->text, room);
    json_end(writer);
    return rc;
}

int history_read_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct history_target target;
    struct history_version version;
    (void)self;
    (void)args;
    if (!ng_has_arg(call, "id") && !ng_has_arg(call, "path")) {
        return history_documents(call);
    }
    int rc = history_target(call, &target);
    if (rc == NG_OK) {
        rc = history_at(call, &target, "at", ng_str_of("now"), &version);
    }
    if (rc != NG_OK) {
        return rc;
    }
    (void)call->host->revision_number(call, version.revision);
    return read_answer(call, &target, &version);
}
