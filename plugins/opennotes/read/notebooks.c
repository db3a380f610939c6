/* SPDX-License-Identifier: MIT */
/* notebooks.c - the tool that lists the notebooks. */
#include <unistd.h>

#include "answer/answer.h"
#include "notebook/notebook.h"
#include "read.h"
#include "tree/tree.h"

const char on_notebooks_summary[] =
    "List the OpenNotes notebooks (folders of Markdown notes), to see which names other "
    "opennotes tools can use as 'notebook'. Registered and discovered ones: name, path and "
    "source of each.";

const char on_notebooks_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}";

#define NOTEBOOK_INFO                                                                          \
    "\"properties\":{\"name\":{\"type\":\"string\",\"description\":\"Notebook display "        \
    "name\"},"                                                                                 \
    "\"path\":{\"type\":\"string\",\"description\":\"Absolute path to notebook\"},"            \
    "\"source\":{\"type\":\"string\",\"enum\":[\"registered\",\"ancestor\",\"explicit\"]},"    \
    "\"noteCount\":{\"type\":\"integer\"},\"error\":{\"type\":\"string\"}},\"required\":["     \
    "\"name\",\"path\",\"source\"]"

const char on_notebooks_result[] =
    "{\"type\":\"object\",\"required\":[\"notebooks\",\"current\"],\"properties\":{"
    "\"notebooks\":{\"type\":\"array\",\"items\":{\"type\":\"object\"," NOTEBOOK_INFO "}},"
    "\"current\":{\"type\":[\"object\",\"null\"]," NOTEBOOK_INFO
    "},\"truncated\":{\"type\":\"boolean\"}}}";

/* How many notes are in its folder: by a look at the tree, which is quick also where the index
 * was not made yet. */
static int64_t count_notes(const struct on_notebook *notebook)
{
    struct on_tree_walk walk = {
        .root_fd = notebook->unusable ? -1 : on_tree_open_folder(notebook->path.data)};
    struct on_tree tree;
    int64_t count = -1;
    if (walk.root_fd >= 0 && on_tree_read(&walk, &tree) == NG_OK) {
        count = (int64_t)tree.file_count;
        on_tree_done(&tree);
    }
    if (walk.root_fd >= 0) {
        (void)close(walk.root_fd);
    }
    return count;
}

static void write_info(struct on_buf *json, const struct on_notebook *notebook, int64_t notes)
{
    on_json_begin(json, '{');
    on_json_name_c(json, "name");
    on_json_text(json, notebook->name);
    on_json_name_c(json, "path");
    on_json_text(json, notebook->path);
    on_json_name_c(json, "source");
    on_json_text(json, ng_str_of(on_source_name(notebook->source)));
    if (notebook->unusable) {
        on_json_name_c(json, "error");
        on_json_text(json, notebook->fault);
    } else if (notes >= 0) {
        on_json_name_c(json, "noteCount");
        on_json_int(json, notes);
    }
    on_json_end(json, '}');
}

int on_notebooks_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct opennotes *self = user;
    struct on_notebook **items = NULL;
    struct on_notebook *current = NULL;
    struct on_budget budget = {(size_t)self->max_bytes, (size_t)self->max_lines};
    struct on_answer answer;
    size_t count = 0;
    (void)args;
    int rc = on_notebook_list(self, call, &items, &count);
    if (rc == NG_OK) {
        rc = on_notebook_current(self, call, &current);
    }
    if (rc != NG_OK) {
        return rc;
    }
    on_answer_begin(&answer, call, &budget, ON_LIMIT_MAX, 0);
    on_answer_reserve(&answer, sizeof(",\"truncated\":true"));
    on_json_name_c(&answer.json, "current");
    if (current != NULL) {
        write_info(&answer.json, current, count_notes(current));
    } else {
        on_json_null(&answer.json);
    }
    on_answer_list(&answer, "notebooks");
    for (size_t i = 0; i < count && on_answer_more(&answer); i++) {
        write_info(on_answer_item(&answer), items[i], count_notes(items[i]));
        (void)on_answer_add(&answer);
    }
    on_answer_list_end(&answer);
    if ((size_t)answer.returned < count) {
        on_json_name_c(&answer.json, "truncated");
        on_json_bool(&answer.json, true);
    }
    return on_answer_end_plain(&answer);
}
