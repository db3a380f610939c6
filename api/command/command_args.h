/* SPDX-License-Identifier: MIT */
/* command_args.h - KEY=VALUE words of the command line as the JSON arguments of a tool. */
#ifndef NOTEGATE_API_COMMAND_ARGS_H
#define NOTEGATE_API_COMMAND_ARGS_H

#include "core/json/json.h"

/*
 * One JSON object of `words`, each KEY=VALUE, typed by the tool's schema: numbers and booleans
 * as they are written, arrays and objects as JSON, arrays also by commas, strings as they are.
 * NG_EINVAL and a sentence in `error`: a word that is not KEY=VALUE, a key given twice, a value
 * of the wrong type, one that begins as an array or object and is no JSON.
 */
int command_args_build(const struct ng_value *schema, const char *const *words, size_t count,
                       struct buf *out, struct buf *error);

#endif
