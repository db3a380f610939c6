/* SPDX-License-Identifier: MIT */
/* notebooks.c - the tool that lists the notebooks. */
#include <unistd.h>

#include "answer/answer.h"
#include "notebook/notebook.h"
#include "read.h"
#include "tree/tree.h"

const char notes_notebooks_summary[] =
    "List the OpenNotes notebooks (folders of Markdown notes), to see which names other "
    "opennotes tools can use as 'notebook'. Registered and discovered ones: name, path and "
    "source of each.";

const char notes_notebooks_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}";

#define NOTEBOOK_INFO                                                                          \
    "\"properties\":{\"name\":{\"type\":\"string\",\"description\":\"Notebook display "        \
    "name\"},"                                                                                 \
    "\"path\":{\"type\":\"string\",\"description\":\"Absolute path to notebook\"},"            \
    "\"source\":{\"type\":\"string\",\"enum\":[\"registered\",\"ancestor\",\"explicit\"]},"    \
    "\"noteCount\":{\"type\":\"integer\"},\"error\":{\"type\":\"string\"}},\"required\":["     \
    "\"name\",\"path\",\"source\"]"

const char notes_notebooks_result[] =
    "{\"type\":\"object\",\"required\":[\"notebooks\",\"current\"],\"properties\":{"
    "\"notebooks\":{\"type\":\"array\",\"items\":{\"type\":\"object\"," NOTEBOOK_INFO "}},"
    "\"current\":{\"type\":[\"object\",\"null\"]," NOTEBOOK_INFO
    "},\"truncated\":{\"type\":\"boolean\"}}}";

/* Number of notes in the folder, from a walk of the tree: fast even without an index. */
static int64_t count_notes(const struct notes_notebook *notebook)
{
    struct notes_tree_walk walk = {
        .root_fd = notebook->unusable ? -1 : notes_tree_open_folder(notebook->path.data)};
    struct notes_tree tree;
    int64_t count = -1;
    if (walk.root_fd >= 0 && notes_tree_read(&walk, &tree) == NG_OK) {
        count = (int64_t)tree.file_count;
        notes_tree_done(&tree);
    }
    if (walk.root_fd >= 0) {
        (void)close(walk.root_fd);
    }
    return count;
}

static void write_info(struct buf *json, const struct notes_notebook *notebook, int64_t notes)
{
    notes_json_begin(json, '{');
    notes_json_member(json, "name", notebook->name);
    notes_json_member(json, "path", notebook->path);
    notes_json_member(json, "source", ng_str_of(notes_source_name(notebook->source)));
    if (notebook->unusable) {
        notes_json_member(json, "error", notebook->fault);
    } else if (notes >= 0) {
        notes_json_member_int(json, "noteCount", notes);
    }
    notes_json_end(json, '}');
}

int notes_notebooks_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct opennotes *self = user;
    struct notes_notebook **items = NULL;
    struct notes_notebook *current = NULL;
    struct notes_answer answer;
    size_t count = 0;
    (void)args;
    int rc = notes_notebook_list(self, call, &items, &count);
    if (rc == NG_OK) {
        rc = notes_notebook_current(self, call, &current);
    }
    if (rc != NG_OK) {
        return rc;
    }
    notes_answer_begin(&answer, call, &self->budget, NOTES_LIMIT_MAX, 0);
    notes_answer_reserve(&answer, sizeof(",\"truncated\":true"));
    notes_json_name_c(&answer.json, "current");
    if (current != NULL) {
        write_info(&answer.json, current, count_notes(current));
    } else {
        notes_json_null(&answer.json);
    }
    notes_answer_list(&answer, "notebooks");
    for (size_t i = 0; i < count && notes_answer_more(&answer); i++) {
        write_info(notes_answer_item(&answer), items[i], count_notes(items[i]));
        (void)notes_answer_add(&answer);
    }
    notes_answer_list_end(&answer);
    if ((size_t)answer.returned < count) {
        notes_json_member_bool(&answer.json, "truncated", true);
    }
    return notes_answer_end_plain(&answer);
}
