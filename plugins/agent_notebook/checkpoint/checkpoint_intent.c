/* SPDX-License-Identifier: MIT */
/* checkpoint_intent.c - the write intent of a restore, which survives a crash: one document for
 * each space, with its owner, its lease and its phase. */
#include "checkpoint.h"
#include "core/base/str.h"

#define CHECKPOINT_INTENTS_MAX 64

static struct ng_key checkpoint_intent_key(struct ng_str space)
{
    struct ng_key key = {ng_str_of(CHECKPOINT_RESTORES), ng_str_of(CHECKPOINT_RESTORES_SPACE),
                         space};
    return key;
}

static struct ng_str checkpoint_intent_json(struct ng_call *call,
                                            const struct checkpoint_intent *intent)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    memory_put(call, writer, "space", intent->space);
    memory_put(call, writer, "checkpoint", intent->checkpoint);
    memory_put(call, writer, "previous", intent->previous);
    memory_put(call, writer, "owner", intent->owner);
    memory_put(call, writer, "token", intent->token);
    memory_put(call, writer, "once", intent->once);
    entry_put_int(call, writer, "phase", (uint64_t)intent->phase);
    host->json_name(writer, "notebooks");
    host->json_bool(writer, intent->notebooks);
    entry_put_int(call, writer, "lease", (uint64_t)intent->lease_ms);
    host->json_end(writer);
    return host->json_result(writer);
}

static int checkpoint_intent_read(struct ng_call *call, const struct ng_value *body,
                                  struct checkpoint_intent *ret)
{
    const struct ng_host *host = call->host;
    struct checkpoint_intent intent = {
        .space = memory_text(call, body, "space"),
        .checkpoint = memory_text(call, body, "checkpoint"),
        .previous = memory_text(call, body, "previous"),
        .owner = memory_text(call, body, "owner"),
        .token = memory_text(call, body, "token"),
        .once = memory_text(call, body, "once"),
        .phase = (enum checkpoint_phase)memory_int(call, body, "phase"),
        .notebooks = host->json_type(host->json_get(body, "notebooks")) == NG_TYPE_TRUE,
        .lease_ms = (int64_t)memory_int(call, body, "lease"),
    };
    *ret = intent;
    if (intent.space.len > 0 && intent.token.len > 0) {
        return NG_OK;
    }
    return NG_EINVAL;
}

static int checkpoint_intent_busy(struct ng_call *call, const struct checkpoint_intent *intent)
{
    return ng_fail(call, NG_EBUSY,
                   "the space '%.*s' is being restored from checkpoint %.*s; try again when "
                   "that is done",
                   (int)intent->space.len, intent->space.data, (int)intent->checkpoint.len,
                   intent->checkpoint.data);
}

static int checkpoint_intent_draft(struct ng_call *call, struct ng_draft *next,
                                   const struct checkpoint_intent *intent)
{
    struct ng_str json = checkpoint_intent_json(call, intent);
    if (json.data == NULL) {
        return entry_no_memory(call);
    }
    return call->host->draft_json(next, json);
}

/* Writes the record if it belongs to this run, or if there is none and this run begins. */
static int checkpoint_intent_write(struct ng_call *call, const struct ng_doc *present,
                                   struct ng_draft *next, void *user)
{
    const struct checkpoint_intent *intent = user;
    struct checkpoint_intent there;
    bool is_there = present->revision > 0 && !present->deleted &&
                    checkpoint_intent_read(call, present->body, &there) == NG_OK;
    if (is_there ? !str_equal(there.token, intent->token) : intent->phase != CHECKPOINT_BEGUN) {
        return checkpoint_intent_busy(call, is_there ? &there : intent);
    }
    if (intent->phase == CHECKPOINT_FINISHED) {
        call->host->draft_delete(next);
        return NG_OK;
    }
    return checkpoint_intent_draft(call, next, intent);
}

static struct ng_change checkpoint_change(struct ng_call *call, struct ng_key key,
                                          ng_change_fn *fn,
                                          const struct checkpoint_intent *intent,
                                          int64_t lease_ms)
{
    struct ng_change change = {.size = sizeof(change), .key = key, .fn = fn};
    struct checkpoint_intent *copy = ng_alloc(call, sizeof(*copy));
    if (copy != NULL) {
        *copy = *intent;
        copy->lease_ms = lease_ms;
    }
    change.user = copy;
    return change;
}

struct ng_change checkpoint_intent_change(struct ng_call *call,
                                          const struct checkpoint_intent *intent)
{
    return checkpoint_change(call, checkpoint_intent_key(intent->space),
                             checkpoint_intent_write, intent, CHECKPOINT_LEASE_MS);
}

int checkpoint_intent_begin(struct ng_call *call, const struct checkpoint_intent *intent)
{
    struct ng_change change = checkpoint_intent_change(call, intent);
    if (change.user == NULL) {
        return entry_no_memory(call);
    }
    return call->host->change_wait(call, &change, 1);
}

