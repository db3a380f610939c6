/* SPDX-License-Identifier: MIT */
/* client_load.c - client.so lies beside the folder of the plugins. */
#include "client_load.h"

#include <dlfcn.h>
#include <stdio.h>

#include "client.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "core/module/loader.h"

#define LOAD_PATH_MAX 4096

int client_load(void **ret, struct buf *error)
{
    char folder[LOAD_PATH_MAX];
    char path[LOAD_PATH_MAX + sizeof(CLIENT_MODULE_NAME) + 1];
    if (loader_default_folders(NG_KIND_PLUGIN, folder, sizeof(folder)) != NG_OK) {
        (void)buf_add_c(error, "the folder of the modules has too long a name");
        return NG_EUNAVAILABLE;
    }
    char *last = strrchr(folder, '/');
    if (last != NULL) {
        *last = '\0';
    }
    (void)snprintf(path, sizeof(path), "%s/%s", folder, CLIENT_MODULE_NAME);
    int trusted = trust_check_path(path, TRUST_PROGRAM, error);
    if (trusted != NG_OK && trusted != NG_ENOTFOUND) {
        return NG_EUNAVAILABLE;
    }
    buf_clear(error);
    *ret = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*ret == NULL) {
        (void)buf_printf(error, "cannot load %s: %s", path, dlerror());
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}
