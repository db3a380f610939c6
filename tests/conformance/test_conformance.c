/* SPDX-License-Identifier: MIT */
/* test_conformance.c - the fixtures of the conformance suites through a whole gateway, without
 * MCP: every answer, what is sent while tools run, every round of questions, cancelling. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/call/listing.h"
#include "core/dispatch/dispatch.h"
#include "core/json/json.h"
#include "core/module/registry.h"

#define EVERY_KIND                                                                             \
    ((1U << NG_ASK_FORM) | (1U << NG_ASK_MODEL) | (1U << NG_ASK_ROOTS) | (1U << NG_ASK_URL))

static const char *const plain_sets[] = {"plugins=conformance", "documents=memory", NULL};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, plain_sets);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- one call, watched ---- */

struct watched {
    struct call *call;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    char seen[512]; /* progress, log messages and let_go, in order */
};

static void seen_add(struct watched *watched, const char *text)
{
    pthread_mutex_lock(&watched->lock);
    size_t len = strlen(watched->seen);
    (void)snprintf(watched->seen + len, sizeof(watched->seen) - len, "%s;", text);
    pthread_mutex_unlock(&watched->lock);
}

static void on_progress(struct call *call, double done, double total, struct ng_str message,
                        void *user)
{
    char text[64];
    (void)call;
    (void)message;
    (void)snprintf(text, sizeof(text), "%.0f/%.0f", done, total);
    seen_add(user, text);
}

static void on_log(struct call *call, enum ng_level level, const char *logger,
                   struct ng_str json, void *user)
{
    char text[128];
    (void)call;
    assert_int_equal(level, NG_LOG_INFO);
    (void)snprintf(text, sizeof(text), "%s %.*s", logger, (int)json.len, json.data);
    seen_add(user, text);
}

static void on_detach_client(struct call *call, int64_t retry_ms, void *user)
{
    (void)call;
    assert_true(retry_ms > 0);
    seen_add(user, "let go");
}

static void on_done(struct call *call, void *user)
{
    struct watched *watched = user;
    (void)call;
    pthread_mutex_lock(&watched->lock);
    watched->done = true;
    pthread_cond_signal(&watched->wake);
    pthread_mutex_unlock(&watched->lock);
}

static void watched_begin(struct harness *h, struct watched *watched, const char *tool,
                          const char *args)
{
    memset(watched, 0, sizeof(*watched));
    pthread_mutex_init(&watched->lock, NULL);
    pthread_cond_init(&watched->wake, NULL);
    struct call *call = call_new(h->gateway);
    assert_non_null(call);
    call->tool_name = ng_str_of(tool);
    call->args_text = ng_str_of(args);
    call->on_progress = on_progress;
    call->on_log = on_log;
    call->on_detach_client = on_detach_client;
    call->on_user = watched;
    call->done = on_done;
    call->done_user = watched;
    watched->call = call;
}

static void watched_wait(struct watched *watched)
{
    pthread_mutex_lock(&watched->lock);
    while (!watched->done) {
        pthread_cond_wait(&watched->wake, &watched->lock);
    }
    pthread_mutex_unlock(&watched->lock);
}

static const struct result *watched_run(struct watched *watched)
{
    if (dispatch(watched->call) == NG_PENDING) {
        watched_wait(watched);
    }
    return &watched->call->final;
}

static void watched_end(struct watched *watched)
{
    call_unref(watched->call);
    pthread_cond_destroy(&watched->wake);
    pthread_mutex_destroy(&watched->lock);
}

/* A round of a tool that asks. answers: JSON, or NULL in the first round. */
static const struct result *round_run(struct harness *h, struct watched *watched,
                                      const char *tool, const char *answers,
                                      struct ng_str state)
{
    struct json_error error;
    watched_begin(h, watched, tool, "{}");
    watched->call->client_asks = EVERY_KIND;
    watched->call->ask_state_in = state;
    if (answers != NULL) {
        assert_int_equal(json_parse(&watched->call->arena, ng_str_of(answers),
                                    JSON_DEPTH_DEFAULT, &watched->call->ask_answers, &error),
                         NG_OK);
    }
    return watched_run(watched);
}

/* The keys that were asked for, each with a blank behind it. */
static void expect_asked(const struct watched *watched, const char *keys)
{
    char text[256] = "";
    assert_int_equal(watched->call->final.rc, NG_EINPUT);
    for (const struct ask *ask = watched->call->asks; ask != NULL; ask = ask->next) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof(text) - len, "%.*s ", (int)ask->key.len,
                       ask->key.data);
    }
    assert_string_equal(text, keys);
}

