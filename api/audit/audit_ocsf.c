/* SPDX-License-Identifier: MIT */
/* audit_ocsf.c - OCSF 1.8.0, category Application Activity (6), class API Activity (6003). */
#include <stdio.h>

#include "audit_shown.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/json/json.h"

#define OCSF_VERSION "1.8.0"
#define OCSF_CATEGORY 6
#define OCSF_CLASS 6003
#define OCSF_SEVERITY_INFORMATIONAL 1
#define OCSF_SEVERITY_LOW 2
#define OCSF_SUCCESS 1
#define OCSF_FAILURE 2

enum activity {
    ACTIVITY_CREATE = 1,
    ACTIVITY_READ = 2,
    ACTIVITY_UPDATE = 3,
    ACTIVITY_DELETE = 4,
    ACTIVITY_OTHER = 99
};

static enum activity activity_of_word(struct ng_str word)
{
    static const struct {
        const char *words;
        enum activity activity;
    } known[] = {
        {"create add copy remember save execute", ACTIVITY_CREATE},
        {"read view list search show get diff history recall timeline query status preview",
         ACTIVITY_READ},
        {"update write edit append prepend insert set move rename undo restore str_replace "
         "undo_edit daily pause resume reload",
         ACTIVITY_UPDATE},
        {"delete remove purge revoke", ACTIVITY_DELETE},
    };
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        if (str_in_words(word, known[i].words)) {
            return known[i].activity;
        }
    }
    return ACTIVITY_OTHER;
}

/* The last word of a name with underscores. */
static struct ng_str last_word(struct ng_str name)
{
    size_t begin = name.len;
    while (begin > 0 && name.data[begin - 1] != '_') {
        begin--;
    }
    return str_make(name.data + begin, name.len - begin);
}

static enum activity activity_of_action(struct ng_str action)
{
    if (str_in_words(action, "created logged")) {
        return ACTIVITY_CREATE;
    }
    if (str_is(action, "opened")) { /* a read that leaves its mark */
        return ACTIVITY_READ;
    }
    return str_in_words(action, "deleted purged revoked") ? ACTIVITY_DELETE : ACTIVITY_UPDATE;
}

/* An update, unless all documents have the same one. Entries of earlier versions have no
 * actions: other. */
static enum activity activity_of_docs(const struct audit_shown *shown)
{
    enum activity activity = ACTIVITY_OTHER;
    for (size_t i = 0; i < shown->doc_count; i++) {
        struct ng_str action = shown->docs[i].action;
        if (action.len == 0) {
            return ACTIVITY_OTHER;
        }
        enum activity of_doc = activity_of_action(action);
        activity = i == 0 || of_doc == activity ? of_doc : ACTIVITY_UPDATE;
    }
    return activity;
}

/* By what became of the documents, or else by the operation, or else by what the tool's name
 * ends in. */
static enum activity activity_of(const struct audit_shown *shown)
{
    enum activity activity = activity_of_docs(shown);
    if (activity != ACTIVITY_OTHER) {
        return activity;
    }
    activity = activity_of_word(shown->operation);
    if (activity == ACTIVITY_OTHER && shown->operation.len > 0) {
        activity = activity_of_word(last_word(shown->operation)); /* key_add */
    }
    if (activity == ACTIVITY_OTHER && shown->tool.len > 0) {
        activity = activity_of_word(last_word(shown->tool));
    }
    return activity;
}

static const char *activity_name(enum activity activity)
{
    switch (activity) {
    case ACTIVITY_CREATE:
        return "Create";
    case ACTIVITY_READ:
        return "Read";
    case ACTIVITY_UPDATE:
        return "Update";
    case ACTIVITY_DELETE:
        return "Delete";
    case ACTIVITY_OTHER:
        break;
    }
    return "Other";
}

static void ocsf_text(struct ng_writer *writer, const char *name, struct ng_str text)
{
    if (text.data != NULL) {
        json_member_string(writer, name, text);
    }
}

static void ocsf_object(struct ng_writer *writer, const char *name)
{
    json_name(writer, name);
    json_object(writer);
}

