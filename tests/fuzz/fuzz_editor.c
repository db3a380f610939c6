/* SPDX-License-Identifier: MIT */
/* fuzz_editor.c - a pattern, a NUL, the new text, a NUL, a file: the file editor's
 * regex_replace makes text of text within its limit, its texts by lines hold for any bytes, and
 * a search across line ends finds its text.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/call.h"
#include "test_gateway.h"

#include "../../plugins/file_editor/file_editor_edit.c"
#include "../../plugins/file_editor/file_editor_hint.c"
#include "../../plugins/file_editor/file_editor_lines.c"
#include "../../plugins/file_editor/file_editor_path.c"
#include "../../plugins/file_editor/file_editor_regex.c"
#include "../../plugins/file_editor/file_editor_text.c"

#define PATTERN_BYTES_MAX 200
#define TEXT_BYTES_MAX 500
#define MADE_BYTES_MAX 4096
#define STEPS_MAX 2000 /* of a match, so that no input is slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Up to the next NUL, which goes. */
static struct ng_str next_part(struct ng_str *rest)
{
    const char *nul = rest->len == 0 ? NULL : memchr(rest->data, '\0', rest->len);
    size_t len = nul == NULL ? rest->len : (size_t)(nul - rest->data);
    struct ng_str part = str_make(rest->data, len);
    len += nul == NULL ? 0 : 1;
    *rest = str_make(rest->data + len, rest->len - len);
    return part;
}

static void check_lines(struct ng_call *call, struct ng_str bytes)
{
    struct editor_check whole = {0};
    struct editor_check pieces = {0};
    editor_check_add(&whole, bytes);
    for (size_t i = 0; i < bytes.len; i++) {
        editor_check_add(&pieces, str_make(bytes.data + i, 1));
    }
    const char *fault = editor_check_end(&whole);
    must(editor_check_end(&pieces) == fault);
    must(fault != NULL || utf8_valid(bytes));
    struct ng_str clean = editor_clean(call, bytes);
    must(clean.data != NULL && editor_not_text(clean) == NULL);
    size_t total = editor_count(clean, '\n') + 1;
    for (size_t first = 1; first <= total; first++) {
        struct ng_str lines = editor_numbered(call, clean, first, total, first);
        must(lines.data != NULL && editor_count(lines, '\n') == total - first + 1);
    }
    must(editor_reply_snippet(call, ng_str_of(""), ng_str_of("f"), clean, total - 1, 1, "") ==
         NG_OK);
}

/* A match across line ends equals the searched text, and new text keeps its lines. */
static void check_ends(struct ng_call *call, struct ng_str text, struct ng_str needle)
{
    struct ng_str folded = editor_folded(call, text, needle);
    must(folded.data != NULL && folded.len <= text.len);
    must(editor_unfolded(text, folded, folded.len) == text.len);
    size_t hit = str_find(folded, needle, 0);
    if (hit == SIZE_MAX) {
        return;
    }
    size_t at = editor_unfolded(text, folded, hit);
    size_t behind = editor_unfolded(text, folded, hit + needle.len);
    must(at <= behind && behind <= text.len);
    struct ng_str old = str_make(text.data + at, behind - at);
    struct ng_str same = editor_folded(call, old, needle);
    must(folded.data == text.data ? str_equal(old, needle) : str_equal(same, needle));
    /* The old text, put back without its CR, is the old text. */
    struct ng_str put = editor_with_ends(call, needle, old, editor_is_crlf(text, behind));
    must(put.data != NULL && str_equal(put, old));
}

static void replace(struct ng_call *call, struct editor_job *job, struct ng_str text)
{
    struct regex regex = {.call = call, .job = job};
    buf_init(&regex.out, MADE_BYTES_MAX);
    int rc = regex_compile(&regex);
    if (rc == NG_OK) {
        (void)pcre2_set_match_limit(regex.context, STEPS_MAX);
        rc = regex_run(&regex, text);
    }
    struct ng_str made = buf_str(&regex.out);
    must(made.len <= MADE_BYTES_MAX && regex.first_at + regex.first_len <= made.len);
    must(rc != NG_OK || utf8_valid(made));
    must(rc != NG_OK || regex.count > 0 || str_equal(made, text));
    must(rc != NG_OK || job->count == 0 || regex.count <= (uint64_t)job->count);
    pcre2_match_context_free(regex.context);
    pcre2_match_data_free(regex.data);
    pcre2_code_free(regex.code);
    buf_done(&regex.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gateway *gateway;
    static const struct editor editor = {.max_file_size = MADE_BYTES_MAX};
    if (gateway == NULL) {
        static const char *const sets[] = {"limits.workers=2", NULL};
        gateway = test_gateway_open(sets);
        must(gateway != NULL);
    }
    struct ng_str rest = str_make((const char *)data, size);
    struct editor_job job = {.editor = &editor, .path = ng_str_of("/f")};
    job.pattern = next_part(&rest);
    job.new_str = next_part(&rest);
    job.count = (int64_t)(rest.len % 3);
    if (job.pattern.len > PATTERN_BYTES_MAX || rest.len > TEXT_BYTES_MAX) {
        return 0;
    }
    struct call *call = call_new(gateway);
    must(call != NULL);
    check_lines(&call->pub, rest);
    if (editor_not_text(rest) == NULL && utf8_valid(job.new_str)) {
        replace(&call->pub, &job, rest);
        check_ends(&call->pub, rest, job.new_str);
    }
    call_unref(call);
    return 0;
}
