/* SPDX-License-Identifier: MIT */
/* client.c - the module client.so: one HTTP request. The only user of
 * libcurl. */
#include "client.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#define CLIENT_NAME_MAX 64
#define CLIENT_URL_MAX 4096

struct client_state {
    const struct client_request *request;
    CURL *curl;
};

static int client_status(struct client_state *state)
{
    long status = 0;
    (void)curl_easy_getinfo(state->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t client_take_body(char *data, size_t size, size_t count, void *user)
{
    struct client_state *state = user;
    size_t len = size * count;
    const struct client_request *request = state->request;
    int rc = 0;
    if (request->on_body != NULL) {
        rc = request->on_body(request->user, client_status(state), data, len);
    }
    if (rc == 0) {
        return len;
    }
    return len + 1;
}

static size_t client_take_header(char *data, size_t size, size_t count, void *user)
{
    struct client_state *state = user;
    size_t len = size * count;
    const char *colon = memchr(data, ':', len);
    char name[CLIENT_NAME_MAX];
    if (state->request->on_header == NULL || colon == NULL ||
        (size_t)(colon - data) >= sizeof(name)) {
        return len;
    }
    size_t name_len = (size_t)(colon - data);
    for (size_t i = 0; i < name_len; i++) {
        name[i] = (char)tolower((unsigned char)data[i]);
    }
    name[name_len] = '\0';
    struct ng_str value = {colon + 1, len - name_len - 1};
    while (value.len > 0 && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.len--;
    }
    while (value.len > 0 && strchr(" \t\r\n", value.data[value.len - 1]) != NULL) {
        value.len--;
    }
    state->request->on_header(state->request->user, name, value);
    return len;
}

static int client_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct client_state *state = user;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return state->request->stop != NULL && atomic_load(state->request->stop);
}

static bool client_set_options(struct client_state *state, struct curl_slist *headers,
                               const char *url)
{
    CURL *curl = state->curl;
    const struct client_request *request = state->request;
    bool ok = curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK;
    if (ok && request->socket_path != NULL) {
        ok = curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request->socket_path) == CURLE_OK;
    }
    ok = ok && curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->wait_ms) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_USERAGENT, CLIENT_NAME) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, client_take_body) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_WRITEDATA, state) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, client_take_header) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_HEADERDATA, state) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, client_progress) == CURLE_OK;
    ok = ok && curl_easy_setopt(curl, CURLOPT_XFERINFODATA, state) == CURLE_OK;
    if (ok && request->body.data != NULL) {
        ok = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                              (curl_off_t)request->body.len) == CURLE_OK &&
             curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data) == CURLE_OK;
    }
    return ok;
}

static const char *client_where(const struct client_state *state)
{
    const struct client_request *request = state->request;
    return request->socket_path != NULL ? request->socket_path : request->address;
}

static enum client_outcome client_perform(struct client_state *state, int *ret_status,
                                          char *error, size_t error_size)
{
    CURLcode rc = curl_easy_perform(state->curl);
    *ret_status = client_status(state);
    if (rc == CURLE_OK) {
        return CLIENT_OK;
    }
    if (rc == CURLE_WRITE_ERROR || rc == CURLE_ABORTED_BY_CALLBACK) {
        (void)snprintf(error, error_size, "the request was stopped");
        return CLIENT_STOPPED;
    }
    if (rc == CURLE_COULDNT_CONNECT) {
        (void)snprintf(error, error_size, "no gateway answers at %s", client_where(state));
        return CLIENT_NOBODY;
    }
    (void)snprintf(error, error_size, "the gateway at %s broke off: %s", client_where(state),
                   curl_easy_strerror(rc));
    return CLIENT_BROKEN;
}

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t client_once = PTHREAD_ONCE_INIT;

static void client_start(void)
{
    (void)curl_global_init(CURL_GLOBAL_NOTHING);
}

static enum client_outcome client_send(const struct client_request *request, int *ret_status,
                                       char *error, size_t error_size)
{
    struct client_state state = {request, NULL};
    struct curl_slist *headers = NULL;
    char url[CLIENT_URL_MAX];
    enum client_outcome rc = CLIENT_BROKEN;
    *ret_status = 0;
    (void)pthread_once(&client_once, client_start);
    (void)snprintf(error, error_size, "out of memory");
    int len =
        snprintf(url, sizeof(url), "http://%s%s",
                 request->socket_path != NULL ? "localhost" : request->address, request->path);
    if (len < 0 || (size_t)len >= sizeof(url)) {
        (void)snprintf(error, error_size, "the request's path is too long");
        return CLIENT_BROKEN;
    }
    /* curl would wait a second for the "100 Continue" of large bodies. */
    headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; headers != NULL && i < request->header_count; i++) {
        struct curl_slist *longer = curl_slist_append(headers, request->headers[i]);
        if (longer == NULL) {
            goto out;
        }
        headers = longer;
    }
    state.curl = curl_easy_init();
    if (headers == NULL || state.curl == NULL || !client_set_options(&state, headers, url)) {
        goto out;
    }
    rc = client_perform(&state, ret_status, error, error_size);
out:
    curl_slist_free_all(headers);
    if (state.curl != NULL) {
        curl_easy_cleanup(state.curl);
    }
    return rc;
}

__attribute__((visibility("default"))) extern const struct client_api notegate_client;
const struct client_api notegate_client = {CLIENT_API, client_send};
