/* SPDX-License-Identifier: MIT */
/* cluster_process.c - the processes of gateways: this one's name, and whether another runs. */
#include "cluster_state.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/store/store.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '-' || c == '_';
}

int cluster_process_open(struct cluster *cluster, struct call *call)
{
    char life[CLUSTER_LIFE_LEN + 1];
    if (gethostname(cluster->host, HOST_NAME_MAX) != 0) {
        cluster->host[0] = '\0';
    }
    size_t len = 0;
    while (is_plain(cluster->host[len])) {
        len++;
    }
    cluster->host[len] = '\0';
    if (!random_hex(CLUSTER_LIFE_LEN / 2, life)) {
        return call_fail(call, NG_EUNAVAILABLE, "the system gives no random numbers");
    }
    (void)snprintf(cluster->name, sizeof(cluster->name), "%s.%s", cluster->id, life);
    return NG_OK;
}

struct ng_str cluster_name(const struct cluster *cluster)
{
    if (cluster == NULL || !cluster->shared) {
        return str_make("", 0);
    }
    return ng_str_of(cluster->name);
}

/* Reads the document of a gateway that seems to be alive. */
static int find_process(struct cluster *cluster, struct call *call, struct ng_str id,
                        struct ng_str name, bool *ret_alive, struct ng_str *ret_where)
{
    const struct ng_doc *doc = NULL;
    struct ng_key key = cluster_key(id);
    int rc = store_get(cluster->gateway->store, call, &key, 0, &doc);
    if (rc != NG_OK || doc->revision == 0 || doc->deleted) {
        return rc;
    }
    *ret_alive = str_equal(json_text(json_get(doc->body, "name")), name);
    *ret_where = json_get_text(doc->body, "address");
    if (ret_where->len == 0) {
        *ret_where = json_get_text(doc->body, "host");
    }
    return NG_OK;
}

int cluster_find(struct cluster *cluster, struct call *call, struct ng_str name,
                 bool *ret_alive, struct ng_str *ret_where)
{
    *ret_alive = false;
    *ret_where = str_make(NULL, 0);
    if (cluster == NULL || !cluster->shared || name.len != CLUSTER_NAME_SIZE - 1 ||
        name.data[CLUSTER_ID_LEN] != '.' || !cluster_id_is_valid(name.data)) {
        return NG_OK;
    }
    struct ng_str id = str_make(name.data, CLUSTER_ID_LEN);
    if (str_is(id, cluster->id)) {
        *ret_alive = str_is(name, cluster->name);
        *ret_where = ng_str_of(cluster->host);
        return NG_OK;
    }
    int rc = NG_OK;
    if (!cluster_is_alive(cluster, id)) {
        struct ng_str *peers = NULL;
        size_t count = 0;
        rc = cluster_peers(cluster, call, &peers, &count);
    }
    if (rc != NG_OK || !cluster_is_alive(cluster, id)) {
        return rc;
    }
    return find_process(cluster, call, id, name, ret_alive, ret_where);
}
