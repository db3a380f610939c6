/* SPDX-License-Identifier: MIT */
/* cells_lease_table.c - the leases in memory, and the thread that releases them and notices
 * that one was lost. */
#include "cells_lease_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Author of changes outside of a call. */
#define LEASE_AGENT "cells"
/* Interval at which the thread checks the term, and the looks at each lease after a new one:
 * another gateway may have decided to take it over just before. */
#define LEASE_TICK_MS 500
#define LEASE_LOOKS 4
/* Pause before another attempt to release a lease. */
#define LEASE_RETRY_MS 5000

/* ---- identity ---- */

/* Folders at the same path may be different ones on different machines, and a save may replace
 * the file: so it is the path, and the folder's number and time of birth. */
bool lease_id(struct ng_str notebook, char id[SHA256_HEX_SIZE])
{
    struct statx info = {.stx_ino = 0};
    size_t folder = notebook.len;
    while (folder > 1 && notebook.data[folder - 1] != '/') {
        folder--;
    }
    char *path = strndup(notebook.data, folder);
    if (path == NULL) {
        return false;
    }
    (void)statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &info);
    free(path);
    struct nb_text text = {0};
    nb_addf(&text, "%llu %lld.%09u ", (unsigned long long)info.stx_ino,
            (long long)info.stx_btime.tv_sec, info.stx_btime.tv_nsec);
    nb_add_str(&text, notebook);
    bool good = !text.failed && sha256_hex(nb_text_str(&text), id) == NG_OK;
    nb_text_done(&text);
    return good;
}

struct ng_key lease_key(const char *id)
{
    struct ng_key key = {ng_str_of(CELLS_LEASES), ng_str_of(CELLS_LEASES_SPACE), ng_str_of(id)};
    return key;
}

/* ---- the table ---- */

struct lease *lease_of(const struct cells_leases *leases, struct ng_str notebook)
{
    struct lease *lease = leases->first;
    while (lease != NULL && !str_is(notebook, lease->notebook)) {
        lease = lease->next;
    }
    return lease;
}

static void lease_free(struct lease *lease)
{
    free(lease->notebook);
    free(lease);
}

static struct lease *lease_new(struct ng_str notebook)
{
    struct lease *lease = calloc(1, sizeof(*lease));
    if (lease == NULL) {
        return NULL;
    }
    lease->notebook = strndup(notebook.data, notebook.len);
    if (lease->notebook == NULL || !lease_id(notebook, lease->id)) {
        lease_free(lease);
        return NULL;
    }
    return lease;
}

struct lease *lease_use(struct cells_leases *leases, struct ng_str notebook)
{
    lock_take(&leases->lock);
    struct lease *lease = lease_of(leases, notebook);
    if (lease != NULL) {
        lease->users++;
    }
    lock_release(&leases->lock);
    if (lease != NULL) {
        return lease;
    }
    struct lease *fresh = lease_new(notebook); /* looks at the folder */
    if (fresh == NULL) {
        return NULL;
    }
    lock_take(&leases->lock);
    lease = lease_of(leases, notebook);
    if (lease == NULL) {
        fresh->next = leases->first;
        leases->first = fresh;
        lease = fresh;
        fresh = NULL;
    }
    lease->users++;
    pthread_cond_broadcast(&leases->changed);
    lock_release(&leases->lock);
    if (fresh != NULL) {
        lease_free(fresh);
    }
    return lease;
}

void lease_leave(struct cells_leases *leases, struct ng_str notebook)
{
    lock_take(&leases->lock);
    struct lease *lease = lease_of(leases, notebook);
    if (lease != NULL && --lease->users == 0) {
        lease->due_ms = 0;
        pthread_cond_broadcast(&leases->changed);
    }
    lock_release(&leases->lock);
}

void cells_lease_leave(struct cells *self, const char *notebook)
{
    if (self->leases != NULL) {
        lease_leave(self->leases, ng_str_of(notebook));
    }
}

