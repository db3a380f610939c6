/* SPDX-License-Identifier: MIT */
/* command_line.c - messages of commands on stderr, and the configuration of a command. */
#include "command_line.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config_log.h"

/* Memory of a message, which may have words of the command line in it: those have 128 KiB. */
#define COMMAND_ERROR_MAX ((size_t)1024 * 1024)
/* Printed of it: more than call_fail() lets an error have. */
#define COMMAND_SHOWN_MAX 3500

void command_error(const char *format, ...)
{
    struct buf text;
    va_list args;
    struct buf line;
    buf_init(&text, COMMAND_ERROR_MAX);
    buf_init(&line, COMMAND_ERROR_MAX);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    buf_add_c(&line, "notegate: ");
    buf_add_shortened(&line, buf_str(&text), COMMAND_SHOWN_MAX);
    if (line.len == 0 || line.data[line.len - 1] != '\n') {
        buf_add_char(&line, '\n');
    }
    (void)command_put(stderr, buf_str(&line));
    buf_done(&line);
    buf_done(&text);
}

int command_usage(const struct command_line *line, const char *format, ...)
{
    struct buf text;
    va_list args;
    buf_init(&text, COMMAND_ERROR_MAX);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    const char *command = "";
    if (line->command != NULL) {
        command = line->command->name;
    }
    command_error("%s\nTry `notegate %s%s--help`.", buf_cstr(&text), command,
                  text_if(command[0], " "));
    buf_done(&text);
    return COMMAND_USAGE;
}

/* "", ",a", "a,,b", "a,". */
static bool command_has_gap(struct ng_str list)
{
    bool is_gap = true;
    bool found = false;
    for (size_t i = 0; i < list.len && !found; i++) {
        bool is_comma = list.data[i] == ',';
        found = is_comma && is_gap;
        is_gap = is_comma;
    }
    return found || is_gap;
}

int command_check_filters(const struct command_line *line, const struct command_filter *filters,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct command_filter *filter = &filters[i];
        if (filter->value == NULL) {
            continue;
        }
        if (filter->value[0] == '\0') {
            return command_usage(line, "--%s is empty: give it a value, or leave it out",
                                 filter->name);
        }
        if (filter->is_list && command_has_gap(ng_str_of(filter->value))) {
            return command_usage(line, "--%s is \"%s\", which has an empty part at a comma",
                                 filter->name, filter->value);
        }
    }
    return COMMAND_OK;
}

bool command_colours(FILE *stream)
{
    const char *terminal = getenv("TERM");
    const char *none = getenv("NO_COLOR");
    return isatty(fileno(stream)) == 1 && (none == NULL || none[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

int command_put(FILE *stream, struct ng_str text)
{
    if (text.len == 0 || fwrite(text.data, 1, text.len, stream) == text.len) {
        return NG_OK;
    }
    return NG_EFAILED;
}

int command_put_line(FILE *stream, struct ng_str text)
{
    int rc = command_put(stream, text);
    if (rc == NG_OK) {
        rc = command_put(stream, ng_str_of("\n"));
    }
    return rc;
}

int command_flush(FILE *stream)
{
    if (fflush(stream) == 0 && !ferror(stream)) {
        return NG_OK;
    }
    return NG_EFAILED;
}

/* Has the reader of the pipe left, as `head` does? It knows. */
static bool command_reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int command_end_output(int code)
{
    if (command_flush(stdout) == NG_OK || code != COMMAND_OK) {
        return code;
    }
    if (!command_reader_left()) {
        command_error("cannot write to the standard output: it is full or closed");
    }
    return COMMAND_FAILED;
}

struct ng_str command_call_message(const struct call *call)
{
    if (call->final.message.len > 0) {
        return call->final.message;
    }
    if (call->staged.message.len > 0) {
        return call->staged.message;
    }
    return ng_str_of("no reason was given");
}

int command_config(struct command_line *line, struct config **ret)
{
    struct buf error;
    buf_init(&error, COMMAND_ERROR_MAX);
    struct config_input input = {
        .file = line->config_file,
        .environ = environ,
        .sets = line->sets,
        .set_count = line->set_count,
    };
    int rc = config_load(&input, ret, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    } else {
        config_apply_log(*ret);
        /* A gateway's own log lines are noise beside the answer of a command. */
        if (!config_is_set(*ret, "log.level") && strcmp(line->command->name, "serve") != 0) {
            log_set_level(NG_LOG_WARNING);
        }
    }
    buf_done(&error);
    return command_exit_code(rc);
}
