/* SPDX-License-Identifier: MIT */
/* test_command_store.c - commands that look after the store: check, backup, verify, restore,
 * serve. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/str.h"
#include "program.h"

static const char *home;

static void checks(void **state)
{
    static const struct run_case alone[] = {
        {"check", 0, "ok     plugin: notebook ", NULL},
        {"check --json", 0, "\"ok\":true}\n", NULL},
        {"check --listen 127.0.0.1:0", 0, "listen: 127.0.0.1:0\n", NULL},
        {"check --listen nonsense", 1, "failed listen: listen is \"nonsense\"", NULL},
        {"check --listen 0.0.0.0:0", 1, " key add NAME --data-dir ", NULL},
        {"check --set timezone=Mars/Olympus", 1, "failed timezone: ", NULL},
        {"check --set user=nosuch", 1, "failed user: ", NULL},
        {"check --set tls.certificate=/x", 1, "tls.key", NULL},
        {"check --set plugins=nothing", 1, "`nothing`", NULL},
        {"check --set limits.bodi=1", 1, NULL, "limits.body"},
        {"check --set limits.body=much", 1, NULL, "limits.body"},
        {"check --root /nowhere", 1, "failed root: /nowhere", NULL},
        {"check --root /etc/passwd", 1, "failed root: /etc/passwd", NULL},
        {"check --config /nowhere.yaml", 1, NULL, "/nowhere.yaml"},
        {"check --help-config", 0, "\nsqlite.memory = ", NULL},
        {"check --help-config", 0, "notebook.max_size", NULL},
        {"check --help-config --set plugins=nothing", 1, "", "`nothing`"},
    };
    struct program gateway;
    (void)state;
    expect_runs(alone, NG_COUNT(alone));
    program_serve(&gateway, "");
    expect_run("check", 0, "gateway: serving; ", NULL);
    expect_run("check", 0, "start: ", NULL);
    expect_run("check --json", 0, "\"ok\":true}\n", NULL);
    program_stop(&gateway);
}

static void a_data_directory_that_others_read(void **state)
{
    char path[512];
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/data", home);
    expect_run("call notebook mode=create name=n newStr=text", 0, "n", NULL);
    assert_int_equal(chmod(path, 0755), 0);
    expect_run("check", 1, "chmod 700", NULL);
    expect_run("serve", 1, NULL, "chmod 700");
    assert_int_equal(chmod(path, 0700), 0);
}

static void backups(void **state)
{
    char words[1024];
    struct program gateway;
    (void)state;
    expect_run("call notebook mode=create name=kept newStr=text", 0, "kept", NULL);
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            program_serve(&gateway, "");
        }
        (void)snprintf(words, sizeof(words), "backup %s/copy%d", home, round);
        expect_run(words, 0, " documents, ", NULL);
        expect_run(words, 1, NULL, "--force");
        (void)snprintf(words, sizeof(words), "backup %s/copy%d --force --files --json", home,
                       round);
        expect_run(words, 0,
                   "\"files\":0,\"left_out\":0,\"changed\":0,\"deleted\":0,\"by_kind\":{"
                   "\"notebooks\":1}",
                   NULL);
        expect_run("backup -", 0, "{\"kind\":\"notegate backup\"", " documents, ");
        expect_run("backup - --json --files", 0, "{\"kind\":\"notegate backup\"",
                   "\"data_dir\":\"");
        (void)snprintf(words, sizeof(words), "backup %s/no/such/folder", home);
        expect_run(words, 1, NULL, "no/such/folder");
        expect_run("verify", 0, "everything is in order", NULL);
        expect_run("verify --json", 0, "\"count\":0", NULL);
        if (round == 1) {
            (void)snprintf(words, sizeof(words), "restore %s/copy0", home);
            expect_run(words, 1, NULL, "process ");
            program_stop(&gateway);
        }
        (void)snprintf(words, sizeof(words), "restore %s/copy%d --data-dir %s/again%d", home,
                       round, home, round);
        expect_run(words, 0, "restored ", NULL);
        expect_run(words, 1, NULL, "/copy");
        (void)snprintf(words, sizeof(words),
                       "call notebook mode=read name=kept --data-dir %s/again%d", home, round);
        expect_run(words, 0, "text\n", NULL);
    }
}

static void one_of_a_backup(void **state)
{
    static const struct {
        const char *uri;
        int code;
        const char *out, *told;
    } cases[] = {
        {"notegate://~local/notebook/kept", 0, "restored notegate://~local/notebook/kept\n",
         NULL},
        {"notegate://~local/notebook/kept", 1, NULL, "exists (revision 1)"},
        {"notegate://~local/notebook/kpt", 1, NULL,
         "did you mean notegate://~local/notebook/kept?"},
        {"notegate://~local/song/kept", 1, NULL, "no kind of document"},
        {"notegate://~local/notebook/%2Fnone", 1, NULL, "backup without --files"},
        {"kept", 2, NULL, "is no URI of a resource"},
    };
    char words[1024];
    (void)state;
    expect_run("call notebook mode=create name=kept newStr=text", 0, "kept", NULL);
    (void)snprintf(words, sizeof(words), "backup %s/one", home);
    expect_run(words, 0, "documents: 1 notebooks\n", NULL);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        (void)snprintf(words, sizeof(words), "restore %s/one --only %s --data-dir %s/other",
                       home, cases[i].uri, home);
        expect_run(words, cases[i].code, cases[i].out, cases[i].told);
    }
    (void)snprintf(words, sizeof(words),
                   "call notebook mode=read name=kept --data-dir %s/other", home);
    expect_run(words, 0, "text\n", NULL);
}

static void bad_archives(void **state)
{
    char words[1024];
    (void)state;
    expect_run("call notebook mode=create name=a newStr=text", 0, "a", NULL);
    (void)snprintf(words, sizeof(words), "backup %s/whole", home);
    expect_run(words, 0, " documents, ", NULL);
    char *whole = program_read("whole");
    static const char *const bad[] = {"", "{}\n", "x\n", "[1]\n"};
    (void)snprintf(words, sizeof(words), "restore %s/bad --data-dir %s/none", home, home);
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        program_write("bad", bad[i]);
        expect_run(words, 1, NULL, "/bad");
    }
    size_t len = strlen(whole);
    whole[len - 10] = '\0';
    program_write("bad", whole);
    expect_run(words, 1, NULL, ": ");
    whole[len / 2]++;
    program_write("bad", whole);
    expect_run(words, 1, NULL, ": line ");
    free(whole);
    (void)snprintf(words, sizeof(words), "restore %s/whole --set documents=memory", home);
    expect_run(words, 1, NULL, "in memory");
    expect_run("restore /nowhere", 1, NULL, "/nowhere");
}

static void no_data_is_not_in_order(void **state)
{
    static const struct run_case cases[] = {
        {"verify --data-dir /tmp/no/such", 1, NULL, "/tmp/no/such"},
        {"backup - --data-dir /tmp/no/such", 1, NULL, "/tmp/no/such"},
        {"key list --data-dir /tmp/no/such", 1, NULL, "/tmp/no/such"},
    };
    char words[1024];
    (void)state;
    expect_runs(cases, NG_COUNT(cases));
    (void)snprintf(words, sizeof(words), "%s/empty", home);
    assert_int_equal(mkdir(words, 0700), 0);
    (void)snprintf(words, sizeof(words), "verify --data-dir %s/empty", home);
    expect_run(words, 1, NULL, "documents: sqlite");
    (void)snprintf(words, sizeof(words), "verify --data-dir %s/empty --set documents=memory",
                   home);
    expect_run(words, 1, NULL, "documents: memory");
    (void)snprintf(words, sizeof(words), "tools --data-dir %s/empty", home);
    expect_run(words, 0, "notebook", NULL);
}

static void the_contract_suite(void **state)
{
    (void)state;
    expect_run("test-backend", 2, NULL, "MODULE");
}

static void the_cases_of_a_plugin(void **state)
{
    char words[1024];
    (void)state;
    (void)snprintf(words, sizeof(words), "test-plugin notebook %s/cases.json", home);
    program_write("cases.json", "[{\"name\":\"a\",\"tool\":\"notebook\",\"args\":{\"mode\":"
                                "\"create\",\"name\":\"n\",\"newStr\":\"x\"},\"expect\":{"
                                "\"result\":\"x\"}},{\"name\":\"b\",\"tool\":\"notebook\","
                                "\"args\":{\"mode\":\"read\",\"name\":\"n\"},\"expect\":{"
                                "\"text\":\"x\"}}]");
    expect_run(words, 1, "FAILED a\n  expected: {\"result\":\"x\"}\n  actual:   {", NULL);
    expect_run(words, 1, "\nok b\n2 cases, 1 failed\n", NULL);
    program_write("cases.json", "[{\"name\":\"a\"}]");
    expect_run(words, 2, NULL, "cases.json: case 1: \"tool\" is missing");
    expect_run("test-plugin notebook /nowhere.json", 2, NULL, "/nowhere.json");
    expect_run("test-plugin notebook", 2, NULL, "MODULE CASES.json");
}

/* A serving gateway refuses a second one, and applies changes of its configuration. */
static void serving(void **state)
{
    char words[1024];
    struct program gateway;
    (void)state;
    (void)snprintf(words, sizeof(words), "--config %s/some.yaml", home);
    program_write("some.yaml", "log.level: info\nlimits.body: 1MiB\nlimits.workers: 4\n");
    program_serve(&gateway, words);
    expect_run("serve", 1, NULL, "process ");
    program_write("some.yaml", "log.level: info\nlimits.body: 64\nlimits.workers: 5\n");
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "reload: limits.body: ");
    program_wait_err(&gateway, "reload: limits.workers: ");
    program_write("some.yaml", "limits.bodi: 1\n");
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "limits.bodi");
    struct ended ended = program_end(&gateway, SIGINT);
    assert_int_equal(ended.code, 0);
    assert_non_null(strstr(ended.err, "stopped"));
    ended_free(&ended);
    static const struct run_case refused[] = {
        {"serve --listen nonsense", 1, NULL, "nonsense"},
        {"serve --listen 0.0.0.0:0", 1, NULL, " key add NAME --data-dir "},
        {"serve --set auth=off --listen 0.0.0.0:0", 1, NULL, "auth"},
        {"serve --set documents=oracle", 1, NULL, "`oracle`"},
        {"serve --user nosuch", 1, NULL, "nosuch"},
        {"serve --root /nowhere", 1, NULL, "/nowhere"},
        {"serve --set tls.certificate=/x --set tls.key=/x", 1, NULL, "/x"},
    };
    expect_runs(refused, NG_COUNT(refused));
}

