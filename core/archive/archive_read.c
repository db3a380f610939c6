/* SPDX-License-Identifier: MIT */
/* archive_read.c - checks an archive line by line and passes its records to a sink. */
#include <stdlib.h>

#include "archive.h"
#include "archive_hash.h"
#include "archive_in.h"
#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/json/json.h"

#define ARCHIVE_READ_BYTES ((size_t)64 * 1024)
#define ARCHIVE_DEPTH 8 /* nesting of a line */
#define ARCHIVE_FIELDS_MAX 64
/* Lines about files follow all records. */
#define ARCHIVE_ORDER_ROOTS (NG_RECORD_SEQ + 1)
#define ARCHIVE_ORDER_FILES (NG_RECORD_SEQ + 2)
#define ARCHIVE_ORDER_END (NG_RECORD_SEQ + 3)
/* `,"h":"0123456789abcdef"}` and the same with sha256. */
#define ARCHIVE_LINE_TAIL (sizeof(",\"h\":\"\"}") - 1 + ARCHIVE_LINE_HASH_CHARS)
#define ARCHIVE_LAST_TAIL (sizeof(",\"sha256\":\"\"}") - 1 + ARCHIVE_HASH_CHARS)

int archive_in_fail(struct archive_in *in, const char *format, ...)
{
    va_list args;
    if (in->rc != NG_OK) {
        return in->rc;
    }
    in->rc = NG_EFAILED;
    buf_printf(in->error, "line %llu: ", (unsigned long long)in->line);
    va_start(args, format);
    buf_vprintf(in->error, format, args);
    va_end(args);
    return in->rc;
}

/* ---- lines ---- */

/* The next line without its line feed; absent at the end. */
static int next_line(struct archive_in *in, struct ng_str *ret)
{
    size_t searched = in->taken;
    *ret = str_make(NULL, 0);
    for (;;) {
        size_t left = in->pending.len - searched;
        const char *end = NULL;
        if (left > 0) {
            end = memchr(in->pending.data + searched, '\n', left);
        }
        if (end != NULL) {
            *ret = str_make(in->pending.data + in->taken,
                            (size_t)(end - in->pending.data) - in->taken);
            in->taken += ret->len + 1;
            in->line++;
            in->counts.bytes += ret->len + 1;
            return NG_OK;
        }
        size_t rest = in->pending.len - in->taken;
        if (in->taken > 0 && rest > 0) {
            memmove(in->pending.data, in->pending.data + in->taken, rest);
        }
        in->pending.len = rest;
        in->taken = 0;
        searched = rest;
        char *to = buf_reserve(&in->pending, ARCHIVE_READ_BYTES);
        size_t len = 0;
        if (to == NULL) {
            in->line++;
            bool too_long = in->pending.rc == NG_ETOOLARGE;
            return archive_in_fail(in, too_long ? "the line is too long" : "out of memory");
        }
        int rc = in->get(in->user, to, ARCHIVE_READ_BYTES, &len);
        if (rc != NG_OK) {
            in->line++;
            return archive_in_fail(in, "the rest of the file cannot be read");
        }
        if (len == 0 && rest > 0) {
            in->line++;
            return archive_in_fail(in, "the line has no end; the file is cut off");
        }
        if (len == 0) {
            return NG_OK;
        }
        in->pending.len += len;
    }
}

