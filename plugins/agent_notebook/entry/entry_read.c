/* SPDX-License-Identifier: MIT */
/* entry_read.c - notebook_read: an entry in its present or an earlier version, whole, one
 * section, or some lines. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "entry.h"
#include "entry_text.h"
#include "entry_tools.h"
#include "read_receipts.h"

/* Up to this size, and if the answer has the room, code is returned as both `code` and
 * `content`, and the text of a page also in its `sections`; else only as `content`. */
#define READ_TWICE_MAX ((size_t)1024 * 1024)
/* An answer with a part of the text leaves out members over this share of its room. */
#define READ_MEMBER_SHARE 8
/* Numbers that are longer than in an answer without text. */
#define READ_CUT_MAX 128

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
    if ((*ret)->revision == 0 || ((*ret)->deleted && version == 0) || entry_is_purged(*ret)) {
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
    if (part->text.data != NULL) {
        part->text.data += from;
    }
    part->text.len = to - from;
    return NG_OK;
}

/* ---- the answer ---- */

/* Forms of an answer, from the largest one. */
enum read_form {
    READ_TWICE = 0, /* a text also as `code`, or in its sections */
    READ_ONCE,
    READ_CUT /* lines of the text that fit, without long members */
};

struct read_answer {
    struct ng_call *call;
    const struct ng_doc *doc;
    const struct ng_value *body;
    struct read_part part;
    enum read_form form;
    bool is_cut_inside; /* the last line of the part */
    bool was_whole;     /* READ_CUT: no part was asked for */
    size_t member_max;  /* READ_CUT: longer members are left out */
};

