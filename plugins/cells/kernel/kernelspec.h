/* SPDX-License-Identifier: MIT */
/*
 * kernelspec.h - installed kernels: kernel.json files in Jupyter's search path, and the command
 * line and environment they define.
 *
 * Source: jupyter_core's paths and jupyter_client's kernel specs. Allocates with malloc().
 */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNELSPEC_H
#define NOTEGATE_PLUGIN_CELLS_KERNELSPEC_H

#include "notebook/nb.h"

#define KERNELSPECS_MAX 256
#define KERNELSPEC_FILE_MAX ((size_t)1024 * 1024)
#define KERNELSPEC_ARGS_MAX 128
#define KERNELSPEC_ENV_MAX 256
#define KERNELSPEC_NAME_MAX 128

struct kernelspec {
    char
        name[KERNELSPEC_NAME_MAX + 1]; /* name of its folder in lower case, used by notebooks */
    char *folder;                      /* absolute: {resource_dir} */
    char *display_name;                /* falls back to the name */
    char *language;                    /* "" if the file has none */
    char *prefix;                      /* environment it is installed in: {prefix} */
    char **argv;                       /* as written; NULL-terminated */
    char **env;                        /* "NAME=value", as written; NULL-terminated */
    bool message_interrupt;            /* interrupt by message instead of signal */
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
/* The command line with its placeholders filled; NULL-terminated, each word malloc'd. NULL: out
 * of memory. */
char **kernelspec_command(const struct kernelspec *spec, const char *connection_file);
/* The environment variables, with references to variables of this process expanded. */
char **kernelspec_environment(const struct kernelspec *spec);
void kernelspec_free_list(char **list); /* NULL is a no-op */

/* For tests: parses one file. False: no kernel.json, or out of memory. */
bool kernelspec_parse(struct ng_str json, struct kernelspec *ret);
void kernelspec_done(struct kernelspec *spec);

#endif
