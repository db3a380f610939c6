/* SPDX-License-Identifier: MIT */
/*
 * log_record.h - structured lines: the access log and the audit log.
 *
 * A record is a sentence and named values: members in the log's JSON, name=value behind the
 * sentence in its text. On the stack, bounded, any thread.
 */
#ifndef NOTEGATE_CORE_LOG_RECORD_H
#define NOTEGATE_CORE_LOG_RECORD_H

#include "log.h"

/* Bytes of all values of a record, and of one. */
#define LOG_RECORD_MAX ((size_t)8 * 1024)
#define LOG_VALUE_MAX ((size_t)512)

struct log_record {
    enum log_kind kind;
    bool json;
    bool cut; /* something did not fit */
    bool in_list, first;
    size_t len;
    char data[LOG_RECORD_MAX];
};

void log_record_begin(struct log_record *record, enum log_kind kind);
/* A value; absent ({NULL, 0}) ones are left out, long ones are cut. */
void log_record_text(struct log_record *record, const char *name, struct ng_str value);
void log_record_int(struct log_record *record, const char *name, int64_t value);
/* "true" or "false", which JSON does not quote. */
void log_record_word(struct log_record *record, const char *name, const char *value);
/* Milliseconds with three places. */
void log_record_ms(struct log_record *record, const char *name, int64_t ns);
/* A list of things that changed: "changes":[{"collection","id","revision"}], or
 * changes=collection:id@revision,... */
void log_record_list(struct log_record *record, const char *name);
void log_record_change(struct log_record *record, struct ng_str collection, struct ng_str id,
                       uint64_t revision);
void log_record_list_end(struct log_record *record);
/* A value for the sentence: as it is if it is a word, else quoted and escaped; "..." where that
 * takes more than `size`. */
void log_record_shown(char *out, size_t size, struct ng_str value);
/* Writes it with this sentence. */
void log_record_end(struct log_record *record, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
