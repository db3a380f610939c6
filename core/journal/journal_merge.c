/* SPDX-License-Identifier: MIT */
/* journal_merge.c - three-way merge at a restore: entries, moved references and a changed
 * summary that came after the base are carried over into the restored journal. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Largest merged journal: two journals of the largest size. */
#define MERGE_MAX ((size_t)2 * 64 * 1024 * 1024)
/* Age of entries that another gateway may still deliver. */
#define MERGE_PASSED_MS ((int64_t)24 * 60 * 60 * 1000)

/* Sorted names for lookups. */
struct merge_names {
    struct ng_str *list;
    size_t count;
};

static int merge_compare(const void *one, const void *other)
{
    return str_compare(*(const struct ng_str *)one, *(const struct ng_str *)other);
}

static bool merge_has(const struct merge_names *names, struct ng_str name)
{
    return names->count > 0 &&
           bsearch(&name, names->list, names->count, sizeof(name), merge_compare) != NULL;
}

/* The identity of an entry: the document of a reference (by_document), else its event. */
static struct ng_str merge_name(struct arena *tree, const struct ng_value *item,
                                bool by_document)
{
    struct ng_str id = json_get_text(item, by_document ? "id" : "event_id");
    if (!by_document) {
        return id;
    }
    struct ng_str collection = json_get_text(item, "collection");
    return arena_printf(tree, "%.*s/%.*s", (int)collection.len,
                        collection.data == NULL ? "" : collection.data, (int)id.len,
                        id.data == NULL ? "" : id.data);
}

/* The names of the items whose event is not in `except` (NULL: of all). */
static int merge_names_of(struct call *call, struct arena *tree, const struct ng_value *array,
                          bool by_document, const struct merge_names *except,
                          struct merge_names *ret)
{
    ret->count = 0;
    ret->list = arena_alloc(tree, (array->count + 1) * sizeof(*ret->list));
    if (ret->list == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory for the journal");
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        if (except != NULL && merge_has(except, json_get_text(item, "event_id"))) {
            continue;
        }
        struct ng_str name = merge_name(tree, item, by_document);
        if (name.data == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory for the journal");
        }
        ret->list[ret->count++] = name;
    }
    qsort(ret->list, ret->count, sizeof(*ret->list), merge_compare);
    return NG_OK;
}

/* The restored journal, the base that the caller saw, and the present one. Their trees exceed
 * the memory of a call, so they have an arena of their own. */
struct merge {
    struct call *call;
    struct arena tree;
    const struct ng_value *json, *base, *now;
    struct ng_writer *writer;
};

static const struct ng_value *merge_array(const struct ng_value *dump, const char *part)
{
    const struct ng_value *array = json_get(dump, part);
    return array != NULL && array->type == NG_TYPE_ARRAY ? array : NULL;
}

/* Restored entries, and present ones whose event is in neither the base nor the restored
 * journal. */
static int merge_entries(struct merge *merge, const char *part)
{
    const struct ng_value *json = merge_array(merge->json, part);
    const struct ng_value *base = merge_array(merge->base, part);
    const struct ng_value *now = merge_array(merge->now, part);
    struct merge_names seen = {0};
    struct merge_names back = {0};
    if (json == NULL || base == NULL || now == NULL) {
        return call_fail(merge->call, NG_EINVAL, "the journal has no `%s`", part);
    }
    int rc = merge_names_of(merge->call, &merge->tree, base, false, NULL, &seen);
    if (rc == NG_OK) {
        rc = merge_names_of(merge->call, &merge->tree, json, false, NULL, &back);
    }
    if (rc != NG_OK) {
        return rc;
    }
    json_name(merge->writer, part);
    json_array(merge->writer);
    for (const struct ng_value *item = json->first; item != NULL; item = item->next) {
        json_copy(merge->writer, item);
    }
    for (const struct ng_value *item = now->first; item != NULL; item = item->next) {
        struct ng_str name = json_get_text(item, "event_id");
        if (!merge_has(&seen, name) && !merge_has(&back, name)) {
            json_copy(merge->writer, item);
        }
    }
    json_end(merge->writer);
    return NG_OK;
}

/* A present reference whose event is not in the base has moved: it replaces the restored one.
 */
