/* SPDX-License-Identifier: MIT */
/* test_content_kind.c - kinds of contents of files: the functions of a plugin, and what comes
 * of each of their results. */
#include "harness.h"

#include <string.h>

#include "core/base/str.h"
#include "core/call/call.h"
#include "core/history/content_kind.h"
#include "core/module/registry.h"

/* A content is an order: the text behind the word, or the code in it. */
static int code_of(struct ng_str content)
{
    static const struct {
        const char *word;
        int code;
    } codes[] = {
        {"none", NG_EINVAL},   {"large", NG_ETOOLARGE}, {"memory", NG_EINTERNAL},
        {"odd", NG_ECONFLICT}, {"pending", NG_PENDING},
    };
    for (size_t i = 0; i < NG_COUNT(codes); i++) {
        if (str_is(content, codes[i].word)) {
            return codes[i].code;
        }
    }
    return NG_OK;
}

static int test_view(void *self, struct ng_call *call, struct ng_str bytes,
                     struct ng_str *ret_text)
{
    (void)self;
    if (!str_is(bytes, "empty")) {
        *ret_text = call->host->format(call, "view of %.*s", (int)bytes.len, bytes.data);
    }
    return code_of(bytes);
}

static int test_merge(void *self, struct ng_call *call, const struct ng_sides *sides,
                      struct ng_str *ret_merged, struct ng_str *ret_conflict)
{
    (void)self;
    if (str_is(sides->present, "text")) {
        *ret_merged =
            call->host->format(call, "%.*s, %.*s", (int)sides->base.len, sides->base.data,
                               (int)sides->before.len, sides->before.data);
    } else {
        *ret_conflict = sides->present;
    }
    return code_of(sides->base);
}

static int test_check(void *self, struct ng_call *call, const struct ng_sides *sides,
                      struct ng_str merged, bool *ret_good)
{
    (void)self;
    (void)call;
    *ret_good = str_equal(merged, sides->present);
    return code_of(merged);
}

static const struct ng_content_kind kinds[] = {
    {.ending = ".whole", .view = test_view, .merge = test_merge, .check = test_check},
    {.ending = ".bare"},
};

static const struct ng_content_kind later_kinds[] = {{.ending = ".whole"}};

static const struct ng_plugin plugins[] = {
    {.name = "first", .version = "1", .contents = kinds, .content_count = NG_COUNT(kinds)},
    {.name = "later", .version = "1", .contents = later_kinds, .content_count = 1},
};

struct scene {
    struct harness harness;
    struct call *call;
    struct content_kind kind;
};

static int setup(void **state)
{
    static struct scene scene;
    static const char *const sets[] = {"plugins=notebook", "documents=memory", NULL};
    harness_open(&scene.harness, sets);
    for (size_t i = 0; i < NG_COUNT(plugins); i++) {
        struct plugin *plugin = NULL;
        struct buf error;
        buf_init(&error, 4096);
        assert_int_equal(
            registry_add(scene.harness.gateway->registry, &plugins[i], NULL, &plugin, &error),
            NG_OK);
        plugin->started = true;
        buf_done(&error);
    }
    scene.call = harness_new_call(&scene.harness);
    scene.call->may_block = true;
    assert_true(content_kind_find(scene.call, ng_str_of("/a/x.whole"), &scene.kind));
    *state = &scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    call_unref(scene->call);
    harness_close(&scene->harness);
    return 0;
}

