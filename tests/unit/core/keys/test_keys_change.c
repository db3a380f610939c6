/* SPDX-License-Identifier: MIT */
/* test_keys_change.c - keys that change: their versions, their documents as gateways of earlier
 * versions read them, and changes that come from elsewhere. */
#include "test_keys_rig.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"
#include "core/keys/keys_table.h"
#include "core/store/store.h"

#define PAUSED_MS INT64_C(1800000000000)
#define THREADS 4
#define ROUNDS 50

static const char *const on_disk[] = {"plugins=notebook,file_editor", NULL};
static const struct ng_str globs[] = {{"note*", 5}, {"fileEditor", 10}};
static const struct ng_str named[] = {{"notebook", 8}, {"fileEditor", 10}};
static const struct ng_str excluded[] = {{"file*", 5}};
static const struct ng_str every[] = {{"*", 1}};

static struct key *add(struct harness *harness, const char *agent)
{
    char text[KEY_TEXT_MAX];
    struct key *key = NULL;
    struct key_spec spec = spec_of(agent);
    struct call *call = harness_new_call(harness);
    assert_int_equal(keys_add(harness->gateway->keys, call, &spec, text, &key), NG_OK);
    call_unref(call);
    return key;
}

static int change(struct harness *harness, const char *id, const struct key_patch *patch,
                  struct key **ret)
{
    struct call *call = harness_new_call(harness);
    int rc = keys_change(harness->gateway->keys, call, ng_str_of(id), patch, ret);
    call_unref(call);
    return rc;
}

static struct key *changed(struct harness *harness, const char *id,
                           const struct key_patch *patch)
{
    struct key *key = NULL;
    assert_int_equal(change(harness, id, patch, &key), NG_OK);
    return key;
}

/* ---- documents ---- */

static void expect_member(const struct ng_value *body, const char *name, const char *json)
{
    struct buf text;
    buf_init(&text, KEY_JSON_MAX);
    const struct ng_value *value = json_get(body, name);
    if (value != NULL) {
        assert_int_equal(json_print(&text, value), NG_OK);
    }
    assert_string_equal(buf_cstr(&text), json == NULL ? "" : json);
    buf_done(&text);
}

/* tools, allow_tools, no_tools and expires of the document. */
static void expect_document(const struct key_spec *spec, const char *const members[4])
{
    static const char *const names[] = {"tools", "allow_tools", "no_tools", "expires"};
    unsigned char hash[KEY_HASH_BYTES] = {0};
    struct arena arena;
    struct buf json;
    const struct ng_value *body = NULL;
    struct key *key = key_new("abcdefgh2345", spec, hash);
    struct key *again = NULL;
    arena_init(&arena, 0);
    buf_init(&json, KEY_JSON_MAX);
    assert_int_equal(key_write(key, &json), NG_OK);
    assert_int_equal(json_parse(&arena, buf_str(&json), 8, &body, NULL), NG_OK);
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        expect_member(body, names[i], members[i]);
    }
    struct ng_doc doc = {.size = sizeof(doc),
                         .key = keys_document(ng_str_of("abcdefgh2345")),
                         .revision = 7,
                         .json = buf_str(&json)};
    assert_int_equal(key_read(&doc, &again), NG_OK);
    assert_int_equal(key_differences(key, again), 0);
    assert_int_equal(again->revision, 7);
    key_unref(again);
    key_unref(key);
    buf_done(&json);
    arena_done(&arena);
}

/* An earlier version compares `tools` letter by letter, takes an empty list for all tools, and
 * ignores members that it does not know: it must not allow more than this one. */
