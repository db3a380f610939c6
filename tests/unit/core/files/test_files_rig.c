/* SPDX-License-Identifier: MIT */
/* test_files_rig.c - shared code of test_files*.c; see the header.
 */
#include "test_files_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/config/config.h"
#include "core/files/files_state.h"
#include "core/gateway/gateway_open.h"
#include "core/json/json.h"
#include "core/module/registry.h"
#include "core/store/idempotency.h"

const char *const sets[] = {"plugins=file_editor", NULL};

int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    *state = harness;
    return 0;
}

int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- helpers */

struct ng_str in_root(struct harness *harness, char *path, const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s/files/%s", harness->dir, name);
    return ng_str_of(path);
}

void put(struct harness *harness, const char *name, const char *text)
{
    char path[PATH_SIZE];
    (void)in_root(harness, path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

char *get(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    (void)in_root(harness, path, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        free(text);
        return NULL;
    }
    assert_true(read(fd, text, (1 << 20) - 1) >= 0);
    (void)close(fd);
    return text;
}

void has(struct harness *harness, const char *name, const char *text)
{
    char *there = get(harness, name);
    assert_non_null(there);
    assert_string_equal(there, text);
    free(there);
}

size_t count_temps(struct harness *harness)
{
    char path[PATH_SIZE];
    size_t count = 0;
    (void)in_root(harness, path, "");
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += strncmp(entry->d_name, FILES_TEMP_PREFIX, strlen(FILES_TEMP_PREFIX)) == 0;
    }
    (void)closedir(dir);
    return count;
}

static int count_row(void *user, const struct ng_doc *row)
{
    (void)row;
    ++*(size_t *)user;
    return 0;
}

size_t count_intents(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    size_t count = 0;
    uint64_t total = 0;
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(FILES_INTENTS),
        .space = ng_str_of(FILES_INTENT_SPACE),
        .limit = 1000,
    };
    assert_int_equal(
        store_query(harness->gateway->store, call, &query, count_row, &count, &total), NG_OK);
    call_unref(call);
    return count;
}

struct answer edit(struct harness *harness, const char *args, const char *name)
{
    char text[4096];
    (void)snprintf(text, sizeof(text), "{\"path\":\"%s/files/%s\",%s}", harness->dir, name,
                   args);
    return harness_call(harness, "fileEditor", text);
}

void edit_fails(struct harness *harness, const char *args, const char *name, const char *code,
                const char *part)
{
    struct answer answer = edit(harness, args, name);
    assert_string_equal(answer.code, code);
    if (strstr(answer.message, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, answer.message);
    }
    answer_free(&answer);
}

void edit_works(struct harness *harness, const char *args, const char *name)
{
    struct answer answer = edit(harness, args, name);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s %s", args, answer.code, answer.message);
    }
    answer_free(&answer);
}

void transfers(struct harness *harness, const char *command, const char *from, const char *to)
{
    char args[2 * PATH_SIZE];
    (void)snprintf(args, sizeof(args), "\"command\":\"%s\",\"destination\":\"%s/files/%s\"",
                   command, harness->dir, to);
    edit_works(harness, args, from);
}

struct call *keyed_call(struct harness *harness)
{
    struct json_error error;
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    call->idempotency_key = ng_str_of("k");
    assert_int_equal(
        json_parse(&call->arena, ng_str_of("{}"), JSON_DEPTH_DEFAULT, &call->pub.args, &error),
        NG_OK);
    assert_int_equal(idempotency_begin(call), IDEMPOTENCY_RUN);
    return call;
}

/* ---- moves with groups */

struct replace {
    struct ng_str find, put;
    const char *meddle; /* NULL: no more */
};

static void meddle_with(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "other\n", 6), 6);
    (void)close(fd);
}

/* Replaces the first `find`. */
static int replace_fn(struct ng_call *call, const struct ng_file *present,
                      struct ng_draft *next, void *user)
{
    struct replace *replace = user;
    if (replace->meddle != NULL) {
        meddle_with(replace->meddle);
        replace->meddle = NULL;
    }
    const char *at =
        memmem(present->data.data, present->data.len, replace->find.data, replace->find.len);
    if (at == NULL) {
        return NG_OK;
    }
    return call->host->draft_splice(next, (uint64_t)(at - present->data.data),
                                    replace->find.len, replace->put);
}

static int moved_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                    void *user)
{
    (void)next;
    (void)user;
    return ng_reply(call, present->path);
}

static int run_group_move(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_value *edit = call->host->json_get(call->args, "edits");
    struct replace *replace = ng_alloc(call, sizeof(*replace));
    struct ng_file_edit *edits = ng_alloc(call, NG_FILE_GROUP_MAX * sizeof(*edits));
    struct ng_file_transfer transfer = {
        .size = sizeof(transfer),
        .from = ng_arg_text(call, "from"),
        .to = ng_arg_text(call, "to"),
        .replied = moved_fn,
        .edits = edits,
        .folder = true,
    };
    if (replace == NULL || edits == NULL) {
        return NG_EINTERNAL;
    }
    struct ng_str meddle = ng_arg_text(call, "meddle");
    *replace = (struct replace){ng_arg_text(call, "find"), ng_arg_text(call, "put"), NULL};
    if (meddle.len > 0) {
        replace->meddle = call->host->format(call, "%.*s", (int)meddle.len, meddle.data).data;
    }
    for (edit = edit != NULL ? edit->first : NULL; edit != NULL; edit = edit->next) {
        edits[transfer.edit_count++] = (struct ng_file_edit){
            .size = sizeof(*edits),
            .path = edit->text,
            .fn = replace_fn,
            .user = replace,
        };
    }
    return call->host->file_transfer(call, &transfer);
}

