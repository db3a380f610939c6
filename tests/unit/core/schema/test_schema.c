/* SPDX-License-Identifier: MIT */
/* test_schema.c - JSON Schema: the draft's own test suite, what is refused, and what is said
 * about a violation. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/schema/schema.h"

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

/* "$ref" ... to "REF" is remote: REF is there, and no schema inside goes by its name. */
static bool is_remote_ref(const char *error, const struct ng_value *schema)
{
    char buffer[256] = "/";
    char *ref = buffer + 1;
    const char *to = strstr(error, " to \"");
    if (strncmp(error, "\"$ref\" at #", 11) != 0 || to == NULL ||
        strstr(error, "\" is remote") == NULL || sscanf(to, " to \"%254[^\"]\"", ref) != 1 ||
        ref[0] == '#' || !has_keyword(schema, "$ref", ref)) {
        return false;
    }
    ref[strcspn(ref, "#")] = '\0';
    const char *slash = strrchr(ref, '/');
    return !has_keyword(schema, "$id", slash == NULL ? buffer : slash);
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
    known = known || (strstr(error, "\"$schema\"") != NULL &&
                      has_keyword(schema, "$schema", "localhost"));
    known = known || is_remote_ref(error, schema);
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

/* ---- what is said ---- */

struct said {
    const char *schema;
    const char *value;
    const char *path; /* NULL: valid */
    const char *expected;
    const char *got;
    const char *keyword;
};

static struct schema *compile(const char *text)
{
    struct schema *schema = NULL;
    char error[400];
    int rc = schema_compile(ng_str_of(text), &schema, error, sizeof(error));
    if (rc != NG_OK) {
        print_error("%s: %s\n", text, error);
    }
    assert_int_equal(NG_OK, rc);
    return schema;
}

static void assert_text(const char *expected, struct ng_str text, const struct said *said)
{
    if (!str_is(text, expected)) {
        print_error("%s with %s: \"%.*s\" instead of \"%s\"\n", said->schema, said->value,
                    (int)text.len, text.data, expected);
        fail();
    }
}

static void check_said(const struct said *said)
{
    struct arena arena;
    struct violations violations;
    const struct ng_value *value = NULL;
    struct schema *schema = compile(said->schema);
    arena_init(&arena, 0);
    assert_int_equal(NG_OK, json_parse(&arena, ng_str_of(said->value), 128, &value, NULL));
    int rc = schema_check(schema, value, &arena, &violations);
    if (said->path == NULL) {
        assert_int_equal(NG_OK, rc);
        assert_int_equal(0, violations.count);
    } else {
        assert_int_equal(NG_EINVAL, rc);
        assert_text(said->path, violations.items[0].path, said);
        assert_text(said->expected, violations.items[0].expected, said);
        assert_text(said->got, violations.items[0].got, said);
        assert_text(said->keyword, violations.items[0].keyword, said);
        assert_int_equal(1, violations.count);
    }
    arena_done(&arena);
    schema_free(schema);
}

#define RANGE                                                                                  \
    "{\"properties\":{\"readRange\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}}"
#define CLOSED                                                                                 \
    "{\"properties\":{\"path\":{\"type\":\"string\"}},\"required\":[\"path\"],"                \
    "\"additionalProperties\":false}"

/* Message of each failure; NULLs: the value fits. */
static const struct said messages[] = {
    {RANGE, "{\"readRange\":[\"x\"]}", "/readRange/0", "an integer", "a string \"x\"", "type"},
    {RANGE, "{\"readRange\":[1,1.5]}", "/readRange/1", "an integer", "the number 1.5", "type"},
    {CLOSED, "{\"path\":\"a\",\"foo\":1}", "/foo", "no member \"foo\"", "the number 1",
     "additionalProperties"},
    {CLOSED, "{\"path\":\"a\",\"paht\":1}", "/paht",
     "no member \"paht\" (the nearest is \"path\")", "the number 1", "additionalProperties"},
    {CLOSED, "{}", "/path", "a string", "nothing", "required"},
    {"{\"required\":[\"a/~b\"]}", "{}", "/a~1~0b", "a value", "nothing", "required"},
    {"{\"required\":[\"m\"],\"properties\":{\"m\":{\"enum\":[\"r\",\"w\"]}}}", "{}", "/m",
     "one of \"r\", \"w\"", "nothing", "required"},
    {"{\"enum\":[\"create\",\"list\"]}", "\"x\"", "", "one of \"create\", \"list\"",
     "a string \"x\"", "enum"},
    {"{\"const\":{\"a\":1}}", "null", "", "exactly {\"a\":1}", "null", "const"},
    {"{\"type\":[\"string\",\"null\"]}", "[]", "", "a string or null", "an array of 0 items",
     "type"},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "{}", "",
     "a string or an integer", "an object of 0 members", "anyOf"},
    {"{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"}},{\"type\":"
     "\"null\"}]}",
     "[1]", "/0", "a string", "the number 1", "type"},
    {"{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "{}", "",
     "one of the allowed forms", "an object of 0 members", "oneOf"},
    {"{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "{\"a\":1,\"b\":1}", "",
     "exactly one of the allowed forms", "a value that fits 2 of them", "oneOf"},
    {"{\"oneOf\":[{\"const\":\"a\"},{\"const\":2}]}", "true", "", "one of \"a\", 2", "true",
     "oneOf"},
    {"{\"minimum\":1}", "0", "", "at least 1", "the number 0", "minimum"},
    {"{\"exclusiveMaximum\":1}", "1.0", "", "less than 1", "the number 1.0",
     "exclusiveMaximum"},
    {"{\"multipleOf\":0.01}", "0.075", "", "a multiple of 0.01", "the number 0.075",
     "multipleOf"},
    {"{\"minLength\":1}", "\"\"", "", "a string of at least 1 character",
     "a string of 0 characters", "minLength"},
    {"{\"maxItems\":2}", "[1,2,3]", "", "an array of at most 2 items", "an array of 3 items",
     "maxItems"},
    {"{\"minProperties\":2}", "{\"a\":1}", "", "an object of at least 2 members",
     "an object of 1 member", "minProperties"},
    {"{\"uniqueItems\":true}", "[1,2,1.0]", "", "items that all differ",
     "equal items at 0 and 2", "uniqueItems"},
    {"{\"pattern\":\"^a+$\"}", "\"b\"", "", "a string that matches the pattern ^a+$",
     "a string \"b\"", "pattern"},
    {"{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "/ab",
     "a string of at most 1 character", "the name \"ab\"", "maxLength"},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "/b",
     "a value, since there is \"a\"", "nothing", "dependentRequired"},
    {"{\"prefixItems\":[{}],\"items\":false}", "[1,2]", "/1", "no item here", "the number 2",
     "items"},
    {"{\"contains\":{\"type\":\"null\"}}", "[1]", "",
     "at least 1 item of the kind that is looked for", "0", "contains"},
    {"{\"not\":{\"type\":\"null\"}}", "null", "", "anything but the form that is ruled out",
     "null", "not"},
    {"false", "1", "", "no value at all", "the number 1", "false"},
    {"{\"properties\":{\"a\":{}},\"unevaluatedProperties\":false}",
     "{\"a\":1,\"b\":\"\\u0000\"}", "/b", "no member \"b\"", "a string \"\\u0000\"",
     "unevaluatedProperties"},
    {"{\"$ref\":\"#\"}", "1", "", "a schema that does not refer to itself",
     "a schema that goes on without end", "$ref"},
    {"{\"not\":{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}}", "1", "",
     "a schema that does not refer to itself", "a schema that goes on without end", "$ref"},
    {"{\"maxLength\":1e400}", "\"a\"", NULL, NULL, NULL, NULL},
    {"{\"multipleOf\":0.0001}", "0.0075", NULL, NULL, NULL, NULL},
    {"{\"multipleOf\":1e-9}", "123456789012345678901234567890.000000001", NULL, NULL, NULL,
     NULL},
    {"{\"multipleOf\":7}", "49000000000000000000000000000000000000000000000000000", NULL, NULL,
     NULL, NULL},
    {"{\"if\":{\"properties\":{\"m\":{\"const\":\"w\"}}},\"then\":{\"required\":[\"p\"]}}",
     "{\"m\":\"w\"}", "/p", "a value", "nothing", "required"},
};

