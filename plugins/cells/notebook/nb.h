/* SPDX-License-Identifier: MIT */
/*
 * nb.h - a notebook file (.ipynb) as bytes with an index of spans: what lies where, and edits
 * as splices of those bytes.
 *
 * A file is never parsed and written anew: an edit changes the spans it touches, and every
 * other byte stays. How new text looks (indent, newlines, escapes, source as lines or as one
 * string, order of members) is learned from the file. Plain memory of the C library, no I/O, no
 * state.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_NB_H
#define NOTEGATE_PLUGIN_CELLS_NB_H

#include <notegate/plugin.h>

/* Deepest nesting of JSON that is followed. */
#define NB_DEPTH_MAX 200
/* Levels around an output in a file: what nb_check() finds fit is so there too. */
#define NB_DEPTH_AROUND 8
#define NB_CELLS_MAX ((size_t)1 << 20)
/* Longest cell id that nbformat allows. */
#define NB_ID_MAX 64
#define NB_INDENT_MAX 32
#define NB_ERROR_MAX 256
/* Members of one cell whose order is remembered for new cells. */
#define NB_MEMBERS_MAX 16

/* Bytes of the file; len 0: there is no such thing (no value of JSON is empty). */
struct nb_span {
    size_t at, len;
};

enum nb_type {
    NB_CODE = 1,
    NB_MARKDOWN = 2,
    NB_RAW = 3,
    NB_UNKNOWN = 4 /* some other word: kept as it is, shown, never changed in kind */
};

struct nb_cell {
    struct nb_span whole; /* the object */
    /* Values: strings with their quotes, arrays with their brackets. */
    struct nb_span id, type_word, source, outputs, count, metadata, attachments;
    enum nb_type type;
    uint32_t output_count;
    bool id_unique;    /* a handle: it fits the pattern of nbformat and no other cell has it */
    bool id_duplicate; /* it fits, and another cell has it too */
};

/* How the file writes what we add to it. */
struct nb_style {
    char indent[NB_INDENT_MAX + 1]; /* of one level; "" with `flat` */
    char newline[3];                /* "\n" or "\r\n" */
    bool flat;                      /* all in one line */
    bool space_comma;               /* flat: ", " */
    bool space_colon;               /* ": " (the usual), else ":" */
    bool ascii;                     /* everything beyond ASCII is escaped */
    bool one_string;                /* source and text are one string, not lines */
};

struct nb {
    struct ng_str bytes; /* lent: must outlive the index */
    struct nb_cell *cells;
    size_t cell_count;
    struct nb_span cells_array, metadata, top;
    int64_t minor; /* of nbformat 4 */
    bool has_ids;  /* minor is 5 or more: cells must have ids */
    struct nb_style style;
};

/* What is wrong with a file. */
enum nb_fault {
    NB_FINE = 0,
    NB_EMPTY,    /* no bytes, or only space */
    NB_NOT_JSON, /* damaged, or cut short */
    NB_NOT_UTF8,
    NB_DEEP,
    NB_NO_NOTEBOOK,   /* JSON of some other kind */
    NB_OTHER_VERSION, /* nbformat 3 and older, 5 and newer */
    NB_BAD_CELL,
    NB_NO_MEMORY
};

struct nb_error {
    enum nb_fault fault;
    char text[NB_ERROR_MAX]; /* one sentence: what is wrong, and where (line and column) */
};

/* ---- nb_scan.c: the index (and nb_json.c under it) ---- */

/* "code"; "unknown" where it is none of the three. */
const char *nb_type_name(enum nb_type type);
/* Reads the whole file once. NB_FINE: nb_done() later; else nothing is left. */
enum nb_fault nb_index(struct ng_str bytes, struct nb *ret, struct nb_error *error);
void nb_done(struct nb *nb);
/* Is it one well formed value of JSON (as kernels send it: with NaN, with halves of
 * surrogates), not too deep for a file? */
bool nb_check(struct ng_str json);

/* ---- walking JSON that is known to be well formed (nb_walk.c) ---- */

struct nb_walk {
    struct ng_str bytes;
    size_t at, end;
};

/* Over the members of the object or the elements of the array in `span`. */
struct nb_walk nb_walk_into(struct ng_str bytes, struct nb_span span);
/* The next one: false at the end. Of an object: `ret_name` is the name with its quotes. */
bool nb_walk_member(struct nb_walk *walk, struct nb_span *ret_name, struct nb_span *ret_value);
bool nb_walk_element(struct nb_walk *walk, struct nb_span *ret_value);
/* The member with this plain ASCII name; absent: len 0. Of doubled ones the last, as readers
 * take it. */
