/* SPDX-License-Identifier: MIT */
/* history.h - what the tools of the plugin share: targets, versions, filters, lines. */
#ifndef NOTEGATE_PLUGIN_HISTORY_H
#define NOTEGATE_PLUGIN_HISTORY_H

#include <notegate/plugin.h>

#include "core/base/hash_table.h"
#include "core/base/text/json_writer.h"

/* The code of the plugin: a revision that was thinned out. */
#define HISTORY_NOT_KEPT (NG_EPLUGIN)

/* Limits that the schemas name, too. */
#define HISTORY_LOG_LIMIT 20
#define HISTORY_LOG_MAX 200
#define HISTORY_DOCUMENTS_MAX 200
#define HISTORY_BLAME_LINES 200
#define HISTORY_UNDO_ITEMS 200
#define HISTORY_UNDO_CHANGES 1000
/* Undos in `unfinished`, the oldest ones; also no more than half of the room of an answer. */
#define HISTORY_UNFINISHED_MAX 100
/* Bytes of a text that is compared or blamed. */
#define HISTORY_TEXT_MAX ((size_t)4 << 20)
/* Values of a filter. */
#define HISTORY_NAMES_MAX 64
/* Bytes of an id in a message. */
#define HISTORY_SHOWN 200

/* ---- history_target.c ---- */

struct history_target {
    struct ng_key key;                      /* of the document that has the revisions */
    struct ng_key shown;                    /* as answers name it: a file by its path */
    const struct ng_collection *collection; /* NULL: it is a file */
};

/* The change that made a revision. Texts are in call memory. */
struct history_change {
    uint64_t seq;
    int64_t time_ms;
    struct ng_str agent, run, tool, action;
};

enum history_gone { HISTORY_THERE, HISTORY_NOT_YET, HISTORY_DELETED };

struct history_version {
    enum history_gone gone; /* why history_at() has failed with NG_ENOTFOUND */
    uint64_t revision;
    const struct ng_doc *doc;
    struct history_change change;
};

int history_no_memory(struct ng_call *call);
/* A copy in call memory. Absent: the text is empty, or out of memory. */
struct ng_str history_copy(struct ng_call *call, struct ng_str text);
/* Collection and space of the arguments, without an id. */
int history_shelf(struct ng_call *call, struct history_target *ret);
/* The document or file that the arguments name. */
int history_target(struct ng_call *call, struct history_target *ret);
/* Its version at the point in the argument `name`, else at `fallback`. NG_ENOTFOUND: it was not
 * there; HISTORY_NOT_KEPT. */
int history_at(struct ng_call *call, const struct history_target *target, const char *name,
               struct ng_str fallback, struct history_version *ret);
/* Was the content before this version of a file not kept? */
bool history_has_gap(struct ng_call *call, const struct history_target *target,
                     const struct ng_doc *version);
/* history_diff without `from`, of a version that follows a content that was not kept. */
int history_fail_gap(struct ng_call *call, const struct history_target *target,
                     uint64_t revision);
/* The change that made a revision. */
int history_change_of(struct ng_call *call, const struct history_target *target,
                      uint64_t revision, struct history_change *ret);
/* A revision that is there. */
int history_revision(struct ng_call *call, const struct history_target *target,
                     uint64_t revision, struct history_version *ret);

/* ---- history_put.c: members of answers ---- */

void history_put_time(struct ng_writer *writer, const char *name, int64_t time_ms);
/* collection, id; the gateway adds the space of the call */
void history_put_key(struct ng_writer *writer, const struct ng_key *key);
/* seq, time, agent, run, tool */
void history_put_change(struct ng_writer *writer, const struct history_change *change);

/* ---- history_file.c: files ---- */

/* Numbers around that of a version among which that of its event is: both come with one
 * transaction. */
#define HISTORY_EVENT_NEAR 1000

/* The file that the argument `path` names. */
int history_file_target(struct ng_call *call, struct history_target *ret);
/* Of a change of a file: the document of its versions, and the version that it made. False: of
 * another document, or it made none. data: that of the event. */
bool history_file_version(struct ng_call *call, const struct ng_event *event,
                          const struct ng_value *data, struct ng_key *ret_key,
                          uint64_t *ret_version);
/* Of a change: of a file with the lines of its version. data: that of the event. */
struct ng_origin history_origin(struct ng_call *call, const struct ng_event *event,
                                const struct ng_value *data);
/* The change of a version, from its row: that of a found one has no agent and the time of the
 * file; that of another one has the number and time of its event. */
int history_file_change(struct ng_call *call, const struct history_target *target,
                        uint64_t version, struct ng_str data, struct history_change *change);
/* A path in a filter: its real path. A final "*" means a beginning, as of an id. */
int history_file_filter(struct ng_call *call, struct ng_str path, struct ng_trail *ret);
/* A content of the document as it is compared: of a file by the view of its kind, in call
 * memory; else it itself. NG_ETOOLARGE. */
int history_view(struct ng_call *call, const struct history_target *target,
                 struct ng_str content, struct ng_str *ret);

/* ---- history_paths.c: files that were moved or copied ---- */

/* Moves that are followed. */
#define HISTORY_MOVES_MAX 16

