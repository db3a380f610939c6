/* SPDX-License-Identifier: MIT */
/* whoami.c - the caller's own facts: as JSON for people and programs, as text for models. */
#include "whoami.h"

#include <stdlib.h>

#include "api/base/build_info.h"
#include "core/base/array.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/listing.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/store/store.h"

/* Folders of notes that one caller is told of. */
#define WHOAMI_NOTES_MAX 10000
/* The text while it is made: one item may be longer than the whole text may be. */
#define WHOAMI_SCRATCH_MAX ((size_t)256 * 1024)
/* " and N more." */
#define WHOAMI_REST_MAX 32

struct whoami_note {
    struct ng_str name, path, space;
};

/* The lists live as long as the call, but for `notes`. */
struct whoami {
    struct ng_listing listing; /* first: takes the folders of notes */
    struct call *call;
    struct ng_caller caller; /* with its spaces */
    struct ng_str *spaces;   /* the default first */
    const struct ng_str *roots;
    struct whoami_note *notes;
    size_t space_count, root_count, note_count, note_room;
    int rc; /* of the listing; a plugin's own failure only leaves out its folders */
};

/* ---- gathering ---- */

/* The spaces of the caller and its default, as a call of a tool of the shared space has them:
 * in call->caller. */
static int whoami_take_spaces(struct whoami *me)
{
    struct call *call = me->call;
    enum ng_tool_space before = call->step_space;
    call->step_space = NG_SPACE_SHARED;
    int rc = dispatch_spaces(call, NULL);
    call->step_space = before;
    if (rc != NG_OK) {
        return rc;
    }
    me->caller = call->caller;
    me->spaces = arena_alloc(&call->arena, (me->caller.space_count + 1) * sizeof(*me->spaces));
    if (me->spaces == NULL) {
        return NG_EINTERNAL;
    }
    me->spaces[me->space_count++] = me->caller.space;
    for (size_t i = 0; i < me->caller.space_count; i++) {
        if (!str_equal(me->caller.spaces[i], me->caller.space)) {
            me->spaces[me->space_count++] = me->caller.spaces[i];
        }
    }
    return NG_OK;
}

/* A gateway that is only described has opened no roots: those that are configured. Its caller
 * is the owner, for all spaces. */
static int whoami_take_configured(struct whoami *me)
{
    const struct ng_str *texts = NULL;
    size_t count = config_list(me->call->gateway->config, "roots", &texts);
    struct ng_str *roots = arena_alloc(&me->call->arena, (count + 1) * sizeof(*roots));
    if (roots == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        struct ng_str space;
        files_split_root(texts[i], &space, &roots[i]);
    }
    me->roots = roots;
    me->root_count = count;
    return NG_OK;
}

/* A key that allows only some tools reaches the roots by a tool of a plugin that has files as
 * resources, or changes them. */
static bool whoami_reaches_files(struct call *call)
{
    const struct ng_str files = ng_str_of(FILES_EVENTS);
    bool reaches = dispatch_sees_collection(call, files);
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    for (size_t i = 0; i < count && !reaches; i++) {
        reaches = str_in_words(files, plugins[i]->desc.uses) &&
                  dispatch_sees_plugin(call, plugins[i]);
    }
    return reaches;
}

static int whoami_take_roots(struct whoami *me)
{
    struct files *files = me->call->gateway->files;
    if (!whoami_reaches_files(me->call)) {
        return NG_OK;
    }
    if (files == NULL) {
        return whoami_take_configured(me);
    }
    me->root_count = files_roots(files, me->call, &me->roots);
    return me->roots != NULL ? NG_OK : NG_EINTERNAL;
}

static int whoami_add_folder(struct ng_listing *listing, const struct listing_item *item)
{
    struct whoami *me = (struct whoami *)(void *)listing;
    struct arena *arena = &me->call->arena;
    if (!me->caller.all_spaces && !call_has_space(&me->caller, item->description)) {
        return NG_OK;
    }
    int rc = array_reserve((void **)&me->notes, &me->note_room, me->note_count + 1,
                           sizeof(*me->notes), WHOAMI_NOTES_MAX);
    if (rc != NG_OK) {
        me->rc = rc == NG_EINTERNAL ? rc : me->rc;
        return rc;
    }
    struct whoami_note *note = &me->notes[me->note_count];
    note->name = arena_copy(arena, str_or(item->name, item->id));
    note->path = arena_copy(arena, item->id);
    note->space = arena_copy(arena, item->description);
    if (note->name.data == NULL || note->path.data == NULL || note->space.data == NULL) {
        me->rc = NG_EINTERNAL;
        return NG_EINTERNAL;
    }
    me->note_count++;
    return NG_OK;
}

