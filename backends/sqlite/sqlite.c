/* SPDX-License-Identifier: MIT */
/* sqlite.c - documents in one sqlite file, or in memory: the descriptor, opening, closing, and
 * metrics. */
#include "history/history.h"
#include "store/db.h"
#include "upkeep/upkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void init_locks(struct db *db)
{
    lock_init(&db->writer_lock.lock, LOCK_SQLITE_WRITER);
    lock_cond_init(&db->writer_lock.moved);
    lock_init(&db->queue_lock, LOCK_SQLITE_QUEUE);
    lock_init(&db->collections_lock, LOCK_SQLITE_COLLECTIONS);
    lock_init(&db->readers_lock, LOCK_SQLITE_READERS);
    lock_init(&db->gate_lock, LOCK_SQLITE_GATE);
    lock_init(&db->counts.lock, LOCK_SQLITE_COUNTS);
    lock_cond_init(&db->queued);
    lock_cond_init(&db->reader_free);
    lock_cond_init(&db->gate_moved);
}

static void db_free(struct db *db)
{
    readers_close(db);
    conn_close(db->writer);
    origins_forget(db);
    disk_release_files(db);
    collections_free(db);
    lock_done(&db->writer_lock.lock);
    pthread_cond_destroy(&db->writer_lock.moved);
    lock_done(&db->queue_lock);
    lock_done(&db->collections_lock);
    lock_done(&db->readers_lock);
    lock_done(&db->gate_lock);
    lock_done(&db->counts.lock);
    pthread_cond_destroy(&db->queued);
    pthread_cond_destroy(&db->reader_free);
    pthread_cond_destroy(&db->gate_moved);
    free(db);
}

/* Writes the path as a URI file name: every character but the plainest as %XX. */
static bool make_uri(struct db *db, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t at = (size_t)snprintf(db->uri, sizeof(db->uri), "file:");
    for (const unsigned char *c = (const unsigned char *)path; *c != '\0'; c++) {
        if (at + 4 > sizeof(db->uri)) {
            return false;
        }
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
            *c == '/' || *c == '.' || *c == '-' || *c == '_') {
            db->uri[at++] = (char)*c;
        } else {
            db->uri[at++] = '%';
            db->uri[at++] = hex[*c >> 4];
            db->uri[at++] = hex[*c & 15];
        }
    }
    db->uri[at] = '\0';
    return true;
}

/* Sets the path of the data. */
static int place(struct db *db, struct ng_call *call, const struct ng_conf *conf)
{
    const struct ng_host *host = call->host;
    struct ng_str dir = host->conf_text(conf, "data_dir");
    db->memory = host->conf_bool(conf, "memory") || str_equal(dir, ng_str_of(":memory:")) ||
                 str_equal(host->conf_text(conf, "documents"), ng_str_of("memory"));
    if (db->memory) {
        (void)snprintf(db->path, sizeof(db->path), "memory");
        /* The address makes the name of the store unique. */
        (void)snprintf(db->uri, sizeof(db->uri), "file:/notegate-%" PRIxPTR "?vfs=memdb",
                       (uintptr_t)db);
        return NG_OK;
    }
    if (dir.len == 0) {
        return ng_fail(call, NG_EINVAL, "`data_dir` is not set: name the folder for the data");
    }
    if (dir.len > sizeof(db->path) - sizeof("/" DB_FILE) ||
        memchr(dir.data, '\0', dir.len) != NULL) {
        return ng_fail(call, NG_EINVAL, "`data_dir` is not a usable path (%zu bytes)", dir.len);
    }
    (void)snprintf(db->path, sizeof(db->path), "%.*s/%s", (int)dir.len, dir.data, DB_FILE);
    if (!make_uri(db, db->path)) {
        return ng_fail(call, NG_EINVAL, "`data_dir` is too long: %.*s", (int)dir.len, dir.data);
    }
    return NG_OK;
}

/* sqlite would open a read-only file without an error and fail much later. */
static int check_writable(struct db *db, struct ng_call *call)
{
    char dir[DB_PATH_MAX];
    (void)snprintf(dir, sizeof(dir), "%s", db->path);
    char *slash = strrchr(dir, '/');
    if (slash == dir) {
        slash++;
    }
    *slash = '\0';
    struct stat status;
    if (stat(dir, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "the folder %s does not exist: make it, or set `data_dir` to another",
                       dir);
    }
    if (access(dir, W_OK | X_OK) != 0) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "the gateway may not write in %s: change its owner or mode, or set "
                       "`data_dir` to another",
                       dir);
    }
    if (stat(db->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        return ng_fail(call, NG_EUNAVAILABLE, "%s is not a file: move it away", db->path);
    }
    if (access(db->path, F_OK) == 0 && access(db->path, R_OK | W_OK) != 0) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "the gateway may not write to %s: change its owner or mode", db->path);
    }
    return NG_OK;
}

/* Creates the file for its owner only: sqlite would make it readable for all users, and the log
 * and index files take over its mode. */
static int make_private(struct db *db, struct ng_call *call)
{
    int fd = open(db->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0 && errno == ENOSPC) {
        return ng_fail(call, NG_EFULL, "no room is left for %s: free space there", db->path);
    }
    if (fd < 0) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "%s cannot be made: check its folder's owner and mode", db->path);
    }
    (void)close(fd);
    return NG_OK;
}

