/* SPDX-License-Identifier: MIT */
/* notebook.c - the notebooks that a caller can see, and the choice of one for a call. */
#include "notebook.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text_choice.h"
#include "notebook_state.h"
#include "text/codes.h"

#define SHARED "shared"
#define CHOICES_MAX 10 /* named in a hint */

const char *notes_source_name(enum notes_source source)
{
    switch (source) {
    case NOTES_REGISTERED:
        return "registered";
    case NOTES_ANCESTOR:
        return "ancestor";
    default:
        return "explicit";
    }
}

void notes_notebook_write(const struct notes_notebook *notebook, struct buf *json)
{
    notes_json_member_begin(json, "notebook", '{');
    notes_json_member(json, "name", notebook->name);
    notes_json_member(json, "path", notebook->path);
    notes_json_end(json, '}');
}

/* ---- start and stop ---- */

static int add_registered(struct notes_notebooks *notebooks, struct ng_call *call,
                          struct ng_str item)
{
    struct ng_str space = ng_str_of(SHARED);
    struct ng_str path = item;
    for (size_t i = 0; i + 1 < item.len && item.data[i] != '/'; i++) {
        if (item.data[i] == ':' && item.data[i + 1] == '/') {
            space = str_make(item.data, i);
            path = str_make(item.data + i + 1, item.len - i - 1);
            break;
        }
    }
    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.len--;
    }
    struct notes_registered *to = &notebooks->items[notebooks->count];
    char *text = str_dup(path);
    to->space = str_dup(space);
    to->path = text != NULL && text[0] != '/' ? realpath(text, NULL) : text;
    if (to->path != text) {
        free(text);
    }
    notebooks->count++;
    return notes_memory(call, to->space != NULL && to->path != NULL);
}

static int register_all(struct notes_notebooks *notebooks, struct ng_call *call,
                        const struct ng_str *registered, size_t count)
{
    int rc = NG_OK;
    notebooks->items = calloc(count + 1, sizeof(*notebooks->items));
    if (notebooks->items == NULL) {
        return notes_fail_memory(call);
    }
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = call->host->file_folder(call, registered[i]);
        if (rc == NG_ENOTFOUND) {
            call->host->log(
                call, NG_LOG_WARNING,
                "opennotes: the notebook %.*s does not exist and is not served: make the "
                "folder and restart, or remove it from opennotes.notebooks",
                (int)registered[i].len, registered[i].data);
            rc = NG_OK;
        } else if (rc == NG_OK) {
            rc = add_registered(notebooks, call, registered[i]);
        }
    }
    return rc;
}

static int index_registered(struct ng_call *call, void *user);
static int describe(struct opennotes *self, struct ng_call *call, struct ng_str path,
                    enum notes_source source, struct notes_notebook **ret);

int notes_notebooks_open(struct opennotes *self, struct ng_call *call,
                         const struct ng_str *registered, size_t count)
{
    struct notes_notebooks *notebooks = calloc(1, sizeof(*notebooks));
    self->notebooks = notebooks;
    if (notebooks != NULL) {
        lock_init(&notebooks->names_lock, LOCK_NOTES_NAMES);
    }
    if (notebooks == NULL || notes_indexes_open(self->folder, &notebooks->indexes) != NG_OK) {
        return notes_fail_memory(call);
    }
    if (mkdir(self->folder, S_IRWXU) != 0 && errno != EEXIST) {
        return ng_fail(call, errno == ENOSPC || errno == EDQUOT ? NG_EFULL : NG_EFAILED,
                       "The folder for the indexes, %s, cannot be made: %s.", self->folder,
                       text_errno(errno));
    }
    notes_indexes_sweep(self->folder, call->host->now_ms() / 1000);
    notebooks->discovery = notes_discovery_open(call);
    int rc = notes_memory(call, notebooks->discovery != NULL);
    if (rc == NG_OK) {
        rc = register_all(notebooks, call, registered, count);
    }
    for (size_t i = 0; i < notebooks->count && rc == NG_OK; i++) {
        /* A fault of one is an error of its calls. */
        struct notes_notebook *notebook = NULL;
        (void)describe(self, call, ng_str_of(notebooks->items[i].path), NOTES_REGISTERED,
                       &notebook);
    }
    if (rc == NG_OK && notebooks->count > 0) {
        /* If this fails, the first call builds the indexes. */
        (void)call->host->background(call, index_registered, self);
    }
    return rc;
}

void notes_notebooks_close(struct notes_notebooks *notebooks)
{
    if (notebooks == NULL) {
        return;
    }
    notes_indexes_close(notebooks->indexes);
    notes_discovery_close(notebooks->discovery);
    for (size_t i = 0; notebooks->items != NULL && i < notebooks->count; i++) {
        free(notebooks->items[i].space);
        free(notebooks->items[i].path);
        free(notebooks->items[i].name);
        free(notebooks->items[i].notes);
    }
    free(notebooks->items);
    lock_done(&notebooks->names_lock);
    free(notebooks);
}

