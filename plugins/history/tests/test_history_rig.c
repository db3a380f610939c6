/* SPDX-License-Identifier: MIT */
/* test_history_rig.c - shared code of test_history*.c; see the header. */
#include "test_history_rig.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/rfc3339.h"
#include "core/call/plugin.h"
#include "core/json/json.h"
#include "core/module/registry.h"
#include "core/store/store.h"
#include "test_clock.h"

#define PLACES 32

struct harness harness;
char root[ROOT_SIZE], team_root[ROOT_SIZE];

/* Of the plugin. */
extern const struct ng_module ng_module;

static int setup_with(const char *documents, const char *answer)
{
    const char *const sets[] = {"plugins=notebook,agent_notebook,history", documents, answer,
                                NULL};
    harness_open(&harness, sets);
    return 0;
}

int setup(void **state)
{
    (void)state;
    return setup_with("documents=memory", "tools.max_answer=64MiB");
}

int setup_small(void **state)
{
    (void)state;
    return setup_with("documents=memory", "tools.max_answer=4KiB");
}

int setup_sqlite(void **state)
{
    (void)state;
    return setup_with("documents=sqlite", "tools.max_answer=64KiB");
}

/* The module has an allocator of its own, which alloc_fail_after() does not reach: so the
 * plugin is the one that the program is linked with. */
void link_history(void)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(
        registry_add(harness.gateway->registry, ng_module.desc, NULL, &plugin, &error), NG_OK);
    buf_done(&error);
    plugin->started = true;
}

int setup_linked(void **state)
{
    static const char *const sets[] = {"plugins=notebook,agent_notebook", "documents=memory",
                                       NULL};
    (void)state;
    harness_open(&harness, sets);
    link_history();
    return 0;
}

int teardown(void **state)
{
    (void)state;
    harness_close(&harness);
    return 0;
}

/* ---- roots ---- */

static void make_root(char *path)
{
    (void)snprintf(path, ROOT_SIZE, "%s/notegate-root-XXXXXX", harness_tmp());
    assert_non_null(mkdtemp(path));
    char *real = realpath(path, NULL);
    assert_non_null(real);
    (void)snprintf(path, ROOT_SIZE, "%s", real);
    free(real);
}

static void open_with(const char *plugins)
{
    static char roots[3 * ROOT_SIZE];
    const char *const sets[] = {plugins, "documents=memory", "tools.max_answer=64MiB", roots,
                                NULL};
    make_root(root);
    make_root(team_root);
    (void)snprintf(roots, sizeof(roots), "roots=%s,team:%s", root, team_root);
    harness_open(&harness, sets);
}

int setup_roots(void **state)
{
    (void)state;
    open_with("plugins=notebook,file_editor,history");
    return 0;
}