/* Compares the hash at the end of the line and adds the line to the running hash. */
static int check_hash(struct archive_in *in, struct ng_str line, bool *ret_last)
{
    char hex[SHA256_HEX_SIZE];
    static const char last_mark[] = ",\"sha256\":\"";
    size_t tail = ARCHIVE_LINE_TAIL;
    size_t chars = ARCHIVE_LINE_HASH_CHARS;
    const char *wanted = ",\"h\":\"";
    *ret_last = line.len > ARCHIVE_LAST_TAIL && memcmp(line.data + line.len - ARCHIVE_LAST_TAIL,
                                                       last_mark, sizeof(last_mark) - 1) == 0;
    if (*ret_last) {
        tail = ARCHIVE_LAST_TAIL;
        chars = ARCHIVE_HASH_CHARS;
        wanted = last_mark;
    }
    if (line.len <= tail || memcmp(line.data + line.len - tail, wanted, strlen(wanted)) != 0 ||
        memcmp(line.data + line.len - 2, "\"}", 2) != 0) {
        return archive_in_fail(in, in->line == 1 ? "this is not a notegate backup"
                                                 : "the line does not end in its hash");
    }
    if (sha256_add(in->hash, str_make(line.data, line.len - tail)) != NG_OK ||
        archive_hash_hex(in->hash, hex) != NG_OK) {
        return archive_in_fail(in, "the hash could not be computed");
    }
    const char *found = line.data + line.len - tail + strlen(wanted);
    if (memcmp(found, hex, chars) != 0) {
        return archive_in_fail(
            in,
            "the hash is %.*s, the content's is %.*s: the line, or one before "
            "it, was changed or is missing",
            (int)chars, found, (int)chars, hex);
    }
    if (sha256_add(in->hash, str_make(line.data + line.len - tail, tail)) != NG_OK ||
        sha256_add(in->hash, ng_str_of("\n")) != NG_OK) {
        return archive_in_fail(in, "the hash could not be computed");
    }
    return NG_OK;
}

/* ---- members ---- */

/* Updates `body` of the previous revision: unchanged if the member is missing, spliced if it is
 * a splice, else replaced. */
static int take_body(struct archive_in *in, const struct ng_value *line, const char *name,
                     struct buf *body)
{
    const struct ng_value *value = json_get(line, name);
    if (in->rc != NG_OK || value == NULL) {
        return in->rc;
    }
    if (json_get(value, "put") == NULL) {
        struct ng_str whole = archive_bytes_of(in, name, value);
        buf_clear(body);
        buf_add_str(body, whole);
        return body->rc == NG_OK ? in->rc : archive_in_fail(in, "out of memory");
    }
    uint64_t at = archive_take_number(in, value, "at");
    uint64_t cut = archive_take_number(in, value, "cut");
    struct ng_str put = archive_take_bytes(in, value, "put");
    if (in->rc != NG_OK) {
        return in->rc;
    }
    if (at > body->len || cut > body->len - at) {
        return archive_in_fail(
            in, "\"%s\" changes bytes that the revision before does not have", name);
    }
    if (buf_splice(body, (size_t)at, (size_t)cut, put) != NG_OK) {
        return archive_in_fail(in, "out of memory");
    }
    return NG_OK;
}

/* The JSON of every revision must be an object. */
static void check_json(struct archive_in *in)
{
    const struct ng_value *body = NULL;
    if (in->rc != NG_OK) {
        return;
    }
    int rc = json_parse(&in->arena, buf_str(&in->json), JSON_DEPTH_DEFAULT * 2, &body, NULL);
    if (rc != NG_OK && rc != NG_EJSON) {
        (void)archive_in_fail(in, "out of memory");
    } else if (rc == NG_EJSON || body->type != NG_TYPE_OBJECT) {
        (void)archive_in_fail(in, "\"json\" is not a JSON object");
    }
}

/* ---- kinds of lines ---- */

static int read_header(struct archive_in *in, const struct ng_value *line)
{
    const struct ng_value *kind = json_get(line, "kind");
    if (kind == NULL || !str_is(kind->text, "notegate backup")) {
        return archive_in_fail(in, "this is not a notegate backup");
    }
    in->format = archive_take_number(in, line, "format");
    if (in->format < ARCHIVE_FORMAT_PLAIN || in->format > ARCHIVE_FORMAT) {
        return archive_in_fail(
            in, "the format is %llu, this notegate reads up to %d; use a newer one",
            (unsigned long long)in->format, ARCHIVE_FORMAT);
    }
    return archive_read_without(in, line);
}

int archive_in_sunk(struct archive_in *in, int rc)
{
    if (rc != NG_OK) {
        (void)archive_in_fail(in, "%s", buf_cstr(&in->why));
    }
    buf_clear(&in->why);
    return rc;
}

