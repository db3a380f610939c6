/* SPDX-License-Identifier: MIT */
/* file_editor_find.c - files as hits of a search: those whose text has all words, and those
 * whose name has them. Jupyter notebooks are hits of the plugin cells. */
#include "core/base/find/find_files.h"
#include "core/base/find/find_words.h"
#include "file_editor.h"

struct file_hits {
    struct ng_call *call;
    struct ng_find *find;
    struct find_words words;
};

static int file_no_memory(const struct file_hits *hits)
{
    return ng_fail(hits->call, NG_EINTERNAL, "Out of memory for a search.");
}

/* *ret_found: has the text, else the name, all words? */
static int file_match(struct file_hits *hits, const struct find_file *file, bool *ret_found,
                      struct find_place *ret_place)
{
    int rc = find_words_all(&hits->words, file->text, ret_found, ret_place);
    if (rc == NG_OK && !*ret_found) {
        rc = find_words_all(&hits->words, file->name, ret_found, NULL);
    }
    return rc;
}

static int file_hit(void *user, const struct find_file *file)
{
    struct file_hits *hits = user;
    struct find_place place = {.line = 0};
    bool found = false;
    if (file_match(hits, file, &found, &place) == NG_EINTERNAL) {
        return file_no_memory(hits);
    }
    if (!found) {
        return NG_OK;
    }
    const struct ng_hit hit = {
        .size = sizeof(hit),
        .id = file->path,
        .title = file->name,
        .excerpt = place.excerpt,
        .updated_ms = file->modified_ms,
        .line = place.line,
    };
    hits->find->total++;
    return hits->find->hit(hits->find->user, &hit) == 0 ? NG_OK : FIND_FILES_END;
}

int editor_resource_find(void *self, struct ng_call *call, struct ng_str space,
                         struct ng_find *find)
{
    static const struct find_files_wanted wanted = {.ending = ".ipynb", .others = true};
    struct file_hits hits = {.call = call, .find = find};
    (void)self;
    int rc = find_words_open(&hits.words, find->text);
    if (rc == NG_EINTERNAL) {
        rc = file_no_memory(&hits);
    } else {
        rc = hits.words.count > 0 ? find_files(call, space, find, &wanted, file_hit, &hits)
                                  : NG_OK;
    }
    find_words_done(&hits.words);
    return rc;
}
