/* SPDX-License-Identifier: MIT */
/* link_rewrite.c - the bytes of a file whose links follow a move. The result is read again: if
 * a link in it is not the one that was meant, nothing is rewritten. */
#include "link_rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "index/index_link.h"
#include "link_gather.h"

/* Longest result, in addition to the bytes of the file. */
#define REWRITE_MORE ((size_t)64 * 1024 * 1024)

/* A part of the file and what replaces it. */
struct splice {
    size_t at, end;
    struct ng_str text;
};

struct plan {
    enum notes_link_change change;
    struct notes_link_target target;
};

struct rewrite {
    struct arena *arena;
    struct notes_link_use use;
    struct ng_str bytes, text; /* the file, and its valid UTF-8 */
    struct notes_gather gather;
    struct plan *plans; /* of each link */
    struct splice *splices;
    size_t count, room;
    struct notes_rewritten *ret;
};

/* ---- splices */

static int add_splice(struct rewrite *rewrite, size_t at, size_t end, struct ng_str text)
{
    if (text.data == NULL ||
        !notes_grow(rewrite->arena, (void **)&rewrite->splices, rewrite->count, &rewrite->room,
                    sizeof(*rewrite->splices))) {
        return NG_EINTERNAL;
    }
    rewrite->splices[rewrite->count++] = (struct splice){at, end, text};
    return NG_OK;
}

static int compare_splices(const void *a, const void *b)
{
    const struct splice *one = a;
    const struct splice *other = b;
    return (one->at > other->at) - (one->at < other->at);
}

/* In order, each once: several references have one definition. */
static void sort_splices(struct rewrite *rewrite)
{
    size_t kept = 0;
    if (rewrite->count > 0) {
        qsort(rewrite->splices, rewrite->count, sizeof(*rewrite->splices), compare_splices);
    }
    for (size_t i = 0; i < rewrite->count; i++) {
        if (kept == 0 || rewrite->splices[i].at != rewrite->splices[kept - 1].at) {
            rewrite->splices[kept++] = rewrite->splices[i];
        }
    }
    rewrite->count = kept;
}

/* Offsets in the text become offsets in the bytes: a bad byte is one character of the text. */
static void place_splices(struct rewrite *rewrite)
{
    struct ng_str bytes = rewrite->bytes;
    size_t byte = 0;
    size_t at = 0;
    if (rewrite->bytes.len == rewrite->text.len) {
        return;
    }
    for (size_t i = 0; i < rewrite->count; i++) {
        struct splice *splice = &rewrite->splices[i];
        size_t *places[2] = {&splice->at, &splice->end};
        for (size_t end = 0; end < 2; end++) {
            while (at < *places[end] && byte < bytes.len) {
                char scratch[UTF8_BYTES_MAX];
                at += utf8_encode(utf8_next(bytes, &byte), scratch);
            }
            *places[end] = byte;
        }
    }
}

static struct ng_str spliced(struct rewrite *rewrite)
{
    struct buf out;
    size_t at = 0;
    buf_init(&out, rewrite->bytes.len + REWRITE_MORE);
    for (size_t i = 0; i < rewrite->count; i++) {
        const struct splice *splice = &rewrite->splices[i];
        if (splice->at < at) {
            buf_done(&out);
            return STR_NONE; /* a link in a link */
        }
        buf_add_str(&out, str_make(rewrite->bytes.data + at, splice->at - at));
        buf_add_str(&out, splice->text);
        at = splice->end;
    }
    buf_add_str(&out, str_make(rewrite->bytes.data + at, rewrite->bytes.len - at));
    struct ng_str made = STR_NONE;
    if (out.rc == NG_OK) {
        made = arena_copy(rewrite->arena, notes_buf_str(&out));
    }
    buf_done(&out);
    return made;
}

/* ---- new targets */

