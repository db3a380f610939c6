/* SPDX-License-Identifier: MIT */
/* history_print.c - objects of the history's tools as text for people. */
#include "history_print.h"

#include <inttypes.h>

#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Signs of a stat at most. */
#define PRINT_STAT_MAX 40
/* Characters of a time up to its seconds. */
#define PRINT_TIME_SECONDS 19
/* Bytes of the two header lines of a comparison: two ids, and the rest. */
#define PRINT_HEADER_MAX ((size_t)2 * 65536 + 2048)

/* ---- pieces ---- */

static void print_escaped(struct buf *out, struct ng_str text, const char *kept)
{
    char escaped[LOG_ESCAPE_MAX];
    size_t at = 0;
    while (at < text.len) {
        char c = text.data[at];
        if (c != '\0' && strchr(kept, c) != NULL) {
            (void)buf_add_char(out, c);
            at++;
        } else {
            size_t len = log_escape(text, &at, false, escaped);
            (void)buf_add(out, escaped, len);
        }
    }
}

/* One line of what others wrote: also where it has line feeds. */
void history_print_word(struct buf *out, struct ng_str word)
{
    print_escaped(out, word, "");
}

static void print_colour(struct buf *out, struct history_style style, const char *colour)
{
    if (style.is_coloured) {
        (void)buf_add_c(out, colour);
    }
}

void history_print_text(struct buf *out, struct history_style style, struct ng_str text)
{
    if (style.is_escaped) {
        print_escaped(out, text, "\n\t");
    } else {
        (void)buf_add_str(out, text);
    }
}

/* The next line of the text, without its line feed; *text moves behind it. */
struct ng_str history_print_take_line(struct ng_str *text)
{
    const char *feed = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
    struct ng_str line = *text;
    size_t behind = text->len;
    if (feed != NULL) {
        line.len = (size_t)(feed - text->data);
        behind = line.len + 1;
    }
    *text = str_make(text->data + behind, text->len - behind);
    return line;
}

static int print_digits(int64_t number)
{
    int digits = 1;
    for (; number >= 10; number /= 10) {
        digits++;
    }
    return digits;
}

/* A number; a revision that is a text (a file's). */
static void print_revision(struct buf *out, const struct ng_value *object, const char *name)
{
    history_print_word(out, json_text(json_get(object, name)));
}

/* A file is named by its path. A notebook may have a name like one. */
bool history_print_is_file(const struct ng_value *object)
{
    return str_begins(json_get_text(object, "id"), "/") &&
           !str_is(json_get_text(object, "collection"), "notebooks");
}

/* SPACE/COLLECTION/ID, or a path: a word that names the document. */
void history_print_title(struct buf *out, const struct ng_value *object)
{
    if (history_print_is_file(object)) {
        history_print_word(out, json_get_text(object, "id"));
        return;
    }
    struct ng_str space = json_get_text(object, "space");
    if (space.len > 0) {
        history_print_word(out, space);
        (void)buf_add_char(out, '/');
    }
    history_print_word(out, json_get_text(object, "collection"));
    (void)buf_add_char(out, '/');
    history_print_word(out, json_get_text(object, "id"));
}

static void print_member(struct buf *out, const char *label, struct ng_str value)
{
    if (value.len > 0) {
        (void)buf_printf(out, "%-10s", label);
        history_print_word(out, value);
        (void)buf_add_char(out, '\n');
    }
}

/* The agent, the time, the run and the tool. */
static void print_made(struct buf *out, const struct ng_value *object)
{
    struct ng_str tool = json_get_text(object, "tool");
    struct ng_str action = json_get_text(object, "action");
    print_member(out, "Agent:", json_get_text(object, "agent"));
    print_member(out, "Date:", json_get_text(object, "time"));
    print_member(out, "Run:", json_get_text(object, "run"));
    if (tool.len + action.len > 0) {
        (void)buf_printf(out, "%-10s", "Tool:");
        history_print_word(out, tool);
        (void)buf_add_c(out, text_if(tool.len > 0 && action.len > 0, ", "));
        history_print_word(out, action);
        (void)buf_add_char(out, '\n');
    }
}

/* ---- log ---- */

void history_print_change(struct buf *out, struct history_style style,
                          const struct ng_value *change)
{
    struct ng_str summary = json_get_text(change, "summary");
    print_colour(out, style, PRINT_YELLOW);
    (void)buf_add_c(out, "change ");
    print_revision(out, change, "seq");
    print_colour(out, style, PRINT_END);
    (void)buf_printf(out, "\n%-10s", "Document:");
    history_print_title(out, change);
    (void)buf_add_char(out, '@');
    print_revision(out, change, "revision");
    (void)buf_add_char(out, '\n');
    print_made(out, change);
    if (summary.len > 0) {
        (void)buf_add_c(out, "\n    ");
        history_print_word(out, summary);
        (void)buf_add_char(out, '\n');
    }
}

