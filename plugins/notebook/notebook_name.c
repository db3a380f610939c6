/* SPDX-License-Identifier: MIT */
/* notebook_name.c - names of notebooks, and the errors that quote them. */
#include <string.h>

#include "core/base/text/edit_distance.h"
#include "notebook.h"

/* Names compared for a hint. */
#define NOTEBOOK_HINT_LOOKED 1000

struct ng_str notebook_join(struct ng_call *call, const struct ng_str *pieces, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += pieces[i].len;
    }
    char *text = ng_alloc(call, len + 1);
    if (text == NULL) {
        return str_make(NULL, 0);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) {
            memcpy(text + at, pieces[i].data, pieces[i].len);
        }
        at += pieces[i].len;
    }
    text[len] = '\0';
    return str_make(text, len);
}

int notebook_fail(struct ng_call *call, int code, const struct ng_str *pieces, size_t count)
{
    struct ng_str message = notebook_join(call, pieces, count);
    if (message.data == NULL) {
        return ng_fail(call, code, "%s", "out of memory for the whole error message");
    }
    return call->host->fail_text(call, code, message);
}

void notebook_violation(struct ng_call *call, const char *path, struct ng_str expected,
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

int notebook_not_found(struct ng_call *call, struct ng_str name)
{
    const struct ng_str pieces[] = {ng_str_of("Notebook '"), name, ng_str_of("' not found")};
    return notebook_fail(call, NG_ENOTFOUND, pieces, NG_COUNT(pieces));
}

/* The nearest name so far. */
struct notebook_near {
    struct ng_call *call;
    struct ng_str wanted;
    struct ng_str best;
    size_t distance;
};

static void notebook_try_near(struct notebook_near *near, struct ng_str name)
{
    size_t distance = edit_distance(near->wanted, name, near->distance);
    if (distance >= near->distance) {
        return;
    }
    char *copy = ng_alloc(near->call, name.len + 1);
    if (copy == NULL) {
        return;
    }
    if (name.len > 0) {
        memcpy(copy, name.data, name.len);
    }
    near->best = str_make(copy, name.len);
    near->distance = distance;
}

static int notebook_near_row(void *user, const struct ng_doc *row)
{
    notebook_try_near(user, row->key.id);
    return 0;
}

int notebook_missing(struct ng_call *call, struct ng_str space, struct ng_str name)
{
    /* A third of the name may differ. */
    struct notebook_near near = {
        .call = call,
        .wanted = name,
        .distance = name.len / 3 + 2,
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = space,
        .limit = NOTEBOOK_HINT_LOOKED,
    };
    int rc = call->host->query(call, &query, notebook_near_row, &near, NULL);
    if (rc == NG_EWOULDBLOCK) {
        return rc;
    }
    /* A failure of this query must not replace the error of the call. */
    notebook_try_near(&near, ng_str_of(NOTEBOOK_DEFAULT));
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
