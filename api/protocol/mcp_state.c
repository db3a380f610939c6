/* SPDX-License-Identifier: MIT */
/* mcp_state.c - sealing: version, expiry and payload, with an HMAC over these and over their
 * binding, as one base64url text. */
#include "mcp_state.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/files/private_file.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text/random.h"
#include "core/base/text/sha256.h"
#include "core/cluster/cluster.h"

/* The end of life is in the gateway's clock, or in the minutes of the shared database. */
#define SEAL_VERSION 1
#define SEAL_VERSION_SHARED 2
#define SEAL_MINUTE_MS 60000
/* Version and the end of life before the payload, the HMAC behind it. */
#define SEAL_HEAD 9
#define SEAL_MAC 32

struct mcp_seal {
    unsigned char key[MCP_SEAL_KEY_BYTES];
    struct cluster *cluster; /* not NULL: the key is made of its secret instead */
};

/* ---- the key ---- */

/* NG_OK; NG_ENOTFOUND: there is none, or it is cut short. */
static int read_key(const char *path, unsigned char key[MCP_SEAL_KEY_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (errno == ENOENT) {
            return NG_ENOTFOUND;
        }
        return NG_EINTERNAL;
    }
    size_t got = 0;
    int rc = fd_get(&fd, (char *)key, MCP_SEAL_KEY_BYTES, &got);
    (void)close(fd);
    if (rc == NG_OK && got < MCP_SEAL_KEY_BYTES) {
        return NG_ENOTFOUND;
    }
    return rc;
}

/* Written to a temporary file and renamed, so that readers see a whole key. */
static int store_key(const char *path, const unsigned char *key)
{
    struct private_file aside;
    if (private_file_make(path, &aside) != NG_OK) {
        return NG_EINTERNAL;
    }
    bool written = fd_put(aside.fd, str_make((const char *)key, MCP_SEAL_KEY_BYTES)) == NG_OK &&
                   fsync(aside.fd) == 0;
    written = close(aside.fd) == 0 && written;
    if (!written || rename(aside.path, path) != 0) {
        (void)unlink(aside.path);
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int mcp_seal_new(const char *data_dir, struct mcp_seal **ret)
{
    struct mcp_seal *seal = alloc_zeroed(1, sizeof(*seal));
    char path[PATH_MAX];
    int rc = NG_ENOTFOUND;
    if (seal == NULL) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_ENOTFOUND && data_dir != NULL) {
        int len = snprintf(path, sizeof(path), "%s/" MCP_SEAL_KEY_NAME, data_dir);
        if (len < 0 || (size_t)len >= sizeof(path)) {
            rc = NG_EINTERNAL;
        } else {
            rc = read_key(path, seal->key);
        }
    }
    if (rc == NG_ENOTFOUND) {
        rc = random_bytes(seal->key, sizeof(seal->key)) ? NG_OK : NG_EINTERNAL;
        if (rc == NG_OK && data_dir != NULL) {
            rc = store_key(path, seal->key);
        }
    }
    if (rc != NG_OK) {
        mcp_seal_free(seal);
        return NG_EINTERNAL;
    }
    *ret = seal;
    return NG_OK;
}

void mcp_seal_share(struct mcp_seal *seal, struct cluster *cluster)
{
    seal->cluster = cluster_is_shared(cluster) ? cluster : NULL;
}

void mcp_seal_free(struct mcp_seal *seal)
{
    if (seal != NULL) {
        OPENSSL_cleanse(seal, sizeof(*seal));
        free(seal);
    }
}

/* ---- hashes ---- */

static void put_u64(unsigned char out[8], uint64_t number)
{
    number = htobe64(number);
    memcpy(out, &number, sizeof(number));
}

static uint64_t get_u64(const unsigned char in[8])
{
    uint64_t number;
    memcpy(&number, in, sizeof(number));
    return be64toh(number);
}

int mcp_binding_make(const struct ng_str *pieces, size_t count, struct mcp_binding *ret)
{
    struct sha256 *hash = sha256_new();
    bool ok = hash != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        unsigned char len[8];
        put_u64(len, pieces[i].len);
        ok = sha256_add(hash, str_make((const char *)len, sizeof(len))) == NG_OK &&
             sha256_add(hash, pieces[i]) == NG_OK;
    }
    int rc = NG_EINTERNAL;
    if (ok) {
        rc = sha256_now(hash, ret->bytes);
    }
    sha256_free(hash);
    return rc;
}

