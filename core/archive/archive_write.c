/* SPDX-License-Identifier: MIT */
/* archive_write.c - writes an export as lines of JSON with hashes. */
#include <stdlib.h>

#include "archive.h"
#include "archive_hash.h"
#include "archive_out.h"
#include "core/base/clock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text/rfc3339.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "core/store/store.h"

/* Lines are buffered up to about this size. */
#define ARCHIVE_PIECE_BYTES ((size_t)64 * 1024)

int archive_out_fail(struct archive_out *out, int rc, const char *what)
{
    if (out->rc == NG_OK) {
        out->rc = call_fail(out->call, rc, "the backup could not be written: %s", what);
    }
    return out->rc;
}

static int out_flush(struct archive_out *out)
{
    if (out->out.rc != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "out of memory");
    }
    if (out->out.len > 0) {
        int rc = out->put(out->user, buf_str(&out->out));
        if (rc != NG_OK) {
            return archive_out_fail(out, rc, "the destination accepts no more data");
        }
        out->counts.bytes += out->out.len;
        buf_clear(&out->out);
    }
    return NG_OK;
}

void archive_line_begin(struct archive_out *out, const char *kind)
{
    buf_clear(&out->line);
    json_writer_init(&out->writer, &out->line);
    json_object(&out->writer);
    json_name(&out->writer, "kind");
    json_cstring(&out->writer, kind);
}

