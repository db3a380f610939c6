/* SPDX-License-Identifier: MIT */
/* config_source.c - collects the values of file, environment and flags, and inserts variables
 * and files. */
#include "config_source.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Looked for where no file is named: the user's own, then the machine's. Never in the current
 * folder: it may be anybody's, and a file there could load code. */
#define CONFIG_USER_PLACE "notegate/notegate.yaml"
#define CONFIG_MACHINE_FILE "/etc/notegate/notegate.yaml"

/* Variables with the prefix that are not keys. */
#define CONFIG_ENV_TESTS "NOTEGATE_TEST_"
#define CONFIG_ENV_SERVERS "NOTEGATE_REQUIRE_SERVERS"
/* The mark in the environment of kernels and of the programs that their cells start. */
#define CONFIG_ENV_KERNEL "NOTEGATE_KERNEL"
/* The guides keep the key of a client in it. */
#define CONFIG_ENV_KEY "NOTEGATE_KEY"
/* Of the commands that print the history (api/history). */
#define CONFIG_ENV_PAGER "NOTEGATE_PAGER"

#define CONFIG_READ_STEP ((size_t)16 * 1024)

static int config_no_memory(struct buf *error)
{
    (void)buf_add_c(error, "the configuration needs more memory than is available or allowed");
    return NG_EINTERNAL;
}

int config_source_init(struct config_sources *sources, struct arena *arena,
                       char *const *variables, struct buf *error)
{
    static char *const nothing[] = {NULL};
    size_t count = 0;
    size_t bytes = 0;
    *sources = (struct config_sources){.arena = arena, .environ = nothing};
    sources->last = &sources->first;
    while (variables != NULL && variables[count] != NULL) {
        bytes += strlen(variables[count]) + 1;
        count++;
    }
    if (bytes > CONFIG_ENVIRONMENT_MAX) {
        (void)buf_printf(error, "the environment has %zu bytes; at most %zu are read", bytes,
                         CONFIG_ENVIRONMENT_MAX);
        return NG_EINVAL;
    }
    /* Copied, because names of modules' options are looked up later. */
    char **copy = arena_zalloc(arena, (count + 1) * sizeof(*copy));
    char *text = arena_alloc(arena, bytes);
    if (copy == NULL || text == NULL) {
        return config_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(variables[i]) + 1;
        memcpy(text, variables[i], len);
        copy[i] = text;
        text += len;
    }
    sources->environ = copy;
    return NG_OK;
}

struct ng_str config_source_env(const struct config_sources *sources, struct ng_str name)
{
    for (size_t i = 0; name.len > 0 && sources->environ[i] != NULL; i++) {
        const char *entry = sources->environ[i];
        if (strncmp(entry, name.data, name.len) == 0 && entry[name.len] == '=') {
            return ng_str_of(entry + name.len + 1);
        }
    }
    return str_make(NULL, 0);
}

struct config_raw *config_source_add(struct config_sources *sources, enum config_source source,
                                     struct ng_str name, struct buf *error)
{
    if (sources->count >= CONFIG_VALUES_MAX) {
        (void)buf_printf(error, "more than %d values", CONFIG_VALUES_MAX);
        return NULL;
    }
    struct config_raw *raw = arena_zalloc(sources->arena, sizeof(*raw));
    struct ng_str copy = arena_copy(sources->arena, name);
    if (raw == NULL || copy.data == NULL) {
        (void)config_no_memory(error);
        return NULL;
    }
    raw->source = source;
    raw->name = copy;
    *sources->last = raw;
    sources->last = &raw->next;
    sources->count++;
    return raw;
}

static int config_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* Everything in the file, at most `max` bytes. NG_EINVAL: errno tells why, EFBIG: more. */
static int config_slurp(int fd, size_t max, struct buf *ret)
{
    for (;;) {
        char *to = buf_reserve(ret, CONFIG_READ_STEP);
        if (to == NULL) {
            errno = ENOMEM;
            return NG_EINVAL;
        }
        size_t got = 0;
        if (fd_get(&fd, to, CONFIG_READ_STEP, &got) != NG_OK) {
            return NG_EINVAL;
        }
        if (got == 0) {
            return NG_OK;
        }
        ret->len += got;
        if (ret->len > max) {
            errno = EFBIG;
            return NG_EINVAL;
        }
    }
}

static int config_unread(const char *path, int code, struct buf *error)
{
    if (code == EFBIG) {
        (void)buf_printf(error, "%s: the file is larger than %zu bytes", path, CONFIG_FILE_MAX);
    } else {
        (void)buf_printf(error, "%s: cannot be read: %s", path, text_errno(code));
    }
    return NG_EINVAL;
}

