import { writeSync } from "node:fs";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { isJob, isMarkedMonitor } from "../../lib/core/jobs/authoring.ts";
import { checkJob } from "../../lib/core/jobs/job-options.ts";
import { checkConfig } from "../../lib/core/jobs/project-config.ts";
import { isRecord } from "../../lib/core/json.ts";
import { errorFacts } from "../../lib/core/json-safe.ts";
import { checkMonitor } from "../../lib/core/monitors/monitor-options.ts";
import type { Fault } from "../../lib/core/read-options.ts";
import { checkInput, isStandardSchema } from "../../lib/core/standard-schema.ts";
import { type Evaluated, type Finding, NEVER_LOADED } from "./evaluate.ts";

/** The descriptor that the parent reads; written at once, so that what a later file does loses nothing. */
const FINDINGS = 3;

const faults = (list: readonly Fault[]): Finding => ({ kind: "faults", faults: list });

const jobFinding = async (exported: unknown, stem: string): Promise<Finding> => {
  if (exported === undefined)
    return faults([{ message: "there is no default export", hint: "export default defineJob({ ... })" }]);
  if (!isJob(exported))
    return faults([
      { message: "the default export was not made by defineJob", hint: "export default defineJob({ ... })" },
    ]);
  const [by, check] = isMarkedMonitor(exported) ? ["monitor", checkMonitor] : ["defineJob", checkJob];
  // The type says so; a file in JavaScript does not know.
  if (!isRecord(exported.options))
    return faults([{ message: `${by} was given no options`, hint: `export default ${by}({ ... })` }]);
  const checked = check(exported.options, stem);
  const inputFaults = await faultsOfInput(exported.options);
  const all = [...(checked.ok ? [] : checked.faults), ...inputFaults];
  return checked.ok && all.length === 0 ? { kind: "job", definition: checked.value } : faults(all);
};

/** What the schema says to the input that runs of the schedule get. */
const faultsOfInput = async (options: object): Promise<readonly Fault[]> => {
  const { schema, input, schedule }: { schema?: unknown; input?: unknown; schedule?: unknown } = options;
  if (!isStandardSchema(schema) || (input === undefined && schedule === undefined)) return [];
  const checked = await checkInput(schema, input ?? {});
  if (checked.ok) return [];
  const hint = input === undefined ? "give the input that runs of the schedule get" : undefined;
  return checked.problems.map((message) => ({ field: "input", message, ...(hint && { hint }) }));
};

const findingOf = async ({ module, kind, stem }: Evaluated): Promise<Finding> => {
  try {
    const { default: exported }: { default?: unknown } = await import(pathToFileURL(module).href);
    if (kind === "job") return await jobFinding(exported, stem);
    const checked = checkConfig(exported ?? {});
    return checked.ok ? { kind: "config", config: checked.value } : faults(checked.faults);
  } catch (error) {
    const { name, message, stack } = errorFacts(error);
    const line = /\(?((?:file:\/\/)?[^\s()]+:\d+:\d+)\)?$/m.exec(stack ?? "")?.[1];
    const where = line === undefined ? "" : ` at ${line.split(/[\\/]/).at(-1)}`;
    return faults([{ message: `importing the file throws ${name}: ${message}${where}` }]);
  }
};

const findAll = async (): Promise<void> => {
  const files: readonly Evaluated[] = JSON.parse(process.argv[2] ?? "[]");
  for (const file of files) writeSync(FINDINGS, `${JSON.stringify(await findingOf(file))}\n`);
  process.exit(0);
};

// How the process ends if nothing is left to wait for while a file's own top-level await still waits.
process.exitCode = NEVER_LOADED;
void findAll();
