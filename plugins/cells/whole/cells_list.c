/* SPDX-License-Identifier: MIT */
/* cells_list.c - listNotebooks: the .ipynb files below the roots, with their cells, language
 * and kernel. The file service walks the folders; memory is one file and the answer. */
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/base/text_choice.h"
#include "tools/cells_lease.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>

#define LIST_NOTEBOOKS 100 /* default of `limit`; its schema has the maximum */
#define LIST_DEPTH 64      /* levels of folders */
/* Cells of a larger file are not counted. */
#define LIST_FILE_MAX ((uint64_t)16 * 1024 * 1024)
#define LIST_ANSWER_MAX ((size_t)60 * 1024)
/* Limits of one call. At a limit, the answer has what was found so far. */
#define LIST_ENTRIES_MAX 1000000
#define LIST_BYTES_MAX ((uint64_t)1024 * 1024 * 1024)
#define LIST_MS 10000
#define LIST_MARGIN_MS 500 /* before the deadline of the call */

enum left_out { LEFT_LIMIT, LEFT_ANSWER, LEFT_HIDDEN, LEFT_LINKS, LEFT_DEEP, LEFT_KINDS };

static const char *const left_texts[LEFT_KINDS] = {
    "over `limit`", "over the size of an answer (60 KiB)", "hidden files and folders",
    "links",        "folders deeper than 64 levels",
};

struct listing {
    struct cells *self;
    struct ng_call *call;
    struct ng_str root; /* of this walk */
    uint64_t limit, shown, found;
    uint64_t entries, bytes; /* looked at */
    uint64_t left[LEFT_KINDS];
    int64_t deadline_ns;
    const char *stopped; /* the limit that was reached; NULL: none */
    struct cells_other *others;
    size_t other_count;
    struct nb_text out;
    /* The present file. */
    struct nb_text path; /* absolute */
    struct nb_text content;
    int64_t modified_ms;
    bool is_open;
};

/* ---- one notebook ---- */

static bool add_word(struct nb_text *out, struct ng_str bytes, struct nb_span object,
                     const char *name)
{
    size_t before = out->len;
    (void)nb_decode_lines(out, bytes, nb_member(bytes, object, name));
    return out->len > before;
}

static void add_language(const struct nb *nb, struct nb_text *out)
{
    struct nb_span spec = nb_member(nb->bytes, nb->metadata, "kernelspec");
    struct nb_span info = nb_member(nb->bytes, nb->metadata, "language_info");
    if (!add_word(out, nb->bytes, spec, "language") &&
        !add_word(out, nb->bytes, info, "name")) {
        nb_add_word(out, "language unknown");
    }
}

/* The kernel of the notebook, here or on another gateway. */
static void add_kernel(struct listing *listing, struct nb_text *out)
{
    struct ng_file file = {.size = sizeof(file)};
    struct kernel_info info;
    if (listing->call->host->file_stat(listing->call, nb_text_str(&listing->path), &file) !=
        NG_OK) {
        nb_add_word(out, "kernel unknown");
        return;
    }
    if (kernels_info(listing->self->kernels, file.real, &info)) {
        nb_addf(out, "kernel %s alive (%s)", info.name, info.state);
        return;
    }
    for (size_t i = 0; i < listing->other_count; i++) {
        const struct cells_other *other = &listing->others[i];
        if (str_equal(file.real, other->notebook)) {
            nb_addf(out, "kernel alive on gateway %.*s", (int)other->gateway.len,
                    other->gateway.data);
            return;
        }
    }
    nb_add_word(out, "no kernel");
}

/* content: of the file; NULL: it is too large. */
static void add_notebook(struct listing *listing, const struct nb_text *content)
{
    struct nb_text *out = &listing->out;
    size_t before = out->len;
    char modified[RFC3339_SIZE];
    struct nb nb;
    struct nb_error error;
    rfc3339_write(listing->modified_ms, RFC3339_SECONDS, modified);
    nb_add_word(out, "\n- ");
    nb_add_str(out, nb_text_str(&listing->path));
    if (content == NULL) {
        nb_add_word(out, ": over 16 MiB, cells not counted, ");
    } else if (nb_index(nb_text_str(content), &nb, &error) == NB_FINE) {
        nb_addf(out, ": %zu cell(s), ", nb.cell_count);
        add_language(&nb, out);
        nb_add_word(out, ", ");
        nb_done(&nb);
    } else {
        nb_addf(out, ": no usable notebook (%s), ", error.text);
    }
    add_kernel(listing, out);
    nb_addf(out, ", modified %s", modified);
    if (out->len > LIST_ANSWER_MAX) {
        out->len = before;
        listing->left[LEFT_ANSWER]++;
        return;
    }
    listing->shown++;
}

/* ---- walking ---- */

/* True if a limit of the call is reached. */
static bool is_over(struct listing *listing)
{
    if (listing->entries > LIST_ENTRIES_MAX) {
        listing->stopped = "1000000 files and folders";
    } else if (listing->bytes > LIST_BYTES_MAX) {
        listing->stopped = "1 GiB";
    } else if (clock_monotonic_ns() >= listing->deadline_ns) {
        listing->stopped = "time";
    }
    return listing->stopped != NULL || listing->out.failed ||
           listing->call->host->cancelled(listing->call);
}

static int list_content(void *user, struct ng_str block)
{
    struct listing *listing = user;
    listing->bytes += block.len;
    if (block.len > 0) {
        nb_add_str(&listing->content, block);
        return listing->content.failed || listing->content.len > LIST_FILE_MAX ||
               is_over(listing);
    }
    listing->is_open = false;
    add_notebook(listing, &listing->content);
    return 0;
}

