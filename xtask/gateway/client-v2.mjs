// The TypeScript SDK of 2026-07-28, in both eras: node client-v2.mjs URL
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

for (const mode of ["legacy", { pin: "2026-07-28" }, "auto"]) {
  const client = new Client({ name: "check", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
  const said = async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text;
  assert.equal(await said("echo", { message: "a\u00e4\u2028\n" }), "a\u00e4\u2028\n");
  const many = Array.from({ length: 20 }, (_, at) => said("echo", { message: `m${at}` }));
  assert.deepEqual(await Promise.all(many), many.map((_, at) => `m${at}`));
  assert.equal((await said("large", { bytes: 1 << 19 })).length, 1 << 19);
  assert((await client.listTools()).tools.length > 3);
  const read = await client.readResource({ uri: "test://static-text" });
  assert.match(read.contents[0].text, /static text/);
  await client.close();
  console.log(`the TypeScript SDK v2, ${JSON.stringify(mode)}`);
}
process.exit(0);
