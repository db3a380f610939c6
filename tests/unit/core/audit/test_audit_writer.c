/* SPDX-License-Identifier: MIT */
/* test_audit_writer.c - entries as they stand in the log, the names in them, and the thread
 * that writes them, also on a disk that refuses. */
#include "test_audit_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/audit/writer/audit_writer.h"
#include "core/base/str.h"

#define DOCS 450
#define NOVEMBER INT64_C(1796000000000) /* 2026-11-29 */

/* ---- a disk that refuses ---- */

static atomic_bool refuses;

int fdatasync(int fd) // NOLINT: in the place of libc's
{
    (void)fd;
    if (!atomic_load(&refuses)) {
        return 0;
    }
    errno = ENOSPC;
    return -1;
}

int fsync(int fd) // NOLINT: in the place of libc's
{
    (void)fd;
    return 0;
}

/* ---- entries ---- */

static const struct audit_entry plain = {
    .time_ms = NOVEMBER,
    .took_ms = 7,
    .face = "http",
    .outcome = "ok",
    .role = "writer",
    .mode = "agent",
    .agent = {"coder-1", 7},
    .key = {"k1", 2},
    .space = {"shared", 6},
    .remote = {"10.0.0.1", 8},
    .tool = {"notebook", 8},
    .operation = {"create", 6},
    .run = {"run-7", 5},
    .request = {"r1", 2},
};

static void open_writer(struct audit_rig *rig, struct audit_writer **ret)
{
    buf_clear(&rig->error);
    int rc = audit_writer_open(rig->dir, ng_str_of(RIG_NAME), AUDIT_AT_ONCE, ret, &rig->error);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
}

/* The folder is whole and has so many entries. */
static struct audit_verify_report expect_whole(struct audit_rig *rig, uint64_t size)
{
    struct audit_verify_report report;
    int rc = rig_verify(rig->dir, NULL, &report, &rig->error);
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&rig->error));
    }
    assert_int_equal(report.size, size);
    return report;
}

/* An entry of the log, NUL-terminated; to be freed. */
static char *entry_text(struct audit_rig *rig, uint64_t number, uint64_t size)
{
    struct buf bundle;
    struct ng_str entry;
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct audit_tiles tiles = {dir, size, &rig->error};
    assert_int_equal(audit_tiles_entry(&tiles, number, &bundle, &entry), NG_OK);
    char *text = str_dup(entry);
    assert_non_null(text);
    buf_done(&bundle);
    (void)close(dir);
    return text;
}

/* The member's value, a name of 33 characters. */
static void copy_name(const char *entry, const char *member, char out[AUDIT_NAME_SIZE])
{
    const char *at = strstr(entry, member);
    assert_non_null(at);
    memcpy(out, at + strlen(member), AUDIT_NAME_SIZE - 1);
    out[AUDIT_NAME_SIZE - 1] = '\0';
    assert_true(out[0] == '~' && strspn(out + 1, "0123456789abcdef") == AUDIT_NAME_DIGITS);
}

