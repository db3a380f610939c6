/* SPDX-License-Identifier: MIT */
/* standalone_main.c - runs a fuzz target over the files of a folder, without a fuzzer: the
 * corpus as a regression test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX ((size_t)1024 * 1024)
#define PATH_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes are in a block of just their size, so that a sanitizer sees a read behind them. */
static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *whole = malloc(INPUT_BYTES_MAX);
    if (file == NULL || whole == NULL) {
        (void)fprintf(stderr, "%s cannot be read\n", path);
        if (file != NULL) {
            (void)fclose(file);
        }
        free(whole);
        return -1;
    }
    size_t size = fread(whole, 1, INPUT_BYTES_MAX, file);
    (void)fclose(file);
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (exact != NULL) {
        memcpy(exact, whole, size);
        (void)LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(whole);
    return exact == NULL ? -1 : 0;
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    int rc = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        (void)fprintf(stderr, "usage: %s FOLDER (an existing one)\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[PATH_BYTES_MAX];
        int len = snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        if (entry->d_name[0] == '.' || len < 0 || (size_t)len >= sizeof(path)) {
            continue;
        }
        rc = run_file(path) != 0 ? 1 : rc;
        files++;
    }
    (void)closedir(folder);
    (void)printf("%u files\n", files);
    return files == 0 ? 1 : rc;
}
