/* SPDX-License-Identifier: MIT */
/* conformance - fixtures that MCP's official conformance suites expect of a server under test:
 * tools, resources and prompts for every feature of the protocol. Never loaded unless named. */
#include "conformance.h"

#define NO_ARGS "{\"type\":\"object\",\"properties\":{}}"

/* One of everything that a client must find unchanged in the listing. */
static const char schema_2020_12[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
    "\"type\":\"object\","
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\","
    "\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},"
    "\"city\":{\"type\":\"string\"}}}},"
    "\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"address\":{\"$ref\":\"#/$defs/address\"},"
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\","
    "\"email\"]},\"phone\":{\"type\":\"string\"},"
    "\"email\":{\"type\":\"string\"}},"
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},"
    "{\"required\":[\"email\"]}]}],"
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}";

static const struct ng_tool conformance_tools[] = {
    /* content */
    {
        .name = "test_simple_text",
        .summary = "Answers with one text.",
        .params = NO_ARGS,
        .run = conformance_simple_text,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "test_image_content",
        .summary = "Answers with a picture.",
        .params = NO_ARGS,
        .run = conformance_image,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_audio_content",
        .summary = "Answers with a sound.",
        .params = NO_ARGS,
        .run = conformance_audio,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_embedded_resource",
        .summary = "Answers with a resource.",
        .params = NO_ARGS,
        .run = conformance_embedded_resource,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_multiple_content_types",
        .summary = "Answers with a text, a picture and a resource.",
        .params = NO_ARGS,
        .run = conformance_multiple_types,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_error_handling",
        .summary = "Always fails.",
        .params = NO_ARGS,
        .run = conformance_error,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "json_schema_2020_12_tool",
        .summary = "Tool with JSON Schema 2020-12 features",
        .params = schema_2020_12,
        .run = conformance_json_schema,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_custom_header",
        .summary = "Has an argument that clients also send as a header.",
        .params = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
                  "\"description\":\"Where to run\",\"x-mcp-header\":\"Region\"}},"
                  "\"required\":[\"region\"]}",
        .run = conformance_custom_header,
        .effect = NG_EFFECT_READS,
    },
    /* notifications */
    {
        .name = "test_tool_with_logging",
        .summary = "Sends three log messages, a moment apart.",
        .params = NO_ARGS,
        .run = conformance_logging,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_logging_tool",
        .summary = "Offers one log message.",
        .params = NO_ARGS,
        .run = conformance_log_once,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_tool_with_progress",
        .summary = "Reports progress from 0 to 100.",
        .params = NO_ARGS,
        .run = conformance_progress,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_reconnection",
        .summary = "Lets its client go while it works.",
        .params = NO_ARGS,
        .run = conformance_reconnection,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_trigger_tool_change",
        .summary = "Announces that the list of tools has changed.",
        .params = NO_ARGS,
        .run = conformance_tool_change,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_trigger_prompt_change",
        .summary = "Announces that the list of prompts has changed.",
        .params = NO_ARGS,
        .run = conformance_prompt_change,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_update_watched_resource",
        .summary = "Changes test://watched-resource.",
        .params = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
                  "\"description\":\"The new text\"}},\"required\":[\"text\"]}",
        .run = conformance_update_watched,
    },
    /* questions */
    {
        .name = "test_sampling",
        .summary = "Asks the client's model.",
        .params = "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\","
                  "\"description\":\"The prompt to send to the model\"}},"
                  "\"required\":[\"prompt\"]}",
        .run = conformance_sampling,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_elicitation",
        .summary = "Asks the user for a name and an address.",
        .params = "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\","
                  "\"description\":\"The message to show the user\"}},"
                  "\"required\":[\"message\"]}",
        .run = conformance_elicitation,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_elicitation_sep1034_defaults",
        .summary = "Asks with a default for every kind of field.",
        .params = NO_ARGS,
        .run = conformance_defaults,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_elicitation_sep1330_enums",
        .summary = "Asks with every kind of choice.",
        .params = NO_ARGS,
        .run = conformance_enums,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_missing_capability",
        .summary = "Needs the client's model.",
        .params = NO_ARGS,
        .run = conformance_missing_capability,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_streaming_elicitation",
        .summary = "Reports progress, then asks the user.",
        .params = NO_ARGS,
        .run = conformance_streaming_elicitation,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_elicitation",
        .summary = "Asks for a name.",
        .params = NO_ARGS,
        .run = conformance_input_elicitation,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_sampling",
        .summary = "Asks the client's model for a capital.",
        .params = NO_ARGS,
        .run = conformance_input_sampling,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_list_roots",
        .summary = "Asks for the client's roots.",
        .params = NO_ARGS,
        .run = conformance_input_roots,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_request_state",
        .summary = "Asks, and checks that its state comes back.",
        .params = NO_ARGS,
        .run = conformance_input_state,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_tampered_state",
        .summary = "Asks with a state that nobody may change.",
        .params = NO_ARGS,
        .run = conformance_input_state,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_multiple_inputs",
        .summary = "Asks three questions at once.",
        .params = NO_ARGS,
        .run = conformance_input_multiple,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_multi_round",
        .summary = "Asks two questions, one after the other.",
        .params = NO_ARGS,
        .run = conformance_input_rounds,
        .effect = NG_EFFECT_READS,
    },
    {
        .name = "test_input_required_result_capabilities",
        .summary = "Asks only what the client can be asked.",
        .params = NO_ARGS,
        .run = conformance_input_capabilities,
        .effect = NG_EFFECT_READS,
    },
    /* long work */
    {
        .name = "greet",
        .summary = "Greets at once, never as a task.",
        .params = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
                  "\"description\":\"Who is greeted\"}},\"required\":[\"name\"]}",
        .run = conformance_greet,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_MEMORY,
    },
    {
        .name = "slow_compute",
        .summary = "Takes as many seconds as it is told.",
        .params = "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\","
                  "\"minimum\":0,\"maximum\":3600,\"description\":\"How long it takes\"},"
                  "\"label\":{\"type\":\"string\",\"description\":\"What is computed\"}},"
                  "\"required\":[\"seconds\"]}",
        .run = conformance_slow_compute,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED | NG_TOOL_OWN_TIMEOUT,
    },
    {
        .name = "failing_job",
        .summary = "Fails after a second; only as a task.",
        .params = NO_ARGS,
        .run = conformance_failing_job,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_REQUIRED,
    },
    {
        .name = "protocol_error_job",
        .summary = "Ends with a fault of the server.",
        .params = NO_ARGS,
        .run = conformance_protocol_error,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "confirm_delete",
        .summary = "Asks before it would delete a file. Deletes nothing.",
        .params = "{\"type\":\"object\","
                  "\"properties\":{\"filename\":{\"type\":\"string\","
                  "\"description\":\"The file\"}},\"required\":[\"filename\"]}",
        .run = conformance_confirm_delete,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "multi_input",
        .summary = "Asks two questions at once.",
        .params = NO_ARGS,
        .run = conformance_multi_input,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_ALLOWED,
    },
    {
        .name = "test_tool_with_task",
        .summary = "Asks for a name, then works as a task.",
        .params = NO_ARGS,
        .run = conformance_task_after_input,
        .effect = NG_EFFECT_READS,
        .flags = NG_TOOL_TASK_REQUIRED | NG_TOOL_TASK_AFTER_ASKING,
    },
};

static const struct ng_collection conformance_collections[] = {
    {.name = CONFORMANCE_WATCHED_COLLECTION},
};

static int conformance_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct conformance_clock *clock = NULL;
    (void)conf;
    int rc = conformance_clock_start(call, &clock);
    if (rc == NG_OK) {
        *ret_self = clock;
    }
    return rc;
}

static void conformance_stop(void *self)
{
    conformance_clock_stop(self);
}

static const struct ng_plugin conformance = {
    .name = "conformance",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = conformance_tools,
    .tool_count = NG_COUNT(conformance_tools),
    .start = conformance_start,
    .stop = conformance_stop,
    .collections = conformance_collections,
    .collection_count = NG_COUNT(conformance_collections),
    .resources = conformance_resources,
    .resource_count = CONFORMANCE_RESOURCES,
    .prompts = conformance_prompts,
    .prompt_count = CONFORMANCE_PROMPTS,
};

NG_EXPORT_PLUGIN(conformance);
