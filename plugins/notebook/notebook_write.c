/* SPDX-License-Identifier: MIT */
/* notebook_write.c - the modes that write: each is one function from the present text to the
 * next.
 */
#include <string.h>

#include "core/base/text/text_near.h"
#include "notebook.h"
#include "notebook_text.h"

enum notebook_kind {
    NOTEBOOK_CREATE,
    NOTEBOOK_REPLACE,
    NOTEBOOK_INSERT,
    NOTEBOOK_APPEND,
    NOTEBOOK_CLEAR
};

/* One write, in call memory: the change may be retried after the tool has returned. */
struct notebook_write {
    enum notebook_kind kind;
    struct ng_str name;
    struct ng_str old_text;
    struct ng_str new_text;
    bool by_text; /* INSERT: look for `line_text` */
    struct ng_str line_text;
    int64_t line;
    uint64_t max_size;
};

/* `before`, `inserted` and `after` replace `removed` bytes at `at`. */
struct notebook_splice {
    uint64_t at;
    uint64_t removed;
    struct ng_str before, inserted, after;
    int64_t lines; /* of the present text */
};

static int notebook_reply_named(struct ng_call *call, struct ng_str before, struct ng_str name,
                                const char *after)
{
    const struct ng_str pieces[] = {before, name, ng_str_of(after)};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

/* "What 'text' not found in notebook 'name'", with the nearest place as a hint. */
static int notebook_fail_absent(struct ng_call *call, const struct notebook_write *write,
                                const char *what, struct ng_str wanted, struct ng_str text)
{
    char note[TEXT_NEAR_NOTE_SIZE];
    const struct ng_str pieces[] = {ng_str_of(what), wanted,
                                    ng_str_of("' not found in notebook '"), write->name,
                                    ng_str_of("'")};
    int rc = notebook_fail(call, NG_EFAILED, pieces, NG_COUNT(pieces));
    if (text_near(text, wanted, write->by_text ? "insertLine" : "oldStr", note)) {
        call->host->hint(call, "%s", note);
    }
    return rc;
}

static int notebook_replace(struct ng_call *call, const struct notebook_write *write,
                            struct ng_str text, struct notebook_splice *splice)
{
    if (!notebook_find(text, write->old_text, &splice->at)) {
        return notebook_fail_absent(call, write, "String '", write->old_text, text);
    }
    splice->removed = write->old_text.len;
    splice->inserted = write->new_text;
    return NG_OK;
}

/* The line before the insertion, from its text or number. */
static int notebook_insert_place(struct ng_call *call, const struct notebook_write *write,
                                 struct ng_str text, int64_t lines, int64_t *ret_after)
{
    int64_t number = write->line;
    if (write->by_text) {
        int64_t found = notebook_find_line(text, write->line_text);
        if (found > 0) {
            *ret_after = found;
            return NG_OK;
        }
        /* Models often send numbers as strings. */
        if (!notebook_integer(write->line_text, &number)) {
            return notebook_fail_absent(call, write, "Text '", write->line_text, text);
        }
    }
    if (notebook_place(lines, number, ret_after)) {
        return NG_OK;
    }
    (void)ng_fail(call, NG_EINVAL, "Line number out of range");
    notebook_violation(call, "/insertLine",
                       call->host->format(call, "an integer from %lld to %lld",
                                          -(long long)lines - 1, (long long)lines + 1),
                       call->host->format(call, "%lld", (long long)number));
    return NG_EINVAL;
}

static int notebook_insert(struct ng_call *call, const struct notebook_write *write,
                           struct ng_str text, struct notebook_splice *splice,
                           int64_t *ret_line)
{
    int64_t after = 0;
    int rc = notebook_insert_place(call, write, text, splice->lines, &after);
    if (rc != NG_OK) {
        return rc;
    }
    splice->inserted = write->new_text;
    if (after == 0) {
        splice->after = ng_str_of("\n");
    } else {
        splice->at = notebook_line_end(text, after);
        splice->before = ng_str_of("\n");
    }
    *ret_line = after + 1;
    return NG_OK;
}

/* Makes the splice of this write, and the reply. */
static int notebook_plan(struct ng_call *call, const struct notebook_write *write,
                         struct ng_str text, struct notebook_splice *splice)
{
    int64_t line = 0;
    int rc = NG_OK;
    const char *content = write->new_text.len > 0 ? "' with specified content" : "' (empty)";
    switch (write->kind) {
    case NOTEBOOK_CREATE:
        splice->removed = text.len;
        splice->inserted = write->new_text;
        return notebook_reply_named(call, ng_str_of("Created notebook '"), write->name,
                                    content);
    case NOTEBOOK_REPLACE:
        rc = notebook_replace(call, write, text, splice);
        if (rc != NG_OK) {
            return rc;
        }
        return notebook_reply_named(call, ng_str_of("Replaced text in notebook '"), write->name,
                                    "'");
    case NOTEBOOK_INSERT:
        rc = notebook_insert(call, write, text, splice, &line);
        if (rc != NG_OK) {
            return rc;
        }
        return notebook_reply_named(
            call,
            call->host->format(call, "Inserted text at line %lld in notebook '",
                               (long long)line),
            write->name, "'");
    case NOTEBOOK_APPEND:
        splice->at = text.len;
        splice->inserted = write->new_text;
        if (write->new_text.len == 0) {
            return notebook_reply_named(call, ng_str_of("No changes made to notebook '"),
                                        write->name, "'");
        }
        if (text.len > 0 && text.data[text.len - 1] != '\n') {
            splice->before = ng_str_of("\n");
        }
        return notebook_reply_named(call, ng_str_of("Appended text to notebook '"), write->name,
                                    "'");
    case NOTEBOOK_CLEAR:
        splice->removed = text.len;
        return notebook_reply_named(call, ng_str_of("Cleared notebook '"), write->name, "'");
    }
    return ng_fail(call, NG_EINTERNAL, "unknown kind of write %d", (int)write->kind);
}

static int notebook_too_large(struct ng_call *call, struct ng_str name, uint64_t bytes,
                              uint64_t most)
{
    const struct ng_str pieces[] = {
        ng_str_of("Notebook '"), name,
        call->host->format(call, "' content (%llu bytes) would exceed maximum of %llu bytes",
                           (unsigned long long)bytes, (unsigned long long)most)};
    return notebook_fail(call, NG_ETOOLARGE, pieces, NG_COUNT(pieces));
}

/* Stores the splice and the counts for lists. */
static int notebook_store(struct ng_call *call, struct ng_draft *next, struct ng_str text,
                          const struct notebook_splice *splice, uint64_t bytes)
{
    const struct ng_host *host = call->host;
    struct ng_str inserted = splice->inserted;
    if (splice->before.len + splice->after.len > 0) {
        size_t len = splice->before.len + splice->inserted.len + splice->after.len;
        char *whole = ng_alloc(call, len);
        if (whole == NULL) {
            return ng_fail(call, NG_EINTERNAL, "out of memory for %zu bytes", len);
        }
        /* Only one of `before` and `after` is set, to one '\n'. */
        whole[0] = '\n';
        whole[len - 1] = '\n';
        if (splice->inserted.len > 0) {
            memcpy(whole + splice->before.len, splice->inserted.data, splice->inserted.len);
        }
        inserted = str_make(whole, len);
    }
    struct ng_str cut = {text.data, (size_t)splice->removed};
    if (cut.data != NULL) {
        cut.data += splice->at;
    }
    int64_t lines = splice->lines - notebook_lines(cut) + notebook_lines(inserted);
    struct ng_str json = host->format(call, "{\"lines\":%lld,\"bytes\":%llu}", (long long)lines,
                                      (unsigned long long)bytes);
    if (json.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = host->draft_splice(next, splice->at, splice->removed, inserted);
    return rc != NG_OK ? rc : host->draft_json(next, json);
}

static int notebook_change(struct ng_call *call, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct notebook_write *write = user;
    bool exists = present->revision > 0 && !present->deleted;
    struct ng_str text = {NULL, 0};
    if (exists) {
        text = present->text;
    }
    if (write->kind != NOTEBOOK_CREATE && !notebook_exists(present, write->name)) {
        return notebook_not_found(call, write->name);
    }
    struct notebook_splice splice = {.lines = notebook_stored_lines(call, present)};
    if (splice.lines <= 0) {
        splice.lines = notebook_lines(text);
    }
    int rc = notebook_plan(call, write, text, &splice);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t bytes =
        text.len - splice.removed + splice.before.len + splice.inserted.len + splice.after.len;
    if (write->kind != NOTEBOOK_CLEAR && bytes > write->max_size) {
        return notebook_too_large(call, write->name, bytes, write->max_size);
    }
    if (write->kind == NOTEBOOK_APPEND && write->new_text.len == 0) {
        return call->host->revision_number(call, exists ? present->revision : 0);
    }
    return notebook_store(call, next, text, &splice, bytes);
}

int notebook_take_content(struct ng_call *call, const struct ng_content *content,
                          struct ng_draft *next, uint64_t max_size)
{
    const struct ng_host *host = call->host;
    struct ng_str text = content->text;
    if (content->gone) {
        host->draft_delete(next);
        return NG_OK;
    }
    if (text.len > max_size) {
        return notebook_too_large(call, content->key.id, text.len, max_size);
    }
    struct ng_str json = host->format(call, "{\"lines\":%lld,\"bytes\":%zu}",
                                      (long long)notebook_lines(text), text.len);
    if (json.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = host->draft_text(next, &text, 1);
    return rc != NG_OK ? rc : host->draft_json(next, json);
}

void notebook_expect(struct ng_call *call, struct ng_change *change)
{
    if (ng_has_arg(call, "expectedRevision")) {
        change->has_expected = true;
        change->expected_revision = (uint64_t)ng_arg_int(call, "expectedRevision", 0);
    }
}

static int notebook_submit(struct ng_call *call, struct notebook_write *write)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = notebook_key(call->caller->space, write->name),
        .fn = notebook_change,
        .user = write,
    };
    notebook_expect(call, &change);
    int rc = ng_change_one(call, &change);
    /* The hint needs a query, which a change function must not make. */
    if (rc == NG_ENOTFOUND) {
        rc = notebook_missing(call, change.key.space, write->name);
    }
    return rc;
}

/* The kind of write of the arguments of mode `write`. */
static int notebook_write_kind(struct ng_call *call, struct notebook_write *write)
{
    bool has_old = ng_has_arg(call, "oldStr");
    const struct ng_value *line = ng_arg(call, "insertLine");
    if (!ng_has_arg(call, "newStr") || (has_old && line != NULL)) {
        (void)ng_fail(call, NG_EINVAL,
                      "Write operation requires newStr, optionally with oldStr for replacement "
                      "or insertLine for insertion; oldStr and insertLine cannot be combined");
        if (!ng_has_arg(call, "newStr")) {
            notebook_violation(call, "/newStr", ng_str_of("a string"), ng_str_of("nothing"));
        } else {
            notebook_violation(call, "/insertLine", ng_str_of("nothing, where oldStr is given"),
                               ng_str_of("both"));
        }
        return NG_EINVAL;
    }
    write->new_text = ng_arg_text(call, "newStr");
    write->kind = NOTEBOOK_APPEND;
    if (has_old) {
        write->kind = NOTEBOOK_REPLACE;
        write->old_text = ng_arg_text(call, "oldStr");
    } else if (line != NULL) {
        write->kind = NOTEBOOK_INSERT;
        write->by_text = call->host->json_type(line) == NG_TYPE_STRING;
        if (write->by_text) {
            write->line_text = call->host->json_text(line);
        } else {
            write->line = ng_arg_int(call, "insertLine", 0);
        }
    }
    return NG_OK;
}

/* Copies the write to call memory and submits it. */
static int notebook_begin(struct ng_call *call, const struct notebook_write *from)
{
    struct notebook_write *write = ng_alloc(call, sizeof(*write));
    if (write == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *write = *from;
    return notebook_submit(call, write);
}

int notebook_create(struct ng_call *call, struct ng_str name, uint64_t max_size)
{
    const struct notebook_write write = {
        .kind = NOTEBOOK_CREATE,
        .name = name,
        .new_text = ng_arg_text(call, "newStr"),
        .max_size = max_size,
    };
    return notebook_begin(call, &write);
}

int notebook_edit(struct ng_call *call, struct ng_str name, uint64_t max_size)
{
    struct notebook_write write = {.name = name, .max_size = max_size};
    int rc = notebook_write_kind(call, &write);
    return rc != NG_OK ? rc : notebook_begin(call, &write);
}

int notebook_clear(struct ng_call *call, struct ng_str name)
{
    const struct notebook_write write = {.kind = NOTEBOOK_CLEAR, .name = name};
    return notebook_begin(call, &write);
}
