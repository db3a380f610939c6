/* SPDX-License-Identifier: MIT */
/* host_documents.c - access of plugins to documents, files and the journal. */

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/listing.h"
#include "core/dispatch/audit_put.h"
#include "core/fault/module_run.h"
#include "core/files/files.h"
#include "core/journal/journal.h"
#include "core/module/abi_size.h"
#include "core/module/registry.h"
#include "core/store/store.h"
#include "host.h"

/* Least time between two log lines about failed changes in the background. */
#define HOST_FAILED_LOG_MS 1000

int host_get(struct ng_call *pub, const struct ng_key *key, uint64_t revision,
             const struct ng_doc **ret_doc)
{
    return store_get(call_of(pub)->gateway->store, call_of(pub), key, revision, ret_doc);
}

int host_query(struct ng_call *pub, const struct ng_query *query, ng_row_fn *row, void *user,
               uint64_t *ret_total)
{
    struct call *call = call_of(pub);
    struct ng_query mine;
    int rc = abi_take(call, &abi_query, &mine, query);
    if (rc != NG_OK) {
        return rc;
    }
    mine.with_deleted = mine.with_deleted || mine.only_deleted;
    return store_query(call->gateway->store, call, &mine, row, user, ret_total);
}

int host_search(struct ng_call *pub, const struct ng_search *search, ng_row_fn *row, void *user,
                uint64_t *ret_total, const char **ret_engine)
{
    struct call *call = call_of(pub);
    struct ng_search mine;
    struct ng_query query;
    int rc = abi_take(call, &abi_search, &mine, search);
    if (rc == NG_OK && mine.query == NULL) {
        rc = call_fail(call, NG_EINTERNAL, "a search needs its `query`");
    }
    if (rc == NG_OK) {
        rc = abi_take(call, &abi_query, &query, mine.query);
    }
    mine.query = &query;
    if (rc != NG_OK) {
        return rc;
    }
    return store_search(call->gateway->store, call, &mine, row, user, ret_total, ret_engine);
}

int host_history(struct ng_call *pub, const struct ng_key *key, const struct ng_range *range,
                 ng_row_fn *row, void *user)
{
    struct call *call = call_of(pub);
    struct ng_range mine;
    int rc = abi_take(call, &abi_range, &mine, range);
    if (rc != NG_OK) {
        return rc;
    }
    return store_history(call->gateway->store, call, key, &mine, row, user);
}

int host_history_count(struct ng_call *pub, const struct ng_key *key,
                       const struct ng_range *range, uint64_t *ret_count)
{
    struct call *call = call_of(pub);
    struct ng_range mine;
    int rc = abi_take(call, &abi_range, &mine, range);
    if (rc != NG_OK) {
        return rc;
    }
    return store_history_count(call->gateway->store, call, key, &mine, ret_count);
}

int host_changes(struct ng_call *pub, uint64_t since, uint32_t limit, ng_event_fn *event,
                 void *user)
{
    return store_changes(call_of(pub)->gateway->store, call_of(pub), since, limit, event, user);
}

static bool plugin_declares(const struct ng_plugin *plugin, struct ng_str collection)
{
    bool declares = false;
    for (size_t i = 0; i < plugin->collection_count && !declares; i++) {
        declares = str_is(collection, plugin->collections[i].name);
    }
    return declares;
}

/* A plugin may change the collections that it declares or names in `uses`. A change without a
 * plugin (change_as) may change any collection that a plugin declares. */
int host_may_change(struct call *call, struct ng_str collection)
{
    const struct plugin *own = call_plugin(call);
    if (own != NULL &&
        (plugin_declares(&own->desc, collection) || str_in_words(collection, own->desc.uses))) {
        return NG_OK;
    }
    struct plugin *const *plugins = NULL;
    size_t count = 0;
    if (own == NULL) {
        count = registry_plugins(call->gateway->registry, &plugins);
    }
    bool may = false;
    for (size_t i = 0; i < count && !may; i++) {
        may = plugin_declares(&plugins[i]->desc, collection);
    }
    if (may || store_collection(call->gateway->store, collection) == NULL) {
        return NG_OK; /* the store refuses an undeclared collection */
    }
    return call_fail(
        call, NG_EINTERNAL,
        "plugin %s may not change the collection \"%.*s\": it has not declared it, "
        "and does not name it in `uses`",
        own != NULL ? own->desc.name : "(unknown)", (int)collection.len, collection.data);
}

/* Refused in a change function, which would wait for locks that its own thread holds. */
int host_no_write(struct call *call)
{
    return call_fail(call, NG_EINTERNAL,
                     "a change function may not change documents or files, because it runs "
                     "under the lock of its document; name all documents in one change");
}

