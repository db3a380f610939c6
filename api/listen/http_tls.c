/* SPDX-License-Identifier: MIT */
/* http_tls.c - reading, checking and handing out the certificate and key of TLS. The only user
 * of GnuTLS. */
#include "http_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/base/text/sha256.h"

#define KEY_ID_BYTES 64
#define HOUR_S 3600
/* Shorter than what a certificate that is renewed by itself has left. */
#define EXPIRES_SOON_S (3 * 24 * HOUR_S)

struct http_tls_pair {
    struct http_tls_pair *older;
    gnutls_pcert_st chain[HTTP_TLS_CHAIN_MAX];
    unsigned chain_len;
    gnutls_privkey_t key;
    time_t valid_from, valid_until;
    unsigned char digests[2][SHA256_BYTES]; /* to see whether a reload brings something new */
};

/* The two files, while a pair is made of them. */
struct pem {
    const char *certificate, *key; /* paths */
    struct buf certificate_text, key_text;
};

struct http_tls {
    /* The newest first. The older ones stay: a handshake may have one in its hands, and nothing
     * tells when it lets go. */
    _Atomic(struct http_tls_pair *) pair;
    unsigned pairs;
};

/* The text of a key is a secret: its memory does not keep it. */
static void forget(struct buf *text)
{
    if (text->data != NULL) {
        explicit_bzero(text->data, text->cap);
    }
    buf_done(text);
}

static void pair_free(struct http_tls_pair *pair)
{
    if (pair == NULL) {
        return;
    }
    for (unsigned i = 0; i < pair->chain_len; i++) {
        gnutls_pcert_deinit(&pair->chain[i]);
    }
    if (pair->key != NULL) {
        gnutls_privkey_deinit(pair->key);
    }
    free(pair);
}

static int read_file(const char *option, const char *path, struct buf *ret, struct buf *error)
{
    char reason[128];
    char part[4096];
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    /* All room at once: growing would leave copies of the key behind. */
    int rc = NG_OK;
    if (buf_reserve(ret, HTTP_TLS_FILE_MAX + sizeof(part)) == NULL) {
        rc = NG_EINTERNAL;
    }
    while (fd >= 0 && rc == NG_OK && (got = read(fd, part, sizeof(part))) > 0) {
        if (ret->len + (size_t)got > HTTP_TLS_FILE_MAX) {
            rc = NG_ETOOLARGE;
        } else {
            rc = buf_add(ret, part, (size_t)got);
        }
    }
    int number = errno;
    explicit_bzero(part, sizeof(part));
    if (fd >= 0) {
        (void)close(fd);
    }
    if (rc == NG_ETOOLARGE) {
        (void)buf_printf(error, "%s: %s is larger than %zu bytes, the maximum of a PEM file",
                         option, path, HTTP_TLS_FILE_MAX);
        return NG_EINVAL;
    }
    if (rc != NG_OK || got < 0) {
        (void)buf_printf(error, "%s: %s cannot be read: %s", option, path,
                         rc != NG_OK ? "out of memory"
                                     : strerror_r(number, reason, sizeof(reason)));
        return NG_EINVAL;
    }
    return NG_OK;
}

/* ---- the pair ---- */

static gnutls_datum_t datum_of(const struct buf *text)
{
    gnutls_datum_t datum = {(unsigned char *)text->data, (unsigned)text->len};
    return datum;
}

