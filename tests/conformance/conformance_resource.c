/* SPDX-License-Identifier: MIT */
/* conformance_resource.c - resources with addresses of their own: a text, bytes, a template,
 * and one that a tool changes, so that subscribers are notified. */
#include "conformance.h"

#include <string.h>

#define RESOURCE_TEXT "test://static-text"
#define RESOURCE_BINARY "test://static-binary"
#define RESOURCE_WATCHED "test://watched-resource"
#define RESOURCE_TEMPLATE "test://template/{id}/data"
#define RESOURCE_BEFORE "test://template/"
#define RESOURCE_AFTER "/data"
#define RESOURCE_WATCHED_NEW "This resource has not been changed yet."

static bool resource_same(struct ng_str text, const char *other)
{
    return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

static int resource_unknown(struct ng_call *call, struct ng_str uri)
{
    return ng_fail(call, NG_ENOTFOUND, "there is no resource '%.*s'", (int)uri.len, uri.data);
}

static int resource_list_one(struct ng_call *call, struct ng_listing *listing, const char *uri,
                             const char *name, const char *mime_type)
{
    struct ng_str none = {NULL, 0};
    /* Not NG_OK: the page is full, which is no fault. */
    (void)call->host->list_add(listing, ng_str_of(uri), ng_str_of(name), none, mime_type, 0, 0);
    return NG_OK;
}

/* ---- test://static-text, test://static-binary ---- */

static int resource_text_list(void *self, struct ng_call *call, struct ng_str space,
                              struct ng_listing *listing)
{
    (void)self;
    (void)space;
    return resource_list_one(call, listing, RESOURCE_TEXT, "static-text", "text/plain");
}

static int resource_text_read(void *self, struct ng_call *call, struct ng_str space,
                              struct ng_str id, uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    if (!resource_same(id, RESOURCE_TEXT)) {
        return resource_unknown(call, id);
    }
    return ng_reply(call, ng_str_of("This is the content of the static text resource."));
}

static int resource_binary_list(void *self, struct ng_call *call, struct ng_str space,
                                struct ng_listing *listing)
{
    (void)self;
    (void)space;
    return resource_list_one(call, listing, RESOURCE_BINARY, "static-binary", "image/png");
}

static int resource_binary_read(void *self, struct ng_call *call, struct ng_str space,
                                struct ng_str id, uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    if (!resource_same(id, RESOURCE_BINARY)) {
        return resource_unknown(call, id);
    }
    return call->host->reply_resource(call, id, "image/png", conformance_png, false);
}

/* ---- test://template/{id}/data ---- */

static int resource_template_read(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_str id, uint64_t revision)
{
    const struct ng_host *host = call->host;
    const size_t before = strlen(RESOURCE_BEFORE);
    const size_t after = strlen(RESOURCE_AFTER);
    (void)self;
    (void)space;
    (void)revision;
    if (id.len <= before + after || memcmp(id.data, RESOURCE_BEFORE, before) != 0 ||
        memcmp(id.data + id.len - after, RESOURCE_AFTER, after) != 0) {
        return resource_unknown(call, id);
    }
    struct ng_str value = {id.data + before, id.len - before - after};
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(writer);
    host->json_name(writer, "id");
    host->json_string(writer, value);
    host->json_name(writer, "templateTest");
    host->json_bool(writer, true);
    host->json_name(writer, "data");
    host->json_string(writer,
                      host->format(call, "Data for ID: %.*s", (int)value.len, value.data));
    host->json_end(writer);
    return host->reply_resource(call, id, "application/json", host->json_result(writer), true);
}

/* ---- test://watched-resource ---- */

static struct ng_key resource_watched_key(struct ng_str space)
{
    struct ng_key key = {ng_str_of(CONFORMANCE_WATCHED_COLLECTION), space,
                         ng_str_of(RESOURCE_WATCHED)};
    return key;
}

static int resource_watched_list(void *self, struct ng_call *call, struct ng_str space,
                                 struct ng_listing *listing)
{
    (void)self;
    (void)space;
    return resource_list_one(call, listing, RESOURCE_WATCHED, "watched-resource", "text/plain");
}

static int resource_watched_read(void *self, struct ng_call *call, struct ng_str space,
                                 struct ng_str id, uint64_t revision)
{
    (void)self;
    if (!resource_same(id, RESOURCE_WATCHED)) {
        return resource_unknown(call, id);
    }
    struct ng_key key = resource_watched_key(space.data != NULL ? space : call->caller->space);
    const struct ng_doc *doc = NULL;
    int rc = call->host->get(call, &key, revision, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (doc->revision == 0 || doc->deleted) {
        return ng_reply(call, ng_str_of(RESOURCE_WATCHED_NEW));
    }
    rc = call->host->revision_number(call, doc->revision);
    return rc != NG_OK ? rc : ng_reply(call, doc->text);
}

static int resource_watched_change(struct ng_call *call, const struct ng_doc *present,
                                   struct ng_draft *next, void *user)
{
    struct ng_str text = ng_arg_text(call, "text");
    (void)present;
    (void)user;
    int rc = call->host->draft_text(next, &text, 1);
    return rc != NG_OK ? rc : ng_reply(call, ng_str_of("The watched resource was changed"));
}

int conformance_update_watched(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_change change = {
        .size = sizeof(change),
        .key = resource_watched_key(call->caller->space),
        .fn = resource_watched_change,
    };
    return ng_change_one(call, &change);
}

/* ---- declarations ---- */

const struct ng_resources conformance_resources[CONFORMANCE_RESOURCES] = {
    {
        .uri_template = RESOURCE_TEXT,
        .title = "Static text",
        .summary = "A text that never changes.",
        .mime_type = "text/plain",
        .list = resource_text_list,
        .read = resource_text_read,
    },
    {
        .uri_template = RESOURCE_BINARY,
        .title = "Static bytes",
        .summary = "A picture of one pixel.",
        .mime_type = "image/png",
        .list = resource_binary_list,
        .read = resource_binary_read,
    },
    {
        .uri_template = RESOURCE_TEMPLATE,
        .title = "Data by id",
        .summary = "An object that names the id it was asked for.",
        .mime_type = "application/json",
        .read = resource_template_read,
    },
    {
        .uri_template = RESOURCE_WATCHED,
        .title = "Watched",
        .summary = "A text that test_update_watched_resource changes.",
        .mime_type = "text/plain",
        .collection = CONFORMANCE_WATCHED_COLLECTION,
        .list = resource_watched_list,
        .read = resource_watched_read,
    },
};
