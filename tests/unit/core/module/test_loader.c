/* SPDX-License-Identifier: MIT */
/* test_loader.c - modules with one fault each (modules/), files that are no modules, and
 * descriptors of other sizes than today's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/module/elf_note.h"
#include "core/module/loader.h"

#define MODULES NOTEGATE_BUILD "/tests/modules"

static const char *const folders[] = {"/not/there", MODULES, NULL};

static struct module *must_open(const char *name, enum ng_module_kind kind)
{
    struct module *module = NULL;
    struct buf error;
    buf_init(&error, 8192);
    int rc = loader_open(folders, name, kind, &module, &error);
    assert_string_equal(buf_cstr(&error), "");
    assert_int_equal(rc, NG_OK);
    buf_done(&error);
    return module;
}

static void refused(const char *name, enum ng_module_kind kind, const char *message)
{
    struct module *module = NULL;
    struct buf error;
    buf_init(&error, 8192);
    int rc = loader_open(folders, name, kind, &module, &error);
    assert_string_equal(buf_cstr(&error), message);
    assert_true(rc == NG_EINVAL || rc == NG_ENOTFOUND);
    assert_null(module);
    assert_null(strchr(buf_cstr(&error), '\n'));
    buf_done(&error);
}

static void test_good(void **state)
{
    (void)state;
    struct module *module = must_open("good", NG_KIND_PLUGIN);
    const struct ng_plugin *plugin = &module->desc.plugin;
    assert_string_equal(module->path, MODULES "/good.so");
    assert_int_equal(module->kind, NG_KIND_PLUGIN);
    assert_string_equal(plugin->name, "good");
    assert_string_equal(plugin->version, "1.2.3");
    assert_int_equal(plugin->tool_count, 2);
    assert_string_equal(plugin->tools[1].name, "two");
    assert_non_null(plugin->tools[1].run);
    assert_int_equal(plugin->option_count, 1);
    assert_string_equal(plugin->options[0].name, "size");
    assert_null(plugin->prompts);
    assert_ptr_equal(plugin->tools, module->arrays[0]);
    loader_close(module);
    loader_close(NULL);
    /* By path, also twice at once. */
    module = must_open(MODULES "/good.so", NG_KIND_PLUGIN);
    struct module *again = must_open("good", NG_KIND_PLUGIN);
    loader_close(module);
    assert_string_equal(again->desc.plugin.tools[0].name, "one");
    loader_close(again);
}

static void test_older(void **state)
{
    (void)state;
    struct module *module = must_open("older", NG_KIND_PLUGIN);
    const struct ng_plugin *plugin = &module->desc.plugin;
    assert_string_equal(plugin->version, "0.9");
    assert_int_equal(plugin->threads, NG_THREADS_PARALLEL);
    assert_int_equal(plugin->tool_count, 2);
    assert_string_equal(plugin->tools[1].summary, "Second.");
    assert_int_equal(plugin->tools[1].effect, NG_EFFECT_WRITES);
    assert_null(plugin->tools[0].aliases);
    assert_true(plugin->start == NULL);
    assert_null(plugin->options);
    assert_int_equal(plugin->option_count, 0);
    assert_true(plugin->health == NULL);
    loader_close(module);
}

static void test_newer(void **state)
{
    (void)state;
    struct module *module = must_open("newer", NG_KIND_PLUGIN);
    const struct ng_plugin *plugin = &module->desc.plugin;
    assert_string_equal(plugin->name, "newer");
    assert_int_equal(plugin->tool_count, 2);
    assert_string_equal(plugin->tools[0].name, "one");
    assert_string_equal(plugin->tools[1].name, "two");
    assert_int_equal(plugin->tools[1].flags, 5);
    loader_close(module);
}

static void test_contents(void **state)
{
    (void)state;
    struct module *module = must_open("contents", NG_KIND_PLUGIN);
    const struct ng_plugin *plugin = &module->desc.plugin;
    assert_int_equal(plugin->content_count, 2);
    assert_string_equal(plugin->contents[0].ending, ".one");
    assert_true(plugin->contents[0].check == NULL);
    assert_string_equal(plugin->contents[1].ending, ".two");
    assert_true(plugin->contents[1].view == NULL);
    assert_true(plugin->contents[1].check != NULL);
    assert_ptr_equal(plugin->contents, module->arrays[6]);
    loader_close(module);
}

