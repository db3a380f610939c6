/* SPDX-License-Identifier: MIT */
/*
 * notebook_undo.c - the modes that rename, delete and undo.
 *
 * A rename makes a new document with the text, and deletes the former one. The new one says in
 * its JSON where it came from (`renamed_from`: the name, and the revision whose text it has),
 * so that an undo under the new name renames back, and further undos go on in the former
 * history.
 */
#include "notebook.h"
#include "notebook_text.h"

/* The action of the document that a rename deletes. */
#define NOTEBOOK_RENAMED "renamed"

static bool notebook_lives(const struct ng_doc *doc)
{
    return doc->revision > 0 && !doc->deleted;
}

static int notebook_reply_quoted(struct ng_call *call, const char *before, struct ng_str name,
                                 const char *between, struct ng_str second)
{
    const struct ng_str pieces[] = {ng_str_of(before),  name,   ng_str_of("'"),
                                    ng_str_of(between), second, ng_str_of("'")};
    return call->host->reply_parts(call, pieces, second.data != NULL ? 6 : 3);
}

static int notebook_taken(struct ng_call *call, struct ng_str name)
{
    const struct ng_str pieces[] = {ng_str_of("Notebook '"), name,
                                    ng_str_of("' already exists")};
    int rc = notebook_fail(call, NG_ECONFLICT, pieces, NG_COUNT(pieces));
    call->host->hint(call, "Choose another `newName`, or rename or delete that one first.");
    return rc;
}

/* ---- the JSON of a notebook that undo or rename made ---- */

static struct ng_writer *notebook_counts(struct ng_call *call, const struct ng_doc *doc)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return NULL;
    }
    int64_t lines = notebook_stored_lines(call, doc);
    host->json_object(writer);
    host->json_name(writer, "lines");
    host->json_int(writer, lines > 0 ? lines : notebook_lines(doc->text));
    host->json_name(writer, "bytes");
    host->json_int(writer, (int64_t)doc->text.len);
    return writer;
}

static void notebook_put_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                             uint64_t number)
{
    call->host->json_name(writer, name);
    call->host->json_int(writer, (int64_t)number);
}

