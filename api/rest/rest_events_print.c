/* SPDX-License-Identifier: MIT */
/* rest_events_print.c - an event as JSON. */
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/json/json.h"
#include "rest_events.h"

/* For taking apart what a plugin added to an event. */
#define EVENTS_DATA_MEMORY ((size_t)16 * 1024 * 1024)

static void print_time(struct buf *out, int64_t time_ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, text);
    (void)buf_printf(out, "\"%s\"", text);
}

static void print_member(struct buf *out, const char *name, struct ng_str value)
{
    (void)buf_printf(out, ",\"%s\":", name);
    (void)buf_add_json(out, value);
}

/* Members every event has; what its plugin adds may replace the revision (a file's is a text),
 * and the lines where none were recorded (a file's are those of its version). */
static bool is_own_member(const struct ng_event *event, struct ng_str name)
{
    if (str_in_words(name, "added removed")) {
        return event->origin.has_lines;
    }
    return str_in_words(name, "seq time agent space tool action collection id revision run "
                              "request_id");
}

/* A part that is not known has no member. */
static void print_origin(struct buf *out, const struct ng_origin *origin)
{
    if (origin->run_id.len > 0) {
        print_member(out, "run", origin->run_id);
    }
    if (origin->request_id.len > 0) {
        print_member(out, "request_id", origin->request_id);
    }
    if (origin->has_lines) {
        (void)buf_add_c(out, ",\"added\":");
        (void)buf_add_number(out, origin->lines_added);
        (void)buf_add_c(out, ",\"removed\":");
        (void)buf_add_number(out, origin->lines_removed);
    }
}

static void print_members(struct buf *out, const struct ng_event *event,
                          const struct ng_value *data)
{
    const struct ng_value *revision = json_get(data, "revision");
    (void)buf_add_c(out, ",\"revision\":");
    if (revision != NULL) {
        (void)json_print(out, revision);
    } else {
        (void)buf_add_number(out, event->revision);
    }
    const struct ng_value *member = json_first(data);
    for (; member != NULL; member = member->next) {
        if (!is_own_member(event, member->key)) {
            (void)buf_add_char(out, ',');
            (void)buf_add_json(out, member->key);
            (void)buf_add_char(out, ':');
            (void)json_print(out, member);
        }
    }
}

void events_print(struct buf *out, const struct ng_event *event)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *data = NULL;
    arena_init(&arena, EVENTS_DATA_MEMORY);
    if (event->data.len > 0 &&
        (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, &error) != NG_OK ||
         data->type != NG_TYPE_OBJECT)) {
        data = NULL;
    }
    if (arena.oom) {
        out->rc = NG_EINTERNAL; /* half an event would be kept for all readers */
    }
    (void)buf_add_c(out, "{\"seq\":");
    (void)buf_add_number(out, event->seq);
    (void)buf_add_c(out, ",\"time\":");
    print_time(out, event->time_ms);
    print_member(out, "agent", event->agent);
    print_member(out, "space", event->key.space);
    print_member(out, "tool", event->tool);
    print_member(out, "action", event->action);
    print_member(out, "collection", event->key.collection);
    print_member(out, "id", event->key.id);
    print_members(out, event, data);
    print_origin(out, &event->origin);
    (void)buf_add_char(out, '}');
    arena_done(&arena);
}
