/* SPDX-License-Identifier: MIT */
/* keys_log.c - which keys changed, for the other gateways on the same database: one document,
 * written in the same transaction as the keys, whose revision counts their changes. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "keys_table.h"

#define LOG_COLLECTION "key_log"
#define LOG_ID "keys"
#define LOG_JSON_MAX ((size_t)16 * 1024)

static const struct ng_collection log_collection = {
    .name = LOG_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

static struct ng_key log_key(void)
{
    struct ng_key key = {ng_str_of(LOG_COLLECTION), ng_str_of(KEYS_SPACE), ng_str_of(LOG_ID)};
    return key;
}

int keys_declare_log(struct keys *keys, struct call *call)
{
    return store_declare(keys->gateway->store, call, &log_collection);
}

/* ---- writing ---- */

void key_log_set(struct key_log_entry *entry, const struct ng_doc *present, bool gone)
{
    entry->revision = present->revision + 1;
    entry->gone = gone;
}

static void write_entry(struct ng_writer *writer, const struct key_log_entry *entry)
{
    json_object(writer);
    json_member_string(writer, "id", ng_str_of(entry->id));
    json_member_int(writer, "revision", (int64_t)entry->revision);
    if (entry->gone) {
        json_member_bool(writer, "gone", true);
    }
    json_end(writer);
}

static bool is_logged(const struct key_log *log, const char *id)
{
    for (size_t i = 0; i < log->count; i++) {
        if (log->items[i].revision != 0 && strcmp(log->items[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* The entries of this change, then the latest of each other key. */
static int write_log(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct key_log *made = user;
    struct key_log before = {0};
    struct buf json;
    struct ng_writer writer;
    size_t count = 0;
    (void)pub;
    key_log_read(present, &before);
    buf_init(&json, LOG_JSON_MAX);
    json_writer_init(&writer, &json);
    json_object(&writer);
    json_name(&writer, "changed");
    json_array(&writer);
    for (size_t i = 0; i < made->count; i++) {
        if (made->items[i].revision != 0) {
            write_entry(&writer, &made->items[i]);
            count++;
        }
    }
    bool any = count > 0;
    for (size_t i = 0; i < before.count && count < KEY_LOG_MAX; i++) {
        if (!is_logged(made, before.items[i].id)) {
            write_entry(&writer, &before.items[i]);
            count++;
        }
    }
    json_end(&writer);
    json_end(&writer);
    int rc = json.rc;
    if (rc == NG_OK && any) {
        rc = store_draft_json(next, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}

struct ng_change keys_log_change(struct key_log *log)
{
    struct ng_change change = {
        .size = sizeof(change), .key = log_key(), .fn = write_log, .user = log};
    return change;
}

/* ---- reading ---- */

void key_log_read(const struct ng_doc *doc, struct key_log *ret)
{
    const struct ng_value *list = NULL;
    ret->count = 0;
    if (doc->revision != 0 && !doc->deleted && doc->body != NULL) {
        list = json_get(doc->body, "changed");
    }
    for (const struct ng_value *at = json_first(list); at != NULL && ret->count < KEY_LOG_MAX;
         at = at->next) {
        struct key_log_entry *entry = &ret->items[ret->count];
        struct ng_str id = json_get_text(at, "id");
        int64_t revision = 0;
        (void)json_integer(json_get(at, "revision"), &revision);
        if (id.len == KEY_ID_LEN && revision > 0) {
            memcpy(entry->id, id.data, KEY_ID_LEN);
            entry->id[KEY_ID_LEN] = '\0';
            entry->revision = (uint64_t)revision;
            entry->gone = json_is(json_get(at, "gone"), NG_TYPE_TRUE);
            entry->seen = entry->gone; /* unless a row shows it */
            ret->count++;
        }
    }
}

int keys_read_log(struct keys *keys, struct call *call, uint64_t *ret_revision,
                  struct key_log *ret)
{
    struct ng_key key = log_key();
    const struct ng_doc *doc = NULL;
    int rc = store_get(keys->gateway->store, call, &key, 0, &doc);
    if (rc == NG_OK) {
        *ret_revision = doc->revision;
        key_log_read(doc, ret);
    }
    return rc;
}

void key_log_saw(struct key_log *log, const struct ng_doc *row)
{
    for (size_t i = 0; i < log->count; i++) {
        struct key_log_entry *entry = &log->items[i];
        if (str_is(row->key.id, entry->id)) {
            entry->seen = !entry->gone && row->revision >= entry->revision;
        }
    }
}

bool key_log_all_seen(const struct key_log *log)
{
    bool all = true;
    for (size_t i = 0; i < log->count; i++) {
        all = all && log->items[i].seen;
    }
    return all;
}

bool key_log_waits_for(const struct key_log *log, const char *id)
{
    for (size_t i = 0; i < log->count; i++) {
        if (!log->items[i].seen && strcmp(log->items[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}
