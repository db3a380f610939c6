/* SPDX-License-Identifier: MIT */
/*
 * index.h - the index of one notebook: an SQLite file in the data directory, true to the files.
 *
 * Readers see these tables (index_schema.c makes them). Texts are valid UTF-8; `fold` and
 * `folded` are notes_fold() of it: NFC, case-folded.
 *   notes(id, path, file, title, title_fold, path_fold, created, modified, size, words, front,
 *         front_error, revision, body_line, heads, ...)
 *       path: relative, NFC, unique; file: its bytes on disk (BLOB) where they differ, else
 * NULL; title: front matter's or NULL; created, modified: ms; front: JSON object or NULL;
 *       revision: hash of the file's bytes; body_line: lines before the body; heads: title and
 *       aliases, folded, each on a line: `title` of grams and terms
 *   bodies(note, folded, content)   content: without front matter
 *   tags(note, tag, fold)
 *   fields(note, key, text, number)   a row per scalar of the front matter: key is the dotted
 * path; elements of a list share the list's key; number: its value where it is one, else NULL
 *   headings(note, line, level, text, slug, fold)      line: in content, from 1
 *   links(note, line, text, target, kind, key, context)   line: in the file, from 1; also of
 *       links in front matter
 *       kind: 'inline', 'reference', 'wiki', 'auto'; key: what to look up in `names`; NULL
 * where it leads out of every notebook (an address) or is only an #anchor. Files that are no
 * notes are in no table: see notes_tree_stat() before calling such a link broken
 *   images(note, target, kind, key)   pictures and embedded pictures, as links
 *   names(note, key, kind)   kind: 'path' for inline and reference links (NFC path, with and
 * without .md); for wiki links, folded and without .md, best first: 'wikipath', 'file' (the
 * name), 'suffix' (the end of a path), 'title', 'alias' grams        FTS5 over (title, body),
 * folded, by trigrams; rowid = note terms        FTS5 over (title, body), folded, by words;
 * rowid = note. Neither has positions vocab(id, word, letters, stem)   every word that is or
 * was in a note; stale ones stay vocab_grams  FTS5 trigram, without content, of "^^word$$";
 * rowid = vocab.id long_words(note)   notes with words that are too long for vocab changes(seq,
 * note)   a row per changed, added or removed note, in order; only the last ones stay, at least
 * one. A note keeps its id when its file changes
 */
#ifndef NOTEGATE_OPENNOTES_INDEX_H
#define NOTEGATE_OPENNOTES_INDEX_H

#include <sqlite3.h>

#include "tree/tree.h"

struct notes_index;

/* Bytes of one note that are read for the index; the rest of a larger file is not searched. */
#define NOTES_INDEX_NOTE_MAX ((size_t)16 * 1024 * 1024)

/*
 * Makes the index true to the files as they are now and lends a read-only connection inside a
 * read transaction, for this call alone: prepare, step, finalize on it as you like (no BEGIN or
 * COMMIT). May take seconds the first time, with progress to the call. Fails with STORAGE_FULL,
 * CANCELLED, TIMEOUT, NOTEBOOK_NOT_FOUND (the folder went).
 */
int notes_index_begin(struct notes_index *index, struct ng_call *call, sqlite3 **ret_db);
/* Every statement must be finalized, or kept. NULL is a no-op. */
void notes_index_end(struct notes_index *index, sqlite3 *db);

/* State that a tool keeps with a connection for later calls: statements, and what it has read.
 * The connection is lent to one call at a time, and each call sees the state of the call before
 * or a later one. */
struct notes_kept {
    void (*free)(struct notes_kept *kept); /* before the connection is closed */
};
/* Of a lent connection; NULL: nothing yet. */
struct notes_kept *notes_index_kept(struct notes_index *index, sqlite3 *db);
/* Takes ownership. Nothing may be kept with this connection so far. */
void notes_index_keep(struct notes_index *index, sqlite3 *db, struct notes_kept *kept);

