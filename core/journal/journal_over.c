/* SPDX-License-Identifier: MIT */
/* journal_over.c - restoring a journal without losing what came after a look at it: entries,
 * moved references and another summary are carried over. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "journal_documents.h"
#include "journal_entry.h"
#include "journal_relay.h"

/* Largest journal that is put together: of two that are as large as they may be. */
#define OVER_MAX ((size_t)2 * 64 * 1024 * 1024)
/* How long deliveries are remembered. */
#define OVER_PASSED_MS ((int64_t)24 * 60 * 60 * 1000)

/* Texts to look things up by, sorted. */
struct over_names {
    struct ng_str *list;
    size_t count;
};

static int over_compare(const void *one, const void *other)
{
    return str_compare(*(const struct ng_str *)one, *(const struct ng_str *)other);
}

static bool over_has(const struct over_names *names, struct ng_str name)
{
    return names->count > 0 &&
           bsearch(&name, names->list, names->count, sizeof(name), over_compare) != NULL;
}

static struct ng_str over_text(const struct ng_value *item, const char *member)
{
    const struct ng_value *value = json_get(item, member);
    bool good = value != NULL && value->type == NG_TYPE_STRING;
    return good ? value->text : str_make(NULL, 0);
}

/* What an entry is: of a reference (by_document) its document, else its event. */
static struct ng_str over_name(struct arena *tree, const struct ng_value *item,
                               bool by_document)
{
    struct ng_str id = over_text(item, by_document ? "id" : "event_id");
    if (!by_document) {
        return id;
    }
    struct ng_str collection = over_text(item, "collection");
    return arena_printf(tree, "%.*s/%.*s", (int)collection.len,
                        collection.data == NULL ? "" : collection.data, (int)id.len,
                        id.data == NULL ? "" : id.data);
}

static int over_names_of(struct call *call, struct arena *tree, const struct ng_value *array,
                         bool by_document, struct over_names *ret)
{
    ret->count = 0;
    ret->list = arena_alloc(tree, (array->count + 1) * sizeof(*ret->list));
    if (ret->list == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory for the journal");
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        struct ng_str name = over_name(tree, item, by_document);
        if (name.data == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory for the journal");
        }
        ret->list[ret->count++] = name;
    }
    qsort(ret->list, ret->count, sizeof(*ret->list), over_compare);
    return NG_OK;
}

/* The three journals: what comes back, what was looked at, what is there now. Their trees are
 * far larger than what a call may use, and go when they are put together. */
struct over {
    struct call *call;
    struct arena tree;
    const struct ng_value *json, *base, *now;
    struct ng_writer *writer;
};

static const struct ng_value *over_array(const struct ng_value *dump, const char *part)
{
    const struct ng_value *array = json_get(dump, part);
    return array != NULL && array->type == NG_TYPE_ARRAY ? array : NULL;
}

/* Entries are named by their event: one that was seen is never another. */
static int over_entries(struct over *over, const char *part)
{
    const struct ng_value *json = over_array(over->json, part);
    const struct ng_value *base = over_array(over->base, part);
    const struct ng_value *now = over_array(over->now, part);
    struct over_names seen = {0};
    struct over_names back = {0};
    if (json == NULL || base == NULL || now == NULL) {
        return call_fail(over->call, NG_EINVAL, "the journal has no `%s`", part);
    }
    int rc = over_names_of(over->call, &over->tree, base, false, &seen);
    rc = rc != NG_OK ? rc : over_names_of(over->call, &over->tree, json, false, &back);
    if (rc != NG_OK) {
        return rc;
    }
    json_name(over->writer, part);
    json_array(over->writer);
    for (const struct ng_value *item = json->first; item != NULL; item = item->next) {
        json_copy(over->writer, item);
    }
    for (const struct ng_value *item = now->first; item != NULL; item = item->next) {
        struct ng_str name = over_text(item, "event_id");
        if (!over_has(&seen, name) && !over_has(&back, name)) {
            json_copy(over->writer, item);
        }
    }
    json_end(over->writer);
    return NG_OK;
}

