/* SPDX-License-Identifier: MIT */
/*
 * nb.h - a notebook file (.ipynb) as bytes with an index of spans, and edits as splices of
 * those bytes.
 *
 * A file is never parsed and rewritten: an edit replaces the spans it changes and keeps
 * every other byte. The layout of new text (indent, newlines, escapes, source as lines or as
 * one string, order of members) is detected from the file. Allocates with malloc(); no I/O, no
 * global state.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_NB_H
#define NOTEGATE_PLUGIN_CELLS_NB_H

#include <notegate/plugin.h>
#include <stdarg.h>

/* Maximum nesting of JSON. */
#define NB_DEPTH_MAX 200
/* Levels around an output in a file: an output that nb_check() accepts fits into a file. */
#define NB_DEPTH_AROUND 8
#define NB_CELLS_MAX ((size_t)1 << 20)
/* Maximum length of a cell id in nbformat. */
#define NB_ID_MAX 64
#define NB_INDENT_MAX 32
#define NB_ERROR_MAX 256
/* Members of a cell whose order is copied to new cells. */
#define NB_MEMBERS_MAX 16

/* A range of bytes of the file; len 0: absent (no JSON value is empty). */
struct nb_span {
    size_t at, len;
};

enum nb_type {
    NB_CODE = 1,
    NB_MARKDOWN = 2,
    NB_RAW = 3,
    NB_UNKNOWN = 4 /* any other word: kept and shown, never changed */
};

struct nb_cell {
    struct nb_span whole; /* the cell's object */
    /* Values: strings with quotes, arrays with brackets. */
    struct nb_span id, type_word, source, outputs, count, metadata, attachments;
    enum nb_type type;
    uint32_t output_count;
    bool id_unique;    /* usable as a handle: valid in nbformat and unique in the file */
    bool id_duplicate; /* valid, but another cell has it, too */
};

/* Layout of text that we add to the file. */
struct nb_style {
    char indent[NB_INDENT_MAX + 1]; /* one level; "" with `flat` */
    char newline[3];                /* "\n" or "\r\n" */
    bool flat;                      /* the file is one line */
    bool space_comma;               /* flat: ", " */
    bool space_colon;               /* ": " (usual) instead of ":" */
    bool ascii;                     /* all non-ASCII characters are escaped */
    bool one_string;                /* source and text are one string instead of lines */
};

struct nb_kept;

struct nb {
    struct ng_str bytes;   /* must outlive the index */
    struct nb_kept *kept;  /* shares the cells with a cache; NULL: they are its own */
    struct nb_cell *cells; /* of an index that is complete: read only */
    size_t cell_count;
    struct nb_span cells_array, metadata, top;
    int64_t minor; /* nbformat_minor of nbformat 4 */
    bool has_ids;  /* minor >= 5: cells must have ids */
    struct nb_style style;
};

/* Reasons why a file cannot be used. */
enum nb_fault {
    NB_FINE = 0,
    NB_EMPTY,    /* empty or only whitespace */
    NB_NOT_JSON, /* damaged or truncated */
    NB_NOT_UTF8,
    NB_DEEP,
    NB_NO_NOTEBOOK,   /* JSON, but not a notebook */
    NB_OTHER_VERSION, /* not nbformat 4 */
    NB_BAD_CELL,
    NB_NO_MEMORY
};

struct nb_error {
    enum nb_fault fault;
    char text[NB_ERROR_MAX]; /* one sentence with the reason, line and column */
};

/* ---- nb_scan.c (with nb_json.c): the index ---- */

/* "code"; "unknown" for NB_UNKNOWN. */
const char *nb_type_name(enum nb_type type);
/* Reads the whole file once. NB_FINE: free with nb_done(). Otherwise nothing is allocated. */
enum nb_fault nb_index(struct ng_str bytes, struct nb *ret, struct nb_error *error);
void nb_done(struct nb *nb);

/* ---- nb_cache.c: indexes of notebooks that were read lately ---- */

/* Bytes of all cached indexes, and their number. One that takes more than a quarter is not
 * cached. */