static int merge_references(struct merge *merge)
{
    const struct ng_value *json = merge_array(merge->json, "references");
    const struct ng_value *base = merge_array(merge->base, "references");
    const struct ng_value *now = merge_array(merge->now, "references");
    struct merge_names seen = {0};
    if (json == NULL || base == NULL || now == NULL) {
        return call_fail(merge->call, NG_EINVAL, "the journal has no `references`");
    }
    struct merge_names moved = {0};
    int rc = merge_names_of(merge->call, &merge->tree, base, false, NULL, &seen);
    if (rc == NG_OK) {
        rc = merge_names_of(merge->call, &merge->tree, now, true, &seen, &moved);
    }
    if (rc != NG_OK) {
        return rc;
    }
    json_name(merge->writer, "references");
    json_array(merge->writer);
    for (const struct ng_value *item = json->first; item != NULL; item = item->next) {
        if (!merge_has(&moved, merge_name(&merge->tree, item, true))) {
            json_copy(merge->writer, item);
        }
    }
    for (const struct ng_value *item = now->first; item != NULL; item = item->next) {
        if (!merge_has(&seen, json_get_text(item, "event_id"))) {
            json_copy(merge->writer, item);
        }
    }
    json_end(merge->writer);
    return NG_OK;
}

/* Recent entries of the base that are not restored must not be delivered again: another gateway
 * may be delivering them now. */
static int merge_passed(struct merge *merge)
{
    const struct ng_value *base = merge_array(merge->base, "days");
    struct merge_names back = {0};
    int64_t since = clock_unix_ms() - MERGE_PASSED_MS;
    int rc = merge_names_of(merge->call, &merge->tree, merge_array(merge->json, "days"), false,
                            NULL, &back);
    if (rc != NG_OK) {
        return rc;
    }
    json_name(merge->writer, "passed");
    json_array(merge->writer);
    for (const struct ng_value *item = base->first; item != NULL; item = item->next) {
        struct ng_str name = json_get_text(item, "event_id");
        int64_t time = 0;
        (void)json_integer(json_get(item, "time"), &time);
        if (time >= since && !merge_has(&back, name)) {
            json_string(merge->writer, name);
        }
    }
    json_end(merge->writer);
    return NG_OK;
}

static bool merge_same(const struct ng_value *one, const struct ng_value *other)
{
    bool a_is = one != NULL && one->type == NG_TYPE_STRING;
    bool b_is = other != NULL && other->type == NG_TYPE_STRING;
    return a_is == b_is && (!a_is || str_equal(one->text, other->text));
}

static void merge_summary(const struct merge *merge)
{
    const struct ng_value *now = json_get(merge->now, "summary");
    const struct ng_value *back = json_get(merge->json, "summary");
    const struct ng_value *chosen = now;
    if (merge_same(now, json_get(merge->base, "summary"))) {
        chosen = back;
    }
    json_name(merge->writer, "summary");
    if (chosen != NULL && chosen->type == NG_TYPE_STRING) {
        json_string(merge->writer, chosen->text);
    } else {
        json_null(merge->writer);
    }
}

