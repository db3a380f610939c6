/* SPDX-License-Identifier: MIT */
/*
 * load.c - an HTTP load generator for the benchmark: N keep-alive connections in one thread, as
 * fast as the server answers or at a given rate. Prints one JSON object. Latency at a given
 * rate counts from when a request was due.
 *
 *   load HOST:PORT CONNECTIONS SECONDS REQUEST-FILE [RATE]
 *
 * The request file holds one raw HTTP request; "@@@@" in it becomes the connection's number in
 * four digits, "########" that of the request on its connection in eight.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define REQUEST_MAX (1024 * 1024)
#define RESPONSE_MAX (16 * 1024 * 1024)
#define SAMPLES_MAX 4000000
#define EVENTS_MAX 256
#define MARK "########"
#define MARK_LEN 8
#define MARKS_MAX 4

struct connection {
    int fd;
    char *request;
    size_t request_len, sent;
    char *in;
    size_t in_len, in_cap;
    int64_t due_ns; /* when the running request should have begun */
    bool busy;
    unsigned number;                     /* of requests begun */
    size_t marks[MARKS_MAX], mark_count; /* where it goes in the request */
};

struct load {
    struct connection connections[CONNECTIONS_MAX];
    int count;
    int epoll;
    int64_t end_ns;
    uint64_t answered, failed, status_other;
    uint32_t *samples; /* microseconds */
    size_t sample_count;
    double rate;
    int64_t next_due_ns;
    double interval_ns;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(REQUEST_MAX);
    if (file == NULL || data == NULL) {
        die(path);
    }
    *ret_len = fread(data, 1, REQUEST_MAX, file);
    (void)fclose(file);
    return data;
}

static void connection_open(struct load *load, struct connection *connection,
                            const struct sockaddr_in *address)
{
    int one = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 ||
        connect(connection->fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        die("connect");
    }
    (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        die("epoll_ctl");
    }
    connection->in_cap = 65536;
    connection->in = malloc(connection->in_cap);
    if (connection->in == NULL) {
        die("malloc");
    }
}

static void connection_send(struct connection *connection)
{
    while (connection->sent < connection->request_len) {
        ssize_t n = write(connection->fd, connection->request + connection->sent,
                          connection->request_len - connection->sent);
        if (n < 0 && errno == EAGAIN) {
            continue; /* small requests: the socket takes them at once */
        }
        if (n <= 0) {
            die("write");
        }
        connection->sent += (size_t)n;
    }
}

static void connection_number(struct connection *connection)
{
    char digits[16];
    (void)snprintf(digits, sizeof(digits), "%08u", connection->number++ % 100000000);
    for (size_t i = 0; i < connection->mark_count; i++) {
        memcpy(connection->request + connection->marks[i], digits, MARK_LEN);
    }
}

static void connection_start(struct connection *connection, int64_t due)
{
    connection->busy = true;
    connection->due_ns = due;
    connection->sent = 0;
    connection->in_len = 0;
    connection_number(connection);
    connection_send(connection);
}

/* Length of the whole response in the buffer, 0 if more is to come. */
static size_t response_length(const struct connection *connection)
{
    const char *end = memmem(connection->in, connection->in_len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    size_t head = (size_t)(end - connection->in) + 4;
    size_t body = 0;
    bool sized = false;
    for (const char *at = connection->in; at < end; at++) {
        if ((at[0] == '\n') && strncasecmp(at + 1, "content-length:", 15) == 0) {
            body = strtoul(at + 16, NULL, 10);
            sized = true;
            break;
        }
    }
    if (!sized) { /* in chunks, the last of which is empty; one request at a time */
        size_t len = connection->in_len;
        return len >= head + 5 && memcmp(connection->in + len - 5, "0\r\n\r\n", 5) == 0 ? len
                                                                                        : 0;
    }
    return connection->in_len >= head + body ? head + body : 0;
}

static void connection_answered(struct load *load, struct connection *connection)
{
    int64_t took = now_ns() - connection->due_ns;
    load->answered++;
    if (connection->in_len > 9 && memcmp(connection->in + 9, "200", 3) != 0) {
        load->status_other++;
    }
    if (load->sample_count < SAMPLES_MAX) {
        load->samples[load->sample_count++] = (uint32_t)(took / 1000);
    }
    connection->busy = false;
}

static void connection_read(struct load *load, struct connection *connection)
{
    if (connection->in_cap - connection->in_len < 16384) {
        connection->in_cap *= 2;
        char *in = connection->in_cap > RESPONSE_MAX
                       ? NULL
                       : realloc(connection->in, connection->in_cap);
        if (in == NULL) {
            die("response too large");
        }
        connection->in = in;
    }
    ssize_t n = read(connection->fd, connection->in + connection->in_len,
                     connection->in_cap - connection->in_len - 1);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        fprintf(stderr, "load: the server closed a connection\n");
        exit(1);
    }
    connection->in_len += (size_t)n;
    connection->in[connection->in_len] = '\0';
    if (response_length(connection) > 0) {
        connection_answered(load, connection);
    }
}

