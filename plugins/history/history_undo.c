/* SPDX-License-Identifier: MIT */
/* history_undo.c - history_undo: takes back the changes of a run, or of an agent since a point,
 * without what others changed since. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "history.h"

/* Bytes of the answer behind the items. */
#define UNDO_END_MAX ((size_t)200)
/* Largest conflict that an item has whole, in bytes; places of a larger one. */
#define UNDO_CONFLICT_MAX ((size_t)8 * 1024)
#define UNDO_PLACES_SHOWN 3
/* Revisions that an item lists. */
#define UNDO_REVISIONS_SHOWN ((size_t)100)

/* Items of the answer: conflicts come first. Each is JSON in call memory. */
struct undo_list {
    struct ng_str items[HISTORY_UNDO_ITEMS];
    size_t count;
};

struct undo_items {
    struct ng_call *call;
    struct undo_list conflicts, others;
};

/* ---- which changes ---- */

static int undo_numbers(struct ng_call *call, struct ng_undo_work *work)
{
    const struct ng_host *host = call->host;
    const struct ng_value *list = ng_arg(call, "changes");
    size_t count = host->json_count(list);
    if (list == NULL) {
        return NG_OK;
    }
    if (count == 0 || count > HISTORY_UNDO_CHANGES) {
        return ng_fail(call, NG_EINVAL, "`changes` has %zu numbers, it must have 1 to %d",
                       count, HISTORY_UNDO_CHANGES);
    }
    uint64_t *numbers = ng_alloc(call, count * sizeof(*numbers));
    if (numbers == NULL) {
        return history_no_memory(call);
    }
    for (const struct ng_value *at = host->json_first(list); at != NULL;
         at = host->json_next(at)) {
        int64_t number = 0;
        if (host->json_integer(at, &number) != NG_OK || number < 1) {
            return ng_fail(call, NG_EINVAL, "`changes` has %lld; numbers of changes begin at 1",
                           (long long)number);
        }
        numbers[work->change_count++] = (uint64_t)number;
    }
    work->changes = numbers;
    return NG_OK;
}

/* False for an empty list or text: it selects all changes, or the changes without a run. */
static bool undo_names(const struct ng_names *names)
{
    bool named = names->count > 0;
    for (size_t i = 0; i < names->count && named; i++) {
        named = names->items[i].len > 0;
    }
    return named;
}

/* Refuses a selection of all changes, or of all changes of an agent: a mistake of the caller.
 */
static int undo_check(struct ng_call *call, const struct ng_trail *what)
{
    bool runs = undo_names(&what->runs);
    bool agents = undo_names(&what->agents);
    bool whole = (runs || !ng_has_arg(call, "run")) && (agents || !ng_has_arg(call, "agent"));
    bool named = runs || ng_has_arg(call, "changes") || (agents && ng_has_arg(call, "since"));
    if (ng_has_arg(call, "continue") || (named && whole)) {
        return NG_OK;
    }
    return ng_fail(call, NG_EINVAL,
                   "which changes? Name a `run`, or an `agent` with `since`, or `changes` by "
                   "their numbers; history_log shows them");
}

static int undo_work(struct ng_call *call, struct ng_trail *what, struct ng_undo_work *work)
{
    work->again = ng_arg_text(call, "continue");
    work->dry_run = call->host->json_type(ng_arg(call, "dry_run")) != NG_TYPE_FALSE;
    int rc = history_filter(call, what);
    if (rc == NG_OK) {
        rc = undo_check(call, what);
    }
    if (rc == NG_OK) {
        rc = undo_numbers(call, work);
    }
    if (ng_has_arg(call, "upto")) {
        what->until = u64_min(what->until, (uint64_t)ng_arg_int(call, "upto", 0));
    }
    work->what = what;
    return rc;
}

/* ---- the answer ---- */

static const char *result_name(enum ng_undo_result result)
{
    static const char *const names[] = {
        [NG_UNDO_DONE] = "undone",
        [NG_UNDO_UNCHANGED] = "unchanged",
        [NG_UNDO_CONFLICT] = "conflict",
    };
    return names[result];
}

/* A large conflict is cut to its first places, so that the answer has room for other items. */
static void put_conflict(struct ng_call *call, struct ng_writer *writer, struct ng_str conflict)
{
    const struct ng_host *host = call->host;
    const struct ng_value *whole = NULL;
    if (conflict.len <= UNDO_CONFLICT_MAX ||
        host->json_parse(call, conflict, &whole) != NG_OK) {
        json_raw(writer, conflict);
        return;
    }
    const struct ng_value *place = host->json_first(host->json_get(whole, "at"));
    json_object(writer);
    json_member_string(writer, "reason", host->json_text(host->json_get(whole, "reason")));
    json_name(writer, "at");
    json_array(writer);
    for (int i = 0; i < UNDO_PLACES_SHOWN && place != NULL; i++) {
        host->json_copy(writer, place);
        place = host->json_next(place);
    }
    json_end(writer);
    json_end(writer);
}

