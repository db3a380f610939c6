/* SPDX-License-Identifier: MIT */
/* entry_create.c - notebook_create: a new entry under an id of its own. */
#include <sys/random.h>

#include "agent_notebook.h"

#define ENTRY_ID_LEN 12

const char entry_create_params[] =
    "{\"type\":\"object\",\"required\":[\"collection\",\"title\",\"content\"],"
    "\"additionalProperties\":false,\"properties\":{"
    "\"collection\":{\"type\":\"string\","
    "\"enum\":[\"pages\",\"code_snippets\",\"research_notes\"],"
    "\"description\":\"Type of notebook entry\"},"
    "\"title\":{\"type\":\"string\",\"description\":\"Title of the entry\"},"
    "\"content\":{\"type\":\"string\",\"description\":\"Full content (markdown for pages, code "
    "for snippets, notes for research)\"}}}";

const char entry_create_result[] =
    "{\"type\":\"object\",\"required\":[\"notebook_id\",\"title\",\"collection\",\"status\"],"
    "\"properties\":{\"notebook_id\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"collection\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"}}}";

static int entry_create_change(struct ng_call *call, const struct ng_doc *present,
                               struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    const struct ng_str *id = user;
    if (present->revision > 0) {
        return ng_fail(call, NG_ECONFLICT, "the id %.*s is taken", (int)id->len, id->data);
    }
    struct ng_writer *draft = host->json_writer(call);
    struct ng_writer *reply = host->reply_json(call);
    struct ng_str content = ng_arg_text(call, "content");
    if (draft == NULL || reply == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(draft);
    host->json_name(draft, "title");
    host->json_string(draft, ng_arg_text(call, "title"));
    host->json_end(draft);
    host->json_object(reply);
    host->json_name(reply, "notebook_id");
    host->json_string(reply, *id);
    host->json_name(reply, "title");
    host->json_string(reply, ng_arg_text(call, "title"));
    host->json_name(reply, "collection");
    host->json_string(reply, ng_arg_text(call, "collection"));
    host->json_name(reply, "status");
    host->json_string(reply, ng_str_of("created"));
    host->json_end(reply);
    int rc = host->draft_text(next, &content, 1);
    return rc != NG_OK ? rc : host->draft_json(next, host->json_result(draft));
}

int entry_create_run(void *self, struct ng_call *call, struct ng_str args)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    unsigned char bytes[ENTRY_ID_LEN];
    struct ng_str *id = ng_alloc(call, sizeof(*id));
    char *text = ng_alloc(call, ENTRY_ID_LEN);
    (void)self;
    (void)args;
    if (id == NULL || text == NULL ||
        getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return ng_fail(call, NG_EINTERNAL, "no id could be made");
    }
    for (size_t i = 0; i < ENTRY_ID_LEN; i++) {
        text[i] = digits[bytes[i] % 32];
    }
    id->data = text;
    id->len = ENTRY_ID_LEN;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_arg_text(call, "collection"), call->caller->space, *id},
        .fn = entry_create_change,
        .user = id,
    };
    return ng_change_one(call, &change);
}
