/* SPDX-License-Identifier: MIT */
/* audit_writer.c - the queue of entries, and the thread ng-audit. */
#include "audit_writer_state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/audit/audit_disk.h"
#include "core/audit/audit_pending.h"
#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"

/* Entries that are printed and appended at once, with one sync: as many as one write takes. */
#define WRITER_CHUNK ((size_t)2048)
#define WRITER_CHUNK_BYTES (AUDIT_BATCH_MAX - WRITER_CHUNK * AUDIT_PENDING_HEAD)

/* ---- the queue ---- */

/* NULL: out of memory. */
static struct record *record_copy(const struct audit_entry *entry)
{
    struct record *record = alloc_zeroed(1, sizeof(*record) + audit_entry_bytes(entry));
    if (record != NULL) {
        audit_entry_copy(entry, record + 1, &record->entry);
    }
    return record;
}

static void writer_drop(struct audit_writer *writer)
{
    if (atomic_fetch_add(&writer->dropped, 1) == 0) {
        log_write(NG_LOG_ERROR, "audit",
                  "entries of the audit log are dropped: memory is missing, or too many wait "
                  "for the disk");
    }
}

void audit_writer_put(struct audit_writer *writer, const struct audit_entry *entry)
{
    if (entry->doc_count == 0 && audit_writer_is_full(writer)) {
        writer_drop(writer);
        return;
    }
    struct record *record = record_copy(entry);
    if (record == NULL) {
        writer_drop(writer);
        return;
    }
    (void)atomic_fetch_add(&writer->waiting, 1);
    lock_take(&writer->lock);
    bool was_empty = writer->first == NULL;
    *writer->last = record;
    writer->last = &record->next;
    if (was_empty) {
        pthread_cond_signal(&writer->wake);
    }
    lock_release(&writer->lock);
}

bool audit_writer_is_full(const struct audit_writer *writer)
{
    return atomic_load(&writer->waiting) >= AUDIT_WAITING_MAX;
}

size_t audit_writer_waiting(const struct audit_writer *writer)
{
    return atomic_load(&writer->waiting);
}

uint64_t audit_writer_dropped(const struct audit_writer *writer)
{
    return atomic_load(&writer->dropped);
}

bool audit_writer_is_failing(struct audit_writer *writer, struct buf *sentence)
{
    lock_take(&writer->lock);
    bool failing = writer->sentence[0] != '\0';
    (void)buf_add_c(sentence, writer->sentence);
    lock_release(&writer->lock);
    return failing;
}

/* ---- the thread ---- */

static void writer_close_log(struct audit_writer *writer)
{
    audit_names_close(writer->names);
    audit_log_close(writer->log);
    if (writer->dir >= 0) {
        (void)close(writer->dir);
    }
    writer->names = NULL;
    writer->log = NULL;
    writer->dir = -1;
}

int audit_writer_open_log(struct audit_writer *writer, struct buf *error)
{
    int rc = audit_log_open(writer->path, ng_str_of(writer->name), &writer->log, error);
    if (rc == NG_OK && audit_log_size(writer->log) == 0) {
        rc = audit_log_fold(writer->log, error); /* a log without a checkpoint was cut */
    }
    if (rc == NG_OK) {
        rc = audit_disk_open(writer->path, false, &writer->dir, error);
    }
    if (rc == NG_OK) {
        writer->has_news = audit_log_size(writer->log) > audit_log_checkpoint(writer->log).size;
        writer->names = audit_names_open(writer->dir);
        if (writer->names == NULL) {
            (void)buf_add_c(error, "the audit log: out of memory");
            rc = NG_EINTERNAL;
        }
    }
    if (rc != NG_OK) {
        writer_close_log(writer);
    }
    return rc;
}

/* Tells a failure once, and its end. */
static void writer_note(struct audit_writer *writer, int rc, struct buf *error)
{
    lock_take(&writer->lock);
    bool was_failing = writer->sentence[0] != '\0';
    (void)snprintf(writer->sentence, sizeof(writer->sentence), "%s",
                   rc == NG_OK ? "" : buf_cstr(error));
    lock_release(&writer->lock);
    if (rc != NG_OK && !was_failing) {
        log_write(NG_LOG_ERROR, "audit", "%s; entries wait, and are written later",
                  buf_cstr(error));
    } else if (rc == NG_OK && was_failing) {
        log_write(NG_LOG_INFO, "audit", "the audit log is written again");
    }
}

