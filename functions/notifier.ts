import { loadConfig } from "../lib/compose/config.ts";
import { notifierFunction } from "../lib/compose/functions.ts";
import { loadManifest } from "../lib/compose/manifest-file.ts";

// Once per cold start: a bad environment fails at init, before any event is taken.
export const handler = notifierFunction(
  loadConfig(process.env),
  loadManifest(new URL("./manifest.json", import.meta.url)),
);
