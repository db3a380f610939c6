/* SPDX-License-Identifier: MIT */
/* record.h - the record that NG_EXPORT_... writes; every number can be wrong on purpose. */
#ifndef NOTEGATE_TEST_RECORD_H
#define NOTEGATE_TEST_RECORD_H

#include <notegate/backend.h>
#include <notegate/journal.h>

#define TEST_NOTE(abi, kind)                                                                   \
    __attribute__((section(".note.notegate"), used,                                            \
                   aligned(4))) static const struct ng_elf_note test_note = {                  \
        9, 12, NG_NOTE_TYPE, "notegate", (abi), (kind), 0}

/* As headers wrote it before modules said what they need of the host. */
#define TEST_OLD_NOTE(abi, kind)                                                               \
    __attribute__((section(".note.notegate"), used, aligned(4))) static const struct {         \
        uint32_t sizes[3];                                                                     \
        char name[12];                                                                         \
        uint32_t desc[2];                                                                      \
    } test_note = {{9, 8, NG_NOTE_TYPE}, "notegate", {(abi), (kind)}}

#define TEST_RECORD(abi, kind, size, sizes, desc)                                              \
    extern __attribute__((visibility("default"))) const struct ng_module ng_module;            \
    const struct ng_module ng_module = {(abi), (kind), (size), 0, {sizes}, (desc)}

#endif
