/* SPDX-License-Identifier: MIT */
/* test_config.c - sizes and durations, defaults, every source of the configuration and which
 * wins. */
#include "test_config_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/config/gateway_options.h"

static void expect(const struct config *config, const char *key, const char *text)
{
    struct ng_str value = config_text(config, key);
    assert_non_null(value.data);
    assert_string_equal(value.data, text);
    assert_int_equal(value.len, strlen(text));
}

static void expect_list(const struct config *config, const char *key, const char *joined)
{
    const struct ng_str *items;
    size_t count = config_list(config, key, &items);
    struct buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < count; i++) {
        (void)buf_add_c(&text, i > 0 ? "|" : "");
        (void)buf_add_str(&text, items[i]);
    }
    assert_string_equal(buf_cstr(&text), joined);
    buf_done(&text);
}

/* ---- sizes and durations ---- */

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"4MiB", 4194304},
        {"4MB", 4000000},
        {"4 MiB", 4194304},
        {" 1kib ", 1024},
        {"1kB", 1000},
        {"1KB", 1000},
        {"7B", 7},
        {"2GiB", INT64_C(2147483648)},
        {"3GB", INT64_C(3000000000)},
        {"1TiB", INT64_C(1099511627776)},
        {"2TB", INT64_C(2000000000000)},
        {"9007199254740992", INT64_C(9007199254740992)},
        {"8192TiB", INT64_C(9007199254740992)},
        {"000000000000000000000000000012", 12},
    };
    static const char *const bad[] = {
        "",
        " ",
        "MiB",
        "4 M iB",
        "-1",
        "+1",
        "1.5M",
        "4MiBs",
        "4m",
        "0x10",
        "4,000",
        "1e3",
        "8193TiB",
        "9007199254740993",
        "99999999999999999999999",
    };
    int64_t bytes;
    for (size_t i = 0; i < NG_COUNT(good); i++) {
        bytes = -1;
        assert_int_equal(config_parse_size(ng_str_of(good[i].text), &bytes), NG_OK);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        bytes = -7;
        assert_int_equal(config_parse_size(ng_str_of(bad[i]), &bytes), NG_EINVAL);
        assert_int_equal(bytes, -7);
    }
    assert_int_equal(config_parse_size(str_make(NULL, 0), &bytes), NG_EINVAL);
    assert_int_equal(config_parse_size(str_make("12MiB", 2), &bytes), NG_OK);
    assert_int_equal(bytes, 12);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"500ms", 500},
        {"30s", 30000},
        {"5min", 300000},
        {"1h", 3600000},
        {"30d", INT64_C(2592000000)},
        {"1 h", 3600000},
        {"2MIN", 120000},
    };
    static const char *const bad[] = {
        "",   "5",       "s",     "-5s",           "1.5h",
        "5m", "1h30min", "5 sec", "104249991375d", "9007199254740993ms",
    };
    int64_t ms;
    for (size_t i = 0; i < NG_COUNT(good); i++) {
        ms = -1;
        assert_int_equal(config_parse_duration(ng_str_of(good[i].text), &ms), NG_OK);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(config_parse_duration(ng_str_of(bad[i]), &ms), NG_EINVAL);
    }
}

/* ---- defaults ---- */

static void test_defaults(void **state)
{
    (void)state;
    struct config *config = must_load(&(struct given){0});
    expect(config, "listen", "127.0.0.1:8420");
    expect(config, "documents", "sqlite");
    expect(config, "journal", "documents");
    expect(config, "auth", "auto");
    assert_false(config_is_set(config, "timezone"));
    expect(config, "log.level", "info");
    assert_int_equal(config_int(config, "limits.body"), 4 * 1024 * 1024);
    assert_int_equal(config_int(config, "limits.depth"), 128);
    assert_int_equal(config_int(config, "limits.connections"), 4096);
    assert_int_equal(config_int(config, "limits.streams"), 2000);
    assert_int_equal(config_int(config, "limits.stream_backlog"), 10000);
    assert_int_equal(config_int(config, "limits.queue"), 1024);
    assert_int_equal(config_int(config, "limits.buffered"), 256 * 1024 * 1024);
    assert_int_equal(config_int(config, "limits.call_timeout"), 120000);
    assert_int_equal(config_int(config, "limits.result"), 8 * 1024 * 1024);
    assert_int_equal(config_int(config, "history.keep"), INT64_C(90) * 86400 * 1000);
    assert_int_equal(config_int(config, "journal.keep"), 0);
    assert_int_equal(config_int(config, "shutdown_timeout"), 10000);
    assert_int_equal(config_int(config, "mcp.session_timeout"), 3600000);
    assert_int_equal(config_int(config, "limits.workers") % 4, 0);
    assert_true(config_int(config, "limits.workers") >= 4);
    assert_false(config_bool(config, "journal.record_calls"));
    assert_true(str_in_words(config_text(config, "log.format"), "text json"));
    assert_null(config_text(config, "tls.certificate").data);
    expect_list(config, "plugins", "");
    expect_list(config, "allowed_hosts", "");
    assert_null(config_file(config));
    assert_false(config_is_set(config, "listen"));
    assert_false(config_is_set(config, "data_dir"));
    assert_int_equal(config_int(config, "mod.count"), -2);
    assert_true(config_number(config, "mod.ratio") == 0.5);
    expect_list(config, "mod.names", "a|b");
    config_free(config);
    config_free(NULL);
}

