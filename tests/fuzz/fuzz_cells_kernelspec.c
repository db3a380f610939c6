/* SPDX-License-Identifier: MIT */
/* fuzz_cells_kernelspec.c - kernel.json files, and the command made of them. */
#include <stdint.h>
#include <stdlib.h>

#include "kernel/kernelspec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str json = {(const char *)data, size};
    struct kernelspec spec;
    if (!kernelspec_parse(json, &spec)) {
        return 0;
    }
    const char **command = kernelspec_command(&spec, "/connection.json", &spec.memory);
    const char **variables = kernelspec_environment(&spec, &spec.memory);
    if (command == NULL || command[0] == NULL || variables == NULL) {
        abort();
    }
    kernelspec_done(&spec);
    return 0;
}
