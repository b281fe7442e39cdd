import { SQSClient } from "@aws-sdk/client-sqs";
import { makeRunByHand } from "../../lib/app/operate/run-by-hand.ts";
import { dispatch } from "../../lib/app/path/dispatch.ts";
import { work } from "../../lib/app/path/work.ts";
import { watch } from "../../lib/app/watchdog/watch.ts";
import { composeDeps } from "../../lib/compose/deps.ts";
import { dispatcherFunction, workerFunction } from "../../lib/compose/functions.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { schedulerInput } from "../../lib/core/runs/scheduler-event.ts";
import { MINUTE_MS, shortIsoOf } from "../../lib/core/time.ts";
import { notifierHandler } from "../../lib/inbound/notifier.ts";
import { definition } from "./definitions.ts";
import { embeddedServices, manifestOf } from "./embedded-services.ts";
import { TEST_CREDENTIALS } from "./embedded-table.ts";
import { jobsFile } from "./jobs-file.ts";
import { oneByOne } from "./one-by-one.ts";
import { drain } from "./receive.ts";
import { type Counts, wireCounts } from "./wire-counts.ts";

/** As much as a handler answers that is asked for a short result. */
const RETURNS = "async () => ({ deletedCount: 3 })";
const THROWS = "throw new Error('no such host')";
const SHARDS = 64;
/** As soon as a message can come again. */
const RETRY_WAIT_SECONDS = 5;
const retry = { ...definition({ name: "x" }).retry, retries: 1, firstWaitMs: 0, factor: 1, jitter: 0 };

/** A deployment on the embedded table and queues, whose calls and log lines are counted. */
const countedStage = async (jobs: readonly JobDefinition[], handlers: { readonly [job: string]: string }) => {
  const services = await embeddedServices();
  const { db, sqs, config } = services;
  const manifest = manifestOf(...jobs);
  const wire = wireCounts({ db, sqs }, config.endpoints?.dynamodb ?? "");
  const clients = { db, sqs };
  const worker = workerFunction(config, manifest, {
    pool: "default",
    jobsFile: await jobsFile(handlers),
    clients,
  });
  await worker.ready();
  const dispatcher = dispatcherFunction(config, manifest, clients);
  // What Lambda's poller receives and deletes is none of our calls: it follows from the deliveries.
  const poller = new SQSClient({
    endpoint: config.endpoints?.sqs ?? "",
    region: "us-east-1",
    credentials: TEST_CREDENTIALS,
  });
  const queue = config.queueUrls["default"] ?? "";
  const workOnce = (waitSeconds = 0): Promise<number> =>
    wire.working(() => drain(poller, queue, worker.handler, waitSeconds));
  return {
    deps: composeDeps(config, manifest, clients),
    counts: async (play: () => Promise<unknown>): Promise<Counts> => {
      wire.reset();
      await play();
      return { ...wire.counts };
    },
    line: wire.line,
    dispatch: async (job: string, slotMs: number): Promise<void> => {
      wire.counts.dispatches += 1;
      const event = { ...schedulerInput([job]), scheduledTime: shortIsoOf(slotMs) };
      await dispatcher(event, { awsRequestId: `${job} ${wire.counts.dispatches}` });
    },
    workOnce,
    workAll: async (): Promise<void> => {
      while ((await workOnce()) > 0);
    },
    close: async (): Promise<void> => {
      poller.destroy();
      wire.close();
      await worker.close();
      await services.close();
    },
  };
};

/** The last whole minute: a slot that is neither in the future nor late. */
const lastMinuteMs = (): number => Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;

/** A schedule that names this minute, and no other of the same day. */
const onlyAt = (slotMs: number): readonly string[] => {
  const at = new Date(slotMs);
  return [`${at.getUTCMinutes()} ${at.getUTCHours()} * * *`];
};

type Stage = Awaited<ReturnType<typeof countedStage>>;
type Stories = { readonly [story: string]: Counts };

const scaled = (counts: Counts, factor: number): Counts => {
  const rounded = Object.entries(counts).map(([name, count]) => [
    name,
    Math.round(count * factor * 1e4) / 1e4,
  ]);
  return Object.fromEntries(rounded) as unknown as Counts;
};

const less = (all: Counts, some: Counts): Counts => {
  const rest = Object.entries(all).map(([name, count]) => [name, count - some[name as keyof Counts]]);
  return Object.fromEntries(rest) as unknown as Counts;
};

