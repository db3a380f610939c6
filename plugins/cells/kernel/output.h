/* SPDX-License-Identifier: MIT */
/*
 * output.h - what a running cell puts out: from the kernel's messages to the `outputs` of a
 * notebook file.
 *
 * Source: the Jupyter messaging documentation (stream, display_data, update_display_data,
 * execute_result, error, clear_output) and nbformat 4.5. No I/O; one thread at a time.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_OUTPUT_H
#define NOTEGATE_PLUGIN_CELLS_OUTPUT_H

#include "wire.h"

/* Outputs of one cell; more are dropped and counted. */
#define OUTPUTS_MAX 10000
#define OUTPUT_DISPLAY_ID_MAX 256

enum output_kind {
    OUTPUT_STDOUT = 1,
    OUTPUT_STDERR = 2,
    OUTPUT_DISPLAY = 3,
    OUTPUT_RESULT = 4,
    OUTPUT_ERROR = 5
};

struct output {
    enum output_kind kind;
    struct nb_text text;     /* streams: the text; displays: the mime bundle; errors: what the
                                kernel said. JSON as it came */
    struct nb_text metadata; /* of displays: an object */
    int64_t count;           /* of results: execution_count, or -1 */
    char display_id[OUTPUT_DISPLAY_ID_MAX + 1]; /* "": none */
};

struct outputs {
    struct output *items;
    size_t count, size;
    size_t bytes, cap;            /* of all texts; beyond `cap` nothing is kept */
    size_t dropped;               /* bytes that were not kept */
    bool clear_on_next;           /* clear_output(wait=True) */
    bool failed;                  /* out of memory */
    bool has_error;               /* an error was put out */
    bool cleared;                 /* clear_output() took what was there */
    struct nb_text ename, evalue; /* of the last */
};

/* A display that the kernel changes afterwards; data and metadata are JSON objects, lent. */
struct output_update {
    char display_id[OUTPUT_DISPLAY_ID_MAX + 1];
    struct nb_text data, metadata;
};

void outputs_begin(struct outputs *outputs, size_t cap);
/* What comes behind those of a cell that is over, within the same cap. */
void outputs_continue(struct outputs *outputs, const struct outputs *before);
void outputs_done(struct outputs *outputs);
/* Takes a message of iopub; false: it is none that puts something out. */
bool outputs_take(struct outputs *outputs, const struct wire_message *message);
/* Is it an update_display_data, or a display that gives an id anew? Then what is shown with
 * that id elsewhere changes too: ret is filled (output_update_done later). */
bool output_update_of(const struct wire_message *message, struct output_update *ret);
void output_update_done(struct output_update *update);
/* An error that only the kernel's reply tells of: {"ename", "evalue", "traceback"}. */
void outputs_add_error(struct outputs *outputs, struct ng_str content);
/* Appends the array for the file, compact. */
void outputs_json(const struct outputs *outputs, bool one_string, struct nb_text *out);
/* Appends a mime bundle as files keep it: text as lines (or one string), JSON as it is. */
void output_bundle(struct nb_text *out, struct ng_str json, struct nb_span bundle,
                   bool one_string);

#endif
