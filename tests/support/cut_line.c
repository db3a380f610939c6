/* SPDX-License-Identifier: MIT */
/* cut_line.c - one thread that carries bytes between clients and a server until it is to stop.
 */
#include "cut_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 64
#define PIECE ((size_t)64 * 1024)
#define STEP_MS 20

/* One client, and what of its present message has come. */
struct pair {
    int client, server;
    char *held;
    size_t len, cap;
};

struct cut_line {
    int listener, port, server_port;
    size_t passes;
    cut_counts_fn *counts;
    pthread_t thread;
    atomic_bool stopping, cut;
    struct pair pairs[PAIRS_MAX];
    size_t count;
};

static struct sockaddr_in local_address(int port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    return address;
}

static void pair_close(struct cut_line *line, size_t at)
{
    struct pair *pair = &line->pairs[at];
    (void)close(pair->client);
    (void)close(pair->server);
    free(pair->held);
    line->pairs[at] = line->pairs[--line->count];
}

static void line_accept(struct cut_line *line)
{
    struct sockaddr_in address = local_address(line->server_port);
    int client = accept(line->listener, NULL, NULL);
    int server = client < 0 ? -1 : socket(AF_INET, SOCK_STREAM, 0);
    if (server >= 0 && line->count < PAIRS_MAX &&
        connect(server, (struct sockaddr *)&address, sizeof(address)) == 0) {
        line->pairs[line->count++] = (struct pair){.client = client, .server = server};
        return;
    }
    if (client >= 0) {
        (void)close(client);
    }
    if (server >= 0) {
        (void)close(server);
    }
}

static bool send_all(int to, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(to, data, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        data += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool carry_answer(struct pair *pair)
{
    char piece[PIECE];
    ssize_t got = recv(pair->server, piece, sizeof(piece), 0);
    return got > 0 && send_all(pair->client, piece, (size_t)got);
}

/* Whole messages go on; a message begins with its length. */
static bool carry_messages(struct cut_line *line, struct pair *pair)
{
    if (pair->cap - pair->len < PIECE) {
        char *grown = realloc(pair->held, pair->len + 2 * PIECE);
        if (grown == NULL) {
            return false;
        }
        pair->held = grown;
        pair->cap = pair->len + 2 * PIECE;
    }
    ssize_t got = recv(pair->client, pair->held + pair->len, PIECE, 0);
    if (got <= 0) {
        return false;
    }
    pair->len += (size_t)got;
    for (;;) {
        uint32_t size = 0;
        if (pair->len < sizeof(size)) {
            return true;
        }
        memcpy(&size, pair->held, sizeof(size));
        if (pair->len < size) {
            return true;
        }
        if (line->counts(pair->held, size) && line->passes-- == 0) {
            atomic_store(&line->cut, true);
            return false;
        }
        if (!send_all(pair->server, pair->held, size)) {
            return false;
        }
        pair->len -= size;
        memmove(pair->held, pair->held + size, pair->len);
    }
}

static void line_step(struct cut_line *line)
{
    struct pollfd polls[1 + 2 * PAIRS_MAX];
    size_t count = line->count;
    polls[0] = (struct pollfd){.fd = line->listener, .events = POLLIN};
    for (size_t i = 0; i < count; i++) {
        polls[1 + 2 * i] = (struct pollfd){.fd = line->pairs[i].client, .events = POLLIN};
        polls[2 + 2 * i] = (struct pollfd){.fd = line->pairs[i].server, .events = POLLIN};
    }
    if (poll(polls, 1 + 2 * count, STEP_MS) <= 0) {
        return;
    }
    for (size_t i = count; i-- > 0 && !atomic_load(&line->cut);) {
        struct pair *pair = &line->pairs[i];
        bool good = polls[2 + 2 * i].revents == 0 || carry_answer(pair);
        good = good && (polls[1 + 2 * i].revents == 0 || carry_messages(line, pair));
        if (!good) {
            pair_close(line, i);
        }
    }
    if (polls[0].revents != 0) {
        line_accept(line);
    }
}

static void *line_main(void *user)
{
    struct cut_line *line = user;
    while (!atomic_load(&line->stopping) && !atomic_load(&line->cut)) {
        line_step(line);
    }
    while (line->count > 0) {
        pair_close(line, 0);
    }
    (void)close(line->listener);
    return NULL;
}

struct cut_line *cut_line_new(int server_port, size_t passes, cut_counts_fn *counts)
{
    struct sockaddr_in address = local_address(0);
    socklen_t len = sizeof(address);
    struct cut_line *line = calloc(1, sizeof(*line));
    if (line == NULL) {
        return NULL;
    }
    line->server_port = server_port;
    line->passes = passes;
    line->counts = counts;
    line->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (line->listener < 0 ||
        bind(line->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(line->listener, PAIRS_MAX) != 0 ||
        getsockname(line->listener, (struct sockaddr *)&address, &len) != 0 ||
        pthread_create(&line->thread, NULL, line_main, line) != 0) {
        free(line);
        return NULL;
    }
    line->port = ntohs(address.sin_port);
    return line;
}

int cut_line_port(const struct cut_line *line)
{
    return line->port;
}

bool cut_line_free(struct cut_line *line)
{
    atomic_store(&line->stopping, true);
    (void)pthread_join(line->thread, NULL);
    bool cut = atomic_load(&line->cut);
    free(line);
    return cut;
}
