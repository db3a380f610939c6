/* SPDX-License-Identifier: MIT */
/* hash.c - the hash of contents that verify compares. */
#include "db.h"

#include <endian.h>

/* Multiply and rotate as in FNV, eight bytes a step, in two different lanes. Detects damage,
 * but does not resist deliberate collisions. */
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
        size_t count = size_min(part.len - at, 8);
        uint64_t word = 0;
        memcpy(&word, part.data + at, count);
        word = le64toh(word); /* pads a shorter rest with zeros */
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
