/* SPDX-License-Identifier: MIT */
/* test_command.c - the parser of the command line, its help texts and its completion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/base/build_info.h"
#include "program.h"

static void usage_errors(void **state)
{
    static const struct run_case cases[] = {
        {"", 2, NULL, "no command"},
        {"srve", 2, NULL, "unknown command \"srve\"; did you mean \"serve\"?"},
        {"sevre", 2, NULL, "did you mean \"serve\"?"},
        {"frobnicate", 2, NULL, "unknown command \"frobnicate\"\n"},
        {"status", 2, NULL, "`notegate check`"},
        {"history", 2, NULL, "`notegate log`"},
        {"serve --lisen x", 2, NULL, "unknown option \"--lisen\"; did you mean \"--listen\"?"},
        {"serve --nothing-like-it", 2, NULL, "unknown option \"--nothing-like-it\"\n"},
        {"serve --port 1", 2, NULL, "unknown option \"--port\"; use --listen 127.0.0.1:PORT"},
        {"serve -p 1", 2, NULL, "unknown option \"-p\"; use --listen 127.0.0.1:PORT"},
        {"serve -z", 2, NULL, "unknown option \"-z\""},
        {"serve extra", 2, NULL, "\"extra\""},
        {"call", 2, NULL, "\"call\" needs TOOL"},
        {"call notebook --agent 'a b'", 2, NULL, "--agent is \"a b\""},
        {"call notebook --space ~", 2, NULL, "--space is \"~\""},
        {"mcp --mode ed", 2, NULL, "--mode is \"ed\""},
        {"tools --format", 2, NULL, "--format FORMAT"},
        {"tools --json=1", 2, NULL, "--json takes no value"},
        {"tools --agent x", 2, NULL, "--agent"},
        {"call notebook --run 'a b'", 2, NULL, "--run is \"a b\"; it must have 1 to 64 of"},
        {"mcp --run ''", 2, NULL, "--run is \"\""},
        {"mcp --run undo-1", 2, NULL, "--run is \"undo-1\"; runs that begin with undo-"},
        {"tools --run x", 2, NULL, "\"tools\" does not take --run"},
        {"call notebook --run", 2, NULL, "--run needs a value: --run ID"},
        {"key add x --run=y", 2, NULL, "--run takes no value"},
        {"--json", 2, NULL, "--json"},
        {"tools --format opnai", 2, NULL, "unknown format \"opnai\"; there are mcp, openai"},
        {"--help-completion fish", 2, NULL, "fish"},
        {"key", 2, NULL, "add NAME | set ID | pause ID | resume ID | list | revoke NAME|ID"},
        {"key steal bob", 2, NULL, "\"steal\""},
        {"key add", 2, NULL, "notegate key add NAME"},
        {"key list bob", 2, NULL, "\"bob\""},
        {"key list --role admin", 2, NULL, "\"key list\""},
        {"key set bob", 2, NULL, "what changes"},
        {"key pause bob --role admin", 2, NULL, "\"key pause\""},
        {"key add bob --all", 2, NULL, "--all"},
        {"key add bob --force", 2, NULL, "--force"},
        {"call notebook {", 2, NULL, "line 1, column"},
        {"call notebook {} x=1", 2, NULL, "\"x=1\""},
        {"call notebook [] ", 2, NULL, "\"[]\""},
        {"call notebook =x", 2, NULL, "\"=x\""},
        {"call notebook mode=list mode=read", 2, NULL, "\"mode\""},
        {"call notebook mode=\xff", 2, NULL, "not UTF-8"},
        {"call notebook mode=read readRange=a,b", 2, NULL, "\"readRange\""},
    };
    (void)state;
    expect_runs(cases, NG_COUNT(cases));
}

static void usage_tells_where_help_is(void **state)
{
    (void)state;
    expect_run("key list bob", 2, NULL, "notegate key --help");
    expect_run("srve", 2, NULL, "notegate --help");
}

static void help_of_each_command(void **state)
{
    static const char *const names[] = {"serve", "mcp",    "call",   "tools",  "key",
                                        "check", "verify", "backup", "restore"};
    struct ended whole = program_run("--help", NULL);
    (void)state;
    assert_int_equal(whole.code, 0);
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        char words[64];
        char usage[64];
        (void)snprintf(usage, sizeof(usage), "\n  %s ", names[i]);
        assert_non_null(strstr(whole.out, usage));
        (void)snprintf(words, sizeof(words), "%s --help", names[i]);
        (void)snprintf(usage, sizeof(usage), "Usage: notegate %s [OPTIONS]", names[i]);
        expect_run(words, 0, usage, NULL);
        expect_run(words, 0, "-c, --config FILE", NULL);
        (void)snprintf(words, sizeof(words), "help %s", names[i]);
        expect_run(words, 0, usage, NULL);
    }
    ended_free(&whole);
    char version[200];
    (void)snprintf(version, sizeof(version), "notegate %s\n", build_version());
    expect_run("version", 0, version, NULL);
    expect_run("serve -V", 0, version, NULL);
}

static void the_man_page_is_the_help(void **state)
{
    struct ended printed = program_run("--help-man", NULL);
    char page[65536];
    (void)state;
    assert_int_equal(printed.code, 0);
    FILE *file = fopen(NOTEGATE_SOURCE "/packaging/notegate.1", "r");
    assert_non_null(file);
    size_t len = fread(page, 1, sizeof(page) - 1, file);
    page[len] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(printed.out, page);
    ended_free(&printed);
}

static void completion(void **state)
{
    static const struct run_case cases[] = {
        {"--help-completion bash", 0,
         "--mode)\n        COMPREPLY=($(compgen -W \"ask edit "
         "agent\"",
         NULL},
        {"--help-completion bash", 0, "complete ", NULL},
        {"--help-completion zsh", 0, "#compdef notegate", NULL},
        {"--help-completion zsh", 0, "reader writer admin", NULL},
    };
    (void)state;
    expect_runs(cases, NG_COUNT(cases));
}

static void many_options(void **state)
{
    char words[8000];
    size_t len = (size_t)snprintf(words, sizeof(words), "check");
    (void)state;
    for (int i = 0; i < 10; i++) {
        len += (size_t)snprintf(words + len, sizeof(words) - len, " --root /nowhere");
    }
    expect_run(words, 1, "/nowhere", NULL);
    len = (size_t)snprintf(words, sizeof(words), "key add bob");
    for (int i = 0; i < 65; i++) {
        len += (size_t)snprintf(words + len, sizeof(words) - len, " --space s");
    }
    expect_run(words, 2, NULL, "--space");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),         cmocka_unit_test(usage_tells_where_help_is),
        cmocka_unit_test(help_of_each_command), cmocka_unit_test(the_man_page_is_the_help),
        cmocka_unit_test(completion),           cmocka_unit_test(many_options),
    };
    return cmocka_run_group_tests(tests, program_set_up, program_tear_down);
}
