/* SPDX-License-Identifier: MIT */
/*
 * abi.h - common definitions of every module and the gateway: strings, the module record, the
 * export macros.
 *
 * The comment of each struct of the SDK names one of two kinds:
 *
 * - "Never grows": it has the same members in every release of ABI 1. It may be an element of
 * an array and a member of another struct.
 * - "Read by its size": later releases add members at its end, never in padding. The side that
 *   creates the struct states its size: in its first member `size`, in the module record (for
 *   descriptors) or in `field_size`. The other side reads and writes no more than that, and
 * tests NG_HAS() before it uses a member that is newer than the first release of ABI 1. A size
 * that is 0, or too small for the required members, is refused.
 *
 * An array that a module reads is an array of pointers. An array that a module writes advances
 * by the size of its first element.
 *
 * ABI 1 is frozen: members are only appended, to structs that are read by their size; nothing
 * is renamed, moved, removed or given another meaning. tests/abi/v1 keeps its first headers.
 *
 * Additions to ABI 1 (newest last): gateway_name, gateway_term and gateway_find of ng_host;
 * watch and advise of ng_documents; moment of ng_query; confirm of ng_documents; deadline_ns of
 * ng_batch; later and start_later of ng_host; notes of ng_plugin; is_guide of ng_prompt; rights
 * of ng_caller; NG_TOOL_RESTORES; NG_TOOL_BY_SPACE; collection of ng_file_undo; content of
 * ng_file_list; NG_ENTRY_INTO; memory and forget of ng_journal; NG_ENTRY_FORGET; edits,
 * edit_count and folder of ng_file_transfer; ng_hit, ng_find, and find, find_kind and scans of
 * ng_resources; find of ng_host; memories of ng_recall; answer_room of ng_host;
 * session of ng_caller; reply_meta, undo and purge of ng_host; only_deleted of ng_query;
 * NG_DOCUMENTS_ONLY_DELETED; purge, purge_events,
 * purge_data and purge_sweep of ng_documents; run_id, key_id and client of ng_caller;
 * ng_origin, and origin of ng_doc, ng_event and ng_put; tool and event_data of ng_doc; gateway
 * of ng_put; sqlite_bytes of ng_host; NG_COLLECTION_CONTENT; members of ng_collection;
 * ng_names, ng_trail and ng_as_of, and collection, use_collection, point_seq, revision_at and
 * trail of ng_host; ng_run, and runs of ng_host and ng_documents; names of ng_file; ng_content
 * and restore of ng_collection; ng_restore, ng_undo_item, ng_undo_work, ng_undo_done,
 * ng_unfinished, and members, restore, undo_changes, unfinished and use_file of ng_host;
 * ng_kept, and revision_at and trail of ng_documents; flags of ng_range, NG_RANGE_SPLICES, and
 * text_splice of ng_doc; ng_sides and ng_content_kind, contents and content_count of ng_plugin,
 * and file_view of ng_host; gateway of ng_event.
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

/* Bytes with a length. Does not own them. They need not end in NUL and may contain NUL. {NULL,
 * 0} means "absent". Never grows. */
struct ng_str {
    const char *data;
    size_t len;
};

/* The bytes of a C string; NULL gives {NULL, 0}. Borrows the text. */
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

/* Size of a struct up to and including this member. */
#define NG_UP_TO(type, member)                                                                 \
    (offsetof(struct type, member) + sizeof(((struct type *)0)->member))

/* True if *object, which is read by its size, has this member. Object: an expression without
 * side effects, e.g. NG_HAS(call->host, history_count). */
#define NG_HAS(object, member)                                                                 \
    ((object)->size >= (size_t)((const char *)(&(object)->member + 1) - (const char *)(object)))

/* Fills an output that is read by its size: copies the members that both *from and *to have.
 * Both begin with `size`; the `size` of *to does not change. */
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

/* Number of item sizes in the module record. */
#define NG_ITEM_SIZES 8

/*
 * Size of struct ng_host that the module requires. A gateway with a smaller one refuses the
 * module before any of its code runs. The default is the struct in the headers of the module. A
 * module that tests NG_HAS() before it uses newer members defines the part that it requires,
 * before its export: #define NG_NEEDS_HOST NG_UP_TO(ng_host, history_count)
 */
#ifndef NG_NEEDS_HOST
#define NG_NEEDS_HOST sizeof(struct ng_host)
#endif

/*
 * The only symbol that a module exports, `ng_module`, defined by NG_EXPORT_PLUGIN,
 * NG_EXPORT_DOCUMENTS or NG_EXPORT_JOURNAL. The sizes come from the headers of the module: the
 * loader copies the smaller of its own size and the module's, and zeroes the rest. So old
 * modules load in new gateways, and new modules in old gateways that have the required
 * services. Never grows.
 */
struct ng_module {
    uint32_t abi;         /* NG_ABI of the module */
    uint32_t kind;        /* enum ng_module_kind */
    uint32_t struct_size; /* of the descriptor */
    uint32_t needs_host;  /* required size of struct ng_host: NG_NEEDS_HOST */
    /* Item sizes of the arrays in the descriptor, in its order; 0: none. */
    uint32_t item_sizes[NG_ITEM_SIZES];
    const void *desc; /* const; must outlive the last call of the module */
};

#define NG_NOTE_TYPE 1

/* The same data as an ELF note (.note.notegate), which the loader reads before dlopen(): owner
 * "notegate", type 1, descriptor = abi, kind, needs_host. Never grows. */
struct ng_elf_note {
    uint32_t name_size;
    uint32_t desc_size;
    uint32_t type;
    char name[12]; /* "notegate", padded with NULs to a multiple of 4 */
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