static void expect_asks(struct harness *h, const char *tool, const char *keys)
{
    struct watched watched;
    struct ng_str none = {NULL, 0};
    (void)round_run(h, &watched, tool, NULL, none);
    expect_asked(&watched, keys);
    watched_end(&watched);
}

static void expect_answer(struct harness *h, const char *tool, const char *answers,
                          const char *state, const char *text)
{
    struct watched watched;
    const struct result *result = round_run(h, &watched, tool, answers, ng_str_of(state));
    if (result->rc != NG_OK) {
        fail_msg("%s: %.*s", tool, (int)result->message.len, result->message.data);
    }
    assert_true(str_is(result->text, text));
    watched_end(&watched);
}

static void expect_refusal(struct harness *h, const char *tool, const char *answers, int rc)
{
    struct watched watched;
    struct ng_str none = {NULL, 0};
    assert_int_equal(round_run(h, &watched, tool, answers, none)->rc, rc);
    watched_end(&watched);
}

/* ---- content ---- */

static void test_texts(void **state)
{
    struct harness *h = *state;
    expect_text(h, "test_simple_text", "{}", "This is a simple text response for testing.");
    expect_error(h, "test_error_handling", "{}", "TOOL_FAILED",
                 "This tool intentionally returns an error for testing");
    expect_text(h, "test_custom_header", "{\"region\":\"north\"}", "Region: north");
    expect_text(h, "greet", "{\"name\":\"World\"}", "Hello, World!");
    expect_text(h, "slow_compute", "{\"seconds\":0,\"label\":\"x\"}",
                "Computed x in 0 seconds");
    expect_text(h, "slow_compute", "{\"seconds\":0.05}", "Computed something in 0.05 seconds");
    expect_error(h, "protocol_error_job", "{}", "INTERNAL",
                 "This job ends with a fault of the server");
    expect_error(h, "failing_job", "{}", "TOOL_FAILED", "This job always fails");
}

static void test_schema_holds(void **state)
{
    struct harness *h = *state;
    expect_text(h, "json_schema_2020_12_tool", "{\"phone\":\"1\",\"contactMethod\":\"phone\"}",
                "Valid by its schema: {\"phone\":\"1\",\"contactMethod\":\"phone\"}");
    static const char *const wrong[] = {
        "{\"email\":\"a\",\"contactMethod\":\"phone\"}",
        "{\"contactMethod\":\"email\"}",
        "{\"email\":\"a\",\"more\":1}",
        "{\"email\":\"a\",\"address\":{\"city\":1}}",
    };
    for (size_t i = 0; i < NG_COUNT(wrong); i++) {
        struct answer answer = harness_call(h, "json_schema_2020_12_tool", wrong[i]);
        assert_int_equal(answer.rc, NG_EINVAL);
        answer_free(&answer);
    }
}

static const struct part *expect_part(const struct part *part, enum part_kind kind,
                                      const char *mime_type)
{
    assert_non_null(part);
    assert_int_equal(part->kind, kind);
    assert_true(str_is(part->mime_type, mime_type));
    assert_true(part->data.len > 0);
    return part->next;
}

static void test_parts(void **state)
{
    struct harness *h = *state;
    struct watched watched;
    watched_begin(h, &watched, "test_multiple_content_types", "{}");
    const struct result *result = watched_run(&watched);
    assert_true(str_is(result->text, "Multiple content types test:"));
    const struct part *part = expect_part(result->parts, PART_IMAGE, "image/png");
    assert_null(expect_part(part, PART_RESOURCE, "application/json"));
    watched_end(&watched);
    watched_begin(h, &watched, "test_audio_content", "{}");
    assert_null(expect_part(watched_run(&watched)->parts, PART_AUDIO, "audio/wav"));
    watched_end(&watched);
    watched_begin(h, &watched, "test_image_content", "{}");
    assert_null(expect_part(watched_run(&watched)->parts, PART_IMAGE, "image/png"));
    watched_end(&watched);
    watched_begin(h, &watched, "test_embedded_resource", "{}");
    assert_null(expect_part(watched_run(&watched)->parts, PART_RESOURCE, "text/plain"));
    watched_end(&watched);
}

/* ---- while a tool runs ---- */

static void expect_seen(struct harness *h, const char *tool, const char *seen, const char *text)
{
    struct watched watched;
    watched_begin(h, &watched, tool, "{}");
    assert_true(str_is(watched_run(&watched)->text, text));
    assert_string_equal(watched.seen, seen);
    watched_end(&watched);
}

