/* SPDX-License-Identifier: MIT */
/* cells.h - what the tools of the cells plugin share. */
#ifndef NOTEGATE_PLUGIN_CELLS_H
#define NOTEGATE_PLUGIN_CELLS_H

#include "kernel/kernel.h"
#include "notebook/render.h"
#include "supervisor/supervisor_protocol.h"

/* Largest notebook file that is read. */
#define CELLS_FILE_MAX ((uint64_t)512 * 1024 * 1024)
#define CELLS_COLLECTION "cells"
/* Attachments: quiet documents, one for each agent and space. */
#define CELLS_ATTACHED "cells_attached"
#define CELLS_ATTACHED_MAX 64  /* notebooks of one agent in one space */
#define CELLS_CHOSEN_MAX 10000 /* ids in one call */
#define CELLS_HANDLE_MAX (NB_ID_MAX + 16)
/* In the context: all cells of a notebook with fewer, else a window on both sides. */
#define CELLS_CONTEXT_ALL 20
#define CELLS_CONTEXT_WINDOW 10
/* Characters of all sources that are told; each cell counts CELLS_CONTEXT_CELL more. */
#define CELLS_CONTEXT_BUDGET 50000
#define CELLS_CONTEXT_CELL 200
#define CELLS_CONTEXT_CUT 2000

/* Error codes of the plugin's own, in the order of its table. */
enum {
    CELLS_ENOCELL = NG_EPLUGIN,
    CELLS_ENOTEBOOK = NG_EPLUGIN - 1,
    CELLS_EMALFORMED = NG_EPLUGIN - 2,
    CELLS_EFAILED = NG_EPLUGIN - 3, /* a cell raised */
    CELLS_EKERNEL = NG_EPLUGIN - 4,
    CELLS_ENORUN = NG_EPLUGIN - 5
};

struct cells_attachments;
struct cells_runs;

struct cells {
    const struct ng_host *host;
    struct kernels *kernels;
    struct cells_attachments *attachments;
    struct cells_runs *runs;
    uint64_t max_source, max_output_text, max_saved_output;
    uint64_t max_result; /* limits.result */
    int64_t max_timeout_ms;
};

/* ---- notebook_file.c: which notebook, and its cells ---- */

struct notebook_file {
    struct ng_str path; /* absolute, as it is told */
    struct ng_file file;
    struct nb nb;
};

/* The notebook the call is about: the argument `notebook`, else the caller's active one. Not
 * NG_OK: the call fails with it. */
int cells_path(struct cells *self, struct ng_call *call, struct ng_str *ret_path);
/* The failure `rc` of a file operation, in words for notebooks where the path is a folder. */
int cells_fail_folder(struct ng_call *call, struct ng_str path, int rc);
/* Reads it. NG_OK: cells_close() later. */
int cells_open(struct ng_call *call, struct ng_str path, struct notebook_file *ret);
void cells_close(struct notebook_file *notebook);
/* Indexes what the function of an edit sees; fails the call as cells_open() does. reads: 0 at
 * first, kept between the runs of that function. NG_EWOULDBLOCK: the function returns it. */
int cells_index(struct ng_call *call, const struct ng_file *file, unsigned *reads,
                struct nb *ret);
/* May another program be in the middle of writing such a file? Then it is read again, a few
 * times. reads: 0 at first. */
bool cells_should_reread(enum nb_fault fault, unsigned *reads);
/* The handle of a cell: its id, else "index:N". NUL at the end. */
void cells_handle(const struct nb *nb, size_t index, char handle[CELLS_HANDLE_MAX]);
/* SIZE_MAX: there is none. */
size_t cells_find(const struct nb *nb, struct ng_str handle);
int cells_fail_unknown(struct ng_call *call, const struct nb *nb, struct ng_str names);
const char *cells_type(enum nb_type type); /* "code" */
/* What the call got in `cellIds`, as positions in call memory; unknown ones fail the call and
 * are all named. absent or empty: *ret_count 0. */
int cells_chosen(struct ng_call *call, const struct nb *nb, size_t **ret, size_t *ret_count);
/* The same for what only reads: where some are known those are chosen, and the others named in
 * a sentence in *ret_missing, which stays empty otherwise. */
int cells_chosen_or(struct ng_call *call, const struct nb *nb, size_t **ret, size_t *ret_count,
                    struct nb_text *ret_missing);
/* A C string in call memory; NULL: out of memory, or the text holds NUL. */
char *cells_string(struct ng_call *call, struct ng_str text);
int cells_no_memory(struct ng_call *call);
/* "space/agent": whose attachments and runs they are. Call memory. */
struct ng_str cells_owner_key(struct ng_call *call);
/* Replies with the text and fails where it could not be made. */
int cells_reply(struct ng_call *call, struct nb_text *text);

/* ---- cells_attached.c, cells_attached_doc.c, cells_attach.c: attached notebooks, the active
 * one, what is selected ---- */

