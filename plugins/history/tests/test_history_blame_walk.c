/* SPDX-License-Identifier: MIT */
/* test_history_blame_walk.c - history_blame by what each change replaced gives what comparing
 * whole texts from the newest on gives: random and thinned histories, texts that are none, too
 * long ones, stores without splices, reads that fail. */
#include "test_history_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/merge/blame.h"
#include "core/base/utf8.h"
#include "core/store/store.h"
#include "test_clock.h"

#define TEXT_MAX ((size_t)1 << 14)
#define ANSWER_MAX ((size_t)1 << 22)
#define DOCUMENTS 40
/* More than the newest revisions that are read first. */
#define LONG_DOCUMENTS 6
#define LONG_REVISIONS 300

/* ---- a random document ---- */

struct document {
    char id[16];
    unsigned *seed;
    char text[TEXT_MAX];
    size_t len;
    uint64_t revision;
    bool is_deleted, has_bytes; /* has_bytes: some texts are not UTF-8 */
};

struct edit {
    uint64_t at, removed;
    struct ng_str inserted;
};

static int edit_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    const struct edit *edit = user;
    if (present->revision == 0 || present->deleted) {
        return call->host->draft_text(next, &edit->inserted, 1);
    }
    return call->host->draft_splice(next, edit->at, edit->removed, edit->inserted);
}

/* As tools do it: the splice is that of the change, also where equal bytes stand beside it. */
static void document_splice(struct document *document, size_t at, size_t removed,
                            struct ng_str inserted)
{
    struct edit edit = {at, removed, inserted};
    struct call *call = harness_new_call(&harness);
    const struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("notebooks"), ng_str_of("shared"), ng_str_of(document->id)},
        .fn = edit_fn,
        .user = &edit};
    call->may_block = true;
    call->caller.agent = ng_str_of("ada");
    call->pub.tool = ng_str_of("import");
    assert_int_equal(store_write_wait(harness.gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
    memmove(document->text + at + inserted.len, document->text + at + removed,
            document->len - at - removed);
    memcpy(document->text + at, inserted.data, inserted.len);
    document->len = document->len - removed + inserted.len;
}

static size_t line_start(const struct document *document, size_t at)
{
    while (at > 0 && document->text[at - 1] != '\n') {
        at--;
    }
    return at;
}

static size_t char_start(const struct document *document, size_t at)
{
    while (at > 0 && at < document->len && !utf8_is_start(document->text[at])) {
        at--;
    }
    return at;
}

static void document_step(struct document *document)
{
    unsigned *seed = document->seed;
    unsigned how = rig_below(seed, 24);
    char inserted[256];
    document->revision++;
    if (how == 0 && document->revision > 1 && !document->is_deleted) {
        put(&(struct put){.id = document->id, .deletes = true});
        document->is_deleted = true;
        document->len = 0;
        return;
    }
    size_t at = rig_below(seed, (unsigned)document->len + 1);
    size_t removed = rig_below(seed, (unsigned)(document->len - at) + 1);
    if (how > 1) {
        removed = removed > 24 ? removed % 24 : removed;
    }
    if (!document->has_bytes) {
        size_t end = char_start(document, at + removed);
        at = char_start(document, at);
        removed = end - at;
    }
    if (how % 3 > 0) { /* whole lines */
        size_t end = line_start(document, at + removed);
        at = line_start(document, at);
        removed = end - at;
    }
    rig_text(seed, 4, inserted, sizeof(inserted));
    if (document->has_bytes && how == 7) {
        (void)snprintf(inserted, sizeof(inserted), "\xff\n");
    }
    size_t len = document->len > TEXT_MAX / 2 ? 0 : strlen(inserted);
    document_splice(document, at, removed, str_make(inserted, len));
    document->is_deleted = false;
}

static void document_begin(struct document *document, const char *id, unsigned *seed)
{
    memset(document, 0, sizeof(*document));
    (void)snprintf(document->id, sizeof(document->id), "%s", id);
    document->seed = seed;
}

/* ---- the reference: whole texts, from the newest on ---- */

struct kept {
    uint64_t revision;
    char *text;
    size_t len;
};

struct reference {
    struct kept kept[LONG_REVISIONS * 3];
    size_t count;
};

static int take_kept(void *user, const struct ng_doc *row)
{
    struct reference *reference = user;
    assert_true(reference->count < NG_COUNT(reference->kept));
    assert_null(row->text_splice);
    struct ng_str text = row->deleted || !utf8_valid(row->text) ? str_make("", 0) : row->text;
    struct kept *kept = &reference->kept[reference->count++];
    *kept = (struct kept){row->revision, malloc(text.len + 1), text.len};
    assert_non_null(kept->text);
    memcpy(kept->text, text.data, text.len);
    return 0;
}

/* " 1-3:7" for the lines 1 to 3 of revision 7. */
static void add_lines(struct buf *out, uint64_t first, uint64_t last, uint64_t revision)
{
    (void)buf_printf(out, " %" PRIu64 "-%" PRIu64 ":%" PRIu64, first, last, revision);
}

static void refer(const char *id, uint64_t revision, struct buf *out)
{
    static struct reference reference;
    struct ng_key key = {ng_str_of("notebooks"), ng_str_of("shared"), ng_str_of(id)};
    const struct ng_range range = {
        .size = sizeof(range), .to = revision, .limit = UINT32_MAX, .with_body = true};
    struct call *call = harness_new_call(&harness);
    struct blame *blame = NULL;
    uint64_t *revisions = NULL;
    size_t count = 0;
    reference.count = 0;
    call->may_block = true;
    assert_int_equal(
        store_history(harness.gateway->store, call, &key, &range, take_kept, &reference),
        NG_OK);
    for (size_t i = 0; i < reference.count; i++) {
        struct kept *kept = &reference.kept[i];
        struct ng_str text = {kept->text, kept->len};
        assert_int_equal(i == 0 ? blame_new(BLAME_BACKWARD, text, kept->revision, &blame)
                                : blame_step_text(blame, kept->revision, text),
                         NG_OK);
        free(kept->text);
    }
    assert_int_equal(blame_result(blame, &revisions, &count), NG_OK);
    bool exact = blame_exact(blame) && reference.count == revision;
    (void)buf_printf(out, "%s", exact ? "exact" : "not exact");
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && revisions[end] == revisions[i]) {
            end++;
        }
        add_lines(out, i + 1, end, revisions[i]);
        i = end;
    }
    free(revisions);
    blame_free(blame);
    call_unref(call);
}

