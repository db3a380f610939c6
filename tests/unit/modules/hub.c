/* SPDX-License-Identifier: MIT */
/* hub.c - a documents backend that is one sqlite in memory for all its openers: each a gateway
 * with its own queue. See tests/support/hub.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../support/hub.h"

#define DECLARED_MAX 256

struct job {
    struct ng_batch *batch;
    ng_done_fn *done;
    void *user;
    bool doomed; /* built on one that failed */
    bool failed; /* and its done() has not returned */
    struct job *next;
};

struct view {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct job *first, **last; /* also those that are being written */
    bool closing;
};

static struct {
    pthread_mutex_t lock;
    const struct ng_documents *inner;
    void *db;
    unsigned users;
    char declared[DECLARED_MAX][NG_COLLECTION_MAX + 1];
    size_t declared_count;
    void (*hook)(void *user);
    void *hook_user;
    atomic_int_fast64_t delay_us;
    atomic_bool away, unnumbered;
    _Atomic(const char *) no_commits, no_queries; /* of these collections */
    _Atomic(const char *) unanswered;
    atomic_uint_fast64_t trips, commits;
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hub_travel(void)
{
    int64_t us = atomic_load(&hub.delay_us);
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0) {
        (void)nanosleep(&time, NULL);
    }
}

static int hub_is_away(struct ng_call *call)
{
    hub_travel();
    return atomic_load(&hub.away)
               ? ng_fail(call, NG_EUNAVAILABLE, "the hub does not answer; start it")
               : NG_OK;
}

/* ---- commits ---- */

struct inner_wait {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int rc;
};

static void inner_done(void *user, struct ng_batch *batch, int rc)
{
    struct inner_wait *wait = user;
    (void)batch;
    pthread_mutex_lock(&wait->lock);
    wait->done = true;
    wait->rc = rc;
    pthread_cond_signal(&wait->wake);
    pthread_mutex_unlock(&wait->lock);
}

static int inner_commit(struct ng_batch *batch)
{
    struct inner_wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false,
                              NG_OK};
    int rc = hub.inner->commit(hub.db, batch, inner_done, &wait);
    pthread_mutex_lock(&wait.lock);
    while (rc == NG_OK && !wait.done) {
        pthread_cond_wait(&wait.wake, &wait.lock);
    }
    pthread_mutex_unlock(&wait.lock);
    pthread_mutex_destroy(&wait.lock);
    pthread_cond_destroy(&wait.wake);
    rc = rc == NG_OK ? wait.rc : rc;
    for (size_t i = 0; i < batch->put_count && atomic_load(&hub.unnumbered); i++) {
        batch->puts[i]->seq = 0;
    }
    return rc;
}

static bool built_on(const struct job *job, const struct job *base)
{
    for (size_t i = 0; i < job->batch->put_count; i++) {
        uint64_t ticket = job->batch->puts[i]->base_ticket;
        for (size_t j = 0; ticket != 0 && j < base->batch->put_count; j++) {
            if (base->batch->puts[j]->ticket == ticket) {
                return true;
            }
        }
    }
    return false;
}

static bool is_named(struct ng_str collection, const char *name)
{
    return name != NULL && collection.len == strlen(name) &&
           memcmp(collection.data, name, collection.len) == 0;
}

static bool changes(const struct ng_batch *batch, const char *collection)
{
    for (size_t i = 0; i < batch->put_count; i++) {
        if (is_named(batch->puts[i]->key.collection, collection)) {
            return true;
        }
    }
    return false;
}

/* The first job, which stays in the list until its done() has returned. */
static void view_write(struct view *view, struct job *job)
{
    int rc = NG_OK;
    if (job->doomed) {
        rc = NG_ECONFLICT;
    } else if (atomic_load(&hub.away) || changes(job->batch, atomic_load(&hub.no_commits))) {
        rc = NG_EUNAVAILABLE;
        (void)snprintf(job->batch->error, sizeof(job->batch->error),
                       "the hub does not answer; start it");
    } else {
        (void)atomic_fetch_add(&hub.commits, 1);
        rc = inner_commit(job->batch);
        if (rc == NG_OK && changes(job->batch, atomic_load(&hub.unanswered))) {
            rc = NG_ETIMEOUT;
            (void)snprintf(job->batch->error, sizeof(job->batch->error),
                           "the hub did not answer in time");
        }
    }
    pthread_mutex_lock(&view->lock);
    job->failed = rc != NG_OK;
    for (struct job *later = job->next; later != NULL && job->failed; later = later->next) {
        later->doomed = later->doomed || built_on(later, job);
    }
    pthread_mutex_unlock(&view->lock);
    struct job copy = *job;
    copy.done(copy.user, copy.batch, rc);
    pthread_mutex_lock(&view->lock);
    view->first = job->next;
    if (view->first == NULL) {
        view->last = &view->first;
    }
    pthread_mutex_unlock(&view->lock);
    free(job);
}

