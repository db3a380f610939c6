// SPDX-License-Identifier: MIT
// sdk_server.mjs - the servers of the official TypeScript SDK with one trivial tool, for comparison: version 1 (2025-11-25,
// sessions) at /v1, version 2 (2026-07-28, stateless) at /v2. Both answer in JSON, not in streams, like the gateway does.
// Prints its port; ends with its input. What the tool answers is the first argument.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer as OldServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';

const text = process.argv[2];

function trivial(Server) {
  const server = new Server({ name: 'trivial', version: '1.0.0' });
  server.registerTool('notebook', { description: 'Answers.' }, async () => ({ content: [{ type: 'text', text }] }));
  return server;
}

const sessions = new Map();

async function older(request, response) {
  const known = sessions.get(request.headers['mcp-session-id']);
  if (known) {
    await known.handleRequest(request, response);
    return;
  }
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await trivial(OldServer).connect(transport);
  await transport.handleRequest(request, response);
}

const newer = toNodeHandler(createMcpHandler(() => trivial(McpServer), { responseMode: 'json', legacy: 'reject' }));

const server = createServer((request, response) =>
  (request.url === '/v1' ? older : newer)(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  }));
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