/* ---- the host, looked at and disturbed ---- */

enum disturbance { LOOK_ON, WITHOUT_SPLICES, SPLICES_FAIL, ALL_FAILS };

static struct {
    const struct ng_host *host;
    enum disturbance how;
    unsigned walks, forward, splices; /* reads of a history with texts; rows with a splice */
    ng_row_fn *row;
    void *user;
} spy;

static int spy_row(void *user, const struct ng_doc *row)
{
    (void)user;
    spy.splices += row->text_splice != NULL;
    return spy.row(spy.user, row);
}

static int spy_history(struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct ng_range given = *range;
    bool is_walk = range->with_body && range->limit > 1;
    spy.walks += is_walk;
    spy.forward += is_walk && range->ascending;
    if (is_walk && (spy.how == ALL_FAILS || (spy.how == SPLICES_FAIL && range->flags != 0))) {
        return call->host->fail_text(call, NG_EUNAVAILABLE,
                                     ng_str_of("the history is damaged"));
    }
    if (!is_walk) {
        return spy.host->history(call, key, range, row, user);
    }
    if (spy.how == WITHOUT_SPLICES) {
        given.flags = 0;
    }
    spy.row = row;
    spy.user = user;
    return spy.host->history(call, key, &given, spy_row, NULL);
}