static void test_needs(void **state)
{
    (void)state;
    char message[1024];
    (void)snprintf(message, sizeof(message),
                   MODULES
                   "/needs_more.so needs a newer gateway: it uses %zu bytes of struct "
                   "ng_host, and notegate " NOTEGATE_VERSION
                   " has %zu; update the gateway, or build it with this gateway's headers "
                   "or with NG_NEEDS_HOST",
                   sizeof(struct ng_host) + 16, sizeof(struct ng_host));
    refused("needs_more", NG_KIND_PLUGIN, message);
    refused("old_note", NG_KIND_PLUGIN,
            MODULES
            "/old_note.so was built with headers from before ABI 1 was settled: build it "
            "again with this gateway's headers");
}

static void test_not_there(void **state)
{
    (void)state;
    refused("nothing", NG_KIND_PLUGIN,
            "module `nothing` is not there: no nothing.so in /not/there, " MODULES);
    refused("/not/there/x.so", NG_KIND_PLUGIN,
            "/not/there/x.so cannot be opened: No such file or directory");
    refused("x.so", NG_KIND_PLUGIN,
            "module `x.so` has no path: name a file as ./x.so, and a module of this gateway "
            "without .so");
    struct module *module = NULL;
    struct buf error;
    buf_init(&error, 8192);
    assert_int_equal(loader_open(NULL, "x", NG_KIND_PLUGIN, &module, &error), NG_ENOTFOUND);
    assert_string_equal(buf_cstr(&error),
                        "module `x` is not there: no x.so in any folder (none is given)");
    buf_done(&error);
}

static void test_numbers(void **state)
{
    (void)state;
    /* Its constructor aborts: being here afterwards is half of the test. */
    refused("foreign_abi", NG_KIND_PLUGIN,
            MODULES "/foreign_abi.so was built for ABI 2; this gateway has ABI 1: build it "
                    "again with this gateway's headers");
    refused("lying_note", NG_KIND_PLUGIN,
            MODULES "/lying_note.so was built for ABI 3; this gateway has ABI 1: build it "
                    "again with this gateway's headers");
    refused("good", NG_KIND_DOCUMENTS,
            MODULES "/good.so is a plugin, not a backend for documents");
    refused("documents", NG_KIND_PLUGIN,
            MODULES "/documents.so is a backend for documents, not a plugin");
    refused("journal", NG_KIND_DOCUMENTS,
            MODULES "/journal.so is a backend for the journal, not a backend for documents");
}

static void test_faults(void **state)
{
    (void)state;
    refused("no_note", NG_KIND_PLUGIN,
            MODULES "/no_note.so is not a notegate module (it has no notegate note)");
    refused("no_record", NG_KIND_PLUGIN,
            MODULES "/no_record.so has no symbol ng_module: export it with NG_EXPORT_...");
    refused("no_desc", NG_KIND_PLUGIN,
            MODULES "/no_desc.so has no descriptor in its ng_module");
    refused("no_version", NG_KIND_PLUGIN,
            MODULES "/no_version.so has no `version` in its descriptor");
    refused("bad_name", NG_KIND_PLUGIN,
            MODULES "/bad_name.so has an invalid name, `Loud-One`: a name has up to 32 of a-z, "
                    "0-9 and _, and begins with a letter");
    refused("no_params", NG_KIND_PLUGIN,
            MODULES "/no_params.so has a tool (number 2, `two`) without `params`");
    refused("half", NG_KIND_PLUGIN, MODULES "/half.so declares `tool_count` without `tools`");
    refused("half_array", NG_KIND_PLUGIN,
            MODULES "/half_array.so declares `options` without `option_count`");
    refused("item_size", NG_KIND_PLUGIN,
            MODULES "/item_size.so gives its `tools` an invalid item size: 7");
    refused("documents", NG_KIND_DOCUMENTS,
            MODULES "/documents.so has no `answer` in its descriptor");
    refused("journal", NG_KIND_JOURNAL, MODULES "/journal.so has no `open` in its descriptor");
}

