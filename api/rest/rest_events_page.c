/* SPDX-License-Identifier: MIT */
/* rest_events_page.c - a page of GET /v1/events as one JSON object. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "rest_events.h"

/* Changes that a page looks at, and in one read; with rare matches it may be short, even empty.
 */
#define PAGE_LOOKS_MAX 50000
#define PAGE_READ 1000
/* Bytes after which a page ends. */
#define PAGE_BYTES ((size_t)1024 * 1024)
/* Bytes of one event. */
#define PAGE_EVENT_MAX ((size_t)16 * 1024 * 1024)

struct events_page {
    struct call *call;
    const struct events_query *query;
    struct ng_writer *writer;
    struct buf text; /* of one event */
    uint64_t next;   /* everything up to here is on the page, or is not wanted */
    uint32_t looks;  /* in this read */
    uint32_t events; /* on the page */
    size_t bytes;
    bool is_full, is_over; /* no room; nothing more up to `until` */
};

static bool page_wants(const struct events_page *page, const struct ng_event *event)
{
    return (page->call->caller.all_spaces ||
            call_has_space(&page->call->caller, event->key.space)) &&
           events_query_wants(page->query, event) &&
           dispatch_sees_collection(page->call, event->key.collection);
}

static int page_take(void *user, const struct ng_event *event)
{
    struct events_page *page = user;
    page->looks++;
    if (event->seq > page->query->until) {
        page->is_over = true;
        return 1;
    }
    if (page_wants(page, event)) {
        uint32_t limit = page->query->limit > 0 ? page->query->limit : EVENTS_PAGE;
        if (page->events == limit || page->bytes >= PAGE_BYTES) {
            page->is_full = true;
            return 1;
        }
        buf_clear(&page->text);
        events_print(&page->text, event);
        if (page->text.rc != NG_OK) {
            return 1;
        }
        json_raw(page->writer, buf_str(&page->text));
        page->events++;
        page->bytes += page->text.len;
    }
    page->next = event->seq;
    return 0;
}

/* Reads until the page is full, has looked at enough, or there is nothing more. */
static int page_read(struct events_page *page)
{
    struct store *store = page->call->gateway->store;
    int rc = NG_OK;
    uint32_t looks = 0;
    while (rc == NG_OK && !page->is_full && !page->is_over && looks < PAGE_LOOKS_MAX) {
        page->looks = 0;
        rc = store_changes(store, page->call, page->next, PAGE_READ, page_take, page);
        if (rc == NG_OK && page->text.rc != NG_OK) {
            rc = call_fail(page->call, NG_EINTERNAL, "out of memory for the page");
        }
        page->is_over = page->is_over || (page->looks < PAGE_READ && !page->is_full);
        looks += page->looks;
    }
    return rc;
}

int events_page(struct call *call, const struct events_query *query)
{
    struct events_page page = {.call = call, .query = query, .next = query->since};
    buf_init(&page.text, PAGE_EVENT_MAX);
    page.writer = call->pub.host->reply_json(&call->pub);
    json_object(page.writer);
    json_name(page.writer, "events");
    json_array(page.writer);
    int rc = page_read(&page);
    json_end(page.writer);
    json_member_int(page.writer, "next", (int64_t)page.next);
    json_member_bool(page.writer, "has_more", !page.is_over);
    json_end(page.writer);
    buf_done(&page.text);
    return rc;
}
