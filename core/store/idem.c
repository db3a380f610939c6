/* SPDX-License-Identifier: MIT */
/* idem.c - idempotency keys: who holds which, who waits for it, and answers as they are stored.
 */
#include "idem.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"

#define IDEM_BUCKETS 256
#define IDEM_HASH_BYTES 32
/* Calls that wait for one key at most. */
#define IDEM_WAITERS_MAX 64

struct idem {
    struct ng_str scope; /* memory of the holding call */
    struct ng_str hash;
    struct call *waiting[IDEM_WAITERS_MAX];
    size_t waiting_count;
    struct idem *next;
};

struct idem_table {
    pthread_mutex_t lock;
    struct idem *buckets[IDEM_BUCKETS];
};

struct idem_table *idem_new(void)
{
    struct idem_table *table = alloc_zeroed(1, sizeof(*table));
    if (table != NULL) {
        pthread_mutex_init(&table->lock, NULL);
    }
    return table;
}

void idem_free(struct idem_table *table)
{
    if (table != NULL) {
        pthread_mutex_destroy(&table->lock);
        free(table);
    }
}

/* In hexadecimal; {NULL, 0}: out of memory. */
static struct ng_str idem_digest(struct call *call, struct buf *text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    struct ng_str none = {NULL, 0};
    bool good = text->rc == NG_OK &&
                EVP_Digest(text->data, text->len, hash, &len, EVP_sha256(), NULL) == 1;
    char *hex = good ? arena_alloc(&call->arena, (size_t)IDEM_HASH_BYTES * 2 + 1) : NULL;
    if (hex == NULL) {
        return none;
    }
    for (size_t i = 0; i < IDEM_HASH_BYTES; i++) {
        hex[2 * i] = digits[hash[i] >> 4];
        hex[2 * i + 1] = digits[hash[i] & 15];
    }
    hex[2 * IDEM_HASH_BYTES] = '\0';
    return str_make(hex, (size_t)IDEM_HASH_BYTES * 2);
}

static struct ng_str idem_hash(struct call *call)
{
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    json_print(&text, call->pub.args);
    struct ng_str hash = idem_digest(call, &text);
    buf_done(&text);
    return hash;
}

/* Agent, space, tool and key, one per line; only the key may hold a line feed, and it is last.
 */
