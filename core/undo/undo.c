/* SPDX-License-Identifier: MIT */
/* undo.c - takes back changes of many documents: plans them one after the other, commits them
 * in batches, and plans those again that have moved. */
#include "undo.h"

#include <time.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/history/trail.h"
#include "core/store/store.h"

#define UNDO_RUN_CHARS 12
/* Memory of a plan besides its contents. */
#define PLAN_BYTES ((size_t)4096)

/* Plans that are committed at once. */
struct batch {
    struct undo *undo;
    struct undo_plan plans[UNDO_BATCH];
    size_t count;
    size_t bytes;
    struct undo_doc *again, **last_again; /* to be planned once more */
    bool is_busy; /* one of them because the store had no place for it */
};

/* "undo-", and random digits and letters. */
static int make_run(struct undo *undo)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char bytes[UNDO_RUN_CHARS];
    if (!random_bytes(bytes, sizeof(bytes))) {
        return call_fail(undo->call, NG_EINTERNAL, "The system gives no random numbers.");
    }
    size_t at = sizeof(UNDO_RUN_PREFIX) - 1;
    memcpy(undo->run, UNDO_RUN_PREFIX, at);
    for (size_t i = 0; i < UNDO_RUN_CHARS; i++) {
        undo->run[at++] = digits[bytes[i] % (sizeof(digits) - 1)];
    }
    undo->run[at] = '\0';
    return NG_OK;
}

/* ---- one change ---- */

/* The changes that are taken back. */
static void put_changes(struct ng_writer *writer, const struct undo_doc *doc, bool with_path)
{
    json_name(writer, "of");
    json_array(writer);
    for (size_t i = 0; i < doc->count && i < UNDO_LISTED_MAX; i++) {
        json_int(writer, (int64_t)doc->revisions[i]);
    }
    json_end(writer);
    if (with_path) {
        json_member_string(writer, "path", doc->key.id);
    }
}

/* Those at the paths where the file was before. */
static void put_older(struct ng_writer *writer, const struct undo_doc *doc)
{
    const bool with_path = true;
    if (doc == NULL) {
        return;
    }
    json_name(writer, "also");
    json_array(writer);
    for (; doc != NULL; doc = doc->older) {
        json_object(writer);
        put_changes(writer, doc, with_path);
        json_end(writer);
    }
    json_end(writer);
}

/* Members of the event: which undo it is, and of what. Behind those of the plugin. */
static struct ng_str event_data(const struct undo_plan *plan, struct ng_str own)
{
    struct ng_writer writer;
    struct buf json;
    const struct undo_doc *doc = plan->doc;
    buf_init(&json, CALL_MEMORY_MAX);
    json_writer_init(&writer, &json);
    json_object(&writer);
    json_member_cstring(&writer, "undo", plan->undo->run);
    /* The event in the other space of a move between spaces must not reveal the path. */
    bool across = plan->file != NULL && plan->file->back.len > 0 &&
                  !str_equal(doc->moved_space, doc->key.space);
    put_changes(&writer, doc, doc->is_file && !across);
    put_older(&writer, doc->older);
    if (plan->undo->parent_run.len > 0) {
        json_member_string(&writer, "parent_run", plan->undo->parent_run);
    }
    struct ng_str folder = undo_file_folder(plan);
    if (folder.len > 0) {
        json_member_string(&writer, "folder", folder);
    }
    json_end(&writer);
    if (own.len > 2 && json.len > 0) { /* {"a":1} and {"undo":...}: one object */
        json.len--;
        (void)buf_add_char(&json, ',');
        (void)buf_add_str(&json, str_make(own.data + 1, own.len - 1));
    }
    struct ng_str text = {NULL, 0};
    if (json.rc == NG_OK) {
        text = arena_copy(&plan->call->arena, buf_str(&json));
    }
    buf_done(&json);
    return text;
}

/* Another change was faster: its result is merged instead. */
static int commit_merge(struct undo_plan *plan, const struct ng_doc *present)
{
    plan->moved = present->text.len + plan->bytes > UNDO_MERGE_BYTES;
    if (plan->moved) {
        return NG_OK;
    }
    int rc = undo_plan_merge(plan, present);
    /* The change that was faster may still fail, and another one get its number: a further run
     * of this function merges anew. */
    plan->present = UINT64_MAX;
    return rc;
}

