/* SPDX-License-Identifier: MIT */
/* splice.h - the stretch in which two contents differ. */
#ifndef NOTEGATE_CORE_SPLICE_H
#define NOTEGATE_CORE_SPLICE_H

#include "notegate/abi.h"
#include "notegate/backend.h"

/* The splice that turns `from` into `to`: it has all between their common beginning and end,
 * and does not look at characters. `inserted` points into `to`, or is "". */
struct ng_splice splice_between(struct ng_str from, struct ng_str to);

#endif
