/* SPDX-License-Identifier: MIT */
/* minmax.h - the smaller and the larger of two numbers, by type. */
#ifndef NOTEGATE_CORE_MINMAX_H
#define NOTEGATE_CORE_MINMAX_H

#include <stddef.h>
#include <stdint.h>

#define MINMAX_DEFINE(name, type)                                                              \
    static inline type name##_min(type a, type b)                                              \
    {                                                                                          \
        return b < a ? b : a;                                                                  \
    }                                                                                          \
    static inline type name##_max(type a, type b)                                              \
    {                                                                                          \
        return b > a ? b : a;                                                                  \
    }

MINMAX_DEFINE(size, size_t)
MINMAX_DEFINE(int, int)
MINMAX_DEFINE(uint, unsigned)
MINMAX_DEFINE(u32, uint32_t)
MINMAX_DEFINE(u64, uint64_t)
MINMAX_DEFINE(i64, int64_t)

#endif
