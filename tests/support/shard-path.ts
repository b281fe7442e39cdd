import { bucketKey } from "../../lib/core/items.ts";
import type { JobDefinition, ShardsDefinition } from "../../lib/core/jobs/job.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { fanOutOf } from "../../lib/core/shards/fan-out.ts";
import { placeOfShard } from "../../lib/core/shards/shards.ts";
import type { Item, Key } from "../../lib/core/write.ts";
import type { AttemptEnd, AttemptRequest } from "../../lib/ports/attempts.ts";
import type { Settlement } from "../../lib/ports/run-queue.ts";
import { definition } from "./definitions.ts";
import { at, type Setup, setup } from "./path.ts";

export const SLOT = "2026-10-08T02:00:00Z";
export const NOW = "2026-10-08T02:00:01Z";

export const sharded = (
  shards: Partial<ShardsDefinition>,
  changes: Partial<JobDefinition> = {},
): JobDefinition =>
  definition({
    name: "wide",
    schedules: ["0 * * * *"],
    overlap: "allow",
    retry: { ...definition({ name: "x" }).retry, retries: 1, crashes: 1 },
    ...changes,
    shards: { joins: false, ...shards },
  });

/** A seat of a worker that is gone since a minute before the story begins. */
export const LOST_SEAT = { owner: "gone", leaseUntilMs: Date.parse(NOW) - 60_000, starts: 1 };

export const onBucket = ({ sk }: Key): boolean => sk === "B";
export const onStride = ({ sk }: Key): boolean => sk.startsWith("S#");

/** What the handler does, by what it is called for. */
export type Script = (request: AttemptRequest) => AttemptEnd | undefined;

const returned: Script = () => ({ kind: "returned" });

export const isPart =
  (kind: NonNullable<AttemptRequest["part"]>["kind"]) =>
  ({ part }: AttemptRequest): boolean =>
    part?.kind === kind;

export const indexIn = ({ part }: AttemptRequest): number => (part?.kind === "shard" ? part.index : -1);

/** A run with shards, whose messages are carried out one after the other. */
export const wide = (job: JobDefinition, jobs: readonly JobDefinition[] = []) => {
  const env: Setup = setup({ now: NOW, jobs: [job, ...jobs] });
  const run = at(job.subject, SLOT);
  let read = 0;
  env.handle(returned);
  const stored = async () => env.run(run);
  return {
    env,
    run,
    stored,
    begin: () => env.deliver(SLOT, [job.subject]),
    /** The messages that nobody has carried out so far. */
    waiting: (): RunMessage[] => env.sent.slice(read).map(({ message }) => message),
    /** The next message, carried out. */
    next: async (): Promise<Settlement> => {
      const sent = env.sent[read++];
      if (sent === undefined) throw new Error("nothing is waiting");
      return env.work(sent.message);
    },
    /** Every message, in order, until none is left; those that come back are given up. */
    playAll: async (): Promise<void> => {
      for (let sent = env.sent[read]; sent !== undefined; sent = env.sent[read]) {
        read += 1;
        await env.work(sent.message);
      }
    },
    bucketOf: async (index: number) => {
      const fan = fanOutOf(run, await stored());
      if (fan === undefined) return undefined;
      const key = bucketKey({ ...fan, ...placeOfShard(index, fan.total) });
      return env.table.get(key, { consistent: true });
    },
    putBucket: async (index: number, attributes: Item) => {
      const fan = fanOutOf(run, await stored());
      if (fan === undefined) throw new Error("the run has no shards yet");
      return env.put(bucketKey({ ...fan, ...placeOfShard(index, fan.total) }), attributes);
    },
    /** Shards in the order in which they were given to the handler. */
    handled: (): number[] =>
      env.attempts.map(({ request }) => indexIn(request)).filter((index) => index >= 0),
  };
};