static struct ng_str written_target(struct rewrite *rewrite, const struct plan *plan, bool wiki,
                                    struct ng_str text, size_t at, size_t end)
{
    struct buf out;
    buf_init(&out, (end - at) + plan->target.path.len * 3 + 64);
    bool angle = !wiki && at > 0 && text.data[at - 1] == '<';
    notes_link_write(&out, &plan->target, wiki, str_make(text.data + at, end - at), angle);
    struct ng_str made = STR_NONE;
    if (out.rc == NG_OK) {
        made = arena_copy(rewrite->arena, notes_buf_str(&out));
    }
    buf_done(&out);
    return made;
}

/* The line of the file that a link's failure is told with. */
static int fail_link(struct rewrite *rewrite, const struct notes_gathered *link)
{
    rewrite->ret->line = link->line;
    rewrite->ret->target = link->target;
    return rewrite->arena->failed ? NG_EINTERNAL : NG_EINVAL;
}

static int splice_body_link(struct rewrite *rewrite, const struct notes_gathered *link,
                            const struct plan *plan)
{
    size_t at = link->at;
    size_t end = link->end;
    if (link->reference) {
        struct ng_str written = notes_gather_definition(&rewrite->gather, link);
        if (written.data == NULL) {
            return fail_link(rewrite, link);
        }
        at = (size_t)(written.data - rewrite->text.data);
        end = at + written.len;
    } else if (at == SIZE_MAX) {
        return fail_link(rewrite, link);
    }
    return add_splice(rewrite, at, end,
                      written_target(rewrite, plan, link->wiki, rewrite->text, at, end));
}

/* ---- front matter */

/* A text of front matter with its links rewritten, and the places of these in it. */
struct value_links {
    struct splice *items;
    size_t count, room;
};

static int plan_value(struct rewrite *rewrite, const struct notes_gathered_value *value,
                      struct value_links *ret)
{
    for (size_t i = value->first; i < value->first + value->count; i++) {
        const struct notes_gathered *link = &rewrite->gather.links[i];
        const struct plan *plan = &rewrite->plans[i];
        if (plan->change != NOTES_LINK_CHANGES) {
            continue;
        }
        if (link->at == SIZE_MAX) {
            return fail_link(rewrite, link);
        }
        if (!notes_grow(rewrite->arena, (void **)&ret->items, ret->count, &ret->room,
                        sizeof(*ret->items))) {
            return NG_EINTERNAL;
        }
        struct ng_str text =
            written_target(rewrite, plan, link->wiki, value->text, link->at, link->end);
        ret->items[ret->count++] = (struct splice){link->at, link->end, text};
    }
    if (ret->count > 0) {
        qsort(ret->items, ret->count, sizeof(*ret->items), compare_splices);
    }
    return rewrite->arena->failed ? NG_EINTERNAL : NG_OK;
}

static struct ng_str escaped(struct arena *arena, struct ng_str text, enum notes_style style)
{
    struct buf out;
    buf_init(&out, text.len * 2 + 2);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        notes_add_if(&out, style == NOTES_STYLE_DOUBLE && (c == '"' || c == '\\'), "\\");
        notes_add_if(&out, style == NOTES_STYLE_SINGLE && c == '\'', "'");
        buf_add_char(&out, c);
    }
    struct ng_str made = arena_copy(arena, notes_buf_str(&out));
    buf_done(&out);
    return made;
}

/* Replaces the targets where they are written as they are meant. *ret_found: all are. */
static int splice_value(struct rewrite *rewrite, const struct notes_gathered_value *value,
                        const struct value_links *links, bool *ret_found)
{
    struct ng_str written = str_make(rewrite->text.data + value->at, value->end - value->at);
    size_t from = 0;
    *ret_found = true;
    for (size_t i = 0; i < links->count; i++) {
        const struct splice *link = &links->items[i];
        /* With the bracket before it, a target is not found in plain text. */
        size_t more = size_min(link->at, 1);
        struct ng_str wanted =
            str_make(value->text.data + link->at - more, link->end - link->at + more);
        size_t found = str_find(written, wanted, from);
        if (found == SIZE_MAX) {
            *ret_found = false;
            return NG_OK;
        }
        size_t at = value->at + found + more;
        int rc = add_splice(rewrite, at, at + (link->end - link->at),
                            escaped(rewrite->arena, link->text, value->style));
        if (rc != NG_OK) {
            return rc;
        }
        from = found + wanted.len;
    }
    return NG_OK;
}