static int merge_all(struct merge *merge, struct ng_str json, struct ng_str base,
                     struct ng_str now)
{
    int rc = journal_parse(merge->call, &merge->tree, json, &merge->json);
    if (rc == NG_OK) {
        rc = journal_parse(merge->call, &merge->tree, base, &merge->base);
    }
    merge->now = merge->base;
    if (rc == NG_OK && !str_equal(now, base)) {
        rc = journal_parse(merge->call, &merge->tree, now, &merge->now);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *format = json_get(merge->json, "format");
    json_object(merge->writer);
    if (format != NULL) {
        json_name(merge->writer, "format");
        json_copy(merge->writer, format);
    }
    rc = merge_entries(merge, "days");
    if (rc == NG_OK) {
        rc = merge_references(merge);
    }
    if (rc == NG_OK) {
        rc = merge_entries(merge, "memories");
    }
    if (rc == NG_OK) {
        rc = merge_passed(merge);
    }
    merge_summary(merge);
    json_end(merge->writer);
    return rc;
}

/* Restores `json` merged with the changes from `base` to `now`, in one transaction. */
static int merge_back(struct journal_front *front, struct call *call, struct ng_str space,
                      struct ng_str json, struct ng_str base, struct ng_str now)
{
    struct buf buf;
    struct ng_writer writer;
    buf_init(&buf, MERGE_MAX);
    json_writer_init(&writer, &buf);
    struct merge merge = {.call = call, .writer = &writer};
    arena_init(&merge.tree, JOURNAL_TREE_MAX);
    int rc = merge_all(&merge, json, base, now);
    arena_done(&merge.tree);
    if (rc == NG_OK && buf.rc != NG_OK) {
        rc = call_fail(call, buf.rc, "the journal would be larger than %zu bytes", MERGE_MAX);
    }
    if (rc == NG_OK) {
        rc = front->inner->restore(front->db, &call->pub, space, buf_str(&buf));
    }
    buf_done(&buf);
    return rc;
}

/* ---- concurrent deliveries of other gateways ---- */

struct merge_feed {
    struct journal_front *front;
    struct call *call;
    struct ng_str space;
    struct merge_names seen; /* entries of the base: not new */
    struct ng_entry entries[NG_DELIVERY_MAX];
    const struct ng_entry *list[NG_DELIVERY_MAX]; /* pointers to them */
    size_t count;
    uint32_t events;
    uint64_t last_seq;
    int rc;
};

static int merge_event(void *user, const struct ng_event *event)
{
    struct merge_feed *feed = user;
    feed->events++;
    feed->last_seq = event->seq;
    if (delivery_wants(feed->front, event->key.collection) &&
        str_equal(event->key.space, feed->space)) {
        struct ng_entry *entry = &feed->entries[feed->count];
        feed->list[feed->count] = entry;
        feed->rc = journal_entry_of_event(&feed->call->arena, event, entry);
        feed->count += feed->rc == NG_OK && !merge_has(&feed->seen, entry->event_id);
    }
    return feed->rc != NG_OK;
}

static int merge_feed_page(struct merge_feed *feed, uint64_t since)
{
    feed->count = 0;
    feed->events = 0;
    feed->last_seq = since;
    int rc = store_changes(feed->front->store, feed->call, since, NG_DELIVERY_MAX, merge_event,
                           feed);
    if (rc == NG_OK) {
        rc = feed->rc;
    }
    if (rc == NG_OK && feed->count > 0) {
        rc = feed->front->inner->deliver(feed->front->db, &feed->call->pub, feed->list,
                                         feed->count);
    }
    return rc;
}

/* Delivers the events since the cursor once more: another gateway may have delivered them to
 * the replaced generation between the dump and the restore. Entries that exist are ignored. */
static int merge_deliver_again(struct journal_front *front, struct call *call,
                               struct ng_str space, struct ng_str base, uint64_t since)
{
    const struct ng_value *dump = NULL;
    const struct ng_value *days = NULL;
    struct merge_feed *feed = arena_zalloc(&call->arena, sizeof(*feed));
    struct arena tree;
    if (feed == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    feed->front = front;
    feed->call = call;
    feed->space = space;
    feed->last_seq = since;
    arena_init(&tree, JOURNAL_TREE_MAX);
    int rc = journal_parse(call, &tree, base, &dump);
    if (rc == NG_OK) {
        days = merge_array(dump, "days");
    }
    if (days != NULL) {
        rc = merge_names_of(call, &tree, days, false, NULL, &feed->seen);
    }
    while (rc == NG_OK) {
        rc = merge_feed_page(feed, feed->last_seq);
        if (feed->events < NG_DELIVERY_MAX) {
            break;
        }
    }
    arena_done(&tree);
    return rc;
}

int journal_merge(struct journal_front *front, struct ng_call *pub, struct ng_str space,
                  struct ng_str json, struct ng_str base)
{
    struct call *call = call_of(pub);
    struct ng_str now = {NULL, 0};
    uint64_t since = 0;
    int rc = journal_rwlock_lock(front, call, true);
    if (rc != NG_OK) {
        return rc;
    }
    rc = delivery_stored_cursor(front, call, &since);
    if (rc == NG_OK) {
        rc = front->inner->dump(front->db, pub, space, &now);
    }
    if (rc == NG_OK) {
        rc = merge_back(front, call, space, json, base, now);
    }
    if (rc == NG_OK) {
        rc = merge_deliver_again(front, call, space, base, since);
    }
    journal_rwlock_unlock(front, true);
    return rc;
}
