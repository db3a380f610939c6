/* SPDX-License-Identifier: MIT */
/* test_files.c - the file service: kills and what is settled after them, full disks, files it
 * may not touch, resolution, and other programs in its way. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "files_state.h"
#include "registry.h"
#include "str.h"

#define PATH_SIZE 1024
#define KILLS 25

static const char *const sets[] = {"plugins=file_editor", NULL};

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- helpers */

static struct ng_str in_root(struct harness *harness, char *path, const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s/files/%s", harness->dir, name);
    return ng_str_of(path);
}

static void put(struct harness *harness, const char *name, const char *text)
{
    char path[PATH_SIZE];
    (void)in_root(harness, path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

static char *get(struct harness *harness, const char *name)
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

static void has(struct harness *harness, const char *name, const char *text)
{
    char *there = get(harness, name);
    assert_non_null(there);
    assert_string_equal(there, text);
    free(there);
}

static size_t count_temps(struct harness *harness)
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

static int count_entry(void *user, const struct ng_file_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return 0;
}

static int count_row(void *user, const struct ng_doc *row)
{
    (void)row;
    ++*(size_t *)user;
    return 0;
}

static size_t count_intents(struct harness *harness)
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

static struct answer edit(struct harness *harness, const char *args, const char *name)
{
    char text[4096];
    (void)snprintf(text, sizeof(text), "{\"path\":\"%s/files/%s\",%s}", harness->dir, name,
                   args);
    return harness_call(harness, "fileEditor", text);
}

static void edit_fails(struct harness *harness, const char *args, const char *name,
                       const char *code, const char *part)
{
    struct answer answer = edit(harness, args, name);
    assert_string_equal(answer.code, code);
    if (strstr(answer.message, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, answer.message);
    }
    answer_free(&answer);
}

static void edit_works(struct harness *harness, const char *args, const char *name)
{
    struct answer answer = edit(harness, args, name);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s %s", args, answer.code, answer.message);
    }
    answer_free(&answer);
}

#define APPEND "\"command\":\"insert\",\"insert_line\":1,\"new_str\":\"x\""
#define CREATE "\"command\":\"create\",\"file_text\":\"new\""
#define UNDO "\"command\":\"undo_edit\""

/* ---- settlement */

/* Leaves what a killed save leaves: its intent, committed. */
static struct ng_str leave_intent(struct harness *harness, enum file_change kind,
                                  const char *name, const char *before, const char *after,
                                  char op[17])
{
    char path[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    struct file_record record;
    struct ng_change changes[FILES_CHANGES_MAX];
    call->may_block = true;
    assert_int_equal(files_record_init(call, &record, kind), NG_OK);
    record.real = in_root(harness, path, name);
    record.space = ng_str_of("shared");
    if (before != NULL) {
        files_hash(ng_str_of(before), record.before);
    }
    if (after != NULL) {
        files_hash(ng_str_of(after), record.after);
    }
    record.undo.kind = before != NULL ? NG_UNDO_EDIT : NG_UNDO_CREATE;
    record.undo.inserted = ng_str_of("");
    if (before != NULL && after != NULL) {
        assert_int_equal(
            files_undo_make(call, ng_str_of(before), ng_str_of(after), &record.undo), NG_OK);
    }
    record.undo.op = record.op;
    memcpy(record.undo.before, record.before, sizeof(record.before));
    memcpy(record.undo.after, record.after, sizeof(record.after));
    memcpy(op, record.op.data, 17);
    size_t count = files_intent_changes(&record, changes);
    assert_int_equal(store_write_wait(harness->gateway->store, call, changes, count), NG_OK);
    call_unref(call);
    return ng_str_of(op);
}

static void leave_temp(struct harness *harness, const char *op, const char *ending,
                       const char *text)
{
    char name[64];
    (void)snprintf(name, sizeof(name), FILES_TEMP_PREFIX "%s%s", op, ending);
    put(harness, name, text);
}

static void test_settles_done(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "before");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "after");
    edit_works(harness, UNDO, "f"); /* the completion was written: it can be undone */
    has(harness, "f", "before");
}

