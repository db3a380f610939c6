/* SPDX-License-Identifier: MIT */
/*
 * crash.c - the handler of fatal signals, and the file of crashes.
 *
 * The handler runs in a process whose locks and heap may be broken: it writes the file first,
 * with write(2) alone, and an alarm ends the process if what follows hangs.
 */
#include "crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "module_run.h"

#define CRASH_STACK_BYTES ((size_t)64 * 1024)
/* How long the handler may take. */
#define CRASH_ALARM_S 3
/* The newest part of the file that is read, and the longest name of a module that is kept. */
#define CRASH_READ_MAX ((size_t)64 * 1024)
#define CRASH_NAME_MAX 512
#define CRASH_LINE_MAX 2048
/* Return addresses that are checked for a crash in a thread of a module's own. */
#define CRASH_FRAMES_MAX 48
#define CRASH_EXIT_STATUS 70 /* EX_SOFTWARE: a service manager starts the gateway again */

#ifdef NOTEGATE_SANITIZED
#define CRASH_HANDLED false /* a sanitizer's runtime tells more */
#else
#define CRASH_HANDLED true
#endif

/* Process-wide, as signal handlers are. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_int crash_fd = -1;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_bool crash_installed;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static atomic_bool crash_told;

static const struct {
    int number;
    const char *name;
} crash_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"},
    {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},
};

/* ---- in the handler ---- */

static const char *signal_name(int number)
{
    for (size_t i = 0; i < NG_COUNT(crash_signals); i++) {
        if (crash_signals[i].number == number) {
            return crash_signals[i].name;
        }
    }
    return "exit()";
}

/* Printable ASCII that needs no escape in JSON; anything else becomes '?'. */
static char plain(char c)
{
    return (char)(c > ' ' && c < 0x7f && c != '"' && c != '\\' ? c : '?');
}

static void plain_copy(char *out, size_t size, const char *text, size_t len)
{
    size_t used = 0;
    for (; used + 1 < size && used < len && text[used] != '\0'; used++) {
        out[used] = plain(text[used]);
    }
    out[used] = '\0';
}

static void write_whole(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, text, len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return;
        }
        text += written;
        len -= (size_t)written;
    }
}

static void crash_remember(const char *module, const struct module_run *run)
{
    char line[CRASH_NAME_MAX + 128];
    char where[64];
    int fd = atomic_load(&crash_fd);
    struct timespec now;
    if (fd >= 0 && clock_gettime(CLOCK_REALTIME, &now) == 0) {
        const char *what = "thread";
        if (run != NULL) {
            what = run->what;
        }
        plain_copy(where, sizeof(where), what, sizeof(where));
        int len =
            snprintf(line, sizeof(line), "%lld %s %s\n", (long long)now.tv_sec, where, module);
        write_whole(fd, line, len > 0 ? (size_t)len : 0);
    }
}

static void crash_log(const char *cause, const char *module, const struct module_run *run)
{
    char line[CRASH_LINE_MAX];
    char tool[128] = "";
    char agent[128] = "";
    struct timespec now = {0, 0};
    struct tm day = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &day);
    if (run != NULL) {
        plain_copy(tool, sizeof(tool), run->what, sizeof(tool));
        plain_copy(agent, sizeof(agent), run->agent.data, run->agent.len);
    }
    const char *shown = "unknown";
    if (module[0] != '\0') {
        shown = module;
    }
    int used = snprintf(line, sizeof(line), "%s%04d-%02d-%02dT%02d:%02d:%02dZ",
                        log_is_json() ? "{\"time\":\"" : "", day.tm_year + 1900, day.tm_mon + 1,
                        day.tm_mday, day.tm_hour, day.tm_min, day.tm_sec);
    size_t at = 0;
    if (used > 0) {
        at = (size_t)used;
    }
    int len;
    if (log_is_json()) {
        len = snprintf(line + at, sizeof(line) - at,
                       "\",\"level\":\"error\",\"where\":\"crash\",\"message\":\"the gateway "
                       "ends: %s in the module %s\",\"module\":\"%s\",\"tool\":\"%s\","
                       "\"agent\":\"%s\"}\n",
                       cause, shown, module, tool, agent);
    } else {
        len = snprintf(line + at, sizeof(line) - at,
                       " error crash: the gateway ends: %s in the module %s (module=%s tool=%s "
                       "agent=%s)\n",
                       cause, shown, module, tool, agent);
    }
    if (len > 0) {
        size_t whole = at + (size_t)len;
        write_whole(STDERR_FILENO, line, whole < sizeof(line) ? whole : sizeof(line) - 1);
    }
}

