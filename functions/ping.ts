import { loadConfig } from "../lib/compose/config.ts";
import { loadManifest } from "../lib/compose/manifest-file.ts";
import { pingFunction } from "../lib/compose/pings.ts";

// Once per cold start: a bad environment fails at init, before any ping is taken.
export const handler = pingFunction(
  loadConfig(process.env),
  loadManifest(new URL("./manifest.json", import.meta.url)),
);