static void test_settles_not_done(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "before");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_WRITING, "aft");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "before");
    edit_fails(harness, UNDO, "f", "NO_HISTORY", "No edit history found");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "after");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "before");
}

/* Killed between the exchange and the look at what came out: another program's save. */
static void test_settles_foreign_save(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "saved by another program");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    has(harness, "f", "saved by another program");
}

static void test_settles_someone_else_saved(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "something else");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before", "after", op);
    (void)leave_intent(harness, FILE_CHANGE_CREATE, "gone", NULL, "after", op);
    (void)leave_intent(harness, FILE_CHANGE_CREATE, "no/such/folder", NULL, "after", op);
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    has(harness, "f", "something else");
    edit_fails(harness, UNDO, "f", "NO_HISTORY", "No edit history found");
}

static void test_settles_create_and_delete(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "made", "after");
    (void)leave_intent(harness, FILE_CHANGE_CREATE, "made", NULL, "after", op);
    (void)leave_intent(harness, FILE_CHANGE_DELETE, "removed", "before", NULL, op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "before");
    (void)leave_intent(harness, FILE_CHANGE_DELETE, "newer", "before", NULL, op);
    leave_temp(harness, op, FILES_TEMP_COMPLETE, "saved by another program");
    harness_reopen(harness);
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    assert_null(get(harness, "removed"));
    has(harness, "newer", "saved by another program");
    edit_works(harness, UNDO, "made");
    assert_null(get(harness, "made"));
}

/* An intent whose completion failed while the gateway ran on: the next edit settles it. */
static void test_settles_at_the_next_edit(void **state)
{
    struct harness *harness = *state;
    char op[17];
    put(harness, "f", "after\n");
    (void)leave_intent(harness, FILE_CHANGE_EDIT, "f", "before\n", "after\n", op);
    edit_works(harness, APPEND, "f");
    has(harness, "f", "after\nx\n");
    assert_int_equal(count_intents(harness), 0);
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "before\n");
}

/* ---- kills */

static void close_gateway(struct harness *harness)
{
    assert_true(gateway_drain(harness->gateway, 10000));
    gateway_close(harness->gateway);
    harness->gateway = NULL;
}

/* As the harness does, in whatever process. */
static void open_gateway(struct harness *harness)
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

/* Edits one file, says so after each answer, until it is killed. */
static void child_edits(const char *dir, int report)
{
    struct harness harness = {0};
    (void)snprintf(harness.dir, sizeof(harness.dir), "%s", dir);
    open_gateway(&harness);
    for (unsigned i = 0;; i++) {
        char args[200];
        (void)snprintf(args, sizeof(args),
                       "\"command\":\"insert\",\"insert_line\":0,\"new_str\":\"%d.%u\"",
                       (int)getpid(), i);
        struct answer answer = edit(&harness, args, "f");
        if (answer.rc != NG_OK) {
            (void)fprintf(stderr, "%s\n", answer.message);
            _exit(2);
        }
        answer_free(&answer);
        if (write(report, &i, sizeof(i)) != (ssize_t)sizeof(i)) {
            _exit(3);
        }
    }
}

static void pause_us(long us)
{
    struct timespec time = {0, us * 1000};
    (void)nanosleep(&time, NULL);
}

/* Kills a child that edits after `us` more microseconds. Returns how many edits it told of. */
static unsigned kill_once(const char *dir, long us, pid_t *ret_pid)
{
    int pipes[2];
    unsigned told = 0;
    unsigned number = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pipes[0]);
        child_edits(dir, pipes[1]);
    }
    (void)close(pipes[1]);
    /* The first answer: it is at work. */
    assert_int_equal(read(pipes[0], &number, sizeof(number)), (ssize_t)sizeof(number));
    told = number + 1;
    pause_us(us);
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (read(pipes[0], &number, sizeof(number)) == (ssize_t)sizeof(number)) {
        told = number + 1;
    }
    (void)close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    *ret_pid = pid;
    return told;
}

