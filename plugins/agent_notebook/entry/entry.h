/* SPDX-License-Identifier: MIT */
/* entry.h - one entry of the notebook: its key, its failures, and how its next state is made
 * from the present one. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_H

#include "notebook.h"

/* Changes that the short history of a document lists. */
#define ENTRY_HISTORY_MAX 100
/* The history grows by this many before it is cut: removing its first item rewrites all that
 * follows. */
#define ENTRY_HISTORY_SLACK 24
/* Headings that the sections of a page list. */
#define ENTRY_SECTIONS_MAX 1000
/* Larger texts are not processed on an event loop. */
#define ENTRY_INLINE_BYTES ((uint64_t)64 * 1024)
/* Members that a single collection may add, see entry_own. */
#define ENTRY_OWN_MAX 4

/* ---- entry.c ---- */

/* The collection of this name; ENTRY_COLLECTIONS: none. */
unsigned entry_collection(struct ng_str name);
/* The key of the arguments `collection` (absent: {NULL, 0}) and `notebook_id`, as an id, in the
 * space of the caller. Fails with NG_EINVAL for an id that no entry can have. */
int entry_key(struct ng_call *call, struct ng_key *ret);
/* "agent:NAME" of the caller; of a name, with or without that prefix; and the bare name. */
struct ng_str entry_agent(struct ng_call *call);
struct ng_str entry_agent_of(struct ng_call *call, struct ng_str name);
struct ng_str entry_agent_name(struct ng_str agent);
/* The strings of an array argument, in call memory. */
int entry_strings(struct ng_call *call, const char *argument, const struct ng_str **ret,
                  size_t *ret_count);
bool entry_exists(const struct ng_doc *doc);
/* True: the entry is purged, its earlier versions are removed or about to be. */
bool entry_is_purged(const struct ng_doc *doc);
/* Fails with ENTRY_NOT_FOUND and its details; `doc` (or NULL) tells whether the entry was
 * deleted. Without a collection in the key: it is in none. */
int entry_not_found(struct ng_call *call, const struct ng_key *key, const struct ng_doc *doc);
int entry_no_version(struct ng_call *call, const struct ng_key *key, uint64_t version);
/* Fails with SECTION_NOT_FOUND, listing the headings of the text. */
int entry_no_section(struct ng_call *call, const struct ng_key *key, struct ng_str text,
                     struct ng_str name);
/* Fails with a message in pieces: an id may hold a NUL, at which a format would stop. */
void entry_fail_pieces(struct ng_call *call, int code, const struct ng_str *pieces,
                       size_t count);
/* The beginning of a text, for a failure message that quotes it. */
struct ng_str entry_quoted(struct ng_str text);
int entry_no_memory(struct ng_call *call);
/* The pieces as one text in call memory, NUL-terminated. Without memory it is absent (data
 * NULL), and the gateway fails the call. */
struct ng_str entry_join(struct ng_call *call, const struct ng_str *pieces, size_t count);
/* Fails with INVALID_INPUT and one violation in the form of schema errors. */
int entry_invalid(struct ng_call *call, const char *path, struct ng_str expected,
                  struct ng_str got);
/* Writes "name": text. */
void entry_put(struct ng_call *call, struct ng_writer *writer, const char *name,
               struct ng_str text);
void entry_put_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                   uint64_t number);
/* "has_more", and "next_offset" if there is more after the first `next` of `total`. */
void entry_put_more(struct ng_call *call, struct ng_writer *writer, uint64_t next,
                    uint64_t total);
/* The text, or of one over `max` bytes its beginning, which says so. */
struct ng_str entry_cut(struct ng_call *call, struct ng_str text, size_t max);
/* "name": that. */
void entry_put_cut(struct ng_call *call, struct ng_writer *writer, const char *name,
                   struct ng_str text, size_t max);
/* The member `b` of the member `a` of a document; b NULL: the member `a`. */
const struct ng_value *entry_member(struct ng_call *call, const struct ng_value *body,
                                    const char *a, const char *b);
/* The parsed body of a row, copied: a row is borrowed for its callback. */
int entry_row_body(struct ng_call *call, const struct ng_doc *row, const struct ng_value **ret);
/* The parsed body of a document. */
int entry_body(struct ng_call *call, const struct ng_doc *doc, const struct ng_value **ret);

