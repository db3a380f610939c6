/* SPDX-License-Identifier: MIT */
/*
 * db.h - what the files of the sqlite backend share: the store, its connections, a document's
 * parts.
 *
 * One connection writes; the thread that holds the writer lock may use it. Readers have
 * connections of their own, each used by one thread at a time.
 */
#ifndef NOTEGATE_SQLITE_DB_H
#define NOTEGATE_SQLITE_DB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "../shared/bytes.h"
#include "../shared/content_hash.h"
#include "../shared/query_check.h"
#include "../shared/words.h"
#include "core/base/lock.h"
#include "notegate/backend.h"

#define DB_FILE "notegate.db"
/* "NGAT": says that a database file is ours. */
#define DB_APPLICATION_ID 0x4E474154
#define DB_PATH_MAX 4096
#define DB_ERROR_MAX 512

/* Batches and bytes that may wait for the writer; more is NG_EBUSY. */
#define QUEUE_BATCHES_MAX 65536
#define QUEUE_BYTES_MAX ((size_t)256 * 1024 * 1024)
/* One transaction takes at most this much of the queue, so that its memory stays bounded. */
#define TRANSACTION_BATCHES_MAX 8192
#define TRANSACTION_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* Connections for reading that are kept; a callback that reads again gets one of its own. */
#define READERS_MAX 8
/* Statements put together at run time that a connection keeps, and the longest one kept. */
#define KEPT_STATEMENTS 12
#define KEPT_SQL_MAX 4096
/* Virtual machine steps between two looks at a call's deadline. */
#define READER_STEPS 2000
/* How long a thread that waits for a connection sleeps between two looks at its deadline. */
#define READER_WAIT_MS 20

/* How long a statement waits for another connection's lock. */
#define BUSY_MS 5000
/* Pages of the write-ahead log: from the first number on it is copied into the database; from
 * the second on readers are waited for, so long, that it may begin anew. Copying is tried again
 * so many pages later, waiting when half as much has come. */
#define WAL_COPY_PAGES 1000
#define WAL_RESTART_PAGES 2000
#define WAL_RESTART_MS 50
#define WAL_AGAIN_PAGES 500
#define DB_PAGE_BYTES 4096

/* Room that a small write needs at most, what copying the log leaves free for the next one, and
 * below what the idle writer does not index. */
#define DISK_WRITE_BYTES ((uint64_t)256 * 1024)
#define DISK_SPARE_BYTES ((uint64_t)128 * 1024)
#define DISK_INDEX_BYTES ((uint64_t)4 * 1024 * 1024)

/* A revision is kept whole after this many splices, or when they outgrow the document. */
#define WHOLE_EVERY 128

/* How a row of `log` keeps its revision. */
enum log_kind { LOG_NONE = 0, LOG_WHOLE = 1, LOG_SPLICE = 2 };
enum log_flags { LOG_DELETED = 1, LOG_QUIET = 2 };

/* A content that a walk along the revisions of one document has reached. */
struct state {
    int64_t doc; /* 0: nothing loaded */
    uint64_t revision;
    struct bytes json, text;
};

struct db_field {
    int64_t id;
    char *name;
    size_t name_len;
    enum ng_field_use use;
    double weight;
    int column; /* TEXT: its column in the search table; else -1 */
};

/* A declared collection. Lives until close, also when a newer declaration replaced it. */
struct db_collection {
    struct db_collection *next;
    int64_t id;
    char *name;
    size_t name_len;
    uint32_t flags;
    struct db_field *fields;
    size_t field_count;
    int columns; /* of the search table; 0: not searchable. The document's text is the last */
    bool text_column;
    atomic_bool dirty; /* something of it may wait for the search index */
};

