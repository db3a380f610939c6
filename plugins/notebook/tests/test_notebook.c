/* SPDX-License-Identifier: MIT */
/* test_notebook.c - texts made, listed, read, cleared; names; what breaks the schema;
 * resources. */
#include "test_notebook_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/call/listing.h"
#include "core/module/registry.h"

static void assert_bytes(const struct answer *answer, struct ng_str text)
{
    assert_int_equal(answer->rc, NG_OK);
    assert_int_equal(answer->text_len, text.len);
    assert_memory_equal(answer->text, text.data, text.len);
}

static struct ng_str joined(struct buf *buf, const char *before, struct ng_str name,
                            const char *after)
{
    buf_clear(buf);
    buf_add_c(buf, before);
    buf_add_str(buf, name);
    buf_add_c(buf, after);
    (void)buf_cstr(buf);
    return buf_str(buf);
}

/* ---- a fresh space ---- */

static void test_default_is_there(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"read\"}", "Notebook 'default' is empty");
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty");
    expect(h, "{\"mode\":\"create\",\"name\":\"first\"}", "Created notebook 'first' (empty)");
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty\n- first: Empty");
    struct answer read = harness_call(h, "notebook", "{\"mode\":\"read\"}");
    assert_int_equal(read.revision, 0);
    answer_free(&read);
    struct answer write =
        harness_call(h, "notebook", "{\"mode\":\"write\",\"newStr\":\"hello\"}");
    assert_int_equal(write.revision, 1);
    assert_string_equal(write.text, "Appended text to notebook 'default'");
    answer_free(&write);
    expect(h, "{\"mode\":\"list\"}",
           "Available notebooks:\n- default: 1 lines\n- first: Empty");
}

static void test_default_clear_and_create(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"clear\"}", "Cleared notebook 'default'");
    expect(h, "{\"mode\":\"create\",\"name\":\"default\",\"newStr\":\"a\\nb\"}",
           "Created notebook 'default' with specified content");
    expect(h, "{\"mode\":\"read\"}", "a\nb");
    expect(h, "{\"mode\":\"create\",\"newStr\":\"\"}", "Created notebook 'default' (empty)");
    expect(h, "{\"mode\":\"read\"}", "Notebook 'default' is empty");
}

/* ---- create, list, read, clear ---- */

static void test_create_and_overwrite(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"one\"}",
           "Created notebook 'a' with specified content");
    expect(h, "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"two\"}",
           "Created notebook 'a' with specified content");
    expect(h, "{\"mode\":\"read\",\"name\":\"a\"}", "two");
    expect(h, "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"\"}",
           "Created notebook 'a' (empty)");
    expect(h, "{\"mode\":\"read\",\"name\":\"a\"}", "Notebook 'a' is empty");
    expect(h,
           "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"x\",\"oldStr\":\"q\","
           "\"insertLine\":7,\"readRange\":[1,2]}",
           "Created notebook 'a' with specified content");
}

static void test_list_order_and_counts(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"z\",\"newStr\":\"\\n\"}",
           "Created notebook 'z' with specified content");
    expect(h, "{\"mode\":\"create\",\"name\":\"10\",\"newStr\":\"1\\n2\\n3\"}",
           "Created notebook '10' with specified content");
    expect(h, "{\"mode\":\"create\",\"name\":\"2\",\"newStr\":\"x\"}",
           "Created notebook '2' with specified content");
    expect(h, "{\"mode\":\"create\",\"name\":\"a\"}", "Created notebook 'a' (empty)");
    /* Overwriting and clearing keep the place; writing keeps the counts true. */
    expect(h, "{\"mode\":\"create\",\"name\":\"z\",\"newStr\":\"1\\n2\"}",
           "Created notebook 'z' with specified content");
    expect(h, "{\"mode\":\"clear\",\"name\":\"2\"}", "Cleared notebook '2'");
    expect(h, "{\"mode\":\"write\",\"name\":\"10\",\"oldStr\":\"2\\n\",\"newStr\":\"\"}",
           "Replaced text in notebook '10'");
    expect(h, "{\"mode\":\"write\",\"newStr\":\"late\"}",
           "Appended text to notebook 'default'");
    expect(h, "{\"mode\":\"list\",\"name\":\"ignored\",\"newStr\":\"too\"}",
           "Available notebooks:\n- default: 1 lines\n- z: 2 lines\n- 10: 2 lines\n"
           "- 2: Empty\n- a: Empty");
}

