/* SPDX-License-Identifier: MIT */
/* cells.h - the interface of the cells plugin's tools. */
#ifndef NOTEGATE_PLUGIN_CELLS_H
#define NOTEGATE_PLUGIN_CELLS_H

#include "kernel/kernel.h"
#include "notebook/render.h"
#include "supervisor/supervisor_protocol.h"

/* Maximum size of a notebook file. */
#define CELLS_FILE_MAX ((uint64_t)512 * 1024 * 1024)
#define CELLS_COLLECTION "cells"
/* Attachments: one quiet document per agent and space. */
#define CELLS_ATTACHED "cells_attached"
/* Gateways that run kernels: one quiet document per notebook. */
#define CELLS_LEASES "cells_leases"
#define CELLS_ATTACHED_MAX 64  /* notebooks per agent and space */
#define CELLS_CHOSEN_MAX 10000 /* ids per call */
#define CELLS_PROCESS_BYTES 8
/* Bytes of a new cell id, which has as many digits as Jupyter's, and its size with NUL. */
#define CELLS_NEW_ID_BYTES 4
#define CELLS_NEW_ID_SIZE (2 * CELLS_NEW_ID_BYTES + 1)
#define CELLS_HANDLE_MAX (NB_ID_MAX + 16)
/* Member of `_meta` with the path of the notebook of an answer. */
#define CELLS_META_NOTEBOOK "notegate/notebook"
/* The context contains all cells of a notebook with fewer than CELLS_CONTEXT_ALL, otherwise a
 * window of cells on both sides of the selection. */
#define CELLS_CONTEXT_ALL 20
#define CELLS_CONTEXT_WINDOW 10
/* Characters of all sources in the context; each cell costs CELLS_CONTEXT_CELL more. */
#define CELLS_CONTEXT_BUDGET 50000
#define CELLS_CONTEXT_CELL 200
#define CELLS_CONTEXT_CUT 2000

/* The plugin's error codes, in the order of its table. */
enum {
    CELLS_ENOCELL = NG_EPLUGIN,
    CELLS_ENOTEBOOK = NG_EPLUGIN - 1,
    CELLS_EMALFORMED = NG_EPLUGIN - 2,
    CELLS_EFAILED = NG_EPLUGIN - 3, /* a cell raised an exception */
    CELLS_EKERNEL = NG_EPLUGIN - 4,
    CELLS_ENORUN = NG_EPLUGIN - 5,
    CELLS_EELSEWHERE = NG_EPLUGIN - 6, /* the kernel runs on another gateway */
    CELLS_EAMBIGUOUS = NG_EPLUGIN - 7, /* several notebooks are attached */
    CELLS_ENOMATCH = NG_EPLUGIN - 8,
    CELLS_ESEVERAL = NG_EPLUGIN - 9
};

/* The use of a notebook that the caller does not name. */
enum cells_use { CELLS_READS, CELLS_CHANGES };

struct cells_attachments;
struct cells_runs;
struct cells_leases;

struct cells {
    const struct ng_host *host;
    struct kernels *kernels;
    struct cells_attachments *attachments;
    struct cells_runs *runs;
    struct nb_cache *indexes;
    struct cells_leases *leases; /* NULL: there are no other gateways */
    /* This process of the gateway: active notebooks end with it. */
    struct ng_str process;
    char process_id[2 * CELLS_PROCESS_BYTES + 1]; /* its name without other gateways */
    uint64_t max_source, max_output_text, max_saved_output;
    uint64_t max_result; /* limits.result */
    int64_t max_timeout_ms;
    bool lists_always; /* cells.list */
};

/* ---- notebook_file.c: the notebook of a call, and its cells ---- */

struct notebook_file {
    struct ng_str path; /* absolute, as shown to the caller */
    struct ng_file file;
    struct nb nb;
};

/* The path of the call's notebook: the argument `notebook`, else the caller's active notebook.
 * On failure the call fails. */
int cells_path(struct cells *self, struct ng_call *call, enum cells_use use,
               struct ng_str *ret_path);
