/* SPDX-License-Identifier: MIT */
/* fuzz_cells_wire.c - messages of kernels: the bytes are frames, each after its length in two
 * bytes; messages are printed, too. */
#include <stdint.h>
#include <stdlib.h>

#include "kernel/output.h"

#define CAP 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t cut(const uint8_t *data, size_t size, struct ng_str frames[WIRE_FRAMES_MAX])
{
    size_t count = 0;
    while (size >= 2 && count < WIRE_FRAMES_MAX) {
        size_t len = (size_t)data[0] << 8 | data[1];
        data += 2;
        size -= 2;
        len = len > size ? size : len;
        frames[count].data = (const char *)data;
        frames[count++].len = len;
        data += len;
        size -= len;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wire_key none = {""};
    static const struct wire_key some = {"0123456789abcdef"};
    struct ng_str frames[WIRE_FRAMES_MAX];
    struct wire_message message;
    size_t count = cut(data, size, frames);
    if (wire_parse(frames, count, &some, &message)) {
        abort(); /* a signature cannot be guessed */
    }
    if (!wire_parse(frames, count, &none, &message)) {
        return 0;
    }
    struct outputs outputs;
    struct nb_text json = {0};
    outputs_begin(&outputs, CAP);
    for (int i = 0; i < 3; i++) {
        (void)outputs_take(&outputs, &message);
    }
    outputs_json(&outputs, false, &json);
    if (outputs.bytes > CAP || json.failed || !nb_check(nb_text_str(&json))) {
        abort();
    }
    nb_text_done(&json);
    outputs_done(&outputs);
    return 0;
}
