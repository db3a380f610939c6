/* SPDX-License-Identifier: MIT */
/* bytes.c - contents: growing bytes, the hash that verify compares, splices. */
#include "db.h"

#include <endian.h>

static int bytes_reserve(struct bytes *bytes, size_t more)
{
    if (more > SIZE_MAX / 4 || bytes->len > SIZE_MAX / 4) {
        return NG_ETOOLARGE;
    }
    size_t need = bytes->len + more;
    if (need <= bytes->cap) {
        return NG_OK;
    }
    size_t cap = bytes->cap < 64 ? 64 : bytes->cap;
    while (cap < need) {
        cap += cap / 2;
    }
    char *data = realloc(bytes->data, cap);
    if (data == NULL) {
        return NG_EINTERNAL;
    }
    bytes->data = data;
    bytes->cap = cap;
    return NG_OK;
}

int bytes_add(struct bytes *bytes, const void *data, size_t len)
{
    int rc = bytes_reserve(bytes, len);
    if (rc == NG_OK && len > 0) {
        memcpy(bytes->data + bytes->len, data, len);
        bytes->len += len;
    }
    return rc;
}

int bytes_add_c(struct bytes *bytes, const char *text)
{
    return bytes_add(bytes, text, strlen(text));
}

int bytes_set(struct bytes *bytes, struct ng_str data)
{
    bytes->len = 0;
    return bytes_add(bytes, data.data, data.len);
}

int bytes_splice(struct bytes *bytes, uint64_t at, uint64_t removed, struct ng_str inserted)
{
    if (at > bytes->len || removed > bytes->len - at) {
        return NG_EUNAVAILABLE; /* does not fit: the version is damaged */
    }
    int rc = bytes_reserve(bytes, inserted.len);
    if (rc != NG_OK) {
        return rc;
    }
    size_t from = (size_t)(at + removed);
    size_t tail = bytes->len - from;
    if (tail > 0) {
        memmove(bytes->data + at + inserted.len, bytes->data + from, tail);
    }
    if (inserted.len > 0) {
        memcpy(bytes->data + at, inserted.data, inserted.len);
    }
    bytes->len = (size_t)at + inserted.len + tail;
    return NG_OK;
}

void bytes_done(struct bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

/* FNV-like multiply and rotate over eight bytes a step, in two lanes that differ. It finds
 * damage; it does not withstand someone who makes collisions on purpose. */
#define LANE_A UINT64_C(0x9E3779B97F4A7C15)
#define LANE_B UINT64_C(0xC2B2AE3D27D4EB4F)

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void hash_part(uint64_t lanes[2], struct ng_str part)
{
    size_t at = 0;
    while (at < part.len) {
        size_t count = part.len - at < 8 ? part.len - at : 8;
        uint64_t word = 0;
        memcpy(&word, part.data + at, count);
        word = le64toh(word); /* as zeros follow a shorter rest */
        lanes[0] = rotate(lanes[0] ^ (word * LANE_A), 29) * LANE_B;
        lanes[1] = rotate(lanes[1] + (word ^ LANE_B), 37) * LANE_A;
        at += count;
    }
    lanes[0] = rotate((lanes[0] ^ (uint64_t)part.len) * LANE_A, 31);
    lanes[1] = rotate((lanes[1] + (uint64_t)part.len) * LANE_B, 27);
}

void content_hash(struct ng_str json, struct ng_str text, bool deleted,
                  unsigned char ret[HASH_BYTES])
{
    uint64_t lanes[2] = {LANE_A, LANE_B ^ (deleted ? 1U : 0U)};
    hash_part(lanes, json);
    hash_part(lanes, text);
    for (unsigned i = 0; i < 8; i++) {
        ret[i] = (unsigned char)(lanes[0] >> (8 * i));
        ret[8 + i] = (unsigned char)((lanes[1] ^ lanes[0]) >> (8 * i));
    }
}

void splice_between(struct ng_str before, struct ng_str after, struct ng_splice *ret)
{
    size_t most = before.len < after.len ? before.len : after.len;
    size_t head = 0;
    size_t tail = 0;
    while (head < most && before.data[head] == after.data[head]) {
        head++;
    }
    while (tail < most - head &&
           before.data[before.len - tail - 1] == after.data[after.len - tail - 1]) {
        tail++;
    }
    ret->at = head;
    ret->removed = before.len - head - tail;
    ret->inserted =
        str_of(after.data != NULL ? after.data + head : "", after.len - head - tail);
}