/* The version that a moved or copied file came from. `body`: the JSON of the version that came
 * with the move. *ret_version 0: it did not, the version is not known, or the caller may not
 * see the file at its old path. */
int history_came_from(struct ng_call *call, const struct history_target *target,
                      const struct ng_value *body, struct history_target *ret,
                      uint64_t *ret_version);

/* The versions of a file at one path. */
struct history_path {
    struct history_target target;
    uint64_t first, last;
    uint64_t first_seq; /* the number of the change that brought it here; 0: none did */
};

/* The newest path first. */
struct history_paths {
    struct history_path items[HISTORY_MOVES_MAX + 1];
    size_t count;
    bool is_cut; /* there were more moves */
};

/* Those that led to the version `last` of the file. */
int history_paths(struct ng_call *call, const struct history_target *target, uint64_t last,
                  struct history_paths *ret);

/* ---- history_lines.c ---- */

/* Lines are the pieces between line feeds; the empty text has none. */
uint64_t history_count_lines(struct ng_str text);
/* The line that begins at `at`, without its line feed. */
struct ng_str history_line(struct ng_str text, size_t at);
/* The argument `start_line`. NG_EINVAL: the text has fewer lines. */
int history_start_line(struct ng_call *call, uint64_t lines, uint64_t *ret);
/* NG_ETOOLARGE: the line alone is longer than an answer. */
int history_line_too_long(struct ng_call *call, uint64_t line);
/* The part of a text that an answer shows. */
struct history_part {
    struct ng_str text;
    uint64_t lines;     /* of the whole text */
    uint64_t next_line; /* 0: it reaches the end */
};
/* From the arguments `start_line` and `max_lines`, in at most `room` bytes of JSON. NG_EINVAL:
 * `start_line` lies behind the end; NG_ETOOLARGE: its line alone is too long. */
int history_part(struct ng_call *call, struct ng_str text, size_t room,
                 struct history_part *ret);

/* ---- history_filter.c ---- */

/* The filter in the arguments. */
int history_filter(struct ng_call *call, struct ng_trail *ret);
/* NG_EINVAL: the argument `cursor` is of no answer. */
int history_not_a_cursor(struct ng_call *call);

/* ---- history_changed.c ---- */

/* A document that selected changes changed. */
struct history_document {
    struct hash_link link;
    struct history_document *next; /* whose newest selected change is older */
    struct ng_key key;             /* of its revisions; into texts */
    struct ng_key shown;           /* as answers name it: a file by its path; into texts */
    bool is_file;
    bool has_gap;            /* of a file: what was before `first` was not kept */
    uint64_t first, last;    /* revisions of these changes */
    uint64_t last_seq;       /* the newest of these changes */
    uint64_t changes;        /* their number */
    uint64_t counted;        /* of them: recorded how many lines they changed */
    uint64_t added, removed; /* lines that these recorded */
    char texts[];
};

struct history_changed {
    struct ng_call *call;
    struct hash_table table;
    struct history_document *newest, *oldest; /* NULL: none */
    int rc;
};

/* All documents that the filter selects; history_changed_done() in any case. NG_ETOOLARGE: too
 * many. */
int history_changed(struct ng_call *call, const struct ng_trail *selected,
                    struct history_changed *ret);
void history_changed_done(struct history_changed *changed);

/* ---- history_diff.c ---- */

/* The member `changed`: names of the members that people write and that differ. collection
 * NULL: of a file, which has none. before, after NULL: there is no such revision. */
void history_put_changed(struct ng_call *call, struct ng_writer *writer,
                         const struct ng_collection *collection, const struct ng_value *before,
                         const struct ng_value *after);
/* "SPACE/COLLECTION/ID@7", of a file "PATH@7", in call memory; absent: out of memory. */
struct ng_str history_version_name(struct ng_call *call, const struct ng_key *key,
                                   uint64_t revision);

/* ---- the tools ---- */

/* history_log by run: those whose last change is before this one. */
int history_runs(struct ng_call *call, const struct ng_trail *trail, uint64_t before);
/* NG_ENOTFOUND, and the hint names the nearest: the filter names runs, and none has a change.
 */
int history_check_runs(struct ng_call *call, const struct ng_trail *trail);
int history_log_run(void *self, struct ng_call *call, struct ng_str args);
int history_read_run(void *self, struct ng_call *call, struct ng_str args);
int history_documents(struct ng_call *call); /* history_read without an id */
int history_diff_run(void *self, struct ng_call *call, struct ng_str args);
int history_diff_rows(struct ng_call *call); /* history_diff of selected changes */
int history_blame_run(void *self, struct ng_call *call, struct ng_str args);
int history_undo_run(void *self, struct ng_call *call, struct ng_str args);
int history_restore_run(void *self, struct ng_call *call, struct ng_str args);
/* The member `unfinished`: the undos that were cut off. Before the rows, which leave room for
 * what follows them only. */
int history_put_unfinished(struct ng_call *call, struct ng_writer *writer);

/* ---- history_summary.c ---- */

/* The first line that a change put in, or how many it removed. Call memory. *ret_kept: its
 * content can be read. */
int history_summary(struct ng_call *call, const struct ng_event *event,
                    const struct ng_value *data, struct ng_str *ret, bool *ret_kept);

#endif
