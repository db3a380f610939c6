/* SPDX-License-Identifier: MIT */
/* test_config.c - every source of the configuration, what wins, and every sentence it refuses
 * with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "config.h"
#include "gateway.h"
#include "str.h"

#define FILE_NAME "test_config.yaml"

static const struct ng_option module_options[] = {
    {.name = "uri", .secret = true, .env = "MONGODB_URL", .help = "Where the server is."},
    {.name = "timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "5s",
     .min = 100,
     .max = 60000,
     .help = "Longest wait."},
    {.name = "max", .type = NG_OPTION_SIZE, .fallback = "1MiB"},
    {.name = "count", .type = NG_OPTION_INT, .fallback = "-2", .min = -5, .max = 5},
    {.name = "ratio", .type = NG_OPTION_NUMBER, .fallback = "0.5"},
    {.name = "on", .type = NG_OPTION_BOOL},
    {.name = "names", .type = NG_OPTION_LIST, .fallback = "a,b"},
    {.name = "kind", .choices = "big small", .fallback = "big"},
    {.name = "any", .type = NG_OPTION_INT},
};

/* The folder of this test, left and removed at its end. */
static char folder[] = "/tmp/notegate-config-XXXXXX";

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(FILE_NAME);
    (void)unlink("notegate.yaml");
    (void)unlink("secret");
    assert_int_equal(chdir("/"), 0);
    return rmdir(folder);
}

static void write_file(const char *name, const char *text, size_t len)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* What a test is configured with; sets and variables end in NULL. */
struct given {
    const char *file; /* its text, or NULL */
    const char *const *environ;
    const char *const *sets;
};

static int load(const struct given *given, struct config **ret, struct buf *error)
{
    struct config_input input = {.no_file = given->file == NULL, .file = FILE_NAME};
    if (given->file != NULL) {
        write_file(FILE_NAME, given->file, strlen(given->file));
    }
    /* config_load() takes what main() has, and changes none of it. */
    memcpy(&input.environ, &given->environ, sizeof(input.environ));
    input.sets = given->sets;
    while (given->sets != NULL && given->sets[input.set_count] != NULL) {
        input.set_count++;
    }
    int rc = config_load(&input, ret, error);
    if (rc == NG_OK) {
        rc = config_declare(*ret, "mod", module_options, NG_COUNT(module_options),
                            sizeof(module_options[0]), error);
        rc = rc == NG_OK ? config_finish(*ret, error) : rc;
        if (rc != NG_OK) {
            config_free(*ret);
        }
    }
    return rc;
}

static struct config *must_load(const struct given *given)
{
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    int rc = load(given, &config, &error);
    if (rc != NG_OK) {
        print_error("%s\n", buf_cstr(&error));
    }
    assert_int_equal(rc, NG_OK);
    assert_int_equal(error.len, 0);
    buf_done(&error);
    return config;
}

static void refused(const struct given *given, const char *message)
{
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    int rc = load(given, &config, &error);
    assert_string_equal(buf_cstr(&error), message);
    assert_int_equal(rc, NG_EINVAL);
    buf_done(&error);
}

static void refused_file(const char *file, const char *message)
{
    refused(&(struct given){.file = file}, message);
}

static void refused_set(const char *set, const char *message)
{
    refused(&(struct given){.sets = (const char *const[]){set, NULL}}, message);
}

static void refused_variable(const char *variable, const char *message)
{
    refused(&(struct given){.environ = (const char *const[]){variable, NULL}}, message);
}

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
    expect(config, "timezone", "UTC");
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
    expect(config, "timezone", "UTC");
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