/* As setup_linked(). */
int setup_linked_roots(void **state)
{
    (void)state;
    open_with("plugins=notebook,file_editor");
    link_history();
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

int teardown_roots(void **state)
{
    int rc = teardown(state);
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)nftw(team_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

/* ---- changes ---- */

static const char * or (const char *text, const char *fallback)
{
    return text != NULL ? text : fallback;
}

static struct ng_key key_of(const struct put *put)
{
    return (struct ng_key){ng_str_of(or (put->collection, "notebooks")),
                           ng_str_of(or (put->space, "shared")), ng_str_of(or (put->id, "n"))};
}

static int put_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct put *put = user;
    (void)present;
    if (put->event != NULL) {
        call->host->draft_event(next, ng_str_of(put->event));
    }
    if (put->deletes) {
        call->host->draft_delete(next);
        return NG_OK;
    }
    struct ng_str text = put->bytes.data != NULL ? put->bytes : ng_str_of(or (put->text, ""));
    int rc = call->host->draft_json(next, ng_str_of(or (put->json, "{}")));
    return rc == NG_OK ? call->host->draft_text(next, &text, 1) : rc;
}

void put(const struct put *put)
{
    struct put copy = *put;
    struct call *call = harness_new_call(&harness);
    const struct ng_change change = {.size = sizeof(change),
                                     .key = key_of(put),
                                     .fn = put_fn,
                                     .user = &copy,
                                     .action = put->action};
    call->may_block = true;
    call->caller.agent = ng_str_of(or (put->agent, "ada"));
    call->pub.tool = ng_str_of(or (put->tool, "import"));
    call_set_run(call, ng_str_of(put->run));
    assert_int_equal(store_write_wait(harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
}

void put_text(const char *text)
{
    put(&(struct put){.text = text});
}

void thin(void)
{
    struct call *call = harness_new_call(&harness);
    call->may_block = true;
    store_set_keep(harness.gateway->store, TEST_CLOCK_DAY_MS); /* due now */
    assert_int_equal(store_maintain(harness.gateway->store, call), NG_OK);
    call_unref(call);
}

struct stored {
    uint64_t seq;
    char time[RFC3339_SIZE];
    char made[512];
};

static int take_stored(void *user, const struct ng_doc *row)
{
    struct stored *stored = user;
    const struct ng_str run = row->origin.run_id;
    stored->seq = row->seq;
    rfc3339_write(row->updated_ms, RFC3339_MS, stored->time);
    (void)snprintf(stored->made, sizeof(stored->made),
                   "\"seq\":%" PRIu64 ",\"time\":\"%s\",\"agent\":\"%.*s\",%s%.*s%s"
                   "\"tool\":\"%.*s\"",
                   row->seq, stored->time, (int)row->author.len, row->author.data,
                   run.len > 0 ? "\"run\":\"" : "", (int)run.len, run.len > 0 ? run.data : "",
                   run.len > 0 ? "\"," : "", (int)row->tool.len, row->tool.data);
    return 1;
}

static const struct stored *stored_of(const struct put *put, uint64_t revision)
{
    static struct stored places[PLACES];
    static unsigned next;
    struct stored *stored = &places[next++ % PLACES];
    struct call *call = harness_new_call(&harness);
    struct ng_key key = key_of(put);
    const struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1};
    call->may_block = true;
    *stored = (struct stored){0};
    assert_int_equal(
        store_history(harness.gateway->store, call, &key, &range, take_stored, stored), NG_OK);
    assert_true(stored->seq > 0);
    call_unref(call);
    return stored;
}

const char *made(const struct put *put, uint64_t revision)
{
    return stored_of(put, revision)->made;
}

uint64_t seq_of(const struct put *put, uint64_t revision)
{
    return stored_of(put, revision)->seq;
}

const char *time_of(const struct put *put, uint64_t revision)
{
    return stored_of(put, revision)->time;
}

/* ---- calls ---- */

static const char *kept_text(struct ng_str text)
{
    static char *places[PLACES];
    static unsigned next;
    char **place = &places[next++ % PLACES];
    free(*place);
    *place = malloc(text.len + 1);
    assert_non_null(*place);
    memcpy(*place, text.data, text.len);
    (*place)[text.len] = '\0';
    return *place;
}

const char *at(const char *json, const char *path)
{
    struct arena arena;
    struct json_error error;
    struct buf buf;
    const struct ng_value *value = NULL;
    arena_init(&arena, (size_t)256 * 1024 * 1024);
    assert_int_equal(json_parse(&arena, ng_str_of(json), 64, &value, &error), NG_OK);
    while (*path != '\0' && value != NULL) {
        size_t len = strcspn(path, ".");
        if (value->type == NG_TYPE_ARRAY) {
            size_t index = strtoul(path, NULL, 10);
            for (value = value->first; value != NULL && index > 0; index--) {
                value = value->next;
            }
        } else if (value->type == NG_TYPE_OBJECT) {
            value = json_get_str(value, str_make(path, len));
        } else {
            value = NULL;
        }
        path += len + (path[len] == '.');
    }
    buf_init(&buf, (size_t)64 * 1024 * 1024);
    if (value == NULL) {
        buf_add_c(&buf, "none");
    } else if (value->type == NG_TYPE_STRING) {
        buf_add_str(&buf, value->text);
    } else {
        assert_int_equal(json_print(&buf, value), NG_OK);
    }
    const char *text = kept_text(str_make(buf_cstr(&buf), buf.len));
    buf_done(&buf);
    arena_done(&arena);
    return text;
}

int64_t int_at(const char *json, const char *path)
{
    const char *text = at(json, path);
    assert_string_not_equal(text, "none");
    return strtoll(text, NULL, 10);
}

const char *args(const char *format, ...)
{
    static char places[PLACES][1 << 13];
    static unsigned next;
    char *place = places[next++ % PLACES];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(place, sizeof(places[0]), format, list);
    va_end(list);
    assert_true(len >= 0 && (size_t)len < sizeof(places[0]));
    for (char *quote = place; (quote = strchr(quote, '\'')) != NULL;) {
        *quote = '"';
    }
    return place;
}

struct answer go(const char *tool, const char *arguments)
{
    struct answer answer = harness_call(&harness, tool, arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s %s: %s %s", tool, arguments, answer.code, answer.message);
    }
    assert_true(answer.is_json);
    assert_true(answer.text_len <= harness.gateway->limits.answer);
    return answer;
}

void expect(const char *tool, const char *arguments, const char *text)
{
    struct answer answer = go(tool, arguments);
    assert_string_equal(answer.text, text);
    answer_free(&answer);
}

void expect_failure(const char *tool, const char *arguments, const char *code, int status,
                    const char *message, const char *details)
{
    struct answer answer = harness_call(&harness, tool, arguments);
    if (answer.rc == NG_OK) {
        fail_msg("%s %s succeeded: %s", tool, arguments, answer.text);
    }
    assert_string_equal(answer.message, message);
    assert_string_equal(answer.code, code);
    assert_int_equal(answer.status, status);
    assert_string_equal(answer.details, or (details, ""));
    answer_free(&answer);
}

void expect_all_or_no_memory(const char *tool, const char *arguments)
{
    struct answer whole = go(tool, arguments);
    long fails = 0;
    for (bool failed = true; failed; fails++) {
        struct call *call = harness_new_call(&harness); /* may take one that was used before */
        alloc_fail_after(fails);
        struct answer answer = harness_run(call, tool, arguments);
        failed = atomic_load(&alloc_countdown) < 0; /* the allocation came */
        alloc_fail_after(-1);
        if (answer.rc != NG_OK) {
            assert_string_equal(answer.code, "INTERNAL");
            assert_null(strstr(answer.message, "without a message"));
        } else {
            assert_string_equal(answer.text, whole.text);
        }
        answer_free(&answer);
    }
    assert_true(fails > 1);
    answer_free(&whole);
}

struct call *call_with_key(struct key *key, enum ng_role role, const struct ng_str *spaces,
                           size_t count)
{
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
    (void)snprintf(key->id, sizeof(key->id), "abcdefghijkl");
    key->spaces = spaces;
    key->space_count = count;
    assert_int_equal(
        call_set_caller(call, ng_str_of("ada"), ng_str_of(NULL), role, NG_MODE_AGENT, true),
        NG_OK);
    call->caller.spaces = spaces;
    call->caller.space_count = count;
    call_take_key(call, key);
    return call;
}

/* ---- random texts ---- */

unsigned rig_seed(void)
{
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    unsigned seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", seed);
    return seed;
}

unsigned rig_below(unsigned *seed, unsigned limit)
{
    return (unsigned)rand_r(seed) % limit;
}

void rig_text(unsigned *seed, unsigned lines, char *text, size_t size)
{
    static const char *const pieces[] = {
        "a", "b", "", "\r", "a\r", "\xc3\xbc\xe6\x97\xa5", "long \"line\" \x01", "\r\r"};
    unsigned count = rig_below(seed, lines + 1);
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s%s",
                                pieces[rig_below(seed, NG_COUNT(pieces))],
                                i + 1 < count || rig_below(seed, 2) == 0 ? "\n" : "");
        assert_true(len < size);
    }
}
