/* SPDX-License-Identifier: MIT */
/* audit_command.c - notegate audit list, export, verify, redact. The first three read the log's
 * folder, also while a gateway serves the data directory. */
#include "audit_command.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "audit_list.h"
#include "audit_redact.h"
#include "core/audit/audit_verify.h"
#include "core/audit/tlog/note.h"
#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/gateway/gateway_audit.h"
#include "core/history/point.h"
#include "core/json/json.h"

#define COMMAND_TEXT_MAX ((size_t)1024 * 1024)
#define ERROR_MAX ((size_t)4096)

/* ---- list, export ---- */

struct show {
    int (*print)(const struct audit_shown *shown, struct buf *out);
    uint64_t shown;
};

static int show_entry(void *user, const struct audit_shown *shown)
{
    struct show *show = user;
    struct buf text;
    show->shown++;
    buf_init(&text, COMMAND_TEXT_MAX);
    int rc = show->print(shown, &text);
    if (rc == NG_OK) {
        rc = command_put_line(stdout, buf_str(&text));
    } else {
        command_error("out of memory for an entry");
    }
    buf_done(&text);
    return rc;
}

/* As the log has it: with the real path of its folder, also of a file that is gone. NULL: its
 * folder is not there. */
static const char *filter_path(struct command_line *line, const char *path)
{
    char real[PATH_MAX];
    struct ng_str whole = ng_str_of(path);
    if (!str_ends(whole, "*") && realpath(path, real) != NULL) {
        return arena_copy(&line->arena, ng_str_of(real)).data;
    }
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    struct ng_str folder = arena_printf(&line->arena, "%.*s.", (int)(name - path), path);
    if (folder.data == NULL || realpath(folder.data, real) == NULL) {
        return path[0] == '/' ? path : NULL;
    }
    return arena_printf(&line->arena, "%s/%s", real[1] == '\0' ? "" : real, name).data;
}

static int filter_of(struct command_line *line, struct audit_filter *ret)
{
    const struct command_filter options[] = {
        {.name = "agent", .value = line->find.agent, .is_list = true},
        {.name = "space", .value = line->find.space, .is_list = true},
        {.name = "run", .value = line->find.run, .is_list = true},
        {.name = "tool", .value = line->find.tool, .is_list = true},
        {.name = "id", .value = line->find.id},
        {.name = "collection", .value = line->find.collection, .is_list = true},
        {.name = "since", .value = line->find.since},
        {.name = "until", .value = line->find.until},
        {.name = "outcome", .value = line->find.outcome, .is_list = true},
        {.name = "action", .value = line->find.action, .is_list = true},
    };
    *ret = (struct audit_filter){.since_ms = 0};
    if (command_check_filters(line, options, NG_COUNT(options)) != COMMAND_OK) {
        return COMMAND_USAGE;
    }
    for (size_t i = 0; i < NG_COUNT(options); i++) {
        const char *value = options[i].value;
        if (value != NULL &&
            audit_filter_set(ret, ng_str_of(options[i].name), ng_str_of(value)) != NG_OK) {
            return command_usage(line, "--%s is \"%s\"; it must be " POINT_FORMS,
                                 options[i].name, value);
        }
    }
    if (line->find.path == NULL) {
        return COMMAND_OK;
    }
    if (line->find.id != NULL) {
        return command_usage(line, "--path names files, --id names documents: leave one of "
                                   "them out");
    }
    const char *path = filter_path(line, line->find.path);
    if (path == NULL || audit_filter_set(ret, ng_str_of("path"), ng_str_of(path)) != NG_OK) {
        return command_usage(line, "--path is \"%s\", whose folder is not there",
                             line->find.path);
    }
    return COMMAND_OK;
}

