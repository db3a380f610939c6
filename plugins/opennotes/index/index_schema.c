/* SPDX-License-Identifier: MIT */
/* index_schema.c - the SQLite file of an index: its tables, opening and rebuilding. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text/random.h"
#include "index_state.h"
#include "index_tokens.h"

#define FORMAT 6 /* PRAGMA user_version; increase it with every change of the stored format */

/* Pages of the write-ahead log before they are copied into the file: few, because one call pays
 * for all of them. */
#define CHECKPOINT_PAGES "400"

static const char schema_sql[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE changes(seq INTEGER PRIMARY KEY, note INTEGER NOT NULL);"
    "INSERT INTO changes VALUES(0, 0);"
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, file BLOB,"
    " title TEXT, title_fold TEXT, path_fold TEXT NOT NULL, created INTEGER NOT NULL,"
    " modified INTEGER NOT NULL, size INTEGER NOT NULL, words INTEGER NOT NULL, front TEXT,"
    " front_error TEXT, revision TEXT NOT NULL, body_line INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,"
    " device INTEGER NOT NULL, checked_ns INTEGER NOT NULL, heads TEXT NOT NULL);"
    "CREATE INDEX notes_file ON notes(file) WHERE file IS NOT NULL;"
    "CREATE INDEX notes_modified ON notes(modified);"
    "CREATE INDEX notes_broken ON notes(id) WHERE front_error IS NOT NULL;"
    "CREATE TABLE bodies(note INTEGER PRIMARY KEY, folded TEXT NOT NULL,"
    " content TEXT NOT NULL);"
    "CREATE TABLE tags(note INTEGER NOT NULL, tag TEXT NOT NULL, fold TEXT NOT NULL);"
    "CREATE INDEX tags_note ON tags(note);"
    "CREATE INDEX tags_fold ON tags(fold);"
    "CREATE TABLE fields(note INTEGER NOT NULL, key TEXT NOT NULL, text TEXT, number REAL);"
    "CREATE INDEX fields_note ON fields(note);"
    "CREATE INDEX fields_key ON fields(key, text);"
    "CREATE TABLE headings(note INTEGER NOT NULL, line INTEGER NOT NULL, level INTEGER NOT "
    "NULL,"
    " text TEXT NOT NULL, slug TEXT NOT NULL, fold TEXT NOT NULL);"
    "CREATE INDEX headings_note ON headings(note);"
    "CREATE TABLE links(note INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL,"
    " target TEXT NOT NULL, kind TEXT NOT NULL, key TEXT, context TEXT NOT NULL);"
    "CREATE INDEX links_note ON links(note);"
    "CREATE INDEX links_key ON links(key);"
    "CREATE TABLE images(note INTEGER NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL,"
    " key TEXT NOT NULL);"
    "CREATE INDEX images_note ON images(note);"
    "CREATE INDEX images_key ON images(key);"
    "CREATE TABLE names(note INTEGER NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL);"
    "CREATE INDEX names_note ON names(note);"
    "CREATE INDEX names_key ON names(key);"
    "CREATE VIEW texts(note, title, body) AS SELECT n.id, n.heads, b.folded"
    " FROM notes n JOIN bodies b ON b.note = n.id;"
    "CREATE VIRTUAL TABLE grams USING fts5(title, body, content='texts',"
    " content_rowid='note', detail='none', columnsize=0, tokenize='on_grams');"
    "CREATE VIRTUAL TABLE terms USING fts5(title, body, content='texts',"
    " content_rowid='note', detail='column', columnsize=0, tokenize='on_words');"
    "INSERT INTO grams(grams, rank) VALUES('hashsize', 8388608);"
    "INSERT INTO terms(terms, rank) VALUES('hashsize', 8388608);"
    /* Else FTS5 merges much at once in some of the commits: see NOTES_MERGE_GRAMS. */
    "INSERT INTO grams(grams, rank) VALUES('automerge', 0);"
    "INSERT INTO terms(terms, rank) VALUES('automerge', 0);"
    "CREATE TABLE long_words(note INTEGER PRIMARY KEY);"
    "CREATE TABLE vocab(id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE,"
    " letters INTEGER NOT NULL, stem TEXT NOT NULL);"
    "CREATE INDEX vocab_letters ON vocab(letters);"
    "CREATE INDEX vocab_stem ON vocab(stem);"
    "CREATE VIRTUAL TABLE vocab_grams USING fts5(word, content='', detail='none',"
    " tokenize='trigram case_sensitive 1');";

static const char *const statement_sql[NOTES_STATEMENTS] = {
    [NOTES_PUT_NOTE] =
        "INSERT INTO notes VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,"
        "?16,?17,?18,?19,?20)",
    [NOTES_PUT_BODY] = "INSERT INTO bodies VALUES(?1,?2,?3)",
    [NOTES_PUT_TAG] = "INSERT INTO tags VALUES(?1,?2,?3)",
    [NOTES_PUT_FIELD] = "INSERT INTO fields VALUES(?1,?2,?3,?4)",
    [NOTES_PUT_HEADING] = "INSERT INTO headings VALUES(?1,?2,?3,?4,?5,?6)",
    [NOTES_PUT_LINK] = "INSERT INTO links VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [NOTES_PUT_IMAGE] = "INSERT INTO images VALUES(?1,?2,?3,?4)",
    [NOTES_PUT_NAME] = "INSERT INTO names VALUES(?1,?2,?3)",
    [NOTES_PUT_GRAMS] = "INSERT INTO grams(rowid,title,body) VALUES(?1,?2,?3)",
    [NOTES_PUT_TERMS] = "INSERT INTO terms(rowid,title,body) VALUES(?1,?2,?3)",
    [NOTES_PUT_WORD] = "INSERT OR IGNORE INTO vocab(word,letters,stem) VALUES(?1,?2,?3)",
    [NOTES_PUT_WORD_GRAMS] = "INSERT INTO vocab_grams(rowid,word) VALUES(?1,?2)",
    [NOTES_PUT_LONG] = "INSERT INTO long_words VALUES(?1)",
    [NOTES_DROP_GRAMS] = "INSERT INTO grams(grams,rowid,title,body)"
                         " SELECT 'delete',note,title,body FROM texts WHERE note=?1",
    [NOTES_DROP_TERMS] = "INSERT INTO terms(terms,rowid,title,body)"
                         " SELECT 'delete',note,title,body FROM texts WHERE note=?1",
    [NOTES_DROP_NOTE] = "DELETE FROM notes WHERE id=?1",
    [NOTES_DROP_BODY] = "DELETE FROM bodies WHERE note=?1",
    [NOTES_DROP_TAGS] = "DELETE FROM tags WHERE note=?1",
    [NOTES_DROP_FIELDS] = "DELETE FROM fields WHERE note=?1",
    [NOTES_DROP_HEADINGS] = "DELETE FROM headings WHERE note=?1",
    [NOTES_DROP_LINKS] = "DELETE FROM links WHERE note=?1",
    [NOTES_DROP_IMAGES] = "DELETE FROM images WHERE note=?1",
    [NOTES_DROP_NAMES] = "DELETE FROM names WHERE note=?1",
    [NOTES_DROP_LONG] = "DELETE FROM long_words WHERE note=?1",
    [NOTES_PUT_CHANGE] = "INSERT INTO changes(note) VALUES(?1)",
    [NOTES_CUT_CHANGES] =
        "DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?1",
    [NOTES_MERGE_GRAMS] = "INSERT INTO grams(grams, rank) VALUES('merge', ?1)",
    [NOTES_MERGE_TERMS] = "INSERT INTO terms(terms, rank) VALUES('merge', ?1)",
    [NOTES_FIND_FILE] =
        "SELECT id,size,mtime_ns,ctime_ns,inode,device,checked_ns,revision FROM notes"
        " WHERE file=?1 UNION ALL"
        " SELECT id,size,mtime_ns,ctime_ns,inode,device,checked_ns,revision FROM notes"
        " WHERE path=?2 AND file IS NULL",
    [NOTES_FIND_PATH] = "SELECT id FROM notes WHERE path=?1",
    [NOTES_TOUCH_NOTE] = "UPDATE notes SET size=?2,mtime_ns=?3,ctime_ns=?4,inode=?5,device=?6,"
                         "checked_ns=?7,created=?8,modified=?9 WHERE id=?1",
    [NOTES_MOVE_AWAY] = "UPDATE notes SET path=char(1)||id WHERE id=?1",
    [NOTES_MOVE_NOTE] = "UPDATE notes SET path=?2,file=?3,path_fold=?4 WHERE id=?1",
    [NOTES_FIND_ROW] = "SELECT id,size,mtime_ns,ctime_ns,inode,device,checked_ns,revision,"
                       "ifnull(title,'') FROM notes WHERE id=?1",
    [NOTES_FIND_LINKS] = "SELECT rowid,kind,target FROM links WHERE note=?1 AND kind<>'auto'",
    [NOTES_MOVE_LINK] = "UPDATE links SET key=?2 WHERE rowid=?1 AND key IS NOT ?2",
    [NOTES_FIND_IMAGES] = "SELECT rowid,kind,target FROM images WHERE note=?1",
    [NOTES_MOVE_IMAGE] = "UPDATE images SET key=?2 WHERE rowid=?1 AND key IS NOT ?2",
};

int notes_schema_fail_db(struct ng_call *call, sqlite3 *db, const char *file, const char *what,
                         bool *ret_damaged)
{
    int code = db != NULL ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    int os = db != NULL ? sqlite3_system_errno(db) : 0;
    *ret_damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
    if (code == SQLITE_FULL || ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) &&
                                (os == ENOSPC || os == EDQUOT || os == EFBIG))) {
        return ng_fail(
            call, NG_EFULL,
            "The index %s cannot be brought up to date: no room is left where the data "
            "directory is. The notes are untouched. Make room and call again.",
            file);
    }
    if (code == SQLITE_NOMEM) {
        return notes_fail_memory(call);
    }
    if (code == SQLITE_INTERRUPT) {
        return ng_fail(call, NG_ECANCELLED, "The call was cancelled while the index was read.");
    }
    return ng_fail(call, NG_EINTERNAL, "The index %s cannot be %s: %s.", file, what,
                   sqlite3_errmsg(db));
}

