/* SPDX-License-Identifier: MIT */
/* test_history_files.c - files by their path in history_log, history_read, history_diff and
 * history_blame. */
#include "test_history_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODIFIED_S 1700000000 /* 2023-11-14T22:13:20Z */
#define MODIFIED "2023-11-14T22:13:20.000Z"
#define NO_VERSION                                                                             \
    "no version of %s is kept: nothing has saved it through the gateway, or files are not "    \
    "kept (history.files, history.max_file)"

/* ---- files ---- */

static void run_in(const char *space, const char *agent, const char *run, const char *arguments)
{
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    assert_int_equal(call_set_caller(call, ng_str_of(agent), ng_str_of(space), NG_ROLE_ADMIN,
                                     NG_MODE_AGENT, true),
                     NG_OK);
    call_set_run(call, ng_str_of(run));
    call->caller.request_id = ng_str_of("request-1");
    struct answer answer = harness_run(call, "fileEditor", arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", arguments, answer.message);
    }
    answer_free(&answer);
}

static void run_as(const char *agent, const char *run, const char *arguments)
{
    run_in(NULL, agent, run, arguments);
}

static void create(const char *agent, const char *run, const char *name, const char *text)
{
    run_as(agent, run,
           args("{'command':'create','path':'%s/%s','file_text':'%s'}", root, name, text));
}

static void insert(const char *agent, const char *run, const char *name, int line,
                   const char *text)
{
    run_as(agent, run,
           args("{'command':'insert','path':'%s/%s','insert_line':%d,'new_str':'%s'}", root,
                name, line, text));
}

static void run_on(const char *command, const char *name, const char *to)
{
    const char *more = to[0] == '\0' ? "" : args(",'destination':'%s/%s'", root, to);
    run_as("ada", NULL, args("{'command':'%s','path':'%s/%s'%s}", command, root, name, more));
}

/* Another program saves the file; then it has a time of its own. */
static void put_file(const char *name, const char *data, size_t len)
{
    char path[2 * ROOT_SIZE];
    const struct timespec times[2] = {{.tv_sec = MODIFIED_S}, {.tv_sec = MODIFIED_S}};
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(futimens(fd, times), 0);
    (void)close(fd);
}

static void put_file_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

/* ---- answers ---- */

static struct answer of_path(const char *tool, const char *path, const char *more)
{
    return go(tool, args("{'path':'%s'%s}", path, more));
}

static struct answer of_file(const char *tool, const char *name, const char *more)
{
    return of_path(tool, args("%s/%s", root, name), more);
}

static void has(const struct answer *answer, const char *path, const char *text)
{
    const char *there = at(answer->text, path);
    if (strcmp(there, text) != 0) {
        fail_msg("%s is %s, not %s, in %s", path, there, text, answer->text);
    }
}

/* Words "PATH=TEXT", separated by blanks. */
static void has_all(struct answer answer, const char *words)
{
    char copy[4096];
    char *save = NULL;
    (void)snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        char *equal = strchr(word, '=');
        assert_non_null(equal);
        *equal = '\0';
        has(&answer, word, equal + 1);
    }
    answer_free(&answer);
}

static void fails_for(const char *tool, const char *name, const char *more, const char *code,
                      int status, const char *part)
{
    struct answer answer =
        harness_call(&harness, tool, args("{'path':'%s/%s'%s}", root, name, more));
    assert_string_equal(answer.code, code);
    assert_int_equal(answer.status, status);
    if (strstr(answer.message, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, answer.message);
    }
    answer_free(&answer);
}

/* ---- log ---- */

