/* SPDX-License-Identifier: MIT */
/*
 * kernelspec.h - installed kernels: kernel.json files in Jupyter's search path, and the command
 * line and environment they define.
 *
 * Source: jupyter_core's paths and jupyter_client's kernel specs.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNELSPEC_H
#define NOTEGATE_PLUGIN_CELLS_KERNELSPEC_H

#include "core/base/arena.h"
#include "notebook/nb.h"

#define KERNELSPECS_MAX 256
#define KERNELSPEC_FILE_MAX ((size_t)1024 * 1024)
#define KERNELSPEC_ARGS_MAX 128
#define KERNELSPEC_ENV_MAX 256
#define KERNELSPEC_NAME_MAX 128
/* First block of its memory: most are small. */
#define KERNELSPEC_FIRST 4096

struct kernelspec {
    char
        name[KERNELSPEC_NAME_MAX + 1]; /* name of its folder in lower case, used by notebooks */
    const char *folder;                /* absolute: {resource_dir} */
    const char *display_name;          /* falls back to the name */
    const char *language;              /* "" if the file has none */
    const char *prefix;                /* environment it is installed in: {prefix} */
    const char **argv;                 /* as written; NULL-terminated */
    const char **env;                  /* "NAME=value", as written; NULL-terminated */
    bool message_interrupt;            /* interrupt by message instead of signal */
    struct arena memory;               /* of all texts */
};

struct kernelspecs {
    struct kernelspec *items;
    size_t count;
};

/* Reads all kernel specs; the first of a name wins, invalid files are skipped. False: out of
 * memory, nothing is returned. */
bool kernelspecs_load(struct kernelspecs *ret);
void kernelspecs_done(struct kernelspecs *specs);
/* Find by name (any case), or by language (the first match). NULL: none. */
const struct kernelspec *kernelspecs_named(const struct kernelspecs *specs, struct ng_str name);
const struct kernelspec *kernelspecs_of(const struct kernelspecs *specs,
                                        struct ng_str language);
/* The command line with its placeholders filled; NULL-terminated. NULL: out of memory. */
const char **kernelspec_command(const struct kernelspec *spec, const char *connection_file,
                                struct arena *memory);
/* The environment variables, with references to variables of this process expanded. */
const char **kernelspec_environment(const struct kernelspec *spec, struct arena *memory);
/* The text in `memory`; frees it. NULL: it contains NUL, or out of memory. */
const char *kernelspec_keep(struct arena *memory, struct nb_text *text);

/* For tests: parses one file. False: no kernel.json, or out of memory. */
bool kernelspec_parse(struct ng_str json, struct kernelspec *ret);
void kernelspec_done(struct kernelspec *spec);

#endif