/* Stores the text of `from` with the JSON. */
static int notebook_take(struct ng_call *call, struct ng_draft *next, const struct ng_doc *from,
                         struct ng_writer *writer)
{
    struct ng_str json = {NULL, 0};
    if (writer != NULL) {
        call->host->json_end(writer);
        json = call->host->json_result(writer);
    }
    if (json.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = call->host->draft_text(next, &from->text, 1);
    return rc != NG_OK ? rc : call->host->draft_json(next, json);
}

/* ---- rename ---- */

/* In call memory: the changes may be retried after the tool has returned. */
struct notebook_rename {
    struct ng_str name;
    struct ng_str new_name;
    const struct ng_doc *from; /* of this run of the changes */
};

static int rename_from(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    struct notebook_rename *rename = user;
    if (!notebook_lives(present)) {
        return notebook_not_found(call, rename->name);
    }
    if (str_equal(rename->name, rename->new_name)) {
        return notebook_taken(call, rename->new_name);
    }
    rename->from = present;
    call->host->draft_delete(next);
    return NG_OK;
}

/* Runs behind rename_from(). */
static int rename_to(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct notebook_rename *rename = user;
    const struct ng_host *host = call->host;
    const struct ng_doc *from = rename->from;
    if (notebook_exists(present, rename->new_name)) {
        return notebook_taken(call, rename->new_name);
    }
    int64_t base = 0;
    if (host->json_integer(host->json_get(from->body, "undo_base"), &base) != NG_OK) {
        base = (int64_t)from->revision;
    }
    struct ng_writer *writer = notebook_counts(call, from);
    if (writer != NULL) {
        host->json_name(writer, "renamed_from");
        host->json_object(writer);
        host->json_name(writer, "name");
        host->json_string(writer, rename->name);
        notebook_put_int(call, writer, "revision", (uint64_t)base);
        host->json_end(writer);
    }
    int rc = notebook_take(call, next, from, writer);
    if (rc == NG_OK) {
        rc = host->revision_number(call, present->revision + 1);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return notebook_reply_quoted(call, "Renamed notebook '", rename->name, " to '",
                                 rename->new_name);
}

int notebook_rename(struct ng_call *call, struct ng_str name)
{
    struct ng_str new_name = ng_arg_text(call, "newName");
    struct notebook_rename *rename = ng_alloc(call, sizeof(*rename));
    if (!ng_has_arg(call, "newName") || new_name.len > NG_ID_MAX) {
        (void)ng_fail(call, NG_EINVAL, "Rename operation requires newName of at most %d bytes",
                      NG_ID_MAX);
        notebook_violation(
            call, "/newName", call->host->format(call, "at most %d bytes", NG_ID_MAX),
            call->host->format(call, "%s", new_name.data == NULL ? "nothing" : "more"));
        return NG_EINVAL;
    }
    if (notebook_is_default(name)) {
        return ng_fail(call, NG_EINVAL,
                       "Notebook 'default' cannot be renamed, because it always exists; create "
                       "a notebook with its text and clear it");
    }
    if (rename == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *rename = (struct notebook_rename){.name = name, .new_name = new_name};
    struct ng_change changes[] = {
        {
            .size = sizeof(changes[0]),
            .key = notebook_key(call->caller->space, name),
            .fn = rename_from,
            .user = rename,
            .action = NOTEBOOK_RENAMED,
        },
        {
            .size = sizeof(changes[0]),
            .key = notebook_key(call->caller->space, new_name),
            .fn = rename_to,
            .user = rename,
        },
    };
    notebook_expect(call, &changes[0]);
    int rc =
        call->host->change(call, changes, str_equal(name, new_name) ? 1 : NG_COUNT(changes));
    if (rc == NG_ENOTFOUND) {
        rc = notebook_missing(call, changes[0].key.space, name);
    }
    return rc;
}

/* ---- delete ---- */

static int delete_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct ng_str *name = user;
    struct ng_str none = {NULL, 0};
    if (!notebook_lives(present)) {
        return notebook_not_found(call, *name);
    }
    call->host->draft_delete(next);
    return notebook_reply_quoted(call, "Deleted notebook '", *name, "", none);
}

int notebook_delete(struct ng_call *call, struct ng_str name)
{
    if (notebook_is_default(name)) {
        return notebook_clear(call, name);
    }
    struct ng_str *user = ng_alloc(call, sizeof(*user));
    if (user == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *user = name;
    struct ng_change change = {
        .size = sizeof(change),
        .key = notebook_key(call->caller->space, name),
        .fn = delete_change,
        .user = user,
    };
    notebook_expect(call, &change);
    int rc = ng_change_one(call, &change);
    if (rc == NG_ENOTFOUND) {
        rc = notebook_missing(call, change.key.space, name);
    }
    return rc;
}

/* ---- undo ---- */

/* host->undo() returns when all is over, so this is on the stack. */
struct notebook_undo {
    struct ng_str name;
    struct ng_str former_name; /* of a rename */
    uint64_t former_base;
    const struct ng_undo_step *step;
};

static int undo_take(struct ng_call *call, const struct notebook_undo *undo,
                     struct ng_draft *next, const struct ng_doc *from, uint64_t base)
{
    struct ng_writer *writer = notebook_counts(call, from);
    if (writer != NULL) {
        notebook_put_int(call, writer, "undo_base", base);
        notebook_put_int(call, writer, "undos", undo->step->undos);
    }
    return notebook_take(call, next, from, writer);
}

/* The text from before the change, or none. */
static int undo_change(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct notebook_undo *undo = user;
    const struct ng_undo_step *step = undo->step;
    (void)present;
    if (step->former == NULL) {
        call->host->draft_delete(next);
        return NG_OK;
    }
    return undo_take(call, undo, next, step->former, step->base);
}

/* The last change renamed this notebook away. */
static int undo_renamed(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    const struct notebook_undo *undo = user;
    const struct ng_str pieces[] = {
        ng_str_of("Notebook '"), undo->name,
        ng_str_of("' was renamed. Nothing was undone; undo it under its new name")};
    (void)present;
    (void)next;
    int rc = notebook_fail(call, NG_EFAILED, pieces, NG_COUNT(pieces));
    call->host->hint(call, "Mode `list` shows the names there are.");
    return rc;
}

/* The notebook under its former name. */
static int undo_former(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct notebook_undo *undo = user;
    if (notebook_exists(present, undo->former_name)) {
        const struct ng_str pieces[] = {
            ng_str_of("Notebook '"), undo->name, ng_str_of("' was renamed from '"),
            undo->former_name,
            ng_str_of("', and another notebook has that name now. Nothing was undone; rename "
                      "that one first")};
        return notebook_fail(call, NG_ECONFLICT, pieces, NG_COUNT(pieces));
    }
    return undo_take(call, undo, next, undo->step->present, undo->former_base);
}

static int undo_plan_rename(struct ng_call *call, struct notebook_undo *undo,
                            const struct ng_value *from, struct ng_change *changes,
                            size_t *ret_count)
{
    const struct ng_host *host = call->host;
    const struct ng_doc *former = NULL;
    int64_t base = 0;
    undo->former_name = host->json_text(host->json_get(from, "name"));
    (void)host->json_integer(host->json_get(from, "revision"), &base);
    undo->former_base = (uint64_t)base;
    changes[0].action = NG_ACTION_UNDONE;
    changes[1] = (struct ng_change){
        .size = sizeof(changes[1]),
        .key = notebook_key(call->caller->space, undo->former_name),
        .fn = undo_former,
        .user = undo,
    };
    *ret_count = 2;
    int rc = host->get(call, &changes[1].key, 0, &former);
    if (rc != NG_OK) {
        return rc;
    }
    changes[1].expected_revision = former->revision;
    rc = host->revision_number(call, former->revision + 1);
    return rc != NG_OK
               ? rc
               : notebook_reply_quoted(call, "Undid the last change of notebook '", undo->name,
                                       ": renamed back to '", undo->former_name);
}

static int undo_plan(struct ng_call *call, const struct ng_undo_step *step,
                     struct ng_change *changes, size_t *ret_count, void *user)
{
    struct notebook_undo *undo = user;
    const struct ng_host *host = call->host;
    struct ng_str none = {NULL, 0};
    const struct ng_value *from = host->json_get(step->last->body, "renamed_from");
    undo->step = step;
    changes[0].fn = undo_change;
    changes[0].user = undo;
    if (from != NULL) {
        return undo_plan_rename(call, undo, from, changes, ret_count);
    }
    if (step->last->deleted && str_is(step->last->action, NOTEBOOK_RENAMED)) {
        changes[0].fn = undo_renamed;
        return NG_OK;
    }
    bool gone = step->former == NULL;
    if (gone) {
        changes[0].action = NG_ACTION_UNDONE;
    }
    int rc = host->revision_number(call, gone ? 0 : step->present->revision + 1);
    if (rc != NG_OK) {
        return rc;
    }
    const char *did = "Undid the last change of notebook '";
    if (gone) {
        did = "Undid the creation of notebook '";
    } else if (step->last->deleted) {
        did = "Undid the deletion of notebook '";
    }
    return notebook_reply_quoted(call, did, undo->name, "", none);
}

int notebook_undo(struct ng_call *call, struct ng_str name)
{
    const struct ng_str pieces[] = {ng_str_of("notebook '"), name, ng_str_of("'")};
    struct notebook_undo user = {.name = name};
    struct ng_change expect = {.size = sizeof(expect)};
    notebook_expect(call, &expect);
    struct ng_undo undo = {
        .size = sizeof(undo),
        .key = notebook_key(call->caller->space, name),
        .name = notebook_join(call, pieces, NG_COUNT(pieces)),
        .instead = ng_str_of("read it and write the text you want"),
        .fn = undo_plan,
        .user = &user,
        .has_expected = expect.has_expected,
        .expected_revision = expect.expected_revision,
    };
    if (undo.name.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = call->host->undo(call, &undo);
    if (rc == NG_ENOTFOUND && notebook_is_default(name)) {
        return ng_fail(call, NG_EFAILED, "No edit history found for notebook 'default'.");
    }
    return rc == NG_ENOTFOUND ? notebook_missing(call, undo.key.space, name) : rc;
}
