/* SPDX-License-Identifier: MIT */
/* mcp_resource_list.c - resources/list: all kinds in all spaces of the caller, a page at a
 * time. */
#include <stdio.h>
#include <time.h>

#include "api/protocol/mcp_pages.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/call/listing.h"
#include "core/dispatch/dispatch.h"
#include "mcp_resources.h"

/* Returned by add() when the page is full: plugins stop at anything but NG_OK. */
#define LISTING_FULL 1
/* The buffer of a page: over MCP_PAGE_BYTES by one entry at most. */
#define LISTING_BUFFER_MAX (MCP_PAGE_BYTES + 2 * RESOURCE_URI_MAX)

/* How much of what a plugin gives was on pages before. */
enum skip {
    SKIP_NOTHING = 0,
    SKIP_TO_ID,    /* up to the entry the cursor names */
    SKIP_BY_NUMBER /* as many as were in front of it: that entry is gone */
};

/* A page being made. Memory of the call. */
struct page {
    struct ng_listing listing; /* first */
    struct call *call;
    struct mcp_source source;
    size_t index; /* of the source */
    const struct ng_str *spaces;
    size_t space_count, space_at;
    struct buf out;
    size_t count;
    enum skip skip;
    uint64_t position; /* entries of this kind and space so far, skipped ones too */
    struct mcp_cursor from, last;
    bool begun, full;
    int rc; /* of add() */
};

static void page_done(void *object)
{
    struct page *page = object;
    buf_done(&page->out);
}

/* ---- an entry ---- */

static void print_time(struct ng_writer *writer, int64_t time_ms)
{
    if (time_ms > 0) {
        char text[RFC3339_SIZE];
        rfc3339_write(time_ms, RFC3339_SECONDS, text);
        json_name(writer, "annotations");
        json_object(writer);
        json_member_cstring(writer, "lastModified", text);
        json_end(writer);
    }
}

static int print_entry(struct page *page, const struct listing_item *item)
{
    const struct ng_resources *desc = page->source.desc;
    struct ng_str mime_type = str_or(item->mime_type, ng_str_of(desc->mime_type));
    struct ng_writer writer;
    struct buf uri;
    buf_init(&uri, RESOURCE_URI_MAX);
    if (desc->kind != NULL) {
        (void)resource_uri_print(&uri, page->spaces[page->space_at], ng_str_of(desc->kind),
                                 item->id);
    } else {
        buf_add_str(&uri, item->id);
    }
    if (page->count > 0) {
        buf_add_char(&page->out, ',');
    }
    json_writer_init(&writer, &page->out);
    json_object(&writer);
    json_member_string(&writer, "uri", buf_str(&uri));
    json_member_string(&writer, "name", str_or(item->name, item->id));
    if (item->description.len > 0) {
        json_member_string(&writer, "description", item->description);
    }
    if (mime_type.len > 0) {
        json_member_string(&writer, "mimeType", mime_type);
    }
    if (item->bytes != UINT64_MAX && (item->bytes > 0 || desc->kind != NULL)) {
        json_member_int(&writer, "size", (int64_t)item->bytes);
    }
    print_time(&writer, item->modified_ms);
    json_end(&writer);
    int rc = uri.rc;
    if (uri.rc == NG_OK) {
        rc = page->out.rc;
    }
    buf_done(&uri);
    return rc;
}

/* Was it on a page before? */
static bool skip_entry(struct page *page, const struct listing_item *item)
{
    if (page->listing.seeks || page->skip == SKIP_NOTHING) {
        return false;
    }
    if (page->skip == SKIP_BY_NUMBER) {
        return page->position < page->from.count;
    }
    if (str_equal(item->id, page->from.id)) {
        page->skip = SKIP_NOTHING;
    }
    return true;
}

static int page_add(struct ng_listing *listing, const struct listing_item *item)
{
    struct page *page = (struct page *)(void *)listing;
    struct call *call = page->call;
    if (page->full || page->rc != NG_OK) {
        return LISTING_FULL;
    }
    page->position++;
    if (skip_entry(page, item)) {
        return NG_OK;
    }
    if (page->count >= MCP_PAGE_ENTRIES || page->out.len >= MCP_PAGE_BYTES) {
        page->full = true;
        return LISTING_FULL;
    }
    page->rc = print_entry(page, item);
    struct ng_str id = arena_copy(&call->arena, str_or(item->id, ng_str_of("")));
    if (page->rc != NG_OK || id.data == NULL) {
        page->rc = call_fail(call, NG_EINTERNAL, "out of memory for a page of resources");
    } else if (call_has(call, CALL_CANCELLED)) {
        page->rc = call_fail(call, NG_ECANCELLED, "the call was cancelled while listing");
    }
    page->count++;
    page->last = (struct mcp_cursor){
        .kind = mcp_source_name(page->source.desc),
        .space = page->source.desc->kind == NULL ? ng_str_of("") : page->spaces[page->space_at],
        .id = id,
        .count = page->position,
    };
    if (page->rc == NG_OK) {
        return NG_OK;
    }
    return LISTING_FULL;
}

/* ---- a page ---- */

