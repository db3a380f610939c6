/* SPDX-License-Identifier: MIT */
/* index_sweep.c - removes the indexes of notebooks that are gone. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index_open.h"
#include "index_state.h"

/* A folder on a disk that is not mounted may come back: its index is kept for this time. */
#define STALE_S ((int64_t)30 * 24 * 3600)

/* The folder of an index; malloc'd. NULL: the index does not name it. */
static char *folder_of(const char *file)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char *folder = NULL;
    if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_PRIVATECACHE, NULL) ==
            SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE name='folder'", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        struct ng_str text = notes_column_text(statement, 0);
        if (text.data != NULL) {
            folder = str_dup(text);
        }
    }
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close_v2(db);
    return folder;
}

static bool is_stale(const char *file, int64_t now_s)
{
    struct stat found;
    if (stat(file, &found) != 0 || !S_ISREG(found.st_mode) ||
        (int64_t)found.st_mtime + STALE_S > now_s) {
        return false;
    }
    char *folder = folder_of(file);
    bool gone = folder == NULL || stat(folder, &found) != 0;
    free(folder);
    return gone;
}

void notes_indexes_sweep(const char *folder, int64_t now_s)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char file[4096];
        if (!str_ends(ng_str_of(entry->d_name), ".db") ||
            snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name) >= (int)sizeof(file)) {
            continue;
        }
        if (is_stale(file, now_s)) {
            const struct notes_index index = {.file = file};
            notes_schema_remove(&index);
        }
    }
    (void)closedir(dir);
}