static void test_log(void **state)
{
    char words[4 * ROOT_SIZE];
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    put_file_text("f", "other\n");
    insert("bob", "run-2", "f", 1, "two");
    create("ada", "run-1", "g", "g");
    run_on("delete", "f", "");
    (void)snprintf(words, sizeof(words),
                   "changes.0.action=deleted changes.0.revision=4 changes.0.added=0 "
                   "changes.0.removed=3 changes.0.kept=true changes.0.run=none "
                   "changes.1.action=updated changes.1.agent=bob changes.1.run=run-2 "
                   "changes.1.tool=fileEditor changes.1.collection=files changes.1.id=%s/f "
                   "changes.1.space=shared changes.1.revision=3 changes.1.summary=two "
                   "changes.1.kept=true changes.1.added=1 changes.1.removed=0 "
                   "changes.1.request_id=request-1 "
                   "changes.2.action=created changes.2.agent=ada changes.2.revision=1 "
                   "changes.2.summary=one changes.2.added=2 changes.2.removed=0 "
                   "changes.3=none has_more=false",
                   root);
    has_all(of_file("history_log", "f", ""), words);
    has_all(of_file("history_log", "f", ",'run':'run-2'"),
            "changes.0.revision=3 changes.1=none");
    has_all(of_file("history_log", "f", ",'limit':1"), "changes.0.revision=4 has_more=true");
    /* Without a path they are among all others. */
    has_all(go("history_log", "{}"), "changes.0.action=deleted changes.1.revision=1 "
                                     "changes.1.summary=g changes.2.revision=3");
}

static void test_log_of_moves(void **state)
{
    char words[8 * ROOT_SIZE];
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    run_on("move", "f", "g");
    run_on("copy", "g", "h");
    struct answer answer = of_file("history_log", "*", "");
    has(&answer, "changes.0.action", "created");
    has(&answer, "changes.0.summary", "one");
    has(&answer, "changes.1.summary", args("moved to %s/g", root));
    has(&answer, "changes.2.summary", args("moved from %s/f", root));
    answer_free(&answer);
    (void)snprintf(words, sizeof(words),
                   "changes.0.id=%s/h changes.1.id=%s/f changes.1.action=deleted "
                   "changes.1.revision=2 changes.2.id=%s/g changes.2.action=moved "
                   "changes.2.revision=1 changes.3.id=%s/f changes.4=none",
                   root, root, root, root);
    has_all(of_file("history_log", "*", ""), words);
}

static void test_prefixes(void **state)
{
    (void)state;
    create("ada", NULL, "ab", "1");
    create("ada", NULL, "a", "2");
    create("ada", NULL, "a*", "3");
    create("ada", NULL, "a*b", "4");
    create("ada", NULL, "d/a", "5");
    create("ada", NULL, "b", "6");
    has_all(of_file("history_log", "a", ""), "changes.0.summary=2 changes.1=none");
    has_all(of_file("history_log", "a*", ""), "changes.0.summary=4 changes.1.summary=3 "
                                              "changes.2.summary=2 changes.3.summary=1 "
                                              "changes.4=none");
    has_all(of_file("history_log", "a\\\\*", ""), "changes.0.summary=3 changes.1=none");
    has_all(of_file("history_log", "a**", ""),
            "changes.0.summary=4 changes.1.summary=3 changes.2=none");
    has_all(of_file("history_log", "d/*", ""), "changes.0.summary=5 changes.1=none");
    has_all(of_file("history_log", "d*", ""), "changes.0.summary=5 changes.1=none");
    has_all(of_file("history_log", "gone/*", ""), "changes.0=none");
    has_all(of_path("history_log", "a*", ""), "changes.0.summary=4 changes.4=none");
    has_all(of_path("history_log", "*", ""), "changes.0.summary=6 changes.5.summary=1");
    /* A name, where a document is asked for. */
    has_all(of_file("history_read", "a*", ""), "content=3");
}

/* Relative to the first root; links are followed. */
static void test_paths(void **state)
{
    char link[2 * ROOT_SIZE];
    char target[2 * ROOT_SIZE];
    (void)state;
    create("ada", NULL, "d/f", "one");
    (void)snprintf(target, sizeof(target), "%s/d", root);
    (void)snprintf(link, sizeof(link), "%s/link", root);
    assert_int_equal(symlink(target, link), 0);
    has_all(of_path("history_read", "d/f", ""), "content=one");
    has_all(of_path("history_log", "d/f", ""), "changes.0.summary=one");
    has_all(of_path("history_read", "./d/../d//f", ""), "content=one");
    has_all(of_path("history_read", "link/f", ""), "content=one");
    has_all(of_file("history_read", "link/f", ""), "content=one");
    has_all(of_path("history_log", "link/*", ""), "changes.0.summary=one");
    struct answer answer = of_path("history_read", "link/f", "");
    has(&answer, "id", args("%s/d/f", root));
    answer_free(&answer);
    fails_for("history_read", "../outside", "", "PATH_OUTSIDE_ROOTS", 403, "outside");
    fails_for("history_log", "../outside/*", "", "PATH_OUTSIDE_ROOTS", 403, "outside");
}

