/* SPDX-License-Identifier: MIT */
/* call_fit.c - an answer over limits.result: of a call that only reads it is a failure, of one
 * that changes something it is cut to what fits, as that is done. */
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "gateway.h"
#include "plugin.h"

/* A text in an object is cut to this many bytes at first, and to a part of that again. */
#define FIT_TEXT_MAX 65536
#define FIT_TEXT_LEAST 16
#define FIT_TEXT_PART 16
#define FIT_OBJECT_MAX ((size_t)256 * 1024 * 1024)

static void fit_cut_value(struct call *call, struct ng_writer *writer,
                          const struct ng_value *value, size_t most)
{
    if (value->type == NG_TYPE_OBJECT || value->type == NG_TYPE_ARRAY) {
        (value->type == NG_TYPE_OBJECT ? json_object : json_array)(writer);
        for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
            if (value->type == NG_TYPE_OBJECT) {
                json_name_str(writer, item->key);
            }
            fit_cut_value(call, writer, item, most);
        }
        json_end(writer);
    } else if (value->type == NG_TYPE_STRING && value->text.len > most) {
        struct ng_str begin = utf8_cut(value->text, most);
        struct ng_str cut =
            arena_printf(&call->arena, "%.*s[... %zu bytes left out]", (int)begin.len,
                         begin.data, value->text.len - begin.len);
        json_string(writer, cut.data == NULL ? begin : cut);
    } else {
        json_copy(writer, value);
    }
}

/* Has it the form that the tool declares? */
static bool fit_conforms(struct call *call, struct ng_str text)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    struct violations found;
    found.count = 0;
    return call->tool->result == NULL ||
           (json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
            schema_check(call->tool->result, value, &call->arena, &found) == NG_OK);
}

/* The same object with shorter texts; false: none that fits. */
static bool fit_object(struct call *call, size_t room)
{
    struct result *staged = &call->staged;
    const struct ng_value *value = NULL;
    struct json_error error;
    struct ng_writer writer;
    struct buf buf;
    bool fits = false;
    if (json_parse(&call->arena, staged->text, JSON_DEPTH_DEFAULT, &value, &error) != NG_OK) {
        return false;
    }
    buf_init(&buf, FIT_OBJECT_MAX);
    for (size_t most = FIT_TEXT_MAX; most >= FIT_TEXT_LEAST && !fits; most /= FIT_TEXT_PART) {
        buf_clear(&buf);
        json_writer_init(&writer, &buf);
        fit_cut_value(call, &writer, value, most);
        fits = buf.rc == NG_OK && buf.len <= room;
    }
    struct ng_str text;
    if (fits) {
        text = arena_copy(&call->arena, buf_str(&buf));
    } else {
        text = str_make(NULL, 0);
    }
    buf_done(&buf);
    if (text.data == NULL || !fit_conforms(call, text)) {
        return false;
    }
    staged->text = text;
    return true;
}

/* Those that fit, in order. */
static size_t fit_parts(struct result *staged, size_t room)
{
    size_t left_out = 0;
    struct part **at = &staged->parts;
    staged->last_part = NULL;
    while (*at != NULL) {
        struct part *part = *at;
        if (part->data.len > room) {
            *at = part->next;
            left_out++;
            continue;
        }
        room -= part->data.len;
        staged->last_part = part;
        at = &part->next;
    }
    return left_out;
}

/* Beside an object: as a part. */
static void fit_tell(struct call *call, struct ng_str note)
{
    struct result *staged = &call->staged;
    struct part *part = arena_zalloc(&call->arena, sizeof(*part));
    if (part == NULL) {
        return;
    }
    part->kind = PART_TEXT;
    part->data = note;
    if (staged->last_part == NULL) {
        staged->parts = part;
    } else {
        staged->last_part->next = part;
    }
    staged->last_part = part;
}

static void fit_cut(struct call *call, size_t size, size_t limit)
{
    struct result *staged = &call->staged;
    struct ng_str note =
        arena_printf(&call->arena,
                     "[The call succeeded. Its answer has %zu bytes, limits.result allows %zu: "
                     "the rest is left out. Read the result in parts.]",
                     size, limit);
    if (note.data == NULL) {
        note =
            ng_str_of("[The call succeeded. Its answer is over limits.result and left out.]");
    }
    size_t room = 0;
    if (limit > note.len + 1) {
        room = limit - note.len - 1;
    }
    if (staged->is_json && (staged->text.len <= limit || fit_object(call, limit))) {
        size_t left_out = fit_parts(staged, limit - staged->text.len);
        if (left_out > 0) {
            fit_tell(call, note);
        }
        return;
    }
    struct ng_str kept;
    if (staged->is_json) {
        kept = ng_str_of("");
    } else {
        kept = utf8_cut(staged->text, room);
    }
    struct ng_str text = arena_printf(&call->arena, "%.*s%s%.*s", (int)kept.len, kept.data,
                                      kept.len > 0 ? "\n" : "", (int)note.len, note.data);
    (void)fit_parts(staged, room - kept.len);
    staged->is_json = false;
    staged->has_text = true;
    if (text.data == NULL) {
        staged->text = note;
    } else {
        staged->text = text;
    }
}

void call_fit_result(struct call *call, size_t size)
{
    size_t limit = call->gateway->limits.result;
    if (call->tool == NULL || call->read_only) {
        call_fail(call, NG_ETOOLARGE,
                  "the answer has %zu bytes, limits.result allows %zu; ask for a part of it",
                  size, limit);
        return;
    }
    fit_cut(call, size, limit);
}
