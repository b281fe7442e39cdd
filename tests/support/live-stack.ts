import { watch } from "../../lib/app/watchdog/watch.ts";
import type { Alert } from "../../lib/core/alerts/alert.ts";
import { readAlert } from "../../lib/core/alerts/outbox.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../../lib/core/time.ts";
import { type SetupOptions, setup } from "./path.ts";

/**
 * A stack of one process that works minute by minute: schedules strike, workers take what is in the queue, the
 * watchdog makes its pass. What does not work any more is switched off by the test.
 */
export const liveStack = async (options: SetupOptions) => {
  const env = setup(options);
  const works = { schedules: true, workers: true, watchdog: true };
  const queue: { readonly message: RunMessage; visibleAtMs: number }[] = [];
  let taken = 0;
  let struckUntilMs = env.now();
  let strikes = (_job: JobDefinition, _slotMs: number): boolean => works.schedules;

  const strike = async (): Promise<void> => {
    for (const job of env.deps.jobs.all) {
      for (const slotMs of env.deps.jobs.scheduleOf(job)?.slots(struckUntilMs + 1, env.now() + 1) ?? []) {
        if (strikes(job, slotMs)) await env.deliver(shortIsoOf(slotMs), [job.subject]).catch(() => undefined);
      }
    }
    struckUntilMs = env.now();
  };

  const takeMessages = async (): Promise<void> => {
    const fresh = env.sent.slice(taken);
    taken = env.sent.length;
    queue.push(...fresh.map(({ message }) => ({ message, visibleAtMs: env.now() })));
    if (!works.workers) return;
    for (const entry of queue.filter(({ visibleAtMs }) => visibleAtMs <= env.now())) {
      entry.visibleAtMs = Number.POSITIVE_INFINITY;
      void env.work(entry.message).then((settlement) => {
        if (settlement.kind === "delete") queue.splice(queue.indexOf(entry), 1);
        else entry.visibleAtMs = env.now() + (settlement.afterMs ?? 30 * MINUTE_MS);
      });
      // Attempts that the test does not end by hand are over by then.
      await env.settle();
    }
  };

  /** The pass of the watchdog: what it cannot do now, the next one does. */
  const pass = (): Promise<void> => watch(env.deps).catch(() => undefined);

  const minute = async (): Promise<void> => {
    await env.moveBy(MINUTE_MS);
    await strike();
    await takeMessages();
    if (works.watchdog) await pass();
    await takeMessages();
  };

  await pass();
  return {
    ...env,
    works,
    pass,
    /** Does the schedule strike at the slot? Default: while `works.schedules`. */
    strikeIf: (decide: typeof strikes): void => {
      strikes = decide;
    },
    minute,
    playUntil: async (iso: string): Promise<void> => {
      const untilMs = Date.parse(iso);
      while (env.now() < untilMs) await minute();
    },
    playFor: async (ms: number): Promise<void> => {
      const untilMs = env.now() + ms;
      while (env.now() < untilMs) await minute();
    },
    /** All that was told so far, in order. */
    alerts: (): readonly Alert[] =>
      env.table
        .items()
        .filter(({ pk }) => String(pk).startsWith("A#"))
        .flatMap((item) => readAlert(item) ?? [])
        .sort((left, right) => left.atMs - right.atMs || (left.id < right.id ? -1 : 1)),
  };
};

export type LiveStack = Awaited<ReturnType<typeof liveStack>>;

/** What was told, one line each: when, where it goes, what. */
export const toldIn = (stack: LiveStack): readonly string[] =>
  stack.alerts().map(({ atMs, topic, kind, count }) => {
    const minute = shortIsoOf(Math.floor(atMs / (60 * SECOND_MS)) * 60 * SECOND_MS).slice(5, 16);
    return `${minute} ${topic} ${kind}${count === undefined ? "" : ` x${count}`}`;
  });