static void test_kills_lose_nothing(void **state)
{
    (void)state;
    struct harness harness;
    harness_open(&harness, sets);
    put(&harness, "f", "end\n");
    close_gateway(&harness);
    unsigned seed = 4711;
    for (int round = 0; round < KILLS; round++) {
        pid_t pid = 0;
        seed = seed * 1103515245U + 12345U;
        unsigned told = kill_once(harness.dir, (long)(seed >> 8) % 20000, &pid);
        /* Every edit it told of is in the file, in order, the one under way wholly or not. */
        char *text = get(&harness, "f");
        assert_non_null(text);
        char line[64];
        for (unsigned i = 0; i < told; i++) {
            (void)snprintf(line, sizeof(line), "%d.%u\n", (int)pid, i);
            assert_non_null(strstr(text, line));
        }
        (void)snprintf(line, sizeof(line), "%d.%u\n", (int)pid, told + 1);
        assert_null(strstr(text, line));
        assert_string_equal(text + strlen(text) - 4, "end\n");
        free(text);
    }
    open_gateway(&harness);
    assert_int_equal(count_intents(&harness), 0);
    assert_int_equal(count_temps(&harness), 0);
    for (int i = 0; i < 5; i++) {
        edit_works(&harness, UNDO, "f"); /* the history is that of the file */
    }
    harness_close(&harness);
}

struct ended {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void call_ended(struct call *call, void *user)
{
    struct ended *ended = user;
    (void)call;
    (void)pthread_mutex_lock(&ended->lock);
    ended->done = true;
    (void)pthread_cond_signal(&ended->wake);
    (void)pthread_mutex_unlock(&ended->lock);
}

/* One edit under an idempotency key; the answer's text, malloc'd. */
static char *edit_once(struct harness *harness, const char *key, const char *line)
{
    struct ended ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    char args[PATH_SIZE];
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"%s/files/f\",\"command\":\"insert\",\"insert_line\":0,"
                   "\"new_str\":\"%s\"}",
                   harness->dir, line);
    struct call *call = call_new(harness->gateway);
    if (call == NULL) {
        abort();
    }
    call->tool_name = ng_str_of("fileEditor");
    call->args_text = ng_str_of(args);
    call->idempotency_key = ng_str_of(key);
    call->done = call_ended;
    call->done_user = &ended;
    if (dispatch(call) == NG_PENDING) {
        (void)pthread_mutex_lock(&ended.lock);
        while (!ended.done) {
            (void)pthread_cond_wait(&ended.wake, &ended.lock);
        }
        (void)pthread_mutex_unlock(&ended.lock);
    }
    struct ng_str text = call->result.rc == NG_OK ? call->result.text : call->result.message;
    char *copy = strndup(text.data, text.len);
    call_unref(call);
    return copy;
}

/* A call that was cut off by a kill and is repeated with its key is done once, whenever the
 * kill came. */
static void test_kills_and_repeats(void **state)
{
    (void)state;
    struct harness harness;
    unsigned seed = 815;
    harness_open(&harness, sets);
    put(&harness, "f", "end\n");
    for (int round = 0; round < KILLS; round++) {
        char line[64];
        int pipes[2];
        char byte = 0;
        close_gateway(&harness);
        (void)snprintf(line, sizeof(line), "round %d.", round);
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            open_gateway(&harness);
            (void)!write(pipes[1], "x", 1);
            free(edit_once(&harness, line, line));
            (void)pause();
            _exit(0);
        }
        assert_int_equal(read(pipes[0], &byte, 1), 1);
        seed = seed * 1103515245U + 12345U;
        pause_us((long)(seed >> 8) % 6000);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        open_gateway(&harness);
        char *answer = edit_once(&harness, line, line);
        assert_non_null(strstr(answer, "has been edited. Here's the result"));
        assert_non_null(strstr(answer, line));
        free(answer);
        char *text = get(&harness, "f");
        assert_non_null(text);
        const char *first = strstr(text, line);
        assert_non_null(first);
        assert_null(strstr(first + 1, line));
        free(text);
    }
    harness_close(&harness);
}

/* ---- what the system refuses */