static void test_documents_for_earlier_versions(void **state)
{
    struct key_spec spec = spec_of("ada");
    (void)state;
    expect_document(&spec, (const char *const[]){"[]", NULL, NULL, "0"});
    spec.tools = named;
    spec.tool_count = 2;
    expect_document(&spec,
                    (const char *const[]){"[\"notebook\",\"fileEditor\"]", NULL, NULL, "0"});
    spec.no_tools = excluded;
    spec.no_tool_count = 1;
    expect_document(&spec,
                    (const char *const[]){"[\"notebook\"]", "[\"notebook\",\"fileEditor\"]",
                                          "[\"file*\"]", "0"});
    spec.tools = globs;
    expect_document(&spec,
                    (const char *const[]){"[\"" KEY_NO_TOOL "\"]", "[\"note*\",\"fileEditor\"]",
                                          "[\"file*\"]", "0"});
    spec.no_tool_count = 0;
    expect_document(&spec, (const char *const[]){"[\"fileEditor\"]",
                                                 "[\"note*\",\"fileEditor\"]", "[]", "0"});
    spec.tool_count = 0;
    spec.no_tool_count = 1;
    expect_document(&spec,
                    (const char *const[]){"[\"" KEY_NO_TOOL "\"]", "[]", "[\"file*\"]", "0"});
    spec.no_tools = every;
    spec.tool_count = 1;
    expect_document(
        &spec, (const char *const[]){"[\"" KEY_NO_TOOL "\"]", "[\"note*\"]", "[\"*\"]", "0"});
    spec = spec_of("ada");
    spec.paused_ms = PAUSED_MS;
    spec.expires_ms = PAUSED_MS * 2;
    expect_document(&spec, (const char *const[]){"[]", NULL, NULL, "1800000000000"});
}

/* ---- versions ---- */

static void test_versions(void **state)
{
    struct harness harness;
    struct key_patch patch = {.members = KEY_NOTE, .spec.note = ng_str_of("why")};
    (void)state;
    harness_open(&harness, on_disk);
    struct keys *keys = harness.gateway->keys;
    struct key *first = add(&harness, "ada");
    struct key *second = changed(&harness, first->id, &patch);
    assert_ptr_not_equal(first, second);
    assert_true(str_is(second->note, "why") && first->note.data == NULL);
    assert_false(key_rights_changed(first)); /* a note is no right */
    patch = (struct key_patch){.members = KEY_MODE | KEY_RATE,
                               .spec = {.mode = NG_MODE_ASK, .rate = 5}};
    struct key *third = changed(&harness, first->id, &patch);
    assert_true(str_is(third->note, "why") && third->mode == NG_MODE_ASK);
    assert_true(key_rights_changed(first) && key_rights_changed(second));
    assert_false(key_rights_changed(third));
    struct key *same = changed(&harness, first->id, &patch);
    assert_ptr_equal(same, third); /* nothing differs */
    key_unref(same);
    assert_true(key_live(first) && key_live(third));
    patch = (struct key_patch){.members = KEY_PAUSED, .spec.paused_ms = PAUSED_MS};
    key_unref(changed(&harness, first->id, &patch));
    assert_false(key_live(first) || key_live(second) || key_live(third));
    assert_string_equal(key_why_ended(first), "is paused");
    assert_int_equal(keys_count(keys), 0);
    assert_int_equal(keys_active(keys), 1); /* it keeps the gateway closed */
    patch.spec.paused_ms = 0;
    key_unref(changed(&harness, first->id, &patch));
    assert_true(key_live(first));
    struct call *call = harness_new_call(&harness);
    struct key *gone = NULL;
    assert_int_equal(keys_revoke(keys, call, ng_str_of(first->id), NULL, &gone), NG_OK);
    call_unref(call);
    key_unref(gone);
    assert_true(key_is_revoked(first) && key_is_revoked(second) && key_is_revoked(third));
    struct key *none = NULL;
    assert_int_equal(change(&harness, first->id, &patch, &none), NG_ECONFLICT);
    assert_int_equal(change(&harness, "aaaaaaaaaaaa", &patch, &none), NG_ENOTFOUND);
    assert_int_equal(change(&harness, "a", &patch, &none), NG_ENOTFOUND);
    key_unref(first);
    key_unref(second);
    key_unref(third);
    harness_close(&harness);
}

/* The document of another version of notegate: its members stay. */
static int write_foreign(struct ng_call *pub, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    struct buf json;
    (void)pub;
    buf_init(&json, KEY_JSON_MAX);
    (void)buf_add(&json, present->json.data, present->json.len - 1);
    (void)buf_add_c(&json, user);
    int rc = store_draft_json(next, buf_str(&json));
    buf_done(&json);
    return rc;
}