/* A reference has moved on if its event is none that was looked at. */
static int over_references(struct over *over)
{
    const struct ng_value *json = over_array(over->json, "references");
    const struct ng_value *base = over_array(over->base, "references");
    const struct ng_value *now = over_array(over->now, "references");
    struct over_names seen = {0};
    if (json == NULL || base == NULL || now == NULL) {
        return call_fail(over->call, NG_EINVAL, "the journal has no `references`");
    }
    struct ng_value moved = {.type = NG_TYPE_ARRAY};
    struct over_names moved_names = {0};
    struct ng_value **link = &moved.first;
    int rc = over_names_of(over->call, &over->tree, base, false, &seen);
    for (const struct ng_value *item = now->first; rc == NG_OK && item != NULL;
         item = item->next) {
        if (over_has(&seen, over_text(item, "event_id"))) {
            continue;
        }
        struct ng_value *copy = arena_alloc(&over->tree, sizeof(*copy));
        if (copy == NULL) {
            return call_fail(over->call, NG_EINTERNAL, "out of memory for the journal");
        }
        *copy = *item;
        copy->next = NULL;
        *link = copy;
        link = &copy->next;
        moved.count++;
    }
    rc = rc != NG_OK ? rc : over_names_of(over->call, &over->tree, &moved, true, &moved_names);
    if (rc != NG_OK) {
        return rc;
    }
    json_name(over->writer, "references");
    json_array(over->writer);
    for (const struct ng_value *item = json->first; item != NULL; item = item->next) {
        if (!over_has(&moved_names, over_name(&over->tree, item, true))) {
            json_copy(over->writer, item);
        }
    }
    for (const struct ng_value *item = moved.first; item != NULL; item = item->next) {
        json_copy(over->writer, item);
    }
    json_end(over->writer);
    return NG_OK;
}

/* What was looked at and does not come back is not to be delivered again: another gateway may
 * have it in its hands. */
static int over_passed(struct over *over)
{
    const struct ng_value *base = over_array(over->base, "days");
    struct over_names back = {0};
    int64_t since = clock_unix_ms() - OVER_PASSED_MS;
    int rc =
        over_names_of(over->call, &over->tree, over_array(over->json, "days"), false, &back);
    if (rc != NG_OK) {
        return rc;
    }
    json_name(over->writer, "passed");
    json_array(over->writer);
    for (const struct ng_value *item = base->first; item != NULL; item = item->next) {
        struct ng_str name = over_text(item, "event_id");
        int64_t time = 0;
        (void)json_integer(json_get(item, "time"), &time);
        if (time >= since && !over_has(&back, name)) {
            json_string(over->writer, name);
        }
    }
    json_end(over->writer);
    return NG_OK;
}

static bool over_same(const struct ng_value *one, const struct ng_value *other)
{
    struct ng_str a = one == NULL ? str_make(NULL, 0) : one->text;
    struct ng_str b = other == NULL ? str_make(NULL, 0) : other->text;
    bool a_is = one != NULL && one->type == NG_TYPE_STRING;
    bool b_is = other != NULL && other->type == NG_TYPE_STRING;
    return a_is == b_is && (!a_is || str_equal(a, b));
}

static void over_summary(const struct over *over)
{
    const struct ng_value *now = json_get(over->now, "summary");
    const struct ng_value *back = json_get(over->json, "summary");
    const struct ng_value *chosen =
        over_same(now, json_get(over->base, "summary")) ? back : now;
    json_name(over->writer, "summary");
    if (chosen != NULL && chosen->type == NG_TYPE_STRING) {
        json_string(over->writer, chosen->text);
    } else {
        json_null(over->writer);
    }
}

static int over_parse(struct call *call, struct arena *tree, struct ng_str json,
                      const struct ng_value **ret)
{
    struct json_error error;
    int rc = json_parse(tree, json, JSON_DEPTH_DEFAULT, ret, &error);
    if (rc == NG_EJSON) {
        return call_fail(call, NG_EINVAL, "this is not a journal that was dumped: %s",
                         error.message);
    }
    if (rc != NG_OK && tree->oom) {
        return call_no_memory(call);
    }
    return rc == NG_OK ? rc
                       : call_fail(call, NG_ETOOLARGE, "the journal is too large to restore");
}

static int over_merge(struct over *over, struct ng_str json, struct ng_str base,
                      struct ng_str now)
{
    int rc = over_parse(over->call, &over->tree, json, &over->json);
    rc = rc != NG_OK ? rc : over_parse(over->call, &over->tree, base, &over->base);
    if (str_equal(now, base)) {
        over->now = over->base;
    } else {
        rc = rc != NG_OK ? rc : over_parse(over->call, &over->tree, now, &over->now);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *format = json_get(over->json, "format");
    json_object(over->writer);
    if (format != NULL) {
        json_name(over->writer, "format");
        json_copy(over->writer, format);
    }
    rc = over_entries(over, "days");
    rc = rc != NG_OK ? rc : over_references(over);
    rc = rc != NG_OK ? rc : over_entries(over, "memories");
    rc = rc != NG_OK ? rc : over_passed(over);
    over_summary(over);
    json_end(over->writer);
    return rc;
}

/* `json` with what is new in `now` since `base`, in one step. */
static int over_back(struct journal_front *front, struct call *call, struct ng_str space,
                     struct ng_str json, struct ng_str base, struct ng_str now)
{
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, OVER_MAX);
    json_writer_init(&writer, &buf);
    struct over over = {.call = call, .writer = &writer};
    arena_init(&over.tree, JOURNAL_TREE_MAX);
    int rc = over_merge(&over, json, base, now);
    arena_done(&over.tree);
    if (rc == NG_OK && buf.rc != NG_OK) {
        rc = call_fail(call, buf.rc, "the journal would be larger than %zu bytes", OVER_MAX);
    }
    rc = rc != NG_OK ? rc : front->inner->restore(front->db, &call->pub, space, buf_str(&buf));
    buf_done(&buf);
    return rc;
}

