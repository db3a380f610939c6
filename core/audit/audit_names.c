/* SPDX-License-Identifier: MIT */
/* audit_names.c - one line for each value of a month, and tables of those in memory: when the
 * newer one is full, it becomes the older one, and the older one goes. */
#include "audit_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "audit_disk.h"
#include "core/base/arena.h"
#include "core/base/files/fd_io.h"
#include "core/base/hash_table.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/rfc3339.h"
#include "core/base/utf8.h"
#include "core/json/json.h"

#define NAMES_SUFFIX ".jsonl"
#define NAMES_DEPTH 2
#define NAMES_DAY_MS INT64_C(86400000)
#define NAMES_LINE_MAX ((size_t)8 * 1024)         /* bytes of a line */
#define NAMES_LINE_MEMORY_MAX ((size_t)16 * 1024) /* of one that is read */

struct name {
    struct hash_link link;
    char text[AUDIT_NAME_SIZE];
    size_t len;
    char value[];
};

struct audit_names {
    int dir;
    char month[AUDIT_MONTH_LEN + 1]; /* of the tables; "": none is loaded */
    int64_t day;                     /* the last one that was found to be in it */
    struct hash_table newer, older;
    struct buf lines; /* not in the file of the month yet */
};

const char *audit_names_file(const char *month, char out[AUDIT_NAMES_FILE_SIZE])
{
    (void)snprintf(out, AUDIT_NAMES_FILE_SIZE, AUDIT_NAMES_FOLDER "/%.7s" NAMES_SUFFIX, month);
    return out;
}

/* "~" and the digits. */
static int name_make(const unsigned char salt[AUDIT_SALT_BYTES], struct ng_str value,
                     char out[AUDIT_NAME_SIZE])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    const unsigned char *text = (const unsigned char *)(value.len > 0 ? value.data : "");
    if (HMAC(EVP_sha256(), salt, AUDIT_SALT_BYTES, text, value.len, mac, NULL) == NULL) {
        return NG_EINTERNAL;
    }
    out[0] = '~';
    hex_write(mac, AUDIT_NAME_DIGITS / 2, out + 1);
    return NG_OK;
}

/* ---- the table ---- */

static bool name_is(const struct hash_link *link, const void *key)
{
    const struct name *name = HASH_ITEM(link, const struct name, link);
    return str_equal(str_make(name->value, name->len), *(const struct ng_str *)key);
}

static void table_clear(struct hash_table *table)
{
    struct hash_link *link = hash_table_first(table);
    while (link != NULL) {
        struct hash_link *next = hash_table_next(table, link);
        free(HASH_ITEM(link, struct name, link));
        link = next;
    }
    hash_table_done(table);
    *table = (struct hash_table){0};
}

static void names_forget(struct audit_names *names)
{
    table_clear(&names->newer);
    table_clear(&names->older);
}

/* Takes the name. */
static int names_put(struct audit_names *names, struct name *name, uint64_t hash)
{
    if (names->newer.count >= AUDIT_NAMES_MAX / 2) {
        table_clear(&names->older);
        names->older = names->newer;
        names->newer = (struct hash_table){0};
    }
    int rc = hash_table_add(&names->newer, &name->link, hash);
    if (rc != NG_OK) {
        free(name);
    }
    return rc;
}

/* *ret: the name of the value, which is one of the newer ones then; NULL: none is known. */
static int names_find(struct audit_names *names, struct ng_str value, const struct name **ret)
{
    uint64_t hash = str_hash(value);
    struct hash_link *link = hash_table_find(&names->newer, hash, name_is, &value);
    *ret = link != NULL ? HASH_ITEM(link, struct name, link) : NULL;
    if (link != NULL) {
        return NG_OK;
    }
    link = hash_table_find(&names->older, hash, name_is, &value);
    if (link == NULL) {
        return NG_OK;
    }
    struct name *name = HASH_ITEM(link, struct name, link);
    hash_table_remove(&names->older, link);
    int rc = names_put(names, name, hash);
    *ret = rc == NG_OK ? name : NULL;
    return rc;
}