/* Lines are counted by many at a time, and from the count before. */
static void test_lines_are_counted(void **state)
{
    enum { LINES = 5000 };
    struct harness *h = *state;
    struct buf args;
    int lines = LINES + 1;
    buf_init(&args, 1024 * 1024);
    buf_add_c(&args, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"");
    for (int i = 0; i < LINES; i++) {
        buf_add_c(&args, i % 7 == 3 ? "longer\\n" : "\\n");
    }
    buf_add_c(&args, "\"}");
    expect(h, buf_cstr(&args), "Created notebook 'n' with specified content");
    buf_done(&args);
    for (int i = 0; i < 20; i++) {
        char want[96];
        (void)snprintf(want, sizeof(want),
                       "Available notebooks:\n- default: Empty\n- n: %d lines", lines);
        expect(h, "{\"mode\":\"list\"}", want);
        expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":3,\"newStr\":\"a\\nb\"}",
               "Inserted text at line 4 in notebook 'n'");
        lines += 2;
    }
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"a\\nb\\n\",\"newStr\":\"\"}",
           "Replaced text in notebook 'n'");
    expect_range(h, "n", "[5032,5033]", "5032: \n5033: longer");
    expect_range(h, "n", "[5040,-1]",
                 "No lines found in range [5040, -1]. Notebook 'n' has 5039 line(s).");
}

static void test_list_is_whole(void **state)
{
    struct harness *h = *state;
    struct buf want;
    buf_init(&want, 1024 * 1024);
    buf_add_c(&want, "Available notebooks:\n- default: Empty");
    /* Several pages of the store. */
    for (int i = 0; i < 600; i++) {
        char args[128];
        (void)snprintf(args, sizeof(args),
                       "{\"mode\":\"create\",\"name\":\"n%d\",\"newStr\":\"x\"}", 600 - i);
        struct answer made = harness_call(h, "notebook", args);
        assert_int_equal(made.rc, NG_OK);
        answer_free(&made);
        buf_printf(&want, "\n- n%d: 1 lines", 600 - i);
    }
    expect(h, "{\"mode\":\"list\"}", buf_cstr(&want));
    buf_done(&want);
}

static void test_missing(void **state)
{
    struct harness *h = *state;
    expect_fail(h, "{\"mode\":\"read\",\"name\":\"nope\"}", "NOT_FOUND",
                "Notebook 'nope' not found");
    expect_fail(h, "{\"mode\":\"clear\",\"name\":\"nope\"}", "NOT_FOUND",
                "Notebook 'nope' not found");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"nope\",\"newStr\":\"x\"}", "NOT_FOUND",
                "Notebook 'nope' not found");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"nope\",\"oldStr\":\"a\",\"newStr\":\"x\"}",
                "NOT_FOUND", "Notebook 'nope' not found");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"nope\",\"insertLine\":99,\"newStr\":\"x\"}",
                "NOT_FOUND", "Notebook 'nope' not found");
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty");
}

static void test_missing_hint(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"research\"}",
           "Created notebook 'research' (empty)");
    struct answer near =
        harness_call(h, "notebook", "{\"mode\":\"read\",\"name\":\"reserch\"}");
    assert_string_equal(near.code, "NOT_FOUND");
    assert_int_equal(near.status, 404);
    assert_non_null(strstr(near.hint, "'research'"));
    answer_free(&near);
    struct answer write = harness_call(
        h, "notebook", "{\"mode\":\"write\",\"name\":\"Research \",\"newStr\":\"x\"}");
    assert_string_equal(write.message, "Notebook 'Research ' not found");
    assert_non_null(strstr(write.hint, "'research'"));
    answer_free(&write);
    struct answer far =
        harness_call(h, "notebook", "{\"mode\":\"read\",\"name\":\"quite another thing\"}");
    assert_null(strstr(far.hint, "research"));
    answer_free(&far);
}

static void test_clear(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"x\\ny\"}",
           "Created notebook 'a' with specified content");
    expect(h, "{\"mode\":\"clear\",\"name\":\"a\"}", "Cleared notebook 'a'");
    expect(h, "{\"mode\":\"read\",\"name\":\"a\"}", "Notebook 'a' is empty");
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty\n- a: Empty");
}

