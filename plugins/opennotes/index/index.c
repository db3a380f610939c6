/* SPDX-License-Identifier: MIT */
/* index.c - the open indexes, and the connections that are lent. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/lock.h"
#include "core/base/text_choice.h"
#include "index_open.h"
#include "index_tokens.h"
#include "note/revision.h"
#include "text/codes.h"

#define OPEN_MAX_IDLE 64 /* indexes kept open without users */
#define BUSY_MS 10000
#define CANCEL_OPS                                                                             \
    20000 /* operations of SQLite's virtual machine between checks for cancellation */

/* ---- the open ones ---- */

static void free_reader(struct notes_reader *reader)
{
    if (reader != NULL) {
        if (reader->kept != NULL) {
            reader->kept->free(reader->kept);
        }
        (void)sqlite3_finalize(reader->begin);
        (void)sqlite3_finalize(reader->look);
        (void)sqlite3_finalize(reader->rollback);
        (void)sqlite3_close_v2(reader->db);
        free(reader);
    }
}

static void drop_idle(struct notes_index *index)
{
    lock_take(&index->lock);
    struct notes_reader *reader = index->idle;
    index->idle = NULL;
    index->idle_count = 0;
    lock_release(&index->lock);
    while (reader != NULL) {
        struct notes_reader *next = reader->next;
        free_reader(reader);
        reader = next;
    }
}

static void free_index(struct notes_index *index)
{
    if (index == NULL) {
        return;
    }
    drop_idle(index);
    notes_schema_close(&index->writer);
    notes_watch_close(&index->watch);
    notes_paths_done(&index->loose);
    if (index->root_fd >= 0) {
        (void)close(index->root_fd);
    }
    (void)pthread_cond_destroy(&index->changed);
    lock_done(&index->lock);
    free(index->path);
    free(index->file);
    free(index);
}

static char *file_of(const struct notes_indexes *indexes, const char *path)
{
    char hash[NOTES_REVISION_SIZE];
    size_t size = strlen(indexes->folder) + sizeof(hash) + 8;
    char *file = malloc(size);
    if (file == NULL || notes_revision(ng_str_of(path), -1, hash) != NG_OK) {
        free(file);
        return NULL;
    }
    (void)snprintf(file, size, "%s/%s.db", indexes->folder, hash);
    return file;
}

/* Takes ownership of root_fd, even on failure. */
static struct notes_index *new_index(const struct notes_indexes *indexes, const char *path,
                                     int root_fd, const struct stat *found)
{
    struct notes_index *index = calloc(1, sizeof(*index));
    if (index == NULL) {
        (void)close(root_fd);
        return NULL;
    }
    index->root_fd = root_fd;
    index->inode = (int64_t)found->st_ino;
    index->device = (int64_t)found->st_dev;
    index->scan = true;
    index->watch.fd = -1;
    index->path = strdup(path);
    index->file = file_of(indexes, path);
    lock_init(&index->lock, LOCK_NOTES_INDEX);
    lock_cond_init(&index->changed);
    if (index->path == NULL || index->file == NULL) {
        free_index(index);
        return NULL;
    }
    notes_watch_open(&index->watch, root_fd);
    return index;
}

int notes_indexes_open(const char *folder, struct notes_indexes **ret)
{
    struct notes_indexes *indexes = calloc(1, sizeof(*indexes));
    if (indexes == NULL) {
        return NG_EINTERNAL;
    }
    lock_init(&indexes->lock, LOCK_NOTES_INDEXES);
    indexes->folder = strdup(folder);
    *ret = indexes;
    if (indexes->folder != NULL) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

void notes_indexes_close(struct notes_indexes *indexes)
{
    if (indexes == NULL) {
        return;
    }
    for (struct notes_index *index = indexes->first; index != NULL;) {
        struct notes_index *next = index->next;
        free_index(index);
        index = next;
    }
    lock_done(&indexes->lock);
    free(indexes->folder);
    free(indexes);
}

/* Removes the least recently used index from the list if there are too many. Under the lock. */
static struct notes_index *take_idle(struct notes_indexes *indexes, size_t most)
{
    struct notes_index **oldest = NULL;
    size_t idle = 0;
    for (struct notes_index **at = &indexes->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->refs == 0) {
            idle++;
            if (oldest == NULL || (*at)->used < (*oldest)->used) {
                oldest = at;
            }
        }
    }
    if (idle <= most) {
        return NULL;
    }
    struct notes_index *index = *oldest;
    *oldest = index->next;
    return index;
}

/* Under the lock. An index whose folder was replaced by another of the same name is skipped; it
 * is removed later, when it is idle. */
