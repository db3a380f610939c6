/* SPDX-License-Identifier: MIT */
/* test_redis_faults.c - a Redis that answers with errors, breaks off, talks nonsense or says
 * nothing; played by the test itself. */
#include "journal_contract.h"

#include <arpa/inet.h>
#include <hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/journal/journal.h"

#define FAKE_CONNECTIONS 32
#define FAKE_STEP_MS 20
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
    char uri[64];
};

/* ---- the server ---- */

static void fake_send(int fd, const char *text)
{
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void fake_drop(struct fake *fake, size_t at)
{
    (void)close(fake->clients[at].fd);
    redisReaderFree(fake->clients[at].reader);
    fake->clients[at].fd = -1;
    fake->clients[at].reader = NULL;
}

/* One command; false: the connection is to end. */
static bool fake_answer(struct fake *fake, int fd, const redisReply *command)
{
    int mode = atomic_load(&fake->mode);
    const char *word = command->elements > 0 ? command->element[0]->str : "";
    bool signing_in =
        strcmp(word, "PING") == 0 || strcmp(word, "AUTH") == 0 || strcmp(word, "SELECT") == 0;
    if (mode == FAKE_SILENT_AT_ALL) {
        return true;
    }
    if (signing_in && mode != FAKE_GONE) {
        fake_send(fd, "+PONG\r\n");
        return true;
    }
    atomic_fetch_add(&fake->commands, 1);
    if (mode == FAKE_TEXT) {
        fake_send(fd, atomic_load(&fake->text));
    }
    return mode != FAKE_CLOSE && mode != FAKE_GONE;
}

static void fake_serve(struct fake *fake, size_t at)
{
    char data[16384];
    ssize_t got = recv(fake->clients[at].fd, data, sizeof(data), 0);
    if (got <= 0 || redisReaderFeed(fake->clients[at].reader, data, (size_t)got) != REDIS_OK) {
        fake_drop(fake, at);
        return;
    }
    void *command = NULL;
    while (redisReaderGetReply(fake->clients[at].reader, &command) == REDIS_OK &&
           command != NULL) {
        bool go_on = fake_answer(fake, fake->clients[at].fd, command);
        freeReplyObject(command);
        command = NULL;
        if (!go_on) {
            fake_drop(fake, at);
            return;
        }
    }
}

static void fake_accept(struct fake *fake)
{
    int fd = accept(fake->listener, NULL, NULL);
    for (size_t i = 0; fd >= 0 && i < FAKE_CONNECTIONS; i++) {
        if (fake->clients[i].fd < 0) {
            fake->clients[i].fd = fd;
            fake->clients[i].reader = redisReaderCreate();
            atomic_fetch_add(&fake->accepted, 1);
            return;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void *fake_run(void *user)
{
    struct fake *fake = user;
    while (!atomic_load(&fake->stop)) {
        struct pollfd fds[FAKE_CONNECTIONS + 1];
        for (size_t i = 0; i < FAKE_CONNECTIONS; i++) {
            fds[i] = (struct pollfd){.fd = fake->clients[i].fd, .events = POLLIN};
        }
        fds[FAKE_CONNECTIONS] = (struct pollfd){.fd = fake->listener, .events = POLLIN};
        if (poll(fds, NG_COUNT(fds), FAKE_STEP_MS) <= 0) {
            continue;
        }
        for (size_t i = 0; i < FAKE_CONNECTIONS; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0) {
                fake_serve(fake, i);
            }
        }
        if (fds[FAKE_CONNECTIONS].revents != 0) {
            fake_accept(fake);
        }
    }
    for (size_t i = 0; i < FAKE_CONNECTIONS; i++) {
        if (fake->clients[i].fd >= 0) {
            fake_drop(fake, i);
        }
    }
    return NULL;
}

static void fake_start(struct fake *fake)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    for (size_t i = 0; i < FAKE_CONNECTIONS; i++) {
        fake->clients[i].fd = -1;
    }
    atomic_store(&fake->text, "+OK\r\n");
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fake->listener >= 0);
    assert_int_equal(bind(fake->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fake->listener, FAKE_CONNECTIONS), 0);
    assert_int_equal(getsockname(fake->listener, (struct sockaddr *)&address, &len), 0);
    fake->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

static void fake_end(struct fake *fake)
{
    atomic_store(&fake->stop, true);
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    (void)close(fake->listener);
}

/* ---- the gateway ---- */

static void open_gateway(struct fault_test *test, const char *timeout)
{
    const char *sets[] = {"plugins=notebook", "journal=redis", test->uri, timeout, NULL};
    harness_open(&test->harness, sets);
    test->journal = journal_vtable(test->harness.gateway->journal, &test->db);
}

static int setup(void **state)
{
    struct fault_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    fake_start(&test->fake);
    (void)snprintf(test->uri, sizeof(test->uri), "redis.uri=redis://user:secret@127.0.0.1:%d/3",
                   test->fake.port);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct fault_test *test = *state;
    harness_close(&test->harness);
    fake_end(&test->fake);
    free(test);
    return 0;
}

static void expect_message(const struct call *call, const char *part)
{
    struct ng_str message = call->staged.message;
    if (memmem(message.data, message.len, part, strlen(part)) == NULL) {
        fail_msg("\"%.*s\" does not say \"%s\"", (int)message.len, message.data, part);
    }
    assert_null(memmem(message.data, message.len, "secret", strlen("secret")));
}

/* The delivery of one entry, and what is said about it. */
static void expect_deliver(struct fault_test *test, int want, const char *part)
{
    struct ng_entry entry = journal_memory("shared", "e1", "text", 1);
    struct call *call = harness_new_call(&test->harness);
    assert_int_equal(harness_deliver(test->journal, test->db, call, &entry, 1), want);
    if (part != NULL) {
        expect_message(call, part);
    }
    call_unref(call);
}

/* After a failure of a connection the next one is made a moment later. */
static void deliver_at_last(struct fault_test *test)
{
    struct ng_entry entry = journal_memory("shared", "e1", "text", 1);
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    int rc = NG_OK;
    do {
        struct call *call = harness_new_call(&test->harness);
        rc = harness_deliver(test->journal, test->db, call, &entry, 1);
        call_unref(call);
    } while (rc != NG_OK && clock_monotonic_ns() < until);
    assert_int_equal(rc, NG_OK);
}

/* It is noticed while nothing is written. */
static void expect_degraded(struct fault_test *test, bool want)
{
    int64_t until = clock_monotonic_ns() + WAIT_NS;
    while (journal_degraded(test->harness.gateway->journal) != want) {
        if (clock_monotonic_ns() > until) {
            fail_msg("the journal should be %s", want ? "degraded" : "well");
        }
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
}

/* ---- tests ---- */

static void test_errors_by_name(void **state)
{
    static const struct {
        const char *reply;
        int rc;
        const char *part;
    } errors[] = {
        {"-READONLY You can't write against a read only replica.\r\n", NG_EUNAVAILABLE,
         "primary"},
        {"-LOADING Redis is loading the dataset in memory\r\n", NG_EUNAVAILABLE, "LOADING"},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", NG_EFULL, "maxmemory"},
        {"-NOAUTH Authentication required.\r\n", NG_EUNAVAILABLE, "password"},
        {"-NOPERM this user has no permissions\r\n", NG_EUNAVAILABLE, "right"},
        {"-WRONGTYPE Operation against a key\r\n", NG_EUNAVAILABLE, "another program"},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", NG_EUNAVAILABLE, "disk"},
        {"-MOVED 1 127.0.0.1:1\r\n", NG_EUNAVAILABLE, "Cluster"},
        {"-ERR something new\r\n", NG_EUNAVAILABLE, "something new"},
    };
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=60s");
    for (size_t i = 0; i < NG_COUNT(errors); i++) {
        atomic_store(&test->fake.text, errors[i].reply);
        expect_deliver(test, errors[i].rc, errors[i].part);
    }
    atomic_store(&test->fake.text, ":1\r\n");
    expect_deliver(test, NG_OK, NULL);
}

/* A connection that was idle and is dead is replaced without a word. */
static void test_dead_idle_connection(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.text, ":1\r\n");
    open_gateway(test, "redis.timeout=60s");
    expect_deliver(test, NG_OK, NULL);
    int before = atomic_load(&test->fake.accepted);
    /* It takes the commands and breaks off: once more on a new connection, which does too. */
    atomic_store(&test->fake.mode, FAKE_CLOSE);
    expect_deliver(test, NG_EUNAVAILABLE, "Redis at 127.0.0.1:");
    assert_true(atomic_load(&test->fake.accepted) > before);
    atomic_store(&test->fake.mode, FAKE_TEXT);
    deliver_at_last(test);
}

static void test_nonsense(void **state)
{
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=60s");
    atomic_store(&test->fake.text, "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_deliver(test, NG_EUNAVAILABLE, "protocol");
    atomic_store(&test->fake.text, "*2\r\n+a\r\n*-1\r\n");
    deliver_at_last(test); /* it is not read */
    struct call *call = harness_new_call(&test->harness);
    struct ng_str json = {NULL, 0};
    assert_int_equal(test->journal->dump(test->db, &call->pub, ng_str_of("shared"), &json),
                     NG_EUNAVAILABLE);
    expect_message(call, "an unexpected type");
    call_unref(call);
}

static void test_silent(void **state)
{
    struct fault_test *test = *state;
    open_gateway(test, "redis.timeout=300ms");
    atomic_store(&test->fake.mode, FAKE_SILENT);
    expect_deliver(test, NG_EUNAVAILABLE, "redis.timeout");
    atomic_store(&test->fake.mode, FAKE_SILENT_AT_ALL);
    expect_deliver(test, NG_EUNAVAILABLE, NULL);
    atomic_store(&test->fake.mode, FAKE_TEXT);
    atomic_store(&test->fake.text, ":1\r\n");
    deliver_at_last(test);
}

/* The gateway starts without its Redis, and takes it when it is there. */
static void test_away_at_start(void **state)
{
    struct fault_test *test = *state;
    atomic_store(&test->fake.mode, FAKE_GONE);
    open_gateway(test, "redis.timeout=60s");
    expect_deliver(test, NG_EUNAVAILABLE, NULL);
    expect_degraded(test, true);
    atomic_store(&test->fake.text, ":1\r\n");
    atomic_store(&test->fake.mode, FAKE_TEXT);
    deliver_at_last(test);
    expect_degraded(test, false);
    atomic_store(&test->fake.mode, FAKE_GONE);
    expect_degraded(test, true);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_errors_by_name), TEST(test_dead_idle_connection), TEST(test_nonsense),
        TEST(test_silent),         TEST(test_away_at_start),
    };
    return cmocka_run_group_tests_name("redis faults", tests, NULL, NULL);
}