/* ---- ranges ---- */

static void test_ranges(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"a\\nb\\nc\\nd\"}",
           "Created notebook 'n' with specified content");
    expect_range(h, "n", "[1,1]", "1: a");
    expect_range(h, "n", "[2,3]", "2: b\n3: c");
    expect_range(h, "n", "[1,4]", "1: a\n2: b\n3: c\n4: d");
    expect_range(h, "n", "[-1,-1]", "4: d");
    expect_range(h, "n", "[-3,-2]", "2: b\n3: c");
    expect_range(h, "n", "[2,-1]", "2: b\n3: c\n4: d");
    expect_range(h, "n", "[0,2]", "1: a\n2: b");
    expect_range(h, "n", "[2,99]", "2: b\n3: c\n4: d");
    expect_range(h, "n", "[-99,2]", "1: a\n2: b");
    expect_range(h, "n", "[1,9007199254740992]", "1: a\n2: b\n3: c\n4: d");
    expect_range(h, "n", "[-9007199254740992,9007199254740992]", "1: a\n2: b\n3: c\n4: d");
    expect_range(h, "n", "[3,2]",
                 "No lines found in range [3, 2]. Notebook 'n' has 4 line(s).");
    expect_range(h, "n", "[0,0]",
                 "No lines found in range [0, 0]. Notebook 'n' has 4 line(s).");
    expect_range(h, "n", "[5,9]",
                 "No lines found in range [5, 9]. Notebook 'n' has 4 line(s).");
    expect_range(h, "n", "[-9,-8]",
                 "No lines found in range [-9, -8]. Notebook 'n' has 4 line(s).");
    expect_range(h, "default", "[1,1]", "1: ");
    expect_range(h, "default", "[2,3]",
                 "No lines found in range [2, 3]. Notebook 'default' has 1 line(s).");
}

static void test_ranges_of_odd_texts(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"a\\r\\nb\\n\"}",
           "Created notebook 'n' with specified content");
    expect_range(h, "n", "[1,9]", "1: a\r\n2: b\n3: ");
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"\\n\"}",
           "Created notebook 'n' with specified content");
    expect_range(h, "n", "[1,2]", "1: \n2: ");
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"x\\u2028y\"}",
           "Created notebook 'n' with specified content");
    expect_range(h, "n", "[1,2]", "1: x\xe2\x80\xa8y");
    /* Ignored where it says nothing. */
    expect(h, "{\"mode\":\"clear\",\"name\":\"n\",\"readRange\":[1,2]}",
           "Cleared notebook 'n'");
}

static void test_range_digits(void **state)
{
    struct harness *h = *state;
    expect(
        h,
        "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"\\n\\n\\n\\n\\n\\n\\n\\n\\nj\\nk\"}",
        "Created notebook 'n' with specified content");
    expect_range(h, "n", "[9,11]", "9: \n10: j\n11: k");
}

/* ---- input that breaks the schema ---- */

static void test_invalid_input(void **state)
{
    struct harness *h = *state;
    static const char *const bad[] = {
        "{}",
        "{\"mode\":\"Create\"}",
        "{\"mode\":1}",
        "{\"mode\":\"read\",\"name\":7}",
        "{\"mode\":null,\"name\":\"a\"}",
        "{\"mode\":\"read\",\"readRange\":[1]}",
        "{\"mode\":\"read\",\"readRange\":[]}",
        "{\"mode\":\"read\",\"readRange\":[1,2,3]}",
        "{\"mode\":\"read\",\"readRange\":[1.5,2]}",
        "{\"mode\":\"read\",\"readRange\":[1,9007199254740993]}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"insertLine\":1.5}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"insertLine\":true}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"insertLine\":-9007199254740993}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"expectedRevision\":-1}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"expectedRevision\":\"one\"}",
        "{\"mode\":\"write\",\"newStr\":\"x\",\"extra\":1}",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct answer answer = harness_call(h, "notebook", bad[i]);
        assert_string_equal(answer.code, "INVALID_INPUT");
        assert_int_equal(answer.status, 400);
        assert_true(strlen(answer.details) > 2);
        answer_free(&answer);
    }
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty");
    /* 1.0 is an integer. */
    expect(h, "{\"mode\":\"read\",\"readRange\":[1.0,1e0]}", "1: ");
}

