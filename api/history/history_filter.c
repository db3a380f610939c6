/* SPDX-License-Identifier: MIT */
/* history_filter.c - which changes a command line selects. */
#include "history_filter.h"

#include "core/base/str.h"

bool history_filter_given(const struct command_line *line)
{
    return line->find.agent != NULL || line->find.run != NULL || line->find.tool != NULL ||
           line->find.action != NULL || line->find.collection != NULL ||
           line->find.id != NULL || line->find.since != NULL || line->find.until != NULL;
}

static int filter_check_filled(const struct command_line *line)
{
    const struct command_filter filters[] = {
        {"agent", line->find.agent, true},
        {"run", line->find.run, true},
        {"tool", line->find.tool, true},
        {"action", line->find.action, true},
        {"collection", line->find.collection, true},
        {"space", line->find.space, false},
        {"id", line->find.id, false},
        {"since", line->find.since, false},
        {"until", line->find.until, false},
    };
    return command_check_filters(line, filters, NG_COUNT(filters));
}

int history_filter_check(const struct command_line *line)
{
    const struct {
        const char *option, *value;
    } points[] = {{"since", line->find.since}, {"until", line->find.until}};
    int rc = filter_check_filled(line);
    if (rc != COMMAND_OK) {
        return rc;
    }
    for (size_t i = 0; i < NG_COUNT(points); i++) {
        uint64_t revision;
        struct ng_str value = ng_str_of(points[i].value);
        if (value.data != NULL &&
            (!history_is_point(value) || str_number(value, UINT64_MAX, &revision))) {
            return command_usage(
                line,
                "--%s is \"%s\", it must be a change (#1234), a time "
                "(2026-01-28T14:30:00Z), a day, how long ago (30m, 2h, 7d), or now",
                points[i].option, points[i].value);
        }
    }
    return COMMAND_OK;
}

int history_filter_name(struct command_line *line, struct history_name *ret)
{
    const char *why = "";
    int rc = history_name_parse(&line->arena, ng_str_of(line->words[0]), HISTORY_POINT_NONE,
                                ret, &why);
    if (rc != NG_OK) {
        return command_usage(line, "\"%s\" names no document: %s", line->words[0], why);
    }
    if (line->find.id != NULL || line->find.collection != NULL ||
        (line->find.space != NULL && (ret->space.data != NULL || ret->path.len > 0))) {
        return command_usage(line,
                             "\"%s\" names the document already: leave out --id, "
                             "--collection and --space",
                             line->words[0]);
    }
    if (str_ends(ret->id, "*")) { /* which would mean a beginning */
        ret->id = arena_printf(&line->arena, "%.*s\\*", (int)ret->id.len - 1, ret->id.data);
    }
    if (str_ends(ret->path, "*")) {
        ret->path =
            arena_printf(&line->arena, "%.*s\\*", (int)ret->path.len - 1, ret->path.data);
    }
    return COMMAND_OK;
}

/* "ada,bob" as a list. */
static void filter_add_list(struct ng_writer *writer, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    json_name(writer, name);
    json_comma_list(writer, ng_str_of(value));
}

void history_filter_add(struct history_ask *ask, const struct history_name *name)
{
    const struct command_line *line = ask->line;
    struct ng_writer *writer = &ask->writer;
    filter_add_list(writer, "agent", line->find.agent);
    filter_add_list(writer, "run", line->find.run);
    filter_add_list(writer, "tool", line->find.tool);
    filter_add_list(writer, "action", line->find.action);
    filter_add_list(writer, "collection", line->find.collection);
    history_ask_text(ask, "space", ng_str_of(line->find.space));
    history_ask_text(ask, "id", ng_str_of(line->find.id));
    history_ask_name(ask, name);
    history_ask_text(ask, "since", ng_str_of(line->find.since));
    history_ask_text(ask, "until", ng_str_of(line->find.until));
}
