/* SPDX-License-Identifier: MIT */
/* file_editor_regex.c - the command regex_replace: PCRE2 with limits, `$1` in the new text. */
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "file_editor.h"

/* Most steps of one match, against patterns that run for minutes. */
#define REGEX_MATCH_LIMIT 5000000
#define REGEX_HEAP_LIMIT_KIB 20480
/* The limit above applies to each start of a match. So the deadline is checked, too, after this
 * number of steps (callouts). */
#define REGEX_STEPS 16384
#define REGEX_PATTERN_MAX 65536
#define REGEX_MESSAGE_MAX 256
#define REGEX_NAME_MAX 32 /* limit of PCRE2 */

struct regex {
    struct ng_call *call;
    const struct editor_job *job;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    struct ng_str new_str;
    bool folded; /* the text has LF for CRLF, and so has `new_str` */
    struct buf out;
    size_t first_at, first_len; /* the first replacement, in `out` */
    size_t count;
    unsigned steps;
};

static int regex_fail_memory(struct regex *regex)
{
    return ng_fail(regex->call, NG_EINTERNAL, "Out of memory while editing %.*s.",
                   (int)regex->job->path.len, regex->job->path.data);
}

static int regex_put(struct regex *regex, const char *data, size_t len)
{
    int rc = buf_add(&regex->out, data, len);
    if (rc == NG_ETOOLARGE) {
        return ng_fail(regex->call, NG_ETOOLARGE,
                       "File size (more than %zu bytes) exceeds maximum allowed size (%zu "
                       "bytes)",
                       regex->out.max, regex->out.max);
    }
    if (rc != NG_OK) {
        return regex_fail_memory(regex);
    }
    return NG_OK;
}

static int regex_put_group(struct regex *regex, struct ng_str text, uint32_t group)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(regex->data);
    if (group >= pcre2_get_ovector_count(regex->data) || at[2 * group] == PCRE2_UNSET ||
        at[2 * group + 1] < at[2 * group]) {
        return NG_OK; /* a group without a match is empty */
    }
    return regex_put(regex, text.data + at[2 * group], at[2 * group + 1] - at[2 * group]);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parses a group reference of new_str at `at` (after the '$'), of *ret_len bytes. -1: none. */
static long regex_reference(struct regex *regex, struct ng_str new_str, size_t at,
                            size_t *ret_len)
{
    uint32_t groups = 0;
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    bool braced = at < new_str.len && new_str.data[at] == '{';
    size_t start = at + braced;
    size_t end = start;
    while (end < new_str.len && end - start < REGEX_NAME_MAX &&
           (is_digit(new_str.data[end]) ||
            (braced && new_str.data[end] != '}' && new_str.data[end] != '$'))) {
        end++;
    }
    if (braced && (end == start || end >= new_str.len || new_str.data[end] != '}')) {
        return -1;
    }
    long number = 0;
    size_t digits = start;
    while (digits < end && is_digit(new_str.data[digits])) {
        long more = number * 10 + (new_str.data[digits] - '0');
        if (more > (long)groups && !braced && digits > start) {
            break; /* "$12" with one group is group 1 and a "2" */
        }
        number = i64_min(more, 65536);
        digits++;
    }
    if (braced && digits < end) {
        char name[REGEX_NAME_MAX + 1];
        memcpy(name, new_str.data + start, end - start);
        name[end - start] = '\0';
        number = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)name);
    }
    *ret_len = digits - at;
    if (braced) {
        *ret_len = end + 1 - at;
    }
    bool found = (digits > start || braced) && number <= (long)groups;
    if (!found) {
        return -1;
    }
    return number;
}

/* Appends new_str with its references replaced. */
static int regex_expand(struct regex *regex, struct ng_str text)
{
    struct ng_str new_str = regex->new_str;
    int rc = NG_OK;
    size_t at = 0;
    while (rc == NG_OK && at < new_str.len) {
        const char *dollar = memchr(new_str.data + at, '$', new_str.len - at);
        size_t plain = new_str.len;
        if (dollar != NULL) {
            plain = (size_t)(dollar - new_str.data);
        }
        rc = regex_put(regex, new_str.data + at, plain - at);
        at = plain;
        if (rc != NG_OK || at == new_str.len) {
            break;
        }
        char next = '\0';
        if (at + 1 < new_str.len) {
            next = new_str.data[at + 1];
        }
        size_t len = 0;
        long group = regex_reference(regex, new_str, at + 1, &len);
        if (next == '&') {
            rc = regex_put_group(regex, text, 0);
            at += 2;
        } else if (next != '$' && group >= 0) {
            rc = regex_put_group(regex, text, (uint32_t)group);
            at += 1 + len;
        } else {
            rc = regex_put(regex, "$", 1); /* "$$", or no reference */
            at += (size_t)1 + (next == '$');
        }
    }
    return rc;
}