int checkpoint_intent_needs(struct ng_call *call, struct ng_str space, struct ng_str id)
{
    struct ng_key key = checkpoint_intent_key(space);
    const struct ng_doc *doc = NULL;
    struct checkpoint_intent there;
    int rc = call->host->get(call, &key, 0, &doc);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && (doc->revision == 0 || doc->deleted))) {
        return NG_OK;
    }
    bool needs = rc == NG_OK && checkpoint_intent_read(call, doc->body, &there) == NG_OK &&
                 (str_equal(there.checkpoint, id) || str_equal(there.previous, id));
    if (!needs) {
        return rc;
    }
    return checkpoint_intent_busy(call, &there);
}

/* ---- those that are done ---- */

static int checkpoint_done_write(struct ng_call *call, const struct ng_doc *present,
                                 struct ng_draft *next, void *user)
{
    (void)present;
    return checkpoint_intent_draft(call, next, user);
}

static struct ng_key checkpoint_done_key(struct ng_str once)
{
    struct ng_key key = {ng_str_of(CHECKPOINT_RESTORES), ng_str_of(CHECKPOINT_RESTORES_DONE),
                         once};
    return key;
}

struct ng_change checkpoint_done_change(struct ng_call *call,
                                        const struct checkpoint_intent *intent)
{
    return checkpoint_change(call, checkpoint_done_key(intent->once), checkpoint_done_write,
                             intent, call->host->now_ms() + CHECKPOINT_ONCE_MS);
}

int checkpoint_done_find(struct ng_call *call, struct checkpoint_intent *ret, bool *ret_done)
{
    const struct ng_doc *doc = NULL;
    struct checkpoint_intent done;
    *ret_done = false;
    if (ret->once.data == NULL) {
        return NG_OK;
    }
    struct ng_key key = checkpoint_done_key(ret->once);
    int rc = call->host->get(call, &key, 0, &doc);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && (doc->revision == 0 || doc->deleted))) {
        return NG_OK;
    }
    if (rc == NG_OK && checkpoint_intent_read(call, doc->body, &done) == NG_OK &&
        done.lease_ms > call->host->now_ms()) {
        *ret = done;
        *ret_done = true;
    }
    return rc;
}

/* ---- those there are ---- */

struct intent_takeover {
    struct checkpoint_intent *intent;
    struct ng_str token_before;
};

static int checkpoint_intent_takeover(struct ng_call *call, const struct ng_doc *present,
                                      struct ng_draft *next, void *user)
{
    const struct intent_takeover *takeover = user;
    struct checkpoint_intent there;
    if (present->revision == 0 || present->deleted ||
        checkpoint_intent_read(call, present->body, &there) != NG_OK ||
        !str_equal(there.token, takeover->token_before)) {
        return checkpoint_intent_busy(call, takeover->intent);
    }
    there.owner = takeover->intent->owner;
    there.token = takeover->intent->token;
    there.lease_ms = CHECKPOINT_LEASE_MS;
    return checkpoint_intent_draft(call, next, &there);
}

int checkpoint_intent_take(struct ng_call *call, struct checkpoint_intent *intent,
                           struct ng_str token, struct ng_str owner)
{
    struct intent_takeover takeover = {.intent = intent, .token_before = intent->token};
    struct ng_change change = {
        .size = sizeof(change),
        .key = checkpoint_intent_key(intent->space),
        .fn = checkpoint_intent_takeover,
        .user = &takeover,
    };
    intent->token = token;
    intent->owner = owner;
    return call->host->change_wait(call, &change, 1);
}

struct intent_list {
    struct ng_call *call;
    struct checkpoint_intent *items;
    size_t count;
    int rc;
};

static int checkpoint_intent_row(void *user, const struct ng_doc *row)
{
    struct intent_list *list = user;
    struct ng_call *call = list->call;
    const struct ng_value *body = NULL;
    list->rc = entry_row_body(call, row, &body);
    if (list->rc == NG_OK &&
        checkpoint_intent_read(call, body, &list->items[list->count]) == NG_OK) {
        list->items[list->count++].revision = row->revision;
    }
    return list->rc != NG_OK;
}

int checkpoint_intent_list(struct ng_call *call, struct checkpoint_intent **ret,
                           size_t *ret_count)
{
    struct intent_list list = {.call = call};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CHECKPOINT_RESTORES),
        .space = ng_str_of(CHECKPOINT_RESTORES_SPACE),
        .limit = CHECKPOINT_INTENTS_MAX,
    };
    list.items = ng_alloc(call, CHECKPOINT_INTENTS_MAX * sizeof(*list.items));
    if (list.items == NULL) {
        return entry_no_memory(call);
    }
    int rc = call->host->query(call, &query, checkpoint_intent_row, &list, NULL);
    *ret = list.items;
    *ret_count = list.count;
    if (rc != NG_OK) {
        return rc;
    }
    return list.rc;
}
