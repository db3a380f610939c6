/* SPDX-License-Identifier: MIT */
/* audit_values.c - a table of one month by names, and removal of lines. */
#include "audit_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_disk.h"
#include "core/base/arena.h"
#include "core/base/files/fd_io.h"
#include "core/base/hash_table.h"
#include "core/base/str.h"

struct value {
    struct hash_link link;
    char name[AUDIT_NAME_SIZE - 1];
    size_t len;
    char text[];
};

struct audit_values {
    int dir;
    char month[AUDIT_MONTH_LEN + 1]; /* "": none is loaded */
    struct hash_table table;
};

static struct ng_str value_name(const struct value *value)
{
    return str_make(value->name, sizeof(value->name));
}

static bool value_is(const struct hash_link *link, const void *key)
{
    const struct value *value = HASH_ITEM(link, const struct value, link);
    return str_equal(value_name(value), *(const struct ng_str *)key);
}

static void values_forget(struct audit_values *values)
{
    struct hash_link *link = hash_table_first(&values->table);
    while (link != NULL) {
        struct hash_link *next = hash_table_next(&values->table, link);
        free(HASH_ITEM(link, struct value, link));
        link = next;
    }
    hash_table_done(&values->table);
    values->table = (struct hash_table){0};
    values->month[0] = '\0';
}