static int sink_record(struct archive_in *in, const struct ng_record *record)
{
    if (in->rc != NG_OK || in->sink == NULL || in->sink->record == NULL) {
        return in->rc;
    }
    return archive_in_sunk(in, in->sink->record(in->sink->user, record, &in->why));
}

static int read_fields(struct archive_in *in, const struct ng_value *list,
                       struct ng_field *fields, size_t *ret_count)
{
    size_t count = 0;
    if (list == NULL || in->rc != NG_OK) {
        return in->rc;
    }
    for (const struct ng_value *one = list->first; one != NULL; one = one->next) {
        const struct ng_value *weight = json_get(one, "weight");
        struct ng_str name = archive_take_bytes(in, one, "name");
        uint64_t use = archive_take_number(in, one, "use");
        if (in->rc != NG_OK) {
            return in->rc;
        }
        struct ng_str kept = arena_copy(&in->arena, name);
        if (count == ARCHIVE_FIELDS_MAX || kept.data == NULL || use < NG_FIELD_TAG ||
            use > NG_FIELD_TEXT) {
            return archive_in_fail(in, "\"fields\" has an invalid field");
        }
        fields[count].name = kept.data;
        fields[count].use = (enum ng_field_use)use;
        fields[count].weight = 0;
        if (weight != NULL) {
            fields[count].weight = json_double(weight);
        }
        count++;
    }
    *ret_count = count;
    return NG_OK;
}

static int read_collection(struct archive_in *in, const struct ng_value *line)
{
    struct ng_field fields[ARCHIVE_FIELDS_MAX];
    struct ng_collection collection = {.fields = fields, .field_size = sizeof(struct ng_field)};
    struct ng_str name = arena_copy(&in->arena, archive_take_bytes(in, line, "name"));
    collection.name = name.data;
    collection.flags = (uint32_t)archive_take_number(in, line, "flags");
    int rc = read_fields(in, json_get(line, "fields"), fields, &collection.field_count);
    if (rc != NG_OK || in->sink == NULL || in->sink->collection == NULL) {
        return rc;
    }
    if (collection.name == NULL) {
        return archive_in_fail(in, "out of memory");
    }
    return archive_in_sunk(in, in->sink->collection(in->sink->user, &collection, &in->why));
}

/* A document ends with its newest revision. */
static int check_newest(struct archive_in *in)
{
    if (in->has_last && !in->last_newest) {
        return archive_in_fail(in, "the newest revision of the last document is missing");
    }
    return NG_OK;
}

/* The document of a revision line: named, or that of the line before. */
static int take_key(struct archive_in *in, const struct ng_value *line)
{
    if (json_get(line, "id") == NULL) {
        return in->has_last ? NG_OK : archive_in_fail(in, "the document has no name");
    }
    if (check_newest(in) != NG_OK) {
        return in->rc;
    }
    struct ng_str collection = archive_take_bytes(in, line, "collection");
    struct ng_str space = archive_take_bytes(in, line, "space");
    struct ng_str id = archive_take_bytes(in, line, "id");
    if (in->rc != NG_OK) {
        return in->rc;
    }
    struct buf *all[] = {&in->collection, &in->space, &in->id, &in->json, &in->text};
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_clear(all[i]);
    }
    buf_add_str(&in->collection, collection);
    buf_add_str(&in->space, space);
    buf_add_str(&in->id, id);
    if (in->collection.rc != NG_OK || in->space.rc != NG_OK || in->id.rc != NG_OK) {
        return archive_in_fail(in,
                               "out of memory"); /* a truncated key names another document */
    }
    in->has_last = true;
    in->last_newest = false;
    in->last_revision = 0;
    in->counts.documents++;
    return NG_OK;
}

