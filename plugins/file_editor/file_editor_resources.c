/* SPDX-License-Identifier: MIT */
/* file_editor_resources.c - files as resources, listed folder by folder in the order of names:
 * a page continues after the last name of the previous one, also after changes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "file_editor.h"

/* Names of the first and of the largest read; a page has a few hundred files. */
#define EDITOR_LIST_NAMES 256
#define EDITOR_LIST_NAMES_MAX 4096
/* Levels of folders that are listed; deeper files can still be read. */
#define EDITOR_LIST_DEPTH 64

struct name {
    struct ng_str text;
    uint64_t bytes;
    int64_t modified_ms;
    bool folder;
};

/* The names of one folder, read in batches, in call memory. */
struct folder {
    struct ng_call *call;
    struct name *names;
    size_t count, room; /* on the heap */
    struct ng_str last; /* the last name of the previous batch; absent: none */
    struct ng_str seen; /* the last name of this batch */
    bool more;
    int rc;
};

struct walk {
    struct ng_call *call;
    struct ng_listing *listing;
    const struct ng_str *roots; /* real paths of all accessible roots */
    size_t root_count;
    struct ng_str root;   /* the present root */
    struct ng_str prefix; /* completion: only paths with this prefix */
    bool full;
};

/* ---- kinds of files ---- */

/* NULL: unknown ending. */
static const char *mime_type_of(struct ng_str path)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        {".txt", "text/plain"},
        {".md", "text/markdown"},
        {".html", "text/html"},
        {".htm", "text/html"},
        {".css", "text/css"},
        {".csv", "text/csv"},
        {".js", "text/javascript"},
        {".mjs", "text/javascript"},
        {".ts", "text/x-typescript"},
        {".py", "text/x-python"},
        {".c", "text/x-c"},
        {".h", "text/x-c"},
        {".cc", "text/x-c++"},
        {".cpp", "text/x-c++"},
        {".hpp", "text/x-c++"},
        {".rs", "text/x-rust"},
        {".go", "text/x-go"},
        {".java", "text/x-java"},
        {".sh", "text/x-shellscript"},
        {".sql", "application/sql"},
        {".json", "application/json"},
        {".yaml", "application/yaml"},
        {".yml", "application/yaml"},
        {".toml", "application/toml"},
        {".xml", "application/xml"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},
        {".webp", "image/webp"},
        {".pdf", "application/pdf"},
        {".zip", "application/zip"},
        {".gz", "application/gzip"},
        {".wav", "audio/wav"},
        {".mp3", "audio/mpeg"},
        {".ipynb", "application/x-ipynb+json"},
    };
    for (size_t i = 0; i < NG_COUNT(types); i++) {
        if (editor_ends_with(path, types[i].ending)) {
            return types[i].type;
        }
    }
    return NULL;
}

/* ---- one folder ---- */

static int keep_name(void *user, const struct ng_file_entry *entry)
{
    struct folder *folder = user;
    bool folder_entry = entry->type == NG_FILE_DIRECTORY;
    if (folder->last.data != NULL && str_compare(entry->name, folder->last) <= 0) {
        return 0;
    }
    char *text = ng_alloc(folder->call, entry->name.len + 1);
    if (text == NULL) {
        folder->rc = NG_EINTERNAL;
        return 1;
    }
    memcpy(text, entry->name.data, entry->name.len);
    folder->seen = (struct ng_str){text, entry->name.len};
    if (entry->link || (!folder_entry && entry->type != NG_FILE_REGULAR)) {
        return 0; /* the target of a link is listed at its own path */
    }
    if (array_reserve((void **)&folder->names, &folder->room, folder->count + 1,
                      sizeof(*folder->names), EDITOR_LIST_NAMES_MAX) != NG_OK) {
        folder->rc = NG_EINTERNAL;
        return 1;
    }
    folder->names[folder->count++] = (struct name){
        .text = folder->seen,
        .bytes = entry->bytes,
        .modified_ms = entry->modified_ms,
        .folder = folder_entry,
    };
    return 0;
}

