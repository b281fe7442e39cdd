#!/usr/bin/env node
// Starts the command line on a Node that can run it. Plain JavaScript that an old Node can still read: it is what
// tells a user of an old Node what to do, and what picks the project's own `node` package where there is one.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const OLDEST = [22, 13];
/** From here on Node runs TypeScript without being asked to. */
const STRIPS_TYPES = [22, 18];
const RELAUNCHED = "BELFRY_RELAUNCHED";

const self = fileURLToPath(import.meta.url);
const source = join(dirname(self), "main.ts");
const isCheckout = existsSync(source);
const entry = isCheckout ? source : join(dirname(self), "..", "dist", "cli", "main.js");

const atLeast = ([major, minor]) => {
  const [ownMajor, ownMinor] = process.versions.node.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
};

/** The `node` package of the checkout or of the project around it: it ships a Node of its own. */
const findProjectNode = () => {
  const name = process.platform === "win32" ? "node.exe" : "node";
  for (const start of [dirname(self), process.cwd()]) {
    for (let folder = start; ; folder = dirname(folder)) {
      const candidate = join(folder, "node_modules", "node", "bin", name);
      if (existsSync(candidate)) return candidate;
      if (folder === dirname(folder)) break;
    }
  }
  return undefined;
};

const relaunch = (node, flags) => {
  const child = spawn(node, [...flags, self, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, [RELAUNCHED]: "1" },
  });
  // A terminal sends Ctrl-C to both processes by itself; passing it on would count as a second one.
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  process.on("SIGINT", () => onTerminal || child.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`error: cannot start ${node}: ${error.message}\n`);
    process.exitCode = 2;
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exitCode = code ?? 1;
    else {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
};

/** Running our own sources is not the user's experiment: no warning about it on stderr. */
const hideExperimentalWarnings = () => {
  const emit = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    const type = typeof rest[0] === "object" ? rest[0]?.type : rest[0];
    if (type !== "ExperimentalWarning") emit.call(process, warning, ...rest);
  };
};

const start = async () => {
  const relaunched = process.env[RELAUNCHED] !== undefined;
  delete process.env[RELAUNCHED];
  const fits = atLeast(OLDEST) && (!isCheckout || atLeast(STRIPS_TYPES));
  const projectNode = fits || relaunched ? undefined : findProjectNode();
  if (projectNode !== undefined) return relaunch(projectNode, []);
  if (!atLeast(OLDEST)) {
    process.stderr.write(
      `error: belfry needs Node ${OLDEST.join(".")} or newer, this is ${process.versions.node}; "npm install --save-dev node@24" gives the project its own\n`,
    );
    process.exitCode = 2;
    return;
  }
  if (!fits && !relaunched) return relaunch(process.execPath, ["--experimental-strip-types"]);
  hideExperimentalWarnings();
  nodeModule.enableCompileCache?.();
  const { main } = await import(pathToFileURL(entry).href);
  await main(process.argv.slice(2));
};

await start();
