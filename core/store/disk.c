/* SPDX-License-Identifier: MIT */
/* disk.c - see disk.h. One lock, under which nothing waits; the log takes its lines after it.
 */
#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#define DISK_TEXT_MAX ((size_t)1024)
/* After it was low, this much must be free: otherwise a disk near the limit would log at each
 * check. */
#define DISK_ENOUGH_PERCENT 12
#define DISK_TELL_MS ((int64_t)60 * 1000)
/* After a refused write, so much more room ends the alarm before the next write proves it. */
#define DISK_AGAIN_BYTES ((uint64_t)512 * 1024)
/* Files of the data directory that are counted. */
#define DISK_FILES_MAX 1000
#define DISK_PATH_MAX ((size_t)8192)
/* st_blocks counts these, whatever the file system's own blocks are. */
#define STAT_BLOCK_BYTES 512

/* A folder, for the file system that it is on. */
struct place {
    char *path;
    struct disk_room room;
    bool low;
};

struct disk {
    atomic_bool refusing; /* first, for disk_wants(): the last commit found no room */
    struct lock lock;
    struct disk_roots from;
    struct place data;
    struct place *roots;
    size_t root_count;
    struct place *gone; /* roots that are not there */
    size_t gone_count;
    uint64_t size;
    uint64_t refused_free;  /* free bytes at that time */
    uint64_t refused_count; /* writes, since the last line about it */
    bool told; /* the log says that writes are refused, and not yet that they are no more */
    int64_t told_ms; /* by the uptime; 0: not yet */
    char message[DISK_TEXT_MAX];
};

_Static_assert(offsetof(struct disk, refusing) == 0, "disk_wants() reads the first member");

bool disk_ask(const char *folder, struct disk_room *ret)
{
    struct statvfs room;
    *ret = (struct disk_room){0, 0};
    if (statvfs(folder, &room) != 0 || room.f_blocks == 0) {
        return false;
    }
    /* As df does it: blocks reserved for root do not count. */
    uint64_t kept = 0;
    if (geteuid() != 0) {
        kept = room.f_bfree - room.f_bavail;
    }
    ret->free = (room.f_bfree - kept) * room.f_frsize;
    ret->total = (room.f_blocks - kept) * room.f_frsize;
    return ret->total > 0;
}

static bool is_below(const struct disk_room *room, unsigned percent)
{
    return room->total > 0 && room->free / percent < room->total / 100;
}

bool disk_is_low(const struct disk_room *room)
{
    return is_below(room, DISK_LOW_PERCENT);
}

