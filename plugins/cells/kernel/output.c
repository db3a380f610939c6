/* SPDX-License-Identifier: MIT */
/* output.c - collects the output of a cell up to a limit and writes it in the form of files. */
#include "output.h"

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

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

/* Adds an output of this size. NULL: over the limit, or out of memory. */
static struct output *output_add(struct outputs *outputs, enum output_kind kind, size_t bytes)
{
    if (outputs->count == OUTPUTS_MAX || bytes > outputs->cap ||
        outputs->bytes > outputs->cap - bytes) {
        outputs->dropped += bytes;
        return NULL;
    }
    if (array_reserve((void **)&outputs->items, &outputs->size, outputs->count + 1,
                      sizeof(*outputs->items), OUTPUTS_MAX) != NG_OK) {
        outputs->failed = true;
        return NULL;
    }
    struct output *output = &outputs->items[outputs->count++];
    memset(output, 0, sizeof(*output));
    output->kind = kind;
    output->count = -1;
    outputs->bytes += bytes;
    return output;
}

static void add_stream(struct outputs *outputs, enum output_kind kind, struct ng_str text)
{
    struct output *last = NULL;
    if (outputs->count > 0) {
        last = &outputs->items[outputs->count - 1];
    }
    size_t room = outputs->cap - size_min(outputs->bytes, outputs->cap);
    size_t len = utf8_cut(text, room).len;
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
        outputs->failed |= last->text.failed;
    }
}

static struct nb_span whole_of(struct ng_str json)
{
    struct nb_span span = {0, json.len};
    return span;
}

/* The value if it begins with `first`, else `fallback`. */
static struct ng_str value_or(struct ng_str json, struct nb_span value, char first,
                              const char *fallback)
{
    if (value.len > 0 && json.data[value.at] == first) {
        return nb_bytes(json, value);
    }
    return ng_str_of(fallback);
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

static struct ng_str object_of(struct ng_str content, const char *name)
{
    return value_or(content, nb_member(content, whole_of(content), name), '{', "{}");
}

static void add_display(struct outputs *outputs, enum output_kind kind, struct ng_str content)
{
    struct ng_str data = object_of(content, "data");
    struct ng_str metadata = object_of(content, "metadata");
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
    outputs->failed |= output->text.failed || output->metadata.failed;
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
        outputs->failed |= output->text.failed;
    }
}

static void take_stream(struct outputs *outputs, struct ng_str content)
{
    struct nb_span name = nb_member(content, whole_of(content), "name");
    struct nb_span value = nb_member(content, whole_of(content), "text");
    struct nb_text text = {0};
    (void)nb_decode_lines(&text, content, value);
    outputs->failed |= text.failed;
    enum output_kind kind = OUTPUT_STDOUT;
    if (nb_is_word(content, name, "stderr")) {
        kind = OUTPUT_STDERR;
    }
    add_stream(outputs, kind, nb_text_str(&text));
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
        struct ng_str data = object_of(content, "data");
        struct ng_str metadata = object_of(content, "metadata");
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
        outputs->failed |= output->text.failed || output->metadata.failed;
    }
}