static int import_chain(struct http_tls_pair *pair, const struct pem *pem, struct buf *error)
{
    gnutls_x509_crt_t list[HTTP_TLS_CHAIN_MAX];
    unsigned count = HTTP_TLS_CHAIN_MAX;
    gnutls_datum_t text = datum_of(&pem->certificate_text);
    int rc = gnutls_x509_crt_list_import(list, &count, &text, GNUTLS_X509_FMT_PEM,
                                         GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (rc <= 0) {
        (void)buf_printf(error, "tls.certificate: %s holds no certificate in PEM (%s)",
                         pem->certificate, rc == 0 ? "it is empty" : gnutls_strerror(rc));
        return NG_EINVAL;
    }
    pair->valid_from = gnutls_x509_crt_get_activation_time(list[0]);
    pair->valid_until = gnutls_x509_crt_get_expiration_time(list[0]);
    unsigned imported = count;
    rc = gnutls_pcert_import_x509_list(pair->chain, list, &imported, GNUTLS_X509_CRT_LIST_SORT);
    if (rc >= 0) {
        pair->chain_len = imported;
    }
    for (unsigned i = 0; i < count; i++) {
        gnutls_x509_crt_deinit(list[i]);
    }
    if (rc < 0) {
        (void)buf_printf(error, "tls.certificate: the chain in %s cannot be used: %s",
                         pem->certificate, gnutls_strerror(rc));
        return NG_EINVAL;
    }
    return NG_OK;
}

static int import_key(struct http_tls_pair *pair, const struct pem *pem, struct buf *error)
{
    gnutls_datum_t text = datum_of(&pem->key_text);
    /* Both ways PEM has of saying so: the name of the block, and a header in it. */
    if (memmem(text.data, text.size, "ENCRYPTED", strlen("ENCRYPTED")) != NULL) {
        (void)buf_printf(error,
                         "tls.key: the key in %s is encrypted, and the gateway has no password "
                         "for it; write it without a password (openssl pkey -in %s -out NEW) "
                         "and make that file readable for its owner only",
                         pem->key, pem->key);
        return NG_EINVAL;
    }
    int rc = gnutls_privkey_init(&pair->key);
    if (rc >= 0) {
        rc = gnutls_privkey_import_x509_raw(pair->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (rc < 0) {
        (void)buf_printf(error, "tls.key: %s holds no private key in PEM (%s)", pem->key,
                         gnutls_strerror(rc));
        return NG_EINVAL;
    }
    return NG_OK;
}

static int check_match(const struct http_tls_pair *pair, const struct pem *pem,
                       struct buf *error)
{
    unsigned char ids[2][KEY_ID_BYTES];
    size_t sizes[2] = {KEY_ID_BYTES, KEY_ID_BYTES};
    gnutls_pubkey_t public_key = NULL;
    int rc = gnutls_pubkey_init(&public_key);
    if (rc >= 0) {
        rc = gnutls_pubkey_import_privkey(public_key, pair->key, 0, 0);
    }
    if (rc >= 0) {
        rc = gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, ids[0], &sizes[0]);
    }
    if (rc >= 0) {
        rc = gnutls_pubkey_get_key_id(pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1],
                                      &sizes[1]);
    }
    if (public_key != NULL) {
        gnutls_pubkey_deinit(public_key);
    }
    if (rc < 0 || sizes[0] != sizes[1] || memcmp(ids[0], ids[1], sizes[0]) != 0) {
        (void)buf_printf(
            error, "tls.key: the key in %s does not belong to the first certificate in %s",
            pem->key, pem->certificate);
        return NG_EINVAL;
    }
    return NG_OK;
}

static int make_pair(struct http_tls_pair *pair, struct pem *pem, struct buf *error)
{
    int rc = read_file("tls.certificate", pem->certificate, &pem->certificate_text, error);
    if (rc == NG_OK) {
        rc = read_file("tls.key", pem->key, &pem->key_text, error);
    }
    if (rc == NG_OK) {
        rc = import_chain(pair, pem, error);
    }
    if (rc == NG_OK) {
        rc = import_key(pair, pem, error);
    }
    if (rc == NG_OK) {
        rc = check_match(pair, pem, error);
    }
    if (rc == NG_OK &&
        (sha256_digest(buf_str(&pem->certificate_text), pair->digests[0]) != NG_OK ||
         sha256_digest(buf_str(&pem->key_text), pair->digests[1]) != NG_OK)) {
        (void)buf_add_c(error, "tls.certificate: it cannot be hashed");
        rc = NG_EINTERNAL;
    }
    return rc;
}

bool http_tls_wanted(const struct config *config)
{
    return config_text(config, "tls.certificate").len > 0 ||
           config_text(config, "tls.key").len > 0;
}

static int load_pair(const struct config *config, struct http_tls_pair **ret, struct buf *error)
{
    struct ng_str certificate = config_text(config, "tls.certificate");
    struct ng_str key = config_text(config, "tls.key");
    if (certificate.len == 0 || key.len == 0) {
        bool missing = key.len == 0;
        (void)buf_printf(error, "%s is set, but %s is not: TLS needs both",
                         missing ? "tls.certificate" : "tls.key",
                         missing ? "tls.key" : "tls.certificate");
        return NG_EINVAL;
    }
    struct http_tls_pair *pair = alloc_zeroed(1, sizeof(*pair));
    if (pair == NULL) {
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    struct pem pem = {.certificate = certificate.data, .key = key.data};
    buf_init(&pem.certificate_text, HTTP_TLS_FILE_MAX * 2);
    buf_init(&pem.key_text, HTTP_TLS_FILE_MAX * 2);
    int rc = make_pair(pair, &pem, error);
    forget(&pem.certificate_text);
    forget(&pem.key_text);
    if (rc != NG_OK) {
        pair_free(pair);
        return rc;
    }
    *ret = pair;
    return NG_OK;
}

int http_tls_new(const struct config *config, struct http_tls **ret, struct buf *error)
{
    struct http_tls_pair *pair = NULL;
    int rc = load_pair(config, &pair, error);
    if (rc != NG_OK) {
        return rc;
    }
    struct http_tls *tls = alloc_zeroed(1, sizeof(*tls));
    if (tls == NULL) {
        pair_free(pair);
        (void)buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    atomic_init(&tls->pair, pair);
    tls->pairs = 1;
    *ret = tls;
    return NG_OK;
}

void http_tls_free(struct http_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    struct http_tls_pair *pair = atomic_load(&tls->pair);
    while (pair != NULL) {
        struct http_tls_pair *older = pair->older;
        pair_free(pair);
        pair = older;
    }
    free(tls);
}

int http_tls_reload(struct http_tls *tls, const struct config *config, bool *ret_changed,
                    struct buf *error)
{
    struct http_tls_pair *pair = NULL;
    struct http_tls_pair *now = atomic_load(&tls->pair);
    *ret_changed = false;
    int rc = load_pair(config, &pair, error);
    if (rc != NG_OK) {
        return rc;
    }
    if (memcmp(pair->digests, now->digests, sizeof(now->digests)) == 0) {
        pair_free(pair);
        return NG_OK;
    }
    if (tls->pairs == HTTP_TLS_PAIRS_MAX) {
        pair_free(pair);
        (void)buf_printf(
            error,
            "tls.certificate: this process has loaded %d certificates, the maximum; restart it",
            HTTP_TLS_PAIRS_MAX);
        return NG_ETOOLARGE;
    }
    tls->pairs++;
    pair->older = now;
    atomic_store(&tls->pair, pair);
    *ret_changed = true;
    return NG_OK;
}

static void print_day(struct buf *out, time_t when)
{
    char text[RFC3339_SIZE];
    rfc3339_write((int64_t)when * 1000, RFC3339_SECONDS, text);
    (void)buf_printf(out, "%.10s %.5s UTC", text, text + 11);
}

void http_tls_describe(const struct http_tls *tls, const struct config *config, struct buf *ret,
                       struct buf *warnings)
{
    const struct http_tls_pair *pair = atomic_load(&((struct http_tls *)(uintptr_t)tls)->pair);
    struct stat info;
    time_t now = time(NULL);
    const char *path = config_text(config, "tls.key").data;
    (void)buf_add_c(ret, "valid until ");
    print_day(ret, pair->valid_until);
    if (pair->valid_until < now) {
        (void)buf_add_c(warnings, "the certificate expired on ");
        print_day(warnings, pair->valid_until);
        (void)buf_add_c(warnings, ": clients will refuse it\n");
    } else if (pair->valid_from > now) {
        (void)buf_add_c(warnings, "the certificate is valid only from ");
        print_day(warnings, pair->valid_from);
        (void)buf_add_c(warnings, ": clients will refuse it before\n");
    } else if (pair->valid_until - now < EXPIRES_SOON_S) {
        (void)buf_printf(warnings, "the certificate expires in %lld hours: renew it\n",
                         (long long)((pair->valid_until - now) / HOUR_S));
    }
    if (stat(path, &info) == 0 && (info.st_mode & S_IRWXO) != 0) {
        (void)buf_printf(warnings,
                         "every user can read the key %s (mode %04o); do `chmod o= ", path,
                         (unsigned)(info.st_mode & 07777));
        (void)trust_add_word(warnings, path);
        (void)buf_add_c(warnings, "`\n");
    }
}

/* ---- handshakes ---- */

int http_tls_retrieve(struct http_tls *tls, struct gnutls_pcert_st **ret_chain,
                      unsigned *ret_len, struct gnutls_privkey_st **ret_key)
{
    struct http_tls_pair *pair = atomic_load_explicit(&tls->pair, memory_order_acquire);
    *ret_chain = pair->chain;
    *ret_len = pair->chain_len;
    *ret_key = pair->key;
    return 0;
}
