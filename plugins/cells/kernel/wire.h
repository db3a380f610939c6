/* SPDX-License-Identifier: MIT */
/*
 * wire.h - messages of the Jupyter protocol as frames: making them, and taking them apart.
 *
 * Source: the Jupyter client documentation, "Messaging in Jupyter", protocol version 5.3. No
 * sockets here: frames in, frames out.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_WIRE_H
#define NOTEGATE_PLUGIN_CELLS_WIRE_H

#include "notebook/nb.h"

/* Frames of one message that are looked at; more are a message that is dropped. */
#define WIRE_FRAMES_MAX 64
#define WIRE_KEY_MAX 64
#define WIRE_SIGNATURE 64 /* hex digits */
#define WIRE_ID_SIZE 40   /* of a message or a session, with NUL */

/* What signs the messages of one kernel. */
struct wire_key {
    char text[WIRE_KEY_MAX + 1]; /* "": nothing is signed */
};

/* A message that came, lent: points into the frames. */
struct wire_message {
    struct ng_str type;      /* msg_type, plain ASCII, without quotes */
    struct ng_str parent_id; /* msg_id of the parent header; absent: {NULL, 0} */
    struct ng_str content;   /* JSON object, well formed */
};

/* The frames of a message that goes. */
struct wire_out {
    char signature[WIRE_SIGNATURE + 1];
    struct nb_text header, content;
    char id[WIRE_ID_SIZE]; /* its msg_id */
};

/* 32 random hex digits and a NUL. false: the system gives no random bytes. */
bool wire_id(char id[WIRE_ID_SIZE]);
/* content: a JSON object. false: out of memory. To be sent: identity frames (none for a
 * DEALER), WIRE_DELIMITER, signature, header, "{}", "{}", content. */
bool wire_make(struct wire_out *out, const struct wire_key *key, const char *session,
               const char *type, struct ng_str content);
void wire_out_done(struct wire_out *out);
/* false: no message, a wrong signature, or no JSON: it is dropped. */
bool wire_parse(const struct ng_str *frames, size_t count, const struct wire_key *key,
                struct wire_message *ret);

#define WIRE_DELIMITER "<IDS|MSG>"

#endif
