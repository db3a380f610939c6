/* SPDX-License-Identifier: MIT */
/* notebook_read.c - reads and lists notebooks, for the tool and as resources. */
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/text/lines_part.h"
#include "core/base/utf8.h"
#include "notebook.h"
#include "notebook_text.h"

/* Notebooks of one query. */
#define NOTEBOOK_PAGE 256
/* Names of one completion; clients get at most a hundred. */
#define NOTEBOOK_COMPLETE_MAX 200
#define NOTEBOOK_MIME_TYPE "text/plain"

/* The text, then a line that says which part it is. */
static int notebook_reply_part(struct ng_call *call, struct ng_str text,
                               const struct lines_part *part)
{
    char note[LINES_PART_NOTE_MAX];
    lines_part_note(note, "readRange", part);
    const struct ng_str pieces[] = {text, ng_str_of("\n"), ng_str_of(note)};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

/* The lines with their numbers, as many as fit. */
static int notebook_reply_lines(struct ng_call *call, struct ng_str text, int64_t first,
                                int64_t last, int64_t total)
{
    size_t room = call->host->answer_room(call);
    size_t bytes = 0;
    int64_t fits = notebook_fitting(text, first, last, room, &bytes);
    struct lines_part part = {(size_t)first, (size_t)last, (size_t)total, (size_t)fits, 0};
    bool is_whole = fits == last - first + 1;
    if (!is_whole) {
        room -= size_min(room, LINES_PART_NOTE_MAX);
        fits = notebook_fitting(text, first, last, room, &bytes);
        part.lines = (size_t)fits;
    }
    if (fits == 0) { /* the beginning of the first line */
        size_t start = notebook_line_start(text, first);
        text = utf8_cut(text, start + room - size_min(room, NOTEBOOK_LABEL_MAX));
        part.bytes = text.len - start;
        bytes = room;
        fits = 1;
    }
    char *out = ng_alloc(call, bytes + 1);
    if (out == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for %zu bytes of lines", bytes);
    }
    struct ng_str numbered = {out, notebook_number(text, first, first + fits - 1, out)};
    if (is_whole) {
        return ng_reply(call, numbered);
    }
    return notebook_reply_part(call, numbered, &part);
}

static int notebook_reply_range(struct ng_call *call, struct ng_str name,
                                const struct ng_doc *doc)
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
    struct ng_str text = doc->text;
    int64_t lines = notebook_stored_lines(call, doc);
    if (lines <= 0) {
        lines = notebook_lines(text);
    }
    int64_t first = 0;
    int64_t last = 0;
    if (!notebook_range(lines, a, b, &first, &last)) {
        const struct ng_str pieces[] = {
            host->format(call, "No lines found in range [%lld, %lld]. Notebook '", (long long)a,
                         (long long)b),
            name, host->format(call, "' has %lld line(s).", (long long)lines)};
        return host->reply_parts(call, pieces, NG_COUNT(pieces));
    }
    return notebook_reply_lines(call, text, first, last, lines);
}

/* The beginning of a text that is over the limit of an answer. */
static int notebook_reply_beginning(struct ng_call *call, const struct ng_doc *doc, size_t room)
{
    int64_t lines = notebook_stored_lines(call, doc);
    if (lines <= 0) {
        lines = notebook_lines(doc->text);
    }
    struct ng_str text = utf8_cut(doc->text, room - size_min(room, LINES_PART_NOTE_MAX));
    struct lines_part part = {1, (size_t)lines, (size_t)lines, 0, text.len};
    const char *end = text.len > 0 ? memrchr(text.data, '\n', text.len) : NULL;
    if (end != NULL) {
        text.len = (size_t)(end - text.data);
        part.lines = (size_t)notebook_lines(text);
    }
    return notebook_reply_part(call, text, &part);
}

int notebook_read(struct ng_call *call, struct ng_str name)
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
        return notebook_reply_range(call, name, doc);
    }
    size_t room = host->answer_room(call);
    if (doc->text.len > room) {
        return notebook_reply_beginning(call, doc, room);
    }
    if (doc->text.len > 0) {
        return ng_reply(call, doc->text);
    }
    const struct ng_str pieces[] = {ng_str_of("Notebook '"), name, ng_str_of("' is empty")};
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

/* ---- listing ---- */

/* One notebook of a list, in call memory. */
struct notebook_item {
    struct ng_str name;
    uint64_t bytes;
    int64_t lines;
    int64_t updated_ms;
    struct notebook_item *next;
};

/* The notebooks of a space: the default one first, the others in the order of creation. */
struct notebook_list {
    struct ng_call *call;
    struct notebook_item first; /* the default notebook */
    struct notebook_item *last;
    size_t count;
    uint64_t last_seq;
    uint32_t rows; /* of the present page */
    int rc;
};

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
        if (row->key.id.len > 0) {
            memcpy(name, row->key.id.data, row->key.id.len);
        }
        item->name = str_make(name, row->key.id.len);
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
    list->first.name = ng_str_of(NOTEBOOK_DEFAULT);
    list->last = &list->first;
    struct ng_term after = {
        .field = ng_str_of("created_seq"),
        .op = NG_TERM_GT,
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = space,
        .terms = &after,
        .term_count = 1,
        .sort = after.field,
        .limit = NOTEBOOK_PAGE,
    };
    /* New ones come last, also those that were deleted before: pages neither skip nor repeat.
     */
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