static int config_read_file(struct config_sources *sources, int fd, const char *path,
                            struct buf *error)
{
    struct buf text;
    int rc = trust_check(fd, path, TRUST_OWN, error);
    if (rc != NG_OK) {
        return rc;
    }
    buf_init(&text, CONFIG_FILE_MAX + 2 * CONFIG_READ_STEP);
    if (config_slurp(fd, CONFIG_FILE_MAX, &text) != NG_OK) {
        rc = config_unread(path, errno, error);
    } else {
        struct ng_str copy = arena_copy(sources->arena, ng_str_of(path));
        sources->file = copy.data;
        if (copy.data == NULL) {
            rc = config_no_memory(error);
        } else {
            rc = config_yaml_read(sources, buf_str(&text), error);
        }
    }
    buf_done(&text);
    return rc;
}

/* One of the usual files. NG_ENOTFOUND: it is not there, or this user may not read it: then it
 * is meant for others. */
static int config_read_usual(struct config_sources *sources, const char *path,
                             struct buf *error)
{
    int fd = config_open(path);
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        struct ng_str copy = arena_copy(sources->arena, ng_str_of(path));
        sources->passed = copy.data;
        if (copy.data != NULL) {
            return NG_ENOTFOUND;
        }
        return config_no_memory(error);
    }
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return NG_ENOTFOUND;
        }
        return config_unread(path, errno, error);
    }
    int rc = config_read_file(sources, fd, path, error);
    (void)close(fd);
    return rc;
}

struct ng_str config_source_home(struct config_sources *sources)
{
    struct ng_str home = config_source_env(sources, ng_str_of("HOME"));
    if (home.len > 0 && home.data[0] == '/') {
        return home;
    }
    struct passwd entry;
    struct passwd *found = NULL;
    char *text = arena_alloc(sources->arena, CONFIG_PASSWD_MAX);
    if (text == NULL || getpwuid_r(geteuid(), &entry, text, CONFIG_PASSWD_MAX, &found) != 0 ||
        found == NULL) {
        return str_make(NULL, 0);
    }
    return ng_str_of(entry.pw_dir);
}

/* $XDG_CONFIG_HOME/notegate/notegate.yaml, by default below ~/.config. */
static int config_read_users(struct config_sources *sources, struct buf *error)
{
    struct ng_str base = config_source_env(sources, ng_str_of("XDG_CONFIG_HOME"));
    struct ng_str home = config_source_home(sources);
    struct ng_str path;
    if (base.len > 0 && base.data[0] == '/') {
        path = arena_printf(sources->arena, "%s/" CONFIG_USER_PLACE, base.data);
    } else if (home.len > 0) {
        path = arena_printf(sources->arena, "%s/.config/" CONFIG_USER_PLACE, home.data);
    } else {
        return NG_ENOTFOUND;
    }
    if (path.data == NULL) {
        return config_no_memory(error);
    }
    return config_read_usual(sources, path.data, error);
}

int config_source_file(struct config_sources *sources, const char *path, struct buf *error)
{
    if (path == NULL) {
        int rc = config_read_users(sources, error);
        if (rc == NG_ENOTFOUND) {
            rc = config_read_usual(sources, CONFIG_MACHINE_FILE, error);
        }
        if (rc == NG_ENOTFOUND) {
            return NG_OK;
        }
        return rc;
    }
    int fd = config_open(path);
    if (fd < 0) {
        return config_unread(path, errno, error);
    }
    int rc = config_read_file(sources, fd, path, error);
    (void)close(fd);
    return rc;
}

int config_source_environment(struct config_sources *sources, struct buf *error)
{
    for (size_t i = 0; sources->environ[i] != NULL; i++) {
        struct ng_str entry = ng_str_of(sources->environ[i]);
        const char *equal = strchr(entry.data, '=');
        if (equal == NULL || !str_begins(entry, CONFIG_ENV_PREFIX) ||
            str_begins(entry, CONFIG_ENV_TESTS)) {
            continue;
        }
        struct ng_str name = str_make(entry.data, (size_t)(equal - entry.data));
        /* Compose files and units pass empty variables for "not set". */
        if (str_is(name, CONFIG_ENV_SERVERS) || str_is(name, CONFIG_ENV_KERNEL) ||
            str_is(name, CONFIG_ENV_KEY) || str_is(name, CONFIG_ENV_PAGER) ||
            equal[1] == '\0') {
            continue;
        }
        struct config_raw *raw = config_source_add(sources, CONFIG_ENVIRONMENT, name, error);
        if (raw == NULL) {
            return NG_EINVAL;
        }
        raw->text = raw->written = ng_str_of(equal + 1);
    }
    return NG_OK;
}

