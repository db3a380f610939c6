/* SPDX-License-Identifier: MIT */
/* together.c - tools that change and read several documents of a group in one step, for the
 * histories and the tests of MongoDB: a token is appended to each named document, and one query
 * reads all of them. */
#include <notegate/plugin.h>
#include <string.h>

#define TOGETHER "together"
#define DOCUMENTS_MAX 8

/* One append, in call memory: the functions may run again. */
struct together_append {
    struct ng_str token;
    struct ng_str json; /* of each document: names its group */
    struct ng_str last; /* id of the document whose function replies */
};

struct together_read {
    struct ng_call *call;
    struct ng_str pieces[2 * DOCUMENTS_MAX];
    size_t count;
};

static bool str_same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static int append_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    struct together_append *append = user;
    const struct ng_str pieces[] = {present->text, ng_str_of(present->text.len > 0 ? "\n" : ""),
                                    append->token};
    int rc = call->host->draft_text(next, pieces, NG_COUNT(pieces));
    if (rc == NG_OK) {
        rc = call->host->draft_json(next, append->json);
    }
    if (rc != NG_OK || !str_same(present->key.id, append->last)) {
        return rc;
    }
    return ng_reply(call, append->token);
}

/* The step depends on this document, and leaves it as it is. */
static int read_change(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)call;
    (void)present;
    (void)next;
    (void)user;
    return NG_OK;
}

static int append_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct together_append *append = ng_alloc(call, sizeof(*append));
    struct ng_change *changes = ng_alloc(call, DOCUMENTS_MAX * sizeof(*changes));
    (void)self;
    (void)args;
    if (append == NULL || changes == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    struct ng_str group = ng_arg_text(call, "group");
    append->token = ng_arg_text(call, "token");
    append->json = call->host->format(call, "{\"group\":\"%.*s\"}", (int)group.len, group.data);
    size_t count = 0;
    const struct ng_value *name = call->host->json_first(ng_arg(call, "names"));
    for (; name != NULL && count < DOCUMENTS_MAX; name = call->host->json_next(name)) {
        append->last = call->host->json_text(name);
        changes[count++] = (struct ng_change){
            .size = sizeof(*changes),
            .key = {ng_str_of(TOGETHER), call->caller->space, append->last},
            .fn = append_change,
            .user = append,
        };
    }
    name = call->host->json_first(ng_arg(call, "unchanged"));
    for (; name != NULL && count < DOCUMENTS_MAX; name = call->host->json_next(name)) {
        changes[count++] = (struct ng_change){
            .size = sizeof(*changes),
            .key = {ng_str_of(TOGETHER), call->caller->space, call->host->json_text(name)},
            .fn = read_change,
        };
    }
    return call->host->change(call, changes, count);
}

/* A row as "id revision token token ...", one a line. */
static int read_row(void *user, const struct ng_doc *row)
{
    struct together_read *read = user;
    if (read->count == NG_COUNT(read->pieces)) {
        return 1;
    }
    char *text = ng_alloc(read->call, row->text.len + 1);
    if (text == NULL) {
        return 1;
    }
    for (size_t i = 0; i < row->text.len; i++) {
        text[i] = row->text.data[i] == '\n' ? ' ' : row->text.data[i];
    }
    text[row->text.len] = '\n';
    read->pieces[read->count++] =
        read->call->host->format(read->call, "%.*s %llu ", (int)row->key.id.len,
                                 row->key.id.data, (unsigned long long)row->revision);
    read->pieces[read->count++] = (struct ng_str){text, row->text.len + 1};
    return 0;
}

static int read_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct together_read read = {.call = call};
    const struct ng_term group = {
        .field = ng_str_of("group"),
        .op = NG_TERM_EQ,
        .value = ng_arg_text(call, "group"),
    };
    const struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(TOGETHER),
        .space = call->caller->space,
        .terms = &group,
        .term_count = 1,
        .limit = DOCUMENTS_MAX,
        .with_text = true,
    };
    (void)self;
    (void)args;
    int rc = call->host->query(call, &query, read_row, &read, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->reply_parts(call, read.pieces, read.count);
}

static const struct ng_tool tools[] = {
    {
        .name = "together_append",
        .summary = "Appends a token to several documents in one change.",
        .params = "{\"type\":\"object\",\"required\":[\"group\",\"names\",\"token\"],"
                  "\"properties\":{\"group\":{\"type\":\"string\"},"
                  "\"names\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
                  "\"unchanged\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
                  "\"token\":{\"type\":\"string\"}},\"additionalProperties\":false}",
        .run = append_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_SHARED,
    },
    {
        .name = "together_read",
        .summary = "Reads all documents of a group in one query.",
        .params = "{\"type\":\"object\",\"required\":[\"group\"],\"properties\":{"
                  "\"group\":{\"type\":\"string\"}},\"additionalProperties\":false}",
        .run = read_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
    },
};

static const struct ng_field fields[] = {{"group", NG_FIELD_STRING, 0}};

static const struct ng_collection collections[] = {
    {
        .name = TOGETHER,
        .fields = fields,
        .field_count = NG_COUNT(fields),
        .field_size = sizeof(struct ng_field),
    },
};

static const struct ng_plugin together = {
    .name = "together",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .collections = collections,
    .collection_count = NG_COUNT(collections),
};

NG_EXPORT_PLUGIN(together);
