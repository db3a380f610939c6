/* SPDX-License-Identifier: MIT */
/* program.h - commands of notegate, each in a forked process with standard streams of its own.
 */
#ifndef NOTEGATE_TEST_PROGRAM_H
#define NOTEGATE_TEST_PROGRAM_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/types.h>

#include "core/base/buf.h"

struct program {
    pid_t pid;
    int in; /* a pipe; -1: closed, or it was given its input at the start */
    int out;
    int err;          /* a file in memory */
    struct buf lines; /* of `out`, not asked for yet */
    struct buf line;  /* the last one that was */
    char address[64]; /* address of `serve` */
};

/* A command that has ended; the texts are malloc'd. */
struct ended {
    int code; /* of its exit; 128 + a signal's number */
    char *out;
    char *err;
};

/*
 * An empty folder, the home of all programs to come: $HOME, `data` in it is the data directory,
 * `notebook` the only plugin. No other variable configures them. Returns its path.
 */
const char *program_home(void);
void program_home_remove(void);
/* Of one test or a group of them: makes the home, and removes it. If the state is a program,
 * that is stopped first. */
int program_set_up(void **state);
int program_tear_down(void **state);
/* A file in it. */
void program_write(const char *name, const char *text);
char *program_read(const char *name);

/* words: of the command line, parted by spaces; 'one word' in quotes. input: all of the
 * standard input; NULL: a pipe. */
void program_start(struct program *program, const char *words, const char *input);
void program_send(struct program *program, const char *text);
/* The next line of the standard output, lent; a failed test if none comes in time. */
const char *program_line(struct program *program);
/* Until the standard error contains the text. */
void program_wait_err(const struct program *program, const char *text);
/* Ends its input, sends a signal unless that is 0, and waits. */
struct ended program_end(struct program *program, int signal_number);
void ended_free(struct ended *ended);

/* `serve` on a free port, with further words; waits until it listens. */
void program_serve(struct program *program, const char *words);
/* Stops it; it must end with 0. */
void program_stop(struct program *program);

/* Runs a command to its end. */
struct ended program_run(const char *words, const char *input);
/* The same: its exit code, and a part of each stream; NULL: nothing is written there. */
void expect_run(const char *words, int code, const char *out, const char *err);

struct run_case {
    const char *words;
    int code;
    const char *out;
    const char *err;
};

void expect_runs(const struct run_case *cases, size_t count);

#endif
