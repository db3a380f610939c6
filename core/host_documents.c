/* SPDX-License-Identifier: MIT */
/* host_documents.c - documents, files and the journal as plugins reach them. */

#include "clock.h"
#include "host.h"
#include "journal.h"
#include "listing.h"
#include "log.h"

/* Between two lines of the log about changes that no call waits for. */
#define HOST_TELL_MS 1000

int host_get(struct ng_call *pub, const struct ng_key *key, uint64_t revision,
             const struct ng_doc **ret_doc)
{
    return store_get(call_of(pub)->gateway->store, call_of(pub), key, revision, ret_doc);
}

int host_query(struct ng_call *pub, const struct ng_query *query, ng_row_fn *row, void *user,
               uint64_t *ret_total)
{
    return store_query(call_of(pub)->gateway->store, call_of(pub), query, row, user, ret_total);
}

int host_search(struct ng_call *pub, const struct ng_search *search, ng_row_fn *row, void *user,
                uint64_t *ret_total, const char **ret_engine)
{
    return store_search(call_of(pub)->gateway->store, call_of(pub), search, row, user,
                        ret_total, ret_engine);
}

int host_history(struct ng_call *pub, const struct ng_key *key, const struct ng_range *range,
                 ng_row_fn *row, void *user)
{
    return store_history(call_of(pub)->gateway->store, call_of(pub), key, range, row, user);
}

int host_history_count(struct ng_call *pub, const struct ng_key *key,
                       const struct ng_range *range, uint64_t *ret_count)
{
    return store_history_count(call_of(pub)->gateway->store, call_of(pub), key, range,
                               ret_count);
}

int host_changes(struct ng_call *pub, uint64_t since, uint32_t limit, ng_event_fn *event,
                 void *user)
{
    return store_changes(call_of(pub)->gateway->store, call_of(pub), since, limit, event, user);
}

int host_change(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    return store_change(call_of(pub)->gateway->store, call_of(pub), changes, count);
}

int host_change_wait(struct ng_call *pub, const struct ng_change *changes, size_t count)
{
    struct call *call = call_of(pub);
    return call->may_block ? store_write_wait(call->gateway->store, call, changes, count)
                           : NG_EWOULDBLOCK;
}

/* A change that no call waits for. */
struct host_write {
    struct call *call;
    ng_changed_fn *done;
    void *user;
};

/* They fail by the hundred where they fail, and are tried again: one line in a second says it.
 */
static void host_tell_failed(struct call *call)
{
    long long now = clock_monotonic_ns() / 1000000;
    long long told = atomic_load(&call->gateway->background_told_ms);
    if ((told == 0 || now - told >= HOST_TELL_MS) &&
        atomic_compare_exchange_strong(&call->gateway->background_told_ms, &told, now)) {
        log_write(NG_LOG_WARNING, "background", "%.*s", (int)call->work.message.len,
                  call->work.message.data == NULL ? "" : call->work.message.data);
    }
}

static void host_write_done(void *user, int rc)
{
    struct host_write *write = user;
    struct call *call = write->call;
    ng_changed_fn *done = write->done;
    void *done_user = write->user;
    if (rc != NG_OK) {
        host_tell_failed(call);
    }
    call_unref(call);
    done(done_user, rc);
}

int host_change_as(const struct ng_host *host, struct ng_str agent,
                   const struct ng_change *changes, size_t count, ng_changed_fn *done,
                   void *user)
{
    struct gateway *gateway =
        (struct gateway *)(uintptr_t)((uintptr_t)host - offsetof(struct gateway, host));
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
        rc = store_write(gateway->store, call, changes, count, host_write_done, write);
    }
    if (rc != NG_OK) {
        call_unref(call);
    }
    return rc;
}

int host_file_stat(struct ng_call *pub, struct ng_str path, struct ng_file *ret_file)
{
    return files_stat(call_of(pub)->gateway->files, call_of(pub), path, ret_file);
}

int host_file_read(struct ng_call *pub, struct ng_str path, uint64_t max_bytes,
                   struct ng_file *ret_file)
{
    return files_read(call_of(pub)->gateway->files, call_of(pub), path, max_bytes, ret_file);
}

int host_file_stream(struct ng_call *pub, struct ng_str path, ng_chunk_fn *chunk, void *user,
                     struct ng_file *ret_file)
{
    return files_stream(call_of(pub)->gateway->files, call_of(pub), path, chunk, user,
                        ret_file);
}

int host_file_list(struct ng_call *pub, const struct ng_file_list *list, ng_entry_fn *entry,
                   void *user)
{
    return files_list(call_of(pub)->gateway->files, call_of(pub), list, entry, user);
}

int host_file_edit(struct ng_call *pub, const struct ng_file_edit *edit)
{
    return files_edit(call_of(pub)->gateway->files, call_of(pub), edit);
}

int host_file_transfer(struct ng_call *pub, const struct ng_file_transfer *transfer)
{
    return files_transfer(call_of(pub)->gateway->files, call_of(pub), transfer);
}

int host_file_undo(struct ng_call *pub, const struct ng_file_undo *undo)
{
    return files_undo(call_of(pub)->gateway->files, call_of(pub), undo);
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
    char date[ZONE_DATE_SIZE];
    journal_date(call->gateway->journal, time_ms, date);
    return arena_copy(&call->arena, ng_str_of(date));
}