static int read_revision(struct archive_in *in, const struct ng_value *line)
{
    struct ng_doc doc = {.size = sizeof(doc)};
    struct ng_record record = {.size = sizeof(record), .kind = NG_RECORD_REVISION, .doc = &doc};
    (void)take_key(in, line);
    doc.revision = archive_take_number(in, line, "revision");
    doc.seq = archive_take_number(in, line, "seq");
    doc.created_seq = archive_take_number(in, line, "created_seq");
    doc.created_ms = archive_take_time(in, line, "created_ms");
    doc.updated_ms = archive_take_time(in, line, "updated_ms");
    doc.author = archive_take_bytes(in, line, "author");
    doc.action = archive_take_bytes(in, line, "action");
    doc.origin = archive_take_origin(in, line);
    (void)take_body(in, line, "json", &in->json);
    check_json(in);
    (void)take_body(in, line, "text", &in->text);
    if (in->rc != NG_OK) {
        return in->rc;
    }
    if (doc.revision <= in->last_revision || in->last_newest) {
        return archive_in_fail(
            in, "revision %llu comes after revision %llu%s", (unsigned long long)doc.revision,
            (unsigned long long)in->last_revision, in->last_newest ? ", the newest" : "");
    }
    doc.key.collection = buf_str(&in->collection);
    doc.key.space = buf_str(&in->space);
    doc.key.id = buf_str(&in->id);
    doc.json = buf_str(&in->json);
    doc.text = buf_str(&in->text);
    if (doc.text.data == NULL) {
        doc.text = ng_str_of("");
    }
    doc.text_size = doc.text.len;
    doc.deleted = archive_take_flag(line, "deleted");
    record.newest = archive_take_flag(line, "newest");
    in->last_revision = doc.revision;
    in->last_newest = record.newest;
    in->counts.revisions++;
    return sink_record(in, &record);
}

static int read_event(struct archive_in *in, const struct ng_value *line)
{
    struct ng_event event = {.size = sizeof(event)};
    struct ng_record record = {
        .size = sizeof(record), .kind = NG_RECORD_EVENT, .event = &event};
    event.seq = archive_take_number(in, line, "seq");
    event.time_ms = archive_take_time(in, line, "time_ms");
    event.key.collection = archive_take_bytes(in, line, "collection");
    event.key.space = archive_take_bytes(in, line, "space");
    event.key.id = archive_take_bytes(in, line, "id");
    event.revision = archive_take_number(in, line, "revision");
    event.agent = archive_take_bytes(in, line, "agent");
    event.tool = archive_take_bytes(in, line, "tool");
    event.action = archive_take_bytes(in, line, "action");
    if (json_get(line, "data") != NULL) {
        event.data = archive_take_bytes(in, line, "data");
    }
    event.origin = archive_take_origin(in, line);
    if (event.seq <= in->last_event) {
        return archive_in_fail(in, "event %llu comes after event %llu",
                               (unsigned long long)event.seq,
                               (unsigned long long)in->last_event);
    }
    in->last_event = event.seq;
    in->counts.events++;
    return sink_record(in, &record);
}

static int read_answer(struct archive_in *in, const struct ng_value *line)
{
    struct ng_answer answer = {.size = sizeof(answer)};
    struct ng_record record = {
        .size = sizeof(record), .kind = NG_RECORD_ANSWER, .answer = &answer};
    answer.scope = archive_take_bytes(in, line, "scope");
    answer.body_hash = archive_take_bytes(in, line, "body_hash");
    answer.reply = archive_take_bytes(in, line, "reply");
    answer.time_ms = archive_take_time(in, line, "time_ms");
    answer.expires_ms = archive_take_time(in, line, "expires_ms");
    in->counts.answers++;
    return sink_record(in, &record);
}

static int read_seq(struct archive_in *in, const struct ng_value *line)
{
    struct ng_record record = {.size = sizeof(record), .kind = NG_RECORD_SEQ};
    record.seq = archive_take_number(in, line, "seq");
    return sink_record(in, &record);
}

static int read_end(struct archive_in *in, const struct ng_value *line)
{
    const struct {
        const char *name;
        uint64_t found;
    } counts[] = {
        {"documents", in->counts.documents}, {"revisions", in->counts.revisions},
        {"events", in->counts.events},       {"answers", in->counts.answers},
        {"files", in->counts.files}, /* format 2 and later */
    };
    size_t count = NG_COUNT(counts) - (in->format < ARCHIVE_FORMAT_FILES);
    if (in->file_hash != NULL) {
        return archive_in_fail(in, "the last file has no end");
    }
    if (check_newest(in) != NG_OK) {
        return in->rc;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t said = archive_take_number(in, line, counts[i].name);
        if (said != counts[i].found) {
            return archive_in_fail(in, "it counts %llu %s, the file has %llu",
                                   (unsigned long long)said, counts[i].name,
                                   (unsigned long long)counts[i].found);
        }
    }
    in->ended = true;
    return in->rc;
}

