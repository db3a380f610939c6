/* SPDX-License-Identifier: MIT */
/* audit_key.c - the two files of the key. The private one is written first: the public one is
 * made from it. */
#include "audit_key.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>

#include "audit_disk.h"
#include "core/base/str.h"

#define KEY_MODE (S_IRUSR | S_IWUSR)
#define KEY_PUBLIC_MODE (KEY_MODE | S_IRGRP | S_IROTH)

typedef int key_write_fn(const struct note_signer *signer, struct buf *out);

static int key_write_public(const struct note_signer *signer, struct buf *out)
{
    return note_key_write(&signer->key, out);
}

/* A key as a file of one line. */
static int key_store(int dir, const char *file, mode_t mode, const struct note_signer *signer,
                     key_write_fn *write, struct buf *error)
{
    char room[NOTE_KEY_TEXT_MAX + 1];
    struct buf text = {.data = room, .cap = sizeof(room), .max = NOTE_KEY_TEXT_MAX};
    (void)write(signer, &text);
    int rc = buf_add_char(&text, '\n');
    if (rc == NG_OK) {
        rc = audit_disk_replace(dir, file, buf_str(&text), mode);
    }
    OPENSSL_cleanse(room, sizeof(room));
    return rc == NG_OK ? rc : audit_disk_fail(rc, file, "written", error);
}

static int key_damaged(const char *file, struct buf *error)
{
    (void)buf_printf(
        error,
        "the audit log's file %s is damaged; restore it from a backup, or move the "
        "folder of the audit log away to begin a new one",
        file);
    return NG_EFAILED;
}

/* NG_ENOTFOUND: there is none; then error has nothing. */
static int key_read_private(int dir, struct note_signer *ret, struct buf *error)
{
    char room[NOTE_KEY_TEXT_MAX + 1];
    struct buf text = {.data = room, .cap = sizeof(room), .max = NOTE_KEY_TEXT_MAX};
    struct stat info;
    int rc = audit_disk_read(dir, AUDIT_KEY_FILE, &text);
    if (rc == NG_OK) {
        rc = note_signer_read(buf_str(&text), ret);
    }
    OPENSSL_cleanse(room, sizeof(room));
    if (rc == NG_EINVAL || rc == NG_ETOOLARGE) {
        return key_damaged(AUDIT_KEY_FILE, error);
    }
    if (rc != NG_OK) {
        return rc == NG_ENOTFOUND ? rc : audit_disk_fail(rc, AUDIT_KEY_FILE, "read", error);
    }
    if (fstatat(dir, AUDIT_KEY_FILE, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        (void)buf_printf(error,
                         "the audit log's file %s has mode %04o: others can sign with it; do "
                         "`chmod 600` of it",
                         AUDIT_KEY_FILE, (unsigned)(info.st_mode & 07777));
        return NG_EFORBIDDEN;
    }
    return NG_OK;
}

static int key_read_public(int dir, struct note_key *ret, struct buf *error)
{
    char room[NOTE_KEY_TEXT_MAX + 1];
    struct buf text = {.data = room, .cap = sizeof(room), .max = NOTE_KEY_TEXT_MAX};
    int rc = audit_disk_read(dir, AUDIT_KEY_PUBLIC_FILE, &text);
    if (rc == NG_OK) {
        rc = note_key_read(buf_str(&text), ret);
    }
    if (rc == NG_EINVAL || rc == NG_ETOOLARGE) {
        return key_damaged(AUDIT_KEY_PUBLIC_FILE, error);
    }
    return rc == NG_OK || rc == NG_ENOTFOUND
               ? rc
               : audit_disk_fail(rc, AUDIT_KEY_PUBLIC_FILE, "read", error);
}

static int key_missing(const char *file, struct buf *error)
{
    (void)buf_printf(
        error,
        "the audit log's file %s is missing; restore it from a backup, or move the "
        "folder of the audit log away to begin a new one",
        file);
    return NG_EFAILED;
}

int audit_key_load(int dir, bool is_new, struct ng_str name, struct note_signer *ret,
                   struct buf *error)
{
    struct note_key public_key;
    int rc = key_read_private(dir, ret, error);
    if (rc == NG_ENOTFOUND && !is_new) {
        rc = key_missing(AUDIT_KEY_FILE, error);
    } else if (rc == NG_ENOTFOUND) {
        rc = note_signer_make(name, ret);
        if (rc != NG_OK) {
            (void)buf_printf(error, "the audit log's key %.*s cannot be made", (int)name.len,
                             name.data);
            return rc;
        }
        rc = key_store(dir, AUDIT_KEY_FILE, KEY_MODE, ret, note_signer_write, error);
    }
    if (rc == NG_OK) {
        rc = key_read_public(dir, &public_key, error);
        if (rc == NG_ENOTFOUND) {
            return key_store(dir, AUDIT_KEY_PUBLIC_FILE, KEY_PUBLIC_MODE, ret, key_write_public,
                             error);
        }
    }
    if (rc == NG_OK &&
        (strcmp(public_key.name, ret->key.name) != 0 ||
         memcmp(public_key.public_key, ret->key.public_key, NOTE_KEY_BYTES) != 0)) {
        (void)buf_add_c(error,
                        "the audit log's files " AUDIT_KEY_FILE " and " AUDIT_KEY_PUBLIC_FILE
                        " are of two keys; restore the right one from a backup");
        rc = NG_EFAILED;
    }
    return rc;
}

int audit_key_load_public(int dir, struct note_key *ret, struct buf *error)
{
    int rc = key_read_public(dir, ret, error);
    return rc == NG_ENOTFOUND ? key_missing(AUDIT_KEY_PUBLIC_FILE, error) : rc;
}
