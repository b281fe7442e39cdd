import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidInput } from "../../lib/core/errors.ts";
import { type Attached, attachedEndpoints } from "./endpoints.ts";

export interface DevOptions {
  /** Of the operate router, on loopback; 0 = any free one. */
  readonly port?: number;
  readonly data?: string;
  /** Data in a temporary folder that is gone at the end. */
  readonly ephemeral?: boolean;
  /** Where `jobs/` is; default: the working folder. */
  readonly projectDir?: string;
  readonly allowRemoteEndpoint?: boolean;
}

export interface DevSettings {
  readonly port: number;
  readonly projectDir: string;
  /** Undefined = a temporary one. */
  readonly folder: string | undefined;
  readonly attached: Attached;
  /** Do the schedules strike? Without them the watchdog alone notices the slots. */
  readonly strikes: boolean;
}

type Environment = { readonly [name: string]: string | undefined };

const DEFAULT_PORT = 4747;

const folderOf = ({ data, ephemeral }: DevOptions, environment: Environment, projectDir: string) => {
  if (ephemeral === true && data !== undefined) {
    throw new InvalidInput("usage", "--data and --ephemeral exclude each other");
  }
  if (ephemeral === true) return undefined;
  // The other verbs look where BELFRY_DATA says, so the stack has to be there.
  const named = data ?? environment["BELFRY_DATA"];
  return named === undefined || named === "" ? join(projectDir, ".belfry") : resolve(named);
};

const strikesOf = (environment: Environment): boolean => {
  const text = environment["BELFRY_DEV_SCHEDULER"] ?? "";
  if (text === "" || text === "off") return text === "";
  throw new InvalidInput("usage", `BELFRY_DEV_SCHEDULER is "${text}"; it may be "off", or not set`);
};

/** @throws InvalidInput for options that exclude each other, no project, and endpoints as `attachedEndpoints`. */
export const readSettings = (options: DevOptions, environment: Environment): DevSettings => {
  const projectDir = resolve(options.projectDir ?? process.cwd());
  if (!existsSync(projectDir) || !statSync(projectDir).isDirectory()) {
    throw new InvalidInput("no_project", `there is no folder ${projectDir}`);
  }
  return {
    port: options.port ?? DEFAULT_PORT,
    projectDir,
    folder: folderOf(options, environment, projectDir),
    attached: attachedEndpoints(environment, options.allowRemoteEndpoint === true),
    strikes: strikesOf(environment),
  };
};