static int edit_fn(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                   void *user)
{
    int rc = replace_fn(call, present, next, user);
    return rc == NG_OK ? ng_reply(call, present->path) : rc;
}

static int run_group_edit(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct replace *replace = ng_alloc(call, sizeof(*replace));
    if (replace == NULL) {
        return NG_EINTERNAL;
    }
    const struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = ng_arg_text(call, "path"),
        .fn = edit_fn,
        .user = replace,
    };
    struct ng_str meddle = ng_arg_text(call, "meddle");
    *replace = (struct replace){ng_arg_text(call, "find"), ng_arg_text(call, "put"), NULL};
    if (meddle.len > 0) {
        replace->meddle = call->host->format(call, "%.*s", (int)meddle.len, meddle.data).data;
    }
    return call->host->file_edit(call, &edit);
}

static int undone_fn(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                     struct ng_str former, void *user)
{
    (void)now;
    (void)user;
    return ng_reply(call, kind == NG_UNDO_MOVE ? former : ng_str_of("edit"));
}

static int run_group_undo(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_file_undo undo = {
        .size = sizeof(undo),
        .path = ng_arg_text(call, "path"),
        .replied = undone_fn,
    };
    return call->host->file_undo(call, &undo);
}

#define ANY "{\"type\":\"object\"}"

static const struct ng_tool group_tools[] = {
    {.name = "group_move", .summary = "s", .params = ANY, .run = run_group_move},
    {.name = "group_undo", .summary = "s", .params = ANY, .run = run_group_undo},
    {.name = "group_edit", .summary = "s", .params = ANY, .run = run_group_edit},
};

static const struct ng_plugin group_plugin = {
    .name = "group",
    .version = "1",
    .threads = NG_THREADS_PARALLEL,
    .tools = group_tools,
    .tool_count = NG_COUNT(group_tools),
};

void add_group_tools(struct harness *harness)
{
    struct plugin *plugin = NULL;
    struct buf error;
    buf_init(&error, 4096);
    if (registry_add(harness->gateway->registry, &group_plugin, NULL, &plugin, &error) !=
        NG_OK) {
        (void)fprintf(stderr, "%s\n", buf_cstr(&error));
        abort();
    }
    buf_done(&error);
}

/* ---- versions */

struct versions {
    struct call *call;
    const char *prefix;
    struct buf *out;
    uint64_t count;
};

static struct ng_str without(struct ng_str path, const char *prefix)
{
    size_t len = strlen(prefix);
    return str_begins(path, prefix) ? str_make(path.data + len, path.len - len) : path;
}

static void print_content(struct buf *out, struct ng_str text)
{
    (void)buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '\n') {
            (void)buf_add_c(out, "\\n");
        } else if (c < 32 || c > 126) {
            (void)buf_printf(out, "\\x%02x", c);
        } else {
            (void)buf_add_char(out, (char)c);
        }
    }
    (void)buf_add_char(out, '"');
}

static void print_way(struct versions *versions, const struct ng_value *object,
                      const char *name)
{
    struct ng_str other = json_get_text(object, name);
    if (other.data != NULL) {
        other = without(other, versions->prefix);
        (void)buf_printf(versions->out, " %s %.*s", name, (int)other.len, other.data);
    }
}

static void print_there(struct versions *versions, const struct ng_doc *row)
{
    const struct ng_value *json = NULL;
    char hash[FILES_HASH_SIZE];
    assert_int_equal(
        json_parse(&versions->call->arena, row->json, JSON_DEPTH_DEFAULT, &json, NULL), NG_OK);
    files_hash(row->text, hash);
    assert_true(str_is(json_get_text(json, "hash"), hash));
    assert_true(json_get_text(json, "collections").len > 0);
    assert_true(json_get_integer(json, "mode") > 0);
    print_content(versions->out, row->text);
    (void)buf_printf(versions->out, " +%llu-%llu", (unsigned long long)row->origin.lines_added,
                     (unsigned long long)row->origin.lines_removed);
    print_way(versions, json, "from");
    if (json_get(json, "from") != NULL) {
        (void)buf_printf(versions->out, "@%lld",
                         (long long)json_get_integer(json, "from_version"));
    }
    (void)buf_add_c(versions->out, json_get(json, "gap") != NULL ? " gap" : "");
}

