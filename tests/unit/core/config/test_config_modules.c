/* SPDX-License-Identifier: MIT */
/* test_config_modules.c - the options that modules declare: their values, secrets, and
 * undeclared keys. */
#include "test_config_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/call/gateway.h"
#include "core/config/gateway_options.h"

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
        declare(config, "limits", &option,
                "a module cannot be called `limits`: `limits.body` is a key of the "
                "gateway's own configuration"),
        NG_EINVAL);
    option.name = "Body";
    assert_int_equal(declare(config, "mod", &option,
                             "module mod declares a key with an invalid name: `Body`"),
                     NG_EINVAL);
    option.name = NULL;
    assert_int_equal(
        declare(config, "mod", &option, "module mod declares a key with an invalid name: ``"),
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

/* As JSON: equal values are equal texts, and neither ${...} nor a URI shows a secret. */
static void test_print(void **state)
{
    (void)state;
    const char *const variables[] = {"PASS=hunter2", NULL};
    struct config *config = must_load(&(struct given){
        "mod.uri: x://hunter2@y\nlimits.body: 2048KiB\nallowed_hosts: [\"${PASS}\", \"b,c\"]\n"
        "allowed_origins: \"a,${PASS}\"\ntls.key: https://hunter2:hunter2@host/a@b\n"
        "timezone: ${PASS}\nlog.access: yes\n",
        variables, NULL});
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(config_print(config, NULL, NULL, &out), NG_OK);
    const char *text = buf_cstr(&out);
    assert_null(strstr(text, "hunter2"));
    static const char *const rows[] = {
        "{\"key\":\"mod.uri\",\"value\":\"***\",\"default\":null,\"source\":\"file\","
        "\"reloadable\":false,\"help\":\"Where the server is.\"}",
        "{\"key\":\"limits.body\",\"value\":\"2MiB\",\"default\":\"4MiB\",\"source\":\"file\",",
        "{\"key\":\"limits.call_timeout\",\"value\":\"2min\",\"default\":\"2min\",",
        "{\"key\":\"allowed_hosts\",\"value\":\"${PASS}, b,c\",\"default\":null,",
        "{\"key\":\"allowed_origins\",\"value\":\"a,${PASS}\",",
        "{\"key\":\"tls.key\",\"value\":\"https://***@b\",",
        "{\"key\":\"timezone\",\"value\":\"${PASS}\",",
        "{\"key\":\"log.access\",\"value\":\"true\",\"default\":\"false\",",
        "{\"key\":\"user\",\"value\":null,\"default\":null,\"source\":\"default\",",
    };
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        assert_non_null(strstr(text, rows[i]));
    }
    buf_done(&out);
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declare),    cmocka_unit_test(test_old_options),
        cmocka_unit_test(test_undeclared), cmocka_unit_test(test_view),
        cmocka_unit_test(test_early),      cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