static void test_data_dir(void **state)
{
    (void)state;
    const char *const variables[] = {"XDG_DATA_HOME=/x", "HOME=/h", NULL};
    struct config *config = must_load(&(struct given){.environ = variables});
    bool root = geteuid() == 0;
    expect(config, "data_dir", root ? "/var/lib/notegate" : "/x/notegate");
    expect_list(config, "roots", root ? "/var/lib/notegate/files" : "/x/notegate/files");
    config_free(config);
    if (!root) {
        const char *const home[] = {"XDG_DATA_HOME=relative", "HOME=/h", NULL};
        config = must_load(&(struct given){.environ = home});
        expect(config, "data_dir", "/h/.local/share/notegate");
        config_free(config);
    }
    /* The roots follow the folder, whatever is in its name. */
    const char *const sets[] = {"data_dir=/a,b", NULL};
    config = must_load(&(struct given){.sets = sets});
    expect_list(config, "roots", "/a,b/files");
    assert_false(config_is_set(config, "roots"));
    assert_true(config_is_set(config, "data_dir"));
    config_free(config);
}

/* ---- sources ---- */

static void test_file(void **state)
{
    (void)state;
    struct config *config = must_load(
        &(struct given){.file = "# comment\n"
                                "listen: '[::1]:1'\n"
                                "limits:\n"
                                "  body: 1MiB\n"
                                "  \"depth\": !!int 64\n"
                                "limits.queue: 9\n"
                                "roots: &list [/a, 'team:/b,c']\n"
                                "allowed_hosts: *list\n"
                                "allowed_origins: one, two\\,three\n"
                                "plugins: []\n"
                                "timezone: ~\n"
                                "tls:\n"
                                "auth: on\n"
                                "journal: redis\n"
                                "journal.record_calls: yes\n"
                                "mod: {uri: 'mongodb://x', count: -5, ratio: 1e2, on: off}\n"});
    expect(config, "listen", "[::1]:1");
    assert_int_equal(config_int(config, "limits.body"), 1048576);
    assert_int_equal(config_int(config, "limits.depth"), 64);
    assert_int_equal(config_int(config, "limits.queue"), 9);
    expect_list(config, "roots", "/a|team:/b,c");
    expect_list(config, "allowed_hosts", "/a|team:/b,c");
    expect_list(config, "allowed_origins", "one|two,three");
    expect_list(config, "plugins", "");
    assert_false(config_is_set(config, "timezone"));
    expect(config, "auth", "on");
    assert_true(config_bool(config, "journal.record_calls"));
    expect(config, "mod.uri", "mongodb://x");
    assert_int_equal(config_int(config, "mod.count"), -5);
    assert_true(config_number(config, "mod.ratio") == 100.0);
    assert_false(config_bool(config, "mod.on"));
    assert_string_equal(config_file(config), FILE_NAME);
    config_free(config);
}

static void test_empty_files(void **state)
{
    (void)state;
    static const char *const texts[] = {"",           "# nothing\n", "---\n",
                                        "---\n...\n", "\n\n",        "~\n"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        struct config *config = must_load(&(struct given){.file = texts[i]});
        expect(config, "listen", "127.0.0.1:8420");
        config_free(config);
    }
}

static void load_usual(const char *const *variables, struct config **ret)
{
    struct buf error;
    struct config_input input = {0};
    buf_init(&error, 4096);
    memcpy(&input.environ, &variables, sizeof(input.environ));
    assert_int_equal(config_load(&input, ret, &error), NG_OK);
    buf_done(&error);
}

