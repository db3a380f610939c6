/* SPDX-License-Identifier: MIT */
/* test_history_undo.c - history_undo and history_restore: each row of what may have happened
 * since, random changes of several agents, rights, undos that are cut off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json/json.h"
#include "core/store/store.h"
#include "test_history_rig.h"

#define TEXT_BYTES 16384

/* A call of an agent in a run, which works. */
static struct answer as(const char *agent, const char *run, const char *tool,
                        const char *arguments)
{
    struct call *call = harness_new_call(&harness);
    call->caller.agent = ng_str_of(agent);
    call_set_run(call, ng_str_of(run));
    struct answer answer = harness_run(call, tool, arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s %s: %s %s", tool, arguments, answer.code, answer.message);
    }
    return answer;
}

static void by(const char *agent, const char *run, const char *tool, const char *arguments)
{
    struct answer answer = as(agent, run, tool, arguments);
    answer_free(&answer);
}

/* The text of a document, or "(none)". One of a few static places. */
static const char *text_of(const char *id)
{
    static char places[4][TEXT_BYTES];
    static unsigned next;
    char *place = places[next++ % NG_COUNT(places)];
    struct call *call = harness_new_call(&harness);
    const struct ng_key key = {ng_str_of("notebooks"), ng_str_of("shared"), ng_str_of(id)};
    const struct ng_doc *doc = NULL;
    call->may_block = true;
    assert_int_equal(store_get(harness.gateway->store, call, &key, 0, &doc), NG_OK);
    struct ng_str text = doc->text;
    if (doc->revision == 0 || doc->deleted) {
        text = ng_str_of("(none)");
    }
    assert_true(text.len < TEXT_BYTES);
    memcpy(place, text.data != NULL ? text.data : "", text.len);
    place[text.len] = '\0';
    call_unref(call);
    return place;
}

static const char *undo(const char *arguments)
{
    struct answer answer = go("history_undo", arguments);
    const char *text = at(answer.text, ""); /* kept for a while */
    answer_free(&answer);
    return text;
}

/* ---- what happened since ---- */

struct row {
    const char *name;
    const char *mine[3];  /* texts that the run writes, one after the other; NULL: no more */
    const char *after[3]; /* by others since */
    const char *before;   /* by another before; NULL: the run creates it */
    const char *left;     /* the text after the undo */
    const char *result;   /* and the reason of a conflict */
};

#define GONE "(gone)"

static void write_as(const char *agent, const char *run, const char *text)
{
    bool deletes = strcmp(text, GONE) == 0;
    put(&(struct put){.agent = agent, .run = run, .text = text, .deletes = deletes});
}

static void test_rows(void **state)
{
    static const struct row rows[] = {
        {"created", {"a\n"}, {NULL}, NULL, "(none)", "undone"},
        {"created, edited", {"a\n"}, {"a\nb\n"}, NULL, "a\nb\n", "changed_since"},
        {"created, and back", {"a\n"}, {"b\n", "a\n"}, NULL, "(none)", "undone"},
        {"created, deleted", {"a\n"}, {GONE}, NULL, "(none)", "unchanged"},
        {"deleted", {GONE}, {NULL}, "a\n", "a\n", "undone"},
        {"deleted, made anew", {GONE}, {"b\n"}, "a\n", "b\n", "recreated"},
        {"created and deleted", {"a\n", GONE}, {NULL}, NULL, "(none)", "unchanged"},
        {"edited", {"a\nB\n"}, {NULL}, "a\nb\n", "a\nb\n", "undone"},
        {"edited twice", {"a\nB\n", "A\nB\n"}, {NULL}, "a\nb\n", "a\nb\n", "undone"},
        {"edited, elsewhere too",
         {"A\nb\nc\n"},
         {"A\nb\nc\nd\n"},
         "a\nb\nc\n",
         "a\nb\nc\nd\n",
         "undone"},
        {"edited, the same line", {"A\nb\n"}, {"AA\nb\n"}, "a\nb\n", "AA\nb\n", "overlap"},
        {"edited, deleted", {"A\n"}, {GONE}, "a\n", "(none)", "gone"},
        {"edited, back by others", {"A\n"}, {"a\n"}, "a\n", "a\n", "unchanged"},
        {"two appends", {"a\nmine\n"}, {"a\nmine\ntheirs\n"}, "a\n", "a\ntheirs\n", "undone"},
        {"bytes", {"a\r\nB"}, {NULL}, "a\r\nb", "a\r\nb", "undone"},
    };
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        setup(state);
        if (row->before != NULL) {
            write_as("bob", NULL, row->before);
        }
        for (size_t at = 0; at < 3 && row->mine[at] != NULL; at++) {
            write_as("ada", "run-1", row->mine[at]);
        }
        for (size_t at = 0; at < 3 && row->after[at] != NULL; at++) {
            write_as("bob", NULL, row->after[at]);
        }
        const char *was = text_of("n");
        const char *told = undo("{\"run\":\"run-1\"}");
        assert_string_equal(text_of("n"), was); /* a preview */
        assert_string_equal(at(told, "undo"), "none");
        told = undo("{\"run\":\"run-1\",\"dry_run\":false}");
        const char *result = at(told, "items.0.result");
        if (strcmp(result, "conflict") == 0) {
            result = at(told, "items.0.conflict.reason");
        }
        if (strcmp(text_of("n"), row->left) != 0 || strcmp(result, row->result) != 0) {
            fail_msg("%s: %s, and the text is %s", row->name, told, text_of("n"));
        }
        teardown(state);
    }
}