/* The path in an argument, in call memory: a relative one starts at the caller's first root. */
int cells_absolute(struct ng_call *call, const char *name, struct ng_str *ret);
/* Explains the failure `rc` of a file operation if the path is a folder. */
int cells_fail_folder(struct ng_call *call, struct ng_str path, int rc);
/* Reads the notebook of the call. NG_OK: cells_close() must follow. */
int cells_open(struct cells *self, struct ng_call *call, enum cells_use use,
               struct notebook_file *ret);
void cells_close(struct notebook_file *notebook);
/* Indexes the file inside the function of an edit; fails the call like cells_open(). reads:
 * initially 0, kept across calls of that function. NG_EWOULDBLOCK: return it. */
int cells_index(struct cells *self, struct ng_call *call, const struct ng_file *file,
                unsigned *reads, struct nb *ret);
/* Another program may be in the middle of writing such a file: true a few times, to read it
 * again. reads: initially 0. */
bool cells_should_reread(enum nb_fault fault, unsigned *reads);
/* The handle of a cell: its id, else "index:N". NUL-terminated. */
void cells_handle(const struct nb *nb, size_t index, char handle[CELLS_HANDLE_MAX]);
/* By its handle. SIZE_MAX: not found. */
size_t cells_find(const struct nb *nb, struct ng_str handle);
/* As callers name it: by its handle, else by its position. */
size_t cells_find_named(const struct nb *nb, struct ng_str name);
int cells_fail_unknown(struct ng_call *call, const struct nb *nb, struct ng_str names);
/* The positions of the cells in `cellIds`, in call memory. Unknown ids fail the call, which
 * names all of them; with ret_missing only if no id is known, otherwise it names them in a
 * sentence. Absent or empty: *ret_count is 0. */
int cells_chosen(struct ng_call *call, const struct nb *nb, size_t **ret, size_t *ret_count,
                 struct nb_text *ret_missing);
/* Is it ["all"], which is not the id of a cell? */
bool cells_names_all(struct ng_call *call, const struct nb *nb);
/* As cells_chosen(); of ["all"] all cells. */
int cells_chosen_or_all(struct ng_call *call, const struct nb *nb, size_t **ret,
                        size_t *ret_count, struct nb_text *ret_missing);