static void test_usual_file(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct buf error;
    struct config_input input = {0};
    char base[128];
    char home[128];
    char file[256];
    (void)snprintf(base, sizeof(base), "XDG_CONFIG_HOME=%s/xdg", folder);
    (void)snprintf(home, sizeof(home), "HOME=%s", folder);
    const char *const both[] = {base, home, NULL};
    const char *const only_home[] = {"XDG_CONFIG_HOME=xdg", home, NULL};
    assert_int_equal(mkdir("xdg", 0700) + mkdir("xdg/notegate", 0700), 0);
    assert_int_equal(mkdir(".config", 0700) + mkdir(".config/notegate", 0700), 0);
    write_file("notegate.yaml", "timezone: here\n", 15);
    write_file("xdg/notegate/notegate.yaml", "timezone: X\n", 12);
    write_file(".config/notegate/notegate.yaml", "timezone: H\n", 12);
    load_usual(both, &config);
    expect(config, "timezone", "X");
    (void)snprintf(file, sizeof(file), "%s/xdg/notegate/notegate.yaml", folder);
    assert_string_equal(config_file(config), file);
    config_free(config);
    /* One that is no whole path does not count. */
    load_usual(only_home, &config);
    expect(config, "timezone", "H");
    config_free(config);
    /* The file in the current folder is never read. */
    assert_int_equal(unlink("xdg/notegate/notegate.yaml"), 0);
    assert_int_equal(unlink(".config/notegate/notegate.yaml"), 0);
    load_usual(both, &config);
    assert_false(str_is(config_text(config, "timezone"), "here"));
    config_free(config);
    assert_int_equal(rmdir("xdg/notegate") + rmdir("xdg"), 0);
    assert_int_equal(rmdir(".config/notegate") + rmdir(".config"), 0);
    assert_int_equal(unlink("notegate.yaml"), 0);
    buf_init(&error, 4096);
    input.file = "not-there.yaml";
    assert_int_equal(config_load(&input, &config, &error), NG_EINVAL);
    assert_string_equal(buf_cstr(&error),
                        "not-there.yaml: cannot be read: No such file or directory");
    buf_clear(&error);
    input.file = ".";
    assert_int_equal(config_load(&input, &config, &error), NG_EINVAL);
    assert_string_equal(buf_cstr(&error), ".: cannot be read: Is a directory");
    buf_done(&error);
}

static void test_precedence(void **state)
{
    (void)state;
    const char *file = "timezone: file\nauth: on\nmod.uri: file\nmod.kind: small\n"
                       "allowed_hosts: [f]\nplugins: [+f]\n";
    const char *const variables[] = {"NOTEGATE_TIMEZONE=env",
                                     "NOTEGATE_AUTH=off",
                                     "MONGODB_URL=short",
                                     "NOTEGATE_TEST_X=1",
                                     "NOTEGATE_REQUIRE_SERVERS=1",
                                     "NOTEGATE_KERNEL=1-2/3.4",
                                     "NOTEGATE_KEY=ng_a_key",
                                     "NOTEGATE_LISTEN=",
                                     "NOTEGATE_LIMITS_STREAM_BACKLOG=5",
                                     "NOTEGATE_ALLOWED_HOSTS=e1,e2",
                                     "OTHER=1",
                                     NULL};
    const char *const sets[] = {"timezone=flag1",
                                "timezone=flag2",
                                "allowed_hosts=a,b",
                                "allowed_hosts=c",
                                "plugins=+x",
                                "plugins=+y",
                                NULL};
    struct config *config = must_load(&(struct given){file, variables, sets});
    expect(config, "timezone", "flag2");
    expect(config, "auth", "off");
    expect(config, "mod.uri", "short");
    expect(config, "mod.kind", "small");
    expect(config, "listen", "127.0.0.1:8420");
    assert_int_equal(config_int(config, "limits.stream_backlog"), 5);
    expect_list(config, "allowed_hosts", "a|b|c");
    expect_list(config, "plugins", "+x|+y");
    config_free(config);
    config = must_load(&(struct given){file, variables, NULL});
    expect(config, "timezone", "env");
    expect_list(config, "allowed_hosts", "e1|e2");
    expect_list(config, "plugins", "+f");
    config_free(config);
    const char *const both[] = {"MONGODB_URL=short", "NOTEGATE_MOD_URI=whole", NULL};
    config = must_load(&(struct given){.environ = both});
    expect(config, "mod.uri", "whole");
    config_free(config);
}

static void test_plugins(void **state)
{
    (void)state;
    const char *const mixed[] = {"plugins=a, +b", NULL};
    struct config *config = must_load(&(struct given){.sets = mixed});
    expect_list(config, "plugins", "a|b");
    config_free(config);
    const char *const none[] = {"plugins=", NULL};
    config = must_load(&(struct given){.sets = none});
    expect_list(config, "plugins", "");
    assert_true(config_is_set(config, "plugins"));
    config_free(config);
    refused_set("plugins=a,+", "flag plugins: `plugins` has a + without a name behind it");
}

