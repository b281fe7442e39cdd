import { fileURLToPath } from "node:url";
import { loadConfig } from "../lib/compose/config.ts";
import { workerFunction } from "../lib/compose/functions.ts";
import { loadManifest } from "../lib/compose/manifest-file.ts";

const beside = (file: string): URL => new URL(file, import.meta.url);

// Once per cold start: a bad environment fails at init, before any message is taken.
const worker = workerFunction(loadConfig(process.env), loadManifest(beside("./manifest.json")), {
  pool: process.env["BELFRY_POOL"] ?? "default",
  jobsFile: fileURLToPath(beside("./jobs.mjs")),
  threadFile: beside("./thread.mjs"),
});
await worker.ready();

export const { handler } = worker;