static void test_usual_file(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct buf error;
    struct config_input input = {0};
    buf_init(&error, 4096);
    write_file("notegate.yaml", "timezone: X\n", 12);
    assert_int_equal(config_load(&input, &config, &error), NG_OK);
    expect(config, "timezone", "X");
    assert_string_equal(config_file(config), "notegate.yaml");
    config_free(config);
    assert_int_equal(unlink("notegate.yaml"), 0);
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

/* ---- what is refused ---- */

static void test_unknown(void **state)
{
    (void)state;
    refused_file("limits:\n  bdy: 1\n",
                 FILE_NAME ":2: unknown key `limits.bdy`; the nearest is `limits.body`");
    refused_file("\nbody: 1\n",
                 FILE_NAME ":2: unknown key `body`; the nearest is `limits.body`");
    refused_file("lisen: x\n", FILE_NAME ":1: unknown key `lisen`; the nearest is `listen`");
    refused_file("mod.tmeout: 1s\n",
                 FILE_NAME ":1: unknown key `mod.tmeout`; the nearest is `mod.timeout`");
    refused_file("completely_else: x\n",
                 FILE_NAME ":1: unknown key `completely_else`; `notegate check --help-config` "
                           "lists all");
    refused_file("listen: {a: b}\n",
                 FILE_NAME ":1: unknown key `listen.a`; the nearest is `listen`");
    refused_file("nothing:\n", FILE_NAME ":1: unknown key `nothing`; `notegate check "
                                         "--help-config` lists all");
    refused_set("limits.bodi=1", "flag limits.bodi: unknown key `limits.bodi`; the nearest is "
                                 "`limits.body`");
    refused_variable(
        "NOTEGATE_LIMITS_BODI=1",
        "environment NOTEGATE_LIMITS_BODI: unknown key `NOTEGATE_LIMITS_BODI`; the "
        "nearest is `NOTEGATE_LIMITS_BODY`");
    refused_variable("NOTEGATE_=1", "environment NOTEGATE_: unknown key `NOTEGATE_`; "
                                    "`notegate check --help-config` lists all");
    refused_set("timezone", "flag timezone: write it as key=value");
    refused_set("=x", "flag =x: write it as key=value");
}

static void test_bad_values(void **state)
{
    (void)state;
    refused_file("limits.body: big\n",
                 FILE_NAME ":1: `limits.body` is `big`, not a size: write it as 4MiB, 4MB or "
                           "4096");
    refused_variable(
        "NOTEGATE_LIMITS_BODY=-1",
        "environment NOTEGATE_LIMITS_BODY: `limits.body` is `-1`, not a size: write "
        "it as 4MiB, 4MB or 4096");
    refused_set("history.keep=3", "flag history.keep: `history.keep` is `3`, not a duration: "
                                  "write it as 500ms, 30s, 5min, 1h or 30d");
    refused_set("limits.depth=1.5",
                "flag limits.depth: `limits.depth` is `1.5`, not a whole number");
    refused_set("limits.depth=0",
                "flag limits.depth: `limits.depth` is `0`, it must be from 1 to 1000");
    refused_set("limits.body=1GiB",
                "flag limits.body: `limits.body` is `1GiB`, it must be from 1 to 128MiB");
    refused_set("mod.timeout=99ms",
                "flag mod.timeout: `mod.timeout` is `99ms`, it must be from 100ms to 1min");
    refused_set("mod.any=-1", "flag mod.any: `mod.any` is `-1`, it must not be negative");
    refused_set("mod.ratio=nan", "flag mod.ratio: `mod.ratio` is `nan`, not a number");
    refused_set("mod.ratio=1e999", "flag mod.ratio: `mod.ratio` is `1e999`, not a number");
    refused_set("mod.ratio=1-", "flag mod.ratio: `mod.ratio` is `1-`, not a number");
    refused_set("mod.on=maybe", "flag mod.on: `mod.on` is `maybe`, neither true nor false");
    refused_set("auth=maybe", "flag auth: `auth` is `maybe`, it must be one of: auto on off");
    refused_set("mod.kind=", "flag mod.kind: `mod.kind` is ``, it must be one of: big small");
    refused_set("roots=a,,b", "flag roots: `roots` is `a,,b`, a list with an empty element, or "
                              "with too many: write it as a,b,c");
    refused_file("roots: [a, '']\n",
                 FILE_NAME ":1: `roots` is a list with an empty element, or with too many: "
                           "write it as a,b,c");
    refused_file("listen: [a]\n", FILE_NAME ":1: `listen` takes one value (text), not a list");
    /* A value that a stronger one replaces is still looked at. */
    refused(
        &(struct given){.file = "auth: x\n", .sets = (const char *const[]){"auth=on", NULL}},
        FILE_NAME ":1: `auth` is `x`, it must be one of: auto on off");
    refused_set(
        "auth=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "flag auth: `auth` is `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaa...`, it must be one of: auto on off");
}

static void test_bad_files(void **state)
{
    (void)state;
    refused_file("a: b: c\n", FILE_NAME ":1: not YAML: mapping values are not allowed in this "
                                        "context");
    refused_file(
        "auth: on\nlisten: [a\n", FILE_NAME
        ":3: not YAML: while parsing a flow sequence, did not find expected ',' or ']'");
    refused_file("listen: *none\n", FILE_NAME ":1: not YAML: found undefined alias");
    refused_file("listen: \"\xff\"\n",
                 FILE_NAME ": not YAML: invalid leading UTF-8 octet at byte 9");
    refused_file("- a\n- b\n",
                 FILE_NAME ":1: the file must hold keys, as in `listen: 127.0.0.1:8420`");
    refused_file("listen: a\n---\nlisten: b\n",
                 FILE_NAME ":3: a second document; the configuration is one");
    refused_file("auth: on\nlisten: a\n\nlisten: b\n",
                 FILE_NAME ":4: `listen` is here a second time; line 2 has it too");
    refused_file("limits:\n  body: 1\nlimits.body: 2\n",
                 FILE_NAME ":3: `limits.body` is here a second time; line 2 has it too");
    refused_file("limits:\n  body: 1\nlimits:\n  depth: 2\n",
                 FILE_NAME ":3: `limits` is here a second time; line 1 has it too");
    refused_file("? [a]\n: b\n", FILE_NAME ":1: a key must be plain text");
    refused_file("'': b\n", FILE_NAME ":1: a key is empty or holds a NUL");
    refused_file("listen: \"a\\0b\"\n", FILE_NAME ":1: the value holds a NUL");
    refused_file("roots: [[a]]\n", FILE_NAME ":1: the elements of a list are plain values");
    refused_file("a: &x {listen: b}\n<<: *x\n",
                 FILE_NAME ":2: `<<` (merging) is not read here: write the keys out");
    refused_file("a: &a\n  b: *a\n", FILE_NAME ":1: nested too deep");
    refused_file(
        "a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}}"
        "}}}}}}\n",
        FILE_NAME ":1: nested too deep");
}

static void test_bounds(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 4 * 1024 * 1024);
    for (int i = 0; i < 4097; i++) {
        (void)buf_printf(&text, "k%d: 1\n", i);
    }
    refused_file(buf_cstr(&text), FILE_NAME ":4097: more than 4096 values");
    /* Aliases of aliases: the work is bounded, not only the text. */
    buf_clear(&text);
    (void)buf_add_c(&text, "a0: &a0 {x: 1, y: 1}\n");
    for (int i = 1; i < 14; i++) {
        (void)buf_printf(&text, "a%d: &a%d {x: *a%d, y: *a%d}\n", i, i, i - 1, i - 1);
    }
    refused_file(buf_cstr(&text), FILE_NAME ":1: more than 4096 values");
    buf_clear(&text);
    while (text.len <= 1024 * 1024) {
        (void)buf_add_c(&text, "# a comment that is long\n");
    }
    refused_file(buf_cstr(&text), FILE_NAME ": the file is larger than 1048576 bytes");
    buf_clear(&text);
    for (int i = 0; i < 300; i++) {
        (void)buf_add_char(&text, 'k');
    }
    (void)buf_add_c(&text, ": 1\n");
    refused_file(buf_cstr(&text), FILE_NAME ":1: the key is too long");
    buf_clear(&text);
    (void)buf_add_c(&text, "roots=a");
    for (int i = 0; i < 4096; i++) {
        (void)buf_add_c(&text, ",a");
    }
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    const char *const sets[] = {buf_cstr(&text), NULL};
    assert_int_equal(load(&(struct given){.sets = sets}, &config, &error), NG_EINVAL);
    assert_non_null(strstr(buf_cstr(&error), "with too many"));
    buf_done(&error);
    buf_done(&text);
}

/* ---- modules ---- */

static int declare(struct config *config, const char *prefix, const struct ng_option *option,
                   const char *message)
{
    struct buf error;
    buf_init(&error, 4096);
    int rc = config_declare(config, prefix, option, 1, sizeof(*option), &error);
    assert_string_equal(buf_cstr(&error), message);
    buf_done(&error);
    return rc;
}

static void test_declare(void **state)
{
    (void)state;
    struct config *config = must_load(&(struct given){0});
    struct ng_option option = {.name = "timeout"};
    /* The same again is nothing new; the first stays. */
    assert_int_equal(declare(config, "mod", &option, ""), NG_OK);
    assert_int_equal(config_int(config, "mod.timeout"), 5000);
    option.name = "body";
    assert_int_equal(
        declare(config, "limits", &option, "the key `limits.body` is declared by two modules"),
        NG_EINVAL);
    option.name = "Body";
    assert_int_equal(declare(config, "mod", &option,
                             "module mod declares a key of a name that cannot be: `Body`"),
                     NG_EINVAL);
    option.name = NULL;
    assert_int_equal(declare(config, "mod", &option,
                             "module mod declares a key of a name that cannot be: ``"),
                     NG_EINVAL);
    option.name = "dir";
    assert_int_equal(declare(config, "data", &option,
                             "the keys `data_dir` and `data.dir` share the variable "
                             "NOTEGATE_DATA_DIR"),
                     NG_EINVAL);
    option = (struct ng_option){.name = "x", .type = NG_OPTION_INT, .fallback = "y"};
    assert_int_equal(declare(config, "mod", &option,
                             "`mod.x` is `y`, not a whole number (the default of the module "
                             "that declares it)"),
                     NG_EINVAL);
    config_free(config);
}

/* An option as an older header had it: name, type and default only. */
static void test_old_options(void **state)
{
    (void)state;
    struct {
        const char *name;
        enum ng_option_type type;
        const char *fallback;
    } old[] = {{"one", NG_OPTION_INT, "1"}, {"two", NG_OPTION_SIZE, "2KiB"}};
    struct config *config = must_load(&(struct given){0});
    struct buf error;
    struct ng_option options[2];
    buf_init(&error, 4096);
    /* Two of the small ones, packed: only what they have is read. */
    memset(options, 0xee, sizeof(options));
    memcpy(options, old, sizeof(old));
    assert_int_equal(config_declare(config, "old", options, 2, sizeof(old[0]), &error), NG_OK);
    assert_int_equal(config_int(config, "old.one"), 1);
    assert_int_equal(config_int(config, "old.two"), 2048);
    buf_done(&error);
    config_free(config);
}

static void test_undeclared(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct buf error;
    const char *const sets[] = {"other.key=7", NULL};
    const char *const variables[] = {"NOTEGATE_THIRD_ONE_KEY=1", NULL};
    struct config_input input = {.no_file = true, .sets = sets, .set_count = 1};
    const char *const *list = variables;
    memcpy(&input.environ, &list, sizeof(input.environ));
    buf_init(&error, 4096);
    assert_int_equal(config_load(&input, &config, &error), NG_OK);
    assert_true(config_mentions(config, "other"));
    assert_true(config_mentions(config, "third_one"));
    assert_false(config_mentions(config, "oth"));
    assert_false(config_mentions(config, "limits"));
    const struct ng_option option = {.name = "key", .type = NG_OPTION_INT};
    assert_int_equal(config_declare(config, "other", &option, 1, sizeof(option), &error),
                     NG_OK);
    assert_false(config_mentions(config, "other"));
    assert_int_equal(config_int(config, "other.key"), 7);
    assert_int_equal(config_finish(config, &error), NG_EINVAL);
    buf_clear(&error);
    assert_int_equal(config_declare(config, "third_one", &option, 1, sizeof(option), &error),
                     NG_OK);
    assert_int_equal(config_finish(config, &error), NG_OK);
    buf_done(&error);
    config_free(config);
}

/* A slip in the gateway's own keys is told before a module is asked for anything. */
static void test_early(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"limits.bdy=1",
         "flag limits.bdy: unknown key `limits.bdy`; the nearest is `limits.body`"},
        {"lisen=1", "flag lisen: unknown key `lisen`; the nearest is `listen`"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct config *config = NULL;
        struct buf error;
        struct config_input input = {.no_file = true, .sets = &cases[i].set, .set_count = 1};
        buf_init(&error, 4096);
        assert_int_equal(config_load(&input, &config, &error), NG_EINVAL);
        assert_string_equal(buf_cstr(&error), cases[i].message);
        buf_done(&error);
    }
}