static void test_dlopen_fails(void **state)
{
    (void)state;
    struct module *module = NULL;
    struct buf error;
    buf_init(&error, 8192);
    assert_int_equal(loader_open(folders, "unresolved", NG_KIND_PLUGIN, &module, &error),
                     NG_EINVAL);
    const char *text = buf_cstr(&error);
    const char *begin = MODULES "/unresolved.so cannot be loaded: ";
    assert_memory_equal(text, begin, strlen(begin));
    assert_non_null(strstr(text, "notegate_test_not_there"));
    buf_done(&error);
}

/* ---- files that are no modules ---- */

static char scratch[] = "/tmp/notegate-loader-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(scratch) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/x.so", scratch);
    (void)unlink(path);
    return rmdir(scratch);
}

static void refused_bytes(const void *bytes, size_t len, const char *what)
{
    char path[64];
    char message[256];
    (void)snprintf(path, sizeof(path), "%s/x.so", scratch);
    (void)snprintf(message, sizeof(message), "%s %s", path, what);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    refused(path, NG_KIND_PLUGIN, message);
}

static char *slurp(const char *path, size_t *ret_len)
{
    struct stat info;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    char *bytes = malloc((size_t)info.st_size);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, (size_t)info.st_size, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void test_no_modules(void **state)
{
    (void)state;
    size_t len;
    char *good = slurp(MODULES "/good.so", &len);
    Elf64_Ehdr header;
    memcpy(&header, good, sizeof(header));
    refused_bytes("", 0, "is empty");
    refused_bytes("#!/bin/sh\n", 10, "is not a shared object (no ELF file)");
    refused_bytes("\x7f", 1, "is not a shared object (no ELF file)");
    refused_bytes(good, 30, "is cut off in its ELF header");
    refused_bytes(good, sizeof(header) + 10,
                  "is cut off: the file is shorter than its headers say");
    refused_bytes(good, len / 4, "is cut off: the file is shorter than its headers say");
    good[EI_CLASS] = ELFCLASS32;
    refused_bytes(good, len, "was built for a 32-bit machine");
    good[EI_CLASS] = ELFCLASS64;
    header.e_machine++;
    memcpy(good, &header, sizeof(header));
    char message[100];
    (void)snprintf(message, sizeof(message),
                   "was built for another machine (ELF machine %u, this is %u)",
                   (unsigned)header.e_machine, (unsigned)header.e_machine - 1);
    refused_bytes(good, len, message);
    header.e_machine--;
    header.e_type = ET_REL;
    memcpy(good, &header, sizeof(header));
    refused_bytes(good, len, "is an ELF file, but not a shared object");
    header.e_type = ET_DYN;
    header.e_phoff = UINT64_MAX - 8;
    memcpy(good, &header, sizeof(header));
    refused_bytes(good, len, "is cut off in its program headers");
    header.e_phentsize = 3;
    memcpy(good, &header, sizeof(header));
    refused_bytes(good, len, "has invalid program headers");
    free(good);
    char path[80];
    char whole[160];
    (void)snprintf(path, sizeof(path), "%s/", scratch);
    (void)snprintf(whole, sizeof(whole), "%s is not a file", path);
    refused(path, NG_KIND_PLUGIN, whole);
}

/* Every beginning of a module, and every byte of its headers changed: an answer, no crash. The
 * sanitizers watch. */
static void test_broken_anywhere(void **state)
{
    (void)state;
    size_t len;
    char *good = slurp(MODULES "/good.so", &len);
    struct elf_note note;
    struct buf error;
    buf_init(&error, 1024);
    for (size_t cut = 0; cut < len; cut += cut < 2048 ? 1 : 509) {
        char *exact = malloc(cut + 1);
        assert_non_null(exact);
        memcpy(exact, good, cut);
        buf_clear(&error);
        assert_int_equal(elf_note_parse(str_make(exact, cut), &note, &error), NG_EINVAL);
        assert_true(error.len > 0);
        free(exact);
    }
    size_t looked_at = len < 2048 ? len : 2048;
    for (size_t i = 0; i < looked_at * 4; i++) {
        static const char changes[] = {'\xff', '\x00', '\x80', '\x01'};
        char saved = good[i / 4];
        good[i / 4] = changes[i % 4];
        buf_clear(&error);
        (void)elf_note_parse(str_make(good, len), &note, &error);
        good[i / 4] = saved;
    }
    buf_clear(&error);
    assert_int_equal(elf_note_parse(str_make(good, len), &note, &error), NG_OK);
    assert_int_equal(note.abi, 1);
    assert_int_equal(note.kind, NG_KIND_PLUGIN);
    buf_done(&error);
    free(good);
}

static void test_list(void **state)
{
    (void)state;
    char **names = NULL;
    size_t count = 0;
    const char *const twice[] = {MODULES, "/not/there", MODULES, NULL};
    assert_int_equal(loader_list(twice, NG_KIND_PLUGIN, &names, &count), NG_OK);
    bool good = false;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(names[i - 1], names[i]) < 0);
        assert_string_not_equal(names[i], "documents");
        assert_string_not_equal(names[i], "no_note");
        good = good || strcmp(names[i], "good") == 0;
    }
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
    assert_true(good);
    assert_int_equal(loader_list(twice, NG_KIND_JOURNAL, &names, &count), NG_OK);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "journal");
    free(names[0]);
    free(names);
    assert_int_equal(loader_list(NULL, NG_KIND_JOURNAL, &names, &count), NG_OK);
    assert_int_equal(count, 0);
    free(names);
}

