/* SPDX-License-Identifier: MIT */
/* checkpoint_recover.c - recovery of interrupted restores: found at the start, or when /readyz
 * is asked, and finished before the gateway is ready. */
#include "checkpoint.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINT_LIVE_MAX 64
#define CHECKPOINT_HOST_MAX 256

/* A record that is not of this process, as it was seen. */
struct checkpoint_seen {
    char token[UUID_SIZE];
    uint64_t revision;
    int64_t since_ns; /* it has had this revision for so long */
};

struct checkpoint_state {
    char *owner; /* MACHINE:DATA_DIR; one process at a time has it */
    struct lock lock;
    /* Under the lock: */
    char live[CHECKPOINT_LIVE_MAX][UUID_SIZE]; /* tokens of live runs; "": free */
    struct checkpoint_seen seen[CHECKPOINT_LIVE_MAX];
    bool checked; /* all restores were finished once since the start */
};

struct ng_str checkpoint_owner(const struct checkpoint_state *state)
{
    return ng_str_of(state->owner);
}

/* ---- runs of this process ---- */

static char *checkpoint_live_find(struct checkpoint_state *state, struct ng_str token)
{
    for (size_t i = 0; i < CHECKPOINT_LIVE_MAX; i++) {
        if (str_is(token, state->live[i])) {
            return state->live[i];
        }
    }
    return NULL;
}

int checkpoint_live_add(struct checkpoint_state *state, struct ng_call *call,
                        struct ng_str token)
{
    lock_take(&state->lock);
    char *place = checkpoint_live_find(state, ng_str_of(""));
    if (place != NULL && token.len == UUID_SIZE - 1) {
        memcpy(place, token.data, token.len);
        place[token.len] = '\0';
    }
    lock_release(&state->lock);
    if (place != NULL) {
        return NG_OK;
    }
    return ng_fail(call, NG_EBUSY, "%d restores are under way; try again later",
                   CHECKPOINT_LIVE_MAX);
}

void checkpoint_live_remove(struct checkpoint_state *state, struct ng_str token)
{
    lock_take(&state->lock);
    char *place = checkpoint_live_find(state, token);
    if (place != NULL) {
        place[0] = '\0';
    }
    lock_release(&state->lock);
}

static bool checkpoint_is_live(struct checkpoint_state *state, struct ng_str token)
{
    lock_take(&state->lock);
    bool live = checkpoint_live_find(state, token) != NULL;
    lock_release(&state->lock);
    return live;
}

/* ---- finishing interrupted restores ---- */

/* How long the record has not changed, as this process has seen it. */
static int64_t checkpoint_silent_ns(struct checkpoint_state *state,
                                    const struct checkpoint_intent *intent)
{
    int64_t now = clock_monotonic_ns();
    lock_take(&state->lock);
    struct checkpoint_seen *seen =
        &state->seen[0]; /* else the one in the place of the oldest */
    for (size_t i = 0; i < CHECKPOINT_LIVE_MAX; i++) {
        struct checkpoint_seen *at = &state->seen[i];
        if (str_is(intent->token, at->token)) {
            seen = at;
            break;
        }
        if (at->since_ns < seen->since_ns) {
            seen = at;
        }
    }
    bool is_same = str_is(intent->token, seen->token) && seen->revision == intent->revision;
    if (!is_same && intent->token.len < UUID_SIZE) {
        memcpy(seen->token, intent->token.data, intent->token.len);
        seen->token[intent->token.len] = '\0';
        seen->revision = intent->revision;
        seen->since_ns = now;
    }
    int64_t since = seen->since_ns;
    lock_release(&state->lock);
    return now - since;
}

/* Has the run of the record died? Either this host and directory own it, but no run of this
 * process does, or its lease has expired. A record of an earlier version has a time in place of
 * the length. */
static bool checkpoint_is_left(struct checkpoint_state *state,
                               const struct checkpoint_intent *intent)
{
    if (checkpoint_is_live(state, intent->token)) {
        return false;
    }
    int64_t lease_ms = i64_min(intent->lease_ms, CHECKPOINT_LEASE_MS);
    return str_is(intent->owner, state->owner) ||
           checkpoint_silent_ns(state, intent) >= lease_ms * 1000000;
}

