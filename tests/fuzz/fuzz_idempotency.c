/* SPDX-License-Identifier: MIT */
/*
 * fuzz_idempotency.c - a stored answer of an idempotency key: it is refused as damaged, or
 * becomes an answer that is stored as the same again. And a key, up to the first NUL of the
 * input: the same call with it waits for the first one, one that differs in anything does not.
 */
#include <stdlib.h>
#include <string.h>

#include "core/store/idempotency.c"
#include "test_gateway.h"

#define INPUT_BYTES_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct call *begin(struct gateway *gateway, struct ng_str key, struct ng_str args)
{
    struct json_error error;
    struct call *call = call_new(gateway);
    must(call != NULL);
    (void)call_set_caller(call, ng_str_of("fuzz"), ng_str_of("shared"), NG_ROLE_ADMIN,
                          NG_MODE_AGENT, true);
    call->pub.tool = ng_str_of("t_echo");
    call->idempotency_key = key;
    must(json_parse(&call->arena, args, JSON_DEPTH_DEFAULT, &call->pub.args, &error) == NG_OK);
    return call;
}

/* ---- keys ---- */

/* Holds the key as idempotency_begin() does, without the look into a store. */
static enum idempotency_state hold(struct call *call)
{
    struct idempotency_table *table = call->gateway->idempotency;
    struct idempotency_claim *claim = arena_zalloc(&call->arena, sizeof(*claim));
    must(claim != NULL);
    claim->scope = idempotency_scope(call);
    claim->hash = idempotency_hash(call);
    must(claim->scope.data != NULL && claim->hash.len == (size_t)2 * IDEMPOTENCY_HASH_BYTES);
    claim->next = *idempotency_bucket(table, claim->scope);
    *idempotency_bucket(table, claim->scope) = claim;
    call->idempotency = claim;
    return IDEMPOTENCY_RUN;
}

static void try_key(struct gateway *gateway, struct ng_str key)
{
    struct ng_str args = ng_str_of("{\"text\":\"a\",\"more\":[1,2]}");
    struct call *first = begin(gateway, key, args);
    struct call *same = begin(gateway, key, ng_str_of("{\"text\":\"a\", \"more\":[1,2]}"));
    struct call *other = begin(gateway, key, ng_str_of("{\"text\":\"b\"}"));
    struct call *elsewhere = begin(gateway, key, args);
    must(hold(first) == IDEMPOTENCY_RUN);
    struct idempotency_claim held = *first->idempotency;
    must(idempotency_begin(same) == IDEMPOTENCY_WAIT);
    must(idempotency_begin(other) == IDEMPOTENCY_FAILED && other->staged.rc == NG_EKEYREUSED);
    elsewhere->pub.tool = ng_str_of("t_parts");
    must(!str_equal(idempotency_scope(elsewhere), held.scope));
    elsewhere->pub.tool = first->pub.tool;
    elsewhere->caller.space = ng_str_of("~fuzz");
    must(!str_equal(idempotency_scope(elsewhere), held.scope));
    struct ng_str once = idempotency_token(first);
    must(once.len == (size_t)2 * IDEMPOTENCY_HASH_BYTES);
    first->idempotency->waiting_count = 0; /* no thread runs it here */
    idempotency_end(first);
    must(first->idempotency == NULL &&
         *idempotency_bucket(gateway->idempotency, held.scope) == NULL);
    call_unref(first);
    call_unref(same);
    call_unref(other);
    call_unref(elsewhere);
}

/* ---- answers ---- */

static struct ng_str stored(struct call *call)
{
    struct ng_answer answer;
    struct idempotency_claim claim = {.scope = ng_str_of("scope"), .hash = ng_str_of("hash")};
    call->idempotency = &claim;
    int rc = idempotency_answer(call, &answer);
    call->idempotency = NULL;
    return rc == NG_OK ? answer.reply : str_make(NULL, 0);
}

static void look_at_parts(const struct call *call)
{
    for (const struct part *part = call->staged.parts; part != NULL; part = part->next) {
        must(part->kind >= PART_TEXT && part->kind <= PART_LINK);
        must(part->data.len == 0 || part->data.data != NULL);
    }
}

static void try_answer(struct gateway *gateway, struct ng_str reply)
{
    struct call *call = begin(gateway, ng_str_of("k"), ng_str_of("{}"));
    struct call *again = begin(gateway, ng_str_of("k"), ng_str_of("{}"));
    int rc = idempotency_read_reply(call, reply);
    if (rc != NG_OK) {
        must(call->staged.message.len > 0);
    } else {
        look_at_parts(call);
        struct ng_str once = stored(call);
        must(once.data != NULL);
        must(idempotency_read_reply(again, once) == NG_OK);
        must(str_equal(stored(again), once));
    }
    call_unref(call);
    call_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gateway *gateway;
    if (gateway == NULL) {
        gateway = test_gateway_open(NULL);
        must(gateway != NULL);
        gateway->idempotency = idempotency_new();
        must(gateway->idempotency != NULL);
    }
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    const uint8_t *end = memchr(data, '\0', size);
    try_key(gateway, str_make((const char *)data, end == NULL ? size : (size_t)(end - data)));
    try_answer(gateway, str_make((const char *)data, size));
    return 0;
}