static void test_full_disk(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "small");
    assert_int_equal(mkdir(path, 0755), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k") != 0) {
        skip(); /* not root, or not allowed to mount */
    }
    /* What is mounted inside a root is part of it. */
    put(harness, "small/f", "a\n");
    edit_works(harness, APPEND, "small/f");
    has(harness, "small/f", "a\nx\n");
    char *big = malloc(80001);
    char *args = malloc(81000);
    assert_non_null(big);
    assert_non_null(args);
    memset(big, 'y', 80000);
    big[80000] = '\0';
    (void)snprintf(args, 81000,
                   "{\"command\":\"insert\",\"path\":\"%s/f\",\"insert_line\":1,\"new_str\":"
                   "\"%s\"}",
                   path, big);
    struct answer answer = harness_call(harness, "fileEditor", args);
    assert_string_equal(answer.code, "STORAGE_FULL");
    assert_int_equal(answer.status, 507);
    assert_non_null(strstr(answer.message, "no room is left on its disk"));
    answer_free(&answer);
    has(harness, "small/f", "a\nx\n");
    edit_works(harness, UNDO, "small/f");
    assert_int_equal(count_intents(harness), 0);
    /* To another file system and back. */
    put(harness, "g", "moved\n");
    (void)snprintf(args, 81000,
                   "{\"command\":\"move\",\"path\":\"%s/files/g\",\"destination\":\"%s/g\"}",
                   harness->dir, path);
    answer = harness_call(harness, "fileEditor", args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    assert_null(get(harness, "g"));
    has(harness, "small/g", "moved\n");
    edit_works(harness, UNDO, "small/g");
    has(harness, "g", "moved\n");
    assert_null(get(harness, "small/g"));
    assert_int_equal(umount(path), 0);
    free(big);
    free(args);
}

static void test_read_only_disk(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "fixed");
    assert_int_equal(mkdir(path, 0755), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k") != 0) {
        skip();
    }
    put(harness, "fixed/f", "a\n");
    assert_int_equal(mount("none", path, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
    edit_fails(harness, APPEND, "fixed/f", "FORBIDDEN", "read-only file system");
    edit_fails(harness, CREATE, "fixed/g", "FORBIDDEN", "read-only file system");
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(umount(path), 0);
}

#define NOBODY 65534

static bool edit_is(struct harness *harness, const char *args, const char *name,
                    const char *code, const char *part)
{
    struct answer answer = edit(harness, args, name);
    bool is = strcmp(answer.code, code) == 0 && strstr(answer.message, part) != NULL;
    if (!is) {
        (void)fprintf(stderr, "%s: %s %s\n", name, answer.code, answer.message);
    }
    answer_free(&answer);
    return is;
}

/* In a process of a user who owns nothing here. */
static int child_without_rights(const char *dir)
{
    struct harness harness = {0};
    (void)snprintf(harness.dir, sizeof(harness.dir), "%s", dir);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
        return 2;
    }
    open_gateway(&harness);
    bool good =
        edit_is(&harness, APPEND, "unreadable", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, "\"command\":\"view\"", "unreadable", "FORBIDDEN",
                "permission denied") &&
        edit_is(&harness, APPEND, "unwritable", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, APPEND, "foreign", "FORBIDDEN", "its owner (user 0, group 0)") &&
        edit_is(&harness, CREATE, "closed/f", "FORBIDDEN", "permission denied") &&
        edit_is(&harness, APPEND, "own", "ok", "");
    good = good && count_intents(&harness) == 0 && count_temps(&harness) == 0;
    close_gateway(&harness);
    return good ? 0 : 1;
}

