/* SPDX-License-Identifier: MIT */
/* resources.c - the notes of a space's notebooks as resources, and their search. */
#include "resources.h"

#include <stdlib.h>
#include <string.h>

#include "index/index.h"
#include "index/index_wait.h"
#include "note/note.h"
#include "note/revision.h"
#include "notebook/notebook.h"
#include "search/search.h"
#include "text/codes.h"

#define MIME_TYPE "text/markdown"

struct shelf {
    struct ng_call *call;
    struct notes_notebook **items; /* of the space */
    size_t count;
};

static int open_shelf(struct shelf *shelf, void *self, struct ng_call *call,
                      struct ng_str space)
{
    size_t all = 0;
    *shelf = (struct shelf){.call = call};
    int rc = notes_notebook_list(self, call, &shelf->items, &all);
    for (size_t i = 0; i < all && rc == NG_OK; i++) {
        if (str_equal(shelf->items[i]->space, space) && !shelf->items[i]->unusable) {
            shelf->items[shelf->count++] = shelf->items[i];
        }
    }
    return rc;
}

/* The first notebook that holds a path: in nested notebooks each note is listed once. */
static size_t holder(const struct shelf *shelf, struct ng_str path)
{
    size_t at = 0;
    while (at < shelf->count && notes_path_below(path, shelf->items[at]->path).data == NULL) {
        at++;
    }
    return at;
}

static int add_row(const struct shelf *shelf, size_t at, sqlite3_stmt *row,
                   struct ng_listing *listing, bool *ret_full)
{
    const struct notes_notebook *notebook = shelf->items[at];
    struct buf id;
    struct ng_str path = notes_column_text(row, 0);
    struct ng_str file = {sqlite3_column_blob(row, 4), (size_t)sqlite3_column_bytes(row, 4)};
    struct ng_str title = notes_column_text(row, 1);
    /* The file name alone is not unique: many folders have an index.md. */
    bool own = !str_equal(title, notes_note_title(&(struct notes_note){.words = 0}, path));
    buf_init(&id, 65536);
    buf_add_str(&id, notebook->path);
    buf_add_char(&id, '/');
    buf_add_str(&id, file.len > 0 && utf8_valid(file) ? file : path);
    int rc = notes_memory(shelf->call, id.rc == NG_OK);
    if (rc == NG_OK && holder(shelf, notes_buf_str(&id)) == at) {
        *ret_full = shelf->call->host->list_add(
                        listing, notes_buf_str(&id), title.len > 0 && own ? title : path,
                        notebook->name, MIME_TYPE, (uint64_t)sqlite3_column_int64(row, 2),
                        sqlite3_column_int64(row, 3)) != NG_OK;
    }
    buf_done(&id);
    return rc;
}

/* *ret_full: the page is full. after: relative path of the entry before the first one of the
 * page. */
static int list_one(const struct shelf *shelf, size_t at, struct ng_str after,
                    struct ng_listing *listing, bool *ret_full)
{
    struct notes_notebook *notebook = shelf->items[at];
    struct ng_call *call = shelf->call;
    sqlite3_stmt *row = NULL;
    sqlite3 *db = NULL;
    int rc = notes_notebook_open(notebook, call);
    if (rc == NG_OK) {
        rc = notes_index_begin(notebook->index, call, &db);
    }
    if (rc == NG_OK && sqlite3_prepare_v2(db,
                                          "SELECT path, title, size, modified, file FROM notes"
                                          " WHERE path > ?1 ORDER BY path",
                                          -1, &row, NULL) != SQLITE_OK) {
        rc = notes_index_fail(notebook->index, call, db);
    }
    if (rc == NG_OK) {
        (void)sqlite3_bind_text64(row, 1, after.len > 0 ? after.data : "", after.len,
                                  SQLITE_STATIC, SQLITE_UTF8);
        int step = SQLITE_ROW;
        while (rc == NG_OK && !*ret_full && (step = sqlite3_step(row)) == SQLITE_ROW) {
            rc = add_row(shelf, at, row, listing, ret_full);
        }
        if (step != SQLITE_ROW && step != SQLITE_DONE) {
            rc = notes_index_fail(notebook->index, call, db);
        }
    }
    (void)sqlite3_finalize(row);
    notes_index_end(notebook->index, db);
    notes_notebook_done(notebook);
    /* the notebook was removed meanwhile */
    if (rc != NOTES_ENOTEBOOK) {
        return rc;
    }
    return NG_OK;
}

