import type { JobDefinition } from "../core/jobs/job.ts";
import { isTerminal } from "../core/runs/run.ts";
import { endsAs } from "../core/shards/stop.ts";
import type { Item, Write } from "../core/write.ts";
import type { Table, WriteAnswer } from "../ports/table.ts";
import type { Execution } from "./attempts.ts";
import { keptViolation, pieceViolation } from "./kept-probe.ts";
import { lockProbe } from "./lock-probe.ts";
import { seriesViolation } from "./series-probe.ts";
import { shardProbe } from "./shard-probe.ts";

const stateOf = (item: Item | undefined): string | undefined =>
  item?.["st"] === undefined ? undefined : String(item["st"]);

/** What no write may ever do to a run's record. */
const violationOf = (before: Item | undefined, after: Item): string | undefined => {
  const name = `${after["pk"]} ${after["sk"]}`;
  const [was, is] = [stateOf(before), stateOf(after)];
  const retried = is === "queued" && Number(after["ep"]) === Number(before?.["ep"]) + 1;
  const mayLeave = retried && was !== "succeeded";
  if (was !== undefined && isTerminal(was) && is !== was && !mayLeave) return `${name}: ${was} became ${is}`;
  // One whose shards may be at work is cancelled in two steps.
  const cancelled = (endsAs(after) ?? is) === "cancelled";
  if (was === "parked" && is !== was && !retried && !cancelled) return `${name}: parked became ${is}`;
  if (Number(after["fence"] ?? 0) < Number(before?.["fence"] ?? 0)) return `${name}: the fence went back`;
  if (is === "succeeded" && was !== is && (was !== "running" || after["fence"] !== before?.["fence"])) {
    return `${name}: succeeded from ${was}, not by its holder`;
  }
  return undefined;
};

/** Counted, and so bounded: failed attempts by the job's retries, lost ones by its crashes. */
const limitsBroken = ({ retry }: JobDefinition, after: Item): string | undefined => {
  const [attempts, crashes] = [Number(after["attempts"] ?? 0), Number(after["crashes"] ?? 0)];
  if (attempts > retry.retries + 1) return `${after["sk"]}: ${attempts} failed attempts`;
  return crashes > retry.crashes + 1 ? `${after["sk"]}: ${crashes} crashes` : undefined;
};

/** Watches every write on a run and on its job's lock for what may never happen. */
export const tableProbe = (
  table: Table,
  jobs: readonly JobDefinition[],
  executions: readonly Execution[],
) => {
  const violations: string[] = [];
  const judgeLock = lockProbe(table, jobs);
  const judgeShards = shardProbe(table, jobs, executions);
  const judgeRun = (before: Item | undefined, after: Item): void => {
    const job = jobs.find(({ subject }) => after["pk"] === `J#${subject}`);
    const violation =
      violationOf(before, after) ?? pieceViolation(before, after) ?? (job && limitsBroken(job, after));
    if (violation !== undefined) violations.push(violation);
  };
  const write = async (wanted: Write): Promise<WriteAnswer> => {
    const before = await table.get(wanted.key, { consistent: true });
    const answer = await table.write(wanted);
    if (!answer.written) return answer;
    if (wanted.key.sk.startsWith("R#")) judgeRun(before, answer.item);
    const kept = wanted.key.sk.startsWith("I#") ? keptViolation(wanted.key, before, answer.item) : undefined;
    if (kept !== undefined) violations.push(kept);
    const ofSeries = seriesViolation(wanted.key, before, answer.item);
    if (ofSeries !== undefined) violations.push(ofSeries);
    violations.push(...(await judgeLock(wanted.key, before, answer.item)));
    violations.push(...(await judgeShards(wanted.key, before, answer.item)));
    return answer;
  };
  return { violations, write };
};
