/* SPDX-License-Identifier: MIT */
/*
 * db.h - structs and functions that the files of the sqlite backend share: the store, its
 * connections, the parts of a document.
 *
 * One connection writes; the thread that holds the writer lock may use it. Each reader is a
 * connection used by one thread at a time.
 */
#ifndef NOTEGATE_SQLITE_DB_H
#define NOTEGATE_SQLITE_DB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "../../shared/bytes.h"
#include "../../shared/content_hash.h"
#include "../../shared/query_check.h"
#include "../../shared/words.h"
#include "core/base/hash_table.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "notegate/backend.h"

#define DB_FILE "notegate.db"
/* "NGAT": marks a database file as ours. */
#define DB_APPLICATION_ID 0x4E474154
#define DB_PATH_MAX 4096
#define DB_ERROR_MAX 512

/* Limits of the queue of the writer; beyond them NG_EBUSY. */
#define QUEUE_BATCHES_MAX 65536
#define QUEUE_BYTES_MAX ((size_t)256 * 1024 * 1024)
/* One transaction takes at most this much of the queue: its memory is bounded. */
#define TRANSACTION_BATCHES_MAX 8192
#define TRANSACTION_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* Pooled reader connections. A callback that reads again gets an extra one. */
#define READERS_MAX 8
/* Dynamic statements that a connection caches, and the longest one cached. */
#define KEPT_STATEMENTS 12
#define KEPT_SQL_MAX 4096
/* Virtual machine steps between two checks of the deadline of a call. */
#define READER_STEPS 2000
/* Milliseconds between two checks of the deadline by a thread that waits for a connection. */
#define READER_WAIT_MS 20

/* Busy timeout of a statement. */
#define BUSY_MS 5000
/* Sizes of the write-ahead log, in pages. From WAL_COPY_PAGES on it is copied into the
 * database. From WAL_RESTART_PAGES on the writer also waits up to WAL_RESTART_MS for readers,
 * so that the log can restart. Copying is retried WAL_AGAIN_PAGES later, waiting for readers
 * when the log has grown by half. */
#define WAL_COPY_PAGES 1000
#define WAL_RESTART_PAGES 2000
#define WAL_RESTART_MS 50
#define WAL_AGAIN_PAGES 500
#define DB_PAGE_BYTES 4096

/* Disk space: the limit of a small write, the reserve that copying the log leaves, and the
 * minimum for the idle writer to index. */
#define DISK_WRITE_BYTES ((uint64_t)256 * 1024)
#define DISK_SPARE_BYTES ((uint64_t)128 * 1024)
#define DISK_INDEX_BYTES ((uint64_t)4 * 1024 * 1024)

/* The form in which a row of `log` stores its revision. */
enum log_kind { LOG_NONE = 0, LOG_WHOLE = 1, LOG_SPLICE = 2 };
enum log_flags { LOG_DELETED = 1, LOG_QUIET = 2 };

/* The contents reached by walking along the revisions of a document. */
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
    atomic_bool dirty; /* its search index may be out of date */
};

/* A document, as row_from_stmt() reads it, and a revision, as row_from_log() does. */
#define DOC_PLAIN                                                                              \
    "d.doc,s.collection,s.space,d.id,d.revision,d.deleted,d.seq,d.created_seq,d.created_ms,"   \
    "d.updated_ms,d.text_size,d.author,d.action"
#define DOC_HEAD DOC_PLAIN ",d.json"
#define DOC_COLUMNS DOC_HEAD ",d.text"
#define DOC_OF_KEY                                                                             \
    " FROM shelves s JOIN docs d ON d.shelf=s.shelf WHERE s.collection=?1 AND s.space=?2 AND " \
    "d.id=?3"
#define DOC_TABLES "docs d JOIN shelves s ON s.shelf=d.shelf"
#define LOG_COLUMNS                                                                            \
    "l.revision,l.kind,l.flags,l.seq,l.time_ms,l.created_seq,l.created_ms,l.text_size,"        \
    "l.agent,l.action,l.tool,l.data," TRAIL_COLUMNS
#define LOG_TABLES " FROM log l" TRAIL_TABLES
#define LOG_RANGE " WHERE l.doc=?1 AND l.revision>=?2 AND l.revision<=?3 AND l.kind>0"
/* The origin of a row of `log`. */
#define TRAIL_COLUMNS "o.run,o.key,t.request,t.added,t.removed"
#define TRAIL_TABLES                                                                           \
    " LEFT JOIN trail t ON t.seq=l.seq LEFT JOIN origins o ON o.origin=t.origin"
