/* SPDX-License-Identifier: MIT */
/* fuzz_checkpoint.c - a letter, then a text: k, a key, which has one spelling; n, a checkpoint
 * or another signed note, which gives back what was signed; b, a bundle of entries. */
#include <stdlib.h>
#include <string.h>

#include "core/audit/tlog/checkpoint.h"
#include "core/audit/tlog/tlog_tile.h"
#include "core/base/str.h"

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The published example key of golang.org/x/mod/sumdb/note. */
#define FUZZ_KEY                                                                               \
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void fuzz_key(struct ng_str text)
{
    struct note_key key;
    struct buf again;
    buf_init(&again, NOTE_KEY_TEXT_MAX);
    if (note_key_read(text, &key) == NG_OK) {
        must(note_key_write(&key, &again) == NG_OK);
        must(str_starts(text, buf_str(&again)) && text.len <= again.len + 1);
    }
    buf_done(&again);
}

static void fuzz_note(struct ng_str note)
{
    struct note_signer signer;
    struct checkpoint read;
    struct checkpoint again;
    struct ng_str text;
    struct buf out;
    buf_init(&out, 2 * NOTE_BYTES_MAX);
    must(note_signer_read(ng_str_of(FUZZ_KEY), &signer) == NG_OK);
    if (note_open(note, &signer.key, &text) == NG_OK) {
        struct ng_str reopened;
        must(str_starts(note, text));
        must(note_sign(&signer, text, &out) == NG_OK);
        must(note_open(buf_str(&out), &signer.key, &reopened) == NG_OK);
        must(str_equal(text, reopened));
    }
    if (checkpoint_open(note, &signer.key, &read) == NG_OK) {
        buf_clear(&out);
        must(checkpoint_sign(&read, &signer, &out) == NG_OK);
        must(checkpoint_open(buf_str(&out), &signer.key, &again) == NG_OK);
        must(again.size == read.size && tlog_hash_equal(&again.root, &read.root));
    }
    buf_done(&out);
}

static void fuzz_bundle(struct ng_str bundle)
{
    struct ng_str entries[TLOG_TILE_WIDTH];
    size_t whole = tlog_bundle_split(bundle, TLOG_TILE_WIDTH, entries);
    const char *at = bundle.data;
    must(whole <= TLOG_TILE_WIDTH + 1);
    for (size_t i = 0; i < size_min(whole, TLOG_TILE_WIDTH); i++) {
        must(entries[i].data == at + TLOG_ENTRY_HEAD);
        at = entries[i].data + entries[i].len;
    }
    must(at <= bundle.data + bundle.len);
    must(whole != TLOG_TILE_WIDTH || at == bundle.data + bundle.len);
}

/* NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct ng_str rest = str_make((const char *)data + 1, size - 1);
    switch (data[0]) {
    case 'k':
        fuzz_key(rest);
        break;
    case 'n':
        fuzz_note(rest);
        break;
    case 'b':
        fuzz_bundle(rest);
        break;
    default:
        break;
    }
    return 0;
}