static struct answer spied(enum disturbance how, const char *arguments)
{
    struct call *call = harness_new_call(&harness);
    struct ng_host host = *call->pub.host;
    memset(&spy, 0, sizeof(spy));
    spy.host = call->pub.host;
    spy.how = how;
    host.history = spy_history;
    call->pub.host = &host;
    return harness_run(call, "history_blame", arguments);
}

/* ---- comparing ---- */

static void lines_of(const char *json, struct buf *out)
{
    int64_t next = 1;
    (void)buf_printf(out, "%s", strcmp(at(json, "exact"), "true") == 0 ? "exact" : "not exact");
    const char *place = strstr(json, "\"lines\":[");
    while ((place = strstr(place, "{\"first\":")) != NULL) {
        int64_t first = strtoll(place + strlen("{\"first\":"), NULL, 10);
        int64_t last = strtoll(strstr(place, "\"last\":") + strlen("\"last\":"), NULL, 10);
        const char *revision = strstr(place, "\"revision\":") + strlen("\"revision\":");
        assert_int_equal(first, next);
        add_lines(out, (uint64_t)first, (uint64_t)last, strtoull(revision, NULL, 10));
        next = last + 1;
        place = revision;
    }
}

static void expect_reference(const char *id, uint64_t revision, enum disturbance how)
{
    struct answer answer =
        spied(how, args("{'id':'%s','space':'shared','at':'%" PRIu64 "','max_lines':100000}",
                        id, revision));
    struct buf got, want;
    if (answer.rc != NG_OK) {
        fail_msg("%s at %" PRIu64 ": %s", id, revision, answer.message);
    }
    buf_init(&got, ANSWER_MAX);
    buf_init(&want, ANSWER_MAX);
    lines_of(answer.text, &got);
    refer(id, revision, &want);
    assert_string_equal(buf_cstr(&got), buf_cstr(&want));
    buf_done(&got);
    buf_done(&want);
    answer_free(&answer);
}

static void expect_references(const struct document *document)
{
    static const enum disturbance all[] = {LOOK_ON, WITHOUT_SPLICES, SPLICES_FAIL};
    if (!document->is_deleted && utf8_valid(str_make(document->text, document->len))) {
        for (size_t i = 0; i < NG_COUNT(all); i++) {
            expect_reference(document->id, document->revision, all[i]);
        }
    }
}

static void test_random_documents(void **state)
{
    static struct document document;
    unsigned seed = rig_seed();
    unsigned splices = 0;
    (void)state;
    for (int i = 0; i < DOCUMENTS; i++) {
        document_begin(&document, args("d%d", i), &seed);
        document.has_bytes = i % 3 == 0;
        for (unsigned steps = 1 + rig_below(&seed, 40); steps > 0; steps--) {
            document_step(&document);
            if (rig_below(&seed, 8) == 0) {
                expect_references(&document);
            }
        }
        expect_references(&document);
        if (!document.is_deleted && utf8_valid(str_make(document.text, document.len))) {
            expect_reference(document.id, document.revision, LOOK_ON);
            splices += spy.splices;
        }
    }
    assert_true(splices > DOCUMENTS);
}

/* The newest revisions are read first; a text that was made anew among them needs no others. */
static void test_long_histories(void **state)
{
    static struct document document;
    unsigned seed = rig_seed();
    unsigned short_ones = 0;
    (void)state;
    for (int i = 0; i < LONG_DOCUMENTS; i++) {
        unsigned steps = LONG_REVISIONS + rig_below(&seed, LONG_REVISIONS);
        unsigned anew = rig_below(&seed, LONG_REVISIONS) + (i % 2 == 0 ? 250 : 0);
        document_begin(&document, args("l%d", i), &seed);
        document_splice(&document, 0, 0, ng_str_of("this line stays\n"));
        document.revision++;
        while (steps-- > 0) {
            document_step(&document);
            if (document.is_deleted || steps == anew) {
                document_splice(&document, 0, document.len, ng_str_of("made anew\n"));
                document.is_deleted = false;
                document.revision++;
            }
        }
        expect_references(&document);
        expect_reference(document.id, document.revision, LOOK_ON);
        assert_int_equal(spy.walks, spy.forward);
        short_ones += spy.walks == 1;
        assert_true(spy.splices > 100);
    }
    assert_true(short_ones > 0);
    document_begin(&document, "kept", &seed);
    for (int i = 0; i < LONG_REVISIONS; i++) {
        document_splice(&document, document.len, 0, ng_str_of("a line\n"));
        document.revision++;
    }
    expect_reference("kept", LONG_REVISIONS, LOOK_ON);
    assert_int_equal(spy.walks, 2);
    expect_reference("kept", 200, LOOK_ON);
    assert_int_equal(spy.walks, 1);
    expect_references(&document);
}

