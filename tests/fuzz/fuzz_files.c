/* SPDX-License-Identifier: MIT */
/* fuzz_files.c - records that the file service reads back from its store - an intent or an undo
 * history, a NUL, its text: an accepted record prints to the same, and is applied without a
 * fault. */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/files/files_state.h"
#include "test_gateway.h"

#define PRINT_BYTES_MAX ((size_t)1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_hex(struct ng_str text)
{
    size_t at = 0;
    while (at < text.len && memchr("0123456789abcdef", text.data[at], 16) != NULL) {
        at++;
    }
    return at == text.len;
}

/* The step printed and parsed again. */
static void check_step(struct call *call, const struct file_undo *step)
{
    struct buf printed;
    struct file_undo again;
    struct json_error error;
    const struct ng_value *value = NULL;
    struct ng_str text = step->inserted;
    buf_init(&printed, PRINT_BYTES_MAX);
    /* The service makes these itself; in a damaged row they may be anything. */
    if (!is_hex(step->op) || !is_hex(ng_str_of(step->before)) ||
        !is_hex(ng_str_of(step->after))) {
        return;
    }
    must(files_undo_print(&printed, step) == NG_OK);
    must(json_parse(&call->arena, buf_str(&printed), JSON_DEPTH_DEFAULT, &value, &error) ==
         NG_OK);
    must(files_undo_parse(value, &text, &again) == NG_OK && text.len == 0);
    must(again.kind == step->kind && again.at == step->at && again.removed == step->removed);
    must(again.hex == step->hex && str_equal(again.inserted, step->inserted));
    must(str_equal(again.former, step->former) && strcmp(again.after, step->after) == 0);
    buf_done(&printed);
}

static void apply_step(struct call *call, const struct file_undo *step)
{
    static const char now[] = "the file as it is now";
    struct ng_str made;
    if (files_undo_apply(call, step, ng_str_of(now), &made) == NG_OK) {
        size_t inserted = step->hex ? step->inserted.len / 2 : step->inserted.len;
        must(made.len == sizeof(now) - 1 - step->removed + inserted);
    }
}

static void read_record(struct call *call, struct ng_str json, struct ng_str text)
{
    struct file_record record;
    if (files_record_parse(call, json, text, &record) == NG_OK) {
        must(record.kind >= FILE_CHANGE_EDIT && record.kind <= FILE_CHANGE_UNDO_MOVE);
        must(memchr(record.before, '\0', sizeof(record.before)) != NULL);
        must(memchr(record.after, '\0', sizeof(record.after)) != NULL);
        check_step(call, &record.undo);
        apply_step(call, &record.undo);
    }
}

static void read_history(struct call *call, struct ng_str json, struct ng_str text)
{
    struct ng_doc doc = {.size = sizeof(doc), .revision = 1, .json = json, .text = text};
    struct file_history history;
    if (files_history_read(call, &doc, &history) == NG_OK) {
        must(history.count <= NG_FILE_UNDO_MAX);
        for (size_t i = 0; i < history.count; i++) {
            check_step(call, &history.items[i]);
            apply_step(call, &history.items[i]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gateway *gateway;
    if (gateway == NULL) {
        static const char *const sets[] = {"limits.workers=2", NULL};
        gateway = test_gateway_open(sets);
        must(gateway != NULL);
    }
    struct call *call = call_new(gateway);
    must(call != NULL);
    const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
    size_t json_size = nul == NULL ? size : (size_t)(nul - data);
    struct ng_str json = str_make((const char *)data, json_size);
    struct ng_str text =
        nul == NULL ? ng_str_of("") : str_make((const char *)nul + 1, size - json_size - 1);
    read_record(call, json, text);
    read_history(call, json, text);
    call_unref(call);
    return 0;
}
