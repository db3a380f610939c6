/* SPDX-License-Identifier: MIT */
/* kernelspec.c - finds and parses kernel.json files. */
#include "kernelspec.h"
#include "core/base/text_choice.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_MAX 64

/* ---- one file ---- */

const char *kernelspec_keep(struct arena *memory, struct nb_text *text)
{
    struct ng_str said = nb_text_str(text);
    const char *kept = NULL;
    memory->failed |= text->failed;
    if (!text->failed && memchr(said.data, '\0', said.len) == NULL) {
        kept = arena_copy(memory, said).data;
    }
    nb_text_done(text);
    return kept;
}

/* Decodes a string. NULL: not a string, contains NUL, or out of memory. */
static const char *string_of(struct kernelspec *spec, struct ng_str json, struct nb_span value)
{
    struct nb_text text = {0};
    if (value.len < 2 || json.data[value.at] != '"') {
        return NULL;
    }
    nb_decode(&text, json, value);
    return kernelspec_keep(&spec->memory, &text);
}

static bool read_argv(struct ng_str json, struct nb_span array, struct kernelspec *spec)
{
    struct nb_walk walk = nb_walk_into(json, array);
    struct nb_span value;
    size_t count = 0;
    if (array.len == 0 || json.data[array.at] != '[') {
        return false;
    }
    spec->argv = arena_zalloc(&spec->memory, (KERNELSPEC_ARGS_MAX + 1) * sizeof(*spec->argv));
    while (spec->argv != NULL && nb_walk_element(&walk, &value)) {
        if (count == KERNELSPEC_ARGS_MAX) {
            return false;
        }
        spec->argv[count] = string_of(spec, json, value);
        if (spec->argv[count++] == NULL) {
            return false;
        }
    }
    return count > 0 && spec->argv[0][0] != '\0';
}

static void read_env(struct ng_str json, struct nb_span object, struct kernelspec *spec)
{
    struct nb_walk walk = nb_walk_into(json, object);
    struct nb_span name;
    struct nb_span value;
    size_t count = 0;
    spec->env = arena_zalloc(&spec->memory, (KERNELSPEC_ENV_MAX + 1) * sizeof(*spec->env));
    if (spec->env == NULL || object.len == 0 || json.data[object.at] != '{') {
        return;
    }
    while (nb_walk_member(&walk, &name, &value) && count < KERNELSPEC_ENV_MAX) {
        struct nb_text text = {0};
        if (json.data[value.at] == '"') {
            nb_decode(&text, json, name);
            nb_add_word(&text, "=");
            nb_decode(&text, json, value);
            spec->env[count] = kernelspec_keep(&spec->memory, &text);
            count += spec->env[count] != NULL;
        }
    }
}

bool kernelspec_parse(struct ng_str json, struct kernelspec *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->memory.first = KERNELSPEC_FIRST;
    if (json.len == 0 || json.data[0] != '{' || !nb_check(json)) {
        return false;
    }
    struct nb_span top = {0, json.len};
    struct nb_span mode = nb_member(json, top, "interrupt_mode");
    ret->display_name = string_of(ret, json, nb_member(json, top, "display_name"));
    ret->language = text_or(string_of(ret, json, nb_member(json, top, "language")), "");
    ret->message_interrupt = nb_is_word(json, mode, "message");
    bool good = read_argv(json, nb_member(json, top, "argv"), ret);
    read_env(json, nb_member(json, top, "env"), ret);
    if (!good || ret->memory.failed) {
        kernelspec_done(ret);
        return false;
    }
    return true;
}

void kernelspec_done(struct kernelspec *spec)
{
    arena_done(&spec->memory);
    memset(spec, 0, sizeof(*spec));
}

/* ---- search path ---- */

/* Folders with a subfolder "kernels", in order of precedence. */
struct search_path {
    char folders[FOLDERS_MAX][PATH_MAX];
    char prefixes[FOLDERS_MAX][PATH_MAX];
    size_t count;
};

static void add_folder(struct search_path *places, const char *prefix, const char *below)
{
    if (prefix == NULL || prefix[0] != '/' || places->count == FOLDERS_MAX) {
        return;
    }
    int len = snprintf(places->folders[places->count], PATH_MAX, "%s%s", prefix, below);
    int prefix_len = snprintf(places->prefixes[places->count], PATH_MAX, "%s", prefix);
    if (len > 0 && len < PATH_MAX && prefix_len < PATH_MAX) {
        places->count++;
    }
}

static void add_listed(struct search_path *places, const char *list)
{
    char folder[PATH_MAX];
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ":");
        if (len > 0 && len < sizeof(folder)) {
            memcpy(folder, list, len);
            folder[len] = '\0';
            add_folder(places, folder, "");
        }
        list += len;
        list += *list == ':';
    }
}

static void add_user(struct search_path *places)
{
    char folder[PATH_MAX];
    const char *home = getenv("HOME");
    const char *data = getenv("JUPYTER_DATA_DIR");
    const char *xdg = getenv("XDG_DATA_HOME");
    if (data != NULL && data[0] != '\0') {
        add_folder(places, data, "");
    } else if (xdg != NULL && xdg[0] != '\0') {
        add_folder(places, xdg, "/jupyter");
    }
    if (home != NULL && snprintf(folder, sizeof(folder), "%s/.local", home) < PATH_MAX) {
        add_folder(places, folder, "/share/jupyter");
    }
}

