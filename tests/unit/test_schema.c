/* SPDX-License-Identifier: MIT */
/* test_schema.c - JSON Schema: the draft's own test suite, what is refused, and what is said
 * about a violation. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "arena.h"
#include "schema.h"
#include "str.h"

#define SUITE NOTEGATE_SHARED_DATA "/json-schema-test-suite/tests/draft2020-12"
#define SKIPPED 77
#define FILE_BYTES_MAX ((size_t)4 * 1024 * 1024)

/* ---- the suite ---- */

struct tally {
    unsigned files, groups, refused, tests, wrong;
};

static void read_file(const char *path, struct buf *buf)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    buf_init(buf, FILE_BYTES_MAX);
    for (;;) {
        char *to = buf_reserve(buf, 4096);
        assert_non_null(to);
        size_t len = fread(to, 1, 4096, file);
        buf->len += len;
        if (len == 0) {
            break;
        }
    }
    assert_int_equal(0, fclose(file));
}

static bool has_keyword(const struct ng_value *value, const char *keyword, const char *part)
{
    if (str_is(value->key, keyword)) {
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)value->text.len, value->text.data);
        if (part == NULL || strstr(text, part) != NULL) {
            return true;
        }
    }
    for (const struct ng_value *child = value->first; child != NULL; child = child->next) {
        if (has_keyword(child, keyword, part)) {
            return true;
        }
    }
    return false;
}

/* Refused, and for one of the reasons that schema.h names. */
static void check_refused(const char *name, const struct ng_value *group, const char *error,
                          struct tally *tally)
{
    const struct ng_value *schema = json_get(group, "schema");
    bool known = false;
    known = known || (strstr(error, "\"$dynamicRef\"") != NULL &&
                      has_keyword(schema, "$dynamicRef", NULL));
    known = known || (strstr(error, "\"$vocabulary\"") != NULL &&
                      has_keyword(schema, "$vocabulary", NULL));
    known = known ||
            (strstr(error, "\"$schema\"") != NULL && has_keyword(schema, "$schema", "localhost"));
    known = known || (strstr(error, "\"$ref\"") != NULL && strstr(error, "remote") != NULL &&
                      (has_keyword(schema, "$ref", "http") || !str_is(schema->key, "")) &&
                      has_keyword(schema, "$ref", NULL));
    if (!known) {
        struct ng_str title = json_get(group, "description")->text;
        print_error("%s: %.*s: %s\n", name, (int)title.len, title.data, error);
        tally->wrong++;
    }
    tally->refused++;
}

static void run_group(const char *name, const struct ng_value *group,
                      const struct schema *schema, struct tally *tally)
{
    struct arena arena;
    struct violations violations;
    arena_init(&arena, 0);
    for (const struct ng_value *test = json_get(group, "tests")->first; test != NULL;
         test = test->next) {
        bool valid = json_get(test, "valid")->type == NG_TYPE_TRUE;
        int rc = schema_check(schema, json_get(test, "data"), &arena, &violations);
        tally->tests++;
        if (rc != (valid ? NG_OK : NG_EINVAL) || (rc == NG_OK) != (violations.count == 0)) {
            struct ng_str title = json_get(group, "description")->text;
            struct ng_str what = json_get(test, "description")->text;
            print_error("%s: %.*s: %.*s: rc %d, %zu violations\n", name, (int)title.len,
                        title.data, (int)what.len, what.data, rc, violations.count);
            tally->wrong++;
        }
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void run_file(const char *name, struct tally *tally)
{
    char path[1024];
    char error[400];
    struct buf text;
    struct arena arena;
    const struct ng_value *groups = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", SUITE, name);
    read_file(path, &text);
    arena_init(&arena, 0);
    assert_int_equal(NG_OK, json_parse(&arena, buf_str(&text), 128, &groups, NULL));
    tally->files++;
    for (const struct ng_value *group = groups->first; group != NULL; group = group->next) {
        struct schema *schema = NULL;
        struct buf printed;
        buf_init(&printed, FILE_BYTES_MAX);
        assert_int_equal(NG_OK, json_print(&printed, json_get(group, "schema")));
        int rc = schema_compile(buf_str(&printed), &schema, error, sizeof(error));
        tally->groups++;
        if (rc == NG_OK) {
            run_group(name, group, schema, tally);
        } else {
            assert_int_equal(NG_EINVAL, rc);
            check_refused(name, group, error, tally);
        }
        schema_free(schema);
        buf_done(&printed);
    }
    arena_done(&arena);
    buf_done(&text);
}

static void test_suite(void **state)
{
    (void)state;
    struct tally tally = {0, 0, 0, 0, 0};
    DIR *folder = opendir(SUITE);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strstr(entry->d_name, ".json") != NULL) {
            run_file(entry->d_name, &tally);
        }
    }
    (void)closedir(folder);
    print_message("%u files, %u groups (%u refused by name), %u tests, %u wrong\n", tally.files,
                  tally.groups, tally.refused, tally.tests, tally.wrong);
    assert_int_equal(0, tally.wrong);
    assert_true(tally.files >= 40 && tally.tests >= 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suite),
    };
    DIR *folder = opendir(SUITE);
    if (folder == NULL) {
        print_message("skipped: %s is not there\n", SUITE);
        return SKIPPED;
    }
    (void)closedir(folder);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