static int values_add(void *user, struct ng_str line, struct ng_str name, struct ng_str text)
{
    struct audit_values *values = user;
    (void)line;
    if (hash_table_find(&values->table, str_hash(name), value_is, &name) != NULL) {
        return NG_OK;
    }
    struct value *value = alloc_zeroed(1, sizeof(*value) + text.len);
    if (value == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(value->name, name.data, sizeof(value->name));
    if (text.len > 0) {
        memcpy(value->text, text.data, text.len);
    }
    value->len = text.len;
    int rc = hash_table_add(&values->table, &value->link, str_hash(name));
    if (rc != NG_OK) {
        free(value);
    }
    return rc;
}

static int values_load(struct audit_values *values, const char *month, struct buf *error)
{
    char file[AUDIT_NAMES_FILE_SIZE];
    struct audit_names_told told;
    values_forget(values);
    int rc = audit_names_read(values->dir, month, 0, values_add, values, &told);
    if (rc != NG_OK && rc != NG_ENOTFOUND) {
        return audit_disk_fail(rc, audit_names_file(month, file), "read", error);
    }
    memcpy(values->month, month, AUDIT_MONTH_LEN);
    return NG_OK;
}

struct audit_values *audit_values_open(int dir)
{
    struct audit_values *values = alloc_zeroed(1, sizeof(*values));
    if (values != NULL) {
        values->dir = dir;
    }
    return values;
}

void audit_values_close(struct audit_values *values)
{
    if (values != NULL) {
        values_forget(values);
        free(values);
    }
}

int audit_values_get(struct audit_values *values, struct ng_str time, struct ng_str name,
                     struct ng_str *ret, struct buf *error)
{
    *ret = STR_NONE;
    if (time.len < AUDIT_MONTH_LEN) {
        return NG_OK;
    }
    if (memcmp(time.data, values->month, AUDIT_MONTH_LEN) != 0) {
        char month[AUDIT_MONTH_LEN + 1] = "";
        memcpy(month, time.data, AUDIT_MONTH_LEN);
        int rc = values_load(values, month, error);
        if (rc != NG_OK) {
            return rc;
        }
    }
    const struct hash_link *link =
        hash_table_find(&values->table, str_hash(name), value_is, &name);
    if (link != NULL) {
        const struct value *value = HASH_ITEM(link, const struct value, link);
        *ret = str_make(value->text, value->len);
    }
    return NG_OK;
}

/* ---- redaction ---- */

/* Lines that are written at once. */
#define REDACT_PIECE ((size_t)64 * 1024)
#define REDACT_BYTES_MAX (2 * REDACT_PIECE)

struct redaction {
    int dir;
    struct ng_str value; /* or a name */
    uint64_t count;      /* lines that go */
    int fd;              /* of the file that takes the place of a month's */
    struct buf kept;     /* lines that it gets next */
    struct buf *error;
};

static bool redact_wants(const struct redaction *redaction, struct ng_str name,
                         struct ng_str value)
{
    return str_equal(name, redaction->value) || str_equal(value, redaction->value);
}

static int redact_count(void *user, struct ng_str line, struct ng_str name, struct ng_str value)
{
    struct redaction *redaction = user;
    (void)line;
    redaction->count += redact_wants(redaction, name, value);
    return NG_OK;
}

static int redact_write(struct redaction *redaction)
{
    int rc = fd_put(redaction->fd, buf_str(&redaction->kept));
    buf_clear(&redaction->kept);
    return rc == NG_OK ? NG_OK : NG_EUNAVAILABLE;
}

static int redact_keep(void *user, struct ng_str line, struct ng_str name, struct ng_str value)
{
    struct redaction *redaction = user;
    if (redact_wants(redaction, name, value)) {
        return NG_OK;
    }
    (void)buf_add_str(&redaction->kept, line);
    int rc = buf_add_char(&redaction->kept, '\n');
    return rc == NG_OK && redaction->kept.len >= REDACT_PIECE ? redact_write(redaction) : rc;
}

/* The month's file anew, with the lines that stay. */
static int redact_file(struct redaction *redaction, const char *month, const char *file)
{
    struct audit_names_told told;
    redaction->fd = audit_disk_new(redaction->dir, S_IRUSR | S_IWUSR);
    buf_clear(&redaction->kept);
    int rc = redaction->fd < 0
                 ? NG_EUNAVAILABLE
                 : audit_names_read(redaction->dir, month, 0, redact_keep, redaction, &told);
    if (rc == NG_OK) {
        rc = redact_write(redaction);
    }
    return audit_disk_new_done(redaction->dir, redaction->fd, file, rc);
}

static int redact_month(void *user, const char *month)
{
    struct redaction *redaction = user;
    char file[AUDIT_NAMES_FILE_SIZE];
    struct audit_names_told told;
    uint64_t before = redaction->count;
    (void)audit_names_file(month, file);
    int rc = audit_names_read(redaction->dir, month, 0, redact_count, redaction, &told);
    if (rc == NG_OK && told.bad > 0) {
        (void)buf_printf(redaction->error,
                         "line %llu of the audit log's file %s is damaged, so nothing was "
                         "removed from it; `notegate audit verify` tells more",
                         (unsigned long long)told.bad, file);
        return NG_EFAILED;
    }
    if (rc == NG_OK && redaction->count > before) {
        rc = redact_file(redaction, month, file);
    }
    return rc == NG_OK ? rc : audit_disk_fail(rc, file, "changed", redaction->error);
}

int audit_values_redact(int dir, struct ng_str value, uint64_t *ret_count, struct buf *error)
{
    struct redaction redaction = {.dir = dir, .value = value, .error = error};
    buf_init(&redaction.kept, REDACT_BYTES_MAX);
    int rc = audit_names_months(dir, redact_month, &redaction, error);
    buf_done(&redaction.kept);
    *ret_count = redaction.count;
    return rc;
}

/* ---- pruning ---- */

#define TIME_MEMBER "\"time\":\""
#define MONTHS 12

struct month_limit {
    int dir;
    char month[AUDIT_MONTH_LEN + 1]; /* earlier ones go */
    struct buf *error;
};

static int prune_month(void *user, const char *month)
{
    const struct month_limit *limit = user;
    char file[AUDIT_NAMES_FILE_SIZE];
    if (strncmp(month, limit->month, AUDIT_MONTH_LEN) < 0 &&
        unlinkat(limit->dir, audit_names_file(month, file), 0) != 0) {
        return audit_disk_fail(NG_EUNAVAILABLE, file, "removed", limit->error);
    }
    return NG_OK;
}

/* The month before that of the entry: a recovered one has the time of its change. */
static bool month_before(struct ng_str entry, char out[AUDIT_MONTH_LEN + 1])
{
    uint64_t year;
    uint64_t month;
    size_t at = str_find(entry, ng_str_of(TIME_MEMBER), 0);
    if (at == SIZE_MAX || entry.len - at < sizeof(TIME_MEMBER) - 1 + AUDIT_MONTH_LEN) {
        return false;
    }
    const char *time = entry.data + at + sizeof(TIME_MEMBER) - 1;
    if (!str_number(str_make(time, 4), UINT64_MAX, &year) ||
        !str_number(str_make(time + 5, 2), MONTHS, &month) || year == 0 || month == 0) {
        return false;
    }
    month += MONTHS * year - 2;
    (void)snprintf(out, AUDIT_MONTH_LEN + 1, "%04u-%02u", (unsigned)(month / MONTHS) % 10000,
                   (unsigned)(month % MONTHS) + 1);
    return true;
}

int audit_values_prune(const struct audit_tiles *tiles, uint64_t first)
{
    struct month_limit limit = {.dir = tiles->dir, .error = tiles->error};
    struct ng_str entry;
    struct buf bundle;
    if (first >= tiles->size) {
        return NG_OK;
    }
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    int rc = audit_tiles_entry(tiles, first, &bundle, &entry);
    if (rc == NG_OK && month_before(entry, limit.month)) {
        rc = audit_names_months(tiles->dir, prune_month, &limit, tiles->error);
    }
    buf_done(&bundle);
    return rc;
}
