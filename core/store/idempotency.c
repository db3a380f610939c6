/* SPDX-License-Identifier: MIT */
/* idempotency.c - idempotency keys: the calls that hold them, the calls that wait, and stored
 * answers. */
#include "idempotency.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "store.h"

#define IDEMPOTENCY_BUCKETS 256
#define IDEMPOTENCY_HASH_BYTES 32
/* Calls that wait for one key at most. */
#define IDEMPOTENCY_WAITERS_MAX 64

struct idempotency_claim {
    struct ng_str scope; /* memory of the holding call */
    struct ng_str hash;
    struct call *waiting[IDEMPOTENCY_WAITERS_MAX];
    size_t waiting_count;
    struct idempotency_claim *next;
};

struct idempotency_table {
    struct lock lock;
    struct idempotency_claim *buckets[IDEMPOTENCY_BUCKETS];
};

struct idempotency_table *idempotency_new(void)
{
    struct idempotency_table *table = alloc_zeroed(1, sizeof(*table));
    if (table != NULL) {
        lock_init(&table->lock, LOCK_IDEMPOTENCY);
    }
    return table;
}

void idempotency_free(struct idempotency_table *table)
{
    if (table != NULL) {
        lock_done(&table->lock);
        free(table);
    }
}

/* In hexadecimal; {NULL, 0}: out of memory. */
static struct ng_str idempotency_digest(struct call *call, struct buf *text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    struct ng_str none = {NULL, 0};
    bool good = text->rc == NG_OK &&
                EVP_Digest(text->data, text->len, hash, &len, EVP_sha256(), NULL) == 1;
    char *hex = NULL;
    if (good) {
        hex = arena_alloc(&call->arena, (size_t)IDEMPOTENCY_HASH_BYTES * 2 + 1);
    }
    if (hex == NULL) {
        return none;
    }
    for (size_t i = 0; i < IDEMPOTENCY_HASH_BYTES; i++) {
        hex[2 * i] = digits[hash[i] >> 4];
        hex[2 * i + 1] = digits[hash[i] & 15];
    }
    hex[2 * IDEMPOTENCY_HASH_BYTES] = '\0';
    return str_make(hex, (size_t)IDEMPOTENCY_HASH_BYTES * 2);
}

static struct ng_str idempotency_hash(struct call *call)
{
    struct buf text;
    buf_init(&text, CALL_MEMORY_MAX);
    json_print(&text, call->pub.args);
    struct ng_str hash = idempotency_digest(call, &text);
    buf_done(&text);
    return hash;
}

/* Agent, space, tool and key, one per line; only the key may hold a line feed, and it is last.
 */
static struct ng_str idempotency_scope(struct call *call)
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

static void idempotency_print_hex(struct ng_writer *writer, struct call *call,
                                  struct ng_str bytes)
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

static void idempotency_print_part(struct ng_writer *writer, struct call *call,
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
    idempotency_print_hex(writer, call, part->data);
    json_end(writer);
}

static void idempotency_print_reply(struct ng_writer *writer, struct call *call)
{
    const struct result *staged = &call->staged;
    bool open = call_reply_is_open(call) && call->reply_writer.complete;
    struct ng_str text;
    if (open) {
        text = buf_str(&call->reply_buf);
    } else {
        text = staged->text;
    }
    json_object(writer);
    json_name(writer, "is_json");
    json_bool(writer, open || staged->is_json);
    json_name(writer, "text");
    if (!open && !staged->has_text) {
        json_null(writer); /* parts only */
    } else if (utf8_valid(text)) {
        json_string(writer, text);
    } else {
        json_null(writer);
        json_name(writer, "bytes");
        idempotency_print_hex(writer, call, text);
    }
    if (staged->revision_kind == REVISION_NUMBER) {
        json_name(writer, "revision");
        json_int(writer, (int64_t)staged->revision_number);
    } else if (staged->revision_kind == REVISION_TEXT) {
        json_name(writer, "revision");
        json_string(writer, staged->revision_text);
    }
    if (staged->meta != NULL) {
        json_name(writer, "meta");
        json_object(writer);
        for (const struct result_meta *at = staged->meta; at != NULL; at = at->next) {
            json_name_str(writer, at->name);
            json_string(writer, at->text);
        }
        json_end(writer);
    }
    json_name(writer, "parts");
    json_array(writer);
    for (const struct part *part = staged->parts; part != NULL; part = part->next) {
        idempotency_print_part(writer, call, part);
    }
    json_end(writer);
    json_end(writer);
}