/* One run of the plugin's listing, from where the page begins in it. */
static int list_once(struct page *page, struct ng_str space, enum skip skip)
{
    bool resumed = skip != SKIP_NOTHING;
    page->skip = skip;
    page->position = 0;
    page->listing.seeks = false;
    page->listing.after = STR_NONE;
    if (resumed) {
        page->listing.after = page->from.id;
    }
    call_gives(page->call);
    int rc = page->source.desc->list(page->source.plugin->self, &page->call->pub, space,
                                     &page->listing);
    if (page->listing.seeks && resumed) {
        page->skip = SKIP_NOTHING;
    }
    if (page->rc != NG_OK) {
        return page->rc;
    }
    if (page->full) {
        return NG_OK;
    }
    return call_gave(page->call, rc);
}

static int list_space(struct page *page, struct ng_str space)
{
    bool resumed = page->from.kind.data != NULL;
    size_t len = page->out.len;
    size_t count = page->count;
    struct mcp_cursor last = page->last;
    int rc = list_once(page, space, resumed ? SKIP_TO_ID : SKIP_NOTHING);
    if (rc == NG_OK && page->skip == SKIP_TO_ID && page->from.count > 0) {
        /* The entry the page begins behind is gone. */
        rc = list_once(page, space, SKIP_BY_NUMBER);
    }
    if (rc == NG_PENDING) { /* it is asked again, for all of it */
        page->out.len = len;
        page->count = count;
        page->last = last;
        return rc;
    }
    page->skip = SKIP_NOTHING;
    page->from.kind = STR_NONE; /* the following collections are listed from their start */
    return rc;
}

/* The cursor must point to a resource that the caller sees. */
static int begin_page(struct page *page)
{
    struct call *call = page->call;
    const struct mcp_cursor *from = &page->from;
    page->begun = true;
    page->spaces = mcp_spaces(call, &page->space_count);
    if (page->spaces == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    if (from->kind.data == NULL) {
        return NG_OK;
    }
    bool found = mcp_source_find(call, from->kind, &page->source, &page->index);
    while (found && page->source.desc->kind != NULL && page->space_at < page->space_count &&
           !str_equal(page->spaces[page->space_at], from->space)) {
        page->space_at++;
    }
    if (!found || page->space_at >= page->space_count) {
        return call_fail(call, NG_EINVAL,
                         "`params.cursor` is not a cursor that this gateway gave to this "
                         "caller; leave it out to start again");
    }
    return NG_OK;
}

static int list_step(struct ng_call *pub, void *user)
{
    struct page *page = user;
    struct call *call = page->call;
    int rc = NG_OK;
    if (!page->begun) {
        rc = begin_page(page);
    }
    (void)pub;
    while (rc == NG_OK && !page->full &&
           mcp_source_at(call->gateway, page->index, &page->source)) {
        const struct ng_resources *desc = page->source.desc;
        if (desc->list != NULL && mcp_lists_plugin(call, page->source.plugin)) {
            rc = mcp_enter_plugin(call, page->source.plugin, list_step, page);
            if (rc != NG_OK) {
                return rc; /* another thread may be in it already */
            }
            size_t ends = page->space_count;
            if (desc->kind == NULL) {
                ends = page->space_at + 1;
            }
            while (rc == NG_OK && !page->full && page->space_at < ends) {
                rc = list_space(page, desc->kind == NULL ? call->caller.space
                                                         : page->spaces[page->space_at]);
                page->space_at += rc == NG_OK;
            }
        }
        if (rc == NG_OK && !page->full) {
            page->index++;
            page->space_at = 0;
        }
    }
    return rc;
}

static int start_list(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    const struct ng_value *cursor = json_get(exchange->message.params, "cursor");
    struct page *page = arena_zalloc(&call->arena, sizeof(*page));
    int rc = NG_OK;
    if (page == NULL) {
        rc = NG_EINTERNAL;
    }
    call->read_only = true;
    if (rc == NG_OK) {
        page->listing.add = page_add;
        page->call = call;
        buf_init(&page->out, LISTING_BUFFER_MAX);
        rc = call_pin(call, page_done, page);
    }
    if (rc == NG_OK && cursor != NULL) {
        if (cursor->type == NG_TYPE_STRING) {
            rc = mcp_cursor_parse(&call->arena, cursor->text, &page->from);
        } else {
            rc = NG_EINVAL;
        }
    }
    if (rc != NG_OK) {
        (void)call_fail(
            call, rc, "%s",
            rc == NG_EINVAL
                ? "`params.cursor` is not a cursor of this gateway; leave it out to start again"
                : "out of memory");
    }
    return dispatch_step(call, list_step, page);
}

static void answer_list(struct mcp_exchange *exchange, const struct call *call)
{
    const struct page *page = call->step_user;
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, "\"resources\":[");
    buf_add_str(out, buf_str(&page->out));
    buf_add_char(out, ']');
    if (page->full) {
        buf_add_c(out, ",\"nextCursor\":\"");
        (void)mcp_cursor_print(out, &page->last);
        buf_add_char(out, '"');
    }
    mcp_print_cache(exchange, out, MCP_RESOURCES_TTL_MS);
    mcp_result_close(exchange, STR_NONE);
}

int mcp_resources_list(struct mcp_exchange *exchange)
{
    static const struct mcp_run run = {start_list, answer_list, mcp_answer_failed, NULL};
    return mcp_run(exchange, &run);
}
