/* SPDX-License-Identifier: MIT */
/* entry_schema.c - JSON Schemas of the arguments and answers of the notebook_* tools. Names and
 * texts of the first six tools must stay: agents know them. */
#include "entry_tools.h"
#include "notebook.h"

#define OBJECT "{\"type\":\"object\",\"additionalProperties\":false,"
#define COLLECTION_OF(text)                                                                    \
    "\"collection\":{\"type\":\"string\",\"enum\":[\"pages\",\"code_snippets\","               \
    "\"research_notes\"],\"description\":\"" text "\"}"
#define STATUS_OF(text)                                                                        \
    "\"status\":{\"type\":\"string\",\"enum\":[\"draft\",\"in_progress\",\"complete\","        \
    "\"archived\"],\"description\":\"" text "\"}"
#define TEXT_OF(name, text) "\"" name "\":{\"type\":\"string\",\"description\":\"" text "\"}"
#define COUNT_OF(name, least, most, text)                                                      \
    "\"" name "\":{\"type\":\"integer\",\"minimum\":" least ",\"maximum\":" most               \
    ",\"description\":\"" text "\"}"
#define ID "\"notebook_id\":{\"type\":\"string\",\"description\":\"Its ID, or exact title\"}"
#define WHERE COLLECTION_OF("Its collection, if known")
#define TAGS_OF(text)                                                                          \
    "\"tags\":{\"type\":\"array\",\"maxItems\":256,\"items\":{\"type\":\"string\","            \
    "\"minLength\":1,\"maxLength\":200},\"description\":\"" text "\"}"
#define TEXTS_OF(name, text)                                                                   \
    "\"" name "\":{\"type\":\"array\",\"maxItems\":200,\"items\":{\"type\":\"string\"},"       \
    "\"description\":\"" text "\"}"
#define VERSION "\"minimum\":1,\"maximum\":9007199254740992"

#define NEW_TAGS TAGS_OF("New tags (replace the old; no commas)")
#define NEW_STATUS STATUS_OF("New status")
#define EXPECTED_VERSION                                                                       \
    "\"expected_version\":{\"type\":\"integer\"," VERSION                                      \
    ",\"description\":\"Fail with CONFLICT if the entry is at another version\"}"

/* Members that one collection adds. */
#define OWN                                                                                    \
    "\"sections\":{\"type\":\"array\",\"maxItems\":1000,\"items\":{\"type\":\"object\","       \
    "\"required\":[\"heading\"],\"additionalProperties\":false,\"properties\":{"               \
    "\"heading\":{\"type\":\"string\",\"description\":\"Plain text\"},"                        \
    "\"content\":{\"type\":\"string\",\"description\":\"Text below "                           \
    "it\"}}},\"description\":\"pages: sections by hand; else the headings of the content\"},"  \
    "\"language\":{\"type\":\"string\",\"maxLength\":100,\"description\":\"code: language\"}," \
    "\"description\":{\"type\":\"string\",\"maxLength\":10000,\"description\":"                \
    "\"code: what it does\"},"                                                                 \
    "\"related_page\":{\"type\":\"string\",\"maxLength\":200,\"description\":"                 \
    "\"code: ID of its page\"},"                                                               \
    "\"source_url\":{\"type\":\"string\",\"maxLength\":8000,\"description\":"                  \
    "\"research: source\"}," TEXTS_OF(                                                         \
        "key_findings",                                                                        \
        "research: the findings") ","                                                          \
                                  "\"confidence\":{\"type\":\"number\","                       \
                                  "\"minimum\":0,\"maximum\":1,"                               \
                                  "\"description\":\"research: how sure, 0 to 1\"}," TEXTS_OF( \
                                      "related_pages", "research: IDs of its pages")

#define SUMMARY                                                                                \
    "\"summary\":{\"type\":\"string\",\"maxLength\":2000,\"description\":\"Brief summary "     \
    "(auto-generated if empty or not provided)\"}"

#define RESULT "{\"type\":\"object\",\"required\":["
#define STRING(name) "\"" name "\":{\"type\":\"string\"}"
#define TIME(name) "\"" name "\":{\"type\":\"string\",\"format\":\"date-time\"}"
#define METADATA                                                                               \
    "\"metadata\":{\"type\":\"object\",\"properties\":{" TIME("created_at") "," TIME(          \
        "updated_at") "}}"
#define INTEGER(name) "\"" name "\":{\"type\":\"integer\"}"
#define BOOLEAN(name) "\"" name "\":{\"type\":\"boolean\"}"

const char entry_create_params[] = OBJECT
    "\"required\":[\"collection\",\"title\",\"content\"],\"properties\":"
    "{" COLLECTION_OF("Type of notebook entry") "," TEXT_OF(
        "title",
        "Title of "
        "the "
        "entry") "," TEXT_OF("content",
                             "Full content (markdown for pages, code for snippets, notes "
                             "for research)") "," TAGS_OF("Tags for categorization (no "
                                                          "commas)") "," SUMMARY
                                                                     "," STATUS_OF(
                                                                         "draft unless "
                                                                         "given") "," OWN "}}";

