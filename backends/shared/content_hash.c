/* SPDX-License-Identifier: MIT */
/* content_hash.c - two 64-bit lanes, eight bytes a step, each lane a multiply and rotate with
 * constants of its own. */
#include "content_hash.h"

#include <endian.h>
#include <string.h>

#include "core/base/minmax.h"

#define LANE_A UINT64_C(0x9E3779B97F4A7C15)
#define LANE_B UINT64_C(0xC2B2AE3D27D4EB4F)

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xD6E8FEB86659FD93);
    value ^= value >> 29;
    value *= UINT64_C(0xA0761D6478BD642F);
    return value ^ (value >> 32);
}

static void hash_part(enum content_hash_form form, uint64_t lanes[2], struct ng_str part)
{
    size_t at = 0;
    while (at < part.len) {
        size_t count = size_min(part.len - at, 8);
        uint64_t word = 0;
        memcpy(&word, part.data + at, count);
        word = le64toh(word); /* as if zeros followed a shorter rest */
        lanes[0] = rotate(lanes[0] ^ (word * LANE_A), 29) * LANE_B;
        lanes[1] = rotate(lanes[1] + (word ^ LANE_B), 37) * LANE_A;
        at += count;
    }
    if (form == CONTENT_HASH_MIXED) {
        lanes[0] = mix(lanes[0] ^ (uint64_t)part.len);
        lanes[1] = mix(lanes[1] + (uint64_t)part.len * LANE_B);
    } else {
        lanes[0] = rotate((lanes[0] ^ (uint64_t)part.len) * LANE_A, 31);
        lanes[1] = rotate((lanes[1] + (uint64_t)part.len) * LANE_B, 27);
    }
}

void content_hash(enum content_hash_form form, struct ng_str json, struct ng_str text,
                  bool deleted, unsigned char ret[HASH_BYTES])
{
    uint64_t lanes[2] = {LANE_A, LANE_B ^ (uint64_t)deleted};
    hash_part(form, lanes, json);
    hash_part(form, lanes, text);
    uint64_t a = lanes[0];
    if (form == CONTENT_HASH_MIXED) {
        a = mix(lanes[0] + rotate(lanes[1], 17));
    }
    uint64_t b = lanes[1] ^ a;
    if (form == CONTENT_HASH_MIXED) {
        b = mix(b);
    }
    for (unsigned i = 0; i < 8; i++) {
        ret[i] = (unsigned char)(a >> (8 * i));
        ret[8 + i] = (unsigned char)(b >> (8 * i));
    }
}