int cells_no_memory(struct ng_call *call);
/* Fails the call unless `good`. */
int cells_check_memory(struct ng_call *call, bool good);
/* "space/agent", the owner of attachments and runs, in call memory. */
struct ng_str cells_owner_key(struct ng_call *call);
/* Names the notebook of an answer: in `_meta`, and in the last line of its text. */
int cells_add_notebook(struct ng_call *call, struct ng_str path, struct nb_text *text);
/* The bytes of that line. */
size_t cells_notebook_len(struct ng_str path);
/* Replies with the text, or fails if it is incomplete. path: of the notebook; absent: none. */
int cells_reply(struct ng_call *call, struct ng_str path, struct nb_text *text);
/* The same with a formatted text. */
int cells_replyf(struct ng_call *call, struct ng_str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- cells_attached.c, cells_attached_store.c, cells_attach.c: attached, active and selected
 * ---- */

/* Names this process of the gateway: self->process. */
int cells_name_process(struct cells *self, struct ng_call *call);
int cells_attachments_open(struct ng_call *call, struct cells_attachments **ret);
/* Reads the caller's attachments from the store, which other gateways may have changed.
 * cells_path() does so for the active notebook. */
int cells_attachments_refresh(struct cells *self, struct ng_call *call);
/* The same for tools that show the selection, if cells_path() did not. Ignores failures. */
void cells_refresh_selection(struct cells *self, struct ng_call *call);
void cells_attachments_close(struct cells_attachments *all);
/* The path of the caller's active notebook, which is thereby used, in call memory. Fails the
 * call if there is none, or if it is not clear which one is to be changed. */
int cells_use_active(struct cells *self, struct ng_call *call, enum cells_use use,
                     struct ng_str *ret_path);
/* 0: unselected, 1: selected, 2: active (being edited). real: path of the file. */
int cells_selection(struct cells *self, struct ng_call *call, struct ng_str real,
                    const char *handle);
bool cells_listed_attached(void *self, struct ng_call *call);
int cells_attach_run(void *user, struct ng_call *call, struct ng_str args);
int cells_detach_run(void *user, struct ng_call *call, struct ng_str args);
int cells_select_run(void *user, struct ng_call *call, struct ng_str args);

/* ---- cells_status.c: status of cells ---- */

/* "Selection: … | Execution: … | …". */
void cells_status(struct cells *self, struct ng_call *call,
                  const struct notebook_file *notebook, size_t index, struct nb_text *out);
/* Does the cell belong to a run whose outputs are not in the file yet? */
bool cells_unsaved(struct cells *self, const struct notebook_file *notebook,
                   const char *handle);
/* "idle", "pending" or "running". */
const char *cells_execution(struct cells *self, const struct notebook_file *notebook,
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

/* ---- changing: cells_edit.c ---- */

/* Of all tools that change cells. */
int cells_edit_run(void *self, struct ng_call *call, struct ng_str args);
/* Fails the call if the source is over cells.max_source. */
int cells_check_source(const struct cells *self, struct ng_call *call, struct ng_str source);
/* "code", "markdown" or "raw", in any case. */
bool cells_type_named(struct ng_str word, enum nb_type *ret);
/* A new id of a cell, which no cell of nb has; nb may be NULL. */
int cells_new_id(struct ng_call *call, const struct nb *nb, char id[CELLS_NEW_ID_SIZE]);
/* Writes the edit of `bytes` to the draft. */
int cells_draft(struct ng_call *call, struct ng_draft *next, struct ng_str bytes,
                const struct nb_edit *edit);

/* ---- cells_images.c: the size limit of answers (limits.result) ---- */

struct cells_images {
    struct ng_call *call;
    struct nb_text *text; /* of the answer: sent later, lines may be added */
    size_t limit, room;   /* bytes of the answer, and the rest of them */
    size_t left_out;
};

/* Bytes of an answer beside outputs, usually. */
#define CELLS_ANSWER_HEAD_MAX 4096
/* Maximum text of the answer of this call. */
size_t cells_text_max(struct ng_call *call);
/* Cuts the text to that size with the line about its notebook. */
void cells_fit_text(struct ng_call *call, struct ng_str path, struct nb_text *text);
/* Between begin and end, add for each cell: its images become parts of the answer, or lines of
 * its text. path: of the notebook. */
void cells_images_begin(struct cells_images *images, const struct cells *self,
                        struct ng_call *call, struct ng_str path, struct nb_text *text);
int cells_images_add(struct cells_images *images, const struct rendered *rendered,
                     const char *handle);
void cells_images_end(struct cells_images *images);

/* ---- running: cells_run.c, cells_runs.c, cells_kernels.c ---- */

int cells_runs_open(struct ng_call *call, struct cells_runs **ret);
void cells_runs_close(struct cells_runs *runs);
/* The last execution of the cell by this gateway. */
struct cells_last cells_last_run(struct cells *self, struct ng_str notebook,
                                 const char *handle);
int cells_run_run(void *user, struct ng_call *call, struct ng_str args);
/* Runs these cells of the notebook, as far as they are there, and answers as runNotebookCells.
 * The call has its own time limit. */
int cells_run_cells(struct cells *self, struct ng_call *call, const struct ng_str *handles,
                    size_t count);
int cells_get_run_run(void *user, struct ng_call *call, struct ng_str args);
int cells_interrupt_run(void *user, struct ng_call *call, struct ng_str args);
int cells_restart_run(void *user, struct ng_call *call, struct ng_str args);
int cells_kernels_run(void *user, struct ng_call *call, struct ng_str args);

/* ---- cells_schemas.c ---- */

extern const char cells_run_params[], cells_add_params[], cells_update_params[],
    cells_get_params[], cells_outputs_params[], cells_attach_params[], cells_detach_params[],
    cells_select_params[], cells_context_params[], cells_create_params[], cells_delete_params[],
    cells_move_params[], cells_clear_params[], cells_get_run_params[], cells_kernel_params[],
    cells_list_params[], cells_notebooks_params[];

#endif