/* The file of the innermost frame that lies in a module, which is called NAME.so: neither this
 * program nor a library. */
static void crash_frame_module(char *out, size_t size)
{
    void *frames[CRASH_FRAMES_MAX];
    Dl_info own;
    Dl_info at;
    int count = backtrace(frames, CRASH_FRAMES_MAX);
    if (dladdr((const void *)getauxval(AT_ENTRY), &own) == 0) {
        return;
    }
    for (int i = 0; i < count; i++) {
        if (dladdr(frames[i], &at) == 0 || at.dli_fname == NULL ||
            at.dli_fbase == own.dli_fbase) {
            continue;
        }
        const char *slash = strrchr(at.dli_fname, '/');
        const char *name = at.dli_fname;
        if (slash != NULL) {
            name = slash + 1;
        }
        if (strncmp(name, "lib", 3) != 0 && strncmp(name, "ld-", 3) != 0 &&
            strncmp(name, "linux-vdso", 10) != 0) {
            plain_copy(out, size, at.dli_fname, size);
            return;
        }
    }
}

/* False: no module caused it, nothing was reported. */
static bool crash_tell(int number)
{
    char module[CRASH_NAME_MAX] = "";
    const struct module_run *run = module_run_now();
    if (run != NULL) {
        plain_copy(module, sizeof(module), run->module, sizeof(module));
    } else {
        crash_frame_module(module, sizeof(module));
    }
    if (module[0] == '\0' && number == 0) {
        return false;
    }
    if (module[0] != '\0') {
        crash_remember(module, run);
    }
    crash_log(signal_name(number), module, run);
    return true;
}

static void on_crash(int number)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t alarms;
    (void)sigaction(number, &standard, NULL);
    /* Of several threads that crash at once the first one tells; the others end with it. */
    if (!atomic_exchange(&crash_told, true)) {
        (void)sigaction(SIGALRM, &standard, NULL);
        (void)sigemptyset(&alarms);
        (void)sigaddset(&alarms, SIGALRM);
        (void)pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
        (void)alarm(CRASH_ALARM_S);
        (void)crash_tell(number);
    } else {
        (void)sleep(CRASH_ALARM_S);
    }
    (void)raise(number);
}

/* exit() was called: by this program when it is done, or by a module's code. */
static void on_exit_called(void)
{
    if (!atomic_load(&crash_told) && crash_tell(0)) {
        _exit(CRASH_EXIT_STATUS);
    }
}

/* ---- installing ---- */

void crash_install(void)
{
    if (!CRASH_HANDLED) {
        return;
    }
    void *frame = NULL;
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    (void)backtrace(&frame, 1); /* loads its code while that is safe */
    for (size_t i = 0; i < NG_COUNT(crash_signals); i++) {
        (void)sigaction(crash_signals[i].number, &action, NULL);
    }
    (void)atexit(on_exit_called);
    atomic_store(&crash_installed, true);
    crash_thread();
}

/* As a thread ends. */
static void crash_free_stack(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&none, NULL);
    free(stack);
}

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_key_t crash_stack_key;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t crash_stack_once = PTHREAD_ONCE_INIT;
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static bool crash_stack_keyed;

static void make_stack_key(void)
{
    crash_stack_keyed = pthread_key_create(&crash_stack_key, crash_free_stack) == 0;
}

void crash_thread(void)
{
    (void)pthread_once(&crash_stack_once, make_stack_key);
    if (!atomic_load(&crash_installed) || !crash_stack_keyed ||
        pthread_getspecific(crash_stack_key) != NULL) {
        return;
    }
    stack_t stack = {.ss_sp = alloc_bytes(CRASH_STACK_BYTES), .ss_size = CRASH_STACK_BYTES};
    if (stack.ss_sp == NULL) {
        return;
    }
    if (sigaltstack(&stack, NULL) != 0 ||
        pthread_setspecific(crash_stack_key, stack.ss_sp) != 0) {
        crash_free_stack(stack.ss_sp);
    }
}

/* ---- the file ---- */

static int crash_open(const char *data_dir, int flags)
{
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/%s", data_dir, CRASH_FILE_NAME);
    if (len > 0 && (size_t)len < sizeof(path)) {
        return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    }
    return -1;
}