static void *view_run(void *user)
{
    struct view *view = user;
    pthread_mutex_lock(&view->lock);
    while (view->first != NULL || !view->closing) {
        if (view->first == NULL) {
            pthread_cond_wait(&view->wake, &view->lock);
            continue;
        }
        size_t count = 0;
        bool is_told = false;
        for (const struct job *job = view->first; job != NULL; job = job->next) {
            count++;
            is_told = is_told || changes(job->batch, "things");
        }
        pthread_mutex_unlock(&view->lock);
        hub_travel();
        (void)atomic_fetch_add(&hub.trips, 1);
        pthread_mutex_lock(&hub.lock);
        void (*hook)(void *user) = hub.hook;
        void *hook_user = hub.hook_user;
        pthread_mutex_unlock(&hub.lock);
        if (hook != NULL && is_told) {
            hook(hook_user);
        }
        for (; count > 0; count--) {
            view_write(view, view->first);
        }
        pthread_mutex_lock(&view->lock);
    }
    pthread_mutex_unlock(&view->lock);
    return NULL;
}

static int hub_commit(void *self, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct view *view = self;
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return NG_EINTERNAL;
    }
    job->batch = batch;
    job->done = done;
    job->user = user;
    pthread_mutex_lock(&view->lock);
    for (const struct job *at = view->first; at != NULL; at = at->next) {
        job->doomed = job->doomed || (at->failed && built_on(job, at)) ||
                      (at->doomed && built_on(job, at));
    }
    *view->last = job;
    view->last = &job->next;
    pthread_cond_signal(&view->wake);
    pthread_mutex_unlock(&view->lock);
    return NG_OK;
}

/* ---- opening and closing ---- */

static int hub_open_inner(struct ng_call *call, const struct ng_conf *conf)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/backends/sqlite.so",
                   getenv("NOTEGATE_TEST_MODULES"));
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct ng_module *symbol = module == NULL ? NULL : dlsym(module, "ng_module");
    if (symbol == NULL) {
        return ng_fail(call, NG_EUNAVAILABLE, "%s does not load", path);
    }
    hub.inner = symbol->desc;
    return hub.inner->open(call, conf, &hub.db);
}

static void hub_leave(void)
{
    pthread_mutex_lock(&hub.lock);
    if (--hub.users == 0) {
        hub.inner->close(hub.db);
        hub.db = NULL;
        hub.declared_count = 0;
    }
    pthread_mutex_unlock(&hub.lock);
}

static int hub_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    struct view *view = calloc(1, sizeof(*view));
    if (view == NULL) {
        return NG_EINTERNAL;
    }
    pthread_mutex_init(&view->lock, NULL);
    pthread_cond_init(&view->wake, NULL);
    view->last = &view->first;
    pthread_mutex_lock(&hub.lock);
    int rc = hub.users > 0 ? NG_OK : hub_open_inner(call, conf);
    hub.users += rc == NG_OK ? 1 : 0;
    pthread_mutex_unlock(&hub.lock);
    if (rc == NG_OK && pthread_create(&view->thread, NULL, view_run, view) != 0) {
        hub_leave();
        rc = NG_EINTERNAL;
    }
    if (rc != NG_OK) {
        free(view);
        return rc;
    }
    *ret_db = view;
    return NG_OK;
}

static void hub_close(void *self)
{
    struct view *view = self;
    if (view == NULL) {
        return;
    }
    pthread_mutex_lock(&view->lock);
    view->closing = true;
    pthread_cond_signal(&view->wake);
    pthread_mutex_unlock(&view->lock);
    (void)pthread_join(view->thread, NULL);
    pthread_mutex_destroy(&view->lock);
    pthread_cond_destroy(&view->wake);
    free(view);
    hub_leave();
}

/* ---- what is passed on ---- */

/* One without fields, as the core declares those of other gateways, changes nothing in a former
 * one; for the inner backend it would. */
static bool hub_knows(const struct ng_collection *collection)
{
    for (size_t i = 0; i < hub.declared_count; i++) {
        if (strcmp(hub.declared[i], collection->name) == 0) {
            return true;
        }
    }
    if (hub.declared_count < DECLARED_MAX) {
        (void)snprintf(hub.declared[hub.declared_count++], NG_COLLECTION_MAX + 1, "%s",
                       collection->name);
    }
    return false;
}