static void ocsf_class(struct ng_writer *writer, const struct audit_shown *shown)
{
    struct rfc3339 time;
    enum activity activity = activity_of(shown);
    bool ok = str_is(shown->outcome, "ok") || str_is(shown->outcome, "recovered");
    json_member_int(writer, "category_uid", OCSF_CATEGORY);
    json_member_int(writer, "class_uid", OCSF_CLASS);
    json_member_int(writer, "activity_id", activity);
    json_member_cstring(writer, "activity_name", activity_name(activity));
    json_member_int(writer, "type_uid", (int64_t)OCSF_CLASS * 100 + activity);
    json_member_int(writer, "severity_id",
                    ok ? OCSF_SEVERITY_INFORMATIONAL : OCSF_SEVERITY_LOW);
    json_member_int(writer, "status_id", ok ? OCSF_SUCCESS : OCSF_FAILURE);
    ocsf_text(writer, "status_code", shown->outcome);
    json_member_int(writer, "time", rfc3339_read(shown->time, &time) ? rfc3339_ms(&time) : 0);
    if (shown->ms >= 0) {
        json_member_int(writer, "duration", shown->ms);
    }
    ocsf_object(writer, "metadata");
    json_member_cstring(writer, "version", OCSF_VERSION);
    json_member_int(writer, "sequence", (int64_t)shown->number);
    ocsf_text(writer, "correlation_uid", shown->trace);
    ocsf_object(writer, "product");
    json_member_cstring(writer, "name", "notegate");
    json_member_cstring(writer, "vendor_name", "notegate");
    json_end(writer);
    json_end(writer);
}

static void ocsf_caller(struct ng_writer *writer, const struct audit_shown *shown)
{
    ocsf_object(writer, "actor");
    ocsf_object(writer, "user");
    json_member_string(writer, "name", str_or(shown->agent, ng_str_of("notegate")));
    ocsf_text(writer, "uid", shown->key);
    ocsf_text(writer, "type", shown->role);
    json_end(writer);
    ocsf_text(writer, "app_name", shown->client);
    json_end(writer);
    ocsf_object(writer, "src_endpoint");
    if (shown->remote.data != NULL && !str_is(shown->remote, "unix") &&
        shown->remote.data[0] != '~') {
        json_member_string(writer, "ip", shown->remote);
    } else {
        json_member_string(writer, "name", str_or(shown->remote, ng_str_of("local")));
    }
    json_end(writer);
}

static void ocsf_api(struct ng_writer *writer, const struct audit_shown *shown)
{
    ocsf_object(writer, "api");
    json_member_string(writer, "operation",
                       str_or(shown->operation, str_or(shown->tool, ng_str_of("call"))));
    ocsf_object(writer, "service");
    json_member_string(writer, "name", str_or(shown->tool, ng_str_of("notegate")));
    json_end(writer);
    if (shown->request.data != NULL) {
        ocsf_object(writer, "request");
        json_member_string(writer, "uid", shown->request);
        json_end(writer);
    }
    json_end(writer);
}

static void ocsf_resources(struct ng_writer *writer, const struct audit_shown *shown)
{
    char text[24];
    if (shown->doc_count == 0) {
        return;
    }
    json_name(writer, "resources");
    json_array(writer);
    for (size_t i = 0; i < shown->doc_count; i++) {
        const struct audit_doc *doc = &shown->docs[i];
        json_object(writer);
        json_member_string(writer, "name", doc->id);
        json_member_string(writer, "type", doc->collection);
        if (doc->revision > 0) {
            (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)doc->revision);
            json_member_cstring(writer, "version", text);
        }
        if (doc->seq > 0) {
            (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)doc->seq);
            json_member_cstring(writer, "uid", text);
        }
        json_end(writer);
    }
    json_end(writer);
}

int audit_shown_ocsf(const struct audit_shown *shown, struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    ocsf_class(&writer, shown);
    ocsf_caller(&writer, shown);
    ocsf_api(&writer, shown);
    ocsf_resources(&writer, shown);
    ocsf_object(&writer, "unmapped");
    ocsf_text(&writer, "face", shown->face);
    ocsf_text(&writer, "mode", shown->mode);
    ocsf_text(&writer, "space", shown->space);
    ocsf_text(&writer, "run", shown->run);
    json_end(&writer);
    json_end(&writer);
    return out->rc;
}