#define STATEMENTS(X)                                                                          \
    X(BEGIN, "BEGIN")                                                                          \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                          \
    X(COMMIT, "COMMIT")                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                    \
    X(SHELF, "SELECT shelf FROM shelves WHERE collection=?1 AND space=?2")                     \
    X(SHELF_ADD, "INSERT INTO shelves(collection,space) VALUES(?1,?2)")                        \
    X(SHELF_COUNT, "UPDATE shelves SET live=live+?2, dead=dead+?3 WHERE shelf=?1")             \
    X(DOC_STATE,                                                                               \
      "SELECT s.shelf,d.doc,d.revision,d.deleted,d.created_seq,d.json_size,d.text_size,"       \
      "d.chain_count,d.chain_bytes,d.fields,d.author FROM shelves s LEFT JOIN docs d ON "      \
      "d.shelf=s.shelf AND d.id=?3 WHERE s.collection=?1 AND s.space=?2")                      \
    X(DOC_INSERT,                                                                              \
      "INSERT INTO docs(doc,shelf,id,revision,deleted,seq,created_seq,created_ms,updated_ms,"  \
      "json_size,text_size,chain_count,chain_bytes,author,action,hash,fields,json,text)"       \
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)")            \
    X(DOC_UPDATE,                                                                              \
      "UPDATE docs SET revision=?4,seq=?6,updated_ms=?9,json_size=?10,text_size=?11,"          \
      "chain_count=?12,chain_bytes=?13,author=?14,action=?15,hash=?16,fields=?17,json=?18,"    \
      "text=?19 WHERE doc=?1")                                                                 \
    X(DOC_UPDATE_OWN, /* by the author of the revision before: that index stays as it is */    \
      "UPDATE docs SET revision=?4,seq=?6,updated_ms=?9,json_size=?10,text_size=?11,"          \
      "chain_count=?12,chain_bytes=?13,action=?15,hash=?16,fields=?17,json=?18,text=?19 "      \
      "WHERE doc=?1")                                                                          \
    X(DOC_REVIVE,                                                                              \
      "UPDATE docs SET revision=?4,deleted=?5,seq=?6,created_seq=?7,created_ms=?8,"            \
      "updated_ms=?9,json_size=?10,text_size=?11,chain_count=?12,chain_bytes=?13,author=?14,"  \
      "action=?15,hash=?16,fields=?17,json=?18,text=?19 WHERE doc=?1")                         \
    X(LOG_INSERT,                                                                              \
      "INSERT INTO log(seq,doc,revision,kind,flags,time_ms,created_seq,created_ms,agent,tool," \
      "action,data,hash,json_at,json_removed,text_at,text_removed,text_size,json,text)"        \
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)")        \
    X(VALUE_ADD, "INSERT OR IGNORE INTO field_values VALUES(?1,?2,?3,?4,?5)")                  \
    X(VALUE_DROP, "DELETE FROM field_values WHERE field=?1 AND shelf=?2 AND value=?3 AND "     \
                  "created_seq=?4 AND doc=?5")                                                 \
    X(DIRTY_ADD, "INSERT OR IGNORE INTO dirty VALUES(?1,?2)")                                  \
    X(PAGE_COUNT, "PRAGMA page_count")                                                         \
    X(META_SET, "INSERT OR REPLACE INTO meta VALUES(?1,?2)")                                   \
    X(META_GET, "SELECT value FROM meta WHERE name=?1")                                        \
    X(ANSWER_GET, "SELECT body_hash,reply,time_ms,expires_ms FROM answers WHERE scope=?1")     \
    X(ANSWER_SET, "INSERT OR REPLACE INTO answers(scope,body_hash,reply,time_ms,expires_ms)"   \
                  "VALUES(?1,?2,?3,?4,?5)")                                                    \
    X(GET, "SELECT d.doc,s.collection,s.space,d.id,d.revision,d.deleted,d.seq,d.created_seq,"  \
           "d.created_ms,d.updated_ms,d.text_size,d.author,d.action,d.json,d.text FROM "       \
           "shelves s JOIN docs d ON d.shelf=s.shelf WHERE s.collection=?1 AND s.space=?2 "    \
           "AND d.id=?3")                                                                      \
    X(GET_DOC, "SELECT d.doc,s.collection,s.space,d.id,d.revision,d.deleted,d.seq,"            \
               "d.created_seq,d.created_ms,d.updated_ms,d.text_size,d.author,d.action,d.json," \
               "d.text FROM docs d JOIN shelves s ON s.shelf=d.shelf WHERE d.doc=?1")          \
    X(LOG_START, "SELECT revision FROM log WHERE doc=?1 AND revision<=?2 AND kind=1 "          \
                 "ORDER BY revision DESC LIMIT 1")                                             \
    X(LOG_CHAIN,                                                                               \
      "SELECT revision,kind,json_at,json_removed,json,text_at,text_removed,text FROM log "     \
      "WHERE doc=?1 AND revision>=?2 AND revision<=?3 AND kind>0 ORDER BY revision")           \
    X(LOG_ROW, "SELECT revision,kind,flags,seq,time_ms,created_seq,created_ms,text_size,"      \
               "agent,action FROM log WHERE doc=?1 AND revision=?2")                           \
    X(LOG_UP,                                                                                  \
      "SELECT revision,kind,flags,seq,time_ms,created_seq,created_ms,text_size,agent,action "  \
      "FROM log WHERE doc=?1 AND revision>=?2 AND revision<=?3 AND kind>0 ORDER BY revision")  \
    X(LOG_DOWN,                                                                                \
      "SELECT revision,kind,flags,seq,time_ms,created_seq,created_ms,text_size,agent,action "  \
      "FROM log WHERE doc=?1 AND revision>=?2 AND revision<=?3 AND kind>0 "                    \
      "ORDER BY revision DESC")                                                                \
    X(LOG_COUNT, "SELECT count(*) FROM log WHERE doc=?1 AND revision>=?2 AND revision<=?3 "    \
                 "AND kind>0")                                                                 \
    X(CHANGES, "SELECT l.seq,l.time_ms,s.collection,s.space,d.id,l.revision,l.agent,l.tool,"   \
               "l.action,l.data FROM log l JOIN docs d ON d.doc=l.doc JOIN shelves s ON "      \
               "s.shelf=d.shelf WHERE l.seq>?1 AND (l.flags&2)=0 ORDER BY l.seq LIMIT ?2")