int cells_attachments_open(struct ng_call *call, struct cells_attachments **ret);
/* Reads what the caller has attached by now: other gateways may work on the same documents.
 * cells_path() does it where it asks for the active notebook. */
int cells_attachments_refresh(struct cells *self, struct ng_call *call);
/* The same for what tells of selected cells, where cells_path() had no need to. Does not fail.
 */
void cells_refresh_selection(struct cells *self, struct ng_call *call);
void cells_attachments_close(struct cells_attachments *all);
/* The active notebook; absent: none. Call memory. */
struct ng_str cells_active(struct cells *self, struct ng_call *call);
/* 0: unselected, 1: selected, 2: active (being edited). real: of the file. */
int cells_selection(struct cells *self, struct ng_call *call, struct ng_str real,
                    const char *handle);
bool cells_listed_attached(void *self, struct ng_call *call);
int cells_attach_run(void *user, struct ng_call *call, struct ng_str args);
int cells_detach_run(void *user, struct ng_call *call, struct ng_str args);
int cells_select_run(void *user, struct ng_call *call, struct ng_str args);

/* ---- cells_status.c: how cells are doing ---- */

/* "Selection: … | Execution: … | …". */
void cells_status(struct cells *self, struct ng_call *call,
                  const struct notebook_file *notebook, size_t index, struct nb_text *out);
/* Is a run with this cell at work, whose outputs are not in the file yet? */
bool cells_unsaved(struct cells *self, const struct notebook_file *notebook,
                   const char *handle);
struct cells_last {
    bool known, good;
    int64_t duration_ms, ended_ms;
};

/* ---- reading: cells_read.c, cells_context.c ---- */

int cells_get_run(void *user, struct ng_call *call, struct ng_str args);
int cells_outputs_run(void *user, struct ng_call *call, struct ng_str args);
int cells_context_run(void *user, struct ng_call *call, struct ng_str args);
int cells_prompt_agent(void *self, struct ng_call *call, struct ng_str args);
int cells_prompt_readonly(void *self, struct ng_call *call, struct ng_str args);

/* ---- changing: cells_edit.c, cells_create.c ---- */

int cells_add_run(void *user, struct ng_call *call, struct ng_str args);
int cells_update_run(void *user, struct ng_call *call, struct ng_str args);
int cells_delete_run(void *user, struct ng_call *call, struct ng_str args);
int cells_move_run(void *user, struct ng_call *call, struct ng_str args);
int cells_clear_run(void *user, struct ng_call *call, struct ng_str args);
int cells_create_run(void *user, struct ng_call *call, struct ng_str args);
/* Gives the edit of those bytes to the draft, in one piece. */
int cells_draft(struct ng_call *call, struct ng_draft *next, struct ng_str bytes,
                const struct nb_edit *edit);

/* ---- cells_images.c: what limits.result lets through ---- */

struct cells_images {
    struct ng_call *call;
    struct nb_text *text; /* of the answer: told later, as lines are added */
    size_t limit, room;   /* bytes of the answer, and what is left of them */
    size_t left_out;
};

/* Most text of one answer. */
size_t cells_text_max(const struct cells *self);
/* Cuts a text that is too large for an answer by itself. */
void cells_fit_text(const struct cells *self, struct nb_text *text);
/* Between begin and end, add for each cell: its images become parts of the answer, or lines of
 * its text. */
void cells_images_begin(struct cells_images *images, const struct cells *self,
                        struct ng_call *call, struct nb_text *text);
int cells_images_add(struct cells_images *images, const struct rendered *rendered,
                     const char *handle);
void cells_images_end(struct cells_images *images);

/* ---- running: cells_run.c, cells_runs.c, cells_kernels.c ---- */

int cells_runs_open(struct ng_call *call, struct cells_runs **ret);
void cells_runs_close(struct cells_runs *runs);
/* How the cell last ended, as far as this gateway ran it. */
struct cells_last cells_last_run(struct cells *self, struct ng_str notebook,
                                 const char *handle);
int cells_run_run(void *user, struct ng_call *call, struct ng_str args);
int cells_get_run_run(void *user, struct ng_call *call, struct ng_str args);
int cells_interrupt_run(void *user, struct ng_call *call, struct ng_str args);
int cells_restart_run(void *user, struct ng_call *call, struct ng_str args);
int cells_kernels_run(void *user, struct ng_call *call, struct ng_str args);

/* ---- cells_schemas.c ---- */

extern const char cells_run_params[], cells_add_params[], cells_update_params[],
    cells_get_params[], cells_outputs_params[], cells_attach_params[], cells_detach_params[],
    cells_select_params[], cells_context_params[], cells_create_params[], cells_delete_params[],
    cells_move_params[], cells_clear_params[], cells_get_run_params[], cells_kernel_params[],
    cells_list_params[];

#endif
