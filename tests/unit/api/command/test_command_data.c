/* SPDX-License-Identifier: MIT */
/* test_command_data.c - commands that work on data, in their own gateway and through one that
 * serves: the answers are the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "program.h"

static void expect_both_ways(const struct run_case *cases, size_t count)
{
    struct program gateway;
    expect_runs(cases, count);
    program_serve(&gateway, "");
    expect_runs(cases, count);
    program_stop(&gateway);
}

static void calls(void **state)
{
    static const struct run_case cases[] = {
        {"call notebook mode=create name=a 'newStr=one two'", 0, "Created notebook 'a'", NULL},
        {"call notebook mode=read name=a", 0, "one two\n", NULL},
        {"call notebook {\"mode\":\"read\",\"name\":\"a\"}", 0, "one two\n", NULL},
        {"call notebook mode=read name=a readRange=1,1", 0, "one two", NULL},
        {"call notebook mode=read name=a readRange=[1,1]", 0, "one two", NULL},
        {"call notebook mode=read name=a --json", 0, "\"result\":\"one two\"", NULL},
        {"call notebook mode=clear name=a", 0, "'a'", NULL},
        {"call notebook mode=read name=nothing", 1, NULL, "notegate: "},
        {"call notebook mode=read name=nothing --json", 1, "\"error\":true", NULL},
        {"call notebook mode=nonsense", 1, NULL, "mode"},
        {"call notebook", 1, NULL, "mode"},
        {"call notebok mode=read", 1, NULL, "notebook"},
        {"call notebok", 1, NULL, "notebook"},
        {"call no.such.tool", 1, NULL, "no.such.tool"},
        {"call notebook mode=create name=x --mode ask", 1, NULL, "MODE_FORBIDDEN"},
        {"call notebook mode=list --agent ada --space ~ada --mode edit", 0, "", NULL},
        {"call notebook mode=list --space nowhere", 0, "", NULL},
        {"call notebook nonsense=1 mode=list", 1, NULL, "nonsense"},
        {"call notebook mode=read readRange=a,b", 2, NULL, "\"readRange\""},
        {"call notebook --help", 0, "readRange", NULL},
        {"call zzz --help", 1, NULL, "zzz"},
    };
    (void)state;
    expect_both_ways(cases, NG_COUNT(cases));
}

static void calls_read_stdin(void **state)
{
    static const struct {
        const char *input;
        int code;
        const char *out, *err;
    } cases[] = {
        {"{\"mode\":\"create\",\"name\":\"s\",\"newStr\":\"in\\nput\"}", 0, "'s'", ""},
        {"{\"mode\":\"read\",\"name\":\"s\"}\n", 0, "in\nput", ""},
        {"{\"mode\":", 2, "", "line 1"},
        {"[1]", 2, "", "JSON object"},
        {"", 2, "", "line 1"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct ended ended = program_run("call notebook -", cases[i].input);
        assert_int_equal(ended.code, cases[i].code);
        assert_non_null(strstr(ended.out, cases[i].out));
        assert_non_null(strstr(ended.err, cases[i].err));
        ended_free(&ended);
    }
}

/* Answers of other kinds than text. */
static void answers(void **state)
{
    static const struct run_case cases[] = {
        {"call test_image_content", 0, "[image image/png: --json prints it]\n", NULL},
        {"call test_audio_content", 0, "[audio audio/wav: --json prints it]\n", NULL},
        {"call test_embedded_resource", 0, "test://embedded-resource: --json prints it]", NULL},
        {"call test_multiple_content_types", 0, "[image image/png", NULL},
        {"call test_multiple_content_types --json", 0, "\"content\":[", NULL},
        {"call test_error_handling", 1, NULL, "notegate: "},
        {"call test_sampling prompt=x", 1, NULL, "notegate: "},
        {"call greet name=Ada", 0, "Ada", NULL},
        {"call greet", 1, NULL, "name"},
        {"tools json_schema_2020_12_tool", 0, "contactMethod", NULL},
        {"tools slow_compute", 0, "seconds", NULL},
        {"tools --format gemini", 0, "json_schema_2020_12_tool", NULL},
        {"tools --format openai", 0, "json_schema_2020_12_tool", NULL},
    };
    (void)state;
    assert_int_equal(setenv("NOTEGATE_PLUGINS", "conformance", 1), 0);
    assert_int_equal(setenv("NOTEGATE_DOCUMENTS", "memory", 1), 0);
    expect_both_ways(cases, NG_COUNT(cases));
    assert_int_equal(unsetenv("NOTEGATE_DOCUMENTS"), 0);
}

