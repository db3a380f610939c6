/* SPDX-License-Identifier: MIT */
/* output.c - collects what a cell puts out, within a cap, and writes it as a notebook keeps it.
 */
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outputs_begin(struct outputs *outputs, size_t cap)
{
    memset(outputs, 0, sizeof(*outputs));
    outputs->cap = cap;
}

void outputs_continue(struct outputs *outputs, const struct outputs *before)
{
    outputs_begin(outputs, before->cap);
    outputs->bytes = before->bytes;
}

static void output_done(struct output *output)
{
    nb_text_done(&output->text);
    nb_text_done(&output->metadata);
}

static void outputs_clear(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        output_done(&outputs->items[i]);
    }
    outputs->count = 0;
    outputs->bytes = 0;
    outputs->dropped = 0;
    outputs->clear_on_next = false;
    outputs->cleared = true;
}

void outputs_done(struct outputs *outputs)
{
    outputs_clear(outputs);
    free(outputs->items);
    nb_text_done(&outputs->ename);
    nb_text_done(&outputs->evalue);
    memset(outputs, 0, sizeof(*outputs));
}

/* Room for one more of this size; NULL: it is not kept. */
static struct output *output_add(struct outputs *outputs, enum output_kind kind, size_t bytes)
{
    if (outputs->count == OUTPUTS_MAX || bytes > outputs->cap ||
        outputs->bytes > outputs->cap - bytes) {
        outputs->dropped += bytes;
        return NULL;
    }
    if (outputs->count == outputs->size) {
        size_t size = outputs->size == 0 ? 8 : outputs->size * 2;
        struct output *items = realloc(outputs->items, size * sizeof(*items));
        if (items == NULL) {
            outputs->failed = true;
            return NULL;
        }
        outputs->items = items;
        outputs->size = size;
    }
    struct output *output = &outputs->items[outputs->count++];
    memset(output, 0, sizeof(*output));
    output->kind = kind;
    output->count = -1;
    outputs->bytes += bytes;
    return output;
}

