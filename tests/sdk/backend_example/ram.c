/* SPDX-License-Identifier: MIT */
/* ram.c - documents in memory: a backend that does all that is required, and nothing fast.
 * `notegate test-backend` agrees. Queries are in ram_query.c. */
#include "ram.h"

#include <stdio.h>
#include <stdlib.h>

static struct document *find(const struct ram *ram, const struct ng_key *key)
{
    struct document *document = ram->documents;
    while (document != NULL && !(same(document->newest->doc.key.id, key->id) &&
                                 same(document->newest->doc.key.space, key->space) &&
                                 same(document->newest->doc.key.collection, key->collection))) {
        document = document->next;
    }
    return document;
}

/* ---- opening, closing, declaring ---- */

static int ram_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    (void)conf;
    pthread_mutexattr_t recursive;
    struct ram *ram = calloc(1, sizeof(*ram));
    if (ram == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the store");
    }
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&ram->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    ram->host = call->host; /* outlives the call, and the store */
    *ret_db = ram;
    return NG_OK;
}

/* All lists begin with the next one. */
static void free_list(void *list)
{
    while (list != NULL) {
        void *next;
        memcpy(&next, list, sizeof(next));
        free(list);
        list = next;
    }
}

static void ram_close(void *db)
{
    struct ram *ram = db;
    if (ram == NULL) {
        return;
    }
    free_list(ram->first);
    free_list(ram->documents);
    free_list(ram->answers);
    free_list(ram->collections);
    pthread_mutex_destroy(&ram->lock);
    free(ram);
}

/* Copies what is lent to *at, and moves that on. Absent stays absent. */
static struct ng_str keep(char **at, struct ng_str text)
{
    struct ng_str copy = {text.data == NULL ? NULL : *at, text.len};
    if (text.data != NULL && text.len > 0) {
        memcpy(*at, text.data, text.len);
    }
    *at += text.len;
    return copy;
}

const struct collection *ram_collection(const struct ram *ram, struct ng_str name)
{
    const struct collection *collection = ram->collections; /* the newest declaration first */
    while (collection != NULL && !same(collection->name, name)) {
        collection = collection->next;
    }
    return collection;
}

/* A field may be larger than the struct of this module's headers: the step is said. */
static const struct ng_field *field_at(const struct ng_collection *collection, size_t i)
{
    return (const void *)((const char *)collection->fields + i * collection->field_size);
}

static int ram_declare(void *db, struct ng_call *call, const struct ng_collection *declared)
{
    struct ram *ram = db;
    size_t bytes = strlen(declared->name);
    for (size_t i = 0; i < declared->field_count; i++) {
        bytes += strlen(field_at(declared, i)->name);
    }
    struct collection *collection =
        calloc(1, sizeof(*collection) + declared->field_count * sizeof(struct field) + bytes);
    if (collection == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for a collection");
    }
    collection->fields = (struct field *)(void *)(collection + 1);
    collection->field_count = declared->field_count;
    char *at = (char *)(collection->fields + declared->field_count);
    collection->name = keep(&at, ng_str_of(declared->name));
    for (size_t i = 0; i < declared->field_count; i++) {
        collection->fields[i].name = keep(&at, ng_str_of(field_at(declared, i)->name));
        collection->fields[i].use = field_at(declared, i)->use;
    }
    pthread_mutex_lock(&ram->lock);
    collection->next = ram->collections;
    ram->collections = collection;
    pthread_mutex_unlock(&ram->lock);
    return NG_OK;
}

/* ---- writing ---- */

/* NULL: no memory. */
static struct revision *revision_new(const struct ng_put *put)
{
    size_t bytes = put->key.collection.len + put->key.space.len + put->key.id.len +
                   put->json.len + put->text.len + put->agent.len + put->tool.len +
                   put->action.len + put->event_data.len + 1;
    for (size_t i = 0; i < put->field_count; i++) {
        bytes += put->fields[i].name.len + put->fields[i].text.len;
    }
    size_t fields = put->field_count * sizeof(struct ng_field_value);
    struct revision *revision = calloc(1, sizeof(*revision) + fields + bytes);
    if (revision == NULL) {
        return NULL;
    }
    revision->fields = (struct ng_field_value *)(void *)(revision + 1);
    revision->field_count = put->field_count;
    char *at = (char *)(revision->fields + put->field_count);
    struct ng_doc *doc = &revision->doc;
    doc->size = sizeof(*doc);
    doc->key.collection = keep(&at, put->key.collection);
    doc->key.space = keep(&at, put->key.space);
    doc->key.id = keep(&at, put->key.id);
    doc->json = keep(&at, put->json);
    doc->text = keep(&at, put->text);
    doc->text_size = put->text.len;
    doc->author = keep(&at, put->agent);
    doc->action = keep(&at, put->action);
    doc->revision = put->revision;
    doc->deleted = put->deleted;
    doc->created_ms = put->created_ms;
    doc->updated_ms = put->time_ms;
    revision->tool = keep(&at, put->tool);
    revision->event_data = keep(&at, put->event_data);
    revision->quiet = put->quiet;
    for (size_t i = 0; i < put->field_count; i++) {
        revision->fields[i] = put->fields[i]; /* this struct never grows */
        revision->fields[i].name = keep(&at, put->fields[i].name);
        revision->fields[i].text = keep(&at, put->fields[i].text);
    }
    return revision;
}

