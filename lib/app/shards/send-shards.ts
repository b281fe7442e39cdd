import { Unavailable } from "../../core/errors.ts";
import type { Occurrence } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import { isTrigger, type RunMessage } from "../../core/runs/message.ts";
import type { FanOut } from "../../core/shards/fan-out.ts";
import { failUnsent } from "../../core/shards/shard-writes.ts";
import { PER_STRIDE, placeOfShard } from "../../core/shards/shards.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import { BATCH_SIZE, type SendAnswer } from "../../ports/run-queue.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";
import { storeDeadShard } from "./dead-shards.ts";
import { afterBucket } from "./join.ts";
import { type NumberedShard, readStride } from "./shard-pages.ts";

type SendDeps = Pick<Deps, "table" | "queue" | "clock" | "timers" | "journal">;

/** A run whose shards are to be sent. */
export interface Sender {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly fan: FanOut;
  /** RUN as it is in this attempt set. */
  readonly run: Item;
  /** Called before each batch; what it throws ends the sending. */
  readonly checkpoint?: () => void;
}

export const BATCHES_AT_ONCE = 16;
/** A queue that confirms nothing that often is down; what was sent meanwhile does no harm. */
const TRIES = 6;
const FIRST_WAIT_MS = 200;

/** Everything that the shard's worker needs, its run's own input too where that is small. */
export const shardMessage = (
  { occurrence, fan, run }: Sender,
  shard: NumberedShard,
  nowMs: number,
): RunMessage => {
  const { trigger, input } = run;
  return {
    ...occurrence,
    epoch: Number(run["ep"]),
    trigger: isTrigger(trigger) ? trigger : "schedule",
    queuedAtMs: nowMs,
    shard: {
      plan: fan.plan,
      total: fan.total,
      ...shard,
      ...(input === undefined ? {} : { runInput: input as Json }),
      ...(run["sideInput"] === true ? { sideInput: true } : {}),
    },
  };
};

/** @throws Unavailable when the queue does not confirm them all */
export const sendShards = async (
  deps: SendDeps,
  sender: Sender,
  shards: readonly NumberedShard[],
): Promise<void> => {
  const batches = Array.from({ length: Math.ceil(shards.length / BATCH_SIZE) }, (_, batch) =>
    shards.slice(batch * BATCH_SIZE, (batch + 1) * BATCH_SIZE),
  );
  await eachAtOnce(batches, BATCHES_AT_ONCE, async (batch) => {
    sender.checkpoint?.();
    await sendBatch(deps, sender, batch);
  });
};

/** Those of the run's shards, by number. */
export const sendChosen = async (
  deps: SendDeps,
  sender: Sender,
  indexes: readonly number[],
): Promise<void> => {
  const byStride = Map.groupBy(indexes, (index) => Math.floor(index / PER_STRIDE));
  for (const [stride, wanted] of byStride) {
    const chosen = new Set(wanted);
    const shards = await readStride(deps, sender.fan, stride);
    await sendShards(
      deps,
      sender,
      shards.filter(({ index }) => chosen.has(index)),
    );
  }
};

/** What is not confirmed is sent again, and only that: the answer tells of each message by itself. */
const sendBatch = async (deps: SendDeps, sender: Sender, batch: readonly NumberedShard[]): Promise<void> => {
  let left = batch;
  let why: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await pause(deps, FIRST_WAIT_MS * 2 ** (tries - 1));
    const nowMs = deps.clock.nowMs();
    const messages = left.map((shard) => shardMessage(sender, shard, nowMs));
    const answers = await deps.queue.sendBatch(sender.job.pool, messages);
    const unconfirmed: NumberedShard[] = [];
    for (const [index, shard] of left.entries()) {
      const answer = answers[index];
      if (answer?.kind === "refused") await endUnsent(deps, sender, { shard, reason: answer.reason });
      else if (answer?.kind !== "sent") unconfirmed.push(shard);
    }
    if (unconfirmed.length === 0) return;
    left = unconfirmed;
    why = whyUnconfirmed(answers) ?? why;
  }
  const because = why === undefined ? "" : `: ${why}`;
  throw new Unavailable(
    "queue_unavailable",
    `the queue did not confirm ${left.length} of ${batch.length} shards${because}`,
  );
};

const whyUnconfirmed = (answers: readonly SendAnswer[]): string | undefined =>
  answers.flatMap((answer) => (answer.kind === "unconfirmed" ? (answer.reason ?? []) : []))[0];

const pause = ({ timers }: SendDeps, waitMs: number): Promise<void> =>
  new Promise((resolve) => {
    timers.after(Math.min(waitMs, 5 * SECOND_MS), resolve);
  });

/** The queue will never take it: the shard has failed, with the queue's reason. */
const endUnsent = async (
  deps: SendDeps,
  { job, occurrence, fan, run }: Sender,
  { shard, reason }: { readonly shard: NumberedShard; readonly reason: string },
): Promise<void> => {
  const nowMs = deps.clock.nowMs();
  const place = placeOfShard(shard.index, fan.total);
  const error = { name: "MessageRefused", message: `the queue refused the shard's message: ${reason}` };
  await storeDeadShard(deps, { occurrence, plan: fan.plan }, { ...shard, error, attempts: 0, atMs: nowMs });
  const answer = await deps.table.write(failUnsent({ occurrence, plan: fan.plan, place }, nowMs));
  const counted = { job, occurrence, fan, epoch: Number(run["ep"]) };
  await afterBucket(deps, counted, { ...place, item: answer.item });
};