static void test_view(void **state)
{
    (void)state;
    const char *const sets[] = {"mod.names=x", "timezone=Z", "mod.on=1", NULL};
    struct config *config = must_load(&(struct given){.sets = sets});
    struct ng_conf *conf = config_view(config, "mod");
    const struct ng_str *items;
    assert_non_null(conf);
    assert_string_equal(config_view_text(conf, "timezone").data, "Z");
    assert_int_equal(config_view_int(conf, "timeout"), 5000);
    assert_true(config_view_number(conf, "ratio") == 0.5);
    assert_true(config_view_bool(conf, "on"));
    assert_int_equal(config_view_list(conf, "names", &items), 1);
    assert_string_equal(items[0].data, "x");
    /* Not another module's, and nothing for what is not there. */
    struct ng_conf *other = config_view(config, "other");
    assert_non_null(other);
    assert_null(config_view_text(other, "mod.kind").data);
    assert_int_equal(config_view_int(other, "timeout"), 0);
    assert_false(config_view_bool(other, "nothing"));
    assert_int_equal(config_view_list(other, "names", &items), 0);
    assert_null(items);
    assert_string_equal(config_view_text(other, "timezone").data, "Z");
    config_free(config);
}

static void test_secrets(void **state)
{
    (void)state;
    const char *const variables[] = {"PASS=hunter2", NULL};
    struct config *config = must_load(&(struct given){
        "mod.uri: x://hunter2@y\ntimezone: ${PASS}\nlimits.body: 2MiB\n", variables, NULL});
    struct buf help;
    buf_init(&help, 1 << 20);
    assert_int_equal(config_help(config, &help), NG_OK);
    const char *text = buf_cstr(&help);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text,
                           "mod.uri = ***   (" FILE_NAME ":1)\n    Where the server is.\n"
                           "    Type: text. Default: none. Environment: NOTEGATE_MOD_URI or "
                           "MONGODB_URL.\n"));
    assert_non_null(strstr(text, "timezone = ${PASS}   (" FILE_NAME ":2)\n"));
    assert_non_null(strstr(text,
                           "limits.body = 2MiB   (" FILE_NAME ":3)\n    Largest body of a "
                           "request.\n    Type: size from 1 to 128MiB. Default: 4MiB. "
                           "Environment: NOTEGATE_LIMITS_BODY.\n"));
    assert_non_null(strstr(text, "auth = auto\n"));
    assert_non_null(strstr(text, "one of: auto on off"));
    assert_non_null(strstr(text, "mod.names = a, b\n"));
    for (size_t i = 0; i < gateway_option_count; i++) {
        char line[100];
        (void)snprintf(line, sizeof(line), "%s = ", gateway_options[i].name);
        assert_non_null(strstr(text, line));
        assert_non_null(gateway_options[i].help);
    }
    buf_done(&help);
    config_free(config);
    /* Nor do errors show one. */
    static const struct ng_option secret = {
        .name = "pin", .type = NG_OPTION_INT, .secret = true};
    struct buf error;
    const char *const sets[] = {"s.pin=hunter2", NULL};
    struct config_input input = {.no_file = true, .sets = sets, .set_count = 1};
    buf_init(&error, 4096);
    assert_int_equal(config_load(&input, &config, &error), NG_OK);
    assert_int_equal(config_declare(config, "s", &secret, 1, sizeof(secret), &error),
                     NG_EINVAL);
    assert_string_equal(buf_cstr(&error), "flag s.pin: `s.pin` is not a whole number");
    buf_done(&error);
    config_free(config);
}

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
    /* The modules' keys come last; tests/e2e/test_readme.py has those too. */
    while (fgets(line, sizeof(line), file) != NULL &&
           strstr(line, "tools and storage") == NULL) {
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
        if (option->fallback != NULL) {
            expect(config, option->name, option->fallback);
        }
    }
    config_free(config);
    buf_done(&uncommented);
    buf_done(&text);
}

