/* SPDX-License-Identifier: MIT */
/* odd_schemas - tools whose schemas use what some vendor refuses, for the tests of the formats.
 * They answer with their own arguments. */
#define NG_ABI 1
#include <notegate/plugin.h>

static const char composed[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/"
    "schema\",\"$id\":\"urn:odd:composed\","
    "\"$comment\":\"for people\",\"type\":\"object\",\"oneOf\":[{\"required\":[\"kind\"]},"
    "{\"required\":[\"place\"]}],\"minProperties\":1,\"properties\":{"
    "\"kind\":{\"const\":\"a\"},"
    "\"size\":{\"oneOf\":[{\"type\":\"integer\",\"exclusiveMinimum\":0},{\"type\":\"null\"}]},"
    "\"both\":{\"allOf\":[{\"type\":\"string\"},{\"minLength\":1},{\"pattern\":\"^x\"}]},"
    "\"place\":{\"$ref\":\"#place\",\"description\":\"Where.\"},"
    "\"again\":{\"$ref\":\"urn:odd:composed#/$defs/place\"},"
    "\"same\":{\"$ref\":\"#/properties/size\"},"
    "\"pair\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"number\"}]"
    ","
    "\"items\":false},"
    "\"any\":{\"type\":\"array\",\"contains\":{\"const\":1},\"uniqueItems\":true},"
    "\"map\":{\"type\":\"object\",\"patternProperties\":{\"^x-\":{\"type\":\"string\"}},"
    "\"propertyNames\":{\"maxLength\":9},\"unevaluatedProperties\":false}},"
    "\"if\":{\"properties\":{\"kind\":{\"const\":\"a\"}}},\"then\":{\"required\":[\"kind\"]},"
    "\"else\":{\"required\":[\"place\"]},\"dependentRequired\":{\"size\":[\"kind\"]},"
    "\"$defs\":{\"place\":{\"$anchor\":\"place\",\"type\":\"object\",\"properties\":{"
    "\"street\":{\"type\":\"string\",\"contentEncoding\":\"base64\"},"
    "\"inner\":{\"$ref\":\"#place\"}}}}}";

static const char older[] =
    "{\"type\":\"object\",\"required\":[\"filter[id]\",\"node\"],\"properties\":{"
    "\"filter[id]\":{\"type\":\"string\"},\"$top\":{\"type\":\"integer\",\"default\":10,"
    "\"examples\":[5]},\"node\":{\"$ref\":\"#/definitions/node\"},"
    "\"free\":true,\"not\":{\"not\":{\"type\":\"string\"}}},"
    "\"definitions\":{\"node\":{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":["
    "{\"$ref\":\"#/definitions/node\"},{\"type\":\"null\"}]}}}}}";

static const char mixed[] =
    "{\"type\":\"object\",\"properties\":{\"on\":{\"enum\":[true,null]}}}";

/* Closed by what they refer to. */
#define CLOSED                                                                                 \
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},"                      \
    "\"additionalProperties\":false}"

static const char referred[] =
    "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#/$defs/all\"}],\"$defs\":{\"all\":" CLOSED
    "}}";

static const char branched[] =
    "{\"type\":\"object\",\"anyOf\":[" CLOSED ",{\"allOf\":[{\"type\":\"object\","
    "\"properties\":{\"on\":{\"type\":\"boolean\"}},\"additionalProperties\":false}]}]}";

/* The arguments select their schemas. */
static const char selected[] =
    "{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":[\"one\",\"many\"]}},"
    "\"if\":{\"properties\":{\"kind\":{\"const\":\"many\"}}},"
    "\"then\":{\"properties\":{\"of\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}},"
    "\"else\":{\"properties\":{\"of\":{\"type\":\"integer\"}}},"
    "\"dependentSchemas\":{\"of\":{\"properties\":{\"limit\":{\"type\":\"integer\"}}}},"
    "\"unevaluatedProperties\":{\"type\":\"boolean\"}}";

static const char longest[] = "A tool with the longest name that there may be.";

#define WORDS "Describes itself at length, in words of every kind: d\xc3\xa9tails. "
#define MORE_WORDS WORDS WORDS WORDS WORDS WORDS

static const char wordy[] = "A tool. " MORE_WORDS MORE_WORDS MORE_WORDS MORE_WORDS;

static int odd_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(call, args);
}

static const struct ng_tool odd_tools[] = {
    {.name = "odd_composed", .summary = "Composed.", .params = composed, .run = odd_run},
    {.name = "odd_older", .summary = "Older words.", .params = older, .run = odd_run},
    {.name = "odd_referred", .summary = "Closed.", .params = referred, .run = odd_run},
    {.name = "odd_branched", .summary = "Closed, too.", .params = branched, .run = odd_run},
    {.name = "odd_selected", .summary = "Selected.", .params = selected, .run = odd_run},
    {.name = "odd_mixed", .summary = "An enum.", .params = mixed, .run = odd_run},
    {.name = "odd_wordy", .summary = wordy, .params = "{\"type\":\"object\"}", .run = odd_run},
    {.name = "odd_empty",
     .summary = "Takes nothing.",
     .params = "{\"type\":\"object\"}",
     .run = odd_run},
    {.name = "a123456789b123456789c123456789d123456789e123456789f123456789g12",
     .summary = longest,
     .params = "{\"type\":\"object\"}",
     .run = odd_run},
};

static const struct ng_plugin odd_schemas = {
    .name = "odd_schemas",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = odd_tools,
    .tool_count = NG_COUNT(odd_tools),
};

NG_EXPORT_PLUGIN(odd_schemas);
