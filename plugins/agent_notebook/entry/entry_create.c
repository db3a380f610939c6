/* SPDX-License-Identifier: MIT */
/* entry_create.c - notebook_create: a new entry under a random id. */
#include "core/base/text/random.h"
#include "entry.h"
#include "entry_text.h"
#include "entry_tools.h"

#define ENTRY_ID_LEN 12
/* An id has 60 random bits: this many taken ones in a row are no coincidence. */
#define ENTRY_ID_TRIES 8

struct entry_create {
    const struct agent_notebook *self;
    unsigned collection;
    struct ng_key key;
    bool taken; /* there is, or was, an entry of this id */
};

static int create_id(struct ng_call *call, struct ng_str *ret)
{
    static const char digits[32] = "0123456789abcdefghjkmnpqrstvwxyz";
    unsigned char bytes[ENTRY_ID_LEN];
    char *text = ng_alloc(call, ENTRY_ID_LEN);
    if (text == NULL || !random_bytes(bytes, sizeof(bytes))) {
        return ng_fail(call, NG_EINTERNAL, "no id could be made");
    }
    for (size_t i = 0; i < ENTRY_ID_LEN; i++) {
        text[i] = digits[bytes[i] % sizeof(digits)];
    }
    ret->data = text;
    ret->len = ENTRY_ID_LEN;
    return NG_OK;
}

static int create_reply(struct ng_call *call, const struct entry_draft *draft)
{
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", draft->key.id);
    entry_put(call, writer, "title", draft->title);
    entry_put(call, writer, "collection", draft->key.collection);
    entry_put(call, writer, "status", ng_str_of("created"));
    entry_put_int(call, writer, "version", draft->version);
    call->host->json_end(writer);
    return NG_OK;
}

static int create_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    struct entry_create *create = user;
    /* The id of a deleted entry is taken, too: its history belongs to it. */
    create->taken = present->revision > 0;
    if (create->taken) {
        return ng_fail(call, NG_ECONFLICT, "the id %.*s is taken; try again",
                       (int)create->key.id.len, create->key.id.data);
    }
    struct entry_draft draft = {
        .self = create->self,
        .collection = create->collection,
        .key = create->key,
        .status = ng_str_of("draft"),
        .version = 1,
        .text_changed = true,
        .text = ng_arg_text(call, "content"),
        .did = ng_str_of("Created"),
        .change_by = entry_agent(call),
    };
    draft.created_by = draft.change_by;
    draft.words = entry_words(draft.text);
    draft.bytes = draft.text.len;
    entry_draft_args(call, &draft);
    int rc = call->host->draft_text(next, &draft.text, 1);
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_draft_store(call, &draft, next);
    if (rc != NG_OK) {
        return rc;
    }
    return create_reply(call, &draft);
}

int entry_create_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct entry_create *create = ng_alloc(call, sizeof(*create));
    struct ng_str collection = ng_arg_text(call, "collection");
    (void)args;
    if (create == NULL) {
        return entry_no_memory(call);
    }
    *create = (struct entry_create){.self = self, .collection = entry_collection(collection)};
    int rc = entry_check_args(self, call, create->collection);
    if (rc != NG_OK) {
        return rc;
    }
    for (int i = 0; i < ENTRY_ID_TRIES; i++) {
        rc = create_id(call, &create->key.id);
        if (rc != NG_OK) {
            return rc;
        }
        create->key.collection = collection;
        create->key.space = call->caller->space;
        struct ng_change change = {
            .size = sizeof(change),
            .key = create->key,
            .fn = create_change,
            .user = create,
            .is_new = true,
        };
        create->taken = false;
        rc = ng_change_one(call, &change);
        if (rc != NG_ECONFLICT || !create->taken) {
            return rc;
        }
    }
    return rc;
}
