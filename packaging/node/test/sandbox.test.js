// Against the installed package and its program: nothing here is a stand-in.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { CommandFailed, Sandbox, SandboxError, findBinary } from "mcp-sandbox";

const unix = { skip: process.platform === "win32" ? "these commands are those of a Unix" : false };

describe("mcp-sandbox", unix, () => {
  /** @type {string} */
  let scratch;
  let number = 0;
  const directory = () => {
    const path = join(scratch, String((number += 1)));
    mkdirSync(path);
    return path;
  };
  before(() => {
    scratch = mkdtempSync(join(tmpdir(), "mcp-node-test-"));
  });
  after(() => rmSync(scratch, { recursive: true, force: true }));

  test("the program comes with the package", () => {
    assert.match(findBinary(), /@mcp-sandbox.*mcp-sandbox$/);
  });

  test("a program runs, and the report says what was enforced", async () => {
    const result = await new Sandbox().run(["echo", "hello"]);
    assert.equal(result.text, "hello\n");
    assert.equal(result.exitCode, 0);
    assert.equal(result.report.ending.kind, "exited");
    assert.equal(result.report.controls.network?.status, "enforced");
    assert.ok(result.report.controls.network?.by);
    assert.ok(result.report.usage.wallSeconds > 0);
    assert.equal(new Sandbox().runSync(["echo", "hello"]).text, "hello\n");
  });

  test("a file is there only where it is granted", async () => {
    const at = directory();
    writeFileSync(join(at, "note"), "for whom it is meant");
    const command = ["cat", join(at, "note")];
    const refused = await new Sandbox().run(command);
    assert.notEqual(refused.exitCode, 0);
    assert.equal(refused.text, "");
    assert.equal((await new Sandbox({ read: [at] }).run(command)).check().text, "for whom it is meant");
  });

  test("a host is reached only where it is allowed", async () => {
    const server = createServer((socket) => socket.end());
    await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    const command = ["bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached`];
    assert.notEqual((await new Sandbox().run(command)).exitCode, 0);
    const allowed = await new Sandbox({ allowNet: [`127.0.0.1:${port}`] }).run(command);
    assert.equal(allowed.text, "reached\n");
    assert.equal(Object.values(allowed.report.network.reached)[0]?.connections, 1);
    server.close();
  });

  test("values arrive, and are on no command line", async () => {
    const value = "a value, with = and spaces";
    const box = new Sandbox({ env: { TOKEN: value, PATH: "/usr/bin:/bin:/nowhere" } });
    const process_ = box.startRun(["sh", "-c", 'echo "$TOKEN"; echo "$PATH"; cat']);
    const lines = process_[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, value);
    assert.equal((await lines.next()).value, "/usr/bin:/bin:/nowhere");
    if (process.platform === "linux") {
      const line = readFileSync(`/proc/${process_.pid}/cmdline`, "utf8");
      assert.ok(line.includes("TOKEN") && !line.includes(value));
    }
    process_.stdin.end();
    assert.equal((await process_.wait()).exitCode, 0);
  });

  test("streams are live both ways", async () => {
    const process_ = new Sandbox().startRun(["cat"]);
    const lines = process_[Symbol.asyncIterator]();
    for (const word of ["one", "two"]) {
      process_.stdin.write(`${word}\n`);
      assert.equal((await lines.next()).value, word);
    }
    process_.stdin.end();
    assert.ok((await lines.next()).done);
    assert.equal((await process_.wait()).report.ending.kind, "exited");
  });

  test("runs go on at the same time", async () => {
    // Each waits for what the other writes: in sequence neither would end before its timeout.
    const cwd = directory();
    const box = new Sandbox({ timeoutMs: 60_000 });
    const meet = (/** @type {string} */ own, /** @type {string} */ other) =>
      box.exec(`touch ${own}; until [ -e ${other} ]; do sleep 0.01; done; echo ${own}`, { cwd });
    const results = await Promise.all([meet("a", "b"), meet("b", "a")]);
    assert.deepEqual(results.map((it) => it.check().text), ["a\n", "b\n"]);
  });

  test("input, exit codes and a timeout", async () => {
    assert.equal((await new Sandbox().run(["wc", "-c"], { input: "12345" })).text.trim(), "5");
    const failed = await new Sandbox().run(["sh", "-c", "echo why >&2; exit 3"]);
    assert.throws(() => failed.check(), (error) => error instanceof CommandFailed && /exit code 3: why/.test(error.message));
    const late = await new Sandbox({ timeoutMs: 300, flags: ["--grace", "100ms"] }).run(["sleep", "1000"]);
    assert.deepEqual([late.exitCode, late.report.ending.kind], [124, "timeout"]);
  });

  test("an aborted run is ended", async () => {
    const cwd = directory();
    const controller = new AbortController();
    const box = new Sandbox({ flags: ["--grace", "100ms"] });
    const running = box.exec("touch started; sleep 1000; touch ended", { cwd, signal: controller.signal });
    while (!existsSync(join(cwd, "started"))) await sleep(10);
    controller.abort();
    await assert.rejects(running, { name: "AbortError" });
    assert.ok(!existsSync(join(cwd, "ended")));
    await assert.rejects(box.run(["true"], { signal: controller.signal }), { name: "AbortError" });
  });

  test("exec writes the project and nothing else", async () => {
    const [project, other] = [directory(), directory()];
    const command = `echo in > file; echo out > ${other}/file`;
    assert.notEqual((await new Sandbox().exec(command, { cwd: project })).exitCode, 0);
    assert.equal(readFileSync(join(project, "file"), "utf8"), "in\n");
    assert.ok(!existsSync(join(other, "file")));
    assert.ok(new Sandbox({ write: [other] }).execSync(command, { cwd: project }).ok);
    assert.equal(readFileSync(join(other, "file"), "utf8"), "out\n");
  });

  test("what the guard refuses does not run, and what was undone is told", async () => {
    const cwd = directory();
    const refused = await new Sandbox().exec("touch ran && rm -rf /", { cwd });
    assert.ok(refused.refused && refused.exitCode === 126 && refused.report.guard?.why);
    assert.ok(!existsSync(join(cwd, "ran")));
    const undone = await new Sandbox().exec("touch ran; mkdir -p .vscode && echo {} > .vscode/tasks.json", { cwd });
    assert.ok(!undone.refused && existsSync(join(cwd, "ran")));
    assert.notEqual(undone.report.undone.length, 0);
    assert.ok(!existsSync(join(cwd, ".vscode", "tasks.json")));
  });

  test("what cannot start is an error with its reason", async () => {
    /** @type {[import("mcp-sandbox").SandboxOptions, string[], RegExp][]} */
    const cases = [
      [{}, ["/does/not/exist"], /not found|No such|does not exist/],
      [{ read: ["/does/not/exist"] }, ["true"], /\/does\/not\/exist/],
      [{ read: ["--network=host"] }, ["true"], /--network=host/],
      [{ flags: ["--no-such-flag"] }, ["true"], /no-such-flag/],
      [{ binary: "/does/not/exist/mcp" }, ["true"], /not found, or not executable/],
      [{ memory: "a lot" }, ["true"], /a lot/],
    ];
    for (const [options, command, message] of cases) {
      const expected = (/** @type {unknown} */ error) => error instanceof SandboxError && message.test(error.message);
      await assert.rejects(new Sandbox(options).run(command), expected);
      assert.throws(() => new Sandbox(options).runSync(command), expected);
    }
  });

  test("mistakes of the caller are told before anything starts", async () => {
    await assert.rejects(new Sandbox().run(/** @type {any} */ ("ls -l")), /exec\(\)/);
    await assert.rejects(new Sandbox().run([]), TypeError);
    await assert.rejects(new Sandbox({ timeoutMs: -1 }).run(["true"]), /above 0/);
    await assert.rejects(new Sandbox({ env: { "A=B": "c" } }).run(["true"]), /name of a variable/);
    assert.throws(() => new Sandbox(/** @type {any} */ ({ reed: ["/tmp"] })), /no option reed/);
  });

  test("the command starts the program with its streams and exit code", () => {
    const shim = (/** @type {string[]} */ words, input = "") =>
      spawnSync(join("node_modules", ".bin", "mcp-sandbox"), words, { encoding: "utf8", input });
    assert.match(shim(["--version"]).stdout, /^mcp \d/);
    assert.equal(shim(["run", "--", "cat"], "through\n").stdout, "through\n");
    assert.equal(shim(["run", "--", "sh", "-c", "exit 9"]).status, 9);
    assert.equal(spawnSync(join("node_modules", ".bin", "mcp"), ["--version"]).status, 0);
  });

  test("another program called mcp is not taken for ours", async () => {
    const at = directory();
    writeFileSync(join(at, "mcp"), "#!/bin/sh\necho 'MCP version 1.2'\n");
    chmodSync(join(at, "mcp"), 0o755);
    const { isOurs } = await import(new URL("binary.js", import.meta.resolve("mcp-sandbox")).href);
    assert.ok(!isOurs(join(at, "mcp")));
    assert.ok(isOurs(findBinary()), basename(findBinary()));
  });
});
