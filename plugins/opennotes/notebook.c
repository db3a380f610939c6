/* SPDX-License-Identifier: MIT */
/* notebook.c - which notebooks there are, and which one a call means. */
#include "notebook.h"

#include <stdlib.h>

struct on_notebooks {
    size_t count;
};

int on_notebooks_open(struct opennotes *self, struct ng_call *call,
                      const struct ng_str *registered, size_t count)
{
    (void)registered;
    self->notebooks = calloc(1, sizeof(*self->notebooks));
    if (self->notebooks == NULL) {
        return on_fail_memory(call);
    }
    self->notebooks->count = count;
    return NG_OK;
}

void on_notebooks_close(struct on_notebooks *notebooks)
{
    free(notebooks);
}

int on_notebook_pick(struct opennotes *self, struct ng_call *call, struct on_notebook **ret)
{
    (void)self;
    (void)ret;
    return ng_fail(call, ON_ENOTEBOOK, "No notebook found in context");
}

void on_notebook_done(struct on_notebook *notebook)
{
    (void)notebook;
}
