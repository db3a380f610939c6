/* SPDX-License-Identifier: MIT */
/*
 * failing_alloc.c - preloaded into a gateway under test: the Nth allocation from now on that is
 * made by notegate's own code (the program and its modules, no library) fails. Who tests says
 * so through a file that both have mapped (FAILING_ALLOC); see control.py.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define FRAMES_MAX 40
#define RANGES_MAX 64

/* As control.py has it. */
struct control {
    _Atomic int64_t armed;
    _Atomic int64_t left;   /* counted down; the allocation that takes it to 0 fails */
    _Atomic int64_t burst;  /* how many fail in a row, from that one on */
    _Atomic int64_t seen;   /* own allocations since it was armed */
    _Atomic int64_t failed; /* of these */
    _Atomic int64_t depth;  /* frames of the first that failed */
    uint64_t frames[FRAMES_MAX];
};

struct range {
    uintptr_t from;
    uintptr_t to;
};

#define MAPS_PATH_MAX 4096

static struct control *control;
/* Beside the control file: a copy of /proc/self/maps, by which frames are found when the
 * process is gone. */
static char maps_path[MAPS_PATH_MAX];
/* Address ranges of our own code. Modules are never unloaded, so ranges are only added. */
static struct range ranges[RANGES_MAX];
static atomic_size_t range_count;
static atomic_flag looking = ATOMIC_FLAG_INIT;
static atomic_ullong known_modules;

/* The sanitizer's allocator, if present: it does not free memory that it did not allocate. */
void *__interceptor_malloc(size_t size) __attribute__((weak));
void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

__attribute__((constructor)) static void map_control(void)
{
    /* Kernels inherit the library: what their interpreter lacks is not asked here. */
    bool ours = strncmp(program_invocation_short_name, "notegate", 8) == 0;
    const char *path = ours ? getenv("FAILING_ALLOC") : NULL;
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    (void)snprintf(maps_path, sizeof(maps_path), "%s.maps", path);
    void *mapped = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    control = mapped == MAP_FAILED ? NULL : mapped;
}

static bool is_known(uintptr_t from)
{
    size_t count = atomic_load(&range_count);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].from == from) {
            return true;
        }
    }
    return false;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *first)
{
    bool own = *(bool *)first || strstr(info->dlpi_name, "/modules/") != NULL;
    (void)size;
    *(bool *)first = false;
    atomic_store(&known_modules, info->dlpi_adds);
    for (size_t i = 0; own && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        size_t count = atomic_load(&range_count);
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && count < RANGES_MAX &&
            !is_known(from)) {
            ranges[count] = (struct range){from, from + part->p_memsz};
            atomic_store(&range_count, count + 1);
        }
    }
    return 0;
}

static int ask_modules(struct dl_phdr_info *info, size_t size, void *changed)
{
    (void)size;
    *(bool *)changed = info->dlpi_adds != atomic_load(&known_modules);
    return 1;
}

static bool is_own(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    size_t count = atomic_load(&range_count);
    for (size_t i = 0; i < count; i++) {
        if (at >= ranges[i].from && at < ranges[i].to) {
            return true;
        }
    }
    return false;
}

/* Only while it is armed, and by one thread at a time. */
static void look_for_modules(void)
{
    bool changed = false;
    bool first = true;
    if (atomic_flag_test_and_set(&looking)) {
        return;
    }
    (void)dl_iterate_phdr(ask_modules, &changed);
    if (changed) {
        (void)dl_iterate_phdr(add_ranges, &first);
    }
    atomic_flag_clear(&looking);
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *user)
{
    (void)user;
    int64_t depth = atomic_load(&control->depth);
    if (depth >= FRAMES_MAX) {
        return _URC_END_OF_STACK;
    }
    control->frames[depth] = _Unwind_GetIP(context);
    atomic_store(&control->depth, depth + 1);
    return _URC_NO_REASON;
}

/* By system calls alone: this is inside an allocation. */
static void note_maps(void)
{
    char piece[4096];
    int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int to = open(maps_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t len = 0;
    while (from >= 0 && to >= 0 && (len = read(from, piece, sizeof(piece))) > 0) {
        if (write(to, piece, (size_t)len) != len) {
            break;
        }
    }
    if (from >= 0) {
        (void)close(from);
    }
    if (to >= 0) {
        (void)close(to);
    }
}

static bool fails(const void *caller)
{
    if (control == NULL || atomic_load_explicit(&control->armed, memory_order_relaxed) == 0) {
        return false;
    }
    look_for_modules();
    if (!is_own(caller)) {
        return false;
    }
    (void)atomic_fetch_add(&control->seen, 1);
    int64_t left = atomic_fetch_sub(&control->left, 1);
    if (left > 1 || left <= 1 - atomic_load(&control->burst)) {
        return false;
    }
    if (atomic_fetch_add(&control->failed, 1) == 0) {
        (void)_Unwind_Backtrace(note_frame, NULL);
        note_maps();
    }
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    if (fails(CALLER)) {
        return NULL;
    }
    return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails(CALLER)) {
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, size)
                                        : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (size > 0 && fails(CALLER)) {
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(old, size)
                                         : __libc_realloc(old, size);
}

/* libc allocates their memory on behalf of their caller. */

char *strndup(const char *text, size_t max)
{
    size_t len = strnlen(text, max);
    char *copy = fails(CALLER) ? NULL : malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fails(CALLER) ? NULL : malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

DIR *opendir(const char *path)
{
    DIR *(*real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    return fails(CALLER) ? NULL : real(path);
}

DIR *fdopendir(int fd)
{
    DIR *(*real)(int) = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");
    return fails(CALLER) ? NULL : real(fd);
}

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return fails(CALLER) ? NULL : real(path, mode);
}

char *realpath(const char *path, char *room)
{
    char *(*real)(const char *, char *) =
        (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    return room == NULL && fails(CALLER) ? NULL : real(path, room);
}