static struct answer *answer_find(const struct ram *ram, struct ng_str scope)
{
    struct answer *answer = ram->answers;
    while (answer != NULL && !(same(answer->kept.scope, scope) &&
                               answer->kept.expires_ms > ram->host->now_ms())) {
        answer = answer->next;
    }
    return answer;
}

static struct answer *answer_new(const struct ng_answer *given)
{
    struct answer *answer =
        malloc(sizeof(*answer) + given->scope.len + given->body_hash.len + given->reply.len);
    if (answer != NULL) {
        char *at = (char *)(answer + 1);
        answer->kept.size = sizeof(answer->kept);
        answer->kept.scope = keep(&at, given->scope);
        answer->kept.body_hash = keep(&at, given->body_hash);
        answer->kept.reply = keep(&at, given->reply);
        answer->kept.time_ms = given->time_ms;
        answer->kept.expires_ms = given->expires_ms;
    }
    return answer;
}

static int check(const struct ram *ram, struct ng_batch *batch)
{
    for (size_t i = 0; i < batch->put_count; i++) {
        const struct ng_key *key = &batch->puts[i]->key;
        const struct document *document = find(ram, key);
        if (ram_collection(ram, key->collection) == NULL || key->id.len > NG_ID_MAX) {
            (void)snprintf(batch->error, sizeof(batch->error),
                           "the collection is not declared, or the id is too long");
            return NG_EINVAL;
        }
        uint64_t revision = document != NULL ? document->newest->doc.revision : 0;
        if (revision != batch->puts[i]->base_revision) {
            batch->failed_put = i;
            (void)snprintf(batch->error, sizeof(batch->error),
                           "the document is at another revision");
            return NG_ECONFLICT;
        }
    }
    if (batch->answer != NULL && answer_find(ram, batch->answer->scope) != NULL) {
        (void)snprintf(batch->error, sizeof(batch->error), "the key was used before");
        return NG_EKEYREUSED;
    }
    return NG_OK;
}

static void store(struct ram *ram, struct ng_put *put, struct revision *revision,
                  struct document *fresh)
{
    struct document *document = find(ram, &put->key);
    if (document == NULL) {
        document = fresh;
        document->next = ram->documents;
        ram->documents = document;
    } else {
        free(fresh);
    }
    put->seq = revision->doc.seq = ++ram->seq;
    bool keeps = put->created_seq == NG_SEQ_KEEP && document->newest != NULL;
    revision->doc.created_seq = keeps ? document->newest->doc.created_seq : revision->doc.seq;
    revision->before = document->newest;
    document->newest = revision;
    if (ram->last != NULL) {
        ram->last->later = revision;
    } else {
        ram->first = revision;
    }
    ram->last = revision;
}

/* All conditions and all memory first, then nothing can fail any more. */
static int apply(struct ram *ram, struct ng_batch *batch)
{
    int rc = check(ram, batch);
    if (rc != NG_OK) {
        return rc;
    }
    struct revision **revisions = calloc(batch->put_count + 1, sizeof(struct revision *));
    struct document **fresh = calloc(batch->put_count + 1, sizeof(struct document *));
    struct answer *answer = batch->answer != NULL ? answer_new(batch->answer) : NULL;
    bool ok = revisions != NULL && fresh != NULL && (batch->answer == NULL || answer != NULL);
    for (size_t i = 0; i < batch->put_count && ok; i++) {
        revisions[i] = revision_new(batch->puts[i]);
        fresh[i] = calloc(1, sizeof(*fresh[i]));
        ok = revisions[i] != NULL && fresh[i] != NULL;
    }
    for (size_t i = 0; revisions != NULL && fresh != NULL && i < batch->put_count; i++) {
        struct ng_put *put = batch->puts[i];
        if (ok && put->revision != put->base_revision) {
            store(ram, put, revisions[i], fresh[i]);
        } else { /* only a condition, or no memory */
            free(revisions[i]);
            free(fresh[i]);
        }
    }
    if (ok && answer != NULL) {
        answer->next = ram->answers;
        ram->answers = answer;
    } else {
        free(answer);
    }
    free(revisions);
    free(fresh);
    if (!ok) {
        (void)snprintf(batch->error, sizeof(batch->error), "no memory for the change");
    }
    return ok ? NG_OK : NG_EINTERNAL;
}

