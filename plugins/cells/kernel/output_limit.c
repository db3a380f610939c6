/* SPDX-License-Identifier: MIT */
/* output_limit.c - a beginning and the end of a cell's outputs. */
#include "output_limit.h"

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "notebook/screen.h"

#include <string.h>

static bool is_stream(const struct output *output)
{
    return output->kind == OUTPUT_STDOUT || output->kind == OUTPUT_STDERR;
}

size_t output_bytes(const struct output *output)
{
    return output->text.len + output->metadata.len;
}

void output_done(struct output *output)
{
    nb_text_done(&output->text);
    nb_text_done(&output->metadata);
}

static bool outputs_are_over(const struct outputs *outputs)
{
    return outputs->bytes > outputs->cap || outputs->count > OUTPUTS_MAX;
}

bool outputs_has_room(const struct outputs *outputs, size_t bytes)
{
    return bytes <= outputs->cap - outputs->cap / OUTPUT_HEAD_PART ||
           (bytes <= outputs->cap && outputs->bytes <= outputs->cap - bytes);
}

/* ---- overwritten text ---- */

static void settle_stream(struct outputs *outputs, struct output *output)
{
    struct nb_text settled = {0};
    struct ng_str all = nb_text_str(&output->text);
    struct ng_str open = str_make(all.data + output->final, all.len - output->final);
    if (output->settled == all.len) {
        return;
    }
    size_t final = screen_settle(&settled, open);
    if (settled.failed || settled.len > open.len) {
        final = 0;
    } else if (settled.len < open.len) {
        output->text.len = output->final;
        nb_add_str(&output->text, nb_text_str(&settled));
        outputs->bytes -= open.len - settled.len;
    }
    output->final += final;
    output->settled = output->text.len;
    nb_text_done(&settled);
}

static void settle_streams(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        if (is_stream(&outputs->items[i])) {
            settle_stream(outputs, &outputs->items[i]);
        }
    }
}

/* ---- the beginning ---- */

static void drop_front(struct output *output, size_t bytes)
{
    struct nb_text *text = &output->text;
    memmove(text->data, text->data + bytes, text->len - bytes);
    text->len -= bytes;
    output->final -= size_min(output->final, bytes);
    output->settled -= size_min(output->settled, bytes);
}

/* The stream at `at` gives its first bytes to an output of their own before it. */
static void split_stream(struct outputs *outputs, size_t at, size_t bytes)
{
    if (array_reserve((void **)&outputs->items, &outputs->size, outputs->count + 1,
                      sizeof(*outputs->items), OUTPUTS_ROOM) != NG_OK) {
        outputs->failed = true;
        return;
    }
    struct output *first = &outputs->items[at];
    struct output *second = first + 1;
    memmove(second, first, (outputs->count - at) * sizeof(*first));
    outputs->count++;
    memset(first, 0, sizeof(*first));
    first->kind = second->kind;
    first->count = -1;
    nb_add(&first->text, second->text.data, bytes);
    first->final = first->settled = bytes;
    outputs->failed |= first->text.failed;
    drop_front(second, bytes);
}

/* The end of a beginning of at most `max` bytes: behind a line, if there is one. */
static size_t end_of_head(struct ng_str text, size_t max)
{
    struct ng_str head = utf8_cut(text, max);
    size_t len = head.len;
    while (len > 0 && head.data[len - 1] != '\n') {
        len--;
    }
    return len > 0 ? len : head.len;
}

static void begin_cut(struct outputs *outputs)
{
    size_t room = outputs->cap / OUTPUT_HEAD_PART;
    size_t most = OUTPUTS_MAX / OUTPUT_HEAD_PART;
    size_t at = 0;
    while (at < outputs->count && at < most) {
        const struct output *output = &outputs->items[at];
        size_t bytes = output->kept ? 0 : output_bytes(output);
        if (bytes > room) {
            break;
        }
        room -= bytes;
        at++;
    }
    if (at < outputs->count && at < most && is_stream(&outputs->items[at])) {
        size_t bytes = end_of_head(nb_text_str(&outputs->items[at].text), room);
        if (bytes > 0) {
            split_stream(outputs, at, bytes);
            at++;
        }
    }
    outputs->head = at;
    outputs->is_cut = true;
}

