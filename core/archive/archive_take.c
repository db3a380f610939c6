/* SPDX-License-Identifier: MIT */
/* archive_take.c - members of a line of an archive, checked. */
#include "archive.h"
#include "archive_in.h"
#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/json/json.h"

int64_t archive_take_time(struct archive_in *in, const struct ng_value *line, const char *name)
{
    int64_t number = 0;
    const struct ng_value *value = json_get(line, name);
    if (value == NULL || json_integer(value, &number) != NG_OK) {
        (void)archive_in_fail(in, "\"%s\" is missing or not a number", name);
    }
    return number;
}

uint64_t archive_take_number(struct archive_in *in, const struct ng_value *line,
                             const char *name)
{
    int64_t number = archive_take_time(in, line, name);
    if (number < 0) {
        (void)archive_in_fail(in, "\"%s\" is missing or not a number", name);
        return 0;
    }
    return (uint64_t)number;
}

static struct ng_str decode_base64(struct archive_in *in, const char *name, struct ng_str text)
{
    struct buf out;
    buf_init(&out, ARCHIVE_LINE_MAX);
    bool is_base64 = base64_decode(&out, text, BASE64_STANDARD);
    struct ng_str bytes = {"", 0};
    if (out.len > 0) {
        bytes = arena_copy(&in->arena, buf_str(&out));
    }
    if (out.rc != NG_OK || bytes.data == NULL) {
        (void)archive_in_fail(in, "out of memory");
    } else if (!is_base64) {
        (void)archive_in_fail(in, "\"%s\" is not base64", name);
    }
    buf_done(&out);
    return bytes;
}

struct ng_str archive_bytes_of(struct archive_in *in, const char *name,
                               const struct ng_value *value)
{
    const struct ng_value *coded = json_get(value, "base64");
    if (value->type == NG_TYPE_STRING) {
        return value->text;
    }
    if (value->type != NG_TYPE_OBJECT || coded == NULL || coded->type != NG_TYPE_STRING) {
        (void)archive_in_fail(in, "\"%s\" is not a string", name);
        return str_make(NULL, 0);
    }
    return decode_base64(in, name, coded->text);
}

struct ng_str archive_take_bytes(struct archive_in *in, const struct ng_value *line,
                                 const char *name)
{
    const struct ng_value *value = json_get(line, name);
    if (value == NULL) {
        (void)archive_in_fail(in, "\"%s\" is missing", name);
        return str_make(NULL, 0);
    }
    return archive_bytes_of(in, name, value);
}

bool archive_take_flag(const struct ng_value *line, const char *name)
{
    return json_is(json_get(line, name), NG_TYPE_TRUE);
}

struct ng_origin archive_take_origin(struct archive_in *in, const struct ng_value *line)
{
    struct ng_origin origin = {.has_lines = json_get(line, "added") != NULL};
    const struct {
        const char *name;
        struct ng_str *text;
    } parts[] = {
        {"run", &origin.run_id}, {"key", &origin.key_id}, {"request", &origin.request_id}};
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (json_get(line, parts[i].name) != NULL) {
            *parts[i].text = archive_take_bytes(in, line, parts[i].name);
        }
    }
    if (origin.has_lines) {
        origin.lines_added = archive_take_number(in, line, "added");
        origin.lines_removed = archive_take_number(in, line, "removed");
    }
    return origin;
}
