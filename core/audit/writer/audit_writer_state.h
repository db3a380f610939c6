/* SPDX-License-Identifier: MIT */
/* audit_writer_state.h - of the files of the writer of the audit log only. */
#ifndef NOTEGATE_CORE_AUDIT_WRITER_STATE_H
#define NOTEGATE_CORE_AUDIT_WRITER_STATE_H

#include <stdatomic.h>

#include "audit_writer.h"
#include "core/audit/audit_log.h"
#include "core/audit/audit_values.h"
#include "core/base/lock.h"

#define WRITER_SENTENCE_MAX 512

/* Of a caller that waits for it. */
struct redaction {
    struct ng_str value;
    uint64_t count;
    int rc;
    bool done;
    struct buf *error;
};

/* Of a caller that asks until the queue of its first question is in the log. */
enum settling_state { SETTLING_NONE = 0, SETTLING_ASKED, SETTLING_TAKEN, SETTLING_DONE };

struct settling {
    enum settling_state state; /* TAKEN: the thread has taken the queue */
    bool has_mark;
    struct audit_mark mark;
    uint64_t entries;
    int rc;
};

/* A queued entry, with its documents and texts behind it. */
struct record {
    struct record *next;
    size_t at; /* the first document that is not in the log yet */
    struct audit_entry entry;
};

struct audit_writer {
    pthread_t thread;
    struct lock lock;
    pthread_cond_t wake;
    struct record *first, **last;
    bool stops;
    struct redaction *redaction; /* to do; NULL: none */
    struct settling settling;
    struct audit_prune keep;
    bool prunes; /* at the next checkpoint */
    pthread_cond_t redacted;
    struct audit_epochs *epochs; /* NULL: it does not follow a store */
    const atomic_uint_fast64_t *last_seq;
    char sentence[WRITER_SENTENCE_MAX]; /* of the present failure; "": none */
    atomic_size_t waiting;
    atomic_uint_fast64_t dropped;
    char *path, *name;
    /* Of the thread. */
    struct audit_log *log; /* NULL: not open yet */
    struct audit_names *names;
    struct record *taken; /* out of the queue, not in the log yet */
    struct buf text;      /* printed entries */
    bool has_news;        /* since the last checkpoint */
    bool is_marking;      /* `mark` holds when the calls of the epoch before have ended */
    struct audit_mark mark;
    int64_t folded_ns, told_ns, pruned_ns;
    int dir;
};

/* Opens the log, on the thread. NG_OK, or an error with the sentence. */
int audit_writer_open_log(struct audit_writer *writer, struct buf *error);
/* Does what a caller of audit_writer_redact() waits for. */
void audit_writer_end_redaction(struct audit_writer *writer);
/* The same of audit_writer_settle(), if it was asked when the queue was taken that has been
 * appended since, with this rc. */
void audit_writer_end_settling(struct audit_writer *writer, int rc);

#endif