static void print_gone(struct versions *versions, const struct ng_doc *row)
{
    const struct ng_value *data = NULL;
    assert_int_equal(
        json_parse(&versions->call->arena, row->event_data, JSON_DEPTH_DEFAULT, &data, NULL),
        NG_OK);
    assert_true(json_get_text(data, "collections").len > 0);
    (void)buf_printf(versions->out, "gone +%llu-%llu",
                     (unsigned long long)row->origin.lines_added,
                     (unsigned long long)row->origin.lines_removed);
    print_way(versions, data, "to");
    (void)buf_add_c(versions->out, json_get(data, "gap") != NULL ? " gap" : "");
}

/* The version of a found content has the time of the file. */
static void check_time(struct versions *versions, const struct ng_doc *row)
{
    const struct ng_value *data = NULL;
    if (row->deleted || !str_is(row->action, NG_FILE_FOUND)) {
        return;
    }
    assert_int_equal(
        json_parse(&versions->call->arena, row->event_data, JSON_DEPTH_DEFAULT, &data, NULL),
        NG_OK);
    int64_t modified = json_get_integer(data, "modified");
    assert_true(modified > 0 && modified <= row->updated_ms);
}

static int print_version(void *user, const struct ng_doc *row)
{
    struct versions *versions = user;
    const struct ng_origin *origin = &row->origin;
    assert_int_equal(row->revision, ++versions->count);
    check_time(versions, row);
    (void)buf_printf(versions->out, "%llu %.*s %.*s", (unsigned long long)row->revision,
                     (int)row->action.len, row->action.data, (int)row->author.len,
                     row->author.data);
    if (origin->run_id.len > 0) {
        (void)buf_printf(versions->out, " %.*s %.*s", (int)origin->run_id.len,
                         origin->run_id.data, (int)origin->request_id.len,
                         origin->request_id.data);
    }
    (void)buf_add_char(versions->out, ' ');
    if (row->deleted) {
        print_gone(versions, row);
    } else {
        print_there(versions, row);
    }
    (void)buf_add_char(versions->out, '\n');
    return 0;
}

static void each_version(struct harness *harness, struct call *call, const char *path,
                         ng_row_fn *fn, void *user)
{
    const struct ng_key key = {ng_str_of(NG_FILE_VERSIONS), ng_str_of("shared"),
                               ng_str_of(path)};
    const struct ng_range range = {
        .size = sizeof(range), .from = 1, .limit = 1000, .with_body = true, .ascending = true};
    call->may_block = true;
    int rc = store_history(harness->gateway->store, call, &key, &range, fn, user);
    assert_true(rc == NG_OK || rc == NG_ENOTFOUND);
}

void versions_print(struct harness *harness, const char *path, const char *prefix,
                    struct buf *out)
{
    struct versions versions = {harness_new_call(harness), prefix, out, 0};
    each_version(harness, versions.call, path, print_version, &versions);
    call_unref(versions.call);
}

void versions_are(struct harness *harness, const char *name, const char *text)
{
    char path[PATH_SIZE];
    char prefix[PATH_SIZE];
    struct buf out;
    buf_init(&out, (size_t)1024 * 1024);
    versions_print(harness, in_root(harness, path, name).data,
                   in_root(harness, prefix, "").data, &out);
    assert_string_equal(buf_cstr(&out), text);
    buf_done(&out);
}

/* The newest one, as it was read last. */
struct newest {
    char hash[FILES_HASH_SIZE];
    bool there;
};

static int take_newest(void *user, const struct ng_doc *row)
{
    struct newest *newest = user;
    newest->there = !row->deleted;
    files_hash(row->text, newest->hash);
    return 0;
}

bool versions_end_with(struct harness *harness, const char *path)
{
    struct call *call = harness_new_call(harness);
    struct newest newest = {.there = false};
    char hash[FILES_HASH_SIZE];
    each_version(harness, call, path, take_newest, &newest);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool same = (fd >= 0) == newest.there;
    if (fd >= 0) {
        assert_int_equal(files_hash_fd(call, ng_str_of(path), fd, hash), NG_OK);
        same = same && strcmp(hash, newest.hash) == 0;
        (void)close(fd);
    }
    call_unref(call);
    return same;
}

/* ---- other processes */

void close_gateway(struct harness *harness)
{
    assert_true(gateway_drain(harness->gateway, 10000));
    gateway_close(harness->gateway);
    harness->gateway = NULL;
}

void open_gateway(struct harness *harness)
{
    char data_dir[300];
    struct buf error;
    struct config *config = NULL;
    (void)snprintf(data_dir, sizeof(data_dir), "data_dir=%s", harness->dir);
    const char *own[] = {sets[0], data_dir};
    struct config_input input = {.no_file = true, .sets = own, .set_count = 2};
    buf_init(&error, 65536);
    if (config_load(&input, &config, &error) != NG_OK ||
        gateway_open(config, GATEWAY_FULL, 5000, &harness->gateway, &error) != NG_OK) {
        (void)fprintf(stderr, "%s\n", buf_cstr(&error));
        abort();
    }
    buf_done(&error);
}

void pause_us(long us)
{
    struct timespec time = {0, us * 1000};
    (void)nanosleep(&time, NULL);
}
