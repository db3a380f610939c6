/* SPDX-License-Identifier: MIT */
/* cases_read.c - reads a file of cases; each fault is named with its case and member. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cases.h"
#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/key.h"

#define CASES_READ_STEP ((size_t)64 * 1024)

struct cases_member {
    const char *name;
    enum ng_type type; /* NG_TYPE_ABSENT: any */
    bool required;
};

static const struct cases_member cases_members[] = {
    {"name", NG_TYPE_STRING, true},   {"tool", NG_TYPE_STRING, true},
    {"args", NG_TYPE_OBJECT, false},  {"agent", NG_TYPE_STRING, false},
    {"space", NG_TYPE_STRING, false}, {"role", NG_TYPE_STRING, false},
    {"mode", NG_TYPE_STRING, false},  {"expect", NG_TYPE_OBJECT, true},
};

static const struct cases_member cases_expectations[] = {
    {"result", NG_TYPE_ABSENT, false},
    {"text", NG_TYPE_STRING, false},
    {"error", NG_TYPE_STRING, false},
    {"message", NG_TYPE_STRING, false},
};

/* Place of a fault: "FILE: case 2: ". */
struct cases_place {
    const char *path;
    size_t number;
    struct buf *error;
};

__attribute__((format(printf, 2, 3))) static int cases_refuse(const struct cases_place *place,
                                                              const char *format, ...)
{
    va_list args;
    (void)buf_printf(place->error, "%s: case %zu: ", place->path, place->number);
    va_start(args, format);
    (void)buf_vprintf(place->error, format, args);
    va_end(args);
    return NG_EINVAL;
}

/* ---- members ---- */

static int cases_refuse_unknown(const struct cases_place *place, const char *object,
                                struct ng_str name, const struct cases_member *members,
                                size_t count)
{
    (void)cases_refuse(place, "unknown member \"%.*s\"; %s may have ", (int)name.len, name.data,
                       object);
    for (size_t i = 0; i < count; i++) {
        (void)buf_printf(place->error, "%s%s", text_if(i > 0, ", "), members[i].name);
    }
    return NG_EINVAL;
}

/* Has the object only these members, of these types, and all that are required? */
static int cases_check_members(const struct cases_place *place, const char *object,
                               const struct ng_value *value, const struct cases_member *members,
                               size_t count)
{
    for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
        size_t i = 0;
        while (i < count && !str_is(item->key, members[i].name)) {
            i++;
        }
        if (i == count) {
            return cases_refuse_unknown(place, object, item->key, members, count);
        }
        if (members[i].type != NG_TYPE_ABSENT && item->type != members[i].type) {
            return cases_refuse(place, "\"%s\" must be %s", members[i].name,
                                members[i].type == NG_TYPE_OBJECT ? "an object" : "a string");
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].required && json_get(value, members[i].name) == NULL) {
            return cases_refuse(place, "\"%s\" is missing", members[i].name);
        }
    }
    return NG_OK;
}

static bool cases_name_valid(struct ng_str name)
{
    bool valid = name.len > 0 && name.len <= CASES_NAME_MAX;
    for (size_t i = 0; valid && i < name.len; i++) {
        valid = !str_is_control(name.data[i]);
    }
    return valid;
}

static int cases_read_caller(const struct cases_place *place, const struct ng_value *value,
                             struct plugin_case *ret)
{
    struct ng_str role = json_get_text(value, "role");
    struct ng_str mode = json_get_text(value, "mode");
    ret->agent = json_get_text(value, "agent");
    ret->space = json_get_text(value, "space");
    ret->role = NG_ROLE_ADMIN;
    ret->mode = NG_MODE_AGENT;
    if (ret->agent.data != NULL && !call_name_valid(ret->agent)) {
        return cases_refuse(place, "\"agent\" must be 1 to 64 of A-Z a-z 0-9 . _ @ -");
    }
    /* ~NAME is an agent's own. */
    size_t own = str_begins(ret->space, "~") ? 1 : 0;
    if (ret->space.data != NULL &&
        !call_name_valid(str_make(ret->space.data + own, ret->space.len - own))) {
        return cases_refuse(place, "\"space\" must be 1 to 64 of A-Z a-z 0-9 . _ @ -, or ~ and "
                                   "the name of an agent");
    }
    if (role.data != NULL && !key_parse_role(role, &ret->role)) {
        return cases_refuse(place, "\"role\" must be reader, writer or admin");
    }
    if (mode.data != NULL && !key_parse_mode(mode, &ret->mode)) {
        return cases_refuse(place, "\"mode\" must be ask, edit or agent");
    }
    return NG_OK;
}