/* The environment of the first python3 on PATH. */
static void add_python(struct search_path *places)
{
    char path[PATH_MAX];
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ":");
        int length = snprintf(path, sizeof(path), "%.*s/python3", (int)len, list);
        if (len > 4 && length > 0 && length < PATH_MAX && access(path, X_OK) == 0 &&
            memcmp(list + len - 4, "/bin", 4) == 0) {
            path[len - 4] = '\0';
            add_folder(places, path, "/share/jupyter");
            return;
        }
        list += len;
        list += *list == ':';
    }
}

static void find_search_path(struct search_path *places)
{
    const char *venv = getenv("VIRTUAL_ENV");
    const char *conda = getenv("CONDA_PREFIX");
    const char *prefer = getenv("JUPYTER_PREFER_ENV_PATH");
    const char *home = getenv("HOME");
    bool env_first = venv != NULL || conda != NULL || (prefer != NULL && prefer[0] == '1');
    places->count = 0;
    add_listed(places, getenv("JUPYTER_PATH"));
    if (!env_first) {
        add_user(places);
    }
    add_folder(places, venv, "/share/jupyter");
    add_folder(places, conda, "/share/jupyter");
    add_python(places);
    if (env_first) {
        add_user(places);
    }
    add_folder(places, "/usr/local", "/share/jupyter");
    add_folder(places, "/usr", "/share/jupyter");
    add_folder(places, home, "/.ipython");
}

/* ---- loading ---- */

static struct nb_text read_file(const char *path)
{
    struct nb_text text = {0};
    char block[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        text.failed = true;
        return text;
    }
    ssize_t got;
    while ((got = read(fd, block, sizeof(block))) > 0 && text.len <= KERNELSPEC_FILE_MAX) {
        nb_add(&text, block, (size_t)got);
    }
    (void)close(fd);
    text.failed = text.failed || got != 0;
    return text;
}

static bool name_good(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > KERNELSPEC_NAME_MAX || name[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!(isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-')) {
            return false;
        }
    }
    return true;
}

static bool same_name(const char *name, struct ng_str other)
{
    return strlen(name) == other.len && strncasecmp(name, other.data, other.len) == 0;
}

const struct kernelspec *kernelspecs_named(const struct kernelspecs *specs, struct ng_str name)
{
    for (size_t i = 0; i < specs->count; i++) {
        if (same_name(specs->items[i].name, name)) {
            return &specs->items[i];
        }
    }
    return NULL;
}

const struct kernelspec *kernelspecs_of(const struct kernelspecs *specs, struct ng_str language)
{
    for (size_t i = 0; language.len > 0 && i < specs->count; i++) {
        if (same_name(specs->items[i].language, language)) {
            return &specs->items[i];
        }
    }
    return NULL;
}

/* False: out of memory. */
static bool read_spec(struct kernelspecs *specs, const char *folder, const char *prefix,
                      const char *name)
{
    char path[PATH_MAX];
    struct kernelspec spec;
    int len = snprintf(path, sizeof(path), "%s/kernels/%s/kernel.json", folder, name);
    if (!name_good(name) || len < 0 || len >= PATH_MAX || specs->count == KERNELSPECS_MAX ||
        kernelspecs_named(specs, ng_str_of(name)) != NULL) {
        return true;
    }
    struct nb_text text = read_file(path);
    bool good = !text.failed && kernelspec_parse(nb_text_str(&text), &spec);
    nb_text_done(&text);
    if (!good) {
        return true;
    }
    path[len - (int)strlen("/kernel.json")] = '\0';
    for (size_t i = 0; name[i] != '\0'; i++) {
        spec.name[i] = (char)tolower((unsigned char)name[i]);
    }
    spec.folder = arena_copy(&spec.memory, ng_str_of(path)).data;
    spec.prefix = arena_copy(&spec.memory, ng_str_of(prefix)).data;
    if (spec.display_name == NULL) {
        spec.display_name = arena_copy(&spec.memory, ng_str_of(name)).data;
    }
    struct kernelspec *items =
        realloc(specs->items, (specs->count + 1) * sizeof(*specs->items));
    if (items != NULL) {
        specs->items = items;
    }
    if (items == NULL || spec.memory.failed) {
        kernelspec_done(&spec);
        return false;
    }
    items[specs->count++] = spec;
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool read_folder(struct kernelspecs *specs, const char *folder, const char *prefix)
{
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    bool good = true;
    int len = snprintf(path, sizeof(path), "%s/kernels", folder);
    if (len < 0 || len >= PATH_MAX) {
        return true;
    }
    int count = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        good = good && read_spec(specs, folder, prefix, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return good;
}

bool kernelspecs_load(struct kernelspecs *ret)
{
    bool good = true;
    memset(ret, 0, sizeof(*ret));
    struct search_path *places = malloc(sizeof(*places));
    if (places == NULL) {
        return false;
    }
    find_search_path(places);
    for (size_t i = 0; i < places->count && good; i++) {
        good = read_folder(ret, places->folders[i], places->prefixes[i]);
    }
    free(places);
    if (!good) {
        kernelspecs_done(ret);
    }
    return good;
}

void kernelspecs_done(struct kernelspecs *specs)
{
    for (size_t i = 0; i < specs->count; i++) {
        kernelspec_done(&specs->items[i]);
    }
    free(specs->items);
    memset(specs, 0, sizeof(*specs));
}
