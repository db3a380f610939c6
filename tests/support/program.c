/* SPDX-License-Identifier: MIT */
/* program.c - commands of notegate in forked processes. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/command/commands.h"

/* Waiting for a program gives up after this long. */
#define PATIENCE_MS 20000
#define WORDS_MAX 160
#define WORDS_BYTES 8192
#define TEXT_MAX ((size_t)64 * 1024 * 1024)
#define PATH_BYTES 512

static char home[PATH_BYTES];

static const int crash_signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGALRM};

/* ---- the home of all programs ---- */

const char *program_home(void)
{
    const char *folder = getenv("TMPDIR");
    char data[PATH_BYTES + 8];
    for (char **at = environ; *at != NULL;) {
        char name[128];
        const char *equals = strchr(*at, '=');
        bool configures = strncmp(*at, "NOTEGATE_", 9) == 0 && equals != NULL &&
                          (size_t)(equals - *at) < sizeof(name);
        if (configures) {
            (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - *at), *at);
            (void)unsetenv(name);
            at = environ;
        } else {
            at++;
        }
    }
    (void)snprintf(home, sizeof(home), "%s/notegate-test-XXXXXX",
                   folder == NULL ? "/tmp" : folder);
    assert_non_null(mkdtemp(home));
    (void)snprintf(data, sizeof(data), "%s/data", home);
    assert_int_equal(setenv("HOME", home, 1), 0);
    assert_int_equal(setenv("XDG_CONFIG_HOME", home, 1), 0);
    assert_int_equal(setenv("NOTEGATE_DATA_DIR", data, 1), 0);
    assert_int_equal(setenv("NOTEGATE_PLUGINS", "notebook", 1), 0);
    assert_int_equal(setenv("NOTEGATE_LISTEN", "127.0.0.1:0", 1), 0);
    return home;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void program_home_remove(void)
{
    (void)nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static FILE *home_open(const char *name, const char *mode)
{
    char path[PATH_BYTES * 2];
    (void)snprintf(path, sizeof(path), "%s/%s", home, name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

void program_write(const char *name, const char *text)
{
    FILE *file = home_open(name, "w");
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* The text of a buffer, which is given up. */
static char *text_of(struct buf *text)
{
    char *copy = strdup(buf_cstr(text));
    assert_non_null(copy);
    buf_done(text);
    return copy;
}

/* All of a file, with '\0' behind it. */
static char *read_all(int fd)
{
    struct buf text;
    char chunk[65536];
    ssize_t len;
    buf_init(&text, TEXT_MAX);
    while ((len = read(fd, chunk, sizeof(chunk))) > 0) {
        assert_int_equal(buf_add(&text, chunk, (size_t)len), NG_OK);
    }
    return text_of(&text);
}

char *program_read(const char *name)
{
    FILE *file = home_open(name, "r");
    char *text = read_all(fileno(file));
    assert_int_equal(fclose(file), 0);
    return text;
}

/* ---- in the process of the command ---- */

/* Parts the words in place. */
static int part_words(char *text, char *argv[WORDS_MAX])
{
    static char name[] = "notegate";
    int count = 0;
    argv[count++] = name;
    for (char *at = text; *at != '\0' && count < WORDS_MAX - 1;) {
        char *to = at;
        argv[count++] = at;
        bool quoted = false;
        for (; *at != '\0' && (quoted || *at != ' '); at++) {
            if (*at == '\'') {
                quoted = !quoted;
            } else {
                *to++ = *at;
            }
        }
        while (*at == ' ') {
            at++;
        }
        /* A quote has moved the end of the word back, or there was a space. */
        *to = '\0';
    }
    argv[count] = NULL;
    return count;
}

static void run_here(const char *words)
{
    static char text[WORDS_BYTES];
    static char *argv[WORDS_MAX];
    (void)snprintf(text, sizeof(text), "%s", words);
    exit(command_main(part_words(text, argv), argv));
}

/* ---- one program ---- */

static int memory_file(const char *text)
{
    int fd = memfd_create("program", MFD_CLOEXEC);
    assert_true(fd >= 0);
    if (text != NULL) {
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    }
    return fd;
}

void program_start(struct program *program, const char *words, const char *input)
{
    int in[2] = {-1, -1};
    int out[2];
    memset(program, 0, sizeof(*program));
    buf_init(&program->lines, TEXT_MAX);
    buf_init(&program->line, TEXT_MAX);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    if (input == NULL) {
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    } else {
        in[0] = memory_file(input);
    }
    program->err = memory_file(NULL);
    (void)fflush(NULL);
    program->pid = fork();
    assert_true(program->pid >= 0);
    if (program->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(program->err, STDERR_FILENO);
        /* Not what this process has of it, nor of other programs: their input would not end. */
        (void)close_range(STDERR_FILENO + 1, ~0U, 0);
        for (size_t i = 0; i < NG_COUNT(crash_signals); i++) {
            (void)signal(crash_signals[i], SIG_DFL); /* cmocka goes on with the next test */
        }
        run_here(words);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    program->in = in[1];
    program->out = out[0];
}

void program_send(struct program *program, const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t written = write(program->in, text, len);
        assert_true(written > 0);
        text += written;
        len -= (size_t)written;
    }
}

/* Reads more of the standard output; false: that is all. */
static bool read_more(struct program *program)
{
    char chunk[65536];
    struct pollfd wait = {.fd = program->out, .events = POLLIN};
    if (poll(&wait, 1, PATIENCE_MS) != 1) {
        fail_msg("it writes nothing more behind %s", buf_cstr(&program->line));
    }
    ssize_t len = read(program->out, chunk, sizeof(chunk));
    assert_true(len >= 0);
    assert_int_equal(buf_add(&program->lines, chunk, (size_t)len), NG_OK);
    return len > 0;
}

static char *err_of(const struct program *program)
{
    struct buf text;
    char chunk[4096];
    ssize_t len;
    buf_init(&text, TEXT_MAX);
    while ((len = pread(program->err, chunk, sizeof(chunk), (off_t)text.len)) > 0) {
        assert_int_equal(buf_add(&text, chunk, (size_t)len), NG_OK);
    }
    return text_of(&text);
}

const char *program_line(struct program *program)
{
    const char *end;
    while ((end = memchr(buf_cstr(&program->lines), '\n', program->lines.len)) == NULL) {
        if (!read_more(program)) {
            fail_msg("no further line: %s\n%s", buf_cstr(&program->lines), err_of(program));
        }
    }
    size_t len = (size_t)(end - program->lines.data);
    struct ng_str nothing = {NULL, 0};
    buf_clear(&program->line);
    assert_int_equal(buf_add(&program->line, program->lines.data, len), NG_OK);
    assert_int_equal(buf_splice(&program->lines, 0, len + 1, nothing), NG_OK);
    return buf_cstr(&program->line);
}

void program_wait_err(const struct program *program, const char *text)
{
    const struct timespec step = {0, 2000000};
    for (int i = 0; i < PATIENCE_MS / 2; i++) {
        char *err = err_of(program);
        bool there = strstr(err, text) != NULL;
        free(err);
        if (there) {
            return;
        }
        (void)nanosleep(&step, NULL);
    }
    fail_msg("\"%s\" is not in\n%s", text, err_of(program));
}

/* A test that fails because of it is not run again (tests/support/results.py). */
static void tell_crash(int status, const char *err)
{
    bool crashed = strstr(err, "Sanitizer") != NULL || strstr(err, ": runtime error: ") != NULL;
    for (size_t i = 0; i < NG_COUNT(crash_signals); i++) {
        crashed = crashed || (WIFSIGNALED(status) && WTERMSIG(status) == crash_signals[i]);
    }
    if (crashed) {
        print_error("a program crashed: status %d: %s\n", status, err);
    }
}

struct ended program_end(struct program *program, int signal_number)
{
    struct ended ended = {0};
    int status = 0;
    if (program->in >= 0) {
        (void)close(program->in);
    }
    if (signal_number != 0) {
        (void)kill(program->pid, signal_number);
    }
    while (read_more(program)) {
    }
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    ended.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ended.out = text_of(&program->lines);
    ended.err = err_of(program);
    tell_crash(status, ended.err);
    (void)close(program->out);
    (void)close(program->err);
    buf_done(&program->line);
    return ended;
}

void ended_free(struct ended *ended)
{
    free(ended->out);
    free(ended->err);
    memset(ended, 0, sizeof(*ended));
}

/* ---- serving ---- */

void program_serve(struct program *program, const char *words)
{
    char all[WORDS_BYTES];
    (void)snprintf(all, sizeof(all), "serve %s", words);
    program_start(program, all, "");
    const char *line = program_line(program);
    const char *at = strstr(line, "://");
    assert_non_null(at);
    (void)snprintf(program->address, sizeof(program->address), "%s", at + 3);
}

void program_stop(struct program *program)
{
    struct ended ended = program_end(program, SIGTERM);
    if (ended.code != 0) {
        fail_msg("it ended with %d: %s", ended.code, ended.err);
    }
    ended_free(&ended);
}

/* ---- running ---- */

struct ended program_run(const char *words, const char *input)
{
    struct program program;
    program_start(&program, words, input == NULL ? "" : input);
    return program_end(&program, 0);
}

static bool has_part(const char *text, const char *part)
{
    if (part == NULL) {
        return text[0] == '\0';
    }
    return strstr(text, part) != NULL;
}

void expect_run(const char *words, int code, const char *out, const char *err)
{
    struct ended ended = program_run(words, NULL);
    if (ended.code != code || !has_part(ended.out, out) || !has_part(ended.err, err)) {
        /* The longest last: cmocka cuts messages. */
        fail_msg("notegate %s\nended with %d, not %d\nwanted on stdout: %s\nwanted on stderr: "
                 "%s\nstderr: %s\nstdout: %s",
                 words, ended.code, code, out == NULL ? "nothing" : out,
                 err == NULL ? "nothing" : err, ended.err, ended.out);
    }
    ended_free(&ended);
}

void expect_runs(const struct run_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_run(cases[i].words, cases[i].code, cases[i].out, cases[i].err);
    }
}

/* ---- for cmocka ---- */

int program_set_up(void **state)
{
    *state = NULL;
    (void)program_home();
    return 0;
}

int program_tear_down(void **state)
{
    if (*state != NULL) {
        program_stop(*state);
    }
    program_home_remove();
    return 0;
}
