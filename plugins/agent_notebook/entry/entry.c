/* SPDX-License-Identifier: MIT */
/* entry.c - keys and failures of entries, and helpers that read and write their JSON. */
#include "entry.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "entry_text.h"

/* Headings that a failed search for a section lists. */
#define ENTRY_HEADINGS_SHOWN 50
/* Bytes of a text that a failure quotes. */
#define ENTRY_QUOTED_MAX 80
#define ENTRY_AGENT "agent:"

const char *const entry_collections[ENTRY_COLLECTIONS] = {"pages", "code_snippets",
                                                          "research_notes"};

unsigned entry_collection(struct ng_str name)
{
    unsigned i = 0;
    while (i < ENTRY_COLLECTIONS && !str_is(name, entry_collections[i])) {
        i++;
    }
    return i;
}

int entry_key(struct ng_call *call, struct ng_key *ret)
{
    struct ng_str id = ng_arg_text(call, "notebook_id");
    if (id.len > NG_ID_MAX) {
        return ng_fail(call, NG_EINVAL, "`notebook_id` is %zu bytes long, it may have %d",
                       id.len, NG_ID_MAX);
    }
    ret->collection = ng_arg_text(call, "collection");
    ret->space = call->caller->space;
    ret->id = id;
    return NG_OK;
}

struct ng_str entry_agent_name(struct ng_str agent)
{
    size_t prefix = sizeof(ENTRY_AGENT) - 1;
    if (agent.len > prefix && str_begins(agent, ENTRY_AGENT)) {
        agent.data += prefix;
        agent.len -= prefix;
    }
    return agent;
}

struct ng_str entry_agent_of(struct ng_call *call, struct ng_str name)
{
    struct ng_str bare = entry_agent_name(name);
    return call->host->format(call, ENTRY_AGENT "%.*s", (int)bare.len, bare.data);
}

struct ng_str entry_agent(struct ng_call *call)
{
    return entry_agent_of(call, call->caller->agent);
}

int entry_strings(struct ng_call *call, const char *argument, const struct ng_str **ret,
                  size_t *ret_count)
{
    const struct ng_host *host = call->host;
    const struct ng_value *array = ng_arg(call, argument);
    struct ng_str *list = ng_alloc(call, (host->json_count(array) + 1) * sizeof(*list));
    size_t count = 0;
    if (list == NULL) {
        return entry_no_memory(call);
    }
    for (const struct ng_value *item = host->json_first(array); item != NULL;
         item = host->json_next(item)) {
        list[count++] = host->json_text(item);
    }
    *ret = list;
    *ret_count = count;
    return NG_OK;
}

bool entry_exists(const struct ng_doc *doc)
{
    return doc->revision > 0 && !doc->deleted;
}

bool entry_is_purged(const struct ng_doc *doc)
{
    return doc->deleted && str_is(doc->action, NG_ACTION_PURGED);
}

int entry_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory");
}

struct ng_str entry_join(struct ng_call *call, const struct ng_str *pieces, size_t count)
{
    struct ng_str joined = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        joined.len += pieces[i].len;
    }
    char *text = ng_alloc(call, joined.len + 1);
    if (text == NULL) {
        return str_make(NULL, 0);
    }
    joined.data = text;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) {
            memcpy(text, pieces[i].data, pieces[i].len);
            text += pieces[i].len;
        }
    }
    *text = '\0';
    return joined;
}

void entry_fail_pieces(struct ng_call *call, int code, const struct ng_str *pieces,
                       size_t count)
{
    (void)call->host->fail_text(call, code, entry_join(call, pieces, count));
}

