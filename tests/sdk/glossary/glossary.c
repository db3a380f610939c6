/* SPDX-License-Identifier: MIT */
/* glossary - terms and their meanings: texts in documents, a list, a search, resources. The
 * guide of plugins quotes it. */
#define NG_ABI 1
#include <notegate/plugin.h>

#define GLOSSARY_COLLECTION "glossary_terms"
#define GLOSSARY_ROWS 50
#define GLOSSARY_PAGE 100

static const struct ng_field glossary_fields[] = {
    {"term", NG_FIELD_STRING, 0},
    {"meaning", NG_FIELD_TEXT, 0},
};

static const struct ng_collection glossary_collections[] = {
    {
        .name = GLOSSARY_COLLECTION,
        .fields = glossary_fields,
        .field_count = NG_COUNT(glossary_fields),
        .field_size = sizeof(struct ng_field),
    },
};

/* ---- writing ---- */

static int glossary_change(struct ng_call *call, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    (void)present;
    (void)user;
    if (writer == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(writer);
    host->json_name(writer, "term");
    host->json_string(writer, ng_arg_text(call, "term"));
    host->json_name(writer, "meaning");
    host->json_string(writer, ng_arg_text(call, "meaning"));
    host->json_end(writer);
    struct ng_str json = host->json_result(writer);
    if (json.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = host->draft_json(next, json);
    return rc != NG_OK ? rc : ng_reply(call, json);
}

static int glossary_set_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(GLOSSARY_COLLECTION), call->caller->space, ng_arg_text(call, "term")},
        .fn = glossary_change,
    };
    return ng_change_one(call, &change);
}

/* ---- reading ---- */

struct glossary_rows {
    struct ng_call *call;
    struct ng_writer *writer;
    int rc;
};

/* One document. The row is borrowed: copy what you keep. */
static int glossary_row(void *user, const struct ng_doc *row)
{
    struct glossary_rows *rows = user;
    const struct ng_host *host = rows->call->host;
    const struct ng_value *body = row->body; /* NULL: not parsed yet */
    if (body == NULL) {
        rows->rc = host->json_parse(rows->call, row->json, &body);
    }
    if (rows->rc != NG_OK) {
        return 1; /* no further rows; the query itself returns NG_OK */
    }
    host->json_copy(rows->writer, body);
    return 0;
}

static int glossary_list_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_host *host = call->host;
    struct ng_term prefix = {
        .field = ng_str_of("term"),
        .op = NG_TERM_PREFIX,
        .value = ng_arg_text(call, "prefix"),
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(GLOSSARY_COLLECTION),
        .space = call->caller->space,
        .terms = &prefix,
        .term_count = ng_has_arg(call, "prefix") ? 1 : 0,
        .sort = ng_str_of("term"),
        .limit = GLOSSARY_ROWS,
        .want_total = true,
    };
    uint64_t total = 0;
    struct glossary_rows rows = {call, host->reply_json(call), NG_OK};
    host->json_object(rows.writer);
    host->json_name(rows.writer, "terms");
    host->json_array(rows.writer);
    int rc = host->query(call, &query, glossary_row, &rows, &total);
    host->json_end(rows.writer);
    host->json_name(rows.writer, "total");
    host->json_int(rows.writer, (int64_t)total);
    host->json_end(rows.writer);
    return rc != NG_OK ? rc : rows.rc;
}

/* ---- searching ---- */

/* A row of a search has a score, an excerpt and its document. */
static int glossary_hit(void *user, const struct ng_doc *row)
{
    struct glossary_rows *rows = user;
    const struct ng_host *host = rows->call->host;
    host->json_object(rows->writer);
    host->json_name(rows->writer, "excerpt");
    host->json_string(rows->writer, row->snippet);
    host->json_name(rows->writer, "entry");
    int stop = glossary_row(user, row);
    host->json_end(rows->writer);
    return stop;
}

static int glossary_search_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_host *host = call->host;
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(GLOSSARY_COLLECTION),
        .space = call->caller->space,
        .limit = GLOSSARY_ROWS,
    };
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = ng_arg_text(call, "text"),
        .snippet_chars = 80,
    };
    struct glossary_rows rows = {call, host->reply_json(call), NG_OK};
    host->json_object(rows.writer);
    host->json_name(rows.writer, "hits");
    host->json_array(rows.writer);
    int rc = host->search(call, &search, glossary_hit, &rows, NULL, NULL);
    host->json_end(rows.writer);
    host->json_end(rows.writer);
    return rc != NG_OK ? rc : rows.rc;
}

