/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_rig.c - shared code of test_agent_notebook*.c; see the header.
 */
#include "test_agent_notebook_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/json/json.h"

static const char *const sqlite_sets[] = {"plugins=agent_notebook", "documents=sqlite", NULL};

static const char *const memory_sets[] = {"plugins=agent_notebook", "documents=memory", NULL};

int open_with(void **state, const char *const *sets)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    *state = harness;
    return 0;
}

int setup(void **state)
{
    return open_with(state, memory_sets);
}

int setup_sqlite(void **state)
{
    return open_with(state, sqlite_sets);
}

int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- helpers ---- */

const char *at(const char *json, const char *path)
{
    static char places[8][8192];
    static unsigned next;
    char *place = places[next++ % NG_COUNT(places)];
    struct arena arena;
    struct json_error error;
    struct buf buf;
    const struct ng_value *value = NULL;
    arena_init(&arena, (size_t)64 * 1024 * 1024);
    assert_int_equal(json_parse(&arena, ng_str_of(json), 64, &value, &error), NG_OK);
    while (*path != '\0' && value != NULL) {
        size_t len = strcspn(path, ".");
        if (value->type == NG_TYPE_ARRAY) {
            size_t index = strtoul(path, NULL, 10);
            for (value = value->first; value != NULL && index > 0; index--) {
                value = value->next;
            }
        } else {
            if (value->type != NG_TYPE_OBJECT) {
                value = NULL;
            } else {
                value = json_get_str(value, str_make(path, len));
            }
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
    (void)snprintf(place, sizeof(places[0]), "%s", buf_cstr(&buf));
    buf_done(&buf);
    arena_done(&arena);
    return place;
}

struct answer go(void *state, const char *tool, const char *args)
{
    struct answer answer = harness_call(state, tool, args);
    if (answer.rc != NG_OK) {
        print_message("%s %s: %s %s\n", tool, args, answer.code, answer.message);
    }
    assert_int_equal(answer.rc, NG_OK);
    assert_true(answer.is_json);
    return answer;
}

struct answer fails(void *state, const char *tool, const char *args, const char *code,
                    int status)
{
    struct answer answer = harness_call(state, tool, args);
    assert_string_equal(answer.code, code);
    assert_int_equal(answer.status, status);
    return answer;
}

void fails_only(void *state, const char *tool, const char *args, const char *code, int status)
{
    struct answer answer = fails(state, tool, args, code, status);
    answer_free(&answer);
}

struct entry make(void *state, const char *collection, const char *members)
{
    struct entry entry;
    char args[8192];
    (void)snprintf(args, sizeof(args), "{\"collection\":\"%s\",%s}", collection, members);
    struct answer made = go(state, "notebook_create", args);
    (void)snprintf(entry.id, sizeof(entry.id), "%s", at(made.text, "notebook_id"));
    (void)snprintf(entry.collection, sizeof(entry.collection), "%s", collection);
    answer_free(&made);
    return entry;
}

const char *about(const struct entry *entry, const char *more)
{
    static char args[1 << 16];
    (void)snprintf(args, sizeof(args), "{\"notebook_id\":\"%s\",\"collection\":\"%s\"%s}",
                   entry->id, entry->collection, more);
    return args;
}

void update(void *state, const struct entry *entry, const char *more)
{
    struct answer answer = go(state, "notebook_update", about(entry, more));
    assert_string_equal(at(answer.text, "status"), "updated");
    answer_free(&answer);
}

void expect_member(void *state, const struct entry *entry, const char *more, const char *path,
                   const char *want)
{
    struct answer answer = go(state, "notebook_read", about(entry, more));
    assert_string_equal(at(answer.text, path), want);
    answer_free(&answer);
}

void expect_content(void *state, const struct entry *entry, const char *want)
{
    expect_member(state, entry, "", "content", want);
}

/* ---- lists and searches ---- */

void expect_list(void *state, const char *tool, const char *args, const char *titles,
                 const char *total)
{
    char got[1024] = "";
    char path[64];
    size_t len = 0;
    struct answer answer = go(state, tool, args);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof(path), "results.%d.title", i);
        const char *title = at(answer.text, path);
        if (strcmp(title, "none") == 0) {
            break;
        }
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s", i == 0 ? "" : " ", title);
    }
    assert_string_equal(got, titles);
    assert_string_equal(at(answer.text, "total"), total);
    assert_null(strstr(answer.text, "\"content\""));
    assert_null(strstr(answer.text, "\"code\""));
    assert_null(strstr(answer.text, "\"sections\""));
    assert_null(strstr(answer.text, "\"history\""));
    answer_free(&answer);
}
