import { type Occurrence, runIdOf } from "../core/identity.ts";
import { bucketKey, slotKeyInSortKey, subjectInPartitionKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { isTerminal } from "../core/runs/run.ts";
import { fanOutOf, phaseOf } from "../core/shards/fan-out.ts";
import { doneIn, failedSeatsIn, type Seat, seatIn } from "../core/shards/seats.ts";
import { bucketSize, bucketsOf, strideCount } from "../core/shards/shards.ts";
import type { Item, Key } from "../core/write.ts";
import type { Table } from "../ports/table.ts";
import { type Execution, workOf } from "./attempts.ts";

const SEATS = 64;

const seatViolation = (
  name: string,
  before: Seat | undefined,
  after: Seat | undefined,
): string | undefined => {
  if (before === undefined || after === undefined) return undefined;
  if (after.starts < before.starts) return `${name}: its fence went back`;
  const isStart = after.starts === before.starts + 1;
  const isHeld = before.owner !== undefined && before.leaseUntilMs !== undefined;
  if (isStart && isHeld && after.crashes !== before.crashes + 1) return `${name}: a crash was not counted`;
  return undefined;
};

const limitsBroken = ({ retry }: JobDefinition, name: string, seat: Seat | undefined): string | undefined => {
  if (seat === undefined) return undefined;
  if (seat.attempts > retry.retries) return `${name}: ${seat.attempts} failed attempts, and another`;
  return seat.crashes > retry.crashes ? `${name}: ${seat.crashes} crashes, and another attempt` : undefined;
};

/** What no write may ever do to a bucket of shards. */
const bucketViolations = (job: JobDefinition, before: Item | undefined, after: Item): readonly string[] => {
  const [done, failed] = [doneIn(after), failedSeatsIn(after)];
  const violations: (string | undefined)[] = [];
  for (let seat = 0; seat < SEATS; seat++) {
    const name = `${after["pk"]} seat ${seat}`;
    const [was, is] = [seatIn(before, seat), seatIn(after, seat)];
    violations.push(
      doneIn(before).has(seat) && !done.has(seat) ? `${name}: was done, and is not` : undefined,
      failedSeatsIn(before).has(seat) && !failed.has(seat) && before?.["forgiven"] === after["forgiven"]
        ? `${name}: had failed, and nobody forgave it`
        : undefined,
      done.has(seat) && failed.has(seat) ? `${name}: is done, and has failed` : undefined,
      (done.has(seat) || failed.has(seat)) && is?.leaseUntilMs !== undefined
        ? `${name}: is over, and somebody has it`
        : undefined,
      seatViolation(name, was, is),
      limitsBroken(job, name, is),
    );
  }
  return violations.filter((violation) => violation !== undefined);
};

/** Shards of the run that somebody is at work on, whose process never slept. */
const atWork = (executions: readonly Execution[], occurrence: Occurrence): readonly Execution[] => {
  const runId = runIdOf(occurrence);
  return executions.filter(
    (one) => one.runId === runId && one.part?.kind === "shard" && one.endedAtMs === undefined && !one.slept(),
  );
};

const isOver = (run: Item | undefined): boolean => isTerminal(String(run?.["st"]));

/** Watches the writes on buckets, and that a run is joined, or otherwise over, after its last shard only. */
export const shardProbe = (
  table: Table,
  jobs: readonly JobDefinition[],
  executions: readonly Execution[],
) => {
  const openShards = async (occurrence: Occurrence, run: Item): Promise<number> => {
    const fan = fanOutOf(occurrence, run);
    if (fan === undefined) return 0;
    let open = 0;
    for (let stride = 0; stride < strideCount(fan.total); stride++) {
      for (const bucket of bucketsOf(stride, fan.total)) {
        const item = await table.get(bucketKey({ ...fan, stride, bucket }), { consistent: true });
        open += bucketSize(stride, bucket, fan.total) - doneIn(item).size - failedSeatsIn(item).size;
      }
    }
    return open;
  };

  const runViolations = async (
    key: Key,
    before: Item | undefined,
    after: Item,
  ): Promise<readonly string[]> => {
    const occurrence = { subject: subjectInPartitionKey(key.pk), slotKey: slotKeyInSortKey(key.sk) };
    if (isOver(after) && !isOver(before)) {
      return atWork(executions, occurrence).map((shard) => `${workOf(shard)} was at work when its run ended`);
    }
    if (phaseOf(after) !== "join" || phaseOf(before) === "join") return [];
    const open = await openShards(occurrence, after);
    return open === 0 ? [] : [`${key.sk}: joined before ${open} of its shards were over`];
  };

  /** What the write of this key did wrong. */
  return async (key: Key, before: Item | undefined, after: Item): Promise<readonly string[]> => {
    if (key.sk === "B" && key.pk.startsWith("F#")) {
      const job = jobs.find(({ subject }) => key.pk.startsWith(`F#${subject}#`));
      return job === undefined ? [] : bucketViolations(job, before, after);
    }
    return key.sk.startsWith("R#") ? runViolations(key, before, after) : [];
  };
};