static void put_item(struct ng_call *call, struct ng_writer *writer,
                     const struct ng_undo_item *item)
{
    json_object(writer);
    json_member_string(writer, "space", item->key.space);
    history_put_key(writer, &item->key);
    json_name(writer, "revisions");
    json_array(writer);
    for (size_t i = 0; i < item->revision_count && i < UNDO_REVISIONS_SHOWN; i++) {
        json_int(writer, (int64_t)item->revisions[i]);
    }
    json_end(writer);
    json_member_cstring(writer, "result", result_name(item->result));
    if (item->revision != 0) {
        json_member_int(writer, "revision", (int64_t)item->revision);
    }
    if (item->result == NG_UNDO_DONE) {
        json_member_int(writer, "added", (int64_t)item->lines_added);
        json_member_int(writer, "removed", (int64_t)item->lines_removed);
    }
    if (item->conflict.data != NULL) {
        json_name(writer, "conflict");
        put_conflict(call, writer, item->conflict);
    }
    json_end(writer);
}

static int undo_take(void *user, const struct ng_undo_item *item)
{
    struct undo_items *items = user;
    struct ng_call *call = items->call;
    struct undo_list *list =
        item->result == NG_UNDO_CONFLICT ? &items->conflicts : &items->others;
    if (list->count == HISTORY_UNDO_ITEMS) {
        return NG_OK;
    }
    struct ng_writer *writer = call->host->json_writer(call);
    if (writer == NULL) {
        return history_no_memory(call);
    }
    put_item(call, writer, item);
    struct ng_str json = call->host->json_result(writer);
    list->items[list->count++] = json;
    return json.data != NULL ? NG_OK : history_no_memory(call);
}

/* As many as the answer has room for. */
static void put_items(struct ng_call *call, struct ng_writer *writer,
                      const struct undo_items *items)
{
    size_t shown = 0;
    const struct undo_list *const lists[] = {&items->conflicts, &items->others};
    for (size_t i = 0; i < NG_COUNT(lists); i++) {
        for (size_t at = 0; at < lists[i]->count && shown < HISTORY_UNDO_ITEMS; at++) {
            struct ng_str item = lists[i]->items[at];
            if (item.len + UNDO_END_MAX <= call->host->answer_room(call)) {
                json_raw(writer, item);
                shown++;
            }
        }
    }
}

struct unfinished_list {
    struct ng_call *call;
    struct ng_writer *writer;
    size_t count;
    size_t left; /* bytes that the rest of the answer keeps */
};

static int put_unfinished(void *user, const struct ng_unfinished *undo)
{
    struct unfinished_list *list = user;
    if (list->count == HISTORY_UNFINISHED_MAX ||
        list->call->host->answer_room(list->call) <= list->left) {
        return 1;
    }
    json_string(list->writer, undo->run);
    list->count++;
    return 0;
}

int history_put_unfinished(struct ng_call *call, struct ng_writer *writer)
{
    struct unfinished_list list = {
        .call = call, .writer = writer, .left = call->host->answer_room(call) / 2};
    json_name(writer, "unfinished");
    json_array(writer);
    int rc = call->host->unfinished(call, put_unfinished, &list);
    json_end(writer);
    return rc;
}

static int undo_answer(struct ng_call *call, const struct ng_undo_work *work,
                       const struct ng_undo_done *done, const struct undo_items *items)
{
    struct ng_writer *writer = call->host->reply_json(call);
    json_object(writer);
    if (done->run.data != NULL) {
        json_member_string(writer, "undo", done->run);
    }
    json_member_bool(writer, "dry_run", work->dry_run);
    json_member_int(writer, "upto", (int64_t)done->upto);
    json_member_strings(writer, "agents", done->agents.items, done->agents.count);
    json_member_int(writer, "total", (int64_t)done->total);
    json_member_int(writer, "undone", (int64_t)done->undone);
    json_member_int(writer, "unchanged", (int64_t)done->unchanged);
    json_member_int(writer, "conflicts", (int64_t)done->conflicts);
    int rc = history_put_unfinished(call, writer);
    json_name(writer, "items");
    json_array(writer);
    put_items(call, writer, items);
    json_end(writer);
    json_end(writer);
    return rc;
}

int history_undo_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_trail what = {.size = sizeof(what)};
    struct undo_items *items = ng_alloc(call, sizeof(*items));
    struct ng_undo_done done = {.size = sizeof(done)};
    (void)self;
    (void)args;
    if (items == NULL) {
        return history_no_memory(call);
    }
    *items = (struct undo_items){.call = call};
    struct ng_undo_work work = {.size = sizeof(work), .item = undo_take, .user = items};
    int rc = undo_work(call, &what, &work);
    if (rc == NG_OK) {
        rc = call->host->undo_changes(call, &work, &done);
    }
    if (rc == NG_OK && done.total == 0 && work.again.data == NULL) {
        rc = history_check_runs(call, &what);
    }
    return rc == NG_OK ? undo_answer(call, &work, &done, items) : rc;
}
