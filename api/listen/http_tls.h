/* SPDX-License-Identifier: MIT */
/*
 * http_tls.h - the certificate and key that the TCP listener serves TLS with, and changing them
 * while it runs.
 *
 * Every handshake uses the present pair; open connections keep theirs. Only TLS 1.2 and 1.3,
 * with ciphers that encrypt and authenticate in one. No Strict-Transport-Security header is
 * sent: it would hold for every port of the host, and other services there may not have TLS.
 */
#ifndef NOTEGATE_API_HTTP_TLS_H
#define NOTEGATE_API_HTTP_TLS_H

#include "core/config/config.h"

struct gnutls_pcert_st;
struct gnutls_privkey_st;

/* Largest file of a certificate chain or key; certificates in a chain. */
#define HTTP_TLS_FILE_MAX ((size_t)256 * 1024)
#define HTTP_TLS_CHAIN_MAX 16
/* Different pairs that one process may have served; further ones need a restart. */
#define HTTP_TLS_PAIRS_MAX 1000

/* The listener's settings for protocol versions, key exchange and ciphers. */
#define HTTP_TLS_PRIORITIES                                                                    \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-CIPHER-ALL:"                    \
    "+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

struct http_tls;

/* Does the configuration name a certificate or a key? */
bool http_tls_wanted(const struct config *config);
/* Reads the pair. NG_EINVAL, with a sentence: one of the two is missing, cannot be read, is not
 * PEM, is encrypted, or they do not belong together. */
int http_tls_new(const struct config *config, struct http_tls **ret, struct buf *error);
/* No handshake may be under way. NULL is a no-op. */
void http_tls_free(struct http_tls *tls);
/* Reads the pair again: a new one is taken by the next handshake. NG_EINVAL as above: the old
 * one stays. Not from two threads at once. */
int http_tls_reload(struct http_tls *tls, const struct config *config, bool *ret_changed,
                    struct buf *error);
/* Adds a line to `warnings` for each: expired or not valid yet, a key that others can read.
 * `ret` says until when the certificate is valid. */
void http_tls_describe(const struct http_tls *tls, const struct config *config, struct buf *ret,
                       struct buf *warnings);
/* For the callback of each handshake, on the event loop: the pair, lent. Returns 0. */
int http_tls_retrieve(struct http_tls *tls, struct gnutls_pcert_st **ret_chain,
                      unsigned *ret_len, struct gnutls_privkey_st **ret_key);

#endif