static void write_members(struct harness *harness, const char *id, const char *members)
{
    struct ng_change write = {
        .size = sizeof(write),
        .key = keys_document(ng_str_of(id)),
        .fn = write_foreign,
        .user = (void *)(uintptr_t)members,
    };
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &write, 1), NG_OK);
    call_unref(call);
}

static void test_unknown_members_stay(void **state)
{
    struct harness harness;
    struct key_patch patch = {.members = KEY_ROLE, .spec.role = NG_ROLE_READER};
    (void)state;
    harness_open(&harness, on_disk);
    struct key *key = add(&harness, "ada");
    write_members(&harness, key->id, ",\"later\":[1,{\"a\":2}]}");
    key_unref(changed(&harness, key->id, &patch));
    struct call *call = harness_new_call(&harness);
    struct ng_key document = keys_document(ng_str_of(key->id));
    const struct ng_doc *doc = NULL;
    assert_int_equal(store_get(harness.gateway->store, call, &document, 0, &doc), NG_OK);
    expect_member(doc->body, "later", "[1,{\"a\":2}]");
    expect_member(doc->body, "role", "\"reader\"");
    call_unref(call);
    key_unref(key);
    harness_close(&harness);
}

/* A change whose call has ended by the time of its commit, or of another part of this process.
 */
static void test_a_change_from_elsewhere(void **state)
{
    struct harness harness;
    bool seen = false;
    (void)state;
    harness_open(&harness, on_disk);
    struct key *key = add(&harness, "ada");
    write_members(&harness, key->id, ",\"no_tools\":[\"file*\"]}");
    while (!seen) { /* the limit of the suite ends it */
        struct key *now = keys_get(harness.gateway->keys, ng_str_of(key->id));
        seen = now->no_tool_count == 1;
        key_unref(now);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(key_rights_changed(key));
    key_unref(key);
    harness_close(&harness);
}

/* ---- several at once ---- */

struct changer {
    struct harness *harness;
    const char *id;
    unsigned member;
    pthread_t thread;
};

/* Each thread changes a member of its own; nothing of the others is lost. */
static void *change_often(void *user)
{
    const struct changer *changer = user;
    for (int i = 0; i < ROUNDS; i++) {
        struct key_patch patch = {.members = changer->member,
                                  .spec = {.mode = i % 2 == 0 ? NG_MODE_ASK : NG_MODE_EDIT,
                                           .run = i % 2 == 0,
                                           .rate = i + 1,
                                           .expires_ms = PAUSED_MS + i}};
        struct key *key = changed(changer->harness, changer->id, &patch);
        const bool holds[THREADS] = {key->mode == patch.spec.mode, key->run == patch.spec.run,
                                     key->rate >= i + 1 && key->rate <= i + 1,
                                     key_expires_ms(key) == PAUSED_MS + i};
        for (size_t at = 0; at < THREADS; at++) {
            static const unsigned members[] = {KEY_MODE, KEY_RUN, KEY_RATE, KEY_EXPIRES};
            assert_true(changer->member != members[at] || holds[at]);
        }
        key_unref(key);
    }
    return NULL;
}

static void test_changes_at_once(void **state)
{
    struct harness harness;
    struct changer changers[THREADS];
    static const unsigned members[] = {KEY_MODE, KEY_RUN, KEY_RATE, KEY_EXPIRES};
    (void)state;
    harness_open(&harness, on_disk);
    struct key *key = add(&harness, "ada");
    for (size_t i = 0; i < THREADS; i++) {
        changers[i] =
            (struct changer){.harness = &harness, .id = key->id, .member = members[i]};
        assert_int_equal(pthread_create(&changers[i].thread, NULL, change_often, &changers[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(changers[i].thread, NULL), 0);
    }
    struct key *last = keys_get(harness.gateway->keys, ng_str_of(key->id));
    assert_true(last->mode == NG_MODE_EDIT && !last->run && last->rate >= ROUNDS);
    assert_int_equal(key_expires_ms(last), PAUSED_MS + ROUNDS - 1);
    key_unref(last);
    key_unref(key);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_for_earlier_versions),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unknown_members_stay),
        cmocka_unit_test(test_a_change_from_elsewhere),
        cmocka_unit_test(test_changes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