/* Reads the next names, beginning with `from`. A missing or unreadable folder has no names. */
static int read_folder(struct walk *walk, struct ng_str path, struct ng_str from,
                       uint32_t names, struct folder *folder)
{
    struct ng_call *call = walk->call;
    const struct ng_file_list list = {
        .size = sizeof(list),
        .path = path,
        .depth = 1,
        .max_entries = names,
        .sorted = true,
        .from = folder->last.data != NULL ? folder->last : from,
    };
    folder->call = call;
    folder->count = 0;
    int rc = call->host->file_list(call, &list, keep_name, folder);
    if (folder->rc != NG_OK) {
        return ng_fail(call, folder->rc, "Out of memory for the list of files.");
    }
    if (call->host->cancelled(call)) {
        return ng_fail(call, NG_ECANCELLED, "The call was cancelled while listing.");
    }
    folder->more = rc == NG_ETOOLARGE && folder->seen.data != NULL;
    folder->last = folder->seen;
    folder->seen.data = NULL;
    return NG_OK;
}

/* ---- all of a root ---- */

/* Length of a root as the prefix of paths; "/" has none. */
static size_t root_length(struct ng_str root)
{
    return root.len > 1 ? root.len : 0;
}

static bool is_root(const struct walk *walk, struct ng_str path)
{
    for (size_t i = 0; i < walk->root_count; i++) {
        if (str_equal(walk->roots[i], path)) {
            return true;
        }
    }
    return false;
}

/* True if the path, or a path below it, may have the prefix. */
static bool may_match(const struct walk *walk, struct ng_str path, bool folder)
{
    size_t least = size_min(path.len, walk->prefix.len);
    return (least == 0 || memcmp(path.data, walk->prefix.data, least) == 0) &&
           (folder || path.len >= walk->prefix.len);
}

static int add_file(struct walk *walk, struct ng_str path, const struct name *name)
{
    const char *type = mime_type_of(path);
    size_t skip = root_length(walk->root) + 1;
    struct ng_str shown = {path.data + skip, path.len - skip};
    struct ng_str none = {NULL, 0};
    if (type == NULL) {
        type = "";
    }
    walk->full = walk->call->host->list_add(walk->listing, path, shown, none, type, name->bytes,
                                            name->modified_ms) != NG_OK;
    return NG_OK;
}

/* Splits a relative path after its first part. */
static struct ng_str first_part(struct ng_str path, struct ng_str *ret_rest)
{
    size_t len = 0;
    if (path.data == NULL) {
        *ret_rest = path;
        return path;
    }
    while (len < path.len && path.data[len] != '/') {
        len++;
    }
    size_t skip = len + (len < path.len);
    *ret_rest = str_make(path.data + skip, path.len - skip);
    return str_make(path.data, len);
}

static int walk_folder(struct walk *walk, struct ng_str path, struct ng_str after,
                       unsigned depth);

/* One name; `after` as in walk_folder(). */
static int walk_name(struct walk *walk, struct ng_str path, const struct name *name,
                     struct ng_str after, unsigned depth)
{
    struct ng_str none = {NULL, 0};
    struct ng_str rest = none;
    struct ng_str part = first_part(after, &rest);
    int order = 1;
    if (after.data != NULL) {
        order = str_compare(name->text, part);
    }
    struct ng_str full =
        walk->call->host->format(walk->call, "%.*s/%.*s", (int)root_length(path), path.data,
                                 (int)name->text.len, name->text.data);
    if (full.data == NULL) {
        return ng_fail(walk->call, NG_EINTERNAL, "Out of memory for the list of files.");
    }
    if (order < 0 || !may_match(walk, full, name->folder)) {
        return NG_OK;
    }
    if (!name->folder) {
        return order > 0 ? add_file(walk, full, name) : NG_OK;
    }
    if (depth > 1 && !is_root(walk, full)) {
        if (order != 0) {
            rest = none;
        }
        return walk_folder(walk, full, rest, depth - 1);
    }
    return NG_OK;
}

