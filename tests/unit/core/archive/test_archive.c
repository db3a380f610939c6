/* SPDX-License-Identifier: MIT */
/* test_archive.c - the portable backup: what goes in comes out, and nothing damaged gets in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/archive/archive.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/host/host.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)
#define TIME_MS INT64_C(1790000000000)

/* A backend that exports a list and writes down what is imported as text. */
struct fake {
    const struct ng_record *records;
    size_t count;
    struct buf imported;
    struct buf declared;
    bool began, ended, kept;
    uint64_t seq;
};

static int fake_export(void *db, struct ng_call *call, ng_record_fn *record, void *user)
{
    struct fake *fake = db;
    (void)call;
    for (size_t i = 0; i < fake->count; i++) {
        if (record(user, &fake->records[i]) != 0) {
            break;
        }
    }
    return NG_OK;
}

static int fake_declare(void *db, struct ng_call *call, const struct ng_collection *collection)
{
    struct fake *fake = db;
    (void)call;
    buf_printf(&fake->declared, "%s/%u/%zu;", collection->name, collection->flags,
               collection->field_count);
    return NG_OK;
}

static int fake_begin(void *db, struct ng_call *call)
{
    (void)call;
    ((struct fake *)db)->began = true;
    return NG_OK;
}

static void tell(struct buf *out, const char *name, struct ng_str text)
{
    buf_printf(out, "%s=%s%zu:", name, text.data == NULL ? "absent" : "", text.len);
    buf_add_str(out, text);
    buf_add_char(out, ' ');
}

static void tell_record(struct buf *out, const struct ng_record *record)
{
    buf_printf(out, "\n[%d] ", (int)record->kind);
    if (record->kind == NG_RECORD_REVISION) {
        const struct ng_doc *doc = record->doc;
        tell(out, "c", doc->key.collection);
        tell(out, "s", doc->key.space);
        tell(out, "i", doc->key.id);
        buf_printf(out, "%llu %d %d %llu %llu %lld %lld ", (unsigned long long)doc->revision,
                   doc->deleted, record->newest, (unsigned long long)doc->seq,
                   (unsigned long long)doc->created_seq, (long long)doc->created_ms,
                   (long long)doc->updated_ms);
        tell(out, "by", doc->author);
        tell(out, "action", doc->action);
        tell(out, "json", doc->json);
        tell(out, "text", doc->text);
    } else if (record->kind == NG_RECORD_EVENT) {
        const struct ng_event *event = record->event;
        buf_printf(out, "%llu %lld %llu ", (unsigned long long)event->seq,
                   (long long)event->time_ms, (unsigned long long)event->revision);
        tell(out, "i", event->key.id);
        tell(out, "tool", event->tool);
        tell(out, "data", event->data);
    } else if (record->kind == NG_RECORD_ANSWER) {
        tell(out, "scope", record->answer->scope);
        tell(out, "hash", record->answer->body_hash);
        tell(out, "reply", record->answer->reply);
    } else {
        buf_printf(out, "%llu", (unsigned long long)record->seq);
    }
}

static int fake_record(void *db, struct ng_call *call, const struct ng_record *record)
{
    struct fake *fake = db;
    (void)call;
    tell_record(&fake->imported, record);
    for (size_t i = 0; i < record->field_count; i++) {
        tell(&fake->declared, "field", record->fields[i].text);
    }
    return NG_OK;
}

static int fake_end(void *db, struct ng_call *call, bool keep)
{
    struct fake *fake = db;
    (void)call;
    fake->ended = true;
    fake->kept = keep;
    return NG_OK;
}

static uint64_t fake_seq(void *db)
{
    return ((struct fake *)db)->seq;
}

static const struct ng_documents fake_backend = {
    .name = "fake",
    .version = "1",
    .declare = fake_declare,
    .export_all = fake_export,
    .import_begin = fake_begin,
    .import_record = fake_record,
    .import_end = fake_end,
    .last_seq = fake_seq,
};

/* ---- data ---- */

#define STR(text)                                                                              \
    {                                                                                          \
        text, sizeof(text) - 1                                                                 \
    }
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
#define DOC(id_, rev_, text_, deleted_)                                                        \
    {                                                                                          \
        .size = sizeof(struct ng_doc), .key = {STR("notes"), STR("shared"), STR(id_)},         \
        .revision = (rev_), .deleted = (deleted_), .json = STR("{\"title\": \"t\\u00e9\"}"),   \
        .text = STR(text_), .seq = (rev_) + 10, .created_seq = 11, .created_ms = 1000,         \
        .updated_ms = 2000 + (rev_), .author = STR("ada"), .action = STR("updated")            \
    }

