/* SPDX-License-Identifier: MIT */
/* log.c - one line an entry on stderr, made on the stack: logging works when memory has run
 * out. */
#include "log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "log_queue.h"
#include "str.h"
#include "utf8.h"

/* Longest message and longest line, in bytes; longer ones are cut. */
#define LOG_MESSAGE_MAX 4096
#define LOG_LINE_MAX ((size_t)16 * 1024)
/* Kept free at the end of a line for closing it. */
#define LOG_TAIL 32

/* Process-wide by contract: the level, the format (-1: not set, see log_format_now) and the
 * switches. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
atomic_int log_level_now = NG_LOG_INFO;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_int log_format_set = -1;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
atomic_bool log_switches[LOG_KINDS];

struct log_line {
    size_t len;
    char data[LOG_LINE_MAX];
};

void log_set_level(enum ng_level level)
{
    atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&log_format_set, (int)format, memory_order_relaxed);
}

static enum log_format log_format_now(void)
{
    int format = atomic_load_explicit(&log_format_set, memory_order_relaxed);
    if (format < 0) {
        if (isatty(STDERR_FILENO) == 1) {
            format = LOG_TEXT;
        } else {
            format = LOG_JSON;
        }
        int unset = -1;
        /* A format set meanwhile by another thread stays. */
        if (!atomic_compare_exchange_strong(&log_format_set, &unset, format)) {
            format = unset;
        }
    }
    return (enum log_format)format;
}

bool log_is_json(void)
{
    return log_format_now() == LOG_JSON;
}

void log_set_switch(enum log_kind kind, bool on)
{
    atomic_store_explicit(&log_switches[kind], on, memory_order_relaxed);
}

static const char *log_level_name(enum ng_level level)
{
    switch (level) {
    case NG_LOG_ERROR:
        return "error";
    case NG_LOG_WARNING:
        return "warning";
    case NG_LOG_INFO:
        return "info";
    case NG_LOG_DEBUG:
        return "debug";
    }
    return "info";
}

/* False: it did not fit, nothing was added. */
static bool log_add(struct log_line *line, const char *data, size_t len)
{
    if (line->len + len > LOG_LINE_MAX - LOG_TAIL) {
        return false;
    }
    memcpy(line->data + line->len, data, len);
    line->len += len;
    return true;
}

static bool log_add_c(struct log_line *line, const char *text)
{
    return log_add(line, text, strlen(text));
}

/* The end of a line or of its message uses the reserved room. */
static void log_close(struct log_line *line, const char *tail)
{
    size_t len = strlen(tail);
    memcpy(line->data + line->len, tail, len);
    line->len += len;
}

/* Not to be shown as they are, beyond the controls of ASCII. */
static bool log_is_hidden(unsigned code)
{
    return (code >= 0x80 && code <= 0x9f) ||     /* C1 */
           code == 0x61c ||                      /* Arabic letter mark */
           (code >= 0x200e && code <= 0x200f) || /* left-to-right, right-to-left mark */
           (code >= 0x2028 && code <= 0x202e) || /* separators, embeddings, overrides */
           (code >= 0x2066 && code <= 0x2069);   /* isolates */
}

size_t log_escape(struct ng_str text, size_t *at, bool ascii, char out[LOG_ESCAPE_MAX])
{
    char first = text.data[*at];
    uint32_t code = (unsigned char)first;
    size_t len = 1;
    if (code >= 0x80) {
        if (ascii) {
            first = '?';
        } else {
            len = utf8_decode(text, *at, &code);
        }
        if (ascii || len == 0 || !log_is_hidden(code)) {
            out[0] = first;
            *at += 1;
            return 1;
        }
    } else if (code >= 0x20 && code != 0x7f) {
        out[0] = first;
        *at += 1;
        return 1;
    }
    *at += len;
    out[0] = '\\';
    out[1] = 'u';
    (void)snprintf(out + 2, 5, "%04x", (unsigned)code & 0xffff);
    return LOG_ESCAPE_MAX - 1;
}

/* A character that has a short escape of its own; NULL: it has none. */
static const char *log_short_escape(char c, bool json)
{
    switch (c) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '"':
        if (json) {
            return "\\\"";
        }
        return NULL;
    case '\\':
        if (json) {
            return "\\\\";
        }
        return NULL;
    default:
        return NULL;
    }
}

static void log_add_text(struct log_line *line, struct ng_str text, bool json)
{
    /* A terminal and a JSON reader both choke on bad UTF-8: then only ASCII is kept. */
    bool ascii = !utf8_valid(text);
    size_t at = 0;
    while (at < text.len) {
        char escaped[LOG_ESCAPE_MAX];
        const char *brief = log_short_escape(text.data[at], json);
        bool added;
        if (brief != NULL) {
            at++;
            added = log_add_c(line, brief);
        } else {
            size_t len = log_escape(text, &at, ascii, escaped);
            added = log_add(line, escaped, len);
        }
        if (!added) {
            return;
        }
    }
}

