import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_ALERTS } from "../lib/core/alerts/alert-channels.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { artifactName, type Built, writeArtifacts } from "./artifacts.ts";
import { type BuildFault, buildProject, formatFaults } from "./build/build.ts";
import { deploymentFaults, keptTableIn, settingFaults, stackFaults, stageFaults } from "./checks.ts";
import type { Resources, Value } from "./cloudformation.ts";
import type { FunctionSpec } from "./functions.ts";
import { makeRemoval } from "./left-behind.ts";
import { type Deployment, type FunctionKind, functionLogicalId } from "./naming.ts";
import { unheard } from "./reach.ts";
import { scannerNotes } from "./scanner-notes.ts";
import { makeStack, type Stack } from "./stack.ts";

/** What we use of the Serverless Framework. */
export interface Serverless {
  readonly serviceDir: string;
  readonly service: {
    readonly service: string;
    readonly functions: { [key: string]: FunctionEntry };
    readonly custom?: { readonly belfry?: unknown };
    readonly resources?: { readonly Resources?: { readonly [id: string]: unknown } };
    readonly provider: {
      readonly logRetentionInDays?: number;
      readonly compiledCloudFormationTemplate: Template;
    };
  };
  readonly classes: { readonly Error: new (message: string, code: string) => Error };
  getProvider(name: "aws"): {
    getStage(): string;
    getRegion(): string;
    readonly naming: { getStackName(): string };
  };
}

interface Template {
  readonly Resources: { [id: string]: TemplateResource };
  Outputs?: { [name: string]: unknown };
}

interface TemplateResource {
  Properties?: { readonly [name: string]: unknown };
  DependsOn?: unknown;
  readonly [name: string]: unknown;
}

/** A function as the framework must know it, to upload its code and to find it by `-f`. */
interface FunctionEntry {
  readonly name: string;
  readonly handler: string;
  readonly [option: string]: unknown;
}

/** Of the command line. */
export interface Options {
  readonly function?: string;
}

export interface Utilities {
  readonly log: { warning(text: string): void; notice(text: string): void; info(text: string): void };
}

const RETENTION_DAYS = 30;

const read = (file: string): Promise<string> => readFile(file, "utf8");

type DeployBuild =
  | { readonly built: Built; readonly warnings: readonly string[] }
  | { readonly faults: readonly BuildFault[] };

