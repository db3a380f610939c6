/* SPDX-License-Identifier: MIT */
/* files_recover.c - crash recovery of write intents: the hash of the file tells if the save
 * took place. Then its completion is committed, else its intent is dropped. Temporary files are
 * removed in both cases. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/cluster/cluster.h"
#include "files_state.h"

#define RECOVER_PAGE 256

/* The file of an intent and the temporary names of its save. */
struct recovery {
    struct call *call;
    const struct file_record *record;
    struct file_place place;
    struct ng_str writing, complete, old;
    char now[FILES_HASH_SIZE];  /* hash of the file; "" if it does not exist */
    char temp[FILES_HASH_SIZE]; /* hash of `complete`; "" if it does not exist or must stay */
    char kept[FILES_HASH_SIZE]; /* the same of `old`: the content before a write in place */
};

static int recovery_open(struct files *files, struct call *call,
                         const struct file_record *record, struct ng_str path,
                         struct recovery *ret)
{
    ret->call = call;
    ret->record = record;
    ret->writing = files_temp_name(call, record->op, FILES_TEMP_WRITING);
    ret->complete = files_temp_name(call, record->op, FILES_TEMP_COMPLETE);
    ret->old = files_temp_name(call, record->op, FILES_TEMP_OLD);
    ret->now[0] = '\0';
    ret->temp[0] = '\0';
    ret->kept[0] = '\0';
    int rc = files_resolve_any(files, call, path, &ret->place);
    if (rc != NG_OK || ret->place.missing.len > 0 || ret->place.below_file) {
        return rc;
    }
    if (ret->writing.data == NULL || ret->complete.data == NULL || ret->old.data == NULL) {
        return call_no_memory(call);
    }
    (void)unlinkat(ret->place.dir, ret->writing.data, 0);
    rc = files_hash_at(call, ret->place.dir, ret->complete.data, ret->temp);
    if (rc == NG_OK) {
        rc = files_hash_at(call, ret->place.dir, ret->old.data, ret->kept);
    }
    if (rc == NG_OK && files_place_type(&ret->place) == NG_FILE_REGULAR) {
        rc = files_hash_at(call, ret->place.dir, ret->place.name.data, ret->now);
    }
    return rc;
}

/* True if the temporary file is a save of another program, which the exchange had just moved
 * out. Without a file before there was no exchange. */
static bool is_foreign(const struct recovery *recovery)
{
    const struct file_record *record = recovery->record;
    return recovery->temp[0] != '\0' && record->before[0] != '\0' &&
           strcmp(recovery->temp, record->before) != 0 &&
           strcmp(recovery->temp, record->after) != 0;
}

static void recovery_keep(struct recovery *recovery)
{
    log_write(NG_LOG_WARNING, "files",
              "an interrupted save of %s could not be undone; the content that another program "
              "saved is kept beside it as %s",
              recovery->place.real.data, recovery->complete.data);
    recovery->temp[0] = '\0'; /* recovery_close() must not remove it */
}

static void recovery_give_back(struct recovery *recovery)
{
    const struct file_place *place = &recovery->place;
    unsigned how = place->exists ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (renameat2(place->dir, recovery->complete.data, place->dir, place->name.data, how) !=
        0) {
        recovery_keep(recovery);
    }
}

/* The file was being written in place. If it is torn, it gets its old content back; if another
 * program has saved since, that content stays, and the old one beside it. */
