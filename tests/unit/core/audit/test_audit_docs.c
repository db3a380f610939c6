/* SPDX-License-Identifier: MIT */
/* test_audit_docs.c - which changes have entries, told by document and revision. */
#include "test_audit_rig.h"

#include <string.h>

#include "core/audit/audit_docs.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/str.h"

#define NOVEMBER INT64_C(1796000000000) /* 2026-11-29 */

static struct audit_doc doc_of(const char *id, uint64_t revision)
{
    return (struct audit_doc){
        .collection = ng_str_of("notebooks"), .id = ng_str_of(id), .revision = revision};
}

static void put(struct audit_writer *writer, const char *space, const struct audit_doc *docs,
                size_t count)
{
    audit_writer_put(writer, &(struct audit_entry){.time_ms = NOVEMBER,
                                                   .took_ms = -1,
                                                   .outcome = "ok",
                                                   .space = ng_str_of(space),
                                                   .docs = docs,
                                                   .doc_count = count});
}

static void put_one(struct audit_writer *writer, const char *space, const char *id,
                    uint64_t revision)
{
    const struct audit_doc doc = doc_of(id, revision);
    put(writer, space, &doc, 1);
}

static struct audit_writer *writer_of(struct audit_rig *rig)
{
    struct audit_writer *writer = NULL;
    rig_make(rig);
    buf_clear(&rig->error);
    assert_int_equal(
        audit_writer_open(rig->dir, ng_str_of(RIG_NAME), AUDIT_AT_ONCE, &writer, &rig->error),
        NG_OK);
    return writer;
}

static struct audit_docs *docs_of(struct audit_rig *rig, uint64_t from)
{
    struct audit_docs *docs = NULL;
    assert_int_equal(audit_docs_read(rig->dir, from, &docs, &rig->error), NG_OK);
    return docs;
}

static bool take(struct audit_docs *docs, const char *space, const char *id, uint64_t revision)
{
    const struct ng_key key = {ng_str_of("notebooks"), ng_str_of(space), ng_str_of(id)};
    return audit_docs_take(docs, &key, revision);
}

static void test_by_document_and_revision(void **state)
{
    struct audit_rig rig;
    (void)state;
    struct audit_writer *writer = writer_of(&rig);
    const struct audit_doc two[] = {doc_of("b", 1), doc_of("c", 4)};
    put_one(writer, "team", "old", 1);
    put_one(writer, "team", "a", 1);
    put_one(writer, "shared", "a", 1);
    put(writer, "team", two, NG_COUNT(two));
    put_one(writer, "team", "any", 0);
    put(writer, "team", NULL, 0);
    audit_writer_close(writer);
    struct audit_docs *docs = docs_of(&rig, 1);
    assert_false(take(docs, "team", "old", 1)); /* in front of the first entry */
    assert_false(take(docs, "team", "a", 2));
    assert_false(take(docs, "other", "a", 1));
    assert_true(take(docs, "shared", "a", 1));
    assert_true(take(docs, "team", "a", 1));
    assert_false(take(docs, "team", "a", 1)); /* once */
    assert_true(take(docs, "other", "c", 4)); /* the space of an entry with several is open */
    assert_false(take(docs, "team", "c", 4));
    assert_true(take(docs, "team", "any", 7)); /* so is a revision that it does not tell */
    assert_false(take(docs, "team", "any", 8));
    audit_docs_free(docs);
    rig_done(&rig);
}

static void test_redacted_names(void **state)
{
    struct audit_rig rig;
    uint64_t count = 0;
    (void)state;
    struct audit_writer *writer = writer_of(&rig);
    put_one(writer, "team", "secret", 3);
    put_one(writer, "hidden", "a", 1);
    assert_int_equal(audit_writer_redact(writer, ng_str_of("secret"), &count, &rig.error),
                     NG_OK);
    assert_int_equal(audit_writer_redact(writer, ng_str_of("hidden"), &count, &rig.error),
                     NG_OK);
    audit_writer_close(writer);
    struct audit_docs *docs = docs_of(&rig, 0);
    assert_false(take(docs, "team", "secret", 2));
    assert_false(take(docs, "other", "secret", 3));
    assert_true(take(docs, "team", "secret", 3));
    assert_false(take(docs, "team", "secret", 3));
    assert_true(take(docs, "hidden", "a", 1));
    assert_false(take(docs, "hidden", "a", 1));
    audit_docs_free(docs);
    rig_done(&rig);
}

/* The thread writes what was queued before the question, then the mark. */
static void test_settling(void **state)
{
    static const struct audit_mark mark = {17, 2};
    struct audit_rig rig;
    uint64_t entries = 0;
    size_t len = 0;
    int rc = NG_PENDING;
    (void)state;
    struct audit_writer *writer = writer_of(&rig);
    put_one(writer, "team", "a", 1);
    put_one(writer, "team", "b", 1);
    while (rc == NG_PENDING) {
        rc = audit_writer_settle(writer, &mark, &entries);
    }
    assert_int_equal(rc, NG_OK);
    assert_int_equal(entries, 2);
    char *text = rig_read(&rig, AUDIT_MARK_FILE, &len);
    assert_int_equal(len, strlen("17 2"));
    assert_memory_equal(text, "17 2", len);
    free(text);
    audit_writer_close(writer);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_document_and_revision),
        cmocka_unit_test(test_redacted_names),
        cmocka_unit_test(test_settling),
    };
    return cmocka_run_group_tests_name("audit docs", tests, NULL, NULL);
}
