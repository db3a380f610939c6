/* SPDX-License-Identifier: MIT */
/* bson_members.h - members of BSON, and the JSON of entries as BSON and back. */
#ifndef NOTEGATE_MONGO_BSON_MEMBERS_H
#define NOTEGATE_MONGO_BSON_MEMBERS_H

#include <bson/bson.h>
#include <stdlib.h>
#include <string.h>

#include "../../shared/bytes.h"
#include "../../shared/content_hash.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Largest document with everything stored in it; the server's own limit is 16 MiB. */
#define DOCUMENT_BYTES_MAX ((size_t)15 * 1024 * 1024)
#define DOCUMENT_LIMIT "15 MiB; MongoDB's limit of a document is 16 MiB"

static inline int str_clip(struct ng_str text, int most)
{
    return (int)size_min(text.len, (size_t)most);
}

/* ---- fields.c ---- */

/* UTF-8, or binary if it is none. */
void put_str(bson_t *bson, const char *key, struct ng_str text);
void put_u64(bson_t *bson, const char *key, uint64_t number);
void put_hash(bson_t *bson, const char *key, const unsigned char hash[HASH_BYTES]);
/* The member at a dotted path; false if missing. */
bool member(const bson_t *doc, const char *path, bson_iter_t *ret);
struct ng_str member_str(const bson_t *doc, const char *path);
uint64_t member_u64(const bson_t *doc, const char *path);
int64_t member_i64(const bson_t *doc, const char *path); /* numbers, and dates as ms */
bool member_bool(const bson_t *doc, const char *path);
bool member_doc(const bson_t *doc, const char *path, bson_t *ret); /* a view into `doc` */
struct ng_str iter_str(const bson_iter_t *iter);
bool iter_doc(const bson_iter_t *iter, bson_t *ret); /* a document or an array, as a view */

/* ---- make.c ---- */

/*
 * BSON from a template such as "_id:s, revision:{$gt:u}, tags:[s,s]". Values, with the type of
 * their argument: s struct ng_str, t const char *, i int, l int64_t, u uint64_t, d int64_t (a
 * date in ms), b bool, D and A const bson_t * (a document, an array), V
 * const bson_value_t *. Without an argument: a
 * number, T, F, N (null), E (an empty text). `%:` is a member named by a const char *, `*` all
 * members of a const bson_t *.
 */
bson_t *bson_of(const char *template, ...);
void bson_add(bson_t *bson, const char *template, ...);
/* The text as item `at` of an array. */
void bson_item(bson_t *array, uint32_t at, struct ng_str text);

/* ---- json_in.c, json_out.c ---- */

/* Appends the members of a JSON object that BSON can represent and that are not reserved;
 * *ret_whole: that was all of them. README.md lists the members stored as BSON dates. */
int json_members(struct ng_str json, bson_t *ret, bool *ret_whole);
/* The JSON of the members in `names`, in that order. */
int json_of(const bson_t *doc, const bson_t *names, struct bytes *ret);

#endif
