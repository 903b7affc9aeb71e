#!/usr/bin/env node
// Starts the program of the package for this platform with the same arguments, streams and exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";

import { VARIABLE, broughtBinary } from "../lib/binary.js";

/**
 * Not from PATH: what is first there may be this file.
 * @returns {string}
 */
function program() {
  const found = process.env[VARIABLE] || broughtBinary();
  if (found) return found;
  console.error(
    `mcp: the package @mcp-sandbox/${process.platform}-${process.arch} is not installed: was --omit=optional given? ` +
      `Install mcp-sandbox again without, or set ${VARIABLE} to the program's path`,
  );
  process.exit(127);
}

const words = process.argv.slice(2);
const binary = program();
const replace = /** @type {any} */ (process).execve;
if (process.platform !== "win32" && typeof replace === "function") {
  // Newer versions of Node become the program: one process less, and signals are its own.
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  replace.call(process, binary, [binary, ...words], process.env);
}
const child = spawn(binary, words, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`mcp: ${binary}: ${error.message}`);
  process.exit(126);
});
// A terminal sends its signals to both; others reach only this process, and are passed on.
for (const signal of /** @type {NodeJS.Signals[]} */ (["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])) {
  process.on(signal, () => {
    if (!(process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT"))) child.kill(signal);
  });
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0)));