enum statement {
#define STATEMENT_ENUM(name, sql) STMT_##name,
    STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STMT_COUNT
};

struct db;

/* A statement that was put together at run time, for the next one of the same text. */
struct kept_stmt {
    sqlite3_stmt *stmt;
    uint64_t used; /* when, by the count of its connection */
    bool in_use;
};

struct conn {
    struct db *db;
    sqlite3 *sql;
    sqlite3_stmt *stmts[STMT_COUNT];
    struct kept_stmt kept[KEPT_STATEMENTS];
    uint64_t kept_uses;
    int system_errno;     /* of the last statement that failed */
    struct ng_call *call; /* reader: whose deadline holds */
    pthread_t owner;      /* reader in use: its thread */
    bool in_use, nested;
    struct conn *next;
    int wal_pages, wal_copy_at, wal_restart_at; /* writer: see writer.c */
};

/* A ticket lock: first come, first served. */
struct writer_lock {
    struct lock lock;
    pthread_cond_t moved;
    uint64_t next, serving;
};

struct job;
struct import;

/* How many revisions of a document up to this one are kept. */
struct counted {
    int64_t doc; /* 0: nothing */
    uint64_t upto, count;
    uint64_t thinned; /* when this was so */
};

/* Documents whose count is remembered. */
#define COUNTS_KEPT 256

struct counts {
    struct lock lock;
    struct counted slots[COUNTS_KEPT]; /* by the document's number */
    atomic_uint_fast64_t thinned;      /* how often revisions went; odd: some are going */
};

/* What a commit that failed has left behind. */
enum log_trouble {
    TROUBLE_NONE = 0,
    TROUBLE_TAIL = 1, /* pages behind the end of the log, which a crash may bring back */
    TROUBLE_SYNC = 2, /* and pages inside it that may never have reached the disk */
};

