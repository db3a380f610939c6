/* SPDX-License-Identifier: MIT */
/* test_file_editor_roots.c - links, several roots, special files, and rights.
 */
#include "core/dispatch/dispatch.h"
#include "test_file_editor_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two roots, "a" and "b", in one folder beside the data directory. */
static int setup_two(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    (void)snprintf(test->roots, sizeof(test->roots), "%s/notegate-roots-XXXXXX", harness_tmp());
    assert_non_null(mkdtemp(test->roots));
    (void)snprintf(test->root, sizeof(test->root), "%s/a", test->roots);
    (void)snprintf(test->other, sizeof(test->other), "%s/b", test->roots);
    assert_int_equal(mkdir(test->root, 0700) + mkdir(test->other, 0700), 0);
    (void)snprintf(test->root_set, sizeof(test->root_set), "roots=%s,%s", test->root,
                   test->other);
    test->sets[0] = "plugins=file_editor";
    test->sets[1] = test->root_set;
    harness_open(&test->harness, test->sets);
    *state = test;
    return 0;
}

/* ---- links and roots */

static void test_links(void **state)
{
    struct test *test = *state;
    make_dir(test, "@/dir");
    put(test, "@/dir/f", "one");
    make_link(test, "dir/f", "@/relative");
    make_link(test, "@/dir/f", "@/absolute");
    make_link(test, "@/dir", "@/folder");
    make_link(test, "/etc/passwd", "@/outside");
    make_link(test, "../../../../../../etc/passwd", "@/climbs");
    make_link(test, "loop", "@/loop");
    works(test, REPLACE("@/relative", "one", "two"));
    works(test, REPLACE("@/absolute", "two", "three"));
    works(test, REPLACE("@/folder/f", "three", "four"));
    has(test, "@/dir/f", "four");
    /* One history for all spellings. */
    works(test, UNDO("@/dir/f"));
    works(test, UNDO("@/relative"));
    works(test, UNDO("@/folder/f"));
    has(test, "@/dir/f", "one");
    char real[TEXT_MAX];
    struct stat st;
    expand(test, "@/absolute", real, sizeof(real));
    assert_int_equal(lstat(real, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    fails(test, VIEW("@/outside"), "PATH_OUTSIDE_ROOTS",
          "The path @/outside is outside the roots: @.");
    fails(test, VIEW("@/climbs"), "PATH_OUTSIDE_ROOTS",
          "The path @/climbs is outside the roots: @.");
    fails(test, VIEW("@/loop"), "TOOL_FAILED",
          "Cannot open @/loop: it goes through too many links; name the file itself.");
}

static void test_chain_of_links(void **state)
{
    struct test *test = *state;
    char from[64];
    char to[64];
    put(test, "@/l0", "end");
    for (int i = 1; i <= 41; i++) {
        (void)snprintf(from, sizeof(from), "@/l%d", i);
        (void)snprintf(to, sizeof(to), i % 2 == 0 ? "l%d" : "@/l%d", i - 1);
        make_link(test, to, from);
    }
    ok(test, VIEW("@/l40"), CAT "@/l40:\n     1  end\n");
    fails(test, VIEW("@/l41"), "TOOL_FAILED",
          "Cannot open @/l41: it goes through too many links; name the file itself.");
}

static void test_between_roots(void **state)
{
    struct test *test = *state;
    char path[TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/f", test->other);
    put(test, path, "b");
    make_link(test, path, "@/absolute");
    make_link(test, "../b/f", "@/relative");
    make_link(test, "../c", "@/outside");
    works(test, REPLACE("@/absolute", "b", "c"));
    works(test, REPLACE("@/relative", "c", "d"));
    has(test, path, "d");
    char message[TEXT_MAX];
    (void)snprintf(message, sizeof(message), "The path @/outside is outside the roots: @, %s.",
                   test->other);
    fails(test, VIEW("@/outside"), "PATH_OUTSIDE_ROOTS", message);
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), TRANSFER("move", "@/absolute", "%s/g"), test->other);
    works(test, args);
    assert_false(exists(test, path));
}

static void test_mode_is_kept(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    struct stat before;
    struct stat after;
    put(test, "@/f", "one");
    expand(test, "@/f", real, sizeof(real));
    assert_int_equal(chmod(real, 0640), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(real, 12345, 23456), 0);
    }
    assert_int_equal(stat(real, &before), 0);
    works(test, REPLACE("@/f", "one", "two"));
    works(test, UNDO("@/f"));
    assert_int_equal(stat(real, &after), 0);
    assert_int_equal(before.st_mode, after.st_mode);
    assert_int_equal(before.st_uid, after.st_uid);
    assert_int_equal(before.st_gid, after.st_gid);
}

