import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Deployment } from "../../infra/naming.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import { NAME_PATTERN } from "../../lib/core/identity.ts";

const FILES = ["serverless.yml", "serverless.yaml", "serverless.json"] as const;

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** The file of the folder, or of the nearest one above it. */
const findFile = (from: string): string | undefined => {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    for (const name of FILES) {
      const text = read(join(folder, name));
      if (text !== undefined) return text;
    }
    if (folder === dirname(folder)) return undefined;
  }
};

/** `service: notes` at the top level, in YAML or JSON; a name that is computed cannot be read so. */
const SERVICE = /^(?:[ ]{0,2}"service"|service)\s*:\s*(["']?)([A-Za-z][A-Za-z0-9-]*)\1\s*,?\s*(?:#.*)?$/m;

const serviceName = (): string => {
  const told = process.env["BELFRY_SERVICE"];
  if (told !== undefined && told !== "") return told;
  const text = findFile(process.cwd());
  const hint = "go to the project's folder, or set BELFRY_SERVICE to the service's name";
  if (text === undefined)
    throw new InvalidInput(
      "no_service",
      "there is no serverless.yml here or above, so --stage has no service",
      {
        field: "stage",
        hint,
      },
    );
  const name = SERVICE.exec(text)?.[2];
  if (name !== undefined) return name;
  throw new InvalidInput("no_service", "serverless.yml names its service in no way that can be read here", {
    field: "stage",
    hint: "set BELFRY_SERVICE to the service's name",
  });
};

/**
 * The stage of the service of this project: of BELFRY_SERVICE, else of serverless.yml.
 * @throws InvalidInput when the stage cannot be one, or nothing names the service
 */
export const deploymentOf = (stage: string): Deployment => {
  if (NAME_PATTERN.test(stage)) return { service: serviceName(), stage };
  throw new InvalidInput("invalid_stage", `"${stage}" is no name of a stage`, {
    field: "stage",
    hint: "a stage is a-z, 0-9 and -, and begins with a letter",
  });
};
