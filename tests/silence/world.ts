import { type MemoryTable, memoryTable } from "../../lib/adapters/memory/memory-table.ts";
import type { Deps } from "../../lib/app/deps.ts";
import { pauseJob, resumeJob } from "../../lib/app/operate/operator.ts";
import { dispatch } from "../../lib/app/path/dispatch.ts";
import { work } from "../../lib/app/path/work.ts";
import { watch } from "../../lib/app/watchdog/watch.ts";
import type { Alert } from "../../lib/core/alerts/alert.ts";
import { readAlert } from "../../lib/core/alerts/outbox.ts";
import { slotKeyOf, slotMsOf } from "../../lib/core/identity.ts";
import { CURSOR_KEY, runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { jobList } from "../../lib/core/jobs/job-list.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { schedulerInput } from "../../lib/core/runs/scheduler-event.ts";
import { start } from "../../lib/core/runs/transitions.ts";
import { AWS_TIMINGS } from "../../lib/core/settings.ts";
import { DAY_MS, MINUTE_MS, readInstant, SECOND_MS, shortIsoOf } from "../../lib/core/time.ts";
import { set } from "../../lib/core/write.ts";
import type { AttemptEnd } from "../../lib/ports/attempts.ts";
import type { Journal } from "../../lib/ports/journal.ts";
import type { Table } from "../../lib/ports/table.ts";
import type { SeededRandom } from "../../lib/simulation/random.ts";
import { agenda } from "./agenda.ts";
import type { JobPlan, Silence } from "./plan.ts";

const silent: Journal = { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined };

const { firstLookMs, clockBoundMs, leaseMs } = AWS_TIMINGS;

export interface WorldOptions {
  readonly plans: readonly JobPlan[];
  readonly fromMs: number;
  readonly untilMs: number;
  readonly random: SeededRandom;
  /** Each pass of the watchdog is made, also where nothing is due. */
  readonly everyPass?: boolean;
}

/**
 * A deployment in one zone: the real dispatcher, worker and watchdog over a table in memory, from event to event. A
 * pass of the watchdog that finds nothing due moves the cursor and does nothing else, so the cursor alone is moved,
 * unless `everyPass`.
 */
export const makeWorld = ({ plans, fromMs, untilMs, random, everyPass = false }: WorldOptions) => {
  const stored: MemoryTable = memoryTable();
  const acts = agenda();
  const noted: number[] = [];
  const unlooked: number[] = [];
  const succeeded = new Set<string>();
  const alerts: Alert[] = [];
  const held: RunMessage[] = [];
  const passes = { made: 0, failed: 0 };
  let nowMs = fromMs;
  let tokens = 0;
  let lastPassMs = fromMs;
  let passFailed = false;

  const table: Table = {
    ...stored,
    write: async (write) => {
      const answer = await stored.write(write);
      if (write.key.pk.startsWith("O#")) noted.push(Number(readInstant(write.key.sk.slice(0, 24))));
      if (answer.written && answer.item["st"] === "succeeded")
        succeeded.add(`${write.key.pk}/${write.key.sk}`);
      const alert = answer.written && write.key.pk.startsWith("A#") ? readAlert(answer.item) : undefined;
      if (alert !== undefined) alerts.push(alert);
      return answer;
    },
  };
  const silenceOf = ({ subject, slotKey }: { subject: string; slotKey: string }): Silence | undefined =>
    plans.find(({ job }) => job.subject === subject)?.silences.get(slotMsOf(slotKey));

  const deps: Deps = {
    table,
    queue: {
      send: async (_pool, message) => void held.push(message),
      sendBatch: async () => {
        throw new TypeError("no job of this world has shards");
      },
    },
    clock: { nowMs: () => nowMs },
    // Attempts are over at once, so no timer ever falls due.
    timers: { after: () => ({ cancel: () => undefined }) },
    random: { token: () => `t${++tokens}`, fraction: () => 0 },
    journal: silent,
    timings: AWS_TIMINGS,
    jobs: jobList({ jobs: plans.map(({ job }) => job), hash: "silence" }, "prod"),
  };

  const startAndVanish = (message: RunMessage, { overlap }: JobDefinition) =>
    table.write(
      start({
        occurrence: message,
        epoch: 1,
        token: "gone",
        nowMs,
        leaseUntilMs: nowMs + leaseMs,
        locked: overlap !== "allow",
        trigger: message.trigger,
        queuedAtMs: message.queuedAtMs,
      }),
    );

  const attempts = {
    start: ({ job, slotMs }: { readonly job: string; readonly slotMs: number }) => {
      const isFailing = silenceOf({ subject: job, slotKey: slotKeyOf(slotMs) })?.kind === "failed";
      const end: AttemptEnd = isFailing
        ? { kind: "threw", permanent: false, error: { name: "Error", message: "no such host" } }
        : { kind: "returned" };
      return { ended: Promise.resolve(end), stop: () => undefined };
    },
  };

  const take = async (message: RunMessage): Promise<void> => {
    const silence = silenceOf(message);
    const job = deps.jobs.bySubject(message.subject);
    if (silence === undefined || silence.kind === "failed" || nowMs >= silence.untilMs || job === undefined) {
      await work({ ...deps, attempts }, message);
    } else if (silence.kind === "not-started") acts.at(silence.untilMs, () => take(message));
    else if (silence.kind === "vanished") await startAndVanish(message, job);
    // A slot that nothing struck, and that the watchdog has made up for.
    else if (silence.kind === "not-struck") await work({ ...deps, attempts }, message);
    // `lost`: nobody ever sees it.
  };

  const takeAll = async (): Promise<void> => {
    for (let message = held.shift(); message !== undefined; message = held.shift()) await take(message);
  };

  const strike = async (job: JobDefinition, slotMs: number): Promise<void> => {
    unlooked.push(slotMs);
    const silence = silenceOf({ subject: job.subject, slotKey: slotKeyOf(slotMs) });
    if (silence?.kind === "not-struck" || silence?.place === "in a misfire window") return;
    const event = { ...schedulerInput([job.subject]), scheduledTime: shortIsoOf(slotMs) };
    await dispatch(deps, event, `request-${++tokens}`);
  };

  /** What a pass a minute ago, that had nothing to do, has left behind. */
  const moveCursor = async (): Promise<void> => {
    const idleMs = nowMs - MINUTE_MS;
    if (everyPass || passFailed || idleMs <= lastPassMs) return;
    const changes = [set("doneUntilMs", idleMs - firstLookMs), set("notesUntilMs", idleMs - clockBoundMs)];
    await stored.write({ key: CURSOR_KEY, changes });
  };

  const drop = (times: number[], isDone: (atMs: number) => boolean): void => {
    const left = times.filter((atMs) => !isDone(atMs));
    times.splice(0, times.length, ...left);
  };

  const pass = async (): Promise<void> => {
    await moveCursor();
    const [slotsUntilMs, notesUntilMs] = [nowMs - firstLookMs, nowMs - clockBoundMs];
    passes.made += 1;
    passFailed = await watch(deps).then(
      () => false,
      () => true,
    );
    lastPassMs = nowMs;
    if (passFailed) passes.failed += 1;
    else {
      drop(unlooked, (slotMs) => slotMs < slotsUntilMs);
      drop(noted, (atMs) => atMs < notesUntilMs);
    }
  };

  /** The next minute of the watchdog's that finds something due. */
  const nextPassMs = (): number => {
    if (everyPass || passFailed) return lastPassMs + MINUTE_MS;
    const dueMs = Math.min(
      ...unlooked.map((slotMs) => slotMs + firstLookMs),
      ...noted.map((atMs) => atMs + clockBoundMs),
    );
    const minutes = Math.max(1, Math.floor((dueMs - lastPassMs) / MINUTE_MS) + 1);
    return lastPassMs + minutes * MINUTE_MS;
  };

  /** Each strike makes the next one, within the minute of its slot as EventBridge does. */
  const schedule = (job: JobDefinition, afterMs: number): void => {
    const slotMs = deps.jobs.scheduleOf(job)?.next(afterMs);
    if (slotMs === undefined || slotMs >= untilMs) return;
    acts.at(slotMs + random.whole(0, 59) * SECOND_MS, async () => {
      schedule(job, slotMs);
      await strike(job, slotMs);
    });
  };

  const prepare = (): void => {
    for (const { job, pauses } of plans) {
      schedule(job, fromMs);
      for (const pause of pauses) {
        acts.at(pause.fromMs, () => pauseJob(deps, job, { reason: "planned" }));
        acts.at(pause.untilMs, () => resumeJob(deps, job));
      }
    }
    const expire = (): void => {
      stored.expire(nowMs);
      acts.at(nowMs + 7 * DAY_MS, async () => expire());
    };
    expire();
  };

  return {
    alerts,
    passes,
    stored,
    hasSucceeded: ({ subject }: JobDefinition, slotMs: number): boolean => {
      const { pk, sk } = runKey({ subject, slotKey: slotKeyOf(slotMs) });
      return succeeded.has(`${pk}/${sk}`);
    },
    play: async (): Promise<void> => {
      prepare();
      await pass();
      for (;;) {
        const [actMs, passMs] = [acts.nextMs(), nextPassMs()];
        const nextMs = Math.min(actMs, passMs);
        if (nextMs >= untilMs) return;
        nowMs = nextMs;
        if (actMs <= passMs) await acts.actOnce();
        else await pass();
        await takeAll();
      }
    },
  };
};
