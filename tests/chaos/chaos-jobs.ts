import { type Occurrence, slotKeyOf } from "../../lib/core/identity.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { definition } from "../support/definitions.ts";

export const LOCKED = "one-at-a-time";
export const UNLOCKED = "side-by-side";
/** Of 40 pieces, two in each invocation. */
export const LONG = "in-pieces";
export const PIECES = 40;
const PIECES_PER_INVOCATION = 2;
/** A slot of the long job in so many minutes, and of the one in shards. */
const SELDOM = 20;
/** In 70 shards, so that two buckets count them; listed, carried out and joined. */
export const SPLIT = "in-shards";
export const SHARDS = 70;
/** Its slots lie between those of the long job. */
const SPLIT_AT = 10;

/** Nothing delivers its slots: a backfill runs the last ones. */
export const BACKFILLED = "made-up-for";

/** The occurrences of the delivered jobs at these slots, of which each is a minute's. */
export const occurrencesAt = (slots: readonly number[]): readonly Occurrence[] =>
  slots.flatMap((slotMs) => {
    const minute = (slotMs / MINUTE_MS) % SELDOM;
    const seldom = minute === 0 ? [LONG] : minute === SPLIT_AT ? [SPLIT] : [];
    return [LOCKED, UNLOCKED, ...seldom].map((subject) => ({
      subject,
      slotKey: slotKeyOf(slotMs),
    }));
  });

/** Every process may die: crashes end no run here, and neither does an age. */
const jobOf = (
  name: string,
  endsAtMs: number,
  changes: Pick<JobDefinition, "overlap"> & Partial<JobDefinition>,
): JobDefinition =>
  definition({
    name,
    schedules: ["* * * * *"],
    endsAtMs,
    ...changes,
    timeoutMs: 8 * SECOND_MS,
    retry: {
      retries: 5,
      firstWaitMs: SECOND_MS,
      factor: 1,
      maxWaitMs: SECOND_MS,
      jitter: 0,
      crashes: 1_000,
    },
  });

/** Tells the witness that it begins, acts, goes on, and ends; for as long as its run id says, so that a seed repeats. */
const handlerText = (witness: string, job: string, shortestMs: number, longestMs: number): string => `
async ({ runId, attempt, idempotencyKey, signal }) => {
  const id = crypto.randomUUID();
  const tell = (what) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({
    what, id, run: runId, job: ${JSON.stringify(job)}, attempt: String(attempt), pid: String(process.pid),
    at: String(Date.now()), key: idempotencyKey("effect"),
  }));
  const lasts = ${shortestMs} + [...(runId + attempt)].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 9973, 7) % ${longestMs - shortestMs};
  await tell("begins");
  const untilMs = Date.now() + lasts;
  await tell("effect");
  while (Date.now() < untilMs && !signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await tell("goes-on");
  }
  await tell(signal.aborted ? "stopped" : "returned");
  if (signal.aborted) throw signal.reason;
  return id;
}`;

/**
 * Each piece is a side effect that is remembered, and saved; then the next invocation goes on. What the witness hears of a
 * piece has its key, so that it can tell a repeat.
 */
const longHandlerText = (witness: string): string => `
async ({ runId, attempt, checkpoint, once, progress, continueLater, idempotencyKey, signal }) => {
  const id = crypto.randomUUID();
  const tell = (what, key) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({
    what, id, run: runId, job: ${JSON.stringify(LONG)}, attempt: String(attempt), pid: String(process.pid),
    at: String(Date.now()), key: key ?? "",
  }));
  const work = async () => {
    const before = (await checkpoint.load()) ?? 0;
    let next = before;
    const until = next - (next % ${PIECES_PER_INVOCATION}) + ${PIECES_PER_INVOCATION};
    while (next < until && next < ${PIECES}) {
      signal.throwIfAborted();
      const piece = "piece " + String(next).padStart(2, "0");
      await once(piece, async () => {
        await tell("piece", idempotencyKey(piece));
        // Time enough to be killed between the effect and its record.
        await new Promise((resolve) => setTimeout(resolve, 100));
        return next;
      });
      next += 1;
      progress(next, ${PIECES});
      if (next % 2 === 1) await checkpoint.save(next);
    }
    return { before, next };
  };
  await tell("begins");
  const { before, next } = await work().catch(async (error) => {
    await tell("stopped");
    throw error;
  });
  await tell("returned");
  return before === ${PIECES} ? next : continueLater(next);
}`;

/** The list is half made, each shard between its effect and the record, and the hook at its effect, when it may be killed. */
const splitText = (witness: string): { readonly [option: string]: string } => {
  const part = (name: string, text: string): string => `
    const id = crypto.randomUUID();
    const tell = (what, key) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({
      what, id, run: runId, part: ${name}, job: ${JSON.stringify(SPLIT)}, attempt: String(attempt), pid: String(process.pid),
      at: String(Date.now()), key: key ?? "",
    }));
    const lasts = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    signal.addEventListener("abort", () => tell("stopped"));
    await tell("begins");
    try {
      ${text}
    } catch (error) {
      await tell("stopped");
      throw error;
    }
    await tell("returned");`;
  const effect = `
    await once("effect", async () => {
      await tell("effect", idempotencyKey("effect"));
      await lasts(500);
    });`;
  return {
    shards: `async function* ({ runId, attempt, signal }) {
      ${part(
        '"list"',
        `for (let n = 0; n < ${SHARDS}; n++) {
          if (n === ${SHARDS} >> 1) await lasts(1200);
          yield { key: "customer " + n, input: { n } };
        }`,
      )}
    }`,
    handler: `async ({ runId, attempt, signal, shard, once, idempotencyKey }) => {
      ${part("shard.key", effect)}
    }`,
    join: `async ({ runId, attempt, signal, shards, once, idempotencyKey }) => {
      ${part('"join"', `${effect} await lasts(700);`)}
      return { id, ...shards };
    }`,
  };
};

/** The keys under which the parts of a run in shards act. */
export const splitKeys = (runId: string): readonly string[] => [
  ...Array.from({ length: SHARDS }, (_, n) => `${runId}/customer ${n}:effect`),
  `${runId}:effect`,
];

export const chaosJobs = (endsAtMs: number) =>
  [
    jobOf(LOCKED, endsAtMs, { overlap: "queue" }),
    jobOf(UNLOCKED, endsAtMs, { overlap: "allow" }),
    jobOf(LONG, endsAtMs, { overlap: "queue", schedules: [`*/${SELDOM} * * * *`] }),
    jobOf(SPLIT, endsAtMs, {
      overlap: "queue",
      schedules: [`${SPLIT_AT}/${SELDOM} * * * *`],
      shards: { joins: true },
    }),
    jobOf(BACKFILLED, endsAtMs, { overlap: "skip" }),
  ] as const;

/** The code of the jobs, which tells the witness of all that it does. */
export const chaosHandlers = (witness: string) => ({
  [LOCKED]: handlerText(witness, LOCKED, 200, 600),
  [UNLOCKED]: handlerText(witness, UNLOCKED, 1_000, 5_500),
  [LONG]: longHandlerText(witness),
  [SPLIT]: splitText(witness),
  [BACKFILLED]: handlerText(witness, BACKFILLED, 50, 250),
});