static void load_pace(struct load *load, int64_t now)
{
    for (int i = 0; i < load->count && load->next_due_ns <= now; i++) {
        if (!load->connections[i].busy) {
            connection_start(&load->connections[i], load->next_due_ns);
            load->next_due_ns += (int64_t)load->interval_ns;
        }
    }
}

static void load_run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    load->next_due_ns = now_ns();
    for (int i = 0; i < load->count && load->rate == 0; i++) {
        connection_start(&load->connections[i], now_ns());
    }
    for (;;) {
        int64_t now = now_ns();
        if (now >= load->end_ns) {
            return;
        }
        if (load->rate > 0) {
            load_pace(load, now);
        }
        int n = epoll_wait(load->epoll, events, EVENTS_MAX, load->rate > 0 ? 0 : 100);
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            connection_read(load, connection);
            if (!connection->busy && load->rate == 0) {
                connection_start(connection, now_ns());
            }
        }
    }
}

static int sample_order(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static double percentile(const struct load *load, double share)
{
    if (load->sample_count == 0) {
        return 0;
    }
    size_t at = (size_t)(share * (double)(load->sample_count - 1));
    return (double)load->samples[at] / 1000.0;
}

static void find_marks(struct connection *connection)
{
    const char *at = connection->request;
    const char *end = at + connection->request_len;
    while (connection->mark_count < MARKS_MAX &&
           (at = memmem(at, (size_t)(end - at), MARK, MARK_LEN)) != NULL) {
        connection->marks[connection->mark_count++] = (size_t)(at - connection->request);
        at += MARK_LEN;
    }
}

static char *request_for(const char *text, size_t len, int number)
{
    char *copy = malloc(len + 1);
    char digits[16];
    if (copy == NULL) {
        die("malloc");
    }
    memcpy(copy, text, len);
    (void)snprintf(digits, sizeof(digits), "%04d", number);
    for (char *at = copy; (at = memmem(at, len - (size_t)(at - copy), "@@@@", 4)) != NULL;) {
        memcpy(at, digits, 4);
    }
    return copy;
}

int main(int argc, char **argv)
{
    static struct load load;
    if (argc < 5) {
        fprintf(stderr, "usage: load HOST:PORT CONNECTIONS SECONDS REQUEST-FILE [RATE]\n");
        return 2;
    }
    char *colon = strrchr(argv[1], ':');
    if (colon == NULL) {
        return 2;
    }
    *colon = '\0';
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
        return 2;
    }
    size_t len = 0;
    char *text = read_file(argv[4], &len);
    load.count = (int)strtol(argv[2], NULL, 10);
    load.rate = argc > 5 ? strtod(argv[5], NULL) : 0;
    load.interval_ns = load.rate > 0 ? 1e9 / load.rate : 0;
    load.samples = malloc(SAMPLES_MAX * sizeof(*load.samples));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load.count < 1 || load.count > CONNECTIONS_MAX || load.samples == NULL ||
        load.epoll < 0) {
        return 2;
    }
    for (int i = 0; i < load.count; i++) {
        connection_open(&load, &load.connections[i], &address);
        load.connections[i].request = request_for(text, len, i);
        load.connections[i].request_len = len;
        find_marks(&load.connections[i]);
    }
    int64_t start = now_ns();
    load.end_ns = start + (int64_t)(strtod(argv[3], NULL) * 1e9);
    load_run(&load);
    double seconds = (double)(now_ns() - start) / 1e9;
    qsort(load.samples, load.sample_count, sizeof(*load.samples), sample_order);
    printf("{\"answered\":%llu,\"not_200\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"p50_ms\":%.3f,"
           "\"p99_ms\":%.3f,\"p999_ms\":%.3f}\n",
           (unsigned long long)load.answered, (unsigned long long)load.status_other, seconds,
           (double)load.answered / seconds, percentile(&load, 0.5), percentile(&load, 0.99),
           percentile(&load, 0.999));
    return 0;
}
