/* SPDX-License-Identifier: MIT */
/* file_version_pin.c - pins the versions that the upkeep must not thin out: one that came with
 * a move or a copy, and the one that it names as its source. A document for each of the former
 * has the hashes of both. */
#include "core/base/hash.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "file_version.h"

/* All pins are in one space, so that one query finds them. */
#define PINS_SPACE "shared"
#define PINS_PAGE 1024

/* Runs behind file_version_saved_fn(), which numbers the version. */
static int pin_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct file_version *version = user;
    const struct ng_key key = {ng_str_of(NG_FILE_VERSIONS), version->space, version->real};
    const struct ng_key other = {key.collection, key.space, version->other};
    char text[2 * STORE_PIN_CHARS + 1];
    (void)call;
    if (version->number == 0 || present->revision != 0) {
        return NG_OK; /* none was added, or an earlier attempt has pinned it */
    }
    store_pin_write(&key, version->number, text);
    if (version->other_version != 0) {
        store_pin_write(&other, version->other_version, text + STORE_PIN_CHARS);
    }
    const struct ng_str pins = ng_str_of(text);
    return store_draft_text(next, &pins, 1);
}

bool file_version_is_pinned(const struct file_version *version)
{
    return version->other.len > 0 && version->hash[0] != '\0';
}

void file_version_pin(struct file_version *version, struct ng_change *ret)
{
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, version->real);
    size_t len = size_min(version->op.len, FILE_VERSION_OP_MAX);
    memcpy(version->pin, version->op.data, len);
    version->pin[len] = '/';
    hex_write(&hash, sizeof(hash), version->pin + len + 1);
    *ret = (struct ng_change){
        .size = sizeof(*ret),
        .key = {ng_str_of(FILE_VERSION_PINS), ng_str_of(PINS_SPACE), ng_str_of(version->pin)},
        .fn = pin_fn,
        .user = version,
    };
}

int file_version_pins_load(struct store *store, struct call *call, struct store_pins *inout)
{
    static const struct store_pins_in in = {FILE_VERSION_PINS, PINS_SPACE, PINS_PAGE};
    return store_pins_load(store, call, &in, inout);
}
