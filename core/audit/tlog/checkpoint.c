/* SPDX-License-Identifier: MIT */
/* checkpoint.c - three lines: origin, size, root. */
#include "checkpoint.h"

#include <inttypes.h>

#include "core/base/str.h"
#include "core/base/text/base64.h"

#define CHECKPOINT_TEXT_MAX (NOTE_NAME_MAX + 128)

int checkpoint_sign(const struct checkpoint *checkpoint, const struct note_signer *signer,
                    struct buf *out)
{
    char room[CHECKPOINT_TEXT_MAX + 1];
    struct buf text = {.data = room, .cap = sizeof(room), .max = CHECKPOINT_TEXT_MAX};
    struct ng_str root = str_make((const char *)checkpoint->root.bytes, SHA256_BYTES);
    (void)buf_printf(&text, "%s\n%" PRIu64 "\n", signer->key.name, checkpoint->size);
    base64_encode(&text, root, BASE64_STANDARD);
    if (buf_add_char(&text, '\n') != NG_OK) {
        return NG_EINTERNAL;
    }
    return note_sign(signer, buf_str(&text), out);
}

/* The first line of *text, without its end, which is taken off. */
static struct ng_str checkpoint_line(struct ng_str *text)
{
    size_t end = str_find(*text, ng_str_of("\n"), 0);
    if (end == SIZE_MAX) {
        return STR_NONE;
    }
    struct ng_str line = str_make(text->data, end);
    *text = str_make(text->data + end + 1, text->len - end - 1);
    return line;
}

int checkpoint_open(struct ng_str note, const struct note_key *key, struct checkpoint *ret)
{
    char room[SHA256_BYTES + 1];
    struct buf root = {.data = room, .cap = sizeof(room), .max = SHA256_BYTES};
    struct ng_str text;
    int rc = note_open(note, key, &text);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str origin = checkpoint_line(&text);
    struct ng_str size = checkpoint_line(&text);
    struct ng_str hash = checkpoint_line(&text);
    if (!str_is(origin, key->name) || !str_number(size, TLOG_SIZE_MAX, &ret->size) ||
        (size.len > 1 && size.data[0] == '0') || !base64_decode(&root, hash, BASE64_STANDARD) ||
        root.len != SHA256_BYTES) {
        return NG_EINVAL;
    }
    memcpy(ret->root.bytes, room, SHA256_BYTES);
    return NG_OK;
}
