/* SPDX-License-Identifier: MIT */
/* notebook - named texts that agents create, read, write, list and clear; shared by naming a
 * space. One notebook is one document, every write is one change of it. */
#include <stdlib.h>
#include <string.h>

#include "notebook_text.h"

#define NOTEBOOK_COLLECTION "notebooks"
#define NOTEBOOK_DEFAULT "default"
#define NOTEBOOK_MAX_SIZE_DEFAULT "1MiB"
/* Largest value of notebook.max_size: what a call's memory and a reply can carry. */
#define NOTEBOOK_MAX_SIZE_MOST ((int64_t)64 * 1024 * 1024)
/* Notebooks read from the store at a time when listing. */
#define NOTEBOOK_PAGE 256
/* Notebooks looked at for a hint. */
#define NOTEBOOK_HINT_LOOKED 1000

struct notebook {
    uint64_t max_size; /* bytes of one notebook */
};

static int notebook_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct notebook *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    self->max_size = (uint64_t)call->host->conf_int(conf, "max_size");
    *ret_self = self;
    return NG_OK;
}

static void notebook_stop(void *self)
{
    free(self);
}

/* ---- names, failures ---- */

static struct ng_str notebook_literal(const char *text)
{
    return ng_str_of(text);
}

static bool notebook_same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool notebook_is_default(struct ng_str name)
{
    return notebook_same(name, notebook_literal(NOTEBOOK_DEFAULT));
}

static struct ng_key notebook_key(struct ng_str space, struct ng_str name)
{
    struct ng_key key = {notebook_literal(NOTEBOOK_COLLECTION), space, name};
    return key;
}

/* The name the call is about. An absent one is the default notebook; "" is a name. */
static struct ng_str notebook_name(struct ng_call *call)
{
    return ng_has_arg(call, "name") ? ng_arg_text(call, "name")
                                    : notebook_literal(NOTEBOOK_DEFAULT);
}

/* There is such a notebook: it was written, or it is the default one, which always is. */
static bool notebook_exists(const struct ng_doc *doc, struct ng_str name)
{
    return (doc->revision > 0 && !doc->deleted) || notebook_is_default(name);
}

/* A failure whose sentence is pieces: names and texts may hold NUL, which a format would cut.
 */
static int notebook_fail(struct ng_call *call, int code, const struct ng_str *pieces,
                         size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += pieces[i].len;
    }
    char *text = ng_alloc(call, len + 1);
    if (text == NULL) {
        return ng_fail(call, code, "%s", "out of memory for the whole error message");
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) {
            memcpy(text + at, pieces[i].data, pieces[i].len);
        }
        at += pieces[i].len;
    }
    text[len] = '\0';
    struct ng_str message = {text, len};
    return call->host->fail_text(call, code, message);
}

/* Adds one violation to the failure's details, in the form of the schema's own. */
static void notebook_violation(struct ng_call *call, const char *path, struct ng_str expected,
                               struct ng_str got)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->details(call);
    if (writer == NULL) {
        return;
    }
    host->json_object(writer);
    host->json_name(writer, "violations");
    host->json_array(writer);
    host->json_object(writer);
    host->json_name(writer, "path");
    host->json_string(writer, ng_str_of(path));
    host->json_name(writer, "expected");
    host->json_string(writer, expected);
    host->json_name(writer, "got");
    host->json_string(writer, got);
    host->json_end(writer);
    host->json_end(writer);
    host->json_end(writer);
}

static int notebook_not_found(struct ng_call *call, struct ng_str name)
{
    const struct ng_str pieces[] = {notebook_literal("Notebook '"), name,
                                    notebook_literal("' not found")};
    return notebook_fail(call, NG_ENOTFOUND, pieces, NG_COUNT(pieces));
}

/* The nearest name, for the hint of a notebook that is not there. */
struct notebook_near {
    struct ng_call *call;
    struct ng_str wanted;
    struct ng_str best;
    size_t distance;
};

