import type { Readable, Writable } from "node:stream";

/** Nothing is granted that is not said here. Paths may begin with `~/`. */
export interface SandboxOptions {
  /** Files and directories that can be read. */
  read?: readonly string[];
  /** Files and directories that can be read and written. */
  write?: readonly string[];
  /** Paths and globs that stay closed inside of those. */
  deny?: readonly string[];
  /** Protected paths that can be written all the same, such as `.git/config`. */
  unprotect?: readonly string[];
  /** Hosts that can be reached: `api.github.com`, `*.example.com:443`, `10.1.0.0/16:5432`. */
  allowNet?: readonly string[];
  /** Unix sockets of the host that can be used. */
  allowUnix?: readonly string[];
  /** Ports that the host may reach on its loopback. */
  listen?: readonly number[];
  /** Variables to set. Values do not appear on a command line. */
  env?: Readonly<Record<string, string>>;
  /** Variables to pass on from this process. */
  passEnv?: readonly string[];
  /** Secrets by reference: `{ TOKEN: "env:GITHUB_TOKEN" }`, `file:PATH`, `cmd:COMMAND`. */
  secrets?: Readonly<Record<string, string>>;
  /** Whether other processes and programs may be started (true). */
  subprocess?: boolean;
  /** Bytes, or a size such as `"256M"`, of all processes together. */
  memory?: number | string;
  /** Processes and threads. */
  pids?: number;
  /** Temporary space: bytes, or a size such as `"64M"`. */
  tmp?: number | string;
  /** Millicores: 500 is half a processor. */
  cpu?: number;
  /** After which the whole tree is ended. */
  timeoutMs?: number;
  /** Keep HOME between runs, under this name. */
  home?: string;
  /** Refuse to start when anything, limits included, is less than asked for. */
  strict?: boolean;
  /** `strict`: the guard of `exec` also refuses programs given as text, such as `python -c`. */
  guard?: "usual" | "strict";
  /** A policy file. */
  policy?: string;
  /** More flags of `mcp run` and `mcp exec`, as they are. */
  flags?: readonly string[];
  /** The program (default: see `findBinary`). */
  binary?: string;
}

export interface StartOptions {
  /** The directory to start in; of `exec`, the project, which can be written. */
  cwd?: string;
  /** Ends the command and everything it started; the promise is rejected with the signal's reason. */
  signal?: AbortSignal;
  /** Where stderr goes (default of `startRun` and `startExec`: this process's own). */
  stderr?: "pipe" | "inherit" | "ignore";
}

export interface RunOptions {
  cwd?: string;
  /** For `run` and `exec`; the synchronous variants cannot be interrupted. */
  signal?: AbortSignal;
  input?: string | Uint8Array;
}

/** One boundary or limit. */
export interface Control {
  readonly status: "enforced" | "partial" | "unavailable" | "not_requested";
  /** The mechanism. */
  readonly by?: string;
  /** What of it does not hold, where the status is `partial`. */
  readonly missing?: string;
  /** Why not, where the status is `unavailable`. */
  readonly why?: string;
  /** What was read back from the kernel. */
  readonly seen: readonly string[];
}

export interface Ending {
  readonly kind: "exited" | "signaled" | "timeout" | "memory_limit" | "sandbox_failed" | "not_started";
  /** The exit code or the signal. */
  readonly number?: number;
  /** For `sandbox_failed` and `not_started`. */
  readonly why?: string;
}

export interface Usage {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  readonly maxProcessResidentBytes: number;
  readonly maxTreeMemoryBytes?: number;
  readonly maxProcesses?: number;
  readonly refusedProcesses?: number;
  readonly memoryKills?: number;
  readonly throttledSeconds?: number;
}

/** What the guard said before anything ran. */
export interface Guard {
  readonly decision: string;
  readonly rules: readonly string[];
  readonly noted: readonly string[];
  readonly why?: string;
}

/** Something new in a protected place, removed when the command had ended. */
export interface Undone {
  readonly path: string;
  readonly why: string;
  readonly failed?: string;
  readonly aside?: string;
}

export interface Traffic {
  readonly connections: number;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly failed: number;
  readonly trouble?: string;
}

export interface Refusal {
  readonly times: number;
  readonly why: string;
  /** The flag that would allow it. */
  readonly flag?: string;
}

/** What was enforced, as the kernel answered it. */
export interface Report {
  readonly version: number;
  readonly command: readonly string[];
  readonly controls: Readonly<Record<string, Control>>;
  readonly ending: Ending;
  readonly exitCode: number;
  readonly usage: Usage;
  readonly guard?: Guard;
  readonly undone: readonly Undone[];
  readonly network: {
    readonly reached: Readonly<Record<string, Traffic>>;
    readonly refused: Readonly<Record<string, Refusal>>;
    readonly bounds: readonly string[];
  };
  readonly blockedProcesses: number;
  readonly stopped?: string;
  readonly replaced: readonly string[];
  readonly kept: readonly string[];
  /** All of it, as it was written. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** How a command ended. */
export declare class Result {
  private constructor();
  /** The command's own; 128+n for signal n; 124 timeout; 126 refused by the guard. */
  readonly exitCode: number;
  readonly stdout: Buffer;
  /** What the command wrote, and lines of ours that begin with `mcp:`. */
  readonly stderr: Buffer;
  readonly report: Report;
  readonly ok: boolean;
  /** stdout as text. */
  readonly text: string;
  /** Whether the guard refused the command, so that nothing ran. */
  readonly refused: boolean;
  /** This result; throws `CommandFailed` where the exit code is not 0. */
  check(): this;
}

/** The command did not run: a bad option, a program that was not found, a boundary that cannot be enforced here. */
export declare class SandboxError extends Error {
  readonly exitCode?: number;
  readonly report?: Report;
}

/** The command ran (or the guard refused it), and its exit code is not 0. */
export declare class CommandFailed extends Error {
  readonly result: Result;
}

/** A command that runs. Iterating gives the lines of stdout as they come. */
export declare class SandboxProcess implements AsyncIterable<string> {
  private constructor();
  /** Of the launcher: a signal to it ends the whole tree. */
  readonly pid: number | undefined;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** null unless it was asked for as a pipe. */
  readonly stderr: Readable | null;
  [Symbol.asyncIterator](): AsyncGenerator<string, void, undefined>;
  /** Asks the command to end; what is left after the grace is killed. */
  terminate(): void;
  /** Ends the launcher at once; the kernel ends the tree with it. There is no report then. */
  kill(): void;
  /** The end, with the report. What was streamed is not in the result. */
  wait(): Promise<Result>;
}

export declare class Sandbox {
  constructor(options?: SandboxOptions);
  /** Runs a program, a package (`["npm:NAME"]`) or the line of a package runner to its end. */
  run(command: readonly string[], options?: RunOptions): Promise<Result>;
  /** Runs the command of an agent in a shell. The directory (`cwd`, or the current one) can be written. */
  exec(command: string, options?: RunOptions): Promise<Result>;
  runSync(command: readonly string[], options?: Omit<RunOptions, "signal">): Result;
  execSync(command: string, options?: Omit<RunOptions, "signal">): Result;
  /** Starts what `run` runs, with streams. */
  startRun(command: readonly string[], options?: StartOptions): SandboxProcess;
  /** Starts what `exec` runs, with streams. */
  startExec(command: string, options?: StartOptions): SandboxProcess;
}

/**
 * The program: the one that is named, the one of MCP_SANDBOX_BINARY, the one that came with this package, or
 * `mcp-sandbox` or `mcp` on PATH.
 */
export declare function findBinary(named?: string): string;