static const struct ng_doc docs[] = {
    DOC("a", 1, LONG "\n\xc3\xa9t\xc3\xa9\n", false),
    DOC("a", 2, LONG "\n\xc3\xa8t\xc3\xa9\n", false), /* a byte inside a character differs */
    DOC("a", 5, LONG LONG "\n", false),               /* revisions between are not kept */
    DOC("a", 6, "", true),
    DOC("b\n\"\0c", 1, "with \0 and \x7f", false),
    DOC("", 1, "\xff\xfe raw " LONG, false), /* no UTF-8 */
    DOC("", 2, "\xff\xfd raw " LONG, false),
};
static const struct ng_event event_one = {.size = sizeof(event_one),
                                          .seq = 11,
                                          .time_ms = 5,
                                          .key = {STR("notes"), STR("shared"), STR("a")},
                                          .revision = 1,
                                          .agent = STR("ada"),
                                          .tool = STR("note"),
                                          .action = STR("created")};
static const struct ng_event event_two = {.size = sizeof(event_two),
                                          .seq = 12,
                                          .time_ms = 6,
                                          .key = {STR("notes"), STR("shared"), STR("a")},
                                          .revision = 2,
                                          .agent = STR("ada"),
                                          .tool = STR("note"),
                                          .action = STR("updated"),
                                          .data = STR("{\"x\":1}")};
static const struct ng_answer answer_one = {.size = sizeof(answer_one),
                                            .scope = STR("ada\0k"),
                                            .body_hash = STR("\x01\xff\x02\x80\x90"),
                                            .reply = STR("{}"),
                                            .time_ms = 1,
                                            .expires_ms = 2};

#define REVISION(index, newest_)                                                               \
    {                                                                                          \
        .size = sizeof(struct ng_record), .kind = NG_RECORD_REVISION, .doc = &docs[index],     \
        .newest = (newest_)                                                                    \
    }
static const struct ng_record records[] = {
    REVISION(0, false),
    REVISION(1, false),
    REVISION(2, false),
    REVISION(3, true),
    REVISION(4, true),
    REVISION(5, false),
    REVISION(6, true),
    {.size = sizeof(struct ng_record), .kind = NG_RECORD_EVENT, .event = &event_one},
    {.size = sizeof(struct ng_record), .kind = NG_RECORD_EVENT, .event = &event_two},
    {.size = sizeof(struct ng_record), .kind = NG_RECORD_ANSWER, .answer = &answer_one},
    {.size = sizeof(struct ng_record), .kind = NG_RECORD_SEQ, .seq = 99},
};

static const struct ng_field note_fields[] = {{"title", NG_FIELD_STRING, 0}};
static const struct ng_collection notes = {
    .name = "notes",
    .flags = NG_COLLECTION_TEXT_SEARCH,
    .fields = note_fields,
    .field_count = 1,
    .field_size = sizeof(struct ng_field),
};

static const struct ng_collection *known_notes(void *user, struct ng_str name)
{
    (void)user;
    return str_is(name, "notes") ? &notes : NULL;
}

/* ---- helpers ---- */

struct fixture {
    struct gateway gateway;
    struct fake fake;
    struct buf archive; /* of `records` */
    struct buf expected;
};

static int put_bytes(void *user, struct ng_str bytes)
{
    return buf_add_str(user, bytes);
}

struct reader {
    struct ng_str bytes;
    size_t at;
    size_t step; /* bytes given at once, at most */
};

static int get_bytes(void *user, char *to, size_t room, size_t *ret_len)
{
    struct reader *reader = user;
    size_t left = reader->bytes.len - reader->at;
    size_t len = left < room ? left : room;
    len = len < reader->step ? len : reader->step;
    if (len > 0) {
        memcpy(to, reader->bytes.data + reader->at, len);
    }
    reader->at += len;
    *ret_len = len;
    return NG_OK;
}

static int rewind_bytes(void *user)
{
    ((struct reader *)user)->at = 0;
    return NG_OK;
}

static int read_archive(struct ng_str bytes, struct buf *error)
{
    struct archive_counts counts;
    struct reader reader = {bytes, 0, 1000};
    return archive_read(get_bytes, &reader, NULL, &counts, error);
}

