/* SPDX-License-Identifier: MIT */
/* undo_record.c - the records of the undos that have begun: what is taken back, by whom. */
#include <string.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "core/store/store.h"
#include "undo.h"

/* Bytes of a record; it has the names and numbers of the call that began the undo. */
#define RECORD_BYTES_MAX ((size_t)4 << 20)

static const struct ng_collection undo_records = {
    .name = UNDO_RECORDS,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

int undo_open(struct call *call)
{
    int rc = undo_running_open(call);
    return rc == NG_OK ? store_declare(call->gateway->store, call, &undo_records) : rc;
}

struct ng_key undo_record_key(struct ng_str run)
{
    return (struct ng_key){ng_str_of(UNDO_RECORDS), ng_str_of(UNDO_RECORDS_SPACE), run};
}

/* ---- the selection as JSON ---- */

struct record_names {
    const char *name;
    struct ng_names *names;
};

#define RECORD_LISTS 6

static void record_lists(struct ng_trail *what, struct record_names ret[RECORD_LISTS])
{
    const struct record_names lists[RECORD_LISTS] = {
        {"spaces", &what->spaces}, {"collections", &what->collections},
        {"agents", &what->agents}, {"runs", &what->runs},
        {"tools", &what->tools},   {"actions", &what->actions},
    };
    memcpy(ret, lists, sizeof(lists));
}

static void record_put(struct ng_writer *writer, struct undo *undo)
{
    struct record_names lists[RECORD_LISTS];
    const struct ng_trail *what = &undo->what;
    json_object(writer);
    struct ng_str process = cluster_name(undo->call->gateway->cluster);
    json_member_string(writer, "agent", undo->call->caller.agent);
    if (process.len > 0) {
        json_member_string(writer, "gateway", process);
    }
    json_member_int(writer, "time", clock_unix_ms());
    json_member_bool(writer, "all_spaces", undo->call->caller.all_spaces);
    json_member_string(writer, "parent_run", str_or(undo->parent_run, ng_str_of("")));
    json_member_int(writer, "since", (int64_t)what->since);
    json_member_int(writer, "until", (int64_t)what->until);
    record_lists(&undo->what, lists);
    for (size_t i = 0; i < RECORD_LISTS; i++) {
        json_member_strings(writer, lists[i].name, lists[i].names->items,
                            lists[i].names->count);
    }
    if (what->id.data != NULL) {
        json_member_string(writer, "id", what->id);
        json_member_bool(writer, "id_prefix", what->id_prefix);
    }
    if (undo->changes != NULL) {
        json_name(writer, "changes");
        json_array(writer);
        for (size_t i = 0; i < undo->change_count; i++) {
            json_int(writer, (int64_t)undo->changes[i]);
        }
        json_end(writer);
    }
    json_end(writer);
}

static int record_names_read(struct call *call, const struct ng_value *value,
                             struct ng_names *ret)
{
    size_t count = value != NULL ? value->count : 0;
    struct ng_str *items = arena_alloc(&call->arena, (count + 1) * sizeof(*items));
    size_t taken = 0;
    if (items == NULL) {
        return call_no_memory(call);
    }
    for (const struct ng_value *at = json_first(value); at != NULL; at = at->next) {
        items[taken++] = at->text;
    }
    *ret = (struct ng_names){items, taken};
    return NG_OK;
}

static int record_changes_read(struct undo *undo, const struct ng_value *value)
{
    struct call *call = undo->call;
    if (value == NULL) {
        return NG_OK;
    }
    uint64_t *changes = arena_alloc(&call->arena, (value->count + 1) * sizeof(*changes));
    if (changes == NULL) {
        return call_no_memory(call);
    }
    for (const struct ng_value *at = value->first; at != NULL; at = at->next) {
        int64_t number = 0;
        (void)json_integer(at, &number);
        changes[undo->change_count++] = (uint64_t)number;
    }
    undo->changes = changes;
    return NG_OK;
}

/* ---- stored ---- */

struct record_write {
    struct ng_str json;
};

static int write_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    const struct record_write *write = user;
    (void)call;
    (void)present;
    return store_draft_json(next, write->json);
}