void history_print_oneline(struct buf *out, struct history_style style,
                           const struct ng_value *change)
{
    struct ng_str agent = json_get_text(change, "agent");
    struct ng_str summary = json_get_text(change, "summary");
    print_colour(out, style, PRINT_YELLOW);
    print_revision(out, change, "seq");
    print_colour(out, style, PRINT_END);
    (void)buf_add_char(out, ' ');
    history_print_title(out, change);
    (void)buf_add_char(out, '@');
    print_revision(out, change, "revision");
    (void)buf_add_c(out, " (");
    history_print_word(out, str_or(agent, ng_str_of("-")));
    (void)buf_add_c(out, ") ");
    history_print_word(out, str_or(summary, json_get_text(change, "action")));
    (void)buf_add_char(out, '\n');
}

static void print_signs(struct buf *out, char sign, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        (void)buf_add_char(out, sign);
    }
}

void history_print_stat(struct buf *out, struct history_style style,
                        const struct ng_value *change)
{
    uint64_t added = (uint64_t)json_get_integer(change, "added");
    uint64_t removed = (uint64_t)json_get_integer(change, "removed");
    uint64_t all = added + removed;
    uint64_t shown = u64_min(all, PRINT_STAT_MAX);
    uint64_t plus = all > 0 ? (added * shown + all - 1) / all : 0;
    if (json_get(change, "added") == NULL) {
        return;
    }
    (void)buf_add_char(out, ' ');
    history_print_title(out, change);
    (void)buf_printf(out, " | %" PRIu64 " ", all);
    print_colour(out, style, PRINT_GREEN);
    print_signs(out, '+', plus);
    print_colour(out, style, PRINT_END PRINT_RED);
    print_signs(out, '-', shown - plus);
    print_colour(out, style, PRINT_END);
    (void)buf_add_char(out, '\n');
}

/* ---- runs ---- */

struct run_widths {
    int run, agents, changes;
};

/* The agents of a run between commas; returns how many bytes they are. */
static int print_agents(struct buf *out, const struct ng_value *run)
{
    size_t len = 0;
    for (const struct ng_value *agent = json_first(json_get(run, "agents")); agent != NULL;
         agent = agent->next) {
        len += agent->text.len + (agent->next != NULL);
        if (out != NULL) {
            history_print_word(out, agent->text);
            (void)buf_add_c(out, text_if(agent->next != NULL, ","));
        }
    }
    if (len == 0 && out != NULL) {
        (void)buf_add_char(out, '-');
    }
    return (int)size_min(size_max(len, 1), INT32_MAX);
}

static struct run_widths print_run_widths(const struct ng_value *runs)
{
    struct run_widths widths = {1, 1, 1};
    for (const struct ng_value *run = json_first(runs); run != NULL; run = run->next) {
        int name = (int)size_min(json_get_text(run, "run").len, INT32_MAX);
        int agents = print_agents(NULL, run);
        int changes = print_digits(json_get_integer(run, "changes"));
        widths.run = name > widths.run ? name : widths.run;
        widths.agents = agents > widths.agents ? agents : widths.agents;
        widths.changes = changes > widths.changes ? changes : widths.changes;
    }
    return widths;
}

/* "-": the change was purged. */
static void print_run_time(struct buf *out, const struct ng_value *run, const char *name)
{
    struct ng_str time = json_get_text(run, name);
    (void)buf_add_c(out, "  ");
    if (time.len == 0) {
        (void)buf_printf(out, "%-*s", PRINT_TIME_SECONDS + 1, "-");
        return;
    }
    history_print_word(out, str_make(time.data, size_min(time.len, PRINT_TIME_SECONDS)));
    (void)buf_add_char(out, 'Z');
}

void history_print_runs(struct buf *out, struct history_style style,
                        const struct ng_value *runs)
{
    struct run_widths widths = print_run_widths(runs);
    for (const struct ng_value *run = json_first(runs); run != NULL; run = run->next) {
        struct ng_str name = json_get_text(run, "run");
        int64_t changes = json_get_integer(run, "changes");
        print_colour(out, style, PRINT_YELLOW);
        history_print_word(out, name);
        print_colour(out, style, PRINT_END);
        (void)buf_printf(out, "%*s  ", widths.run - (int)size_min(name.len, INT32_MAX), "");
        int agents = print_agents(out, run);
        (void)buf_printf(out, "%*s  %*" PRId64 " %-7s", widths.agents - agents, "",
                         widths.changes, changes, changes == 1 ? "change" : "changes");
        print_run_time(out, run, "from");
        print_run_time(out, run, "to");
        (void)buf_add_char(out, '\n');
    }
}

