/* SPDX-License-Identifier: MIT */
/* client_load.h - loads client.so, the part of notegate that needs libcurl. */
#ifndef NOTEGATE_API_CLIENT_LOAD_H
#define NOTEGATE_API_CLIENT_LOAD_H

#include "core/base/buf.h"

/* *ret: for dlsym() and dlclose(). Not NG_OK: `error` has a sentence. */
int client_load(void **ret, struct buf *error);

#endif