static void test_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < NG_COUNT(messages); i++) {
        check_said(&messages[i]);
    }
}

static void test_order_and_bound(void **state)
{
    (void)state;
    struct arena arena;
    struct violations violations;
    const struct ng_value *value = NULL;
    struct buf text;
    struct schema *schema =
        compile("{\"properties\":{\"b\":{\"type\":\"null\"},\"a\":{\"type\":\"null\"}},"
                "\"required\":[\"c\"],\"additionalProperties\":{\"type\":\"null\"}}");
    arena_init(&arena, 0);
    assert_int_equal(
        NG_OK, json_parse(&arena, ng_str_of("{\"z\":1,\"a\":1,\"b\":1}"), 128, &value, NULL));
    assert_int_equal(NG_EINVAL, schema_check(schema, value, &arena, &violations));
    assert_int_equal(4, violations.count);
    assert_true(str_is(violations.items[0].path, "/b"));
    assert_true(str_is(violations.items[1].path, "/a"));
    assert_true(str_is(violations.items[2].path, "/c"));
    assert_true(str_is(violations.items[3].path, "/z"));

    buf_init(&text, FILE_BYTES_MAX);
    buf_add_char(&text, '{');
    for (int i = 0; i < 1000; i++) {
        buf_printf(&text, "%s\"n%d\":1", i == 0 ? "" : ",", i);
    }
    buf_add_char(&text, '}');
    assert_int_equal(NG_OK, json_parse(&arena, buf_str(&text), 128, &value, NULL));
    assert_int_equal(NG_EINVAL, schema_check(schema, value, &arena, &violations));
    assert_int_equal(SCHEMA_VIOLATIONS_MAX, violations.count);
    buf_done(&text);
    arena_done(&arena);
    schema_free(schema);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"{", "the schema is not JSON"},
        {"[]", "must be an object, true or false"},
        {"{\"properties\":{\"a\":{\"$dynamicRef\":\"#x\"}}}",
         "\"$dynamicRef\" at #/properties/a is not supported"},
        {"{\"$vocabulary\":{}}", "\"$vocabulary\" at # is not supported"},
        {"{\"items\":{\"$ref\":\"https://example.com/a.json\"}}",
         "\"$ref\" at #/items to \"https://example.com/a.json\" is remote"},
        {"{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}", "is remote"},
        {"{\"$ref\":\"#/$defs/none\"}", "leads nowhere"},
        {"{\"$ref\":\"#none\"}", "leads nowhere"},
        {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}",
         "\"$schema\" at # must be"},
        {"{\"type\":\"float\"}", "\"type\" at # must be null, boolean"},
        {"{\"type\":[]}", "at least one type"},
        {"{\"minLength\":-1}", "\"minLength\" at # must be a whole number"},
        {"{\"minItems\":1.5}", "must be a whole number"},
        {"{\"multipleOf\":0}", "must be more than 0"},
        {"{\"maximum\":\"1\"}", "must be a number"},
        {"{\"required\":[1]}", "must be a list of names"},
        {"{\"properties\":[]}", "must be an object"},
        {"{\"allOf\":[]}", "at least one schema"},
        {"{\"not\":1}", "must be an object, true or false"},
        {"{\"enum\":1}", "must be a list"},
        {"{\"uniqueItems\":1}", "must be true or false"},
        {"{\"$id\":\"a#b\"}", "without a fragment"},
        {"{\"pattern\":\"(\"}", "is not a regular expression"},
        {"{\"pattern\":\"\\\\a\"}", "an escape that ECMA-262 does not know"},
        {"{\"pattern\":\"(*UTF)a\"}", "nothing to repeat"},
        {"{\"pattern\":\"(?i)a\"}", "a group that ECMA-262 does not know"},
        {"{\"pattern\":\"a++\"}", "nothing to repeat"},
        {"{\"patternProperties\":{\"[\":true}}", "is not a regular expression"},
    };
    for (size_t i = 0; i < NG_COUNT(refused); i++) {
        struct schema *schema = NULL;
        char error[400] = "";
        assert_int_equal(
            NG_EINVAL, schema_compile(ng_str_of(refused[i][0]), &schema, error, sizeof(error)));
        assert_null(schema);
        if (strstr(error, refused[i][1]) == NULL) {
            print_error("%s: %s\n", refused[i][0], error);
            fail();
        }
    }
}