/* Checks the changes, and brings them to the size of this gateway's structs. */
static int host_take_changes(struct call *call, const struct ng_change *changes, size_t count,
                             const struct ng_change **ret)
{
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    const void *taken = changes;
    int rc = NG_OK;
    if (count <= NG_CHANGES_MAX) { /* else refused by the store, which reads none of them */
        rc = abi_take_array(call, &abi_change, changes, count, &taken);
    }
    *ret = taken;
    for (size_t i = 0; rc == NG_OK && i < count && i < NG_CHANGES_MAX; i++) {
        rc = host_may_change(call, (*ret)[i].key.collection);
        if (rc == NG_OK && (*ret)[i].fn == NULL) {
            rc = call_fail(call, NG_EINTERNAL, "a change needs its function (`fn`)");
        }
    }
    return rc;
}

int host_change(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    struct call *call = call_of(pub);
    int rc = host_take_changes(call, changes, count, &changes);
    if (rc != NG_OK) {
        return rc;
    }
    return store_change(call->gateway->store, call, changes, count);
}

int host_change_wait(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    struct call *call = call_of(pub);
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    int rc = host_take_changes(call, changes, count, &changes);
    if (rc != NG_OK) {
        return rc;
    }
    return store_write_wait(call->gateway->store, call, changes, count);
}

/* A change in the background (change_as). */
struct host_write {
    struct call *call;
    ng_changed_fn *done;
    void *user;
};

/* Logs the failure, at most once a second: a lasting cause makes hundreds of changes fail, and
 * the plugin retries them. */
static void host_log_failed(struct call *call)
{
    long long now = clock_monotonic_ns() / 1000000;
    long long logged = atomic_load(&call->gateway->background_told_ms);
    if ((logged == 0 || now - logged >= HOST_FAILED_LOG_MS) &&
        atomic_compare_exchange_strong(&call->gateway->background_told_ms, &logged, now)) {
        log_write(NG_LOG_WARNING, "background", "%.*s", (int)call->staged.message.len,
                  call->staged.message.data == NULL ? "" : call->staged.message.data);
    }
}

static void host_write_done(void *user, int rc)
{
    struct host_write *write = user;
    struct call *call = write->call;
    ng_changed_fn *done = write->done;
    void *done_user = write->user;
    struct audit_epochs *epochs = &call->gateway->audit.epochs;
    if (rc != NG_OK) {
        host_log_failed(call);
    } else if (gateway_keeps_audit(call->gateway)) {
        audit_put_background(call);
    }
    audit_epochs_leave(epochs, call->epoch);
    call_unref(call);
    done(done_user, rc);
}

int host_change_as(const struct ng_host *host, struct ng_str agent,
                   const struct ng_change *changes, size_t count, ng_changed_fn *done,
                   void *user)
{
    struct gateway *gateway = host_gateway(host);
    struct ng_str space = {NULL, 0};
    struct call *call = call_new(gateway);
    struct host_write *write = call == NULL ? NULL : arena_alloc(&call->arena, sizeof(*write));
    if (write == NULL) {
        call_unref(call);
        return NG_EINTERNAL;
    }
    *write = (struct host_write){call, done, user};
    call->deadline_ns = clock_monotonic_ns() + gateway->limits.call_timeout_ms * 1000000;
    int rc = call_set_caller(call, agent, space, NG_ROLE_WRITER, NG_MODE_AGENT, false);
    if (rc == NG_OK) {
        rc = host_take_changes(call, changes, count, &changes);
    }
    if (rc == NG_OK) {
        call->epoch = audit_epochs_enter(&gateway->audit.epochs);
        rc = store_write(gateway->store, call, changes, count, host_write_done, write);
        if (rc != NG_OK) {
            audit_epochs_leave(&gateway->audit.epochs, call->epoch);
        }
    }
    if (rc != NG_OK) {
        call_unref(call);
    }
    return rc;
}

/* Copies `file` into the plugin's struct, up to the size that it was compiled with. */
static int host_give_file(int rc, const struct ng_file *file, struct ng_file *ret_file)
{
    if (rc == NG_OK) {
        ng_fill(ret_file, file);
    }
    return rc;
}

int host_file_stat(struct ng_call *pub, struct ng_str path, struct ng_file *ret_file)
{
    struct call *call = call_of(pub);
    struct ng_file file;
    int rc = abi_check(call, &abi_file, ret_file);
    if (rc == NG_OK) {
        rc = files_stat(call->gateway->files, call, path, &file);
    }
    return host_give_file(rc, &file, ret_file);
}

