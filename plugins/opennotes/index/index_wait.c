/* SPDX-License-Identifier: MIT */
/* index_wait.c - one refresh for all calls that need it. A call that finds no refresh under way
 * runs one on its worker; the others take a deferral, release their workers, and run again when
 * it is done. A call whose time is up leaves the rest to them, or to the background. */
#include "index_wait.h"

#include <time.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "index_open.h"

#define WAIT_MS 100 /* between checks for cancellation of a call that keeps its worker */
#define TICK_NS ((int64_t)100 * 1000000)
/* A call gets the progress this long before its deadline, but at most a quarter of its time
 * before. */
#define MARGIN_MS ((int64_t)2000)
#define MARGIN_PART 4
#define TELL_MIN ((size_t)100) /* with fewer notes no progress is shown */

/* A call that may wait, in its own memory. run: NULL if the gateway asks again. */
struct notes_wait {
    struct notes_wait *next;         /* of all */
    struct notes_wait *next_waiting; /* of the same index */
    struct notes_indexes *indexes;
    struct ng_call *call;
    notes_wait_fn *run;
    void *user;
    struct notes_index *index; /* referenced until the tool runs again */
    uint64_t serial, ticket;
    struct ng_deferred *deferred;
    int64_t began_ms; /* remaining time at the beginning */
};

bool notes_wait_is_over(struct ng_call *call, int64_t began_ms)
{
    int64_t margin = i64_min(began_ms / MARGIN_PART, MARGIN_MS);
    return call->host->cancelled(call) || call->host->remaining_ms(call) < margin;
}

static int fail_over(struct notes_index *index, struct ng_call *call, size_t done, size_t total)
{
    if (call->host->cancelled(call)) {
        return ng_fail(call, NG_ECANCELLED,
                       "The call was cancelled while the notes were indexed.");
    }
    call->host->hint(call, "Indexing continues; try again later. Until then notes can be read, "
                           "created and edited by their paths.");
    if (total == 0) {
        return ng_fail(call, NG_ETIMEOUT,
                       "The gateway is still searching for the notes in %s, to index them.",
                       index->path);
    }
    return ng_fail(call, NG_ETIMEOUT,
                   "The notes in %s are still being indexed: %zu of %zu are.", index->path,
                   done, total);
}

/* ---- calls that may wait ---- */

/* The call has ended in any way: its memory is released. */
static void forget(void *user, int rc, struct ng_str message)
{
    struct notes_wait *wait = user;
    (void)rc;
    (void)message;
    lock_take(&wait->indexes->lock);
    for (struct notes_wait **at = &wait->indexes->calls; *at != NULL; at = &(*at)->next) {
        if (*at == wait) {
            *at = wait->next;
            break;
        }
    }
    lock_release(&wait->indexes->lock);
}

static struct notes_wait *find(struct notes_indexes *indexes, const struct ng_call *call)
{
    lock_take(&indexes->lock);
    struct notes_wait *wait = indexes->calls;
    while (wait != NULL && wait->call != call) {
        wait = wait->next;
    }
    lock_release(&indexes->lock);
    return wait;
}

static void release_index(struct notes_wait *wait)
{
    struct notes_index *index = wait->index;
    wait->index = NULL;
    notes_index_close(wait->indexes, index);
}

/* Does another call still run the refresh it waits for? Then the deferral is registered, and
 * the call may already be running again. */
static bool leave(struct notes_wait *wait)
{
    struct notes_index *index = wait->index;
    lock_take(&index->lock);
    bool waits = index->refreshing && index->covered < wait->ticket;
    if (waits) {
        wait->deferred = wait->call->host->defer(wait->call);
        wait->next_waiting = index->waiting;
        index->waiting = wait;
    }
    lock_release(&index->lock);
    return waits;
}

static int run_tool(struct ng_call *call, void *user)
{
    struct notes_wait *wait = user;
    for (;;) {
        int rc = wait->run(wait->user, call);
        if (rc != NOTES_WAITS) {
            return rc;
        }
        if (leave(wait)) {
            return NG_PENDING;
        }
        release_index(wait);
    }
}