struct db {
    char path[DB_PATH_MAX]; /* for messages: the file, or "memory" */
    char uri[DB_PATH_MAX];
    bool memory;
    int file_fd, log_fd; /* the files as they were opened (O_PATH), or -1 */

    /* The writing connection, used by the thread that holds the writer lock, and what it knows.
     */
    struct writer_lock writer_lock;
    struct conn *writer;
    int64_t next_doc;
    uint64_t txn_seq; /* last number given inside the present transaction */
    bool relaxed;     /* the writing connection does not sync its commits now */
    _Atomic enum log_trouble trouble;
    size_t txn_bytes;      /* of the batches in the present transaction */
    struct import *import; /* one is going on, and holds the writer lock */
    atomic_uint_fast64_t last_seq;

    pthread_t thread;
    struct lock queue_lock;
    pthread_cond_t queued;
    struct job *first, *last;
    size_t queue_batches, queue_bytes;
    bool closing;
    atomic_bool dirty; /* something of any collection may wait for the search index */

    struct lock collections_lock;
    struct db_collection *collections;

    struct lock readers_lock;
    pthread_cond_t reader_free;
    struct conn *readers;
    size_t reader_count;
    /* memory: readers and the writer exclude each other, as that kind of file has no log */
    struct lock gate_lock;
    pthread_cond_t gate_moved;
    size_t gate_readers;
    bool gate_writing;
    size_t gate_waiting;

    struct counts counts;

    atomic_uint_fast64_t needed; /* room that the last commit lacked; 0: it had enough */
    atomic_uint_fast64_t stat_transactions, stat_batches, stat_puts, stat_failures;
};

/* conn.c: connections and errors */
int conn_open(struct db *db, bool reader, struct conn **ret, char *error, size_t error_max);
void conn_close(struct conn *conn);
/* writer.c: the writer's log is copied into the database behind its commits. */
void wal_follow(struct conn *writer);
/* The statement, reset and without bindings. NULL: the connection's error tells why. */
sqlite3_stmt *conn_stmt(struct conn *conn, enum statement which);
/* Runs it to its end. SQLITE_OK or the error. */
int conn_run(struct conn *conn, sqlite3_stmt *stmt);
int conn_exec(struct conn *conn, enum statement which);
int bind_text(sqlite3_stmt *stmt, int index, struct ng_str text);
int bind_blob(sqlite3_stmt *stmt, int index, struct ng_str bytes);
int bind_u64(sqlite3_stmt *stmt, int index, uint64_t number);
struct ng_str column_str(sqlite3_stmt *stmt, int column);
uint64_t column_u64(sqlite3_stmt *stmt, int column);
/* NG_E... of the connection's last error, with a sentence: what was done, where, the way out.
 */
int conn_error(struct conn *conn, const char *doing, char *error, size_t error_max);
int conn_fail(struct conn *conn, struct ng_call *call, const char *doing);
/* Did the system say so, the statement having failed with `rc`? */
bool conn_lacks_room(const struct conn *conn, int rc);
/* A connection for reading inside one transaction, bounded by the call's deadline. */
int reader_begin(struct db *db, struct ng_call *call, struct conn **ret);
void reader_end(struct conn *conn);
void readers_close(struct db *db);
/* memory: no reader is inside while the writer is. */
void gate_enter_writer(struct db *db);
void gate_leave_writer(struct db *db);

/* disk.c */
/* Holds the database and its log, both open by now, to know them again. */
int disk_hold_files(struct db *db, char *error, size_t error_max);
void disk_release_files(struct db *db);
/* Are they still what their names lead to? What is written into others is lost at the next
 * start. NG_OK, or NG_EUNAVAILABLE with a sentence. */
int disk_check_files(const struct db *db, char *error, size_t error_max);
/* Bytes that may still be written beside the database; UINT64_MAX: not known. */
uint64_t disk_free(const struct db *db);
/* Can the log be copied into the database, so that room for a write is left? */
bool disk_takes_copy(struct conn *writer);
/* Free bytes that the present transaction needs to be tried again. With the writer lock. */
uint64_t disk_need(struct db *db);