/* ---- names ---- */

static void check_name(struct harness *h, struct ng_str name)
{
    struct buf want;
    buf_init(&want, 1024 * 1024);
    struct ng_str none = {NULL, 0};
    struct answer answer = call_bytes(h, "read", name, NULL, none);
    assert_string_equal(answer.code, "NOT_FOUND");
    struct ng_str text = joined(&want, "Notebook '", name, "' not found");
    struct answer cleared = call_bytes(h, "clear", name, NULL, none);
    assert_string_equal(cleared.code, "NOT_FOUND");
    if (name.len > 1000) { /* too long to be shown whole */
        assert_true(strlen(answer.message) < 4096);
        assert_true(str_begins(ng_str_of(answer.message), "Notebook '"));
        assert_true(str_ends(ng_str_of(answer.message), "' not found"));
    } else if (name.len == 0 || memchr(name.data, '\0', name.len) == NULL) {
        assert_string_equal(answer.message, text.data);
    }
    answer_free(&cleared);
    answer_free(&answer);

    answer = call_bytes(h, "create", name, NULL, none);
    assert_bytes(&answer, joined(&want, "Created notebook '", name, "' (empty)"));
    answer_free(&answer);
    answer = call_bytes(h, "read", name, NULL, none);
    assert_bytes(&answer, joined(&want, "Notebook '", name, "' is empty"));
    answer_free(&answer);
    answer = call_bytes(h, "write", name, "newStr", ng_str_of("text"));
    assert_bytes(&answer, joined(&want, "Appended text to notebook '", name, "'"));
    answer_free(&answer);
    answer = call_bytes(h, "read", name, NULL, none);
    assert_bytes(&answer, ng_str_of("text"));
    answer_free(&answer);
    answer = call_bytes(h, "list", name, NULL, none);
    assert_int_equal(answer.rc, NG_OK);
    text = joined(&want, "\n- ", name, ": 1 lines");
    assert_non_null(memmem(answer.text, answer.text_len, text.data, text.len));
    answer_free(&answer);
    answer = call_bytes(h, "clear", name, NULL, none);
    assert_bytes(&answer, joined(&want, "Cleared notebook '", name, "'"));
    answer_free(&answer);
    buf_done(&want);
}

static void test_names(void **state)
{
    struct harness *h = *state;
    static const char *const names[] = {
        "__proto__", "constructor", "toString", "hasOwnProperty", "",     " ",
        "a\nb",      "\n",          "'",        "../x",           "%s%n", "\xf0\x9f\x93\x93",
        "Default",   "default ",    "a/b?c#d",  "\x01\x7f",
    };
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        check_name(h, ng_str_of(names[i]));
    }
    check_name(h, str_make("nul\0in", 6));
    check_name(h, str_make("\0", 1));
}

static void test_long_name(void **state)
{
    struct harness *h = *state;
    struct buf name;
    buf_init(&name, 1024 * 1024);
    while (name.len < (size_t)10 * 1024) {
        buf_add_c(&name, "\xf0\x9f\x98\x80");
    }
    check_name(h, buf_str(&name));
    while (name.len <= NG_ID_MAX) {
        buf_add_c(&name, "\xf0\x9f\x98\x80");
    }
    struct ng_str none = {NULL, 0};
    struct answer answer = call_bytes(h, "create", buf_str(&name), NULL, none);
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
    buf_done(&name);
}

static void test_text_is_bytes(void **state)
{
    struct harness *h = *state;
    struct ng_str text = str_make("a\0b\r\n\xef\xbb\xbf\xe2\x80\xa8z", 12);
    struct answer answer = call_bytes(h, "create", ng_str_of("b"), "newStr", text);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    struct ng_str none = {NULL, 0};
    answer = call_bytes(h, "read", ng_str_of("b"), NULL, none);
    assert_bytes(&answer, text);
    answer_free(&answer);
}

/* ---- as resources ---- */

struct shown {
    struct ng_listing listing; /* first */
    struct buf text;
};

static int shown_add(struct ng_listing *listing, const struct listing_item *item)
{
    struct shown *shown = (struct shown *)(void *)listing;
    buf_add_str(&shown->text, item->id);
    buf_printf(&shown->text, ":%llu ", (unsigned long long)item->bytes);
    return NG_OK;
}

