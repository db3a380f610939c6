/* SPDX-License-Identifier: MIT */
/* history_summary.c - a change in one line: the first line that it put in, else how many it
 * removed. */
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

/* Characters of a summary. */
#define SUMMARY_CHARS ((size_t)100)

/* The first line of the text that is not blank, from the byte `from` on, of those that begin
 * before `to`. Absent: there is none. */
static struct ng_str first_line(struct ng_str text, size_t from, size_t to)
{
    while (from > 0 && text.data[from - 1] != '\n') {
        from--;
    }
    while (from < to) {
        const char *feed = memchr(text.data + from, '\n', text.len - from);
        size_t end = feed != NULL ? (size_t)(feed - text.data) : text.len;
        struct ng_str line = str_trim(str_make(text.data + from, end - from));
        if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len > 0) {
            return line;
        }
        from = end + 1;
    }
    return str_make(NULL, 0);
}

/* The first line of what the new text has in place of the old one's. */
static struct ng_str line_put_in(struct ng_str old, struct ng_str new)
{
    size_t least = size_min(old.len, new.len);
    size_t same = 0;
    while (same < least && old.data[same] == new.data[same]) {
        same++;
    }
    size_t end = 0;
    while (end < least - same && old.data[old.len - 1 - end] == new.data[new.len - 1 - end]) {
        end++;
    }
    if (new.len - end == same) {
        return str_make(NULL, 0); /* nothing was put in */
    }
    return first_line(new, same, new.len - end);
}

static struct ng_str shortened(struct ng_call *call, struct ng_str line)
{
    size_t len = 0;
    for (size_t chars = 0; chars < SUMMARY_CHARS && len < line.len; chars++) {
        len++;
        while (len < line.len && !utf8_is_start(line.data[len])) {
            len++;
        }
    }
    return call->host->format(call, "%.*s", (int)len, line.data);
}

static struct ng_str removed_lines(struct ng_call *call, const struct ng_event *event,
                                   struct ng_str old)
{
    uint64_t lines = history_count_lines(old);
    if (event->origin.has_lines) {
        lines = event->origin.lines_removed;
    }
    return call->host->format(call, "removed %llu %s", (unsigned long long)lines,
                              lines == 1 ? "line" : "lines");
}

/* What the plugin of another collection says of the change. */
static struct ng_str said(struct ng_call *call, const struct ng_value *data)
{
    struct ng_str text = call->host->json_text(call->host->json_get(data, "summary"));
    if (text.len == 0) {
        text = call->host->json_text(call->host->json_get(data, "title"));
    }
    return shortened(call, first_line(text, 0, text.len));
}

/* The text of a revision; "" where there was none or it is not kept. */
static int text_of(struct ng_call *call, const struct ng_key *key, uint64_t revision,
                   struct ng_str *ret, bool *ret_kept)
{
    const struct ng_doc *doc = NULL;
    *ret = ng_str_of("");
    *ret_kept = true;
    if (revision == 0) {
        return NG_OK;
    }
    int rc = call->host->get(call, key, revision, &doc);
    if (rc == NG_OK && !doc->deleted) {
        *ret = doc->text;
    }
    *ret_kept = rc == NG_OK;
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

int history_summary(struct ng_call *call, const struct ng_event *event,
                    const struct ng_value *data, struct ng_str *ret, bool *ret_kept)
{
    const struct ng_collection *collection =
        call->host->collection(call, event->key.collection);
    struct ng_str old;
    struct ng_str new;
    bool old_kept = false;
    *ret_kept = false;
    *ret = said(call, data);
    if (collection == NULL || (collection->flags & NG_COLLECTION_CONTENT) == 0) {
        return NG_OK;
    }
    int rc = text_of(call, &event->key, event->revision, &new, ret_kept);
    if (rc == NG_OK && *ret_kept) {
        rc = text_of(call, &event->key, event->revision - 1, &old, &old_kept);
    }
    if (rc != NG_OK || !*ret_kept || !old_kept) {
        return rc;
    }
    struct ng_str line = line_put_in(old, new);
    if (line.len > 0) {
        *ret = shortened(call, line);
    } else if (old.len > new.len) {
        *ret = removed_lines(call, event, old);
    }
    return NG_OK;
}