/* Revisions of many days, of which the last of each is kept. */
static void test_thinned_histories(void **state)
{
    static struct document document;
    unsigned seed = rig_seed();
    (void)state;
    test_clock_begin_day();
    document_begin(&document, "n", &seed);
    for (int day = 0; day < 60; day++) {
        for (unsigned steps = 1 + rig_below(&seed, 12); steps > 0; steps--) {
            document_step(&document);
        }
        test_clock_pass(TEST_CLOCK_DAY_MS);
    }
    document_splice(&document, 0, 0, ng_str_of("the last\n"));
    document.revision++;
    document.is_deleted = false;
    for (int tries = 0; tries < 2; tries++) {
        expect_reference("n", document.revision, LOOK_ON);
        assert_true(spy.forward > 0 && spy.forward == spy.walks);
        expect_references(&document);
        thin();
    }
    for (int i = 0; i < 20; i++) {
        document_splice(&document, 0, rig_below(&seed, 3), ng_str_of("after that\n"));
        document.revision++;
        expect_references(&document);
    }
    test_clock_reset();
}

/* ---- texts that are too long, and failures ---- */

static void test_large_before(void **state)
{
    static const char *const arguments = "{\"id\":\"n\",\"space\":\"shared\"}";
    size_t len = BLAME_TEXT_MAX + 1;
    char *text = malloc(len);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', len);
    put_text("one");
    put(&(struct put){.bytes = str_make(text, len)});
    free(text);
    put_text("two");
    struct answer answer = spied(LOOK_ON, arguments);
    assert_string_equal(answer.message, "an earlier text has more than 4194304 bytes");
    answer_free(&answer);
    put_text("three"); /* not needed to find where this line came from */
    answer = spied(LOOK_ON, arguments);
    assert_int_equal(answer.rc, NG_OK);
    assert_string_equal(at(answer.text, "lines.0.revision"), "4");
    answer_free(&answer);
}

/* Behind the bound of all comparisons the two ways would not give the same. */
static void test_too_much_to_compare(void **state)
{
    enum { LINES = 30000, TURNS = 40 };
    unsigned seed = rig_seed();
    struct buf texts[2];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        buf_init(&texts[i], ANSWER_MAX);
        for (int line = 0; line < LINES; line++) {
            (void)buf_printf(&texts[i], "%u\n", rig_below(&seed, 5000));
        }
    }
    for (int turn = 0; turn < TURNS; turn++) {
        put(&(struct put){.bytes = buf_str(&texts[turn % 2])});
    }
    expect_reference("n", TURNS, LOOK_ON);
    assert_int_equal(spy.walks, 2);
    buf_done(&texts[0]);
    buf_done(&texts[1]);
}

static void test_reads_fail(void **state)
{
    static const char *const arguments = "{\"id\":\"n\",\"space\":\"shared\"}";
    (void)state;
    put_text("one\n");
    put_text("one\ntwo\n");
    struct answer answer = spied(SPLICES_FAIL, arguments);
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(spy.walks, 2);
    answer_free(&answer);
    answer = spied(ALL_FAILS, arguments);
    assert_int_equal(answer.rc, NG_EUNAVAILABLE);
    assert_string_equal(answer.message, "the history is damaged");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_random_documents),
        WITH(test_long_histories),
        WITH_SQLITE(test_thinned_histories),
        WITH(test_large_before),
        WITH(test_reads_fail),
        WITH(test_too_much_to_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
