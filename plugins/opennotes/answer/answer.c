/* SPDX-License-Identifier: MIT */
/* answer.c - the budget and paging of every answer. */
#include "answer.h"

#include <string.h>

#include "core/base/text/json_writer.h"

/* Largest answer or item before it is cut. */
#define ANSWER_BYTES_MAX 268435456
/* Maximum size of pagination and guidance. */
#define ANSWER_TAIL_BYTES 320
/* Limits for cutting a single item: longest member name that is kept, shortest text limit that
 * is tried, list elements that are kept if shorter texts are not enough. */
#define CUT_NAME_BYTES 1024
#define CUT_TEXT_BYTES 32
#define CUT_ELEMENTS 4096

/* Line ends in the strings of a JSON text. */
static size_t count_lines(struct ng_str json)
{
    size_t lines = 0;
    for (size_t at = 0; at < json.len; at++) {
        const char *escape = memchr(json.data + at, '\\', json.len - at);
        if (escape == NULL) {
            break;
        }
        at = (size_t)(escape - json.data) + 1;
        lines += at < json.len && json.data[at] == 'n';
    }
    return lines;
}

void notes_answer_begin(struct notes_answer *answer, struct ng_call *call,
                        const struct notes_budget *budget, int64_t limit, int64_t offset)
{
    *answer = (struct notes_answer){.call = call, .limit = limit, .offset = offset};
    answer->bytes_max =
        size_min(budget->max_bytes * NOTES_ANSWER_PERCENT / 100, call->host->answer_room(call));
    answer->lines_max = budget->max_lines * NOTES_ANSWER_PERCENT / 100;
    buf_init(&answer->json, ANSWER_BYTES_MAX);
    buf_init(&answer->item, ANSWER_BYTES_MAX);
    notes_json_begin(&answer->json, '{');
    notes_answer_reserve(answer, ANSWER_TAIL_BYTES);
}

void notes_answer_reserve(struct notes_answer *answer, size_t bytes)
{
    answer->bytes_max -= size_min(bytes, answer->bytes_max);
}

void notes_answer_list(struct notes_answer *answer, const char *name)
{
    answer->lines = count_lines(notes_buf_str(&answer->json));
    notes_json_member_begin(&answer->json, name, '[');
}

bool notes_answer_more(const struct notes_answer *answer)
{
    return !answer->full && answer->returned < answer->limit;
}

bool notes_answer_row(struct notes_answer *answer)
{
    return answer->rows++ >= answer->offset && notes_answer_more(answer);
}

struct buf *notes_answer_item(struct notes_answer *answer)
{
    buf_clear(&answer->item);
    return &answer->item;
}

size_t notes_answer_room(const struct notes_answer *answer)
{
    return answer->bytes_max - size_min(answer->json.len, answer->bytes_max);
}

static bool fits(const struct notes_answer *answer, const struct buf *item)
{
    return item->rc == NG_OK && item->len < notes_answer_room(answer) &&
           answer->lines + count_lines(notes_buf_str(item)) <= answer->lines_max;
}

/* ---- one item that is larger than a whole answer */

struct cut {
    const struct ng_host *host;
    struct buf *out;
    size_t text_bytes; /* longest text, as JSON */
    size_t elements;
};

static void cut_value(const struct cut *cut, const struct ng_value *value, bool top);

static void cut_elements(const struct cut *cut, const struct ng_value *value, bool map,
                         bool top)
{
    size_t left = cut->elements;
    const struct ng_host *host = cut->host;
    notes_json_begin(cut->out, "[{"[map]);
    for (const struct ng_value *item = host->json_first(value); item != NULL && left > 0;
         item = host->json_next(item), left--) {
        struct ng_str key = host->json_key(item);
        if (key.len > CUT_NAME_BYTES || (top && str_is(key, "truncated"))) {
            continue;
        }
        if (map) {
            notes_json_name(cut->out, key);
        }
        cut_value(cut, item, false);
    }
    if (top && map) {
        notes_json_member_bool(cut->out, "truncated", true);
    }
    notes_json_end(cut->out, "]}"[map]);
}

/* The recursion is bounded: the host has parsed this JSON, and limits its depth. */
static void cut_value(const struct cut *cut, const struct ng_value *value, bool top)
{
    const struct ng_host *host = cut->host;
    switch (host->json_type(value)) {
    case NG_TYPE_OBJECT:
        cut_elements(cut, value, true, top);
        break;
    case NG_TYPE_ARRAY:
        cut_elements(cut, value, false, top);
        break;
    case NG_TYPE_STRING:
        notes_json_text(cut->out,
                        notes_json_cut(host->json_text(value), cut->text_bytes, SIZE_MAX));
        break;
    case NG_TYPE_NUMBER:
        notes_json_raw(cut->out, host->json_text(value));
        break;
    case NG_TYPE_TRUE:
    case NG_TYPE_FALSE:
        notes_json_bool(cut->out, host->json_type(value) == NG_TYPE_TRUE);
        break;
    default:
        notes_json_null(cut->out);
        break;
    }
}