static int whoami_take_notes(struct whoami *me)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(me->call->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        const struct plugin *plugin = plugins[i];
        if (plugin->started && plugin->desc.notes != NULL &&
            dispatch_sees_plugin(me->call, plugin)) {
            (void)plugin->desc.notes(plugin->self, &me->call->pub, &me->listing);
        }
    }
    return me->rc;
}

/* whoami_done() in either case. */
static int whoami_gather(struct whoami *me, struct call *call)
{
    struct ng_caller caller = call->caller;
    struct result staged = call->staged;
    *me = (struct whoami){.listing = {.add = whoami_add_folder}, .call = call};
    int rc = whoami_take_spaces(me);
    if (rc == NG_OK) {
        rc = whoami_take_roots(me);
    }
    if (rc == NG_OK) {
        rc = whoami_take_notes(me);
    }
    call->caller = caller;
    call->staged = staged;
    return rc;
}

static void whoami_done(struct whoami *me)
{
    free(me->notes);
}

/* Code runs only in calls that may change something, whatever right the key has. */
static bool whoami_runs(const struct ng_caller *caller)
{
    return caller->run && caller->role != NG_ROLE_READER && caller->mode != NG_MODE_ASK;
}

/* ---- as JSON ---- */

static void whoami_write_key(struct ng_writer *writer, const struct key *key)
{
    json_member_cstring(writer, "auth", key != NULL ? "key" : "local");
    if (key == NULL) {
        return;
    }
    json_name(writer, "key");
    json_object(writer);
    json_member_cstring(writer, "id", key->id);
    int64_t expires_ms = key_expires_ms(key);
    if (expires_ms != 0) {
        char expires[RFC3339_SIZE];
        rfc3339_write(expires_ms, RFC3339_SECONDS, expires);
        json_member_cstring(writer, "expires", expires);
    }
    json_end(writer);
    if (key->tool_count > 0) {
        json_member_strings(writer, "tools", key->tools, key->tool_count);
    }
    if (key->no_tool_count > 0) {
        json_member_strings(writer, "no_tools", key->no_tools, key->no_tool_count);
    }
}

static void whoami_write_notes(struct ng_writer *writer, const struct whoami *me)
{
    json_name(writer, "notes");
    json_array(writer);
    for (size_t i = 0; i < me->note_count; i++) {
        json_object(writer);
        json_member_string(writer, "name", me->notes[i].name);
        json_member_string(writer, "path", me->notes[i].path);
        json_member_string(writer, "space", me->notes[i].space);
        json_end(writer);
    }
    json_end(writer);
}

/* The kinds that resources/list has for this caller. */
static void whoami_write_kinds(struct ng_writer *writer, struct call *call)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    json_name(writer, "kinds");
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        bool listed =
            dispatch_sees_plugin(call, plugins[i]) && dispatch_configured(call, plugins[i]);
        for (size_t j = 0; j < desc->resource_count && listed; j++) {
            const struct ng_resources *kind = &desc->resources[j];
            if (kind->kind == NULL) {
                continue;
            }
            json_object(writer);
            json_member_cstring(writer, "kind", kind->kind);
            json_member_cstring(writer, "title", text_or(kind->title, kind->kind));
            json_name(writer, "type");
            if (kind->mime_type != NULL) {
                json_cstring(writer, kind->mime_type);
            } else {
                json_null(writer); /* each has its own */
            }
            json_end(writer);
        }
    }
    json_end(writer);
}

