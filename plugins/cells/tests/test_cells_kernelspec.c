/* SPDX-License-Identifier: MIT */
/* test_cells_kernelspec.c - kernel.json files: their content, and the commands they start. */
#include "harness.h"
#include "kernel/kernelspec.h"

#include <stdlib.h>
#include <string.h>

static struct kernelspec parse(const char *json)
{
    struct kernelspec spec;
    assert_true(kernelspec_parse(ng_str_of(json), &spec));
    return spec;
}

static void test_what_it_says(void **state)
{
    (void)state;
    struct kernelspec spec =
        parse("{\"argv\":[\"a\",\"\\u00e4 b\"],\"display_name\":\"D\",\"language\":\"l\","
              "\"interrupt_mode\":\"message\",\"env\":{\"A\":\"1\",\"B\":2,\"C\":\"x=y\"},"
              "\"metadata\":{\"debugger\":true},\"unknown\":[]}");
    assert_string_equal(spec.display_name, "D");
    assert_string_equal(spec.language, "l");
    assert_string_equal(spec.argv[1], "\xc3\xa4 b");
    assert_null(spec.argv[2]);
    assert_string_equal(spec.env[0], "A=1");
    assert_string_equal(spec.env[1], "C=x=y");
    assert_null(spec.env[2]);
    assert_true(spec.message_interrupt);
    kernelspec_done(&spec);
    spec = parse("{\"argv\":[\"a\"]}");
    assert_string_equal(spec.language, "");
    assert_null(spec.display_name);
    assert_false(spec.message_interrupt);
    kernelspec_done(&spec);
}

static void test_what_is_none(void **state)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{}",
                                      "{\"argv\":\"a\"}",
                                      "{\"argv\":[]}",
                                      "{\"argv\":[\"\"]}",
                                      "{\"argv\":[1]}",
                                      "{\"argv\":[\"a\\u0000b\"]}",
                                      "{\"argv\":[\"a\"]} x"};
    struct kernelspec spec;
    (void)state;
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_false(kernelspec_parse(ng_str_of(bad[i]), &spec));
    }
}

static void test_the_command(void **state)
{
    (void)state;
    struct kernelspec spec =
        parse("{\"argv\":[\"/bin/x\",\"-m\",\"ipykernel_launcher\",\"-f{connection_file}\","
              "\"{resource_dir}/{prefix}/{other}\",\"~/a\",\"a~\"]}");
    spec.folder = "/spec";
    spec.prefix = "/usr";
    assert_int_equal(setenv("HOME", "/home/x", 1), 0);
    const char **command = kernelspec_command(&spec, "/c.json", &spec.memory);
    const char *const expected[] = {"/bin/x",
                                    "-m",
                                    "ipykernel_launcher",
                                    "-f/c.json",
                                    "/spec//usr/{other}",
                                    "/home/x/a",
                                    "a~",
                                    "--HistoryManager.hist_file=:memory:"};
    for (size_t i = 0; i < NG_COUNT(expected); i++) {
        assert_string_equal(command[i], expected[i]);
    }
    assert_null(command[NG_COUNT(expected)]);
    kernelspec_done(&spec);
}

static void test_the_variables(void **state)
{
    (void)state;
    struct kernelspec spec = parse(
        "{\"argv\":[\"a\"],\"env\":{\"A\":\"$ONE-${ONE}x${NONE}$NONE$\",\"B\":\"${ONE\"}}");
    assert_int_equal(setenv("ONE", "1", 1), 0);
    assert_int_equal(unsetenv("NONE"), 0);
    const char **env = kernelspec_environment(&spec, &spec.memory);
    assert_string_equal(env[0], "A=1-1x${NONE}$NONE$");
    assert_string_equal(env[1], "B=${ONE");
    assert_null(env[2]);
    kernelspec_done(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_the_command),
        cmocka_unit_test(test_the_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
