/* SPDX-License-Identifier: MIT */
/*
 * sqlite_memory.h - SQLite's count of memory, one for each thread.
 *
 * SQLite's own count is one for the process, behind one mutex that every allocation takes:
 * searches on several threads spent a quarter of their time there.
 */
#ifndef NOTEGATE_CORE_SQLITE_MEMORY_H
#define NOTEGATE_CORE_SQLITE_MEMORY_H

#include <stdint.h>

/* Counts for each thread from now on. Before SQLite is used for the first time; later, and when
 * repeated, it changes nothing. Any thread. */
void sqlite_memory_settle(void);
/* Bytes that the present thread has taken from SQLite less those that it gave back, also of
 * others: differences tell what was taken in between. Of the whole process if SQLite was in use
 * before sqlite_memory_settle(). */
int64_t sqlite_memory_bytes(void);

#endif
