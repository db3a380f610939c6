// SPDX-License-Identifier: MIT
// use_vercel.mjs - the Vercel AI SDK: generateText with the tools of its MCP client and a mock model that calls what it is told.
// The same arguments and the same line as of steps.py.
import { createMCPClient } from "@ai-sdk/mcp";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";

const [url, key, plan] = process.argv.slice(2);
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const ended = (content, reason) => ({ content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] });

const connect = (headers) => createMCPClient({ transport: { type: "http", url, headers } });

const keyless = async () => {
  try {
    const client = await connect({});
    const tools = await client.tools();
    await client.close();
    return `it was let in, and saw ${Object.keys(tools).length} tools`;
  } catch (error) {
    return `${error.stack} ${error.cause ?? ""}`;
  }
};

const ask = async (tools, name, input) => {
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => name === undefined || prompt.some(({ role }) => role === "tool")
      ? ended([{ type: "text", text: "done" }], "stop")
      : ended([{ type: "tool-call", toolCallId: "1", toolName: name, input: JSON.stringify(input) }], "tool-calls"),
  });
  const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(2) });
  return { model, result };
};

const call = async (tools, name, input) => {
  const { model, result } = await ask(tools, name, input);
  const seen = model.doGenerateCalls.at(-1).prompt.at(-1).content[0].output;
  const failed = seen.type.startsWith("error") || result.steps[0].toolResults[0]?.output.isError === true;
  return { failed, text: typeof seen.value === "string" ? seen.value : JSON.stringify(seen.value) };
};

const told = { keyless: await keyless(), tools: {}, steps: {} };
const client = await connect({ Authorization: `Bearer ${key}` });
const tools = await client.tools();
const { model } = await ask(tools);
for (const tool of model.doGenerateCalls[0].tools) told.tools[tool.name] = tool.inputSchema;
for (const [step, name, input] of JSON.parse(plan)) told.steps[step] = await call(tools, name, input);
await client.close();
console.log(JSON.stringify(told));