struct request {
    struct opennotes *self;
    struct ng_str space, id;
    struct ng_listing *listing;
};

static int list_all(void *user, struct ng_call *call)
{
    const struct request *request = user;
    struct shelf shelf;
    struct arena arena;
    struct ng_str after = call->host->list_after(request->listing);
    bool full = false;
    int rc = open_shelf(&shelf, request->self, call, request->space);
    size_t first = 0;
    if (rc == NG_OK && after.data != NULL) {
        first = holder(&shelf, after);
    }
    arena_init(&arena, 0);
    for (size_t i = first < shelf.count ? first : 0; i < shelf.count && rc == NG_OK && !full;
         i++) {
        struct ng_str from = {NULL, 0};
        if (after.data != NULL && i == first) {
            from = notes_nfc(&arena, notes_path_below(after, shelf.items[i]->path));
        }
        rc = list_one(&shelf, i, from, request->listing, &full);
    }
    arena_done(&arena);
    return rc;
}

int notes_resource_list(void *user, struct ng_call *call, struct ng_str space,
                        struct ng_listing *listing)
{
    struct opennotes *self = user;
    struct request all = {.self = self, .space = space, .listing = listing};
    return notes_wait_once(notes_notebooks_indexes(self->notebooks), call, list_all, &all);
}

static int reply_note(struct ng_call *call, struct ng_str bytes)
{
    char revision[NOTES_REVISION_SIZE];
    struct ng_str empty = {"", 0};
    bool text =
        utf8_valid(bytes) && (bytes.len == 0 || memchr(bytes.data, '\0', bytes.len) == NULL);
    if (notes_revision(bytes, -1, revision) != NG_OK) {
        return notes_fail_memory(call);
    }
    int rc = call->host->revision_text(call, ng_str_of(revision));
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->reply_resource(call, empty, MIME_TYPE, bytes.len > 0 ? bytes : empty,
                                      text);
}

static int read_found(const struct notes_notebook *notebook, struct ng_call *call,
                      struct ng_str id)
{
    struct notes_location at;
    struct ng_str bytes = {NULL, 0};
    int rc =
        notes_index_locate(notebook->index, call, notes_path_below(id, notebook->path), &at);
    if (rc == NG_OK) {
        rc = notes_index_read(notebook->index, call, at.file, &bytes);
    }
    if (rc == NG_OK) {
        rc = reply_note(call, bytes);
    }
    free((void *)(uintptr_t)bytes.data);
    return rc;
}

