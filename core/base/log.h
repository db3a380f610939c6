/* SPDX-License-Identifier: MIT */
/* log.h - the gateway's log on stderr: one line an entry, text for people or JSON for machines.
 */
#ifndef NOTEGATE_CORE_LOG_H
#define NOTEGATE_CORE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>

#include "notegate/plugin.h"

enum log_format { LOG_TEXT = 0, LOG_JSON = 1 };
/* Logs of their own, each switched by itself and whatever the level (log_record.h). */
enum log_kind {
    LOG_ACCESS = 0,
    LOG_AUDIT = 1,
    /* Switches only. */
    LOG_AUDIT_KEYED = 2, /* the audit log of a gateway that has keys */
    LOG_AUDIT_READS = 3, /* the audit log has calls that only read, too */
    LOG_KINDS
};

/* Process-wide, set at start and by a reload; any thread. Default: info, text on a terminal
 * else JSON. */
void log_set_level(enum ng_level level);
void log_set_format(enum log_format format);
bool log_is_json(void);
/* log.access, log.audit; LOG_AUDIT_KEYED while log.audit is not set. Default: off. */
void log_set_switch(enum log_kind kind, bool on);

/* For the two below only. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
extern atomic_int log_level_now;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
extern atomic_bool log_switches[LOG_KINDS];

static inline bool log_enabled(enum ng_level level)
{
    return (int)level <= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

static inline bool log_switched_on(enum log_kind kind)
{
    return atomic_load_explicit(&log_switches[kind], memory_order_relaxed);
}

/* `where`: "store", "http", a plugin's name. Line feeds in the message are escaped. Never
 * blocks once log_queue_start() was called; before that, for one write(2). */
void log_write(enum ng_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_vwrite(enum ng_level level, const char *where, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* The same with members: `json` is an object's members without braces, or NULL:
 * "\"agent\":\"a\"". */
void log_fields(enum ng_level level, const char *where, const char *message, const char *json);
/* Longest form of one character in a line, with a NUL behind it. */
#define LOG_ESCAPE_MAX 7
/* Escapes the character at *at for a line that may be shown on a terminal: controls (C1 too),
 * line separators and bidi controls become \uXXXX. Returns its length in `out` and moves *at
 * behind it. ascii: the text is not UTF-8, so only ASCII is shown. */
size_t log_escape(struct ng_str text, size_t *at, bool ascii, char out[LOG_ESCAPE_MAX]);
/* For log_record.c: values as JSON members, or as text, by log_is_json(). */
void log_kind_write(enum log_kind kind, const char *message, struct ng_str values, bool cut);

#endif