static int cases_read_expect(const struct cases_place *place, const struct ng_value *expect,
                             struct plugin_case *ret)
{
    int rc = cases_check_members(place, "\"expect\"", expect, cases_expectations,
                                 NG_COUNT(cases_expectations));
    if (rc != NG_OK) {
        return rc;
    }
    ret->expect = expect;
    ret->result = json_get(expect, "result");
    ret->text = json_get(expect, "text");
    ret->error = json_get(expect, "error");
    ret->message = json_get_text(expect, "message");
    int kinds = (ret->result != NULL) + (ret->text != NULL) + (ret->error != NULL);
    if (kinds != 1) {
        return cases_refuse(place, "\"expect\" must have one of result, text and error");
    }
    if (ret->message.data != NULL && ret->error == NULL) {
        return cases_refuse(place, "\"message\" of \"expect\" needs \"error\"");
    }
    return NG_OK;
}

static int cases_read_one(const struct cases_place *place, const struct ng_value *value,
                          struct plugin_case *ret)
{
    if (value->type != NG_TYPE_OBJECT) {
        return cases_refuse(place, "a case must be an object");
    }
    int rc =
        cases_check_members(place, "a case", value, cases_members, NG_COUNT(cases_members));
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *args = json_get(value, "args");
    ret->name = json_get_text(value, "name");
    ret->tool = json_get_text(value, "tool");
    ret->args = args != NULL ? args->text : ng_str_of("{}");
    if (!cases_name_valid(ret->name)) {
        return cases_refuse(place, "\"name\" must be one line of 1 to %d bytes",
                            CASES_NAME_MAX);
    }
    rc = cases_read_caller(place, value, ret);
    if (rc != NG_OK) {
        return rc;
    }
    return cases_read_expect(place, json_get(value, "expect"), ret);
}

/* ---- the file ---- */

static int cases_read_list(struct arena *arena, const char *path, const struct ng_value *array,
                           struct cases *ret, struct buf *error)
{
    struct cases_place place = {.path = path, .error = error};
    if (array->type != NG_TYPE_ARRAY || array->count == 0 || array->count > CASES_MAX) {
        (void)buf_printf(error, "%s: the file must be a JSON array of 1 to %d cases", path,
                         CASES_MAX);
        return NG_EINVAL;
    }
    struct plugin_case *list = arena_zalloc(arena, array->count * sizeof(*list));
    if (list == NULL) {
        return NG_EINTERNAL;
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        place.number++;
        int rc = cases_read_one(&place, item, &list[place.number - 1]);
        if (rc != NG_OK) {
            return rc;
        }
    }
    *ret = (struct cases){list, array->count};
    return NG_OK;
}

/* The whole file. NG_EINVAL: errno tells why; EFBIG: it is too large. */
static int cases_read_text(const char *path, struct buf *text)
{
    size_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int rc = fd >= 0 ? NG_OK : NG_EINVAL;
    while (rc == NG_OK && got > 0) {
        char *to = buf_reserve(text, CASES_READ_STEP);
        if (to == NULL) {
            rc = NG_EINTERNAL;
        } else if (fd_get(&fd, to, CASES_READ_STEP, &got) != NG_OK) {
            rc = NG_EINVAL;
        } else {
            text->len += got;
        }
        if (text->len > CASES_FILE_MAX) {
            errno = EFBIG;
            rc = NG_EINVAL;
        }
    }
    int number = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = number;
    return rc;
}

static int cases_refuse_file(const char *path, int code, struct buf *error)
{
    if (code == EFBIG) {
        (void)buf_printf(error, "%s: the file is larger than %zu bytes", path, CASES_FILE_MAX);
    } else {
        (void)buf_printf(error, "%s: cannot be read: %s", path, text_errno(code));
    }
    return NG_EINVAL;
}

int cases_read(struct arena *arena, const char *path, struct cases *ret, struct buf *error)
{
    struct buf text;
    struct json_error fault;
    const struct ng_value *value = NULL;
    buf_init(&text, CASES_FILE_MAX + 2 * CASES_READ_STEP);
    int rc = cases_read_text(path, &text);
    if (rc == NG_EINVAL) {
        rc = cases_refuse_file(path, errno, error);
    }
    if (rc == NG_OK) {
        rc = json_parse(arena, json_skip_mark(buf_str(&text)), JSON_DEPTH_DEFAULT, &value,
                        &fault);
        if (rc == NG_OK) {
            rc = cases_read_list(arena, path, value, ret, error);
        } else if (fault.code != NG_EINTERNAL) {
            (void)buf_printf(error, "%s: not JSON: line %zu, column %zu: %s", path, fault.line,
                             fault.column, fault.message);
            rc = NG_EINVAL;
        }
    }
    buf_done(&text);
    if (rc == NG_EINTERNAL) {
        buf_clear(error);
        (void)buf_printf(error, "%s: out of memory for the cases", path);
    }
    return rc;
}