static void notebook_try_near(struct notebook_near *near, struct ng_str name)
{
    size_t distance = notebook_distance(near->wanted, name);
    if (distance >= near->distance) {
        return;
    }
    char *copy = ng_alloc(near->call, name.len + 1);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, name.data == NULL ? "" : name.data, name.len);
    near->best.data = copy;
    near->best.len = name.len;
    near->distance = distance;
}

static int notebook_near_row(void *user, const struct ng_doc *row)
{
    notebook_try_near(user, row->key.id);
    return 0;
}

/* Fails with the sentence and, where a name is near, a hint. */
static int notebook_missing(struct ng_call *call, struct ng_str space, struct ng_str name)
{
    /* A third of the name may differ. */
    struct notebook_near near = {
        .call = call,
        .wanted = name,
        .distance = name.len / 3 + 2,
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = notebook_literal(NOTEBOOK_COLLECTION),
        .space = space,
        .limit = NOTEBOOK_HINT_LOOKED,
    };
    int rc = call->host->query(call, &query, notebook_near_row, &near, NULL);
    if (rc == NG_EWOULDBLOCK) {
        return rc;
    }
    /* No hint is no reason for another failure than the one the caller asked for. */
    notebook_try_near(&near, notebook_literal(NOTEBOOK_DEFAULT));
    (void)notebook_not_found(call, name);
    if (near.best.data != NULL) {
        call->host->hint(call, "The nearest existing notebook is '%.*s'.", (int)near.best.len,
                         near.best.data);
    } else {
        call->host->hint(call,
                         "Mode `list` shows the notebooks there are, `create` makes one.");
    }
    return NG_ENOTFOUND;
}

/* ---- reading ---- */

static int notebook_reply_range(struct ng_call *call, struct ng_str name, struct ng_str text)
{
    const struct ng_host *host = call->host;
    const struct ng_value *range = ng_arg(call, "readRange");
    const struct ng_value *start = host->json_first(range);
    int64_t a = 0;
    int64_t b = 0;
    if (host->json_integer(start, &a) != NG_OK ||
        host->json_integer(host->json_next(start), &b) != NG_OK) {
        return ng_fail(call, NG_EINVAL,
                       "`readRange` must be a list of two integers: `[start, end]`");
    }
    int64_t lines = notebook_lines(text);
    int64_t first = 0;
    int64_t last = 0;
    if (!notebook_range(lines, a, b, &first, &last)) {
        const struct ng_str pieces[] = {
            host->format(call, "No lines found in range [%lld, %lld]. Notebook '", (long long)a,
                         (long long)b),
            name, host->format(call, "' has %lld line(s).", (long long)lines)};
        return host->reply_parts(call, pieces, NG_COUNT(pieces));
    }
    size_t len = notebook_number(text, first, last, NULL);
    char *out = ng_alloc(call, len + 1);
    if (out == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for %zu bytes of lines", len);
    }
    (void)notebook_number(text, first, last, out);
    struct ng_str numbered = {out, len};
    return ng_reply(call, numbered);
}