/* Others' changes between those of the run stay. */
static void test_groups(void **state)
{
    (void)state;
    write_as("bob", NULL, "1\n2\n3\n4\n5\n");
    write_as("ada", "run-1", "one\n2\n3\n4\n5\n");
    write_as("bob", NULL, "one\n2\nthree\n4\n5\n");
    write_as("ada", "run-1", "one\n2\nthree\n4\nfive\n");
    write_as("bob", "run-2", "zero\none\n2\nthree\n4\nfive\n");
    const char *told = undo("{\"run\":\"run-1\",\"dry_run\":false}");
    assert_string_equal(text_of("n"), "zero\n1\n2\nthree\n4\n5\n");
    assert_string_equal(at(told, "items.0.revisions"), "[2,4]");
    assert_int_equal(int_at(told, "items.0.revision"), 6);
    assert_string_equal(at(told, "agents"), "[\"ada\"]");
}

/* A conflict of an older group: its line is that of the text that is there, and not of the text
 * from which the newer groups are taken out. */
static void test_line_of_an_older_group(void **state)
{
    (void)state;
    write_as("bob", NULL, "1\n2\n3\n");
    write_as("ada", "run-1", "1\n2\nthree\n");
    write_as("bob", NULL, "1\n2\nTHREE\n");
    write_as("ada", "run-1", "a\nb\nc\n1\n2\nTHREE\n");
    const char *told = undo("{\"run\":\"run-1\"}");
    assert_string_equal(at(told, "items.0.conflict.reason"), "overlap");
    assert_string_equal(at(told, "items.0.conflict.at.0.present"), "THREE");
    assert_int_equal(int_at(told, "items.0.conflict.at.0.line"), 6);
}

static void test_what_is_not_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        put(&(struct put){.text = i % 2 == 0 ? "a\n" : "b\n", .run = i == 3 ? "run-1" : NULL});
    }
    thin();
    const char *told = undo("{\"run\":\"run-1\"}");
    const char *result = at(told, "items.0.result");
    assert_true(strcmp(result, "conflict") != 0 ||
                strcmp(at(told, "items.0.conflict.reason"), "not_kept") == 0);
}

/* ---- entries: members ---- */

static const char *page_member(const char *id, const char *path)
{
    struct answer answer =
        go("notebook_read", args("{'notebook_id':'%s','collection':'pages'}", id));
    const char *value = at(answer.text, path);
    answer_free(&answer);
    return value;
}

