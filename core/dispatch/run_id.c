/* SPDX-License-Identifier: MIT */
/* run_id.c - which run a call belongs to, and the form of one that a caller gives. */
#include "run_id.h"

#include <stdio.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/sha256.h"
#include "core/base/utf8.h"

/* Bytes of a wrong value in a sentence. */
#define SHOWN_MAX 80
/* Runs that undo makes for its own changes. */
#define UNDO_PREFIX "undo-"
#define SESSION_PREFIX "mcp-"
#define SESSION_BYTES 8
/* In a traceparent: 00-TRACE-PARENT-FLAGS. */
#define TRACE_ID_AT 3
#define TRACE_ID_LEN 32

static bool has_form(struct ng_str run)
{
    if (run.len == 0 || run.len > CALL_RUN_MAX) {
        return false;
    }
    for (size_t i = 0; i < run.len; i++) {
        char c = run.data[i];
        if (!str_is_alpha(c) && !str_is_digit(c) && c != '.' && c != '_' && c != ':' &&
            c != '-') {
            return false;
        }
    }
    return true;
}

int run_id_check(const char *where, struct ng_str run, char text[RUN_ID_TEXT_MAX])
{
    struct ng_str shown = utf8_cut(run, SHOWN_MAX);
    if (!has_form(run)) {
        (void)snprintf(text, RUN_ID_TEXT_MAX, "%s is \"%.*s\"; it must have " RUN_ID_FORM,
                       where, (int)shown.len, shown.data);
        return NG_EINVAL;
    }
    if (str_begins(run, UNDO_PREFIX)) {
        (void)snprintf(text, RUN_ID_TEXT_MAX,
                       "%s is \"%.*s\"; runs that begin with " UNDO_PREFIX
                       " are made by an undo alone: give another one, or none",
                       where, (int)shown.len, shown.data);
        return NG_EINVAL;
    }
    return NG_OK;
}

struct ng_str run_id_choose(const struct run_given *given)
{
    if (given->meta.data != NULL) {
        return given->meta;
    }
    if (given->named.data != NULL) {
        return given->named;
    }
    if (given->traceparent.len >= TRACE_ID_AT + TRACE_ID_LEN) {
        return str_make(given->traceparent.data + TRACE_ID_AT, TRACE_ID_LEN);
    }
    return str_or(given->session, STR_NONE);
}

static void write_label(const unsigned char bytes[SESSION_BYTES], char out[RUN_ID_SESSION_SIZE])
{
    memcpy(out, SESSION_PREFIX, sizeof(SESSION_PREFIX));
    hex_write(bytes, SESSION_BYTES, out + sizeof(SESSION_PREFIX) - 1);
}

void run_id_of_session(struct ng_str id, char out[RUN_ID_SESSION_SIZE])
{
    unsigned char hash[SHA256_BYTES];
    out[0] = '\0';
    if (sha256_digest(id, hash) == NG_OK) {
        write_label(hash, out);
    }
}

void run_id_make(char out[RUN_ID_SESSION_SIZE])
{
    unsigned char bytes[SESSION_BYTES];
    out[0] = '\0';
    if (random_bytes(bytes, sizeof(bytes))) {
        write_label(bytes, out);
    }
}
