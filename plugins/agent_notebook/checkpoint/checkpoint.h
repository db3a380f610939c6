/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h - checkpoints: the journal of a space and, of its notebook entries, id,
 * collection and version. What is in one, what differs between two, and the job that puts one
 * back.
 *
 * A restore goes through a record in documents, one for each space, written before anything is
 * changed and gone when all of it is done. Whoever finds one that nobody works on finishes it.
 */
#ifndef NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_H
#define NOTEGATE_AGENT_NOTEBOOK_CHECKPOINT_H

#include "checkpoint_tools.h"
#include "entry/entry.h"
#include "memory/memory.h"

#define CHECKPOINT_FORMAT "notegate-checkpoint-1"
/* The journal of a checkpoint that names a kept one: see restore_aside in struct ng_journal. */
#define CHECKPOINT_KEPT_FORMAT "notegate-journal-kept-1"
#define CHECKPOINT_LABEL_MAX 200

/* ---- checkpoint.c: making and reading them ---- */

/* The present of a space as the text of a checkpoint. A row of 1,000 entries at a time; stops
 * where the call is cancelled. */
int checkpoint_make(struct ng_call *call, struct ng_str space, struct ng_str id,
                    struct ng_str label, struct ng_str *ret_json);
/* The same, kept under a new id. */
int checkpoint_take(struct ng_call *call, struct ng_str space, struct ng_str label,
                    struct ng_str *ret_id, struct ng_str *ret_json);
/* One that says only that the journal, however large, is kept under its id, which the restore
 * is to do. NG_ETOOLARGE: the journal in use cannot. */
int checkpoint_take_aside(struct ng_call *call, struct ng_str space, struct ng_str label,
                          struct ng_str *ret_id);
/* The same as checkpoint_take for a call that may have done it before, where it came with an
 * idempotency key. */
int checkpoint_take_once(struct ng_call *call, struct ng_str space, struct ng_str label,
                         struct ng_str *ret_id, struct ng_str *ret_json);
/* Fails with NG_ENOTFOUND, a message that names it and a hint at the nearest. */
int checkpoint_not_found(struct ng_call *call, struct ng_str space, struct ng_str id);
/* One that is kept. NG_ENOTFOUND as checkpoint_not_found. */
int checkpoint_get(struct ng_call *call, struct ng_str space, struct ng_str id,
                   struct ng_str *ret_json);

/* An entry that a checkpoint names. */
struct checkpoint_entry {
    unsigned collection;
    struct ng_str id;
    uint64_t version;
};

/* A checkpoint that was read; its entries sorted. */
struct checkpoint_view {
    struct ng_str text;             /* of the journal in it, lent from the checkpoint's */
    const struct ng_value *journal; /* its tree: only after checkpoint_read_journal */
    bool aside;                     /* the journal is kept beside, and not in it */
    struct checkpoint_entry *entries;
    size_t count;
};

int checkpoint_read(struct ng_call *call, struct ng_str json, struct checkpoint_view *ret);
/* The journal's tree too, which may be too large for a call. */
int checkpoint_read_journal(struct ng_call *call, struct checkpoint_view *view);
/* <0, 0, >0 by collection and id. */
int checkpoint_order(const struct checkpoint_entry *one, const struct checkpoint_entry *other);

/* ---- checkpoint_text.c: what lies where in the text ---- */

/* The text of a member of an object; {NULL, 0}: there is none. */
struct ng_str checkpoint_text_member(struct ng_str json, const char *name);
/* How many elements an array has. */
uint64_t checkpoint_text_count(struct ng_str array);

/* ---- checkpoint_plan.c: what a restore has to do ---- */

enum checkpoint_fate {
    CHECKPOINT_MOVED = 1,   /* at another version than the checkpoint says */
    CHECKPOINT_DELETED = 2, /* deleted since */
    CHECKPOINT_MADE = 3     /* made since: kept in every case */
};

enum checkpoint_outcome {
    CHECKPOINT_LEFT = 0, /* reported only */
    CHECKPOINT_RESTORED = 1,
    CHECKPOINT_BUSY = 2, /* changed again since the restore began: left */
    CHECKPOINT_GONE = 3  /* the version is not kept any more */
};

struct checkpoint_step {
    struct checkpoint_entry entry; /* version: the checkpoint's; of MADE the present one */
    uint64_t present;              /* 0: deleted */
    enum checkpoint_fate fate;
    enum checkpoint_outcome outcome;
    uint64_t made; /* the version that the restore made */
};

