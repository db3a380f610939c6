/* SPDX-License-Identifier: MIT */
/* file_editor_glob.c - names by a pattern as a shell has it. PCRE2 turns it into a regular
 * expression; braces, which it does not know, become several of them. */
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/str.h"
#include "file_editor_search.h"

#define GLOB_MAX 1024       /* bytes */
#define GLOB_CHOICES_MAX 64 /* of its braces, in all */
#define GLOB_LIMIT 100000   /* steps for one name */
#define GLOB_MESSAGE_MAX 256
#define GLOB_ESCAPE '\\'

struct name_glob {
    struct ng_call *call;
    bool for_name; /* without `/` */
    pcre2_code *codes[GLOB_CHOICES_MAX];
    size_t count;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static int glob_fail(struct ng_call *call, const char *what)
{
    return editor_fail_input(
        call, "glob", "a glob such as *.c or src/**/*.{c,h}",
        call->host->format(
            call, "Invalid `glob`: %s. Give one such as `*.c` or `src/**/*.{c,h}`", what));
}

static int glob_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "Out of memory for a search.");
}

static int glob_add(struct name_glob *glob, struct ng_str text)
{
    PCRE2_UCHAR *made = NULL;
    PCRE2_SIZE len = 0;
    PCRE2_SIZE offset = 0;
    if (glob->count == GLOB_CHOICES_MAX) {
        return glob_fail(glob->call, "its braces make more than 64 choices");
    }
    int error =
        pcre2_pattern_convert((PCRE2_SPTR)text.data, text.len,
                              PCRE2_CONVERT_GLOB | PCRE2_CONVERT_UTF, &made, &len, NULL);
    pcre2_code *code = NULL;
    if (error == 0) {
        code = pcre2_compile(made, len, PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &offset,
                             NULL);
    }
    pcre2_converted_pattern_free(made);
    if (code == NULL) {
        PCRE2_UCHAR message[GLOB_MESSAGE_MAX];
        message[0] = '\0';
        (void)pcre2_get_error_message(error, message, sizeof(message));
        return glob_fail(glob->call, (const char *)message);
    }
    glob->codes[glob->count++] = code;
    return NG_OK;
}

/* The first of these characters at or behind `at` that is in no braces; text.len: none. */
static size_t glob_find(struct ng_str text, size_t at, const char *wanted)
{
    size_t depth = 0;
    for (; at < text.len; at++) {
        char c = text.data[at];
        if (depth == 0 && c != '\0' && strchr(wanted, c) != NULL) {
            return at;
        }
        at += c == GLOB_ESCAPE;
        depth += c == '{';
        depth -= c == '}' && depth > 0;
    }
    return text.len;
}

/* Adds one glob for each choice of the first braces, and so on for the further ones. */
static int glob_expand(struct name_glob *glob, struct ng_str text)
{
    size_t open = glob_find(text, 0, "{");
    if (open == text.len) {
        return glob_add(glob, text);
    }
    size_t close = glob_find(text, open + 1, "}");
    if (close == text.len) {
        return glob_fail(glob->call, "a `{` has no `}`");
    }
    int rc = NG_OK;
    for (size_t at = open + 1; rc == NG_OK && at <= close;) {
        size_t end = size_min(glob_find(text, at, ",}"), close);
        struct buf one;
        buf_init(&one, GLOB_MAX);
        (void)buf_add(&one, text.data, open);
        (void)buf_add(&one, text.data + at, end - at);
        rc = buf_add(&one, text.data + close + 1, text.len - close - 1);
        rc = rc == NG_OK ? glob_expand(glob, str_make(buf_cstr(&one), one.len))
                         : glob_no_memory(glob->call);
        buf_done(&one);
        at = end + 1;
    }
    return rc;
}

int name_glob_open(struct ng_call *call, struct ng_str text, struct name_glob **ret)
{
    if (text.len == 0) {
        return glob_fail(call, "it is empty");
    }
    if (text.len > GLOB_MAX) {
        return glob_fail(call, "it has more than 1024 bytes");
    }
    struct name_glob *glob = alloc_zeroed(1, sizeof(*glob));
    if (glob == NULL) {
        return glob_no_memory(call);
    }
    *ret = glob;
    glob->call = call;
    glob->for_name = memchr(text.data, '/', text.len) == NULL;
    glob->data = pcre2_match_data_create(1, NULL);
    glob->context = pcre2_match_context_create(NULL);
    if (glob->data == NULL || glob->context == NULL) {
        return glob_no_memory(call);
    }
    (void)pcre2_set_match_limit(glob->context, GLOB_LIMIT);
    return glob_expand(glob, text);
}

void name_glob_close(struct name_glob *glob)
{
    if (glob == NULL) {
        return;
    }
    for (size_t i = 0; i < glob->count; i++) {
        pcre2_code_free(glob->codes[i]);
    }
    pcre2_match_data_free(glob->data);
    pcre2_match_context_free(glob->context);
    free(glob);
}

bool name_glob_match(const struct name_glob *glob, struct ng_str path)
{
    if (glob == NULL) {
        return true;
    }
    const char *slash = glob->for_name ? memrchr(path.data, '/', path.len) : NULL;
    if (slash != NULL) {
        size_t skipped = (size_t)(slash - path.data) + 1;
        path = str_make(path.data + skipped, path.len - skipped);
    }
    for (size_t i = 0; i < glob->count; i++) {
        if (pcre2_match(glob->codes[i], (PCRE2_SPTR)path.data, path.len, 0, 0, glob->data,
                        glob->context) >= 0) {
            return true;
        }
    }
    return false;
}
