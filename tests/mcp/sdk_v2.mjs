// SPDX-License-Identifier: MIT
// sdk_v2.mjs - the official SDK, version 2, in one of its eras: sdk_v2.mjs legacy|auto|VERSION URL | ... COMMAND ARGUMENT...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { allSteps, answers, until } from "./client_steps.mjs";

const [era, target, ...args] = process.argv.slice(2);
const mode = /^\d/.test(era) ? { pin: era } : era;
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client(
  { name: "sdk-v2", version: "1" },
  {
    capabilities: { sampling: {}, elicitation: {}, roots: {} },
    versionNegotiation: { mode },
  },
);
const errors = [];
const asked = [];
const logged = [];
const isModern = () => client.getProtocolEra() === "modern";
const sdk = {
  updated: [],
  changed: [],
  callOptions: (options) => [options],
  async watch(uris) {
    if (isModern()) {
      const subscription = await client.listen({
        resourceSubscriptions: uris, toolsListChanged: true, promptsListChanged: true,
      });
      sdk.honored = subscription.honoredFilter;
      return () => subscription.close();
    }
    for (const uri of uris) await client.subscribeResource({ uri });
    return async () => {
      for (const uri of uris) await client.unsubscribeResource({ uri });
    };
  },
  async logs() {
    if (isModern()) {
      await client.callTool({
        name: "test_tool_with_logging", arguments: {}, _meta: { "io.modelcontextprotocol/logLevel": "info" },
      });
      await until(() => logged.length >= 3, "three log messages");
      await client.callTool({ name: "test_logging_tool", arguments: {} });
      return logged;
    }
    await client.setLoggingLevel("info");
    await client.callTool({ name: "test_tool_with_logging", arguments: {} });
    await until(() => logged.length >= 3, "three log messages");
    return logged;
  },
};
const reply = answers(asked);
client.onerror = (error) => errors.push(String(error));
client.setRequestHandler("elicitation/create", (request) => reply.elicit(request.params));
client.setRequestHandler("sampling/createMessage", reply.sample);
client.setRequestHandler("roots/list", reply.roots);
client.setNotificationHandler("notifications/resources/updated", (n) => { sdk.updated.push(n.params.uri); });
client.setNotificationHandler("notifications/tools/list_changed", () => { sdk.changed.push("tools"); });
client.setNotificationHandler("notifications/prompts/list_changed", () => { sdk.changed.push("prompts"); });
client.setNotificationHandler("notifications/message", (n) => { logged.push(n.params.data); });

await client.connect(transport);
const seen = await allSteps(client, sdk);
seen.asked = asked;
seen.era = client.getProtocolEra();
seen.protocol = client.getNegotiatedProtocolVersion();
seen.discovered = isModern() ? (await client.discover()).supportedVersions : null;
seen.errors = errors.slice();
await client.close();
process.stdout.write(JSON.stringify(seen));
process.exit(0);