static struct notes_wait *add(struct notes_indexes *indexes, struct ng_call *call)
{
    struct notes_wait *wait = ng_alloc(call, sizeof(*wait));
    if (wait == NULL) {
        (void)notes_fail_memory(call);
        return NULL;
    }
    *wait = (struct notes_wait){.indexes = indexes, .call = call};
    wait->began_ms = call->host->remaining_ms(call);
    if (call->host->on_complete(call, forget, wait) != NG_OK) {
        return NULL;
    }
    lock_take(&indexes->lock);
    wait->next = indexes->calls;
    indexes->calls = wait;
    lock_release(&indexes->lock);
    return wait;
}

int notes_wait_run(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                   void *user)
{
    struct notes_wait *wait = add(indexes, call);
    if (wait == NULL) {
        return NG_EINTERNAL;
    }
    wait->run = run;
    wait->user = user;
    return run_tool(call, wait);
}

int notes_wait_once(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                    void *user)
{
    struct notes_wait *wait = find(indexes, call);
    if (wait == NULL) {
        wait = add(indexes, call);
    }
    int rc = wait != NULL ? run(user, call) : NG_EINTERNAL;
    if (rc != NOTES_WAITS) {
        return rc;
    }
    if (!leave(wait)) { /* the refresh has already finished */
        struct ng_deferred *deferred = call->host->defer(call);
        release_index(wait);
        call->host->finish(deferred, NG_OK);
    }
    return NG_PENDING;
}

static struct notes_wait *take_waiting(struct notes_index *index)
{
    lock_take(&index->lock);
    struct notes_wait *first = index->waiting;
    index->waiting = NULL;
    lock_release(&index->lock);
    return first;
}

/* The call may be released afterwards. A failure ends it. */
static void resume(struct notes_wait *wait, int rc)
{
    struct ng_call *call = wait->call;
    const struct ng_host *host = call->host;
    struct ng_deferred *deferred = wait->deferred;
    release_index(wait);
    if (rc == NG_OK && wait->run != NULL) {
        (void)host->continue_on_worker(call, run_tool, wait);
    }
    host->finish(deferred, rc);
}

static void resume_all(struct notes_index *index)
{
    struct notes_wait *wait = take_waiting(index);
    while (wait != NULL) {
        struct notes_wait *next = wait->next_waiting;
        resume(wait, NG_OK);
        wait = next;
    }
}

/* True also when the amount of work becomes known. */
static bool is_time(struct notes_index *index, size_t done, size_t total)
{
    int64_t now = clock_monotonic_ns();
    lock_take(&index->lock);
    bool known = index->total == 0 && total - done >= TELL_MIN;
    bool is = known || now - index->ticked_ns >= TICK_NS;
    index->done = done;
    index->total = total;
    if (is) {
        index->ticked_ns = now;
    }
    lock_release(&index->lock);
    return is;
}

void notes_wait_show(struct ng_call *call, size_t done, size_t total)
{
    call->host->progress(call, (double)done, (double)total,
                         call->host->format(call, "Indexing notes: %zu of %zu", done, total));
}

void notes_wait_tick(struct notes_index *index, size_t done, size_t total)
{
    if (!is_time(index, done, total)) {
        return;
    }
    struct notes_wait *wait = take_waiting(index);
    while (wait != NULL) {
        struct notes_wait *next = wait->next_waiting;
        if (notes_wait_is_over(wait->call, wait->began_ms)) {
            resume(wait, fail_over(index, wait->call, done, total));
        } else {
            if (done > 0 || total >= TELL_MIN) {
                notes_wait_show(wait->call, done, total);
            }
            lock_take(&index->lock);
            wait->next_waiting = index->waiting;
            index->waiting = wait;
            lock_release(&index->lock);
        }
        wait = next;
    }
}

/* ---- the refresh ---- */

static void wait_a_little(struct notes_index *index)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)lock_wait_until(&index->changed, &index->lock, &until);
}

