/* SPDX-License-Identifier: MIT */
/* move_facts.h - targets of links before and after a move, from the present index. */
#ifndef OPENNOTES_MOVE_FACTS_H
#define OPENNOTES_MOVE_FACTS_H

#include <sqlite3.h>

#include "link_rewrite.h"
#include "notebook/notebook.h"

/* A note that is moved. */
struct notes_moved {
    int64_t id; /* its row; 0: it comes from the trash and is in no index */
    struct ng_str from, to;
};

/* A name that a moved note has afterwards. */
struct notes_new_name {
    struct ng_str path; /* of the note */
    int rank;           /* NOTES_LINK_RANK */
    size_t next;        /* another one of the same key; 0: none, else its number + 1 */
};

struct notes_fact {
    struct ng_str question, answer; /* {NULL, 0}: none */
};

/* In call memory: functions of the save use it after the tool has returned. */
struct notes_facts {
    struct notes_link_move move;
    struct ng_call *call;
    const struct notes_notebook *notebook;
    struct ng_str absolute; /* `from` as on disk; {NULL, 0}: the same in the notebook */
    bool removes;           /* afterwards nothing leads to the moved notes */

    /* Until notes_facts_keep(). */
    struct arena *arena;
    sqlite3_stmt *find;
    struct notes_moved *moved; /* by id */
    size_t moved_count, moved_room;
    struct notes_keys names; /* keys of new names; `number`: of the one that was added last */
    struct notes_new_name *new_names;
    size_t new_count, new_room;
    struct notes_keys answers; /* by question */
    struct buf question;
    int rc; /* a question failed, and with it the call */

    /* From then on, by question. */
    struct notes_fact *kept;
    size_t kept_count;
};

/* The facts of a move of the note or folder `from`; more with notes_facts_add(). The call fails
 * in case of an error. notes_facts_done() in either case. */
int notes_facts_begin(struct notes_facts *facts, const struct notes_notebook *notebook,
                      struct ng_call *call, struct arena *arena);
/* Adds a moved note. */
int notes_facts_add(struct notes_facts *facts, int64_t id, struct ng_str from,
                    struct ng_str to);
/* Adds a name of a moved note that it has by its front matter. */
int notes_facts_name(struct notes_facts *facts, struct ng_str path, struct ng_str name,
                     int rank);
bool notes_facts_moves(const struct notes_facts *facts, int64_t id);
/* Does a link with this key lead to another note afterwards? */
bool notes_facts_differ(struct notes_facts *facts, bool wiki, struct ng_str key);

/* Keeps the answers that were given so far. After this there are no others, and only the
 * members for this time may be used. */
int notes_facts_keep(struct notes_facts *facts);
void notes_facts_done(struct notes_facts *facts);

#endif
