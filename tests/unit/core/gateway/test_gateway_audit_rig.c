/* SPDX-License-Identifier: MIT */
/* test_gateway_audit_rig.c - reads the entries of a gateway's audit log. */
#include "test_gateway_audit_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/audit_read.h"
#include "core/base/str.h"

#define TEXT_MAX ((size_t)64 * 1024 * 1024)

char *audit_text(struct harness *harness)
{
    char path[320];
    struct audit_reader *reader = NULL;
    struct buf text;
    struct buf error;
    harness_reopen(harness);
    (void)snprintf(path, sizeof(path), "%s/audit", harness->dir);
    buf_init(&text, TEXT_MAX);
    buf_init(&error, 4096);
    int rc = audit_reader_open(path, &reader, &error);
    if (rc == NG_ENOTFOUND) {
        return NULL;
    }
    for (uint64_t i = 0; rc == NG_OK && i < audit_reader_size(reader); i++) {
        struct ng_str entry;
        rc = audit_reader_get(reader, i, &entry, &error);
        if (rc == NG_OK) {
            assert_int_equal(buf_add_str(&text, entry), NG_OK);
            assert_int_equal(buf_add_char(&text, '\n'), NG_OK);
        }
    }
    if (rc != NG_OK) {
        fail_msg("%d: %s", rc, buf_cstr(&error));
    }
    audit_reader_close(reader);
    char *copy = str_dup(ng_str_of(buf_cstr(&text)));
    assert_non_null(copy);
    buf_done(&text);
    buf_done(&error);
    return copy;
}

static bool line_has(const char *line, const char *end, const char *what)
{
    return memmem(line, (size_t)(end - line), what, strlen(what)) != NULL;
}

size_t audit_count(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        count += line_has(text, end, what);
    }
    return count;
}

char *audit_line(const char *text, const char *what)
{
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        if (line_has(text, end, what)) {
            char *line = str_dup(str_make(text, (size_t)(end - text)));
            assert_non_null(line);
            return line;
        }
    }
    fail_msg("no entry has %s", what);
    return NULL;
}