/* writer_lock.c */
void writer_lock(struct db *db);
void writer_unlock(struct db *db);
/* Short transactions of their own (upkeep, search index). `durable` false: not synced, as it
 * can be done again. */
int work_begin(struct db *db, bool durable);
int work_end(struct db *db, bool keep);
/* The same in parts: with the writer lock, work_open() and work_close() surround one
 * transaction. */
void work_enter(struct db *db);
int work_open(struct db *db, bool durable);
int work_close(struct db *db, bool keep);
void work_leave(struct db *db);
/* Commits of the writing connection are synced from now on. SQLITE_OK or the error; outside of
 * a transaction, with the writer lock. */
int work_sync(struct db *db);
/* COMMIT on the writing connection, but not into files that are gone. NG_OK, or what is wrong
 * with a sentence; the transaction may still be open then. */
int work_commit(struct db *db, const char *doing, char *error, size_t error_max);

/* schema_sql.c: creates, upgrades and checks the tables */
int schema_open(struct db *db, char *error, size_t error_max);

/* collections.c */
int collection_declare(struct db *db, struct ng_call *call, const struct ng_collection *decl);
const struct db_collection *collection_find(struct db *db, struct ng_str name);
/* The field by that name that is not full text; sortable: nor a tag. NULL: none. */
const struct db_field *collection_field(const struct db_collection *collection,
                                        struct ng_str name, bool sortable);
void collections_free(struct db *db);

/* values.c: the fields of a document as one blob, and SQL functions over it */
int values_encode(const struct db_collection *collection, const struct ng_field_value *fields,
                  size_t count, bool deleted, struct bytes *out);
struct value {
    int64_t field;
    enum { VALUE_NULL = 0, VALUE_BYTES = 1, VALUE_NUMBER = 2, VALUE_TEXT = 3 } kind;
    struct ng_str bytes;
    double number;
};
/* The entry at *at, which moves on. false: the end (or damage: *at is then SIZE_MAX). */
bool values_next(struct ng_str blob, size_t *at, struct value *ret);
void value_bind(sqlite3_stmt *stmt, int index, const struct value *value);
int values_functions(sqlite3 *sql);

/* revision.c */
/* Brings `state` to this revision of the document. NG_ENOTFOUND: not kept; NG_EUNAVAILABLE:
 * damaged; else an error of the connection. */
int state_load(struct conn *conn, int64_t doc, uint64_t revision, struct state *state);
void state_done(struct state *state);

/* queue.c */
int queue_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user);
int queue_start(struct db *db);
void queue_stop(struct db *db);

/* writer.c */
struct prepared {
    const struct db_collection *collection;
    unsigned char hash[HASH_BYTES];
    struct bytes fields;
};
struct job {
    struct job *next;
    struct ng_batch *batch;
    ng_done_fn *done;
    void *user;
    size_t bytes;
    int rc;
    struct prepared puts[];
};
/* Commits the list in one transaction; sets rc and the message of each. */
void writer_commit(struct db *db, struct job *jobs);

/* txn.c, txn_flush.c: also for import */
struct touched;
struct txn;
struct txn *txn_new(struct db *db);
/* The next revision of a document. */
int txn_put(struct txn *txn, struct ng_put *put, const struct prepared *prepared);
/* The row, field values and counters of each document, from its newest put. */
int txn_flush(struct txn *txn);
void txn_free(struct txn *txn);

/* read.c */
void row_from_stmt(sqlite3_stmt *stmt, bool with_text, struct ng_doc *ret);
int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user);
int read_history_count(void *self, struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, uint64_t *ret_count);
int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user);
int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user);
int read_answer(void *self, struct ng_call *call, struct ng_str scope, struct ng_answer *ret);