int notes_schema_fail(struct notes_index *index, struct ng_call *call, const char *what)
{
    bool damaged = false;
    int rc = notes_schema_fail_db(call, index->writer.db, index->file, what, &damaged);
    index->writer.damaged = index->writer.damaged || damaged;
    return rc;
}

void notes_schema_close(struct notes_writer *writer)
{
    for (size_t i = 0; i < NOTES_STATEMENTS; i++) {
        (void)sqlite3_finalize(writer->statements[i]);
    }
    (void)sqlite3_close_v2(writer->db);
    free(writer->words);
    memset(writer, 0, sizeof(*writer));
}

void notes_schema_remove(const struct notes_index *index)
{
    static const char *const endings[] = {"-wal", "-shm", "-journal", ""};
    struct buf name;
    buf_init(&name, 65536);
    for (size_t i = 0; i < NG_COUNT(endings); i++) {
        buf_clear(&name);
        buf_add_c(&name, index->file);
        buf_add_c(&name, endings[i]);
        buf_add_char(&name, '\0');
        if (name.rc == NG_OK) {
            (void)unlink(name.data);
        }
    }
    buf_done(&name);
}

bool notes_schema_lost(const struct notes_index *index)
{
    struct stat found;
    return stat(index->file, &found) != 0 || (int64_t)found.st_ino != index->writer.db_inode;
}

