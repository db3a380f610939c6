/* SPDX-License-Identifier: MIT */
/* key_spaces.h - the spaces given to a key that nothing has used yet: often a typing error. */
#ifndef NOTEGATE_API_KEY_SPACES_H
#define NOTEGATE_API_KEY_SPACES_H

#include "core/call/call.h"

struct key_spec;

/* The spaces in which there is no document, and which no live key, root or folder has; without
 * `shared` and the agent's own, which exist for everybody. Memory of the call. On workers. */
int key_spaces_new(struct call *call, const struct key_spec *spec, const struct ng_str **ret,
                   size_t *ret_count);

#endif