/* The cut of a text to `len` bytes that splits no character. */
static size_t cut_at(struct ng_str text, size_t len)
{
    if (len >= text.len) {
        return text.len;
    }
    while (len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

static void add_stream(struct outputs *outputs, enum output_kind kind, struct ng_str text)
{
    struct output *last = outputs->count > 0 ? &outputs->items[outputs->count - 1] : NULL;
    size_t room = outputs->cap > outputs->bytes ? outputs->cap - outputs->bytes : 0;
    size_t len = cut_at(text, room);
    outputs->dropped += text.len - len;
    if (len == 0) {
        return;
    }
    if (last != NULL && last->kind == kind) {
        outputs->bytes += len;
    } else {
        last = output_add(outputs, kind, len);
    }
    if (last != NULL) {
        nb_add(&last->text, text.data, len);
        outputs->failed = outputs->failed || last->text.failed;
    }
}

static struct nb_span whole_of(struct ng_str json)
{
    struct nb_span span = {0, json.len};
    return span;
}

static bool is_object(struct ng_str json, struct nb_span value)
{
    return value.len > 0 && json.data[value.at] == '{';
}

static void take_display_id(struct ng_str content, char id[OUTPUT_DISPLAY_ID_MAX + 1])
{
    struct nb_span transient = nb_member(content, whole_of(content), "transient");
    struct nb_span value = nb_member(content, transient, "display_id");
    struct nb_text text = {0};
    id[0] = '\0';
    if (value.len > 2 && content.data[value.at] == '"') {
        nb_decode(&text, content, value);
        if (!text.failed && text.len <= OUTPUT_DISPLAY_ID_MAX &&
            memchr(text.data, '\0', text.len) == NULL) {
            memcpy(id, text.data, text.len);
            id[text.len] = '\0';
        }
        nb_text_done(&text);
    }
}

/* The object, or an empty one instead of what is none. */
static struct ng_str object_of(struct ng_str json, struct nb_span value)
{
    return is_object(json, value) ? nb_bytes(json, value) : ng_str_of("{}");
}

static void add_display(struct outputs *outputs, enum output_kind kind, struct ng_str content)
{
    struct ng_str data = object_of(content, nb_member(content, whole_of(content), "data"));
    struct ng_str metadata =
        object_of(content, nb_member(content, whole_of(content), "metadata"));
    struct nb_span count = nb_member(content, whole_of(content), "execution_count");
    struct output *output = output_add(outputs, kind, data.len + metadata.len);
    if (output == NULL) {
        return;
    }
    nb_add_str(&output->text, data);
    nb_add_str(&output->metadata, metadata);
    take_display_id(content, output->display_id);
    if (!nb_integer(content, count, &output->count)) {
        output->count = -1;
    }
    outputs->failed = outputs->failed || output->text.failed || output->metadata.failed;
}

void outputs_add_error(struct outputs *outputs, struct ng_str content)
{
    struct output *output = output_add(outputs, OUTPUT_ERROR, content.len);
    outputs->has_error = true;
    nb_text_done(&outputs->ename);
    nb_text_done(&outputs->evalue);
    (void)nb_decode_lines(&outputs->ename, content,
                          nb_member(content, whole_of(content), "ename"));
    (void)nb_decode_lines(&outputs->evalue, content,
                          nb_member(content, whole_of(content), "evalue"));
    if (output != NULL) {
        nb_add_str(&output->text, content);
        outputs->failed = outputs->failed || output->text.failed;
    }
}

static void take_stream(struct outputs *outputs, struct ng_str content)
{
    struct nb_span name = nb_member(content, whole_of(content), "name");
    struct nb_span value = nb_member(content, whole_of(content), "text");
    struct nb_text text = {0};
    (void)nb_decode_lines(&text, content, value);
    outputs->failed = outputs->failed || text.failed;
    add_stream(outputs, nb_is_word(content, name, "stderr") ? OUTPUT_STDERR : OUTPUT_STDOUT,
               nb_text_str(&text));
    nb_text_done(&text);
}

static void update_displays(struct outputs *outputs, struct ng_str content)
{
    char id[OUTPUT_DISPLAY_ID_MAX + 1];
    take_display_id(content, id);
    for (size_t i = 0; id[0] != '\0' && i < outputs->count; i++) {
        struct output *output = &outputs->items[i];
        if (strcmp(output->display_id, id) != 0) {
            continue;
        }
        struct ng_str data = object_of(content, nb_member(content, whole_of(content), "data"));
        struct ng_str metadata =
            object_of(content, nb_member(content, whole_of(content), "metadata"));
        size_t before = output->text.len + output->metadata.len;
        size_t late = data.len + metadata.len;
        if (late > before && late - before > outputs->cap - outputs->bytes) {
            outputs->dropped += late;
            continue;
        }
        outputs->bytes = outputs->bytes - before + late;
        output_done(output);
        nb_add_str(&output->text, data);
        nb_add_str(&output->metadata, metadata);
        outputs->failed = outputs->failed || output->text.failed || output->metadata.failed;
    }
}

static bool type_is(const struct wire_message *message, const char *type)
{
    return message->type.len == strlen(type) &&
           memcmp(message->type.data, type, message->type.len) == 0;
}

bool outputs_take(struct outputs *outputs, const struct wire_message *message)
{
    struct ng_str content = message->content;
    bool adds = type_is(message, "stream") || type_is(message, "display_data") ||
                type_is(message, "execute_result") || type_is(message, "error");
    if (adds && outputs->clear_on_next) {
        outputs_clear(outputs);
    }
    if (type_is(message, "stream")) {
        take_stream(outputs, content);
    } else if (type_is(message, "display_data")) {
        update_displays(outputs, content); /* of the same id: shown anew in all places */
        add_display(outputs, OUTPUT_DISPLAY, content);
    } else if (type_is(message, "execute_result")) {
        add_display(outputs, OUTPUT_RESULT, content);
    } else if (type_is(message, "error")) {
        outputs_add_error(outputs, content);
    } else if (type_is(message, "update_display_data")) {
        update_displays(outputs, content);
    } else if (type_is(message, "clear_output")) {
        struct nb_span wait = nb_member(content, whole_of(content), "wait");
        struct ng_str word = nb_bytes(content, wait);
        outputs->clear_on_next = wait.len == 4 && memcmp(word.data, "true", 4) == 0;
        if (!outputs->clear_on_next) {
            outputs_clear(outputs);
        }
    } else {
        return false;
    }
    return true;
}

bool output_update_of(const struct wire_message *message, struct output_update *ret)
{
    struct ng_str content = message->content;
    memset(ret, 0, sizeof(*ret));
    if (!type_is(message, "update_display_data") && !type_is(message, "display_data")) {
        return false;
    }
    take_display_id(content, ret->display_id);
    if (ret->display_id[0] == '\0') {
        return false;
    }
    nb_add_str(&ret->data, object_of(content, nb_member(content, whole_of(content), "data")));
    nb_add_str(&ret->metadata,
               object_of(content, nb_member(content, whole_of(content), "metadata")));
    if (ret->data.failed || ret->metadata.failed) {
        output_update_done(ret);
        return false;
    }
    return true;
}

void output_update_done(struct output_update *update)
{
    nb_text_done(&update->data);
    nb_text_done(&update->metadata);
}

/* ---- as the file keeps it ---- */

static bool starts_with(struct ng_str text, const char *word)
{
    return text.len >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* Kinds that are kept as lines. Images stay one string, JSON stays JSON. */
static bool is_text_mime(struct ng_str name)
{
    return starts_with(name, "\"text/") || starts_with(name, "\"application/javascript\"") ||
           starts_with(name, "\"image/svg+xml\"");
}

static void add_text(struct nb_text *out, struct ng_str text, bool one_string)
{
    if (one_string) {
        nb_encode(out, text, false);
    } else {
        nb_encode_lines(out, text, false);
    }
}

struct bundle_member {
    struct nb_span name, value;
};

static int by_name(const void *a, const void *b, void *user)
{
    const struct ng_str *json = user;
    const struct bundle_member *one = a;
    const struct bundle_member *two = b;
    size_t len = one->name.len < two->name.len ? one->name.len : two->name.len;
    int order = memcmp(json->data + one->name.at, json->data + two->name.at, len);
    return order != 0                      ? order
           : one->name.len < two->name.len ? -1
           : one->name.len > two->name.len ? 1
                                           : 0;
}

#define BUNDLE_MAX 64

void output_bundle(struct nb_text *out, struct ng_str json, struct nb_span bundle,
                   bool one_string)
{
    struct bundle_member members[BUNDLE_MAX];
    size_t count = 0;
    struct nb_walk walk = nb_walk_into(json, bundle);
    while (count < BUNDLE_MAX &&
           nb_walk_member(&walk, &members[count].name, &members[count].value)) {
        count++;
    }
    qsort_r(members, count, sizeof(members[0]), by_name, &json);
    nb_add_word(out, "{");
    for (size_t i = 0; i < count; i++) {
        struct ng_str name = nb_bytes(json, members[i].name);
        struct nb_span value = members[i].value;
        nb_add_word(out, i > 0 ? "," : "");
        nb_add_str(out, name);
        nb_add_word(out, ":");
        if (json.data[value.at] == '"' && is_text_mime(name)) {
            struct nb_text text = {0};
            nb_decode(&text, json, value);
            add_text(out, nb_text_str(&text), one_string);
            out->failed = out->failed || text.failed;
            nb_text_done(&text);
        } else {
            nb_add_str(out, nb_bytes(json, value));
        }
    }
    nb_add_word(out, "}");
}

static void add_error_json(struct nb_text *out, struct ng_str content)
{
    static const char *const names[] = {"ename", "evalue"};
    nb_add_word(out, "{");
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        struct nb_span value = nb_member(content, whole_of(content), names[i]);
        nb_add_word(out, "\"");
        nb_add_word(out, names[i]);
        nb_add_word(out, "\":");
        nb_add_str(out, value.len > 0 && content.data[value.at] == '"'
                            ? nb_bytes(content, value)
                            : ng_str_of("\"\""));
        nb_add_word(out, ",");
    }
    struct nb_span traceback = nb_member(content, whole_of(content), "traceback");
    nb_add_word(out, "\"output_type\":\"error\",\"traceback\":");
    nb_add_str(out, traceback.len > 0 && content.data[traceback.at] == '['
                        ? nb_bytes(content, traceback)
                        : ng_str_of("[]"));
    nb_add_word(out, "}");
}

static void add_stream_json(struct nb_text *out, const char *name, struct ng_str text,
                            bool one_string)
{
    nb_add_word(out, "{\"name\":\"");
    nb_add_word(out, name);
    nb_add_word(out, "\",\"output_type\":\"stream\",\"text\":");
    add_text(out, text, one_string);
    nb_add_word(out, "}");
}

static void add_display_json(struct nb_text *out, const struct output *output, bool one_string)
{
    struct ng_str data = nb_text_str(&output->text);
    char count[48] = "";
    if (output->kind == OUTPUT_RESULT) {
        if (output->count >= 0) {
            (void)snprintf(count, sizeof(count), ",\"execution_count\":%lld",
                           (long long)output->count);
        } else {
            (void)snprintf(count, sizeof(count), ",\"execution_count\":null");
        }
    }
    nb_add_word(out, "{\"data\":");
    output_bundle(out, data, whole_of(data), one_string);
    nb_add_word(out, count);
    nb_add_word(out, ",\"metadata\":");
    nb_add_str(out, nb_text_str(&output->metadata));
    nb_add_word(out, output->kind == OUTPUT_RESULT ? ",\"output_type\":\"execute_result\"}"
                                                   : ",\"output_type\":\"display_data\"}");
}

void outputs_json(const struct outputs *outputs, bool one_string, struct nb_text *out)
{
    nb_add_word(out, "[");
    for (size_t i = 0; i < outputs->count; i++) {
        const struct output *output = &outputs->items[i];
        nb_add_word(out, i > 0 ? "," : "");
        switch (output->kind) {
        case OUTPUT_STDOUT:
        case OUTPUT_STDERR:
            add_stream_json(out, output->kind == OUTPUT_STDOUT ? "stdout" : "stderr",
                            nb_text_str(&output->text), one_string);
            break;
        case OUTPUT_ERROR:
            add_error_json(out, nb_text_str(&output->text));
            break;
        default:
            add_display_json(out, output, one_string);
            break;
        }
    }
    if (outputs->dropped > 0) {
        char note[160];
        (void)snprintf(note, sizeof(note),
                       "\n[notegate: %zu bytes of further output were not kept: "
                       "cells.max_saved_output is %zu]\n",
                       outputs->dropped, outputs->cap);
        nb_add_word(out, outputs->count > 0 ? "," : "");
        add_stream_json(out, "stderr", ng_str_of(note), one_string);
    }
    nb_add_word(out, "]");
    out->failed = out->failed || outputs->failed;
}
