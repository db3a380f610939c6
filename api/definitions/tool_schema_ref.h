/* SPDX-License-Identifier: MIT */
/* tool_schema_ref.h - the target of a reference in a tool's schema. */
#ifndef NOTEGATE_API_TOOL_SCHEMA_REF_H
#define NOTEGATE_API_TOOL_SCHEMA_REF_H

#include "core/base/buf.h"
#include "core/json/json.h"

/* Bytes of a reference as it is written. */
#define TOOL_SCHEMA_REF_MAX ((size_t)4096)

/* The schema that `ref` means in `root`. False: its target is unknown here. Else
 * *ret_target is lent from root, and `pointer` (empty before) holds "#" or "#/$defs/NAME" where
 * it is the whole or a definition of the whole, and nothing where it is another place. */
bool tool_schema_ref_find(const struct ng_value *root, struct ng_str ref, struct buf *pointer,
                          const struct ng_value **ret_target);

#endif