static void own_by_root(struct harness *harness, const char *name, mode_t mode)
{
    char path[PATH_SIZE];
    put(harness, name, "a\n");
    (void)in_root(harness, path, name);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_no_permission(void **state)
{
    (void)state;
    char path[PATH_SIZE];
    char command[PATH_SIZE];
    struct harness harness;
    if (geteuid() != 0) {
        skip(); /* needs a second user */
    }
    harness_open(&harness, sets);
    close_gateway(&harness);
    own_by_root(&harness, "own", 0644);
    (void)snprintf(command, sizeof(command), "chown -R %d:%d '%s'", NOBODY, NOBODY,
                   harness.dir);
    assert_int_equal(system(command), 0);
    own_by_root(&harness, "unreadable", 0);
    own_by_root(&harness, "unwritable", 0644);
    own_by_root(&harness, "foreign", 0666);
    (void)in_root(&harness, path, "closed");
    assert_int_equal(mkdir(path, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(child_without_rights(harness.dir));
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    has(&harness, "foreign", "a\n");
    has(&harness, "own", "a\nx\n");
    harness_close(&harness);
}

/* A copy belongs to the gateway: "runs as its owner" must not come along. */
static void test_copies_run_as_nobody_else(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char args[2 * PATH_SIZE];
    struct stat status;
    put(harness, "f", "text");
    assert_int_equal(chmod(in_root(harness, path, "f").data, 06755), 0);
    (void)snprintf(args, sizeof(args), "\"command\":\"copy\",\"destination\":\"%s\"",
                   in_root(harness, path, "copy").data);
    edit_works(harness, args, "f");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s\"",
                   in_root(harness, path, "moved").data);
    edit_works(harness, args, "f");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 06755);
}

static void test_links_and_pipes(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    (void)in_root(harness, path, "dangling");
    assert_int_equal(symlink("nothing", path), 0);
    edit_fails(harness, APPEND, "dangling", "NOT_FOUND", "does not exist");
    (void)in_root(harness, path, "loop");
    assert_int_equal(symlink("loop", path), 0);
    edit_fails(harness, APPEND, "loop", "TOOL_FAILED", "too many links");
    (void)in_root(harness, path, "pipe");
    assert_int_equal(mkfifo(path, 0644), 0);
    edit_fails(harness, APPEND, "pipe", "TOOL_FAILED", "not a regular file");
    assert_int_equal(count_intents(harness), 0);
}

/* ---- locks */

static void test_waits_for_other_processes(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    int pipes[2];
    put(harness, "f", "a\n");
    (void)in_root(harness, path, "f");
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool held = fd >= 0 && flock(fd, LOCK_EX) == 0 && write(pipes[1], "x", 1) == 1;
        pause_us(200000);
        /* Saves in place, then lets go. */
        _exit(held && pwrite(fd, "b\n", 2, 0) == 2 ? 0 : 1);
    }
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    edit_works(harness, APPEND, "f");
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    has(harness, "f", "b\nx\n");
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* ---- what plugins are promised */

static void test_never_blocks_a_loop(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    struct files *files = harness->gateway->files;
    struct ng_file file;
    struct ng_file_list list = {.size = sizeof(list)};
    struct ng_file_edit change = {.size = sizeof(change)};
    struct ng_file_transfer transfer = {.size = sizeof(transfer)};
    struct ng_file_undo undo = {.size = sizeof(undo)};
    struct ng_str path = ng_str_of("/x");
    call->may_block = false;
    assert_int_equal(files_stat(files, call, path, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_read(files, call, path, 0, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_stream(files, call, path, NULL, NULL, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_list(files, call, &list, NULL, NULL), NG_EWOULDBLOCK);
    assert_int_equal(files_edit(files, call, &change), NG_EWOULDBLOCK);
    assert_int_equal(files_transfer(files, call, &transfer), NG_EWOULDBLOCK);
    assert_int_equal(files_undo(files, call, &undo), NG_EWOULDBLOCK);
    call_unref(call);
}

static void test_stat_and_read(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    struct ng_file file = {0};
    call->may_block = true;
    put(harness, "f", "bytes");
    assert_int_equal(files_stat(files, call, in_root(harness, path, "f"), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_REGULAR);
    assert_int_equal(file.bytes, 5);
    assert_int_equal(file.mode, 0644);
    assert_true(str_is(file.space, "shared"));
    assert_true(str_is(file.real, path));
    assert_null(file.revision.data);
    assert_int_equal(files_read(files, call, ng_str_of(path), 5, &file), NG_OK);
    assert_true(str_is(file.data, "bytes"));
    /* The first 128 bits of SHA-256 of "bytes". */
    assert_true(str_is(file.revision, "277089d91c0bdf4f2e6862ba7e4a0760"));
    assert_int_equal(files_read(files, call, ng_str_of(path), 4, &file), NG_ETOOLARGE);
    assert_int_equal(files_stat(files, call, in_root(harness, path, "no/such"), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_NONE);
    assert_int_equal(files_read(files, call, ng_str_of(path), 4, &file), NG_ENOTFOUND);
    assert_int_equal(files_stat(files, call, in_root(harness, path, ""), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_DIRECTORY);
    assert_int_equal(files_stat(files, call, ng_str_of("/etc"), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, call, ng_str_of("etc"), &file), NG_EINVAL);
    call_unref(call);
}

struct told {
    char text[4096];
    size_t len;
};

static int tell(void *user, const struct ng_event *event)
{
    struct told *told = user;
    const char *name = strrchr(event->key.id.data, '/');
    size_t len = event->key.id.len - (size_t)(name - event->key.id.data);
    if (str_is(event->key.collection, FILES_EVENTS)) {
        told->len += (size_t)snprintf(
            told->text + told->len, sizeof(told->text) - told->len, "%.*s %.*s%s\n", (int)len,
            name, (int)event->action.len, event->action.data,
            event->data.len > 0 && strstr(event->data.data, "\"revision\":\"") != NULL
                ? " with revision"
                : "");
    }
    return 0;
}

static void test_events(void **state)
{
    struct harness *harness = *state;
    struct told told = {.len = 0};
    char args[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    edit_works(harness, CREATE, "f");
    edit_works(harness, APPEND, "f");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s/files/g\"",
                   harness->dir);
    edit_works(harness, args, "f");
    edit_works(harness, UNDO, "g");
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    put(harness, "old", "x");
    edit_works(harness, APPEND, "old");
    put(harness, "other", "x"); /* nobody has told of it yet */
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s/files/to\"",
                   harness->dir);
    edit_works(harness, args, "other");
    assert_int_equal(store_changes(harness->gateway->store, call, 0, 1000, tell, &told), NG_OK);
    assert_string_equal(told.text, "/f created with revision\n"
                                   "/f updated with revision\n"
                                   "/g moved with revision\n/f deleted\n"
                                   "/f moved with revision\n/g deleted\n"
                                   "/f updated with revision\n"
                                   "/f deleted\n"
                                   "/old updated with revision\n"
                                   "/to moved with revision\n/other deleted\n");
    call_unref(call);
}

static void test_roots_of_other_spaces(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char secret[PATH_SIZE];
    char text[PATH_SIZE + 16];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    struct ng_file file = {0};
    call->may_block = true;
    struct ng_str shared = in_root(harness, path, "");
    (void)in_root(harness, secret, "secret");
    (void)snprintf(text, sizeof(text), "team:%s", secret);
    struct ng_str roots[] = {shared, ng_str_of(text)};
    assert_int_equal(files_set_roots(files, call, roots, 2), NG_OK);
    put(harness, "secret/f", "x");
    (void)in_root(harness, path, "link");
    assert_int_equal(symlink("secret/f", path), 0);
    (void)in_root(harness, secret, "secret/f");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_OK);
    assert_true(str_is(file.space, "team"));
    const struct ng_str *seen = NULL;
    assert_int_equal(files_roots(files, call, &seen), 2);
    /* A caller of the space "shared" alone: not directly, not by a link, not in a listing. */
    call->caller.all_spaces = false;
    assert_int_equal(files_roots(files, call, &seen), 1);
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, call, ng_str_of(path), &file), NG_EOUTSIDE);
    /* Nor does what is refused tell what is there, or go through it. */
    static const char *const probes[] = {
        "secret/none",       "secret/f/x",      "secret/./f",         "./secret/none",
        "secret/none/../f",  "secret/f/../f",   "secret/../secret/f", "secret/f/../../link",
        "secret/none/../..", "./secret/a/../f", "./secret/f/../f",
    };
    for (size_t i = 0; i < NG_COUNT(probes); i++) {
        (void)in_root(harness, secret, probes[i]);
        assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    }
    size_t count = 0;
    struct ng_file_list list = {.size = sizeof(list), .path = shared, .depth = 5};
    (void)in_root(harness, path, "");
    assert_int_equal(files_list(files, call, &list, count_entry, &count), NG_OK);
    assert_int_equal(count, 1); /* the link, shown and leading nowhere */
    /* An open root in a closed one is reached however it is written. */
    (void)snprintf(text, sizeof(text), "team:%s", path);
    char inner[PATH_SIZE];
    struct ng_str nested[] = {ng_str_of(text), in_root(harness, inner, "secret")};
    assert_int_equal(files_set_roots(files, call, nested, 2), NG_OK);
    (void)in_root(harness, secret, "./secret/f");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_OK);
    (void)in_root(harness, secret, "./none");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    call_unref(call);
}

/* A plugin's folder is a root for that plugin's calls alone; its space closes it to all. */
static void test_folders_of_a_plugin(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char notes[PATH_SIZE];
    char inner[PATH_SIZE];
    char text[PATH_SIZE + 16];
    struct files *files = harness->gateway->files;
    struct call *mine = harness_new_call(harness);
    struct call *other = harness_new_call(harness);
    struct plugin owner = {.desc = {.name = "owner"}};
    struct ng_file file = {0};
    const struct ng_str *seen = NULL;
    mine->plugin = &owner;
    mine->may_block = true;
    other->may_block = true;
    (void)snprintf(notes, sizeof(notes), "%s/notes", harness->dir);
    assert_int_equal(files_add_folder(files, mine, ng_str_of(notes)), NG_ENOTFOUND);
    assert_int_equal(access(notes, F_OK), -1);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_EOUTSIDE);
    assert_int_equal(mkdir(notes, 0700), 0);
    assert_int_equal(files_add_folder(files, mine, ng_str_of(notes)), NG_OK);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    assert_true(str_is(file.space, "shared"));
    assert_int_equal(files_stat(files, other, ng_str_of(notes), &file), NG_EOUTSIDE);
    assert_int_equal(files_roots(files, mine, &seen), 1);
    /* Inside a root: that plugin's own, and for others a part of the root as before. */
    (void)in_root(harness, inner, "inner");
    assert_int_equal(mkdir(inner, 0700), 0);
    put(harness, "inner/f", "x");
    (void)snprintf(text, sizeof(text), "team:%s", inner);
    assert_int_equal(files_add_folder(files, mine, ng_str_of(text)), NG_OK);
    (void)in_root(harness, path, "inner/f");
    assert_int_equal(files_stat(files, mine, ng_str_of(path), &file), NG_OK);
    assert_true(str_is(file.space, "team"));
    assert_int_equal(files_stat(files, other, ng_str_of(path), &file), NG_OK);
    assert_true(str_is(file.space, "shared"));
    /* Who may not see the space does not get there, whichever plugin it comes by. */
    mine->caller.all_spaces = false;
    other->caller.all_spaces = false;
    assert_int_equal(files_stat(files, mine, ng_str_of(path), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, other, ng_str_of(path), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    /* A reload keeps them. */
    struct ng_str root = in_root(harness, path, "");
    assert_int_equal(files_set_roots(files, other, &root, 1), NG_OK);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    assert_int_equal(files_stat(files, other, ng_str_of(notes), &file), NG_EOUTSIDE);
    call_unref(mine);
    call_unref(other);
}

struct sorted {
    char text[256];
};

static int tell_sorted(void *user, const struct ng_file_entry *entry)
{
    struct sorted *sorted = user;
    size_t len = strlen(sorted->text);
    (void)snprintf(sorted->text + len, sizeof(sorted->text) - len, "%.*s ",
                   (int)entry->name.len, entry->name.data);
    return 0;
}

/* A large folder is listed in the order of its names, some at a time. */
static void test_sorted_lists(void **state)
{
    static const struct {
        const char *from;
        uint32_t max;
        int rc;
        const char *told;
    } lists[] = {
        {NULL, 3, NG_ETOOLARGE, "B a a.b "},
        {"a", 3, NG_ETOOLARGE, "a a.b ab "},
        {"a.", 2, NG_ETOOLARGE, "a.b ab "},
        {"b", 9, NG_OK, "b c d "},
        {"c", 2, NG_OK, "c d "},
        {"dd", 1, NG_OK, ""},
    };
    static const char *const names[] = {"c", "a.b", "d", "ab", "B", "b", "a", ".hidden"};
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        put(harness, names[i], "x");
    }
    for (size_t i = 0; i < NG_COUNT(lists); i++) {
        struct sorted sorted = {""};
        struct ng_file_list list = {.size = sizeof(list),
                                    .path = in_root(harness, path, ""),
                                    .depth = 5,
                                    .max_entries = lists[i].max,
                                    .sorted = true};
        list.from.data = lists[i].from;
        list.from.len = lists[i].from == NULL ? 0 : strlen(lists[i].from);
        assert_int_equal(files_list(harness->gateway->files, call, &list, tell_sorted, &sorted),
                         lists[i].rc);
        assert_string_equal(sorted.text, lists[i].told);
    }
    call_unref(call);
}

/* A root that is named through a link is known by both names. */
static void test_root_behind_a_link(void **state)
{
    struct harness *harness = *state;
    char link[PATH_SIZE];
    char path[PATH_SIZE];
    char through[PATH_SIZE + 8];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    struct ng_file file = {0};
    call->may_block = true;
    (void)snprintf(link, sizeof(link), "%s/link", harness->dir);
    (void)in_root(harness, path, "");
    assert_int_equal(symlink(path, link), 0);
    put(harness, "f", "x");
    struct ng_str root = ng_str_of(link);
    assert_int_equal(files_set_roots(files, call, &root, 1), NG_OK);
    (void)snprintf(through, sizeof(through), "%s/f", link);
    assert_int_equal(files_stat(files, call, ng_str_of(through), &file), NG_OK);
    assert_true(str_is(file.real, in_root(harness, path, "f").data));
    assert_int_equal(files_stat(files, call, ng_str_of(path), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_REGULAR);
    call_unref(call);
}

static void test_undo_splices(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    static const struct ng_str texts[] = {
        {"", 0},           {"a", 1},           {"aa", 2},         {"\xc3\xa9", 2},
        {"\xc3\xa8", 2},   {"\xe9", 1},        {"\xff\xfe\0", 3}, {"a\xc3\xa9z", 4},
        {"a\xc3\xa8z", 4}, {"aaaaaaaaaa", 10}, {"a\0b", 3},       {"\xa9\xc3\xa9", 3},
    };
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        for (size_t j = 0; j < NG_COUNT(texts); j++) {
            struct file_undo undo = {.kind = NG_UNDO_EDIT};
            struct ng_str back;
            assert_int_equal(files_undo_make(call, texts[i], texts[j], &undo), NG_OK);
            assert_true(str_utf8_valid(undo.inserted));
            assert_int_equal(files_undo_apply(call, &undo, texts[j], &back), NG_OK);
            assert_true(str_equal(back, texts[i]));
        }
    }
    call_unref(call);
}

static void test_history_is_bounded(void **state)
{
    (void)state;
    static const char ops[] = "abcdefghijklmnop";
    struct file_history history = {.count = 0};
    for (size_t i = 0; i < 13; i++) {
        struct file_undo undo = {.op = {ops + i, 1}};
        files_history_push(&history, &undo);
    }
    assert_int_equal(history.count, NG_FILE_UNDO_MAX);
    assert_true(str_is(history.items[0].op, "d"));
    assert_true(str_is(history.items[NG_FILE_UNDO_MAX - 1].op, "m"));
    /* By bytes too: the oldest fall out; one that alone is too large leaves nothing. */
    struct file_undo large = {.op = {ops, 1}, .inserted = {ops, FILES_UNDO_BYTES_MAX / 2}};
    files_history_push(&history, &large);
    files_history_push(&history, &large);
    files_history_push(&history, &large);
    assert_int_equal(history.count, 2);
    large.inserted.len = FILES_UNDO_BYTES_MAX + 1;
    files_history_push(&history, &large);
    assert_int_equal(history.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settles_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settles_not_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settles_foreign_save, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settles_someone_else_saved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settles_create_and_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settles_at_the_next_edit, setup, teardown),
        cmocka_unit_test(test_kills_lose_nothing),
        cmocka_unit_test(test_kills_and_repeats),
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only_disk, setup, teardown),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test_setup_teardown(test_copies_run_as_nobody_else, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_and_pipes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_other_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_never_blocks_a_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stat_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roots_of_other_spaces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folders_of_a_plugin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sorted_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_behind_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_splices, setup, teardown),
        cmocka_unit_test(test_history_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