int archive_line_end(struct archive_out *out, const char *hash_name, size_t hash_chars)
{
    char hex[SHA256_HEX_SIZE];
    json_end(&out->writer);
    if (out->line.rc != NG_OK) {
        bool too_large = out->line.rc == NG_ETOOLARGE;
        return archive_out_fail(out, out->line.rc,
                                too_large ? "a document is too large" : "out of memory");
    }
    /* The closing brace comes after the hash. */
    size_t body = out->line.len - 1;
    if (sha256_add(out->hash, str_make(out->line.data, body)) != NG_OK ||
        archive_hash_hex(out->hash, hex) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    out->line.len = body;
    buf_printf(&out->line, ",\"%s\":\"%.*s\"}\n", hash_name, (int)hash_chars, hex);
    if (sha256_add(out->hash, str_make(out->line.data + body, out->line.len - body)) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    buf_add_str(&out->out, buf_str(&out->line));
    if (out->out.len < ARCHIVE_PIECE_BYTES && out->out.rc == NG_OK) {
        return NG_OK;
    }
    return out_flush(out);
}

void archive_line_int(struct archive_out *out, const char *name, uint64_t number)
{
    json_name(&out->writer, name);
    json_int(&out->writer, (int64_t)number);
}

void archive_line_flag(struct archive_out *out, const char *name, bool flag)
{
    if (flag) {
        json_name(&out->writer, name);
        json_bool(&out->writer, true);
    }
}

static void line_base64(struct archive_out *out, struct ng_str bytes)
{
    struct buf text;
    buf_init(&text, ARCHIVE_LINE_MAX);
    base64_encode(&text, bytes, BASE64_STANDARD);
    if (text.rc != NG_OK) {
        out->line.rc = text.rc;
    }
    json_object(&out->writer);
    json_name(&out->writer, "base64");
    json_string(&out->writer, buf_str(&text));
    json_end(&out->writer);
    buf_done(&text);
}

void archive_line_bytes(struct archive_out *out, const char *name, struct ng_str bytes)
{
    json_name(&out->writer, name);
    if (utf8_valid(bytes)) {
        json_string(&out->writer, bytes);
    } else {
        line_base64(out, bytes);
    }
}

/* ---- records ---- */

static bool in_character(struct ng_str text, size_t at)
{
    return at < text.len && !utf8_is_start(text.data[at]);
}

/* Common head and tail, cut between characters: the inserted part must be UTF-8. */
static void splice_ends(struct ng_str from, struct ng_str to, size_t *ret_head,
                        size_t *ret_tail)
{
    size_t most = size_min(from.len, to.len);
    size_t head = 0;
    size_t tail = 0;
    while (head < most && from.data[head] == to.data[head]) {
        head++;
    }
    while (head > 0 && (in_character(from, head) || in_character(to, head))) {
        head--;
    }
    while (tail < most - head && from.data[from.len - 1 - tail] == to.data[to.len - 1 - tail]) {
        tail++;
    }
    while (tail > 0 &&
           (in_character(from, from.len - tail) || in_character(to, to.len - tail))) {
        tail--;
    }
    *ret_head = head;
    *ret_tail = tail;
}

/* Writes a body: nothing if it is unchanged, a splice if that is shorter, else the whole. */
static void line_body(struct archive_out *out, const char *name, bool same_document,
                      struct buf *last, struct ng_str now)
{
    enum { SPLICE_COST = 40 };
    struct ng_str from = same_document ? buf_str(last) : str_make(NULL, 0);
    if (str_equal(from, now)) {
        return;
    }
    size_t head = 0;
    size_t tail = 0;
    if (same_document) {
        splice_ends(from, now, &head, &tail);
    }
    if (head + tail > SPLICE_COST) {
        json_name(&out->writer, name);
        json_object(&out->writer);
        archive_line_int(out, "at", head);
        archive_line_int(out, "cut", from.len - head - tail);
        archive_line_bytes(out, "put", str_make(now.data + head, now.len - head - tail));
        json_end(&out->writer);
    } else {
        archive_line_bytes(out, name, now);
    }
    buf_clear(last);
    buf_add_str(last, now);
    if (last->rc != NG_OK) {
        out->line.rc = last->rc;
    }
}

static int write_collection(struct archive_out *out, struct ng_str name)
{
    struct buf *names = &out->collections;
    buf_add_char(names, ' ');
    const char *known = buf_cstr(names);
    bool is_known = str_in_words(name, known + (names->len > 1));
    if (is_known) {
        names->len--;
        return NG_OK;
    }
    buf_add_str(names, name);
    static const struct ng_collection undeclared = {.name = ""};
    const struct ng_collection *collection = NULL;
    if (out->origin->collection != NULL) {
        collection = out->origin->collection(out->origin->user, name);
    }
    if (collection == NULL) {
        collection = &undeclared;
    }
    archive_line_begin(out, "collection");
    archive_line_bytes(out, "name", name);
    archive_line_int(out, "flags", collection->flags);
    json_name(&out->writer, "fields");
    json_array(&out->writer);
    for (size_t i = 0; i < collection->field_count; i++) {
        json_object(&out->writer);
        json_name(&out->writer, "name");
        json_cstring(&out->writer, abi_field(collection, i)->name);
        archive_line_int(out, "use", (uint64_t)abi_field(collection, i)->use);
        json_name(&out->writer, "weight");
        json_number(&out->writer, abi_field(collection, i)->weight);
        json_end(&out->writer);
    }
    json_end(&out->writer);
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

/* A key as one text, in `out`. */
static struct ng_str print_key(struct buf *out, const struct ng_key *key)
{
    buf_clear(out);
    buf_printf(out, "%zu %zu ", key->collection.len, key->space.len);
    buf_add_str(out, key->collection);
    buf_add_str(out, key->space);
    buf_add_str(out, key->id);
    return str_make(buf_cstr(out), out->len);
}

/* A part that is not known has no member. */
static void line_origin(struct archive_out *out, const struct ng_origin *origin)
{
    const struct {
        const char *name;
        struct ng_str text;
    } parts[] = {
        {"run", origin->run_id}, {"key", origin->key_id}, {"request", origin->request_id}};
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (parts[i].text.len > 0) {
            archive_line_bytes(out, parts[i].name, parts[i].text);
        }
    }
    if (origin->has_lines) {
        archive_line_int(out, "added", origin->lines_added);
        archive_line_int(out, "removed", origin->lines_removed);
    }
}

static int write_revision(struct archive_out *out, const struct ng_record *record)
{
    const struct ng_doc *doc = record->doc;
    bool same = str_equal(print_key(&out->key, &doc->key), buf_str(&out->last_key));
    if (out->key.rc != NG_OK || out->last_key.rc != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "out of memory");
    }
    if (!same && write_collection(out, doc->key.collection) != NG_OK) {
        return out->rc;
    }
    archive_line_begin(out, "revision");
    if (!same) {
        archive_line_bytes(out, "collection", doc->key.collection);
        archive_line_bytes(out, "space", doc->key.space);
        archive_line_bytes(out, "id", doc->key.id);
        buf_clear(&out->last_key);
        buf_add_str(&out->last_key, buf_str(&out->key));
        buf_clear(&out->last_json);
        buf_clear(&out->last_text);
        out->counts.documents++;
    }
    archive_line_int(out, "revision", doc->revision);
    archive_line_flag(out, "newest", record->newest);
    archive_line_flag(out, "deleted", doc->deleted);
    archive_line_int(out, "seq", doc->seq);
    archive_line_int(out, "created_seq", doc->created_seq);
    archive_line_int(out, "created_ms", (uint64_t)doc->created_ms);
    archive_line_int(out, "updated_ms", (uint64_t)doc->updated_ms);
    archive_line_bytes(out, "author", doc->author);
    archive_line_bytes(out, "action", doc->action);
    line_origin(out, &doc->origin);
    line_body(out, "json", same, &out->last_json, doc->json);
    line_body(out, "text", same, &out->last_text, doc->text);
    out->counts.revisions++;
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_event(struct archive_out *out, const struct ng_event *event)
{
    archive_line_begin(out, "event");
    archive_line_int(out, "seq", event->seq);
    archive_line_int(out, "time_ms", (uint64_t)event->time_ms);
    archive_line_bytes(out, "collection", event->key.collection);
    archive_line_bytes(out, "space", event->key.space);
    archive_line_bytes(out, "id", event->key.id);
    archive_line_int(out, "revision", event->revision);
    archive_line_bytes(out, "agent", event->agent);
    archive_line_bytes(out, "tool", event->tool);
    archive_line_bytes(out, "action", event->action);
    if (event->data.data != NULL) {
        archive_line_bytes(out, "data", event->data);
    }
    line_origin(out, &event->origin);
    out->counts.events++;
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_answer(struct archive_out *out, const struct ng_answer *answer)
{
    archive_line_begin(out, "answer");
    archive_line_bytes(out, "scope", answer->scope);
    archive_line_bytes(out, "body_hash", answer->body_hash);
    archive_line_bytes(out, "reply", answer->reply);
    archive_line_int(out, "time_ms", (uint64_t)answer->time_ms);
    archive_line_int(out, "expires_ms", (uint64_t)answer->expires_ms);
    out->counts.answers++;
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_record(void *user, const struct ng_record *record)
{
    struct archive_out *out = user;
    switch (record->kind) {
    case NG_RECORD_REVISION:
        return write_revision(out, record);
    case NG_RECORD_EVENT:
        return write_event(out, record->event);
    case NG_RECORD_ANSWER:
        return write_answer(out, record->answer);
    case NG_RECORD_SEQ:
        break;
    }
    archive_line_begin(out, "seq");
    archive_line_int(out, "seq", record->seq);
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

/* ---- the whole ---- */

static int write_header(struct archive_out *out, int64_t now_ms)
{
    char time_text[RFC3339_SIZE];
    rfc3339_write(now_ms, RFC3339_SECONDS, time_text);
    archive_line_begin(out, "notegate backup");
    archive_line_int(out, "format",
                     out->origin->files != NULL ? archive_files_format(out)
                                                : ARCHIVE_FORMAT_PLAIN);
    json_name(&out->writer, "version");
    json_cstring(&out->writer, NOTEGATE_VERSION);
    json_name(&out->writer, "time");
    json_cstring(&out->writer, time_text);
    json_name(&out->writer, "backend");
    json_cstring(&out->writer, out->origin->backend->name);
    if (out->origin->without != NULL) {
        (void)archive_write_without(out);
    }
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_trailer(struct archive_out *out)
{
    archive_line_begin(out, "end");
    archive_line_int(out, "documents", out->counts.documents);
    archive_line_int(out, "revisions", out->counts.revisions);
    archive_line_int(out, "events", out->counts.events);
    archive_line_int(out, "answers", out->counts.answers);
    if (out->origin->files != NULL) {
        archive_line_int(out, "files", out->counts.files);
    }
    int rc = archive_line_end(out, "sha256", ARCHIVE_HASH_CHARS);
    return rc == NG_OK ? out_flush(out) : rc;
}

int archive_write(const struct archive_origin *origin, struct call *call, int64_t now_ms,
                  archive_put_fn *put, void *user, struct archive_counts *ret)
{
    if (origin->backend->export_all == NULL) {
        return call_fail(call, NG_EFAILED, "the backend %s does not offer backups",
                         origin->backend->name);
    }
    struct archive_out out = {.origin = origin, .call = call, .put = put, .user = user};
    struct buf *all[] = {&out.line,      &out.out,       &out.key,        &out.last_key,
                         &out.last_json, &out.last_text, &out.collections};
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_init(all[i], ARCHIVE_LINE_MAX);
    }
    out.hash = sha256_new();
    if (out.hash == NULL) {
        (void)archive_out_fail(&out, NG_EINTERNAL, "out of memory");
    } else if (write_header(&out, now_ms) == NG_OK) {
        struct abi_given given = {
            .backend = origin->backend->name, .to.record = write_record, .user = &out};
        int rc = origin->backend->export_all(origin->db, &call->pub, abi_give_record, &given);
        rc = abi_given_end(call, &given, rc);
        if (out.rc == NG_OK && rc != NG_OK) {
            out.rc = rc;
        }
    }
    if (out.rc == NG_OK && origin->files != NULL) {
        (void)archive_write_files(&out);
    }
    if (out.rc == NG_OK) {
        (void)write_trailer(&out);
    }
    if (out.rc == NG_OK) {
        *ret = out.counts;
    }
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_done(all[i]);
    }
    sha256_free(out.hash);
    return out.rc;
}

static const struct ng_collection *collection_of_store(void *user, struct ng_str name)
{
    return store_collection(user, name);
}

int archive_write_store(struct call *call, bool with_files, archive_put_fn *put, void *user,
                        struct archive_counts *ret)
{
    struct gateway *gateway = call->gateway;
    struct archive_origin origin = {
        .collection = collection_of_store,
        .user = gateway->store,
        .files = with_files ? gateway->files : NULL,
        .without = with_files ? NULL : gateway->files,
    };
    origin.backend = store_backend(gateway->store, &origin.db);
    return archive_write(&origin, call, clock_unix_ms(), put, user, ret);
}

/* ---- counting ---- */

struct archive_counting {
    struct archive_counts counts;
    struct buf last; /* key of the previous revision */
    struct buf key;
};

static int count_record(void *user, const struct ng_record *record)
{
    struct archive_counting *counting = user;
    if (record->kind == NG_RECORD_REVISION) {
        struct ng_str key = print_key(&counting->key, &record->doc->key);
        if (!str_equal(key, buf_str(&counting->last))) {
            struct buf spare = counting->last;
            counting->last = counting->key;
            counting->key = spare;
            counting->counts.documents++;
        }
        counting->counts.revisions++;
        return counting->key.rc != NG_OK ? counting->key.rc : counting->last.rc;
    }
    counting->counts.events += record->kind == NG_RECORD_EVENT;
    counting->counts.answers += record->kind == NG_RECORD_ANSWER;
    return NG_OK;
}

int archive_count_store(struct store *store, struct call *call, struct archive_counts *ret)
{
    void *db = NULL;
    const struct ng_documents *backend = store_backend(store, &db);
    if (backend->export_all == NULL) {
        return NG_ENOTFOUND;
    }
    struct archive_counting counting = {.counts = {0}};
    buf_init(&counting.last, ARCHIVE_LINE_MAX);
    buf_init(&counting.key, ARCHIVE_LINE_MAX);
    int rc = backend->export_all(db, &call->pub, count_record, &counting);
    if (rc == NG_OK) {
        *ret = counting.counts;
    }
    buf_done(&counting.last);
    buf_done(&counting.key);
    return rc;
}