int idempotency_answer(struct call *call, struct ng_answer *ret)
{
    struct buf text;
    struct ng_writer writer;
    buf_init(&text, CALL_MEMORY_MAX);
    json_writer_init(&writer, &text);
    idempotency_print_reply(&writer, call);
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
    ret->scope = call->idempotency->scope;
    ret->body_hash = call->idempotency->hash;
    ret->reply = reply;
    /* Expiry uses store_now(): a wrong system clock must not expire answers. */
    ret->time_ms = store_now(call->gateway->store);
    ret->expires_ms = clock_unix_ms() + IDEMPOTENCY_KEEP_MS;
    return NG_OK;
}

static int idempotency_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

/* {NULL, 0}: it is no such text, or memory is out. */
static struct ng_str idempotency_read_hex(struct call *call, const struct ng_value *value)
{
    struct ng_str none = {NULL, 0};
    if (value == NULL || value->type != NG_TYPE_STRING || value->text.len % 2 != 0) {
        return none;
    }
    struct ng_str hex = value->text;
    char *bytes = arena_alloc(&call->arena, hex.len / 2 + 1);
    for (size_t i = 0; bytes != NULL && i + 1 < hex.len; i += 2) {
        int high = idempotency_digit(hex.data[i]);
        int low = idempotency_digit(hex.data[i + 1]);
        if (high < 0 || low < 0) {
            return none;
        }
        bytes[i / 2] = (char)(high << 4 | low);
    }
    if (bytes == NULL) {
        return none;
    }
    return str_make(bytes, hex.len / 2);
}

static struct ng_str idempotency_text(const struct ng_value *object, const char *name)
{
    const struct ng_value *value = json_get(object, name);
    bool has = value != NULL && value->type == NG_TYPE_STRING;
    if (has) {
        return value->text;
    }
    return str_make(NULL, 0);
}

static bool idempotency_true(const struct ng_value *object, const char *name)
{
    const struct ng_value *value = json_get(object, name);
    return value != NULL && value->type == NG_TYPE_TRUE;
}

static bool idempotency_read_parts(struct call *call, const struct ng_value *parts)
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
        part->mime_type = idempotency_text(item, "mime");
        part->uri = idempotency_text(item, "uri");
        part->name = idempotency_text(item, "name");
        part->is_text = idempotency_true(item, "is_text");
        part->data = idempotency_read_hex(call, json_get(item, "data"));
        if (part->data.data == NULL) {
            return false;
        }
        *(call->staged.last_part == NULL ? &call->staged.parts
                                         : &call->staged.last_part->next) = part;
        call->staged.last_part = part;
    }
    return true;
}

static bool idempotency_read_revision(struct result *staged, const struct ng_value *revision)
{
    int64_t number = 0;
    if (revision == NULL) {
        return true;
    }
    if (revision->type == NG_TYPE_STRING) {
        staged->revision_kind = REVISION_TEXT;
        staged->revision_text = revision->text;
        return true;
    }
    staged->revision_kind = REVISION_NUMBER;
    bool good = json_integer(revision, &number) == NG_OK && number >= 0;
    staged->revision_number = (uint64_t)number;
    return good;
}

static bool idempotency_read_meta(struct call *call, const struct ng_value *meta)
{
    bool good = true;
    for (const struct ng_value *at = meta == NULL ? NULL : meta->first; at != NULL && good;
         at = at->next) {
        good = at->type == NG_TYPE_STRING && call_set_meta(call, at->key, at->text);
    }
    return good;
}

static bool idempotency_read_value(struct call *call, const struct ng_value *value)
{
    struct result *staged = &call->staged;
    const struct ng_value *bytes = json_get(value, "bytes");
    staged->is_json = idempotency_true(value, "is_json");
    if (bytes != NULL) {
        staged->text = idempotency_read_hex(call, bytes);
    } else {
        staged->text = idempotency_text(value, "text");
    }
    staged->has_text = staged->text.data != NULL;
    return (bytes == NULL || staged->has_text) &&
           idempotency_read_revision(staged, json_get(value, "revision")) &&
           idempotency_read_meta(call, json_get(value, "meta")) &&
           idempotency_read_parts(call, json_get(value, "parts"));
}

static int idempotency_read_reply(struct call *call, struct ng_str reply)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    call_reset_result(call);
    if (json_parse(&call->arena, reply, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
        idempotency_read_value(call, value)) {
        return NG_OK;
    }
    call_reset_result(call);
    return call_fail(call, NG_EINTERNAL, "the stored answer of this idempotency key %s",
                     call->arena.failed ? "does not fit into memory" : "is damaged");
}

/* ---- holding a key ---- */

static int idempotency_reused(struct call *call)
{
    call_fail(call, NG_EKEYREUSED,
              "this idempotency key was used with other arguments before; use a new key for a "
              "new request");
    return NG_EKEYREUSED;
}

