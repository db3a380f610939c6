// SPDX-License-Identifier: MIT
// tasks_v1.mjs - tasks of 2025-11-25 with the official SDK, version 1: tasks_v1.mjs URL | tasks_v1.mjs COMMAND ARGUMENT...
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { failure } from "./client_steps.mjs";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client({ name: "tasks-v1", version: "1" }, { capabilities: { elicitation: {} } });
const errors = [];
client.onerror = (error) => errors.push(String(error));
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { confirm: true, name: "Ann" } }));
await client.connect(transport);
await client.listTools();
const tasks = client.experimental.tasks;

// Every message of a call that runs as a task, and the id of the task.
async function follow(name, args, onCreated) {
  const seen = { types: [], statuses: [] };
  for await (const message of tasks.callToolStream({ name, arguments: args }, undefined, { task: { ttl: 60000 } })) {
    if (seen.types.at(-1) !== message.type) seen.types.push(message.type);
    if (message.type === "taskCreated") {
      seen.id = message.task.taskId;
      await onCreated?.(message.task.taskId);
    }
    if (message.type === "taskStatus" && seen.statuses.at(-1) !== message.task.status) seen.statuses.push(message.task.status);
    if (message.type === "result") seen.result = message.result;
    if (message.type === "error") seen.error = message.error.message;
  }
  return seen;
}

const done = await follow("slow_compute", { seconds: 0.2, label: "it" });
const failed = await follow("failing_job", {});
const cancelled = await follow("slow_compute", { seconds: 600 }, (id) => tasks.cancelTask(id));
const asked = await follow("confirm_delete", { filename: "a.txt" });
const listed = (await tasks.listTasks()).tasks.map((task) => task.taskId);
const seen = {
  done, failed, cancelled, asked,
  listed: [done, failed, cancelled, asked].every((one) => listed.includes(one.id)),
  status: (await tasks.getTask(done.id)).status,
  again: (await tasks.getTaskResult(done.id, CallToolResultSchema)).content[0].text,
  unknown: await failure(() => tasks.getTask("0".repeat(48))),
  errors,
};
await client.close();
process.stdout.write(JSON.stringify(seen));
process.exit(0);