static void add_bytes(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    double value = (double)bytes / 1024;
    while (value >= 1024 && unit + 1 < NG_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    (void)buf_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void disk_describe(const struct disk_room *room, struct buf *out)
{
    add_bytes(out, room->free);
    (void)buf_add_c(out, " of ");
    add_bytes(out, room->total);
    (void)buf_add_c(out, " are free");
}

struct disk *disk_new(const char *data_dir)
{
    struct disk *disk = alloc_zeroed(1, sizeof(*disk));
    if (disk == NULL || (disk->data.path = strdup(data_dir)) == NULL) {
        free(disk);
        return NULL;
    }
    lock_init(&disk->lock, LOCK_DISK);
    return disk;
}

static void places_free_all(struct place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(places[i].path);
    }
    free(places);
}

void disk_close(struct disk *disk)
{
    if (disk != NULL) {
        lock_done(&disk->lock);
        places_free_all(disk->roots, disk->root_count);
        places_free_all(disk->gone, disk->gone_count);
        free(disk->data.path);
        free(disk);
    }
}

/* The database and its log, and what else lies right there; not folders of files. */
static uint64_t size_of(const char *path)
{
    uint64_t bytes = 0;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    for (int left = DISK_FILES_MAX;
         folder != NULL && left > 0 && (entry = readdir(folder)) != NULL; left--) {
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            bytes += (uint64_t)status.st_blocks * STAT_BLOCK_BYTES;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return bytes;
}

/* ---- refused writes ---- */

/* Is it time for a line? With the lock held. */
static bool is_due(struct disk *disk)
{
    int64_t now = clock_uptime_ms() + 1;
    if (disk->told_ms != 0 && now - disk->told_ms < DISK_TELL_MS) {
        return false;
    }
    disk->told_ms = now;
    return true;
}

static void tell_refused(uint64_t count, const char *message)
{
    if (count == 0) {
        log_write(NG_LOG_ERROR, "disk", "writes are still refused: %s", message);
    } else if (count > 1) {
        log_write(NG_LOG_ERROR, "disk", "%" PRIu64 " writes were refused; the last: %s", count,
                  message);
    } else {
        log_write(NG_LOG_ERROR, "disk", "a write was refused: %s", message);
    }
}

/* With the lock held, which it gives back. */
static void refuse(struct disk *disk, struct ng_str message)
{
    char text[DISK_TEXT_MAX];
    size_t len = utf8_cut(message, sizeof(text) - 1).len;
    if (len > 0) {
        memcpy(disk->message, message.data, len);
    }
    disk->message[len] = '\0';
    disk->refused_count++;
    bool due = is_due(disk);
    uint64_t count = disk->refused_count;
    memcpy(text, disk->message, len + 1);
    if (due) {
        disk->refused_count = 0;
        disk->told = true;
    }
    lock_release(&disk->lock);
    if (due) {
        tell_refused(count, text);
    }
}

/* The store has accepted a write. */
static void accept(struct disk *disk)
{
    lock_take(&disk->lock);
    bool told = disk->told;
    disk->told = false;
    lock_release(&disk->lock);
    if (told) {
        log_write(NG_LOG_INFO, "disk", "writes are accepted again");
    }
}

void disk_refused(struct disk *disk, struct ng_str message)
{
    if (disk == NULL) {
        return;
    }
    lock_take(&disk->lock);
    if (disk->refusing) { /* of the store: counted by its commit */
        lock_release(&disk->lock);
        return;
    }
    refuse(disk, message);
}

void disk_committed(struct disk *disk, int rc, const char *error)
{
    struct disk_room room;
    if (rc == NG_OK) {
        if (atomic_exchange(&disk->refusing, false)) {
            accept(disk);
        }
    } else {
        (void)disk_ask(disk->data.path, &room);
        lock_take(&disk->lock);
        atomic_store(&disk->refusing, true);
        disk->refused_free = room.free;
        refuse(disk, ng_str_of(error));
    }
}

/* ---- looking ---- */

enum room_change { ROOM_SAME, ROOM_LOW, ROOM_ENOUGH };

static void tell_room(const char *path, const struct disk_room *room, enum room_change change)
{
    struct buf text;
    buf_init(&text, DISK_TEXT_MAX);
    disk_describe(room, &text);
    if (change == ROOM_LOW) {
        log_write(NG_LOG_WARNING, "disk", "%s where %s is, less than %d %%: free space there",
                  buf_cstr(&text), path, DISK_LOW_PERCENT);
    } else if (change == ROOM_ENOUGH) {
        log_write(NG_LOG_INFO, "disk", "%s where %s is: enough again", buf_cstr(&text), path);
    }
    buf_done(&text);
}

/* `was`: low at the look before. */
static enum room_change take_room(struct place *place, bool was, const struct disk_room *room)
{
    place->low = disk_is_low(room) || (was && is_below(room, DISK_ENOUGH_PERCENT));
    place->room = *room;
    if (place->low == was) {
        return ROOM_SAME;
    }
    return was ? ROOM_ENOUGH : ROOM_LOW;
}

void disk_look(struct disk *disk)
{
    struct disk_room room;
    char message[DISK_TEXT_MAX];
    (void)disk_ask(disk->data.path, &room);
    uint64_t size = size_of(disk->data.path);
    lock_take(&disk->lock);
    enum room_change change = take_room(&disk->data, disk->data.low, &room);
    disk->size = size;
    bool again = disk->refusing && room.free >= disk->refused_free + DISK_AGAIN_BYTES;
    if (again) {
        disk->refusing = false;
    }
    bool refused = (disk->refusing || disk->refused_count > 0) && is_due(disk);
    uint64_t count = disk->refused_count;
    if (refused) {
        disk->refused_count = 0;
        memcpy(message, disk->message, sizeof(message));
    }
    lock_release(&disk->lock);
    tell_room(disk->data.path, &room, change);
    if (refused) {
        tell_refused(count, message);
    }
    if (again) {
        accept(disk);
    }
}

void disk_get(struct disk *disk, struct disk_room *ret, uint64_t *ret_size)
{
    lock_take(&disk->lock);
    *ret = disk->data.room;
    *ret_size = disk->size;
    lock_release(&disk->lock);
}

/* ---- the roots ---- */

struct fresh {
    struct place *places;
    size_t count;
};

void disk_set_roots(struct disk *disk, const struct disk_roots *roots)
{
    disk->from = *roots;
}

static void add_root(void *user, const char *path)
{
    struct fresh *fresh = user;
    struct place *place = &fresh->places[fresh->count];
    /* Without a word where memory is out: the next look is a minute away. */
    if (fresh->count < DISK_ROOTS_MAX && disk_ask(path, &place->room) &&
        (place->path = strdup(path)) != NULL) {
        fresh->count++;
    }
}

static void add_gone(void *user, const char *path)
{
    struct fresh *fresh = user;
    if (fresh->count < DISK_ROOTS_MAX &&
        (fresh->places[fresh->count].path = strdup(path)) != NULL) {
        fresh->count++;
    }
}

static bool holds_place(const struct place *places, size_t count, const char *path)
{
    bool holds = false;
    for (size_t i = 0; i < count && !holds; i++) {
        holds = strcmp(places[i].path, path) == 0;
    }
    return holds;
}

/* Those of `these` that are not among the others. */
static void list_new(const struct fresh *these, const struct fresh *others, struct buf *out)
{
    for (size_t i = 0; i < these->count; i++) {
        const char *path = these->places[i].path;
        if (!holds_place(others->places, others->count, path)) {
            (void)buf_printf(out, "%s%s", out->len > 0 ? ", " : "", path);
        }
    }
}

/* Roots that were moved, removed or unmounted, and those that are back: a line when it
 * happens. */
static void look_gone(struct disk *disk)
{
    struct fresh fresh = {alloc_zeroed(DISK_ROOTS_MAX, sizeof(struct place)), 0};
    struct buf gone;
    struct buf back;
    if (fresh.places == NULL) {
        return;
    }
    buf_init(&gone, DISK_ROOTS_MAX * DISK_PATH_MAX);
    buf_init(&back, DISK_ROOTS_MAX * DISK_PATH_MAX);
    disk->from.each_gone(disk->from.files, add_gone, &fresh);
    lock_take(&disk->lock);
    struct fresh old = {disk->gone, disk->gone_count};
    list_new(&fresh, &old, &gone);
    list_new(&old, &fresh, &back);
    disk->gone = fresh.places;
    disk->gone_count = fresh.count;
    lock_release(&disk->lock);
    places_free_all(old.places, old.count);
    if (gone.len > 0) {
        log_write(NG_LOG_WARNING, "disk",
                  "missing: %s: calls for paths below are refused until the folders are back",
                  buf_cstr(&gone));
    }
    if (back.len > 0) {
        log_write(NG_LOG_INFO, "disk", "no longer missing: %s", buf_cstr(&back));
    }
    buf_done(&gone);
    buf_done(&back);
}

void disk_look_roots(struct disk *disk)
{
    struct fresh fresh = {alloc_zeroed(DISK_ROOTS_MAX, sizeof(struct place)), 0};
    enum room_change changes[DISK_ROOTS_MAX] = {ROOM_SAME};
    if (fresh.places == NULL || disk->from.files == NULL) {
        free(fresh.places);
        return;
    }
    look_gone(disk);
    disk->from.each_disk(disk->from.files, disk->data.path, add_root, &fresh);
    lock_take(&disk->lock);
    for (size_t i = 0; i < fresh.count; i++) {
        struct place *place = &fresh.places[i];
        bool was = false;
        for (size_t j = 0; j < disk->root_count; j++) {
            was = was || (disk->roots[j].low && strcmp(disk->roots[j].path, place->path) == 0);
        }
        changes[i] = take_room(place, was, &place->room);
    }
    struct fresh old = {disk->roots, disk->root_count};
    disk->roots = fresh.places;
    disk->root_count = fresh.count;
    lock_release(&disk->lock);
    places_free_all(old.places, old.count);
    for (unsigned i = 0; i < DISK_ROOTS_MAX; i++) {
        struct disk_room room;
        struct buf path;
        buf_init(&path, DISK_PATH_MAX);
        if (changes[i] != ROOM_SAME && disk_root(disk, i, &path, &room)) {
            tell_room(buf_cstr(&path), &room, changes[i]);
        }
        buf_done(&path);
    }
}

bool disk_root(struct disk *disk, unsigned index, struct buf *path, struct disk_room *ret)
{
    lock_take(&disk->lock);
    bool found = index < disk->root_count;
    if (found) {
        (void)buf_add_c(path, disk->roots[index].path);
        *ret = disk->roots[index].room;
    }
    lock_release(&disk->lock);
    return found;
}

/* ---- reasons ---- */

static const struct place *low_place(const struct disk *disk, unsigned index)
{
    if (disk->data.low && index-- == 0) {
        return &disk->data;
    }
    for (size_t i = 0; i < disk->root_count; i++) {
        if (disk->roots[i].low && index-- == 0) {
            return &disk->roots[i];
        }
    }
    return NULL;
}

bool disk_reason(struct disk *disk, unsigned index, struct buf *out)
{
    lock_take(&disk->lock);
    bool refusing = disk->refusing;
    size_t after_gone = index - refusing;
    const struct place *low = NULL;
    bool found = true;
    if (refusing && index == 0) {
        (void)buf_add_c(out, "writes are refused: ");
        (void)buf_add_c(out, disk->message);
    } else if (after_gone < disk->gone_count) {
        (void)buf_printf(out, "the root %s is not there", disk->gone[after_gone].path);
    } else if ((low = low_place(disk, (unsigned)(after_gone - disk->gone_count))) != NULL) {
        (void)buf_add_c(out, "the disk is nearly full: ");
        disk_describe(&low->room, out);
        (void)buf_printf(out, " where %s is", low->path);
    } else {
        found = false;
    }
    lock_release(&disk->lock);
    return found;
}
