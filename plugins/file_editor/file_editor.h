/* SPDX-License-Identifier: MIT */
/* file_editor.h - interfaces between the files of the plugin. */
#ifndef NOTEGATE_FILE_EDITOR_H
#define NOTEGATE_FILE_EDITOR_H

#include <notegate/plugin.h>

#include "core/base/str.h"

#define EDITOR_SNIPPET_LINES 4 /* lines shown before and after a change */
#define EDITOR_TAB "        "  /* replaces a tab in numbered lines */

/* Error codes of this plugin, in the order of its descriptor. */
#define EDITOR_NOT_TEXT (NG_EPLUGIN - 0)
#define EDITOR_FILE_EXISTS (NG_EPLUGIN - 1)
#define EDITOR_NO_HISTORY (NG_EPLUGIN - 2)

struct editor {
    uint64_t max_file_size;
    uint64_t max_result; /* limits.result */
};

/* The arguments of one call, in call memory. */
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

/* ---- file_editor_text.c */

size_t editor_count(struct ng_str text, char c);
/* Offset of line `line` (from 1); text.len if it does not exist. */
size_t editor_line_start(struct ng_str text, size_t line);
bool editor_ends_with(struct ng_str text, const char *ending); /* ignores case */
/* Length of a byte order mark at the beginning: 3 or 0. */
size_t editor_bom(struct ng_str text);
/* The reason why `text` cannot be edited, as a phrase; NULL: it can. */
const char *editor_not_text(struct ng_str text);
/* Valid UTF-8 without NUL; U+FFFD replaces other bytes. {NULL, 0}: out of memory. */
struct ng_str editor_clean(struct ng_call *call, struct ng_str text);
/* Lines first..last (from 1) of `text` with numbers from `number`, as of `cat -n`. {NULL, 0}:
 * out of memory. */
struct ng_str editor_numbered(struct ng_call *call, struct ng_str text, size_t first,
                              size_t last, size_t number);
/* Replies "PREFIX" + header for `label` + the lines + "SUFFIX". */
int editor_reply_lines(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                       struct ng_str lines, const char *suffix);
/* The same for the lines around a change: `lines` new lines from `line` (from 0). */
int editor_reply_snippet(struct ng_call *call, struct ng_str prefix, struct ng_str label,
                         struct ng_str text, size_t line, size_t lines, const char *suffix);

/* Checks a text in chunks. {0} at the beginning. */
struct editor_check {
    char tail[4]; /* an incomplete character at the end of the last chunk */
    unsigned char head[2];
    size_t tail_len;
    uint64_t bytes;
    bool invalid, nul;
};
void editor_check_add(struct editor_check *check, struct ng_str chunk);
/* As editor_not_text(), after the last chunk. */
const char *editor_check_end(struct editor_check *check);

/* ---- file_editor_lines.c */

/* True if the line at `at` ends in CRLF. A last line without an end follows the one before it.
 */
bool editor_is_crlf(struct ng_str text, size_t at);
/* `text` with the line endings of `like`, line by line. Further lines follow the last line of
 * `like`, or `crlf` if it has no lines. {NULL, 0}: out of memory. */
struct ng_str editor_with_ends(struct ng_call *call, struct ng_str text, struct ng_str like,
                               bool crlf);
/* True if the text has lines, and each LF is part of a CRLF. A CR alone ends no line. */
bool editor_all_crlf(struct ng_str text);
/* `text` with CRLF for each LF, also behind a CR: the inverse of editor_folded(). {NULL, 0}:
 * out of memory. */
struct ng_str editor_with_crlf(struct ng_call *call, struct ng_str text);
/* The text for a search: `text` itself, or a copy with LF for CRLF if the needle has several
 * lines without CR. {NULL, 0}: out of memory. */
struct ng_str editor_folded(struct ng_call *call, struct ng_str text, struct ng_str needle);
/* The offset in `text` for an offset in the folded text. */
size_t editor_unfolded(struct ng_str text, struct ng_str folded, size_t at);

/* ---- file_editor_path.c */

int editor_fail_input(struct ng_call *call, const char *member, const char *expected,
                      struct ng_str message);
/* The checks of every command for a path argument; *ret has no trailing slashes. */
int editor_path(struct ng_call *call, const char *member, struct ng_str given,
                struct ng_str *ret);
/* NG_EMODE: notebooks are edited in mode agent only. */
int editor_check_mode(struct ng_call *call, struct ng_str path);
int editor_fail_directory(struct ng_call *call, struct ng_str path);
int editor_fail_size(struct ng_call *call, uint64_t bytes, uint64_t max);
/* The warning before a view of a file that is no text. */
struct ng_str editor_warning(struct ng_call *call, struct ng_str path, const char *what);

/* ---- file_editor_hint.c */

/* Fails with NG_ENOTFOUND; the hint has the nearest name in the folder. */
int editor_fail_missing(struct ng_call *call, struct ng_str path);

/* ---- commands */

int editor_view(struct ng_call *call, const struct editor *editor, struct ng_str path);
int editor_create(struct ng_call *call, struct editor_job *job);
int editor_str_replace(struct ng_call *call, struct editor_job *job);
int editor_insert(struct ng_call *call, struct editor_job *job);
int editor_regex_replace(struct ng_call *call, struct editor_job *job);
int editor_undo(struct ng_call *call, struct editor_job *job);
int editor_delete(struct ng_call *call, struct editor_job *job);
int editor_transfer(struct ng_call *call, struct editor_job *job);
int editor_search(struct ng_call *call, struct editor_job *job);

/* The first checks of every edit of an existing file. ret_text: after the byte order mark. */
int editor_editable(struct ng_call *call, const struct ng_file *present,
                    const struct editor_job *job, struct ng_str *ret_text);
/* Runs the edit with `job` as user of `fn`. */
int editor_edit(struct ng_call *call, struct editor_job *job, ng_file_fn *fn);
/* Checks the result: its size, and that the inserted text has no NUL. */
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

/* ---- file_editor_find.c */

int editor_resource_find(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_find *find);

#endif
