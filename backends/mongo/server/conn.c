/* SPDX-License-Identifier: MIT */
/* conn.c - the pool of clients, and its limits from the URI. */
#include "core/base/lock.h"
#include "server.h"

#include <stdio.h>
#include <time.h>

/* Most clients besides the writers, unless the URI says otherwise. */
#define POOL_MAX 32
/* Clients besides those of the writers: the change stream keeps one, all others share one. */
#define POOL_SHARED 2
/* Limits of mongo.timeout; the upper one is MongoDB's of a transaction. */
#define TIMEOUT_MIN_MS 100
#define TIMEOUT_MAX_MS 60000
/* While the server does not answer, one operation at a time tries it, with this pause in
 * between. All others fail at once, so a full queue fails as fast as a single call. */
#define DOWN_MS 250
#define BACK_OFF_MIN_MS 2
#define BACK_OFF_MAX_MS 200

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void driver_quiet(mongoc_log_level_t level, const char *domain, const char *message,
                         void *user)
{
    (void)level;
    (void)domain;
    (void)message;
    (void)user;
}

/* Once per process. The driver is never cleaned up: the module stays loaded until the process
 * ends, and another store may still be open. */
static void driver_start(void)
{
    mongoc_init();
    mongoc_log_set_handler(driver_quiet, NULL);
}

int thread_open(pthread_t *thread, void *(*main)(void *), void *user, bool *ret_started)
{
    *ret_started = pthread_create(thread, NULL, main, user) == 0;
    if (!*ret_started) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

void sleep_ms(int64_t ms)
{
    struct timespec wait = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&wait, NULL);
}

bool pause_unless(atomic_bool *flag, int64_t ms)
{
    int64_t until = monotonic_ms() + ms;
    while (!atomic_load(flag) && monotonic_ms() < until) {
        sleep_ms(20);
    }
    return !atomic_load(flag);
}

void back_off(unsigned tried)
{
    struct timespec now;
    int64_t most = BACK_OFF_MIN_MS;
    for (unsigned i = 0; i < tried && most < BACK_OFF_MAX_MS; i++) {
        most *= 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = ((uint64_t)now.tv_nsec ^ ((uint64_t)(uintptr_t)&now >> 4)) *
                     UINT64_C(0x9E3779B97F4A7C15);
    sleep_ms(1 + (int64_t)((mixed >> 33) % (uint64_t)most));
}

/* ---- opening ---- */

static void set_limit(mongoc_uri_t *uri, const char *option, int64_t ms)
{
    if (!mongoc_uri_has_option(uri, option)) {
        (void)mongoc_uri_set_option_as_int32(uri, option, (int32_t)i64_max(ms, 1));
    }
}

/* Reads go to the primary and show what a majority has. Writes are acknowledged once a majority
 * has them on disk. The URI may only add a time limit (wtimeoutMS). */
static void set_concerns(mongoc_uri_t *uri)
{
    const mongoc_write_concern_t *given = mongoc_uri_get_write_concern(uri);
    mongoc_write_concern_t *write = mongoc_write_concern_new();
    mongoc_read_concern_t *read = mongoc_read_concern_new();
    mongoc_write_concern_set_w(write, MONGOC_WRITE_CONCERN_W_MAJORITY);
    mongoc_write_concern_set_journal(write, true);
    if (given != NULL) {
        mongoc_write_concern_set_wtimeout_int64(write,
                                                mongoc_write_concern_get_wtimeout_int64(given));
    }
    (void)mongoc_read_concern_set_level(read, MONGOC_READ_CONCERN_LEVEL_MAJORITY);
    mongoc_uri_set_write_concern(uri, write);
    mongoc_uri_set_read_concern(uri, read);
    mongoc_write_concern_destroy(write);
    mongoc_read_concern_destroy(read);
}

/* The option of the URI that asks for less than the backend promises; NULL: none. In MongoDB's
 * spelling: the driver's is in small letters. */
static const char *lowers(const mongoc_uri_t *uri)
{
    static const char *const switches[] = {"retryWrites", "retryReads", "journal"};
    const mongoc_write_concern_t *write = mongoc_uri_get_write_concern(uri);
    const char *read = mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri));
    for (size_t i = 0; i < NG_COUNT(switches); i++) {
        if (!mongoc_uri_get_option_as_bool(uri, switches[i], true)) {
            return switches[i];
        }
    }
    if (write != NULL && mongoc_write_concern_get_w(write) != MONGOC_WRITE_CONCERN_W_DEFAULT &&
        !mongoc_write_concern_get_wmajority(write)) {
        return "w";
    }
    bool is_less = read != NULL && strcmp(read, MONGOC_READ_CONCERN_LEVEL_MAJORITY) != 0 &&
                   strcmp(read, MONGOC_READ_CONCERN_LEVEL_LINEARIZABLE) != 0;
    if (is_less) {
        return "readConcernLevel";
    }
    if (mongoc_read_prefs_get_mode(mongoc_uri_get_read_prefs_t(uri)) != MONGOC_READ_PRIMARY) {
        return "readPreference";
    }
    return NULL;
}

