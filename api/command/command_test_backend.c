/* SPDX-License-Identifier: MIT */
/* command_test_backend.c - notegate test-backend: the contract suite on a documents backend. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "core/base/text_choice.h"
#include "core/module/loader.h"

/* Beside the folder of the backends. */
#define CONTRACT_PROGRAM "notegate-contract"
#define CONTRACT_PATH_MAX 4096

static int contract_path(char path[CONTRACT_PATH_MAX])
{
    char folder[CONTRACT_PATH_MAX - sizeof("/../" CONTRACT_PROGRAM)];
    if (loader_default_folders(NG_KIND_DOCUMENTS, folder, sizeof(folder)) != NG_OK) {
        return NG_ETOOLARGE;
    }
    (void)snprintf(path, CONTRACT_PATH_MAX, "%s/../" CONTRACT_PROGRAM, folder);
    return NG_OK;
}

int command_test_backend(struct command_line *line)
{
    char path[CONTRACT_PATH_MAX];
    char program[] = CONTRACT_PROGRAM;
    char **words = arena_zalloc(&line->arena, (line->word_count + 2) * sizeof(*words));
    if (words == NULL || contract_path(path) != NG_OK) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    words[0] = program;
    for (size_t i = 0; i < line->word_count; i++) {
        words[i + 1] = (char *)(uintptr_t)line->words[i]; /* execv() changes none of them */
    }
    (void)execv(path, words);
    command_error("%s cannot be started: %s; it is installed with notegate", path,
                  text_errno(errno));
    return COMMAND_FAILED;
}
