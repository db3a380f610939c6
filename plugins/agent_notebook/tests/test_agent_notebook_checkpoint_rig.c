/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_checkpoint_rig.c - what test_agent_notebook_checkpoint*.c share; the
 * header says what it is for.
 */
#include "test_agent_notebook_checkpoint_rig.h"

#include <stdio.h>

#include "core/store/store.h"

struct ng_str copied(struct bench *bench, struct ng_str text)
{
    struct ng_str copy = arena_copy(&bench->arena, text);
    assert_non_null(copy.data);
    return copy;
}

const char *form(struct bench *bench, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    return copied(bench, ng_str_of(text)).data;
}

const char *page_new(struct bench *bench, const char *text)
{
    const struct ng_value *made = ask(
        bench, "notebook_create",
        form(bench, "{\"collection\":\"pages\",\"title\":\"Page\",\"content\":\"%s\"}", text));
    return copied(bench, json_get(made, "notebook_id")->text).data;
}

void page_set(struct bench *bench, const char *id, const char *text)
{
    (void)ask(bench, "notebook_update",
              form(bench,
                   "{\"collection\":\"pages\",\"notebook_id\":\"%s\",\"content\":\"%s\"}", id,
                   text));
}

void page_is(struct bench *bench, const char *id, const char *text, uint64_t version)
{
    struct call *call = harness_new_call(&bench->harness);
    struct ng_key key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of(id)};
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(bench->harness.gateway->store, call, &key, 0, &doc), NG_OK);
    assert_int_equal(doc->deleted, text == NULL);
    if (text != NULL && !str_is(doc->text, text)) {
        fail_msg("page %s is \"%.*s\", it should be \"%s\"", id, (int)doc->text.len,
                 doc->text.data, text);
    }
    assert_int_equal(doc->revision, version);
    call_unref(call);
}

const char *snapshot(struct bench *bench, const char *label)
{
    const struct ng_value *made =
        ask(bench, "checkpoint_snapshot", form(bench, "{\"label\":\"%s\"}", label));
    return copied(bench, json_get(made, "checkpoint_id")->text).data;
}

void remember(struct bench *bench, const char *text)
{
    (void)ask(bench, "memory_log", form(bench, "{\"content\":\"%s\"}", text));
}

int64_t memories(struct bench *bench)
{
    const struct ng_value *found =
        json_get(ask(bench, "memory_recall", "{\"query\":\"\",\"limit\":1000}"), "results");
    int64_t count = 0;
    for (const struct ng_value *item = found->first; item != NULL; item = item->next) {
        count += str_is(json_get(item, "type")->text, "memory");
    }
    return count;
}
