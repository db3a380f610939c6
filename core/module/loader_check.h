/* SPDX-License-Identifier: MIT */
/* loader_check.h - does a copied descriptor hold what it must? */
#ifndef NOTEGATE_CORE_LOADER_CHECK_H
#define NOTEGATE_CORE_LOADER_CHECK_H

#include "loader.h"

/* NG_EINVAL: `error` got what is missing, a sentence that begins after the module's path ("has
 * no `name`"). */
int loader_check(const struct module *module, struct buf *error);

#endif