/* Prints one entry. If too many names wait for the disk, they become durable first. */
static int writer_print_entry(struct audit_writer *writer, const struct record *record,
                              size_t at, size_t *ret_next, struct buf *error)
{
    size_t begin = writer->text.len;
    size_t told = error->len;
    int rc =
        audit_entry_write(&record->entry, at, writer->names, &writer->text, ret_next, error);
    if (rc != NG_EBUSY) {
        return rc;
    }
    buf_cut(&writer->text, begin);
    buf_cut(error, told);
    rc = audit_names_sync(writer->names, error);
    return rc == NG_OK ? audit_entry_write(&record->entry, at, writer->names, &writer->text,
                                           ret_next, error)
                       : rc;
}

/* Prints up to WRITER_CHUNK entries of the taken records. ret_ends[i]: where entry i ends in
 * the text; ret_next[i]: the first document of its record that comes after it. */
static int writer_print(struct audit_writer *writer, size_t ret_ends[WRITER_CHUNK],
                        size_t ret_next[WRITER_CHUNK], size_t *ret_count, struct buf *error)
{
    const struct record *record = writer->taken;
    size_t at = record->at;
    *ret_count = 0;
    buf_clear(&writer->text);
    while (record != NULL && *ret_count < WRITER_CHUNK &&
           WRITER_CHUNK_BYTES - writer->text.len >= AUDIT_ENTRY_MAX) {
        size_t next = 0;
        int rc = writer_print_entry(writer, record, at, &next, error);
        if (rc != NG_OK) {
            return rc;
        }
        ret_ends[*ret_count] = writer->text.len;
        ret_next[*ret_count] = next;
        ++*ret_count;
        at = next;
        if (next == record->entry.doc_count) {
            record = record->next;
            at = record != NULL ? record->at : 0;
        }
    }
    return NG_OK;
}

/* These entries are durable. */
static void writer_remove(struct audit_writer *writer, const size_t next[WRITER_CHUNK],
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct record *record = writer->taken;
        record->at = next[i];
        if (record->at == record->entry.doc_count) {
            writer->taken = record->next;
            free(record);
            (void)atomic_fetch_sub(&writer->waiting, 1);
        }
    }
}