/* ---- entry_find.c: which entry ---- */

/* The member of an entry with its folded title, an indexed field. */
#define ENTRY_TITLE_KEY "title_key"

/* The folded title, in call memory; {NULL, 0}: the call has failed. */
struct ng_str entry_title_key(struct ng_call *call, struct ng_str title);
/* The entry that the arguments `notebook_id` (an id, or the title of one entry of the space,
 * any case) and `collection` (or none) name. An id that is equal wins, also of a deleted entry.
 * Its newest revision, as host->get(): revision 0 if `collection` has no such entry. */
int entry_find(struct ng_call *call, struct ng_key *ret, const struct ng_doc **ret_newest);
/* As entry_find(), for tools that do not read the entry first. In shared documents a look-up
 * costs a round trip, so there a text in the form of an id is always an id if `collection` is
 * given. */
int entry_find_to_change(struct ng_call *call, struct ng_key *ret);

/* The members that an undo writes, see struct ng_undo_step. */
#define ENTRY_UNDO_BASE "undo_base"
#define ENTRY_UNDOS "undos"

/* ---- times ---- */

/* "2026-02-16T10:30:00.000Z" in call memory. */
struct ng_str entry_time(struct ng_call *call, int64_t ms);
/* Reads a date, or a time with or without fraction and offset (else of the gateway's zone).
 * False: it is neither. */
bool entry_time_read(struct ng_str text, int64_t *ret_ms);

/* ---- entry_draft.c: the next state ---- */

/* A member that one collection has beside the common ones. */
struct entry_own {
    const char *name;
    bool in_metadata;
};
extern const struct entry_own entry_own[ENTRY_COLLECTIONS][ENTRY_OWN_MAX];

struct entry_draft {
    const struct agent_notebook *self;
    unsigned collection;
    struct ng_key key;
    struct ng_str title, summary, status;
    bool summary_given, sections_given;
    const struct ng_value *tags, *sections, *history;
    const struct ng_value *own[ENTRY_OWN_MAX];
    struct ng_str created_by, created_at;
    uint64_t version;
    uint64_t words;
    bool same_headings; /* `sections` still lists the headings of the text */
    bool text_changed;
    struct ng_str
        text;       /* the next text; of an append that changes no heading only its beginning */
    uint64_t bytes; /* of the complete next text */
    struct ng_str did;         /* the description for the history */
    uint64_t restored_from;    /* 0: not a restore */
    uint64_t undo_base, undos; /* of an undo, see struct ng_undo_step; else 0 */
    struct ng_str change_by;   /* "agent:NAME" */
};

/* Loads the present state (body NULL: a new entry). */
void entry_draft_load(struct ng_call *call, struct entry_draft *draft,
                      const struct ng_value *body);
/* Applies the arguments: title, tags, status, summary, sections, own members. */
void entry_draft_args(struct ng_call *call, struct entry_draft *draft);
/* Checks the arguments beyond the schema, before anything changes. */
int entry_check_args(const struct agent_notebook *self, struct ng_call *call,
                     unsigned collection);
/* Makes the derived members, checks the sizes, and gives JSON and event to the store. The
 * caller gives the text. */
int entry_draft_store(struct ng_call *call, struct entry_draft *draft, struct ng_draft *next);
/* Writes an array of the headings of this text; `with_content`: each with the text between it
 * and the next one, without white space at its ends. */
void entry_put_sections(struct ng_call *call, struct ng_writer *writer, struct ng_str text,
                        bool with_content);
/* Answers a change: id, collection, status, version, restored_from. */
int entry_draft_reply(struct ng_call *call, const struct entry_draft *draft,
                      const char *status);
/* Gives the event of an entry to the store: title, summary, status and the members of its
 * reference. */
void entry_event(struct ng_call *call, struct ng_draft *next, const struct entry_draft *draft);

/* ---- entry_restore.c ---- */

/* The content of an undo or a restore by the tools of plugin `history`. */
ng_restore_fn entry_take_content;

/* Prepares the change that makes `version` of the entry the newest one again, as a new version;
 * also for one of several changes in a step. Reads documents: not on an event loop. */
int entry_restore_prepare(const struct agent_notebook *self, struct ng_call *call,
                          const struct ng_key *key, uint64_t version, bool with_reply,
                          struct ng_change *ret_change);

#endif
