import { fileURLToPath } from "node:url";
import { loadConfig } from "../lib/compose/config.ts";
import { workerFunction } from "../lib/compose/functions.ts";
import { loadManifest } from "../lib/compose/manifest-file.ts";
import { fillSecrets } from "../lib/compose/secrets.ts";

const beside = (file: string): URL => new URL(file, import.meta.url);

// Once per cold start: a bad environment fails at init, before any message is taken.
const config = loadConfig(process.env);
const manifest = loadManifest(beside("./manifest.json"));
const pool = process.env["BELFRY_POOL"] ?? "default";
await fillSecrets(config, manifest, pool, process.env);
const worker = workerFunction(config, manifest, {
  pool,
  jobsFile: fileURLToPath(beside("./jobs.mjs")),
  threadFile: beside("./thread.mjs"),
});
await worker.ready();

export const { handler } = worker;
