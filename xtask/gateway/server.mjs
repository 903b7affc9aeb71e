// A server of both eras: what the clients beside it and the conformance suite ask for. Over pipes, or with a port over HTTP.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const process_id = randomUUID();
const text = (text) => ({ content: [{ type: "text", text }] });

const make = () => {
  const server = new McpServer(
    { name: "gateway-check", version: "1.0.0" },
    { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} } },
  );
  server.registerTool("echo", { inputSchema: z.object({ message: z.string() }) }, ({ message }) => text(message));
  server.registerTool("process", { inputSchema: z.object({}) }, () => text(process_id));
  server.registerTool("large", { inputSchema: z.object({ bytes: z.number() }) }, ({ bytes }) => text("x".repeat(bytes)));
  server.registerTool("test_simple_text", { inputSchema: z.object({}) }, () =>
    text("This is a simple text response for testing."),
  );
  server.registerTool("test_error_handling", { inputSchema: z.object({}) }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerResource("text", "test://static-text", { mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "This is the content of the static text resource." }],
  }));
  server.registerPrompt("test_simple_prompt", {}, () => ({
    messages: [{ role: "user", content: { type: "text", text: "This is a simple prompt for testing." } }],
  }));
  return server;
};

if (process.argv[2]) {
  const handler = createMcpHandler(make);
  createServer(async (asked, answer) => {
    const body = asked.method === "POST" ? Readable.toWeb(asked) : undefined;
    const url = `http://${asked.headers.host}${asked.url}`;
    const request = new Request(url, { method: asked.method, headers: asked.headers, body, duplex: "half" });
    const response = await handler.fetch(request);
    answer.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body).pipe(answer);
    else answer.end();
  }).listen(Number(process.argv[2]), "127.0.0.1");
} else {
  serveStdio(make);
}
