/* SPDX-License-Identifier: MIT */
/* document.h - declared collections, and the stored form of their documents. */
#ifndef NOTEGATE_MONGO_DOCUMENT_H
#define NOTEGATE_MONGO_DOCUMENT_H

#include "../server/server.h"
#include "core/base/arena.h"

/* Bytes of a document besides its content: names, times, hashes. */
#define DOCUMENT_ROOM ((size_t)64 * 1024)

/* Every 64th revision is stored whole; so is one whose splice is not smaller. */
#define WHOLE_EVERY 64

/* Members of the declared fields, of other documents than entries. */
#define FIELDS_BELOW "notegate.fields."

/* How a version stores its revision. */
enum kept { KEPT_NONE = 0, KEPT_WHOLE = 1, KEPT_SPLICE = 2 };

struct db_field {
    const char *name; /* as declared */
    const char *path; /* in documents, see field_values.c */
    enum ng_field_use use;
    double weight;
};

struct index_state {
    atomic_bool ready; /* they are made */
    atomic_bool busy;
    bool told;                  /* the refusal is in the log */
    atomic_int_fast64_t due_ms; /* monotonic: the next attempt; 0: never tried */
    int64_t pause_ms;           /* of the last failed attempt */
};

/* A declared collection. Lives until close, even if a newer declaration replaced it. */
struct db_collection {
    struct db_collection *next;
    bool is_replaced;    /* by a newer declaration */
    struct arena memory; /* of its names and fields */
    const char *name;
    uint32_t flags;
    struct db_field *fields;
    size_t field_count;
    bool is_entry;           /* its documents have the form of the agent notebook's */
    const char *text_member; /* with the document's text: "text", "content", "code" */
    struct index_state indexes;
    atomic_bool text_index; /* one of them is a text index */
};

/* ---- collections.c ---- */

int collection_declare(void *self, struct ng_call *call, const struct ng_collection *decl);
struct db_collection *collection_find(struct mongo *db, struct ng_str name);
void collections_free(struct mongo *db);
/* The declared collection after this one (NULL: the first), in its newest declaration; NULL:
 * there is none. */
struct db_collection *collection_next(struct mongo *db, const struct db_collection *after);
bool is_searchable(const struct db_collection *collection);

/* ---- names.c ---- */

#define ENTRY_SPACE "shared"
/* The document's _id: the notebook id itself for entries in the space shared, else SPACE/ID.
 * NG_EINVAL: not UTF-8. */
int name_document(const struct db_collection *collection, struct ng_str space, struct ng_str id,
                  struct bytes *ret);
/* COLLECTION/_id. */
int name_tombstone(const char *collection, struct ng_str document, struct bytes *ret);
/* COLLECTION/_id#REVISION, the revision in 20 digits so that names sort by it. */
int name_version(const char *collection, struct ng_str document, uint64_t revision,
                 struct bytes *ret);
/* The filter of the versions from..to; NULL: no memory. */
bson_t *version_range(const char *collection, struct ng_str document, uint64_t from,
                      uint64_t to);
/* The filter of a stored document by its name and space; and by its revision. */
bson_t *name_filter(const bson_t *doc, bool with_revision);
bool is_entry_collection(const char *name, const char **ret_text_member);

/* ---- body.c: a put to BSON, a stored document to a row ---- */

/* One put, prepared on the caller's thread. */
struct prepared {
    const struct db_collection *collection;
    struct bytes name; /* _id */
    unsigned char hash[HASH_BYTES];
    size_t lane;
    bool adopts; /* the content is in the database already: an update sets its version alone */
};

/* `placed`: given by an import, with numbers and times; else NULL. */
int body_insert(const struct ng_doc *placed, const struct prepared *prepared,
                const struct ng_put *put, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret);
int body_update(const struct prepared *prepared, const struct ng_put *put,
                const struct ng_put *creator, bson_t *outbox, uint64_t outbox_bytes,
                const char *batch, uint64_t stamp, bson_t *ret);
/* Adds members of "notegate" to the members that an update sets. */
void own_append(bson_t *set, const bson_t *own);
/* Adds the entry of the put to an outbox array; returns its size. */
uint64_t outbox_add(bson_t *outbox, uint32_t at, const struct ng_put *put,
                    const unsigned char hash[HASH_BYTES], const char *batch, uint64_t stamp);
/* The stored form of an event, to which `quiet` and `batch` are added; and of a version. */
bson_t *event_bson(const struct ng_event *event, struct ng_str ref, struct ng_str document);
bson_t *version_bson(const char *collection, struct ng_str document, struct ng_str ref,
                     uint64_t seq, uint64_t created_seq, const bson_t *entry);
/* origin.c: of an outbox entry, a version or an event. origin_of() points into it. */
void origin_append(bson_t *to, const struct ng_origin *origin);
struct ng_origin origin_of(const bson_t *from);
/* The number of its newest change; 0: it has none yet. */
uint64_t body_seq(const bson_t *doc);
/* A row for a stored document. Points into the document and into json. */
int body_row(const struct db_collection *collection, const bson_t *doc, bool with_text,
             struct bytes *json, struct ng_doc *ret);
/* Whether the hash at `path` of a document or of a version is the one of this content. */
bool hash_is(const bson_t *from, const char *path, struct ng_str json, struct ng_str text,
             bool deleted);
/* The tombstone of an entry that has left its collection; *ret NULL: there is none. */
int tombstone_load(struct mongo *db, struct session *session,
                   const struct db_collection *collection, struct ng_str document, bson_t **ret,
                   struct fault *fault);

/* ---- field_values.c ---- */

/* The texts of a document's fields that are searched; the first so many of them. */
#define TEXTS_MAX 256

struct texts {
    struct ng_field_value list[TEXTS_MAX];
    size_t count;
};

/* Appends the fields of a put that is no entry. */
void fields_append(bson_t *own, const struct db_collection *collection,
                   const struct ng_put *put, size_t field_count);
/* Adds those that a stored document has in one field; none if the field is not searched. */
void texts_add(struct texts *texts, const bson_t *doc, const struct db_field *field);
void texts_of(const bson_t *doc, const struct db_collection *collection, struct texts *ret);

/* ---- text_words.c ---- */

#define WORDS "notegate.words"
#define TERMS "notegate.terms"
/* The revision that they are of; an older version changes a document without its terms. */
#define TERMS_REVISION "notegate.terms.revision"
#define TERMS_PARTS "notegate.terms.parts"
/* `of` of the part that is the text beside the JSON; else it is the name of a field. */
#define TERMS_OF_TEXT ""
/* Appends `words` and `terms` of a document's texts. */
int words_append(bson_t *own, const struct db_collection *collection, uint64_t revision,
                 struct ng_str text, const struct ng_field_value *fields, size_t field_count);
/* The member of a word or stem. Folding makes a stop out of few letters (U+2488 is "1."),
 * which has a meaning in a path. */
struct ng_str term_name(struct ng_str word, struct bytes *ret);
/* Gives them to documents that have none or old ones. true: all have them. */
bool words_fill(struct mongo *db, const struct db_collection *collection);

#endif
