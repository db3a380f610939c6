/* SPDX-License-Identifier: MIT */
/* merge_conflict.c - conflicts of merges: reasons, places, their JSON; results of merges. */
#include "merge_conflict.h"

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

static const char *const reason_names[] = {
    [MERGE_CLEAN] = "",
    [MERGE_OVERLAP] = "overlap",
    [MERGE_MEMBER] = "member",
    [MERGE_CELL] = "cell",
    [MERGE_NOT_TEXT] = "not_text",
    [MERGE_TOO_LARGE] = "too_large",
    [MERGE_INVALID_MERGE] = "invalid_merge",
};

void merge_conflict_set(struct merge_conflict *conflict, enum merge_reason reason)
{
    if (conflict->reason == MERGE_CLEAN) {
        conflict->reason = reason;
    }
}

void merge_conflict_add(struct merge_conflict *conflict, enum merge_reason reason,
                        uint64_t line, struct ng_str present, struct ng_str before)
{
    struct buf *sides = &conflict->sides;
    merge_conflict_set(conflict, reason);
    conflict->count++;
    if (conflict->place_count == MERGE_PLACES_MAX) {
        return;
    }
    present = utf8_cut(present, MERGE_SIDE_MAX);
    before = utf8_cut(before, MERGE_SIDE_MAX);
    sides->max = 2 * MERGE_PLACES_MAX * MERGE_SIDE_MAX;
    size_t at = sides->len;
    (void)buf_add_str(sides, present);
    if (buf_add_str(sides, before) == NG_OK) {
        conflict->places[conflict->place_count++] = (struct merge_place){
            .line = line, .at = at, .present_len = present.len, .before_len = before.len};
    }
}

static struct ng_str place_side(const struct merge_conflict *conflict, size_t at, size_t len)
{
    return len > 0 ? str_make(conflict->sides.data + at, len) : ng_str_of("");
}

struct ng_str merge_conflict_present(const struct merge_conflict *conflict, size_t place)
{
    const struct merge_place *at = &conflict->places[place];
    return place_side(conflict, at->at, at->present_len);
}

struct ng_str merge_conflict_before(const struct merge_conflict *conflict, size_t place)
{
    const struct merge_place *at = &conflict->places[place];
    return place_side(conflict, at->at + at->present_len, at->before_len);
}

void merge_conflict_join(struct merge_conflict *conflict, const struct merge_conflict *other)
{
    size_t wanted = size_min(other->place_count, MERGE_PLACES_JOINED);
    if (conflict->place_count + wanted > MERGE_PLACES_MAX) {
        conflict->place_count = MERGE_PLACES_MAX - wanted;
        conflict->sides.len = conflict->places[conflict->place_count].at;
    }
    for (size_t i = 0; i < other->place_count; i++) {
        merge_conflict_add(conflict, other->reason, other->places[i].line,
                           merge_conflict_present(other, i), merge_conflict_before(other, i));
    }
    merge_conflict_set(conflict, other->reason);
    conflict->count += other->count - other->place_count;
}

void merge_conflict_done(struct merge_conflict *conflict)
{
    buf_done(&conflict->sides);
    *conflict = (struct merge_conflict){0};
}

const char *merge_reason_name(enum merge_reason reason)
{
    return reason_names[reason];
}

void merge_conflict_json(struct ng_writer *writer, const struct merge_conflict *conflict)
{
    json_object(writer);
    json_member_cstring(writer, "reason", merge_reason_name(conflict->reason));
    if (conflict->place_count > 0) {
        json_name(writer, "at");
        json_array(writer);
    }
    for (size_t i = 0; i < conflict->place_count; i++) {
        const struct merge_place *place = &conflict->places[i];
        json_object(writer);
        if (place->line > 0) {
            json_member_int(writer, "line", (int64_t)place->line);
        }
        json_member_string(writer, "present", merge_conflict_present(conflict, i));
        json_member_string(writer, "before", merge_conflict_before(conflict, i));
        json_end(writer);
    }
    if (conflict->place_count > 0) {
        json_end(writer);
    }
    json_end(writer);
}

/* ---- results ---- */

void merge_result_done(struct merge_result *result)
{
    buf_done(&result->text);
    merge_conflict_done(&result->conflict);
}

int merge_result_set(struct merge_result *result, struct ng_str text)
{
    buf_done(&result->text);
    buf_init(&result->text, text.len);
    return buf_add_str(&result->text, text);
}

bool merge_result_is_simple(struct merge_result *result, struct ng_str base,
                            struct ng_str present, struct ng_str before)
{
    if (str_equal(present, base)) {
        (void)merge_result_set(result, before);
        return true;
    }
    if (str_equal(before, base) || str_equal(present, before)) {
        (void)merge_result_set(result, present);
        return true;
    }
    return false;
}
