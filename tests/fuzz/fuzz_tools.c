/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tools.c - lines to a whole gateway with all plugins but kernels: `TOOL ARGUMENTS` is a
 * call, `=COLLECTION ID TEXT` puts a document as it may stand in a database (its JSON where the
 * text begins with a brace), `>NAME TEXT` a file. Each call ends with an answer that is valid,
 * or with a code and a sentence.
 *
 * Every input has a space and a folder of its own. In arguments `$R` is that folder, `$ID` the
 * id in the last answer that had one; in files `$N` is a line feed.
 */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"
#include "core/store/store.h"
#include "whole_gateway.h"

#define INPUT_BYTES_MAX 16384
#define LINES_MAX 12
#define LINE_BYTES_MAX ((size_t)65536)
#define ID_SIZE 64
/* After so many inputs the state in memory is dropped. */
#define INPUTS_MAX 300
#define FTW_FOLDERS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static struct whole_gateway whole;
static unsigned inputs;
static char root[WHOLE_FOLDER_SIZE + 16];
static char space[32];
static char last_id[ID_SIZE];

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* ---- the gateway ---- */

static void close_gateway(void)
{
    if (whole.gateway != NULL) {
        whole_gateway_close(&whole, whole_gateway_drain(&whole));
    }
    whole.gateway = NULL;
}

static void open_gateway(void)
{
    char root_set[WHOLE_FOLDER_SIZE + 32];
    char notes_set[WHOLE_FOLDER_SIZE + 64];
    const char *sets[] = {"documents=memory",
                          "plugins=notebook,agent_notebook,file_editor,opennotes,cells,search",
                          "limits.workers=2",
                          root_set,
                          notes_set,
                          NULL};
    whole_folder(whole.folder);
    (void)snprintf(root, sizeof(root), "%s/files", whole.folder);
    (void)snprintf(root_set, sizeof(root_set), "roots=%s", root);
    (void)snprintf(notes_set, sizeof(notes_set), "opennotes.notebooks=%s", root);
    must(mkdir(root, 0700) == 0);
    whole_gateway_open(&whole, sets);
    inputs = 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    return ftw->level == 0 ? 0 : remove(path);
}

static void begin_input(void)
{
    static bool known;
    if (whole.gateway != NULL && inputs++ == INPUTS_MAX) {
        close_gateway();
    }
    if (whole.gateway == NULL) {
        open_gateway();
    }
    must(known || atexit(close_gateway) == 0);
    known = true;
    last_id[0] = '\0';
    (void)snprintf(space, sizeof(space), "s%u", inputs);
}

/* ---- what the line says, with what stands for something put in ---- */

static void put_in(struct buf *out, struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        struct ng_str rest = {text.data + i, text.len - i};
        if (rest.len >= 2 && memcmp(rest.data, "$R", 2) == 0) {
            (void)buf_add_c(out, root);
            i += 1;
        } else if (rest.len >= 3 && memcmp(rest.data, "$ID", 3) == 0) {
            (void)buf_add_c(out, last_id);
            i += 2;
        } else {
            (void)buf_add_char(out, text.data[i]);
        }
    }
}

static struct ng_str take_until(struct ng_str *rest, char end)
{
    const char *at = rest->len == 0 ? NULL : memchr(rest->data, end, rest->len);
    struct ng_str taken = {rest->data, at == NULL ? rest->len : (size_t)(at - rest->data)};
    size_t used = taken.len + (at != NULL);
    *rest = str_make(rest->data + used, rest->len - used);
    return taken;
}

static void keep_id(struct ng_str answer)
{
    static const char *const names[] = {"\"notebook_id\":\"", "\"checkpoint_id\":\""};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        const char *at = memmem(answer.data, answer.len, names[i], strlen(names[i]));
        if (at != NULL) {
            size_t from = (size_t)(at - answer.data) + strlen(names[i]);
            struct ng_str rest = {answer.data + from, answer.len - from};
            struct ng_str id = take_until(&rest, '"');
            (void)snprintf(last_id, sizeof(last_id), "%.*s", (int)id.len, id.data);
        }
    }
}

/* ---- calls ---- */

static void call_done(struct call *call, void *user)
{
    struct waiter *waiter = user;
    (void)call;
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    (void)pthread_cond_signal(&waiter->changed);
    (void)pthread_mutex_unlock(&waiter->lock);
}

