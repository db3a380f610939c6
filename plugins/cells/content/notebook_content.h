/* SPDX-License-Identifier: MIT */
/* notebook_content.h - the functions of .ipynb files as a kind of contents: see struct
 * ng_content_kind. */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_CONTENT_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_CONTENT_H

#include <notegate/plugin.h>

int notebook_content_view(void *self, struct ng_call *call, struct ng_str bytes,
                          struct ng_str *ret_text);
int notebook_content_merge(void *self, struct ng_call *call, const struct ng_sides *sides,
                           struct ng_str *ret_merged, struct ng_str *ret_conflict);

#endif