#define NB_CACHE_BYTES ((size_t)8 * 1024 * 1024)
#define NB_CACHE_MAX 64
#define NB_REVISION_MAX 64

struct nb_cache;

struct nb_cache *nb_cache_new(void); /* NULL: out of memory */
void nb_cache_free(struct nb_cache *cache);
/* As nb_index(). revision: hash of the bytes; equal revisions have the same index. */
enum nb_fault nb_cache_index(struct nb_cache *cache, struct ng_str bytes,
                             struct ng_str revision, struct nb *ret, struct nb_error *error);
void nb_kept_unref(struct nb_kept *kept);
void nb_cache_size(struct nb_cache *cache, size_t *ret_bytes, size_t *ret_count);

/* ---- nb_json.c ---- */

/* Is it one well-formed JSON value (kernels send NaN and lone surrogates), not nested too
 * deeply for a file? */
bool nb_check(struct ng_str json);

/* ---- nb_walk.c: iteration over well-formed JSON ---- */

struct nb_walk {
    struct ng_str bytes;
    size_t at, end;
};

/* Iterates over the members of the object or the elements of the array in `span`. */
struct nb_walk nb_walk_into(struct ng_str bytes, struct nb_span span);
/* The next one; false at the end. `ret_name` includes the quotes. */
bool nb_walk_member(struct nb_walk *walk, struct nb_span *ret_name, struct nb_span *ret_value);
bool nb_walk_element(struct nb_walk *walk, struct nb_span *ret_value);
/* The member with this ASCII name; len 0: absent. Of duplicate members the last, as in other
 * readers. */
struct nb_span nb_member(struct ng_str bytes, struct nb_span object, const char *name);
struct ng_str nb_bytes(struct ng_str bytes, struct nb_span span);
/* Is the string (with its quotes) this ASCII word, in any spelling? */
bool nb_is_word(struct ng_str bytes, struct nb_span string, const char *word);
/* A non-negative integer of up to 18 digits. */
bool nb_integer(struct ng_str bytes, struct nb_span number, int64_t *ret);

/* ---- text.c: growing text ---- */

struct nb_text {
    char *data;
    size_t len, size;
    bool failed; /* out of memory; sticks */
};