static int notebook_read(struct ng_call *call, struct ng_str name)
{
    const struct ng_host *host = call->host;
    struct ng_key key = notebook_key(call->caller->space, name);
    const struct ng_doc *doc = NULL;
    int rc = host->get(call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (!notebook_exists(doc, name)) {
        return notebook_missing(call, key.space, name);
    }
    rc = host->revision_number(call, doc->deleted ? 0 : doc->revision);
    if (rc != NG_OK) {
        return rc;
    }
    if (ng_has_arg(call, "readRange")) {
        return notebook_reply_range(call, name, doc->text);
    }
    if (doc->text.len > 0) {
        return ng_reply(call, doc->text);
    }
    const struct ng_str pieces[] = {notebook_literal("Notebook '"), name,
                                    notebook_literal("' is empty")};
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

/* ---- listing ---- */

/* What a list shows of one notebook, in call memory. */
struct notebook_item {
    struct ng_str name;
    uint64_t bytes;
    int64_t lines;
    int64_t updated_ms;
    struct notebook_item *next;
};

/* The notebooks of a space: the default one first, the others as they were created. */
struct notebook_list {
    struct ng_call *call;
    struct notebook_item first; /* the default notebook */
    struct notebook_item *last;
    size_t count;
    uint64_t last_seq;
    uint32_t rows; /* of the present page */
    int rc;
};

static int64_t notebook_stored_lines(struct ng_call *call, const struct ng_doc *row)
{
    const struct ng_value *body = row->body;
    int64_t lines = 0;
    if (body == NULL && call->host->json_parse(call, row->json, &body) != NG_OK) {
        return 0;
    }
    (void)call->host->json_integer(call->host->json_get(body, "lines"), &lines);
    return lines;
}

static int notebook_list_row(void *user, const struct ng_doc *row)
{
    struct notebook_list *list = user;
    struct notebook_item *item = &list->first;
    list->rows++;
    list->last_seq = row->created_seq;
    if (!notebook_is_default(row->key.id)) {
        item = ng_alloc(list->call, sizeof(*item));
        char *name = ng_alloc(list->call, row->key.id.len + 1);
        if (item == NULL || name == NULL) {
            list->rc = NG_EINTERNAL;
            return 1;
        }
        memset(item, 0, sizeof(*item));
        memcpy(name, row->key.id.data == NULL ? "" : row->key.id.data, row->key.id.len);
        item->name.data = name;
        item->name.len = row->key.id.len;
        list->last->next = item;
        list->last = item;
        list->count++;
    }
    item->bytes = row->text_size;
    item->lines = notebook_stored_lines(list->call, row);
    item->updated_ms = row->updated_ms;
    return 0;
}

static int notebook_collect(struct ng_call *call, struct ng_str space,
                            struct notebook_list *list)
{
    *list = (struct notebook_list){.call = call, .count = 1};
    list->first.name = notebook_literal(NOTEBOOK_DEFAULT);
    list->last = &list->first;
    struct ng_term after = {
        .field = notebook_literal("created_seq"),
        .op = NG_TERM_GT,
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = notebook_literal(NOTEBOOK_COLLECTION),
        .space = space,
        .terms = &after,
        .term_count = 1,
        .sort = after.field,
        .limit = NOTEBOOK_PAGE,
    };
    /* Nothing deletes notebooks and new ones sort last, so pages neither skip nor repeat. */
    do {
        list->rows = 0;
        after.number = (double)list->last_seq;
        int rc = call->host->query(call, &query, notebook_list_row, list, NULL);
        if (rc != NG_OK) {
            return rc;
        }
        if (list->rc != NG_OK) {
            return ng_fail(call, list->rc, "out of memory for the list of notebooks");
        }
        if (call->host->cancelled(call)) {
            return ng_fail(call, NG_ECANCELLED, "the call was cancelled while listing");
        }
    } while (list->rows == NOTEBOOK_PAGE);
    return NG_OK;
}

static int notebook_list(struct ng_call *call)
{
    struct notebook_list list;
    int rc = notebook_collect(call, call->caller->space, &list);
    if (rc != NG_OK) {
        return rc;
    }
    if (list.count > SIZE_MAX / 3 / sizeof(struct ng_str) - 1) {
        return ng_fail(call, NG_ETOOLARGE, "%zu notebooks are too many to list", list.count);
    }
    struct ng_str *pieces = ng_alloc(call, (list.count * 3 + 1) * sizeof(*pieces));
    if (pieces == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for a list of %zu notebooks",
                       list.count);
    }
    size_t count = 0;
    pieces[count++] = notebook_literal("Available notebooks:");
    for (const struct notebook_item *item = &list.first; item != NULL; item = item->next) {
        pieces[count++] = notebook_literal("\n- ");
        pieces[count++] = item->name;
        pieces[count++] =
            item->bytes == 0 ? notebook_literal(": Empty")
                             : call->host->format(call, ": %lld lines", (long long)item->lines);
    }
    return call->host->reply_parts(call, pieces, count);
}

/* ---- writing ---- */

enum notebook_edit {
    NOTEBOOK_CREATE,
    NOTEBOOK_REPLACE,
    NOTEBOOK_INSERT,
    NOTEBOOK_APPEND,
    NOTEBOOK_CLEAR
};

/* One write, in call memory: the change may run again after the tool returned. */
struct notebook_write {
    enum notebook_edit edit;
    struct ng_str name;
    struct ng_str old_text;
    struct ng_str new_text;
    bool by_text; /* INSERT: look for `line_text` */
    struct ng_str line_text;
    int64_t line;
    uint64_t max_size;
};

/* `removed` bytes at `at` give way to `inserted` pieces. */
struct notebook_splice {
    uint64_t at;
    uint64_t removed;
    struct ng_str before, inserted, after;
};

static int notebook_reply_named(struct ng_call *call, struct ng_str before, struct ng_str name,
                                const char *after)
{
    const struct ng_str pieces[] = {before, name, ng_str_of(after)};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

static int notebook_replace(struct ng_call *call, const struct notebook_write *write,
                            struct ng_str text, struct notebook_splice *splice)
{
    if (!notebook_find(text, write->old_text, &splice->at)) {
        const struct ng_str pieces[] = {notebook_literal("String '"), write->old_text,
                                        notebook_literal("' not found in notebook '"),
                                        write->name, notebook_literal("'")};
        return notebook_fail(call, NG_EFAILED, pieces, NG_COUNT(pieces));
    }
    splice->removed = write->old_text.len;
    splice->inserted = write->new_text;
    return NG_OK;
}

/* After which line the insertion goes, from its text or number. */
static int notebook_insert_place(struct ng_call *call, const struct notebook_write *write,
                                 struct ng_str text, int64_t *ret_after)
{
    int64_t number = write->line;
    if (write->by_text) {
        int64_t found = notebook_find_line(text, write->line_text);
        if (found > 0) {
            *ret_after = found;
            return NG_OK;
        }
        /* Models send numbers as strings most of the time. */
        if (!notebook_integer(write->line_text, &number)) {
            const struct ng_str pieces[] = {notebook_literal("Text '"), write->line_text,
                                            notebook_literal("' not found in notebook '"),
                                            write->name, notebook_literal("'")};
            return notebook_fail(call, NG_EFAILED, pieces, NG_COUNT(pieces));
        }
    }
    int64_t lines = notebook_lines(text);
    if (notebook_place(lines, number, ret_after)) {
        return NG_OK;
    }
    (void)ng_fail(call, NG_EINVAL, "Line number out of range");
    notebook_violation(call, "/insertLine",
                       call->host->format(call, "an integer from %lld to %lld",
                                          (long long)-(lines + 1), (long long)(lines + 1)),
                       call->host->format(call, "%lld", (long long)number));
    return NG_EINVAL;
}

static int notebook_insert(struct ng_call *call, const struct notebook_write *write,
                           struct ng_str text, struct notebook_splice *splice,
                           int64_t *ret_line)
{
    int64_t after = 0;
    int rc = notebook_insert_place(call, write, text, &after);
    if (rc != NG_OK) {
        return rc;
    }
    splice->inserted = write->new_text;
    if (after == 0) {
        splice->after = notebook_literal("\n");
    } else {
        splice->at = notebook_line_end(text, after);
        splice->before = notebook_literal("\n");
    }
    *ret_line = after + 1;
    return NG_OK;
}

/* The splice of this write on `text`, and its reply. */
static int notebook_plan(struct ng_call *call, const struct notebook_write *write,
                         struct ng_str text, struct notebook_splice *splice)
{
    int64_t line = 0;
    int rc = NG_OK;
    switch (write->edit) {
    case NOTEBOOK_CREATE:
        splice->removed = text.len;
        splice->inserted = write->new_text;
        return notebook_reply_named(call, notebook_literal("Created notebook '"), write->name,
                                    write->new_text.len > 0 ? "' with specified content"
                                                            : "' (empty)");
    case NOTEBOOK_REPLACE:
        rc = notebook_replace(call, write, text, splice);
        return rc != NG_OK
                   ? rc
                   : notebook_reply_named(call, notebook_literal("Replaced text in notebook '"),
                                          write->name, "'");
    case NOTEBOOK_INSERT:
        rc = notebook_insert(call, write, text, splice, &line);
        return rc != NG_OK
                   ? rc
                   : notebook_reply_named(
                         call,
                         call->host->format(call, "Inserted text at line %lld in notebook '",
                                            (long long)line),
                         write->name, "'");
    case NOTEBOOK_APPEND:
        splice->at = text.len;
        splice->inserted = write->new_text;
        if (write->new_text.len == 0) {
            return notebook_reply_named(call, notebook_literal("No changes made to notebook '"),
                                        write->name, "'");
        }
        if (text.len > 0 && text.data[text.len - 1] != '\n') {
            splice->before = notebook_literal("\n");
        }
        return notebook_reply_named(call, notebook_literal("Appended text to notebook '"),
                                    write->name, "'");
    case NOTEBOOK_CLEAR:
        splice->removed = text.len;
        return notebook_reply_named(call, notebook_literal("Cleared notebook '"), write->name,
                                    "'");
    }
    return ng_fail(call, NG_EINTERNAL, "unknown kind of write %d", (int)write->edit);
}

static int notebook_too_large(struct ng_call *call, const struct notebook_write *write,
                              uint64_t bytes)
{
    const struct ng_str pieces[] = {
        notebook_literal("Notebook '"), write->name,
        call->host->format(call, "' content (%llu bytes) would exceed maximum of %llu bytes",
                           (unsigned long long)bytes, (unsigned long long)write->max_size)};
    return notebook_fail(call, NG_ETOOLARGE, pieces, NG_COUNT(pieces));
}

/* Stores the splice and the counts that lists show. */
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
        /* One of the two is set, and it is one '\n'. */
        whole[0] = '\n';
        whole[len - 1] = '\n';
        if (splice->inserted.len > 0) {
            memcpy(whole + splice->before.len, splice->inserted.data, splice->inserted.len);
        }
        inserted.data = whole;
        inserted.len = len;
    }
    struct ng_str cut = {text.data == NULL ? NULL : text.data + splice->at,
                         (size_t)splice->removed};
    int64_t lines = notebook_lines(text) - notebook_lines(cut) + notebook_lines(inserted);
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
    bool there = present->revision > 0 && !present->deleted;
    struct ng_str text = {NULL, 0};
    if (there) {
        text = present->text;
    }
    if (write->edit != NOTEBOOK_CREATE && !notebook_exists(present, write->name)) {
        return notebook_not_found(call, write->name);
    }
    struct notebook_splice splice = {0};
    int rc = notebook_plan(call, write, text, &splice);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t bytes =
        text.len - splice.removed + splice.before.len + splice.inserted.len + splice.after.len;
    if (write->edit != NOTEBOOK_CLEAR && bytes > write->max_size) {
        return notebook_too_large(call, write, bytes);
    }
    if (write->edit == NOTEBOOK_APPEND && write->new_text.len == 0) {
        return call->host->revision_number(call, there ? present->revision : 0);
    }
    return notebook_store(call, next, text, &splice, bytes);
}

