import { memoryTable } from "../../lib/adapters/memory/memory-table.ts";
import { watch } from "../../lib/app/watchdog/watch.ts";
import { slotKeyOf } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import { MINUTE_MS, shortIsoOf } from "../../lib/core/time.ts";
import { set } from "../../lib/core/write.ts";
import { definition } from "../../tests/support/definitions.ts";
import { msOf, setup } from "../../tests/support/path.ts";
import { costOf, counting, type Requests, withCrowd } from "../../tests/unit/automations/crowd.ts";
import { medianOf } from "../alternate.ts";
import { type Section, table } from "../section.ts";

const DUE = 100;
const START = "2026-12-01T11:00:00Z";
const SLOT_MS = msOf("2026-12-01T12:00:00Z");
const ROUNDS = 3;
const MILLION = 1_000_000;

interface Pass {
  readonly requests: Requests;
  readonly cpuMs: number;
}

/** So many jobs, of which some are due and went well; the others are in the evening. */
const jobsOf = (count: number, due: number) =>
  Array.from({ length: count }, (_, n) =>
    definition({ name: `job-${n}`, schedules: [n < due ? "0 12 * * *" : "0 18 * * *"] }),
  );

/** The pass that looks at noon's slots for the first time. */
const passOfJobs = async (count: number, due: number): Promise<Pass> => {
  const env = setup({ now: START, jobs: jobsOf(count, due) });
  const { counted, take } = counting(env.table);
  const deps = { ...env.deps, table: counted };
  await watch(deps);
  for (let n = 0; n < due; n++)
    await env.table.write({
      key: runKey({ subject: `job-${n}`, slotKey: slotKeyOf(SLOT_MS) }),
      changes: [
        set("st", "succeeded"),
        set("ep", 1),
        set("startedAtMs", SLOT_MS),
        set("endedAtMs", SLOT_MS + 5),
      ],
    });
  await env.moveTo(shortIsoOf(SLOT_MS + 2 * MINUTE_MS));
  await watch(deps);
  take();
  await env.moveTo(shortIsoOf(SLOT_MS + 3 * MINUTE_MS));
  const before = process.cpuUsage();
  await watch(deps);
  const { user, system } = process.cpuUsage(before);
  return { requests: take(), cpuMs: (user + system) / 1_000 };
};

const passOfCrowd = async (count: number): Promise<Pass> => {
  const { healthy, healthyCpuMs } = await costOf(withCrowd(memoryTable(), count));
  return { requests: healthy, cpuMs: healthyCpuMs };
};

const requestsOf = ({ get = 0, query = 0, getMany = 0, write = 0 }: Requests): number =>
  get + query + getMany + write;

const WAYS = [
  { name: "1,000 jobs, none due", play: () => passOfJobs(1_000, 0) },
  { name: "100 jobs, all due", play: () => passOfJobs(100, DUE) },
  { name: "1,000 jobs, 100 due", play: () => passOfJobs(1_000, DUE) },
  { name: "1,000 jobs, all due", play: () => passOfJobs(1_000, 1_000) },
  { name: "100 run-time schedules, all due", play: () => passOfCrowd(DUE) },
] as const;

/** What a pass of the watchdog asks of the table, and its own processor time, by how many there are and how many are due. */
export const passes = async (rounds: number): Promise<Section> => {
  const taken = Math.min(rounds, ROUNDS);
  const cpuMs = new Map<string, number[]>();
  const requests = new Map<string, Requests>();
  const play = async (name: string, way: () => Promise<Pass>): Promise<void> => {
    const pass = await way();
    requests.set(name, pass.requests);
    cpuMs.set(name, [...(cpuMs.get(name) ?? []), pass.cpuMs]);
  };
  for (let round = 0; round < taken; round++) for (const { name, play: way } of WAYS) await play(name, way);
  const million = "1,000,000 run-time schedules, 100 due";
  // Once: planning the day of so many takes longer than all the others.
  await play(million, () => passOfCrowd(MILLION));
  const asked = (name: string): number => requestsOf(requests.get(name) ?? {});
  const hundred = "100 run-time schedules, all due";
  return {
    title: "A pass of the watchdog",
    text: [
      "The pass that looks at the due slots for the first time and finds that their runs went well, over a table in memory. Many keys are one",
      `request for each hundred. Processor time: medians of ${taken} rounds in turn; a million once, with what collecting the garbage of so`,
      "many takes.",
      "",
      table(
        ["", "requests", "of them reads of many keys", "keys", "writes", "processor time, ms"],
        [...requests].map(([name, { getMany = 0, keys = 0, write = 0 }]) => [
          name,
          String(asked(name)),
          String(getMany),
          String(keys),
          String(write),
          medianOf(cpuMs.get(name) ?? []).toFixed(1),
        ]),
      ),
    ].join("\n"),
    budgets: [
      {
        what: "requests of a pass with 100 due, among 1,000,000 run-time schedules and among 100",
        budget: "about the same",
        measured: `${asked(million)} and ${asked(hundred)}`,
        met: asked(million) <= 1.1 * asked(hundred),
      },
    ],
  };
};
