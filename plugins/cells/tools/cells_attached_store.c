/* SPDX-License-Identifier: MIT */
/* cells_attached_store.c - attachments as documents, one per owner, changed in transactions so
 * that gateways do not overwrite each other. */
#include "cells_attached.h"
#include "core/base/lock.h"
#include "core/base/str.h"

#include <stdlib.h>
#include <string.h>

/* Space of all documents: their ids contain agent and space. */
#define ATTACHED_SPACE "shared"
#define ATTACHED_PAGE 1000

static struct ng_key key_of(struct ng_str owner)
{
    struct ng_key key = {ng_str_of(CELLS_ATTACHED), ng_str_of(ATTACHED_SPACE), owner};
    return key;
}

/* {NULL, 0}: out of memory. */
static struct ng_str owner_json(struct ng_call *call, const struct cells_owner *owner)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    host->json_name(writer, "attached");
    host->json_array(writer);
    for (size_t i = 0; i < owner->count; i++) {
        const struct cells_attached *attached = &owner->items[i];
        host->json_object(writer);
        host->json_name(writer, "notebook");
        host->json_string(writer, ng_str_of(attached->path));
        host->json_name(writer, "real");
        host->json_string(writer, ng_str_of(attached->real));
        host->json_name(writer, "active");
        host->json_bool(writer, owner->active == i);
        host->json_name(writer, "selected");
        host->json_array(writer);
        for (char **at = attached->selected; at != NULL && *at != NULL; at++) {
            host->json_string(writer, ng_str_of(*at));
        }
        host->json_end(writer);
        if (attached->editing != NULL) {
            host->json_name(writer, "editing");
            host->json_string(writer, ng_str_of(attached->editing));
        }
        host->json_end(writer);
    }
    host->json_end(writer);
    host->json_end(writer);
    return host->json_result(writer);
}

static bool take_selected(const struct ng_host *host, const struct ng_value *ids, char ***ret)
{
    size_t count = host->json_count(ids);
    char **list = calloc(count + 1, sizeof(*list));
    size_t kept = 0;
    const struct ng_value *id = host->json_first(ids);
    for (; list != NULL && id != NULL; id = host->json_next(id)) {
        list[kept] = str_dup(host->json_text(id));
        if (list[kept++] == NULL) {
            kernelspec_free_list(list);
            return false;
        }
    }
    *ret = list;
    return list != NULL;
}

static bool owner_load(const struct ng_host *host, struct cells_owner *owner,
                       const struct ng_value *body)
{
    const struct ng_value *list = host->json_get(body, "attached");
    const struct ng_value *item = NULL;
    if (list != NULL) {
        item = host->json_first(list);
    }
    for (; item != NULL; item = host->json_next(item)) {
        struct cells_attached *attached =
            cells_attached_add(owner, host->json_text(host->json_get(item, "real")),
                               host->json_text(host->json_get(item, "notebook")));
        if (attached == NULL) {
            return false;
        }
        if (host->json_type(host->json_get(item, "active")) == NG_TYPE_TRUE) {
            owner->active = owner->count - 1;
        }
        struct ng_str editing = host->json_text(host->json_get(item, "editing"));
        if (editing.len > 0) {
            attached->editing = str_dup(editing);
        }
        if ((editing.len > 0 && attached->editing == NULL) ||
            !take_selected(host, host->json_get(item, "selected"), &attached->selected)) {
            return false;
        }
    }
    return true;
}

/* NULL: *ret_rc has the reason. An absent document gives an owner without attachments. */
static struct cells_owner *owner_of(struct ng_call *call, const struct ng_doc *doc,
                                    struct ng_str key, int *ret_rc)
{
    const struct ng_host *host = call->host;
    const struct ng_value *body = NULL;
    struct cells_owner *owner = cells_owner_new(key);
    bool there = doc->revision > 0 && !doc->deleted;
    *ret_rc = cells_check_memory(call, owner != NULL);
    if (*ret_rc == NG_OK && there) {
        *ret_rc = host->json_parse(call, doc->json, &body);
    }
    if (*ret_rc == NG_OK && there && !owner_load(host, owner, body)) {
        *ret_rc = cells_no_memory(call);
    }
    if (*ret_rc != NG_OK) {
        cells_owner_free(owner);
        return NULL;
    }
    return owner;
}

/* ---- reading ---- */

struct load_state {
    struct ng_call *call;
    struct cells_attachments *all;
    int rc;
};