/* ---- patterns ---- */

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern; /* as in JSON */
        const char *text;
        bool matches;
    } cases[] = {
        {"^a$", "a\\n", false},
        {"^\\\\d$", "7", true},
        {"^\\\\d$", "\\u0667", false},
        {"^\\\\w$", "\\u00e9", false},
        {"^\\\\s$", "\\u00a0", true},
        {"^[\\\\s]$", "\\ufeff", true},
        {"^[^\\\\S]$", "\\u2003", true},
        {"^\\\\S$", "\\u2003", false},
        {"^\\\\cA$", "\\u0001", true},
        {"^\\\\p{Letter}+$", "\\u00e9a", true},
        {"^\\\\p{L}$", "1", false},
        {"^\\\\P{Letter}$", "1", true},
        {"^\\\\p{Script=Greek}$", "\\u03b1", true},
        {"^\\\\p{gc=Uppercase_Letter}$", "A", true},
        {"^.$", "\\u2028", false},
        {"^.$", "\\ud83d\\ude00", true},
        {"^\\\\ud83d\\\\ude00$", "\\ud83d\\ude00", true},
        {"^\\\\u{1f600}$", "\\ud83d\\ude00", true},
        {"^\\\\u0041\\\\x42$", "AB", true},
        {"^[[:alpha:]]$", "a]", true},
        {"^[^]$", "\\n", true},
        {"^a{2}?$", "aa", true},
        {"(?<year>\\\\d{4})-\\\\k<year>", "2020-2020", true},
        {"^\\\\/$", "/", true},
        {"^\\\\.[\\\\]\\\\-]$", ".-", true},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char text[200];
        struct arena arena;
        struct violations violations;
        const struct ng_value *value = NULL;
        arena_init(&arena, 0);
        (void)snprintf(text, sizeof(text), "{\"pattern\":\"%s\"}", cases[i].pattern);
        struct schema *schema = compile(text);
        (void)snprintf(text, sizeof(text), "\"%s\"", cases[i].text);
        assert_int_equal(NG_OK, json_parse(&arena, ng_str_of(text), 128, &value, NULL));
        int rc = schema_check(schema, value, &arena, &violations);
        if (rc != (cases[i].matches ? NG_OK : NG_EINVAL)) {
            print_error("%s on %s: %d\n", cases[i].pattern, cases[i].text, rc);
            fail();
        }
        schema_free(schema);
        arena_done(&arena);
    }
}