void history_print_note(struct buf *out, struct ng_str why)
{
    (void)buf_add_c(out, "(no comparison: ");
    history_print_word(out, why);
    (void)buf_add_c(out, ")\n");
}

/* ---- show ---- */

void history_print_head(struct buf *out, struct history_style style,
                        const struct ng_value *answer)
{
    print_colour(out, style, PRINT_YELLOW);
    (void)buf_add_c(out, "document ");
    history_print_title(out, answer);
    (void)buf_add_char(out, '@');
    print_revision(out, answer, "revision");
    print_colour(out, style, PRINT_END);
    (void)buf_add_char(out, '\n');
    print_made(out, answer);
    for (const struct ng_value *member = json_first(json_get(answer, "members"));
         member != NULL; member = member->next) {
        history_print_word(out, member->key);
        (void)buf_add_c(out, ": ");
        history_print_word(out, member->text); /* of a list, its JSON */
        (void)buf_add_char(out, '\n');
    }
    (void)buf_add_char(out, '\n');
}

/* ---- diff ---- */

/* The header lines as the tool prints them: ids may have line feeds. */
static void print_header_raw(struct buf *out, const struct ng_value *answer, const char *sign,
                             const char *revision)
{
    struct ng_str space = json_get_text(answer, "space");
    struct ng_str collection = json_get_text(answer, "collection");
    struct ng_str id = json_get_text(answer, "id");
    (void)buf_printf(out, "%s ", sign);
    if (!history_print_is_file(answer)) {
        (void)buf_printf(out, "%.*s/%.*s/", (int)space.len, space.data, (int)collection.len,
                         collection.data);
    }
    (void)buf_printf(out, "%.*s@%" PRId64 "\n", (int)id.len, id.data,
                     json_get_integer(answer, revision));
}

/* One line each, whatever is in the id. Returns how many bytes of the diff they were. */
static size_t print_header(struct buf *out, struct history_style style,
                           const struct ng_value *answer, struct ng_str diff)
{
    struct buf raw;
    buf_init(&raw, PRINT_HEADER_MAX);
    print_header_raw(&raw, answer, "---", "from");
    size_t first = raw.len;
    print_header_raw(&raw, answer, "+++", "to");
    size_t len = 0;
    if (raw.rc == NG_OK && str_starts(diff, buf_str(&raw))) {
        len = raw.len;
        print_colour(out, style, PRINT_BOLD);
        history_print_word(out, str_make(raw.data, first - 1));
        print_colour(out, style, PRINT_END);
        (void)buf_add_char(out, '\n');
        print_colour(out, style, PRINT_BOLD);
        history_print_word(out, str_make(raw.data + first, raw.len - first - 1));
        print_colour(out, style, PRINT_END);
        (void)buf_add_char(out, '\n');
    }
    buf_done(&raw);
    return len;
}

static const char *print_line_colour(struct ng_str line)
{
    switch (line.len > 0 ? line.data[0] : ' ') {
    case '+':
        return PRINT_GREEN;
    case '-':
        return PRINT_RED;
    case '@':
        return PRINT_CYAN;
    default:
        return NULL;
    }
}

void history_print_diff(struct buf *out, struct history_style style,
                        const struct ng_value *answer)
{
    struct ng_str diff = str_or(json_get_text(answer, "diff"), ng_str_of(""));
    const struct ng_value *changed = json_first(json_get(answer, "changed"));
    if (changed != NULL) {
        (void)buf_add_c(out, "changed members: ");
    }
    for (; changed != NULL; changed = changed->next) {
        history_print_word(out, changed->text);
        (void)buf_add_c(out, changed->next != NULL ? ", " : "\n");
    }
    size_t header = print_header(out, style, answer, diff);
    struct ng_str rest = str_make(diff.data + header, diff.len - header);
    while (rest.len > 0) {
        struct ng_str line = history_print_take_line(&rest);
        const char *colour = style.is_coloured ? print_line_colour(line) : NULL;
        (void)buf_add_c(out, text_or(colour, ""));
        history_print_text(out, style, line);
        (void)buf_add_c(out, text_if(colour != NULL, PRINT_END));
        (void)buf_add_char(out, '\n');
    }
}