static int notebook_submit(struct ng_call *call, struct notebook_write *write)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = notebook_key(call->caller->space, write->name),
        .fn = notebook_change,
        .user = write,
    };
    if (ng_has_arg(call, "expectedRevision")) {
        change.has_expected = true;
        change.expected_revision = (uint64_t)ng_arg_int(call, "expectedRevision", 0);
    }
    int rc = ng_change_one(call, &change);
    /* The hint needs a query, which a change function must not make. */
    return rc == NG_ENOTFOUND ? notebook_missing(call, change.key.space, write->name) : rc;
}

/* Which write the arguments of mode `write` ask for. */
static int notebook_write_edit(struct ng_call *call, struct notebook_write *write)
{
    bool has_old = ng_has_arg(call, "oldStr");
    const struct ng_value *line = ng_arg(call, "insertLine");
    if (!ng_has_arg(call, "newStr") || (has_old && line != NULL)) {
        (void)ng_fail(call, NG_EINVAL,
                      "Write operation requires newStr, optionally with oldStr for replacement "
                      "or insertLine for insertion; oldStr and insertLine cannot be combined");
        if (!ng_has_arg(call, "newStr")) {
            notebook_violation(call, "/newStr", notebook_literal("a string"),
                               notebook_literal("nothing"));
        } else {
            notebook_violation(call, "/insertLine",
                               notebook_literal("nothing, where oldStr is given"),
                               notebook_literal("both"));
        }
        return NG_EINVAL;
    }
    write->new_text = ng_arg_text(call, "newStr");
    write->edit = NOTEBOOK_APPEND;
    if (has_old) {
        write->edit = NOTEBOOK_REPLACE;
        write->old_text = ng_arg_text(call, "oldStr");
    } else if (line != NULL) {
        write->edit = NOTEBOOK_INSERT;
        write->by_text = call->host->json_type(line) == NG_TYPE_STRING;
        if (write->by_text) {
            write->line_text = call->host->json_text(line);
        } else {
            write->line = ng_arg_int(call, "insertLine", 0);
        }
    }
    return NG_OK;
}