static int go_on(struct ng_call *call, void *user)
{
    struct notes_index *index = user;
    int rc = notes_wait_fresh(index, call);
    notes_index_close(index->owner, index);
    if (rc == NG_ETIMEOUT || rc == NG_ECANCELLED) {
        return NG_OK;
    }
    return rc;
}

int notes_wait_background(struct notes_index *index, struct ng_call *call)
{
    notes_index_hold(index);
    int rc = call->host->background(call, go_on, index);
    if (rc != NG_OK) {
        notes_index_close(index->owner, index);
    }
    return rc;
}

/* Called under the index's lock, which is released during the work. */
static int refresh(struct notes_index *index, struct ng_call *call)
{
    uint64_t cover = index->arrivals;
    index->refreshing = true;
    index->done = index->total = 0;
    if (index->damaged) {
        index->writer.damaged = true;
        index->damaged = false;
    }
    lock_release(&index->lock);
    int rc = notes_refresh(index, call);
    lock_take(&index->lock);
    index->refreshing = false;
    if (rc == NG_OK) {
        index->covered = cover;
    }
    bool left = index->waiting == NULL && (rc == NG_ECANCELLED || rc == NG_ETIMEOUT);
    size_t done = index->done;
    size_t total = index->total;
    (void)pthread_cond_broadcast(&index->changed);
    lock_release(&index->lock);
    resume_all(index);
    if (left) {
        (void)notes_wait_background(index, call);
    }
    if (rc == NG_ETIMEOUT) {
        rc = fail_over(index, call, done, total);
    }
    lock_take(&index->lock);
    return rc;
}

int notes_wait_fresh(struct notes_index *index, struct ng_call *call)
{
    struct notes_wait *wait = find(index->owner, call);
    int rc = NG_OK;
    lock_take(&index->lock);
    bool again = wait != NULL && wait->ticket > 0 && wait->serial == index->serial;
    uint64_t mine = again ? wait->ticket : ++index->arrivals;
    size_t done = 0;
    size_t total = 0;
    while (rc == NG_OK && index->covered < mine) {
        if (!index->refreshing) {
            rc = refresh(index, call);
        } else if (wait != NULL) {
            wait->index = index;
            wait->serial = index->serial;
            wait->ticket = mine;
            done = index->done;
            total = index->total;
            rc = NOTES_WAITS;
        } else {
            wait_a_little(index);
            if (index->covered < mine && index->refreshing && call->host->cancelled(call)) {
                rc = ng_fail(call, NG_ECANCELLED,
                             "The call was cancelled while the notes were indexed.");
            }
        }
    }
    lock_release(&index->lock);
    if (rc == NOTES_WAITS) {
        notes_index_hold(index);
        if (total - done >= TELL_MIN) {
            notes_wait_show(call, done, total);
        }
    } else if (again) {
        wait->ticket = 0;
    }
    return rc;
}

static struct ng_str tell_one(struct notes_index *index, struct ng_call *call,
                              struct ng_str before)
{
    lock_take(&index->lock);
    size_t done = index->done;
    size_t total = index->total;
    bool looks = index->refreshing && total == 0 && index->covered == 0;
    bool indexes = index->refreshing && total >= TELL_MIN;
    lock_release(&index->lock);
    if (!looks && !indexes) {
        return before;
    }
    const char *comma = before.len > 0 ? ", " : "";
    if (looks) {
        return call->host->format(call, "%.*s%sthe notes in %s are being looked for",
                                  (int)before.len, before.data, comma, index->path);
    }
    return call->host->format(call, "%.*s%s%zu of %zu notes in %s are indexed", (int)before.len,
                              before.data, comma, done, total, index->path);
}

struct ng_str notes_wait_tell(struct notes_indexes *indexes, struct ng_call *call)
{
    struct ng_str text = {"", 0};
    lock_take(&indexes->lock);
    for (struct notes_index *index = indexes->first; index != NULL; index = index->next) {
        text = tell_one(index, call, text);
    }
    lock_release(&indexes->lock);
    return text;
}