static void check_pattern(const char *schema_text, struct ng_str text, int expected)
{
    struct arena arena;
    struct violations violations;
    struct ng_value value = {.type = NG_TYPE_STRING, .text = text};
    struct schema *schema = compile(schema_text);
    arena_init(&arena, 0);
    assert_int_equal(expected, schema_check(schema, &value, &arena, &violations));
    if (expected == NG_EINVAL) {
        assert_int_equal(1, violations.count);
        assert_true(str_is(violations.items[0].got, "a string that takes too many steps"));
    }
    arena_done(&arena);
    schema_free(schema);
}

static void test_slow_patterns(void **state)
{
    (void)state;
    enum { LONG = 1024 * 1024 };
    char *text = malloc(LONG);
    assert_non_null(text);
    memset(text, 'a', LONG);
    check_pattern("{\"pattern\":\"^(a+)+$\"}", ng_str_of("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
                  NG_EINVAL);
    /* Linear from each start, so quadratic in all: */
    check_pattern("{\"pattern\":\"[a-z]+[0-9]\"}", str_make(text, LONG), NG_EINVAL);
    check_pattern("{\"pattern\":\"^[a-z]+$\"}", str_make(text, LONG), NG_OK);
    check_pattern("{\"pattern\":\"a$\"}", str_make(text, LONG), NG_OK);
    free(text);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 500

static void *check_often(void *user)
{
    const struct schema *schema = user;
    struct arena arena;
    struct violations violations;
    size_t wrong = 0;
    arena_init(&arena, 0);
    for (int i = 0; i < ROUNDS; i++) {
        const struct ng_value *value = NULL;
        bool valid = i % 2 == 0;
        int rc =
            json_parse(&arena, ng_str_of(valid ? "{\"a\":\"x1\"}" : "{\"a\":\"1\",\"b\":2}"), 8,
                       &value, NULL);
        rc = rc == NG_OK ? schema_check(schema, value, &arena, &violations) : rc;
        wrong += rc != (valid ? NG_OK : NG_EINVAL) || violations.count != (valid ? 0 : 2);
        arena_reset(&arena);
    }
    arena_done(&arena);
    return wrong == 0 ? NULL : user;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct schema *schema = compile("{\"properties\":{\"a\":{\"pattern\":\"^x\\\\d$\"}},"
                                    "\"unevaluatedProperties\":false,\"maxProperties\":1}");
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_create(&threads[i], NULL, check_often, schema));
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(0, pthread_join(threads[i], &wrong));
        assert_null(wrong);
    }
    schema_free(schema);
}

