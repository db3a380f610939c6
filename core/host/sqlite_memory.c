/* SPDX-License-Identifier: MIT */
/* sqlite_memory.c - SQLite's count of memory, one for each thread. */
#include "sqlite_memory.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

/* SQLite has one allocator for the process. NOLINTBEGIN(*-avoid-non-const-global-variables) */
static pthread_once_t settled = PTHREAD_ONCE_INIT;
static bool counts;                       /* set once, before others look */
static sqlite3_mem_methods system_memory; /* the allocator that SQLite has without this one */
static _Thread_local int64_t thread_bytes;
/* NOLINTEND(*-avoid-non-const-global-variables) */

static void *counted_malloc(int size)
{
    void *memory = system_memory.xMalloc(size);
    if (memory != NULL) {
        thread_bytes += system_memory.xSize(memory);
    }
    return memory;
}

static void counted_free(void *memory)
{
    thread_bytes -= system_memory.xSize(memory);
    system_memory.xFree(memory);
}

static void *counted_realloc(void *memory, int size)
{
    int before = system_memory.xSize(memory);
    void *moved = system_memory.xRealloc(memory, size);
    if (moved != NULL) {
        thread_bytes += system_memory.xSize(moved) - before;
    }
    return moved;
}

static void settle(void)
{
    sqlite3_mem_methods counted;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_memory) != SQLITE_OK) {
        return; /* SQLite is in use: it goes on counting */
    }
    counted = system_memory;
    counted.xMalloc = counted_malloc;
    counted.xFree = counted_free;
    counted.xRealloc = counted_realloc;
    counts = sqlite3_config(SQLITE_CONFIG_MALLOC, &counted) == SQLITE_OK &&
             sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
}

void sqlite_memory_settle(void)
{
    (void)pthread_once(&settled, settle);
}

int64_t sqlite_memory_bytes(void)
{
    return counts ? thread_bytes : sqlite3_memory_used();
}