bool outputs_take(struct outputs *outputs, const struct wire_message *message)
{
    struct ng_str content = message->content;
    bool adds = str_is(message->type, "stream") || str_is(message->type, "display_data") ||
                str_is(message->type, "execute_result") || str_is(message->type, "error");
    if (adds && outputs->clear_on_next) {
        outputs_clear(outputs);
    }
    if (str_is(message->type, "stream")) {
        take_stream(outputs, content);
    } else if (str_is(message->type, "display_data")) {
        update_displays(outputs, content); /* displays of the same id change, too */
        add_display(outputs, OUTPUT_DISPLAY, content);
    } else if (str_is(message->type, "execute_result")) {
        add_display(outputs, OUTPUT_RESULT, content);
    } else if (str_is(message->type, "error")) {
        outputs_add_error(outputs, content);
    } else if (str_is(message->type, "update_display_data")) {
        update_displays(outputs, content);
    } else if (str_is(message->type, "clear_output")) {
        struct nb_span wait = nb_member(content, whole_of(content), "wait");
        outputs->clear_on_next = str_is(nb_bytes(content, wait), "true");
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
    if (!str_is(message->type, "update_display_data") &&
        !str_is(message->type, "display_data")) {
        return false;
    }
    take_display_id(content, ret->display_id);
    if (ret->display_id[0] == '\0') {
        return false;
    }
    nb_add_str(&ret->data, object_of(content, "data"));
    nb_add_str(&ret->metadata, object_of(content, "metadata"));
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

/* ---- form of files ---- */

/* Mime types stored as lines. Images stay one string, JSON stays JSON. */
static bool is_text_mime(struct ng_str name)
{
    return str_begins(name, "\"text/") || str_begins(name, "\"application/javascript\"") ||
           str_begins(name, "\"image/svg+xml\"");
}

struct bundle_member {
    struct nb_span name, value;
};

static int by_name(const void *a, const void *b, void *user)
{
    const struct ng_str *json = user;
    const struct bundle_member *one = a;
    const struct bundle_member *two = b;
    return str_compare(nb_bytes(*json, one->name), nb_bytes(*json, two->name));
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
        nb_add_if(out, i > 0, ",");
        nb_add_str(out, name);
        nb_add_word(out, ":");
        if (json.data[value.at] == '"' && is_text_mime(name)) {
            struct nb_text text = {0};
            nb_decode(&text, json, value);
            out->failed |= text.failed;
            nb_encode_text(out, nb_text_str(&text), false, one_string);
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
        nb_addf(out, "\"%s\":", names[i]);
        nb_add_str(out, value_or(content, value, '"', "\"\""));
        nb_add_word(out, ",");
    }
    struct nb_span traceback = nb_member(content, whole_of(content), "traceback");
    nb_add_word(out, "\"output_type\":\"error\",\"traceback\":");
    nb_add_str(out, value_or(content, traceback, '[', "[]"));
    nb_add_word(out, "}");
}

static void add_stream_json(struct nb_text *out, const char *name, struct ng_str text,
                            bool one_string)
{
    nb_addf(out, "{\"name\":\"%s\",\"output_type\":\"stream\",\"text\":", name);
    nb_encode_text(out, text, false, one_string);
    nb_add_word(out, "}");
}

static void add_display_json(struct nb_text *out, const struct output *output, bool one_string)
{
    struct ng_str data = nb_text_str(&output->text);
    const char *type = "display_data";
    nb_add_word(out, "{\"data\":");
    output_bundle(out, data, whole_of(data), one_string);
    if (output->kind == OUTPUT_RESULT) {
        type = "execute_result";
        nb_add_word(out, ",\"execution_count\":");
        if (output->count >= 0) {
            nb_addf(out, "%lld", (long long)output->count);
        } else {
            nb_add_word(out, "null");
        }
    }
    nb_add_word(out, ",\"metadata\":");
    nb_add_str(out, nb_text_str(&output->metadata));
    nb_addf(out, ",\"output_type\":\"%s\"}", type);
}

void outputs_json(const struct outputs *outputs, bool one_string, struct nb_text *out)
{
    nb_add_word(out, "[");
    for (size_t i = 0; i < outputs->count; i++) {
        const struct output *output = &outputs->items[i];
        nb_add_if(out, i > 0, ",");
        switch (output->kind) {
        case OUTPUT_STDOUT:
            add_stream_json(out, "stdout", nb_text_str(&output->text), one_string);
            break;
        case OUTPUT_STDERR:
            add_stream_json(out, "stderr", nb_text_str(&output->text), one_string);
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
        nb_add_if(out, outputs->count > 0, ",");
        add_stream_json(out, "stderr", ng_str_of(note), one_string);
    }
    nb_add_word(out, "]");
    out->failed |= outputs->failed;
}
