/* SPDX-License-Identifier: MIT */
/* metrics_process.c - figures of this process from the kernel, with the names of Prometheus'
 * own clients. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/minmax.h"
#include "metrics.h"

#define STAT_TEXT_MAX 1024
/* Fields of /proc/self/stat behind the name in brackets: state is the first. */
#define STAT_START_FIELD 19

static void gauge(struct buf *out, const char *name, const char *help, double value)
{
    metrics_head(out, name, "gauge", help);
    (void)buf_printf(out, "%s %.17g\n", name, value);
}

static size_t read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = -1;
    if (fd >= 0) {
        len = read(fd, text, size - 1);
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

static void print_memory(struct buf *out)
{
    char text[STAT_TEXT_MAX];
    unsigned long long total = 0;
    unsigned long long resident = 0;
    long page = sysconf(_SC_PAGESIZE);
    if (read_text("/proc/self/statm", text, sizeof(text)) > 0 &&
        /* NOLINTNEXTLINE(cert-err34-c) */
        sscanf(text, "%llu %llu", &total, &resident) == 2) {
        gauge(out, "process_resident_memory_bytes", "Resident memory.",
              (double)resident * (double)page);
        gauge(out, "process_virtual_memory_bytes", "Address space.",
              (double)total * (double)page);
    }
}

static void print_files(struct buf *out)
{
    struct rlimit limit;
    double count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder != NULL) {
        while (readdir(folder) != NULL) {
            count++;
        }
        (void)closedir(folder);
        /* Not ".", "..", and the descriptor of the folder itself. */
        gauge(out, "process_open_fds", "Open file descriptors.", count - 3);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
              (double)limit.rlim_cur);
    }
}

static void print_times(struct buf *out)
{
    char text[STAT_TEXT_MAX];
    struct rusage usage;
    struct timespec real;
    struct timespec boot;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double used = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        metrics_head(out, "process_cpu_seconds_total", "counter", "Processor time used.");
        (void)buf_printf(out, "process_cpu_seconds_total %.6f\n", used);
    }
    if (read_text("/proc/self/stat", text, sizeof(text)) == 0 ||
        clock_gettime(CLOCK_REALTIME, &real) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0) {
        return;
    }
    const char *at = strrchr(text, ')');
    for (int field = 0; at != NULL && field <= STAT_START_FIELD; field++) {
        at = strchr(at + 1, ' ');
    }
    unsigned long long ticks = 0;
    /* NOLINTNEXTLINE(cert-err34-c) */
    if (at != NULL && sscanf(at, " %llu", &ticks) == 1) {
        double since = (double)real.tv_sec - (double)boot.tv_sec;
        gauge(out, "process_start_time_seconds", "Start time in seconds since 1970.",
              since + (double)ticks / (double)sysconf(_SC_CLK_TCK));
    }
}

void metrics_print_process(struct buf *out)
{
    print_memory(out);
    print_files(out);
    print_times(out);
}
