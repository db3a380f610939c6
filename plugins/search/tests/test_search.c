/* SPDX-License-Identifier: MIT */
/* test_search.c - the tool over made-up kinds: order, pages, kinds that wait, fail or scan. */
#include "tests/support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/call/quota.h"
#include "core/module/registry.h"
#include "core/module/tool_compile.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PLACES 64

/* ---- made-up kinds ---- */

/* Behaviour of the kinds; a test sets it before its calls. */
struct made_up {
    int fruits;         /* hits of `fruit` */
    int exact;          /* which of them is titled as the query; -1: none */
    int beasts;         /* of `beast`, which waits first */
    int fails;          /* what `stone` returns */
    atomic_int waited;  /* runs of `beast` */
    atomic_int scanned; /* runs of `grain` */
    bool leaves;        /* the client, during `grain` */
    int64_t scan_until_ns;
    char space_text[64]; /* of the last run of `fruit` */
};

static int give(struct ng_find *find, const char *kind, int count, int exact)
{
    find->total = (uint64_t)count;
    for (int i = 0; i < count; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "%s %d", kind, i);
        const struct ng_hit hit = {
            .size = sizeof(hit),
            .id = ng_str_of(id),
            .title = i == exact ? ng_str_of("The Query") : ng_str_of(id),
            .excerpt = ng_str_of("a line"),
            .agent = ng_str_of("ada"),
            .updated_ms = 1000,
            .line = 7,
        };
        if (find->hit(find->user, &hit) != 0) {
            break;
        }
    }
    return NG_OK;
}

static int fruit_find(void *self, struct ng_call *call, struct ng_str space,
                      struct ng_find *find)
{
    struct made_up *made_up = self;
    (void)call;
    (void)snprintf(made_up->space_text, sizeof(made_up->space_text), "%.*s", (int)space.len,
                   space.data);
    return give(find, "fruit", made_up->fruits, made_up->exact);
}

static int beast_later(struct ng_call *call, void *user)
{
    (void)call;
    struct ng_deferred *deferred = user;
    ((struct call *)(void *)deferred)->pub.host->finish(deferred, NG_OK);
    return NG_OK;
}

static int beast_find(void *self, struct ng_call *call, struct ng_str space,
                      struct ng_find *find)
{
    struct made_up *made_up = self;
    (void)space;
    if (atomic_fetch_add(&made_up->waited, 1) == 0) {
        (void)give(find, "early", 3, -1); /* discarded */
        struct ng_deferred *deferred = call->host->defer(call);
        assert_int_equal(call->host->background(call, beast_later, deferred), NG_OK);
        return NG_PENDING;
    }
    return give(find, "beast", made_up->beasts, -1);
}

static int stone_find(void *self, struct ng_call *call, struct ng_str space,
                      struct ng_find *find)
{
    struct made_up *made_up = self;
    (void)space;
    (void)give(find, "stone", 1, -1);
    return made_up->fails == NG_OK
               ? NG_OK
               : call_fail(call_of(call), made_up->fails, "the stone is stuck");
}

static int grain_find(void *self, struct ng_call *call, struct ng_str space,
                      struct ng_find *find)
{
    struct made_up *made_up = self;
    (void)space;
    made_up->scan_until_ns = find->scan_until_ns;
    atomic_fetch_add(&made_up->scanned, 1);
    if (made_up->leaves) { /* the client, while this reads on */
        call_cancel(call_of(call));
        while (!call->host->cancelled(call)) {
        }
        return call_fail(call_of(call), NG_ECANCELLED, "cancelled while grains were counted");
    }
    return give(find, "grain", 1, -1);
}

static int made_up_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                        uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    return ng_reply(call, id);
}

static const struct ng_resources parallel_resources[] = {
    {.kind = "fruits", .read = made_up_read, .find = fruit_find, .find_kind = "fruit"},
    {.kind = "silent", .read = made_up_read},
    {.uri_template = "made-up://{number}", .read = made_up_read, .find = stone_find},
    {.kind = "grain", .read = made_up_read, .find = grain_find, .scans = true},
};

static const struct ng_resources serial_resources[] = {
    {.kind = "beast", .read = made_up_read, .find = beast_find},
};

static const struct ng_plugin parallel_plugin = {
    .name = "made_up",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .resources = parallel_resources,
    .resource_count = NG_COUNT(parallel_resources),
};

static const struct ng_plugin serial_plugin = {
    .name = "made_up_serial",
    .version = "1",
    .threads = NG_THREADS_SERIAL,
    .resources = serial_resources,
    .resource_count = NG_COUNT(serial_resources),
};

/* ---- the rig ---- */

struct rig {
    struct harness harness;
    struct made_up made_up;
};

static void add_plugin(struct rig *rig, const struct ng_plugin *desc)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(registry_add(rig->harness.gateway->registry, desc, NULL, &plugin, &error),
                     NG_OK);
    buf_done(&error);
    plugin->self = &rig->made_up;
    plugin->started = true;
}

