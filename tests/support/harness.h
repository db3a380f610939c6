/* SPDX-License-Identifier: MIT */
/* harness.h - a whole gateway inside a test program: real modules, a data directory of its own.
 */
#ifndef NOTEGATE_TEST_HARNESS_H
#define NOTEGATE_TEST_HARNESS_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/call/gateway.h"
#include "notegate/journal.h"

struct harness {
    struct gateway *gateway;
    char dir[256];       /* data directory; roots default to dir/files */
    const char **sets;   /* the configuration it was opened with */
    const char *session; /* the MCP session of its calls; NULL: none */
};

/* An answer; malloc'd copies, NUL-terminated, never NULL (but "" where absent). */
struct answer {
    int rc;
    char *code;
    int status;
    char *message;
    char *hint;
    bool has_hint;
    char *details;
    char *text;
    size_t text_len;
    bool is_json;
    uint64_t revision;
    char *revision_text;
    char *meta; /* members of `_meta` */
};

/* The folder of temporary files: TMPDIR, else /tmp. */
const char *harness_tmp(void);
/* sets: "key=value" lines, NULL at the end ("plugins=notebook", "documents=memory"); NULL:
 * none. A failure fails the test. */
void harness_open(struct harness *harness, const char *const *sets);
/* Cleanly closes and opens on the same directory, as a restart does. */
void harness_reopen(struct harness *harness);
/* Closes and removes the directory. */
void harness_close(struct harness *harness);
/* The table of its documents backend, to leave out an optional function: only one that no
 * thread of the gateway calls by itself. */
struct ng_documents *harness_documents(struct harness *harness);

/* One call, waited for. agent, space: NULL = default. */
struct answer harness_call_as(struct harness *harness, const char *agent, const char *space,
                              const char *tool, const char *args);
struct answer harness_call(struct harness *harness, const char *tool, const char *args);
/* The same for a call that the test has made, whose reference this takes. */
struct answer harness_run(struct call *call, const char *tool, const char *args);
void answer_free(struct answer *answer);
/* A call of its own for using core functions directly; call_unref() it. */
struct call *harness_new_call(struct harness *harness);

/* Delivers an array of entries to a journal. */
int harness_deliver(const struct ng_journal *journal, void *db, struct call *call,
                    const struct ng_entry *entries, size_t count);

/* Calls and asserts the text (success) or code and message (failure). */
void expect_text(struct harness *harness, const char *tool, const char *args, const char *text);
void expect_error(struct harness *harness, const char *tool, const char *args, const char *code,
                  const char *message);

#endif