static struct ng_writer *entry_details(struct ng_call *call, const struct ng_key *key)
{
    struct ng_writer *writer = call->host->details(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", key->id);
    entry_put(call, writer, "status", ng_str_of("not_found"));
    return writer;
}

int entry_not_found(struct ng_call *call, const struct ng_key *key, const struct ng_doc *doc)
{
    const struct ng_host *host = call->host;
    bool deleted = doc != NULL && doc->deleted;
    bool purged = doc != NULL && entry_is_purged(doc);
    bool anywhere = key->collection.data == NULL;
    const struct ng_str pieces[] = {
        ng_str_of("there is no entry '"),
        key->id,
        ng_str_of("' in "),
        anywhere ? ng_str_of("pages, code_snippets or research_notes") : key->collection,
        ng_str_of(deleted && !purged ? "; it was deleted" : ""),
        ng_str_of(purged ? "; it was purged" : ""),
    };
    entry_fail_pieces(call, AGENT_NOTEBOOK_ENTRY_NOT_FOUND, pieces, NG_COUNT(pieces));
    if (purged) {
        host->hint(call, "notebook_history shows when and by whom. No version of it is kept.");
    } else if (deleted) {
        bool writes = call->caller->mode != NG_MODE_ASK && call->caller->role != NG_ROLE_READER;
        host->hint(call, "notebook_history shows its versions while they are kept%s %llu.",
                   writes ? "; notebook_restore brings one back, the last was version"
                          : ", the last was version",
                   (unsigned long long)doc->revision - 1);
    } else if (anywhere) {
        host->hint(call, "notebook_search and notebook_list find ids.");
    } else {
        unsigned here = entry_collection(key->collection);
        host->hint(call,
                   "It may be an id of %s or %s: each is in one collection only. "
                   "notebook_search and notebook_list find ids.",
                   entry_collections[here == 0 ? 1 : 0], entry_collections[here == 2 ? 1 : 2]);
    }
    struct ng_writer *writer = entry_details(call, key);
    host->json_end(writer);
    return AGENT_NOTEBOOK_ENTRY_NOT_FOUND;
}

int entry_no_version(struct ng_call *call, const struct ng_key *key, uint64_t version)
{
    const struct ng_str pieces[] = {
        ng_str_of("the entry '"), key->id,
        call->host->format(call, "' has no version %llu, or it is no longer kept",
                           (unsigned long long)version)};
    entry_fail_pieces(call, AGENT_NOTEBOOK_VERSION_NOT_FOUND, pieces, NG_COUNT(pieces));
    call->host->hint(call, "notebook_history lists the versions.");
    struct ng_writer *writer = entry_details(call, key);
    entry_put_int(call, writer, "version", version);
    call->host->json_end(writer);
    return AGENT_NOTEBOOK_VERSION_NOT_FOUND;
}

struct ng_str entry_quoted(struct ng_str text)
{
    return utf8_cut(text, ENTRY_QUOTED_MAX);
}

int entry_no_section(struct ng_call *call, const struct ng_key *key, struct ng_str text,
                     struct ng_str name)
{
    const struct ng_host *host = call->host;
    struct entry_scan scan = {.text = text};
    struct entry_heading heading;
    const struct ng_str pieces[] = {ng_str_of("the entry has no heading '"), entry_quoted(name),
                                    ng_str_of("'")};
    entry_fail_pieces(call, AGENT_NOTEBOOK_SECTION_NOT_FOUND, pieces, NG_COUNT(pieces));
    host->hint(call, "`section` is the plain text of a heading; `details` lists the headings.");
    struct ng_writer *writer = host->details(call);
    host->json_object(writer);
    entry_put(call, writer, "notebook_id", key->id);
    host->json_name(writer, "headings");
    host->json_array(writer);
    for (int i = 0; i < ENTRY_HEADINGS_SHOWN && entry_next_heading(&scan, &heading); i++) {
        host->json_string(writer, entry_heading_text(call, &heading));
    }
    host->json_end(writer);
    host->json_end(writer);
    return AGENT_NOTEBOOK_SECTION_NOT_FOUND;
}

int entry_invalid(struct ng_call *call, const char *path, struct ng_str expected,
                  struct ng_str got)
{
    const struct ng_host *host = call->host;
    /* Names the member as the schema errors of the gateway do. */
    const struct ng_str pieces[] = {
        ng_str_of("`"), ng_str_of(path + 1), ng_str_of("`: expected "),
        expected,       ng_str_of(", got "), got};
    entry_fail_pieces(call, NG_EINVAL, pieces, NG_COUNT(pieces));
    struct ng_writer *writer = host->details(call);
    host->json_object(writer);
    host->json_name(writer, "violations");
    host->json_array(writer);
    host->json_object(writer);
    entry_put(call, writer, "path", ng_str_of(path));
    entry_put(call, writer, "expected", expected);
    entry_put(call, writer, "got", got);
    host->json_end(writer);
    host->json_end(writer);
    host->json_end(writer);
    return NG_EINVAL;
}

void entry_put(struct ng_call *call, struct ng_writer *writer, const char *name,
               struct ng_str text)
{
    call->host->json_name(writer, name);
    call->host->json_string(writer, text);
}

void entry_put_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                   uint64_t number)
{
    call->host->json_name(writer, name);
    call->host->json_int(writer, (int64_t)u64_min(number, INT64_MAX));
}

void entry_put_more(struct ng_call *call, struct ng_writer *writer, uint64_t next,
                    uint64_t total)
{
    call->host->json_name(writer, "has_more");
    call->host->json_bool(writer, next < total);
    if (next < total) {
        entry_put_int(call, writer, "next_offset", next);
    }
}

struct ng_str entry_cut(struct ng_call *call, struct ng_str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    struct ng_str begin = utf8_cut(text, max);
    struct ng_str pieces[] = {
        begin, call->host->format(call, "[... %zu bytes left out]", text.len - begin.len)};
    return entry_join(call, pieces, NG_COUNT(pieces));
}

void entry_put_cut(struct ng_call *call, struct ng_writer *writer, const char *name,
                   struct ng_str text, size_t max)
{
    entry_put(call, writer, name, entry_cut(call, text, max));
}

const struct ng_value *entry_member(struct ng_call *call, const struct ng_value *body,
                                    const char *a, const char *b)
{
    const struct ng_value *value = call->host->json_get(body, a);
    if (b == NULL) {
        return value;
    }
    return call->host->json_get(value, b);
}

int entry_row_body(struct ng_call *call, const struct ng_doc *row, const struct ng_value **ret)
{
    struct ng_str json = entry_join(call, &row->json, 1);
    if (json.data == NULL) {
        return entry_no_memory(call);
    }
    return call->host->json_parse(call, json, ret);
}

int entry_body(struct ng_call *call, const struct ng_doc *doc, const struct ng_value **ret)
{
    *ret = doc->body;
    if (doc->body != NULL) {
        return NG_OK;
    }
    return call->host->json_parse(call, doc->json, ret);
}
