// The TypeScript SDK of the revisions with sessions: node client-v1.mjs URL
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const open = async () => {
  const client = new Client({ name: "check", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
  await client.connect(transport);
  return { client, transport };
};
const said = async (client, name, args) => (await client.callTool({ name, arguments: args })).content[0].text;

const [one, two] = [await open(), await open()];
assert(one.transport.sessionId && one.transport.sessionId !== two.transport.sessionId);
assert.equal(await said(one.client, "echo", { message: "a\u00e4\u2028\n" }), "a\u00e4\u2028\n");
assert.notEqual(await said(one.client, "process", {}), await said(two.client, "process", {}), "sessions share a process");
const many = Array.from({ length: 20 }, (_, at) => said(one.client, "echo", { message: `m${at}` }));
assert.deepEqual(await Promise.all(many), many.map((_, at) => `m${at}`));
assert.equal((await said(one.client, "large", { bytes: 1 << 19 })).length, 1 << 19);
await one.transport.terminateSession();
await assert.rejects(said(one.client, "echo", { message: "x" }));
assert.equal(await said(two.client, "echo", { message: "still" }), "still");
await two.transport.terminateSession();
console.log("sessions of the TypeScript SDK v1");
process.exit(0);
