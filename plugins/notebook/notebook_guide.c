/* SPDX-License-Identifier: MIT */
/* notebook_guide.c - the prompt that explains notebooks to a model, with the text of a named
 * one.
 */
#include <string.h>

#include "notebook.h"

static const char notebook_guide_text[] =
    "Keep what must outlast this conversation in notebooks, with the tool `notebook`. A "
    "notebook is a named text; every write that was answered is on disk.\n"
    "\n"
    "- See what there is: {\"mode\":\"list\"}. Find lines by their words: "
    "{\"mode\":\"search\",\"query\":\"words\"}. Read one: "
    "{\"mode\":\"read\",\"name\":\"plan\"}; "
    "only some lines, with their numbers: {\"mode\":\"read\",\"name\":\"plan\","
    "\"readRange\":[1,20]} (-1 is the last line).\n"
    "- Make one: {\"mode\":\"create\",\"name\":\"plan\",\"newStr\":\"# Plan\\n\"}. On a name "
    "that exists this overwrites the text, so read first.\n"
    "- Append: {\"mode\":\"write\",\"name\":\"plan\",\"newStr\":\"- done\\n\"}. Replace the "
    "first occurrence: add \"oldStr\". Insert behind a line: add \"insertLine\" (a number, 0 "
    "is "
    "the top, or a text that the line contains).\n"
    "- Empty one: {\"mode\":\"clear\",\"name\":\"plan\"}. Without a name, `default` is meant, "
    "which always exists.\n"
    "- Rename: {\"mode\":\"rename\",\"name\":\"plan\",\"newName\":\"plan 2\"}. Delete: "
    "{\"mode\":\"delete\",\"name\":\"plan\"}. Take your own last change back, also one of "
    "these "
    "two: {\"mode\":\"undo\",\"name\":\"plan\"}, up to ten times; after a rename under the "
    "new name.\n"
    "\n"
    "Other agents may write to the same notebook. Appending, inserting and replacing are safe: "
    "each is done on the newest text, and none is lost. Before you overwrite a whole text, "
    "read it, and pass the revision you got as \"expectedRevision\"; if somebody was faster "
    "the call fails with CONFLICT and nothing changes: read again, then decide.";

int notebook_guide(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_str name = ng_arg_text(call, "name");
    (void)self;
    (void)args;
    if (!ng_has_arg(call, "name")) {
        return ng_reply(call, ng_str_of(notebook_guide_text));
    }
    struct ng_key key = notebook_key(call->caller->space, name);
    const struct ng_doc *doc = NULL;
    int rc = host->get(call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    if (!notebook_exists(doc, name)) {
        return notebook_missing(call, key.space, name);
    }
    const struct ng_str pieces[] = {ng_str_of(notebook_guide_text),
                                    ng_str_of("\n\nThe notebook '"), name,
                                    ng_str_of("' at present:\n\n"), doc->text};
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int notebook_guide_complete(void *self, struct ng_call *call, const char *argument,
                            struct ng_str prefix, struct ng_listing *listing)
{
    if (strcmp(argument, "name") != 0) {
        return NG_OK;
    }
    return notebook_resource_complete(self, call, call->caller->space, "id", prefix, listing);
}
