/* SPDX-License-Identifier: MIT */
/* notebook_content.c - .ipynb files as a kind of contents: view and merge with their results in
 * call memory. */
#include "notebook_content.h"

#include <string.h>

#include "core/base/str.h"
#include "core/base/text/json_writer.h"
#include "notebook_merge.h"

/* Bytes of a conflict in JSON: MERGE_PLACES_MAX places with two sides each. */
#define CONTENT_CONFLICT_MAX ((size_t)1 << 20)

/* NG_OK or NG_EINTERNAL. */
static int content_give(struct ng_call *call, struct ng_str text, struct ng_str *ret)
{
    char *copy = ng_alloc(call, text.len + 1);
    if (copy == NULL) {
        return NG_EINTERNAL;
    }
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    *ret = str_make(copy, text.len);
    return NG_OK;
}

int notebook_content_view(void *self, struct ng_call *call, struct ng_str bytes,
                          struct ng_str *ret_text)
{
    struct notebook_view view;
    (void)self;
    int rc = notebook_view_read(bytes, &view);
    if (rc == NG_OK) {
        rc = content_give(call, nb_text_str(&view.text), ret_text);
    }
    notebook_view_done(&view);
    return rc;
}

static int content_give_conflict(struct ng_call *call, const struct merge_conflict *conflict,
                                 struct ng_str *ret)
{
    struct buf json;
    struct ng_writer writer;
    buf_init(&json, CONTENT_CONFLICT_MAX);
    json_writer_init(&writer, &json);
    merge_conflict_json(&writer, conflict);
    int rc = conflict->sides.rc != NG_OK || json.rc != NG_OK
                 ? NG_EINTERNAL
                 : content_give(call, buf_str(&json), ret);
    buf_done(&json);
    return rc;
}

int notebook_content_merge(void *self, struct ng_call *call, const struct ng_sides *sides,
                           struct ng_str *ret_merged, struct ng_str *ret_conflict)
{
    struct merge_result merged = {0};
    (void)self;
    int rc = notebook_merge(sides->base, sides->present, sides->before, &merged);
    if (rc == NG_OK && merged.conflict.reason != MERGE_CLEAN) {
        rc = content_give_conflict(call, &merged.conflict, ret_conflict);
    } else if (rc == NG_OK) {
        rc = merged.text.rc != NG_OK ? NG_EINTERNAL
                                     : content_give(call, buf_str(&merged.text), ret_merged);
    }
    merge_result_done(&merged);
    return rc;
}
