// The example in the documentation does what it says.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { ScriptedModel, converse } from "../examples/agent-loop.js";

const unix = { skip: process.platform === "win32" ? "its commands are those of a Unix" : false };

test("the agent repairs its program and is refused the download", unix, async () => {
  const project = mkdtempSync(join(tmpdir(), "mcp-node-example-"));
  try {
    const transcript = await converse(new ScriptedModel(), project);
    const answers = transcript.map(({ answer }) => answer);
    assert.equal(readFileSync(join(project, "sums.mjs"), "utf8"), "export const add = (a, b) => a + b;\n");
    assert.ok(answers.some((it) => it.includes("0 !== 4")), answers.join("\n"));
    assert.ok(answers.some((it) => it.startsWith("refused")), answers.join("\n"));
    assert.equal(transcript.at(-1)?.call.done, "the test passes, and the download was not needed");
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
});