/* A module that cannot be looked at just now is not one that is not there. */
static void test_list_without_descriptors(void **state)
{
    struct rlimit limit;
    char **names = NULL;
    size_t count = 0;
    (void)state;
    int lowest = dup(STDERR_FILENO);
    assert_true(lowest >= 0);
    (void)close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t more = 0; more < 2; more++) { /* none for the folder, then none for its files */
        struct rlimit few = {(rlim_t)lowest + more, limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int rc = loader_list(folders, NG_KIND_PLUGIN, &names, &count);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(rc, NG_EINTERNAL);
    }
}

static void test_default_folders(void **state)
{
    (void)state;
    char path[4096];
    char before[4096];
    assert_int_equal(setenv("NOTEGATE_TEST_MODULES", "/some/where", 1), 0);
    assert_int_equal(loader_default_folders(NG_KIND_PLUGIN, path, sizeof(path)), NG_OK);
    assert_string_equal(path, "/some/where/plugins");
    assert_int_equal(loader_default_folders(NG_KIND_JOURNAL, path, sizeof(path)), NG_OK);
    assert_string_equal(path, "/some/where/backends");
    assert_int_equal(loader_default_folders(NG_KIND_PLUGIN, path, 10), NG_ETOOLARGE);
    assert_int_equal(unsetenv("NOTEGATE_TEST_MODULES"), 0);
    /* This program is in the build tree's `tests`: ../modules, where it has been built. */
    (void)snprintf(before, sizeof(before), "%s/modules/plugins", NOTEGATE_BUILD);
    assert_int_equal(loader_default_folders(NG_KIND_PLUGIN, path, sizeof(path)), NG_OK);
    if (access(before, R_OK) == 0) {
        assert_string_equal(path, before);
    } else {
        assert_non_null(strstr(path, "/plugins"));
    }
    assert_int_equal(loader_default_folders(NG_KIND_PLUGIN, path, 3), NG_ETOOLARGE);
}

static void test_no_memory(void **state)
{
    (void)state;
    int rc = NG_EINVAL;
    long failed = 0;
    while (rc != NG_OK) {
        struct module *module = NULL;
        struct buf error;
        buf_init(&error, 8192);
        alloc_fail_after(failed);
        rc = loader_open(folders, "good", NG_KIND_PLUGIN, &module, &error);
        alloc_fail_after(-1);
        loader_close(module);
        buf_done(&error);
        failed++;
        assert_true(failed < 1000);
    }
    assert_true(failed > 2);
    char **names = NULL;
    size_t count = 0;
    for (long i = 0; i < 3; i++) {
        alloc_fail_after(i);
        assert_int_equal(loader_list(folders, NG_KIND_PLUGIN, &names, &count), NG_EINTERNAL);
        alloc_fail_after(-1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_dlopen_fails),
        cmocka_unit_test(test_no_modules),
        cmocka_unit_test(test_broken_anywhere),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_without_descriptors),
        cmocka_unit_test(test_default_folders),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
