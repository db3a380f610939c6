/* SPDX-License-Identifier: MIT */
/* entry_edit.c - the next text of an entry. All edits of a call apply or none does: they work
 * on a copy. */
#include "entry_edit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/line_ends.h"
#include "core/base/text/text_near.h"
#include "entry_text.h"

/* Lines that a failed edit lists. */
#define EDIT_LINES_MAX 20
/* Bytes of a text while it is edited; entry_draft_store() checks the limit of entries. */
#define EDIT_BYTES_MAX ((size_t)1024 * 1024 * 1024)
/* Bytes that a derived summary can depend on: one character more than it has. */
#define EDIT_HEAD_MAX (4 * (ENTRY_SUMMARY_CHARS + 1))

int entry_edit_kind(struct ng_call *call, enum entry_edit_kind *ret)
{
    bool content = ng_has_arg(call, "content");
    bool append = ng_has_arg(call, "append");
    bool edits = ng_has_arg(call, "edits");
    bool section = ng_has_arg(call, "section");
    if (content + append + edits > 1) {
        return entry_invalid(call, content ? "/content" : "/append",
                             ng_str_of("one of `content`, `append` and `edits`"),
                             ng_str_of("several of them"));
    }
    if (section && !content && !append) {
        return entry_invalid(call, "/section", ng_str_of("`content` or `append` beside it"),
                             ng_str_of("`section` without them"));
    }
    if (section) {
        *ret = content ? ENTRY_SECTION : ENTRY_SECTION_APPEND;
    } else if (content) {
        *ret = ENTRY_REPLACE;
    } else if (append) {
        *ret = ENTRY_APPEND;
    } else if (edits) {
        *ret = ENTRY_EDITS;
    } else {
        *ret = ENTRY_KEEP;
    }
    return NG_OK;
}

/* ---- edits that do not apply ---- */

/* An edit that fails. Nothing is changed then: its lines are those of the present text, where
 * that has the fault, too. */
struct edit_fault {
    struct ng_str present; /* the text of the entry */
    struct ng_str text;    /* with the edits before this one */
    struct ng_str old;     /* the text to replace */
    size_t index;
};

#define EDIT_AFTER_SIZE 40

/* " after edit 3" for lines of the text that three edits make; "" for those of the present. */
static void edit_after(size_t after, char out[EDIT_AFTER_SIZE])
{
    out[0] = '\0';
    if (after > 0) {
        (void)snprintf(out, EDIT_AFTER_SIZE, " after edit %zu", after);
    }
}

