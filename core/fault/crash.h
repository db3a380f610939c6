/* SPDX-License-Identifier: MIT */
/*
 * crash.h - the end of the process by a module's fault: told by name, and remembered.
 *
 * A fatal signal, or exit() called by a module, writes one log line that names module, tool and
 * agent, and one line of the file `crashed` in the data directory. A plugin that has
 * CRASHES_MAX lines younger than CRASHES_WITHIN_S is left out at the next start.
 */
#ifndef NOTEGATE_CORE_CRASH_H
#define NOTEGATE_CORE_CRASH_H

#include "notegate/abi.h"

/* In the data directory; a line a crash: "UNIXTIME WHERE MODULE". */
#define CRASH_FILE_NAME "crashed"
#define CRASHES_MAX 3
#define CRASHES_WITHIN_S 600

/* Once, at the start of the program, before other threads. Nothing in a build with a sanitizer,
 * which has handlers of its own. */
void crash_install(void);
/* The calling thread may run module code that crashes by overflowing its stack: gives it a
 * stack for the handler. Once a thread; nothing where memory is missing. */
void crash_thread(void);
/* Sets the folder of the crash file; it need not exist yet. NULL: crashes are not recorded.
 * Process-wide: the last call counts. */
void crash_remember_in(const char *data_dir);

/* How often this module (as the configuration names it) crashed within CRASHES_WITHIN_S before
 * now_s, by the file in data_dir. *ret_loading: once at least while it was loaded. */
unsigned crash_count(const char *data_dir, const char *module, int64_t now_s,
                     bool *ret_loading);
/* Drops older records: the file is emptied if it has no younger ones. */
void crash_forget_old(const char *data_dir, int64_t now_s);

#endif
