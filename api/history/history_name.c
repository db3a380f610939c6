/* SPDX-License-Identifier: MIT */
/* history_name.c - documents and points as words of a command line name them. */
#include "history_name.h"

#include "api/protocol/mcp_uri.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/history/point.h"

#define NAME_COLLECTION "notebooks"
/* The kind of resource whose collection has another name. */
#define NAME_KIND "notebook"
/* Kinds of resources that are files: the id is the path, behind which a cell has # and its id.
 */
#define NAME_FILE_KINDS "file note"
#define NAME_CELL_KIND "cell"
#define NAME_RANGE ".."

bool history_is_point(struct ng_str text)
{
    struct point point;
    return point_parse(text, clock_unix_ms(), &point);
}

/* ---- ranges ---- */

bool history_range_parse(struct ng_str text, struct history_range *ret)
{
    size_t dots = str_find(text, ng_str_of(NAME_RANGE), 0);
    *ret = (struct history_range){.from = text};
    if (dots == SIZE_MAX) {
        return history_is_point(text);
    }
    size_t behind = dots + sizeof(NAME_RANGE) - 1;
    ret->from = dots > 0 ? str_make(text.data, dots) : STR_NONE;
    ret->to = behind < text.len ? str_make(text.data + behind, text.len - behind) : STR_NONE;
    return (ret->from.len > 0 || ret->to.len > 0) &&
           (ret->from.len == 0 || history_is_point(ret->from)) &&
           (ret->to.len == 0 || history_is_point(ret->to));
}

static bool lines_number(struct ng_str text, uint64_t *ret)
{
    return str_number(text, INT32_MAX, ret) && *ret > 0;
}

bool history_lines_parse(struct ng_str text, uint64_t *ret_first, uint64_t *ret_last)
{
    const char *comma = text.len > 0 ? memchr(text.data, ',', text.len) : NULL;
    struct ng_str first = text;
    struct ng_str last = STR_NONE;
    *ret_first = 1;
    *ret_last = 0;
    if (comma != NULL) {
        first.len = (size_t)(comma - text.data);
        last = str_make(comma + 1, text.len - first.len - 1);
    }
    return (first.len > 0 || last.len > 0) &&
           (first.len == 0 || lines_number(first, ret_first)) &&
           (last.len == 0 || lines_number(last, ret_last)) &&
           (*ret_last == 0 || *ret_last >= *ret_first);
}

/* ---- documents ---- */

/* Takes the point behind the last @ off the word. No point has an @ in it. */
static void name_take_point(struct ng_str *word, enum history_points points,
                            struct history_name *ret)
{
    struct history_range range;
    const char *at = memrchr(word->data, '@', word->len);
    if (at == NULL || points == HISTORY_POINT_NONE) {
        return;
    }
    size_t len = (size_t)(at - word->data);
    struct ng_str point = str_make(at + 1, word->len - len - 1);
    bool fits = points == HISTORY_POINT_ONE ? history_is_point(point)
                                            : history_range_parse(point, &range);
    if (fits) {
        ret->point = point;
        word->len = len;
    } else if (memchr(point.data, '/', point.len) == NULL) {
        ret->tail = point;
    }
}

/* A cell's history is that of its notebook. */
static int name_of_file_uri(const struct mcp_uri *uri, struct history_name *ret,
                            const char **ret_why)
{
    ret->path = uri->id;
    if (str_is(uri->kind, NAME_CELL_KIND)) {
        const char *hash = memrchr(uri->id.data, '#', uri->id.len);
        ret->path.len = hash != NULL ? (size_t)(hash - uri->id.data) : 0;
    }
    if (ret->path.len == 0 || ret->path.data[0] != '/') {
        *ret_why = "the id of a file is its absolute path, that of a cell the path, #, and the "
                   "id of the cell";
        return NG_EINVAL;
    }
    return NG_OK;
}

static int name_of_uri(struct arena *arena, struct ng_str word, struct history_name *ret,
                       const char **ret_why)
{
    struct mcp_uri uri;
    int rc = mcp_uri_parse(arena, word, &uri, ret_why);
    if (rc != NG_OK) {
        return rc;
    }
    if (uri.revision != 0) {
        *ret_why = "a revision of the history is named with @, as in T@7";
        return NG_EINVAL;
    }
    if (str_in_words(uri.kind, NAME_FILE_KINDS " " NAME_CELL_KIND)) {
        return name_of_file_uri(&uri, ret, ret_why);
    }
    ret->space = uri.space;
    ret->collection = str_is(uri.kind, NAME_KIND) ? ng_str_of(NAME_COLLECTION) : uri.kind;
    ret->id = uri.id;
    return NG_OK;
}

/* Up to the next slash, which is taken too. False: there is none. */
static bool name_take_part(struct ng_str *rest, struct ng_str *ret)
{
    const char *slash = rest->len > 0 ? memchr(rest->data, '/', rest->len) : NULL;
    if (slash == NULL) {
        return false;
    }
    *ret = str_make(rest->data, (size_t)(slash - rest->data));
    *rest = str_make(slash + 1, rest->len - ret->len - 1);
    return true;
}

static int name_of_path(struct ng_str word, struct history_name *ret, const char **ret_why)
{
    struct ng_str rest = word;
    if (!name_take_part(&rest, &ret->space) || !name_take_part(&rest, &ret->collection)) {
        ret->space = STR_NONE;
        ret->collection = ng_str_of(NAME_COLLECTION);
        ret->id = word;
    } else {
        ret->id = rest;
    }
    if (ret->id.len == 0 || ret->collection.len == 0 ||
        (ret->space.data != NULL && ret->space.len == 0)) {
        *ret_why = "it must be NAME, SPACE/COLLECTION/ID, a path that begins with / or ., or "
                   "notegate://SPACE/KIND/ID";
        return NG_EINVAL;
    }
    return NG_OK;
}

static bool name_is_path(struct ng_str word)
{
    return str_begins(word, "/") || str_begins(word, "./") || str_begins(word, "../");
}

int history_name_parse(struct arena *arena, struct ng_str word, enum history_points points,
                       struct history_name *ret, const char **ret_why)
{
    *ret = (struct history_name){.space = STR_NONE};
    name_take_point(&word, points, ret);
    if (mcp_uri_is_ours(word)) {
        return name_of_uri(arena, word, ret, ret_why);
    }
    if (name_is_path(word)) {
        ret->path = word;
        return NG_OK;
    }
    return name_of_path(word, ret, ret_why);
}
