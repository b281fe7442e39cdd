/**
 * `npm run mutants -- [--only NAME] [--part N/M] [--patch FILE] [--quick] [--seeds N] [--json]`: plants each known
 * fault, one at a time, in a copy of the repository, and asks the simulation and the directed tests whether they
 * notice. `--only` takes those whose name has that text, `--part 1/2` every second one from the first on, `--patch`
 * somebody else's fault as a unified diff. Exit 1 when one is missed, and when a fault does not find its place in the
 * code.
 */

import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../../lib/core/errors.ts";
import { FAULTS } from "./faults/all.ts";
import { judge, type Verdict } from "./judge.ts";
import type { PlantedFault } from "./planted.ts";
import { QUICK } from "./quick.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    part: { type: "string", default: "1/1" },
    patch: { type: "string" },
    quick: { type: "boolean", default: false },
    seeds: { type: "string" },
    json: { type: "boolean", default: false },
  },
});

/** Most faults that a walk can find at all it finds in the first of these. */
const SEEDS = 18;
/** For a single fault of somebody else there is more time. */
const PATCH_SEEDS = 240;

const chosen = (): readonly PlantedFault[] => {
  if (values.quick) return FAULTS.filter(({ name }) => QUICK.includes(name));
  const { only = "" } = values;
  const [part, parts] = values.part.split("/").map(Number);
  return FAULTS.filter(({ name }) => name.includes(only)).filter(
    (_, index) => index % Number(parts) === Number(part) - 1,
  );
};

const told = (name: string, { by }: Verdict): string =>
  by === undefined ? `MISSED  ${name}` : `caught  ${name}\n          by ${by}`;

const missed: string[] = [];
let planted = 0;

const count = (name: string, verdict: Verdict): void => {
  planted += 1;
  if (verdict.by === undefined) missed.push(name);
  console.error(told(name, verdict));
};

const judgePatch = async (workspace: Workspace, file: string): Promise<void> => {
  workspace.patch(resolve(file));
  count(file, await judge(workspace, { seeds: Number(values.seeds ?? PATCH_SEEDS), wider: true }));
};

/** A fault that does not find its place says nothing about the tests: nobody knows whether they would notice. */
const judgeOne = async (workspace: Workspace, fault: PlantedFault): Promise<Verdict> => {
  const place = await workspace.plant(fault);
  const { near } = fault;
  const seeds = Number(values.seeds ?? SEEDS);
  const verdict = await judge(workspace, { seeds, wider: false, ...(near === undefined ? {} : { near }) });
  await place.remove();
  return verdict;
};

const judgeEach = async (workspace: Workspace, faults: Iterable<PlantedFault>): Promise<void> => {
  for (const fault of faults) {
    const name = `${fault.name} (${fault.file}): ${fault.violates}`;
    try {
      count(name, await judgeOne(workspace, fault));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      count(`${name}; ${error.message}`, { by: undefined });
    }
  }
};

const judgeAll = async (): Promise<void> => {
  const workspace = await makeWorkspace();
  try {
    const unplanted = await judge(workspace, { seeds: SEEDS, wider: values.patch !== undefined });
    if (unplanted.by !== undefined) throw new Error(`without any fault, something fails: ${unplanted.by}`);
    if (values.patch !== undefined) return await judgePatch(workspace, values.patch);
    await judgeAtOnce(workspace, chosen());
  } finally {
    await workspace.remove();
  }
};

/** One copy of the repository for each core; each takes the next fault that none has taken. */
const judgeAtOnce = async (first: Workspace, faults: readonly PlantedFault[]): Promise<void> => {
  const left = faults.values();
  const most = Math.min(availableParallelism(), faults.length);
  const more = await Promise.all(Array.from({ length: Math.max(0, most - 1) }, makeWorkspace));
  try {
    await Promise.all([first, ...more].map((workspace) => judgeEach(workspace, left)));
  } finally {
    await Promise.all(more.map((workspace) => workspace.remove()));
  }
};

let broke = false;
await judgeAll().catch((error: unknown) => {
  console.error(messageOf(error));
  broke = true;
});
const summary = { planted, caught: planted - missed.length, missed };
console.log(
  values.json ? JSON.stringify(summary) : `${summary.caught} of ${planted} planted faults were caught`,
);
process.exitCode = !broke && planted > 0 && missed.length === 0 ? 0 : 1;
