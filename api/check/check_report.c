/* SPDX-License-Identifier: MIT */
/* check_report.c - prints the lines of notegate check, or adds them to its JSON. */
#include "check.h"
#include "core/base/text_choice.h"

void check_line(struct check *check, bool ok, const char *what, const char *format, ...)
{
    struct buf text;
    va_list args;
    buf_init(&text, CHECK_ERROR_MAX);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    bool whole = text.rc != NG_EINTERNAL;
    ok = ok && whole;
    const char *told = whole ? buf_cstr(&text) : "out of memory for the report";
    check->failed = check->failed || !ok;
    if (line_has(check->line, LINE_JSON)) {
        json_object(&check->writer);
        json_member_cstring(&check->writer, "check", what);
        json_member_bool(&check->writer, "ok", ok);
        json_member_cstring(&check->writer, "message", told);
        json_end(&check->writer);
    } else {
        static const char *const colours[] = {"\033[31m", "\033[32m"};
        printf("%s%-6s%s %s: %s\n", text_if(check->colours, colours[ok]), ok ? "ok" : "failed",
               text_if(check->colours, "\033[0m"), what, told);
    }
    buf_done(&text);
}
