/* SPDX-License-Identifier: MIT */
/* output.c - collects the output of a cell up to a limit and writes it in the form of files. */
#include "output_limit.h"

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>

void outputs_begin(struct outputs *outputs, size_t cap)
{
    memset(outputs, 0, sizeof(*outputs));
    outputs->cap = cap;
}

static void outputs_clear(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        output_done(&outputs->items[i]);
    }
    outputs->count = outputs->head = 0;
    outputs->bytes = outputs->dropped = 0;
    outputs->kept = outputs->kept_bytes = 0;
    outputs->is_cut = false;
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

void outputs_copy(const struct outputs *outputs, struct outputs *ret)
{
    *ret = *outputs;
    ret->items = calloc(outputs->count + 1, sizeof(*ret->items));
    ret->size = outputs->count + 1;
    ret->count = ret->items != NULL ? outputs->count : 0;
    ret->failed |= ret->items == NULL;
    memset(&ret->ename, 0, sizeof(ret->ename));
    memset(&ret->evalue, 0, sizeof(ret->evalue));
    for (size_t i = 0; i < ret->count; i++) {
        struct output *copy = &ret->items[i];
        *copy = outputs->items[i];
        memset(&copy->text, 0, sizeof(copy->text));
        memset(&copy->metadata, 0, sizeof(copy->metadata));
        nb_add_str(&copy->text, nb_text_str(&outputs->items[i].text));
        nb_add_str(&copy->metadata, nb_text_str(&outputs->items[i].metadata));
        ret->failed |= copy->text.failed || copy->metadata.failed;
    }
}

/* NULL: out of memory. */
static struct output *output_add(struct outputs *outputs, enum output_kind kind)
{
    if (array_reserve((void **)&outputs->items, &outputs->size, outputs->count + 1,
                      sizeof(*outputs->items), OUTPUTS_ROOM) != NG_OK) {
        outputs->failed = true;
        return NULL;
    }
    struct output *output = &outputs->items[outputs->count++];
    memset(output, 0, sizeof(*output));
    output->kind = kind;
    output->count = -1;
    return output;
}

static void append_stream(struct outputs *outputs, enum output_kind kind, struct ng_str text)
{
    struct output *last = outputs->count > 0 ? &outputs->items[outputs->count - 1] : NULL;
    bool begins = outputs->is_cut && outputs->head == outputs->count; /* behind the cut */
    if (last == NULL || last->kind != kind || begins) {
        last = output_add(outputs, kind);
    }
    if (last != NULL) {
        nb_add_str(&last->text, text);
        outputs->failed |= last->text.failed;
        outputs->bytes += last->text.failed ? 0 : text.len;
        outputs_limit(outputs);
    }
}

/* In pieces: a message may be larger than the limit. */
static void add_stream(struct outputs *outputs, enum output_kind kind, struct ng_str text)
{
    size_t most = size_max(outputs->cap / OUTPUT_HEAD_PART, UTF8_BYTES_MAX);
    while (text.len > 0 && !outputs->failed) {
        size_t len = utf8_cut(text, most).len;
        append_stream(outputs, kind, str_make(text.data, len));
        text = str_make(text.data + len, text.len - len);
    }
}

/* The output is complete: it counts, or is kept in any case. */
static void output_added(struct outputs *outputs, struct output *output, size_t kept_max)
{
    size_t bytes = output_bytes(output);
    outputs->failed |= output->text.failed || output->metadata.failed;
    output->kept = bytes <= kept_max && outputs->kept < OUTPUTS_KEPT_MAX;
    if (output->kept) {
        outputs->kept++;
        outputs->kept_bytes += bytes;
    } else {
        outputs->bytes += bytes;
    }
    outputs_limit(outputs);
}