static int read_line(struct archive_in *in, const struct ng_value *line, bool last)
{
    static const struct {
        const char *name;
        int order; /* lines come in rising order */
        int (*read)(struct archive_in *in, const struct ng_value *line);
    } kinds[] = {
        {"collection", NG_RECORD_REVISION, read_collection},
        {"revision", NG_RECORD_REVISION, read_revision},
        {"event", NG_RECORD_EVENT, read_event},
        {"answer", NG_RECORD_ANSWER, read_answer},
        {"seq", NG_RECORD_SEQ, read_seq},
        {"root", ARCHIVE_ORDER_ROOTS, archive_read_root},
        {"folder", ARCHIVE_ORDER_FILES, archive_read_folder},
        {"file", ARCHIVE_ORDER_FILES, archive_read_file},
        {"piece", ARCHIVE_ORDER_FILES, archive_read_piece},
        {"file_end", ARCHIVE_ORDER_FILES, archive_read_file_end},
        {"left_out", ARCHIVE_ORDER_FILES, archive_read_left_out},
        {"end", ARCHIVE_ORDER_END, read_end},
    };
    const struct ng_value *kind = json_get(line, "kind");
    if (in->line == 1) {
        return read_header(in, line);
    }
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        if (kind == NULL || !str_is(kind->text, kinds[i].name)) {
            continue;
        }
        bool is_file =
            kinds[i].order == ARCHIVE_ORDER_ROOTS || kinds[i].order == ARCHIVE_ORDER_FILES;
        if (kinds[i].order < in->last_kind || last != (kinds[i].read == read_end) ||
            (is_file && in->format < ARCHIVE_FORMAT_FILES)) {
            return archive_in_fail(in, "a line of kind \"%s\" is not expected here",
                                   kinds[i].name);
        }
        in->last_kind = kinds[i].order;
        return kinds[i].read(in, line);
    }
    return archive_in_fail(in, "the kind of the line is unknown");
}

static int read_all(struct archive_in *in)
{
    for (;;) {
        struct ng_str text;
        const struct ng_value *line = NULL;
        struct json_error json_error;
        bool last = false;
        int rc = next_line(in, &text);
        if (rc != NG_OK) {
            return rc;
        }
        if (text.data == NULL && in->ended) {
            return NG_OK;
        }
        if (text.data == NULL) {
            in->line++;
            return archive_in_fail(in, "the last line is missing; the file is cut off");
        }
        if (in->ended) {
            return archive_in_fail(in, "there is data after the end");
        }
        rc = check_hash(in, text, &last);
        if (rc != NG_OK) {
            return rc;
        }
        arena_reset(&in->arena);
        if (json_parse(&in->arena, text, ARCHIVE_DEPTH, &line, &json_error) != NG_OK) {
            return archive_in_fail(in, "it is not JSON: column %zu: %s", json_error.column,
                                   json_error.message);
        }
        rc = read_line(in, line, last);
        if (rc != NG_OK) {
            return rc;
        }
    }
}

int archive_read(archive_get_fn *get, void *user, const struct archive_sink *sink,
                 struct archive_counts *ret, struct buf *error)
{
    struct archive_in in = {.get = get, .user = user, .sink = sink, .error = error};
    struct buf *all[] = {&in.pending, &in.collection, &in.space, &in.id,
                         &in.json,    &in.text,       &in.why};
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_init(all[i], ARCHIVE_LINE_MAX);
    }
    arena_init(&in.arena, 0);
    in.hash = sha256_new();
    int rc = in.hash == NULL ? archive_in_fail(&in, "out of memory") : read_all(&in);
    if (rc == NG_OK) {
        *ret = in.counts;
    }
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_done(all[i]);
    }
    arena_done(&in.arena);
    sha256_free(in.hash);
    sha256_free(in.file_hash);
    return rc;
}