/* In memory of its own, since a restore goes through many calls. */
struct checkpoint_plan {
    struct checkpoint_step *steps;
    size_t count;
    char *texts; /* of the ids */
};

int checkpoint_plan_make(struct ng_call *call, const struct checkpoint_view *then,
                         const struct checkpoint_view *now, struct checkpoint_plan *ret);
void checkpoint_plan_free(struct checkpoint_plan *plan);
/* How the plan is told: as a difference, or with what became of each entry. */
enum checkpoint_tell { CHECKPOINT_TOLD = 0, CHECKPOINT_KEPT = 1, CHECKPOINT_BACK = 2 };
/* "notebooks": {...} of an answer. */
void checkpoint_plan_write(struct ng_call *call, struct ng_writer *writer,
                           const struct checkpoint_plan *plan, enum checkpoint_tell tell);

/* ---- checkpoint_intent.c: the record of a restore ---- */

#define CHECKPOINT_RESTORES "agent_restores"
/* Records of all spaces lie in one, so that one query finds them: the id is the space. */
#define CHECKPOINT_RESTORES_SPACE "shared"
/* Those that calls with an idempotency key have finished: the id is what names the call. */
#define CHECKPOINT_RESTORES_DONE "done"
/* For so long a key means the call that it came with first. */
#define CHECKPOINT_ONCE_MS ((int64_t)24 * 3600 * 1000)
/* A restore that has not moved for so long is another gateway's to finish. */
#define CHECKPOINT_LEASE_MS 15000

enum checkpoint_phase {
    CHECKPOINT_BEGUN = 1,    /* nothing is changed yet */
    CHECKPOINT_JOURNAL = 2,  /* the present is kept; the journal goes back */
    CHECKPOINT_ENTRIES = 3,  /* the journal is back; entries go back */
    CHECKPOINT_FINISHED = 4, /* the record goes */
};

struct checkpoint_intent {
    struct ng_str space;
    struct ng_str checkpoint, previous; /* ids; previous from JOURNAL on */
    struct ng_str owner;                /* the data directory on its machine that works on it */
    struct ng_str token;                /* of one run of it */
    struct ng_str once;                 /* names the call, if it came with a key */
    enum checkpoint_phase phase;
    bool notebooks;
    int64_t lease_ms; /* until when */
};

/* The change that brings the record to what `intent` says; fails with NG_EBUSY where another
 * run has it. `intent` is lent until the change is done. first: there must be none that is
 * alive. */
struct ng_change checkpoint_intent_change(struct ng_call *call,
                                          const struct checkpoint_intent *intent);
int checkpoint_intent_begin(struct ng_call *call, const struct checkpoint_intent *intent);
/* Takes one over that its run has left. */
int checkpoint_intent_take(struct ng_call *call, struct checkpoint_intent *intent,
                           struct ng_str token, struct ng_str owner);
/* Beside the end of the record: the restore is done. */
struct ng_change checkpoint_done_change(struct ng_call *call,
                                        const struct checkpoint_intent *intent);
/* Was the call that `ret->once` names done before? Then its members are filled in. */
int checkpoint_done_find(struct ng_call *call, struct checkpoint_intent *ret, bool *ret_done);
/* Fails with NG_EBUSY where a restore of the space needs this checkpoint. */
int checkpoint_intent_needs(struct ng_call *call, struct ng_str space, struct ng_str id);
/* The records there are, in call memory. */
int checkpoint_intent_list(struct ng_call *call, struct checkpoint_intent **ret,
                           size_t *ret_count);

/* ---- checkpoint_restore.c: the job ---- */

/* Goes on with what `intent` says in calls of its own, whose memory does not add up. With
 * `answer` the call is answered at its end: NG_PENDING. */
int checkpoint_job_start(struct agent_notebook *self, struct ng_call *call,
                         const struct checkpoint_intent *intent, bool answer);

/* ---- checkpoint_recover.c: runs of this process, and those that were cut off ---- */

/* Looks for restores that nobody works on, and finishes them, in a call of its own. */
int checkpoint_recover_soon(struct agent_notebook *self, struct ng_call *call);
struct ng_str checkpoint_owner(const struct checkpoint_state *state);
/* This process works on the run with this token / does no more. */
int checkpoint_live_add(struct checkpoint_state *state, struct ng_call *call,
                        struct ng_str token);
void checkpoint_live_remove(struct checkpoint_state *state, struct ng_str token);

#endif