struct notes_indexes *notes_notebooks_indexes(const struct notes_notebooks *notebooks)
{
    return notebooks->indexes;
}

/* ---- one notebook ---- */

bool notes_may_see(struct ng_call *call, struct ng_str space)
{
    const struct ng_caller *caller = call->caller;
    bool seen = caller->all_spaces;
    for (size_t i = 0; i < caller->space_count && !seen; i++) {
        seen = str_equal(caller->spaces[i], space);
    }
    return seen;
}

/* The notebook in a folder that file_stat lets the caller see. NOTEBOOK_NOT_FOUND: there is no
 * folder. With NOTEBOOK_CONFIG_ERROR *ret holds the known part. */
static int describe(struct opennotes *self, struct ng_call *call, struct ng_str path,
                    enum notes_source source, struct notes_notebook **ret)
{
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_stat(call, path, &file);
    if (rc != NG_OK && rc != NG_EOUTSIDE && rc != NG_ENOTFOUND) {
        return rc;
    }
    struct notes_notebook *notebook = ng_alloc(call, sizeof(*notebook));
    if (notebook == NULL) {
        return notes_fail_memory(call);
    }
    *notebook = (struct notes_notebook){.self = self, .source = source};
    int fd = -1;
    if (rc == NG_OK && file.type == NG_FILE_DIRECTORY) {
        struct ng_str real = notes_call_copy(call, file.real);
        notebook->space = notes_call_copy(call, file.space);
        if (real.data == NULL || notebook->space.data == NULL) {
            return notes_fail_memory(call);
        }
        fd = notes_tree_open_folder(real.data);
        file.real = real;
    }
    if (fd < 0) {
        (void)ng_fail(call, NOTES_ENOTEBOOK, "No notebook found at %.*s", (int)path.len,
                      path.data);
        return NOTES_ENOTEBOOK;
    }
    rc = notes_config_read(notebook, call, fd, file.real);
    notebook->unusable = rc == NOTES_ECONFIG;
    (void)close(fd);
    *ret = notebook;
    if (source == NOTES_REGISTERED && rc == NG_OK) {
        notes_names_keep(self->notebooks, path, notebook);
    }
    return rc;
}

int notes_notebook_open(struct notes_notebook *notebook, struct ng_call *call)
{
    return notes_index_open(notebook->self->notebooks->indexes, call, notebook->path.data,
                            &notebook->index);
}

void notes_notebook_done(struct notes_notebook *notebook)
{
    if (notebook != NULL) {
        notes_index_end(notebook->index, notebook->db);
        notes_index_close(notebook->self->notebooks->indexes, notebook->index);
        notebook->index = NULL;
        notebook->db = NULL;
    }
}

int notes_notebook_begin(struct notes_notebook *notebook, struct ng_call *call)
{
    if (notebook->db != NULL) {
        return NG_OK;
    }
    return notes_index_begin(notebook->index, call, &notebook->db);
}

int notes_notebook_fail(const struct notes_notebook *notebook, struct ng_call *call)
{
    return notes_index_fail(notebook->index, call, notebook->db);
}

sqlite3_stmt *notes_notebook_prepare(const struct notes_notebook *notebook,
                                     struct ng_call *call, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(notebook->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        (void)notes_notebook_fail(notebook, call);
    }
    return statement;
}

/* Builds the indexes of registered notebooks before the first call needs them. */
static int index_registered(struct ng_call *call, void *user)
{
    struct opennotes *self = user;
    const struct notes_notebooks *all = self->notebooks;
    for (size_t i = 0; i < all->count && !call->host->cancelled(call); i++) {
        struct notes_notebook *notebook = NULL;
        if (describe(self, call, ng_str_of(all->items[i].path), NOTES_REGISTERED, &notebook) ==
                NG_OK &&
            notes_notebook_open(notebook, call) == NG_OK) {
            (void)notes_wait_fresh(notebook->index, call);
            notes_notebook_done(notebook);
        }
    }
    return NG_OK; /* a call for that notebook reports its error */
}

/* ---- all of them ---- */

struct list {
    struct opennotes *self;
    struct ng_call *call;
    struct notes_notebook **items;
    size_t count;
};

static bool is_listed(const struct list *list, struct ng_str folder)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_equal(list->items[i]->folder, folder)) {
            return true;
        }
    }
    return false;
}

