/* SPDX-License-Identifier: MIT */
/*
 * load.c - an HTTP load generator for the benchmark: N keep-alive connections in one thread, as
 * fast as the server answers or at a given rate. Prints one JSON object. Latency at a given
 * rate counts from when a request was due.
 *
 *   load [-r RATE] [-c COUNT] [-n RANGE] [-i EVERY] HOST:PORT CONNECTIONS SECONDS
 *        REQUEST-FILE...
 *
 * -r so many requests a second in all; -c ends after so many; -i prints an object each so many
 * seconds, of that time alone. A request file holds one raw HTTP request; of several files the
 * connections take one each, in turn. "@@@@" in it becomes the connection's number in four
 * digits, "########" that of the request on its connection in eight, "%%%%%%%%" the same in
 * hundreds, "++++++++" that of the request among all, "~~~~~~~~" one by chance below RANGE.
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define REQUEST_MAX (4 * 1024 * 1024)
#define RESPONSE_MAX (16 * 1024 * 1024)
#define SAMPLES_MAX 4000000
#define EVENTS_MAX 256
#define MARK_LEN 8
#define MARKS_MAX 8
#define HUNDRED 100
#define NUMBER_END 100000000

/* Replacement of a mark in the request. */
enum mark_kind {
    MARK_OWN,
    MARK_HUNDREDS,
    MARK_ALL,
    MARK_CHANCE,
    MARK_KINDS,
};

static const char mark_texts[MARK_KINDS][MARK_LEN + 1] = {"########", "%%%%%%%%", "++++++++",
                                                          "~~~~~~~~"};

struct mark {
    enum mark_kind kind;
    size_t at;
};

struct connection {
    int fd;
    char *request;
    size_t request_len, sent;
    char *in;
    size_t in_len, in_cap;
    int64_t due_ns; /* when the running request should have begun */
    bool busy, writing;
    uint64_t number; /* of requests begun */
    struct mark marks[MARKS_MAX];
    size_t mark_count;
};

struct load {
    struct connection connections[CONNECTIONS_MAX];
    int count;
    int next; /* whose turn it is, where the rate is given */
    int epoll;
    int64_t end_ns, part_ns;
    uint64_t begun, done, begin_max; /* requests; no end where that is 0 */
    uint64_t range, chance;
    uint64_t answered, status_other;
    uint32_t *samples; /* microseconds */
    size_t sample_count;
    double rate;
    int64_t next_due_ns;
    int64_t interval_ns;
    int64_t every_ns; /* 0: one object, at the end */
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

static void connection_watch(struct load *load, struct connection *connection, bool writing)
{
    struct epoll_event event = {.events = writing ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = connection};
    if (connection->writing != writing &&
        epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->fd, &event) != 0) {
        die("epoll_ctl");
    }
    connection->writing = writing;
}

static void connection_send(struct load *load, struct connection *connection)
{
    while (connection->sent < connection->request_len) {
        ssize_t n = write(connection->fd, connection->request + connection->sent,
                          connection->request_len - connection->sent);
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n <= 0) {
            die("write");
        }
        connection->sent += (size_t)n;
    }
    connection_watch(load, connection, connection->sent < connection->request_len);
}

/* xorshift: the same numbers in every run */
static uint64_t load_chance(struct load *load)
{
    load->chance ^= load->chance << 13;
    load->chance ^= load->chance >> 7;
    load->chance ^= load->chance << 17;
    return load->chance % load->range;
}

static void connection_number(struct load *load, struct connection *connection)
{
    char digits[24];
    for (size_t i = 0; i < connection->mark_count; i++) {
        const struct mark *mark = &connection->marks[i];
        uint64_t number = mark->kind == MARK_OWN        ? connection->number
                          : mark->kind == MARK_HUNDREDS ? connection->number / HUNDRED
                          : mark->kind == MARK_ALL      ? load->begun
                                                        : load_chance(load);
        (void)snprintf(digits, sizeof(digits), "%08llu",
                       (unsigned long long)(number % NUMBER_END));
        memcpy(connection->request + mark->at, digits, MARK_LEN);
    }
    connection->number++;
    load->begun++;
}

static bool load_may_begin(const struct load *load)
{
    return load->begin_max == 0 || load->begun < load->begin_max;
}

