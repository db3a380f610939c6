/* SPDX-License-Identifier: MIT */
/* log.h - the gateway's log on stderr: one line an entry, text for people or JSON for machines.
 */
#ifndef NOTEGATE_CORE_LOG_H
#define NOTEGATE_CORE_LOG_H

#include <stdarg.h>

#include "notegate/plugin.h"

enum log_format { LOG_TEXT = 0, LOG_JSON = 1 };

/* Process-wide, set at start and by a reload; any thread. Default: info, text on a terminal
 * else JSON. */
void log_set_level(enum ng_level level);
void log_set_format(enum log_format format);
bool log_enabled(enum ng_level level);
/* `where`: "store", "http", a plugin's name. Line feeds in the message are escaped. Never
 * blocks on a lock that another logging thread holds for longer than one write(2). */
void log_write(enum ng_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_vwrite(enum ng_level level, const char *where, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* The same with members: `json` is an object's members without braces, or NULL:
 * "\"agent\":\"a\"". */
void log_fields(enum ng_level level, const char *where, const char *message, const char *json);

#endif