static int add(struct list *list, struct ng_str path, enum notes_source source)
{
    struct notes_notebook *notebook = NULL;
    int rc = describe(list->self, list->call, path, source, &notebook);
    if (rc == NOTES_ENOTEBOOK) {
        return NG_OK; /* it was removed meanwhile */
    }
    if ((rc == NG_OK || rc == NOTES_ECONFIG) && !is_listed(list, notebook->folder)) {
        list->items[list->count++] = notebook;
    }
    if (rc == NOTES_ECONFIG) {
        list->call->host->hint(list->call, "%s",
                               ""); /* only the message is needed, not the hint */
        rc = NG_OK;
    }
    return rc;
}

/* Begins the list, with room for more notebooks. */
static int add_registered_ones(struct list *list, size_t more)
{
    const struct notes_notebooks *all = list->self->notebooks;
    list->items = ng_alloc(list->call, (all->count + more + 1) * sizeof(*list->items));
    int rc = notes_memory(list->call, list->items != NULL);
    /* Notebooks of the space that the call names come first. */
    for (int named = 1; named >= 0; named--) {
        for (size_t i = 0; i < all->count && rc == NG_OK; i++) {
            struct ng_str space = ng_str_of(all->items[i].space);
            bool first =
                list->call->caller->space_named && str_equal(space, list->call->caller->space);
            if (first == (named == 1) && notes_may_see(list->call, space)) {
                rc = add(list, ng_str_of(all->items[i].path), NOTES_REGISTERED);
            }
        }
    }
    return rc;
}

int notes_notebook_list(struct opennotes *self, struct ng_call *call,
                        struct notes_notebook ***ret, size_t *ret_count)
{
    struct notes_folders found = {.count = 0};
    struct list list = {.self = self, .call = call};
    int rc = notes_find_folders(call, &found);
    if (rc == NG_OK) {
        rc = add_registered_ones(&list, found.count);
    }
    for (size_t i = 0; i < found.count && rc == NG_OK; i++) {
        rc = add(&list, found.items[i], NOTES_ANCESTOR);
    }
    *ret = list.items;
    *ret_count = list.count;
    return rc;
}

/* ---- the notebook of a call ---- */

static void hint_choices(struct ng_call *call, struct notes_notebook *const *items,
                         size_t count)
{
    struct buf text;
    buf_init(&text, 65536);
    for (size_t i = 0; i < count && i < CHOICES_MAX; i++) {
        notes_add_if(&text, i > 0, ", ");
        buf_add_str(&text, items[i]->path);
    }
    if (count > CHOICES_MAX) {
        buf_add_c(&text, ", ...");
    }
    buf_add_char(&text, '\0');
    if (count > 0 && text.rc == NG_OK) {
        call->host->hint(call, "Specify `notebook` as one of: %s", text.data);
    } else {
        call->host->hint(call,
                         "Register a folder of notes in the gateway's configuration "
                         "(opennotes.notebooks), or put %s into one below its roots",
                         NOTES_CONFIG_NAME);
    }
    buf_done(&text);
}

/* Moves notebooks with a usable configuration to the front. */
static size_t take_usable(struct notes_notebook **items, size_t count)
{
    size_t usable = 0;
    for (size_t i = 0; i < count; i++) {
        if (!items[i]->unusable) {
            items[usable++] = items[i];
        }
    }
    return usable;
}

static int fail_none(struct opennotes *self, struct ng_call *call, struct ng_str named)
{
    struct notes_notebook **items = NULL;
    size_t count = 0;
    int rc = notes_notebook_list(self, call, &items, &count);
    if (rc != NG_OK) {
        return rc;
    }
    count = take_usable(items, count);
    if (named.data == NULL) {
        (void)ng_fail(call, NOTES_ENOTEBOOK,
                      count > 1
                          ? "No notebook found in context: there are %zu, and none of them "
                            "is the current one"
                          : "No notebook found in context",
                      count);
    } else {
        (void)ng_fail(call, NOTES_ENOTEBOOK, "No notebook found at %.*s", (int)named.len,
                      named.data);
    }
    hint_choices(call, items, count);
    return NOTES_ENOTEBOOK;
}

int notes_notebook_current(struct opennotes *self, struct ng_call *call,
                           struct notes_notebook **ret)
{
    struct notes_notebook **items = NULL;
    size_t count = 0;
    struct list list = {.self = self, .call = call};
    *ret = NULL;
    int rc = add_registered_ones(&list, 0);
    if (rc == NG_OK && list.count > 0) {
        *ret = list.items[0];
        return NG_OK;
    }
    if (rc == NG_OK) {
        rc = notes_notebook_list(self, call, &items, &count);
    }
    size_t usable = count;
    if (rc == NG_OK && count > 1) {
        usable = take_usable(items, count);
    }
    if (rc == NG_OK && usable == 1) {
        *ret = items[0]; /* or the only one: its fault is the answer */
    }
    return rc;
}