static const struct ng_tool glossary_tools[] = {
    {
        .name = "glossary_set",
        .summary = "Set the meaning of a term.",
        .params = "{\"type\":\"object\",\"required\":[\"term\",\"meaning\"],\"properties\":{"
                  "\"term\":{\"type\":\"string\",\"description\":\"The term.\"},"
                  "\"meaning\":{\"type\":\"string\",\"description\":\"Its meaning.\"}}}",
        .run = glossary_set_run,
    },
    {
        .name = "glossary_list",
        .summary = "List the terms in their order.",
        .params = "{\"type\":\"object\",\"properties\":{\"prefix\":{\"type\":\"string\","
                  "\"description\":\"Only terms that begin so.\"}}}",
        .result = "{\"type\":\"object\"}",
        .effect = NG_EFFECT_READS,
        .run = glossary_list_run,
    },
    {
        .name = "glossary_search",
        .summary = "Find terms by words of their meanings.",
        .params = "{\"type\":\"object\",\"required\":[\"text\"],\"properties\":{\"text\":{"
                  "\"type\":\"string\",\"description\":\"Words to look for.\"}}}",
        .result = "{\"type\":\"object\"}",
        .effect = NG_EFFECT_READS,
        .run = glossary_search_run,
    },
};

/* ---- resources ---- */

struct glossary_page {
    const struct ng_host *host;
    struct ng_listing *listing;
    uint32_t rows;
    bool full;
};

static int glossary_page_row(void *user, const struct ng_doc *row)
{
    struct glossary_page *page = user;
    struct ng_str none = {NULL, 0};
    page->rows++;
    page->full =
        page->host->list_add(page->listing, row->key.id, row->key.id, none, "application/json",
                             row->json.len, row->updated_ms) != NG_OK;
    return page->full; /* ends the query */
}

static int glossary_resource_list(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_listing *listing)
{
    (void)self;
    struct glossary_page page = {.host = call->host, .listing = listing};
    struct ng_term behind = {
        .field = ng_str_of("id"),
        .op = NG_TERM_GT,
        .value = call->host->list_after(listing), /* absent: the first page */
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(GLOSSARY_COLLECTION),
        .space = space,
        .terms = &behind,
        .term_count = behind.value.data != NULL ? 1 : 0,
        .sort = behind.field,
        .limit = GLOSSARY_PAGE,
    };
    int rc = NG_OK;
    do {
        page.rows = 0;
        rc = call->host->query(call, &query, glossary_page_row, &page, NULL);
        query.offset += GLOSSARY_PAGE;
    } while (rc == NG_OK && page.rows == GLOSSARY_PAGE && !page.full);
    return rc;
}

static int glossary_resource_read(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_str id, uint64_t revision)
{
    (void)self;
    struct ng_key key = {ng_str_of(GLOSSARY_COLLECTION), space, id};
    const struct ng_doc *doc = NULL;
    int rc = call->host->get(call, &key, revision, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return ng_fail(call, NG_ENOTFOUND, "there is no such term");
    }
    return ng_reply(call, doc->json);
}

/* ---- searches of all kinds ---- */

static int glossary_found(void *user, const struct ng_doc *row)
{
    struct ng_find *find = user;
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = row->key.id,
        .agent = row->author,
        .excerpt = row->snippet,
        .updated_ms = row->updated_ms,
    };
    return find->hit(find->user, &hit);
}

static int glossary_resource_find(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_find *find)
{
    (void)self;
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(GLOSSARY_COLLECTION),
        .space = space,
        .limit = find->limit,
        .want_total = true,
    };
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = find->text,
        .snippet_chars = 80,
    };
    return call->host->search(call, &search, glossary_found, find, &find->total, NULL);
}

static const struct ng_resources glossary_resources[] = {
    {
        .kind = "term",
        .title = "Terms",
        .summary = "Terms and their meanings.",
        .mime_type = "application/json",
        .collection = GLOSSARY_COLLECTION,
        .list = glossary_resource_list,
        .read = glossary_resource_read,
        .find = glossary_resource_find,
    },
};

static const struct ng_plugin glossary = {
    .name = "glossary",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = glossary_tools,
    .tool_count = NG_COUNT(glossary_tools),
    .collections = glossary_collections,
    .collection_count = NG_COUNT(glossary_collections),
    .resources = glossary_resources,
    .resource_count = NG_COUNT(glossary_resources),
};

NG_EXPORT_PLUGIN(glossary);