void cells_leases_watch(void *user, const char *notebook, bool exists)
{
    struct cells_leases *leases = user;
    if (!exists) {
        lease_leave(leases, ng_str_of(notebook));
        return;
    }
    lock_take(&leases->lock);
    struct lease *lease = lease_of(leases, ng_str_of(notebook)); /* its run has it */
    if (lease != NULL) {
        lease->users++;
    }
    lock_release(&leases->lock);
}

void lease_lose(struct cells_leases *leases, struct lease *lease, uint64_t revision)
{
    lock_take(&leases->lock);
    bool had = revision != 0 && lease->revision == revision;
    if (had) {
        lease->revision = 0;
        lease->losses++;
    }
    lock_release(&leases->lock);
    if (had) {
        kernels_lose(leases->self->kernels, lease->notebook);
    }
}

/* ---- changing documents ---- */

/* A gateway's name is of one start: what it wrote is this one's. */
static bool is_own(const struct ng_call *call, const struct lease_write *write,
                   const struct ng_doc *present)
{
    const struct ng_host *host = call->host;
    return present->revision != 0 && !present->deleted &&
           str_equal(host->json_text(host->json_get(present->body, "gateway")),
                     write->leases->name);
}

int lease_change(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                 void *user)
{
    struct lease_write *write = user;
    write->beaten = present->revision != write->revision;
    if (write->deed == LEASE_DELETE) {
        if (present->revision <= write->revision && is_own(call, write, present)) {
            call->host->draft_delete(next);
        }
    } else if (!write->beaten && write->deed == LEASE_TAKE) {
        return call->host->draft_json(next, write->json);
    }
    return NG_OK;
}

/* ---- the thread ---- */

static void write_done(void *user, int rc)
{
    struct lease_write *write = user;
    lock_take(&write->leases->lock);
    write->rc = rc;
    write->done = true;
    pthread_cond_broadcast(&write->leases->changed);
    lock_release(&write->leases->lock);
}