static struct ng_str idem_scope(struct call *call)
{
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    buf_add_str(&text, call->caller.agent);
    buf_add_char(&text, '\n');
    buf_add_str(&text, call->caller.space);
    buf_add_char(&text, '\n');
    buf_add_str(&text, call->pub.tool);
    buf_add_char(&text, '\n');
    buf_add_str(&text, call->idempotency_key);
    struct ng_str scope = {NULL, 0};
    if (text.rc == NG_OK) {
        scope = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    return scope;
}

/* ---- answers as they are stored ---- */

static void idem_print_hex(struct ng_writer *writer, struct call *call, struct ng_str bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = arena_alloc(&call->arena, bytes.len * 2 + 1);
    if (hex == NULL) {
        writer->buf->rc = NG_EINTERNAL;
        return;
    }
    for (size_t i = 0; i < bytes.len; i++) {
        hex[2 * i] = digits[(unsigned char)bytes.data[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)bytes.data[i] & 15];
    }
    json_string(writer, str_make(hex, bytes.len * 2));
}

static void idem_print_part(struct ng_writer *writer, struct call *call,
                            const struct part *part)
{
    json_object(writer);
    json_name(writer, "kind");
    json_int(writer, part->kind);
    json_name(writer, "mime");
    json_string(writer, part->mime_type);
    json_name(writer, "uri");
    json_string(writer, part->uri);
    json_name(writer, "name");
    json_string(writer, part->name);
    json_name(writer, "is_text");
    json_bool(writer, part->is_text);
    json_name(writer, "data");
    idem_print_hex(writer, call, part->data);
    json_end(writer);
}

static void idem_print_reply(struct ng_writer *writer, struct call *call)
{
    const struct result *work = &call->work;
    bool open = call->reply_open && call->reply_writer.complete;
    struct ng_str text = open ? buf_str(&call->reply_buf) : work->text;
    json_object(writer);
    json_name(writer, "is_json");
    json_bool(writer, open || work->is_json);
    json_name(writer, "text");
    if (!open && !work->has_text) {
        json_null(writer); /* parts only */
    } else if (utf8_valid(text)) {
        json_string(writer, text);
    } else {
        json_null(writer);
        json_name(writer, "bytes");
        idem_print_hex(writer, call, text);
    }
    if (work->revision_kind == REVISION_NUMBER) {
        json_name(writer, "revision");
        json_int(writer, (int64_t)work->revision_number);
    } else if (work->revision_kind == REVISION_TEXT) {
        json_name(writer, "revision");
        json_string(writer, work->revision_text);
    }
    json_name(writer, "parts");
    json_array(writer);
    for (const struct part *part = work->parts; part != NULL; part = part->next) {
        idem_print_part(writer, call, part);
    }
    json_end(writer);
    json_end(writer);
}

int idem_answer(struct call *call, struct ng_answer *ret)
{
    struct buf text;
    struct ng_writer writer;
    buf_init(&text, CALL_MEMORY_MAX);
    json_writer_init(&writer, &text);
    idem_print_reply(&writer, call);
    struct ng_str reply = {NULL, 0};
    if (text.rc == NG_OK) {
        reply = arena_copy(&call->arena, buf_str(&text));
    }
    buf_done(&text);
    if (reply.data == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory while the answer was kept");
    }
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->scope = call->idem->scope;
    ret->body_hash = call->idem->hash;
    ret->reply = reply;
    /* What is stored under this key is over only by a time that can be believed. */
    ret->time_ms = store_now(call->gateway->store);
    ret->expires_ms = clock_unix_ms() + IDEM_KEEP_MS;
    return NG_OK;
}

static int idem_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* {NULL, 0}: it is no such text, or memory is out. */
static struct ng_str idem_read_hex(struct call *call, const struct ng_value *value)
{
    struct ng_str none = {NULL, 0};
    if (value == NULL || value->type != NG_TYPE_STRING || value->text.len % 2 != 0) {
        return none;
    }
    struct ng_str hex = value->text;
    char *bytes = arena_alloc(&call->arena, hex.len / 2 + 1);
    for (size_t i = 0; bytes != NULL && i + 1 < hex.len; i += 2) {
        int high = idem_digit(hex.data[i]);
        int low = idem_digit(hex.data[i + 1]);
        if (high < 0 || low < 0) {
            return none;
        }
        bytes[i / 2] = (char)(high << 4 | low);
    }
    return bytes == NULL ? none : str_make(bytes, hex.len / 2);
}

static struct ng_str idem_text(const struct ng_value *object, const char *name)
{
    const struct ng_value *value = json_get(object, name);
    bool has = value != NULL && value->type == NG_TYPE_STRING;
    return has ? value->text : str_make(NULL, 0);
}

static bool idem_true(const struct ng_value *object, const char *name)
{
    const struct ng_value *value = json_get(object, name);
    return value != NULL && value->type == NG_TYPE_TRUE;
}

static bool idem_read_parts(struct call *call, const struct ng_value *parts)
{
    if (parts == NULL || parts->type != NG_TYPE_ARRAY) {
        return false;
    }
    for (const struct ng_value *item = parts->first; item != NULL; item = item->next) {
        struct part *part = arena_zalloc(&call->arena, sizeof(*part));
        int64_t kind = 0;
        if (part == NULL || json_integer(json_get(item, "kind"), &kind) != NG_OK ||
            kind < PART_TEXT || kind > PART_LINK) {
            return false;
        }
        part->kind = (enum part_kind)kind;
        part->mime_type = idem_text(item, "mime");
        part->uri = idem_text(item, "uri");
        part->name = idem_text(item, "name");
        part->is_text = idem_true(item, "is_text");
        part->data = idem_read_hex(call, json_get(item, "data"));
        if (part->data.data == NULL) {
            return false;
        }
        *(call->work.last_part == NULL ? &call->work.parts : &call->work.last_part->next) =
            part;
        call->work.last_part = part;
    }
    return true;
}

static bool idem_read_revision(struct result *work, const struct ng_value *revision)
{
    int64_t number = 0;
    if (revision == NULL) {
        return true;
    }
    if (revision->type == NG_TYPE_STRING) {
        work->revision_kind = REVISION_TEXT;
        work->revision_text = revision->text;
        return true;
    }
    work->revision_kind = REVISION_NUMBER;
    bool good = json_integer(revision, &number) == NG_OK && number >= 0;
    work->revision_number = (uint64_t)number;
    return good;
}

static bool idem_read_value(struct call *call, const struct ng_value *value)
{
    struct result *work = &call->work;
    const struct ng_value *bytes = json_get(value, "bytes");
    work->is_json = idem_true(value, "is_json");
    work->text = bytes != NULL ? idem_read_hex(call, bytes) : idem_text(value, "text");
    work->has_text = work->text.data != NULL;
    return (bytes == NULL || work->has_text) &&
           idem_read_revision(work, json_get(value, "revision")) &&
           idem_read_parts(call, json_get(value, "parts"));
}

static int idem_read_reply(struct call *call, struct ng_str reply)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    call_reset_result(call);
    if (json_parse(&call->arena, reply, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
        idem_read_value(call, value)) {
        return NG_OK;
    }
    call_reset_result(call);
    return call_fail(call, NG_EINTERNAL, "the stored answer of this idempotency key %s",
                     call->arena.failed ? "does not fit into memory" : "is damaged");
}

/* ---- holding a key ---- */

static int idem_reused(struct call *call)
{
    call_fail(call, NG_EKEYREUSED,
              "this idempotency key came with other arguments before; use a new key for a new "
              "request");
    return NG_EKEYREUSED;
}

static struct idem **idem_bucket(struct idem_table *table, struct ng_str scope)
{
    return &table->buckets[str_hash(scope) % IDEM_BUCKETS];
}

/* With the lock held: joins the holder's waiters, or says why not. */
static enum idem_state idem_join(struct idem *held, struct call *call, struct ng_str hash)
{
    if (!str_equal(held->hash, hash)) {
        idem_reused(call);
        return IDEM_FAILED;
    }
    if (held->waiting_count == IDEM_WAITERS_MAX) {
        call_fail(call, NG_EBUSY, "%d repeats wait for this idempotency key already",
                  IDEM_WAITERS_MAX);
        return IDEM_FAILED;
    }
    held->waiting[held->waiting_count++] = call;
    return IDEM_WAIT;
}

static enum idem_state idem_stored(struct call *call, const struct idem *idem)
{
    struct ng_answer answer;
    int rc = store_answer(call->gateway->store, call, idem->scope, &answer);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        return IDEM_RUN;
    }
    if (rc == NG_OK && !str_equal(answer.body_hash, idem->hash)) {
        rc = idem_reused(call);
    } else if (rc == NG_OK) {
        call->idem_stored = true;
        call->idem_repeated = true;
        rc = idem_read_reply(call, answer.reply);
    }
    call->work.rc = rc;
    return IDEM_ANSWERED;
}