static void test_notifications(void **state)
{
    struct harness *h = *state;
    expect_seen(h, "test_tool_with_logging",
                "conformance \"Tool execution started\";conformance \"Tool processing data\";"
                "conformance \"Tool execution completed\";",
                "Three log messages were sent");
    expect_seen(h, "test_tool_with_progress", "0/100;50/100;100/100;",
                "Progress went from 0 to 100");
    expect_seen(h, "test_logging_tool", "conformance \"A message at level info\";",
                "One log message was offered");
    expect_seen(h, "test_reconnection", "let go;",
                "The answer came after the stream had been closed");
}

/* More calls wait than there are workers, and all end when they are cancelled. */
static void test_cancel(void **state)
{
    enum { CALLS = 100 };
    struct harness *h = *state;
    struct watched *all = calloc(CALLS, sizeof(*all));
    assert_non_null(all);
    for (size_t i = 0; i < CALLS; i++) {
        watched_begin(h, &all[i], "slow_compute", "{\"seconds\":3600}");
        assert_int_equal(dispatch(all[i].call), NG_PENDING);
    }
    expect_text(h, "test_simple_text", "{}", "This is a simple text response for testing.");
    for (size_t i = 0; i < CALLS; i++) {
        call_cancel(all[i].call);
    }
    for (size_t i = 0; i < CALLS; i++) {
        watched_wait(&all[i]);
        assert_int_equal(all[i].call->final.rc, NG_ECANCELLED);
        watched_end(&all[i]);
    }
    free(all);
}

static void on_lists_changed(struct gateway *gateway, unsigned lists, void *user)
{
    (void)gateway;
    *(unsigned *)user |= lists;
}

static void test_list_changes(void **state)
{
    struct harness *h = *state;
    unsigned lists = 0;
    h->gateway->lists_user = &lists;
    h->gateway->lists_changed = on_lists_changed;
    struct answer answer = harness_call(h, "test_trigger_tool_change", "{}");
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(lists, NG_LIST_TOOLS);
    answer_free(&answer);
    answer = harness_call(h, "test_trigger_prompt_change", "{}");
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(lists, NG_LIST_TOOLS | NG_LIST_PROMPTS);
    answer_free(&answer);
    h->gateway->lists_changed = NULL;
}

/* ---- questions ---- */

static void test_questions(void **state)
{
    struct harness *h = *state;
    expect_asks(h, "test_input_required_result_elicitation", "user_name ");
    expect_asks(h, "test_input_required_result_sampling", "capital_question ");
    expect_asks(h, "test_input_required_result_list_roots", "client_roots ");
    expect_asks(h, "test_input_required_result_multiple_inputs",
                "user_name greeting client_roots ");
    expect_asks(h, "multi_input", "name confirm ");
    expect_asks(h, "test_tool_with_task", "user_name ");
    expect_asks(h, "test_elicitation_sep1034_defaults", "form ");
    expect_asks(h, "test_elicitation_sep1330_enums", "form ");
    expect_asks(h, "test_missing_capability", "model ");
}

static void test_answers(void **state)
{
    struct harness *h = *state;
    expect_answer(h, "test_input_required_result_elicitation",
                  "{\"user_name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}}",
                  NULL, "Hello, Ann!");
    expect_answer(h, "test_input_required_result_sampling",
                  "{\"capital_question\":{\"role\":\"assistant\",\"content\":{\"type\":"
                  "\"text\",\"text\":\"Paris\"}}}",
                  NULL, "LLM response: Paris");
    expect_answer(h, "test_input_required_result_sampling",
                  "{\"capital_question\":{\"content\":[{\"type\":\"text\",\"text\":\"P\"}]}}",
                  NULL, "LLM response: P");
    expect_answer(h, "test_input_required_result_list_roots",
                  "{\"client_roots\":{\"roots\":[{\"uri\":\"file:///a\"}]}}", NULL,
                  "The client has 1 roots: [{\"uri\":\"file:///a\"}]");
    expect_answer(h, "test_elicitation_sep1034_defaults", "{\"form\":{\"action\":\"decline\"}}",
                  NULL, "Elicitation completed: action=decline, content={}");
    expect_answer(h, "multi_input",
                  "{\"name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}},"
                  "\"confirm\":{\"action\":\"accept\",\"content\":{\"confirm\":true}}}",
                  NULL, "Both answers came, from Ann");
    expect_answer(h, "test_tool_with_task",
                  "{\"user_name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}}",
                  NULL, "The task was done for Ann");
}