static void test_members(void **state)
{
    char id[64];
    (void)state;
    struct answer made_page =
        as("bob", "x", "notebook_create",
           "{\"collection\":\"pages\",\"title\":\"Plan\",\"content\":\"# A\\nfirst\\n\\n# B\\n"
           "second\\n\",\"tags\":[\"t\"]}");
    (void)snprintf(id, sizeof(id), "%s", at(made_page.text, "notebook_id"));
    answer_free(&made_page);
    by("ada", "run-1", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','title':'Other','edits':[{'old_str':'"
            "first',"
            "'new_str':'FIRST'}]}",
            id));
    by("bob", "x", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','tags':['t','u'],'edits':[{'old_str':"
            "'second','new_str':'SECOND'}]}",
            id));
    const char *told = undo("{\"run\":\"run-1\",\"dry_run\":false}");
    assert_string_equal(at(told, "items.0.result"), "undone");
    assert_string_equal(page_member(id, "title"), "Plan");
    assert_string_equal(page_member(id, "content"), "# A\nfirst\n\n# B\nSECOND\n");
    assert_string_equal(page_member(id, "metadata.tags"), "[\"t\",\"u\"]");
    assert_string_equal(page_member(id, "metadata.created_by"), "agent:bob");
    /* A member that others changed, too. */
    by("ada", "run-2", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','title':'Mine'}", id));
    by("bob", "x", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','title':'His'}", id));
    told = undo("{\"run\":\"run-2\",\"dry_run\":false}");
    assert_string_equal(at(told, "items.0.conflict.reason"), "member");
    assert_string_equal(at(told, "items.0.conflict.at.0.present"), "title: \"His\"");
    assert_string_equal(page_member(id, "title"), "His");
    /* The text, too. */
    by("ada", "run-4", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','title':'Mine','edits':[{'old_str':"
            "'first','new_str':'1st'}]}",
            id));
    by("bob", "x", "notebook_update",
       args("{'notebook_id':'%s','collection':'pages','title':'Its','edits':[{'old_str':'1st',"
            "'new_str':'primo'}]}",
            id));
    told = undo("{\"run\":\"run-4\",\"dry_run\":false}");
    assert_string_equal(at(told, "items.0.conflict.reason"), "overlap");
    assert_string_equal(at(told, "items.0.conflict.at.0.present"), "primo");
    assert_string_equal(at(told, "items.0.conflict.at.0.before"), "first");
    assert_string_equal(at(told, "items.0.conflict.at.1.line"), "none");
    assert_string_equal(at(told, "items.0.conflict.at.1.present"), "title: \"Its\"");
    assert_string_equal(page_member(id, "content"), "# A\nprimo\n\n# B\nSECOND\n");
    /* A deleted one comes back with its creator. */
    by("ada", "run-3", "notebook_delete",
       args("{'notebook_id':'%s','collection':'pages'}", id));
    (void)undo("{\"run\":\"run-3\",\"dry_run\":false}");
    assert_string_equal(page_member(id, "metadata.created_by"), "agent:bob");
    assert_string_equal(page_member(id, "title"), "Its");
}

/* ---- random changes of several agents ---- */

#define AGENTS 4
#define DOCS 12
#define STEPS 200
#define LINES_MAX 40

static const char *const agents[AGENTS] = {"ada", "bob", "cid", "dan"};

/* The text with a new, unique line somewhere, a line changed, or one removed. */
static void random_edit(unsigned *seed, const char *old, unsigned step, unsigned who, char *out)
{
    unsigned lines = 0;
    for (const char *at = old; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    unsigned line = rig_below(seed, lines + 1);
    unsigned what = rig_below(seed, lines > LINES_MAX ? 2 : 4);
    const char *begin = old;
    for (unsigned i = 0; i < line; i++) {
        begin = strchr(begin, '\n') + 1;
    }
    const char *end = strchr(begin, '\n');
    end = end != NULL ? end + 1 : begin;
    const char *rest = what <= 1 ? end : begin; /* 0: removed, 1: replaced, else: added */
    int len = snprintf(out, TEXT_BYTES, "%.*s", (int)(begin - old), old);
    if (what != 0) {
        len += snprintf(out + len, TEXT_BYTES - (size_t)len, "<%s-%u>\n", agents[who], step);
    }
    (void)snprintf(out + len, TEXT_BYTES - (size_t)len, "%s", rest);
}

/* Each line that another than `who` has written and that is in `was` is in `is`. */
static void expect_others_lines(const char *was, const char *is, unsigned who)
{
    char mine[32];
    char line[64];
    (void)snprintf(mine, sizeof(mine), "<%s-", agents[who]);
    for (const char *at = was; *at != '\0';) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        (void)snprintf(line, sizeof(line), "%.*s", (int)(end - at + 1), at);
        if (strncmp(line, mine, strlen(mine)) != 0 && strstr(is, line) == NULL) {
            fail_msg("lost %s of\n%s\nin\n%s", line, was, is);
        }
        at = end + 1;
    }
}

static void name_of(unsigned doc, char name[8])
{
    (void)snprintf(name, 8, "n%u", doc);
}