static int ram_commit(void *db, struct ng_batch *batch, ng_done_fn *done, void *user)
{
    struct ram *ram = db;
    pthread_mutex_lock(&ram->lock);
    int rc = apply(ram, batch);
    pthread_mutex_unlock(&ram->lock);
    done(user, batch, rc);
    return NG_OK;
}

/* ---- reading one ---- */

static int ram_get(void *db, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                   ng_row_fn *row, void *user)
{
    struct ram *ram = db;
    pthread_mutex_lock(&ram->lock);
    const struct document *document = find(ram, key);
    const struct revision *found = document != NULL ? document->newest : NULL;
    while (found != NULL && revision != 0 && found->doc.revision != revision) {
        found = found->before;
    }
    if (found != NULL) {
        (void)row(user, &found->doc);
    }
    pthread_mutex_unlock(&ram->lock);
    return found != NULL ? NG_OK
                         : ng_fail(call, NG_ENOTFOUND, "there is no such document or revision");
}

static int ram_history(void *db, struct ng_call *call, const struct ng_key *key,
                       const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct ram *ram = db;
    pthread_mutex_lock(&ram->lock);
    const struct document *document = find(ram, key);
    uint64_t newest = document != NULL ? document->newest->doc.revision : 0;
    uint64_t from = range->from > 1 ? range->from : 1;
    uint64_t to = range->to != 0 && range->to < newest ? range->to : newest;
    bool stop = false;
    for (uint64_t i = 0; from + i <= to && i < range->limit && !stop; i++) {
        uint64_t wanted = range->ascending ? from + i : to - i;
        const struct revision *revision = document->newest; /* they have no gap */
        while (revision->doc.revision != wanted) {
            revision = revision->before;
        }
        struct ng_doc doc = revision->doc;
        if (!range->with_body) {
            doc.json.data = doc.text.data = NULL;
            doc.json.len = doc.text.len = 0;
        }
        stop = row(user, &doc) != 0;
    }
    pthread_mutex_unlock(&ram->lock);
    return document != NULL ? NG_OK : ng_fail(call, NG_ENOTFOUND, "there is no such document");
}

static int ram_changes(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                       ng_event_fn *event, void *user)
{
    struct ram *ram = db;
    uint32_t given = 0;
    bool stop = false;
    (void)call;
    pthread_mutex_lock(&ram->lock);
    for (const struct revision *at = ram->first; at != NULL && given < limit && !stop;
         at = at->later) {
        if (at->doc.seq <= since || at->quiet) {
            continue;
        }
        struct ng_event told = {
            .size = sizeof(told),
            .seq = at->doc.seq,
            .time_ms = at->doc.updated_ms,
            .key = at->doc.key,
            .revision = at->doc.revision,
            .agent = at->doc.author,
            .tool = at->tool,
            .action = at->doc.action,
            .data = at->event_data,
        };
        given++;
        stop = event(user, &told) != 0;
    }
    pthread_mutex_unlock(&ram->lock);
    return NG_OK;
}

/* Into memory of the call, which lasts longer than the lock. False: there is none. */
static bool copy(struct ng_call *call, struct ng_str text, struct ng_str *ret)
{
    char *at = ng_alloc(call, text.len + 1);
    if (at != NULL) {
        *ret = keep(&at, text);
    }
    return at != NULL;
}

static int ram_answer(void *db, struct ng_call *call, struct ng_str scope,
                      struct ng_answer *ret)
{
    struct ram *ram = db;
    struct ng_answer found = {.size = sizeof(found)};
    pthread_mutex_lock(&ram->lock);
    const struct answer *answer = answer_find(ram, scope);
    int rc = answer == NULL ? ng_fail(call, NG_ENOTFOUND, "there is no answer") : NG_OK;
    if (answer != NULL) {
        found.time_ms = answer->kept.time_ms;
        found.expires_ms = answer->kept.expires_ms;
        if (!copy(call, answer->kept.scope, &found.scope) ||
            !copy(call, answer->kept.body_hash, &found.body_hash) ||
            !copy(call, answer->kept.reply, &found.reply)) {
            rc = ng_fail(call, NG_EINTERNAL, "no memory for an answer");
        }
    }
    pthread_mutex_unlock(&ram->lock);
    if (rc == NG_OK) {
        ng_fill(ret, &found); /* *ret may be smaller or larger than ours */
    }
    return rc;
}

static const struct ng_documents ram_documents = {
    .name = "ram",
    .version = "1.0.0",
    .flags = NG_DOCUMENTS_MEMORY | NG_DOCUMENTS_ONLY_DELETED,
    .open = ram_open,
    .close = ram_close,
    .declare = ram_declare,
    .commit = ram_commit,
    .get = ram_get,
    .query = ram_query,
    .history = ram_history,
    .changes = ram_changes,
    .answer = ram_answer,
};

NG_EXPORT_DOCUMENTS(ram_documents);