static const struct ng_resources *find_resources(struct harness *h, void **ret_self)
{
    struct plugin *const *plugins = NULL;
    assert_int_equal(registry_plugins(h->gateway->registry, &plugins), 1);
    assert_int_equal(plugins[0]->desc.resource_count, 1);
    *ret_self = plugins[0]->self;
    return &plugins[0]->desc.resources[0];
}

static void expect_resource(struct harness *h, const char *id, uint64_t revision, int rc,
                            const char *text)
{
    void *self = NULL;
    const struct ng_resources *resources = find_resources(h, &self);
    struct call *call = harness_new_call(h);
    call->may_block = true;
    assert_int_equal(
        resources->read(self, &call->pub, ng_str_of("team"), ng_str_of(id), revision), rc);
    if (rc == NG_OK) {
        assert_true(str_is(call->staged.text, text));
    }
    call_unref(call);
}

static void test_resources(void **state)
{
    struct harness *h = *state;
    void *self = NULL;
    const struct ng_resources *resources = find_resources(h, &self);
    assert_string_equal(resources->kind, "notebook");
    assert_string_equal(resources->collection, "notebooks");
    static const char *const writes[] = {
        "{\"mode\":\"create\",\"name\":\"b\",\"newStr\":\"one\"}",
        "{\"mode\":\"create\",\"name\":\"a\"}",
        "{\"mode\":\"write\",\"name\":\"b\",\"newStr\":\"two\"}",
    };
    for (size_t i = 0; i < NG_COUNT(writes); i++) {
        struct answer answer = harness_call_as(h, "ann", "team", "notebook", writes[i]);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    struct shown shown = {.listing = {.add = shown_add}};
    buf_init(&shown.text, 4096);
    struct call *call = harness_new_call(h);
    call->may_block = true;
    assert_int_equal(resources->list(self, &call->pub, ng_str_of("team"), &shown.listing),
                     NG_OK);
    call_unref(call);
    assert_string_equal(buf_cstr(&shown.text), "default:0 b:7 a:0 ");
    /* Behind each entry, and behind one that is not there. */
    static const char *const pages[][2] = {
        {"default", "b:7 a:0 "}, {"b", "a:0 "}, {"a", ""}, {"none", ""}};
    for (size_t i = 0; i < NG_COUNT(pages); i++) {
        buf_clear(&shown.text);
        shown.listing.after = ng_str_of(pages[i][0]);
        call = harness_new_call(h);
        call->may_block = true;
        assert_int_equal(resources->list(self, &call->pub, ng_str_of("team"), &shown.listing),
                         NG_OK);
        call_unref(call);
        assert_true(shown.listing.seeks);
        assert_string_equal(buf_cstr(&shown.text), pages[i][1]);
    }
    buf_clear(&shown.text);
    call = harness_new_call(h);
    call->may_block = true;
    assert_int_equal(resources->complete(self, &call->pub, ng_str_of("team"), "id",
                                         ng_str_of("b"), &shown.listing),
                     NG_OK);
    call_unref(call);
    assert_string_equal(buf_cstr(&shown.text), "b:7 ");
    buf_done(&shown.text);
    expect_resource(h, "b", 0, NG_OK, "one\ntwo");
    expect_resource(h, "b", 1, NG_OK, "one");
    expect_resource(h, "default", 0, NG_OK, "");
    expect_resource(h, "nope", 0, NG_ENOTFOUND, NULL);
    expect_resource(h, "b", 99, NG_ENOTFOUND, NULL);
    expect_resource(h, "default", 1, NG_ENOTFOUND, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_default_is_there),
        TEST(test_default_clear_and_create),
        TEST(test_create_and_overwrite),
        TEST(test_list_order_and_counts),
        TEST(test_lines_are_counted),
        TEST(test_list_is_whole),
        TEST(test_missing),
        TEST(test_missing_hint),
        TEST(test_clear),
        TEST(test_ranges),
        TEST(test_ranges_of_odd_texts),
        TEST(test_range_digits),
        TEST(test_invalid_input),
        TEST(test_names),
        TEST(test_long_name),
        TEST(test_text_is_bytes),
        TEST(test_resources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