static int regex_callout(pcre2_callout_block *block, void *user)
{
    struct regex *regex = user;
    (void)block;
    if (++regex->steps % REGEX_STEPS == 0 && regex->call->host->cancelled(regex->call)) {
        return PCRE2_ERROR_CALLOUT;
    }
    return 0;
}

static int regex_fail_cancelled(struct regex *regex)
{
    struct ng_call *call = regex->call;
    int code = call->host->remaining_ms(call) <= 0 ? NG_ETIMEOUT : NG_ECANCELLED;
    return ng_fail(call, code,
                   "The call was cancelled or its time is up; nothing was written.");
}

static int regex_fail_match(struct regex *regex, int error)
{
    if (error == PCRE2_ERROR_CALLOUT) {
        return regex_fail_cancelled(regex);
    }
    if (error == PCRE2_ERROR_NOMEMORY) {
        return regex_fail_memory(regex);
    }
    return ng_fail(regex->call, NG_EFAILED,
                   "No replacement was performed, the pattern takes too many steps on %.*s. "
                   "Use a simpler one (without nested repeats).",
                   (int)regex->job->path.len, regex->job->path.data);
}

/* Searches from *at. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static int regex_next(struct regex *regex, struct ng_str text, size_t *at, bool *after_empty,
                      bool *ret_found)
{
    uint32_t options = PCRE2_NO_UTF_CHECK;
    if (*after_empty) {
        options |= PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED;
    }
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text.data, text.len, *at, options,
                         regex->data, regex->context);
    *ret_found = rc > 0;
    if (rc > 0 || rc == PCRE2_ERROR_NOMATCH) {
        return NG_OK;
    }
    return regex_fail_match(regex, rc);
}

/* The next character, after an empty match without another match at the same place. */
static size_t regex_step(struct ng_str text, size_t at)
{
    at++;
    while (at < text.len && !utf8_is_start(text.data[at])) {
        at++;
    }
    return at;
}