void nb_add(struct nb_text *text, const char *data, size_t len);
void nb_add_str(struct nb_text *text, struct ng_str piece);
void nb_add_word(struct nb_text *text, const char *word);
void nb_addf(struct nb_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void nb_vaddf(struct nb_text *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void nb_add_if(struct nb_text *text, bool condition, const char *word);
/* Appends `piece` and its failure, and frees it. */
void nb_add_done(struct nb_text *text, struct nb_text *piece);
struct ng_str nb_text_str(const struct nb_text *text);
void nb_text_done(struct nb_text *text);

/* ---- nb_string.c: JSON strings ---- */

/* Appends the decoded string (span with quotes) as UTF-8. Lone surrogates become U+FFFD. */
void nb_decode(struct nb_text *out, struct ng_str bytes, struct nb_span string);
/* The same for a string or an array of strings, concatenated. False for other values. */
bool nb_decode_lines(struct nb_text *out, struct ng_str bytes, struct nb_span value);
/* Appends the text as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD. */
void nb_encode(struct nb_text *out, struct ng_str text, bool ascii);
/* The length of the line at `at` with its line ending; does a line begin there? */
size_t nb_line_length(struct ng_str text, size_t at);
bool nb_line_begins(struct ng_str text, size_t at);
/* The same as an array of lines with their endings; "" is []. */
void nb_encode_lines(struct nb_text *out, struct ng_str text, bool ascii);
/* As lines, or as one string. */
void nb_encode_text(struct nb_text *out, struct ng_str text, bool ascii, bool one_string);

/* ---- nb_style.c ---- */

void nb_detect_style(struct nb *nb);
/* Appends a line break with the indentation of this depth; nothing in a flat file. */
void nb_add_break(struct nb_text *out, const struct nb_style *style, unsigned depth);
/* Appends well-formed JSON in the layout of a file, nested `depth` levels deep; strings and
 * numbers keep their spelling (except for `style.ascii`). */
void nb_format(struct nb_text *out, const struct nb_style *style, struct ng_str json,
               unsigned depth);

/* Depth of values in a file; the top object has depth 0. */
#define NB_DEPTH_OF_CELLS 1
#define NB_DEPTH_OF_CELL 2
#define NB_DEPTH_OF_MEMBER 3
#define NB_DEPTH_OF_OUTPUT 5 /* members of an output */

/* ---- nb_edit.c: edits ---- */

struct nb_splice {
    size_t at, removed;
    struct nb_text inserted;
};

/* Splices in ascending order, not overlapping. */
struct nb_edit {
    struct nb_splice *splices;
    size_t count, size;
    bool failed;         /* out of memory */
    struct nb_text lost; /* takes the text of splices there was no memory for */
};

/* Replaces a value by JSON in the layout of the file, nested `depth` levels deep. */
void nb_replace_value(struct nb_edit *edit, const struct nb *nb, struct nb_span value,
                      struct ng_str json, unsigned depth);
/* Lines that stay keep their bytes. */
void nb_set_source(struct nb_edit *edit, const struct nb *nb, size_t index, struct ng_str text);
/* Appends the bytes that stand between two cells. */
void nb_add_cell_separator(struct nb_text *out, const struct nb *nb);
/* Inserts a cell before `index` (cell_count: at the end). id: 1-64 of [a-zA-Z0-9-_], absent if
 * the file has no ids. */
void nb_insert_cell(struct nb_edit *edit, const struct nb *nb, size_t index, enum nb_type type,
                    struct ng_str id, struct ng_str source);
/* Deletes each cell i with `gone[i]`. */
void nb_delete_cells(struct nb_edit *edit, const struct nb *nb, const bool *gone);
/* Moves the cell `from` to the position `to`. */
void nb_move_cell(struct nb_edit *edit, const struct nb *nb, size_t from, size_t to);
/* outputs: a JSON array; count: -1 = null. Code cells only. */
void nb_set_outputs(struct nb_edit *edit, const struct nb *nb, size_t index,
                    struct ng_str outputs, int64_t count);
/* Replaces the outputs of the cell behind its first `keep`. outputs: a JSON array. */
void nb_replace_outputs(struct nb_edit *edit, const struct nb *nb, size_t index, size_t keep,
                        struct ng_str outputs);
void nb_clear_outputs(struct nb_edit *edit, const struct nb *nb, size_t index);
/* Replaces data and metadata (JSON objects) of one display. False: there is no such output, or
 * it is not a display. */
bool nb_patch_output(struct nb_edit *edit, const struct nb *nb, size_t index, size_t ordinal,
                     struct ng_str data, struct ng_str metadata);
/* Applies all splices. For tests and small files; a save passes the splices to the draft. */
void nb_apply(struct nb_text *out, struct ng_str bytes, const struct nb_edit *edit);
void nb_edit_done(struct nb_edit *edit);

/* ---- nb_member.c: members of an object that has some ---- */

/* Adds a member whose name (with quotes) it does not have, `depth` levels deep, behind the
 * value `after` of another one; len 0: before the first. */
void nb_add_member(struct nb_edit *edit, const struct nb *nb, struct nb_span object,
                   struct nb_span after, struct ng_str name, struct ng_str json,
                   unsigned depth);
/* Removes the i-th member if `gone[i]`; some must remain. After all calls of nb_add_member()
 * for the object. */
void nb_remove_members(struct nb_edit *edit, const struct nb *nb, struct nb_span object,
                       const bool *gone);

struct nb_new_cell {
    enum nb_type type;
    struct ng_str id, source;
};

/* A new file in Jupyter's layout: nbformat 4.5. kernelspec: JSON object or absent. */
void nb_new_file(struct nb_text *out, struct ng_str kernelspec, const struct nb_new_cell *cells,
                 size_t count);

#endif
