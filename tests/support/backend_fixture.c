/* SPDX-License-Identifier: MIT */
/* backend_fixture.c - one documents backend without a gateway. */
#include "backend_fixture.h"

#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/host/host.h"

#define SETS_MAX 8
#define SET_BYTES 640

static atomic_uint store_count;

static const struct ng_field thing_fields[] = {
    {.name = "tag", .use = NG_FIELD_TAG},
    {.name = "n", .use = NG_FIELD_NUMBER},
    {.name = "s", .use = NG_FIELD_STRING},
    {.name = "title", .use = NG_FIELD_TEXT, .weight = 4.0},
};

const struct ng_collection fixture_collections[3] = {
    {
        .name = "things",
        .flags = NG_COLLECTION_TEXT_SEARCH,
        .fields = thing_fields,
        .field_count = NG_COUNT(thing_fields),
        .field_size = sizeof(struct ng_field),
    },
    {.name = "quiet", .flags = NG_COLLECTION_QUIET},
    {.name = "fleeting", .flags = NG_COLLECTION_NO_HISTORY},
};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

/* The set with "{store}" replaced by what no other store of any test is called. */
static const char *set_of(const char *set, unsigned number, char ret[SET_BYTES])
{
    static const char mark[] = "{store}";
    const char *found = strstr(set, mark);
    if (found == NULL) {
        return set;
    }
    int len = snprintf(ret, SET_BYTES, "%.*s%ld_%u%s", (int)(found - set), set, (long)getpid(),
                       number, found + sizeof(mark) - 1);
    assert_true(len > 0 && len < SET_BYTES);
    return ret;
}

void fixture_load(struct fixture *fixture, const char *module_name, const char *const *sets)
{
    char folder[SET_BYTES];
    const char *const folders[] = {folder, NULL};
    const char *all[SETS_MAX + 1];
    char named[SETS_MAX + 1][SET_BYTES];
    char data_dir[300];
    struct buf error;
    size_t count = 0;
    unsigned number = atomic_fetch_add(&store_count, 1);
    const char *tmp = getenv("TMPDIR");
    assert_int_equal(loader_default_folders(NG_KIND_DOCUMENTS, folder, sizeof(folder)), NG_OK);
    memset(fixture, 0, sizeof(*fixture));
    fixture->module_name = module_name;
    fixture->sets = sets;
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "%s/notegate-store-XXXXXX",
                   tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(data_dir, sizeof(data_dir), "data_dir=%s", fixture->dir);
    all[count++] = data_dir;
    for (size_t i = 0; sets != NULL && sets[i] != NULL; i++) {
        assert_true(count < SETS_MAX);
        all[count] = set_of(sets[i], number, named[count]);
        count++;
    }
    buf_init(&error, 65536);
    struct config_input input = {.no_file = true, .sets = all, .set_count = count};
    if (loader_open(folders, module_name, NG_KIND_DOCUMENTS, &fixture->module, &error) !=
        NG_OK) {
        fail_msg("the backend did not load: %s", buf_cstr(&error));
    }
    fixture->name = fixture->module->desc.documents.name;
    if (config_load(&input, &fixture->config, &error) != NG_OK ||
        config_declare(fixture->config, fixture->name, fixture->module->desc.documents.options,
                       fixture->module->desc.documents.option_count, sizeof(struct ng_option),
                       &error) != NG_OK) {
        fail_msg("the backend did not load: %s", buf_cstr(&error));
    }
    buf_done(&error);
    fixture->inner = fixture->docs = &fixture->module->desc.documents;
}

struct ng_call *fixture_call(struct fixture *fixture)
{
    call_unref(fixture->call);
    fixture->call = call_new(NULL);
    assert_non_null(fixture->call);
    fixture->call->pub.host = &call_host;
    return &fixture->call->pub;
}

const char *fixture_error(struct fixture *fixture)
{
    struct ng_str text = fixture->call->staged.message;
    return text.data != NULL ? text.data : "";
}

