/* SPDX-License-Identifier: MIT */
/* conn.c - connections: opening, statements, error messages, the pool of readers and, in
 * memory, the gate between readers and the writer. */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/minmax.h"

static const char *const statement_sql[] = {
#define STATEMENT_SQL(name, sql) sql,
    STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

/* Largest in-memory store. */
#define MEMORY_MAX_BYTES ((sqlite3_int64)1 << 40)

static int reader_progress(void *user)
{
    struct conn *conn = user;
    return conn->call != NULL && conn->call->host->cancelled(conn->call);
}

static int conn_setup(struct conn *conn, bool reader)
{
    struct db *db = conn->db;
    const char *pragmas;
    if (reader) {
        pragmas = "PRAGMA query_only=1; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY;";
    } else if (db->memory) {
        pragmas = "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA "
                  "cache_size=-1024; PRAGMA temp_store=MEMORY;";
    } else {
        pragmas =
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=FAST; "
            "PRAGMA cache_size=-8192; PRAGMA cache_spill=4096; PRAGMA "
            "journal_size_limit=4194304;";
    }
    (void)sqlite3_extended_result_codes(conn->sql, 1);
    (void)sqlite3_busy_timeout(conn->sql, BUSY_MS);
    (void)sqlite3_db_config(conn->sql, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    int rc = sqlite3_exec(conn->sql, pragmas, NULL, NULL, NULL);
    if (rc == SQLITE_OK && db->memory && !reader) {
        sqlite3_int64 size = MEMORY_MAX_BYTES;
        (void)sqlite3_file_control(conn->sql, "main", SQLITE_FCNTL_SIZE_LIMIT, &size);
    }
    if (rc == SQLITE_OK) {
        rc = values_functions(conn->sql);
        if (rc == SQLITE_OK) {
            rc = tokens_register(conn);
        }
    }
    if (rc == SQLITE_OK && !reader) {
        (void)sqlite3_rollback_hook(conn->sql, origins_forget, db);
    }
    if (rc == SQLITE_OK && !reader && !db->memory) {
        wal_follow(conn);
    }
    if (reader) {
        sqlite3_progress_handler(conn->sql, READER_STEPS, reader_progress, conn);
    }
    return rc;
}

int conn_open(struct db *db, bool reader, struct conn **ret, char *error, size_t error_max)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        (void)snprintf(error, error_max, "no memory to open %s", db->path);
        return NG_EINTERNAL;
    }
    conn->db = db;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    if (!reader) {
        flags |= SQLITE_OPEN_CREATE;
    }
    int rc = sqlite3_open_v2(db->uri, &conn->sql, flags, db->memory ? "memdb" : NULL);
    if (rc == SQLITE_OK) {
        rc = conn_setup(conn, reader);
    }
    /* A file that replaced the one of the store would be read as if it were the store. */
    if (rc == SQLITE_OK && reader && disk_check_files(db, error, error_max) != NG_OK) {
        conn_close(conn);
        return NG_EUNAVAILABLE;
    }
    if (rc != SQLITE_OK) {
        int code = conn_error(conn, "opening the store", error, error_max);
        conn_close(conn);
        if (code != NG_EINTERNAL) {
            return code;
        }
        return NG_EUNAVAILABLE;
    }
    *ret = conn;
    return NG_OK;
}

void conn_close(struct conn *conn)
{
    if (conn == NULL) {
        return;
    }
    for (size_t i = 0; i < STMT_COUNT; i++) {
        (void)sqlite3_finalize(conn->stmts[i]);
    }
    for (size_t i = 0; i < KEPT_STATEMENTS; i++) {
        (void)sqlite3_finalize(conn->kept[i].stmt);
    }
    (void)sqlite3_close_v2(conn->sql);
    free(conn->probes);
    free(conn);
}

sqlite3_stmt *conn_stmt(struct conn *conn, enum statement which)
{
    sqlite3_stmt *stmt = conn->stmts[which];
    if (stmt == NULL) {
        if (sqlite3_prepare_v3(conn->sql, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                               &stmt, NULL) != SQLITE_OK) {
            return NULL;
        }
        conn->stmts[which] = stmt;
        return stmt;
    }
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return stmt;
}

