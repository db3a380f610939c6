/* SPDX-License-Identifier: MIT */
/* keys_table.h - what the files of the keys share, and their tests. */
#ifndef NOTEGATE_CORE_KEYS_TABLE_H
#define NOTEGATE_CORE_KEYS_TABLE_H

#include "keys.h"

/* Longest wait that a caller over its rate is told. */
#define KEY_RETRY_MAX_S 3600
/* Characters of a secret: 43 of 62 letters and digits are more than 256 bits. */
#define KEY_SECRET_LEN 43
#define KEY_PREFIX "ng_"
#define KEY_TEXT_LEN (sizeof(KEY_PREFIX) - 1 + KEY_ID_LEN + 1 + KEY_SECRET_LEN)
/* Most bytes of a key's document. */
#define KEY_JSON_MAX ((size_t)256 * 1024)

bool key_live_at(const struct key *key, int64_t now_ms);
/* A full bucket. */
void key_fill(struct key *key, int64_t now_ns);
/* key_take() at a time of CLOCK_MONOTONIC. */
bool key_take_at(struct key *key, int64_t now_ns, int *ret_retry_s);

/* keys_record.c. A key with one reference; NULL: out of memory. */
struct key *key_new(const char *id, const struct key_spec *spec,
                    const unsigned char hash[KEY_HASH_BYTES]);
/* Its document. NG_EINVAL: it is none of ours. */
int key_read(const struct ng_doc *doc, struct key **ret);
int key_write(const struct key *key, struct buf *out);

/* keys_text.c: making keys and taking them apart. NG_EUNAVAILABLE: the kernel gives no random
 * numbers. */
int key_text_make(char ret_text[KEY_TEXT_MAX]);
/* False: not of the form. ret_id: lent. */
bool key_text_parse(struct ng_str text, struct ng_str *ret_id);

#endif