static struct ng_writer *edit_details(struct ng_call *call, const struct entry_draft *draft,
                                      const struct edit_fault *fault, size_t after)
{
    struct ng_writer *writer = call->host->details(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", draft->key.id);
    entry_put_int(call, writer, "current_version", draft->version - 1);
    entry_put_int(call, writer, "edit", fault->index);
    entry_put(call, writer, "old_str", entry_quoted(fault->old));
    if (after > 0) {
        entry_put_int(call, writer, "after_edit", after);
    }
    call->host->json_name(writer, "lines");
    call->host->json_array(writer);
    return writer;
}

static void edit_details_end(struct ng_call *call, struct ng_writer *writer)
{
    call->host->json_end(writer);
    call->host->json_end(writer);
}

static void edit_put_line(struct ng_call *call, struct ng_writer *writer, struct ng_str text,
                          size_t at)
{
    uint64_t number = entry_line_of(text, at);
    size_t from = entry_line_at(text, number);
    size_t to = entry_line_at(text, number + 1);
    struct ng_str line = {text.data + from, to - from};
    call->host->json_object(writer);
    entry_put_int(call, writer, "line", number);
    entry_put(call, writer, "text", entry_quoted(entry_trim(line)));
    call->host->json_end(writer);
}

/* The first line of a text that is not blank, without white space around it. */
static struct ng_str edit_first_line(struct ng_str text)
{
    struct ng_str line = entry_trim(text);
    const char *end = NULL;
    if (line.len > 0) {
        end = memchr(line.data, '\n', line.len);
    }
    if (end != NULL) {
        line.len = (size_t)(end - line.data);
    }
    return entry_trim(line);
}

/* `found`: the place of the first line in `seen`; SIZE_MAX: it has none. */
static void edit_hint_no_match(struct ng_call *call, const struct edit_fault *fault,
                               struct ng_str seen, size_t found, const char *after)
{
    char note[TEXT_NEAR_NOTE_SIZE];
    size_t at = str_find(fault->present, fault->old, 0);
    if (at != SIZE_MAX) {
        call->host->hint(call,
                         "Line %llu has it, but an edit before this one changes that: edits "
                         "apply one after the other.",
                         (unsigned long long)entry_line_of(fault->present, at));
    } else if (text_near(fault->present, fault->old, "old_str", note)) {
        call->host->hint(call, "%s", note);
    } else if (text_near(fault->text, fault->old, "old_str", note)) {
        call->host->hint(call, "After edit %zu: %s", fault->index, note);
    } else if (found != SIZE_MAX) {
        call->host->hint(call,
                         "Line %llu%s has its first line, the rest differs: read the entry "
                         "again and copy the text with its spaces and line ends.",
                         (unsigned long long)entry_line_of(seen, found), after);
    } else {
        call->host->hint(call, "Read the entry again: another agent may have changed it.");
    }
}

/* Lists the lines that contain the first line of the text that was not found. */
static int edit_no_match(struct ng_call *call, const struct entry_draft *draft,
                         const struct edit_fault *fault)
{
    struct ng_str line = edit_first_line(fault->old);
    struct ng_str shown = entry_quoted(fault->old);
    struct ng_str seen = fault->present;
    size_t found = str_find(seen, line, 0);
    size_t after = 0;
    char after_text[EDIT_AFTER_SIZE];
    (void)ng_fail(call, AGENT_NOTEBOOK_EDIT_NO_MATCH,
                  "edit %zu: the text to replace is not in the entry: '%.*s%s'; nothing was "
                  "changed",
                  fault->index + 1, (int)shown.len, shown.data,
                  shown.len < fault->old.len ? "..." : "");
    if (found == SIZE_MAX) {
        seen = fault->text;
        found = str_find(seen, line, 0);
        after = found != SIZE_MAX ? fault->index : 0;
    }
    edit_after(after, after_text);
    edit_hint_no_match(call, fault, seen, found, after_text);
    struct ng_writer *writer = edit_details(call, draft, fault, after);
    for (int i = 0; found != SIZE_MAX && i < EDIT_LINES_MAX; i++) {
        edit_put_line(call, writer, seen, found);
        found = str_find(seen, line, found + line.len);
    }
    edit_details_end(call, writer);
    return AGENT_NOTEBOOK_EDIT_NO_MATCH;
}

/* The next place of the text to replace, which may overlap the one before. */
static size_t edit_next(struct ng_str text, struct ng_str old, size_t at)
{
    return at == SIZE_MAX ? SIZE_MAX : str_find(text, old, at + 1);
}

static int edit_ambiguous(struct ng_call *call, const struct entry_draft *draft,
                          const struct edit_fault *fault)
{
    struct ng_str old = fault->old;
    struct ng_str shown = entry_quoted(old);
    struct ng_str seen = fault->present;
    size_t first = str_find(seen, old, 0);
    size_t second = edit_next(seen, old, first);
    size_t after = 0;
    char after_text[EDIT_AFTER_SIZE];
    if (second == SIZE_MAX) {
        seen = fault->text;
        first = str_find(seen, old, 0);
        second = edit_next(seen, old, first);
        after = fault->index;
    }
    edit_after(after, after_text);
    (void)ng_fail(call, AGENT_NOTEBOOK_EDIT_AMBIGUOUS,
                  "edit %zu: the text to replace is there more than once%s (lines %llu, "
                  "%llu%s): '%.*s%s'; nothing was changed",
                  fault->index + 1, after_text, (unsigned long long)entry_line_of(seen, first),
                  (unsigned long long)entry_line_of(seen, second),
                  edit_next(seen, old, second) != SIZE_MAX ? ", ..." : "", (int)shown.len,
                  shown.data, shown.len < old.len ? "..." : "");
    call->host->hint(call, "Add text around it to old_str until it is there only once.");
    struct ng_writer *writer = edit_details(call, draft, fault, after);
    size_t at = first;
    for (int i = 0; at != SIZE_MAX && i < EDIT_LINES_MAX; i++) {
        edit_put_line(call, writer, seen, at);
        at = edit_next(seen, old, at);
    }
    edit_details_end(call, writer);
    return AGENT_NOTEBOOK_EDIT_AMBIGUOUS;
}

/* ---- the kinds ---- */

static int edit_one(struct ng_call *call, const struct entry_draft *draft,
                    struct ng_str present, struct buf *text, size_t index,
                    const struct ng_value *edit)
{
    const struct ng_host *host = call->host;
    struct ng_str old = host->json_text(host->json_get(edit, "old_str"));
    struct ng_str new = host->json_text(host->json_get(edit, "new_str"));
    struct edit_fault fault = {
        .present = present, .text = buf_str(text), .old = old, .index = index};
    size_t at = str_find(fault.text, old, 0);
    if (at == SIZE_MAX) {
        return edit_no_match(call, draft, &fault);
    }
    if (edit_next(fault.text, old, at) != SIZE_MAX) {
        return edit_ambiguous(call, draft, &fault);
    }
    if (buf_splice(text, at, old.len, new) == NG_OK) {
        return NG_OK;
    }
    return entry_no_memory(call);
}

/* Gives a text on the heap to the store. */
static int edit_give(struct ng_call *call, const struct buf *text, struct entry_draft *draft,
                     struct ng_draft *next)
{
    struct ng_str whole = buf_str(text);
    draft->text = entry_join(call, &whole, 1);
    if (text->rc != NG_OK || draft->text.data == NULL) {
        return entry_no_memory(call);
    }
    draft->bytes = whole.len;
    draft->words = entry_words(draft->text);
    return call->host->draft_text(next, &draft->text, 1);
}

static int edit_many(struct ng_call *call, struct ng_str present, struct entry_draft *draft,
                     struct ng_draft *next)
{
    const struct ng_host *host = call->host;
    const struct ng_value *edits = ng_arg(call, "edits");
    struct buf text;
    size_t index = 0;
    int rc = NG_OK;
    buf_init(&text, EDIT_BYTES_MAX);
    if (buf_add_str(&text, present) != NG_OK) {
        rc = entry_no_memory(call);
    }
    for (const struct ng_value *edit = host->json_first(edits); rc == NG_OK && edit != NULL;
         edit = host->json_next(edit)) {
        rc = edit_one(call, draft, present, &text, index, edit);
        index++;
    }
    if (rc == NG_OK) {
        rc = edit_give(call, &text, draft, next);
    }
    buf_done(&text);
    draft->did =
        host->format(call, "content edited in %zu place%s", index, index == 1 ? "" : "s");
    return rc;
}

/* Does the last line end of the text have a CR? */
static bool ends_dos(struct ng_str text)
{
    const char *line = text.len > 0 ? memrchr(text.data, '\n', text.len) : NULL;
    return line != NULL && line > text.data && line[-1] == '\r';
}

/* The text with CRLF for LF. Call memory; {NULL, 0}: out of it. */
static struct ng_str with_dos(struct ng_call *call, struct ng_str text)
{
    bool crlf = true;
    char *made = ng_alloc(call, 2 * text.len + 1);
    return str_make(made, made != NULL ? line_ends_follow(text, STR_NONE, crlf, made) : 0);
}

/* On a line of its own, with the line ends of the text. Only the new text is scanned, so that
 * the cost of an append depends on its own length. */
static int edit_append(struct ng_call *call, struct ng_str present, struct entry_draft *draft,
                       struct ng_draft *next)
{
    struct ng_str more = ng_arg_text(call, "append");
    bool open = present.len > 0 && present.data[present.len - 1] != '\n';
    if (open && more.len > 0 && !str_begins(more, "\n") && !str_begins(more, "\r\n")) {
        more = entry_join(call, (struct ng_str[]){ng_str_of("\n"), more}, 2);
    }
    if (ends_dos(present)) {
        more = with_dos(call, more);
        if (more.data == NULL) {
            return entry_no_memory(call);
        }
    }
    bool rescan = entry_may_head(more);
    draft->bytes = (uint64_t)present.len + more.len;
    struct ng_str pieces[] = {present, more};
    if (!rescan) { /* only the beginning is needed, for the summary */
        pieces[0].len = size_min(present.len, EDIT_HEAD_MAX);
        pieces[1].len = size_min(more.len, EDIT_HEAD_MAX - pieces[0].len);
    }
    draft->text = entry_join(call, pieces, NG_COUNT(pieces));
    draft->words += entry_words(more);
    draft->same_headings = !rescan;
    draft->did = ng_str_of("content appended");
    return call->host->draft_splice(next, present.len, 0, more);
}

/* ---- a section ---- */

/* Bytes of blank lines at the beginning of the text. */
static size_t blank_head(struct ng_str text)
{
    size_t blank = 0;
    for (size_t at = 0; at < text.len; at++) {
        if (text.data[at] == '\n') {
            blank = at + 1;
        } else if (text.data[at] != ' ' && text.data[at] != '\t' && text.data[at] != '\r') {
            return blank;
        }
    }
    return text.len;
}

/* The position of the blank lines at the end of the text, behind its last line with text. */
static size_t blank_tail(struct ng_str text)
{
    size_t end = text.len;
    while (end > 0 && memchr(" \t\r\n", text.data[end - 1], 4) != NULL) {
        end--;
    }
    const char *line = NULL;
    if (end < text.len) {
        line = memchr(text.data + end, '\n', text.len - end);
    }
    if (line == NULL) {
        return text.len;
    }
    return (size_t)(line - text.data) + 1;
}

/* The parts of the text around a section that is replaced, and the line ends between them. */
struct edit_cut {
    struct ng_str before, after;
    struct ng_str line_end;
    bool open;   /* the heading ends the text, without a line end */
    bool closed; /* the old text ends with a line end, so the new one must, too */
    bool gap;    /* a blank line has to be added before the heading that follows */
};

/* Keeps blank lines below the heading and above the next one, and ensures at least one
 * before the next heading: an underlined heading would otherwise absorb the last line of the
 * new text. */
static void edit_cut(struct ng_str text, const struct entry_section *section,
                     struct edit_cut *cut)
{
    size_t from = section->heading.body;
    struct ng_str body = {text.data + from, section->end - from};
    size_t head = blank_head(body);
    size_t tail = blank_tail(body);
    bool empty = head == body.len;
    bool dos = from >= 2 && text.data[from - 2] == '\r' && text.data[from - 1] == '\n';
    cut->line_end = ng_str_of(dos ? "\r\n" : "\n");
    cut->before.data = text.data;
    cut->before.len = from + (empty ? 0 : head);
    size_t rest = from + (empty ? 0 : tail);
    cut->after.data = text.data + rest;
    cut->after.len = text.len - rest;
    cut->open = from == text.len && text.data[from - 1] != '\n';
    cut->closed = text.data[text.len - 1] == '\n';
    cut->gap = section->end < text.len && (empty ? head : body.len - tail) == 0;
}

static void edit_join(struct buf *text, const struct edit_cut *cut, struct ng_str content)
{
    bool ends = content.len == 0 || content.data[content.len - 1] == '\n';
    buf_add_str(text, cut->before);
    if (cut->open) {
        buf_add_str(text, cut->line_end);
    }
    buf_add_str(text, content);
    if (!ends && (cut->after.len > 0 || cut->closed)) {
        buf_add_str(text, cut->line_end);
    }
    if (content.len > 0 && cut->gap) {
        buf_add_str(text, cut->line_end);
    }
    buf_add_str(text, cut->after);
}

/* An ambiguous name is refused, not guessed. */
static int edit_section_again(struct ng_call *call, const struct entry_draft *draft,
                              struct ng_str text, const struct entry_section *section)
{
    struct ng_str name = entry_heading_text(call, &section->heading);
    struct ng_str shown = entry_quoted(name);
    (void)ng_fail(call, AGENT_NOTEBOOK_EDIT_AMBIGUOUS,
                  "the heading '%.*s%s' is in the entry more than once (lines %llu, %llu); "
                  "nothing was changed",
                  (int)shown.len, shown.data, shown.len < name.len ? "..." : "",
                  (unsigned long long)entry_line_of(text, section->heading.at),
                  (unsigned long long)entry_line_of(text, section->again));
    call->host->hint(
        call, "Change the section with `edits`, or give its heading another text first.");
    struct ng_writer *writer = call->host->details(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", draft->key.id);
    call->host->json_name(writer, "lines");
    call->host->json_array(writer);
    edit_put_line(call, writer, text, section->heading.at);
    edit_put_line(call, writer, text, section->again);
    edit_details_end(call, writer);
    return AGENT_NOTEBOOK_EDIT_AMBIGUOUS;
}

/* Takes the section's own heading away from the beginning of its new text, as it stays anyway.
 * Blank lines below it replace the ones that are there. */
static struct ng_str without_heading(struct ng_str content, const struct entry_section *section,
                                     struct edit_cut *cut)
{
    struct entry_section own;
    if (!entry_find_section(content, section->heading.text, &own) ||
        own.heading.level != section->heading.level || own.heading.at != blank_head(content)) {
        return content;
    }
    content.data += own.heading.body;
    content.len -= own.heading.body;
    if (content.len > 0 && blank_head(content) > 0) {
        cut->before.len = section->heading.body;
    }
    return content;
}

/* Makes the cut for text at the end of the section: behind its last line that is not blank. */
static void edit_cut_behind(struct ng_str text, const struct entry_section *section,
                            struct ng_str more, struct edit_cut *cut)
{
    cut->before.len = (size_t)(cut->after.data - text.data);
    cut->open = more.len > 0 && text.data[cut->before.len - 1] != '\n';
    cut->gap = cut->gap && section->next_underlined;
}

static int edit_section(struct ng_call *call, enum entry_edit_kind kind, struct ng_str present,
                        struct entry_draft *draft, struct ng_draft *next)
{
    bool appends = kind == ENTRY_SECTION_APPEND;
    struct ng_str name = ng_arg_text(call, "section");
    struct ng_str content = ng_arg_text(call, appends ? "append" : "content");
    struct entry_section section;
    struct edit_cut cut;
    if (!entry_find_section(present, name, &section)) {
        return entry_no_section(call, &draft->key, present, name);
    }
    if (section.again != SIZE_MAX) {
        return edit_section_again(call, draft, present, &section);
    }
    edit_cut(present, &section, &cut);
    if (appends) {
        edit_cut_behind(present, &section, content, &cut);
    } else {
        content = without_heading(content, &section, &cut);
    }
    if (cut.line_end.len > 1) {
        content = with_dos(call, content);
        if (content.data == NULL) {
            return entry_no_memory(call);
        }
    }
    struct buf text;
    buf_init(&text, EDIT_BYTES_MAX);
    edit_join(&text, &cut, content);
    int rc = edit_give(call, &text, draft, next);
    buf_done(&text);
    struct ng_str shown = entry_quoted(name);
    draft->did = call->host->format(
        call, appends ? "content appended to section '%.*s'" : "section '%.*s' replaced",
        (int)shown.len, shown.data);
    return rc;
}

int entry_edit(struct ng_call *call, enum entry_edit_kind kind, struct ng_str present,
               struct entry_draft *draft, struct ng_draft *next)
{
    draft->text = present;
    draft->bytes = present.len;
    if (kind == ENTRY_KEEP) {
        return NG_OK;
    }
    draft->text_changed = true;
    if (kind == ENTRY_APPEND) {
        return edit_append(call, present, draft, next);
    }
    draft->same_headings = false;
    if (kind == ENTRY_EDITS) {
        return edit_many(call, present, draft, next);
    }
    if (kind == ENTRY_SECTION || kind == ENTRY_SECTION_APPEND) {
        return edit_section(call, kind, present, draft, next);
    }
    draft->text = ng_arg_text(call, "content");
    draft->bytes = draft->text.len;
    draft->words = entry_words(draft->text);
    draft->did = ng_str_of("content updated");
    return call->host->draft_text(next, &draft->text, 1);
}