static void test_random(void **state)
{
    unsigned seed = rig_seed();
    for (unsigned round = 0; round < 20; round++) {
        char was[DOCS][TEXT_BYTES];
        char id[8];
        setup(state);
        for (unsigned step = 0; step < STEPS; step++) {
            char next[TEXT_BYTES];
            unsigned who = rig_below(&seed, AGENTS);
            name_of(rig_below(&seed, DOCS), id);
            const char *now = text_of(id);
            random_edit(&seed, strcmp(now, "(none)") == 0 ? "" : now, step, who, next);
            put(&(struct put){
                .id = id, .agent = agents[who], .run = agents[who], .text = next});
        }
        for (unsigned doc = 0; doc < DOCS; doc++) {
            name_of(doc, id);
            (void)snprintf(was[doc], TEXT_BYTES, "%s", text_of(id));
        }
        const char *told = undo("{\"run\":\"bob\",\"dry_run\":false}");
        char again[128];
        (void)snprintf(again, sizeof(again), "{\"run\":\"%s\",\"dry_run\":false}",
                       at(told, "undo"));
        bool undone = strcmp(at(told, "undo"), "none") != 0;
        int64_t total = int_at(told, "total");
        for (int64_t i = 0; i < total; i++) {
            char path[64];
            unsigned doc = 0;
            (void)snprintf(path, sizeof(path), "items.%d.id", (int)i);
            const char *name = at(told, path);
            doc = (unsigned)strtoul(name + 1, NULL, 10);
            (void)snprintf(path, sizeof(path), "items.%d.result", (int)i);
            if (strcmp(at(told, path), "conflict") == 0) {
                assert_string_equal(text_of(name), was[doc]);
            } else if (strcmp(text_of(name), "(none)") != 0) {
                expect_others_lines(was[doc], text_of(name), 1);
                assert_null(strstr(text_of(name), "<bob-"));
            }
        }
        if (undone) { /* the undo of an undo is the identity */
            told = undo(again);
            assert_int_equal(int_at(told, "conflicts"), 0);
            for (unsigned doc = 0; doc < DOCS; doc++) {
                name_of(doc, id);
                assert_string_equal(text_of(id), was[doc]);
            }
        }
        teardown(state);
    }
}

/* ---- which changes, and who may ---- */

static void test_selection(void **state)
{
    (void)state;
    put(&(struct put){.id = "a", .text = "1\n", .agent = "ada", .run = "r"});
    put(&(struct put){.id = "b", .text = "1\n", .agent = "ada", .run = "r"});
    uint64_t first = seq_of(&(struct put){.id = "a"}, 1);
    const char *told = undo(args("{'run':'r','upto':%d}", (int)first));
    assert_int_equal(int_at(told, "total"), 1);
    assert_int_equal(int_at(told, "upto"), (int64_t)first);
    (void)undo(args("{'changes':[%d],'dry_run':false}", (int)first));
    assert_string_equal(text_of("a"), "(none)");
    assert_string_equal(text_of("b"), "1\n");
    told = undo("{\"agent\":\"ada\",\"since\":\"1h\",\"id\":\"b\",\"dry_run\":false}");
    assert_int_equal(int_at(told, "undone"), 1);
    assert_string_equal(text_of("b"), "(none)");
    expect_failure("history_undo", "{\"agent\":\"ada\"}", "INVALID_INPUT", 400,
                   "which changes? Name a `run`, or an `agent` with `since`, or `changes` by "
                   "their numbers; history_log shows them",
                   NULL);
    expect_failure("history_undo", "{\"changes\":[77777]}", "NOT_FOUND", 404,
                   "`changes`: there is no change with the number 77777", NULL);
    expect_failure("history_undo", "{\"continue\":\"undo-000000000000\"}", "NOT_FOUND", 404,
                   "there is no unfinished undo \"undo-000000000000\"; one that has ended is "
                   "taken back as a run",
                   NULL);
}

static struct answer with_key(enum ng_role role, const char *agent, const char *space,
                              const char *arguments)
{
    static struct key keys[4]; /* the call of one may still be ending */
    static size_t used;
    static struct ng_str spaces[1];
    spaces[0] = ng_str_of(space);
    struct call *call = call_with_key(&keys[used++ % NG_COUNT(keys)], role, spaces, 1);
    call->caller.agent = ng_str_of(agent);
    return harness_run(call, "history_undo", arguments);
}