const char entry_create_result[] =
    RESULT "\"notebook_id\",\"title\",\"collection\",\"status\",\"version\"],\"properties\":"
           "{" STRING("notebook_id") "," STRING("title") "," STRING("collection") "," STRING(
               "status") "," INTEGER("version") "}}";

const char entry_read_params[] = OBJECT
    "\"required\":[\"notebook_id\"],\"properties\":{" ID "," WHERE ","
    "\"version\":{\"type\":\"integer\"," VERSION ",\"description\":\"An earlier version\"},"
    "\"section\":{\"type\":\"string\",\"description\":\"Only this heading (plain text), "
    "sub-headings included\"},"
    "\"start_line\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740992,"
    "\"description\":\"First line, from 1 (in `section`); next_line reads on\"},"
    "\"max_lines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740992,"
    "\"description\":\"Most lines\"}}}";

const char entry_read_result[] = RESULT
    "\"notebook_id\",\"collection\",\"title\",\"content\",\"metadata\"],\"properties\":"
    "{" STRING("_id") "," STRING("notebook_id") "," STRING("collection") "," STRING("title") "," STRING("content") "," STRING("code") "," STRING(
        "summary") "," METADATA ",\"history\":{\"type\":\"array\"},"
                   "\"sections\":{\"type\":\"array\"}"
                   "," STRING(
                       "section") ","
                                  "\"lines\":{"
                                  "\"type\":"
                                  "\"object\","
                                  "\"properties\":"
                                  "{" INTEGER("start") "," INTEGER("count") "," INTEGER("total") "," BOOLEAN(
                                      "truncated") "}}," INTEGER("next_line") ",\"left_out\":{"
                                                                              "\"type\":"
                                                                              "\"array\","
                                                                              "\"items\":{"
                                                                              "\"type\":"
                                                                              "\"string\"}}}}";

const char entry_update_params[] = OBJECT
    "\"required\":[\"notebook_id\"],\"properties\":{" ID "," WHERE ","
    "\"content\":{\"type\":\"string\",\"description\":\"New content (replaces existing, or "
    "only `section`)\"},"
    "\"append\":{\"type\":\"string\",\"description\":\"Text for the end of the content or of "
    "`section`, on a line of its own; safe beside other agents\"},"
    "\"edits\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,\"items\":{\"type\":"
    "\"object\",\"required\":[\"old_str\",\"new_str\"],\"additionalProperties\":false,"
    "\"properties\":{\"old_str\":{\"type\":\"string\",\"minLength\":1,\"description\":"
    "\"Present text\"},\"new_str\":{\"type\":\"string\",\"description\":\"New "
    "text\"}}},\"description\":\"Replacements in order, all or none; each old_str exactly "
    "once. To claim a task, replace its [ ]\"},"
    "\"section\":{\"type\":\"string\",\"description\":\"Heading (plain text, occurs once) "
    "whose text `content` replaces or `append` extends, sub-headings included; it stays\"},"
    "\"title\":{\"type\":\"string\",\"description\":\"New title\"}," NEW_TAGS "," SUMMARY
    "," NEW_STATUS "," EXPECTED_VERSION "," OWN "}}";

const char entry_update_result[] = RESULT
    "\"notebook_id\",\"status\",\"version\"],\"properties\":{" STRING("notebook_id") "," STRING(
        "collection") "," STRING("status") "," INTEGER("version") "}}";

#define FILTERS                                                                                \
    COUNT_OF("offset", "0", "9007199254740992", "Entries to skip")                             \
    ","                                                                                        \
    "\"created_by\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":80,\"description\":"    \
    "\"Only by this agent (percy or agent:percy)\"}," STATUS_OF(                               \
        "Only of this status") "," TEXT_OF("updated_since", "Only changed since (2026-02-16 "  \
                                                            "or 2026-02-16T10:30:00Z)")
#define LIMIT                                                                                  \
    "\"limit\":{\"type\":\"integer\",\"default\":10,\"minimum\":1,\"maximum\":100,"            \
    "\"description\":\"Most entries of all collections together\"}"

const char entry_search_params[] = OBJECT "\"required\":[\"query\"],\"properties\":{" TEXT_OF(
    "query", "Text search query: any of the words, best first; \\\"a phrase\\\"; begin*; may "
             "be empty") "," COLLECTION_OF("Limit search to specific collection "
                                           "(optional)") "," TAGS_OF("Only with "
                                                                     "one of "
                                                                     "these "
                                                                     "tags") "," LIMIT
                                                                             "," FILTERS "}"
                                                                             "}";

const char entry_list_params[] =
    OBJECT "\"properties\":{" COLLECTION_OF("Only this collection") "," LIMIT "," TAGS_OF(
        "Only with one of these tags") "," FILTERS ","
                                       "\"deleted\":{\"type\":\"boolean\",\"description\":"
                                       "\"Only deleted ones\"}}}";