/* ---- the end ---- */

/* How much to drop at the beginning of a text so that it is `least` bytes at least: up to the
 * next line, unless that is far away. */
static size_t front_of_tail(struct ng_str text, size_t least, size_t most)
{
    const char *line = memchr(text.data + least, '\n', size_min(most, text.len - least));
    size_t bytes = least;
    if (line != NULL && line + 1 < text.data + text.len) {
        return (size_t)(line + 1 - text.data);
    }
    while (bytes < text.len && !utf8_is_start(text.data[bytes])) {
        bytes++;
    }
    return bytes;
}

static void count_dropped(struct outputs *outputs, size_t bytes)
{
    outputs->bytes -= bytes;
    outputs->dropped += bytes;
}

bool outputs_keep(struct outputs *outputs, struct output *output)
{
    size_t bytes = output_bytes(output);
    if (outputs->kept >= OUTPUTS_KEPT_MAX / 2) {
        return false;
    }
    output->kept = true;
    outputs->kept++;
    outputs->kept_bytes += bytes;
    outputs->bytes -= bytes;
    return true;
}

/* Drops outputs behind the beginning. A value, an error or an updated display that stands there
 * joins the beginning. */
static void drop_oldest(struct outputs *outputs, size_t max_bytes, size_t max_count)
{
    size_t first = outputs->head;
    while (first < outputs->count) {
        struct output *output = &outputs->items[first];
        size_t gone = first - outputs->head;
        size_t bytes = output_bytes(output);
        size_t over = outputs->bytes - size_min(outputs->bytes, max_bytes);
        if (over == 0 && outputs->count - gone <= max_count) {
            break;
        }
        if (output->kept || (output->updated && outputs_keep(outputs, output))) {
            outputs->items[outputs->head++] = *output;
        } else if (is_stream(output) && over < bytes && outputs->count - gone <= max_count) {
            size_t front = front_of_tail(nb_text_str(&output->text), over,
                                         outputs->cap / OUTPUT_SLACK_PART);
            drop_front(output, front);
            count_dropped(outputs, front);
            break;
        } else {
            count_dropped(outputs, bytes);
            output_done(output);
        }
        first++;
    }
    memmove(outputs->items + outputs->head, outputs->items + first,
            (outputs->count - first) * sizeof(*outputs->items));
    outputs->count -= first - outputs->head;
}

void outputs_limit(struct outputs *outputs)
{
    if (outputs_are_over(outputs)) {
        settle_streams(outputs);
    }
    if (!outputs_are_over(outputs)) {
        return;
    }
    if (!outputs->is_cut) {
        begin_cut(outputs);
    }
    drop_oldest(outputs, outputs->cap - outputs->cap / OUTPUT_SLACK_PART,
                OUTPUTS_MAX - OUTPUTS_MAX / OUTPUT_SLACK_PART);
}

/* ---- notes ---- */

void output_note(struct nb_text *out, size_t bytes, size_t cap)
{
    nb_addf(out,
            "[notegate: %zu bytes of output were not kept here: cells.max_saved_output is "
            "%zu]\n",
            bytes, cap);
}

void output_cut_text(struct nb_text *out, struct ng_str text, size_t max, size_t cap)
{
    if (text.len <= max) {
        nb_add_str(out, text);
        return;
    }
    size_t head = utf8_cut(text, max / 2).len;
    size_t tail = front_of_tail(text, text.len - max / 2, 0);
    nb_add(out, text.data, head);
    nb_add_word(out, "\n");
    output_note(out, tail - head, cap);
    nb_add(out, text.data + tail, text.len - tail);
}
