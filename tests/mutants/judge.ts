import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Ran, Workspace } from "./workspace.ts";

/** Short stories, each seed with the next overlap policy; it stops at the first broken promise. */
const SIMULATION = ["tests/simulation/simulate.ts", "--stop", "--no-trace", "--slots", "16", "--first", "2"];

/** Test by test, and no further than the first that fails. */
const VITEST = ["node_modules/vitest/vitest.mjs", "run", "--bail=1", "--no-isolate", "--reporter=json"];
const REPORT = "mutants.json";

/** Scripted orders of deliveries, answers and crashes. */
const DIRECTED = [
  "tests/unit/path",
  "tests/unit/notify",
  "tests/unit/health",
  "tests/unit/automations/requests",
  "tests/unit/automations/watchdog",
  "tests/unit/alarms",
  "tests/simulation/directed",
  "tests/silence",
];

/** What a fault outside the path of a run may break; asked for other people's faults only. */
const WIDER = ["tests/unit", "tests/contract", "tests/property", "tests/integration/path"];

const SIMULATION_MS = 90_000;
const TESTS_MS = 120_000;

export interface Verdict {
  /** How it was caught; undefined: it was not. */
  readonly by: string | undefined;
}

/** Why a program that could not even run says it ended. */
const lastWords = (stderr: string): string => {
  const lines = stderr.trim().split("\n");
  return (lines.find((line) => /Error\b/.test(line)) ?? lines.at(-1) ?? "").trim();
};

const simulated = ({ exitCode, stderr }: Ran): string | undefined => {
  if (exitCode === 0) return undefined;
  if (exitCode === undefined) return "simulation: it does not end";
  const told = /^(seed \d+, overlap .+):\n\s*(.+)/m.exec(stderr);
  return told ? `simulation, ${told[1]}: ${told[2]}` : `simulation: ${lastWords(stderr)}`;
};

interface TestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Whether these tests notice anything, and which. */
const tested = async (workspace: Workspace, tests: readonly string[], withinMs: number) => {
  const report = join(workspace.folder, REPORT);
  await rm(report, { force: true });
  const { exitCode, stderr } = await workspace.run([...VITEST, `--outputFile=${REPORT}`, ...tests], withinMs);
  if (exitCode === 0) return undefined;
  if (exitCode === undefined) return "tests: they do not end";
  const text = await readFile(report, "utf8").catch(() => undefined);
  if (text === undefined) return `tests: ${lastWords(stderr)}`;
  const { testResults } = JSON.parse(text) as TestReport;
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find(({ status }) => status === "failed");
  return failed === undefined ? "tests: a file cannot be run" : `test: ${failed.fullName.trim()}`;
};

export interface Judging {
  readonly seeds: number;
  readonly wider: boolean;
  /** Asked before all others. */
  readonly near?: readonly string[];
}

/** Asks the simulation, then the directed tests, then - for faults that may lie anywhere - the wider tests. */
export const judge = async (workspace: Workspace, { seeds, wider, near }: Judging): Promise<Verdict> => {
  const byNear = near === undefined ? undefined : await tested(workspace, near, TESTS_MS);
  if (byNear !== undefined) return { by: byNear };
  const simulation = await workspace.run([...SIMULATION, "--seeds", String(seeds)], SIMULATION_MS);
  const bySimulation = simulated(simulation);
  if (bySimulation !== undefined) return { by: bySimulation };
  const byTests = await tested(workspace, DIRECTED, TESTS_MS);
  if (byTests !== undefined || !wider) return { by: byTests };
  return { by: await tested(workspace, WIDER, 2 * TESTS_MS) };
};
