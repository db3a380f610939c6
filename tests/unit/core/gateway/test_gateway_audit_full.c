/* SPDX-License-Identifier: MIT */
/* test_gateway_audit_full.c - a disk that takes no entries: calls that only read go on, and
 * from AUDIT_WAITING_MAX on changes are refused until it takes them again. */
#include "test_gateway_audit_rig.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/audit/writer/audit_writer.h"
#include "core/base/str.h"

static const char *const plain[] = {"plugins=notebook", "documents=memory", "audit=on", NULL};

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

static void expect(struct harness *harness, const char *args, const char *code,
                   const char *message)
{
    struct answer answer = harness_call(harness, "notebook", args);
    assert_string_equal(answer.code, code);
    assert_non_null(strstr(answer.message, message));
    answer_free(&answer);
}

#define CREATE "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"text\"}"
#define WRITE "{\"mode\":\"write\",\"name\":\"n\",\"newStr\":\"more\"}"
#define READ "{\"mode\":\"read\",\"name\":\"n\"}"

static void test_changes_are_refused(void **state)
{
    struct harness harness;
    struct buf sentence;
    (void)state;
    harness_open(&harness, plain);
    struct audit_writer *writer = harness.gateway->audit.writer;
    buf_init(&sentence, 1024);
    atomic_store(&refuses, true);
    expect(&harness, CREATE, "ok", "");
    while (!audit_writer_is_failing(writer, &sentence)) {
        sched_yield();
    }
    assert_non_null(strstr(buf_cstr(&sentence), "No space left on device"));
    expect(&harness, WRITE, "ok", ""); /* it waits */
    const struct audit_doc doc = {ng_str_of("things"), ng_str_of("one"), 1, 1,
                                  ng_str_of("created")};
    const struct audit_entry entry = {.took_ms = -1, .docs = &doc, .doc_count = 1};
    while (!audit_writer_is_full(writer)) {
        audit_writer_put(writer, &entry);
    }
    expect(&harness, WRITE, "BACKEND_UNAVAILABLE",
           "changes are refused: 100000 entries of the audit log cannot be written: ");
    expect(&harness, WRITE, "BACKEND_UNAVAILABLE", "No space left on device");
    expect(&harness, READ, "ok", "");
    atomic_store(&refuses, false);
    while (audit_writer_is_full(writer)) {
        sched_yield();
    }
    expect(&harness, WRITE, "ok", "");
    assert_true(audit_writer_dropped(writer) >= 2); /* the refused calls */
    buf_done(&sentence);
    char *text = audit_text(&harness);
    assert_int_equal(audit_count(text, "\"operation\":\"create\",\"outcome\":\"ok\""), 1);
    assert_int_equal(audit_count(text, "\"operation\":\"write\",\"outcome\":\"ok\""), 2);
    free(text);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
