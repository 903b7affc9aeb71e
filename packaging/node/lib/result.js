// What comes back from a run, and what goes wrong.

/** The newest report this package knows the meaning of. */
const VERSION = 1;

/** The command did not run: a bad option, a program that was not found, a boundary that cannot be enforced here. */
export class SandboxError extends Error {
  /**
   * @param {string} message
   * @param {{ exitCode?: number, report?: import("./index.js").Report }} [more]
   */
  constructor(message, more = {}) {
    super(message);
    this.name = "SandboxError";
    this.exitCode = more.exitCode;
    this.report = more.report;
  }
}

/** The command ran (or the guard refused it), and its exit code is not 0. Thrown by `Result.check()`. */
export class CommandFailed extends Error {
  /** @param {Result} result */
  constructor(result) {
    const { kind, why, number } = result.report.ending;
    const words = kind === "exited" ? `exit code ${result.exitCode}` : `${kind.replaceAll("_", " ")}${why ?? number ? `: ${why ?? number}` : ""}`;
    const lines = result.stderr.toString().trim().split("\n");
    // The command's own last line says why; hints of ours follow it.
    const last = lines.filter((line) => !line.startsWith("mcp:")).at(-1) ?? lines.at(-1);
    super(last ? `${words}: ${last}` : words);
    this.name = "CommandFailed";
    this.result = result;
  }
}

export class Result {
  /**
   * @param {number} exitCode
   * @param {Buffer} stdout
   * @param {Buffer} stderr
   * @param {import("./index.js").Report} report
   */
  constructor(exitCode, stdout, stderr, report) {
    this.exitCode = exitCode;
    this.stdout = stdout;
    this.stderr = stderr;
    this.report = report;
  }

  get ok() {
    return this.exitCode === 0;
  }

  get text() {
    return this.stdout.toString();
  }

  get refused() {
    return this.report.guard !== undefined && this.report.ending.kind === "not_started";
  }

  check() {
    if (!this.ok) throw new CommandFailed(this);
    return this;
  }
}

/**
 * The report as an object: names as in JavaScript, lists that are always there, the ending in one shape.
 * @param {string} text
 * @returns {import("./index.js").Report}
 */
export function parseReport(text) {
  const raw = JSON.parse(text);
  if (raw === null || typeof raw !== "object" || !Number.isInteger(raw.version)) {
    throw new Error("this is no report of mcp: it has no version");
  }
  if (raw.version > VERSION) {
    throw new Error(`the report has version ${raw.version}, and this package knows ${VERSION}: install a newer one`);
  }
  if (!Array.isArray(raw.command) || typeof raw.controls !== "object" || raw.ending === undefined) {
    throw new Error("this is no report of mcp: fields are missing");
  }
  const { usage, network = {}, guard } = raw;
  return {
    version: raw.version,
    command: raw.command,
    controls: mapped(raw.controls, (it) => ({ ...it, seen: it.seen ?? [] })),
    ending: ending(raw.ending),
    exitCode: raw.exit_code,
    usage: /** @type {any} */ (camel(usage)),
    guard: guard && { ...guard, rules: guard.rules ?? [], noted: guard.noted ?? [] },
    undone: raw.undone ?? [],
    network: {
      reached: mapped(network.reached ?? {}, (it) => ({ failed: 0, ...camel(it) })),
      refused: network.refused ?? {},
      bounds: network.bounds ?? [],
    },
    blockedProcesses: raw.blocked_processes ?? 0,
    stopped: raw.stopped,
    replaced: raw.replaced ?? [],
    kept: raw.kept ?? [],
    raw,
  };
}

/**
 * @param {unknown} raw
 * @returns {import("./index.js").Ending}
 */
function ending(raw) {
  if (typeof raw === "string") return { kind: /** @type {any} */ (raw) };
  const entry = Object.entries(/** @type {object} */ (raw))[0];
  if (entry === undefined) throw new Error("this is no report of mcp: it has no ending");
  const [kind, value] = entry;
  return { kind: /** @type {any} */ (kind), ...(typeof value === "string" ? { why: value } : { number: value }) };
}

/**
 * @param {Record<string, any>} object
 * @param {(value: any) => any} change
 */
function mapped(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

/** @param {Record<string, unknown>} object */
function camel(object) {
  const name = (/** @type {string} */ word) => word.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(object).map(([word, value]) => [name(word), value]));
}