struct nb_span nb_member(struct ng_str bytes, struct nb_span object, const char *name);
struct ng_str nb_bytes(struct ng_str bytes, struct nb_span span);
/* Is the string (with its quotes) this plain ASCII word, however it is spelled? */
bool nb_is_word(struct ng_str bytes, struct nb_span string, const char *word);
/* A whole number of up to 18 digits. */
bool nb_integer(struct ng_str bytes, struct nb_span number, int64_t *ret);

/* ---- text.c: a growing text ---- */

struct nb_text {
    char *data;
    size_t len, size;
    bool failed; /* out of memory: sticks */
};

void nb_add(struct nb_text *text, const char *data, size_t len);
void nb_add_str(struct nb_text *text, struct ng_str piece);
void nb_add_word(struct nb_text *text, const char *word);
void nb_add_if(struct nb_text *text, bool condition, const char *word);
/* Appends `piece` with its failure, and frees it. */
void nb_add_done(struct nb_text *text, struct nb_text *piece);
struct ng_str nb_text_str(const struct nb_text *text);
void nb_text_done(struct nb_text *text);

/* ---- nb_text.c: strings of JSON ---- */

/* Appends what the string (with its quotes) says, as UTF-8. Halves of surrogate pairs become
 * U+FFFD. */
void nb_decode(struct nb_text *out, struct ng_str bytes, struct nb_span string);
/* The same of a string or an array of strings, one after the other; other values add nothing
 * and give false. */
bool nb_decode_lines(struct nb_text *out, struct ng_str bytes, struct nb_span value);
/* Appends the text as a string with quotes. Bytes that are no UTF-8 become U+FFFD. */
void nb_encode(struct nb_text *out, struct ng_str text, bool ascii);
/* The length of the line that begins at `at`, with its end; and does one begin there? */
size_t nb_line_length(struct ng_str text, size_t at);
bool nb_line_begins(struct ng_str text, size_t at);
/* The same, as an array of lines that keep their ends; "" is []. */
void nb_encode_lines(struct nb_text *out, struct ng_str text, bool ascii);

/* ---- nb_style.c ---- */

void nb_detect_style(struct nb *nb);
/* Appends JSON (well formed, any layout) in the style of a file, as it stands `depth` levels
 * deep; strings and numbers keep their spelling (but for `style.ascii`). */
void nb_format(struct nb_text *out, const struct nb_style *style, struct ng_str json,
               unsigned depth);

/* ---- nb_edit.c: edits ---- */

struct nb_splice {
    size_t at, removed;
    struct nb_text inserted;
};

/* Splices in the order of the file, none touching another. */
struct nb_edit {
    struct nb_splice *splices;
    size_t count, size;
    bool failed; /* out of memory */
};

/* `index`: of a cell that is there. Lines that stay keep their bytes. */
void nb_set_source(struct nb_edit *edit, const struct nb *nb, size_t index, struct ng_str text);
/* A new cell before the one at `index` (cell_count: at the end). id: 1-64 of [a-zA-Z0-9-_],
 * absent where the file has none. */
void nb_insert_cell(struct nb_edit *edit, const struct nb *nb, size_t index, enum nb_type type,
                    struct ng_str id, struct ng_str source);
/* `gone[i]`: cell i goes. */
void nb_delete_cells(struct nb_edit *edit, const struct nb *nb, const bool *gone);
/* Cell `from` becomes the one at `to`. */
void nb_move_cell(struct nb_edit *edit, const struct nb *nb, size_t from, size_t to);
/* outputs: a JSON array; count: -1 = null. Of a code cell only. */
void nb_set_outputs(struct nb_edit *edit, const struct nb *nb, size_t index,
                    struct ng_str outputs, int64_t count);
/* Behind those that the cell has. outputs: a JSON array. */
void nb_append_outputs(struct nb_edit *edit, const struct nb *nb, size_t index,
                       struct ng_str outputs);
void nb_clear_outputs(struct nb_edit *edit, const struct nb *nb, size_t index);
/* What one output of a cell shows (a display) is replaced; data, metadata: JSON objects. False:
 * there is no such output, or it is no display. */
bool nb_patch_output(struct nb_edit *edit, const struct nb *nb, size_t index, size_t ordinal,
                     struct ng_str data, struct ng_str metadata);
/* All splices at once: the new file. For tests and small files; a save gives them to the draft.
 */
void nb_apply(struct nb_text *out, struct ng_str bytes, const struct nb_edit *edit);
void nb_edit_done(struct nb_edit *edit);

/* A whole new file: one code cell or none, nbformat 4.5, as Jupyter writes it. kernelspec: JSON
 * object or absent. */
void nb_new_file(struct nb_text *out, struct ng_str kernelspec, struct ng_str first_id);

#endif
