/* SPDX-License-Identifier: MIT */
/* elf_note.h - the ELF note of a module, read from its file before it is loaded. */
#ifndef NOTEGATE_CORE_ELF_NOTE_H
#define NOTEGATE_CORE_ELF_NOTE_H

#include "core/base/buf.h"

struct elf_note {
    uint32_t abi;
    uint32_t kind;
    uint32_t needs_host; /* bytes of struct ng_host */
    bool is_old;         /* without needs_host: made before ABI 1 had its form */
};

/* Is this error of the system a want of memory or descriptors, which passes? */
bool elf_short_of(int error);
/* Reads the note of the shared object `path`. NG_ENOTFOUND: there is no such file; NG_EINVAL:
 * it is no module for this machine; NG_EINTERNAL: no memory, or no descriptor. `error`: what is
 * wrong, without the path. Nothing of the file runs. */
int elf_note_read(const char *path, struct elf_note *ret, struct buf *error);
/* The same in two steps: the read file is the opened file. */
int elf_note_open(const char *path, int *ret_fd, struct buf *error);
int elf_note_read_file(int fd, struct elf_note *ret, struct buf *error);
/* The same from a whole file in memory. */
int elf_note_parse(struct ng_str file, struct elf_note *ret, struct buf *error);

#endif