/* Roots and plugins of a configuration that is read again. */
static void reloads(void **state)
{
    char text[2048];
    struct program gateway;
    (void)state;
    assert_int_equal(unsetenv("NOTEGATE_PLUGINS"), 0);
    (void)snprintf(text, sizeof(text), "%s/root", home);
    assert_int_equal(mkdir(text, 0700), 0);
    program_write("some.yaml", "plugins: [notebook]\nlimits.call_timeout: 1min\n");
    (void)snprintf(text, sizeof(text), "--config %s/some.yaml", home);
    program_serve(&gateway, text);
    (void)snprintf(text, sizeof(text), "roots: [%s/nowhere]\nplugins: [notebook]\n", home);
    program_write("some.yaml", text);
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "roots: ");
    (void)snprintf(text, sizeof(text),
                   "roots: [%s/root]\nplugins: [notebook, conformance]\n"
                   "limits.call_timeout: 2min\nlisten: 127.0.0.1:1\n"
                   "allowed_hosts: [a.example]\ntls.key: /x\n",
                   home);
    program_write("some.yaml", text);
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "reload: roots: the new value");
    program_wait_err(&gateway, "conformance was added");
    program_wait_err(&gateway, "limits.call_timeout: ");
    program_wait_err(&gateway, "allowed_hosts: ");
    program_write("some.yaml", "plugins: [conformance]\n");
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "reload: plugins: notebook ");
    program_stop(&gateway);
}

static int set_up(void **state)
{
    (void)state;
    home = program_home();
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, program_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checks),
        TEST(a_data_directory_that_others_read),
        TEST(backups),
        TEST(one_of_a_backup),
        TEST(bad_archives),
        TEST(no_data_is_not_in_order),
        TEST(the_contract_suite),
        TEST(the_cases_of_a_plugin),
        TEST(serving),
        TEST(reloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