int fixture_start(struct fixture *fixture)
{
    return fixture->docs->open(fixture_call(fixture),
                               config_view(fixture->config, fixture->name), &fixture->db);
}

void fixture_declare(struct fixture *fixture)
{
    for (size_t i = 0; i < NG_COUNT(fixture_collections); i++) {
        assert_int_equal(
            fixture->docs->declare(fixture->db, fixture_call(fixture), &fixture_collections[i]),
            NG_OK);
    }
}

void fixture_open(struct fixture *fixture, const char *module_name, const char *const *sets)
{
    fixture_load(fixture, module_name, sets);
    if (fixture_start(fixture) != NG_OK) {
        fail_msg("the backend did not open: %s", fixture_error(fixture));
    }
    fixture_declare(fixture);
}

void fixture_stop(struct fixture *fixture)
{
    fixture->docs->close(fixture->db);
    fixture->db = NULL;
}

void fixture_close(struct fixture *fixture)
{
    fixture_stop(fixture);
    call_unref(fixture->call);
    config_free(fixture->config);
    loader_close(fixture->module);
    (void)nftw(fixture->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    memset(fixture, 0, sizeof(*fixture));
}

/* ---- writing ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool done;
    int rc;
};

static void on_done(void *user, struct ng_batch *batch, int rc)
{
    struct waiter *waiter = user;
    (void)batch;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->rc = rc;
    pthread_cond_signal(&waiter->moved);
    pthread_mutex_unlock(&waiter->lock);
}

static void splice_of(struct ng_str before, struct ng_str after, struct ng_splice *ret)
{
    size_t most = before.len < after.len ? before.len : after.len;
    size_t head = 0;
    size_t tail = 0;
    while (head < most && before.data[head] == after.data[head]) {
        head++;
    }
    while (tail < most - head &&
           before.data[before.len - 1 - tail] == after.data[after.len - 1 - tail]) {
        tail++;
    }
    ret->at = head;
    ret->removed = before.len - head - tail;
    ret->inserted =
        str_make(after.data == NULL ? "" : after.data + head, after.len - head - tail);
}

static size_t fields_of(const struct change *change, struct ng_field_value *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < NG_COUNT(change->tags) && change->tags[i] != NULL; i++) {
        ret[count].name = ng_str_of("tag");
        ret[count].use = NG_FIELD_TAG;
        ret[count++].text = ng_str_of(change->tags[i]);
    }
    if (change->has_n) {
        ret[count].name = ng_str_of("n");
        ret[count].use = NG_FIELD_NUMBER;
        ret[count++].number = change->n;
    }
    if (change->s != NULL) {
        ret[count].name = ng_str_of("s");
        ret[count].use = NG_FIELD_STRING;
        ret[count++].text = ng_str_of(change->s);
    }
    if (change->title != NULL) {
        ret[count].name = ng_str_of("title");
        ret[count].use = NG_FIELD_TEXT;
        ret[count++].text = ng_str_of(change->title);
    }
    return count;
}

/* As fixture_commit() makes it where a change has none. */
static struct ng_origin origin_of(const struct change *change)
{
    static const char *const runs[] = {"run-a", "run-b", "run-c"};
    return (struct ng_origin){
        .run_id = ng_str_of(runs[change->base % NG_COUNT(runs)]),
        .key_id = ng_str_of("key-1"),
        .request_id = ng_str_of("request"),
        .lines_added = change->base + 1,
        .lines_removed = change->base,
        .has_lines = true,
    };
}

static void put_of(const struct change *change, struct ng_field_value *fields,
                   struct ng_put *ret)
{
    static const struct ng_str empty = {"{}", 2};
    const char *collection = change->collection != NULL ? change->collection : "things";
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->key.collection = ng_str_of(collection);
    ret->key.space = ng_str_of(change->space != NULL ? change->space : "team");
    ret->key.id = change->id;
    ret->base_revision = change->base;
    ret->revision = change->only_condition ? change->base : change->base + 1;
    ret->deleted = change->deleted;
    ret->quiet = strcmp(collection, "quiet") == 0;
    ret->no_history = strcmp(collection, "fleeting") == 0;
    ret->json = change->json != NULL ? ng_str_of(change->json) : empty;
    ret->text = change->text.data != NULL ? change->text : str_make("", 0);
    struct ng_str before = change->base == 0             ? str_make("", 0)
                           : change->before_json != NULL ? ng_str_of(change->before_json)
                                                         : empty;
    splice_of(before, ret->json, &ret->json_splice);
    splice_of(change->before_text, ret->text, &ret->text_splice);
    ret->fields = fields;
    ret->field_count = fields_of(change, fields);
    ret->time_ms = change->time_ms != 0 ? change->time_ms : (int64_t)time(NULL) * 1000;
    ret->created_ms = ret->time_ms;
    ret->created_seq = change->base == 0 ? 0 : NG_SEQ_KEEP;
    ret->agent = ng_str_of(change->agent != NULL ? change->agent : "tester");
    ret->tool = ng_str_of("test_tool");
    ret->action = ng_str_of(change->action != NULL ? change->action
                            : change->deleted      ? "deleted"
                            : change->base == 0    ? "created"
                                                   : "updated");
    if (change->data != NULL) {
        ret->event_data = ng_str_of(change->data);
    }
    ret->origin = change->origin != NULL ? *change->origin : origin_of(change);
    ret->gateway = ng_str_of("0123456789abcdef");
}

int fixture_commit(struct fixture *fixture, struct change *changes, size_t count,
                   const struct ng_answer *answer, char *error, size_t *failed_put)
{
    struct ng_put *puts = calloc(count + 1, sizeof(*puts));
    struct ng_field_value *fields = calloc(8 * (count + 1), sizeof(*fields));
    struct ng_put **list = calloc(count + 1, sizeof(*list));
    assert_non_null(puts);
    assert_non_null(list);
    assert_non_null(fields);
    for (size_t i = 0; i < count; i++) {
        put_of(&changes[i], fields + 8 * i, &puts[i]);
        list[i] = &puts[i];
    }
    struct ng_batch batch = {
        .size = sizeof(batch), .puts = list, .put_count = count, .answer = answer};
    struct waiter waiter = {.done = false};
    pthread_mutex_init(&waiter.lock, NULL);
    pthread_cond_init(&waiter.moved, NULL);
    int rc = fixture->docs->commit(fixture->db, &batch, on_done, &waiter);
    if (rc == NG_OK) {
        pthread_mutex_lock(&waiter.lock);
        while (!waiter.done) {
            pthread_cond_wait(&waiter.moved, &waiter.lock);
        }
        pthread_mutex_unlock(&waiter.lock);
        rc = waiter.rc;
    }
    for (size_t i = 0; i < count; i++) {
        changes[i].seq = puts[i].seq;
    }
    if (error != NULL) {
        (void)snprintf(error, sizeof(batch.error), "%s", batch.error);
    }
    if (failed_put != NULL) {
        *failed_put = batch.failed_put;
    }
    pthread_mutex_destroy(&waiter.lock);
    pthread_cond_destroy(&waiter.moved);
    free(fields);
    free(list);
    free(puts);
    return rc;
}

/* How long a shared store may take to number a change, and how often one looks. */
#define SETTLE_TRIES 6000
#define SETTLE_NAP_NS 10000000L

static int take_seq(void *user, const struct ng_doc *doc)
{
    uint64_t *seq = user;
    *seq = doc->seq;
    return 0;
}

void fixture_settle(struct fixture *fixture, struct change *changes, size_t count)
{
    const struct timespec nap = {0, SETTLE_NAP_NS};
    for (size_t i = 0; i < count; i++) {
        struct change *change = &changes[i];
        struct ng_key key = {
            ng_str_of(change->collection != NULL ? change->collection : "things"),
            ng_str_of(change->space != NULL ? change->space : "team"), change->id};
        assert_true(change->only_condition || change->seq != 0 ||
                    (fixture->inner->flags & NG_DOCUMENTS_SHARED) != 0);
        for (int tries = 0; change->seq == 0 && !change->only_condition; tries++) {
            assert_true(tries < SETTLE_TRIES);
            assert_int_equal(fixture->docs->get(fixture->db, fixture_call(fixture), &key,
                                                change->base + 1, take_seq, &change->seq),
                             NG_OK);
            if (change->seq == 0) {
                (void)nanosleep(&nap, NULL);
            }
        }
    }
}

int fixture_put(struct fixture *fixture, const char *id, uint64_t base, const char *before,
                const char *text)
{
    struct change change = {
        .id = ng_str_of(id),
        .base = base,
        .text = ng_str_of(text),
        .before_text = ng_str_of(before != NULL ? before : ""),
    };
    return fixture_commit(fixture, &change, 1, NULL, NULL, NULL);
}

/* ---- reading ---- */

static char *copy(struct ng_str text)
{
    char *data = malloc(text.len + 1);
    assert_non_null(data);
    if (text.len > 0) {
        memcpy(data, text.data, text.len);
    }
    data[text.len] = '\0';
    return data;
}

int rows_add(void *user, const struct ng_doc *doc)
{
    struct rows *rows = user;
    assert_true(rows->count < FIXTURE_ROWS_MAX);
    rows->items = realloc(rows->items, (rows->count + 1) * sizeof(*rows->items));
    assert_non_null(rows->items);
    struct row *row = &rows->items[rows->count++];
    *row = (struct row){
        .collection = copy(doc->key.collection),
        .space = copy(doc->key.space),
        .id = copy(doc->key.id),
        .json = copy(doc->json),
        .text = copy(doc->text),
        .snippet = copy(doc->snippet),
        .author = copy(doc->author),
        .action = copy(doc->action),
        .id_len = doc->key.id.len,
        .text_len = doc->text.len,
        .revision = doc->revision,
        .seq = doc->seq,
        .created_seq = doc->created_seq,
        .text_size = doc->text_size,
        .updated_ms = doc->updated_ms,
        .deleted = doc->deleted,
        .has_text = doc->text.data != NULL,
        .has_json = doc->json.data != NULL,
        .score = doc->score,
    };
    return rows->stop_after != 0 && rows->count >= rows->stop_after;
}

void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->items[i];
        char *const texts[] = {row->collection, row->space,   row->id,     row->json,
                               row->text,       row->snippet, row->author, row->action};
        for (size_t j = 0; j < NG_COUNT(texts); j++) {
            free(texts[j]);
        }
    }
    free(rows->items);
    memset(rows, 0, sizeof(*rows));
}