/* after: the page continues after this path, relative to the folder; {NULL, 0}: all entries. */
static int walk_folder(struct walk *walk, struct ng_str path, struct ng_str after,
                       unsigned depth)
{
    struct folder folder = {.count = 0};
    struct ng_str rest = {NULL, 0};
    struct ng_str part = first_part(after, &rest);
    uint32_t names = EDITOR_LIST_NAMES;
    int rc = NG_OK;
    do {
        rc = read_folder(walk, path, part, names, &folder);
        for (size_t i = 0; i < folder.count && rc == NG_OK && !walk->full; i++) {
            rc = walk_name(walk, path, &folder.names[i], after, depth);
        }
        if (names < EDITOR_LIST_NAMES_MAX) {
            names = names * 4;
        }
    } while (rc == NG_OK && folder.more && !walk->full);
    free(folder.names);
    return rc;
}

static int walk_root(struct walk *walk, struct ng_str after)
{
    struct ng_str none = {NULL, 0};
    struct ng_str rest = none;
    size_t len = root_length(walk->root);
    if (after.data != NULL && after.len > len && after.data[len] == '/' &&
        memcmp(after.data, walk->root.data, len) == 0) {
        rest = (struct ng_str){after.data + len + 1, after.len - len - 1};
    } else if (after.data != NULL) {
        return NG_OK; /* the page begins in a later root */
    }
    if (!may_match(walk, walk->root, true)) {
        return NG_OK;
    }
    return walk_folder(walk, walk->root, rest, EDITOR_LIST_DEPTH);
}

/* ---- all roots of a space ---- */

/* Finds the real paths of all roots, in the order of the configuration. *ret_wanted: of the
 * space.
 */
static int find_roots(struct walk *walk, struct ng_str space, bool **ret_wanted)
{
    struct ng_call *call = walk->call;
    const struct ng_str *paths = NULL;
    size_t count = call->host->file_roots(call, &paths);
    struct ng_str *roots = ng_alloc(call, (count + 1) * sizeof(*roots));
    bool *wanted = ng_alloc(call, count + 1);
    if (roots == NULL || wanted == NULL) {
        return ng_fail(call, NG_EINTERNAL, "Out of memory for the list of files.");
    }
    for (size_t i = 0; i < count; i++) {
        struct ng_file file = {.size = sizeof(file)};
        int rc = call->host->file_stat(call, paths[i], &file);
        bool exists = rc == NG_OK && file.type == NG_FILE_DIRECTORY;
        roots[i] = exists ? file.real : paths[i];
        wanted[i] = exists && str_equal(file.space, space);
        for (size_t j = 0; j < i; j++) {
            wanted[i] = wanted[i] && !str_equal(roots[i], roots[j]); /* configured twice */
        }
    }
    walk->roots = roots;
    walk->root_count = count;
    *ret_wanted = wanted;
    return NG_OK;
}

/* Index of the innermost root that contains the path. */
static size_t root_of(const struct walk *walk, struct ng_str path)
{
    size_t best = 0;
    size_t best_len = 0;
    for (size_t i = 0; i < walk->root_count && path.data != NULL; i++) {
        struct ng_str root = walk->roots[i];
        size_t len = root_length(root);
        if (path.len > len && path.data[len] == '/' && len + 1 > best_len &&
            memcmp(path.data, root.data, len) == 0) {
            best = i;
            best_len = len + 1;
        }
    }
    return best;
}

static int walk_roots(struct walk *walk, struct ng_str space, struct ng_str after)
{
    bool *wanted = NULL;
    int rc = find_roots(walk, space, &wanted);
    size_t first = 0;
    if (rc == NG_OK) {
        first = root_of(walk, after);
    }
    for (size_t i = first; rc == NG_OK && i < walk->root_count && !walk->full; i++) {
        walk->root = walk->roots[i];
        if (i > first) {
            after = str_make(NULL, 0);
        }
        if (wanted[i]) {
            rc = walk_root(walk, after);
        }
    }
    return rc;
}