static int setup(void **state)
{
    static const char *const sets[] = {"plugins=search", "documents=memory", NULL};
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    harness_open(&rig->harness, sets);
    rig->made_up.exact = -1;
    add_plugin(rig, &parallel_plugin);
    add_plugin(rig, &serial_plugin);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    harness_close(&rig->harness);
    free(rig);
    return 0;
}

/* The answer's hits as "id id ...", by the ends of their URIs. */
static void ids_of(const char *text, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (const char *at = strstr(text, "\"uri\":\""); at != NULL;
         at = strstr(at + 1, "\"uri\":\"")) {
        const char *end = strchr(at + 7, '"');
        const char *id = end;
        while (id[-1] != '/' && id[-1] != '"') {
            id--;
        }
        len += (size_t)snprintf(out + len, size - len, "%s%.*s", len > 0 ? " " : "",
                                (int)(end - id), id);
    }
}

static struct answer ask(struct rig *rig, const char *args)
{
    struct answer answer = harness_call(&rig->harness, "search", args);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", answer.code, answer.message);
    }
    return answer;
}

static void expect_ids(struct rig *rig, const char *args, const char *ids)
{
    char found[4096];
    struct answer answer = ask(rig, args);
    ids_of(answer.text, found, sizeof(found));
    assert_string_equal(found, ids);
    answer_free(&answer);
}

static void expect_part(struct rig *rig, const char *args, const char *part)
{
    struct answer answer = ask(rig, args);
    if (strstr(answer.text, part) == NULL) {
        fail_msg("%s is not in %s", part, answer.text);
    }
    answer_free(&answer);
}

/* ---- tests ---- */

static void test_ranks_are_fused(void **state)
{
    struct rig *rig = *state;
    rig->made_up.fruits = 3;
    rig->made_up.beasts = 2;
    expect_ids(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\",\"beast\"]}",
               "fruit%200 beast%200 fruit%201 beast%201 fruit%202");
    assert_int_equal(atomic_load(&rig->made_up.waited), 2); /* it waited, and ran again */
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\",\"beast\"]}",
                "\"total\":5,\"complete\":true");
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\"],\"limit\":1}",
                "{\"uri\":\"notegate://shared/fruits/fruit%200\",\"kind\":\"fruit\","
                "\"space\":\"shared\",\"title\":\"fruit 0\","
                "\"updated\":\"1970-01-01T00:00:01.000Z\",\"agent\":\"ada\",\"line\":7,"
                "\"excerpt\":\"a line\",\"score\":0.01639344262295082}");
}

static void test_exact_title_first(void **state)
{
    struct rig *rig = *state;
    rig->made_up.fruits = 20;
    rig->made_up.exact = 9;
    rig->made_up.beasts = 1;
    expect_ids(rig, "{\"query\":\"the QUERY\",\"kinds\":[\"beast\",\"fruit\"],\"limit\":3}",
               "fruit%209 fruit%200 beast%200");
    /* Further back it does not count, so that a longer page moves nothing. */
    rig->made_up.exact = 10;
    expect_ids(rig, "{\"query\":\"the query\",\"kinds\":[\"fruit\"],\"limit\":2}",
               "fruit%200 fruit%201");
}

/* All hits by pages of three, each once. */
static void test_pages(void **state)
{
    struct rig *rig = *state;
    char all[4096] = "";
    char cursor[128] = "";
    int pages = 0;
    rig->made_up.fruits = 8;
    rig->made_up.exact = 4;
    rig->made_up.beasts = 3;
    do {
        char args[512];
        char ids[1024];
        (void)snprintf(
            args, sizeof(args),
            "{\"query\":\"the query\",\"kinds\":[\"fruit\",\"beast\"],\"limit\":3%s}", cursor);
        struct answer answer = ask(rig, args);
        ids_of(answer.text, ids, sizeof(ids));
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", ids);
        const char *next = strstr(answer.text, "\"cursor\":\"");
        cursor[0] = '\0';
        if (next != NULL) {
            (void)snprintf(cursor, sizeof(cursor), ",%.*s",
                           (int)(strchr(next + 10, '"') + 1 - next), next);
        }
        answer_free(&answer);
        pages++;
    } while (cursor[0] != '\0' && pages < 9);
    assert_int_equal(pages, 4);
    assert_string_equal(all, "fruit%204 fruit%200 beast%200 fruit%201 beast%201 fruit%202 "
                             "beast%202 fruit%203 fruit%205 fruit%206 fruit%207 ");
}