static int commit_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct undo_plan *plan = user;
    struct call *call = call_of(pub);
    int rc = NG_OK;
    plan->made = 0;
    plan->moved = false;
    if (present->revision != plan->present) {
        rc = commit_merge(plan, present);
    }
    if (rc != NG_OK || plan->moved || plan->result != NG_UNDO_DONE) {
        return rc;
    }
    const struct ng_content content = {
        .size = sizeof(content),
        .key = plan->doc->key,
        .gone = !plan->next.exists,
        .text = plan->next.text,
        .members = plan->next.members,
        .last = plan->last,
    };
    rc = content_draft(call, &content, present, next);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str data = event_data(plan, store_draft_event_data(next));
    if (data.data == NULL) {
        return call_no_memory(call);
    }
    store_draft_event(next, data);
    plan->made = present->revision + 1;
    return NG_OK;
}

/* ---- the items of the answer ---- */

static int report_doc(const struct undo_plan *plan, const struct undo_doc *doc)
{
    struct undo *undo = plan->undo;
    struct ng_undo_item item = {
        .size = sizeof(item),
        .key = doc->shown,
        .revisions = doc->revisions,
        .revision_count = doc->count,
        .result = plan->result,
        .revision = plan->made,
        .conflict = plan->conflict,
    };
    if (doc == plan->doc) { /* of all its stays together */
        item.lines_added = plan->lines_added;
        item.lines_removed = plan->lines_removed;
    }
    undo->result.total++;
    undo->result.undone += plan->result == NG_UNDO_DONE;
    undo->result.unchanged += plan->result == NG_UNDO_UNCHANGED;
    undo->result.conflicts += plan->result == NG_UNDO_CONFLICT;
    return undo->work->item(undo->work->user, &item);
}

/* A file by each path that it was moved to. */
static int report(struct undo_plan *plan)
{
    int rc = NG_OK;
    for (const struct undo_doc *doc = plan->doc; doc != NULL && rc == NG_OK; doc = doc->older) {
        rc = report_doc(plan, doc);
    }
    return rc;
}

/* ---- a batch ---- */

static void batch_init(struct batch *batch, struct undo *undo)
{
    *batch = (struct batch){.undo = undo};
    batch->last_again = &batch->again;
}

static void batch_close(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        undo_plan_done(&batch->plans[i]);
    }
    batch->count = 0;
    batch->bytes = 0;
}

/* Is the failure one of the document, and not of the gateway? */
static bool is_refusal(int rc)
{
    return rc == NG_EINVAL || rc == NG_ETOOLARGE || rc == NG_ECONFLICT || rc == NG_EFORBIDDEN ||
           rc == NG_EFAILED || rc == NG_ENOTFOUND || rc <= NG_EPLUGIN;
}

static const char *refusal_name(int rc)
{
    if (rc == NG_ECONFLICT) {
        return "busy";
    }
    return rc == NG_ETOOLARGE ? "too_large" : "invalid_merge";
}

/* The plan after its commit. One that has moved is planned again. */
static int batch_take(struct batch *batch, struct undo_plan *plan, int rc)
{
    if (rc == NG_EBUSY) { /* the queue of the store is full */
        plan->moved = true;
        batch->is_busy = true;
        rc = NG_OK;
    }
    if (rc != NG_OK && !is_refusal(rc)) {
        return undo_plan_fail(plan, rc);
    }
    if (rc != NG_OK) {
        plan->made = 0;
        undo_plan_refuse(plan, refusal_name(rc));
    } else if (plan->moved && ++plan->doc->tries < UNDO_TRIES_MAX) {
        plan->doc->next = NULL;
        *batch->last_again = plan->doc;
        batch->last_again = &plan->doc->next;
        return NG_OK;
    } else if (plan->moved) {
        undo_plan_refuse(plan, "busy");
    }
    dispatch_take_changes(plan->undo->call, plan->call);
    return report(plan);
}