static int recovery_restore(struct recovery *recovery)
{
    const struct file_record *record = recovery->record;
    bool restored = false;
    if (record->happened || recovery->now[0] == '\0' || recovery->kept[0] == '\0' ||
        strcmp(recovery->kept, record->before) != 0 ||
        strcmp(recovery->now, record->before) == 0 ||
        strcmp(recovery->now, record->after) == 0) {
        return NG_OK;
    }
    if (strcmp(recovery->temp, record->after) == 0) {
        int rc = files_restore(recovery->call, &recovery->place, recovery->old.data,
                               recovery->complete.data, &restored);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (!restored) {
        log_write(
            NG_LOG_WARNING, "files",
            "another program saved %s while it was being written; the content from before "
            "is kept beside it as %s",
            recovery->place.real.data, recovery->old.data);
        recovery->kept[0] = '\0'; /* recovery_close() must not remove it */
    }
    return NG_OK;
}

/* After a failure (rc) the temporary file stays for the next attempt. */
static void recovery_close(struct recovery *recovery, int rc)
{
    if (rc == NG_OK && recovery->place.dir >= 0 && recovery->complete.data != NULL &&
        recovery->place.roots != NULL && recovery->temp[0] != '\0') {
        (void)unlinkat(recovery->place.dir, recovery->complete.data, 0);
    }
    if (rc == NG_OK && recovery->place.dir >= 0 && recovery->place.roots != NULL &&
        recovery->kept[0] != '\0') {
        (void)unlinkat(recovery->place.dir, recovery->old.data, 0);
    }
    if (recovery->place.roots != NULL && recovery->place.dir >= 0) {
        (void)files_sync_folder(recovery->place.dir, -1);
    }
    files_place_done(&recovery->place);
}

int files_recover_place(struct files *files, struct call *call,
                        const struct file_record *record, bool *ret_done)
{
    struct recovery recovery;
    int rc = recovery_open(files, call, record, record->real, &recovery);
    if (rc == NG_OK) {
        rc = recovery_restore(&recovery);
    }
    if (rc == NG_OK) {
        *ret_done = recovery.now[0] != '\0' && strcmp(recovery.now, record->after) == 0;
        if (files_record_removes(record)) {
            /* Its content was moved out; what is there now is a later file. */
            bool out = record->before[0] != '\0' && strcmp(recovery.temp, record->before) == 0;
            *ret_done = !recovery.place.exists || out;
        } else if (record->after[0] == '\0') { /* the removal of a folder was undone */
            *ret_done = recovery.place.exists;
        }
        if (!is_foreign(&recovery)) {
            *ret_done = *ret_done || record->happened;
        } else if (*ret_done && !record->happened) {
            recovery_give_back(&recovery);
            *ret_done = false;
        } else {
            *ret_done = record->happened;
            recovery_keep(&recovery); /* the file has newer content */
        }
    }
    recovery_close(&recovery, rc);
    return rc;
}

/* True if the source path of a move still has the moved file, not a later one. */
static bool is_moved_file(const struct recovery *from)
{
    struct stat st;
    char mark[FILES_MARK_SIZE];
    if (strcmp(from->now, from->record->before) != 0 ||
        fstatat(from->place.dir, from->place.name.data, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    files_mark(&st, mark);
    return strcmp(mark, from->record->mark) == 0;
}

static int recover_move(struct files *files, struct call *call, struct file_record *record,
                        bool *ret_done)
{
    struct recovery from = {.place = {.dir = -1}};
    struct recovery to = {.place = {.dir = -1}};
    int rc = recovery_open(files, call, record, record->real, &from);
    if (rc == NG_OK) {
        rc = recovery_open(files, call, record, record->to, &to);
    }
    if (rc == NG_OK) {
        *ret_done = to.now[0] != '\0' && strcmp(to.now, record->after) == 0;
        if (is_foreign(&from) && !from.place.exists) {
            recovery_give_back(&from); /* the move was removing a newer file: restore it */
            *ret_done = false;
        } else if (is_foreign(&from)) {
            recovery_keep(&from);
        }
        if (*ret_done && is_moved_file(&from)) {
            /* Copied to another file system, but the source was not removed yet. */
            (void)unlinkat(from.place.dir, from.place.name.data, 0);
        } else {
            record->replaced = from.place.exists;
        }
    }
    recovery_close(&from, rc);
    recovery_close(&to, rc);
    return rc;
}

/* Stores the answer for a retry of the interrupted call. If another gateway, or a batch that is
 * applied only in part, has stored it already, the changes are still due: each is idempotent.
 */
static int recover_write(struct files *files, struct call *call,
                         const struct ng_change *changes, size_t count,
                         const struct ng_answer *answer)
{
    struct result before = call->staged;
    int rc = store_write_answered_wait(files->store, call, changes, count, answer);
    if (rc == NG_EKEYREUSED) {
        call->staged = before;
        rc = store_write_wait(files->store, call, changes, count);
    }
    return rc;
}

/* Replaces a message that may reveal the other path of a move between spaces. */
static void hide_other_path(struct call *call, const struct file_record *record, int rc)
{
    if (record->to.len == 0 ||
        (str_equal(record->space, record->to_space) && record->group == NULL)) {
        return;
    }
    log_write(NG_LOG_WARNING, "files", "an unfinished move is in the way: %.*s",
              (int)call->staged.message.len, call->staged.message.data);
    call_reset_result(call);
    (void)call_fail(call, rc,
                    "An unfinished move of the file is in the way and cannot be recovered just "
                    "now; the gateway's log says why. Try again in a moment.");
}

/* Commits the completion, or the removal of the intent. */
static int recover_commit(struct files *files, struct call *call, struct file_record *record,
                          bool done)
{
    struct ng_change own[FILES_CHANGES_MAX];
    struct ng_change *changes = own;
    size_t count = 0;
    int rc = NG_OK;
    if (!done) {
        count = files_intent_drop(record, changes);
        return recover_write(files, call, changes, count, NULL);
    }
    if (record->group != NULL) {
        rc = files_group_complete(files, call, record, &changes, &count);
    }
    if (rc == NG_OK) {
        rc = files_recover_versions(files, call, record);
    }
    if (rc != NG_OK) {
        return rc;
    }
    count += files_completion_changes(record, changes + count);
    return recover_write(files, call, changes, count,
                         record->has_answer ? &record->answer : NULL);
}

/* The events name the agent and the tool that made the change. They are those of another call,
 * as other threads read the names of this one. */
static int recover_as_author(struct files *files, struct call *call, struct file_record *record,
                             bool done)
{
    if (!done || record->agent.len == 0) {
        return recover_commit(files, call, record, done);
    }
    struct call *author = call_new(call->gateway);
    if (author == NULL) {
        return call_no_memory(call);
    }
    author->caller.agent = record->agent;
    author->pub.tool = str_or(record->tool, ng_str_of(""));
    author->caller.run_id = record->run;
    author->caller.key_id = record->key_id;
    author->caller.request_id = record->request;
    author->deadline_ns = call->deadline_ns;
    int rc = recover_commit(files, author, record, done);
    if (rc != NG_OK) {
        (void)call_fail(call, rc, "%.*s", (int)author->staged.message.len,
                        author->staged.message.data);
    }
    call_unref(author);
    return rc;
}

int files_recover(struct files *files, struct call *call, struct ng_str space,
                  struct ng_str json, struct ng_str text)
{
    struct file_record record;
    bool done = false;
    int rc = files_record_parse(call, json, text, &record);
    if (rc != NG_OK) {
        return rc;
    }
    record.intents = space;
    if (record.group != NULL) {
        rc = files_group_recover(files, call, &record, &done);
    } else if (record.to.len > 0) {
        rc = recover_move(files, call, &record, &done);
    } else {
        rc = files_recover_place(files, call, &record, &done);
    }
    if (rc != NG_OK) {
        hide_other_path(call, &record, rc);
        return rc;
    }
    rc = recover_as_author(files, call, &record, done);
    if (rc == NG_OK) {
        log_write(NG_LOG_INFO, "files", "recovered an unfinished save of %.*s: it had %s",
                  (int)record.real.len, record.real.data,
                  done ? "taken place" : "not taken place");
    }
    return rc;
}

/* ---- at start */

struct intent {
    struct ng_str id;
    struct intent *next;
};

struct intent_list {
    struct call *call;
    struct intent *first, **last;
    size_t count;
    bool failed;
};

static int collect(void *user, const struct ng_doc *row)
{
    struct intent_list *list = user;
    struct arena *arena = &list->call->arena;
    struct intent *intent = arena_zalloc(arena, sizeof(*intent));
    if (intent == NULL) {
        list->failed = true;
        return 1;
    }
    intent->id = arena_copy(arena, row->key.id);
    list->failed = intent->id.data == NULL;
    *list->last = intent;
    list->last = &intent->next;
    list->count++;
    return list->failed;
}

bool files_busy_elsewhere(struct files *files, struct call *call, struct ng_str real,
                          int *ret_fd)
{
    struct file_place place;
    bool busy = false;
    *ret_fd = -1;
    if (files_resolve_any(files, call, real, &place) == NG_OK &&
        files_place_type(&place) == NG_FILE_REGULAR) {
        *ret_fd = files_open_beneath(place.dir, place.name.data,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        busy = *ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    }
    files_place_done(&place);
    return busy;
}

/* With the file's lock held. *ret_busy: another gateway is saving it, and ends that itself. */
static int recover_locked(struct files *files, struct call *call, struct ng_str space,
                          struct ng_str real, bool *ret_busy)
{
    int fd = -1;
    int rc = NG_OK;
    *ret_busy = files_busy_elsewhere(files, call, real, &fd);
    if (!*ret_busy) {
        const struct ng_key key = {ng_str_of(FILES_INTENTS), space, real};
        const struct ng_doc *doc = NULL;
        /* Calls run meanwhile: the save may have been completed since the query. */
        rc = store_get(files->store, call, &key, 0, &doc);
        if (rc == NG_OK && doc->revision != 0 && !doc->deleted) {
            rc = files_recover(files, call, space, doc->json, doc->text);
        }
    }
    files_close_fd(&fd);
    return rc;
}

int files_recover_one(struct files *files, struct call *call, struct ng_str space,
                      struct ng_str real, bool *ret_busy)
{
    *ret_busy = !files_try_lock(files, real);
    if (*ret_busy) {
        return NG_OK;
    }
    int rc = recover_locked(files, call, space, real, ret_busy);
    files_unlock(files, real);
    return rc;
}

static void recover_listed(struct files *files, struct call *call, struct ng_str space,
                           const struct intent *intent)
{
    bool busy = false;
    if (!files_try_lock(files, intent->id)) {
        atomic_store(&files->unrecovered, true); /* a call is changing the file: later */
        return;
    }
    int rc = recover_locked(files, call, space, intent->id, &busy);
    if (rc == NG_EOUTSIDE) {
        /* The root was removed, or the folder of a plugin is not added yet. */
        log_write(NG_LOG_INFO, "files",
                  "an unfinished save of %.*s waits until its folder is served again",
                  (int)intent->id.len, intent->id.data);
        call_reset_result(call);
    } else if (rc != NG_OK) {
        atomic_store(&files->unrecovered, true);
        log_write(NG_LOG_WARNING, "files", "an unfinished save of %.*s stays open: %.*s",
                  (int)intent->id.len, intent->id.data, (int)call->staged.message.len,
                  call->staged.message.data);
        call_reset_result(call);
    }
    files_unlock(files, intent->id);
}

/* With shared documents each gateway has its own intents: those of another one concern its
 * disk, and may belong to saves in progress. */
struct ng_str files_intent_space(struct call *call)
{
    const struct gateway *gateway = call->gateway;
    if (gateway == NULL || gateway->cluster == NULL || !store_is_shared(gateway->store)) {
        return ng_str_of(FILES_INTENT_SPACE);
    }
    struct ng_str id = cluster_id(gateway->cluster);
    return arena_printf(&call->arena, FILES_INTENT_SPACE_OF "%.*s", (int)id.len, id.data);
}

int files_recover_all(struct files *files, struct call *call)
{
    struct intent_list list = {.call = call};
    list.last = &list.first;
    size_t before = 0;
    struct ng_str space = files_intent_space(call);
    do {
        before = list.count;
        struct ng_query query = {
            .size = sizeof(query),
            .collection = ng_str_of(FILES_INTENTS),
            .space = space,
            .offset = before,
            .limit = RECOVER_PAGE,
        };
        uint64_t total = 0;
        int rc = store_query(files->store, call, &query, collect, &list, &total);
        if (rc == NG_OK && list.failed) {
            rc = call_no_memory(call);
        }
        if (rc != NG_OK) {
            return rc;
        }
    } while (list.count - before == RECOVER_PAGE);
    for (const struct intent *intent = list.first; intent != NULL; intent = intent->next) {
        if (call->gateway != NULL) {
            cluster_look_again(call->gateway->cluster, call); /* each may take long */
        }
        recover_listed(files, call, space, intent);
    }
    return NG_OK;
}

int files_recover_rest(struct files *files, struct call *call)
{
    if (files == NULL || !atomic_load(&files->unrecovered)) {
        return NG_OK;
    }
    atomic_store(&files->unrecovered, false);
    int rc = files_recover_all(files, call);
    if (rc != NG_OK) {
        atomic_store(&files->unrecovered, true);
    }
    return rc;
}