static void whoami_write(struct ng_writer *writer, const struct whoami *me)
{
    const struct ng_caller *caller = &me->caller;
    struct gateway *gateway = me->call->gateway;
    bool is_admin = caller->role == NG_ROLE_ADMIN;
    json_object(writer);
    json_member_string(writer, "agent", caller->agent);
    json_member_cstring(writer, "role", key_role_name(caller->role));
    json_member_cstring(writer, "mode", key_mode_name(caller->mode));
    json_member_bool(writer, "run", whoami_runs(caller));
    whoami_write_key(writer, me->call->key);
    json_member_strings(writer, "spaces", me->spaces, me->space_count);
    json_member_string(writer, "default_space", caller->space);
    json_member_strings(writer, "roots", me->roots, me->root_count);
    whoami_write_notes(writer, me);
    json_member_cstring(writer, "version", is_admin ? build_version() : NOTEGATE_VERSION);
    json_member_int(writer, "seq",
                    gateway->store != NULL ? (int64_t)store_last_seq(gateway->store) : 0);
    whoami_write_kinds(writer, me->call);
    json_end(writer);
}

int whoami_print(struct call *call, struct buf *out)
{
    struct whoami me;
    struct ng_writer writer;
    int rc = whoami_gather(&me, call);
    if (rc == NG_OK) {
        json_writer_init(&writer, out);
        whoami_write(&writer, &me);
        rc = out->rc;
    }
    whoami_done(&me);
    return rc;
}

/* ---- as text ---- */

static void whoami_add_space(struct buf *out, const struct whoami *me, size_t at)
{
    (void)buf_add_str(out, me->spaces[at]);
}

/* Names and paths are quoted: others chose them, and they may hold line breaks. */
static void whoami_add_root(struct buf *out, const struct whoami *me, size_t at)
{
    (void)buf_add_json(out, me->roots[at]);
}

static void whoami_add_note(struct buf *out, const struct whoami *me, size_t at)
{
    (void)buf_add_json(out, me->notes[at].name);
    (void)buf_add_c(out, " in ");
    (void)buf_add_json(out, me->notes[at].path);
}

struct whoami_list {
    const char *title;
    void (*add)(struct buf *out, const struct whoami *me, size_t at);
    size_t count;
};

/* A line with as many items as fit before `until`. */
static void whoami_add_list(struct buf *out, const struct whoami *me,
                            const struct whoami_list *list, size_t until)
{
    size_t shown = 0;
    (void)buf_printf(out, "\n%s: ", list->title);
    while (shown < list->count) {
        size_t before = out->len;
        size_t end = shown + 1 < list->count ? WHOAMI_REST_MAX : 1;
        (void)buf_add_c(out, text_if(shown > 0, ", "));
        list->add(out, me, shown);
        if (out->rc == NG_EINTERNAL) {
            return;
        }
        if (out->len + end > until) {
            buf_cut(out, before);
            break;
        }
        shown++;
    }
    if (shown == 0) {
        (void)buf_printf(out, "%zu with long names", list->count);
    } else if (shown < list->count) {
        (void)buf_printf(out, " and %zu more", list->count - shown);
    }
    (void)buf_add_char(out, '.');
}

/* Each list has an equal share of the bytes that are left, so that none pushes out another. */
static void whoami_add_text(struct buf *out, const struct whoami *me)
{
    const struct ng_caller *caller = &me->caller;
    const struct whoami_list lists[] = {
        {"Spaces, the default first", whoami_add_space, me->space_count},
        {"Roots of files", whoami_add_root, me->root_count},
        {"Folders of notes", whoami_add_note, me->note_count},
    };
    size_t left = 0;
    (void)buf_printf(out, "\n\nYou are the agent %.*s: role %s, mode %s; you may %srun code.",
                     (int)caller->agent.len, caller->agent.data, key_role_name(caller->role),
                     key_mode_name(caller->mode), text_if(!whoami_runs(caller), "not "));
    for (size_t i = 0; i < NG_COUNT(lists); i++) {
        left += lists[i].count > 0;
    }
    for (size_t i = 0; left > 0 && out->rc == NG_OK; i++) {
        if (lists[i].count > 0) {
            size_t share = (WHOAMI_TEXT_MAX - out->len) / left;
            whoami_add_list(out, me, &lists[i], out->len + share);
            left--;
        }
    }
}

int whoami_print_text(struct call *call, struct buf *out)
{
    struct whoami me;
    struct buf text;
    buf_init(&text, WHOAMI_SCRATCH_MAX);
    int rc = whoami_gather(&me, call);
    if (rc == NG_OK) {
        whoami_add_text(&text, &me);
        rc = text.rc;
    }
    if (rc == NG_OK) {
        rc = buf_add_c(out, buf_cstr(&text));
    }
    buf_done(&text);
    whoami_done(&me);
    return rc;
}