struct ng_str idem_scope_of(const struct call *call)
{
    return call->idem->scope;
}

struct ng_str idem_token(struct call *call)
{
    struct buf text;
    struct ng_str none = {NULL, 0};
    if (call->idem == NULL) {
        return none;
    }
    buf_init(&text, CALL_MEMORY_MAX);
    buf_add_str(&text, call->idem->hash); /* of one length */
    buf_add_str(&text, call->idem->scope);
    struct ng_str once = idem_digest(call, &text);
    buf_done(&text);
    return once;
}

int idem_adopt(struct call *call)
{
    struct ng_answer answer;
    struct result before = call->work;
    int rc = store_answer(call->gateway->store, call, call->idem->scope, &answer);
    if (rc == NG_ENOTFOUND) {
        call->work = before;
        return rc;
    }
    if (rc == NG_OK && !str_equal(answer.body_hash, call->idem->hash)) {
        rc = idem_reused(call);
    } else if (rc == NG_OK) {
        call->idem_repeated = true;
        rc = idem_read_reply(call, answer.reply);
    }
    return rc;
}

enum idem_state idem_begin(struct call *call)
{
    struct idem_table *table = call->gateway->idem;
    struct idem *idem = arena_zalloc(&call->arena, sizeof(*idem));
    if (idem != NULL) {
        idem->scope = idem_scope(call);
        idem->hash = idem_hash(call);
    }
    if (idem == NULL || idem->scope.data == NULL || idem->hash.data == NULL) {
        call_fail(call, NG_EINTERNAL, "out of memory");
        return IDEM_FAILED;
    }
    pthread_mutex_lock(&table->lock);
    struct idem **bucket = idem_bucket(table, idem->scope);
    struct idem *held = *bucket;
    while (held != NULL && !str_equal(held->scope, idem->scope)) {
        held = held->next;
    }
    enum idem_state state = IDEM_RUN;
    if (held != NULL) {
        state = idem_join(held, call, idem->hash);
    } else {
        idem->next = *bucket;
        *bucket = idem;
        call->idem = idem;
    }
    pthread_mutex_unlock(&table->lock);
    return state == IDEM_RUN ? idem_stored(call, idem) : state;
}

void idem_end(struct call *call)
{
    struct idem *idem = call->idem;
    struct idem_table *table = call->gateway->idem;
    pthread_mutex_lock(&table->lock);
    struct idem **at = idem_bucket(table, idem->scope);
    while (*at != idem) {
        at = &(*at)->next;
    }
    *at = idem->next;
    pthread_mutex_unlock(&table->lock);
    call->idem = NULL;
    for (size_t i = 0; i < idem->waiting_count; i++) {
        pool_resume(call->gateway->pool, &idem->waiting[i]->task);
    }
}
