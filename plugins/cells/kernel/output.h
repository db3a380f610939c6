/* SPDX-License-Identifier: MIT */
/*
 * output.h - output of a running cell, collected from messages of the kernel and written as
 * `outputs` of a notebook file.
 *
 * Source: the Jupyter messaging documentation (stream, display_data, update_display_data,
 * execute_result, error, clear_output) and nbformat 4.5. No I/O. Not thread-safe.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_OUTPUT_H
#define NOTEGATE_PLUGIN_CELLS_OUTPUT_H

#include "wire.h"

/* Outputs of one cell, and room for those that come when there are so many. */
#define OUTPUTS_MAX 10000
#define OUTPUTS_ROOM (OUTPUTS_MAX + 2)
/* Values, errors and updated displays of one cell that do not count against its limit: each may
 * be as large as that, an error of OUTPUT_ERROR_MAX in any case. Further ones count. */
#define OUTPUTS_KEPT_MAX 8
#define OUTPUT_ERROR_MAX ((size_t)16 * 1024)
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
    struct nb_text text;     /* stream: the text; display: the mime bundle; error: the message's
                                content. JSON as received */
    struct nb_text metadata; /* of displays: an object */
    int64_t count;           /* of results: execution_count, or -1 */
    char display_id[OUTPUT_DISPLAY_ID_MAX + 1]; /* "": none */
    bool kept;    /* a value, an error or an updated display: it does not count */
    bool updated; /* by update_display_data */
    /* Of streams: up to `final` no later text changes what is shown, and up to `settled` there
     * is no overwritten text (screen_settle()). */
    size_t final, settled;
};

struct outputs {
    struct output *items;
    size_t count, size;
    size_t bytes, cap;       /* of all that count; limited by `cap` */
    size_t kept, kept_bytes; /* of those that do not */
    bool is_cut;             /* output is left out between items[head - 1] and items[head] */
    size_t head;             /* if is_cut: outputs of the beginning */
    size_t dropped;          /* bytes that are left out */
    bool clear_on_next;      /* clear_output(wait=True) */
    bool failed;             /* out of memory */
    bool has_error;          /* an error was published */
    bool cleared;            /* clear_output() removed earlier output */
    struct nb_text ename, evalue; /* of the last error */
};

/* An update of an earlier display; data and metadata are JSON objects. */
struct output_update {
    char display_id[OUTPUT_DISPLAY_ID_MAX + 1];
    struct nb_text data, metadata;
};

void outputs_begin(struct outputs *outputs, size_t cap);
void outputs_done(struct outputs *outputs);
/* ret->failed: out of memory. Free both. */
void outputs_copy(const struct outputs *outputs, struct outputs *ret);
/* Handles an iopub message. False: it is not an output message. */
bool outputs_take(struct outputs *outputs, const struct wire_message *message);
/* Is it an update_display_data, or a display_data with an id? Then other displays of this id
 * change too: fills ret (free with output_update_done). */
bool output_update_of(const struct wire_message *message, struct output_update *ret);
void output_update_done(struct output_update *update);
/* Adds an error that was only reported in the reply: {"ename", "evalue", "traceback"}. */
void outputs_add_error(struct outputs *outputs, struct ng_str content);
/* The position of an output in the array for the file. */
size_t outputs_ordinal(const struct outputs *outputs, size_t index);
/* Appends the array for the file, without whitespace, with a note where output is left out. */
void outputs_json(const struct outputs *outputs, bool one_string, struct nb_text *out);
/* Appends a mime bundle in the form of files: text as lines (or one string), JSON unchanged. */
void output_bundle(struct nb_text *out, struct ng_str json, struct nb_span bundle,
                   bool one_string);

#endif