static struct notes_index *find_open(struct notes_indexes *indexes, const char *path,
                                     const struct stat *found)
{
    for (struct notes_index *index = indexes->first; index != NULL; index = index->next) {
        if (strcmp(index->path, path) == 0 && index->inode == (int64_t)found->st_ino &&
            index->device == (int64_t)found->st_dev) {
            index->refs++;
            index->used = ++indexes->clock;
            return index;
        }
    }
    return NULL;
}

/* One index owns the file at a time: an older index of the same path is closed first. Under the
 * lock; returns the index to free. */
static struct notes_index *take_stale(struct notes_indexes *indexes, const char *path,
                                      bool *ret_used)
{
    *ret_used = false;
    for (struct notes_index **at = &indexes->first; *at != NULL; at = &(*at)->next) {
        if (strcmp((*at)->path, path) == 0) {
            struct notes_index *index = *at;
            if (index->refs > 0) {
                *ret_used = true;
                return NULL;
            }
            *at = index->next;
            return index;
        }
    }
    return NULL;
}

int notes_index_open(struct notes_indexes *indexes, struct ng_call *call, const char *path,
                     struct notes_index **ret)
{
    struct stat found;
    int root_fd = notes_tree_open_folder(path);
    if (root_fd < 0 || fstat(root_fd, &found) != 0) {
        int error = root_fd < 0 ? -root_fd : errno;
        if (root_fd >= 0) {
            (void)close(root_fd);
        }
        return ng_fail(call, notes_tree_is_busy(error) ? NG_EBUSY : NOTES_ENOTEBOOK,
                       "The notebook's folder %s cannot be opened: %s.", path,
                       text_errno(error));
    }
    bool used = false;
    struct notes_index *stale = NULL;
    lock_take(&indexes->lock);
    struct notes_index *index = find_open(indexes, path, &found);
    if (index == NULL) {
        stale = take_stale(indexes, path, &used);
    }
    lock_release(&indexes->lock);
    free_index(stale);
    if (index != NULL || used) {
        (void)close(root_fd);
        *ret = index;
        if (index != NULL) {
            return NG_OK;
        }
        return ng_fail(call, NG_EBUSY,
                       "The folder %s was replaced a moment ago and other calls "
                       "still read the former one. Try again.",
                       path);
    }
    struct notes_index *made = new_index(indexes, path, root_fd, &found);
    if (made == NULL) {
        return notes_fail_memory(call);
    }
    lock_take(&indexes->lock);
    index = find_open(indexes, path, &found); /* another thread was faster */
    if (index == NULL) {
        made->owner = indexes;
        made->serial = ++indexes->clock;
        made->refs = 1;
        made->used = ++indexes->clock;
        made->next = indexes->first;
        indexes->first = made;
        index = made;
        made = take_idle(indexes, OPEN_MAX_IDLE);
    }
    lock_release(&indexes->lock);
    free_index(made);
    *ret = index;
    return NG_OK;
}

void notes_index_close(struct notes_indexes *indexes, struct notes_index *index)
{
    if (index != NULL) {
        lock_take(&indexes->lock);
        index->refs--;
        lock_release(&indexes->lock);
    }
}

void notes_index_hold(struct notes_index *index)
{
    lock_take(&index->owner->lock);
    index->refs++;
    lock_release(&index->owner->lock);
}

/* ---- lending ---- */

static struct notes_reader *take_reader(struct notes_index *index)
{
    struct notes_reader *reader = NULL;
    lock_take(&index->lock);
    if (index->idle != NULL) {
        reader = index->idle;
        index->idle = reader->next;
        index->idle_count--;
        reader->next = index->lent;
        index->lent = reader;
    }
    lock_release(&index->lock);
    return reader;
}

static int prepare_reader(struct notes_reader *reader)
{
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } all[] = {
        {"BEGIN", &reader->begin},
        {"SELECT count(*) FROM meta", &reader->look},
        {"ROLLBACK", &reader->rollback},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; i < NG_COUNT(all) && rc == SQLITE_OK; i++) {
        rc = sqlite3_prepare_v3(reader->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                                all[i].statement, NULL);
    }
    return rc;
}