/* A filter without names selects all changes, so it is refused. */
static void test_empty_names(void **state)
{
    static const char *const wrong[] = {
        "{\"run\":[]}",
        "{\"run\":\"\"}",
        "{\"run\":[\"r\",\"\"]}",
        "{\"agent\":[],\"since\":\"#0\"}",
        "{\"agent\":\"\",\"since\":\"#0\"}",
        "{\"run\":\"r\",\"agent\":[]}",
        "{\"changes\":[]}",
        "{\"changes\":[0]}",
    };
    (void)state;
    put(&(struct put){.text = "1\n", .agent = "ada", .run = "r"});
    for (size_t i = 0; i < NG_COUNT(wrong); i++) {
        struct answer answer = harness_call(&harness, "history_undo", wrong[i]);
        assert_string_equal(answer.code, "INVALID_INPUT");
        answer_free(&answer);
    }
    const char *told = undo("{\"run\":[\"r\",\"r\",\"undo-x\",\"undo-x\"],\"dry_run\":false}");
    assert_int_equal(int_at(told, "undone"), 1);
}

static const char *unfinished(void)
{
    struct answer answer = go("history_log", "{\"limit\":1}");
    const char *list = at(answer.text, "unfinished");
    answer_free(&answer);
    return list;
}

/* The record of an undo that was cut off ends with an undo of all of it, by whom it belongs to
 * or an admin. */
static void test_undo_of_an_unfinished_one(void **state)
{
    const struct put record = {.collection = "history_undos",
                               .id = "undo-aaaaaaaaaaaa",
                               .json = "{\"agent\":\"eve\"}"};
    (void)state;
    put(&record);
    put(&(struct put){.text = "1\n", .agent = "ada"});
    put(&(struct put){.text = "2\n", .agent = "ada", .run = "undo-aaaaaaaaaaaa"});
    struct answer answer = with_key(NG_ROLE_WRITER, "ada", "shared",
                                    "{\"run\":\"undo-aaaaaaaaaaaa\",\"dry_run\":false}");
    assert_int_equal(int_at(answer.text, "undone"), 1);
    answer_free(&answer);
    assert_string_equal(unfinished(), "[\"undo-aaaaaaaaaaaa\"]");
    (void)undo(
        "{\"run\":\"undo-aaaaaaaaaaaa\",\"collection\":\"notebooks\",\"dry_run\":false}");
    assert_string_equal(unfinished(), "[\"undo-aaaaaaaaaaaa\"]");
    (void)undo("{\"run\":\"undo-aaaaaaaaaaaa\",\"dry_run\":false}");
    assert_string_equal(unfinished(), "[]");
}

/* Those of others, as many as one page of the records has, hide none of the caller's. */
static void test_unfinished_of_others(void **state)
{
    char id[32];
    (void)state;
    for (int i = 0; i < 1001; i++) {
        (void)snprintf(id, sizeof(id), "undo-%012d", i);
        put(&(struct put){
            .collection = "history_undos", .id = id, .json = "{\"agent\":\"eve\"}"});
    }
    put(&(struct put){.collection = "history_undos",
                      .id = "undo-aaaaaaaaaaaa",
                      .json = "{\"agent\":\"ada\"}"});
    put_text("1\n");
    struct answer answer =
        with_key(NG_ROLE_WRITER, "ada", "shared", "{\"agent\":\"ada\",\"since\":\"#0\"}");
    assert_string_equal(at(answer.text, "unfinished"), "[\"undo-aaaaaaaaaaaa\"]");
    answer_free(&answer);
}

/* Many of them leave room for changes, and more than are listed. */
static void test_many_unfinished(void **state)
{
    char id[32];
    (void)state;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(id, sizeof(id), "undo-%012d", i);
        put(&(struct put){
            .collection = "history_undos", .id = id, .json = "{\"agent\":\"eve\"}"});
        (void)snprintf(id, sizeof(id), "n%d", i);
        put(&(struct put){.id = id, .text = "a line of some length\n", .run = "r"});
    }
    struct answer answer = go("history_log", "{\"limit\":200,\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "unfinished.0"), "undo-000000000000");
    assert_string_equal(at(answer.text, "unfinished.100"), "none");
    assert_string_equal(at(answer.text, "changes.0.id"), "n299");
    assert_string_equal(at(answer.text, "has_more"), "true");
    answer_free(&answer);
    const char *told = undo("{\"run\":\"r\"}");
    assert_string_equal(at(told, "unfinished.100"), "none");
    assert_string_equal(at(told, "items.0.result"), "undone");
}

