/* SPDX-License-Identifier: MIT */
/* index_rows.c - the rows of one parsed note besides its own: names, tags, fields, headings,
 * links, words. */
#include "index_rows.h"

#include <string.h>

#include "core/base/hash.h"

/* ---- statements ---- */

sqlite3_stmt *notes_statement(const struct notes_index *index, enum notes_statement number)
{
    return index->writer.statements[number];
}

int notes_statement_run(struct notes_index *index, struct ng_call *call,
                        enum notes_statement number)
{
    sqlite3_stmt *statement = notes_statement(index, number);
    int rc = NG_OK;
    if (notes_done(sqlite3_step(statement)) != SQLITE_OK) {
        rc = notes_schema_fail(index, call, "written");
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc;
}

static int step(const struct notes_row_source *source, enum notes_statement number)
{
    return notes_statement_run(source->index, source->call, number);
}

/* ---- names, tags, fields ---- */

static int put_name(void *user, struct ng_str key, const char *kind)
{
    struct notes_row_source *source = user;
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_NAME);
    if (key.data == NULL) {
        return notes_fail_memory(source->call);
    }
    if (key.len == 0) {
        return NG_OK;
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)notes_bind_text(statement, 2, key);
    (void)sqlite3_bind_text(statement, 3, kind, -1, SQLITE_STATIC);
    return step(source, NOTES_PUT_NAME);
}

int notes_rows_names(struct notes_row_source *source, const struct notes_note *note)
{
    int rc = notes_link_names(source->arena, source->path, put_name, source);
    if (rc == NG_OK && note->title.len > 0) {
        rc = put_name(source, notes_fold(source->arena, notes_link_note(note->title)), "title");
    }
    for (size_t i = 0; i < note->alias_count && rc == NG_OK; i++) {
        struct ng_str alias = notes_link_note(notes_trim(note->aliases[i]));
        rc = put_name(source, notes_fold(source->arena, alias), "alias");
    }
    return rc;
}

static int put_tag(struct notes_row_source *source, struct ng_str tag)
{
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_TAG);
    struct ng_str fold = notes_fold(source->arena, tag);
    if (fold.data == NULL) {
        return notes_fail_memory(source->call);
    }
    if (!notes_tag_set_add(&source->tags, fold)) {
        return NG_OK;
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)notes_bind_text(statement, 2, tag);
    (void)notes_bind_text(statement, 3, fold);
    return step(source, NOTES_PUT_TAG);
}

int notes_rows_tags(struct notes_row_source *source, const struct notes_note *note)
{
    int rc = NG_OK;
    for (size_t i = 0; i < note->tag_count && rc == NG_OK; i++) {
        rc = put_tag(source, note->tags[i]);
    }
    return rc;
}

struct fields {
    const struct notes_row_source *source;
    struct buf key;
    size_t rows;
};

static int put_field(struct fields *fields, const struct notes_value *value)
{
    const struct notes_row_source *source = fields->source;
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_FIELD);
    if (fields->key.rc != NG_OK || fields->rows++ >= NOTES_INDEX_ROWS_MAX) {
        return NG_OK; /* fields over the maximum are not indexed */
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)notes_bind_text(statement, 2, notes_buf_str(&fields->key));
    if (value->type == NOTES_STRING || value->type == NOTES_NUMBER) {
        (void)notes_bind_text(statement, 3, value->text);
    } else if (value->type != NOTES_NULL) {
        (void)notes_bind_text(statement, 3,
                              ng_str_of(value->type == NOTES_TRUE ? "true" : "false"));
    }
    if (value->type == NOTES_NUMBER) {
        char digits[64];
        if (value->text.len < sizeof(digits)) {
            memcpy(digits, value->text.data, value->text.len);
            digits[value->text.len] = '\0';
            (void)sqlite3_bind_text(statement, 4, digits, (int)value->text.len,
                                    SQLITE_TRANSIENT);
        }
    }
    return step(source, NOTES_PUT_FIELD);
}

