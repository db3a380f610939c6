/* SPDX-License-Identifier: MIT */
/* content_kind.h - the kinds of contents of files that loaded plugins declare: their view,
 * merge and check. See struct ng_content_kind. */
#ifndef NOTEGATE_CORE_CONTENT_KIND_H
#define NOTEGATE_CORE_CONTENT_KIND_H

#include "core/call/call.h"

struct content_kind {
    const struct ng_content_kind *desc;
    const struct plugin *plugin;
};

/* The kind of the file, by the ending of its name. False: it has none, and its contents are
 * text.
 */
bool content_kind_find(struct call *call, struct ng_str path, struct content_kind *ret);

/* These run the function of the plugin, which is there; results are in memory of the call.
 * Other errors than those below: the call has failed. */

/* NG_EINVAL: the content is not of this kind. NG_ETOOLARGE. */
int content_kind_view(const struct content_kind *kind, struct call *call, struct ng_str bytes,
                      struct ng_str *ret);
/* One of *ret_merged and *ret_conflict stays {NULL, 0}. */
int content_kind_merge(const struct content_kind *kind, struct call *call,
                       const struct ng_sides *sides, struct ng_str *ret_merged,
                       struct ng_str *ret_conflict);
int content_kind_check(const struct content_kind *kind, struct call *call,
                       const struct ng_sides *sides, struct ng_str merged, bool *ret_good);

#endif