/* Of `list`, for people: stdout has entries only. Those before the page may not fit. */
static void show_tell(const struct command_line *line, const struct show *show,
                      const struct audit_page *page)
{
    if (show->print != audit_shown_line) {
        return;
    }
    if (show->shown == 0) {
        command_error("no entry fits");
    } else if (page->before > 0 && line->find.number == NULL) {
        command_error("only the newest %" PRIu64 " are shown; -n N shows more, if more fit",
                      show->shown);
    }
}

static int audit_show(struct command_line *line, const char *path, bool all)
{
    struct show show = {.print = audit_shown_line};
    struct audit_filter filter;
    struct audit_page page = {
        .before = UINT64_MAX, .looks = UINT64_MAX, .limit = AUDIT_LIST_DEFAULT};
    struct buf error;
    uint64_t number = AUDIT_LIST_DEFAULT;
    if (filter_of(line, &filter) != COMMAND_OK) {
        return COMMAND_USAGE;
    }
    if (line->find.number != NULL &&
        (!str_number(ng_str_of(line->find.number), UINT32_MAX, &number) || number == 0)) {
        return command_usage(line, "--number is \"%s\", it must be a number from 1 on",
                             line->find.number);
    }
    page.limit = (size_t)number;
    if (line_has(line, LINE_OCSF)) {
        show.print = audit_shown_ocsf;
    } else if (all || line_has(line, LINE_JSON)) {
        show.print = audit_shown_json;
    }
    buf_init(&error, ERROR_MAX);
    int rc = all ? audit_list_all(path, &filter, show_entry, &show, &error)
                 : audit_list_page(path, &filter, &page, show_entry, &show, &error);
    if (rc == NG_ENOTFOUND && error.len == 0) {
        command_error("there is no audit log at %s; `audit` turns it on", path);
    } else if (rc != NG_OK && error.len > 0) {
        command_error("%s", buf_cstr(&error));
    } else if (rc == NG_OK) {
        show_tell(line, &show, &page);
    }
    buf_done(&error);
    return command_end_output(command_exit_code(rc));
}

/* ---- verify ---- */

static int read_kept(const char *name, struct buf *out)
{
    int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    int rc = fd >= 0 ? NG_OK : NG_EUNAVAILABLE;
    size_t got = 1;
    while (rc == NG_OK && got > 0) {
        char piece[4096];
        rc = fd_get(&fd, piece, sizeof(piece), &got);
        if (rc == NG_OK) {
            rc = buf_add(out, piece, got);
        }
    }
    if (fd > STDIN_FILENO) {
        (void)close(fd);
    }
    if (rc != NG_OK) {
        command_error("the checkpoint %s cannot be read", name);
    }
    return rc;
}

static void verify_tell(const struct audit_verify_report *report, const char *path)
{
    printf("%s: %" PRIu64 " entries", path, report->size);
    if (report->pruned > 0) {
        printf(", the first %" PRIu64 " pruned", report->pruned);
    }
    if (report->pending > 0) {
        printf("; %" PRIu64 " more wait for the next checkpoint", report->pending);
    }
    printf("; %" PRIu64 " names\n", report->names);
}

static int audit_check(const struct command_line *line, const char *path)
{
    struct audit_verify_report report;
    struct buf kept;
    struct buf problem;
    int rc = NG_OK;
    buf_init(&kept, NOTE_BYTES_MAX);
    buf_init(&problem, ERROR_MAX);
    if (line->find.checkpoint != NULL) {
        rc = read_kept(line->find.checkpoint, &kept);
    }
    if (rc != NG_OK) {
        buf_done(&kept);
        buf_done(&problem);
        return COMMAND_FAILED;
    }
    rc = audit_verify(path, line->find.checkpoint != NULL ? buf_str(&kept) : STR_NONE, &report,
                      &problem);
    if (rc == NG_ENOTFOUND) {
        command_error("there is no audit log at %s; `audit` turns it on", path);
    } else if (rc == NG_EFAILED) {
        printf("%s\n", buf_cstr(&problem));
        if (report.bad_last > report.bad_first) {
            printf("the first bad entry is one of %" PRIu64 " to %" PRIu64 "\n",
                   report.bad_first, report.bad_last);
        } else if (report.bad_first < report.size) {
            printf("the first bad entry is %" PRIu64 "\n", report.bad_first);
        }
    } else if (rc != NG_OK) {
        command_error("%s", buf_cstr(&problem));
    } else {
        verify_tell(&report, path);
        printf("%s\n", line->find.checkpoint != NULL
                           ? "the log is whole, and goes on from the given checkpoint"
                           : "the log is whole in itself; --checkpoint FILE compares it with "
                             "one that was kept elsewhere");
    }
    buf_done(&kept);
    buf_done(&problem);
    return command_end_output(command_exit_code(rc));
}

