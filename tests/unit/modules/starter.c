/* SPDX-License-Identifier: MIT */
/* starter.c - a plugin that counts its starts
 * in a document, from start(). */
#include <notegate/plugin.h>

static const struct ng_collection starts = {.name = "starts"};

static struct ng_key starts_key(void)
{
    struct ng_key key = {ng_str_of("starts"), ng_str_of("shared"), ng_str_of("all")};
    return key;
}

static int starter_add(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    struct ng_str pieces[2] = {present->text, ng_str_of("x")};
    (void)user;
    return call->host->draft_text(next, pieces, 2);
}

static int starter_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct ng_change change = {.size = sizeof(change), .key = starts_key(), .fn = starter_add};
    (void)conf;
    (void)ret_self;
    return ng_change_one(call, &change);
}

static int starter_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_key key = starts_key();
    const struct ng_doc *doc = NULL;
    (void)self;
    (void)args;
    int rc = call->host->get(call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, call->host->format(call, "%llu", (unsigned long long)doc->text_size));
}

static const struct ng_tool tools[] = {
    {
        .name = "started",
        .summary = "How often.",
        .params = "{\"type\":\"object\"}",
        .run = starter_run,
        .effect = NG_EFFECT_READS,
    },
};

static const struct ng_plugin starter = {
    .name = "starter",
    .version = "1",
    .tools = tools,
    .tool_count = NG_COUNT(tools),
    .start = starter_start,
    .collections = &starts,
    .collection_count = 1,
};

NG_EXPORT_PLUGIN(starter);
