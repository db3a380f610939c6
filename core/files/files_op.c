/* SPDX-License-Identifier: MIT */
/* files_op.c - the steps of every change of a file: lock, read, intent, save, completion. A
 * step that waits for a lock or a commit frees its thread; a task of the pool continues. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "files_state.h"

#define FILES_QUEUE_TRIES 500 /* while the store's queue is full; then recovery completes */
#define FILES_QUEUE_PAUSE_NS 10000000

static int op_save(struct file_op *op);
static void op_leave(struct file_op *op);
static int op_abandon(struct file_op *op, int rc);
static int op_abandoned(struct file_op *op);

void files_op_enter(struct file_op *op, enum file_op_stage stage)
{
    static const unsigned allowed[] = {
        [FILE_OP_PREPARING] = 1U << FILE_OP_INTENDED,
        [FILE_OP_INTENDED] = 1U << FILE_OP_PREPARING | 1U << FILE_OP_INTENDED |
                             1U << FILE_OP_SAVED | 1U << FILE_OP_ENDING,
        [FILE_OP_SAVED] = 1U << FILE_OP_INTENDED | 1U << FILE_OP_SAVED | 1U << FILE_OP_ENDING,
        [FILE_OP_ENDING] = 0,
    };
    assert((allowed[op->stage] & 1U << stage) != 0);
    (void)allowed; /* without asserts */
    op->stage = stage;
}

static void op_close_files(struct file_op *op)
{
    files_close_fd(&op->fd);
    files_close_fd(&op->temp);
    files_place_done(&op->place);
    files_place_done(&op->target);
}

static void op_unlock(struct file_op *op)
{
    while (op->locks_held > 0) {
        op->locks_held--;
        files_unlock(op->files, op->lock_names[op->locks_held]);
    }
}

/* The paths of this change that may have an intent. */
static const struct ng_str *op_names(const struct file_op *op, size_t *ret_count)
{
    *ret_count = op->lock_count;
    if (op->grouping == NULL) {
        return op->lock_names;
    }
    *ret_count = NG_COUNT(op->lock_pair);
    return op->lock_pair; /* source and destination */
}

/* Runs the present step. FILES_WAITING: another thread owns the op by now. */
static int op_drive(struct file_op *op)
{
    int rc = op->step(op);
    if (rc < NG_OK && op->step != op_abandoned) {
        size_t count = 0;
        const struct ng_str *names = op_names(op, &count);
        rc = files_replay_end(op->files, op->call, names, count, rc);
    }
    if (rc != FILES_WAITING && rc != NG_PENDING) {
        if (op->stage == FILE_OP_SAVED) {
            op_leave(op);
        } else if (op->stage == FILE_OP_INTENDED) {
            rc = op_abandon(op, rc);
        }
    }
    if (rc != FILES_WAITING) {
        op_close_files(op);
        op_unlock(op);
    }
    return rc;
}

static void op_task(struct task *task)
{
    struct file_op *op = (struct file_op *)(void *)task;
    const struct ng_host *host = op->call->pub.host;
    struct ng_deferred *deferred = op->deferred;
    op->call->may_block = true; /* tasks run on workers */
    int rc = op_drive(op);
    if (rc != FILES_WAITING) {
        host->finish(deferred, rc);
    }
}

int files_op_new(struct files *files, struct call *call, enum file_change kind,
                 struct file_op **ret)
{
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    struct file_op *op = arena_zalloc(&call->arena, sizeof(*op));
    if (op == NULL) {
        return call_no_memory(call);
    }
    op->task.run = op_task;
    op->files = files;
    op->call = call;
    op->fd = -1;
    op->temp = -1;
    op->lock_names = op->lock_pair;
    *ret = op;
    return files_record_init(call, &op->record, kind);
}

int files_op_start(struct file_op *op, int (*begin)(struct file_op *op),
                   int (*locked)(struct file_op *op))
{
    const struct ng_host *host = op->call->pub.host;
    /* An unfinished move may concern this file, under the path of another one. */
    if (files_recover_rest(op->files, op->call) != NG_OK) {
        call_reset_result(op->call);
    }
    op->step = op->begin = begin;
    op->locked = locked;
    bool waits = op->waited != NULL;
    int rc = op_drive(op);
    if (waits) {
        op->waited->version = rc == NG_OK ? op->record.versions.saved.number : 0;
        return rc;
    }
    if (rc == FILES_WAITING) {
        return NG_PENDING;
    }
    if (op->deferred != NULL) {
        host->finish(op->deferred, rc);
        return NG_PENDING;
    }
    return rc;
}

/* Defers the call: the op may continue on another thread and must end first. */
static int op_defer(struct file_op *op)
{
    if (op->waited != NULL) {
        return NG_OK;
    }
    if (op->deferred == NULL) {
        op->deferred = op->call->pub.host->defer(&op->call->pub);
    }
    if (op->deferred == NULL) {
        return call_no_memory(op->call);
    }
    return NG_OK;
}

