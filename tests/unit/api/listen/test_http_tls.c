/* SPDX-License-Identifier: MIT */
/* test_http_tls.c - certificate and key: what is refused, warnings, handshakes, a new pair
 * while the gateway serves. */
#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/listen/http_tls.h"
#include "core/base/str.h"
#include "http_peer.h"
#include "program.h"

#define DAY 86400L
#define PATH_BYTES 512
#define PAIR " --set tls.certificate=%s/c.pem --set tls.key=%s/k.pem"

static const char *home;

/* ---- pairs ---- */

static FILE *open_at_home(const char *name)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", home, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

/* Writes a certificate to c.pem, and its own key to k.pem. */
static void write_pair(long serial, long from, long until, const char *password)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_non_null(key);
    assert_non_null(certificate);
    X509_NAME *name = X509_get_subject_name(certificate);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), from));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), until));
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)"localhost", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(certificate, name), 1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = open_at_home("c.pem");
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    file = open_at_home("k.pem");
    (void)fchmod(fileno(file), 0600);
    const EVP_CIPHER *cipher = NULL;
    int len = 0;
    if (password != NULL) {
        cipher = EVP_aes_128_cbc();
        len = (int)strlen(password);
    }
    assert_int_equal(PEM_write_PKCS8PrivateKey(file, key, cipher, password, len, NULL, NULL),
                     1);
    assert_int_equal(fclose(file), 0);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* `check` with the pair: its exit code, and a part of what it prints. */
static void expect_checked(int code, const char *part)
{
    char words[PATH_BYTES * 4];
    (void)snprintf(words, sizeof(words), "check" PAIR, home, home);
    expect_run(words, code, part, NULL);
}

static void warnings(void **state)
{
    char path[PATH_BYTES];
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/k.pem", home);
    write_pair(1, -DAY, 30 * DAY, NULL);
    expect_checked(0, "ok     tls: valid until ");
    assert_int_equal(chmod(path, 0604), 0);
    expect_checked(0, "chmod o=");
    write_pair(1, -2 * DAY, -DAY, NULL);
    expect_checked(0, "warning: the certificate expired");
    write_pair(1, DAY, 2 * DAY, NULL);
    expect_checked(0, "warning: the certificate is ");
    write_pair(1, -DAY, 100000, NULL);
    expect_checked(0, "27 hours");
}

static void refused_pairs(void **state)
{
    char words[PATH_BYTES * 4];
    (void)state;
    write_pair(1, -DAY, DAY, "secret");
    expect_checked(1, "is encrypted");
    write_pair(1, -DAY, DAY, NULL);
    char *key = program_read("k.pem");
    write_pair(1, -DAY, DAY, NULL);
    program_write("k.pem", key);
    free(key);
    expect_checked(1, "failed tls: tls.key: ");
    program_write("k.pem", "no key\n");
    expect_checked(1, "failed tls: tls.key: ");
    program_write("c.pem", "no certificate\n");
    expect_checked(1, "failed tls: tls.certificate: ");
    program_write("c.pem", "");
    expect_checked(1, "failed tls: tls.certificate: ");
    char *large = malloc(HTTP_TLS_FILE_MAX + 2);
    assert_non_null(large);
    memset(large, 'x', HTTP_TLS_FILE_MAX + 1);
    large[HTTP_TLS_FILE_MAX + 1] = '\0';
    program_write("c.pem", large);
    free(large);
    expect_checked(1, "failed tls: tls.certificate: ");
    (void)snprintf(words, sizeof(words), "check" PAIR "x", home, home);
    expect_run(words, 1, "failed tls: tls.certificate: ", NULL);
    (void)snprintf(words, sizeof(words), "check --set tls.key=%s/k.pem", home);
    expect_run(words, 1, "tls.certificate", NULL);
    (void)snprintf(words, sizeof(words), "check --set tls.certificate=%s --set tls.key=/x",
                   home);
    expect_run(words, 1, "failed tls: tls.certificate: ", NULL);
}

/* ---- serving ---- */

/* The serial number of the certificate that a new connection gets; the answer to a request over
 * it contains the part. */
static long serial_of(const struct program *gateway, const char *request, const char *part)
{
    struct http_peer peer;
    char answer[65536];
    size_t len = 0;
    int got;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    assert_non_null(context);
    SSL *tls = SSL_new(context);
    assert_non_null(tls);
    http_open(&peer, gateway->address);
    assert_int_equal(SSL_set_fd(tls, peer.fd), 1);
    assert_int_equal(SSL_connect(tls), 1);
    X509 *certificate = SSL_get1_peer_certificate(tls);
    assert_non_null(certificate);
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
    assert_int_equal(SSL_write(tls, request, (int)strlen(request)), (int)strlen(request));
    while (len < sizeof(answer) - 1 &&
           (got = SSL_read(tls, answer + len, (int)(sizeof(answer) - 1 - len))) > 0) {
        len += (size_t)got;
    }
    answer[len] = '\0';
    if (strstr(answer, part) == NULL) {
        fail_msg("%s is not in %s", part, answer);
    }
    X509_free(certificate);
    SSL_free(tls);
    SSL_CTX_free(context);
    http_close(&peer);
    return serial;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

static void a_new_pair_while_it_serves(void **state)
{
    char words[PATH_BYTES * 4];
    struct program gateway;
    (void)state;
    (void)snprintf(words, sizeof(words), PAIR, home, home);
    write_pair(7, -DAY, DAY, NULL);
    program_serve(&gateway, words);
    assert_int_equal(serial_of(&gateway, GET("/healthz") "\r\n", "{\"status\":\"ok\"}"), 7);
    assert_int_equal(serial_of(&gateway, GET("/v1/tools") "\r\n", "\"notebook\""), 7);
    assert_int_equal(
        serial_of(&gateway, GET("/v1/tools") "Origin: https://evil.example\r\n\r\n", " 403 "),
        7);
    struct http_peer peer;
    http_open(&peer, gateway.address); /* no TLS: no answer */
    http_send(&peer, GET("/healthz") "\r\n");
    assert_true(http_has_ended(&peer) || strstr(buf_cstr(&peer.received), "HTTP/") == NULL);
    http_close(&peer);
    write_pair(8, -DAY, 30 * DAY, NULL);
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "tls.certificate");
    assert_int_equal(serial_of(&gateway, GET("/healthz") "\r\n", "ok"), 8);
    /* A broken one changes nothing. */
    program_write("k.pem", "no key\n");
    assert_int_equal(kill(gateway.pid, SIGHUP), 0);
    program_wait_err(&gateway, "tls.key: ");
    assert_int_equal(serial_of(&gateway, GET("/healthz") "\r\n", "ok"), 8);
    program_stop(&gateway);
}

static int set_up(void **state)
{
    (void)state;
    home = program_home();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings),
        cmocka_unit_test(refused_pairs),
        cmocka_unit_test(a_new_pair_while_it_serves),
    };
    return cmocka_run_group_tests(tests, set_up, program_tear_down);
}