static void test_expansion(void **state)
{
    (void)state;
    const char *const variables[] = {"NAME=value", "EMPTY=", NULL};
    char file[512];
    write_file("secret", "s3cret\n", 7);
    (void)snprintf(file, sizeof(file),
                   "timezone: a-${NAME}-$${NAME}-$x-${EMPTY}.\n"
                   "mod.uri: ${file:%s/secret}\n"
                   "mod.names: ['${NAME}', b]\n",
                   folder);
    struct config *config = must_load(&(struct given){file, variables, NULL});
    expect(config, "timezone", "a-value-${NAME}-$x-.");
    expect(config, "mod.uri", "s3cret");
    expect_list(config, "mod.names", "value|b");
    config_free(config);
    /* Only the file's values are expanded. */
    const char *const sets[] = {"timezone=${NAME}", NULL};
    config = must_load(&(struct given){NULL, variables, sets});
    expect(config, "timezone", "${NAME}");
    config_free(config);
    refused_file("\ntimezone: ${NOT_SET}\n",
                 FILE_NAME ":2: ${NOT_SET} is not set in the environment");
    refused_file("timezone: ${OPEN\n",
                 FILE_NAME ":1: ${ has no } behind it (write $${ for a plain one)");
    refused_file("timezone: ${}\n", FILE_NAME ":1: ${} is not set in the environment");
    refused_file("timezone: ${file:secret}\n",
                 FILE_NAME ":1: ${file:secret} needs a whole path that begins with /");
    refused_file("roots:\n  - /a\n  - ${file:/not/there}\n",
                 FILE_NAME ":3: ${file:/not/there} cannot be read: No such file or directory");
    refused_file("timezone: ${file:/dev/zero}\n",
                 FILE_NAME ":1: ${file:/dev/zero} cannot be read: File too large");
}

/* ---- the sample ---- */

/* The sample with every key, of which some belong to modules. */
static struct config *load_sample(const char *text)
{
    static const struct {
        const char *module;
        struct ng_option option;
    } more[] = {
        {"file_editor", {.name = "max_file_size", .type = NG_OPTION_SIZE}},
        {"notebook", {.name = "max_size", .type = NG_OPTION_SIZE}},
        {"sqlite", {.name = "memory", .type = NG_OPTION_BOOL}},
    };
    struct config *config = NULL;
    struct config_input input = {.file = FILE_NAME};
    struct buf error;
    buf_init(&error, 4096);
    write_file(FILE_NAME, text, strlen(text));
    int rc = config_load(&input, &config, &error);
    for (size_t i = 0; i < NG_COUNT(more) && rc == NG_OK; i++) {
        rc = config_declare(config, more[i].module, &more[i].option, 1, sizeof(more[i].option),
                            &error);
    }
    if (rc == NG_OK) {
        rc = config_finish(config, &error);
    }
    assert_string_equal(buf_cstr(&error), "");
    assert_int_equal(rc, NG_OK);
    buf_done(&error);
    return config;
}

/* The sample: as it is it says nothing; with its keys uncommented it names each, and loads. */
static void test_sample(void **state)
{
    (void)state;
    char line[1024];
    struct buf text;
    struct buf uncommented;
    FILE *file = fopen(NOTEGATE_SOURCE "/packaging/notegate.yaml", "r");
    assert_non_null(file);
    buf_init(&text, 1 << 20);
    buf_init(&uncommented, 1 << 20);
    /* The modules' keys come last; tests/e2e/package/test_readme.py has those too. */
    while (fgets(line, sizeof(line), file) != NULL &&
           strstr(line, "---- tools and backends ----") == NULL) {
        bool key = line[0] == '#' && (strncmp(line, "#  ", 3) == 0 || line[1] != ' ');
        (void)buf_add_c(&text, line);
        (void)buf_add_c(&uncommented, key ? line + 1 : line);
    }
    assert_int_equal(fclose(file), 0);
    struct config *config = must_load(&(struct given){.file = buf_cstr(&text)});
    for (size_t i = 0; i < gateway_option_count; i++) {
        assert_false(config_is_set(config, gateway_options[i].name));
    }
    config_free(config);
    config = load_sample(buf_cstr(&uncommented));
    for (size_t i = 0; i < gateway_option_count; i++) {
        const struct ng_option *option = &gateway_options[i];
        assert_true(config_is_set(config, option->name));
        const struct ng_str *items = NULL;
        if (option->type == NG_OPTION_LIST) {
            assert_true(config_list(config, option->name, &items) > 0);
        } else if (option->fallback != NULL) {
            expect(config, option->name, option->fallback);
        }
    }
    config_free(config);
    buf_done(&uncommented);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_durations),
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_data_dir),
        cmocka_unit_test(test_file),       cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_usual_file), cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_plugins),    cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
