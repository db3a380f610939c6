/* SPDX-License-Identifier: MIT */
/* test_config_rig.c - shared code of test_config*.c; see the header.
 */
#include "test_config_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ng_option module_options[] = {
    {.name = "uri", .secret = true, .env = "MONGODB_URL", .help = "Where the server is."},
    {.name = "timeout",
     .type = NG_OPTION_DURATION,
     .fallback = "5s",
     .min = 100,
     .max = 60000,
     .help = "Longest wait."},
    {.name = "max", .type = NG_OPTION_SIZE, .fallback = "1MiB"},
    {.name = "count", .type = NG_OPTION_INT, .fallback = "-2", .min = -5, .max = 5},
    {.name = "ratio", .type = NG_OPTION_NUMBER, .fallback = "0.5"},
    {.name = "on", .type = NG_OPTION_BOOL},
    {.name = "names", .type = NG_OPTION_LIST, .fallback = "a,b"},
    {.name = "kind", .choices = "big small", .fallback = "big"},
    {.name = "any", .type = NG_OPTION_INT},
};

char folder[] = "/tmp/notegate-config-XXXXXX";

int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

int teardown(void **state)
{
    (void)state;
    (void)unlink(FILE_NAME);
    (void)unlink("notegate.yaml");
    (void)unlink("secret");
    assert_int_equal(chdir("/"), 0);
    return rmdir(folder);
}

void write_file(const char *name, const char *text, size_t len)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

int load(const struct given *given, struct config **ret, struct buf *error)
{
    struct config_input input = {.no_file = given->file == NULL, .file = FILE_NAME};
    if (given->file != NULL) {
        write_file(FILE_NAME, given->file, strlen(given->file));
    }
    /* config_load() takes what main() has, and changes none of it. */
    memcpy(&input.environ, &given->environ, sizeof(input.environ));
    input.sets = given->sets;
    while (given->sets != NULL && given->sets[input.set_count] != NULL) {
        input.set_count++;
    }
    int rc = config_load(&input, ret, error);
    if (rc == NG_OK) {
        rc = config_declare(*ret, "mod", module_options, NG_COUNT(module_options),
                            sizeof(module_options[0]), error);
        rc = rc == NG_OK ? config_finish(*ret, error) : rc;
        if (rc != NG_OK) {
            config_free(*ret);
        }
    }
    return rc;
}

struct config *must_load(const struct given *given)
{
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    int rc = load(given, &config, &error);
    if (rc != NG_OK) {
        print_error("%s\n", buf_cstr(&error));
    }
    assert_int_equal(rc, NG_OK);
    assert_int_equal(error.len, 0);
    buf_done(&error);
    return config;
}

void refused(const struct given *given, const char *message)
{
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    int rc = load(given, &config, &error);
    assert_string_equal(buf_cstr(&error), message);
    assert_int_equal(rc, NG_EINVAL);
    buf_done(&error);
}

void refused_file(const char *file, const char *message)
{
    refused(&(struct given){.file = file}, message);
}

void refused_set(const char *set, const char *message)
{
    refused(&(struct given){.sets = (const char *const[]){set, NULL}}, message);
}
