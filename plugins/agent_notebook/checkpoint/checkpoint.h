/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h - checkpoints: the journal of a space and, of its notebook entries, id,
 * collection and version. How they are made and compared, and the job that restores one.
 *
 * A restore goes through a record in documents, one for each space. It is written before
 * anything changes and removed at the end. A gateway that finds a record without a live owner
 * finishes the restore.
 */
#ifndef NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_H
#define NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_H

#include "checkpoint_tools.h"
#include "core/base/arena.h"
#include "entry/entry.h"
#include "memory/memory.h"

#define CHECKPOINT_FORMAT "notegate-checkpoint-1"
/* Format of the journal member of a checkpoint whose journal is kept aside: see restore_aside
 * in struct ng_journal. */
#define CHECKPOINT_KEPT_FORMAT "notegate-journal-kept-1"
#define CHECKPOINT_LABEL_MAX 200

/* ---- checkpoint.c: making and reading them ---- */

/* Writes the present state of a space as the text of a checkpoint, 1,000 entries at a time.
 * Stops when the call is cancelled. */
int checkpoint_make(struct ng_call *call, struct ng_str space, struct ng_str id,
                    struct ng_str label, struct ng_str *ret_json);
/* The same, stored under a new id. */
int checkpoint_take(struct ng_call *call, struct ng_str space, struct ng_str label,
                    struct ng_str *ret_id, struct ng_str *ret_json);
/* A checkpoint that only says that the journal, however large, is kept aside under its id; the
 * restore does that. NG_ETOOLARGE: the journal in use cannot. */
int checkpoint_take_aside(struct ng_call *call, struct ng_str space, struct ng_str label,
                          struct ng_str *ret_id);
/* checkpoint_take for a call with an idempotency key: a retry finds the checkpoint of the first
 * attempt. */
int checkpoint_take_once(struct ng_call *call, struct ng_str space, struct ng_str label,
                         struct ng_str *ret_id, struct ng_str *ret_json);
/* Fails with NG_ENOTFOUND, naming the id, with the nearest one as a hint. */
int checkpoint_not_found(struct ng_call *call, struct ng_str space, struct ng_str id);
/* Reads a stored checkpoint. NG_ENOTFOUND as checkpoint_not_found. */
int checkpoint_get(struct ng_call *call, struct ng_str space, struct ng_str id,
                   struct ng_str *ret_json);

/* An entry named by a checkpoint. */
struct checkpoint_entry {
    unsigned collection;
    struct ng_str id;
    uint64_t version;
};

/* A checkpoint after reading, its entries sorted. */
struct checkpoint_view {
    struct ng_str text; /* of the journal; borrowed from the text of the checkpoint */
    const struct ng_value *journal; /* parsed; only after checkpoint_read_journal */
    bool aside;                     /* the journal is kept aside, not in the checkpoint */
    struct checkpoint_entry *entries;
    size_t count;
};

int checkpoint_read(struct ng_call *call, struct ng_str json, struct checkpoint_view *ret);
/* Parses the journal too. It may be too large for a call. */
int checkpoint_read_journal(struct ng_call *call, struct checkpoint_view *view);
/* <0, 0, >0 by collection and id. */
int checkpoint_order(const struct checkpoint_entry *one, const struct checkpoint_entry *other);

/* ---- checkpoint_text.c: what lies where in the text ---- */

/* The text of a member of an object; {NULL, 0}: absent. */
struct ng_str checkpoint_text_member(struct ng_str json, const char *name);
/* How many elements an array has. */
uint64_t checkpoint_text_count(struct ng_str array);

/* ---- checkpoint_plan.c: what a restore has to do ---- */

enum checkpoint_fate {
    CHECKPOINT_MOVED = 1,   /* at another version than in the checkpoint */
    CHECKPOINT_DELETED = 2, /* deleted since the checkpoint */
    CHECKPOINT_MADE = 3     /* created since the checkpoint: never removed */
};

enum checkpoint_outcome {
    CHECKPOINT_LEFT = 0, /* reported only */
    CHECKPOINT_RESTORED = 1,
    CHECKPOINT_BUSY = 2, /* changed again since the restore began: not restored */
    CHECKPOINT_GONE = 3  /* the version is no longer kept */
};

struct checkpoint_step {
    struct checkpoint_entry
        entry;        /* version: that of the checkpoint; for MADE the present one */
    uint64_t present; /* 0: deleted */
    enum checkpoint_fate fate;
    enum checkpoint_outcome outcome;
    uint64_t made; /* the version made by the restore */
};

