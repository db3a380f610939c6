/* SPDX-License-Identifier: MIT */
/*
 * kernelspec.h - which kernels are installed: kernel.json files, found where Jupyter looks for
 * them, and what they say about starting one.
 *
 * Source: jupyter_core's paths and jupyter_client's kernel specs. Plain memory of the C
 * library.
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
    char name[KERNELSPEC_NAME_MAX + 1]; /* of its folder, lower case: what notebooks name */
    char *folder;                       /* absolute: {resource_dir} */
    char *display_name;                 /* the name where the file has none */
    char *language;                     /* "" where the file has none */
    char *prefix;                       /* the environment it belongs to: {prefix} */
    char **argv;                        /* as written; NULL at the end */
    char **env;                         /* "NAME=value", as written; NULL at the end */
    bool message_interrupt;             /* interrupted by a message, not by a signal */
};

struct kernelspecs {
    struct kernelspec *items;
    size_t count;
};

/* Reads them all, of one name the first that is found; files that are no kernel.json are passed
 * over. false: out of memory (nothing is left). */
bool kernelspecs_load(struct kernelspecs *ret);
void kernelspecs_done(struct kernelspecs *specs);
/* By name (in any case), by language (the first that has it). NULL: none. */
const struct kernelspec *kernelspecs_named(const struct kernelspecs *specs, struct ng_str name);
const struct kernelspec *kernelspecs_of(const struct kernelspecs *specs,
                                        struct ng_str language);
/* The command with its places filled, each malloc'd, NULL at the end; NULL: out of memory. */
char **kernelspec_command(const struct kernelspec *spec, const char *connection_file);
/* The variables, with those of this process put in. */
char **kernelspec_environment(const struct kernelspec *spec);
void kernelspec_free_list(char **list); /* NULL is a no-op */

/* For tests: one file. false: it is no kernel.json (or memory is out). */
bool kernelspec_parse(struct ng_str json, struct kernelspec *ret);
void kernelspec_done(struct kernelspec *spec);

#endif