static void test_wrong_answers(void **state)
{
    struct harness *h = *state;
    /* A text that does not have the form of an answer does not reach the tool: it asks again.
     */
    expect_refusal(h, "test_input_required_result_elicitation", "{\"user_name\":12345}",
                   NG_EINPUT);
    expect_refusal(h, "test_input_required_result_elicitation",
                   "{\"user_name\":{\"action\":\"cancel\"}}", NG_EFAILED);
    expect_refusal(h, "test_input_required_result_list_roots", "{\"client_roots\":{}}",
                   NG_EINPUT);
    expect_refusal(h, "test_input_required_result_elicitation", "{\"other\":{}}", NG_EINPUT);
    expect_refusal(h, "multi_input", "{\"name\":1}", NG_EINPUT);
    expect_refusal(h, "test_input_required_result_request_state",
                   "{\"confirm\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}",
                   NG_EINVAL);
}

static void test_state_between_rounds(void **state)
{
    struct harness *h = *state;
    struct watched first;
    struct watched second;
    struct ng_str none = {NULL, 0};
    (void)round_run(h, &first, "test_input_required_result_multi_round", NULL, none);
    expect_asked(&first, "step1 ");
    (void)round_run(h, &second, "test_input_required_result_multi_round",
                    "{\"step1\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}}",
                    first.call->ask_state_out);
    expect_asked(&second, "step2 ");
    assert_false(str_equal(first.call->ask_state_out, second.call->ask_state_out));
    watched_end(&first);
    const struct result *result =
        round_run(h, &first, "test_input_required_result_multi_round",
                  "{\"step2\":{\"action\":\"accept\",\"content\":{\"color\":\"blue\"}}}",
                  second.call->ask_state_out);
    assert_true(str_is(result->text, "Ann likes blue"));
    watched_end(&first);
    watched_end(&second);
    expect_answer(h, "test_input_required_result_request_state",
                  "{\"confirm\":{\"action\":\"accept\",\"content\":{\"ok\":true}}}", "round-1",
                  "state-ok: the state came back as it was sent");
}

static void test_capabilities(void **state)
{
    struct harness *h = *state;
    struct watched watched;
    watched_begin(h, &watched, "test_input_required_result_capabilities", "{}");
    watched.call->client_asks = 1U << NG_ASK_MODEL;
    (void)watched_run(&watched);
    expect_asked(&watched, "greeting ");
    watched_end(&watched);
    expect_text(h, "test_input_required_result_capabilities", "{}",
                "0 questions were asked and answered");
    watched_begin(h, &watched, "test_missing_capability", "{}");
    watched.call->client_asks = 1U << NG_ASK_FORM;
    assert_int_equal(watched_run(&watched)->rc, NG_EFAILED);
    watched_end(&watched);
}

/* ---- resources and prompts, by their functions ---- */

static const struct ng_plugin *the_plugin(struct harness *h, void **ret_self)
{
    struct plugin *const *plugins = NULL;
    assert_int_equal(registry_plugins(h->gateway->registry, &plugins), 1);
    *ret_self = plugins[0]->self;
    return &plugins[0]->desc;
}

/* Of the plugin's resources with this template. */
static void expect_resource(struct harness *h, const char *uri_template, const char *uri,
                            int rc, const char *text)
{
    void *self = NULL;
    const struct ng_plugin *plugin = the_plugin(h, &self);
    const struct ng_resources *resources = NULL;
    for (size_t i = 0; i < plugin->resource_count; i++) {
        if (strcmp(plugin->resources[i].uri_template, uri_template) == 0) {
            resources = &plugin->resources[i];
        }
    }
    assert_non_null(resources);
    struct call *call = harness_new_call(h);
    call->may_block = true;
    assert_int_equal(resources->read(self, &call->pub, ng_str_of("shared"), ng_str_of(uri), 0),
                     rc);
    if (rc == NG_OK && call->staged.parts != NULL) {
        assert_true(str_is(call->staged.parts->uri, uri));
        assert_true(text == NULL || str_is(call->staged.parts->data, text));
    } else if (rc == NG_OK) {
        assert_true(str_is(call->staged.text, text));
    }
    call_unref(call);
}