void crash_remember_in(const char *data_dir)
{
    int fd = -1;
    if (data_dir != NULL) {
        fd = crash_open(data_dir, O_WRONLY | O_CREAT | O_APPEND);
    }
    int before = atomic_exchange(&crash_fd, fd);
    if (before >= 0) {
        (void)close(before);
    }
}

/* The newest part of the file, whole lines; "" where there is none. */
static size_t crash_read(const char *data_dir, char *text, size_t size)
{
    struct stat status;
    ssize_t len = -1;
    int fd = crash_open(data_dir, O_RDONLY);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        off_t from = 0;
        if (status.st_size > (off_t)size - 1) {
            from = status.st_size - ((off_t)size - 1);
        }
        len = pread(fd, text, size - 1, from);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    text[i64_max(len, 0)] = '\0';
    if (len <= 0) {
        return 0;
    }
    return (size_t)len;
}

/* Did the handler write this of `module`? */
static bool equals_plain(const char *written, size_t len, const char *module)
{
    size_t i = 0;
    while (i < len && module[i] != '\0' && written[i] == plain(module[i])) {
        i++;
    }
    return i == len && module[i] == '\0';
}

/* The line names the module as the configuration did, or its file. */
static bool names_module(const char *name, size_t len, const char *module)
{
    if (equals_plain(name, len, module)) {
        return true;
    }
    const char *base = name + len;
    while (base > name && base[-1] != '/') {
        base--;
    }
    size_t base_len = (size_t)(name + len - base);
    return base > name && base_len > 3 && strncmp(base + base_len - 3, ".so", 3) == 0 &&
           equals_plain(base, base_len - 3, module);
}

/* One line of the file; ends in NUL or a line feed. */
struct crash_line {
    int64_t at_s;
    const char *where, *module;
    size_t where_len, module_len;
};

/* False: it is no whole line. */
static bool crash_parse(const char *text, struct crash_line *line)
{
    char *rest = NULL;
    line->at_s = strtoll(text, &rest, 10);
    if (rest == text || *rest != ' ') {
        return false;
    }
    line->where = rest + 1;
    line->where_len = strcspn(line->where, " \n");
    if (line->where[line->where_len] != ' ') {
        return false;
    }
    line->module = line->where + line->where_len + 1;
    line->module_len = strcspn(line->module, "\n");
    return line->module_len > 0;
}

static bool is_young(const struct crash_line *line, int64_t now_s)
{
    return line->at_s <= now_s && line->at_s > now_s - CRASHES_WITHIN_S;
}

static const char *next_line(const char *text)
{
    const char *end = strchr(text, '\n');
    if (end == NULL) {
        return text + strlen(text);
    }
    return end + 1;
}

unsigned crash_count(const char *data_dir, const char *module, int64_t now_s, bool *ret_loading)
{
    char *text = alloc_bytes(CRASH_READ_MAX);
    unsigned count = 0;
    *ret_loading = false;
    if (text == NULL) {
        return 0;
    }
    (void)crash_read(data_dir, text, CRASH_READ_MAX);
    for (const char *at = text; *at != '\0'; at = next_line(at)) {
        struct crash_line line;
        if (crash_parse(at, &line) && is_young(&line, now_s) &&
            names_module(line.module, line.module_len, module)) {
            count++;
            *ret_loading = *ret_loading || equals_plain(line.where, line.where_len, "load");
        }
    }
    free(text);
    return count;
}

void crash_forget_old(const char *data_dir, int64_t now_s)
{
    char *text = alloc_bytes(CRASH_READ_MAX);
    bool young = false;
    if (text == NULL) {
        return;
    }
    size_t len = crash_read(data_dir, text, CRASH_READ_MAX);
    for (const char *at = text; *at != '\0' && !young; at = next_line(at)) {
        struct crash_line line;
        young = crash_parse(at, &line) && is_young(&line, now_s);
    }
    free(text);
    int fd = -1;
    if (len > 0 && !young) {
        fd = crash_open(data_dir, O_WRONLY);
    }
    if (fd >= 0) {
        if (ftruncate(fd, 0) != 0) {
            log_write(NG_LOG_WARNING, "crash", "the file %s/%s could not be emptied", data_dir,
                      CRASH_FILE_NAME);
        }
        (void)close(fd);
    }
}