/* A kill between the last document and the end of the record leaves nothing to do. */
static void test_continue_without_a_rest(void **state)
{
    (void)state;
    put(&(struct put){.collection = "history_undos",
                      .id = "undo-aaaaaaaaaaaa",
                      .json = "{\"agent\":\"eve\"}"});
    const char *told = undo("{\"continue\":\"undo-aaaaaaaaaaaa\",\"dry_run\":false}");
    assert_string_equal(at(told, "undo"), "undo-aaaaaaaaaaaa");
    assert_int_equal(int_at(told, "total"), 0);
    assert_string_equal(unfinished(), "[]");
}

static void test_rights(void **state)
{
    (void)state;
    put(&(struct put){.text = "mine\n", .agent = "ada", .run = "r"});
    put(&(struct put){.id = "m", .text = "his\n", .agent = "bob", .run = "r"});
    put(&(struct put){.id = "o", .space = "other", .text = "x\n", .agent = "ada", .run = "r"});
    struct answer answer =
        with_key(NG_ROLE_WRITER, "ada", "shared", "{\"run\":\"r\",\"dry_run\":false}");
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(int_at(answer.text, "total"), 2);
    assert_string_equal(at(answer.text, "items.0.id"), "m");
    assert_string_equal(at(answer.text, "items.0.conflict.reason"), "forbidden");
    assert_string_equal(at(answer.text, "items.1.result"), "undone");
    answer_free(&answer);
    assert_string_equal(text_of("m"), "his\n");
    assert_string_equal(text_of("n"), "(none)");
    answer = with_key(NG_ROLE_READER, "ada", "shared", "{\"run\":\"r\"}");
    assert_int_equal(answer.rc, NG_EFORBIDDEN);
    answer_free(&answer);
}

/* ---- restore ---- */

static void test_restore(void **state)
{
    (void)state;
    put_text("one\n");
    put_text("two\n");
    put(&(struct put){.deletes = true});
    expect(
        "history_restore", "{\"space\":\"shared\",\"id\":\"n\",\"at\":\"1\"}",
        "{\"revision\":4,\"restored_from\":1,\"added\":2,\"removed\":0,\"space\":\"shared\"}");
    assert_string_equal(text_of("n"), "one\n");
    expect_failure("history_restore", "{\"space\":\"shared\",\"id\":\"n\",\"at\":\"3\"}",
                   "INVALID_INPUT", 400,
                   "`at`: the document was deleted at this point, so there is nothing to "
                   "restore; history_log tells when it was there",
                   args("{'from':'%s','to':'%s'}", time_of(&(struct put){0}, 1),
                        time_of(&(struct put){0}, 3)));
    expect_failure("history_restore",
                   "{\"space\":\"shared\",\"id\":\"n\",\"at\":\"2\",\"expectedRevision\":3}",
                   "CONFLICT", 409, "revision 3 was expected, the document is at revision 4",
                   "{\"currentRevision\":4}");
    expect(
        "history_restore",
        "{\"space\":\"shared\",\"id\":\"n\",\"at\":\"2\",\"expectedRevision\":4}",
        "{\"revision\":5,\"restored_from\":2,\"added\":1,\"removed\":1,\"space\":\"shared\"}");
}

static void test_out_of_memory(void **state)
{
    (void)state;
    put(&(struct put){.text = "one\ntwo\n"});
    put(&(struct put){.text = "one\nTWO\n", .run = "run-1"});
    put(&(struct put){.text = "zero\none\nTWO\n", .agent = "bob"});
    expect_all_or_no_memory("history_undo", "{\"run\":\"run-1\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        WITH(test_groups),
        WITH(test_line_of_an_older_group),
        WITH_SQLITE(test_what_is_not_kept),
        WITH(test_members),
        cmocka_unit_test(test_random),
        WITH(test_selection),
        WITH(test_empty_names),
        WITH(test_undo_of_an_unfinished_one),
        WITH(test_unfinished_of_others),
        WITH(test_many_unfinished),
        WITH_SMALL(test_many_unfinished),
        WITH(test_continue_without_a_rest),
        WITH(test_rights),
        WITH(test_restore),
        WITH_LINKED(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