static void log_add_time(struct log_line *line)
{
    struct timespec now;
    struct tm day;
    char text[40];
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || gmtime_r(&now.tv_sec, &day) == NULL) {
        (void)log_add_c(line, "1970-01-01T00:00:00.000Z");
        return;
    }
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &day);
    (void)log_add(line, text, len);
    int more = snprintf(text, sizeof(text), ".%03ldZ", now.tv_nsec / 1000000);
    (void)log_add(line, text, more > 0 ? (size_t)more : 0);
}

static void log_head_json(struct log_line *line, enum ng_level level, const char *where,
                          struct ng_str message)
{
    (void)log_add_c(line, "{\"time\":\"");
    log_add_time(line);
    (void)log_add_c(line, "\",\"level\":\"");
    (void)log_add_c(line, log_level_name(level));
    (void)log_add_c(line, "\",\"where\":\"");
    log_add_text(line, ng_str_of(where), true);
    (void)log_add_c(line, "\",\"message\":\"");
    log_add_text(line, message, true);
    log_close(line, "\""); /* also where the message was cut */
}

static void log_entry_json(struct log_line *line, enum ng_level level, const char *where,
                           struct ng_str message, const char *json)
{
    log_head_json(line, level, where, message);
    if (json == NULL || json[0] == '\0') {
        log_close(line, "}\n");
        return;
    }
    size_t before = line->len;
    if (log_add_c(line, ",") && log_add_c(line, json)) {
        log_close(line, "}\n");
    } else {
        line->len = before;
        log_close(line, ",\"cut\":true}\n");
    }
}

static void log_head_text(struct log_line *line, enum ng_level level, const char *where,
                          struct ng_str message)
{
    log_add_time(line);
    (void)log_add_c(line, " ");
    (void)log_add_c(line, log_level_name(level));
    (void)log_add_c(line, " ");
    log_add_text(line, ng_str_of(where), false);
    (void)log_add_c(line, ": ");
    log_add_text(line, message, false);
}

static void log_entry_text(struct log_line *line, enum ng_level level, const char *where,
                           struct ng_str message, const char *json)
{
    log_head_text(line, level, where, message);
    if (json != NULL && json[0] != '\0') {
        (void)log_add_c(line, " {");
        log_add_text(line, ng_str_of(json), false);
        (void)log_add_c(line, "}");
    }
    log_close(line, "\n");
}

static void log_entry(enum ng_level level, const char *where, struct ng_str message,
                      const char *json)
{
    struct log_line line;
    int saved = errno;
    line.len = 0;
    message = utf8_cut(message, LOG_MESSAGE_MAX);
    if (log_format_now() == LOG_JSON) {
        log_entry_json(&line, level, where, message, json);
    } else {
        log_entry_text(&line, level, where, message, json);
    }
    log_queue_put(line.data, line.len, false);
    errno = saved;
}

void log_kind_write(enum log_kind kind, const char *message, struct ng_str values, bool cut)
{
    const char *where = "audit";
    if (kind == LOG_ACCESS) {
        where = "access";
    }
    struct log_line line;
    int saved = errno;
    line.len = 0;
    if (log_is_json()) {
        log_head_json(&line, NG_LOG_INFO, where, utf8_cut(ng_str_of(message), 512));
        (void)log_add_c(&line, values.len > 0 ? "," : "");
        (void)log_add(&line, values.data, values.len);
        log_close(&line, cut ? ",\"cut\":true}\n" : "}\n");
    } else {
        log_head_text(&line, NG_LOG_INFO, where, utf8_cut(ng_str_of(message), 512));
        (void)log_add_c(&line, " ");
        (void)log_add(&line, values.data, values.len);
        log_close(&line, cut ? " ...\n" : "\n");
    }
    log_queue_put(line.data, line.len, kind == LOG_ACCESS);
    errno = saved;
}

void log_vwrite(enum ng_level level, const char *where, const char *format, va_list args)
{
    char text[LOG_MESSAGE_MAX + 8];
    if (!log_enabled(level)) {
        return;
    }
    int saved = errno;
    int len = vsnprintf(text, sizeof(text), format, args);
    errno = saved;
    size_t have = 0;
    if (len >= 0) {
        have = (size_t)len;
    }
    if (have >= sizeof(text)) {
        have = sizeof(text) - 1;
    }
    log_entry(level, where, str_make(text, have), NULL);
}

void log_write(enum ng_level level, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_vwrite(level, where, format, args);
    va_end(args);
}

void log_fields(enum ng_level level, const char *where, const char *message, const char *json)
{
    if (log_enabled(level)) {
        log_entry(level, where, ng_str_of(message), json);
    }
}