int editor_resource_list(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_listing *listing)
{
    struct walk walk = {.call = call, .listing = listing};
    (void)self;
    return walk_roots(&walk, space, call->host->list_after(listing));
}

int editor_resource_complete(void *self, struct ng_call *call, struct ng_str space,
                             const char *variable, struct ng_str prefix,
                             struct ng_listing *listing)
{
    struct walk walk = {.call = call, .listing = listing, .prefix = prefix};
    struct ng_str none = {NULL, 0};
    (void)self;
    if (strcmp(variable, "id") != 0) {
        return NG_OK;
    }
    return walk_roots(&walk, space, none);
}

/* ---- reading ---- */

int editor_resource_read(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_str id, uint64_t revision)
{
    const struct editor *editor = self;
    const struct ng_host *host = call->host;
    struct ng_file file = {.size = sizeof(file)};
    if (revision > 0) {
        return ng_fail(call, NG_EINVAL,
                       "Files have no numbered revisions; leave ?revision out. Their last "
                       "changes can be taken back with fileEditor's undo_edit.");
    }
    int rc = host->file_stat(call, id, &file);
    if (rc == NG_OK && (file.type != NG_FILE_REGULAR || !str_equal(file.space, space))) {
        rc = ng_fail(call, NG_ENOTFOUND, "There is no such file in this space.");
    }
    if (rc == NG_OK) {
        rc = host->file_read(call, id, editor->max_result, &file);
    }
    if (rc == NG_OK) {
        rc = host->revision_text(call, file.revision);
    }
    if (rc != NG_OK) {
        return rc;
    }
    bool is_text = utf8_valid(file.data) &&
                   (file.data.len == 0 || memchr(file.data.data, '\0', file.data.len) == NULL);
    const char *type = mime_type_of(file.real);
    if (type == NULL) {
        type = is_text ? "text/plain" : "application/octet-stream";
    }
    struct ng_str empty = {"", 0};
    if (file.data.len == 0) {
        file.data = empty;
    }
    return host->reply_resource(call, empty, type, file.data, is_text);
}

/* ---- the prompt ---- */

static const char guide_text[] =
    "Work on text files with the tool `fileEditor`. Paths are absolute and below the gateway's "
    "roots; a path elsewhere is refused, and the message names the roots.\n"
    "\n"
    "- Look first: {\"command\":\"view\",\"path\":\"/srv/project\"} lists a folder, with the "
    "path of a file it shows the file with line numbers, with \"view_range\":[1,40] a part of "
    "it (-1 is the end).\n"
    "- Find lines: {\"command\":\"search\",\"path\":\"/srv/project\",\"pattern\":\"...\"} "
    "searches a file or all files of a folder; \"regex\", \"ignore_case\" and "
    "\"glob\":\"*.py\" say how and which.\n"
    "- Make a new file: {\"command\":\"create\",\"path\":\"...\",\"file_text\":\"...\"}. It "
    "never overwrites.\n"
    "- Change one place: {\"command\":\"str_replace\",\"path\":\"...\",\"old_str\":\"...\","
    "\"new_str\":\"...\"}. old_str must occur exactly once, with its white space as it is in "
    "the file and without the line numbers that view adds: take in enough lines around it.\n"
    "- Add lines: {\"command\":\"insert\",\"path\":\"...\",\"insert_line\":0,\"new_str\":"
    "\"...\"} inserts behind that line; 0 is the top.\n"
    "- Change many places: {\"command\":\"regex_replace\",\"path\":\"...\",\"pattern\":\"...\","
    "\"new_str\":\"...\"}. `copy` and `move` take \"destination\" and never overwrite.\n"
    "- Wrong? {\"command\":\"undo_edit\",\"path\":\"...\"} takes the last change of the file "
    "back; several times, one change after the other.\n"
    "\n"
    "Other agents may edit the same file. Every edit is made on the file as it is then; to be "
    "sure that it is still what you saw, pass the revision of your last view as "
    "\"expectedRevision\": if the file is another now, nothing is changed and the call fails "
    "with CONFLICT. View it again, then decide.";

int editor_guide(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, ng_str_of(guide_text));
}
