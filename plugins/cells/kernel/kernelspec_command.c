/* SPDX-License-Identifier: MIT */
/* kernelspec_command.c - command line and environment of a kernel. */
#include "core/base/text_choice.h"
#include "kernelspec.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Option of ipykernel: do not write runs into the user's own history. */
#define NO_HISTORY "--HistoryManager.hist_file=:memory:"

/* Fills "{connection_file}" and the like; other words in braces stay. */
static const char *fill_placeholders(const struct kernelspec *spec, const char *word,
                                     const char *connection_file, struct arena *memory)
{
    const struct {
        const char *name, *value;
    } places[] = {
        {"{connection_file}", connection_file},
        {"{resource_dir}", spec->folder},
        {"{prefix}", spec->prefix},
    };
    struct nb_text out = {0};
    const char *home = getenv("HOME");
    if (word[0] == '~' && (word[1] == '/' || word[1] == '\0') && home != NULL) {
        nb_add_word(&out, home);
        word++;
    }
    while (*word != '\0') {
        size_t skip = 0;
        for (size_t i = 0; i < NG_COUNT(places) && skip == 0; i++) {
            if (strncmp(word, places[i].name, strlen(places[i].name)) == 0) {
                nb_add_word(&out, text_or(places[i].value, ""));
                skip = strlen(places[i].name);
            }
        }
        if (skip == 0) {
            nb_add(&out, word, 1);
            skip = 1;
        }
        word += skip;
    }
    return kernelspec_keep(memory, &out);
}

/* "python", "python3", "python3.11": taken from the environment of the kernel spec. */
static bool is_python(const char *word)
{
    if (strncmp(word, "python", 6) != 0) {
        return false;
    }
    for (word += 6; *word != '\0'; word++) {
        if (!isdigit((unsigned char)*word) && *word != '.') {
            return false;
        }
    }
    return true;
}

static const char *program_of(const struct kernelspec *spec, struct arena *memory)
{
    char path[PATH_MAX];
    const char *word = spec->argv[0];
    if (is_python(word) && spec->prefix != NULL) {
        int len = snprintf(path, sizeof(path), "%s/bin/%s", spec->prefix, word);
        if (len > 0 && len < PATH_MAX && access(path, X_OK) == 0) {
            word = path;
        }
    }
    return fill_placeholders(spec, word, "", memory);
}

const char **kernelspec_command(const struct kernelspec *spec, const char *connection_file,
                                struct arena *memory)
{
    size_t count = 0;
    bool ipykernel = false;
    while (spec->argv[count] != NULL) {
        ipykernel = ipykernel || strncmp(spec->argv[count], "ipykernel", 9) == 0;
        count++;
    }
    const char **command = arena_zalloc(memory, (count + 2) * sizeof(*command));
    if (command == NULL) {
        return NULL;
    }
    command[0] = program_of(spec, memory);
    for (size_t i = 1; i < count; i++) {
        command[i] = fill_placeholders(spec, spec->argv[i], connection_file, memory);
    }
    if (ipykernel) {
        command[count] = NO_HISTORY;
    }
    return command;
}

static bool name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Expands $NAME and ${NAME}; unknown variables stay as they are. */
static const char *expand(const char *text, struct arena *memory)
{
    struct nb_text out = {0};
    while (*text != '\0') {
        bool braces = text[0] == '$' && text[1] == '{';
        const char *name = text + 1 + braces;
        size_t len = 0;
        char variable[256];
        while (text[0] == '$' && name_part(name[len])) {
            len++;
        }
        const char *value = NULL;
        if (len > 0 && len < sizeof(variable) && (!braces || name[len] == '}')) {
            memcpy(variable, name, len);
            variable[len] = '\0';
            value = getenv(variable);
        }
        if (value != NULL) {
            nb_add_word(&out, value);
            text = name + len + braces;
        } else {
            nb_add(&out, text++, 1);
        }
    }
    return kernelspec_keep(memory, &out);
}

const char **kernelspec_environment(const struct kernelspec *spec, struct arena *memory)
{
    size_t count = 0;
    while (spec->env[count] != NULL) {
        count++;
    }
    const char **env = arena_zalloc(memory, (count + 1) * sizeof(*env));
    for (size_t i = 0; env != NULL && i < count; i++) {
        env[i] = expand(spec->env[i], memory);
    }
    return env;
}