static int notebook_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args; /* they come parsed */
    const struct notebook *notebook = self;
    struct ng_str mode = ng_arg_text(call, "mode");
    struct ng_str name = notebook_name(call);
    if (notebook_same(mode, notebook_literal("list"))) {
        return notebook_list(call);
    }
    if (name.len > NG_ID_MAX) {
        return ng_fail(call, NG_EINVAL, "`name` is %zu bytes long, it may have at most %d",
                       name.len, NG_ID_MAX);
    }
    if (notebook_same(mode, notebook_literal("read"))) {
        return notebook_read(call, name);
    }
    struct notebook_write *write = ng_alloc(call, sizeof(*write));
    if (write == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    *write = (struct notebook_write){.name = name, .max_size = notebook->max_size};
    if (notebook_same(mode, notebook_literal("create"))) {
        write->edit = NOTEBOOK_CREATE;
        write->new_text = ng_arg_text(call, "newStr");
    } else if (notebook_same(mode, notebook_literal("clear"))) {
        write->edit = NOTEBOOK_CLEAR;
    } else {
        int rc = notebook_write_edit(call, write);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return notebook_submit(call, write);
}

/* ---- notebooks as resources ---- */

static int notebook_resource_list(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_listing *listing)
{
    (void)self;
    struct notebook_list list;
    int rc = notebook_collect(call, space, &list);
    for (const struct notebook_item *item = &list.first; rc == NG_OK && item != NULL;
         item = item->next) {
        struct ng_str none = {NULL, 0};
        rc = call->host->list_add(listing, item->name, item->name, none, "text/plain",
                                  item->bytes, item->updated_ms);
    }
    return rc;
}

static int notebook_resource_read(void *self, struct ng_call *call, struct ng_str space,
                                  struct ng_str id, uint64_t revision)
{
    (void)self;
    struct ng_key key = notebook_key(space, id);
    const struct ng_doc *doc = NULL;
    int rc = call->host->get(call, &key, revision, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (!notebook_exists(doc, id)) {
        return notebook_missing(call, space, id);
    }
    rc = call->host->revision_number(call, doc->deleted ? 0 : doc->revision);
    struct ng_str text = {"", 0};
    return rc != NG_OK ? rc : ng_reply(call, doc->text.len > 0 ? doc->text : text);
}

/* ---- what the plugin declares ---- */

/* No tuple for readRange and no oneOf: model vendors refuse them. */
static const char notebook_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"mode\"],"
    "\"properties\":{"
    "\"mode\":{\"type\":\"string\","
    "\"enum\":[\"create\",\"list\",\"read\",\"write\",\"clear\"],"
    "\"description\":\"What to do: `create` makes a notebook (or overwrites one), `list` shows "
    "all, `read` returns the text, `write` replaces, inserts or appends text, `clear` empties "
    "it.\"},"
    "\"name\":{\"type\":\"string\","
    "\"description\":\"Name of the notebook. Without it: `default`, which always exists.\"},"
    "\"newStr\":{\"type\":\"string\","
    "\"description\":\"`create`: the first content. `write`: the text to put in; alone it is "
    "appended.\"},"
    "\"readRange\":{\"type\":\"array\",\"items\":{\"type\":\"integer\","
    "\"minimum\":-9007199254740992,\"maximum\":9007199254740992},"
    "\"minItems\":2,\"maxItems\":2,"
    "\"description\":\"`read`: first and last line to return, with line numbers. Lines count "
    "from 1, -1 is the last line.\"},"
    "\"oldStr\":{\"type\":\"string\","
    "\"description\":\"`write`: the text to replace by newStr. Its first occurrence is "
    "replaced. Not together with insertLine.\"},"
    "\"insertLine\":{\"type\":[\"string\",\"integer\"],"
    "\"minimum\":-9007199254740992,\"maximum\":9007199254740992,"
    "\"description\":\"`write`: insert newStr after this line. A number counts from 1 (0: at "
    "the start, -1: after the last line, -2: before the last line); a text: after the first "
    "line that contains it.\"},"
    "\"expectedRevision\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992,"
    "\"description\":\"Write only if the notebook is at this revision (0: does not exist "
    "yet), else fail with CONFLICT. A read tells the revision.\"}}}";

static const struct ng_tool notebook_tools[] = {
    {
        .name = "notebook",
        .title = "Notebook",
        .summary =
            "Keeps named text notebooks that survive the conversation and can be shared by "
            "several agents. Create, list, read, write and clear them; a write replaces text, "
            "inserts lines or appends.",
        .params = notebook_params,
        .run = notebook_run,
        .effect = NG_EFFECT_WRITES,
        .space = NG_SPACE_OWN,
        .flags = NG_TOOL_MEMORY | NG_TOOL_DESTRUCTIVE,
        .read_argument = "mode",
        .read_values = "read list",
    },
};

static const struct ng_option notebook_options[] = {
    {
        .name = "max_size",
        .type = NG_OPTION_SIZE,
        .fallback = NOTEBOOK_MAX_SIZE_DEFAULT,
        .min = 1,
        .max = NOTEBOOK_MAX_SIZE_MOST,
        .help = "Largest text of one notebook.",
    },
};

static const struct ng_collection notebook_collections[] = {
    {
        .name = NOTEBOOK_COLLECTION,
        .field_size = sizeof(struct ng_field),
    },
};

static const struct ng_resources notebook_resources[] = {
    {
        .kind = "notebook",
        .title = "Notebooks",
        .summary = "The text of one notebook.",
        .mime_type = "text/plain",
        .collection = NOTEBOOK_COLLECTION,
        .list = notebook_resource_list,
        .read = notebook_resource_read,
    },
};

static const struct ng_plugin notebook_plugin = {
    .name = "notebook",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = notebook_tools,
    .tool_count = NG_COUNT(notebook_tools),
    .start = notebook_start,
    .stop = notebook_stop,
    .options = notebook_options,
    .option_count = NG_COUNT(notebook_options),
    .collections = notebook_collections,
    .collection_count = NG_COUNT(notebook_collections),
    .resources = notebook_resources,
    .resource_count = NG_COUNT(notebook_resources),
};

NG_EXPORT_PLUGIN(notebook_plugin);
