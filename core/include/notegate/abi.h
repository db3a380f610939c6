/* SPDX-License-Identifier: MIT */
/*
 * abi.h - what every module shares with the gateway: strings, the module record, the export
 * macros.
 *
 * The comment of each struct of the SDK says which of two kinds it is:
 *   "Never grows": it has the same members in every release of ABI 1. It may stand in arrays
 * and inside of other structs. "Read by its size": later releases add members at its end, never
 * in padding. The side that makes one says its size: in its first member `size`, in the module
 * record (descriptors) or in `field_size`. The other side reads and writes no more than that,
 *       and asks NG_HAS() before it uses a member that is newer than ABI 1's first release. A
 *       size that is 0, or too small for the required members, is refused.
 * An array that a module reads is one of pointers; an array that a module writes has steps of
 * its first element's size.
 *
 * Additions to ABI 1 (newest last):
 *   not frozen yet: version 1 is frozen when all first plugins stand on it.
 */
#ifndef NOTEGATE_ABI_H
#define NOTEGATE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "errors.h"

#ifndef NG_ABI
#error                                                                                         \
    "define NG_ABI as the number of the ABI you write for (1) before including notegate headers"
#endif
#if NG_ABI != 1
#error "these headers describe ABI 1"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes with a length. Never owns them, need not end in NUL, may hold NUL. {NULL, 0} is
 * "absent". Never grows. */
struct ng_str {
    const char *data;
    size_t len;
};

/* The bytes of a NUL-terminated text; NULL gives {NULL, 0}. The text is lent, not copied. */
static inline struct ng_str ng_str_of(const char *text)
{
    struct ng_str str = {text, 0};
    if (text != NULL) {
        while (text[str.len] != '\0') {
            str.len++;
        }
    }
    return str;
}

/* Bytes of a struct up to and including this member. */
#define NG_UP_TO(type, member)                                                                 \
    (offsetof(struct type, member) + sizeof(((struct type *)0)->member))

/* Does *object, which is read by its size, have this member? Object: an expression without side
 * effects, e.g. NG_HAS(call->host, history_count). */
#define NG_HAS(object, member)                                                                 \
    ((object)->size >= (size_t)((const char *)(&(object)->member + 1) - (const char *)(object)))

/* Fills an output that is read by its size: copies *from into *to as far as both reach. Both
 * begin with their `size`; that of *to stays as its owner set it. */
static inline void ng_fill(void *to, const void *from)
{
    size_t room;
    size_t size;
    memcpy(&room, to, sizeof(room));
    memcpy(&size, from, sizeof(size));
    if (size > room) {
        size = room;
    }
    if (size > sizeof(size)) {
        memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
               size - sizeof(size));
    }
}

#define NG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum ng_module_kind {
    NG_KIND_PLUGIN = 1,    /* desc is a struct ng_plugin */
    NG_KIND_DOCUMENTS = 2, /* desc is a struct ng_documents */
    NG_KIND_JOURNAL = 3    /* desc is a struct ng_journal */
};

/* How many arrays of a descriptor carry an item size. */
#define NG_ITEM_SIZES 8

/*
 * How much of struct ng_host the module uses: a gateway that has less refuses the module in one
 * line, before any of its code runs. By default all of the headers it was compiled with. A
 * module that asks NG_HAS() before it uses newer members says, before its export, what it
 * cannot do without: #define NG_NEEDS_HOST NG_UP_TO(ng_host, history_count)
 */
#ifndef NG_NEEDS_HOST
#define NG_NEEDS_HOST sizeof(struct ng_host)
#endif

/*
 * The one symbol a module exports, `ng_module`, written by NG_EXPORT_PLUGIN,
 * NG_EXPORT_DOCUMENTS or NG_EXPORT_JOURNAL. The sizes are those of the headers the module was
 * compiled with: the loader copies the smaller of its own and the module's and zeroes the rest,
 * so old modules load in new gateways, and new modules in old ones that have what they need.
 * Never grows.
 */
struct ng_module {
    uint32_t abi;         /* NG_ABI of the module */
    uint32_t kind;        /* enum ng_module_kind */
    uint32_t struct_size; /* of the descriptor */
    uint32_t needs_host;  /* bytes of struct ng_host that must be there: NG_NEEDS_HOST */
    /* Item sizes of the descriptor's arrays, in the order the descriptor declares the arrays;
     * 0: none. */
    uint32_t item_sizes[NG_ITEM_SIZES];
    const void *desc; /* const, outlives the module's last call */
};

#define NG_NOTE_TYPE 1

/* The same facts as an ELF note (.note.notegate), read before the module is mapped with
 * dlopen(): owner "notegate", type 1, descriptor = abi, kind, needs_host. Never grows. */
struct ng_elf_note {
    uint32_t name_size;
    uint32_t desc_size;
    uint32_t type;
    char name[12]; /* "notegate" and NULs up to a multiple of 4 */
    uint32_t abi;
    uint32_t kind;
    uint32_t needs_host;
};

#ifdef __cplusplus
#define NG_EXTERN extern "C"
#else
#define NG_EXTERN extern
#endif

#define NG_EXPORT_NOTE(module_kind)                                                            \
    __attribute__((section(".note.notegate"), used,                                            \
                   aligned(4))) static const struct ng_elf_note ng_module_note = {             \
        9, 12, NG_NOTE_TYPE, "notegate", NG_ABI, (module_kind), NG_NEEDS_HOST}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
