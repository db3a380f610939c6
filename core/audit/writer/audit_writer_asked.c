/* SPDX-License-Identifier: MIT */
/* audit_writer_asked.c - requests to the thread ng-audit: a redaction, a mark. */
#include "audit_writer_state.h"
#include "core/audit/audit_disk.h"
#include "core/base/log.h"

/* Between two appends: the names that entries show are durable then. */
void audit_writer_end_redaction(struct audit_writer *writer)
{
    lock_take(&writer->lock);
    struct redaction *redaction = writer->redaction;
    lock_release(&writer->lock);
    if (redaction == NULL) {
        return;
    }
    int rc = writer->log == NULL ? audit_writer_open_log(writer, redaction->error) : NG_OK;
    if (rc == NG_OK) {
        rc = audit_names_sync(writer->names, redaction->error);
    }
    if (rc == NG_OK) {
        rc = audit_values_redact(writer->dir, redaction->value, &redaction->count,
                                 redaction->error);
        audit_names_forget(writer->names);
    }
    lock_take(&writer->lock);
    redaction->rc = rc;
    redaction->done = true;
    writer->redaction = NULL;
    pthread_cond_broadcast(&writer->redacted);
    lock_release(&writer->lock);
}

int audit_writer_redact(struct audit_writer *writer, struct ng_str value, uint64_t *ret_count,
                        struct buf *error)
{
    struct redaction redaction = {.value = value, .error = error};
    lock_take(&writer->lock);
    while (writer->redaction != NULL) {
        lock_wait(&writer->redacted, &writer->lock);
    }
    writer->redaction = &redaction;
    pthread_cond_signal(&writer->wake);
    while (!redaction.done) {
        lock_wait(&writer->redacted, &writer->lock);
    }
    lock_release(&writer->lock);
    *ret_count = redaction.count;
    return redaction.rc;
}

/* Only this thread changes a settling that is TAKEN. */
void audit_writer_end_settling(struct audit_writer *writer, int rc)
{
    struct buf error;
    struct settling *settling = &writer->settling;
    lock_take(&writer->lock);
    bool is_taken = settling->state == SETTLING_TAKEN;
    lock_release(&writer->lock);
    if (!is_taken) {
        return;
    }
    buf_init(&error, WRITER_SENTENCE_MAX);
    if (rc == NG_OK && writer->log == NULL) {
        rc = audit_writer_open_log(writer, &error);
    }
    if (rc == NG_OK && settling->has_mark) {
        rc = audit_mark_write(writer->dir, &settling->mark, &error);
    }
    if (error.len > 0) {
        log_write(NG_LOG_WARNING, "audit", "%s", buf_cstr(&error));
    }
    buf_done(&error);
    lock_take(&writer->lock);
    settling->entries = rc == NG_OK ? audit_log_size(writer->log) : 0;
    settling->rc = rc == NG_OK ? NG_OK : NG_EUNAVAILABLE;
    settling->state = SETTLING_DONE;
    lock_release(&writer->lock);
}

int audit_writer_settle(struct audit_writer *writer, const struct audit_mark *mark,
                        uint64_t *ret_entries)
{
    struct settling *settling = &writer->settling;
    int rc = NG_PENDING;
    lock_take(&writer->lock);
    if (settling->state == SETTLING_NONE) {
        settling->has_mark = mark != NULL;
        if (mark != NULL) {
            settling->mark = *mark;
        }
        settling->state = SETTLING_ASKED;
        pthread_cond_signal(&writer->wake);
    } else if (settling->state == SETTLING_DONE) {
        rc = settling->rc;
        *ret_entries = settling->entries;
        settling->state = SETTLING_NONE;
    }
    lock_release(&writer->lock);
    return rc;
}
