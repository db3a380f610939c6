/* SPDX-License-Identifier: MIT */
/* test_redis_faults_rig.c - the Redis that tests play, and the gateway on it. */
#include "test_redis_faults_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/journal/journal.h"

#define FAKE_STEP_MS 20

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

/* Keeps the number of the mark that HSETNX makes and a delivery moves. */
static void fake_keep_mark(struct fake *fake, const redisReply *command)
{
    const char *word = command->element[0]->str;
    if (strcmp(word, "HSETNX") == 0 && command->elements == 4) {
        (void)snprintf(fake->mark, sizeof(fake->mark), "%s", command->element[3]->str);
    } else if (strcmp(word, "EVALSHA") == 0 && command->elements > 3) {
        size_t at = 3 + (size_t)strtoul(command->element[2]->str, NULL, 10) + 2;
        if (at + 2 < command->elements && command->element[at]->str[0] != '\0') {
            (void)snprintf(fake->mark, sizeof(fake->mark), "%s", command->element[at + 2]->str);
        }
    }
}

static void fake_send_text(int fd, const char *text)
{
    char reply[128];
    (void)snprintf(reply, sizeof(reply), "$%zu\r\n%s\r\n", strlen(text), text);
    fake_send(fd, reply);
}

/* Names of memories: an entry has arrived before the second page. */
static void fake_send_page(int fd, bool first)
{
    int from = first ? 0 : FAKE_ROWS - 1;
    int until = first ? FAKE_ROWS : FAKE_ROWS + 1;
    char head[32];
    (void)snprintf(head, sizeof(head), "*%d\r\n", until - from);
    fake_send(fd, head);
    for (int i = from; i < until; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "memory:n%d", i);
        fake_send_text(fd, name);
    }
}

/* Memories of another program, whose source is their key. False: another command. */
static bool fake_send_rows(int fd, const redisReply *command)
{
    const char *word = command->element[0]->str;
    if (strncmp(word, "FT.", 3) == 0) {
        fake_send(fd, "-ERR unknown command\r\n");
    } else if (strcmp(word, "ZREVRANGEBYSCORE") == 0) {
        fake_send_page(fd, strcmp(command->element[5]->str, "0") == 0);
    } else if (strcmp(word, "HMGET") == 0) {
        fake_send(fd, "*5\r\n$5\r\nheron\r\n$-1\r\n$-1\r\n$-1\r\n$1\r\n1\r\n");
    } else if (strcmp(word, "HGETALL") == 0) {
        fake_send(fd, "*4\r\n$7\r\ncontent\r\n$5\r\nheron\r\n$6\r\nsource\r\n");
        fake_send_text(fd, command->element[1]->str);
    } else {
        return false;
    }
    return true;
}

/* Handles commands whose state the tests may set by themselves. False: another command. */
static bool fake_answer_known(struct fake *fake, int fd, const redisReply *command)
{
    const char *word = command->element[0]->str;
    const char *words = atomic_load(&fake->words);
    const char *walked = atomic_load(&fake->walked);
    if (strcmp(word, "HGET") == 0 && fake->mark[0] == '\0') {
        fake_send(fd, "$-1\r\n");
    } else if (strcmp(word, "HGET") == 0) {
        fake_send_text(fd, fake->mark);
    } else if (strcmp(word, "SCAN") == 0) {
        atomic_fetch_add(&fake->walks, 1);
        fake_send(fd, walked != NULL ? walked : "*2\r\n$1\r\n0\r\n*0\r\n");
    } else if (strcmp(word, "GET") == 0 && words != NULL) {
        fake_send_text(fd, words);
    } else {
        return atomic_load(&fake->has_rows) && fake_send_rows(fd, command);
    }
    return true;
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
    const char *text = atomic_load(&fake->text);
    bool good = mode == FAKE_TEXT && strchr(":*", text[0]) != NULL;
    bool answered = good && fake_answer_known(fake, fd, command);
    if (mode == FAKE_TEXT && !answered) {
        fake_keep_mark(fake, command);
        fake_send(fd, text);
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

void fake_start(struct fake *fake)
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

void fake_end(struct fake *fake)
{
    atomic_store(&fake->stop, true);
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    (void)close(fake->listener);
}

/* ---- the gateway ---- */

void open_gateway(struct fault_test *test, const char *timeout)
{
    const char *sets[] = {"plugins=notebook", "journal=redis", test->uri, timeout, NULL};
    harness_open(&test->harness, sets);
    test->journal = journal_vtable(test->harness.gateway->journal, &test->db);
}

int setup(void **state)
{
    struct fault_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    fake_start(&test->fake);
    (void)snprintf(test->uri, sizeof(test->uri), "redis.uri=redis://user:secret@127.0.0.1:%d/3",
                   test->fake.port);
    *state = test;
    return 0;
}

int teardown(void **state)
{
    struct fault_test *test = *state;
    harness_close(&test->harness);
    fake_end(&test->fake);
    free(test);
    return 0;
}

void expect_message(const struct call *call, const char *part)
{
    struct ng_str message = call->staged.message;
    if (memmem(message.data, message.len, part, strlen(part)) == NULL) {
        fail_msg("\"%.*s\" does not say \"%s\"", (int)message.len, message.data, part);
    }
    assert_null(memmem(message.data, message.len, "secret", strlen("secret")));
}

void expect_deliver(struct fault_test *test, int want, const char *part)
{
    struct ng_entry entry = journal_memory("shared", "e1", "text", 1);
    struct call *call = harness_new_call(&test->harness);
    assert_int_equal(harness_deliver(test->journal, test->db, call, &entry, 1), want);
    if (part != NULL) {
        expect_message(call, part);
    }
    call_unref(call);
}

void deliver_at_last(struct fault_test *test)
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

void expect_degraded(struct fault_test *test, bool want)
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