/* It is refused, at this line, with these words. */
static void expect_refused(struct ng_str bytes, size_t line, const char *words)
{
    struct buf error;
    char prefix[40];
    buf_init(&error, TEXT_MAX);
    assert_int_equal(read_archive(bytes, &error), NG_EFAILED);
    if (line > 0) {
        (void)snprintf(prefix, sizeof(prefix), "line %zu: ", line);
        assert_memory_equal(buf_cstr(&error), prefix, strlen(prefix));
    }
    if (words != NULL && strstr(buf_cstr(&error), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", buf_cstr(&error), words);
    }
    buf_done(&error);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct archive_counts counts;
    assert_non_null(fixture);
    fixture->gateway.host = call_host;
    fixture->fake.records = records;
    fixture->fake.count = NG_COUNT(records);
    buf_init(&fixture->fake.imported, TEXT_MAX);
    buf_init(&fixture->fake.declared, TEXT_MAX);
    buf_init(&fixture->archive, TEXT_MAX);
    buf_init(&fixture->expected, TEXT_MAX);
    struct call *call = call_new(&fixture->gateway);
    assert_non_null(call);
    struct archive_origin origin = {
        .backend = &fake_backend, .db = &fixture->fake, .collection = known_notes};
    assert_int_equal(
        archive_write(&origin, call, TIME_MS, put_bytes, &fixture->archive, &counts), NG_OK);
    assert_int_equal(counts.documents, 3);
    assert_int_equal(counts.revisions, 7);
    assert_int_equal(counts.events, 2);
    assert_int_equal(counts.answers, 1);
    assert_int_equal(counts.bytes, fixture->archive.len);
    call_unref(call);
    for (size_t i = 0; i < NG_COUNT(records); i++) {
        tell_record(&fixture->expected, &records[i]);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    buf_done(&fixture->fake.imported);
    buf_done(&fixture->fake.declared);
    buf_done(&fixture->archive);
    buf_done(&fixture->expected);
    free(fixture);
    return 0;
}

static int restore(struct fixture *fixture, struct ng_str bytes, size_t step, struct buf *error)
{
    struct archive_counts counts;
    struct reader reader = {bytes, 0, step};
    struct archive_source source = {get_bytes, rewind_bytes, &reader};
    struct archive_origin into = {.backend = &fake_backend, .db = &fixture->fake};
    struct call *call = call_new(&fixture->gateway);
    assert_non_null(call);
    int rc = archive_restore(&into, call, &source, &counts, error);
    call_unref(call);
    return rc;
}

/* ---- tests ---- */

static void test_round_trip(void **state)
{
    struct fixture *fixture = *state;
    static const size_t steps[] = {1, 7, 100000};
    for (size_t i = 0; i < NG_COUNT(steps); i++) {
        struct buf error;
        buf_init(&error, TEXT_MAX);
        buf_clear(&fixture->fake.imported);
        buf_clear(&fixture->fake.declared);
        assert_int_equal(restore(fixture, buf_str(&fixture->archive), steps[i], &error), NG_OK);
        assert_true(fixture->fake.kept);
        assert_int_equal(fixture->fake.imported.len, fixture->expected.len);
        assert_memory_equal(fixture->fake.imported.data, fixture->expected.data,
                            fixture->expected.len);
        /* The archive carries declarations; only newest revisions that are there have fields.
         */
        assert_string_equal(buf_cstr(&fixture->fake.declared),
                            "notes/1/1;field=3:t\xc3\xa9 field=3:t\xc3\xa9 ");
        buf_done(&error);
    }
}

static void test_splices_save_space(void **state)
{
    struct fixture *fixture = *state;
    const char *text = buf_cstr(&fixture->archive);
    assert_non_null(strstr(text, "\"text\":{\"at\":71,\"cut\":2,\"put\":\"\xc3\xa8\"}"));
    assert_non_null(strstr(text, "\"base64\""));
    assert_true(utf8_valid(buf_str(&fixture->archive)));
}

static void test_every_byte_counts(void **state)
{
    struct fixture *fixture = *state;
    struct buf copy;
    buf_init(&copy, TEXT_MAX);
    buf_add_str(&copy, buf_str(&fixture->archive));
    size_t line = 1;
    for (size_t i = 0; i < copy.len; i++) {
        bool ends = copy.data[i] == '\n';
        copy.data[i] ^= 1;
        /* A changed line end makes two lines one: found in that one. */
        expect_refused(buf_str(&copy), line, NULL);
        copy.data[i] ^= 1;
        line += ends ? 1 : 0;
    }
    buf_done(&copy);
}

static void test_cut_off_anywhere(void **state)
{
    struct fixture *fixture = *state;
    for (size_t len = 0; len < fixture->archive.len; len++) {
        expect_refused(str_make(fixture->archive.data, len), 0, "cut off");
    }
}

static void test_lines_missing_and_doubled(void **state)
{
    struct fixture *fixture = *state;
    struct buf copy;
    size_t begin = 0;
    size_t line = 1;
    buf_init(&copy, TEXT_MAX);
    while (begin < fixture->archive.len) {
        const char *end =
            memchr(fixture->archive.data + begin, '\n', fixture->archive.len - begin);
        size_t next = (size_t)(end - fixture->archive.data) + 1;
        buf_clear(&copy);
        buf_add(&copy, fixture->archive.data, begin);
        buf_add(&copy, fixture->archive.data + next, fixture->archive.len - next);
        expect_refused(buf_str(&copy), next == fixture->archive.len ? 0 : line, NULL);
        buf_clear(&copy);
        buf_add(&copy, fixture->archive.data, next);
        buf_add(&copy, fixture->archive.data + begin, fixture->archive.len - begin);
        expect_refused(buf_str(&copy), line + 1, NULL);
        begin = next;
        line++;
    }
    buf_done(&copy);
}

static void test_other_files(void **state)
{
    (void)state;
    expect_refused(ng_str_of("hello\n"), 1, "this is not a notegate backup");
    expect_refused(ng_str_of("{\"kind\":\"x\"}\n"), 1, "this is not a notegate backup");
    expect_refused(str_make("", 0), 1, "cut off");
}

static void test_damage_touches_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct buf error;
    buf_init(&error, TEXT_MAX);
    fixture->archive.data[fixture->archive.len / 2] ^= 1;
    assert_int_equal(restore(fixture, buf_str(&fixture->archive), 1000, &error), NG_EFAILED);
    assert_false(fixture->fake.began);
    assert_int_equal(fixture->fake.imported.len, 0);
    buf_done(&error);
}

static void test_store_not_empty(void **state)
{
    struct fixture *fixture = *state;
    struct buf error;
    buf_init(&error, TEXT_MAX);
    fixture->fake.seq = 1;
    assert_int_equal(restore(fixture, buf_str(&fixture->archive), 1000, &error), NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&error), "not empty"));
    assert_false(fixture->fake.began);
    buf_done(&error);
}