int conn_run(struct conn *conn, sqlite3_stmt *stmt)
{
    if (stmt == NULL) {
        if (sqlite3_errcode(conn->sql) == SQLITE_OK) {
            return SQLITE_NOMEM;
        }
        return sqlite3_extended_errcode(conn->sql);
    }
    int rc;
    errno = 0;
    do {
        rc = sqlite3_step(stmt);
    } while (rc == SQLITE_ROW);
    conn->system_errno = errno; /* the rollback overwrites it in sqlite */
    int end = sqlite3_reset(stmt);
    if (rc == SQLITE_DONE) {
        conn->system_errno = 0;
        return SQLITE_OK;
    }
    if (end != SQLITE_OK) {
        return end;
    }
    return rc;
}

/* Is the disk full? Quotas and file size limits are reported as plain I/O errors. */
bool conn_lacks_room(const struct conn *conn, int rc)
{
    int system = conn->system_errno;
    return (rc & 0xff) == SQLITE_FULL ||
           ((rc & 0xff) == SQLITE_IOERR &&
            (system == ENOSPC || system == EDQUOT || system == EFBIG));
}

static const char *way_out(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "the file is damaged: stop the gateway, move it away and restore from a backup";
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return "check that the folder exists and that the gateway may write to it";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program holds the file: end it, or try again";
    case SQLITE_IOERR:
        return "check the disk and the system's log; writes continue when it works again";
    case SQLITE_TOOBIG:
        return "make the document smaller";
    default:
        return "see the gateway's log, or run `notegate verify`";
    }
}

static int error_code(const struct conn *conn, int rc)
{
    if (conn_lacks_room(conn, rc)) {
        return NG_EFULL;
    }
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
    case SQLITE_INTERNAL:
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_CONSTRAINT:
    case SQLITE_RANGE:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA:
        return NG_EINTERNAL;
    case SQLITE_TOOBIG:
        return NG_ETOOLARGE;
    default:
        return NG_EUNAVAILABLE;
    }
}

int conn_error(struct conn *conn, const char *doing, char *error, size_t error_max)
{
    int rc = sqlite3_extended_errcode(conn->sql); /* SQLITE_NOMEM without a connection */
    if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE) {
        (void)snprintf(error, error_max, "%s failed: no memory", doing);
        return NG_EINTERNAL;
    }
    int code = error_code(conn, rc);
    if (code == NG_EFULL) {
        uint64_t need = DISK_WRITE_BYTES;
        if (conn == conn->db->writer) {
            need = disk_need(conn->db);
        }
        (void)snprintf(error, error_max,
                       "%s failed: no room is left for %.300s (%s); free space there, at least "
                       "%" PRIu64 " KiB, writes go on by themselves then",
                       doing, conn->db->path, sqlite3_errstr(rc), need / 1024);
    } else {
        (void)snprintf(error, error_max, "%s failed: %s: %s (%d); %s", doing, conn->db->path,
                       sqlite3_errmsg(conn->sql), rc, way_out(rc));
    }
    return code;
}

int conn_fail(struct conn *conn, struct ng_call *call, const char *doing)
{
    char error[DB_ERROR_MAX];
    int rc = sqlite3_errcode(conn->sql);
    if (rc == SQLITE_INTERRUPT) {
        if (call->host->remaining_ms(call) <= 0) {
            return ng_fail(call, NG_ETIMEOUT, "%s took longer than the call allows", doing);
        }
        return ng_fail(call, NG_ECANCELLED, "%s was cancelled", doing);
    }
    int code = conn_error(conn, doing, error, sizeof(error));
    return ng_fail(call, code, "%s", error);
}

/* Waits READER_WAIT_MS at most. */
static void wait_briefly(pthread_cond_t *cond, struct lock *lock)
{
    int64_t at = clock_monotonic_ns() + READER_WAIT_MS * INT64_C(1000000);
    const struct timespec until = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
    (void)lock_wait_until(cond, lock, &until);
}