static struct idempotency_claim **idempotency_bucket(struct idempotency_table *table,
                                                     struct ng_str scope)
{
    return &table->buckets[str_hash(scope) % IDEMPOTENCY_BUCKETS];
}

/* With the lock held: joins the owner's waiters, or reports the reason. */
static enum idempotency_state idempotency_join(struct idempotency_claim *held,
                                               struct call *call, struct ng_str hash)
{
    if (!str_equal(held->hash, hash)) {
        idempotency_reused(call);
        return IDEMPOTENCY_FAILED;
    }
    if (held->waiting_count == IDEMPOTENCY_WAITERS_MAX) {
        call_fail(call, NG_EBUSY, "%d retries wait for this idempotency key already",
                  IDEMPOTENCY_WAITERS_MAX);
        return IDEMPOTENCY_FAILED;
    }
    held->waiting[held->waiting_count++] = call;
    return IDEMPOTENCY_WAIT;
}

static enum idempotency_state idempotency_stored(struct call *call,
                                                 const struct idempotency_claim *claim)
{
    struct ng_answer answer;
    int rc = store_answer(call->gateway->store, call, claim->scope, &answer);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        return IDEMPOTENCY_RUN;
    }
    if (rc == NG_OK && !str_equal(answer.body_hash, claim->hash)) {
        rc = idempotency_reused(call);
    } else if (rc == NG_OK) {
        call->answer_state = CALL_ANSWER_REPEATED;
        rc = idempotency_read_reply(call, answer.reply);
    }
    call->staged.rc = rc;
    return IDEMPOTENCY_ANSWERED;
}

struct ng_str idempotency_scope_of(const struct call *call)
{
    return call->idempotency->scope;
}

struct ng_str idempotency_token(struct call *call)
{
    struct buf text;
    struct ng_str none = {NULL, 0};
    if (call->idempotency == NULL) {
        return none;
    }
    buf_init(&text, CALL_MEMORY_MAX);
    buf_add_str(&text, call->idempotency->hash); /* of one length */
    buf_add_str(&text, call->idempotency->scope);
    struct ng_str once = idempotency_digest(call, &text);
    buf_done(&text);
    return once;
}

int idempotency_adopt(struct call *call)
{
    struct ng_answer answer;
    struct result before = call->staged;
    int rc = store_answer(call->gateway->store, call, call->idempotency->scope, &answer);
    if (rc == NG_ENOTFOUND) {
        call->staged = before;
        return rc;
    }
    if (rc == NG_OK && !str_equal(answer.body_hash, call->idempotency->hash)) {
        rc = idempotency_reused(call);
    } else if (rc == NG_OK) {
        call->answer_state = CALL_ANSWER_REPEATED;
        rc = idempotency_read_reply(call, answer.reply);
    }
    return rc;
}

enum idempotency_state idempotency_begin(struct call *call)
{
    struct idempotency_table *table = call->gateway->idempotency;
    struct idempotency_claim *claim = arena_zalloc(&call->arena, sizeof(*claim));
    if (claim != NULL) {
        claim->scope = idempotency_scope(call);
        claim->hash = idempotency_hash(call);
    }
    if (claim == NULL || claim->scope.data == NULL || claim->hash.data == NULL) {
        call_fail(call, NG_EINTERNAL, "out of memory");
        return IDEMPOTENCY_FAILED;
    }
    lock_take(&table->lock);
    struct idempotency_claim **bucket = idempotency_bucket(table, claim->scope);
    struct idempotency_claim *held = *bucket;
    while (held != NULL && !str_equal(held->scope, claim->scope)) {
        held = held->next;
    }
    enum idempotency_state state = IDEMPOTENCY_RUN;
    if (held != NULL) {
        state = idempotency_join(held, call, claim->hash);
    } else {
        claim->next = *bucket;
        *bucket = claim;
        call->idempotency = claim;
    }
    lock_release(&table->lock);
    if (state != IDEMPOTENCY_RUN) {
        return state;
    }
    return idempotency_stored(call, claim);
}

void idempotency_end(struct call *call)
{
    struct idempotency_claim *claim = call->idempotency;
    struct idempotency_table *table = call->gateway->idempotency;
    lock_take(&table->lock);
    struct idempotency_claim **at = idempotency_bucket(table, claim->scope);
    while (*at != claim) {
        at = &(*at)->next;
    }
    *at = claim->next;
    lock_release(&table->lock);
    call->idempotency = NULL;
    for (size_t i = 0; i < claim->waiting_count; i++) {
        pool_resume(call->gateway->pool, &claim->waiting[i]->task);
    }
}