static void test_special_files(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    expand(test, "@/fifo", real, sizeof(real));
    assert_int_equal(mkfifo(real, 0600), 0);
    const char *message = "The path @/fifo is not a regular file (a device, pipe or socket). "
                          "Choose another path.";
    fails(test, VIEW("@/fifo"), "TOOL_FAILED", message);
    fails(test, REPLACE("@/fifo", "a", "b"), "TOOL_FAILED", message);
    char name[400];
    memset(name, 'n', 300);
    name[300] = '\0';
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args), VIEW("@/%s"), name);
    struct answer answer = call(test, args);
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "too long"));
    answer_free(&answer);
}

/* ---- who may */

struct ended {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void call_ended(struct call *made, void *user)
{
    struct ended *ended = user;
    (void)made;
    (void)pthread_mutex_lock(&ended->lock);
    ended->done = true;
    (void)pthread_cond_signal(&ended->wake);
    (void)pthread_mutex_unlock(&ended->lock);
}

/* The code of a call by an agent of this mode. */
static const char *code_in_mode(struct test *test, enum ng_mode mode, const char *args)
{
    struct ended ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    char real[TEXT_MAX];
    expand(test, args, real, sizeof(real));
    struct call *made = call_new(test->harness.gateway);
    assert_non_null(made);
    assert_int_equal(
        call_set_caller(made, ng_str_of("a"), ng_str_of(NULL), NG_ROLE_WRITER, mode, true),
        NG_OK);
    made->tool_name = ng_str_of("fileEditor");
    made->args_text = ng_str_of(real);
    made->done = call_ended;
    made->done_user = &ended;
    if (dispatch(made) == NG_PENDING) {
        (void)pthread_mutex_lock(&ended.lock);
        while (!ended.done) {
            (void)pthread_cond_wait(&ended.wake, &ended.lock);
        }
        (void)pthread_mutex_unlock(&ended.lock);
    }
    const char *code = made->final.code; /* static text */
    call_unref(made);
    return code;
}

static void test_notebooks_in_agent_mode_only(void **state)
{
    struct test *test = *state;
    put(test, "@/n.ipynb", "{}");
    make_link(test, "n.ipynb", "@/link");
    const char *refused[] = {
        REPLACE("@/n.ipynb", "{}", "[]"),
        REPLACE("@/link", "{}", "[]"),
        "{\"command\":\"create\",\"path\":\"@/m.IPYNB\",\"file_text\":\"{}\"}",
        TRANSFER("move", "@/n.ipynb", "@/x"),
        TRANSFER("copy", "@/n.ipynb", "@/x"),
        UNDO("@/n.ipynb"),
    };
    for (size_t i = 0; i < NG_COUNT(refused); i++) {
        assert_string_equal(code_in_mode(test, NG_MODE_EDIT, refused[i]), "MODE_FORBIDDEN");
    }
    /* The arguments are checked first. */
    assert_string_equal(code_in_mode(test, NG_MODE_EDIT, TRANSFER("move", "@/n.ipynb", "x")),
                        "INVALID_INPUT");
    has(test, "@/n.ipynb", "{}");
    assert_string_equal(code_in_mode(test, NG_MODE_ASK, VIEW("@/n.ipynb")), "ok");
    assert_string_equal(code_in_mode(test, NG_MODE_ASK, UNDO("@/x")), "MODE_FORBIDDEN");
    works(test, REPLACE("@/n.ipynb", "{}", "[]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_of_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_between_roots, setup_two, teardown),
        cmocka_unit_test_setup_teardown(test_mode_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_special_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notebooks_in_agent_mode_only, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