/* ---- locks */

static int op_got_lock(struct file_op *op)
{
    op->locks_held++;
    int rc = files_check_cancelled(op->call);
    if (rc != NG_OK) {
        return rc;
    }
    return files_op_lock(op);
}

void files_op_sort(struct ng_str a, struct ng_str b, struct ng_str ret_names[2])
{
    bool sorted = str_compare(a, b) < 0;
    ret_names[0] = sorted ? a : b;
    ret_names[1] = sorted ? b : a;
}

int files_op_lock(struct file_op *op)
{
    while (op->locks_held < op->lock_count) {
        struct ng_str name = op->lock_names[op->locks_held];
        if (files_try_lock(op->files, name)) {
            op->locks_held++;
            continue;
        }
        if (op->waited != NULL) {
            return call_fail(op->call, NG_EBUSY, "A call is changing %.*s just now.",
                             (int)name.len, name.data);
        }
        int rc = op_defer(op);
        if (rc != NG_OK) {
            return rc;
        }
        op->waiter.task = &op->task;
        op->waiter.pool = op->call->gateway->pool;
        op->step = op_got_lock;
        rc = files_lock(op->files, name, &op->waiter);
        if (rc == FILES_WAITING) {
            return rc;
        }
        if (rc != NG_OK) {
            return call_fail(op->call, NG_EBUSY,
                             "Too many calls wait to change %.*s. Try again in a moment.",
                             (int)name.len, name.data);
        }
        op->locks_held++;
    }
    bool answered = false;
    size_t count = 0;
    const struct ng_str *names = op_names(op, &count);
    op->step = op->locked;
    int rc = files_replay_recover(op->files, op->call, names, count, &answered);
    if (rc != NG_OK || answered) {
        return rc;
    }
    return op->locked(op);
}

static int op_retry(struct file_op *op, int (*step)(struct file_op *op))
{
    op_close_files(op);
    if (++op->attempts > FILES_RETRIES_MAX) {
        return call_fail(op->call, NG_ECONFLICT,
                         "Another program keeps changing the file; the change was made again "
                         "%d times and given up. Try again when it is done.",
                         FILES_RETRIES_MAX);
    }
    int rc = files_check_cancelled(op->call);
    if (rc != NG_OK) {
        return rc;
    }
    call_reset_result(op->call);
    op->step = step;
    return step(op);
}

int files_op_again(struct file_op *op)
{
    return op_retry(op, op->locked);
}

int files_op_restart(struct file_op *op)
{
    op_close_files(op);
    op_unlock(op);
    op->lock_count = 0;
    op->relock = false;
    return op_retry(op, op->begin);
}

/* ---- reading */

/* True if the name still leads to the open file. */
static bool op_is_current(struct file_op *op)
{
    struct file_identity named;
    struct file_identity opened;
    return files_identify(op->fd, "", &opened) &&
           files_identify(op->place.dir, op->place.name.data, &named) &&
           files_same(named, opened);
}

