/* SPDX-License-Identifier: MIT */
/* module_lint.h - checks the declarations of a module before its code runs: values that this
 * gateway does not know, schemas that clients refuse, names that are taken, mistakes. */
#ifndef NOTEGATE_CORE_MODULE_LINT_H
#define NOTEGATE_CORE_MODULE_LINT_H

#include "core/base/buf.h"
#include "loader.h"

/* NG_OK; or NG_EINVAL and one sentence without the module's path ("has ..."), NG_EINTERNAL: out
 * of memory. */
int module_lint(const struct module *module, struct buf *error);

#endif
