// What a program may have, and the command line that says so.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

import { findBinary } from "./binary.js";
import { Result, SandboxError, parseReport } from "./result.js";

/** @typedef {import("./index.js").SandboxOptions} SandboxOptions */

const KNOWN = new Set([
  "read", "write", "deny", "unprotect", "allowNet", "allowUnix", "listen", "env", "passEnv", "secrets", "subprocess",
  "memory", "pids", "tmp", "cpu", "timeoutMs", "home", "strict", "guard", "policy", "flags", "binary",
]);

/**
 * A misspelt grant must not be a silent one.
 * @param {SandboxOptions} options
 */
export function checkOptions(options) {
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) throw new TypeError(`there is no option ${name} (known: ${[...KNOWN].join(", ")})`);
  }
}

/** @param {SandboxOptions} options */
function flags(options) {
  const lists = /** @type {const} */ ([
    ["--read", options.read?.map(path)],
    ["--write", options.write?.map(path)],
    ["--deny", options.deny],
    ["--unprotect", options.unprotect?.map(path)],
    ["--allow-net", options.allowNet],
    ["--allow-unix", options.allowUnix?.map(path)],
    ["--listen", options.listen],
    ["--env", options.passEnv?.map(name)],
    ["--secret", Object.entries(options.secrets ?? {}).map(([word, reference]) => `${name(word)}=${reference}`)],
  ]);
  const words = lists.flatMap(([flag, values]) => (values ?? []).map((value) => `${flag}=${value}`));
  const single = /** @type {const} */ ([
    ["--max-memory", options.memory],
    ["--max-pids", options.pids],
    ["--max-tmp", options.tmp],
    ["--max-cpu", options.cpu],
    ["--timeout", options.timeoutMs === undefined ? undefined : milliseconds(options.timeoutMs)],
    ["--home", options.home],
    ["--policy", options.policy === undefined ? undefined : path(options.policy)],
  ]);
  for (const [flag, value] of single) if (value !== undefined) words.push(`${flag}=${value}`);
  if (options.subprocess === false) words.push("--no-subprocess");
  if (options.strict) words.push("--strict");
  return [...words, ...(options.flags ?? [])];
}

/** One command line, with a private directory for its report. */
export class Invocation {
  #directory;

  /**
   * @param {SandboxOptions} options
   * @param {"run" | "exec"} verb
   * @param {readonly string[]} command
   */
  constructor(options, verb, command) {
    if (!Array.isArray(command)) throw new TypeError("run() takes a list of words; a text for a shell goes to exec()");
    if (command.length === 0 || command.some((it) => typeof it !== "string")) {
      throw new TypeError("the command must be a list of strings, and not empty");
    }
    this.program = findBinary(options.binary);
    const words = flags(options);
    /** @type {NodeJS.ProcessEnv} */
    this.environment = { ...process.env };
    // By reference: a command line can be read by every user of the machine, and a variable such as PATH or HOME
    // would change what the launcher itself does.
    for (const [number, [word, value]] of Object.entries(options.env ?? {}).entries()) {
      const carrier = `MCP_SANDBOX_VALUE_${number}`;
      this.environment[carrier] = value;
      words.push(`--secret=${name(word)}=env:${carrier}`);
    }
    if (verb === "exec" && options.guard !== undefined) words.push(`--guard=${options.guard}`);
    this.#directory = mkdtempSync(join(tmpdir(), "mcp-sandbox-"));
    this.arguments = [verb, ...words, `--report=${this.#file}`, "--", ...command];
  }

  get #file() {
    return join(this.#directory, "report.json");
  }

  /**
   * With the report, which is complete when the launcher has ended.
   * @param {number} exitCode
   * @param {Buffer} stdout
   * @param {Buffer} stderr
   */
  result(exitCode, stdout, stderr) {
    let text = "";
    try {
      text = readFileSync(this.#file, "utf8");
    } catch {
      // The launcher did not come that far; its words say why.
    } finally {
      this.close();
    }
    if (text.trim() === "") throw new SandboxError(reason(stderr, exitCode), { exitCode });
    /** @type {import("./index.js").Report} */
    let report;
    try {
      report = parseReport(text);
    } catch (error) {
      throw new SandboxError(`the report cannot be read: ${/** @type {Error} */ (error).message}`, { exitCode });
    }
    const result = new Result(exitCode, stdout, stderr, report);
    const { kind, why } = report.ending;
    if ((kind === "not_started" || kind === "sandbox_failed") && !result.refused) {
      throw new SandboxError(reason(stderr, exitCode, why), { exitCode, report });
    }
    return result;
  }

  close() {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/**
 * In the launcher's own words, all of its lines.
 * @param {Buffer} stderr
 * @param {number} exitCode
 * @param {string} [why]
 */
function reason(stderr, exitCode, why) {
  const lines = stderr.toString().split("\n");
  const said = lines.filter((line) => line.startsWith("mcp: ")).map((line) => line.slice(5));
  return said.join("\n") || why || lines.slice(0, 20).join("\n").trim() || `mcp ended with ${exitCode} and no report`;
}

/** @param {string} text */
function path(text) {
  if (text === "") throw new TypeError("a path is empty");
  return text === "~" || text.startsWith("~/") ? homedir() + text.slice(1) : text;
}

/** @param {string} word */
function name(word) {
  if (word === "" || /[=\0]/.test(word)) throw new TypeError(`${JSON.stringify(word)} cannot be the name of a variable`);
  return word;
}

/** @param {number} value */
function milliseconds(value) {
  if (!(value > 0 && value < 1e12)) throw new TypeError(`timeoutMs: ${value} is not a number above 0`);
  return `${Math.max(1, Math.round(value))}ms`;
}
