/* SPDX-License-Identifier: MIT */
/* fuzz_note.c - files given as modules: the ELF reader that looks before anything is mapped. */
#include <stdlib.h>

#include "core/base/str.h"
#include "core/module/elf_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf_note note;
    struct buf error;
    buf_init(&error, 1024);
    int rc = elf_note_parse(str_make((const char *)data, size), &note, &error);
    if ((rc == NG_OK) == (error.len > 0)) {
        abort();
    }
    buf_done(&error);
    return 0;
}
