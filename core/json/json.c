/* SPDX-License-Identifier: MIT */
/* json.c - parsing: yajl reads, we build the tree in an arena and refuse what yajl lets
 * through. */
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "json_text.h"

/* Up to this many members are compared pair by pair, more through a table. */
#define MEMBERS_PAIRWISE 12
/* How much of a wrong token or name is shown in a message. */
#define SHOWN_MAX 40
/* Before each block of yajl's memory: its size, for growing. */
#define YAJL_HEADER sizeof(max_align_t)

struct frame {
    struct ng_value *container;
    struct ng_value **tail; /* link for the next child */
};

struct parser {
    struct arena *arena;
    struct arena *scratch; /* yajl's memory: the arena, or one that goes with the parser */
    bool kept;             /* the text lives as long as the arena */
    bool plain;            /* ... and has no white space but blanks */
    yajl_handle yajl;
    const char *source; /* the text as it came */
    const char *text;   /* a copy in the arena, which strings without escapes point into */
    size_t len;
    unsigned depth;
    unsigned depth_max;
    struct frame *frames;
    struct ng_value *root;
    struct ng_str key; /* of the value that comes next */
    size_t last;       /* end of the last token */
    struct json_error fault;
    jmp_buf out_of_memory;
};

static int parser_fail(struct parser *parser, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 0, which makes yajl stop. The first fault counts. Where JSON's grammar is kept, parsing goes
 * on to the end in spite of it: the text may have its id there. */
static int parser_fail(struct parser *parser, size_t offset, const char *format, ...)
{
    va_list args;
    if (parser->fault.code != NG_OK) {
        return 0;
    }
    parser->fault.code = NG_EJSON;
    parser->fault.offset = offset;
    va_start(args, format);
    (void)vsnprintf(parser->fault.message, sizeof(parser->fault.message), format, args);
    va_end(args);
    return 0;
}

/* ---- memory for yajl ---- */

/* yajl does not check what its allocator returns, so failing must not return. Nothing is lost
 * by jumping: all of its memory is the arena's. */
static void *yajl_malloc_arena(void *context, size_t bytes)
{
    struct parser *parser = context;
    char *memory = bytes > SIZE_MAX - YAJL_HEADER
                       ? NULL
                       : arena_alloc(parser->scratch, bytes + YAJL_HEADER);
    if (memory == NULL) {
        longjmp(parser->out_of_memory, 1);
    }
    memcpy(memory, &bytes, sizeof(bytes));
    return memory + YAJL_HEADER;
}

static void yajl_free_arena(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

static void *yajl_realloc_arena(void *context, void *memory, size_t bytes)
{
    char *bigger = yajl_malloc_arena(context, bytes);
    if (memory != NULL) {
        size_t old = 0;
        memcpy(&old, (char *)memory - YAJL_HEADER, sizeof(old));
        memcpy(bigger, memory, size_min(old, bytes));
    }
    return bigger;
}

/* ---- building the tree ---- */

static struct ng_value *parser_add(struct parser *parser, enum ng_type type)
{
    struct ng_value *value = arena_zalloc(parser->arena, sizeof(*value));
    if (value == NULL) {
        longjmp(parser->out_of_memory, 1);
    }
    value->type = type;
    if (parser->depth == 0) {
        parser->root = value;
    } else {
        struct frame *frame = &parser->frames[parser->depth - 1];
        value->key = parser->key;
        *frame->tail = value;
        frame->tail = &value->next;
        frame->container->count++;
    }
    parser->key = str_make(NULL, 0);
    parser->last = yajl_get_bytes_consumed(parser->yajl);
    return value;
}

static bool is_in_text(const struct parser *parser, const char *at)
{
    return (uintptr_t)at >= (uintptr_t)parser->text &&
           (uintptr_t)at <= (uintptr_t)(parser->text + parser->len);
}

/* The string yajl has just read: as it is in the text, or a copy where it had escapes. */
static struct ng_str parser_string(struct parser *parser, const unsigned char *bytes,
                                   size_t len)
{
    struct ng_str text = str_make((const char *)bytes, len);
    if (is_in_text(parser, text.data)) {
        return text;
    }
    text = arena_copy(parser->arena, text);
    if (text.data == NULL) {
        longjmp(parser->out_of_memory, 1);
    }
    return text;
}

/* Of a string with escapes: refuses half a surrogate pair. */
static int parser_check_escapes(struct parser *parser)
{
    size_t end = yajl_get_bytes_consumed(parser->yajl) - 1;
    size_t start = parser->last;
    while (parser->text[start] != '"') {
        start++; /* white space, a comma or a colon */
    }
    size_t lone = json_find_lone_surrogate(parser->source, start + 1, end);
    if (lone == end) {
        return 1;
    }
    return parser_fail(parser, lone, "the escape %.*s is half of a surrogate pair",
                       (int)JSON_ESCAPE_LEN, parser->source + lone);
}

static int on_null(void *context)
{
    parser_add(context, NG_TYPE_NULL);
    return 1;
}

static int on_boolean(void *context, int value)
{
    parser_add(context, value ? NG_TYPE_TRUE : NG_TYPE_FALSE);
    return 1;
}

static int on_number(void *context, const char *digits, size_t len)
{
    parser_add(context, NG_TYPE_NUMBER)->text = str_make(digits, len);
    return 1;
}

static int on_string(void *context, const unsigned char *bytes, size_t len)
{
    struct parser *parser = context;
    struct ng_str text = parser_string(parser, bytes, len);
    if (parser->kept && !is_in_text(parser, text.data) && !parser_check_escapes(parser)) {
        return 0;
    }
    parser_add(parser, NG_TYPE_STRING)->text = text;
    return 1;
}

static int on_key(void *context, const unsigned char *bytes, size_t len)
{
    struct parser *parser = context;
    parser->key = parser_string(parser, bytes, len);
    if (!is_in_text(parser, parser->key.data)) {
        (void)parser_check_escapes(parser); /* replaced, two names may become one */
    }
    parser->last = yajl_get_bytes_consumed(parser->yajl);
    return 1;
}

static int parser_open(struct parser *parser, enum ng_type type)
{
    if (parser->depth >= parser->depth_max) {
        return parser_fail(parser, yajl_get_bytes_consumed(parser->yajl) - 1,
                           "the text is nested deeper than %u levels (limits.depth)",
                           parser->depth_max);
    }
    struct ng_value *value = parser_add(parser, type);
    struct frame *frame = &parser->frames[parser->depth];
    value->text.data = parser->text + parser->last - 1; /* from its bracket; see parser_close */
    value->printed = parser->plain;
    frame->container = value;
    frame->tail = &value->first;
    parser->depth++;
    return 1;
}

static int on_start_map(void *context)
{
    return parser_open(context, NG_TYPE_OBJECT);
}

static int on_start_array(void *context)
{
    return parser_open(context, NG_TYPE_ARRAY);
}

/* The container ends here: its text is known. */
static struct ng_value *parser_close(struct parser *parser)
{
    parser->depth--;
    parser->last = yajl_get_bytes_consumed(parser->yajl);
    struct ng_value *container = parser->frames[parser->depth].container;
    container->text.len = (size_t)(parser->text + parser->last - container->text.data);
    return container;
}

static int on_end_array(void *context)
{
    (void)parser_close(context);
    return 1;
}

/* ---- doubled members ---- */

static const struct ng_value *find_double_pairwise(const struct ng_value *object)
{
    for (const struct ng_value *a = object->first; a != NULL; a = a->next) {
        for (const struct ng_value *b = object->first; b != a; b = b->next) {
            if (str_equal(a->key, b->key)) {
                return a;
            }
        }
    }
    return NULL;
}

static const struct ng_value *find_double_hashed(struct parser *parser,
                                                 const struct ng_value *object)
{
    const struct ng_value *found = NULL;
    size_t slots = 16;
    while (slots < (size_t)object->count * 2) {
        slots *= 2;
    }
    const struct ng_value **table = alloc_zeroed(slots, sizeof(const struct ng_value *));
    if (table == NULL) {
        longjmp(parser->out_of_memory, 1);
    }
    for (const struct ng_value *member = object->first; member != NULL && found == NULL;
         member = member->next) {
        size_t slot = (size_t)str_hash(member->key) & (slots - 1);
        while (table[slot] != NULL && !str_equal(table[slot]->key, member->key)) {
            slot = (slot + 1) & (slots - 1);
        }
        if (table[slot] != NULL) {
            found = member;
        }
        table[slot] = member;
    }
    free((void *)table);
    return found;
}

static int on_end_map(void *context)
{
    struct parser *parser = context;
    const struct ng_value *object = parser_close(parser);
    const struct ng_value *found = object->count <= MEMBERS_PAIRWISE
                                       ? find_double_pairwise(object)
                                       : find_double_hashed(parser, object);
    if (found == NULL) {
        return 1;
    }
    struct ng_str shown = utf8_cut(found->key, SHOWN_MAX);
    size_t offset = parser->last - 1; /* a name with escapes: the end of its object */
    if (is_in_text(parser, found->key.data)) {
        offset = (size_t)(found->key.data - parser->text) - 1;
    }
    (void)parser_fail(parser, offset, "member \"%.*s\"%s occurs twice", (int)shown.len,
                      shown.data, shown.len < found->key.len ? "..." : "");
    return 1;
}

/* ---- faults ---- */

static size_t find_bad_utf8(struct ng_str text)
{
    size_t at = 0;
    while (at < text.len) {
        unsigned char c = (unsigned char)text.data[at];
        size_t len;
        if (c < 0x80) {
            len = 1;
        } else if (c >= 0xf0) {
            len = 4;
        } else if (c >= 0xe0) {
            len = 3;
        } else {
            len = 2;
        }
        if (len > text.len - at || !utf8_valid(str_make(text.data + at, len))) {
            break;
        }
        at += len;
    }
    return at;
}

/* Rejects input that yajl accepts, and gives clearer messages. */
static int check_text(struct parser *parser, struct ng_str text)
{
    static const char blanks[] = "\f\v";
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) {
        return parser_fail(parser, 0, "the text begins with a byte order mark");
    }
    if (!utf8_valid(text)) {
        return parser_fail(parser, find_bad_utf8(text), "the text is not valid UTF-8");
    }
    for (size_t i = 0; i < sizeof(blanks); i++) { /* the NUL counts too */
        const char *found = memchr(text.data, blanks[i], text.len);
        if (found != NULL) {
            return parser_fail(parser, (size_t)(found - text.data),
                               "the control character 0x%02x is not allowed here",
                               (unsigned)(unsigned char)blanks[i]);
        }
    }
    return 1;
}

/* Plainer words for common errors of yajl. */
static const char *said_plainly(const char *reason)
{
    static const char *const plain[][2] = {
        {"trailing garbage", "there is text after the JSON value"},
        {"unallowed token", "a value is expected"},
        {"invalid char in", "a value or a sign of punctuation is expected"},
        {"invalid string in", "a value is expected"},
        {"invalid object key", "the name of a member, a string, is expected"},
    };
    for (size_t i = 0; i < NG_COUNT(plain); i++) {
        if (strncmp(reason, plain[i][0], strlen(plain[i][0])) == 0) {
            return plain[i][1];
        }
    }
    return reason;
}

/* yajl's sentence, without its prefix and line end. */
static void explain(struct parser *parser)
{
    size_t end = yajl_get_bytes_consumed(parser->yajl);
    size_t start = parser->last;
    unsigned char *said = yajl_get_error(parser->yajl, 0, NULL, 0);
    const char *reason = said == NULL ? "" : (const char *)said;
    const char *colon = strchr(reason, ':');
    if (colon != NULL && colon[1] == ' ') {
        reason = colon + 2;
    }
    reason = said_plainly(reason);
    size_t len = strcspn(reason, "\n.");
    if (end > parser->len) {
        parser_fail(parser, parser->len, "the text ends too early");
        return;
    }
    while (start < end && strchr(" \t\r\n,:", parser->text[start]) != NULL) {
        start++;
    }
    if (start == end && end > 0) {
        start = end - 1;
    }
    while (end < parser->len && ((unsigned char)parser->text[end] & 0xc0) == 0x80) {
        end++; /* whole characters only */
    }
    struct ng_str token = str_make(parser->text + start, end - start);
    struct ng_str shown = utf8_cut(token, SHOWN_MAX);
    parser_fail(parser, start, "%.*s, found %.*s%s", (int)len, reason, (int)shown.len,
                shown.data, shown.len < token.len ? "..." : "");
}

static void locate(struct json_error *error, struct ng_str text)
{
    size_t line_start = 0;
    error->line = 1;
    for (size_t i = 0; i < error->offset && i < text.len; i++) {
        if (text.data[i] == '\n') {
            error->line++;
            line_start = i + 1;
        }
    }
    struct ng_str before = str_make(text.data + line_start, error->offset - line_start);
    error->column = utf8_count(before) + 1;
}

static const yajl_callbacks json_callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

static bool has_line_ends(struct ng_str text)
{
    return memchr(text.data, '\n', text.len) != NULL ||
           memchr(text.data, '\r', text.len) != NULL ||
           memchr(text.data, '\t', text.len) != NULL;
}

/* One line end behind the copy: a number at the very end is complete then, in one piece. */
static void parser_copy(struct parser *parser, struct ng_str text)
{
    char *copy = text.len == SIZE_MAX ? NULL : arena_alloc(parser->arena, text.len + 1);
    if (copy == NULL) {
        longjmp(parser->out_of_memory, 1);
    }
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\n';
    json_replace_lone_surrogates(copy, text.len);
    parser->text = copy;
}

static void parser_run(struct parser *parser, struct ng_str text)
{
    yajl_alloc_funcs memory = {yajl_malloc_arena, yajl_realloc_arena, yajl_free_arena, parser};
    if (setjmp(parser->out_of_memory) != 0) {
        parser->fault.code = NG_EINTERNAL;
        parser->fault.offset = 0;
        (void)snprintf(parser->fault.message, sizeof(parser->fault.message), "out of memory");
        return;
    }
    bool is_text = check_text(parser, text);
    if (!is_text) {
        text.len = parser->fault.offset; /* the part before the fault */
    }
    size_t end = text.len;
    parser->source = text.data;
    if (parser->kept) {
        parser->text = text.data;
        parser->plain = !has_line_ends(text);
    } else {
        parser_copy(parser, text);
        end += is_text;
    }
    parser->len = text.len;
    parser->yajl = yajl_alloc(&json_callbacks, &memory, parser);
    yajl_config(parser->yajl, yajl_dont_validate_strings, 1); /* check_text() did */
    yajl_status status = yajl_parse(parser->yajl, (const unsigned char *)parser->text, end);
    if (status == yajl_status_error) {
        explain(parser);
    } else if (status == yajl_status_ok && (parser->root == NULL || parser->depth > 0)) {
        parser_fail(parser, parser->len, "the text ends too early");
    }
}

static int parser_parse(struct parser *parser, struct ng_str text, const struct ng_value **ret,
                        struct json_error *error)
{
    struct frame frames[JSON_DEPTH_DEFAULT];
    parser->frames = frames;
    if (text.data == NULL) {
        text = str_make("", 0);
    }
    if (parser->depth_max > JSON_DEPTH_DEFAULT) {
        parser->frames =
            arena_alloc(parser->scratch, (size_t)parser->depth_max * sizeof(struct frame));
    }
    if (parser->frames == NULL) {
        parser->fault.code = NG_EINTERNAL;
        (void)snprintf(parser->fault.message, sizeof(parser->fault.message), "out of memory");
    } else {
        parser_run(parser, text);
    }
    if (parser->fault.code == NG_OK) {
        *ret = parser->root;
        return NG_OK;
    }
    parser->arena->oom = parser->arena->oom || parser->fault.code == NG_EINTERNAL;
    if (error != NULL) {
        *error = parser->fault;
        error->partial = parser->fault.code == NG_EJSON ? parser->root : NULL;
        locate(error, text);
    }
    return parser->fault.code;
}

int json_parse(struct arena *arena, struct ng_str text, unsigned depth,
               const struct ng_value **ret, struct json_error *error)
{
    struct parser parser = {.arena = arena, .scratch = arena, .depth_max = depth};
    return parser_parse(&parser, text, ret, error);
}

int json_parse_kept(struct arena *arena, struct ng_str text, unsigned depth,
                    const struct ng_value **ret, struct json_error *error)
{
    struct arena scratch;
    arena_init(&scratch, 0);
    struct parser parser = {
        .arena = arena, .scratch = &scratch, .kept = true, .depth_max = depth};
    int rc = parser_parse(&parser, text, ret, error);
    arena_done(&scratch);
    return rc;
}
