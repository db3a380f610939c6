/* SPDX-License-Identifier: MIT */
/* undo.c - takes back changes of many documents: plans them one after the other, commits them
 * in batches, and plans those again that have moved. */
#include "undo.h"

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/history/trail.h"
#include "core/store/store.h"

#define UNDO_RUN_CHARS 12
/* Documents of one commit; one place is that of the record. */
#define BATCH_MAX (NG_CHANGES_MAX - 1)

/* Plans that are committed together. Their memory is that of `call`. */
struct batch {
    struct undo *undo;
    struct call *call; /* NULL: none yet */
    struct undo_plan plans[BATCH_MAX];
    size_t count;
    size_t bytes;
    struct undo_doc *again, **last_again; /* to be planned once more */
};

/* Memory of a plan: of itself and, for each byte of the text, of the versions that it reads. */
#define PLAN_BYTES ((size_t)4096)
#define PLAN_COPIES 4

enum batch_end { BATCH_MORE, BATCH_LAST };

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
    json_name(&writer, "of");
    json_array(&writer);
    for (size_t i = 0; i < doc->count && i < UNDO_LISTED_MAX; i++) {
        json_int(&writer, (int64_t)doc->revisions[i]);
    }
    json_end(&writer);
    if (plan->undo->parent_run.len > 0) {
        json_member_string(&writer, "parent_run", plan->undo->parent_run);
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

static int commit_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct undo_plan *plan = user;
    struct call *call = call_of(pub);
    const struct ng_content content = {
        .size = sizeof(content),
        .key = plan->doc->key,
        .gone = !plan->next.exists,
        .text = plan->next.text,
        .members = plan->next.members,
        .last = plan->last,
    };
    plan->made = 0;
    plan->moved = present->revision != plan->present;
    if (plan->moved && !plan->undo->recorded) {
        return call_fail(call, NG_ECONFLICT, "the document has changed");
    }
    if (plan->moved) {
        plan->undo->keeps_record = true;
        return NG_OK;
    }
    int rc = content_draft(call, &content, present, next);
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

static int report(struct undo_plan *plan)
{
    struct undo *undo = plan->undo;
    const struct undo_doc *doc = plan->doc;
    const struct ng_undo_item item = {
        .size = sizeof(item),
        .key = doc->key,
        .revisions = doc->revisions,
        .revision_count = doc->count,
        .result = plan->result,
        .revision = plan->made,
        .lines_added = plan->lines_added,
        .lines_removed = plan->lines_removed,
        .conflict = plan->conflict,
    };
    undo->result.total++;
    undo->result.undone += plan->result == NG_UNDO_DONE;
    undo->result.unchanged += plan->result == NG_UNDO_UNCHANGED;
    undo->result.conflicts += plan->result == NG_UNDO_CONFLICT;
    return undo->work->item(undo->work->user, &item);
}

/* ---- a batch ---- */

static void batch_init(struct batch *batch, struct undo *undo)
{
    *batch = (struct batch){.undo = undo, .last_again = NULL};
    batch->last_again = &batch->again;
}

/* A call of the same caller, whose changes are those of the undo's run. */
static int batch_open(struct batch *batch)
{
    if (batch->call == NULL) {
        batch->call = dispatch_child(batch->undo->call);
    }
    if (batch->call == NULL) {
        return call_no_memory(batch->undo->call);
    }
    call_set_run(batch->call, ng_str_of(batch->undo->run));
    return NG_OK;
}

/* The audit entry of the undo's call names what the batch has changed. */
static void batch_note(struct batch *batch)
{
    for (const struct call_change *at = batch->call->changes; at != NULL; at = at->next) {
        const struct ng_key key = {at->collection, at->space, at->id};
        struct call_change *note = call_note_change(batch->undo->call, &key, at->revision);
        if (note != NULL) {
            note->seq = at->seq;
            note->is_stored = at->is_stored;
        }
    }
}

static void batch_close(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        undo_plan_done(&batch->plans[i]);
    }
    batch->count = 0;
    batch->bytes = 0;
    if (batch->call != NULL) {
        call_unref(batch->call);
        batch->call = NULL;
    }
}

static int batch_fail(struct batch *batch, int rc)
{
    struct ng_str message = batch->call->staged.message;
    return call_fail(batch->undo->call, rc, "%.*s", (int)message.len, message.data);
}

static void plan_change(struct undo_plan *plan, struct ng_change *change)
{
    *change = (struct ng_change){
        .size = sizeof(*change), .key = plan->doc->key, .fn = commit_fn, .user = plan};
}

/* One commit; the record goes with it if it is the last one. */
static int batch_write(struct batch *batch, const struct undo_plan *only, enum batch_end end)
{
    struct undo *undo = batch->undo;
    struct ng_change changes[NG_CHANGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (only == NULL || only == &batch->plans[i]) {
            plan_change(&batch->plans[i], &changes[count++]);
        }
    }
    undo->keeps_record = batch->again != NULL;
    if (end == BATCH_LAST && undo->recorded) {
        undo_record_drop(undo, &changes[count++]);
    }
    call_reset_result(batch->call);
    if (count == 0) {
        return NG_OK;
    }
    return store_write_wait(batch->call->gateway->store, batch->call, changes, count);
}

