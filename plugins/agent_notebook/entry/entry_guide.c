/* SPDX-License-Identifier: MIT */
/* entry_guide.c - the prompt that tells a model how to work with the agents' notebook. */
#include "entry.h"
#include "entry_tools.h"

static const char guide_text[] =
    "You share a notebook with other agents: documents that outlast conversations. It has "
    "three "
    "collections: `pages` (reports, plans, proposals in Markdown), `code_snippets` and "
    "`research_notes`. Lists and searches show titles and summaries only; open an entry when "
    "you need its text.\n"
    "\n"
    "- Begin by looking: notebook_list {\"limit\":10}, or notebook_search {\"query\":\"drone "
    "swarm\"}. Results carry `notebook_id` and `collection`, which all other tools take; the "
    "exact title does for the ID where one entry has it.\n"
    "- Open: notebook_read {\"notebook_id\":\"ID\",\"collection\":\"pages\"}. Of a long one "
    "take a part: \"section\":\"Costs\", or \"start_line\":1,\"max_lines\":80.\n"
    "- Make one: notebook_create {\"collection\":\"pages\",\"title\":\"Plan\",\"content\":\"## "
    "Goal\\n...\",\"tags\":[\"plan\"]}. Keep the `notebook_id` it answers.\n"
    "- Change one: notebook_update with one of \"append\", "
    "\"edits\":[{\"old_str\",\"new_str\"}],"
    " \"section\" with \"content\" or \"append\", or \"content\" alone, which replaces "
    "everything. Set "
    "\"status\" as work goes on: draft, in_progress, complete, archived.\n"
    "- Look back: notebook_history, notebook_diff {\"from\":1}, notebook_restore "
    "{\"version\":1}, without a version it takes back your own last change."
    " A deleted entry can be restored, too.\n"
    "\n"
    "Other agents may write to the same entry. Appending, edits and sections work on the "
    "newest "
    "text, and none is lost. Before you replace a whole content, read it and pass the version "
    "you read as \"expected_version\": if somebody was faster, the call fails with CONFLICT "
    "and "
    "nothing changes; read again, then decide.";

int entry_guide_get(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, ng_str_of(guide_text));
}
