import { readFileSync } from "node:fs";
import { InvalidInput } from "../core/errors.ts";
import type { Manifest } from "../core/jobs/job.ts";

/**
 * The manifest that was packaged beside the function.
 * @throws InvalidInput when the file is missing or of another version of Belfry
 */
export const loadManifest = (file: string | URL): Manifest => {
  const manifest: Manifest = JSON.parse(readFileSync(file, "utf8"));
  if (manifest.version !== 1) {
    throw new InvalidInput("invalid_manifest", `the manifest's version ${manifest.version} is not 1`, {
      hint: "package the project again with the Belfry version that it runs",
    });
  }
  return manifest;
};