static void set_where(struct mongo *db, const mongoc_uri_t *uri)
{
    size_t at = 0;
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
         host != NULL && at + 1 < sizeof(db->where); host = host->next) {
        int len = snprintf(db->where + at, sizeof(db->where) - at, "%s%s", at > 0 ? "," : "",
                           host->host_and_port);
        if (len > 0) {
            at += (size_t)len;
        }
    }
    if (at == 0) {
        const char *service = mongoc_uri_get_srv_hostname(uri);
        (void)snprintf(db->where, sizeof(db->where), "%s", service != NULL ? service : "?");
    }
}

static int read_conf(struct mongo *db, struct ng_call *call, const struct ng_conf *conf,
                     mongoc_uri_t **ret_uri)
{
    struct ng_str uri = call->host->conf_text(conf, "uri");
    struct ng_str name = call->host->conf_text(conf, "database");
    bson_error_t error;
    db->timeout_ms = call->host->conf_int(conf, "timeout");
    db->writers = (size_t)call->host->conf_int(conf, "writers");
    if (db->timeout_ms < TIMEOUT_MIN_MS || db->timeout_ms > TIMEOUT_MAX_MS) {
        return ng_fail(call, NG_EINVAL,
                       "mongo.timeout is %lld ms, it must be from 100ms to 60s: MongoDB ends a "
                       "transaction after 60 s (transactionLifetimeLimitSeconds)",
                       (long long)db->timeout_ms);
    }
    /* A change that is sent again still finds the tombstone that it has made. */
    db->tombstones_ms = i64_max(call->host->conf_int(conf, "tombstones"), 4 * db->timeout_ms);
    if (uri.data == NULL || uri.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "mongo.uri is not set: give the server's address, for example "
                       "mongodb://127.0.0.1:27017, in the configuration or in MONGODB_URL");
    }
    char *copy = str_dup(uri);
    db->database = str_dup(name);
    if (copy != NULL) {
        *ret_uri = mongoc_uri_new_with_error(copy, &error);
    } else {
        *ret_uri = NULL;
    }
    free(copy);
    if (db->database == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the connection to MongoDB");
    }
    if (*ret_uri == NULL) {
        /* The driver's own message may contain part of the password. */
        return ng_fail(call, NG_EINVAL,
                       "mongo.uri is not a MongoDB address: it must look like "
                       "mongodb://[user:password@]host[:port]/[?options], with special "
                       "characters of user and password percent-encoded");
    }
    return NG_OK;
}