int notebook_list(struct ng_call *call)
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
    pieces[count++] = ng_str_of("Available notebooks:");
    for (const struct notebook_item *item = &list.first; item != NULL; item = item->next) {
        pieces[count++] = ng_str_of("\n- ");
        pieces[count++] = item->name;
        if (item->bytes == 0) {
            pieces[count++] = ng_str_of(": Empty");
        } else {
            pieces[count++] = call->host->format(call, ": %lld lines", (long long)item->lines);
        }
    }
    return call->host->reply_parts(call, pieces, count);
}

/* ---- notebooks as resources ---- */

/* A page of resources. */
struct notebook_page {
    const struct ng_host *host;
    struct ng_listing *listing;
    uint64_t last_seq;
    uint32_t rows; /* of the present query */
    bool full;
};

static int notebook_page_row(void *user, const struct ng_doc *row)
{
    struct notebook_page *page = user;
    struct ng_str none = {NULL, 0};
    page->rows++;
    page->last_seq = row->created_seq;
    if (!notebook_is_default(row->key.id)) { /* listed first */
        page->full =
            page->host->list_add(page->listing, row->key.id, row->key.id, none,
                                 NOTEBOOK_MIME_TYPE, row->text_size, row->updated_ms) != NG_OK;
    }
    return page->full;
}

static int notebook_list_first(struct ng_call *call, struct ng_str space,
                               struct notebook_page *page)
{
    struct ng_str name = ng_str_of(NOTEBOOK_DEFAULT);
    struct ng_str none = {NULL, 0};
    struct ng_key key = notebook_key(space, name);
    const struct ng_doc *doc = NULL;
    int rc = call->host->get(call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    size_t bytes = doc->deleted ? 0 : doc->text.len;
    int64_t updated_ms = doc->revision > 0 ? doc->updated_ms : 0;
    page->full = call->host->list_add(page->listing, name, name, none, NOTEBOOK_MIME_TYPE,
                                      bytes, updated_ms) != NG_OK;
    return NG_OK;
}

/* The default one first, the others in the order of creation, so that new ones come last. */
int notebook_resource_list(void *self, struct ng_call *call, struct ng_str space,
                           struct ng_listing *listing)
{
    struct notebook_page page = {.host = call->host, .listing = listing};
    struct ng_str after = call->host->list_after(listing);
    struct ng_term later = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = space,
        .terms = &later,
        .term_count = 1,
        .sort = later.field,
        .limit = NOTEBOOK_PAGE,
    };
    int rc = NG_OK;
    (void)self;
    if (after.data == NULL) {
        rc = notebook_list_first(call, space, &page);
    } else if (!notebook_is_default(after)) {
        struct ng_key key = notebook_key(space, after);
        const struct ng_doc *doc = NULL;
        rc = call->host->get(call, &key, 0, &doc);
        page.full = rc != NG_OK || doc->revision == 0; /* no valid position: an empty page */
        if (!page.full) {
            page.last_seq = doc->created_seq;
        }
    }
    do {
        page.rows = 0;
        later.number = (double)page.last_seq;
        if (rc == NG_OK && !page.full) {
            rc = call->host->query(call, &query, notebook_page_row, &page, NULL);
        }
    } while (rc == NG_OK && page.rows == NOTEBOOK_PAGE && !page.full);
    return rc;
}

/* Names with the prefix. The core has checked access to the space. */
int notebook_resource_complete(void *self, struct ng_call *call, struct ng_str space,
                               const char *variable, struct ng_str prefix,
                               struct ng_listing *listing)
{
    struct notebook_page page = {.host = call->host, .listing = listing};
    struct ng_str first = ng_str_of(NOTEBOOK_DEFAULT);
    struct ng_str none = {NULL, 0};
    struct ng_term begins = {.field = ng_str_of("id"), .op = NG_TERM_PREFIX, .value = prefix};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = space,
        .terms = &begins,
        .term_count = prefix.len > 0,
        .sort = begins.field,
        .limit = NOTEBOOK_COMPLETE_MAX,
    };
    (void)self;
    if (strcmp(variable, "id") != 0) {
        return NG_OK;
    }
    if (prefix.len <= first.len && str_equal(prefix, str_make(first.data, prefix.len))) {
        (void)call->host->list_add(listing, first, first, none, NULL, 0, 0);
    }
    return call->host->query(call, &query, notebook_page_row, &page, NULL);
}

int notebook_resource_read(void *self, struct ng_call *call, struct ng_str space,
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
    if (rc == NG_OK) {
        rc = ng_reply(call, doc->text.len > 0 ? doc->text : ng_str_of(""));
    }
    return rc;
}