/* NG_OK; NG_EUNAVAILABLE: the secret was not read from the database yet. */
static int get_key(const struct mcp_seal *seal, unsigned char key[MCP_SEAL_KEY_BYTES])
{
    static const unsigned char purpose[] = "mcp requestState";
    char secret[CLUSTER_SECRET_LEN + 1];
    unsigned len = 0;
    if (seal->cluster == NULL) {
        memcpy(key, seal->key, MCP_SEAL_KEY_BYTES);
        return NG_OK;
    }
    if (!cluster_secret(seal->cluster, secret)) {
        return NG_EUNAVAILABLE;
    }
    bool made = HMAC(EVP_sha256(), secret, CLUSTER_SECRET_LEN, purpose, sizeof(purpose) - 1,
                     key, &len) != NULL;
    OPENSSL_cleanse(secret, sizeof(secret));
    if (made) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

/* The binding and the sealed bytes as one text, so that one HMAC is enough. */
static int make_mac(const struct mcp_seal *seal, const struct mcp_binding *binding,
                    const unsigned char *bytes, size_t len, unsigned char mac[SEAL_MAC])
{
    unsigned char key[MCP_SEAL_KEY_BYTES];
    unsigned mac_len = 0;
    int rc = get_key(seal, key);
    if (rc != NG_OK) {
        return rc;
    }
    unsigned char *text = alloc_bytes(sizeof(binding->bytes) + len);
    if (text == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(text, binding->bytes, sizeof(binding->bytes));
    memcpy(text + sizeof(binding->bytes), bytes, len);
    bool ok = HMAC(EVP_sha256(), key, sizeof(key), text, sizeof(binding->bytes) + len, mac,
                   &mac_len) != NULL &&
              mac_len == SEAL_MAC;
    free(text);
    OPENSSL_cleanse(key, sizeof(key));
    if (ok) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

/* ---- sealing ---- */

/* Clocks of gateways may differ; what one sealed another one opens. */
static uint64_t time_of(const struct mcp_seal *seal, int64_t now_ms)
{
    if (seal->cluster != NULL) {
        return cluster_minutes(seal->cluster) * SEAL_MINUTE_MS;
    }
    return (uint64_t)now_ms;
}

static unsigned char version_of(const struct mcp_seal *seal)
{
    if (seal->cluster != NULL) {
        return SEAL_VERSION_SHARED;
    }
    return SEAL_VERSION;
}

int mcp_seal_close(const struct mcp_seal *seal, const struct mcp_binding *binding,
                   int64_t now_ms, struct ng_str payload, struct buf *out)
{
    if (payload.len > MCP_SEAL_PAYLOAD_MAX) {
        return NG_ETOOLARGE;
    }
    size_t len = SEAL_HEAD + payload.len;
    unsigned char *bytes = alloc_bytes(len + SEAL_MAC);
    if (bytes == NULL) {
        return NG_EINTERNAL;
    }
    bytes[0] = version_of(seal);
    put_u64(bytes + 1, time_of(seal, now_ms) + MCP_SEAL_LIFE_MS);
    if (payload.len > 0) {
        memcpy(bytes + SEAL_HEAD, payload.data, payload.len);
    }
    int rc = make_mac(seal, binding, bytes, len, bytes + len);
    if (rc == NG_OK) {
        base64_encode(out, str_make((const char *)bytes, len + SEAL_MAC), BASE64_URL);
        rc = out->rc;
    }
    free(bytes);
    return rc;
}

static int refuse(const char **ret_why, const char *why)
{
    *ret_why = why;
    return NG_EINVAL;
}

int mcp_seal_open(const struct mcp_seal *seal, const struct mcp_binding *binding,
                  int64_t now_ms, struct ng_str text, struct arena *arena, struct ng_str *ret,
                  const char **ret_why)
{
    static const char altered[] = "is not the state that this gateway returned for this "
                                  "request: it was altered, or belongs to another caller or to "
                                  "other arguments; send the request without it to start again";
    unsigned char mac[SEAL_MAC];
    struct ng_str sealed = {NULL, 0};
    size_t most = SEAL_HEAD + MCP_SEAL_PAYLOAD_MAX + SEAL_MAC;
    if (text.len <= most * 2 &&
        base64_decode_in(arena, text, BASE64_URL, &sealed) == NG_EINTERNAL) {
        *ret_why = "could not be read: the gateway ran out of memory";
        return NG_EINTERNAL;
    }
    if (sealed.len < SEAL_HEAD + SEAL_MAC || sealed.len > most) {
        return refuse(ret_why, altered);
    }
    const unsigned char *bytes = (const unsigned char *)sealed.data;
    size_t body = sealed.len - SEAL_MAC;
    int rc = make_mac(seal, binding, bytes, body, mac);
    if (rc == NG_EUNAVAILABLE) {
        *ret_why = "cannot be checked yet: the gateway has not reached its database; try again";
        return rc;
    }
    if (rc != NG_OK || CRYPTO_memcmp(mac, bytes + body, SEAL_MAC) != 0 ||
        bytes[0] != version_of(seal)) {
        return refuse(ret_why, altered);
    }
    if (get_u64(bytes + 1) <= time_of(seal, now_ms)) {
        return refuse(ret_why, "has expired; send the request without it to start again");
    }
    *ret = str_make((const char *)bytes + SEAL_HEAD, body - SEAL_HEAD);
    return NG_OK;
}