static int pragma_int(sqlite3 *db, const char *sql, int64_t *ret)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        *ret = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    }
    (void)sqlite3_finalize(statement);
    if (rc != SQLITE_ROW) {
        return rc;
    }
    return SQLITE_OK;
}

/* Is the file intact, of this format, of this folder, and of this time zone? Times of notes
 * without an offset are stored as times of the zone. */
static int check(struct notes_index *index, bool *ret_usable, bool *ret_empty)
{
    sqlite3 *db = index->writer.db;
    sqlite3_stmt *statement = NULL;
    int64_t format = 0;
    int64_t tables = 0;
    *ret_usable = false;
    int rc = pragma_int(db, "PRAGMA user_version", &format);
    if (rc == SQLITE_OK) {
        rc = pragma_int(db, "SELECT count(*) FROM sqlite_schema", &tables);
    }
    *ret_empty = rc == SQLITE_OK && tables == 0;
    if (rc != SQLITE_OK || format != FORMAT) {
        return rc;
    }
    rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        *ret_usable = text != NULL && strcmp(text, "ok") == 0;
    }
    (void)sqlite3_finalize(statement);
    statement = NULL;
    if (!*ret_usable) {
        return SQLITE_CORRUPT;
    }
    *ret_usable = false;
    rc = sqlite3_prepare_v2(db,
                            "SELECT f.value, z.value FROM meta f, meta z"
                            " WHERE f.name='folder' AND z.name='zone'",
                            -1, &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        *ret_usable = str_is(notes_column_text(statement, 0), index->path) &&
                      sqlite3_column_int64(statement, 1) == (int64_t)notes_time_zone();
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

static int create(struct notes_index *index)
{
    sqlite3 *db = index->writer.db;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, schema_sql, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(db, "INSERT INTO meta VALUES('folder',?1),('zone',?2)", -1,
                                &statement, NULL);
    }
    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_text(statement, 1, index->path, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 2, (int64_t)notes_time_zone());
        rc = sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
    }
    (void)sqlite3_finalize(statement);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "PRAGMA user_version=6; COMMIT", NULL, NULL, NULL);
    }
    _Static_assert(FORMAT == 6, "the pragma above says the same");
    return rc;
}