/** The project's jobs, with their packages in the bundle. */
const buildForDeploy = async (projectDir: string): Promise<DeployBuild> => {
  // Not in the project: the framework empties its own folder, and ours is the local stack's.
  const outDir = await mkdtemp(join(tmpdir(), "belfry-package-"));
  try {
    const answer = await buildProject({ projectDir, outDir, packages: "bundle" });
    if (!answer.ok) return { faults: answer.faults };
    const { manifest, manifestFile, jobsFile, warnings } = answer;
    const [manifestText, jobsText] = await Promise.all([read(manifestFile), read(jobsFile)]);
    return { built: { manifest, manifestText, jobsText }, warnings };
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
};

const deploymentOf = (serverless: Serverless): Deployment => ({
  service: serverless.service.service,
  stage: serverless.getProvider("aws").getStage(),
});

/** The project's build, made once, at the first call. */
const makeBuild = (
  serverless: Serverless,
  log: Utilities["log"],
  invalid: Invalid,
): (() => Promise<Built>) => {
  let built: Built | undefined;
  return async () => {
    if (built) return built;
    const answer = await buildForDeploy(serverless.serviceDir);
    if (!("built" in answer)) throw invalid(answer.faults);
    for (const warning of answer.warnings) log.warning(warning);
    built = answer.built;
    return built;
  };
};

type Invalid = (faults: readonly BuildFault[]) => Error;

/**
 * The plugin's hooks, in the order in which a command meets them. Jobs are built once, at the first hook that needs
 * them; each fault is one line, and no command goes on with one.
 */
export const makePlugin = (serverless: Serverless, options: Options, { log }: Utilities) => {
  const folder = join(serverless.serviceDir, ".serverless");
  const deployment = (): Deployment => deploymentOf(serverless);
  const invalid: Invalid = (faults) =>
    new serverless.classes.Error(formatFaults(faults), "BELFRY_INVALID_PROJECT");
  const refuse = (faults: readonly BuildFault[]): void => {
    if (faults.length > 0) throw invalid(faults);
  };
  const build = makeBuild(serverless, log, invalid);
  const settings = serverless.service.custom?.belfry ?? {};
  const stackOf = (manifest: Manifest, otherResources = 0): Stack => {
    const facts = { deployment: deployment(), manifest, nowMs: Date.now(), otherResources };
    return makeStack({ ...facts, ...keptTableIn(settings) });
  };

  /** Makes our functions known to the framework; nothing is written. */
  const addFunctions = async (): Promise<void> => {
    refuse([...stageFaults(deployment().stage), ...settingFaults(deployment(), settings)]);
    const { manifest } = await build();
    const { functions, provider, resources } = serverless.service;
    const resourceIds = Object.keys(resources?.Resources ?? {});
    refuse(deploymentFaults(deployment(), manifest, { functionKeys: Object.keys(functions), resourceIds }));
    const retention = provider.logRetentionInDays ?? RETENTION_DAYS;
    const stack = stackOf(manifest);
    for (const spec of stack.functions) functions[spec.key] = entryOf(spec, folder, retention);
  };

  const writeZips = async (): Promise<void> => {
    await writeArtifacts(folder, await build());
  };

  /** After the framework has made the functions: their properties, and all the other resources. */
  const addResources = async (): Promise<void> => {
    const { manifest } = await build();
    const { compiledCloudFormationTemplate: template } = serverless.service.provider;
    const ids = new Set([
      ...Object.keys(template.Resources),
      ...Object.keys(serverless.service.resources?.Resources ?? {}),
    ]);
    const otherResources = ids.size - 2 * stackOf(manifest).functions.length;
    const stack = stackOf(manifest, otherResources);
    refuse(stackFaults(stack, otherResources));
    for (const spec of stack.functions) setProperties(template, spec);
    Object.assign(template.Resources, stack.resources satisfies Resources);
    noteForScanners(template);
    template.Outputs = { ...template.Outputs, ...stack.outputs };
    for (const warning of unheard(manifest.alerts ?? NO_ALERTS, deployment().stage)) log.warning(warning);
    log.info(`belfry: ${manifest.jobs.length} jobs, ${Object.keys(stack.resources).length} resources`);
  };

  return {
    addFunctions,
    writeZips,
    addResources,
    sayUnconfirmed: () => sayUnconfirmed(serverless, build, log),
    refuseOneOfOurs: async (): Promise<void> => refuse(partFaults(options)),
    ...makeRemoval(serverless, log),
  };
};

/** Once a deploy has made the subscriptions. Its client of AWS is loaded then only. */
const sayUnconfirmed = async (
  serverless: Serverless,
  build: () => Promise<Built>,
  log: Utilities["log"],
): Promise<void> => {
  const { alerts = NO_ALERTS } = (await build()).manifest;
  const { warnOfUnconfirmed } = await import("./confirmed.ts");
  const region = serverless.getProvider("aws").getRegion();
  const warn = (line: string): void => log.warning(line);
  await warnOfUnconfirmed({ region, deployment: deploymentOf(serverless), alerts, warn });
};

/** Ours, and the framework's own bucket; what the project has besides is its own to answer for. */
const noteForScanners = ({ Resources: resources }: Template): void => {
  for (const [id, resource] of Object.entries(resources)) {
    const notes = scannerNotes(String(resource["Type"]));
    if (notes !== undefined && /^(?:Belfry|ServerlessDeploymentBucket$)/.test(id))
      resources[id] = { ...resource, Metadata: notes };
  }
};

/** Every function carries the list of jobs: one that is deployed alone would know others than the rest. */
const partFaults = ({ function: key }: Options): readonly BuildFault[] => {
  if (!key?.startsWith("belfry-")) return [];
  const message = `${key} is deployed with all the others, since each of them carries the list of jobs`;
  return [{ file: "serverless.yml", message, hint: "npx serverless deploy" }];
};

const DESCRIPTIONS: { readonly [kind in FunctionKind]: string } = {
  dispatcher: "Belfry: claims a slot and sends it to its pool",
  worker: "Belfry: runs the jobs of a pool",
  "dead-letters": "Belfry: judges what came back too often",
  watchdog: "Belfry: finds each minute what did not happen",
  notifier: "Belfry: tells people of alerts",
  operate: "Belfry: answers the command line",
  ping: "Belfry: takes the pings of jobs that run elsewhere",
};

const entryOf = (
  { kind, name, handler, roleId, properties }: FunctionSpec,
  folder: string,
  days: number,
) => ({
  name,
  handler,
  role: roleId,
  runtime: properties["Runtime"],
  architecture: "arm64",
  memorySize: properties["MemorySize"],
  timeout: properties["Timeout"],
  description: DESCRIPTIONS[kind],
  // A version for each deploy would be kept for ever, and nothing invokes one.
  versionFunction: false,
  logRetentionInDays: days,
  // `individually`, or a deploy looks for a zip of the whole service.
  package: { individually: true, artifact: join(folder, artifactName(kind)) },
  events: [],
});

/**
 * Ours and no others: a project's `provider` section sets a network, variables or layers for its own functions, and
 * in our functions they would be rights and failures that nobody expects.
 */
const setProperties = (template: Template, { key, properties }: FunctionSpec): void => {
  const resource = template.Resources[functionLogicalId(key)];
  if (!resource) throw new Error(`the Serverless Framework made no function ${key}`);
  const { Code, Tags, Description } = resource.Properties ?? {};
  resource.Properties = {
    Code,
    ...(Tags === undefined ? {} : { Tags }),
    Description,
    ...(properties satisfies { readonly [name: string]: Value }),
  };
  // The framework names the role here too, which the reference to it does already.
  resource.DependsOn = logGroupId(key);
};

const logGroupId = (key: string): string => functionLogicalId(key).replace(/LambdaFunction$/, "LogGroup");