static int names_add(struct audit_names *names, struct ng_str value,
                     const char text[AUDIT_NAME_SIZE])
{
    const struct name *known = NULL;
    int rc = names_find(names, value, &known);
    if (rc != NG_OK || known != NULL) {
        return rc;
    }
    struct name *name = alloc_zeroed(1, sizeof(*name) + value.len);
    if (name == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(name->text, text, AUDIT_NAME_SIZE);
    memcpy(name->value, value.data, value.len);
    name->len = value.len;
    return names_put(names, name, str_hash(value));
}

/* ---- files ---- */

/* A line of a file: its value, in the arena's memory, and its name. NG_EINVAL: it is none. */
static int line_read(struct arena *arena, struct ng_str line, struct ng_str *ret_value,
                     char ret_text[AUDIT_NAME_SIZE])
{
    unsigned char salt[AUDIT_SALT_BYTES];
    const struct ng_value *object = NULL;
    int rc = json_parse(arena, line, NAMES_DEPTH, &object, NULL);
    if (rc != NG_OK) {
        return arena->oom ? NG_EINTERNAL : NG_EINVAL;
    }
    const struct ng_value *name = json_get(object, "name");
    const struct ng_value *digits = json_get(object, "salt");
    const struct ng_value *value = json_get(object, "value");
    if (!json_is(name, NG_TYPE_STRING) || !json_is(digits, NG_TYPE_STRING) ||
        !json_is(value, NG_TYPE_STRING) || digits->text.len != 2 * sizeof(salt) ||
        !hex_read(digits->text, salt)) {
        return NG_EINVAL;
    }
    rc = name_make(salt, value->text, ret_text);
    *ret_value = value->text;
    return rc == NG_OK && !str_is(name->text, ret_text) ? NG_EINVAL : rc;
}

struct names_reader {
    audit_names_fn *fn;
    void *user;
    struct audit_names_told *told;
    struct buf rest; /* of a line that goes on in the next piece */
    bool skips;      /* a line that has begun before */
};

static int reader_take(struct names_reader *reader, struct ng_str line)
{
    struct arena arena;
    struct ng_str value;
    char name[AUDIT_NAME_SIZE];
    struct audit_names_told *told = reader->told;
    int rc = NG_EINVAL;
    arena_init(&arena, NAMES_LINE_MEMORY_MAX);
    if (line.len <= NAMES_LINE_MAX) {
        rc = line_read(&arena, line, &value, name);
    }
    told->count++;
    if (rc == NG_EINVAL) {
        told->bad = told->bad == 0 ? told->count : told->bad;
        rc = NG_OK;
    } else if (rc == NG_OK && reader->fn != NULL) {
        rc = reader->fn(reader->user, line, str_make(name, AUDIT_NAME_SIZE - 1), value);
    }
    arena_done(&arena);
    return rc;
}

/* The line ends with this part of it. */
static int reader_end(struct names_reader *reader, struct ng_str part)
{
    struct ng_str line = part;
    if (reader->told->cut > 0) {
        (void)buf_add_str(&reader->rest, part);
        line = buf_str(&reader->rest);
    }
    if (reader->rest.rc == NG_EINTERNAL) {
        return NG_EINTERNAL;
    }
    if (reader->rest.rc != NG_OK) {
        line = ng_str_of(""); /* it is too long, so it is none */
    }
    int rc = reader->skips ? NG_OK : reader_take(reader, line);
    reader->skips = false;
    reader->told->cut = 0;
    buf_clear(&reader->rest);
    return rc;
}

static int reader_piece(void *user, struct ng_str piece)
{
    struct names_reader *reader = user;
    int rc = NG_OK;
    while (rc == NG_OK && piece.len > 0) {
        const char *end = memchr(piece.data, '\n', piece.len);
        size_t len = end != NULL ? (size_t)(end - piece.data) : piece.len;
        if (end != NULL) {
            rc = reader_end(reader, str_make(piece.data, len));
            len++;
        } else {
            (void)buf_add_str(&reader->rest, piece);
            reader->told->cut += len;
        }
        piece = str_make(piece.data + len, piece.len - len);
    }
    return rc;
}

int audit_names_read(int dir, const char *month, uint64_t from, audit_names_fn *fn, void *user,
                     struct audit_names_told *ret)
{
    char file[AUDIT_NAMES_FILE_SIZE];
    struct names_reader reader = {.fn = fn, .user = user, .told = ret, .skips = from > 0};
    *ret = (struct audit_names_told){.count = 0};
    buf_init(&reader.rest, NAMES_LINE_MAX);
    int rc = audit_disk_each(dir, audit_names_file(month, file), from, reader_piece, &reader);
    uint64_t cut = ret->cut;
    if (rc == NG_OK && cut > 0) {
        rc = reader_end(&reader, ng_str_of(""));
    }
    ret->cut = cut;
    buf_done(&reader.rest);
    return rc;
}

static int names_take(void *user, struct ng_str line, struct ng_str name, struct ng_str value)
{
    (void)line;
    return names_add(user, value, name.data);
}

/* Cuts off the bytes of a last line that a kill has cut. */
static int names_cut(const struct audit_names *names, const char *file, uint64_t bytes)
{
    struct stat info;
    int fd = openat(names->dir, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 && fstat(fd, &info) == 0 &&
                     ftruncate(fd, info.st_size - (off_t)bytes) == 0 && fsync(fd) == 0
                 ? NG_OK
                 : NG_EUNAVAILABLE;
    int number = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = number;
    return rc;
}

/* Loads the tables of a month, from the end of its file: no more is remembered. A line that is
 * wrong is not used: verification tells of it. */
static int names_load(struct audit_names *names, const char *month, struct buf *error)
{
    char file[AUDIT_NAMES_FILE_SIZE];
    struct stat info = {.st_size = 0};
    struct audit_names_told told;
    names_forget(names);
    names->month[0] = '\0';
    (void)fstatat(names->dir, audit_names_file(month, file), &info, AT_SYMLINK_NOFOLLOW);
    uint64_t size = (uint64_t)info.st_size;
    uint64_t from = size - u64_min(size, AUDIT_NAMES_LOAD_MAX);
    int rc = audit_names_read(names->dir, month, from, names_take, names, &told);
    if (rc == NG_OK && told.cut > 0) {
        rc = names_cut(names, file, told.cut);
    } else if (rc == NG_ENOTFOUND) {
        rc = NG_OK;
    }
    if (rc != NG_OK) {
        return audit_disk_fail(rc, file, "read", error);
    }
    memcpy(names->month, month, AUDIT_MONTH_LEN);
    names->month[AUDIT_MONTH_LEN] = '\0';
    return NG_OK;
}

struct audit_names *audit_names_open(int dir)
{
    struct audit_names *names = alloc_zeroed(1, sizeof(*names));
    if (names != NULL) {
        names->dir = dir;
        buf_init(&names->lines, AUDIT_NAMES_WAIT_MAX);
    }
    return names;
}

void audit_names_close(struct audit_names *names)
{
    if (names != NULL) {
        names_forget(names);
        buf_done(&names->lines);
        free(names);
    }
}

/* ---- names ---- */

static int names_make(struct audit_names *names, struct ng_str value, char out[AUDIT_NAME_SIZE],
                      struct buf *error)
{
    unsigned char salt[AUDIT_SALT_BYTES];
    char digits[2 * AUDIT_SALT_BYTES + 1];
    size_t before = names->lines.len;
    int rc = random_bytes(salt, sizeof(salt)) ? name_make(salt, value, out) : NG_EINTERNAL;
    if (rc == NG_OK) {
        hex_write(salt, sizeof(salt), digits);
        (void)buf_printf(&names->lines, "{\"name\":\"%s\",\"salt\":\"%s\",\"value\":", out,
                         digits);
        (void)buf_add_json(&names->lines, value);
        rc = buf_add_c(&names->lines, "}\n");
    }
    if (rc == NG_OK) {
        rc = names_add(names, value, out);
    }
    if (rc == NG_OK) {
        return NG_OK;
    }
    buf_cut(&names->lines, before);
    (void)buf_add_c(error, rc == NG_ETOOLARGE ? "the audit log's names wait for the disk"
                                              : "the audit log: out of memory");
    return rc == NG_ETOOLARGE ? NG_EBUSY : rc;
}

/* Not longer than AUDIT_NAMED_MAX, and valid UTF-8, as a line of JSON has to be. */
static struct ng_str name_value(struct ng_str value, char plain[AUDIT_NAMED_MAX])
{
    value = utf8_cut(value, AUDIT_NAMED_MAX);
    if (utf8_valid(value)) {
        return value;
    }
    for (size_t i = 0; i < value.len; i++) {
        plain[i] = (unsigned char)value.data[i] < 0x80 ? value.data[i] : '?';
    }
    return str_make(plain, value.len);
}

/* Loads the month of that time, if it is not the one that is loaded. */
static int names_ready(struct audit_names *names, int64_t time_ms, struct buf *error)
{
    char day[RFC3339_DAY_SIZE];
    int64_t number = time_ms / NAMES_DAY_MS;
    int rc = NG_OK;
    if (names->month[0] != '\0' && number == names->day) {
        return NG_OK;
    }
    rfc3339_write_day(time_ms, day);
    if (strncmp(day, names->month, AUDIT_MONTH_LEN) != 0) {
        rc = names->lines.len > 0 ? audit_names_sync(names, error) : NG_OK;
        if (rc == NG_OK) {
            rc = names_load(names, day, error);
        }
    }
    if (rc == NG_OK) {
        names->day = number;
    }
    return rc;
}

int audit_names_get(struct audit_names *names, int64_t time_ms, struct ng_str value,
                    char out[AUDIT_NAME_SIZE], struct buf *error)
{
    char plain[AUDIT_NAMED_MAX];
    const struct name *known = NULL;
    int rc = names_ready(names, time_ms, error);
    if (rc != NG_OK) {
        return rc;
    }
    value = name_value(value, plain);
    rc = names_find(names, value, &known);
    if (rc != NG_OK) {
        (void)buf_add_c(error, "the audit log: out of memory");
        return rc;
    }
    if (known == NULL) {
        return names_make(names, value, out, error);
    }
    memcpy(out, known->text, AUDIT_NAME_SIZE);
    return NG_OK;
}

/* Appends the lines that wait. After a failure the month is loaded again, which cuts what is
 * left of them. */
static int names_append(struct audit_names *names, const char *file)
{
    int fd = openat(names->dir, file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                    S_IRUSR | S_IWUSR);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    bool done = end >= 0 && fd_put(fd, buf_str(&names->lines)) == NG_OK && fsync(fd) == 0;
    int number = errno;
    if (!done && end >= 0) {
        (void)!ftruncate(fd, end);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = number;
    return done ? audit_disk_sync_folder(names->dir, AUDIT_NAMES_FOLDER) : NG_EUNAVAILABLE;
}

int audit_names_sync(struct audit_names *names, struct buf *error)
{
    char file[AUDIT_NAMES_FILE_SIZE];
    if (names->lines.len == 0) {
        return NG_OK;
    }
    (void)audit_names_file(names->month, file);
    int rc = audit_disk_make_folders(names->dir, file);
    if (rc == NG_OK) {
        rc = names_append(names, file);
    }
    if (rc != NG_OK) {
        return audit_disk_fail(rc, file, "written", error);
    }
    buf_clear(&names->lines);
    return NG_OK;
}

void audit_names_forget(struct audit_names *names)
{
    names_forget(names);
    names->month[0] = '\0';
}

/* ---- all months ---- */

static bool names_is_month(struct ng_str file)
{
    char day[RFC3339_DAY_SIZE];
    if (file.len != AUDIT_MONTH_LEN + strlen(NAMES_SUFFIX) || !str_ends(file, NAMES_SUFFIX)) {
        return false;
    }
    (void)snprintf(day, sizeof(day), "%.7s-01", file.data);
    return rfc3339_is_day(ng_str_of(day));
}

int audit_names_months(int dir, int (*fn)(void *user, const char *month), void *user,
                       struct buf *error)
{
    int fd = openat(dir, AUDIT_NAMES_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int rc = NG_OK;
    if (stream == NULL) {
        rc = fd < 0 && errno == ENOENT
                 ? NG_OK
                 : audit_disk_fail(NG_EUNAVAILABLE, AUDIT_NAMES_FOLDER, "read", error);
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    while (rc == NG_OK && (entry = readdir(stream)) != NULL) {
        if (names_is_month(ng_str_of(entry->d_name))) {
            rc = fn(user, entry->d_name);
        }
    }
    (void)closedir(stream);
    return rc;
}

/* ---- verification ---- */

struct names_check {
    int dir;
    uint64_t count;
    struct buf *problem;
};

static int names_check_file(void *user, const char *month)
{
    struct names_check *check = user;
    char name[AUDIT_NAMES_FILE_SIZE];
    struct audit_names_told told;
    int rc = audit_names_read(check->dir, month, 0, NULL, NULL, &told);
    (void)audit_names_file(month, name);
    check->count += told.count;
    if (rc != NG_OK) {
        return rc == NG_ENOTFOUND ? NG_OK : audit_disk_fail(rc, name, "read", check->problem);
    }
    if (told.bad == 0 || (told.cut > 0 && told.bad == told.count)) {
        return NG_OK; /* the last line may be being written */
    }
    (void)buf_printf(check->problem,
                     "line %" PRIu64 " of the audit log's file %s is no name that follows from "
                     "its value and salt",
                     told.bad, name);
    return NG_EFAILED;
}

int audit_names_check(int dir, uint64_t *ret_count, struct buf *problem)
{
    struct names_check check = {.dir = dir, .problem = problem};
    int rc = audit_names_months(dir, names_check_file, &check, problem);
    *ret_count = check.count;
    return rc;
}