/* On the heap, as a restore goes through many calls. */
struct checkpoint_plan {
    struct checkpoint_step *steps;
    size_t count, cap;
    struct arena ids;
};

int checkpoint_plan_make(struct ng_call *call, const struct checkpoint_view *then,
                         const struct checkpoint_view *now, struct checkpoint_plan *ret);
void checkpoint_plan_free(struct checkpoint_plan *plan);
/* How the plan is reported: as a difference, or with the outcome for each entry. */
enum checkpoint_tell { CHECKPOINT_TOLD = 0, CHECKPOINT_KEPT = 1, CHECKPOINT_BACK = 2 };
/* Writes "notebooks": {...} into an answer. */
void checkpoint_plan_write(struct ng_call *call, struct ng_writer *writer,
                           const struct checkpoint_plan *plan, enum checkpoint_tell tell);

/* ---- checkpoint_intent.c: the record of a restore ---- */

#define CHECKPOINT_RESTORES "agent_restores"
/* The records of all spaces are in one space, so that one query finds them; the id is the
 * restored space. */
#define CHECKPOINT_RESTORES_SPACE "shared"
/* Records of finished restores of calls with an idempotency key; the id is the token of the
 * call. */
#define CHECKPOINT_RESTORES_DONE "done"
/* How long such a record is kept. */
#define CHECKPOINT_ONCE_MS ((int64_t)24 * 3600 * 1000)
/* The lease of a restore: each of its steps writes the record. If the record does not change
 * for so long, by the observer's monotonic clock, another gateway may take the restore over. */
#define CHECKPOINT_LEASE_MS 15000

enum checkpoint_phase {
    CHECKPOINT_BEGUN = 1,    /* nothing is changed yet */
    CHECKPOINT_JOURNAL = 2,  /* the present state is saved; the journal is being restored */
    CHECKPOINT_ENTRIES = 3,  /* the journal is restored; entries are being restored */
    CHECKPOINT_FINISHED = 4, /* the record is being removed */
};

struct checkpoint_intent {
    struct ng_str space;
    struct ng_str checkpoint, previous; /* ids; previous from JOURNAL on */
    struct ng_str owner; /* the host and data directory of the gateway that works on it */
    struct ng_str token; /* of one run of the restore */
    struct ng_str once;  /* the idempotency token of the call, if it has one */
    enum checkpoint_phase phase;
    bool notebooks;
    int64_t lease_ms; /* the length of the lease; of a finished restore: Unix time of its end */
    uint64_t revision; /* of the record, in a list */
};

/* The change that writes `intent` into the record. Fails with NG_EBUSY if another run owns the
 * record. `intent` is borrowed until the change is done. */
struct ng_change checkpoint_intent_change(struct ng_call *call,
                                          const struct checkpoint_intent *intent);
int checkpoint_intent_begin(struct ng_call *call, const struct checkpoint_intent *intent);
/* Takes over a record whose run is dead. */
int checkpoint_intent_take(struct ng_call *call, struct checkpoint_intent *intent,
                           struct ng_str token, struct ng_str owner);
/* Written together with the removal of the record: the restore is done. */
struct ng_change checkpoint_done_change(struct ng_call *call,
                                        const struct checkpoint_intent *intent);
/* Has an earlier attempt of the call with `ret->once` finished? Then fills in its members. */
int checkpoint_done_find(struct ng_call *call, struct checkpoint_intent *ret, bool *ret_done);
/* Fails with NG_EBUSY if a running restore of the space needs this checkpoint. */
int checkpoint_intent_needs(struct ng_call *call, struct ng_str space, struct ng_str id);
/* All records, in call memory. */
int checkpoint_intent_list(struct ng_call *call, struct checkpoint_intent **ret,
                           size_t *ret_count);

/* ---- checkpoint_restore.c: the job ---- */

/* Continues the restore in calls of its own, so that their memory does not add up. With
 * `answer` the call is answered at the end: NG_PENDING. */
int checkpoint_job_start(struct agent_notebook *self, struct ng_call *call,
                         const struct checkpoint_intent *intent, bool answer);

/* ---- checkpoint_recover.c: runs of this process, and interrupted ones ---- */

/* Finds restores without a live owner and finishes them, in a call of its own. */
int checkpoint_recover_soon(struct agent_notebook *self, struct ng_call *call);
struct ng_str checkpoint_owner(const struct checkpoint_state *state);
/* Registers the token of a run of this process / removes it. */
int checkpoint_live_add(struct checkpoint_state *state, struct ng_call *call,
                        struct ng_str token);
void checkpoint_live_remove(struct checkpoint_state *state, struct ng_str token);

#endif