static void test_an_entry(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_writer *writer = NULL;
    char agent[AUDIT_NAME_SIZE];
    char id[AUDIT_NAME_SIZE];
    char wanted[1024];
    size_t len = 0;
    rig_make(&rig);
    open_writer(&rig, &writer);
    const struct audit_doc doc = {ng_str_of("notebooks"), ng_str_of("plan"), 3, 77,
                                  ng_str_of("updated")};
    struct audit_entry entry = plain;
    entry.docs = &doc;
    entry.doc_count = 1;
    audit_writer_put(writer, &entry);
    audit_writer_put(writer, &entry);
    audit_writer_close(writer);
    struct audit_verify_report report = expect_whole(&rig, 2);
    assert_int_equal(report.names, 4); /* each once */
    char *text = entry_text(&rig, 0, 2);
    assert_null(strstr(text, "coder-1"));
    assert_null(strstr(text, "plan"));
    copy_name(text, "\"agent\":\"", agent);
    copy_name(text, "\"id\":\"", id);
    char space[AUDIT_NAME_SIZE];
    char remote[AUDIT_NAME_SIZE];
    copy_name(text, "\"space\":\"", space);
    copy_name(text, "\"remote\":\"", remote);
    (void)snprintf(wanted, sizeof(wanted),
                   "{\"v\":1,\"time\":\"2026-11-30T00:53:20.000Z\",\"face\":\"http\","
                   "\"agent\":\"%s\",\"key\":\"k1\",\"role\":\"writer\",\"mode\":\"agent\","
                   "\"space\":\"%s\",\"remote\":\"%s\",\"tool\":\"notebook\","
                   "\"operation\":\"create\",\"outcome\":\"ok\",\"docs\":[{\"collection\":"
                   "\"notebooks\",\"id\":\"%s\",\"revision\":3,\"seq\":77,\"action\":"
                   "\"updated\"}],\"run\":\"run-7\","
                   "\"request\":\"r1\",\"ms\":7}",
                   agent, space, remote, id);
    assert_string_equal(text, wanted);
    char *names = rig_read(&rig, "names/2026-11.jsonl", &len);
    (void)snprintf(wanted, sizeof(wanted), "{\"name\":\"%s\",\"salt\":\"", agent);
    const char *line = strstr(names, wanted);
    assert_non_null(line);
    assert_non_null(strstr(line, "\"value\":\"coder-1\"}\n"));
    free(names);
    free(text);
    rig_done(&rig);
}

static void test_many_documents_have_further_entries(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_writer *writer = NULL;
    static struct audit_doc docs[DOCS];
    static char ids[DOCS][16];
    rig_make(&rig);
    open_writer(&rig, &writer);
    for (size_t i = 0; i < DOCS; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "doc-%zu", i);
        docs[i] =
            (struct audit_doc){ng_str_of("notebooks"), ng_str_of(ids[i]), i + 1, 0, {NULL, 0}};
    }
    struct audit_entry entry = plain;
    entry.docs = docs;
    entry.doc_count = DOCS;
    audit_writer_put(writer, &entry);
    audit_writer_put(writer, &plain);
    audit_writer_close(writer);
    (void)expect_whole(&rig, 4);
    static const char *const revisions[][2] = {
        {"\"revision\":1}", "\"revision\":200}]"},
        {"\"revision\":201}", "\"revision\":400}]"},
        {"\"revision\":401}", "\"revision\":450}]"},
    };
    for (size_t i = 0; i < NG_COUNT(revisions); i++) {
        char *text = entry_text(&rig, i, 4);
        assert_non_null(strstr(text, revisions[i][0]));
        assert_non_null(strstr(text, revisions[i][1]));
        assert_true(strlen(text) <= AUDIT_ENTRY_MAX);
        free(text);
    }
    rig_done(&rig);
}

/* The names of one chunk of entries need more than what may wait for the disk. */
static void test_many_long_names(void **state)
{
    enum { ENTRIES = 20, LONG_DOCS = ENTRIES * AUDIT_ENTRY_DOCS_MAX };
    struct audit_rig rig;
    struct audit_writer *writer = NULL;
    static struct audit_doc docs[LONG_DOCS];
    static char ids[LONG_DOCS][AUDIT_NAMED_MAX];
    (void)state;
    rig_make(&rig);
    open_writer(&rig, &writer);
    for (size_t i = 0; i < LONG_DOCS; i++) {
        char number[16];
        int len = snprintf(number, sizeof(number), "%zu", i);
        memset(ids[i], '\x01', sizeof(ids[i])); /* six bytes each, in JSON */
        memcpy(ids[i], number, (size_t)len);
        docs[i] = (struct audit_doc){
            ng_str_of("notebooks"), str_make(ids[i], sizeof(ids[i])), 1, 0, {NULL, 0}};
    }
    struct audit_entry entry = plain;
    entry.docs = docs;
    entry.doc_count = LONG_DOCS;
    audit_writer_put(writer, &entry);
    audit_writer_close(writer);
    assert_int_equal(expect_whole(&rig, ENTRIES).names, LONG_DOCS + 3);
    rig_done(&rig);
}