/* The recursion is bounded by NOTES_FRONTMATTER_DEPTH_MAX. */
static int put_fields(struct fields *fields, const struct notes_value *value)
{
    if (value->type != NOTES_LIST && value->type != NOTES_MAP) {
        return put_field(fields, value);
    }
    int rc = NG_OK;
    for (const struct notes_value *child = value->first; child != NULL && rc == NG_OK;
         child = child->next) {
        size_t len = fields->key.len;
        if (value->type == NOTES_MAP) {
            if (len > 0) {
                buf_add_char(&fields->key, '.');
            }
            buf_add_str(&fields->key, child->key);
        }
        rc = put_fields(fields, child);
        buf_cut(&fields->key, len);
    }
    return rc;
}

int notes_rows_fields(const struct notes_row_source *source, const struct notes_note *note)
{
    struct fields fields = {.source = source};
    if (note->frontmatter == NULL) {
        return NG_OK;
    }
    bool oom = false;
    buf_init(&fields.key, 65536);
    fields.key.oom = &oom;
    int rc = put_fields(&fields, note->frontmatter);
    buf_done(&fields.key);
    if (rc == NG_OK && oom) {
        return notes_fail_memory(source->call);
    }
    return rc;
}

/* ---- headings and links ---- */

struct marks {
    struct notes_row_source *source;
    size_t heading_rows;
    size_t line_start, line_number; /* line of the last link */
    int failed;                     /* of a statement */
};

static int marked(struct marks *marks, int rc)
{
    marks->failed = rc;
    return rc;
}

static int notes_mark_heading(void *user, const struct notes_heading *heading)
{
    struct marks *marks = user;
    const struct notes_row_source *source = marks->source;
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_HEADING);
    struct ng_str fold = notes_fold(source->arena, heading->text);
    if (fold.data == NULL) {
        return notes_fail_memory(source->call);
    }
    if (marks->heading_rows++ >= NOTES_INDEX_ROWS_MAX) {
        return NG_OK;
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)sqlite3_bind_int64(statement, 2, heading->line);
    (void)sqlite3_bind_int64(statement, 3, heading->level);
    (void)notes_bind_text(statement, 4, notes_present(heading->text));
    (void)notes_bind_text(statement, 5, notes_present(heading->slug));
    (void)notes_bind_text(statement, 6, fold);
    return marked(marks, step(source, NOTES_PUT_HEADING));
}

int notes_rows_link(struct notes_row_source *source, const struct notes_link *link, size_t line,
                    struct ng_str context)
{
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_LINK);
    if (source->link_rows++ >= NOTES_INDEX_ROWS_MAX) {
        return NG_OK;
    }
    struct ng_str key = str_make(NULL, 0);
    if (link->kind != NOTES_LINK_AUTO) {
        key = notes_link_key(source->arena, source->path, link->kind == NOTES_LINK_WIKI,
                             link->target);
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)line);
    (void)notes_bind_text(statement, 3, notes_present(link->text));
    (void)notes_bind_text(statement, 4, notes_present(link->target));
    (void)sqlite3_bind_text(statement, 5, notes_link_kind_name(link->kind), -1, SQLITE_STATIC);
    (void)notes_bind_text(statement, 6, key);
    (void)notes_bind_text(statement, 7, notes_present(context));
    return step(source, NOTES_PUT_LINK);
}

int notes_rows_image(struct notes_row_source *source, const struct notes_link *image)
{
    sqlite3_stmt *statement = notes_statement(source->index, NOTES_PUT_IMAGE);
    bool wiki = image->kind == NOTES_LINK_WIKI;
    struct ng_str key = notes_link_key(source->arena, source->path, wiki, image->target);
    if (key.data == NULL || source->image_rows++ >= NOTES_INDEX_ROWS_MAX) {
        return NG_OK;
    }
    (void)sqlite3_bind_int64(statement, 1, source->id);
    (void)notes_bind_text(statement, 2, notes_present(image->target));
    (void)sqlite3_bind_text(statement, 3, notes_link_kind_name(image->kind), -1, SQLITE_STATIC);
    (void)notes_bind_text(statement, 4, key);
    return step(source, NOTES_PUT_IMAGE);
}

