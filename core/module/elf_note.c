/* SPDX-License-Identifier: MIT */
/* elf_note.c - a small ELF64 reader: program headers and their notes, every offset checked
 * against the file. */
#include "elf_note.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Maximum of program headers and bytes of notes: real modules have a dozen and some hundred. */
#define ELF_HEADERS_MAX 128
#define ELF_NOTES_MAX ((size_t)64 * 1024)
#define ELF_OWNER "notegate"
/* A note that ends behind `kind`. */
#define ELF_DESC_OLD ((size_t)8)

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
#elif defined(__riscv)
#define ELF_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define ELF_MACHINE EM_PPC64
#elif defined(__s390x__)
#define ELF_MACHINE EM_S390
#else
#error "the ELF number of this machine is unknown: add it"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ELF_ORDER ELFDATA2LSB
#else
#define ELF_ORDER ELFDATA2MSB
#endif

static int elf_fail(struct buf *error, const char *text)
{
    (void)buf_add_c(error, text);
    return NG_EINVAL;
}

/* Copies `len` bytes at `at` of the file; false: they are not all there. */
static bool elf_take(struct ng_str file, uint64_t at, void *to, size_t len)
{
    if (at > file.len || len > file.len - at) {
        return false;
    }
    memcpy(to, file.data + at, len);
    return true;
}

static int elf_check_header(struct ng_str file, Elf64_Ehdr *header, struct buf *error)
{
    if (file.len < SELFMAG || memcmp(file.data, ELFMAG, SELFMAG) != 0) {
        return elf_fail(error, "is not a shared object (no ELF file)");
    }
    if (file.len > EI_CLASS && (unsigned char)file.data[EI_CLASS] == ELFCLASS32) {
        return elf_fail(error, "was built for a 32-bit machine");
    }
    if (!elf_take(file, 0, header, sizeof(*header))) {
        return elf_fail(error, "is cut off in its ELF header");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELF_ORDER ||
        header->e_machine != ELF_MACHINE) {
        (void)buf_printf(error, "was built for another machine (ELF machine %u, this is %u)",
                         (unsigned)header->e_machine, (unsigned)ELF_MACHINE);
        return NG_EINVAL;
    }
    if (header->e_type != ET_DYN) {
        return elf_fail(error, "is an ELF file, but not a shared object");
    }
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > ELF_HEADERS_MAX) {
        return elf_fail(error, "has invalid program headers");
    }
    /* Section headers are at the end of a file: a truncated download lacks them. */
    uint64_t sections = (uint64_t)header->e_shnum * header->e_shentsize;
    if (header->e_shoff > file.len || sections > file.len - header->e_shoff) {
        return elf_fail(error, "is cut off: the file is shorter than its headers say");
    }
    return NG_OK;
}

static size_t elf_padded(size_t len, size_t align)
{
    return (len + align - 1) & ~(align - 1);
}

/* Looks through one segment of notes. True: ours is there, or a note of ours is broken. */
static bool elf_find_note(struct ng_str notes, size_t align, struct elf_note *ret)
{
    size_t at = 0;
    Elf64_Nhdr head;
    while (elf_take(notes, at, &head, sizeof(head))) {
        /* Sizes are 32 bits: none of these sums can overflow. */
        size_t name_at = at + sizeof(head);
        size_t desc_at = name_at + elf_padded(head.n_namesz, align);
        uint32_t words[3] = {0};
        char name[sizeof(ELF_OWNER)];
        if (head.n_type == NG_NOTE_TYPE && head.n_namesz == sizeof(name) &&
            head.n_descsz >= ELF_DESC_OLD && elf_take(notes, name_at, name, sizeof(name)) &&
            memcmp(name, ELF_OWNER, sizeof(name)) == 0 &&
            elf_take(notes, desc_at, words,
                     head.n_descsz < sizeof(words) ? ELF_DESC_OLD : sizeof(words))) {
            ret->abi = words[0];
            ret->kind = words[1];
            ret->needs_host = words[2];
            ret->is_old = head.n_descsz < sizeof(words);
            return true;
        }
        at = desc_at + elf_padded(head.n_descsz, align);
    }
    return false;
}

int elf_note_parse(struct ng_str file, struct elf_note *ret, struct buf *error)
{
    Elf64_Ehdr header;
    int rc = elf_check_header(file, &header, error);
    if (rc != NG_OK) {
        return rc;
    }
    for (uint64_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (header.e_phoff > file.len ||
            !elf_take(file, header.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) {
            return elf_fail(error, "is cut off in its program headers");
        }
        if (segment.p_offset > file.len || segment.p_filesz > file.len - segment.p_offset) {
            return elf_fail(error, "is cut off: the file is shorter than its headers say");
        }
        if (segment.p_type != PT_NOTE) {
            continue;
        }
        size_t len = size_min(segment.p_filesz, ELF_NOTES_MAX);
        struct ng_str notes = str_make(file.data + segment.p_offset, len);
        if (elf_find_note(notes, segment.p_align == 8 ? 8 : 4, ret)) {
            return NG_OK;
        }
    }
    return elf_fail(error, "is not a notegate module (it has no notegate note)");
}

bool elf_short_of(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE;
}

int elf_note_open(const char *path, int *ret_fd, struct buf *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int code = errno;
        (void)buf_printf(error, "cannot be opened: %s", text_errno(code));
        if (elf_short_of(code)) {
            return NG_EINTERNAL;
        }
        if (code == ENOENT) {
            return NG_ENOTFOUND;
        }
        return NG_EINVAL;
    }
    *ret_fd = fd;
    return NG_OK;
}

int elf_note_read_file(int fd, struct elf_note *ret, struct buf *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return elf_fail(error, "is not a file");
    }
    if (info.st_size <= 0) {
        return elf_fail(error, "is empty");
    }
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        int rc = elf_short_of(errno) ? NG_EINTERNAL : NG_EINVAL;
        (void)buf_add_c(error, "cannot be mapped");
        return rc;
    }
    int rc = elf_note_parse(str_make(map, (size_t)info.st_size), ret, error);
    (void)munmap(map, (size_t)info.st_size);
    return rc;
}

int elf_note_read(const char *path, struct elf_note *ret, struct buf *error)
{
    int fd = -1;
    int rc = elf_note_open(path, &fd, error);
    if (rc == NG_OK) {
        rc = elf_note_read_file(fd, ret, error);
        (void)close(fd);
    }
    return rc;
}