/* Writes the whole value between double quotes. */
static int quote_value(struct rewrite *rewrite, const struct notes_gathered_value *value,
                       const struct value_links *links)
{
    struct buf meant;
    struct buf quoted;
    size_t at = 0;
    buf_init(&meant, value->text.len + REWRITE_MORE);
    buf_init(&quoted, value->text.len * 6 + REWRITE_MORE);
    for (size_t i = 0; i < links->count; i++) {
        buf_add_str(&meant, str_make(value->text.data + at, links->items[i].at - at));
        buf_add_str(&meant, links->items[i].text);
        at = links->items[i].end;
    }
    buf_add_str(&meant, str_make(value->text.data + at, value->text.len - at));
    buf_add_json(&quoted, notes_buf_str(&meant));
    struct ng_str made = STR_NONE;
    if (meant.rc == NG_OK && quoted.rc == NG_OK) {
        made = arena_copy(rewrite->arena, notes_buf_str(&quoted));
    }
    buf_done(&meant);
    buf_done(&quoted);
    return add_splice(rewrite, value->at, value->end, made);
}

static int splice_values(struct rewrite *rewrite, bool quote)
{
    for (size_t i = 0; i < rewrite->gather.value_count; i++) {
        const struct notes_gathered_value *value = &rewrite->gather.values[i];
        struct value_links links = {.count = 0};
        bool found = !quote;
        int rc = plan_value(rewrite, value, &links);
        size_t before = rewrite->count;
        if (rc == NG_OK && links.count > 0 && !quote) {
            rc = splice_value(rewrite, value, &links, &found);
        }
        if (rc == NG_OK && links.count > 0 && !found) {
            rewrite->count = before;
            rc = quote_value(rewrite, value, &links);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

/* ---- */

/* Is the link of the result the one that was meant? */
static bool is_meant(struct rewrite *rewrite, size_t number, const struct notes_gathered *made)
{
    const struct notes_gathered *old = &rewrite->gather.links[number];
    const struct plan *plan = &rewrite->plans[number];
    if (made->wiki != old->wiki || made->reference != old->reference) {
        return false;
    }
    if (plan->change != NOTES_LINK_CHANGES) {
        return str_equal(made->target, old->target);
    }
    if (!made->wiki) {
        struct ng_str key =
            notes_link_key(rewrite->arena, rewrite->use.after, false, made->target);
        return str_equal(key, plan->target.key);
    }
    size_t kept = old->target.len - plan->target.replaced;
    struct ng_str after = rewrite->use.after;
    struct ng_str key = notes_link_key(rewrite->arena, after, true, made->target);
    struct ng_str wanted = notes_link_key(rewrite->arena, after, true, plan->target.path);
    return str_equal(key, wanted) && made->target.len == plan->target.path.len + kept &&
           str_starts(made->target, plan->target.path) &&
           memcmp(made->target.data + plan->target.path.len,
                  old->target.data + plan->target.replaced, kept) == 0;
}

static struct ng_str clean_text(struct arena *arena, struct ng_str bytes)
{
    struct ng_str text = notes_utf8_clean(arena, bytes);
    size_t nul = notes_find_char(text, 0, '\0');
    if (text.data == NULL || nul == text.len) {
        return text;
    }
    char *copy = arena_alloc(arena, text.len + 1);
    if (copy == NULL) {
        return STR_NONE;
    }
    memcpy(copy, text.data, text.len);
    for (; nul < text.len; nul = notes_find_char(text, nul + 1, '\0')) {
        copy[nul] = ' ';
    }
    return str_make(copy, text.len);
}

/* NG_EINVAL: a link of the result is another one. */
static int check_result(struct rewrite *rewrite, struct ng_str made)
{
    struct notes_gather after;
    const struct notes_gather *before = &rewrite->gather;
    struct ng_str text = clean_text(rewrite->arena, made);
    if (text.data == NULL || notes_gather_links(rewrite->arena, text, &after) != NG_OK) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < before->count; i++) {
        if (i >= after.count || !is_meant(rewrite, i, &after.links[i])) {
            return fail_link(rewrite, &before->links[i]);
        }
    }
    bool same = before->count == after.count && before->other_values == after.other_values &&
                before->note.frontmatter_error.len == after.note.frontmatter_error.len;
    return same || before->count == 0 ? NG_OK : fail_link(rewrite, &before->links[0]);
}

static int try_rewrite(struct rewrite *rewrite, bool quote)
{
    rewrite->count = 0;
    int rc = splice_values(rewrite, quote);
    for (size_t i = 0; i < rewrite->gather.count && rc == NG_OK; i++) {
        const struct notes_gathered *link = &rewrite->gather.links[i];
        if (!link->property && rewrite->plans[i].change == NOTES_LINK_CHANGES) {
            rc = splice_body_link(rewrite, link, &rewrite->plans[i]);
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    sort_splices(rewrite);
    place_splices(rewrite);
    struct ng_str made = spliced(rewrite);
    if (made.data == NULL) {
        return rewrite->arena->failed ? NG_EINTERNAL
                                      : fail_link(rewrite, &rewrite->gather.links[0]);
    }
    rc = check_result(rewrite, made);
    if (rc == NG_OK) {
        rewrite->ret->bytes = made;
    }
    return rc;
}

static int plan_links(struct rewrite *rewrite)
{
    const struct notes_gather *gather = &rewrite->gather;
    rewrite->plans = arena_zalloc(rewrite->arena, (gather->count + 1) * sizeof(struct plan));
    if (rewrite->plans == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < gather->count; i++) {
        struct plan *plan = &rewrite->plans[i];
        const struct notes_gathered *link = &gather->links[i];
        if (link->property && link->reference) {
            continue;
        }
        plan->change = notes_link_retarget(rewrite->arena, &rewrite->use, link->wiki,
                                           link->target, &plan->target);
        if (plan->change == NOTES_LINK_OOM) {
            return NG_EINTERNAL;
        }
        if (plan->change == NOTES_LINK_IMPOSSIBLE) {
            return fail_link(rewrite, link);
        }
        rewrite->ret->links += plan->change == NOTES_LINK_CHANGES;
    }
    return NG_OK;
}

int notes_link_rewrite(struct arena *arena, const struct notes_link_move *move,
                       struct ng_str path, struct ng_str bytes, struct notes_rewritten *ret)
{
    struct rewrite rewrite = {.arena = arena, .bytes = bytes, .ret = ret};
    *ret = (struct notes_rewritten){.bytes = bytes};
    rewrite.text = clean_text(arena, bytes);
    rewrite.use = (struct notes_link_use){move, path, notes_move_path(arena, move, path)};
    if (rewrite.text.data == NULL || rewrite.use.after.data == NULL) {
        return NG_EINTERNAL;
    }
    int rc = notes_gather_links(arena, rewrite.text, &rewrite.gather);
    if (rc == NG_OK) {
        rc = plan_links(&rewrite);
    }
    if (rc != NG_OK || ret->links == 0) {
        return rc;
    }
    rc = try_rewrite(&rewrite, false);
    if (rc == NG_EINVAL && rewrite.gather.value_count > 0) {
        rc = try_rewrite(&rewrite, true);
    }
    return rc;
}