int host_file_read(struct ng_call *pub, struct ng_str path, uint64_t max_bytes,
                   struct ng_file *ret_file)
{
    struct call *call = call_of(pub);
    struct ng_file file;
    int rc = abi_check(call, &abi_file, ret_file);
    if (rc == NG_OK) {
        rc = files_read(call->gateway->files, call, path, max_bytes, &file);
    }
    return host_give_file(rc, &file, ret_file);
}

int host_file_stream(struct ng_call *pub, struct ng_str path, ng_chunk_fn *chunk, void *user,
                     struct ng_file *ret_file)
{
    struct call *call = call_of(pub);
    struct ng_file file;
    int rc = abi_check(call, &abi_file, ret_file);
    if (rc == NG_OK) {
        rc = files_stream(call->gateway->files, call, path, chunk, user, &file);
    }
    return host_give_file(rc, &file, ret_file);
}

int host_file_list(struct ng_call *pub, const struct ng_file_list *list, ng_entry_fn *entry,
                   void *user)
{
    struct call *call = call_of(pub);
    struct ng_file_list mine;
    int rc = abi_take(call, &abi_file_list, &mine, list);
    if (rc != NG_OK) {
        return rc;
    }
    return files_list(call->gateway->files, call, &mine, entry, user);
}

int host_file_edit(struct ng_call *pub, const struct ng_file_edit *edit)
{
    struct call *call = call_of(pub);
    struct ng_file_edit mine;
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    int rc = abi_take(call, &abi_file_edit, &mine, edit);
    if (rc == NG_OK && mine.collection != NULL) {
        rc = host_may_change(call, ng_str_of(mine.collection));
    }
    if (rc != NG_OK) {
        return rc;
    }
    return files_edit(call->gateway->files, call, &mine);
}

int host_file_transfer(struct ng_call *pub, const struct ng_file_transfer *transfer)
{
    struct call *call = call_of(pub);
    struct ng_file_transfer mine;
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    int rc = abi_take(call, &abi_file_transfer, &mine, transfer);
    if (rc == NG_OK && mine.edit_count > NG_FILE_GROUP_MAX) {
        rc = call_fail(call, NG_ETOOLARGE, "A move can change at most %d other files, not %zu.",
                       NG_FILE_GROUP_MAX, mine.edit_count);
    }
    const void *edits = NULL;
    bool has_group = mine.edit_count > 0 || mine.folder;
    if (rc == NG_OK && has_group &&
        (mine.keep || (mine.edits == NULL && mine.edit_count > 0))) {
        rc =
            call_fail(call, NG_EINTERNAL,
                      "a copy has no `edits` and no `folder`, and `edit_count` counts `edits`");
    }
    if (rc == NG_OK) {
        rc = abi_take_array(call, &abi_file_edit, mine.edits, mine.edit_count, &edits);
    }
    mine.edits = edits;
    for (size_t i = 0; rc == NG_OK && i < mine.edit_count; i++) {
        if (mine.edits[i].fn == NULL) {
            rc = call_fail(call, NG_EINTERNAL, "an edit needs its function (`fn`)");
        } else if (mine.edits[i].collection != NULL) {
            rc = host_may_change(call, ng_str_of(mine.edits[i].collection));
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    return files_transfer(call->gateway->files, call, &mine);
}

int host_file_undo(struct ng_call *pub, const struct ng_file_undo *undo)
{
    struct call *call = call_of(pub);
    struct ng_file_undo mine;
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    int rc = abi_take(call, &abi_file_undo, &mine, undo);
    if (rc != NG_OK) {
        return rc;
    }
    return files_undo(call->gateway->files, call, &mine);
}

size_t host_file_roots(struct ng_call *pub, const struct ng_str **ret_roots)
{
    return files_roots(call_of(pub)->gateway->files, call_of(pub), ret_roots);
}

int host_file_folder(struct ng_call *pub, struct ng_str folder)
{
    return files_add_folder(call_of(pub)->gateway->files, call_of(pub), folder);
}

const struct ng_journal *host_journal(struct ng_call *pub, void **ret_journal)
{
    return journal_vtable(call_of(pub)->gateway->journal, ret_journal);
}

int host_list_add(struct ng_listing *listing, struct ng_str id, struct ng_str name,
                  struct ng_str description, const char *mime_type, uint64_t bytes,
                  int64_t modified_ms)
{
    struct listing_item item = {id,    name,       description, ng_str_of(mime_type),
                                bytes, modified_ms};
    return listing->add(listing, &item);
}

struct ng_str host_list_after(struct ng_listing *listing)
{
    listing->seeks = true;
    return listing->after;
}

struct ng_str host_day(struct ng_call *pub, int64_t time_ms)
{
    struct call *call = call_of(pub);
    char date[RFC3339_DAY_SIZE];
    journal_zone_day(time_ms, date);
    return arena_copy(&call->arena, ng_str_of(date));
}