const char entry_list_result[] = RESULT
    "\"results\",\"total\",\"offset\",\"has_more\",\"engine\"],\"properties\":{\"results\":{"
    "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"_id\",\"notebook_id\","
    "\"_collection\",\"collection\",\"title\",\"summary\",\"metadata\"],\"properties\":{"
    "\"_id\":{\"type\":\"string\"},\"notebook_id\":{\"type\":\"string\"},"
    "\"_collection\":{\"type\":\"string\"},\"collection\":{\"type\":\"string\"},"
    "\"title\":{\"type\":\"string\"},\"summary\":{\"type\":\"string\"},"
    "\"excerpt\":{\"type\":\"string\"},"
    "\"deleted_at\":{\"type\":\"string\",\"format\":\"date-time\"},"
    "\"deleted_by\":{\"type\":\"string\"},\"version\":{\"type\":\"integer\"}," METADATA
    ",\"score\":{\"type\":\"number\"}}}},\"total\":{\"type\":\"integer\"},"
    "\"at_least\":{\"type\":\"boolean\",\"description\":\"There are more hits than total\"},"
    "\"offset\":{\"type\":\"integer\"},\"has_more\":{\"type\":\"boolean\"},"
    "\"next_offset\":{\"type\":\"integer\"},\"engine\":{\"type\":\"string\"}}}";

const char entry_delete_params[] =
    OBJECT "\"required\":[\"notebook_id\"],\"properties\":{" ID "," WHERE
           ",\"purge\":{\"type\":\"boolean\",\"description\":\"Admin: with every version, for "
           "good\"}}}";

const char entry_delete_result[] = RESULT "\"notebook_id\",\"status\"],\"properties\":{" STRING(
    "notebook_id") "," STRING("collection") "," STRING("status") "," BOOLEAN("pending") "}}";

const char entry_history_params[] =
    OBJECT "\"required\":[\"notebook_id\"],\"properties\":{" ID "," WHERE ","
           "\"limit\":{\"type\":\"integer\",\"default\":20,\"minimum\":1,\"maximum\":1000,"
           "\"description\":\"Most versions\"}," COUNT_OF("offset", "0", "9007199254740992",
                                                          "Versions to skip") "}}";

const char entry_history_result[] = RESULT
    "\"notebook_id\",\"collection\",\"current_version\",\"deleted\",\"history\",\"total\","
    "\"offset\",\"has_more\"],\"properties\":{" STRING("notebook_id") "," STRING("collection") "," INTEGER("current_version") "," BOOLEAN(
        "deleted") ",\"history\":{\"type\":\"array\","
                   "\"items\":{\"type\":\"object\",\"required\":[\"version\",\"timestamp\","
                   "\"action\","
                   "\"summary\",\"changed_by\"],\"properties\":{" INTEGER("version") "," TIME("timestamp") "," STRING("action") "," STRING(
                       "summary") "," STRING("changed_by") "}}}," INTEGER("total") "," INTEGER("offset") "," BOOLEAN("has_more") "," INTEGER("next_offset") "}}";

const char entry_diff_params[] =
    OBJECT "\"required\":[\"notebook_id\",\"from\"],\"properties\":{" ID "," WHERE ","
           "\"from\":{\"type\":\"integer\"," VERSION ",\"description\":\"The older version\"},"
           "\"to\":{\"type\":\"integer\"," VERSION
           ",\"description\":\"The newer version (default: the newest)\"},"
           "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,\"description\":"
           "\"Bytes to skip: next_offset of the answer before, with the same `to`\"},"
           "\"max_bytes\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":16777216,\"default\":"
           "262144,\"description\":\"Most bytes of the diff, in whole lines\"}}}";

const char entry_diff_result[] =
    RESULT "\"notebook_id\",\"collection\",\"from\",\"to\",\"diff\",\"truncated\","
           "\"lines_added\",\"lines_removed\",\"changed\"],\"properties\":{"
           "\"notebook_id\":{\"type\":\"string\"},\"collection\":{\"type\":\"string\"},"
           "\"from\":{\"type\":\"integer\"},\"to\":{\"type\":\"integer\"},"
           "\"diff\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\","
           "\"description\":\"There is more of it: go on at next_offset\"},"
           "\"next_offset\":{\"type\":\"integer\"},\"lines_added\":{\"type\":\"integer\"},"
           "\"lines_removed\":{\"type\":\"integer\"},"
           "\"changed\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}";

const char entry_restore_params[] = OBJECT
    "\"required\":[\"notebook_id\"],\"properties\":{" ID "," WHERE
    ",\"version\":{\"type\":\"integer\"," VERSION ",\"description\":\"Version to bring back; "
    "without it: undo your own last change\"}}}";

const char entry_restore_result[] =
    RESULT "\"notebook_id\",\"collection\",\"status\",\"version\",\"restored_from\"],"
           "\"properties\":{" STRING("notebook_id") "," STRING("collection") "," STRING(
               "status") "," INTEGER("version") "," INTEGER("restored_from") "}}";