int files_op_read(struct file_op *op, bool load, uint64_t max_bytes, bool *ret_again)
{
    struct call *call = op->call;
    int rc = files_open_regular(call, &op->place, true, &op->fd);
    if (rc == NG_OK && max_bytes > 0 && (uint64_t)op->place.st.st_size > max_bytes) {
        rc = files_fail_size(call, (uint64_t)op->place.st.st_size, max_bytes);
    }
    if (rc == NG_OK) {
        rc = files_flock(call, op->place.path, op->fd);
    }
    if (rc == NG_OK && !op_is_current(op)) {
        *ret_again = true;
        return NG_OK;
    }
    files_mark(&op->place.st, op->record.mark);
    op->record.inode[0] = '\0';
    if (op->place.st.st_nlink > 1) {
        files_inode(&op->place.st, op->record.inode);
    }
    files_describe(&op->place, &op->present);
    if (rc == NG_OK && load) {
        const struct files_load loading = {op->place.path, op->fd, max_bytes, &op->base};
        rc = files_load_hashed(op->files, call, &loading, &op->present.data, op->record.before);
    } else if (rc == NG_OK) {
        rc = files_hash_fd(call, op->place.path, op->fd, op->record.before);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (load) {
        op->present.bytes = op->present.data.len;
    }
    op->present.revision = arena_copy(&call->arena, ng_str_of(op->record.before));
    if (op->present.revision.data == NULL) {
        return call_no_memory(call);
    }
    return NG_OK;
}

int files_op_expect(struct file_op *op, struct ng_str expected)
{
    if (expected.data == NULL || str_is(expected, op->record.before)) {
        return NG_OK;
    }
    return files_fail_revision(op->call, op->place.path, op->record.before);
}

/* ---- intent */

/* Runs on the committing thread. */
static void op_committed(void *user, int rc)
{
    struct file_op *op = user;
    op->commit_rc = rc;
    pool_resume(op->call->gateway->pool, &op->task);
}

/* Commits op->changes. NG_OK: on its way, and another thread may own the op by now; or, where
 * the thread waits, durable. */
static int op_write(struct file_op *op, size_t count)
{
    struct store *store = op->files->store;
    if (op->waited != NULL) {
        return store_write_wait(store, op->call, op->changes, count);
    }
    return store_write(store, op->call, op->changes, count, op_committed, op);
}

/* An earlier save was not completed: recover it first, then start again. */
static int op_recover_stale(struct file_op *op)
{
    bool answered = false;
    struct file_record *record = &op->record;
    int rc =
        files_recover(op->files, op->call, record->intents, record->stale, record->stale_text);
    if (rc == NG_OK && op->call->idempotency != NULL) {
        rc = files_replay_answer(op->call, &answered);
    }
    if (rc != NG_OK || answered) {
        return rc;
    }
    return files_op_again(op);
}

static int op_after_intent(struct file_op *op)
{
    bool answered = false;
    if (op->commit_rc != NG_OK) {
        files_op_enter(op, FILE_OP_PREPARING);
        if (op->relock) {
            return files_op_restart(op);
        }
        if (op->commit_rc != NG_ECONFLICT || op->record.stale.data == NULL) {
            return op->commit_rc;
        }
        /* The cache did not have this intent, the database has. */
        call_reset_result(op->call);
        return op_recover_stale(op);
    }
    int rc = files_check_cancelled(op->call);
    if (rc == NG_OK) {
        struct result before = op->call->staged;
        size_t count = 0;
        const struct ng_str *names = op_names(op, &count);
        rc = files_replay_check(op->files, op->call, names, count, &answered);
        if (rc == NG_OK && !answered) {
            op->call->staged = before;
        }
    }
    if (rc == NG_OK && !answered) {
        rc = files_op_save_versions(op);
    }
    return rc != NG_OK || answered ? rc : op_save(op);
}

int files_op_intent(struct file_op *op)
{
    const struct file_record *record = &op->record;
    if (record->space.data == NULL || (record->to.len > 0 && record->to_space.data == NULL)) {
        return call_no_memory(op->call);
    }
    int rc = op_defer(op);
    if (rc == NG_OK) {
        rc = files_check_cancelled(op->call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct result before = op->call->staged;
    rc = cluster_announce(op->call->gateway->cluster, op->call);
    if (rc == NG_OK) {
        rc = files_replay_built_on(op->files, op->call, &op->record);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = files_op_find_versions(op);
    if (rc != NG_OK) {
        return rc;
    }
    enum file_op_stage before_stage = op->stage;
    op->step = op_after_intent;
    files_op_enter(op, FILE_OP_INTENDED);
    op->record.stale = str_make(NULL, 0);
    size_t count = files_intent_changes(&op->record, op->changes);
    bool waits = op->waited != NULL;
    rc = op_write(op, count);
    if (rc == NG_OK && waits) {
        op->commit_rc = NG_OK;
        return op_after_intent(op);
    }
    if (rc == NG_OK) {
        return FILES_WAITING;
    }
    files_op_enter(op, before_stage);
    if (op->relock) {
        return files_op_restart(op);
    }
    if (op->record.stale.data != NULL) {
        op->call->staged = before;
        return op_recover_stale(op);
    }
    return rc;
}

static int op_abandoned(struct file_op *op)
{
    op->call->staged = op->kept;
    return op->kept_rc;
}

/* Failed after the save, or with unknown outcome: the intent stays, and recovery decides by the
 * content of the file. */
static void op_leave(struct file_op *op)
{
    files_op_enter(op, FILE_OP_ENDING);
    atomic_store(&op->files->unrecovered, true);
}

/* Failed before the save: drops the intent. */
static int op_abandon(struct file_op *op, int rc)
{
    files_op_enter(op, FILE_OP_ENDING);
    op->kept_rc = rc;
    op->kept = op->call->staged;
    op->step = op_abandoned;
    op->call->arena.failed = false; /* room for the dropping; `kept` has the failure */
    op->call->arena.oom = false;
    size_t count = files_intent_drop(&op->record, op->changes);
    bool waits = op->waited != NULL;
    int write_rc = op_write(op, count);
    /* If this fails, the next change of the file or the next start drops it. */
    return write_rc == NG_OK && !waits ? FILES_WAITING : op_abandoned(op);
}

/* ---- completion */

/* Copies a JSON reply out of its buffer, so that it survives a retry by the store. */
static int op_seal(struct file_op *op)
{
    struct call *call = op->call;
    if (call_reply_is_open(call) && call->reply_writer.complete &&
        call->reply_buf.rc == NG_OK) {
        struct ng_str text = arena_copy(&call->arena, buf_str(&call->reply_buf));
        if (text.data == NULL) {
            return call_no_memory(call);
        }
        call->staged.text = text;
        call->staged.is_json = true;
        call->staged.has_text = true;
        call->reply_writer.buf = NULL;
    }
    op->kept = call->staged;
    op->record.sealed = &op->kept;
    return NG_OK;
}

/* After a failure: the thread that polls shared documents recovers, else the next change of the
 * file or the next start. */
static void op_ended(void *user, int rc, struct ng_str message)
{
    struct file_op *op = user;
    (void)message;
    if (rc < NG_OK) {
        atomic_store(&op->files->unrecovered, true);
    }
}

static int op_record(struct file_op *op, const char *revision)
{
    struct call *call = op->call;
    call->arena.failed = false; /* a failure before the save would have ended the op there */
    call->arena.oom = false;
    call->staged.revision_kind = REVISION_WITHOUT; /* not that of the event document */
    if (revision[0] != '\0') { /* part of the op, which lives as long as the call */
        call->staged.revision_kind = REVISION_TEXT;
        call->staged.revision_text = ng_str_of(revision);
    }
    struct ng_change *changes = op->changes;
    size_t count = 0;
    int rc = op_seal(op);
    if (rc == NG_OK && op->record.group != NULL) {
        rc = files_group_complete(op->files, call, &op->record, &changes, &count);
        call->staged = rc == NG_OK ? op->kept : call->staged;
    }
    if (rc != NG_OK) {
        return rc;
    }
    count += files_completion_changes(&op->record, changes + count);
    return op->waited != NULL ? store_write_wait(op->files->store, call, changes, count)
                              : store_change(op->files->store, call, changes, count);
}

/* The mode of a new file is known only now. */
static void op_note_mode(struct file_op *op)
{
    struct stat st;
    int saved = op->put == FILE_PUT_RENAME && op->temp >= 0 ? op->temp : op->fd;
    if (saved >= 0 && fstat(saved, &st) == 0) {
        op->record.versions.saved.mode = (uint32_t)st.st_mode & 07777U;
    }
}

/* False if the folder of the root was replaced meanwhile: the file was saved elsewhere. */
static bool op_root_is_current(const struct file_op *op)
{
    const struct file_root *root = op->place.root;
    if (op->target.roots != NULL) {
        root = op->target.root;
    }
    return root == NULL || files_root_is_current(root);
}

/* The file has changed, so a full queue or lack of memory must not fail the call: retry. */
static int op_complete(struct file_op *op, const char *revision)
{
    struct call *call = op->call;
    if (!op_root_is_current(op)) {
        files_op_enter(op, FILE_OP_INTENDED);
        return files_op_again(op);
    }
    struct result before = call->staged;
    files_op_enter(op, FILE_OP_ENDING);
    if (op->waited != NULL) {
        op->waited->saved = true;
    } else {
        (void)call->pub.host->on_complete(&call->pub, op_ended, op);
    }
    int rc = op_record(op, revision);
    for (unsigned tries = 1;
         (rc == NG_EBUSY || rc == NG_EINTERNAL) && tries < FILES_QUEUE_TRIES; tries++) {
        struct timespec pause = {0, FILES_QUEUE_PAUSE_NS};
        (void)nanosleep(&pause, NULL);
        call->staged = op->record.sealed != NULL ? op->kept : before;
        rc = op_record(op, revision);
    }
    if (op->waited != NULL) {
        op_ended(op, rc, STR_NONE);
    }
    return rc;
}

static int op_save(struct file_op *op)
{
    enum file_saved saved = FILE_SAVED;
    int rc = NG_OK;
    if (op->record.group != NULL) {
        rc = files_group_save(op, &saved);
    } else if (op->record.kind == FILE_CHANGE_DELETE && op->present.type == NG_FILE_DIRECTORY) {
        rc = files_remove_folder(op, &saved);
    } else if (op->record.kind == FILE_CHANGE_UNDO_DELETE && op->record.after[0] == '\0') {
        rc = files_make_folder(op, &saved);
    } else if (files_record_removes(&op->record)) {
        rc = files_remove(op, &op->place, &saved);
    } else if (files_record_moves(&op->record)) {
        rc = files_rename(op, &saved);
    } else {
        rc = files_save(op, op->copy ? &op->target : &op->place, &saved);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (saved == FILE_AGAIN) {
        return files_op_again(op);
    }
    if (op->next.data != NULL && op->temp >= 0 && !op->copy) {
        files_keep_saved(op->files, op);
    }
    op_note_mode(op);
    return op_complete(op, op->record.after);
}