int undo_record_write(struct undo *undo)
{
    struct call *call = undo->call;
    struct ng_writer writer;
    struct buf json;
    buf_init(&json, RECORD_BYTES_MAX);
    json_writer_init(&writer, &json);
    record_put(&writer, undo);
    struct record_write write = {arena_copy(&call->arena, buf_str(&json))};
    int rc = json.rc == NG_OK && write.json.data != NULL ? NG_OK : call_no_memory(call);
    buf_done(&json);
    if (rc == NG_OK) { /* others find this process before they find the record */
        rc = cluster_announce(call->gateway->cluster, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_change change = {.size = sizeof(change),
                                     .key = undo_record_key(ng_str_of(undo->run)),
                                     .fn = write_fn,
                                     .user = &write};
    rc = store_write_wait(call->gateway->store, call, &change, 1);
    undo->recorded = undo->recorded || rc == NG_OK;
    return rc;
}

static int drop_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                   void *user)
{
    (void)call;
    (void)present;
    (void)user;
    store_draft_delete(next);
    return NG_OK;
}

static void record_drop(struct ng_change *change, struct ng_str run)
{
    *change =
        (struct ng_change){.size = sizeof(*change), .key = undo_record_key(run), .fn = drop_fn};
}

static int record_remove(struct undo *undo, struct ng_str run)
{
    struct ng_change change;
    record_drop(&change, run);
    return store_write_wait(undo->call->gateway->store, undo->call, &change, 1);
}

/* Has the undo taken back all changes of its runs, also those that its caller does not see? */
static int took_all(struct undo *undo, bool *ret_all)
{
    const struct ng_trail *what = &undo->what;
    size_t others =
        what->agents.count + what->tools.count + what->actions.count + what->collections.count;
    *ret_all = false;
    if (others > 0 || what->runs.count == 0 || what->since > 0 || what->id.data != NULL ||
        undo->changes != NULL || undo->result.conflicts > 0) {
        return NG_OK;
    }
    return undo_select_is_all(undo, ret_all);
}

/* An unfinished undo that was taken back has ended, if the caller may say so. One that runs
 * ends itself. */
static int record_end_other(struct undo *undo, struct ng_str run)
{
    struct call *call = undo->call;
    const struct ng_key key = undo_record_key(run);
    const struct ng_doc *doc = NULL;
    int rc = store_get(call->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK || doc->revision == 0 || doc->deleted) {
        return rc;
    }
    bool own = str_equal(json_get_text(doc->body, "agent"), call->caller.agent);
    bool runs = false;
    if (own || call->caller.role == NG_ROLE_ADMIN) {
        rc = undo_record_runs(call, run, doc->body, &runs);
        rc = rc == NG_OK && !runs ? record_remove(undo, run) : rc;
    }
    return rc;
}

int undo_record_end(struct undo *undo)
{
    int rc = undo->recorded ? record_remove(undo, ng_str_of(undo->run)) : NG_OK;
    bool all = false;
    rc = rc == NG_OK ? took_all(undo, &all) : rc;
    for (size_t i = 0; rc == NG_OK && all && i < undo->what.runs.count; i++) {
        struct ng_str run = undo->what.runs.items[i];
        if (str_begins(run, UNDO_RUN_PREFIX)) {
            rc = record_end_other(undo, run);
        }
    }
    return rc;
}

static int record_take(struct undo *undo, const struct ng_value *body)
{
    struct record_names lists[RECORD_LISTS];
    struct ng_trail *what = &undo->what;
    int rc = NG_OK;
    *what = (struct ng_trail){.size = sizeof(*what)};
    what->since = (uint64_t)json_get_integer(body, "since");
    what->until = (uint64_t)json_get_integer(body, "until");
    what->id = json_get_text(body, "id");
    what->id_prefix = json_is(json_get(body, "id_prefix"), NG_TYPE_TRUE);
    undo->parent_run = json_get_text(body, "parent_run");
    record_lists(what, lists);
    for (size_t i = 0; rc == NG_OK && i < RECORD_LISTS; i++) {
        rc = record_names_read(undo->call, json_get(body, lists[i].name), lists[i].names);
    }
    return rc == NG_OK ? record_changes_read(undo, json_get(body, "changes")) : rc;
}

int undo_record_read(struct undo *undo, struct ng_str run)
{
    struct call *call = undo->call;
    const struct ng_key key = undo_record_key(run);
    const struct ng_doc *doc = NULL;
    int rc = store_get(call->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted || run.len >= sizeof(undo->run)) {
        return call_fail(
            call, NG_ENOTFOUND,
            "there is no unfinished undo \"%.*s\"; one that has ended is taken back "
            "as a run",
            (int)run.len, run.data);
    }
    struct ng_str agent = json_get_text(doc->body, "agent");
    if (!str_equal(agent, call->caller.agent) && call->caller.role != NG_ROLE_ADMIN) {
        return call_fail(call, NG_EFORBIDDEN,
                         "the undo is of the agent %.*s; to continue it needs the role admin",
                         (int)agent.len, agent.data);
    }
    if (json_is(json_get(doc->body, "all_spaces"), NG_TYPE_TRUE) && !call->caller.all_spaces) {
        return call_fail(call, NG_EFORBIDDEN,
                         "the undo was begun by a caller of all spaces, and so it is continued "
                         "by one");
    }
    memcpy(undo->run, run.data, run.len);
    undo->run[run.len] = '\0';
    rc = undo_take_over(undo, doc->body);
    if (rc != NG_OK) {
        return rc;
    }
    undo->recorded = true;
    return record_take(undo, doc->body);
}