static int open_reader(struct notes_index *index, struct ng_call *call,
                       struct notes_reader **ret)
{
    struct notes_reader *reader = calloc(1, sizeof(*reader));
    bool damaged = false;
    if (reader == NULL) {
        return notes_fail_memory(call);
    }
    lock_take(&index->lock);
    reader->generation = index->generation;
    lock_release(&index->lock);
    int rc = sqlite3_open_v2(
        index->file, &reader->db,
        SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_busy_timeout(reader->db, BUSY_MS);
        rc = sqlite3_exec(reader->db, "PRAGMA query_only=1; PRAGMA cache_size=-4000", NULL,
                          NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = notes_tokens_register(reader->db);
    }
    if (rc == SQLITE_OK) {
        rc = prepare_reader(reader);
    }
    if (rc != SQLITE_OK) {
        int failed = notes_schema_fail_db(call, reader->db, index->file, "read", &damaged);
        free_reader(reader);
        return failed;
    }
    lock_take(&index->lock);
    reader->next = index->lent;
    index->lent = reader;
    lock_release(&index->lock);
    *ret = reader;
    return NG_OK;
}

/* Under the lock. */
static struct notes_reader *find_lent(struct notes_index *index, const sqlite3 *db)
{
    struct notes_reader *reader = index->lent;
    while (reader != NULL && reader->db != db) {
        reader = reader->next;
    }
    return reader;
}

struct notes_kept *notes_index_kept(struct notes_index *index, sqlite3 *db)
{
    lock_take(&index->lock);
    const struct notes_reader *reader = find_lent(index, db);
    struct notes_kept *kept = NULL;
    if (reader != NULL) {
        kept = reader->kept;
    }
    lock_release(&index->lock);
    return kept;
}

void notes_index_keep(struct notes_index *index, sqlite3 *db, struct notes_kept *kept)
{
    lock_take(&index->lock);
    find_lent(index, db)->kept = kept;
    lock_release(&index->lock);
}

/* Returned by the caller: kept for the next call, or closed. */
static void give_reader(struct notes_index *index, sqlite3 *db, bool damaged)
{
    struct notes_reader *reader = NULL;
    lock_take(&index->lock);
    for (struct notes_reader **at = &index->lent; *at != NULL; at = &(*at)->next) {
        if ((*at)->db == db) {
            reader = *at;
            *at = reader->next;
            break;
        }
    }
    index->damaged = index->damaged || damaged;
    if (reader != NULL && !damaged && reader->generation == index->generation &&
        index->idle_count < NOTES_INDEX_READERS_MAX) {
        reader->next = index->idle;
        index->idle = reader;
        index->idle_count++;
        reader = NULL;
    }
    lock_release(&index->lock);
    free_reader(reader);
}

void notes_index_renewed(struct notes_index *index)
{
    lock_take(&index->lock);
    index->generation++;
    lock_release(&index->lock);
    drop_idle(index);
}

/* The call was cancelled: a search over many notes stops. */
static int is_cancelled(void *user)
{
    struct ng_call *call = user;
    return call->host->cancelled(call);
}

static int run_once(sqlite3_stmt *statement)
{
    (void)sqlite3_step(statement);
    return sqlite3_reset(statement); /* the code of a failed step, too */
}

/* *ret_damaged: the file is damaged, and the next refresh builds it again. */
static int begin_once(struct notes_index *index, struct ng_call *call, sqlite3 **ret_db,
                      bool *ret_damaged)
{
    int rc = notes_wait_fresh(index, call);
    struct notes_reader *reader = rc == NG_OK ? take_reader(index) : NULL;
    *ret_damaged = false;
    if (rc == NG_OK && reader == NULL) {
        rc = open_reader(index, call, &reader);
    }
    if (rc != NG_OK) {
        return rc;
    }
    /* The first read starts the transaction. */
    int begun = run_once(reader->begin);
    if (begun == SQLITE_OK) {
        begun = run_once(reader->look);
    }
    if (begun != SQLITE_OK) {
        rc = notes_schema_fail_db(call, reader->db, index->file, "read", ret_damaged);
        (void)run_once(reader->rollback);
        give_reader(index, reader->db, *ret_damaged);
        return rc;
    }
    sqlite3_progress_handler(reader->db, CANCEL_OPS, is_cancelled, call);
    *ret_db = reader->db;
    return NG_OK;
}

int notes_index_begin(struct notes_index *index, struct ng_call *call, sqlite3 **ret_db)
{
    bool damaged = false;
    int rc = begin_once(index, call, ret_db, &damaged);
    if (!damaged) {
        return rc;
    }
    return begin_once(index, call, ret_db, &damaged);
}

void notes_index_end(struct notes_index *index, sqlite3 *db)
{
    if (db == NULL) {
        return;
    }
    /* The remaining statements belong to FTS5: its tables keep them for the next search. */
    (void)sqlite3_set_authorizer(db, NULL, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    lock_take(&index->lock);
    sqlite3_stmt *rollback = find_lent(index, db)->rollback;
    lock_release(&index->lock);
    (void)run_once(rollback);
    give_reader(index, db, false);
}

int notes_index_fail(struct notes_index *index, struct ng_call *call, sqlite3 *db)
{
    bool damaged = false;
    int rc = notes_schema_fail_db(call, db, index->file, "read", &damaged);
    lock_take(&index->lock);
    index->damaged = index->damaged || damaged;
    lock_release(&index->lock);
    return rc;
}

int notes_index_root(struct notes_index *index)
{
    return index->root_fd;
}