static int load_row(void *user, const struct ng_doc *row)
{
    struct load_state *load = user;
    struct cells_owner *owner = owner_of(load->call, row, row->key.id, &load->rc);
    if (owner != NULL) {
        (void)cells_attachments_put(load->all, owner);
    }
    return load->rc != NG_OK;
}

int cells_attachments_open(struct ng_call *call, struct cells_attachments **ret)
{
    struct cells_attachments *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return cells_no_memory(call);
    }
    lock_init(&all->lock, LOCK_CELLS_ATTACHED);
    struct load_state load = {call, all, NG_OK};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CELLS_ATTACHED),
        .space = ng_str_of(ATTACHED_SPACE),
        .limit = ATTACHED_PAGE,
        .want_total = true,
    };
    uint64_t total = 0;
    int rc = NG_OK;
    do {
        rc = call->host->query(call, &query, load_row, &load, &total);
        if (rc == NG_OK) {
            rc = load.rc;
        }
        query.offset += ATTACHED_PAGE;
    } while (rc == NG_OK && query.offset < total);
    /* The database may be down when the gateway starts: documents are then read on demand. */
    if (rc != NG_OK && rc != NG_EUNAVAILABLE) {
        cells_attachments_close(all);
        return rc;
    }
    *ret = all;
    return NG_OK;
}

/* Reads the document of `key`. */
static int refresh(struct cells *self, struct ng_call *call, struct ng_str key)
{
    const struct ng_doc *doc = NULL;
    struct ng_key document = key_of(key);
    uint64_t ticket = cells_attachments_ticket(self->attachments);
    if (key.data == NULL) {
        return cells_no_memory(call);
    }
    int rc = call->host->get(call, &document, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    struct cells_owner *owner = owner_of(call, doc, key, &rc);
    if (owner == NULL) {
        return rc;
    }
    owner->ticket = ticket;
    if (cells_attachments_put(self->attachments, owner)) {
        call->host->lists_changed(call->host, NG_LIST_TOOLS);
    }
    return NG_OK;
}

int cells_attachments_refresh(struct cells *self, struct ng_call *call)
{
    return refresh(self, call, cells_owner_key(call));
}

void cells_refresh_selection(struct cells *self, struct ng_call *call)
{
    if (ng_has_arg(call, "notebook")) {
        (void)cells_attachments_refresh(self, call); /* on failure the cached state is shown */
    }
}

int cells_attachments_poll(struct ng_call *call, void *user)
{
    struct cells *self = user;
    int rc = NG_OK;
    char *key = cells_attachments_next_poll(self->attachments);
    for (; key != NULL; key = cells_attachments_next_poll(self->attachments)) {
        rc = refresh(self, call, ng_str_of(key));
        free(key);
    }
    if (rc == NG_EUNAVAILABLE) {
        return NG_OK; /* the next list polls again */
    }
    return rc;
}

/* ---- changing ---- */

struct owner_change {
    struct ng_str key;
    cells_attached_fn *fn;
    void *user;
};

static int change_owner(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    const struct owner_change *change = user;
    int rc = NG_OK;
    struct cells_owner *owner = owner_of(call, present, change->key, &rc);
    if (owner == NULL) {
        return rc;
    }
    rc = change->fn(call, owner, change->user);
    if (rc != NG_OK) {
        goto out;
    }
    struct ng_str json = owner_json(call, owner);
    bool there = present->revision > 0 && !present->deleted;
    if (json.data == NULL) {
        rc = cells_no_memory(call);
    } else if (owner->count == 0 && there) {
        call->host->draft_delete(next);
    } else if (owner->count > 0 && !(there && str_equal(present->json, json))) {
        rc = call->host->draft_json(next, json);
    }
out:
    cells_owner_free(owner);
    return rc;
}

int cells_attached_change(struct cells *self, struct ng_call *call, cells_attached_fn *fn,
                          void *user)
{
    struct owner_change owner_change = {cells_owner_key(call), fn, user};
    struct ng_change change = {
        .size = sizeof(change),
        .key = key_of(owner_change.key),
        .fn = change_owner,
        .user = &owner_change,
    };
    if (owner_change.key.data == NULL) {
        return cells_no_memory(call);
    }
    int rc = call->host->change_wait(call, &change, 1);
    if (rc != NG_OK) {
        return rc;
    }
    return cells_attachments_refresh(self, call);
}