/* With the lock held, and without it meanwhile. */
static int write_wait(struct cells_leases *leases, const struct lease *lease,
                      struct lease_write *write)
{
    const struct ng_host *host = leases->self->host;
    struct ng_change change = {
        .size = sizeof(change), .key = lease_key(lease->id), .fn = lease_change, .user = write};
    write->leases = leases;
    lock_release(&leases->lock);
    int rc = host->change_as(host, ng_str_of(LEASE_AGENT), &change, 1, write_done, write);
    lock_take(&leases->lock);
    while (rc == NG_OK && !write->done) {
        lock_wait(&leases->changed, &leases->lock);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return write->rc;
}

static void unlink_lease(struct cells_leases *leases, struct lease *lease)
{
    struct lease **at = &leases->first;
    while (*at != lease) {
        at = &(*at)->next;
    }
    *at = lease->next;
    lease_free(lease);
}

static void release(struct cells_leases *leases, struct lease *lease)
{
    struct lease_write write = {.deed = LEASE_DELETE,
                                .revision = u64_max(lease->revision, lease->undeleted)};
    int rc = NG_OK;
    lease->revision = 0;
    lease->undeleted = 0;
    lease->releasing = true;
    if (write.revision != 0) {
        rc = write_wait(leases, lease, &write);
    }
    lease->releasing = false;
    pthread_cond_broadcast(&leases->changed);
    if (rc != NG_OK && !leases->stopping) {
        lease->due_ms = lease_now_ms() + LEASE_RETRY_MS;
        lease->undeleted = write.revision;
    } else if (leases->stopping || lease->users == 0) {
        unlink_lease(leases, lease);
    }
    while (rc != NG_OK && leases->stopping && leases->first != NULL) {
        unlink_lease(leases, leases->first); /* others find that this gateway is dead */
    }
}

static void look(struct cells_leases *leases, struct lease *lease)
{
    struct lease_write write = {.deed = LEASE_LOOK, .revision = lease->revision};
    lease->looks--;
    lease->due_ms = lease_now_ms() + LEASE_TICK_MS;
    leases->looking = true;
    int rc = write_wait(leases, lease, &write);
    if (rc != NG_OK) {
        lease->looks++;
    }
    bool lost = rc == NG_OK && write.beaten && lease->revision == write.revision;
    lock_release(&leases->lock);
    if (lost) {
        lease_lose(leases, lease, write.revision);
    }
    lock_take(&leases->lock);
    leases->looking = false;
    pthread_cond_broadcast(&leases->changed);
}

static void notice_term(struct cells_leases *leases)
{
    uint64_t term = leases->self->host->gateway_term(leases->self->host);
    if (term == 0 || term == leases->term) {
        return;
    }
    leases->term = term;
    for (struct lease *lease = leases->first; lease != NULL; lease = lease->next) {
        lease->looks = LEASE_LOOKS;
        lease->due_ms = 0;
    }
}

static struct lease *lease_due(const struct cells_leases *leases)
{
    int64_t now = lease_now_ms();
    struct lease *lease = leases->first;
    for (; lease != NULL && !leases->stopping; lease = lease->next) {
        bool looks = lease->looks > 0 && lease->revision != 0 && !leases->settled;
        if (now >= lease->due_ms && (lease->users == 0 || looks)) {
            break;
        }
    }
    return lease;
}

static void *leases_run(void *user)
{
    struct cells_leases *leases = user;
    (void)pthread_setname_np(pthread_self(), "ng-leases");
    lock_take(&leases->lock);
    while (!leases->stopping || leases->first != NULL) {
        notice_term(leases);
        struct lease *lease = lease_due(leases);
        if (lease != NULL && (lease->users == 0 || leases->stopping)) {
            release(leases, lease);
        } else if (lease != NULL) {
            look(leases, lease);
        } else if (leases->first == NULL) {
            lock_wait(&leases->changed, &leases->lock);
        } else {
            int64_t until = lease_now_ms() + LEASE_TICK_MS;
            struct timespec at = {(time_t)(until / 1000), (long)(until % 1000) * 1000000L};
            (void)lock_wait_until(&leases->changed, &leases->lock, &at);
        }
    }
    lock_release(&leases->lock);
    return NULL;
}

/* ---- beginning and end ---- */

static void leases_free(struct cells_leases *leases)
{
    (void)pthread_cond_destroy(&leases->changed);
    lock_done(&leases->lock);
    free(leases);
}

int cells_leases_open(struct cells *self, struct ng_call *call)
{
    struct ng_str name = call->host->gateway_name(call->host);
    if (name.len == 0) {
        return NG_OK;
    }
    struct cells_leases *leases = calloc(1, sizeof(*leases));
    if (leases == NULL) {
        return cells_no_memory(call);
    }
    leases->self = self;
    leases->name = name;
    lock_init(&leases->lock, LOCK_CELLS_LEASES);
    lock_cond_init(&leases->changed);
    if (pthread_create(&leases->thread, NULL, leases_run, leases) != 0) {
        leases_free(leases);
        return ng_fail(call, NG_EINTERNAL, "a thread could not be started");
    }
    self->leases = leases;
    return NG_OK;
}

void cells_leases_settle(struct cells_leases *leases)
{
    if (leases == NULL) {
        return;
    }
    lock_take(&leases->lock);
    leases->settled = true;
    while (leases->looking) {
        lock_wait(&leases->changed, &leases->lock);
    }
    lock_release(&leases->lock);
}

void cells_leases_close(struct cells_leases *leases)
{
    if (leases == NULL) {
        return;
    }
    lock_take(&leases->lock);
    leases->stopping = true;
    pthread_cond_broadcast(&leases->changed);
    lock_release(&leases->lock);
    (void)pthread_join(leases->thread, NULL);
    leases_free(leases);
}
