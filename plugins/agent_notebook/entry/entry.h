/* SPDX-License-Identifier: MIT */
/* entry.h - one entry of the notebook: its key, its failures, and its next state from the
 * present one. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_H

#include "notebook.h"

/* Changes that the light history of a document names. */
#define ENTRY_HISTORY_MAX 100
/* So many more are kept until all of them go at once: each time one goes at the beginning, all
 * behind it is written anew. */
#define ENTRY_HISTORY_SLACK 24
/* Headings that the sections of a page name. */
#define ENTRY_SECTIONS_MAX 1000
/* Texts larger than this are not worked on where nothing may block. */
#define ENTRY_INLINE_BYTES ((uint64_t)64 * 1024)
/* Members of its own that a collection has, see entry_own. */
#define ENTRY_OWN_MAX 4

/* ---- entry.c ---- */

/* Which collection has this name; ENTRY_COLLECTIONS: none. */
unsigned entry_collection(struct ng_str name);
/* Key of the entry that the arguments `collection` and `notebook_id` name, in the caller's
 * space. Fails with NG_EINVAL for an id that no entry can have. */
int entry_key(struct ng_call *call, struct ng_key *ret);
/* "agent:NAME" of the caller. */
struct ng_str entry_agent(struct ng_call *call);
bool entry_exists(const struct ng_doc *doc);
/* ENTRY_NOT_FOUND with its details; doc (or NULL) tells whether it was deleted. */
int entry_not_found(struct ng_call *call, const struct ng_key *key, const struct ng_doc *doc);
int entry_no_version(struct ng_call *call, const struct ng_key *key, uint64_t version);
/* SECTION_NOT_FOUND, naming the headings of the text. */
int entry_no_section(struct ng_call *call, const struct ng_key *key, struct ng_str text,
                     struct ng_str name);
/* The beginning of a text, for a failure that quotes it. */
struct ng_str entry_quoted(struct ng_str text);
int entry_no_memory(struct ng_call *call);
/* INVALID_INPUT with one violation in the form of the schema's own. */
int entry_invalid(struct ng_call *call, const char *path, struct ng_str expected,
                  struct ng_str got);
/* "name": text */
void entry_put(struct ng_call *call, struct ng_writer *writer, const char *name,
               struct ng_str text);
void entry_put_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                   uint64_t number);
/* The member `b` of the member `a` of a document. */
const struct ng_value *entry_member(struct ng_call *call, const struct ng_value *body,
                                    const char *a, const char *b);
/* The body of a row or document, parsed. */
int entry_body(struct ng_call *call, const struct ng_doc *doc, const struct ng_value **ret);

/* ---- times ---- */

/* "2026-02-16T10:30:00.000Z" in call memory. */
struct ng_str entry_time(struct ng_call *call, int64_t ms);
/* A date, or a time with or without fraction and zone (none: UTC). False: no such thing. */
bool entry_time_read(struct ng_str text, int64_t *ret_ms);

/* ---- entry_draft.c: the next state ---- */

/* A member that a collection has beside what all have. */
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
    bool same_headings; /* what `sections` has is still true */
    bool text_changed;
    struct ng_str text;      /* the next one; of an append that changes no heading its head */
    uint64_t bytes;          /* of the whole next text */
    struct ng_str did;       /* what the history says */
    uint64_t restored_from;  /* 0: no restore */
    struct ng_str change_by; /* "agent:NAME" */
};

/* From the present state (body may be NULL: a new entry). */
void entry_draft_load(struct ng_call *call, struct entry_draft *draft,
                      const struct ng_value *body);
/* What the arguments set: title, tags, status, summary, sections, own members. */
void entry_draft_args(struct ng_call *call, struct entry_draft *draft);
/* Arguments that a schema cannot check, before anything is changed. */
int entry_check_args(const struct agent_notebook *self, struct ng_call *call,
                     unsigned collection);
/* Makes what is derived, checks the sizes, and gives JSON and event to the store; the text is
 * the caller's to give. */
int entry_draft_store(struct ng_call *call, struct entry_draft *draft, struct ng_draft *next);
/* The event of an entry: title, summary, status and what goes with a reference. */
void entry_event(struct ng_call *call, struct ng_draft *next, const struct entry_draft *draft);

/* ---- entry_restore.c ---- */

/* Prepares the change that makes `version` of the entry the newest state again, as a new
 * version; for one of several changes in a step, too. Reads: not on an event loop. */
int entry_restore_prepare(const struct agent_notebook *self, struct ng_call *call,
                          const struct ng_key *key, uint64_t version, bool with_reply,
                          struct ng_change *ret_change);

#endif