static int writer_append_chunk(struct audit_writer *writer, struct buf *error)
{
    struct ng_str entries[WRITER_CHUNK];
    size_t ends[WRITER_CHUNK];
    size_t next[WRITER_CHUNK] = {0};
    size_t count = 0;
    size_t done = 0;
    int rc = writer_print(writer, ends, next, &count, error);
    if (rc == NG_OK) { /* before the entries that show them */
        rc = audit_names_sync(writer->names, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        size_t begin = i > 0 ? ends[i - 1] : 0;
        entries[i] = str_make(writer->text.data + begin, ends[i] - begin);
    }
    rc = audit_log_append(writer->log, entries, count, &done, error);
    writer_remove(writer, next, done);
    writer->has_news = writer->has_news || done > 0;
    return rc;
}

/* One checkpoint an hour is told, so that it is kept where this gateway cannot change it. */
static void writer_tell(struct audit_writer *writer, int64_t now_ns)
{
    struct buf note;
    if (writer->told_ns != 0 && now_ns - writer->told_ns < (int64_t)AUDIT_TELL_MS * 1000000) {
        return;
    }
    buf_init(&note, NOTE_BYTES_MAX);
    if (audit_disk_read(writer->dir, AUDIT_CHECKPOINT_FILE, &note) == NG_OK) {
        log_write(NG_LOG_INFO, "audit", "checkpoint: %s", buf_cstr(&note));
        writer->told_ns = now_ns;
    }
    buf_done(&note);
}

/* Behind a checkpoint, once an hour or when other limits hold. */
static int writer_prune(struct audit_writer *writer, int64_t now_ns, struct buf *error)
{
    lock_take(&writer->lock);
    struct audit_prune keep = writer->keep;
    bool due =
        writer->prunes || now_ns - writer->pruned_ns >= (int64_t)AUDIT_PRUNE_MS * 1000000;
    writer->prunes = false;
    lock_release(&writer->lock);
    if (!due) {
        return NG_OK;
    }
    uint64_t first;
    const struct audit_tiles tiles = {writer->dir, audit_log_checkpoint(writer->log).size,
                                      error};
    writer->pruned_ns = now_ns;
    int rc = audit_tiles_prune(&tiles, &keep, clock_unix_ms(), &first);
    return rc == NG_OK && first > 0 ? audit_values_prune(&tiles, first) : rc;
}

/* ---- the mark ---- */

/* The log's size, then the store's newest change: in this order, so that the entries of later
 * changes come later. */
static void writer_take_mark(struct audit_writer *writer)
{
    writer->mark.entries = audit_log_size(writer->log);
    writer->mark.seq = atomic_load(writer->last_seq);
}

static void writer_begin_mark(struct audit_writer *writer)
{
    if (writer->epochs != NULL && !writer->is_marking) {
        writer_take_mark(writer);
        audit_epochs_begin(writer->epochs);
        writer->is_marking = true;
    }
}

/* A log that begins now has no entries of what was changed before. */
static int writer_first_mark(struct audit_writer *writer, struct buf *error)
{
    struct audit_mark known;
    int rc = audit_mark_read(writer->dir, &known, error);
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    writer_take_mark(writer);
    return audit_mark_write(writer->dir, &writer->mark, error);
}

/* Everything that was taken is in the log. is_over: the calls before the mark have ended, and
 * had left their entries by then. */
static int writer_end_mark(struct audit_writer *writer, bool is_over, struct buf *error)
{
    if (!is_over || !writer->is_marking) {
        return NG_OK;
    }
    int rc = audit_mark_write(writer->dir, &writer->mark, error);
    writer->is_marking = rc != NG_OK;
    return rc;
}

/* ---- the work ---- */

/* Appends all that was taken, and folds if that is due. */
static int writer_work(struct audit_writer *writer, bool fold, bool is_over)
{
    struct buf error;
    int rc = NG_OK;
    buf_init(&error, WRITER_SENTENCE_MAX);
    if (writer->log == NULL && writer->taken != NULL) {
        rc = audit_writer_open_log(writer, &error);
        if (rc == NG_OK && writer->last_seq != NULL) {
            rc = writer_first_mark(writer, &error);
        }
    }
    while (rc == NG_OK && writer->taken != NULL) {
        rc = writer_append_chunk(writer, &error);
    }
    int64_t now_ns = clock_monotonic_ns();
    if (rc == NG_OK) {
        rc = writer_end_mark(writer, is_over, &error);
    }
    bool due = now_ns - writer->folded_ns >= (int64_t)AUDIT_CHECKPOINT_MS * 1000000;
    if (rc == NG_OK && writer->has_news && (due || fold)) {
        rc = audit_log_fold(writer->log, &error);
        writer->folded_ns = now_ns;
        writer->has_news = rc != NG_OK;
        if (rc == NG_OK) {
            rc = writer_prune(writer, now_ns, &error);
        }
        if (rc == NG_OK) {
            writer_begin_mark(writer);
            writer_tell(writer, now_ns);
        }
    }
    writer_note(writer, rc, &error);
    buf_done(&error);
    return rc;
}

/* With the lock held. Takes the queue behind what was taken before. */
static void writer_take(struct audit_writer *writer)
{
    struct record **end = &writer->taken;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = writer->first;
    writer->first = NULL;
    writer->last = &writer->first;
}

/* With the lock held. */
static bool writer_is_asked(const struct audit_writer *writer)
{
    return writer->redaction != NULL || writer->settling.state == SETTLING_ASKED;
}

/* With the lock held: waits for entries, a due checkpoint, or the stop. After a failure, and
 * between two appends, it waits in any case. */
static void writer_wait(struct audit_writer *writer, int rc)
{
    struct timespec until = clock_deadline(rc != NG_OK ? AUDIT_RETRY_MS : AUDIT_APPEND_MS);
    int waited = 0;
    while (!writer->stops && waited == 0) {
        waited = lock_wait_until(&writer->wake, &writer->lock, &until);
    }
    if (rc != NG_OK) {
        return;
    }
    if (!writer->has_news) {
        while (!writer->stops && writer->first == NULL && !writer_is_asked(writer)) {
            lock_wait(&writer->wake, &writer->lock);
        }
        return;
    }
    until = clock_deadline(AUDIT_CHECKPOINT_MS -
                           (clock_monotonic_ns() - writer->folded_ns) / 1000000);
    waited = 0;
    while (!writer->stops && writer->first == NULL && !writer_is_asked(writer) && waited == 0) {
        waited = lock_wait_until(&writer->wake, &writer->lock, &until);
    }
}

/* No call is left. */
static void writer_last_mark(struct audit_writer *writer, int rc)
{
    struct buf error;
    if (rc != NG_OK || writer->log == NULL || writer->epochs == NULL) {
        return;
    }
    buf_init(&error, WRITER_SENTENCE_MAX);
    writer_take_mark(writer);
    if (audit_mark_write(writer->dir, &writer->mark, &error) != NG_OK) {
        log_write(NG_LOG_WARNING, "audit", "%s",
                  buf_cstr(&error)); /* the next start reads more */
    }
    buf_done(&error);
}

static void *writer_run(void *user)
{
    struct audit_writer *writer = user;
    int rc = NG_OK;
    bool stops = false;
    bool is_over = false;
    (void)pthread_setname_np(pthread_self(), "ng-audit");
    while (!stops) {
        lock_take(&writer->lock);
        writer_wait(writer, rc);
        is_over = writer->epochs != NULL && audit_epochs_are_over(writer->epochs);
        writer_take(writer);
        if (writer->settling.state == SETTLING_ASKED) {
            writer->settling.state = SETTLING_TAKEN;
        }
        stops = writer->stops;
        lock_release(&writer->lock);
        rc = writer_work(writer, stops, is_over);
        audit_writer_end_settling(writer, rc);
        audit_writer_end_redaction(writer);
    }
    writer_last_mark(writer, rc);
    return NULL;
}

/* ---- beginning and end ---- */

static void writer_free(struct audit_writer *writer)
{
    while (writer->taken != NULL) {
        struct record *record = writer->taken;
        writer->taken = record->next;
        free(record);
    }
    writer_close_log(writer);
    buf_done(&writer->text);
    pthread_cond_destroy(&writer->wake);
    pthread_cond_destroy(&writer->redacted);
    lock_done(&writer->lock);
    free(writer->path);
    free(writer->name);
    free(writer);
}

int audit_writer_open(const char *path, struct ng_str name, enum audit_begin begin,
                      struct audit_writer **ret, struct buf *error)
{
    struct audit_writer *writer = alloc_zeroed(1, sizeof(*writer));
    if (writer == NULL) {
        (void)buf_add_c(error, "the audit log: out of memory");
        return NG_EINTERNAL;
    }
    writer->dir = -1;
    writer->last = &writer->first;
    writer->folded_ns = clock_monotonic_ns();
    buf_init(&writer->text, WRITER_CHUNK_BYTES);
    lock_init(&writer->lock, LOCK_AUDIT_WRITER);
    lock_cond_init(&writer->wake);
    lock_cond_init(&writer->redacted);
    writer->path = str_dup(ng_str_of(path));
    writer->name = str_dup(name);
    int rc = writer->path != NULL && writer->name != NULL ? NG_OK : NG_EINTERNAL;
    if (rc == NG_OK && begin == AUDIT_AT_ONCE) {
        rc = audit_writer_open_log(writer, error);
    }
    if (rc == NG_OK && pthread_create(&writer->thread, NULL, writer_run, writer) != 0) {
        rc = NG_EINTERNAL;
    }
    if (rc != NG_OK) {
        if (error->len == 0) {
            (void)buf_add_c(error, "the thread of the audit log cannot be started");
        }
        writer_free(writer);
        return rc;
    }
    *ret = writer;
    return NG_OK;
}

void audit_writer_keep(struct audit_writer *writer, int64_t keep_ms, uint64_t max_bytes)
{
    lock_take(&writer->lock);
    writer->keep = (struct audit_prune){keep_ms, max_bytes};
    writer->prunes = true;
    lock_release(&writer->lock);
}

void audit_writer_follow(struct audit_writer *writer, struct audit_epochs *epochs,
                         const atomic_uint_fast64_t *last_seq)
{
    lock_take(&writer->lock);
    writer->epochs = epochs;
    writer->last_seq = last_seq;
    lock_release(&writer->lock);
}

void audit_writer_close(struct audit_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    lock_take(&writer->lock);
    writer->stops = true;
    pthread_cond_broadcast(&writer->wake);
    lock_release(&writer->lock);
    (void)pthread_join(writer->thread, NULL);
    size_t waiting = atomic_load(&writer->waiting);
    if (waiting > 0) {
        log_write(NG_LOG_ERROR, "audit", "%zu entries of the audit log could not be written",
                  waiting);
    }
    writer_free(writer);
}