/* ---- diff of selected changes ---- */

/* A row without a diff says why. */
static struct ng_str print_reason(const struct ng_value *row)
{
    struct ng_str reason = json_get_text(row, "reason");
    if (json_get(row, "kept") != NULL) {
        return ng_str_of("its content is not kept");
    }
    if (str_is(reason, "not_text")) {
        return ng_str_of("the content is not UTF-8");
    }
    if (str_is(reason, "too_large")) {
        return ng_str_of("the content is too large");
    }
    return ng_str_of("those before it are long already; compare this document alone");
}

void history_print_changed(struct buf *out, struct history_style style,
                           const struct ng_value *row)
{
    int64_t others = json_get_integer(row, "others");
    print_colour(out, style, PRINT_YELLOW);
    (void)buf_add_c(out, "document ");
    history_print_title(out, row);
    (void)buf_add_char(out, '@');
    print_revision(out, row, "from");
    (void)buf_add_c(out, "..");
    print_revision(out, row, "to");
    print_colour(out, style, PRINT_END);
    (void)buf_add_char(out, '\n');
    if (others > 0) {
        (void)buf_printf(out, "with %" PRId64 " other %s between\n", others,
                         others == 1 ? "change" : "changes");
    }
    history_print_diff(out, style, row);
    if (json_get(row, "diff") == NULL) {
        history_print_note(out, print_reason(row));
    }
}

void history_print_changed_stat(struct buf *out, struct history_style style,
                                const struct ng_value *row)
{
    if (json_get(row, "added") != NULL) {
        history_print_stat(out, style, row);
        return;
    }
    (void)buf_add_char(out, ' ');
    history_print_title(out, row);
    (void)buf_add_c(out, " | not kept\n");
}

/* ---- blame ---- */

/* Columns of the maker of a line. "-": another program. */
static const char *const blame_columns[] = {"agent", "run", "tool"};

struct blame_widths {
    int revision, line, columns[NG_COUNT(blame_columns)];
};

static int print_wider(int width, int other)
{
    return other > width ? other : width;
}

static struct blame_widths print_widths(const struct ng_value *rows)
{
    struct blame_widths widths = {1, 1, {1, 1, 1}};
    for (const struct ng_value *row = json_first(rows); row != NULL; row = row->next) {
        for (size_t i = 0; i < NG_COUNT(blame_columns); i++) {
            size_t len = json_get_text(row, blame_columns[i]).len;
            widths.columns[i] = print_wider(widths.columns[i], (int)size_min(len, INT32_MAX));
        }
        widths.revision =
            print_wider(widths.revision, print_digits(json_get_integer(row, "revision")));
        widths.line = print_wider(widths.line, print_digits(json_get_integer(row, "last")));
    }
    return widths;
}

static void print_origin(struct buf *out, struct history_style style,
                         const struct ng_value *row, struct blame_widths widths, int64_t line)
{
    struct ng_str time = json_get_text(row, "time");
    print_colour(out, style, PRINT_YELLOW);
    (void)buf_printf(out, "%*" PRId64, widths.revision, json_get_integer(row, "revision"));
    print_colour(out, style, PRINT_END);
    (void)buf_add_c(out, " (");
    for (size_t i = 0; i < NG_COUNT(blame_columns); i++) {
        struct ng_str text = str_or(json_get_text(row, blame_columns[i]), ng_str_of("-"));
        history_print_word(out, text);
        (void)buf_printf(out, "%*s ", widths.columns[i] - (int)size_min(text.len, INT32_MAX),
                         "");
    }
    history_print_word(out, str_make(time.data, size_min(time.len, PRINT_TIME_SECONDS)));
    (void)buf_printf(out, "Z %*" PRId64 ") ", widths.line, line);
}

void history_print_blame(struct buf *out, struct history_style style,
                         const struct ng_value *answer)
{
    const struct ng_value *rows = json_get(answer, "lines");
    struct blame_widths widths = print_widths(rows);
    for (const struct ng_value *row = json_first(rows); row != NULL; row = row->next) {
        struct ng_str rest = json_get_text(row, "text");
        int64_t last = json_get_integer(row, "last");
        for (int64_t line = json_get_integer(row, "first"); line <= last; line++) {
            struct ng_str text = history_print_take_line(&rest);
            /* A text that ends in a line feed has an empty last line, which is not shown. */
            if (line == json_get_integer(answer, "total_lines") && text.len == 0) {
                return;
            }
            print_origin(out, style, row, widths, line);
            history_print_text(out, style, text);
            (void)buf_add_char(out, '\n');
        }
    }
}