int config_source_flags(struct config_sources *sources, const char *const *sets, size_t count,
                        struct buf *error)
{
    for (size_t i = 0; i < count; i++) {
        const char *equal = strchr(sets[i], '=');
        if (equal == NULL || equal == sets[i]) {
            (void)buf_printf(error, "flag %s: write it as key=value", sets[i]);
            return NG_EINVAL;
        }
        struct ng_str name = str_make(sets[i], (size_t)(equal - sets[i]));
        struct config_raw *raw = config_source_add(sources, CONFIG_FLAG, name, error);
        if (raw == NULL) {
            return NG_EINVAL;
        }
        raw->text = arena_copy(sources->arena, ng_str_of(equal + 1));
        raw->written = raw->text;
        if (raw->text.data == NULL) {
            return config_no_memory(error);
        }
    }
    return NG_OK;
}

/* The text between "${" and "}". */
static int config_expand_one(struct config_sources *sources, struct ng_str what,
                             struct buf *out, struct buf *error)
{
    if (!str_begins(what, "file:")) {
        struct ng_str value = config_source_env(sources, what);
        if (value.data == NULL) {
            (void)buf_printf(error, "${%.*s} is not set in the environment", (int)what.len,
                             what.data);
            return NG_EINVAL;
        }
        (void)buf_add_str(out, value);
        return NG_OK;
    }
    struct ng_str path = arena_copy(sources->arena, str_make(what.data + 5, what.len - 5));
    if (path.data == NULL) {
        return config_no_memory(error);
    }
    if (path.data[0] != '/') {
        (void)buf_printf(error, "${file:%s} needs a whole path that begins with /", path.data);
        return NG_EINVAL;
    }
    struct buf text;
    buf_init(&text, CONFIG_SECRET_MAX + 2 * CONFIG_READ_STEP);
    int fd = config_open(path.data);
    int rc = NG_EINVAL;
    if (fd >= 0) {
        rc = config_slurp(fd, CONFIG_SECRET_MAX, &text);
    }
    int code = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (rc != NG_OK) {
        (void)buf_printf(error, "${file:%s} cannot be read: %s", path.data, text_errno(code));
    } else {
        /* Editors and secret stores end a file with a line feed that is not meant. */
        size_t len = text.len;
        while (len > 0 && (text.data[len - 1] == '\n' || text.data[len - 1] == '\r')) {
            len--;
        }
        (void)buf_add(out, text.data, len);
    }
    buf_done(&text);
    return rc;
}

int config_source_expand(struct config_sources *sources, struct ng_str text, struct ng_str *ret,
                         struct buf *error)
{
    struct buf out;
    int rc = NG_OK;
    buf_init(&out, CONFIG_VALUE_MAX);
    for (size_t i = 0; i < text.len && rc == NG_OK;) {
        struct ng_str rest = str_make(text.data + i, text.len - i);
        if (str_begins(rest, "$${")) {
            (void)buf_add_c(&out, "${");
            i += 3;
        } else if (str_begins(rest, "${")) {
            const char *end = memchr(rest.data, '}', rest.len);
            if (end == NULL) {
                (void)buf_add_c(error, "${ has no } behind it (write $${ for a plain one)");
                rc = NG_EINVAL;
                break;
            }
            size_t len = (size_t)(end - rest.data);
            rc = config_expand_one(sources, str_make(rest.data + 2, len - 2), &out, error);
            i += len + 1;
        } else {
            (void)buf_add_char(&out, text.data[i]);
            i++;
        }
    }
    if (rc == NG_OK && out.rc != NG_OK) {
        (void)buf_printf(error, "the value is longer than %zu bytes", CONFIG_VALUE_MAX);
        rc = NG_EINVAL;
    }
    if (rc == NG_OK && memchr(buf_cstr(&out), '\0', out.len) != NULL) {
        (void)buf_add_c(error, "the value holds a NUL");
        rc = NG_EINVAL;
    }
    if (rc == NG_OK) {
        *ret = arena_copy(sources->arena, str_make(buf_cstr(&out), out.len));
        if (ret->data == NULL) {
            rc = config_no_memory(error);
        }
    }
    buf_done(&out);
    return rc;
}

void config_source_where(const struct config_sources *sources, const struct config_raw *raw,
                         struct buf *error)
{
    switch (raw->source) {
    case CONFIG_FILE:
        (void)buf_printf(error, "%s:%zu: ", sources->file, raw->line);
        break;
    case CONFIG_ENVIRONMENT:
        (void)buf_printf(error, "environment %s: ", raw->name.data);
        break;
    case CONFIG_FLAG:
        (void)buf_printf(error, "flag %s: ", raw->name.data);
        break;
    case CONFIG_DEFAULT:
        break;
    }
}