/* Is the failure one of the document, and not of the gateway? */
static bool is_refusal(int rc)
{
    return rc == NG_EINVAL || rc == NG_ETOOLARGE || rc == NG_ECONFLICT || rc == NG_EFORBIDDEN ||
           rc == NG_EFAILED || rc == NG_ENOTFOUND || rc <= NG_EPLUGIN;
}

/* One of the documents was refused: each by its own. */
static int batch_each(struct batch *batch)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < batch->count; i++) {
        struct undo_plan *plan = &batch->plans[i];
        rc = batch_write(batch, plan, BATCH_MORE);
        if (is_refusal(rc)) {
            plan->made = 0;
            plan->moved = false;
            undo_plan_refuse(plan, rc == NG_ETOOLARGE ? "too_large" : "invalid_merge");
            rc = NG_OK;
        }
    }
    return rc;
}

/* Those that have moved are planned again. */
static int batch_report(struct batch *batch)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < batch->count; i++) {
        struct undo_plan *plan = &batch->plans[i];
        if (plan->result == NG_UNDO_DONE && plan->moved &&
            ++plan->doc->tries < UNDO_TRIES_MAX) {
            plan->doc->next = NULL;
            *batch->last_again = plan->doc;
            batch->last_again = &plan->doc->next;
            continue;
        }
        if (plan->result == NG_UNDO_DONE && plan->moved) {
            undo_plan_refuse(plan, "busy");
        }
        rc = report(plan);
    }
    return rc;
}

static int batch_commit(struct batch *batch, enum batch_end end)
{
    struct undo *undo = batch->undo;
    int rc = batch_open(batch);
    /* Without a record there is one commit, of all or nothing. */
    if (rc == NG_OK && end == BATCH_MORE && !undo->recorded) {
        rc = undo_record_write(undo);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = batch_write(batch, NULL, end);
    if (is_refusal(rc) && !undo->recorded) {
        rc = undo_record_write(undo);
        if (rc != NG_OK) {
            return rc;
        }
        rc = batch_write(batch, NULL, end);
    }
    if (is_refusal(rc)) {
        rc = batch_each(batch);
    }
    if (rc != NG_OK) {
        return batch_fail(batch, rc);
    }
    batch_note(batch);
    rc = batch_report(batch);
    batch_close(batch);
    return rc;
}

/* Plans a document into the batch, or reports it. */
static int batch_add(struct batch *batch, struct undo_doc *doc)
{
    struct undo *undo = batch->undo;
    int rc = batch_open(batch);
    if (rc != NG_OK) {
        return rc;
    }
    struct undo_plan *plan = &batch->plans[batch->count];
    *plan = (struct undo_plan){.undo = undo, .doc = doc, .call = batch->call};
    rc = undo_plan(plan);
    batch->bytes += PLAN_BYTES + PLAN_COPIES * plan->next.text.len;
    if (rc == NG_OK && (undo->work->dry_run || plan->result != NG_UNDO_DONE)) {
        rc = report(plan);
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
        bool full = batch->count == BATCH_MAX || batch->bytes > UNDO_BATCH_BYTES;
        if (rc == NG_OK && full && next != NULL) {
            rc = batch->count > 0 ? batch_commit(batch, BATCH_MORE) : NG_OK;
            batch_close(batch);
            if (rc == NG_OK) {
                rc = check_cancelled(batch->undo);
            }
        }
        doc = next;
    }
    bool writes = batch->count > 0 || batch->undo->recorded;
    if (rc == NG_OK && writes && !batch->undo->work->dry_run) {
        rc = batch_commit(batch, BATCH_LAST);
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
    } while (rc == NG_OK && docs != NULL);
    return rc;
}

/* ---- the whole ---- */

/* The selection of the work, with texts that live as long as the call. */
static int take_work(struct undo *undo)
{
    const struct ng_undo_work *work = undo->work;
    struct call *call = undo->call;
    if (work->again.data != NULL) {
        return undo_record_read(undo, work->again);
    }
    undo->what = *work->what;
    undo->changes = work->changes;
    undo->change_count = work->change_count;
    undo->parent_run = call->caller.run_id;
    uint64_t newest =
        u64_max(store_last_seq(call->gateway->store), store_look_seq(call->gateway->store));
    undo->what.until = u64_min(undo->what.until, newest);
    return make_run(undo);
}

static int fail_cut_off(struct undo *undo, int rc)
{
    if (undo->recorded) {
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
    int rc = take_work(undo);
    if (rc == NG_OK) {
        rc = trail_settle(call);
    }
    if (rc == NG_OK) {
        rc = undo_select(undo);
    }
    if (rc == NG_OK) {
        rc = run_all(undo);
    }
    if (rc == NG_OK && !work->dry_run) {
        rc = undo_record_end(undo);
    }
    hash_table_done(&undo->table);
    hash_table_done(&undo->done);
    if (rc != NG_OK) {
        return fail_cut_off(undo, rc);
    }
    undo->result.size = ret->size;
    undo->result.upto = undo->what.until;
    undo->result.agents = (struct ng_names){undo->agents, undo->agent_count};
    if (undo->result.undone > 0 && !work->dry_run) {
        undo->result.run = arena_copy(&call->arena, ng_str_of(undo->run));
    }
    ng_fill(ret, &undo->result);
    return NG_OK;
}
