/* SPDX-License-Identifier: MIT */
/*
 * host.h - the functions behind `struct ng_host`, which notegate/plugin.h documents. They are
 * thin wrappers of functions of the core, which calls them only through the table.
 */
#ifndef NOTEGATE_CORE_HOST_H
#define NOTEGATE_CORE_HOST_H

#include "core/call/call.h"

/* The table of these functions: gateway_open() copies it into the gateway. */
extern const struct ng_host call_host;

/* ---- host_answer.c ---- */

void *host_alloc(struct ng_call *pub, size_t bytes);
struct ng_str host_format(struct ng_call *pub, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int host_reply_parts(struct ng_call *pub, const struct ng_str *pieces, size_t count);
int host_reply(struct ng_call *pub, struct ng_str text);
struct ng_writer *host_reply_json(struct ng_call *pub);
size_t host_answer_room(struct ng_call *pub);
int host_reply_media(struct ng_call *pub, const char *kind, const char *mime_type,
                     struct ng_str bytes);
int host_reply_resource(struct ng_call *pub, struct ng_str uri, const char *mime_type,
                        struct ng_str content, bool is_text);
int host_reply_link(struct ng_call *pub, struct ng_str uri, struct ng_str name,
                    const char *mime_type);
int host_revision_number(struct ng_call *pub, uint64_t revision);
int host_revision_text(struct ng_call *pub, struct ng_str revision);
int host_reply_meta(struct ng_call *pub, const char *name, struct ng_str text);
int host_fail(struct ng_call *pub, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int host_fail_text(struct ng_call *pub, int code, struct ng_str message);
int host_fail_on_completion(struct ng_call *pub, int code, struct ng_str message);
int host_on_complete(struct ng_call *pub, ng_complete_fn *ended, void *user);
void host_hint_text(struct ng_call *pub, struct ng_str text);
void host_log_text(struct ng_call *pub, enum ng_level level, struct ng_str text);
void host_hint(struct ng_call *pub, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct ng_writer *host_details(struct ng_call *pub);

/* ---- host_run.c ---- */

void host_progress(struct ng_call *pub, double done, double total, struct ng_str message);
void host_mask_cancel(struct ng_call *pub);
struct ng_str host_idempotency_token(struct ng_call *pub);
bool host_cancelled(struct ng_call *pub);
int64_t host_remaining_ms(struct ng_call *pub);
bool host_may_block(struct ng_call *pub);
int64_t host_now_ms(void);
void host_log(struct ng_call *pub, enum ng_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void host_notify_log(struct ng_call *pub, enum ng_level level, const char *logger,
                     struct ng_str json);
void host_detach_client(struct ng_call *pub, int64_t retry_ms);
bool host_client_can(struct ng_call *pub, enum ng_ask_kind kind);
const struct ng_value *host_ask(struct ng_call *pub, const char *key, enum ng_ask_kind kind,
                                struct ng_str request);
void host_ask_state(struct ng_call *pub, struct ng_str state);
struct ng_str host_asked_state(struct ng_call *pub);

/* ---- host_later.c ---- */

/* The gateway with this table. */
struct gateway *host_gateway(const struct ng_host *host);
struct ng_deferred *host_defer(struct ng_call *pub);
void host_finish(struct ng_deferred *deferred, int rc);
int host_background(struct ng_call *pub, ng_step_fn *step, void *user);
struct ng_later *host_later(struct ng_call *pub);
int host_start_later(struct ng_later *later, ng_step_fn *step, void *user);
void host_lists_changed(const struct ng_host *host, unsigned lists);
struct ng_str host_gateway_name(const struct ng_host *host);
uint64_t host_gateway_term(const struct ng_host *host);
int host_gateway_find(struct ng_call *pub, struct ng_str name, bool *ret_alive,
                      struct ng_str *ret_where);

/* ---- host_find.c ---- */

int host_find(struct ng_call *pub, struct ng_find *find, ng_step_fn *step);

/* ---- host_json.c ---- */

int host_json_parse(struct ng_call *pub, struct ng_str text, const struct ng_value **ret);
enum ng_type host_json_type(const struct ng_value *value);
size_t host_json_count(const struct ng_value *value);
const struct ng_value *host_json_first(const struct ng_value *container);
const struct ng_value *host_json_next(const struct ng_value *element);
struct ng_str host_json_key(const struct ng_value *member);
struct ng_writer *host_json_writer(struct ng_call *pub);
struct ng_str host_json_result(struct ng_writer *writer);

/* ---- host_documents.c ---- */

int host_get(struct ng_call *pub, const struct ng_key *key, uint64_t revision,
             const struct ng_doc **ret_doc);
int host_query(struct ng_call *pub, const struct ng_query *query, ng_row_fn *row, void *user,
               uint64_t *ret_total);
int host_search(struct ng_call *pub, const struct ng_search *search, ng_row_fn *row, void *user,
                uint64_t *ret_total, const char **ret_engine);
int host_history(struct ng_call *pub, const struct ng_key *key, const struct ng_range *range,
                 ng_row_fn *row, void *user);
int host_history_count(struct ng_call *pub, const struct ng_key *key,
                       const struct ng_range *range, uint64_t *ret_count);
int host_changes(struct ng_call *pub, uint64_t since, uint32_t limit, ng_event_fn *event,
                 void *user);
int host_change(struct ng_call *pub, const struct ng_change *changes, size_t count);
int host_change_wait(struct ng_call *pub, const struct ng_change *changes, size_t count);
int host_change_as(const struct ng_host *host, struct ng_str agent,
                   const struct ng_change *changes, size_t count, ng_changed_fn *done,
                   void *user);
int host_file_stat(struct ng_call *pub, struct ng_str path, struct ng_file *ret_file);
int host_file_read(struct ng_call *pub, struct ng_str path, uint64_t max_bytes,
                   struct ng_file *ret_file);
int host_file_stream(struct ng_call *pub, struct ng_str path, ng_chunk_fn *chunk, void *user,
                     struct ng_file *ret_file);
int host_file_list(struct ng_call *pub, const struct ng_file_list *list, ng_entry_fn *entry,
                   void *user);
int host_file_edit(struct ng_call *pub, const struct ng_file_edit *edit);
int host_file_transfer(struct ng_call *pub, const struct ng_file_transfer *transfer);
int host_file_undo(struct ng_call *pub, const struct ng_file_undo *undo);
size_t host_file_roots(struct ng_call *pub, const struct ng_str **ret_roots);
int host_file_folder(struct ng_call *pub, struct ng_str folder);
const struct ng_journal *host_journal(struct ng_call *pub, void **ret_journal);
int host_list_add(struct ng_listing *listing, struct ng_str id, struct ng_str name,
                  struct ng_str description, const char *mime_type, uint64_t bytes,
                  int64_t modified_ms);
struct ng_str host_list_after(struct ng_listing *listing);
struct ng_str host_day(struct ng_call *pub, int64_t time_ms);
/* May the plugin of the call change a document of this collection? Else the call has failed. */
int host_may_change(struct call *call, struct ng_str collection);
/* Fails a change that a change function asks for. */
int host_no_write(struct call *call);

/* ---- host_history.c ---- */

const struct ng_collection *host_collection(struct ng_call *pub, struct ng_str name);
int host_use_collection(struct ng_call *pub, struct ng_str collection);
int host_point_seq(struct ng_call *pub, const char *name, struct ng_str text,
                   uint64_t *ret_seq);
int host_revision_at(struct ng_call *pub, const struct ng_key *key, const char *name,
                     struct ng_str text, struct ng_as_of *ret);
int host_trail(struct ng_call *pub, const struct ng_trail *trail, ng_event_fn *event,
               void *user, uint64_t *ret_next);
const struct ng_value *host_members(struct ng_call *pub, struct ng_str collection,
                                    const struct ng_value *body);
int host_restore(struct ng_call *pub, const struct ng_restore *restore);
int host_undo_changes(struct ng_call *pub, const struct ng_undo_work *work,
                      struct ng_undo_done *ret);
int host_unfinished(struct ng_call *pub, ng_unfinished_fn *undo, void *user);
int host_use_file(struct ng_call *pub, struct ng_str path, struct ng_key *ret_key,
                  struct ng_str *ret_collection);
int host_file_view(struct ng_call *pub, struct ng_str path, struct ng_str content,
                   ng_chunk_fn *text, void *user);
int host_runs(struct ng_call *pub, const struct ng_trail *trail, ng_run_fn *run, void *user);

/* ---- host_undo.c ---- */

int host_undo(struct ng_call *pub, const struct ng_undo *what);

/* ---- host_purge.c ---- */

/* Declares the collection of unfinished purges. */
int host_purge_open(struct gateway *gateway, struct call *call);
/* Completes interrupted purges. On a worker. */
int host_purge_upkeep(struct gateway *gateway, struct call *call);
int host_purge(struct ng_call *pub, const struct ng_change *change, bool *ret_pending);

#endif