/* Whatever allocation fails: an error, no leak, no crash. */
static void test_no_memory(void **state)
{
    (void)state;
    const char *const variables[] = {"NOTEGATE_AUTH=on", "X=y", NULL};
    const char *const sets[] = {"plugins=a,+b", "plugins=c", NULL};
    const struct given given = {"timezone: ${X}\nroots: [a]\n", variables, sets};
    int failed = 0;
    int rc = NG_EINVAL;
    for (long i = 0; rc != NG_OK; i++) {
        struct config *config = NULL;
        struct buf error;
        buf_init(&error, 4096);
        (void)buf_reserve(&error, 2048);
        write_file(FILE_NAME, given.file, strlen(given.file));
        alloc_fail_after(i);
        rc = load(&given, &config, &error);
        alloc_fail_after(-1);
        buf_done(&error);
        if (rc == NG_OK) {
            config_free(config);
        }
        failed++;
        assert_true(failed < 10000);
    }
    assert_true(failed > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_durations),
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_data_dir),
        cmocka_unit_test(test_file),       cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_usual_file), cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_plugins),    cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_unknown),    cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_declare),    cmocka_unit_test(test_old_options),
        cmocka_unit_test(test_undeclared), cmocka_unit_test(test_view),
        cmocka_unit_test(test_early),      cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_sample),     cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