int conn_open(struct mongo *db, struct ng_call *call, const struct ng_conf *conf)
{
    mongoc_uri_t *uri = NULL;
    bson_error_t error;
    (void)pthread_once(&driver_once, driver_start);
    int rc = read_conf(db, call, conf, &uri);
    if (rc != NG_OK) {
        return rc;
    }
    const char *lowered = lowers(uri);
    if (lowered != NULL) {
        mongoc_uri_destroy(uri);
        return ng_fail(
            call, NG_EINVAL,
            "mongo.uri: %s lowers what notegate promises: changes are acknowledged "
            "by a majority of the replica set with the journal on disk, read as such from the "
            "primary, and retried; remove this option",
            lowered);
    }
    set_limit(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, db->timeout_ms);
    set_limit(uri, MONGOC_URI_CONNECTTIMEOUTMS, db->timeout_ms / 2);
    set_limit(uri, MONGOC_URI_SOCKETTIMEOUTMS, db->timeout_ms);
    set_limit(uri, MONGOC_URI_WAITQUEUETIMEOUTMS, db->timeout_ms);
    set_limit(uri, MONGOC_URI_MAXPOOLSIZE, POOL_MAX + (int64_t)db->writers);
    int64_t pool = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, POOL_MAX);
    if (pool <= POOL_SHARED) {
        mongoc_uri_destroy(uri);
        return ng_fail(call, NG_EINVAL,
                       "mongo.uri: maxPoolSize is %lld, and notegate needs at least %d "
                       "connections: for the change stream, a writer and readers",
                       (long long)pool, POOL_SHARED + 1);
    }
    db->writers = size_min(db->writers, (size_t)(pool - POOL_SHARED));
    if (!mongoc_uri_has_option(uri, MONGOC_URI_APPNAME)) {
        (void)mongoc_uri_set_appname(uri, "notegate");
    }
    set_concerns(uri);
    set_where(db, uri);
    db->pool = mongoc_client_pool_new_with_error(uri, &error);
    mongoc_uri_destroy(uri);
    if (db->pool == NULL) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "the connection to MongoDB at %s cannot be made: %s", db->where,
                       error.message);
    }
    (void)mongoc_client_pool_set_error_api(db->pool, MONGOC_ERROR_API_VERSION_2);
    doubts_watch(db);
    if (thread_open(&db->clock_step.thread, clock_step_main, db, &db->clock_step.started) !=
        NG_OK) {
        return ng_fail(call, NG_EINTERNAL, "the threads that use MongoDB cannot be started");
    }
    return NG_OK;
}

void conn_close(struct mongo *db)
{
    atomic_store(&db->closing, true);
    if (db->clock_step.started) {
        (void)pthread_join(db->clock_step.thread, NULL);
    }
    if (db->pool != NULL) {
        mongoc_client_pool_destroy(db->pool);
    }
    free(db->database);
}

/* Whether an operation may use the server: always, but only one at a time while it is down. */
static bool may_try(struct mongo *db)
{
    int_fast64_t until = atomic_load(&db->down_until_ms);
    int64_t now = monotonic_ms();
    return until == 0 ||
           (now >= until &&
            atomic_compare_exchange_strong(&db->down_until_ms, &until, now + db->timeout_ms));
}

void conn_good(struct mongo *db)
{
    atomic_store(&db->good_ms, monotonic_ms());
    if (conn_is_down(db)) {
        atomic_store(&db->down_until_ms, 0);
    }
}

void conn_down(struct mongo *db, const struct fault *fault)
{
    lock_take(&db->down_lock);
    (void)snprintf(db->down_text, sizeof(db->down_text), "%s", fault->text);
    lock_release(&db->down_lock);
    atomic_store(&db->down_until_ms, monotonic_ms() + DOWN_MS);
}

bool conn_is_down(struct mongo *db)
{
    return atomic_load(&db->down_until_ms) != 0;
}

void conn_refuse(struct mongo *db, struct fault *fault)
{
    lock_take(&db->down_lock);
    (void)fault_refuse(fault, NG_EUNAVAILABLE, "%s", db->down_text);
    lock_release(&db->down_lock);
}

mongoc_client_t *conn_acquire(struct mongo *db, struct fault *fault)
{
    memset(fault, 0, sizeof(*fault));
    if (!may_try(db)) {
        conn_refuse(db, fault);
        return NULL;
    }
    mongoc_client_t *client = mongoc_client_pool_pop(db->pool);
    if (client == NULL) {
        (void)fault_refuse(fault, NG_EUNAVAILABLE,
                           "all connections to MongoDB at %s are in use; try again, or raise "
                           "maxPoolSize in mongo.uri",
                           db->where);
        return NULL;
    }
    bool admitted =
        atomic_load(&db->admission) == ADMIT_DONE || server_admit(db, client, fault);
    if (!admitted || !doubts_settle(db, client, fault)) {
        conn_release(db, client);
        return NULL;
    }
    return client;
}

void conn_release(struct mongo *db, mongoc_client_t *client)
{
    if (client != NULL) {
        mongoc_client_pool_push(db->pool, client);
    }
}