/* ---- the gate (memory only) ---- */

static bool gate_enter_reader(struct db *db, struct ng_call *call, bool nested)
{
    if (!db->memory) {
        return true;
    }
    bool in = true;
    lock_take(&db->gate_lock);
    /* A nested reader must not wait for a writer that waits for its outer reader. */
    while (in && !nested && (db->gate_writing || db->gate_waiting > 0)) {
        wait_briefly(&db->gate_moved, &db->gate_lock);
        in = !call->host->cancelled(call);
    }
    if (in) {
        db->gate_readers++;
    }
    lock_release(&db->gate_lock);
    return in;
}

static void gate_leave_reader(struct db *db)
{
    if (db->memory) {
        lock_take(&db->gate_lock);
        db->gate_readers--;
        pthread_cond_broadcast(&db->gate_moved);
        lock_release(&db->gate_lock);
    }
}

/* ---- readers ---- */

/* Takes a free connection, or opens one if there is room. With the lock held. */
static struct conn *reader_pick(struct db *db, bool *ret_nested, bool *ret_room)
{
    struct conn *found = NULL;
    bool own = false;
    *ret_nested = false;
    for (struct conn *conn = db->readers; conn != NULL; conn = conn->next) {
        bool owned = pthread_equal(conn->owner, pthread_self()) != 0;
        if (!conn->in_use && !own) {
            found = conn;
            own = owned;
        } else if (owned && conn->in_use) {
            *ret_nested = true;
        }
    }
    *ret_room = db->reader_count < READERS_MAX || *ret_nested;
    return found;
}

static int reader_take(struct db *db, struct ng_call *call, struct conn **ret)
{
    bool nested = false;
    bool room = false;
    lock_take(&db->readers_lock);
    struct conn *conn = reader_pick(db, &nested, &room);
    while (conn == NULL && !room) {
        wait_briefly(&db->reader_free, &db->readers_lock);
        if (call->host->cancelled(call)) {
            lock_release(&db->readers_lock);
            if (call->host->remaining_ms(call) <= 0) {
                return ng_fail(call, NG_ETIMEOUT,
                               "all %d connections for reading were busy until the call's "
                               "time was up",
                               READERS_MAX);
            }
            return ng_fail(call, NG_ECANCELLED, "the read was cancelled");
        }
        conn = reader_pick(db, &nested, &room);
    }
    if (conn == NULL) {
        char error[DB_ERROR_MAX];
        int rc = conn_open(db, true, &conn, error, sizeof(error));
        if (conn == NULL) {
            lock_release(&db->readers_lock);
            return ng_fail(call, rc, "%s", error);
        }
        conn->next = db->readers;
        db->readers = conn;
        db->reader_count++;
    }
    conn->in_use = true;
    conn->nested = nested;
    conn->owner = pthread_self();
    lock_release(&db->readers_lock);
    *ret = conn;
    return NG_OK;
}

/* broken: its transaction could not be ended, so it cannot begin another one */
static void reader_return(struct conn *conn, bool broken)
{
    struct db *db = conn->db;
    struct conn *drop = NULL;
    lock_take(&db->readers_lock);
    conn->in_use = false;
    if (broken || db->reader_count > READERS_MAX) {
        for (struct conn **at = &db->readers; *at != NULL; at = &(*at)->next) {
            if (*at == conn) {
                *at = conn->next;
                break;
            }
        }
        db->reader_count--;
        drop = conn;
    }
    pthread_cond_signal(&db->reader_free);
    lock_release(&db->readers_lock);
    conn_close(drop);
}

int reader_begin(struct db *db, struct ng_call *call, struct conn **ret)
{
    struct conn *conn = NULL;
    int rc = reader_take(db, call, &conn);
    if (conn == NULL) {
        return rc;
    }
    if (!gate_enter_reader(db, call, conn->nested)) {
        reader_return(conn, false);
        return ng_fail(call, NG_ETIMEOUT, "the call ended before it could read");
    }
    conn->call = call;
    if (conn_exec(conn, STMT_BEGIN) != SQLITE_OK) {
        rc = conn_fail(conn, call, "reading");
        conn->call = NULL;
        gate_leave_reader(db);
        reader_return(conn, true);
        return rc;
    }
    *ret = conn;
    return NG_OK;
}