static int read_one(void *user, struct ng_call *call)
{
    const struct request *request = user;
    struct shelf shelf;
    int rc = open_shelf(&shelf, request->self, call, request->space);
    size_t at = 0;
    if (rc == NG_OK) {
        at = holder(&shelf, request->id);
    }
    if (rc == NG_OK && at == shelf.count) {
        rc = ng_fail(call, NOTES_ENOTE, "There is no such note in this space.");
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = notes_notebook_open(shelf.items[at], call);
    if (rc == NG_OK) {
        rc = read_found(shelf.items[at], call, request->id);
    }
    notes_notebook_done(shelf.items[at]);
    return rc;
}

int notes_resource_read(void *user, struct ng_call *call, struct ng_str space, struct ng_str id,
                        uint64_t revision)
{
    struct opennotes *self = user;
    struct request *request = ng_alloc(call, sizeof(*request));
    if (revision > 0) {
        return ng_fail(call, NG_EINVAL,
                       "Notes have no numbered revisions; leave ?revision out.");
    }
    if (request == NULL) {
        return notes_fail_memory(call);
    }
    *request = (struct request){.self = self, .space = space, .id = id};
    return notes_wait_run(notes_notebooks_indexes(self->notebooks), call, read_one, request);
}

/* ---- searches ---- */

/* A hit of one notebook, in call memory. */
struct found_note {
    struct ng_hit hit;
    struct found_note *next;
};

struct finding {
    struct shelf shelf;
    size_t at; /* the present notebook */
    struct found_note **firsts, **last;
};

static struct ng_str keep(struct ng_call *call, struct ng_str text)
{
    return call->host->format(call, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

/* The id is that of the list. */
static int keep_note(void *user, const struct notes_found *found)
{
    struct finding *finding = user;
    struct ng_call *call = finding->shelf.call;
    const struct notes_notebook *notebook = finding->shelf.items[finding->at];
    struct ng_str path =
        found->file.len > 0 && utf8_valid(found->file) ? found->file : found->path;
    struct ng_str id = call->host->format(call, "%.*s/%.*s", (int)notebook->path.len,
                                          notebook->path.data, (int)path.len, path.data);
    struct found_note *note = ng_alloc(call, sizeof(*note));
    if (id.data == NULL || note == NULL) {
        return notes_fail_memory(call);
    }
    if (holder(&finding->shelf, id) != finding->at) {
        return NG_OK;
    }
    struct ng_str title = found->title;
    if (title.len == 0) {
        title = notes_note_title(&(struct notes_note){.words = 0}, found->path);
    }
    *note = (struct found_note){
        .hit =
            {
                .size = sizeof(note->hit),
                .id = id,
                .title = keep(call, title),
                .excerpt = keep(call, found->excerpt),
                .updated_ms = found->modified_ms,
                .line = (uint64_t)found->line,
                .exact = found->exact,
            },
    };
    *finding->last = note;
    finding->last = &note->next;
    return NG_OK;
}

static int find_one(struct finding *finding, struct ng_find *find)
{
    struct notes_notebook *notebook = finding->shelf.items[finding->at];
    struct ng_call *call = finding->shelf.call;
    const struct notes_find wanted = {
        .text = find->text, .limit = find->limit, .fn = keep_note, .user = finding};
    struct arena arena;
    uint64_t total = 0;
    arena_init(&arena, 0);
    int rc = notes_notebook_open(notebook, call);
    if (rc == NG_OK) {
        rc = notes_search_find(notebook, call, &arena, &wanted, &total);
    }
    arena_done(&arena);
    notes_notebook_done(notebook);
    find->total += total;
    return rc == NOTES_ENOTEBOOK ? NG_OK : rc; /* it was removed meanwhile */
}

static void pass_found(const struct finding *finding, struct ng_find *find)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < finding->shelf.count; i++) {
            const struct found_note *note = finding->firsts[i];
            if (note == NULL) {
                continue;
            }
            if (find->hit(find->user, &note->hit) != 0) {
                return;
            }
            finding->firsts[i] = note->next;
            more = true;
        }
    }
}

struct find_request {
    struct opennotes *self;
    struct ng_str space;
    struct ng_find *find;
};

static int find_all(void *user, struct ng_call *call)
{
    const struct find_request *request = user;
    struct finding finding = {.at = 0};
    int rc = open_shelf(&finding.shelf, request->self, call, request->space);
    request->find->total = 0;
    finding.firsts = ng_alloc(call, (finding.shelf.count + 1) * sizeof(*finding.firsts));
    if (rc == NG_OK) {
        rc = notes_memory(call, finding.firsts != NULL);
    }
    for (; rc == NG_OK && finding.at < finding.shelf.count; finding.at++) {
        finding.firsts[finding.at] = NULL;
        finding.last = &finding.firsts[finding.at];
        rc = find_one(&finding, request->find);
    }
    if (rc == NG_OK) {
        pass_found(&finding, request->find);
    }
    return rc;
}

int notes_resource_find(void *user, struct ng_call *call, struct ng_str space,
                        struct ng_find *find)
{
    struct opennotes *self = user;
    struct find_request request = {.self = self, .space = space, .find = find};
    /* A longer text is in no note. */
    if (find->text.len > NOTES_QUERY_MAX) {
        return NG_OK;
    }
    return notes_wait_once(notes_notebooks_indexes(self->notebooks), call, find_all, &request);
}