static int skip(struct listing *listing, enum left_out kind)
{
    listing->left[kind]++;
    return 0;
}

static int list_file(struct listing *listing, const struct ng_file_entry *entry)
{
    listing->found++;
    if (listing->shown >= listing->limit) {
        return skip(listing, LEFT_LIMIT);
    }
    listing->path.len = 0;
    nb_add_str(&listing->path, listing->root);
    nb_add_if(&listing->path, entry->name.len > 0 && !str_ends(listing->root, "/"), "/");
    nb_add_str(&listing->path, entry->name);
    listing->modified_ms = entry->modified_ms;
    listing->content.len = 0;
    if (entry->bytes > LIST_FILE_MAX) {
        add_notebook(listing, NULL);
        return 0;
    }
    listing->is_open = true;
    return NG_ENTRY_INTO;
}

/* A file that did not come to its end is listed all the same. */
static void close_file(struct listing *listing)
{
    struct nb_text none = {0};
    if (listing->is_open) {
        listing->is_open = false;
        add_notebook(listing, &none);
    }
}

static int list_entry(void *user, const struct ng_file_entry *entry)
{
    struct listing *listing = user;
    struct ng_str name = entry->name;
    const char *slash = name.len > 0 ? memrchr(name.data, '/', name.len) : NULL;
    const char *last = slash != NULL ? slash + 1 : name.data;
    bool is_notebook = name.len == 0 || str_ends(name, ".ipynb");
    close_file(listing);
    listing->entries++;
    if (is_over(listing)) {
        return 1;
    }
    if (entry->type != NG_FILE_DIRECTORY && !is_notebook) {
        return 0;
    }
    if (name.len > 0 && *last == '.') {
        return skip(listing, LEFT_HIDDEN);
    }
    if (entry->link) {
        return skip(listing, LEFT_LINKS);
    }
    if (entry->type == NG_FILE_DIRECTORY) {
        size_t depth = 2;
        for (size_t i = 0; i < name.len; i++) {
            depth += name.data[i] == '/';
        }
        return depth > LIST_DEPTH ? skip(listing, LEFT_DEEP) : NG_ENTRY_INTO;
    }
    return entry->type == NG_FILE_REGULAR ? list_file(listing, entry) : 0;
}

static int walk(struct listing *listing, struct ng_str path)
{
    const struct ng_file_list list = {
        .size = sizeof(list), .path = path, .depth = LIST_DEPTH, .content = list_content};
    listing->root = path;
    int rc = listing->call->host->file_list(listing->call, &list, list_entry, listing);
    close_file(listing);
    return rc;
}

/* Is the root inside another one, whose walk finds its files? Of equal roots the first counts.
 */
static bool is_inside(const struct ng_str *roots, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        struct ng_str outer = roots[i];
        struct ng_str inner = roots[index];
        bool below = inner.len > outer.len && str_starts(inner, outer) &&
                     (str_ends(outer, "/") || inner.data[outer.len] == '/');
        if (i != index && (below || (str_equal(inner, outer) && i < index))) {
            return true;
        }
    }
    return false;
}

static int walk_roots(struct listing *listing)
{
    const struct ng_str *roots = NULL;
    size_t count = listing->call->host->file_roots(listing->call, &roots);
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK && listing->stopped == NULL; i++) {
        if (!is_inside(roots, count, i)) {
            rc = walk(listing, roots[i]);
        }
    }
    return rc;
}

/* ---- the answer ---- */

static int reply(struct listing *listing)
{
    struct nb_text whole = {0};
    const char *before = "\nLeft out: ";
    nb_addf(&whole, "%llu notebook(s)%s", (unsigned long long)listing->found,
            text_if(listing->found > 0, ":"));
    nb_add_done(&whole, &listing->out);
    for (size_t i = 0; i < LEFT_KINDS; i++) {
        if (listing->left[i] > 0) {
            nb_addf(&whole, "%s%llu %s", before, (unsigned long long)listing->left[i],
                    left_texts[i]);
            before = ", ";
        }
    }
    if (listing->stopped != NULL) {
        nb_addf(&whole,
                "\nNot complete, stopped at the limit of %s. Name a folder below: `path`",
                listing->stopped);
    }
    return cells_reply(listing->call, (struct ng_str){NULL, 0}, &whole);
}

int cells_list_run(void *user, struct ng_call *call, struct ng_str args)
{
    int64_t left_ms = call->host->remaining_ms(call);
    int64_t most_ms = left_ms < LIST_MS ? left_ms : LIST_MS;
    struct listing listing = {
        .self = user,
        .call = call,
        .limit = (uint64_t)ng_arg_int(call, "limit", LIST_NOTEBOOKS),
        .deadline_ns = clock_monotonic_ns() + (most_ms - LIST_MARGIN_MS) * 1000000,
    };
    struct ng_str path;
    (void)args;
    int rc = cells_lease_others(user, call, &listing.others, &listing.other_count);
    if (rc == NG_OK && ng_has_arg(call, "path")) {
        rc = cells_absolute(call, "path", &path);
        rc = rc == NG_OK ? walk(&listing, path) : rc;
    } else if (rc == NG_OK) {
        rc = walk_roots(&listing);
    }
    if (rc == NG_OK && call->host->cancelled(call)) {
        rc = ng_fail(call, call->host->remaining_ms(call) <= 0 ? NG_ETIMEOUT : NG_ECANCELLED,
                     "The call was cancelled or its time is up");
    }
    if (rc == NG_OK) {
        rc = reply(&listing);
    }
    nb_text_done(&listing.out);
    nb_text_done(&listing.path);
    nb_text_done(&listing.content);
    return rc;
}
