/* SPDX-License-Identifier: MIT */
/* entry_read.c - notebook_read: an entry in its present or an earlier version, whole, one
 * section, or some lines. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "entry.h"
#include "entry_text.h"
#include "entry_tools.h"
#include "read_receipts.h"

/* Up to this size, code is returned as both `code` and `content`, and the text of a page also
 * in its `sections`; above it only as `content`: both would exceed the limit of an answer. */
#define READ_TWICE_MAX ((size_t)1024 * 1024)

/* The part of the text that is asked for. */
struct read_part {
    bool partly;
    struct ng_str section; /* absent: the whole text */
    struct ng_str text;
    uint64_t first, lines, total; /* lines of the text or section */
};

/* Gets the entry, or one of its versions. Versions of a deleted entry can be read, too. */
static int read_get(struct ng_call *call, struct ng_key *key, const struct ng_doc **ret)
{
    uint64_t version = (uint64_t)ng_arg_int(call, "version", 0);
    int rc = entry_find(call, key, ret);
    if (rc != NG_OK) {
        return rc;
    }
    if ((*ret)->revision == 0 || ((*ret)->deleted && version == 0)) {
        return entry_not_found(call, key, *ret);
    }
    if (version == 0 || version == (*ret)->revision) {
        if (!(*ret)->deleted) {
            return NG_OK;
        }
        return entry_no_version(call, key, version);
    }
    rc = call->host->get(call, key, version, ret);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && !entry_exists(*ret))) {
        return entry_no_version(call, key, version);
    }
    return rc;
}

static int read_part(struct ng_call *call, const struct ng_doc *doc, struct read_part *part)
{
    struct entry_section section;
    part->text = doc->text;
    part->partly = ng_has_arg(call, "section") || ng_has_arg(call, "start_line") ||
                   ng_has_arg(call, "max_lines");
    if (ng_has_arg(call, "section")) {
        struct ng_str name = ng_arg_text(call, "section");
        if (!entry_find_section(doc->text, name, &section)) {
            return entry_no_section(call, &doc->key, doc->text, name);
        }
        part->section = entry_heading_text(call, &section.heading);
        part->text.data = doc->text.data + section.heading.at;
        part->text.len = section.end - section.heading.at;
    }
    if (!part->partly) {
        return NG_OK;
    }
    part->total = entry_lines(part->text);
    part->first = (uint64_t)ng_arg_int(call, "start_line", 1);
    uint64_t most = (uint64_t)ng_arg_int(call, "max_lines", INT64_MAX);
    uint64_t left = part->first > part->total ? 0 : part->total - part->first + 1;
    part->lines = u64_min(left, most);
    size_t from = left == 0 ? part->text.len : entry_line_at(part->text, part->first);
    size_t to = part->lines == left ? part->text.len
                                    : entry_line_at(part->text, part->first + part->lines);
    if (part->text.data == NULL) {
        part->text.data = NULL;
    } else {
        part->text.data = part->text.data + from;
    }
    part->text.len = to - from;
    return NG_OK;
}

static void read_put_text(struct ng_call *call, struct ng_writer *writer, unsigned collection,
                          const struct read_part *part)
{
    const struct ng_host *host = call->host;
    entry_put(call, writer, "content", part->text);
    if (collection == ENTRY_CODE && part->text.len <= READ_TWICE_MAX) {
        entry_put(call, writer, "code", part->text);
    }
    if (!part->partly) {
        return;
    }
    if (part->section.data != NULL) {
        entry_put(call, writer, "section", part->section);
    }
    host->json_name(writer, "lines");
    host->json_object(writer);
    entry_put_int(call, writer, "start", part->first);
    entry_put_int(call, writer, "count", part->lines);
    entry_put_int(call, writer, "total", part->total);
    host->json_end(writer);
}

static void read_put_member(struct ng_call *call, struct ng_writer *writer,
                            const struct ng_value *body, const struct ng_value *member,
                            struct ng_str text)
{
    const struct ng_host *host = call->host;
    struct ng_str name = host->json_key(member);
    host->json_name_str(writer, name);
    bool derived = str_is(name, "sections") &&
                   host->json_type(host->json_get(body, "sections_given")) != NG_TYPE_TRUE;
    if (derived && text.len <= READ_TWICE_MAX) {
        entry_put_sections(call, writer, text, true);
        return;
    }
    host->json_copy(writer, member);
}

/* Members that the answer shows; an answer with a part of the text leaves out long ones. */
static bool read_shows(struct ng_str member, bool partly)
{
    bool own = str_is(member, "summary_given") || str_is(member, "sections_given") ||
               str_is(member, ENTRY_TITLE_KEY) || str_is(member, ENTRY_UNDO_BASE) ||
               str_is(member, ENTRY_UNDOS);
    return !own && !str_is(member, "history") && !(partly && str_is(member, "sections"));
}

/* The newest items; see ENTRY_HISTORY_SLACK. */
static void read_put_history(struct ng_call *call, struct ng_writer *writer,
                             const struct ng_value *history)
{
    const struct ng_host *host = call->host;
    size_t there = host->json_count(history);
    host->json_name(writer, "history");
    host->json_array(writer);
    for (const struct ng_value *item = host->json_first(history); item != NULL;
         item = host->json_next(item)) {
        if (there-- <= ENTRY_HISTORY_MAX) {
            host->json_copy(writer, item);
        }
    }
    host->json_end(writer);
}

static int read_reply(struct ng_call *call, const struct ng_doc *doc,
                      const struct ng_value *body, const struct read_part *part)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    entry_put(call, writer, "_id", doc->key.id);
    entry_put(call, writer, "notebook_id", doc->key.id);
    entry_put(call, writer, "collection", doc->key.collection);
    for (const struct ng_value *member = host->json_first(body); member != NULL;
         member = host->json_next(member)) {
        struct ng_str name = host->json_key(member);
        if (read_shows(name, part->partly)) {
            read_put_member(call, writer, body, member, part->text);
        }
        if (str_is(name, "title")) {
            read_put_text(call, writer, entry_collection(doc->key.collection), part);
        }
    }
    const struct ng_value *history = host->json_get(body, "history");
    if (!part->partly && history != NULL) {
        read_put_history(call, writer, history);
    }
    host->json_end(writer);
    return host->revision_number(call, doc->revision);
}

int entry_read_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct agent_notebook *notebook = self;
    struct ng_key key;
    const struct ng_doc *doc = NULL;
    const struct ng_value *body = NULL;
    struct read_part part = {.first = 1};
    (void)args;
    int rc = read_get(call, &key, &doc);
    if (rc == NG_OK && doc->text.len > ENTRY_INLINE_BYTES && !call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_body(call, doc, &body);
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_part(call, doc, &part);
    if (rc != NG_OK) {
        return rc;
    }
    struct read_receipt opening = {
        .key = key,
        .title = call->host->json_text(call->host->json_get(body, "title")),
        .summary = call->host->json_text(call->host->json_get(body, "summary")),
        .status = call->host->json_text(entry_member(call, body, "metadata", "status")),
        .version = doc->revision,
    };
    rc = read_receipts_add(notebook->receipts, call, &opening);
    if (rc != NG_OK) {
        return rc;
    }
    return read_reply(call, doc, body, &part);
}