static int notes_mark_image(void *user, const struct notes_link *image)
{
    struct marks *marks = user;
    return marked(marks, notes_rows_image(marks->source, image));
}

static int notes_mark_link(void *user, const struct notes_link *link)
{
    struct marks *marks = user;
    struct notes_row_source *source = marks->source;
    struct ng_str context = notes_link_context(source->body, &marks->line_start,
                                               &marks->line_number, link->line, link->target);
    return marked(marks,
                  notes_rows_link(source, link, source->body_line + link->line, context));
}

static int notes_mark_tag(void *user, const struct notes_inline_tag *tag)
{
    struct marks *marks = user;
    return marked(marks, put_tag(marks->source, tag->name));
}

int notes_rows_marks(struct notes_row_source *source)
{
    static const struct notes_markdown_events events = {
        .heading = notes_mark_heading,
        .link = notes_mark_link,
        .tag = notes_mark_tag,
        .image = notes_mark_image,
    };
    struct marks marks = {.source = source, .line_number = 1};
    int rc = notes_markdown_parse(source->body, &events, &marks, NULL);
    if (rc != NG_OK && marks.failed == NG_OK) {
        return notes_fail_memory(source->call);
    }
    return rc;
}

/* ---- words ---- */

static int put_word(const struct notes_row_source *source, struct ng_str word, size_t letters)
{
    struct notes_writer *writer = &source->index->writer;
    uint64_t hash = hash_fnv(HASH_FNV_BASIS ^ writer->seed, word) | 1;
    uint64_t *slot = &writer->words[(hash >> 1) & (NOTES_WORD_CACHE - 1)];
    char padded[NOTES_WORD_LETTERS_MAX * 4 + 4];
    char stem[NOTES_STEM_BYTES_MAX];
    if (*slot == hash || word.len > sizeof(padded) - 4) {
        return NG_OK;
    }
    (void)notes_bind_text(notes_statement(source->index, NOTES_PUT_WORD), 1, word);
    (void)sqlite3_bind_int64(notes_statement(source->index, NOTES_PUT_WORD), 2,
                             (int64_t)letters);
    (void)notes_bind_text(notes_statement(source->index, NOTES_PUT_WORD), 3,
                          notes_stem(word, stem));
    int rc = step(source, NOTES_PUT_WORD);
    if (rc == NG_OK && sqlite3_changes(writer->db) > 0) {
        memcpy(padded, "^^", 2);
        memcpy(padded + 2, word.data, word.len);
        memcpy(padded + 2 + word.len, "$$", 2);
        (void)sqlite3_bind_int64(notes_statement(source->index, NOTES_PUT_WORD_GRAMS), 1,
                                 sqlite3_last_insert_rowid(writer->db));
        (void)notes_bind_text(notes_statement(source->index, NOTES_PUT_WORD_GRAMS), 2,
                              str_make(padded, word.len + 4));
        rc = step(source, NOTES_PUT_WORD_GRAMS);
    }
    if (rc == NG_OK) {
        *slot = hash;
    }
    return rc;
}

int notes_rows_words(const struct notes_row_source *source, struct ng_str folded,
                     bool *ret_long)
{
    struct ng_str word;
    size_t letters = 0;
    int rc = NG_OK;
    for (size_t at = 0; rc == NG_OK && notes_word_next(folded, &at, &word, &letters);) {
        if (letters > NOTES_WORD_LETTERS_MAX) {
            *ret_long = true;
        } else {
            rc = put_word(source, word, letters);
        }
    }
    return rc;
}