/* ---- read ---- */

static void test_read(void **state)
{
    (void)state;
    create("ada", "run-1", "f", "one\\ntwo\\n");
    insert("bob", "run-2", "f", 2, "three");
    run_on("delete", "f", "");
    create("ada", NULL, "f", "four");
    struct answer answer = of_file("history_read", "f", ",'at':'2'");
    has(&answer, "content", "one\ntwo\nthree\n");
    has(&answer, "id", args("%s/f", root));
    has_all(answer, "collection=files space=shared revision=2 agent=bob run=run-2 "
                    "tool=fileEditor action=updated encoding=none members=none total_lines=4");
    has_all(of_file("history_read", "f", ""), "content=four revision=4 agent=ada");
    has_all(of_file("history_read", "f", ",'at':'1','start_line':2,'max_lines':1"),
            "revision=1 next_line=3 total_lines=3");
    fails_for("history_read", "f", ",'at':'3'", "NOT_FOUND", 404, "was deleted");
    fails_for("history_read", "f", ",'at':'5'", "NOT_FOUND", 404, "");
    fails_for("history_read", "f", ",'at':'2020-01-01'", "NOT_FOUND", 404, "did not exist yet");
}

/* A notebook is not named by `path`, nor a file by `id`. */
static void test_two_names(void **state)
{
    (void)state;
    create("ada", NULL, "f", "one");
    fails_for("history_read", "f", ",'id':'n'", "INVALID_INPUT", 400, "leave one of them out");
    fails_for("history_read", "f", ",'collection':'notebooks'", "INVALID_INPUT", 400,
              "leave one of them out");
    fails_for("history_log", "f", ",'id':'n'", "INVALID_INPUT", 400, "leave one of them out");
    has_all(of_file("history_log", "f", ",'collection':'files'"), "changes.0.summary=one");
    has_all(of_file("history_log", "f", ",'collection':'notebooks'"), "changes.0=none");
    struct answer answer = harness_call(&harness, "history_blame", "{}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "neither `id` nor `path`"));
    answer_free(&answer);
}

static void test_not_utf8(void **state)
{
    (void)state;
    put_file("f", "\xff\0\n", 3);
    run_on("move", "f", "g");
    has_all(of_file("history_read", "g", ""),
            "content=/wAK encoding=base64 total_lines=2 revision=1");
    fails_for("history_blame", "g", "", "INVALID_INPUT", 400, "not UTF-8");
    fails_for("history_diff", "g", "", "INVALID_INPUT", 400, "not UTF-8");
    struct answer answer = of_file("history_log", "g", "");
    has(&answer, "changes.0.summary", args("moved from %s/f", root));
    has_all(answer, "changes.0.kept=true changes.0.added=2");
    has_all(go("history_diff", "{\"agent\":\"ada\"}"),
            "documents.1.reason=not_text documents.1.diff=none documents.1.added=2 "
            "documents.0.removed=2");
}

/* ---- versions of other programs ---- */

static void test_external(void **state)
{
    (void)state;
    put_file_text("f", "found\n");
    insert("ada", "run-1", "f", 1, "adas");
    put_file_text("f", "found\nexternal\n");
    insert("bob", NULL, "f", 2, "bobs");
    struct answer answer = of_file("history_read", "f", ",'at':'1'");
    has(&answer, "content", "found\n");
    has(&answer, "time", MODIFIED);
    has(&answer, "tool", "");
    has_all(answer, "action=found agent=none run=none");
    answer = of_file("history_read", "f", ",'at':'3'");
    has(&answer, "time", MODIFIED);
    has(&answer, "tool", "");
    has_all(answer, "action=external agent=none run=none");
    answer = of_file("history_blame", "f", "");
    has(&answer, "lines.0.text", "found");
    has(&answer, "lines.0.time", MODIFIED);
    has(&answer, "lines.1.time", MODIFIED);
    has_all(answer,
            "lines.0.revision=1 lines.0.agent=none lines.1.text=external lines.1.revision=3 "
            "lines.1.agent=none lines.1.run=none lines.2.text=bobs lines.2.agent=bob "
            "lines.2.revision=4 exact=true");
}

/* ---- a version and its change ---- */

static void same_change(const char *row, const struct answer *log, const struct answer *other,
                        const char *place)
{
    static const char *const members[] = {"seq", "time", "agent", "run", "tool"};
    for (size_t i = 0; i < NG_COUNT(members); i++) {
        has(other, args("%s%s", place, members[i]),
            at(log->text, args("%s.%s", row, members[i])));
    }
}

static void test_changes_of_versions(void **state)
{
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    insert("bob", "run-2", "f", 0, "top");
    put_file_text("f", "external\n");
    insert("ada", NULL, "f", 0, "last");
    run_on("copy", "f", "g");
    run_on("move", "g", "h");
    struct answer log = of_path("history_log", "*", "");
    int rows = 0;
    for (; strcmp(at(log.text, args("changes.%d", rows)), "none") != 0; rows++) {
        const char *row = args("changes.%d", rows);
        const char *action = at(log.text, args("%s.action", row));
        const char *id = at(log.text, args("%s.id", row));
        if (strcmp(action, "deleted") == 0) {
            continue;
        }
        struct answer answer = of_path(
            "history_read", id, args(",'at':'%s'", at(log.text, args("%s.revision", row))));
        same_change(row, &log, &answer, "");
        has(&answer, "action", action);
        has(&answer, "collection", at(log.text, args("%s.collection", row)));
        answer_free(&answer);
    }
    assert_int_equal(rows, 6);
    struct answer blame = of_file("history_blame", "f", ",'at':'2'");
    has_all(of_file("history_log", "f", ""), "changes.1.revision=2 changes.2.revision=1");
    struct answer f = of_file("history_log", "f", "");
    same_change("changes.1", &f, &blame, "lines.0.");
    same_change("changes.2", &f, &blame, "lines.1.");
    answer_free(&f);
    answer_free(&blame);
    answer_free(&log);
}

/* ---- diff ---- */

static void test_diff(void **state)
{
    char diff[4 * ROOT_SIZE];
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    insert("bob", "run-2", "f", 1, "two");
    put_file_text("f", "one\nthree\n");
    insert("ada", "run-1", "f", 2, "four");
    struct answer answer = of_file("history_diff", "f", "");
    (void)snprintf(diff, sizeof(diff),
                   "--- %s/f@3\n+++ %s/f@4\n@@ -1,2 +1,3 @@\n one\n three\n+four\n", root,
                   root);
    has(&answer, "diff", diff);
    has(&answer, "id", args("%s/f", root));
    has_all(answer, "from=3 to=4 added=1 removed=0 changed=[] collection=files");
    answer = of_file("history_diff", "f", ",'from':'1','to':'3','context':0");
    (void)snprintf(diff, sizeof(diff), "--- %s/f@1\n+++ %s/f@3\n@@ -1,0 +2 @@\n+three\n", root,
                   root);
    has(&answer, "diff", diff);
    answer_free(&answer);
    answer = of_file("history_diff", "f", ",'to':'1'");
    (void)snprintf(diff, sizeof(diff), "--- %s/f@0\n+++ %s/f@1\n@@ -0,0 +1 @@\n+one\n", root,
                   root);
    has(&answer, "diff", diff);
    answer_free(&answer);
}

/* A row per file and notebook; `from` and `to` are versions. */
static void test_diff_of_a_run(void **state)
{
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    create("bob", "run-2", "g", "g\\n");
    insert("bob", "run-2", "f", 1, "two");
    put_file_text("f", "one\nthree\n");
    insert("bob", "run-2", "f", 2, "four");
    put(&(struct put){.text = "n", .run = "run-2"});
    run_on("delete", "g", "");
    struct answer answer = go("history_diff", "{\"run\":\"run-2\"}");
    has(&answer, "documents.1.id", args("%s/f", root));
    has(&answer, "documents.2.id", args("%s/g", root));
    has_all(answer, "documents.0.id=n documents.0.to=1 documents.1.from=1 documents.1.to=4 "
                    "documents.1.others=1 documents.1.added=2 documents.1.removed=0 "
                    "documents.1.collection=files documents.1.space=shared "
                    "documents.1.changed=[] documents.2.from=0 documents.2.to=1 "
                    "documents.2.others=0 documents.3=none has_more=false");
    has_all(of_file("history_diff", "f", ",'run':['run-1','run-2']"),
            "documents.0.from=0 documents.0.to=4 documents.0.others=1 documents.1=none");
    has_all(of_file("history_diff", "*", ",'agent':'ada'"),
            "documents.0.from=1 documents.0.to=2 documents.0.removed=1 documents.0.added=0 "
            "documents.1.from=0 documents.1.to=1 documents.2=none");
}

/* ---- blame ---- */

static void test_blame(void **state)
{
    (void)state;
    create("ada", "run-1", "f", "one\\ntwo\\n");
    insert("bob", "run-2", "f", 1, "between");
    struct answer answer = of_file("history_blame", "f", "");
    has(&answer, "id", args("%s/f", root));
    has_all(answer, "collection=files revision=2 total_lines=4 exact=true lines.0.text=one "
                    "lines.0.first=1 lines.0.last=1 lines.0.revision=1 lines.0.agent=ada "
                    "lines.0.run=run-1 lines.0.tool=fileEditor lines.1.text=between "
                    "lines.1.agent=bob lines.1.run=run-2 lines.1.revision=2 lines.2.first=3 "
                    "lines.2.last=4 lines.2.revision=1 lines.3=none");
    has_all(of_file("history_blame", "f", ",'at':'1','start_line':2,'max_lines':1"),
            "lines.0.text=two lines.0.first=2 lines.1=none next_line=3");
    has_all(of_path("history_blame", "f", ""), "revision=2");
}

/* ---- rights ---- */

static struct answer as_key(struct key *key, const char *space, const struct ng_str *tools,
                            size_t count, const char *tool, const char *path)
{
    static struct ng_str spaces[1];
    spaces[0] = ng_str_of(space);
    struct call *call = call_with_key(key, NG_ROLE_READER, spaces, 1);
    key->tools = tools;
    key->tool_count = count;
    return harness_run(call, tool, args("{'path':'%s'}", path));
}

static void sees_nothing(const char *space, const struct ng_str *tools, size_t count,
                         const char *path, const char *code, const char *message)
{
    static const char *const asked[] = {"history_read", "history_diff", "history_blame"};
    static struct key keys[16];
    static size_t next;
    for (size_t i = 0; i < NG_COUNT(asked); i++) {
        struct answer answer = as_key(&keys[next++], space, tools, count, asked[i], path);
        assert_string_equal(answer.message, message);
        assert_string_equal(answer.code, code);
        assert_string_equal(answer.details, "");
        answer_free(&answer);
    }
}

static void test_rights(void **state)
{
    static const struct ng_str tools[] = {{"history_*", 9}, {"notebook", 8}};
    static struct key keys[4];
    char path[2 * ROOT_SIZE];
    char missing[2 * ROOT_SIZE];
    char message[4 * ROOT_SIZE];
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    (void)snprintf(path, sizeof(path), "%s/f", root);
    (void)snprintf(missing, sizeof(missing), "%s/missing", root);
    /* With the tool of the file. */
    struct answer answer = as_key(&keys[0], "shared", NULL, 0, "history_read", path);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    /* Without it: as a file that has no version, and no change. */
    (void)snprintf(message, sizeof(message), NO_VERSION, path);
    sees_nothing("shared", tools, NG_COUNT(tools), path, "NOT_FOUND", message);
    (void)snprintf(message, sizeof(message), NO_VERSION, missing);
    sees_nothing("shared", tools, NG_COUNT(tools), missing, "NOT_FOUND", message);
    answer = as_key(&keys[1], "shared", tools, NG_COUNT(tools), "history_log", path);
    assert_int_equal(answer.rc, NG_OK);
    has_all(answer, "changes.0=none");
    /* A removed file, too. */
    run_on("delete", "f", "");
    (void)snprintf(message, sizeof(message), NO_VERSION, path);
    sees_nothing("shared", tools, NG_COUNT(tools), path, "NOT_FOUND", message);
    answer = as_key(&keys[2], "shared", NULL, 0, "history_read", path);
    assert_string_equal(answer.code, "NOT_FOUND");
    assert_non_null(strstr(answer.message, "was deleted"));
    answer_free(&answer);
}

/* Of another space nothing is told, not even which paths are there. */
static void test_other_spaces(void **state)
{
    static struct key keys[10];
    size_t next = 0;
    char path[2 * ROOT_SIZE];
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    run_in("team", "ada", "run-1",
           args("{'command':'create','path':'%s/f','file_text':'team'}", team_root));
    (void)snprintf(path, sizeof(path), "%s/f", root);
    static const char *const asked[] = {"history_read", "history_diff", "history_blame",
                                        "history_log"};
    for (size_t i = 0; i < NG_COUNT(asked); i++) {
        struct answer answer = as_key(&keys[next++], "team", NULL, 0, asked[i], path);
        struct answer missing =
            as_key(&keys[next++], "team", NULL, 0, asked[i], args("%s/g", root));
        assert_string_equal(answer.code, "PATH_OUTSIDE_ROOTS");
        assert_string_equal(missing.code, "PATH_OUTSIDE_ROOTS");
        assert_null(strstr(answer.message, "one"));
        answer_free(&answer);
        answer_free(&missing);
    }
    /* The first root of the caller is another one. */
    struct answer answer = as_key(&keys[next++], "team", NULL, 0, "history_read", "f");
    has(&answer, "id", args("%s/f", team_root));
    has_all(answer, "content=team space=team");
    answer = as_key(&keys[next++], "team", NULL, 0, "history_log", "*");
    has_all(answer, "changes.0.summary=team changes.1=none");
    answer = of_path("history_read", args("%s/f", team_root), ",'space':'team'");
    has_all(answer, "content=team space=team");
}

static void test_without_a_version(void **state)
{
    char message[4 * ROOT_SIZE];
    char path[2 * ROOT_SIZE];
    (void)state;
    put_file_text("f", "one\n");
    (void)snprintf(path, sizeof(path), "%s/f", root);
    (void)snprintf(message, sizeof(message), NO_VERSION, path);
    expect_failure("history_read", args("{'path':'%s'}", path), "NOT_FOUND", 404, message,
                   NULL);
    (void)snprintf(message, sizeof(message), NO_VERSION, "f");
    expect_failure("history_blame", "{\"path\":\"f\"}", "NOT_FOUND", 404, message, NULL);
    has_all(of_path("history_log", "f", ""), "changes.0=none");
    /* Its changes are told where no content is kept. */
    atomic_store(&harness.gateway->limits.version, 2);
    insert("ada", "run-1", "f", 0, "top");
    struct answer answer = of_path("history_log", "f", "");
    has_all(answer, "changes.0.kept=false changes.0.revision=0 changes.0.action=updated "
                    "changes.0.added=none changes.1=none");
    expect_failure("history_blame", "{\"path\":\"f\"}", "NOT_FOUND", 404, message, NULL);
    has_all(go("history_diff", "{\"run\":\"run-1\"}"),
            "documents.0.kept=false documents.0.diff=none documents.1=none");
}

static void test_without_memory(void **state)
{
    (void)state;
    create("ada", "run-1", "f", "one\\n");
    put_file_text("f", "one\nother\n");
    insert("bob", "run-2", "f", 1, "two");
    run_on("move", "f", "g");
    put_file("f", "\xff", 1);
    run_on("copy", "f", "h");
    const char *g = args("{'path':'%s/g'}", root);
    expect_all_or_no_memory("history_read", g);
    expect_all_or_no_memory("history_blame", g);
    expect_all_or_no_memory("history_diff", g);
    expect_all_or_no_memory("history_log", g);
    expect_all_or_no_memory("history_read", args("{'path':'%s/f','at':'2'}", root));
    expect_all_or_no_memory("history_read", args("{'path':'%s/h'}", root));
    expect_all_or_no_memory("history_diff", args("{'path':'*','agent':['ada','bob']}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOTS(test_log),
        WITH_ROOTS(test_log_of_moves),
        WITH_ROOTS(test_prefixes),
        WITH_ROOTS(test_paths),
        WITH_ROOTS(test_read),
        WITH_ROOTS(test_two_names),
        WITH_ROOTS(test_not_utf8),
        WITH_ROOTS(test_external),
        WITH_ROOTS(test_changes_of_versions),
        WITH_ROOTS(test_diff),
        WITH_ROOTS(test_diff_of_a_run),
        WITH_ROOTS(test_blame),
        WITH_ROOTS(test_rights),
        WITH_ROOTS(test_other_spaces),
        WITH_ROOTS(test_without_a_version),
        cmocka_unit_test_setup_teardown(test_without_memory, setup_linked_roots,
                                        teardown_roots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