static void connection_start(struct load *load, struct connection *connection, int64_t due)
{
    connection->busy = true;
    connection->due_ns = due;
    connection->sent = 0;
    connection->in_len = 0;
    connection_number(load, connection);
    connection_send(load, connection);
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
    load->done++;
    if (connection->in_len > 9 && memcmp(connection->in + 9, "200", 3) != 0) {
        if (load->status_other++ == 0) {
            const char *body = memmem(connection->in, connection->in_len, "\r\n\r\n", 4);
            fprintf(stderr, "load: %.3s %.300s\n", connection->in + 9,
                    body != NULL ? body + 4 : "");
        }
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

/* Returns the counts since the last call, and resets them. */
static void load_print(struct load *load, int64_t now)
{
    double seconds = (double)(now - load->part_ns) / 1e9;
    qsort(load->samples, load->sample_count, sizeof(*load->samples), sample_order);
    printf("{\"answered\":%llu,\"not_200\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"p50_ms\":%.3f,"
           "\"p99_ms\":%.3f,\"p999_ms\":%.3f}\n",
           (unsigned long long)load->answered, (unsigned long long)load->status_other, seconds,
           (double)load->answered / seconds, percentile(load, 0.5), percentile(load, 0.99),
           percentile(load, 0.999));
    (void)fflush(stdout);
    load->part_ns = now;
    load->answered = load->status_other = load->sample_count = 0;
}

/* Begins what is due, the connections taking turns; what finds none free is late, and counts
 * so. */
static void load_pace(struct load *load, int64_t now)
{
    for (int i = 0; i < load->count && load->next_due_ns <= now && load_may_begin(load); i++) {
        struct connection *connection = &load->connections[load->next];
        load->next = (load->next + 1) % load->count;
        if (!connection->busy) {
            connection_start(load, connection, load->next_due_ns);
            load->next_due_ns += load->interval_ns;
        }
    }
}

/* Until an answer, the next request that is due, or the next object to print. */
static int load_wait(struct load *load, struct epoll_event *events, int64_t now)
{
    int64_t until = load->end_ns;
    if (load->every_ns > 0 && load->part_ns + load->every_ns < until) {
        until = load->part_ns + load->every_ns;
    }
    /* One that was due and found no free connection waits for an answer, not for the clock. */
    if (load->rate > 0 && load->next_due_ns > now && load->next_due_ns < until) {
        until = load->next_due_ns;
    }
    int64_t left = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000),
                               .tv_nsec = (long)(left % 1000000000)};
    return epoll_pwait2(load->epoll, events, EVENTS_MAX, &timeout, NULL);
}

static void connection_ready(struct load *load, struct connection *connection, uint32_t events)
{
    if ((events & EPOLLOUT) != 0) {
        connection_send(load, connection);
    }
    if ((events & ~(uint32_t)EPOLLOUT) != 0) {
        connection_read(load, connection);
    }
    if (!connection->busy && load->rate == 0 && load_may_begin(load)) {
        connection_start(load, connection, now_ns());
    }
}

static void load_run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    load->next_due_ns = now_ns();
    for (int i = 0; i < load->count && load->rate == 0 && load_may_begin(load); i++) {
        connection_start(load, &load->connections[i], now_ns());
    }
    for (;;) {
        int64_t now = now_ns();
        if (load->every_ns > 0 && now >= load->part_ns + load->every_ns) {
            load_print(load, now);
        }
        if (now >= load->end_ns || (load->begin_max > 0 && load->done >= load->begin_max)) {
            return;
        }
        if (load->rate > 0) {
            load_pace(load, now);
        }
        int n = load_wait(load, events, now_ns());
        for (int i = 0; i < n; i++) {
            connection_ready(load, events[i].data.ptr, events[i].events);
        }
    }
}

static void find_marks(struct connection *connection)
{
    for (size_t kind = 0; kind < MARK_KINDS; kind++) {
        const char *at = connection->request;
        const char *end = at + connection->request_len;
        while (connection->mark_count < MARKS_MAX &&
               (at = memmem(at, (size_t)(end - at), mark_texts[kind], MARK_LEN)) != NULL) {
            connection->marks[connection->mark_count++] =
                (struct mark){(enum mark_kind)kind, (size_t)(at - connection->request)};
            at += MARK_LEN;
        }
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

static bool load_options(struct load *load, int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "r:c:n:i:")) != -1) {
        switch (option) {
        case 'r':
            load->rate = strtod(optarg, NULL);
            break;
        case 'c':
            load->begin_max = strtoull(optarg, NULL, 10);
            break;
        case 'n':
            load->range = strtoull(optarg, NULL, 10);
            break;
        case 'i':
            load->every_ns = (int64_t)(strtod(optarg, NULL) * 1e9);
            break;
        default:
            return false;
        }
    }
    load->interval_ns = load->rate > 0 ? (int64_t)(1e9 / load->rate) : 0;
    return argc - optind >= 4 && load->range > 0;
}

static bool read_address(char *text, struct sockaddr_in *ret_address)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return false;
    }
    *colon = '\0';
    *ret_address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    return inet_pton(AF_INET, text, &ret_address->sin_addr) == 1;
}

int main(int argc, char **argv)
{
    static struct load load = {.range = 1, .chance = 88172645463325252};
    struct sockaddr_in address;
    if (!load_options(&load, argc, argv) || !read_address(argv[optind], &address)) {
        fprintf(stderr, "usage: load [-r RATE] [-c COUNT] [-n RANGE] [-i EVERY] HOST:PORT "
                        "CONNECTIONS SECONDS REQUEST-FILE...\n");
        return 2;
    }
    /* Requests that are due in microseconds are not to wait for the timer's slack. */
    (void)prctl(PR_SET_TIMERSLACK, 1);
    load.count = (int)strtol(argv[optind + 1], NULL, 10);
    load.samples = malloc(SAMPLES_MAX * sizeof(*load.samples));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load.count < 1 || load.count > CONNECTIONS_MAX || load.samples == NULL ||
        load.epoll < 0) {
        return 2;
    }
    int files = argc - optind - 3;
    for (int i = 0; i < load.count; i++) {
        struct connection *connection = &load.connections[i];
        size_t len = 0;
        char *text = read_file(argv[optind + 3 + i % files], &len);
        connection_open(&load, connection, &address);
        connection->request = request_for(text, len, i);
        connection->request_len = len;
        find_marks(connection);
        free(text);
    }
    load.part_ns = now_ns();
    load.end_ns = load.part_ns + (int64_t)(strtod(argv[optind + 2], NULL) * 1e9);
    load_run(&load);
    if (load.every_ns == 0 || load.answered > 0) {
        load_print(&load, now_ns());
    }
    return 0;
}