static void expect_str(struct ng_str text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

static void expect_message(struct scene *scene, const char *message)
{
    expect_str(scene->call->staged.message, message);
    call_reset_result(scene->call);
}

static void test_find(void **state)
{
    struct scene *scene = *state;
    struct content_kind kind;
    assert_ptr_equal(scene->kind.desc->view, test_view); /* the first plugin's */
    assert_true(content_kind_find(scene->call, ng_str_of("/a/X.WHOLE"), &kind));
    assert_true(content_kind_find(scene->call, ng_str_of("/a/x.bare"), &kind));
    assert_true(kind.desc->view == NULL);
    assert_false(content_kind_find(scene->call, ng_str_of(".whole"), &kind));
    assert_false(content_kind_find(scene->call, ng_str_of("/a/whole"), &kind));
    assert_false(content_kind_find(scene->call, ng_str_of(""), &kind));
}

static int view(struct scene *scene, const char *content, struct ng_str *ret)
{
    return content_kind_view(&scene->kind, scene->call, ng_str_of(content), ret);
}

static void test_views(void **state)
{
    struct scene *scene = *state;
    struct ng_str text;
    assert_int_equal(view(scene, "it", &text), NG_OK);
    expect_str(text, "view of it");
    assert_int_equal(view(scene, "empty", &text), NG_OK);
    expect_str(text, "");
    assert_non_null(text.data);
    assert_int_equal(view(scene, "none", &text), NG_EINVAL);
    assert_int_equal(view(scene, "large", &text), NG_ETOOLARGE);
    assert_int_equal(view(scene, "odd", &text), NG_EINTERNAL);
    expect_message(scene, "plugin first failed with -11 for a content of .whole");
    assert_int_equal(view(scene, "pending", &text), NG_EINTERNAL);
    expect_message(scene, "plugin first failed with 1 for a content of .whole");
    assert_int_equal(view(scene, "memory", &text), NG_EINTERNAL);
}

static int merge(struct scene *scene, const char *base, const char *present,
                 struct ng_str *ret_merged, struct ng_str *ret_conflict)
{
    const struct ng_sides sides = {ng_str_of(base), ng_str_of(present), ng_str_of("old")};
    return content_kind_merge(&scene->kind, scene->call, &sides, ret_merged, ret_conflict);
}

static void test_merges(void **state)
{
    static const char neither[] =
        "plugin first gave neither a merged content of .whole nor a conflict";
    struct scene *scene = *state;
    struct ng_str merged;
    struct ng_str conflict;
    assert_int_equal(merge(scene, "new", "text", &merged, &conflict), NG_OK);
    expect_str(merged, "new, old");
    assert_null(conflict.data);
    assert_int_equal(merge(scene, "new", "{\"reason\":\"cell\"}", &merged, &conflict), NG_OK);
    assert_null(merged.data);
    expect_str(conflict, "{\"reason\":\"cell\"}");
    static const char *const invalid[] = {"", "{", "[]", "{}", "{\"reason\":1}"};
    for (size_t i = 0; i < NG_COUNT(invalid); i++) {
        assert_int_equal(merge(scene, "new", invalid[i], &merged, &conflict), NG_EINTERNAL);
        expect_message(scene, neither);
    }
    assert_int_equal(merge(scene, "none", "text", &merged, &conflict), NG_EINTERNAL);
    expect_message(scene, "plugin first failed with -2 for a content of .whole");
}

static void test_checks(void **state)
{
    struct scene *scene = *state;
    const struct ng_sides sides = {ng_str_of("a"), ng_str_of("b"), ng_str_of("c")};
    bool good = false;
    assert_int_equal(
        content_kind_check(&scene->kind, scene->call, &sides, ng_str_of("b"), &good), NG_OK);
    assert_true(good);
    assert_int_equal(
        content_kind_check(&scene->kind, scene->call, &sides, ng_str_of("c"), &good), NG_OK);
    assert_false(good);
    assert_int_equal(
        content_kind_check(&scene->kind, scene->call, &sides, ng_str_of("large"), &good),
        NG_EINTERNAL);
    expect_message(scene, "plugin first failed with -12 for a content of .whole");
}

/* ---- for plugins ---- */

struct seen {
    char text[64];
    const char *data;
    int times;
};

static int take(void *user, struct ng_str text)
{
    struct seen *seen = user;
    assert_true(text.len < sizeof(seen->text));
    memcpy(seen->text, text.data, text.len);
    seen->text[text.len] = '\0';
    seen->data = text.data;
    seen->times++;
    return 0;
}

static void expect_file_view(struct scene *scene, const char *path, const char *content,
                             const char *wanted)
{
    struct ng_call *call = &scene->call->pub;
    struct seen seen = {.times = 0};
    assert_int_equal(
        call->host->file_view(call, ng_str_of(path), ng_str_of(content), take, &seen), NG_OK);
    assert_int_equal(seen.times, 1);
    assert_string_equal(seen.text, wanted);
    assert_int_equal(seen.data == content, strcmp(content, wanted) == 0);
}

static void test_file_view(void **state)
{
    struct scene *scene = *state;
    struct ng_call *call = &scene->call->pub;
    struct seen seen = {.times = 0};
    expect_file_view(scene, "/a/x.whole", "it", "view of it");
    expect_file_view(scene, "/a/x.whole", "none", "none");
    expect_file_view(scene, "/a/x.bare", "it", "it");
    expect_file_view(scene, "/a/x", "it", "it");
    assert_int_equal(
        call->host->file_view(call, ng_str_of("/a/x.whole"), ng_str_of("large"), take, &seen),
        NG_ETOOLARGE);
    expect_message(scene, "contents of 5 bytes are not compared");
    assert_int_equal(
        call->host->file_view(call, ng_str_of("/a/x.whole"), ng_str_of("odd"), take, &seen),
        NG_EINTERNAL);
    expect_message(scene, "plugin first failed with -11 for a content of .whole");
    scene->call->may_block = false;
    assert_int_equal(
        call->host->file_view(call, ng_str_of("/a/x.whole"), ng_str_of("it"), take, &seen),
        NG_EWOULDBLOCK);
    assert_int_equal(seen.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_find, setup, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_checks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_view, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
