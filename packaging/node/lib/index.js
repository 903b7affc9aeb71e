// Run programs and commands that are not trusted in the sandbox of `mcp`. The types, with what they mean: index.d.ts.

import { spawn, spawnSync } from "node:child_process";
import { constants } from "node:os";
import { createInterface } from "node:readline";

import { Invocation, checkOptions } from "./options.js";

export { findBinary } from "./binary.js";
export { CommandFailed, Result, SandboxError } from "./result.js";

/** @typedef {import("./index.js").StartOptions} StartOptions */

/** What spawn() gives when stdin and stdout are pipes.
 * @typedef {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable,
 *   import("node:stream").Readable, import("node:stream").Readable | null>} Child */

/** A command that runs. */
export class SandboxProcess {
  #child;
  /** @type {Promise<import("./result.js").Result>} */
  #result;
  /** @type {Buffer[]} */
  #stdout = [];
  /** @type {Buffer[]} */
  #stderr = [];

  /**
   * @param {Invocation} invocation
   * @param {StartOptions & { capture?: boolean, stderr?: "pipe" | "inherit" | "ignore" }} options
   */
  constructor(invocation, { cwd, signal, capture = false, stderr = "inherit" }) {
    try {
      const child = spawn(invocation.program, invocation.arguments, {
        cwd, env: invocation.environment, stdio: ["pipe", "pipe", stderr], windowsHide: true,
      });
      this.#child = /** @type {Child} */ (/** @type {unknown} */ (child));
    } catch (error) {
      invocation.close();
      throw error;
    }
    const child = this.#child;
    // A command that ends without reading its input is no failure of the caller's.
    child.stdin.on("error", () => {});
    if (capture) {
      child.stdout.on("data", (/** @type {Buffer} */ part) => this.#stdout.push(part));
      child.stderr?.on("data", (/** @type {Buffer} */ part) => this.#stderr.push(part));
    }
    const abort = () => this.terminate();
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#result = new Promise((resolve, reject) => {
      child.once("error", (error) => {
        invocation.close();
        reject(error);
      });
      child.once("close", (code, ended) => {
        signal?.removeEventListener("abort", abort);
        try {
          const result = invocation.result(exitCode(code, ended), Buffer.concat(this.#stdout), Buffer.concat(this.#stderr));
          if (signal?.aborted) reject(signal.reason);
          else resolve(result);
        } catch (error) {
          reject(signal?.aborted ? signal.reason : error);
        }
      });
    });
    // Told to those who wait; a process that is only streamed from must not end this one.
    this.#result.catch(() => {});
  }

  get pid() {
    return this.#child.pid;
  }

  get stdin() {
    return this.#child.stdin;
  }

  get stdout() {
    return this.#child.stdout;
  }

  get stderr() {
    return this.#child.stderr;
  }

  /** The lines of stdout as they come. */
  async *[Symbol.asyncIterator]() {
    yield* createInterface({ input: this.#child.stdout, crlfDelay: Infinity });
  }

  terminate() {
    this.#child.kill("SIGTERM");
  }

  kill() {
    this.#child.kill("SIGKILL");
  }

  /** Reads what no caller reads: a command must not wait for a full pipe. */
  wait() {
    if (this.#child.stdout.readableFlowing === null) this.#child.stdout.resume();
    if (this.#child.stderr?.readableFlowing === null) this.#child.stderr.resume();
    return this.#result;
  }
}

export class Sandbox {
  #options;

  /** @param {import("./index.js").SandboxOptions} [options] */
  constructor(options = {}) {
    checkOptions(options);
    this.#options = Object.freeze({ ...options });
  }

  /**
   * @param {readonly string[]} command
   * @param {import("./index.js").RunOptions} [options]
   */
  async run(command, options = {}) {
    return this.#finish("run", command, options);
  }

  /**
   * @param {string} command
   * @param {import("./index.js").RunOptions} [options]
   */
  async exec(command, options = {}) {
    return this.#finish("exec", [command], options);
  }

  /**
   * @param {readonly string[]} command
   * @param {import("./index.js").RunOptions} [options]
   */
  runSync(command, options = {}) {
    return this.#finishSync("run", command, options);
  }

  /**
   * @param {string} command
   * @param {import("./index.js").RunOptions} [options]
   */
  execSync(command, options = {}) {
    return this.#finishSync("exec", [command], options);
  }

  /**
   * @param {readonly string[]} command
   * @param {StartOptions} [options]
   */
  startRun(command, options = {}) {
    return new SandboxProcess(new Invocation(this.#options, "run", command), options);
  }

  /**
   * @param {string} command
   * @param {StartOptions} [options]
   */
  startExec(command, options = {}) {
    return new SandboxProcess(new Invocation(this.#options, "exec", [command]), options);
  }

  /**
   * @param {"run" | "exec"} verb
   * @param {readonly string[]} command
   * @param {import("./index.js").RunOptions} options
   */
  async #finish(verb, command, { input, cwd, signal }) {
    signal?.throwIfAborted();
    const invocation = new Invocation(this.#options, verb, command);
    const process = new SandboxProcess(invocation, { cwd, signal, capture: true, stderr: "pipe" });
    process.stdin.end(input);
    return process.wait();
  }

  /**
   * @param {"run" | "exec"} verb
   * @param {readonly string[]} command
   * @param {import("./index.js").RunOptions} options
   */
  #finishSync(verb, command, { input, cwd }) {
    const invocation = new Invocation(this.#options, verb, command);
    const done = spawnSync(invocation.program, invocation.arguments, {
      cwd, input: input ?? "", env: invocation.environment, maxBuffer: Infinity, windowsHide: true,
    });
    if (done.error) {
      invocation.close();
      throw done.error;
    }
    return invocation.result(exitCode(done.status, done.signal), done.stdout, done.stderr);
  }
}

/**
 * @param {number | null} code
 * @param {NodeJS.Signals | null} signal
 */
function exitCode(code, signal) {
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}
