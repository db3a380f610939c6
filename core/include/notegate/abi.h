/* SPDX-License-Identifier: MIT */
/*
 * abi.h - what every module shares with the gateway: strings, the module record, the export
 * macros.
 *
 * Additions to ABI 1 (newest last; a member is only ever added at the end of a struct):
 *   not frozen yet: version 1 is frozen when all first plugins stand on it.
 */
#ifndef NOTEGATE_ABI_H
#define NOTEGATE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * "absent". This struct never grows. */
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

#define NG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum ng_module_kind {
    NG_KIND_PLUGIN = 1,    /* desc is a struct ng_plugin */
    NG_KIND_DOCUMENTS = 2, /* desc is a struct ng_documents */
    NG_KIND_JOURNAL = 3    /* desc is a struct ng_journal */
};

/* How many arrays of a descriptor carry an item size. */
#define NG_ITEM_SIZES 8

/*
 * The one symbol a module exports, `ng_module`, written by NG_EXPORT_PLUGIN or
 * NG_EXPORT_BACKEND. The sizes are those of the headers the module was compiled with: the
 * loader copies the smaller of its own and the module's and zeroes the rest, so old modules
 * load in new gateways and new modules in old ones.
 */
struct ng_module {
    uint32_t abi;         /* NG_ABI of the module */
    uint32_t kind;        /* enum ng_module_kind */
    uint32_t struct_size; /* of the descriptor */
    /* Item sizes of the descriptor's arrays, in the order the descriptor declares the arrays;
     * 0: none. */
    uint32_t item_sizes[NG_ITEM_SIZES];
    const void *desc; /* const, outlives the module's last call */
};

/* The same facts as an ELF note (.note.notegate), read before the module is mapped with
 * dlopen(): owner "notegate", type 1, descriptor = abi, kind. */
#define NG_NOTE_TYPE 1

struct ng_elf_note {
    uint32_t name_size;
    uint32_t desc_size;
    uint32_t type;
    char name[12]; /* "notegate" and NULs up to a multiple of 4 */
    uint32_t abi;
    uint32_t kind;
};

#ifdef __cplusplus
#define NG_EXTERN extern "C"
#else
#define NG_EXTERN extern
#endif

#define NG_EXPORT_NOTE(module_kind)                                                            \
    __attribute__((section(".note.notegate"), used,                                            \
                   aligned(4))) static const struct ng_elf_note ng_module_note = {             \
        9, 8, NG_NOTE_TYPE, "notegate", NG_ABI, (module_kind)}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
