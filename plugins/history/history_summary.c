/* SPDX-License-Identifier: MIT */
/* history_summary.c - a change in one line: the first line that it put in, else how many it
 * removed. */
#include <string.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of a text that is summed up. */
#define SUMMARY_TEXT_MAX ((size_t)256 << 20)
/* Characters of a summary. */
#define SUMMARY_CHARS ((size_t)100)

/* The first line of the text that is not blank, of those from the byte `from` on that begin
 * before `to`. Absent: there is none. */
static struct ng_str first_line(struct ng_str text, size_t from, size_t to)
{
    while (from < to) {
        struct ng_str whole = history_line(text, from);
        struct ng_str line = str_trim(whole);
        if (line.len > 0 && line.data[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len > 0) {
            return line;
        }
        from += whole.len + 1;
    }
    return str_make(NULL, 0);
}

static bool line_ends_at(struct ng_str text, size_t at)
{
    return at == text.len || text.data[at] == '\n';
}

static bool line_begins_at(struct ng_str text, size_t at)
{
    return at == 0 || text.data[at - 1] == '\n';
}

/* The beginning of the first line that is not the same in both texts, which have so many first
 * bytes in common. */
static size_t line_that_differs(struct ng_str old, struct ng_str new, size_t same)
{
    if (line_ends_at(old, same) && line_ends_at(new, same)) {
        return same + 1;
    }
    while (!line_begins_at(new, same)) {
        same--;
    }
    return same;
}

/* The first line of what the new text has in place of the old one's. */
static struct ng_str line_put_in(struct ng_str old, struct ng_str new)
{
    size_t least = size_min(old.len, new.len);
    size_t same = 0;
    while (same < least && old.data[same] == new.data[same]) {
        same++;
    }
    size_t from = line_that_differs(old, new, same);
    size_t most = least - size_min(from, least);
    size_t end = 0;
    while (end < most && old.data[old.len - 1 - end] == new.data[new.len - 1 - end]) {
        end++;
    }
    while (end > 0 &&
           !(line_begins_at(old, old.len - end) && line_begins_at(new, new.len - end))) {
        end--;
    }
    return first_line(new, from, new.len - end);
}

static struct ng_str shortened(struct ng_call *call, struct ng_str line)
{
    return history_copy(call, utf8_cut_count(line, SUMMARY_CHARS));
}

/* The summary or title that the plugin has put into the event. */
static struct ng_str said(struct ng_call *call, const struct ng_value *data)
{
    struct ng_str text = call->host->json_text(call->host->json_get(data, "summary"));
    if (text.len == 0) {
        text = call->host->json_text(call->host->json_get(data, "title"));
    }
    return shortened(call, first_line(text, 0, text.len));
}

/* The texts of a revision and of the one before it. */
struct texts {
    uint64_t revision;
    struct buf new;
    struct ng_str line; /* that was put in; in `call` memory */
    struct ng_call *call;
    uint64_t added, removed; /* lines, as the change has recorded them */
    bool has_new, has_old;
};

static void compare_texts(struct texts *texts, struct ng_str old)
{
    struct ng_str line = line_put_in(old, buf_str(&texts->new));
    texts->has_old = true;
    if (line.len > 0) {
        texts->line = shortened(texts->call, line);
    }
}

/* The revision, then the one before it. */
static int take_text(void *user, const struct ng_doc *row)
{
    struct texts *texts = user;
    bool shows = !row->deleted && utf8_valid(row->text);
    struct ng_str text = shows ? row->text : ng_str_of("");
    if (row->revision == texts->revision) {
        texts->added = row->origin.lines_added;
        texts->removed = row->origin.lines_removed;
        texts->has_new = buf_add_str(&texts->new, text) == NG_OK;
        return !texts->has_new;
    }
    compare_texts(texts, text);
    return 1;
}

static int read_texts(struct texts *texts, const struct ng_key *key)
{
    const struct ng_range range = {.size = sizeof(range),
                                   .from = texts->revision - (texts->revision > 1),
                                   .to = texts->revision,
                                   .limit = 2,
                                   .with_body = true};
    int rc = texts->call->host->history(texts->call, key, &range, take_text, texts);
    if (rc == NG_OK && texts->has_new && texts->revision == 1) {
        compare_texts(texts, ng_str_of(""));
    }
    return rc == NG_ENOTFOUND ? NG_OK : rc; /* forgotten since */
}

static struct ng_str removed_lines(struct ng_call *call, uint64_t lines)
{
    return call->host->format(call, "removed %llu %s", (unsigned long long)lines,
                              lines == 1 ? "line" : "lines");
}

/* Of a file that was moved. */
static struct ng_str moved(struct ng_call *call, const struct ng_value *data)
{
    static const char *const ways[] = {"to", "from"};
    for (size_t i = 0; i < NG_COUNT(ways); i++) {
        struct ng_str path = call->host->json_text(call->host->json_get(data, ways[i]));
        if (path.len > 0) {
            return call->host->format(call, "moved %s %.*s", ways[i], (int)path.len, path.data);
        }
    }
    return STR_NONE;
}

/* The document with the revisions of the change. False: it keeps none. */
static bool summary_key(struct ng_call *call, const struct ng_event *event,
                        const struct ng_value *data, struct ng_key *ret_key,
                        uint64_t *ret_revision, bool *ret_file)
{
    const struct ng_collection *collection =
        call->host->collection(call, event->key.collection);
    *ret_file = history_file_version(call, event, data, ret_key, ret_revision);
    if (*ret_file) {
        return *ret_file;
    }
    *ret_key = event->key;
    *ret_revision = event->revision;
    return collection != NULL && (collection->flags & NG_COLLECTION_CONTENT) != 0;
}

int history_summary(struct ng_call *call, const struct ng_event *event,
                    const struct ng_value *data, struct ng_str *ret, bool *ret_kept)
{
    struct texts texts = {.call = call};
    struct ng_key key;
    bool is_file = false;
    *ret_kept = false;
    *ret = said(call, data);
    if (!summary_key(call, event, data, &key, &texts.revision, &is_file)) {
        return NG_OK;
    }
    buf_init(&texts.new, SUMMARY_TEXT_MAX);
    int rc = read_texts(&texts, &key);
    if (rc == NG_OK && texts.new.rc != NG_OK) {
        rc = history_no_memory(call);
    }
    struct ng_str way = is_file ? moved(call, data) : STR_NONE;
    *ret_kept = texts.has_new;
    if (way.len > 0) {
        *ret = way;
    } else if (texts.line.len > 0) {
        *ret = texts.line;
    } else if (texts.has_old && texts.removed > texts.added) {
        *ret = removed_lines(call, texts.removed);
    }
    buf_done(&texts.new);
    return rc;
}