/* One attempt. *ret_again: the file was unusable and has been removed. */
static int open_once(struct notes_index *index, struct ng_call *call, bool *ret_fresh,
                     bool *ret_again)
{
    struct notes_writer *writer = &index->writer;
    bool usable = false;
    bool empty = false;
    struct stat found;
    int rc = sqlite3_open_v2(index->file, &writer->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_PRIVATECACHE,
                             NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_busy_timeout(writer->db, 10000);
        rc = sqlite3_exec(
            writer->db,
            "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY;"
            "PRAGMA journal_size_limit=4194304; PRAGMA wal_autocheckpoint=" CHECKPOINT_PAGES,
            NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = notes_tokens_register(writer->db);
    }
    if (rc == SQLITE_OK) {
        rc = check(index, &usable, &empty);
    }
    if (rc == SQLITE_OK && empty) {
        rc = create(index);
        usable = rc == SQLITE_OK;
        *ret_fresh = true;
    }
    int code = rc & 0xff;
    if (!usable && (rc == SQLITE_OK || code == SQLITE_CORRUPT || code == SQLITE_NOTADB ||
                    code == SQLITE_ERROR)) {
        notes_schema_close(writer);
        notes_schema_remove(index);
        *ret_again = true;
        return NG_OK;
    }
    if (!usable) {
        return notes_schema_fail(index, call, "opened");
    }
    writer->db_inode = stat(index->file, &found) == 0 ? (int64_t)found.st_ino : 0;
    return NG_OK;
}

static int prepare(struct notes_index *index, struct ng_call *call)
{
    struct notes_writer *writer = &index->writer;
    for (size_t i = 0; i < NOTES_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(writer->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &writer->statements[i], NULL) != SQLITE_OK) {
            return notes_schema_fail(index, call, "opened");
        }
    }
    (void)random_bytes(&writer->seed, sizeof(writer->seed)); /* a failure costs only speed */
    writer->words = calloc(NOTES_WORD_CACHE, sizeof(*writer->words));
    return notes_memory(call, writer->words != NULL);
}

int notes_schema_open(struct notes_index *index, struct ng_call *call, bool *ret_fresh)
{
    bool again = false;
    *ret_fresh = false;
    int rc = open_once(index, call, ret_fresh, &again);
    if (rc == NG_OK && again) {
        call->host->log(call, NG_LOG_WARNING,
                        "opennotes: the index %s of %s is damaged or of another version or "
                        "time zone; it is rebuilt",
                        index->file, index->path);
        again = false;
        rc = open_once(index, call, ret_fresh, &again);
        if (rc == NG_OK && again) {
            rc = ng_fail(call, NG_EINTERNAL, "The index %s cannot be made.", index->file);
        }
    }
    if (rc == NG_OK) {
        rc = prepare(index, call);
    }
    if (rc != NG_OK) {
        notes_schema_close(&index->writer);
    }
    return rc;
}