/* ---- redact ---- */

static int redact_here(struct attach *attach, struct ng_str value, uint64_t *ret_count)
{
    struct call *call = call_new(attach->gateway);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    call->face = "cli";
    int rc = audit_redact(call, value, ret_count);
    if (rc != NG_OK) {
        struct ng_str why = command_call_message(call);
        command_error("%.*s", (int)why.len, why.data);
    }
    call_unref(call);
    return rc;
}

static int redact_there(struct attach *attach, struct ng_str value, uint64_t *ret_count)
{
    struct client_request request = {.method = "POST", .path = "/v1/audit/redact"};
    struct buf body;
    struct buf answer;
    struct arena arena;
    const struct ng_value *told = NULL;
    buf_init(&body, ERROR_MAX);
    buf_init(&answer, ERROR_MAX);
    arena_init(&arena, COMMAND_TEXT_MAX);
    (void)buf_add_c(&body, "{\"name\":");
    (void)buf_add_json(&body, value);
    (void)buf_add_char(&body, '}');
    request.headers[request.header_count++] = "Content-Type: application/json";
    request.body = buf_str(&body);
    int rc = attach_fetch(attach, &request, &answer);
    if (rc == NG_OK &&
        json_parse(&arena, buf_str(&answer), JSON_DEPTH_DEFAULT, &told, NULL) == NG_OK) {
        *ret_count = (uint64_t)json_get_integer(told, "names");
    }
    arena_done(&arena);
    buf_done(&body);
    buf_done(&answer);
    return rc;
}

static int audit_remove(struct command_line *line)
{
    struct attach attach;
    uint64_t count = 0;
    int rc = attach_open(line, &attach);
    if (rc != COMMAND_OK) {
        return rc;
    }
    struct ng_str value = ng_str_of(line->words[1]);
    rc = attach.gateway != NULL ? redact_here(&attach, value, &count)
                                : redact_there(&attach, value, &count);
    if (rc == NG_OK) {
        printf("%" PRIu64 " name%s redacted\n", count, plural((size_t)count));
    }
    attach_done(&attach);
    return command_end_output(command_exit_code(rc));
}

/* ---- the command ---- */

int audit_command(struct command_line *line)
{
    struct attach attach;
    char path[PATH_MAX];
    bool running = false;
    struct ng_str what = ng_str_of(line->words[0]);
    bool redacts = str_is(what, "redact");
    if (!str_in_words(what, "list export verify redact")) {
        return command_usage(line, "\"audit %s\" is none of list, export, verify and redact",
                             line->words[0]);
    }
    if (line->word_count != (redacts ? 2 : 1)) {
        return command_usage(
            line, redacts ? "\"audit redact\" needs NAME" : "\"audit %s\" takes options only",
            line->words[0]);
    }
    if (redacts) {
        return audit_remove(line);
    }
    int rc = attach_find(line, &attach, &running);
    if (rc != COMMAND_OK) {
        return rc;
    }
    (void)snprintf(path, sizeof(path), "%s/" GATEWAY_AUDIT_FOLDER, attach.data_dir);
    if (str_is(what, "verify")) {
        rc = audit_check(line, path);
    } else {
        rc = audit_show(line, path, str_is(what, "export"));
    }
    attach_done(&attach);
    return rc;
}