/* Fails the call with the error of an SQLite call on the lent connection. The next call builds
 * a damaged index again. Returns the code. */
int notes_index_fail(struct notes_index *index, struct ng_call *call, sqlite3 *db);

/* The folder of notes, opened as a directory; for openat2() below it. */
int notes_index_root(struct notes_index *index);

/* A note, found by a path. */
struct notes_location {
    int64_t id;         /* its row; 0: the index was not needed */
    struct ng_str path; /* in the index */
    struct ng_str file; /* its bytes on disk */
    int64_t created_ms, modified_ms;
};

/* Finds the note by the path that the caller gave, in NFC, without "./" and doubled slashes.
 * PATH_TRAVERSAL for `..`, absolute paths and NUL; NOTE_NOT_FOUND with the nearest path as
 * hint. */
int notes_index_find(struct notes_index *index, struct ng_call *call, sqlite3 *db,
                     struct ng_str given, struct notes_location *ret);
/* The same for callers that need nothing else of the index: a path in ASCII without symbolic
 * links on its way is found by its file alone. */
int notes_index_locate(struct notes_index *index, struct ng_call *call, struct ng_str given,
                       struct notes_location *ret);
/* Creation time of a note without one in its front matter. */
int64_t notes_index_created_ms(const struct notes_stat *stat);
/* The file, as it is on disk, of the note with exactly this path; in call memory. {NULL, 0}:
 * there is none. */
int notes_index_file(struct notes_index *index, struct ng_call *call, sqlite3 *db,
                     struct ng_str path, struct ng_str *ret_file);
/* Only the checks and the normalization of notes_index_find, for notes that need not exist. */
int notes_index_path(struct ng_call *call, struct ng_str given, struct ng_str *ret_path);
/* Fails with PATH_TRAVERSAL. */
int notes_index_fail_traversal(struct ng_call *call, struct ng_str path);
/* Is there a note whose front matter does not parse? Most notebooks have none. An SQLite code.
 */
int notes_index_has_broken(sqlite3 *db, bool *ret_found);

/* The whole file below the notebook's root, malloc'd: free() the data. Fails with
 * NOTE_NOT_FOUND. */
int notes_index_read(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct ng_str *ret_bytes);

/* The MATCH expression for notes that may contain the folded text: its trigrams joined by AND,
 * in the arena. {NULL, 0}: the text has less than three characters (every note is a candidate),
 * or out of memory: then arena->failed is set. */
struct ng_str notes_index_grams(struct arena *arena, struct ng_str folded);

/* The last result of sqlite3_step() as an error code: a row, or the end, is SQLITE_OK. */
static inline int notes_done(int rc)
{
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        return SQLITE_OK;
    }
    return rc;
}

/* Prepares the statement that a buffer holds. An SQLite code. */
static inline int notes_prepare_buf(sqlite3 *db, const struct buf *sql,
                                    sqlite3_stmt **ret_statement)
{
    if (sql->rc != NG_OK) {
        return SQLITE_NOMEM;
    }
    return sqlite3_prepare_v2(db, sql->data, (int)sql->len, ret_statement, NULL);
}

/* Binds a text that lives as long as the statement runs. An SQLite code. */
static inline int notes_bind_text(sqlite3_stmt *statement, int number, struct ng_str text)
{
    return sqlite3_bind_text64(statement, number, text.data, text.len, SQLITE_STATIC,
                               SQLITE_UTF8);
}

/* A column of the present row, lent until the next step. */
static inline struct ng_str notes_column_text(sqlite3_stmt *statement, int column)
{
    const char *data = (const char *)sqlite3_column_text(statement, column);
    struct ng_str text = {data, (size_t)sqlite3_column_bytes(statement, column)};
    return text;
}

/* An argument of an SQL function as text. {NULL, 0}: NULL. */
static inline struct ng_str notes_value_text(sqlite3_value *value)
{
    const char *data = (const char *)sqlite3_value_text(value);
    struct ng_str text = {data, (size_t)sqlite3_value_bytes(value)};
    return text;
}

#endif