static void read_put_text(const struct read_answer *answer, struct ng_writer *writer)
{
    struct ng_call *call = answer->call;
    const struct ng_host *host = call->host;
    const struct read_part *part = &answer->part;
    entry_put(call, writer, "content", part->text);
    if (answer->form == READ_TWICE &&
        entry_collection(answer->doc->key.collection) == ENTRY_CODE) {
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
    if (answer->is_cut_inside) {
        host->json_name(writer, "truncated");
        host->json_bool(writer, true);
    }
    host->json_end(writer);
    if (part->first + part->lines <= part->total && part->lines > 0) {
        entry_put_int(call, writer, "next_line", part->first + part->lines);
    }
}

/* Members that the answer shows; an answer with a part of the text leaves out long ones. */
static bool read_shows(struct ng_str member, bool partly)
{
    bool own = str_is(member, "summary_given") || str_is(member, "sections_given") ||
               str_is(member, ENTRY_TITLE_KEY) || str_is(member, ENTRY_UNDO_BASE) ||
               str_is(member, ENTRY_UNDOS);
    return !own && !str_is(member, "history") && !(partly && str_is(member, "sections"));
}

static bool read_is_long(const struct read_answer *answer, const struct ng_value *member)
{
    const struct ng_host *host = answer->call->host;
    struct ng_str name = host->json_key(member);
    if (answer->form != READ_CUT || str_is(name, "title") || str_is(name, "metadata")) {
        return false;
    }
    struct ng_writer *writer = host->json_writer(answer->call);
    host->json_copy(writer, member);
    return host->json_result(writer).len > answer->member_max;
}

static void read_put_member(const struct read_answer *answer, struct ng_writer *writer,
                            const struct ng_value *member)
{
    struct ng_call *call = answer->call;
    const struct ng_host *host = call->host;
    struct ng_str name = host->json_key(member);
    host->json_name_str(writer, name);
    bool derived =
        str_is(name, "sections") &&
        host->json_type(host->json_get(answer->body, "sections_given")) != NG_TYPE_TRUE;
    if (derived && answer->form == READ_TWICE) {
        entry_put_sections(call, writer, answer->part.text, true);
        return;
    }
    host->json_copy(writer, member);
}

static bool read_leaves_out(const struct read_answer *answer, const struct ng_value *member)
{
    struct ng_str name = answer->call->host->json_key(member);
    bool of_whole = str_is(name, "sections") || str_is(name, "history");
    return (answer->was_whole && of_whole) ||
           (read_shows(name, answer->part.partly) && read_is_long(answer, member));
}

/* The names of members that did not fit, if there are any. */
static void read_put_left_out(const struct read_answer *answer, struct ng_writer *writer)
{
    const struct ng_host *host = answer->call->host;
    bool is_open = false;
    for (const struct ng_value *member = host->json_first(answer->body); member != NULL;
         member = host->json_next(member)) {
        if (!read_leaves_out(answer, member)) {
            continue;
        }
        if (!is_open) {
            host->json_name(writer, "left_out");
            host->json_array(writer);
            is_open = true;
        }
        host->json_string(writer, host->json_key(member));
    }
    if (is_open) {
        host->json_end(writer);
    }
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

/* Writes the answer in its form. True: it fits. */
static bool read_write(struct read_answer *answer)
{
    struct ng_call *call = answer->call;
    const struct ng_host *host = call->host;
    const struct ng_key *key = &answer->doc->key;
    bool partly = answer->part.partly;
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    entry_put(call, writer, "_id", key->id);
    entry_put(call, writer, "notebook_id", key->id);
    entry_put(call, writer, "collection", key->collection);
    for (const struct ng_value *member = host->json_first(answer->body); member != NULL;
         member = host->json_next(member)) {
        struct ng_str name = host->json_key(member);
        if (read_shows(name, partly) && !read_is_long(answer, member)) {
            read_put_member(answer, writer, member);
        }
        if (str_is(name, "title")) {
            read_put_text(answer, writer);
        }
    }
    const struct ng_value *history = host->json_get(answer->body, "history");
    if (!partly && history != NULL) {
        read_put_history(call, writer, history);
    }
    read_put_left_out(answer, writer);
    host->json_end(writer);
    return host->answer_room(call) > 0;
}

/* The lines that fit, without long members. */
static void read_write_cut(struct read_answer *answer, size_t room)
{
    struct read_part *part = &answer->part;
    struct ng_str whole = part->text;
    if (!part->partly) {
        part->partly = true;
        answer->was_whole = true;
        part->total = part->lines = entry_lines(whole);
    }
    answer->form = READ_CUT;
    answer->member_max = room / READ_MEMBER_SHARE;
    part->text.len = 0;
    (void)read_write(answer);
    size_t left = answer->call->host->answer_room(answer->call);
    part->text = json_cut(whole, left - size_min(left, READ_CUT_MAX));
    const char *end =
        part->text.len > 0 ? memrchr(part->text.data, '\n', part->text.len) : NULL;
    if (part->text.len < whole.len && end != NULL) {
        part->text.len = (size_t)(end - part->text.data) + 1;
        part->lines = entry_lines(part->text) - 1;
    } else if (part->text.len < whole.len) {
        part->lines = 1;
        answer->is_cut_inside = true;
    }
    (void)read_write(answer);
}

static int read_reply(struct read_answer *answer)
{
    struct ng_call *call = answer->call;
    size_t room = call->host->answer_room(call);
    size_t size = answer->part.text.len;
    bool twice = size <= READ_TWICE_MAX && size <= room / 2;
    bool fits = false;
    answer->form = twice ? READ_TWICE : READ_ONCE;
    if (twice) {
        fits = read_write(answer);
    }
    if (!fits && size <= room) {
        answer->form = READ_ONCE;
        fits = read_write(answer);
    }
    if (!fits) {
        read_write_cut(answer, room);
    }
    return call->host->revision_number(call, answer->doc->revision);
}

int entry_read_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct agent_notebook *notebook = self;
    struct ng_key key;
    const struct ng_doc *doc = NULL;
    const struct ng_value *body = NULL;
    struct read_answer answer = {.call = call, .part = {.first = 1}};
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
    rc = read_part(call, doc, &answer.part);
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
    answer.doc = doc;
    answer.body = body;
    return read_reply(&answer);
}