static bool try_cut(struct notes_answer *answer, const struct cut *cut,
                    const struct ng_value *value)
{
    buf_clear(cut->out);
    cut_value(cut, value, true);
    if (cut->out->rc == NG_EINTERNAL) {
        answer->json.rc = NG_EINTERNAL;
    }
    return fits(answer, cut->out);
}

/* Makes the item fit: shortens its longest texts, then its lists. */
static void shrink_item(struct notes_answer *answer)
{
    const struct ng_value *value = NULL;
    struct buf out;
    struct cut cut = {.host = answer->call->host, .out = &out, .elements = SIZE_MAX};
    size_t low = CUT_TEXT_BYTES;
    size_t high = answer->bytes_max;
    buf_init(&out, ANSWER_BYTES_MAX);
    bool parsed =
        answer->item.rc == NG_OK &&
        cut.host->json_parse(answer->call, notes_buf_str(&answer->item), &value) == NG_OK;
    cut.text_bytes = low;
    bool fit = parsed && try_cut(answer, &cut, value);
    while (fit && low + 1 < high) {
        cut.text_bytes = low + (high - low) / 2;
        if (try_cut(answer, &cut, value)) {
            low = cut.text_bytes;
        } else {
            high = cut.text_bytes;
        }
    }
    cut.text_bytes = low;
    for (size_t count = CUT_ELEMENTS; parsed && !fit && count > 0; count /= 2) {
        cut.elements = count;
        fit = try_cut(answer, &cut, value);
    }
    if (!fit || !try_cut(answer, &cut, value)) {
        buf_clear(&out);
        buf_add_c(&out, "{\"truncated\":true}");
    }
    buf_done(&answer->item);
    answer->item = out;
    answer->cut = true;
}

bool notes_answer_add(struct notes_answer *answer)
{
    if (answer->item.rc == NG_EINTERNAL) {
        answer->json.rc = NG_EINTERNAL; /* the item is incomplete at an unknown place */
        return false;
    }
    if (!fits(answer, &answer->item)) {
        if (answer->returned > 0) {
            answer->full = true;
            return false;
        }
        shrink_item(answer);
    }
    struct ng_str item = notes_buf_str(&answer->item);
    notes_json_raw(&answer->json, item);
    answer->lines += count_lines(item);
    answer->returned++;
    return true;
}

void notes_answer_list_end(struct notes_answer *answer)
{
    notes_json_end(&answer->json, ']');
}

void notes_answer_drop(struct notes_answer *answer)
{
    buf_done(&answer->json);
    buf_done(&answer->item);
}

int notes_answer_end(struct notes_answer *answer, int64_t total)
{
    struct buf *json = &answer->json;
    int64_t next = answer->offset + answer->returned;
    bool more = next < total;
    notes_json_member_begin(json, "pagination", '{');
    notes_json_member_int(json, "total", total);
    notes_json_member_int(json, "returned", answer->returned);
    notes_json_member_int(json, "page",
                          answer->limit > 0 ? answer->offset / answer->limit + 1 : 1);
    notes_json_member_int(json, "pageSize", answer->limit);
    notes_json_member_bool(json, "hasMore", more);
    if (more) {
        notes_json_member_int(json, "nextOffset", next);
    }
    notes_json_end(json, '}');
    if (more) {
        notes_json_name_c(json, "_guidance");
        buf_printf(json, "\"More results available. To fetch next page: { offset: %lld }\"",
                   (long long)next);
    }
    return notes_answer_end_plain(answer);
}

int notes_answer_finish(struct notes_answer *answer, int rc)
{
    if (rc != NG_OK) {
        notes_answer_drop(answer);
        return rc;
    }
    return notes_answer_end(answer, answer->rows);
}

int notes_answer_end_plain(struct notes_answer *answer)
{
    notes_json_end(&answer->json, '}');
    int rc = notes_answer_reply(answer->call, &answer->json);
    notes_answer_drop(answer);
    return rc;
}

int notes_answer_reply(struct ng_call *call, struct buf *json)
{
    const struct ng_host *host = call->host;
    const struct ng_value *value = NULL;
    if (json->rc != NG_OK) {
        return notes_fail_memory(call);
    }
    int rc = host->json_parse(call, notes_buf_str(json), &value);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = host->reply_json(call);
    if (writer == NULL) {
        return notes_fail_memory(call);
    }
    host->json_copy(writer, value);
    return NG_OK;
}

/* ---- */

struct ng_str notes_json_cut(struct ng_str text, size_t bytes, size_t lines)
{
    struct ng_str cut = json_cut(text, bytes - size_min(bytes, strlen("\"\"")));
    for (size_t at = 0; at < cut.len; at++) {
        const char *end = memchr(cut.data + at, '\n', cut.len - at);
        if (end == NULL) {
            break;
        }
        at = (size_t)(end - cut.data);
        if (lines-- == 0) {
            return str_make(cut.data, at);
        }
    }
    return cut;
}
