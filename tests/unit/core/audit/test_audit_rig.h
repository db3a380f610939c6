/* SPDX-License-Identifier: MIT */
/* test_audit_rig.h - an audit log in a folder of its own, whose entries follow from their
 * numbers. */
#ifndef NOTEGATE_TEST_AUDIT_RIG_H
#define NOTEGATE_TEST_AUDIT_RIG_H

#include "core/audit/audit_log.h"
#include "core/audit/audit_verify.h"
#include "harness.h"

#define RIG_PATH_SIZE 512
#define RIG_NAME "notegate/0123456789abcdef"
/* Bytes of an entry's text. */
#define RIG_ENTRY_SIZE 600

struct audit_rig {
    char dir[RIG_PATH_SIZE]; /* of the log */
    struct audit_log *log;   /* NULL: closed */
    struct buf error;
};

/* A new folder, without a log. */
void rig_make(struct audit_rig *rig);
/* Opens it; a failure fails the test. */
void rig_open(struct audit_rig *rig);
void rig_close(struct audit_rig *rig);
/* Closes and removes it. */
void rig_done(struct audit_rig *rig);

/* The text of an entry. Variant 0 is the original; the others replace it in tampered logs. */
struct ng_str rig_entry(uint64_t number, unsigned variant, char out[RIG_ENTRY_SIZE]);
/* Appends the next `count`; returns the result. */
int rig_append(struct audit_rig *rig, size_t count);
/* The same, and folds; both succeed. */
void rig_grow(struct audit_rig *rig, size_t count);

/* A file of the folder; to be freed. NULL: it is not there. */
char *rig_read(const struct audit_rig *rig, const char *name, size_t *ret_len);
void rig_write(const struct audit_rig *rig, const char *name, struct ng_str bytes);
/* Copies the folder to one beside it, whose path it returns. */
void rig_copy(const struct audit_rig *rig, const char *to);
void rig_remove(const char *path);
/* Pseudo-random, below `below`. */
uint32_t rig_any(uint32_t *seed, uint32_t below);

/* Verifies against a checkpoint, or NULL. */
int rig_verify(const char *dir, const char *kept, struct audit_verify_report *ret,
               struct buf *problem);
/* It is whole and has these entries under its checkpoint, each the right one. */
void rig_check(const struct audit_rig *rig, uint64_t size);

#endif