/* The longest values that a call can have. */
static void test_an_entry_has_a_limit(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_names *names;
    struct buf out;
    static char text[8192];
    static struct audit_doc docs[AUDIT_ENTRY_DOCS_MAX];
    size_t next = 0;
    memset(text, '\x01', sizeof(text)); /* six bytes each, in JSON */
    struct ng_str long_text = str_make(text, sizeof(text));
    rig_make(&rig);
    rig_open(&rig);
    int dir = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    names = audit_names_open(dir);
    assert_non_null(names);
    for (size_t i = 0; i < NG_COUNT(docs); i++) {
        docs[i] = (struct audit_doc){long_text, long_text, INT64_MAX, INT64_MAX, long_text};
    }
    const struct audit_entry entry = {
        .time_ms = NOVEMBER,
        .took_ms = INT64_MAX,
        .face = "http",
        .outcome = "ok",
        .role = "admin",
        .mode = "agent",
        .agent = long_text,
        .key = long_text,
        .space = long_text,
        .remote = long_text,
        .client = long_text,
        .tool = long_text,
        .operation = long_text,
        .run = long_text,
        .trace = long_text,
        .request = long_text,
        .docs = docs,
        .doc_count = NG_COUNT(docs),
    };
    buf_init(&out, AUDIT_ENTRY_MAX);
    assert_int_equal(audit_entry_write(&entry, 0, names, &out, &next, &rig.error), NG_OK);
    assert_int_equal(next, NG_COUNT(docs));
    buf_done(&out);
    audit_names_close(names);
    (void)close(dir);
    rig_done(&rig);
}

/* ---- the thread ---- */

static void test_a_refusing_disk_loses_nothing(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_writer *writer = NULL;
    struct buf sentence;
    buf_init(&sentence, 1024);
    rig_make(&rig);
    open_writer(&rig, &writer);
    audit_writer_put(writer, &plain);
    atomic_store(&refuses, true);
    audit_writer_put(writer, &plain);
    while (!audit_writer_is_failing(writer, &sentence)) {
        (void)sched_yield();
    }
    assert_non_null(strstr(buf_cstr(&sentence), "No space left on device"));
    atomic_store(&refuses, false);
    audit_writer_put(writer, &plain);
    audit_writer_close(writer);
    (void)expect_whole(&rig, 3);
    buf_done(&sentence);
    rig_done(&rig);
}

static void test_the_queue_has_a_limit(void **state)
{
    (void)state;
    struct audit_rig rig;
    struct audit_writer *writer = NULL;
    const struct audit_doc doc = {ng_str_of("notebooks"), ng_str_of("plan"), 3, 0, {NULL, 0}};
    struct audit_entry change = plain;
    change.docs = &doc;
    change.doc_count = 1;
    rig_make(&rig);
    atomic_store(&refuses, true);
    open_writer(&rig, &writer);
    for (size_t i = 0; i < AUDIT_WAITING_MAX; i++) {
        assert_false(audit_writer_is_full(writer));
        audit_writer_put(writer, &plain);
    }
    assert_true(audit_writer_is_full(writer));
    audit_writer_put(writer, &plain);
    assert_int_equal(audit_writer_dropped(writer), 1);
    audit_writer_put(writer, &change); /* it was made already */
    assert_int_equal(audit_writer_dropped(writer), 1);
    atomic_store(&refuses, false);
    audit_writer_close(writer);
    (void)expect_whole(&rig, AUDIT_WAITING_MAX + 1);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry),
        cmocka_unit_test(test_many_documents_have_further_entries),
        cmocka_unit_test(test_many_long_names),
        cmocka_unit_test(test_an_entry_has_a_limit),
        cmocka_unit_test(test_a_refusing_disk_loses_nothing),
        cmocka_unit_test(test_the_queue_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