static int hub_declare(void *self, struct ng_call *call, const struct ng_collection *collection)
{
    (void)self;
    int rc = hub_is_away(call);
    pthread_mutex_lock(&hub.lock);
    bool bare = collection->field_count == 0 && collection->flags == 0;
    if (rc == NG_OK && !(hub_knows(collection) && bare)) {
        rc = hub.inner->declare(hub.db, call, collection);
    }
    pthread_mutex_unlock(&hub.lock);
    return rc;
}

static int hub_get(void *self, struct ng_call *call, const struct ng_key *key,
                   uint64_t revision, ng_row_fn *row, void *user)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->get(hub.db, call, key, revision, row, user);
}

static int hub_query(void *self, struct ng_call *call, const struct ng_query *query,
                     ng_row_fn *row, void *user, uint64_t *ret_total)
{
    (void)self;
    int rc = hub_is_away(call);
    if (rc == NG_OK && is_named(query->collection, atomic_load(&hub.no_queries))) {
        rc = ng_fail(call, NG_EUNAVAILABLE, "the hub does not answer this; start it");
    }
    return rc != NG_OK ? rc : hub.inner->query(hub.db, call, query, row, user, ret_total);
}

static int hub_history(void *self, struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, ng_row_fn *row, void *user)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->history(hub.db, call, key, range, row, user);
}

static int hub_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                       ng_event_fn *event, void *user)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->changes(hub.db, call, since, limit, event, user);
}

static int hub_answer(void *self, struct ng_call *call, struct ng_str scope,
                      struct ng_answer *ret)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->answer(hub.db, call, scope, ret);
}

static int hub_search(void *self, struct ng_call *call, const struct ng_search *search,
                      ng_row_fn *row, void *user, uint64_t *ret_total)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->search(hub.db, call, search, row, user, ret_total);
}

static int hub_health(void *self, struct ng_call *call)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->health(hub.db, call);
}

static int hub_maintain(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                        bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                        void *user)
{
    (void)self;
    int rc = hub_is_away(call);
    return rc != NG_OK ? rc : hub.inner->maintain(hub.db, call, now_ms, keep_ms, pinned, user);
}

/* ---- controls ---- */

static void control_delay(int64_t microseconds)
{
    atomic_store(&hub.delay_us, microseconds);
}

static void control_away(bool away)
{
    atomic_store(&hub.away, away);
}

static void control_refuse(const char *commits, const char *queries)
{
    atomic_store(&hub.no_commits, commits);
    atomic_store(&hub.no_queries, queries);
}

static void control_unanswered(const char *collection)
{
    atomic_store(&hub.unanswered, collection);
}

static void control_unnumbered(bool unnumbered)
{
    atomic_store(&hub.unnumbered, unnumbered);
}

static void control_hook(void (*hook)(void *user), void *user)
{
    pthread_mutex_lock(&hub.lock);
    hub.hook = hook;
    hub.hook_user = user;
    pthread_mutex_unlock(&hub.lock);
}

static uint64_t control_trips(void)
{
    return atomic_load(&hub.trips);
}

static uint64_t control_commits(void)
{
    return atomic_load(&hub.commits);
}

extern __attribute__((visibility("default"))) const struct hub_control hub_control;
const struct hub_control hub_control = {
    .delay = control_delay,
    .away = control_away,
    .refuse = control_refuse,
    .unanswered = control_unanswered,
    .unnumbered = control_unnumbered,
    .hook = control_hook,
    .trips = control_trips,
    .commits = control_commits,
};

static const struct ng_option hub_options[] = {
    {
        .name = "memory",
        .type = NG_OPTION_BOOL,
        .fallback = "true",
        .help = "Always.",
    },
};

static const struct ng_documents hub_documents = {
    .name = "hub",
    .version = "1",
    .flags = NG_DOCUMENTS_SHARED,
    .options = hub_options,
    .option_count = NG_COUNT(hub_options),
    .open = hub_open,
    .close = hub_close,
    .declare = hub_declare,
    .commit = hub_commit,
    .get = hub_get,
    .query = hub_query,
    .history = hub_history,
    .changes = hub_changes,
    .answer = hub_answer,
    .search = hub_search,
    .health = hub_health,
    .maintain = hub_maintain,
};

NG_EXPORT_DOCUMENTS(hub_documents);
