/* SPDX-License-Identifier: MIT */
/* file_editor.h - what the parts of the file editor share: the checked path, texts by lines,
 * the commands. */
#ifndef NOTEGATE_FILE_EDITOR_H
#define NOTEGATE_FILE_EDITOR_H

#include <notegate/plugin.h>

#define EDITOR_SNIPPET_LINES 4 /* shown before and after a change */
#define EDITOR_TAB "        "  /* what a tab is shown as */

/* Codes of this plugin's own, in the order of its descriptor. */
#define EDITOR_NOT_TEXT (NG_EPLUGIN - 0)
#define EDITOR_FILE_EXISTS (NG_EPLUGIN - 1)
#define EDITOR_NO_HISTORY (NG_EPLUGIN - 2)

struct editor {
    uint64_t max_file_size;
    uint64_t max_result; /* limits.result */
};

/* One call's arguments, in call memory. */
struct editor_job {
    const struct editor *editor;
    struct ng_str path; /* without slashes at its end */
    struct ng_str destination;
    struct ng_str old_str, new_str;
    int64_t insert_line;
    struct ng_str pattern;
    int64_t count; /* 0: all */
    struct ng_str expected;
};

static inline struct ng_str editor_str(const char *data, size_t len)
{
    struct ng_str str = {data, len};
    return str;
}

/* ---- file_editor_text.c */

size_t editor_count(struct ng_str text, char c);
/* Where the needle occurs at or behind `from`; SIZE_MAX: nowhere. */
size_t editor_find(struct ng_str text, struct ng_str needle, size_t from);
bool editor_ends_with(struct ng_str text, const char *ending);
/* Byte order mark at the beginning: 3, else 0. */
size_t editor_bom(struct ng_str text);
/* What keeps `text` from being edited, as a phrase; NULL: nothing. */
const char *editor_not_text(struct ng_str text);
/* Valid UTF-8 without NUL: other bytes become U+FFFD. {NULL, 0}: out of memory. */
struct ng_str editor_clean(struct ng_call *call, struct ng_str text);
/* Lines first..last (from 1) of `text`, numbered from `number`, as `cat -n` shows them.
 * {NULL, 0}: out of memory. */
struct ng_str editor_numbered(struct ng_call *call, struct ng_str text, size_t first,
                              size_t last, size_t number);
/* Replies "PREFIX" + header for `label` + the lines + "SUFFIX". */
int editor_reply_lines(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                       struct ng_str lines, const char *suffix);
/* The same of the lines around a change: `lines` of new text from line `line` (from 0). */
int editor_reply_snippet(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                         struct ng_str text, size_t line, size_t lines, const char *suffix);

/* A text that comes in pieces. */
struct editor_check {
    unsigned need; /* bytes missing of the present character */
    unsigned char low, high;
    bool bad, nul;
};
void editor_check_add(struct editor_check *check, struct ng_str chunk);
void editor_check_end(struct editor_check *check);

/* ---- file_editor_lines.c */

/* Does the line at `at` end in CRLF? The last one, which has no end: as the one before it. */
bool editor_is_crlf(struct ng_str text, size_t at);
/* `text` with CRLF for LF where the lines of `like`, one by one, have that; behind those as the
 * last of them, without any as `crlf` says. {NULL, 0}: out of memory. */
struct ng_str editor_with_ends(struct ng_call *call, struct ng_str text, struct ng_str like,
                               bool crlf);
/* What the needle is searched in: `text` itself, or a copy with LF for CRLF, for a needle of
 * several lines without CR. {NULL, 0}: out of memory. */
struct ng_str editor_folded(struct ng_call *call, struct ng_str text, struct ng_str needle);
/* Where in `text` what is at `at` of that is. */
size_t editor_unfolded(struct ng_str text, struct ng_str folded, size_t at);

/* ---- file_editor_path.c */

int editor_fail_input(struct ng_call *call, const char *member, const char *expected,
                      struct ng_str message);
/* Checks the path given as `member` as every command does; *ret is without slashes at its end.
 */
int editor_path(struct ng_call *call, const char *member, struct ng_str given,
                struct ng_str *ret);
/* Notebooks are edited in mode agent only. */
int editor_check_mode(struct ng_call *call, struct ng_str path);
int editor_fail_directory(struct ng_call *call, struct ng_str path);
int editor_fail_size(struct ng_call *call, uint64_t bytes, uint64_t max);
/* The warning that goes before a view of what is no text. */
struct ng_str editor_warning(struct ng_call *call, struct ng_str path, const char *what);

/* ---- file_editor_hint.c */

/* It does not exist; the hint is the nearest name in its folder. */
int editor_fail_missing(struct ng_call *call, struct ng_str path);

/* ---- commands */

int editor_view(struct ng_call *call, const struct editor *editor, struct ng_str path);
int editor_create(struct ng_call *call, struct editor_job *job);
int editor_str_replace(struct ng_call *call, struct editor_job *job);
int editor_insert(struct ng_call *call, struct editor_job *job);
int editor_regex_replace(struct ng_call *call, struct editor_job *job);
int editor_undo(struct ng_call *call, struct editor_job *job);
int editor_transfer(struct ng_call *call, struct editor_job *job, bool keep);

/* What every edit of a file that is there checks first; the text behind the byte order mark. */
int editor_editable(struct ng_call *call, const struct ng_file *present,
                    const struct editor_job *job, struct ng_str *ret_text);
/* Makes the edit: `fn` gets `job` as user. */
int editor_edit(struct ng_call *call, struct editor_job *job, ng_file_fn *fn);
/* What was made may be kept: its size, and that it is text. */
int editor_producible(struct ng_call *call, const struct editor_job *job, uint64_t bytes,
                      struct ng_str inserted);

/* ---- file_editor_resources.c: files as resources (struct ng_resources), and the prompt */

int editor_resource_list(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_listing *listing);
int editor_resource_read(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_str id, uint64_t revision);
int editor_resource_complete(void *self, struct ng_call *call, struct ng_str space,
                             const char *variable, struct ng_str prefix,
                             struct ng_listing *listing);
int editor_guide(void *self, struct ng_call *call, struct ng_str args);

#endif