/* ---- without memory ---- */

static void test_no_memory(void **state)
{
    (void)state;
    static const char text[] =
        "{\"$id\":\"http://example.com/a/b\",\"$defs\":{\"c\":{\"$id\":\"../c\",\"$anchor\":"
        "\"x\",\"pattern\":\"^\\\\p{Letter}$\"}},\"properties\":{\"a\":{\"$ref\":\"../c#x\"},"
        "\"b\":{\"anyOf\":[{\"enum\":[1,2]},{\"uniqueItems\":true}]}},"
        "\"unevaluatedProperties\":false}";
    static const char input[] = "{\"a\":\"1\",\"b\":[1,2,3,4,5,6,7,8,9,10,11,12,13,1],\"d\":1}";
    struct schema *schema = NULL;
    int rc = NG_EINTERNAL;
    for (long n = 0; rc != NG_OK; n++) {
        char error[400];
        assert_true(n < 10000);
        alloc_fail_after(n);
        rc = schema_compile((struct ng_str){text, sizeof(text) - 1}, &schema, error,
                            sizeof(error));
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
    }
    rc = NG_EINTERNAL;
    for (long n = 0; rc != NG_EINVAL; n++) {
        struct arena arena;
        struct violations violations;
        const struct ng_value *value = NULL;
        assert_true(n < 10000);
        arena_init(&arena, 0);
        assert_int_equal(NG_OK, json_parse(&arena, ng_str_of(input), 128, &value, NULL));
        arena.max = arena.used + (size_t)n * 16; /* small: also the arena runs out */
        alloc_fail_after(n);
        rc = schema_check(schema, value, &arena, &violations);
        alloc_fail_after(-1);
        assert_true(rc == NG_EINVAL || rc == NG_EINTERNAL);
        arena_done(&arena);
    }
    schema_free(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),      cmocka_unit_test(test_order_and_bound),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_slow_patterns), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_suite),
    };
    DIR *folder = opendir(SUITE);
    if (folder == NULL) {
        print_message("skipped: %s is not there\n", SUITE);
        return SKIPPED;
    }
    (void)closedir(folder);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