static int regex_run(struct regex *regex, struct ng_str text)
{
    size_t at = 0;     /* start of the next search */
    size_t copied = 0; /* `out` has the text before it */
    bool after_empty = false;
    int64_t most = regex->job->count;
    int rc = NG_OK;
    while (rc == NG_OK && at <= text.len && (most == 0 || regex->count < (uint64_t)most)) {
        bool found = false;
        rc = regex_next(regex, text, &at, &after_empty, &found);
        if (rc == NG_OK && !found && after_empty && at < text.len) {
            at = regex_step(text, at);
            after_empty = false;
            continue;
        }
        if (rc != NG_OK || !found) {
            break;
        }
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(regex->data);
        size_t from = bounds[0];
        size_t to = size_max(bounds[1], from);
        if (from < copied) {
            break; /* \K in a look-behind: the match is before the copied text */
        }
        rc = regex_put(regex, text.data + copied, from - copied);
        size_t before = regex->out.len;
        if (rc == NG_OK) {
            rc = regex_expand(regex, text);
        }
        if (regex->count++ == 0) {
            regex->first_at = before;
            regex->first_len = regex->out.len - before;
        }
        copied = to;
        at = to;
        after_empty = to == from;
        if (rc == NG_OK && regex->call->host->cancelled(regex->call)) {
            rc = regex_fail_cancelled(regex);
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    return regex_put(regex, text.data + copied, text.len - copied);
}

static int regex_compile(struct regex *regex)
{
    const struct editor_job *job = regex->job;
    int error = 0;
    PCRE2_SIZE offset = 0;
    regex->code = pcre2_compile((PCRE2_SPTR)job->pattern.data, job->pattern.len,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                    PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT,
                                &error, &offset, NULL);
    if (regex->code == NULL) {
        PCRE2_UCHAR message[REGEX_MESSAGE_MAX];
        message[0] = '\0';
        (void)pcre2_get_error_message(error, message, sizeof(message));
        return editor_fail_input(
            regex->call, "pattern", "a regular expression",
            regex->call->host->format(regex->call,
                                      "Invalid `pattern`: %s at character %zu. Correct it and "
                                      "try again",
                                      (const char *)message, (size_t)offset));
    }
    regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
    regex->context = pcre2_match_context_create(NULL);
    if (regex->data == NULL || regex->context == NULL) {
        return regex_fail_memory(regex);
    }
    (void)pcre2_set_match_limit(regex->context, REGEX_MATCH_LIMIT);
    (void)pcre2_set_callout(regex->context, regex_callout, regex);
    (void)pcre2_set_heap_limit(regex->context, REGEX_HEAP_LIMIT_KIB);
    return NG_OK;
}

static bool regex_names_cr(struct ng_str pattern)
{
    static const char *const names[] = {"\r", "\\r", "\\x0d", "\\x0D"};
    bool found = false;
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        found = found || str_find(pattern, ng_str_of(names[i]), 0) != SIZE_MAX;
    }
    return found;
}

/* PCRE2 has no line end that is LF or CRLF and not CR. So a file whose lines all end in CRLF is
 * searched as if they ended in LF, and the result has CRLF again. */
static int regex_search(struct regex *regex, struct ng_str text)
{
    struct ng_call *call = regex->call;
    const struct editor_job *job = regex->job;
    struct ng_str lf = ng_str_of("\n");
    regex->new_str = job->new_str;
    regex->folded = editor_all_crlf(text);
    if (regex->folded) {
        struct ng_str folded = editor_folded(call, text, lf);
        regex->new_str = editor_folded(call, job->new_str, lf);
        if (folded.data == NULL || regex->new_str.data == NULL) {
            return regex_fail_memory(regex);
        }
        int rc = regex_run(regex, folded);
        if (rc != NG_OK || regex->count > 0 || !regex_names_cr(job->pattern)) {
            return rc;
        }
        regex->folded = false; /* the pattern means the bytes */
        regex->new_str = job->new_str;
        buf_clear(&regex->out);
    }
    return regex_run(regex, text);
}

static int regex_finish(struct regex *regex, struct ng_str bom, struct ng_draft *next)
{
    struct ng_call *call = regex->call;
    const struct ng_host *host = call->host;
    struct ng_str path = regex->job->path;
    struct ng_str out = str_or(buf_str(&regex->out), ng_str_of(""));
    struct ng_str made = out;
    if (regex->folded) {
        made = editor_with_crlf(call, out);
    }
    if (made.data == NULL) {
        return regex_fail_memory(regex);
    }
    struct ng_str pieces[] = {bom, made};
    int rc = editor_producible(call, regex->job, bom.len + made.len, str_make(NULL, 0));
    if (rc == NG_OK) {
        rc = host->draft_text(next, pieces, NG_COUNT(pieces));
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str first = {out.data + regex->first_at, regex->first_len};
    return editor_reply_snippet(
        call,
        host->format(call, "The file %.*s has been edited, %zu replacement%s made. ",
                     (int)path.len, path.data, regex->count, regex->count == 1 ? "" : "s"),
        host->format(call, "a snippet of %.*s", (int)path.len, path.data), made,
        editor_count(str_make(out.data, regex->first_at), '\n'), editor_count(first, '\n') + 1,
        "Review the changes and make sure they are as expected. Edit the file again if "
        "necessary.");
}

static int regex_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                    void *user)
{
    const struct editor_job *job = user;
    struct ng_str text;
    int rc = editor_editable(call, present, job, &text);
    if (rc != NG_OK) {
        return rc;
    }
    size_t bom = present->data.len - text.len;
    struct regex regex = {
        .call = call,
        .job = job,
    };
    buf_init(&regex.out, (size_t)job->editor->max_file_size - bom);
    rc = editor_producible(call, job, 0, job->new_str);
    if (rc == NG_OK) {
        rc = regex_compile(&regex);
    }
    if (rc == NG_OK) {
        rc = regex_search(&regex, text);
    }
    if (rc == NG_OK && regex.count == 0) {
        rc = ng_fail(call, NG_EFAILED,
                     "No replacement was performed, pattern `%.*s` did not match in %.*s.",
                     (int)job->pattern.len, job->pattern.data, (int)job->path.len,
                     job->path.data);
    }
    if (rc == NG_OK) {
        rc = regex_finish(&regex, str_make(present->data.data, bom), next);
    }
    pcre2_match_context_free(regex.context);
    pcre2_match_data_free(regex.data);
    pcre2_code_free(regex.code);
    buf_done(&regex.out);
    return rc;
}

int editor_regex_replace(struct ng_call *call, struct editor_job *job)
{
    job->pattern = ng_arg_text(call, "pattern");
    job->new_str = ng_arg_text(call, "new_str");
    job->count = ng_arg_int(call, "count", 0);
    if (job->pattern.len > REGEX_PATTERN_MAX) {
        return editor_fail_input(call, "pattern", "at most 65536 bytes",
                                 call->host->format(call,
                                                    "Invalid `pattern`: it has %zu bytes, at "
                                                    "most %d are possible",
                                                    job->pattern.len, REGEX_PATTERN_MAX));
    }
    return editor_edit(call, job, regex_fn);
}