static struct call *begin_call(void)
{
    struct call *call = call_new(whole.gateway);
    must(call != NULL);
    must(call_set_caller(call, ng_str_of("fuzz"), ng_str_of(space), NG_ROLE_ADMIN,
                         NG_MODE_AGENT, true) == NG_OK);
    return call;
}

static void look_at(struct call *call)
{
    const struct result *result = &call->final;
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    must(result->rc == NG_OK ||
         (result->code != NULL && result->message.len > 0 && result->status >= 400));
    must(utf8_valid(result->message));
    if (result->rc == NG_OK && result->is_json) {
        arena_init(&arena, 0);
        must(json_parse(&arena, result->text, JSON_DEPTH_DEFAULT * 2, &value, &error) == NG_OK);
        arena_done(&arena);
    }
    if (result->rc == NG_OK && result->text.len > 0) {
        keep_id(result->text);
    }
}

static void run_tool(struct ng_str line)
{
    static const char kernels[] = "runNotebookCells restartKernel interruptKernel "
                                  "RunNotebookCells RestartKernel InterruptKernel";
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct buf args;
    buf_init(&args, LINE_BYTES_MAX);
    struct ng_str name = take_until(&line, ' ');
    put_in(&args, line);
    /* No transport gives out a name that is no UTF-8. */
    bool good = name.len > 0 && utf8_valid(name) && args.rc == NG_OK;
    if (good && !str_in_words(name, kernels)) {
        struct call *call = begin_call();
        call->tool_name = name;
        call->args_text = buf_str(&args);
        call->done = call_done;
        call->done_user = &waiter;
        if (dispatch(call) == NG_PENDING) {
            (void)pthread_mutex_lock(&waiter.lock);
            while (!waiter.done) {
                (void)pthread_cond_wait(&waiter.changed, &waiter.lock);
            }
            (void)pthread_mutex_unlock(&waiter.lock);
        }
        look_at(call);
        call_unref(call);
    }
    buf_done(&args);
    (void)pthread_cond_destroy(&waiter.changed);
    (void)pthread_mutex_destroy(&waiter.lock);
}

/* ---- documents and files ---- */

static int put_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct ng_str *text = user;
    (void)pub;
    (void)present;
    return text->len > 0 && text->data[0] == '{' ? store_draft_json(next, *text)
                                                 : store_draft_text(next, text, 1);
}

static void put_document(struct ng_str line)
{
    struct ng_str collection = take_until(&line, ' ');
    struct ng_str id = take_until(&line, ' ');
    struct call *call = begin_call();
    struct ng_change change = {.size = sizeof(change),
                               .key = {collection, ng_str_of(space), id},
                               .fn = put_fn,
                               .user = &line};
    /* It may be none that a store takes. */
    if (store_collection(whole.gateway->store, collection) != NULL) {
        (void)store_write_wait(whole.gateway->store, call, &change, 1);
    }
    call_unref(call);
}

static void put_file(struct ng_str line)
{
    char path[sizeof(root) + 64];
    struct ng_str name = take_until(&line, ' ');
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    for (size_t i = 0; i < line.len; i++) {
        bool feed = line.data[i] == '$' && i + 1 < line.len && line.data[i + 1] == 'N';
        (void)buf_add_char(&text, feed ? '\n' : line.data[i]);
        i += feed ? 1 : 0;
    }
    bool plain = name.len > 0 && name.len < 64 && memchr(name.data, '/', name.len) == NULL &&
                 memchr(name.data, '\0', name.len) == NULL;
    (void)snprintf(path, sizeof(path), "%s/%.*s", root, plain ? (int)name.len : 0,
                   plain ? name.data : "");
    int fd = plain ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        must(text.len == 0 || write(fd, text.data, text.len) == (ssize_t)text.len);
        (void)close(fd);
    }
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str rest = {(const char *)data, size};
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    begin_input();
    for (int i = 0; i < LINES_MAX && rest.len > 0; i++) {
        struct ng_str line = take_until(&rest, '\n');
        struct ng_str inner = {line.data + 1, line.len - (line.len > 0)};
        if (line.len > 0 && line.data[0] == '=') {
            put_document(inner);
        } else if (line.len > 0 && line.data[0] == '>') {
            put_file(inner);
        } else {
            run_tool(line);
        }
    }
    (void)nftw(root, remove_one, FTW_FOLDERS, FTW_DEPTH | FTW_PHYS);
    return 0;
}