/* An event, as event_from_stmt() reads it. */
#define EVENT_COLUMNS                                                                          \
    "l.seq,l.time_ms,s.collection,s.space,d.id,l.revision,l.agent,l.tool,l.action,l."          \
    "data," TRAIL_COLUMNS
#define EVENT_TABLES                                                                           \
    " FROM log l JOIN docs d ON d.doc=l.doc JOIN shelves s ON s.shelf=d.shelf" TRAIL_TABLES

#define STATEMENTS(X)                                                                          \
    X(BEGIN, "BEGIN")                                                                          \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                          \
    X(COMMIT, "COMMIT")                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                    \
    X(SHELF, "SELECT shelf,live,dead FROM shelves WHERE collection=?1 AND space=?2")           \
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
    X(DOC_UPDATE_OWN, /* same author as the revision before: that index stays as it is */      \
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
    X(GET, "SELECT " DOC_COLUMNS DOC_OF_KEY)                                                   \
    X(GET_PLAIN, "SELECT " DOC_PLAIN ",NULL" DOC_OF_KEY) /* without the content */             \
    X(GET_DOC, "SELECT " DOC_HEAD ",CASE WHEN ?2 THEN d.text END FROM " DOC_TABLES             \
               " WHERE d.doc=?1") /* ?2: with the text */                                      \
    X(LOG_START, "SELECT revision FROM log WHERE doc=?1 AND revision<=?2 AND kind=1 "          \
                 "ORDER BY revision DESC LIMIT 1")                                             \
    X(LOG_CHAIN,                                                                               \
      "SELECT revision,kind,json_at,json_removed,json,text_at,text_removed,text FROM log "     \
      "WHERE doc=?1 AND revision>=?2 AND revision<=?3 AND kind>0 ORDER BY revision")           \
    X(LOG_ROW, "SELECT " LOG_COLUMNS LOG_TABLES " WHERE l.doc=?1 AND l.revision=?2")           \
    X(LOG_UP, "SELECT " LOG_COLUMNS LOG_TABLES LOG_RANGE " ORDER BY l.revision")               \
    X(LOG_DOWN, "SELECT " LOG_COLUMNS LOG_TABLES LOG_RANGE " ORDER BY l.revision DESC")        \
    X(LOG_SPLICES,                                                                             \
      "SELECT " LOG_COLUMNS ",l.text_at,l.text_removed,CASE WHEN l.kind=1 THEN l.json END,"    \
      "l.text" LOG_TABLES LOG_RANGE " ORDER BY l.revision")                                    \
    X(LOG_COUNT, "SELECT count(*) FROM log l" LOG_RANGE)                                       \
    X(CHANGES, "SELECT " EVENT_COLUMNS EVENT_TABLES                                            \
               " WHERE l.seq>?1 AND (l.flags&2)=0 ORDER BY l.seq LIMIT ?2")                    \
    X(TRAIL_ADD, "INSERT INTO trail(seq,doc,origin,added,removed,request)"                     \
                 "VALUES(?1,?2,?3,?4,?5,?6)")                                                  \
    X(ORIGIN_FIND, "SELECT origin FROM origins WHERE shelf=?1 AND agent=?2 AND key=?3 AND "    \
                   "run=?4 AND gateway=?5")                                                    \
    X(ORIGIN_ADD,                                                                              \
      "INSERT INTO origins(shelf,agent,key,run,gateway,origin,first_seq,last_seq,changes)"     \
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                                    \
    X(ORIGIN_UPDATE,                                                                           \
      "UPDATE origins SET first_seq=min(first_seq,?7),last_seq=max(last_seq,?8),"              \
      "changes=changes+?9 WHERE origin=?6")

enum statement {
#define STATEMENT_ENUM(name, sql) STMT_##name,
    STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STMT_COUNT
};

struct db;
struct origin;

/* A cached dynamic statement. */
struct kept_stmt {
    sqlite3_stmt *stmt;
    uint64_t used; /* time of its last use, by the counter of the connection */
    bool in_use;
};

struct conn {
    struct db *db;
    sqlite3 *sql;
    sqlite3_stmt *stmts[STMT_COUNT];
    struct kept_stmt kept[KEPT_STATEMENTS];
    uint64_t kept_uses;
    struct probe *probes; /* reader: see log_times.c */
    int system_errno;     /* of the last statement that failed */
    struct ng_call *call; /* reader: the call whose deadline holds */
    struct marks *marks;  /* writer, while it indexes a document */
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

/* The number of kept revisions of a document up to this one. */
struct counted {
    int64_t doc; /* 0: nothing */
    uint64_t upto, count;
    uint64_t thinned; /* value of counts.thinned at that time */
};

/* Documents whose count is cached. */
#define COUNTS_KEPT 256

struct counts {
    struct lock lock;
    struct counted slots[COUNTS_KEPT]; /* by document number */
    atomic_uint_fast64_t thinned;      /* number of removals; odd: one is running */
};

/* State of the log after a failed commit. */
enum log_trouble {
    TROUBLE_NONE = 0,
    TROUBLE_TAIL = 1, /* pages behind the end of the log, which a crash may revive */
    TROUBLE_SYNC = 2, /* also pages inside it that may never have reached the disk */
};

struct db {
    char path[DB_PATH_MAX]; /* for messages: the file, or "memory" */
    char uri[DB_PATH_MAX];
    bool memory;
    int file_fd, log_fd; /* the files that were opened (O_PATH), or -1 */

    /* The writing connection and its state; guarded by writer_lock. */
    struct writer_lock writer_lock;
    struct conn *writer;
    int64_t next_doc, next_origin, last_ms;         /* last_ms: newest time in the log */
    struct hash_table origins;                      /* of origins.c */
    struct origin *changed_origins, **last_changed; /* by the running transaction */
    uint64_t txn_seq; /* last sequence number of the running transaction */
    bool relaxed;     /* the writing connection does not sync its commits at present */
    _Atomic enum log_trouble trouble;
    size_t txn_bytes;      /* of the batches in the running transaction */
    struct import *import; /* a running import; it holds the writer lock */
    atomic_uint_fast64_t last_seq;

    pthread_t thread;
    struct lock queue_lock;
    pthread_cond_t queued;
    struct job *first, *last;
    size_t queue_batches, queue_bytes;
    bool closing;
    atomic_bool dirty; /* some search index may be out of date */

    struct lock collections_lock;
    struct db_collection *collections;

    struct lock readers_lock;
    pthread_cond_t reader_free;
    struct conn *readers;
    size_t reader_count;
    /* memory: readers and the writer exclude each other, as a memdb file has no log */
    struct lock gate_lock;
    pthread_cond_t gate_moved;
    size_t gate_readers;
    bool gate_writing;
    size_t gate_waiting;

    struct counts counts;

    atomic_uint_fast64_t needed; /* disk space that the last commit lacked; 0: none */
    atomic_uint_fast64_t stat_transactions, stat_batches, stat_puts, stat_failures;
};

/* conn.c: connections and errors */
int conn_open(struct db *db, bool reader, struct conn **ret, char *error, size_t error_max);
void conn_close(struct conn *conn);
/* writer.c: copies the log into the database after commits */
void wal_follow(struct conn *writer);
/* The statement, reset and without bindings. NULL: see the error of the connection. */
sqlite3_stmt *conn_stmt(struct conn *conn, enum statement which);
/* Runs a statement to its end. SQLITE_OK or the error. */
int conn_run(struct conn *conn, sqlite3_stmt *stmt);
static inline int conn_exec(struct conn *conn, enum statement which)
{
    return conn_run(conn, conn_stmt(conn, which));
}

static inline int bind_text(sqlite3_stmt *stmt, int index, struct ng_str text)
{
    return sqlite3_bind_text64(stmt, index, text.data != NULL ? text.data : "", text.len,
                               SQLITE_STATIC, SQLITE_UTF8);
}

static inline int bind_blob(sqlite3_stmt *stmt, int index, struct ng_str bytes)
{
    return sqlite3_bind_blob64(stmt, index, bytes.data != NULL ? bytes.data : "", bytes.len,
                               SQLITE_STATIC);
}

static inline int bind_u64(sqlite3_stmt *stmt, int index, uint64_t number)
{
    return sqlite3_bind_int64(stmt, index,
                              number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number);
}

static inline struct ng_str column_str(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL) {
        return str_of(NULL, 0);
    }
    const void *data = sqlite3_column_blob(stmt, column);
    int len = sqlite3_column_bytes(stmt, column);
    return str_of(data != NULL && len > 0 ? data : "", len > 0 ? (size_t)len : 0);
}

static inline uint64_t column_u64(sqlite3_stmt *stmt, int column)
{
    sqlite3_int64 number = sqlite3_column_int64(stmt, column);
    if (number < 0) {
        return 0;
    }
    return (uint64_t)number;
}

/* The NG_E... code of the last error, and a message: the failed step, the place, the remedy. */
int conn_error(struct conn *conn, const char *doing, char *error, size_t error_max);
int conn_fail(struct conn *conn, struct ng_call *call, const char *doing);
/* Is the disk full, if a statement failed with `rc`? */
bool conn_lacks_room(const struct conn *conn, int rc);
/* Takes a reader with an open transaction, bounded by the deadline of the call. */
int reader_begin(struct db *db, struct ng_call *call, struct conn **ret);
void reader_end(struct conn *conn);
void readers_close(struct db *db);
/* memory: excludes readers. */
void gate_enter_writer(struct db *db);
void gate_leave_writer(struct db *db);

/* disk.c */
/* Holds descriptors of the database and its log, to recognise them later. */
int disk_hold_files(struct db *db, char *error, size_t error_max);
void disk_release_files(struct db *db);
/* Do their names still lead to them? A write into unlinked files would be lost at the next
 * start. NG_OK, or NG_EUNAVAILABLE with a message. */
int disk_check_files(const struct db *db, char *error, size_t error_max);
/* Free disk space in bytes; UINT64_MAX: unknown. */
uint64_t disk_free(const struct db *db);
/* Of the database as the last commit has it, log included. With the writer lock. */
uint64_t disk_bytes(struct conn *writer);
/* Can the log be copied into the database and still leave room for a write? */
bool disk_takes_copy(struct conn *writer);
/* Free bytes that a retry of the running transaction needs. With the writer lock. */
uint64_t disk_need(struct db *db);

/* writer.c */
void writer_lock(struct db *db);
void writer_unlock(struct db *db);
/* Short transactions of upkeep and the search index. `durable` false: not synced, as the work
 * can be repeated. */
int work_begin(struct db *db, bool durable);
int work_end(struct db *db, bool keep);
/* The same in parts: under the lock, work_open() and work_close() surround one transaction. */
void work_enter(struct db *db);
int work_open(struct db *db, bool durable);
int work_close(struct db *db, bool keep);
void work_leave(struct db *db);
/* Makes the next commits of the writing connection synced. SQLITE_OK or the error; outside of a
 * transaction, with the writer lock. */
int work_sync(struct db *db);
/* COMMIT on the writing connection, unless its files were unlinked. NG_OK, or an error with a
 * message; the transaction may then still be open. */
int work_commit(struct db *db, const char *doing, char *error, size_t error_max);

/* schema_sql.c: creates, upgrades and checks the tables */
int schema_open(struct db *db, char *error, size_t error_max);

/* collections.c */
int collection_declare(void *self, struct ng_call *call, const struct ng_collection *decl);
const struct db_collection *collection_find(struct db *db, struct ng_str name);
/* The field of this name, not a full-text one; sortable: nor a tag. NULL: none. */
const struct db_field *collection_field(const struct db_collection *collection,
                                        struct ng_str name, bool sortable);
void collections_free(struct db *db);

/* collections.c: the fields of a document as one blob, and SQL functions over it */
int values_encode(const struct db_collection *collection, const struct ng_field_value *fields,
                  size_t count, bool deleted, struct bytes *out);
struct value {
    int64_t field;
    enum { VALUE_NULL = 0, VALUE_BYTES = 1, VALUE_NUMBER = 2, VALUE_TEXT = 3 } kind;
    struct ng_str bytes;
    double number;
};
/* The entry at *at, which moves on. false: end of the blob (or damage: *at is SIZE_MAX). */
bool values_next(struct ng_str blob, size_t *at, struct value *ret);
void value_bind(sqlite3_stmt *stmt, int index, const struct value *value);
int values_functions(sqlite3 *sql);

/* revision.c */
/* Moves `state` to this revision of the document. NG_ENOTFOUND: not kept; NG_EUNAVAILABLE:
 * damaged; else an error of the connection. */
int state_load(struct conn *conn, int64_t doc, uint64_t revision, struct state *state);
void state_done(struct state *state);
/* Stores the revision whole, as the one before it is removed. With the writer lock. */
int revision_make_whole(struct conn *conn, int64_t doc, uint64_t revision,
                        const struct state *state);

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
/* Commits the jobs in one transaction; sets rc and the message of each. */
void writer_commit(struct db *db, struct job *jobs);

/* origins.c: forgets the kept origins, after a rollback that may have undone them; user: the
 * struct db. */
void origins_forget(void *user);

/* txn.c: also for import */
struct touched;
struct txn;
struct txn *txn_new(struct db *db);
/* Adds the next revision of a document. */
int txn_put(struct txn *txn, struct ng_put *put, const struct prepared *prepared);
/* Writes the row, field values and counters of each document, from its newest put. */
int txn_flush(struct txn *txn);
void txn_free(struct txn *txn);

/* read.c */
void row_from_stmt(sqlite3_stmt *stmt, bool with_text, struct ng_doc *ret);
/* Columns of LOG_ROW, LOG_UP, LOG_DOWN and LOG_SPLICES over the newest row. */
void row_from_log(sqlite3_stmt *stmt, struct ng_doc *row);
/* Adds to the present row what only the log has, where that keeps its history. It points into
 * LOG_ROW, which stays on its row. */
int row_add_origin(struct conn *conn, int64_t doc, struct ng_doc *newest);
/* The columns of CHANGES. */
struct ng_event event_from_stmt(sqlite3_stmt *stmt);
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
/* To be called before the transaction of the reader begins: tells which cached counts are valid
 * in it. */
uint64_t counts_now(struct db *db);
/* Before and after a transaction that removes revisions. With the writer lock. */
void counts_thin(struct db *db);
/* Counts the kept revisions from `from` to `to`. The connection must have an open read
 * transaction. SQLITE_OK or the error. */
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
    int rc; /* sticky error */
};
void sql_add(struct sql *sql, const char *text);
/* Adds text with constants and numbers in it, in the form of sqlite3_mprintf() (no %zu). */
void sql_printf(struct sql *sql, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds "?N" for a value that is borrowed until the statement has run. */
void sql_bind(struct sql *sql, const struct bound *bound);
void sql_bind_int(struct sql *sql, int64_t number);
void sql_done(struct sql *sql);
/* The prepared statement with its values; give it back with sql_release(). */
int sql_prepare(struct conn *conn, struct sql *sql, sqlite3_stmt **ret);
/* SQLITE_OK or the error of the statement. NULL is a no-op. */
int sql_release(struct conn *conn, sqlite3_stmt *stmt);
/* Runs the statement to its end and frees it. NG_OK, or NG_EINTERNAL with the error of the
 * connection. */
int sql_run(struct conn *conn, struct sql *sql);
/* The number in the first row, and frees the statement; -1: failed. */
int64_t sql_number(struct conn *conn, struct sql *sql);
/* Calls row() for each row of a constant statement, until it returns another value than NG_OK;
 * a positive one ends the walk without an error. NG_EINTERNAL: the error of the connection. */
int sql_each(struct conn *conn, const char *text, int (*row)(void *user, sqlite3_stmt *stmt),
             void *user);

/* terms.c: conditions of a query */
int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query);
query_find_fn term_subject; /* columns are those of docs */
/* Adds " AND ..." over d.* for every term except `skip` (SIZE_MAX: none). */
void terms_add(struct sql *sql, const struct db_collection *collection,
               const struct ng_query *query, size_t skip);
/* Adds "d.author ..." for a built-in field. */
void term_add_column(struct sql *sql, const struct subject *subject,
                     const struct ng_term *term);
/* Adds " AND v.value ..." over the index of values. */
void term_add_range(struct sql *sql, const struct subject *subject, const struct ng_term *term);

/* query.c */
struct shelves {
    int64_t *ids;
    size_t count;
    int64_t live, dead; /* documents */
};
int query_shelves(struct conn *conn, const struct ng_query *query, struct shelves *ret);
void shelves_add(struct sql *sql, const struct shelves *shelves);
/* Adds the value of the subject in the row of a document. */
void subject_add(struct sql *sql, const struct subject *subject);
int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total);
int search_run(void *self, struct ng_call *call, const struct ng_search *search, ng_row_fn *row,
               void *user, uint64_t *ret_total);

/* tokens.c */
int tokens_register(struct conn *conn);
/* An FTS5 match, and the pattern of its phrases for ng_rank(). */
struct match {
    struct bytes text, pattern;
};
#define MATCH_ANY SIZE_MAX
#define MATCH_ALL (SIZE_MAX - 1)
/* Makes the match of a search, of documents with this phrase of it, with any or with all. */
int match_make(const struct wanted *wanted, size_t phrase, struct match *ret);
void match_done(struct match *match);

/* fts.c */
/* Marks the search index of the collection as out of date. With the writer lock. */
void fts_mark(struct db *db, const struct db_collection *collection);
int fts_table(struct conn *conn, const struct db_collection *collection);
/* Indexes a bounded number of documents (collection 0: of any). *ret_more: some are left. */
int fts_step(struct db *db, int64_t collection, bool *ret_more, char *error, size_t error_max);
/* Indexes all that waits of the collection. */
int fts_catch_up(struct db *db, struct ng_call *call, int64_t collection);

#endif