/* revision.c: counts */
/* Asked before the reader's transaction begins: which counts hold in it. */
uint64_t counts_now(struct db *db);
/* Before and after a transaction that takes revisions out. With the writer lock. */
void counts_thin(struct db *db);
/* Kept revisions from `from` to `to` by the log. The connection has read something already;
 * there is nothing to come between them. SQLITE_OK or the error. */
int counts_between(struct conn *conn, int64_t doc, uint64_t from, uint64_t to, uint64_t thinned,
                   uint64_t *ret);

/* sql.c: statements that are put together, with the values that belong to them */
struct bound {
    enum { BOUND_BLOB, BOUND_TEXT, BOUND_NUMBER, BOUND_INTEGER } kind;
    struct ng_str bytes;
    double number;
    int64_t integer;
    char *owned; /* freed with the statement, or NULL */
};
struct sql {
    struct bytes text;
    struct bound *bounds;
    size_t count, cap;
    int rc; /* an error sticks */
};
void sql_add(struct sql *sql, const char *text);
void sql_add_int(struct sql *sql, int64_t number);
/* Adds "?N" for a value that is lent until the statement has run. */
void sql_bind(struct sql *sql, const struct bound *bound);
void sql_bind_int(struct sql *sql, int64_t number);
void sql_done(struct sql *sql);
/* The statement with its values; sql_release() gives it back. */
int sql_prepare(struct conn *conn, struct sql *sql, sqlite3_stmt **ret);
/* SQLITE_OK, or how it failed. NULL does nothing. */
int sql_release(struct conn *conn, sqlite3_stmt *stmt);

/* terms.c: conditions of a query */
/* What a term is about: a declared field or a built-in column. */
struct subject {
    const struct db_field *field; /* or NULL: */
    const char *column;           /* "d.id" */
    bool number;
};
int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query);
bool term_subject(const struct db_collection *collection, struct ng_str name, bool sortable,
                  struct subject *ret);
/* " AND ..." over d.*, for every term but `skip` (or SIZE_MAX). */
void terms_add(struct sql *sql, const struct db_collection *collection,
               const struct ng_query *query, size_t skip);
/* "d.author ..." of a built-in field. */
void term_add_column(struct sql *sql, const struct subject *subject,
                     const struct ng_term *term);
/* " AND v.value ..." over the index of values. */
void term_add_range(struct sql *sql, const struct subject *subject, const struct ng_term *term);

/* query.c */
struct shelves {
    int64_t *ids;
    size_t count;
};
int query_shelves(struct conn *conn, const struct ng_query *query, struct shelves *ret);
void shelves_add(struct sql *sql, const struct shelves *shelves);
/* The rows the statement names in its first column, in its order; score and snippet from
 * columns `score` and `score` + 1 unless that is 0. */
int query_rows(struct conn *conn, struct ng_call *call, sqlite3_stmt *stmt,
               const struct ng_query *query, uint32_t snippet_chars, ng_row_fn *row,
               void *user);
int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total);
int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total);

/* tokens.c */
int tokens_register(sqlite3 *sql);
/* The match of what is wanted, and the pattern of its phrases for ng_rank(). */
int match_make(const struct wanted *wanted, struct bytes *ret_match, struct bytes *ret_pattern);

/* fts.c */
/* Something of this collection waits for the index from here on. With the writer lock. */
void fts_mark(struct db *db, const struct db_collection *collection);
int fts_table(struct conn *conn, const struct db_collection *collection);
/* Indexes up to a bounded amount of what waits (collection 0: of any). *ret_more: some is left.
 */
int fts_step(struct db *db, int64_t collection, bool *ret_more, char *error, size_t error_max);
/* Everything of this collection. */
int fts_catch_up(struct db *db, struct ng_call *call, int64_t collection);

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                 void *user);
int export_all(void *self, struct ng_call *call, ng_record_fn *record, void *user);
int import_begin(void *self, struct ng_call *call);
int import_record(void *self, struct ng_call *call, const struct ng_record *record);
int import_end(void *self, struct ng_call *call, bool keep);
void import_abandon(struct db *db);
int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user);

static inline bool str_same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
