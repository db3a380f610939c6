/* SPDX-License-Identifier: MIT */
/* verify.c - lets the backend verify its data, and adds the checks of the core. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/archive/archive.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/json/json.h"
#include "core/store/store.h"

/* Events checked in one batch. */
#define VERIFY_EVENTS 500

struct verify {
    struct ng_writer writer;
    uint64_t count;
    uint64_t last_seq; /* of the events so far */
    struct arena arena;
    struct event_key *keys; /* of one go of events */
    size_t key_count;
};

/* An event's document, looked for when its go of events is read. */
struct event_key {
    struct ng_key key;
    uint64_t revision, seq;
};

static void verify_finding(void *user, const char *text)
{
    struct verify *verify = user;
    verify->count++;
    if (verify->count <= VERIFY_FAULTS_MAX) {
        json_cstring(&verify->writer, text);
    }
}

static int verify_take_event(void *user, const struct ng_event *event)
{
    struct verify *verify = user;
    char text[160];
    if (event->seq <= verify->last_seq) {
        (void)snprintf(text, sizeof(text), "event %llu comes after event %llu",
                       (unsigned long long)event->seq, (unsigned long long)verify->last_seq);
        verify_finding(verify, text);
        return 1;
    }
    verify->last_seq = event->seq;
    struct event_key *one = &verify->keys[verify->key_count];
    one->key.collection = arena_copy(&verify->arena, event->key.collection);
    one->key.space = arena_copy(&verify->arena, event->key.space);
    one->key.id = arena_copy(&verify->arena, event->key.id);
    one->revision = event->revision;
    one->seq = event->seq;
    verify->key_count++;
    if (verify->arena.failed) {
        return 1;
    }
    return 0;
}

static int verify_take_revision(void *user, const struct ng_doc *row)
{
    *(uint64_t *)user = row->revision;
    return 1;
}

/* An event tells of a revision that was committed with it: its document is at least there. */
static int verify_event(struct verify *verify, struct gateway *gateway, struct call *call,
                        const struct event_key *event)
{
    void *db = NULL;
    uint64_t revision = 0;
    char text[512];
    const struct ng_documents *backend = store_backend(gateway->store, &db);
    int rc = backend->get(db, &call->pub, &event->key, 0, verify_take_revision, &revision);
    if ((rc == NG_OK && revision >= event->revision) || (rc != NG_OK && rc != NG_ENOTFOUND)) {
        return rc;
    }
    struct ng_str id = utf8_cut(event->key.id, 200);
    (void)snprintf(text, sizeof(text),
                   "event %llu is about revision %llu of %.*s \"%.*s\", which is at %llu",
                   (unsigned long long)event->seq, (unsigned long long)event->revision,
                   (int)event->key.collection.len, event->key.collection.data, (int)id.len,
                   id.data, (unsigned long long)revision);
    verify_finding(verify, text);
    return NG_OK;
}

static int verify_events(struct verify *verify, struct gateway *gateway, struct call *call)
{
    int rc = NG_OK;
    uint64_t since = 0;
    do {
        arena_reset(&verify->arena);
        verify->keys = arena_zalloc(&verify->arena, VERIFY_EVENTS * sizeof(*verify->keys));
        verify->key_count = 0;
        if (verify->keys == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory");
        }
        since = verify->last_seq;
        rc = store_changes(gateway->store, call, since, VERIFY_EVENTS, verify_take_event,
                           verify);
        if (verify->arena.failed) {
            return call_fail(call, NG_EINTERNAL, "out of memory");
        }
        for (size_t i = 0; i < verify->key_count && rc == NG_OK; i++) {
            rc = verify_event(verify, gateway, call, &verify->keys[i]);
        }
    } while (rc == NG_OK && verify->last_seq > since);
    return rc;
}

/* Data directory, backend and counts: a report of the wrong store is worse than none. */
static int verify_looked_at(struct verify *verify, struct gateway *gateway, struct call *call)
{
    void *db = NULL;
    const struct ng_documents *backend = store_backend(gateway->store, &db);
    struct archive_counts counts = {0};
    int rc = archive_count_store(gateway->store, call, &counts);
    char *real = realpath(gateway->data_dir, NULL);
    json_member_cstring(&verify->writer, "data_dir", real == NULL ? gateway->data_dir : real);
    json_member_cstring(&verify->writer, "backend", backend->name);
    if (rc == NG_OK) {
        json_member_int(&verify->writer, "documents", (int64_t)counts.documents);
        json_member_int(&verify->writer, "revisions", (int64_t)counts.revisions);
        json_member_int(&verify->writer, "events", (int64_t)counts.events);
    }
    free(real);
    /* Counting reads all data: what is damaged may stop it, and the faults tell of that. */
    return rc == NG_ENOTFOUND || verify->count > 0 ? NG_OK : rc;
}

int verify_print(struct gateway *gateway, struct call *call, struct buf *out)
{
    void *db = NULL;
    const struct ng_documents *backend = store_backend(gateway->store, &db);
    struct verify verify = {.count = 0};
    arena_init(&verify.arena, 0);
    json_writer_init(&verify.writer, out);
    json_object(&verify.writer);
    json_name(&verify.writer, "faults");
    json_array(&verify.writer);
    int rc;
    if (backend->verify == NULL) {
        rc = call_fail(call, NG_EFAILED, "the backend %s does not support verify",
                       backend->name);
    } else {
        rc = backend->verify(db, &call->pub, verify_finding, &verify);
    }
    if (rc == NG_OK) {
        rc = verify_events(&verify, gateway, call);
    }
    json_end(&verify.writer);
    json_member_int(&verify.writer, "count", (int64_t)verify.count);
    json_member_bool(&verify.writer, "ok", verify.count == 0);
    if (rc == NG_OK) {
        rc = verify_looked_at(&verify, gateway, call);
    }
    json_end(&verify.writer);
    arena_done(&verify.arena);
    return rc;
}