static int checkpoint_resume(struct agent_notebook *self, struct ng_call *call,
                             struct checkpoint_intent *intent)
{
    struct checkpoint_state *state = self->checkpoint;
    struct ng_str token = memory_uuid(call);
    int rc = NG_EINTERNAL;
    if (token.data != NULL) {
        rc = checkpoint_live_add(state, call, token);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = checkpoint_intent_take(call, intent, token, checkpoint_owner(state));
    if (rc == NG_OK) {
        call->host->log(call, NG_LOG_WARNING,
                        "a restore of the space '%.*s' was interrupted; it is finished now",
                        (int)intent->space.len, intent->space.data);
        rc = checkpoint_job_start(self, call, intent, false);
    }
    checkpoint_live_remove(state, token);
    return rc;
}

/* *ret_open: restores that have to be finished before this gateway is ready. */
static int checkpoint_recover(struct agent_notebook *self, struct ng_call *call,
                              size_t *ret_open)
{
    struct checkpoint_state *state = self->checkpoint;
    struct checkpoint_intent *intents = NULL;
    size_t count = 0;
    *ret_open = 0;
    int rc = checkpoint_intent_list(call, &intents, &count);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&state->lock);
    bool checked = state->checked;
    lock_release(&state->lock);
    for (size_t i = 0; i < count; i++) {
        bool left = checkpoint_is_left(state, &intents[i]);
        /* Only a gateway that has just started waits for this: one that was ready stays
         * ready. */
        if (!checked) {
            *ret_open += 1;
        }
        if (left) {
            int taken = checkpoint_resume(self, call, &intents[i]);
            if (taken != NG_EBUSY) {
                rc = taken;
            }
        }
    }
    if (*ret_open == 0) {
        lock_take(&state->lock);
        state->checked = true;
        lock_release(&state->lock);
    }
    return rc;
}

int checkpoint_health(void *self, struct ng_call *call)
{
    struct agent_notebook *notebook = self;
    size_t open = 0;
    int rc = checkpoint_recover(notebook, call, &open);
    if (rc == NG_OK && open > 0) {
        rc = ng_fail(call, NG_EBUSY, "%zu interrupted restores are being finished", open);
    }
    return rc;
}

static int checkpoint_recover_step(struct ng_call *call, void *user)
{
    size_t open = 0;
    return checkpoint_recover(user, call, &open);
}

int checkpoint_recover_soon(struct agent_notebook *self, struct ng_call *call)
{
    return call->host->background(call, checkpoint_recover_step, self);
}

/* ---- life ---- */

int checkpoint_start(struct ng_call *call, const struct ng_conf *conf,
                     struct agent_notebook *self)
{
    char name[CHECKPOINT_HOST_MAX] = "";
    struct ng_str folder = call->host->conf_text(conf, "data_dir");
    struct checkpoint_state *state = calloc(1, sizeof(*state));
    if (gethostname(name, sizeof(name) - 1) != 0) {
        name[0] = '\0';
    }
    struct ng_str owner = call->host->format(call, "%s:%.*s", name, (int)folder.len,
                                             folder.data == NULL ? "" : folder.data);
    char *copy = NULL;
    if (owner.data != NULL) {
        copy = strndup(owner.data, owner.len);
    }
    if (state == NULL || copy == NULL) {
        free(state);
        free(copy);
        return entry_no_memory(call);
    }
    state->owner = copy;
    lock_init(&state->lock, LOCK_ENTRY_CHECKPOINTS);
    self->checkpoint = state;
    /* A database that is away at the start does not prevent it: /readyz tries again. */
    if (checkpoint_recover_soon(self, call) != NG_OK) {
        call->host->log(call, NG_LOG_WARNING, "interrupted restores are not searched");
    }
    return NG_OK;
}

void checkpoint_stop(struct checkpoint_state *state)
{
    if (state != NULL) {
        lock_done(&state->lock);
        free(state->owner);
        free(state);
    }
}