/* ---- what other gateways deliver meanwhile ---- */

struct over_feed {
    struct journal_front *front;
    struct call *call;
    struct ng_str space;
    struct over_names seen; /* at the look: what is not new */
    struct ng_entry entries[NG_DELIVERY_MAX];
    const struct ng_entry *list[NG_DELIVERY_MAX]; /* of them */
    size_t count;
    uint32_t events;
    uint64_t last_seq;
    int rc;
};

static int over_event(void *user, const struct ng_event *event)
{
    struct over_feed *feed = user;
    const struct ng_collection *collection =
        store_collection(feed->front->store, event->key.collection);
    feed->events++;
    feed->last_seq = event->seq;
    if (collection != NULL && (collection->flags & NG_COLLECTION_REFERENCED) != 0 &&
        str_equal(event->key.space, feed->space)) {
        struct ng_entry *entry = &feed->entries[feed->count];
        feed->list[feed->count] = entry;
        feed->rc = journal_entry_of_event(&feed->call->arena, event, entry);
        feed->count += feed->rc == NG_OK && !over_has(&feed->seen, entry->event_id) ? 1 : 0;
    }
    return feed->rc != NG_OK;
}

static int over_feed_page(struct over_feed *feed, uint64_t since)
{
    feed->count = 0;
    feed->events = 0;
    feed->last_seq = since;
    int rc =
        store_changes(feed->front->store, feed->call, since, NG_DELIVERY_MAX, over_event, feed);
    rc = rc != NG_OK ? rc : feed->rc;
    if (rc == NG_OK && feed->count > 0) {
        rc = feed->front->inner->deliver(feed->front->db, &feed->call->pub, feed->list,
                                         feed->count);
    }
    return rc;
}

/* Once more what came since: another gateway may have delivered it between the look and the
 * step. What is there already is passed over. */
static int over_deliver_again(struct journal_front *front, struct call *call,
                              struct ng_str space, struct ng_str base, uint64_t since)
{
    const struct ng_value *looked = NULL;
    struct over_feed *feed = arena_zalloc(&call->arena, sizeof(*feed));
    struct arena tree;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = feed == NULL ? call_fail(call, NG_EINTERNAL, "out of memory")
                          : over_parse(call, &tree, base, &looked);
    const struct ng_value *days = rc == NG_OK ? over_array(looked, "days") : NULL;
    if (days != NULL) {
        rc = over_names_of(call, &tree, days, false, &feed->seen);
    }
    if (rc == NG_OK) {
        feed->front = front;
        feed->call = call;
        feed->space = space;
        feed->last_seq = since;
    }
    while (rc == NG_OK) {
        rc = over_feed_page(feed, feed->last_seq);
        if (feed->events < NG_DELIVERY_MAX) {
            break;
        }
    }
    arena_done(&tree);
    return rc;
}

static int over_restore(struct journal_front *front, struct ng_call *pub, struct ng_str space,
                        struct ng_str json, struct ng_str base)
{
    struct call *call = call_of(pub);
    struct ng_str now = {NULL, 0};
    uint64_t since = 0;
    int rc = relay_stored_cursor(front, call, &since);
    rc = rc != NG_OK ? rc : front->inner->dump(front->db, pub, space, &now);
    if (rc == NG_OK) {
        rc = over_back(front, call, space, json, base, now);
    }
    return rc != NG_OK ? rc : over_deliver_again(front, call, space, base, since);
}

int journal_restore_over(struct journal_front *front, struct ng_call *call, struct ng_str space,
                         struct ng_str json, struct ng_str base)
{
    int rc = journal_gate_enter(front, call_of(call), true);
    if (rc == NG_OK) {
        rc = over_restore(front, call, space, json, base);
        journal_gate_leave(front, true);
    }
    return rc;
}