static void sqlite_close(void *self)
{
    struct db *db = self;
    if (db == NULL) {
        return;
    }
    import_abandon(db);
    queue_stop(db);
    /* Closing would copy the log; the next start can do that when there is room. */
    if (!db->memory && !disk_takes_copy(db->writer)) {
        (void)sqlite3_db_config(db->writer->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    db_free(db);
}

static int sqlite_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    char error[DB_ERROR_MAX] = "";
    struct db *db = calloc(1, sizeof(*db));
    if (db == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory to open the store");
    }
    init_locks(db);
    origins_forget(db);
    db->file_fd = db->log_fd = -1;
    int rc = place(db, call, conf);
    if (rc == NG_OK && !db->memory) {
        rc = check_writable(db, call);
    }
    if (rc == NG_OK && !db->memory) {
        rc = make_private(db, call);
    }
    if (rc != NG_OK) {
        db_free(db);
        return rc;
    }
    rc = conn_open(db, false, &db->writer, error, sizeof(error));
    if (rc == NG_OK) {
        rc = schema_open(db, error, sizeof(error));
    }
    if (rc == NG_OK) {
        rc = disk_hold_files(db, error, sizeof(error));
    }
    if (rc == NG_OK && queue_start(db) != NG_OK) {
        (void)snprintf(error, sizeof(error), "the writer of %.400s could not be started",
                       db->path);
        rc = NG_EINTERNAL;
    }
    if (rc != NG_OK) {
        db_free(db);
        return ng_fail(call, rc, "%s", error);
    }
    *ret_db = db;
    return NG_OK;
}

static int sqlite_health(void *self, struct ng_call *call)
{
    struct db *db = self;
    struct conn *conn = NULL;
    char error[DB_ERROR_MAX];
    if (disk_check_files(db, error, sizeof(error)) != NG_OK) {
        return ng_fail(call, NG_EUNAVAILABLE, "%s", error);
    }
    int rc = reader_begin(db, call, &conn);
    if (rc != NG_OK) {
        return rc;
    }
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_META_GET);
    (void)bind_text(stmt, 1, ng_str_of("seq"));
    if (conn_run(conn, stmt) != SQLITE_OK) {
        rc = conn_fail(conn, call, "reading");
    }
    reader_end(conn);
    return rc;
}

static void sqlite_stats(void *self,
                         void (*stat_fn)(void *user, const char *name, double value),
                         void *user)
{
    struct db *db = self;
    double transactions = (double)atomic_load(&db->stat_transactions);
    double batches = (double)atomic_load(&db->stat_batches);
    lock_take(&db->queue_lock);
    double queued = (double)db->queue_batches;
    double queued_bytes = (double)db->queue_bytes;
    lock_release(&db->queue_lock);
    lock_take(&db->readers_lock);
    double readers = (double)db->reader_count;
    lock_release(&db->readers_lock);
    stat_fn(user, "transactions_total", transactions);
    stat_fn(user, "batches_total", batches);
    stat_fn(user, "batches_per_transaction", transactions > 0 ? batches / transactions : 0);
    stat_fn(user, "puts_total", (double)atomic_load(&db->stat_puts));
    stat_fn(user, "failed_transactions_total", (double)atomic_load(&db->stat_failures));
    stat_fn(user, "queue_batches", queued);
    stat_fn(user, "queue_bytes", queued_bytes);
    stat_fn(user, "readers", readers);
    uint64_t needed = atomic_load(&db->needed);
    stat_fn(user, "needed_bytes", disk_free(db) < needed ? (double)needed : 0);
    if (!db->memory) {
        struct stat status;
        char wal[DB_PATH_MAX + 8];
        (void)snprintf(wal, sizeof(wal), "%s-wal", db->path);
        stat_fn(user, "file_bytes", stat(db->path, &status) == 0 ? (double)status.st_size : 0);
        stat_fn(user, "wal_bytes", stat(wal, &status) == 0 ? (double)status.st_size : 0);
    }
}

static uint64_t sqlite_last_seq(void *self)
{
    struct db *db = self;
    return atomic_load(&db->last_seq);
}

static const struct ng_option sqlite_options[] = {
    {
        .name = "memory",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "true: keep all data in memory; it is lost when the process ends.",
    },
};

static const struct ng_documents sqlite_documents = {
    .name = "sqlite",
    .version = NOTEGATE_VERSION,
    .flags = NG_DOCUMENTS_ONLY_DELETED,
    .options = sqlite_options,
    .option_count = NG_COUNT(sqlite_options),
    .open = sqlite_open,
    .close = sqlite_close,
    .declare = collection_declare,
    .commit = queue_commit,
    .get = read_get,
    .query = query_run,
    .history = read_history,
    .history_count = read_history_count,
    .changes = read_changes,
    .answer = read_answer,
    .search = search_run,
    .health = sqlite_health,
    .stats = sqlite_stats,
    .maintain = maintain_run,
    .export_all = export_all,
    .import_begin = import_begin,
    .import_record = import_record,
    .import_end = import_end,
    .verify = verify_run,
    .last_seq = sqlite_last_seq,
    .purge = purge_run,
    .purge_events = purge_events,
    .purge_data = purge_data,
    .purge_sweep = purge_sweep,
    .runs = read_runs,
    .revision_at = read_revision_at,
    .trail = read_trail,
};

NG_EXPORT_DOCUMENTS(sqlite_documents);
