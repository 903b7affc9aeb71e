// Where the program is that this package drives.

import { spawnSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, isAbsolute, join, resolve } from "node:path";

import { SandboxError } from "./result.js";

/** Names the program for every sandbox that is not told otherwise. */
export const VARIABLE = "MCP_SANDBOX_BINARY";

const suffix = process.platform === "win32" ? ".exe" : "";

/**
 * The program of the package for this platform, where npm installed one.
 * @returns {string | undefined}
 */
export function broughtBinary() {
  const name = `@mcp-sandbox/${process.platform}-${process.arch}`;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
    const program = join(manifest, "..", "bin", `mcp-sandbox${suffix}`);
    return isProgram(program) ? program : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The program: the one that is named, the one of MCP_SANDBOX_BINARY, the one that came with this package, or
 * mcp-sandbox or mcp on PATH. A program called `mcp` is asked who it is, because the Python SDK of MCP has one, too.
 * @param {string} [named]
 * @returns {string}
 */
export function findBinary(named) {
  const chosen = named ?? process.env[VARIABLE];
  if (chosen) {
    const found = isAbsolute(chosen) || /[\\/]/.test(chosen) ? resolve(chosen) : onPath(chosen)[0];
    if (!found || !isProgram(found)) throw new SandboxError(`${chosen}: not found, or not executable`);
    return found;
  }
  const found = broughtBinary() ?? onPath("mcp-sandbox")[0] ?? onPath("mcp").find(isOurs);
  if (!found) {
    throw new SandboxError(
      `no mcp-sandbox for ${process.platform}-${process.arch} here: was it installed with --omit=optional? ` +
        `Install it again without, or set ${VARIABLE} to the program's path`,
    );
  }
  return found;
}

/**
 * Whether a program called `mcp` is this one.
 * @param {string} program
 */
export function isOurs(program) {
  const said = spawnSync(program, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 20_000 });
  return said.status === 0 && /^mcp \d\S*\s*$/.test(said.stdout);
}

/** @param {string} name */
function onPath(name) {
  const directories = (process.env.PATH ?? "").split(delimiter).filter((it) => it !== "");
  return directories.map((it) => resolve(it, name + suffix)).filter(isProgram);
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