static void test_resources(void **state)
{
    struct harness *h = *state;
    expect_resource(h, "test://static-text", "test://static-text", NG_OK,
                    "This is the content of the static text resource.");
    expect_resource(h, "test://static-text", "test://other", NG_ENOTFOUND, NULL);
    expect_resource(h, "test://static-binary", "test://static-binary", NG_OK, NULL);
    expect_resource(h, "test://template/{id}/data", "test://template/123/data", NG_OK,
                    "{\"id\":\"123\",\"templateTest\":true,\"data\":\"Data for ID: 123\"}");
    expect_resource(h, "test://template/{id}/data", "test://template//data", NG_ENOTFOUND,
                    NULL);
    expect_resource(h, "test://watched-resource", "test://watched-resource", NG_OK,
                    "This resource has not been changed yet.");
    struct answer answer = harness_call_as(h, "ann", "shared", "test_update_watched_resource",
                                           "{\"text\":\"new\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    expect_resource(h, "test://watched-resource", "test://watched-resource", NG_OK, "new");
}

struct words {
    struct ng_listing listing; /* first */
    char text[128];
};

static int words_add(struct ng_listing *listing, const struct listing_item *item)
{
    struct words *words = (struct words *)(void *)listing;
    size_t len = strlen(words->text);
    (void)snprintf(words->text + len, sizeof(words->text) - len, "%.*s ", (int)item->id.len,
                   item->id.data);
    return NG_OK;
}

static void test_lists(void **state)
{
    struct harness *h = *state;
    void *self = NULL;
    const struct ng_plugin *plugin = the_plugin(h, &self);
    struct words words = {.listing = {.add = words_add}};
    struct call *call = harness_new_call(h);
    for (size_t i = 0; i < plugin->resource_count; i++) {
        if (plugin->resources[i].list != NULL) {
            assert_int_equal(plugin->resources[i].list(self, &call->pub, ng_str_of("shared"),
                                                       &words.listing),
                             NG_OK);
        }
    }
    assert_string_equal(words.text,
                        "test://static-text test://static-binary test://watched-resource ");
    words.text[0] = '\0';
    const struct ng_prompt *prompt = &plugin->prompts[1];
    assert_string_equal(prompt->name, "test_prompt_with_arguments");
    assert_int_equal(
        prompt->complete(self, &call->pub, "arg1", ng_str_of("par"), &words.listing), NG_OK);
    assert_int_equal(prompt->complete(self, &call->pub, "arg2", ng_str_of(""), &words.listing),
                     NG_OK);
    assert_string_equal(words.text, "paris park party ");
    call_unref(call);
}

static void test_prompt_messages(void **state)
{
    static const char *const wanted[] = {"simple prompt", "arg1=", "\"resource\"",
                                         "\"image/png\""};
    struct harness *h = *state;
    void *self = NULL;
    const struct ng_plugin *plugin = the_plugin(h, &self);
    for (size_t i = 0; i < NG_COUNT(wanted); i++) {
        struct call *call = harness_new_call(h);
        assert_int_equal(plugin->prompts[i].get(self, &call->pub, ng_str_of("{}")), NG_OK);
        call_complete_result(call);
        assert_int_equal(call->staged.rc, NG_OK);
        assert_non_null(memmem(call->staged.text.data, call->staged.text.len, wanted[i],
                               strlen(wanted[i])));
        call_unref(call);
    }
    struct call *call = harness_new_call(h);
    assert_int_equal(plugin->prompts[4].get(self, &call->pub, ng_str_of("{}")), NG_EINPUT);
    call_unref(call);
}

/* ---- loading ---- */

static void test_only_where_named(void **state)
{
    static const char *const none_named[] = {"documents=memory", NULL};
    static const char *const added[] = {"plugins=+conformance", "documents=memory", NULL};
    struct harness harness;
    (void)state;
    harness_open(&harness, none_named);
    assert_null(registry_find(harness.gateway->registry, ng_str_of("test_simple_text")));
    assert_non_null(registry_find(harness.gateway->registry, ng_str_of("notebook")));
    harness_close(&harness);
    harness_open(&harness, added);
    assert_non_null(registry_find(harness.gateway->registry, ng_str_of("test_simple_text")));
    assert_non_null(registry_find(harness.gateway->registry, ng_str_of("notebook")));
    harness_close(&harness);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_texts),
        TEST(test_schema_holds),
        TEST(test_parts),
        TEST(test_notifications),
        TEST(test_cancel),
        TEST(test_list_changes),
        TEST(test_questions),
        TEST(test_answers),
        TEST(test_wrong_answers),
        TEST(test_state_between_rounds),
        TEST(test_capabilities),
        TEST(test_resources),
        TEST(test_lists),
        TEST(test_prompt_messages),
        cmocka_unit_test(test_only_where_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
