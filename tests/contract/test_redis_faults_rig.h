/* SPDX-License-Identifier: MIT */
/* test_redis_faults_rig.h - a Redis that the test itself plays, and a gateway on it. */
#ifndef NOTEGATE_TEST_REDIS_FAULTS_RIG_H
#define NOTEGATE_TEST_REDIS_FAULTS_RIG_H

#include "journal_contract.h"

#include <hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#define FAKE_CONNECTIONS 32
/* Rows of the first page of a scan (REDIS_PAGE); the last one comes again in the second. */
#define FAKE_ROWS 256
#define WAIT_NS INT64_C(60000000000)

/* Answer of the server to all commands except PING, AUTH and SELECT. */
enum fake_mode { FAKE_TEXT, FAKE_CLOSE, FAKE_GONE, FAKE_SILENT, FAKE_SILENT_AT_ALL };

struct fake {
    int listener;
    int port;
    pthread_t thread;
    atomic_bool stop;
    atomic_int mode;
    _Atomic(const char *) text;
    atomic_int commands; /* except those for signing in */
    atomic_int accepted;
    atomic_int walks;             /* SCAN */
    _Atomic(const char *) words;  /* the version of the words; NULL: none */
    _Atomic(const char *) walked; /* the answer of SCAN; NULL: nothing is there */
    atomic_bool has_rows;         /* memories, for a scan */
    char mark[32];                /* its number */
    struct {
        int fd;
        redisReader *reader;
    } clients[FAKE_CONNECTIONS];
};

struct fault_test {
    struct fake fake;
    struct harness harness;
    const struct ng_journal *journal;
    void *db;
    char uri[128];
};

/* Listens at a port of 127.0.0.1; answers +OK at first. */
void fake_start(struct fake *fake);
void fake_end(struct fake *fake);

int setup(void **state);
int teardown(void **state);
void open_gateway(struct fault_test *test, const char *timeout);

/* The message of the failure; checks that it never contains the password. */
void expect_message(const struct call *call, const char *part);
/* The delivery of one entry, and what is said about it. */
void expect_deliver(struct fault_test *test, int want, const char *part);
/* After a failure of a connection the next one is made a moment later. */
void deliver_at_last(struct fault_test *test);
/* It is noticed while nothing is written. */
void expect_degraded(struct fault_test *test, bool want);

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
