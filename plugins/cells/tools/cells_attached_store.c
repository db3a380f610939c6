/* SPDX-License-Identifier: MIT */
/* cells_attached_store.c - attachments as documents, one per owner, changed in transactions so
 * that gateways do not overwrite each other. */
#include "cells_attached.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"

#include <stdlib.h>
#include <string.h>

/* Space of all documents: their ids contain agent and space. */
#define ATTACHED_SPACE "shared"
#define ATTACHED_PAGE 1000
/* First block of the memory of an owner: most have one notebook. */
#define OWNER_FIRST 512

static struct ng_key key_of(struct ng_str owner)
{
    struct ng_key key = {ng_str_of(CELLS_ATTACHED), ng_str_of(ATTACHED_SPACE), owner};
    return key;
}

static void write_attached(const struct ng_host *host, struct ng_writer *writer,
                           const struct cells_attached *attached)
{
    host->json_object(writer);
    host->json_name(writer, "notebook");
    host->json_string(writer, attached->path);
    host->json_name(writer, "real");
    host->json_string(writer, attached->real);
    host->json_name(writer, "used");
    host->json_int(writer, attached->used_ms);
    host->json_name(writer, "selected");
    host->json_array(writer);
    for (size_t j = 0; j < attached->selected_count; j++) {
        host->json_string(writer, attached->selected[j]);
    }
    host->json_end(writer);
    if (attached->editing.len > 0) {
        host->json_name(writer, "editing");
        host->json_string(writer, attached->editing);
    }
    host->json_end(writer);
}

static void write_active(const struct ng_host *host, struct ng_writer *writer,
                         const struct cells_active *active)
{
    host->json_object(writer);
    host->json_name(writer, "session");
    host->json_string(writer, active->session);
    host->json_name(writer, "real");
    host->json_string(writer, active->real);
    host->json_name(writer, "process");
    host->json_string(writer, active->process);
    host->json_name(writer, "used");
    host->json_int(writer, active->used_ms);
    host->json_end(writer);
}

/* {NULL, 0}: out of memory. Leaves out what is not active any more. */
static struct ng_str owner_json(struct ng_call *call, const struct cells_owner *owner)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    int64_t since_ms = clock_unix_ms() - CELLS_ACTIVE_MS;
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    host->json_name(writer, "attached");
    host->json_array(writer);
    for (size_t i = 0; i < owner->count; i++) {
        write_attached(host, writer, &owner->items[i]);
    }
    host->json_end(writer);
    host->json_name(writer, "active");
    host->json_array(writer);
    for (size_t i = 0; i < owner->active_count; i++) {
        const struct cells_active *active = &owner->actives[i];
        if (active->used_ms > since_ms && cells_attached_find(owner, active->real) != NULL) {
            write_active(host, writer, active);
        }
    }
    host->json_end(writer);
    host->json_end(writer);
    return host->json_result(writer);
}

static void load_selected(const struct ng_host *host, struct arena *memory,
                          const struct ng_value *ids, struct cells_attached *ret)
{
    const struct ng_value *id = host->json_first(ids);
    ret->selected = arena_alloc(memory, host->json_count(ids) * sizeof(*ret->selected));
    for (; ret->selected != NULL && id != NULL; id = host->json_next(id)) {
        ret->selected[ret->selected_count++] = arena_copy(memory, host->json_text(id));
    }
}

static void owner_load(const struct ng_host *host, struct cells_owner *owner,
                       const struct ng_value *list)
{
    size_t count = size_min(host->json_count(list), CELLS_ATTACHED_MAX);
    struct arena *memory = &owner->memory;
    const struct ng_value *item = host->json_first(list);
    owner->items = arena_zalloc(memory, (count + 1) * sizeof(*owner->items));
    for (; owner->items != NULL && owner->count < count; item = host->json_next(item)) {
        struct cells_attached *attached = &owner->items[owner->count];
        attached->real = arena_copy(memory, host->json_text(host->json_get(item, "real")));
        attached->path = arena_copy(memory, host->json_text(host->json_get(item, "notebook")));
        attached->editing =
            arena_copy(memory, host->json_text(host->json_get(item, "editing")));
        (void)host->json_integer(host->json_get(item, "used"), &attached->used_ms);
        load_selected(host, memory, host->json_get(item, "selected"), attached);
        owner->count++;
    }
}

static void owner_load_active(const struct ng_host *host, struct cells_owner *owner,
                              const struct ng_value *list)
{
    size_t count = size_min(host->json_count(list), CELLS_ACTIVE_MAX);
    struct arena *memory = &owner->memory;
    const struct ng_value *item = host->json_first(list);
    owner->actives = arena_zalloc(memory, (count + 1) * sizeof(*owner->actives));
    for (; owner->actives != NULL && owner->active_count < count;
         item = host->json_next(item)) {
        struct cells_active *active = &owner->actives[owner->active_count++];
        active->session = arena_copy(memory, host->json_text(host->json_get(item, "session")));
        active->real = arena_copy(memory, host->json_text(host->json_get(item, "real")));
        active->process = arena_copy(memory, host->json_text(host->json_get(item, "process")));
        (void)host->json_integer(host->json_get(item, "used"), &active->used_ms);
    }
}

/* NULL: *ret_rc has the reason. An absent document gives an owner without attachments. */
static struct cells_owner *owner_of(struct ng_call *call, const struct ng_doc *doc,
                                    struct ng_str key, int *ret_rc)
{
    const struct ng_value *body = NULL;
    *ret_rc = NG_OK;
    if (doc->revision > 0 && !doc->deleted) {
        *ret_rc = call->host->json_parse(call, doc->json, &body);
    }
    if (*ret_rc != NG_OK) {
        return NULL;
    }
    struct cells_owner *owner = calloc(1, sizeof(*owner));
    if (owner != NULL) {
        owner->memory.first = OWNER_FIRST;
        owner->key = arena_copy(&owner->memory, key);
        owner_load(call->host, owner, call->host->json_get(body, "attached"));
        owner_load_active(call->host, owner, call->host->json_get(body, "active"));
    }
    if (owner == NULL || owner->memory.failed) {
        *ret_rc = cells_no_memory(call);
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

int cells_name_process(struct cells *self, struct ng_call *call)
{
    self->process = call->host->gateway_name(call->host);
    if (self->process.len > 0) {
        return NG_OK;
    }
    if (!random_hex(CELLS_PROCESS_BYTES, self->process_id)) {
        return ng_fail(call, NG_EINTERNAL, "the system gives no random bytes");
    }
    self->process = ng_str_of(self->process_id);
    return NG_OK;
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

/* Finds which active notebooks were made active by a process that runs. */
static int find_living(struct cells *self, struct ng_call *call, struct cells_owner *owner)
{
    const struct ng_host *host = call->host;
    bool others = host->gateway_name(host).len > 0;
    for (size_t i = 0; i < owner->active_count; i++) {
        struct cells_active *active = &owner->actives[i];
        const struct cells_active *before = i > 0 ? active - 1 : NULL;
        active->lives = str_equal(self->process, active->process);
        if (active->lives || !others) {
            continue;
        }
        if (before != NULL && str_equal(before->process, active->process)) {
            active->lives = before->lives;
            continue;
        }
        struct ng_str where;
        int rc = host->gateway_find(call, active->process, &active->lives, &where);
        if (rc != NG_OK) {
            return rc;
        }
    }
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
    rc = find_living(self, call, owner);
    if (rc != NG_OK) {
        cells_owner_free(owner);
        return rc;
    }
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