static void test_memory_runs_out(void **state)
{
    struct fixture *fixture = *state;
    int rc = NG_EFAILED;
    for (long count = 0; rc != NG_OK; count++) {
        struct buf error;
        buf_init(&error, TEXT_MAX);
        assert_true(count < 10000);
        fixture->fake.kept = false;
        buf_clear(&fixture->fake.imported);
        struct archive_counts counts;
        struct reader reader = {buf_str(&fixture->archive), 0, 1000};
        alloc_fail_after(count);
        rc = archive_read(get_bytes, &reader, NULL, &counts, &error);
        alloc_fail_after(-1);
        buf_done(&error);
    }
}

/* An export that ends a document before its newest revision, in the middle and at the end. */
static void test_newest_missing(void **state)
{
    static const struct ng_record cut[] = {REVISION(0, false), REVISION(4, true),
                                           REVISION(5, false)};
    struct fixture *fixture = *state;
    for (size_t from = 0; from < 2; from++) {
        struct archive_counts counts;
        struct archive_origin origin = {
            .backend = &fake_backend, .db = &fixture->fake, .collection = known_notes};
        struct call *call = call_new(&fixture->gateway);
        fixture->fake.records = cut + from;
        fixture->fake.count = 2;
        buf_clear(&fixture->archive);
        assert_int_equal(
            archive_write(&origin, call, TIME_MS, put_bytes, &fixture->archive, &counts),
            NG_OK);
        call_unref(call);
        expect_refused(buf_str(&fixture->archive), 0, "the newest revision");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_splices_save_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_byte_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut_off_anywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_missing_and_doubled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_newest_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_touches_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_store_not_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_runs_out, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