const playRuns = async (stage: Stage, slotMs: number, byHand: JobDefinition): Promise<Stories> => {
  const { counts, workAll, workOnce } = stage;
  const run = (job: string) => async (): Promise<void> => {
    await stage.dispatch(job, slotMs);
    await workAll();
  };
  const twoAttempts = (job: string) => async (): Promise<void> => {
    await stage.dispatch(job, slotMs);
    await workOnce();
    await workOnce(RETRY_WAIT_SECONDS);
  };
  const played: { [story: string]: Counts } = {
    succeeded: await counts(run("side-by-side")),
    "succeeded, with a lock": await counts(run("one-at-a-time")),
    "delivered twice": await counts(() => stage.dispatch("side-by-side", slotMs)),
    "retried once": await counts(twoAttempts("fails-once")),
    "dead after two attempts": await counts(twoAttempts("fails-twice")),
    "each of 64 shards": scaled(await counts(run("split")), 1 / SHARDS),
    "by hand": await counts(async () => {
      await makeRunByHand(stage.deps)({ job: byHand });
      await workAll();
    }),
  };
  await stage.dispatch("held", slotMs - MINUTE_MS);
  return { ...played, skipped: await counts(() => stage.dispatch("held", slotMs)) };
};

/** So many passes after its slot, a run that succeeded is looked at no more. */
const PASSES = 10;

/** Its passes do not cross an hour, in which they would look at the notes of two. */
const WATCHED_SLOT_MS = Date.parse("2026-10-08T02:10:00Z");

/** One slot, dispatched and carried out on a clock that stands at it. */
const runAt = async ({ deps }: Stage, slotMs: number): Promise<void> => {
  const sent: RunMessage[] = [];
  const queue = oneByOne({ send: async (_pool, message) => void sent.push(message) });
  const then = { ...deps, queue, clock: { nowMs: () => slotMs } };
  await dispatch(then, { ...schedulerInput(["side-by-side"]), scheduledTime: shortIsoOf(slotMs) }, "request");
  const ended = Promise.resolve({ kind: "returned", result: { deletedCount: 3 } } as const);
  const attempts = { start: () => ({ ended, stop: () => undefined }) };
  for (const message of sent) await work({ ...then, attempts }, message);
};

/** What the watchdog and the notifier cost where nothing is due, and what a run that succeeded adds. */
const playPasses = async (stage: Stage): Promise<Stories> => {
  const { deps, counts } = stage;
  const pass = async (nowMs: number): Promise<void> => {
    await watch({ ...deps, clock: { nowMs: () => nowMs } });
    deps.journal.notice("info", "watchdog-pass", {});
  };
  const passes = async (fromMs: number): Promise<void> => {
    for (let n = 0; n < PASSES; n++) await pass(fromMs + n * MINUTE_MS);
  };
  const notify = notifierHandler({ ...deps, routes: [], definitionOf: () => undefined });
  const slotMs = WATCHED_SLOT_MS;
  await pass(slotMs - MINUTE_MS);
  await runAt(stage, slotMs);
  const due = await counts(() => passes(slotMs + MINUTE_MS));
  const idle = await counts(() => passes(slotMs + (PASSES + 1) * MINUTE_MS));
  return {
    "watched, for each slot": less(due, idle),
    "a pass of the watchdog": scaled(idle, 1 / PASSES),
    "a pass of the notifier": await counts(() => notify({})),
  };
};

/** Standard output and standard error, line by line, are the function's log. */
const withLog = async <Answer>(
  line: (text: string) => void,
  play: () => Promise<Answer>,
): Promise<Answer> => {
  const streams = [process.stdout, process.stderr];
  const writers = streams.map(({ write }) => write);
  for (const stream of streams)
    stream.write = (text: string | Uint8Array): boolean => {
      line(String(text));
      return true;
    };
  try {
    return await play();
  } finally {
    for (const [index, stream] of streams.entries()) Object.assign(stream, { write: writers[index] });
  }
};

/**
 * Plays every story of a run over the embedded table and queues, and answers what each of them cost. Nobody else may
 * write to this process's output meanwhile.
 */
export const playStories = async (): Promise<Stories> => {
  const slotMs = lastMinuteMs();
  const job = (name: string, changes: Partial<JobDefinition> = {}): JobDefinition =>
    definition({ name, schedules: onlyAt(slotMs), ...changes });
  const sideBySide = job("side-by-side", { overlap: "allow" });
  const byHand = job("by-hand", { schedules: [] });
  const runs = await countedStage(
    [
      sideBySide,
      byHand,
      job("one-at-a-time"),
      job("held", { schedules: ["* * * * *"] }),
      job("fails-once", { overlap: "allow", retry }),
      job("fails-twice", { overlap: "allow", retry }),
      job("split", { overlap: "allow", shards: { count: SHARDS, joins: false } }),
    ],
    {
      "side-by-side": RETURNS,
      "one-at-a-time": RETURNS,
      "by-hand": RETURNS,
      "fails-once": `async ({ attempt }) => { if (attempt === 1) ${THROWS}; }`,
      "fails-twice": `async () => { ${THROWS}; }`,
      split: "async () => undefined",
    },
  );
  const watched = { ...sideBySide, schedules: onlyAt(WATCHED_SLOT_MS) };
  const passes = await countedStage([watched], { "side-by-side": RETURNS });
  try {
    return {
      ...(await withLog(runs.line, () => playRuns(runs, slotMs, byHand))),
      ...(await withLog(passes.line, () => playPasses(passes))),
    };
  } finally {
    await Promise.all([runs.close(), passes.close()]);
  }
};
