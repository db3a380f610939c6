/* SPDX-License-Identifier: MIT */
/*
 * bare_http.c - the baseline for requests: libmicrohttpd with one epoll thread that reads the
 * request's body and answers a constant of SIZE bytes. Prints its port, serves until its
 * standard input ends.
 *
 *   bare_http SIZE
 */
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BARE_MEMORY ((size_t)16 * 1024)
#define BARE_CONNECTIONS 4096

static char *bare_text;
static size_t bare_size;

static enum MHD_Result bare_answer(void *cls, struct MHD_Connection *connection,
                                   const char *url, const char *method, const char *version,
                                   const char *upload, size_t *upload_size, void **state)
{
    static int seen;
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bare_size, bare_text, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

int main(int argc, char **argv)
{
    bare_size = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    bare_text = malloc(bare_size + 1);
    if (bare_text == NULL) {
        return 1;
    }
    memset(bare_text, 'x', bare_size);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, bare_answer, NULL, MHD_OPTION_SOCK_ADDR,
        &address, MHD_OPTION_CONNECTION_MEMORY_LIMIT, BARE_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
        BARE_CONNECTIONS, MHD_OPTION_END);
    if (daemon == NULL) {
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("%d\n", info->port);
    (void)fflush(stdout);
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
    MHD_stop_daemon(daemon);
    free(bare_text);
    return 0;
}
