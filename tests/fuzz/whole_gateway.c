/* SPDX-License-Identifier: MIT */
/* whole_gateway.c - opens and closes a gateway with plugins and documents for a fuzz target. */
#include "whole_gateway.h"
#include "core/config/config.h"
#include "core/gateway/gateway_open.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DRAIN_MS 5000
#define SETS_MAX 16
#define FTW_FOLDERS 16

void whole_folder(char folder[WHOLE_FOLDER_SIZE])
{
    const char *place = getenv("TMPDIR");
    int len = snprintf(folder, WHOLE_FOLDER_SIZE, "%s/notegate-fuzz-XXXXXX",
                       place == NULL || place[0] == '\0' ? "/tmp" : place);
    if (len < 0 || len >= WHOLE_FOLDER_SIZE || mkdtemp(folder) == NULL) {
        abort();
    }
}

void whole_gateway_open(struct whole_gateway *whole, const char *const *sets)
{
    char data_dir[WHOLE_FOLDER_SIZE + 16];
    const char *all[SETS_MAX] = {data_dir};
    struct config_input input = {.no_file = true, .sets = all, .set_count = 1};
    struct config *config = NULL;
    struct buf error;
    for (; sets[input.set_count - 1] != NULL && input.set_count < SETS_MAX; input.set_count++) {
        all[input.set_count] = sets[input.set_count - 1];
    }
    (void)snprintf(data_dir, sizeof(data_dir), "data_dir=%s/data", whole->folder);
    (void)setenv("NOTEGATE_TEST_MODULES", NOTEGATE_MODULES, 1);
    buf_init(&error, 65536);
    if (config_load(&input, &config, &error) != NG_OK ||
        gateway_open(config, GATEWAY_FULL, 0, &whole->gateway, &error) != NG_OK) {
        (void)fprintf(stderr, "%s\n", buf_cstr(&error));
        abort();
    }
    buf_done(&error);
}

bool whole_gateway_drain(struct whole_gateway *whole)
{
    return gateway_drain(whole->gateway, DRAIN_MS);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void whole_gateway_close(struct whole_gateway *whole, bool drained)
{
    if (drained) {
        gateway_close(whole->gateway);
    }
    (void)nftw(whole->folder, remove_one, FTW_FOLDERS, FTW_DEPTH | FTW_PHYS);
}
