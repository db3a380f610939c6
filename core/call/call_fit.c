/* SPDX-License-Identifier: MIT */
/* call_fit.c - an answer over tools.max_answer or limits.result. A text over the first is cut
 * at a line. Otherwise it is a failure of a call that only reads; of one that changes
 * something it is cut to what fits, as that is done. */
#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "gateway.h"
#include "plugin.h"

/* A text in an object is cut to this many bytes at first, and to a part of that again. */
#define FIT_TEXT_MAX 65536
#define FIT_TEXT_LEAST 16
#define FIT_TEXT_PART 16
#define FIT_OBJECT_MAX ((size_t)256 * 1024 * 1024)
/* The last line of a text that was cut. */
#define FIT_NOTE_MAX 160

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

static struct ng_str fit_note(struct call *call, size_t size, const char *key, size_t limit)
{
    struct ng_str note =
        arena_printf(&call->arena,
                     "[The call succeeded. Its answer has %zu bytes, %s allows %zu: "
                     "the rest is left out. Read the result in parts.]",
                     size, key, limit);
    return str_or(note, ng_str_of("[The call succeeded. Its answer is too large for one.]"));
}

static void fit_cut(struct call *call, size_t size, size_t limit)
{
    struct result *staged = &call->staged;
    struct ng_str note = fit_note(call, size, "limits.result", limit);
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

static void fit_fail(struct call *call, size_t size, const char *key, size_t limit)
{
    call_fail(call, NG_ETOOLARGE,
              "the answer has %zu bytes, %s allows %zu; ask for a part of it", size, key,
              limit);
}

/* The beginning of a text that fits: whole lines, unless the next line alone does not fit. */
static struct ng_str fit_lines(struct ng_str text, size_t room, bool *ret_inside)
{
    struct ng_str kept = utf8_cut(text, room);
    const char *last = memrchr(kept.data, '\n', kept.len);
    size_t line = last == NULL ? 0 : (size_t)(last - kept.data) + 1;
    const char *end = memchr(text.data + kept.len, '\n', text.len - kept.len);
    size_t next = end == NULL ? text.len : (size_t)(end - text.data);
    *ret_inside = next - line > room;
    if (!*ret_inside && next > kept.len) {
        kept.len = line > 0 ? line - 1 : 0; /* the note begins a line */
    }
    return kept;
}

/* Cuts the text to `limit` bytes, the last line of which says so. */
static void fit_text(struct call *call, size_t limit)
{
    struct result *staged = &call->staged;
    size_t size = staged->text.len;
    bool inside = false;
    struct ng_str kept = fit_lines(staged->text, limit - FIT_NOTE_MAX, &inside);
    char *text = arena_alloc(&call->arena, limit);
    if (text == NULL) {
        staged->text = kept;
        return;
    }
    memcpy(text, kept.data, kept.len);
    int len = snprintf(text + kept.len, FIT_NOTE_MAX,
                       "\n[cut %s, after %zu of %zu bytes (tools.max_answer); ask for a part]",
                       inside ? "inside this line" : "here", kept.len, size);
    staged->text = str_make(text, kept.len + (size_t)len);
}

/* An object of a call that changed something: with shorter texts, else as a note. */
static void fit_changed(struct call *call, size_t limit)
{
    struct result *staged = &call->staged;
    struct ng_str note = fit_note(call, staged->text.len, "tools.max_answer", limit);
    if (!fit_object(call, limit)) {
        staged->is_json = false;
        staged->text = note;
    }
}

static bool fit_is_bounded(const struct call *call)
{
    return call->tool != NULL && (call->options & CALL_RAW_ANSWER) == 0;
}

size_t call_answer_max(const struct call *call)
{
    size_t result = call->gateway->limits.result;
    size_t answer = call->gateway->limits.answer;
    return fit_is_bounded(call) && answer < result ? answer : result;
}

static size_t fit_size(const struct result *staged)
{
    size_t size = staged->text.len;
    for (const struct part *part = staged->parts; part != NULL; part = part->next) {
        size += part->data.len;
    }
    return size;
}

void call_fit_result(struct call *call)
{
    struct result *staged = &call->staged;
    size_t answer = call->gateway->limits.answer;
    size_t result = call->gateway->limits.result;
    if (fit_is_bounded(call) && staged->text.len > answer && answer < result) {
        if (!staged->is_json) {
            fit_text(call, answer);
        } else if (call->read_only) {
            fit_fail(call, staged->text.len, "tools.max_answer", answer);
        } else {
            fit_changed(call, answer);
        }
    }
    size_t size = fit_size(staged);
    if (staged->rc != NG_OK || size <= result) {
        return;
    }
    if (call->tool == NULL || call->read_only) {
        fit_fail(call, size, "limits.result", result);
    } else {
        fit_cut(call, size, result);
    }
}
