// SPDX-License-Identifier: MIT
// sdk_v1.mjs - the official SDK, version 1, against a gateway: sdk_v1.mjs URL | sdk_v1.mjs COMMAND ARGUMENT...
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { allSteps, answers, until } from "./client_steps.mjs";

const [target, ...args] = process.argv.slice(2);
const isHttp = target.startsWith("http");
const transport = isHttp
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client(
  { name: "sdk-v1", version: "1" },
  { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } },
);
const errors = [];
const asked = [];
const logged = [];
const sdk = {
  updated: [],
  changed: [],
  callOptions: (options) => [undefined, options],
  async watch(uris) {
    for (const uri of uris) await client.subscribeResource({ uri });
    return async () => {
      for (const uri of uris) await client.unsubscribeResource({ uri });
    };
  },
  async logs() {
    await client.setLoggingLevel("info");
    await client.callTool({ name: "test_tool_with_logging", arguments: {} });
    await until(() => logged.length >= 3, "three log messages");
    await client.setLoggingLevel("error");
    await client.callTool({ name: "test_logging_tool", arguments: {} });
    return logged;
  },
};
const reply = answers(asked);
client.onerror = (error) => errors.push(String(error));
client.setRequestHandler(ElicitRequestSchema, (request) => reply.elicit(request.params));
client.setRequestHandler(CreateMessageRequestSchema, reply.sample);
client.setRequestHandler(ListRootsRequestSchema, reply.roots);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => { sdk.updated.push(n.params.uri); });
client.setNotificationHandler(ToolListChangedNotificationSchema, () => { sdk.changed.push("tools"); });
client.setNotificationHandler(PromptListChangedNotificationSchema, () => { sdk.changed.push("prompts"); });
client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => { logged.push(n.params.data); });

await client.connect(transport);
const seen = await allSteps(client, sdk);
await client.ping();
seen.asked = asked;
seen.session = isHttp ? Boolean(transport.sessionId) : null;
if (isHttp) {
  // A tool that closes its stream: the SDK resumes and still gets the answer.
  seen.resumed = (await client.callTool({ name: "test_reconnection", arguments: {} })).content[0].text;
  await transport.terminateSession();
}
seen.errors = errors.slice();
await client.close();
process.stdout.write(JSON.stringify(seen));
process.exit(0);