/* Instead of an output that is larger than the limit. */
static void add_note(struct outputs *outputs, size_t bytes)
{
    struct nb_text note = {0};
    output_note(&note, bytes, outputs->cap);
    add_stream(outputs, OUTPUT_STDERR, nb_text_str(&note));
    outputs->failed |= note.failed;
    nb_text_done(&note);
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

static void add_display_of(struct outputs *outputs, enum output_kind kind,
                           struct ng_str content, struct ng_str data, struct ng_str metadata)
{
    struct nb_span count = nb_member(content, whole_of(content), "execution_count");
    struct output *output = output_add(outputs, kind);
    if (output == NULL) {
        return;
    }
    nb_add_str(&output->text, data);
    nb_add_str(&output->metadata, metadata);
    take_display_id(content, output->display_id);
    if (!nb_integer(content, count, &output->count)) {
        output->count = -1;
    }
    output_added(outputs, output, kind == OUTPUT_RESULT ? outputs->cap : 0);
}

/* A display that is larger than `max` as its text/plain, cut in its middle, to half of `max`:
 * escapes may be at its ends. Returns the bytes of what it has beside that, or SIZE_MAX: no
 * text, or too large even so. */
static size_t cut_display(const struct outputs *outputs, struct ng_str data, size_t max,
                          struct nb_text *ret)
{
    struct nb_span plain = nb_member(data, whole_of(data), "text/plain");
    struct nb_text text = {0};
    struct nb_text cut = {0};
    if (plain.len == 0 || !nb_decode_lines(&text, data, plain) || text.failed) {
        nb_text_done(&text);
        return SIZE_MAX;
    }
    size_t part = plain.len / size_max(text.len, 1) + 1;
    output_cut_text(&cut, nb_text_str(&text), max / 2 / part, outputs->cap);
    nb_add_word(ret, "{\"text/plain\":");
    nb_encode(ret, nb_text_str(&cut), false);
    nb_add_word(ret, "}");
    ret->failed |= cut.failed;
    nb_text_done(&cut);
    nb_text_done(&text);
    if (ret->failed || ret->len + strlen("{}") > max) {
        return SIZE_MAX;
    }
    struct nb_walk walk = nb_walk_into(data, whole_of(data));
    struct nb_span name;
    struct nb_span value;
    size_t rest = 0;
    while (nb_walk_member(&walk, &name, &value)) {
        rest += value.at != plain.at ? name.len + value.len : 0;
    }
    return rest;
}

static void add_display(struct outputs *outputs, enum output_kind kind, struct ng_str content)
{
    struct ng_str data = object_of(content, "data");
    struct ng_str metadata = object_of(content, "metadata");
    size_t bytes = data.len + metadata.len;
    bool is_result = kind == OUTPUT_RESULT;
    if ((is_result && bytes <= outputs->cap) || outputs_has_room(outputs, bytes)) {
        add_display_of(outputs, kind, content, data, metadata);
        return;
    }
    struct nb_text cut = {0};
    size_t most = outputs->cap - (is_result ? 0 : outputs->cap / OUTPUT_HEAD_PART);
    size_t rest = cut_display(outputs, data, most, &cut);
    if (rest != SIZE_MAX) {
        add_display_of(outputs, kind, content, nb_text_str(&cut), ng_str_of("{}"));
    } else {
        rest = bytes;
    }
    if (rest > 0) {
        add_note(outputs, rest);
    }
    nb_text_done(&cut);
}

/* A decoded member of an error's content: a text, or a list of texts. */
static void add_cut_member(struct nb_text *out, const char *name, const struct nb_text *text,
                           size_t max, size_t cap)
{
    struct nb_text cut = {0};
    output_cut_text(&cut, nb_text_str(text), max, cap);
    nb_addf(out, "\"%s\":", name);
    nb_encode(out, nb_text_str(&cut), false);
    out->failed |= text->failed || cut.failed;
    nb_text_done(&cut);
}

/* The content of an error that is larger than `max`: each of its texts is cut in its middle. */
static void cut_error(const struct outputs *outputs, struct ng_str content, size_t max,
                      struct nb_text *out)
{
    struct nb_span list = nb_member(content, whole_of(content), "traceback");
    struct nb_walk walk = nb_walk_into(content, list);
    struct nb_span line;
    struct nb_text traceback = {0};
    while (list.len > 0 && content.data[list.at] == '[' && nb_walk_element(&walk, &line)) {
        nb_add_if(&traceback, traceback.len > 0, "\n");
        (void)nb_decode_lines(&traceback, content, line);
    }
    nb_add_word(out, "{");
    add_cut_member(out, "ename", &outputs->ename, max / 16, outputs->cap);
    nb_add_word(out, ",");
    add_cut_member(out, "evalue", &outputs->evalue, max / 8, outputs->cap);
    nb_add_word(out, ",\"traceback\":[");
    struct nb_text cut = {0};
    output_cut_text(&cut, nb_text_str(&traceback), max / 2, outputs->cap);
    nb_encode(out, nb_text_str(&cut), false);
    nb_add_word(out, "]}");
    out->failed |= traceback.failed || cut.failed;
    nb_text_done(&cut);
    nb_text_done(&traceback);
}

void outputs_add_error(struct outputs *outputs, struct ng_str content)
{
    size_t max = size_max(outputs->cap, OUTPUT_ERROR_MAX);
    outputs->has_error = true;
    nb_text_done(&outputs->ename);
    nb_text_done(&outputs->evalue);
    (void)nb_decode_lines(&outputs->ename, content,
                          nb_member(content, whole_of(content), "ename"));
    (void)nb_decode_lines(&outputs->evalue, content,
                          nb_member(content, whole_of(content), "evalue"));
    struct output *output = output_add(outputs, OUTPUT_ERROR);
    if (output == NULL) {
        return;
    }
    if (content.len <= max) {
        nb_add_str(&output->text, content);
    } else {
        cut_error(outputs, content, max, &output->text);
    }
    output_added(outputs, output, SIZE_MAX);
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

/* True: an update to this size fits, possibly after older outputs are dropped. Outputs of the
 * beginning are not dropped. */
static bool display_may_be(struct outputs *outputs, struct output *output, size_t bytes)
{
    size_t before = output_bytes(output);
    size_t used = output->kept ? before : outputs->bytes;
    if (bytes <= before || bytes - before <= outputs->cap - size_min(outputs->cap, used)) {
        return true;
    }
    if (output->kept || bytes > outputs->cap) {
        return false;
    }
    if (!outputs->is_cut || output >= outputs->items + outputs->head) {
        return outputs_has_room(outputs, bytes);
    }
    return outputs_keep(outputs, output);
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
        size_t before = output_bytes(output);
        size_t late = data.len + metadata.len;
        if (!display_may_be(outputs, output, late)) {
            outputs->dropped += late;
            continue;
        }
        size_t *total = output->kept ? &outputs->kept_bytes : &outputs->bytes;
        *total = *total - before + late;
        output->updated = true;
        output_done(output);
        nb_add_str(&output->text, data);
        nb_add_str(&output->metadata, metadata);
        outputs->failed |= output->text.failed || output->metadata.failed;
    }
    outputs_limit(outputs);
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

static void add_output_json(struct nb_text *out, const struct output *output, bool one_string)
{
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

/* The position of the note that output is missing: at the cut, else at the end. */
static size_t note_index(const struct outputs *outputs)
{
    return outputs->is_cut ? outputs->head : outputs->count;
}

/* The note belongs to the stream that is cut, if it is one: then they show as one text. */
static void add_note_json(struct nb_text *out, const struct outputs *outputs, bool one_string)
{
    size_t at = note_index(outputs);
    const struct output *before = at > 0 ? &outputs->items[at - 1] : NULL;
    const struct output *after = at < outputs->count ? &outputs->items[at] : before;
    struct nb_text note = {0};
    bool is_stdout = after != NULL && after->kind == OUTPUT_STDOUT;
    bool line_ends = before == NULL ||
                     (before->text.len > 0 && before->text.data[before->text.len - 1] == '\n');
    nb_add_if(&note, !line_ends, "\n");
    output_note(&note, outputs->dropped, outputs->cap);
    add_stream_json(out, is_stdout ? "stdout" : "stderr", nb_text_str(&note), one_string);
    out->failed |= note.failed;
    nb_text_done(&note);
}

size_t outputs_ordinal(const struct outputs *outputs, size_t index)
{
    return index + (outputs->dropped > 0 && index >= note_index(outputs));
}

void outputs_json(const struct outputs *outputs, bool one_string, struct nb_text *out)
{
    size_t note = outputs->dropped > 0 ? note_index(outputs) : SIZE_MAX;
    bool empty = true;
    nb_add_word(out, "[");
    for (size_t i = 0; i <= outputs->count; i++) {
        if (i == note) {
            nb_add_if(out, !empty, ",");
            add_note_json(out, outputs, one_string);
            empty = false;
        }
        if (i < outputs->count) {
            nb_add_if(out, !empty, ",");
            add_output_json(out, &outputs->items[i], one_string);
            empty = false;
        }
    }
    nb_add_word(out, "]");
    out->failed |= outputs->failed;
}
