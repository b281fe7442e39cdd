import { isLocked, maxHolders } from "../app/path/lock-keeper.ts";
import { lockKey, runKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { holdersOf, waitersOf } from "../core/runs/lock.ts";
import { isTerminal } from "../core/runs/run.ts";
import type { Item, Write } from "../core/write.ts";
import type { Table } from "../ports/table.ts";

interface Entry {
  readonly slotKey: string;
  readonly epoch: number;
}

const entriesOf = (lock: Item | undefined): readonly Entry[] => [...holdersOf(lock), ...waitersOf(lock)];

const isIn = (entries: readonly Entry[], { slotKey, epoch }: Entry): boolean =>
  entries.some((other) => other.slotKey === slotKey && other.epoch === epoch);

/** What no write may ever do to a job's lock, or to a run that the lock does not list. */
export const lockProbe = (table: Table, jobs: readonly JobDefinition[]) => {
  const read = (key: Write["key"]) => table.get(key, { consistent: true });

  /** Only a run that is over leaves: one that waits becomes a holder, and one that is parked stays. */
  const leftEarly = async (subject: string, before: Item | undefined, after: Item): Promise<string[]> => {
    const gone = entriesOf(before).filter((entry) => !isIn(entriesOf(after), entry));
    const early: string[] = [];
    for (const { slotKey, epoch } of gone) {
      const run = await read(runKey({ subject, slotKey }));
      const runEpoch = Number(run?.["ep"] ?? 0);
      const state = String(run?.["st"]);
      if (runEpoch > epoch || (runEpoch === epoch && isTerminal(state))) continue;
      early.push(`${slotKey} left the lock as ${state}, before it was over`);
    }
    return early;
  };

  const onLock = async (job: JobDefinition, before: Item | undefined, after: Item): Promise<string[]> => {
    const holders = holdersOf(after);
    const held = Number(after["held"] ?? 0);
    const slots = waitersOf(after).map(({ slotKey, epoch }) => `${slotKey} ${epoch}`);
    const twice = slots.filter((slot, index) => slots.indexOf(slot) !== index);
    return [
      ...(await leftEarly(job.subject, before, after)),
      ...(held === holders.length ? [] : [`the lock counts ${held} holders and lists ${holders.length}`]),
      ...(holders.length <= maxHolders(job) ? [] : [`${holders.length} hold the lock`]),
      ...twice.map((slot) => `${slot} waits in two places`),
    ];
  };

  /** A run of a job with a lock runs only while the lock lists it, in the attempt set that runs. */
  const onRun = async (subject: string, before: Item | undefined, after: Item): Promise<string[]> => {
    if (after["st"] !== "running" || after["fence"] === before?.["fence"]) return [];
    const slotKey = String(after["sk"]).slice(2);
    const lock = await read(lockKey(subject));
    const listed = isIn(holdersOf(lock), { slotKey, epoch: Number(after["ep"]) });
    return listed ? [] : [`${slotKey} was started and does not hold the lock`];
  };

  /** What the write of this key did wrong. */
  return async (key: Write["key"], before: Item | undefined, after: Item): Promise<readonly string[]> => {
    const versions = jobs.filter(({ subject }) => lockKey(subject).pk === key.pk);
    const [job] = versions.toSorted((left, right) => maxHolders(right) - maxHolders(left));
    // What a version that allows overlap has claimed is in no lock, and runs beside what later ones claim.
    if (job === undefined || !versions.every(isLocked)) return [];
    const { subject } = job;
    if (key.sk === lockKey(subject).sk) return onLock(job, before, after);
    return key.sk.startsWith("R#") ? onRun(subject, before, after) : [];
  };
};
