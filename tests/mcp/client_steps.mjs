// SPDX-License-Identifier: MIT
// client_steps.mjs - the steps of both SDKs with a gateway: `sdk` hides their differences. The answer is one object.

const WAIT_MS = 120000;

// Waits until condition() is truthy and gives its value; fails with `what` when it takes too long.
export async function until(condition, what) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not happen within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// The error that an async function throws; fails if it throws none.
export async function failure(run) {
  try {
    await run();
  } catch (error) {
    return { code: error.code, message: error.message };
  }
  throw new Error("this was expected to fail and did not");
}

const text = (result) => result.content[0].text;

async function content(client) {
  const call = (name, args) => client.callTool({ name, arguments: args ?? {} });
  return {
    text: text(await call("test_simple_text")),
    image: (await call("test_image_content")).content[0],
    audio: (await call("test_audio_content")).content[0],
    embedded: (await call("test_embedded_resource")).content[0],
    mixed: (await call("test_multiple_content_types")).content.map((part) => part.type),
    failed: await call("test_error_handling"),
    header: text(await call("test_custom_header", { region: "north \u00e9" })),
    unknown: await failure(() => call("no_such_tool")),
  };
}

async function running(client, sdk) {
  const progress = [];
  const done = await client.callTool({ name: "test_tool_with_progress", arguments: {} }, ...sdk.callOptions({
    onprogress: (step) => progress.push([step.progress, step.total]),
  }));
  const abort = new AbortController();
  const slow = failure(() => client.callTool({ name: "slow_compute", arguments: { seconds: 60 } },
    ...sdk.callOptions({ signal: abort.signal })));
  setTimeout(() => abort.abort(), 100);
  await slow;
  return { progress, done: text(done), cancelled: true, after: text(await client.callTool({ name: "test_simple_text" })) };
}

async function asking(client) {
  const call = async (name, args) => text(await client.callTool({ name, arguments: args ?? {} }));
  return {
    elicitation: await call("test_elicitation", { message: "Who are you?" }),
    defaults: await call("test_elicitation_sep1034_defaults"),
    sampling: await call("test_sampling", { prompt: "Say something" }),
    roots: await call("test_input_required_result_list_roots"),
    multiple: await call("test_input_required_result_multiple_inputs"),
    rounds: await call("test_input_required_result_multi_round"),
    state: await call("test_input_required_result_request_state"),
    prompt: (await client.getPrompt({ name: "test_input_required_result_prompt" })).messages[0].content.text,
  };
}

async function reading(client) {
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  return {
    resources: (await client.listResources()).resources.map((resource) => resource.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
    text: await read("test://static-text"),
    binary: await read("test://static-binary"),
    template: await read("test://template/abc/data"),
    missing: await failure(() => read("test://no-such-resource")),
    prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
    prompt: (await client.getPrompt({
      name: "test_prompt_with_arguments", arguments: { arg1: "hello", arg2: "world" },
    })).messages[0].content.text,
    promptImage: (await client.getPrompt({ name: "test_prompt_with_image" })).messages.map((m) => m.content.type),
    completion: (await client.complete({
      ref: { type: "ref/prompt", name: "test_prompt_with_arguments" }, argument: { name: "arg1", value: "par" },
    })).completion.values,
  };
}

// A notebook of the gateway's own, from creating it to hearing that it changed.
async function watching(client, sdk) {
  const notebook = async (args) => text(await client.callTool({ name: "notebook", arguments: args }));
  const name = `sdk-${process.pid}`;
  await notebook({ mode: "create", name, newStr: "one" });
  const uri = (await client.listResources()).resources.map((r) => r.uri).find((u) => u.endsWith(`/notebook/${name}`));
  if (!uri) throw new Error(`the notebook ${name} is not among the resources`);
  const stop = await sdk.watch([uri, "test://watched-resource"]);
  await notebook({ mode: "write", name, newStr: "two" });
  await until(() => sdk.updated.includes(uri), `an update of ${uri}`);
  await client.callTool({ name: "test_update_watched_resource", arguments: { text: `by ${process.pid}` } });
  await until(() => sdk.updated.includes("test://watched-resource"), "an update of the watched resource");
  await client.callTool({ name: "test_trigger_tool_change", arguments: {} });
  await client.callTool({ name: "test_trigger_prompt_change", arguments: {} });
  await until(() => sdk.changed.includes("tools") && sdk.changed.includes("prompts"), "list changes");
  await stop();
  return {
    updated: [...new Set(sdk.updated)].sort(),
    content: (await client.readResource({ uri })).contents[0].text,
    watched: (await client.readResource({ uri: "test://watched-resource" })).contents[0].text === `by ${process.pid}`,
    uri,
  };
}

// Answers to what the gateway asks; `asked` keeps the questions.
export function answers(asked) {
  const known = { username: "ann", email: "ann@example.org", name: "Ann", color: "blue", ok: true, context: "a context" };
  return {
    elicit(params) {
      asked.push(params.message);
      const wanted = Object.entries(params.requestedSchema.properties);
      return {
        action: "accept",
        content: Object.fromEntries(wanted.map(([key, schema]) => [key, schema.default ?? known[key] ?? "x"])),
      };
    },
    sample: () => ({ role: "assistant", model: "a-model", content: { type: "text", text: "model says hello" } }),
    roots: () => ({ roots: [{ uri: "file:///tmp/a", name: "a" }] }),
  };
}

export async function allSteps(client, sdk) {
  const tools = (await client.listTools()).tools;
  return {
    version: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    schema: tools.find((tool) => tool.name === "json_schema_2020_12_tool").inputSchema,
    content: await content(client),
    running: await running(client, sdk),
    asking: await asking(client),
    reading: await reading(client),
    watching: await watching(client, sdk),
    logs: await sdk.logs(),
  };
}