void reader_end(struct conn *conn)
{
    if (conn == NULL) {
        return;
    }
    conn->call = NULL; /* ending must not be interrupted */
    for (size_t i = 0; i < STMT_COUNT; i++) {
        if (conn->stmts[i] != NULL && sqlite3_stmt_busy(conn->stmts[i])) {
            (void)sqlite3_reset(conn->stmts[i]);
        }
    }
    if (!sqlite3_get_autocommit(conn->sql)) {
        (void)conn_exec(conn, STMT_COMMIT);
    }
    bool broken = !sqlite3_get_autocommit(conn->sql);
    gate_leave_reader(conn->db);
    reader_return(conn, broken);
}

void readers_close(struct db *db)
{
    while (db->readers != NULL) {
        struct conn *conn = db->readers;
        db->readers = conn->next;
        conn_close(conn);
    }
}

void gate_enter_writer(struct db *db)
{
    lock_take(&db->gate_lock);
    db->gate_waiting++;
    while (db->gate_readers > 0 || db->gate_writing) {
        lock_wait(&db->gate_moved, &db->gate_lock);
    }
    db->gate_waiting--;
    db->gate_writing = true;
    lock_release(&db->gate_lock);
}

void gate_leave_writer(struct db *db)
{
    lock_take(&db->gate_lock);
    db->gate_writing = false;
    pthread_cond_broadcast(&db->gate_moved);
    lock_release(&db->gate_lock);
}

/* ---- the files: do their names still lead to them? ---- */

static int log_path(const struct db *db, char path[DB_PATH_MAX + 8])
{
    return snprintf(path, DB_PATH_MAX + 8, "%s-wal", db->path);
}

int disk_hold_files(struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    (void)log_path(db, log);
    if (db->memory) {
        return NG_OK;
    }
    /* An O_PATH descriptor can be closed without releasing the POSIX locks of sqlite. */
    db->file_fd = open(db->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    db->log_fd = open(log, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (db->file_fd < 0 || (db->log_fd < 0 && errno != ENOENT)) {
        (void)snprintf(error, error_max,
                       "%.400s cannot be kept open (error %d): check that it exists, and the "
                       "limit of open files",
                       db->path, errno);
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

void disk_release_files(struct db *db)
{
    if (db->file_fd >= 0) {
        (void)close(db->file_fd);
    }
    if (db->log_fd >= 0) {
        (void)close(db->log_fd);
    }
}

/* Compares the numbers of both descriptor and name each time: some file systems do not give a
 * file a lasting number. */
static int check_file(const char *path, int fd, char *error, size_t error_max)
{
    struct stat named = {0};
    struct stat held = {0};
    int number = 0;
    if (stat(path, &named) != 0 || fstat(fd, &held) != 0) {
        number = errno;
    }
    if (number == ENOENT || number == ENOTDIR) {
        (void)snprintf(error, error_max,
                       "%.350s is gone: put it back, or stop the gateway and restore it from a "
                       "backup",
                       path);
    } else if (number != 0) {
        (void)snprintf(error, error_max,
                       "%.400s cannot be checked (error %d): check its folder", path, number);
    } else if (named.st_dev != held.st_dev || named.st_ino != held.st_ino ||
               held.st_nlink == 0) {
        (void)snprintf(error, error_max,
                       "%.300s is another file than the one that the gateway opened: restart "
                       "it to serve that file, or put the opened one back",
                       path);
    } else {
        return NG_OK;
    }
    return NG_EUNAVAILABLE;
}

int disk_check_files(const struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    /* A store in memory has no files; while the store is opened they are not known yet. */
    int rc = NG_OK;
    if (db->file_fd >= 0) {
        rc = check_file(db->path, db->file_fd, error, error_max);
    }
    if (rc == NG_OK && db->log_fd >= 0) {
        (void)log_path(db, log);
        rc = check_file(log, db->log_fd, error, error_max);
    }
    return rc;
}