static void test_foreign_cursors(void **state)
{
    struct rig *rig = *state;
    rig->made_up.fruits = 5;
    struct answer answer = ask(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\"],\"limit\":1}");
    const char *cursor = strstr(answer.text, "\"cursor\":");
    assert_non_null(cursor);
    char args[512];
    (void)snprintf(args, sizeof(args), "{\"query\":\"y\",\"kinds\":[\"fruit\"],%.*s}",
                   (int)(strrchr(cursor, '"') + 1 - cursor), cursor);
    const char *end = strstr(args, ",\"space\"");
    if (end != NULL) {
        args[end - args] = '}';
        args[end - args + 1] = '\0';
    }
    expect_error(&rig->harness, "search", args, "INVALID_INPUT",
                 "`cursor` is not of an answer to this query, `kinds` and space; leave it out "
                 "to start again");
    expect_error(&rig->harness, "search", "{\"query\":\"x\",\"cursor\":\"3\"}", "INVALID_INPUT",
                 "`cursor` is not of an answer to this query, `kinds` and space; leave it out "
                 "to start again");
    answer_free(&answer);
}

static void test_kind_that_fails(void **state)
{
    struct rig *rig = *state;
    rig->made_up.fruits = 1;
    expect_part(rig, "{\"query\":\"x\"}", "\"uri\":\"stone 0\"");
    rig->made_up.fails = NG_EUNAVAILABLE;
    expect_ids(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\",\"made-up://{number}\"]}",
               "fruit%200");
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\",\"made-up://{number}\"]}",
                "\"total\":1,\"complete\":false");
    expect_error(&rig->harness, "search",
                 "{\"query\":\"x\",\"kinds\":[\"made-up://{number}\"]}", "TOOL_FAILED",
                 "no kind could be searched; the log of the gateway says why");
}

static void test_kinds(void **state)
{
    struct rig *rig = *state;
    rig->made_up.fruits = 1;
    /* Known kinds without their plugin, and kinds that are not searched, have no hits. */
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"page\",\"silent\"]}",
                "{\"hits\":[],\"total\":0,\"complete\":true");
    expect_error(&rig->harness, "search", "{\"query\":\"x\",\"kinds\":[\"page\",\"pages\"]}",
                 "INVALID_INPUT", "`kinds`: there is no kind \"pages\"");
    struct answer answer =
        harness_call_as(&rig->harness, "ann", "team", "search",
                        "{\"query\":\"x\",\"kinds\":[\"fruit\"],\"limit\":1}");
    assert_non_null(strstr(answer.text, "notegate://team/fruits/"));
    assert_string_equal(rig->made_up.space_text, "team");
    answer_free(&answer);
}

static void test_scans(void **state)
{
    struct rig *rig = *state;
    struct quota *scans = rig->harness.gateway->scans;
    rig->made_up.fruits = 1;
    int64_t before = clock_monotonic_ns();
    expect_ids(rig, "{\"query\":\"x\",\"kinds\":[\"fruit\"]}", "fruit%200");
    assert_int_equal(atomic_load(&rig->made_up.scanned), 0);
    expect_ids(rig, "{\"query\":\"x\",\"kinds\":[\"grain\",\"fruit\"]}", "fruit%200 grain%200");
    assert_int_equal(atomic_load(&rig->made_up.scanned), 1);
    assert_true(rig->made_up.scan_until_ns > before);
    /* All places are taken by others; then they are free again. */
    for (int i = 0; i < PLACES; i++) {
        char agent[16];
        (void)snprintf(agent, sizeof(agent), "other%d", i);
        assert_int_equal(quota_acquire(scans, ng_str_of(agent), PLACES), NG_OK);
    }
    expect_ids(rig, "{\"query\":\"x\",\"kinds\":[\"grain\",\"fruit\"]}", "fruit%200");
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"grain\",\"fruit\"]}", "\"complete\":false");
    for (int i = 0; i < PLACES; i++) {
        char agent[16];
        (void)snprintf(agent, sizeof(agent), "other%d", i);
        quota_release(scans, ng_str_of(agent));
    }
    expect_part(rig, "{\"query\":\"x\",\"kinds\":[\"grain\",\"fruit\"]}", "\"complete\":true");
    char agent[64];
    size_t len = 0;
    assert_int_equal(quota_most(scans, agent, sizeof(agent), &len), 0);
}

/* A cancelled call ends with its scan, and gives its place back. */
static void test_cancel(void **state)
{
    struct rig *rig = *state;
    char agent[64];
    size_t len = 0;
    rig->made_up.leaves = true;
    expect_error(&rig->harness, "search", "{\"query\":\"x\",\"kinds\":[\"grain\"]}",
                 "CANCELLED", "cancelled while grains were counted");
    assert_int_equal(quota_most(rig->harness.gateway->scans, agent, sizeof(agent), &len), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_are_fused), TEST(test_exact_title_first),
        TEST(test_pages),           TEST(test_foreign_cursors),
        TEST(test_kind_that_fails), TEST(test_kinds),
        TEST(test_scans),           TEST(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