/* Is the folder the root of a notebook whose configuration is in a folder above it? */
static int find_above(struct opennotes *self, struct ng_call *call,
                      struct notes_notebook **inout)
{
    struct ng_str folder = (*inout)->folder;
    while (folder.len > 1) {
        while (folder.len > 1 && folder.data[folder.len - 1] != '/') {
            folder.len--;
        }
        folder.len -= folder.len > 1;
        struct notes_notebook *above = NULL;
        int rc = describe(self, call, folder, NOTES_ANCESTOR, &above);
        if (rc != NG_OK && rc != NOTES_ECONFIG) {
            return NG_OK; /* outside of the folders that the caller may see */
        }
        if (rc == NG_OK && above->config != NULL && str_equal(above->path, (*inout)->folder)) {
            *inout = above;
            return NG_OK;
        }
    }
    return NG_OK;
}

static int pick_path(struct opennotes *self, struct ng_call *call, struct ng_str path,
                     struct notes_notebook **ret)
{
    struct notes_notebook *notebook = NULL;
    struct list list = {.self = self, .call = call};
    int rc = describe(self, call, path, NOTES_EXPLICIT, &notebook);
    if (rc != NG_OK) {
        if (rc != NOTES_ENOTEBOOK) {
            return rc;
        }
        return fail_none(self, call, path);
    }
    rc = add_registered_ones(&list, 0);
    for (size_t i = 0; i < list.count && rc == NG_OK; i++) {
        if (str_equal(list.items[i]->folder, notebook->folder) ||
            str_equal(list.items[i]->path, notebook->folder)) {
            *ret = list.items[i];
            return NG_OK;
        }
    }
    if (rc == NG_OK && notebook->config != NULL) {
        notebook->source = NOTES_ANCESTOR;
    } else if (rc == NG_OK) {
        rc = find_above(self, call, &notebook);
    }
    *ret = notebook;
    return rc;
}

/* A name, or a path relative to one of the roots. */
static int pick_name(struct opennotes *self, struct ng_call *call, struct ng_str named,
                     struct notes_notebook **ret)
{
    struct notes_notebook **items = NULL;
    size_t count = 0;
    const struct ng_str *roots = NULL;
    int rc = notes_notebook_list(self, call, &items, &count);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        if (str_equal(items[i]->name, named)) {
            *ret = items[i];
            return NG_OK;
        }
    }
    size_t root_count = call->host->file_roots(call, &roots);
    for (size_t i = 0; i < root_count && rc == NG_OK && named.len > 0; i++) {
        struct ng_file file = {.size = sizeof(file)};
        struct ng_str path = call->host->format(call, "%.*s/%.*s", (int)roots[i].len,
                                                roots[i].data, (int)named.len, named.data);
        rc = call->host->file_stat(call, path, &file);
        if (rc == NG_OK && file.type == NG_FILE_DIRECTORY) {
            return pick_path(self, call, path, ret);
        }
        if (rc != NG_ETRAVERSAL) {
            rc = NG_OK;
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    return fail_none(self, call, named);
}

/* The notebook that the argument `notebook` names, or the current one; open. */
static int pick(struct opennotes *self, struct ng_call *call, struct notes_notebook **ret)
{
    struct ng_str named = ng_arg_text(call, "notebook");
    struct notes_notebook *notebook = NULL;
    int rc = NG_OK;
    if (str_ends(named, "/" NOTES_CONFIG_NAME)) {
        named.len -= sizeof("/" NOTES_CONFIG_NAME) - 1;
    }
    while (named.len > 1 && named.data[named.len - 1] == '/') {
        named.len--;
    }
    if (named.data == NULL) {
        rc = notes_notebook_current(self, call, &notebook);
        if (rc == NG_OK && notebook == NULL) {
            rc = fail_none(self, call, named);
        }
    } else if (named.len > 0 && named.data[0] == '/') {
        rc = pick_path(self, call, named, &notebook);
    } else {
        rc = pick_name(self, call, named, &notebook);
    }
    if (rc == NG_OK && notebook->unusable) {
        /* It was listed with its fault; a call for it fails with the fault. */
        rc = describe(self, call, notebook->folder, notebook->source, &notebook);
    }
    if (rc == NG_OK) {
        rc = notes_notebook_open(notebook, call);
    }
    *ret = notebook;
    return rc;
}

int notes_notebook_run(struct opennotes *self, struct ng_call *call, notes_check_fn *check,
                       notes_tool_fn *tool)
{
    struct notes_notebook *notebook = NULL;
    struct arena arena;
    int rc = NG_OK;
    if (check != NULL) {
        rc = check(call);
    }
    if (rc == NG_OK) {
        rc = pick(self, call, &notebook);
    }
    if (rc != NG_OK) {
        return rc;
    }
    arena_init(&arena, 0);
    rc = tool(notebook, call, &arena);
    arena_done(&arena);
    notes_notebook_done(notebook);
    return rc;
}
