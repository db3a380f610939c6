/* SPDX-License-Identifier: MIT */
/*
 * wire.h - messages of the Jupyter protocol, encoded to frames and decoded from them.
 *
 * Source: the Jupyter client documentation, "Messaging in Jupyter", protocol version 5.3. No
 * sockets.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_WIRE_H
#define NOTEGATE_PLUGIN_CELLS_WIRE_H

#include "notebook/nb.h"

/* Messages with more frames are dropped. */
#define WIRE_FRAMES_MAX 64
#define WIRE_KEY_MAX 64
#define WIRE_SIGNATURE 64 /* hex digits */
#define WIRE_ID_SIZE 40   /* of a message or a session, with NUL */

/* HMAC key of one kernel. */
struct wire_key {
    char text[WIRE_KEY_MAX + 1]; /* "": no signatures */
};

/* A decoded message; points into the frames. */
struct wire_message {
    struct ng_str type;      /* msg_type without quotes, plain ASCII */
    struct ng_str parent_id; /* msg_id of the parent header; absent: {NULL, 0} */
    struct ng_str content;   /* well-formed JSON object */
};

/* An encoded message. */
struct wire_out {
    char signature[WIRE_SIGNATURE + 1];
    struct nb_text header, content;
    char id[WIRE_ID_SIZE]; /* its msg_id */
};

/* 32 random hex digits and a NUL. False: no random bytes are available. */
bool wire_id(char id[WIRE_ID_SIZE]);
/* content: a JSON object. False: out of memory. Send identity frames (none for a DEALER),
 * WIRE_DELIMITER, signature, header, "{}", "{}", content. */
bool wire_make(struct wire_out *out, const struct wire_key *key, const char *session,
               const char *type, struct ng_str content);
void wire_out_done(struct wire_out *out);
/* False: not a message, wrong signature, or invalid JSON; drop it. */
bool wire_parse(const struct ng_str *frames, size_t count, const struct wire_key *key,
                struct wire_message *ret);

#define WIRE_DELIMITER "<IDS|MSG>"

#endif