static void tools(void **state)
{
    static const struct run_case cases[] = {
        {"tools", 0, "\"name\":\"notebook\"", NULL},
        {"tools --format openai", 0, "\"function\":{\"name\":\"notebook\"", NULL},
        {"tools --format openai-responses", 0, "\"type\":\"function\"", NULL},
        {"tools --format anthropic", 0, "\"input_schema\"", NULL},
        {"tools --format gemini", 0, "functionDeclarations", NULL},
        {"tools --json", 0, "\"inputSchema\"", NULL},
        {"tools notebook", 0, "mode", NULL},
        {"tools notebook --json", 0, "\"inputSchema\"", NULL},
        {"tools notebook --format gemini", 0, "\"name\":\"notebook\"", NULL},
        {"tools notebok", 1, NULL, "`notebook`"},
        {"tools zzz", 1, NULL, "zzz"},
    };
    (void)state;
    expect_both_ways(cases, NG_COUNT(cases));
}

static void keys(void **state)
{
    static const struct run_case first[] = {
        {"key add ada --role reader --mode ask --space shared --tool notebook --rate 5/min "
         "--expires 30d --note 'a note' --run",
         0, "ng_", "for ada: role reader, mode ask, spaces shared, tools notebook, rate"},
        {"key add bob --role admin --json", 0, "\"agent\":\"bob\"", NULL},
        {"key list", 0, "a note", NULL},
        {"key list", 0, "5/min", NULL},
        {"key list --json", 0, "\"agent\":\"bob\"", NULL},
        {"key add ada --role king", 2, NULL, "role"},
        {"key add ada --rate fast", 2, NULL, "rate"},
        {"key add ada --expires soon", 2, NULL, "\"soon\""},
        {"key add 'a b'", 2, NULL, "a b"},
        {"key revoke bop", 1, NULL, "did you mean \"bob\"?"},
        {"key revoke zzzzzzzz", 1, NULL, "`notegate key list`"},
        {"key revoke 'a b'", 1, NULL, "\"a b\""},
        {"key revoke ada", 0, "1 key revoked", NULL},
        {"key revoke ada", 1, NULL, "ada"},
        {"key list --all", 0, "revoked", NULL},
        {"key revoke bob", 1, NULL, "--force"},
        {"key revoke bob --force --json", 0, "{\"revoked\":[{", NULL},
    };
    (void)state;
    expect_both_ways(first, NG_COUNT(first));
}

/* A key's whole text is accepted for its id. */
static void keys_are_revoked_by_their_text(void **state)
{
    char words[256];
    (void)state;
    expect_run("key add carl --role admin", 0, "ng_", "Send it as `Authorization: Bearer KEY`");
    struct ended added = program_run("key add dora", NULL);
    assert_int_equal(added.code, 0);
    added.out[strcspn(added.out, "\n")] = '\0';
    (void)snprintf(words, sizeof(words), "key revoke %s", added.out);
    expect_run(words, 0, " of dora\n1 key revoked", NULL);
    ended_free(&added);
    expect_run("key revoke carl --force", 0, "1 key revoked", NULL);
}

#define TEST(function)                                                                         \
    cmocka_unit_test_setup_teardown(function, program_set_up, program_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls),   TEST(calls_read_stdin),
        TEST(answers), TEST(tools),
        TEST(keys),    TEST(keys_are_revoked_by_their_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