int fixture_get(struct fixture *fixture, const char *id, uint64_t revision, struct rows *rows)
{
    struct ng_key key = {ng_str_of("things"), ng_str_of("team"), ng_str_of(id)};
    memset(rows, 0, sizeof(*rows));
    return fixture->docs->get(fixture->db, fixture_call(fixture), &key, revision, rows_add,
                              rows);
}

void expect_doc(struct fixture *fixture, const char *id, uint64_t revision, const char *text)
{
    struct rows rows;
    int rc = fixture_get(fixture, id, 0, &rows);
    if (revision == 0) {
        assert_int_equal(rc, NG_ENOTFOUND);
    } else {
        assert_int_equal(rc, NG_OK);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.items[0].revision, revision);
        assert_string_equal(rows.items[0].text, text);
    }
    rows_done(&rows);
}

static void on_finding(void *user, const char *text)
{
    size_t *count = user;
    ++*count;
    print_message("verify: %s\n", text);
}

void fixture_needs(bool offered, const char *member)
{
    if (!offered) {
        print_message("%s() is not offered\n", member);
        skip();
    }
}

void expect_clean(struct fixture *fixture)
{
    if (fixture->inner->verify == NULL) {
        return;
    }
    size_t findings = 0;
    assert_int_equal(
        fixture->docs->verify(fixture->db, fixture_call(fixture), on_finding, &findings),
        NG_OK);
    assert_int_equal(findings, 0);
}