/* Also the answer of a deadline names it from now on. */
static void name_rest(struct undo *undo)
{
    call_set_rest(undo->call,
                  "the undo \"%s\" has begun, and `continue` with its name does the rest",
                  undo->run);
}

/* Before the first commit; one document needs no record. */
static int batch_record(struct batch *batch)
{
    struct undo *undo = batch->undo;
    if (undo->recorded || undo->first->next == NULL) {
        return NG_OK;
    }
    name_rest(undo); /* a commit of unknown outcome may have stored the record */
    return undo_record_write(undo);
}

/* A file is changed at once, as it is locked for it. */
static int batch_file(struct batch *batch, struct undo_plan *plan)
{
    struct ng_str data = event_data(plan, STR_NONE);
    int rc = batch_record(batch);
    if (rc == NG_OK && data.len < 2) {
        rc = call_no_memory(batch->undo->call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = undo_file_commit(plan, str_make(data.data + 1, data.len - 2));
    return batch_take(batch, plan, rc);
}

static int batch_commit(struct batch *batch)
{
    struct undo *undo = batch->undo;
    struct store_each items[UNDO_BATCH];
    if (batch->count == 0) {
        batch->bytes = 0;
        return NG_OK;
    }
    int rc = batch_record(batch);
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct undo_plan *plan = &batch->plans[i];
        items[i].call = plan->call;
        items[i].change = (struct ng_change){.size = sizeof(items[i].change),
                                             .key = plan->doc->key,
                                             .fn = commit_fn,
                                             .user = plan};
        items[i].rc = NG_OK;
    }
    store_write_each(undo->call->gateway->store, items, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        int taken = batch_take(batch, &batch->plans[i], items[i].rc);
        rc = rc != NG_OK ? rc : taken;
    }
    batch_close(batch);
    return rc;
}

/* Plans a document into the batch, or reports it. */
static int batch_add(struct batch *batch, struct undo_doc *doc)
{
    struct undo *undo = batch->undo;
    struct undo_plan *plan = &batch->plans[batch->count];
    *plan = (struct undo_plan){.undo = undo, .doc = doc, .call = dispatch_child(undo->call)};
    if (plan->call == NULL) {
        return call_no_memory(undo->call);
    }
    call_set_run(plan->call, ng_str_of(undo->run));
    int rc = undo_plan(plan);
    rc = rc == NG_OK ? rc : undo_plan_fail(plan, rc);
    batch->bytes += PLAN_BYTES + plan->bytes;
    if (rc == NG_OK && (undo->work->dry_run || plan->result != NG_UNDO_DONE)) {
        rc = report(plan);
    } else if (rc == NG_OK && doc->is_file) {
        rc = batch_file(batch, plan);
    } else if (rc == NG_OK) {
        batch->count++;
        return NG_OK;
    }
    undo_plan_done(plan);
    return rc;
}

static int check_cancelled(struct undo *undo)
{
    struct ng_call *call = &undo->call->pub;
    return call->host->cancelled(call) ? call_fail(undo->call, NG_ECANCELLED, "cancelled")
                                       : NG_OK;
}

/* Each document of the list; those that have moved are left in batch->again. */
static int run_pass(struct batch *batch, struct undo_doc *doc)
{
    int rc = NG_OK;
    while (rc == NG_OK && doc != NULL) {
        struct undo_doc *next = doc->next;
        rc = batch_add(batch, doc);
        if (rc == NG_OK && (batch->count == UNDO_BATCH || batch->bytes > UNDO_BATCH_BYTES)) {
            rc = batch_commit(batch);
        }
        if (rc == NG_OK) {
            rc = check_cancelled(batch->undo);
        }
        doc = next;
    }
    if (rc == NG_OK) {
        rc = batch_commit(batch);
    }
    batch_close(batch);
    return rc;
}

static int run_all(struct undo *undo)
{
    struct batch *batch = arena_alloc(&undo->call->arena, sizeof(*batch));
    struct undo_doc *docs = undo->first;
    int rc = NG_OK;
    if (batch == NULL) {
        return call_no_memory(undo->call);
    }
    do {
        batch_init(batch, undo);
        rc = run_pass(batch, docs);
        docs = batch->again;
        if (rc == NG_OK && batch->is_busy) {
            const struct timespec pause = {0, UNDO_BUSY_PAUSE_MS * 1000000L};
            (void)nanosleep(&pause, NULL);
        }
    } while (rc == NG_OK && docs != NULL);
    return rc;
}

/* ---- the whole ---- */

/* Shared documents get the numbers of their changes later. */
int undo_settle(struct call *call)
{
    struct store *store = call->gateway->store;
    if (!store_is_shared(store)) {
        return NG_OK;
    }
    int rc = store_settle(store, call, 0, UNDO_SETTLE_MS);
    return rc != NG_ETIMEOUT
               ? rc
               : call_fail(call, NG_EBUSY,
                           "the newest changes have no numbers yet, so it is not known what is "
                           "to be taken back; try again in a moment");
}

/* The selection of the work, with texts that live as long as the call. */
static int take_work(struct undo *undo)
{
    const struct ng_undo_work *work = undo->work;
    struct call *call = undo->call;
    if (work->again.data != NULL) {
        int read = undo_record_read(undo, work->again);
        if (read == NG_OK && !work->dry_run) {
            name_rest(undo);
        }
        return read;
    }
    undo->what = *work->what;
    undo->changes = work->changes;
    undo->change_count = work->change_count;
    undo->parent_run = call->caller.run_id;
    if (undo->what.spaces.count == 0 && !call->caller.all_spaces) {
        /* Frozen, too: a caller that continues it may see others. */
        undo->what.spaces = (struct ng_names){call->caller.spaces, call->caller.space_count};
    }
    uint64_t newest =
        u64_max(store_last_seq(call->gateway->store), store_look_seq(call->gateway->store));
    undo->what.until = u64_min(undo->what.until, newest);
    int rc = make_run(undo);
    if (rc == NG_OK && !work->dry_run) {
        (void)undo_running_add(undo); /* no other has this run */
    }
    return rc;
}

static int fail_cut_off(struct undo *undo, int rc)
{
    if (undo->recorded && !undo->work->dry_run) {
        struct ng_str message = undo->call->staged.message;
        (void)call_fail(undo->call, rc, "%.*s; %s", (int)message.len, message.data,
                        undo->call->rest_text);
        undo->call->pub.host->hint(&undo->call->pub,
                                   "A part is taken back; the argument `continue`: \"%s\" does "
                                   "the rest",
                                   undo->run);
    }
    return rc;
}

int undo_changes(struct call *call, const struct ng_undo_work *work, struct ng_undo_done *ret)
{
    struct undo *undo = arena_zalloc(&call->arena, sizeof(*undo));
    if (undo == NULL) {
        return call_no_memory(call);
    }
    undo->call = call;
    undo->work = work;
    undo->last_moved = &undo->moved;
    if (work->dry_run) {
        call_set(call, CALL_PREVIEWS);
    }
    int rc = undo_settle(call); /* before the selection is frozen */
    if (rc == NG_OK) {
        rc = take_work(undo);
    }
    if (rc == NG_OK) {
        rc = undo_select(undo);
    }
    if (rc == NG_OK) {
        rc = run_all(undo);
    }
    if (rc == NG_OK && !work->dry_run) {
        undo_file_drop_folders(undo);
        rc = undo_record_end(undo);
    }
    if (rc != NG_OK) {
        undo_release(undo);
    }
    undo_running_remove(undo);
    hash_table_done(&undo->table);
    hash_table_done(&undo->done);
    if (rc != NG_OK) {
        return fail_cut_off(undo, rc);
    }
    undo->result.size = ret->size;
    undo->result.upto = undo->what.until;
    undo->result.agents = (struct ng_names){undo->agents, undo->agent_count};
    bool begun = undo->result.undone > 0 || work->again.data != NULL;
    if (begun && !work->dry_run) {
        undo->result.run = arena_copy(&call->arena, ng_str_of(undo->run));
    }
    ng_fill(ret, &undo->result);
    return NG_OK;
}
