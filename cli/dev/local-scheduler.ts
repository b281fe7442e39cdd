import { randomUUID } from "node:crypto";
import { schedulerInput } from "../../lib/core/runs/scheduler-event.ts";
import { shortIsoOf } from "../../lib/core/time.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";
import { begin, dueSlots, type ScheduleState, type SlotSource } from "./due-slots.ts";
import { ACCOUNT_ID, REGION, STAGE } from "./resources.ts";

export interface LocalSchedulerOptions {
  /** Named by subject. */
  readonly sources: readonly SlotSource[];
  /** Slots strictly later are struck; default now. A successor begins where the one before it has stopped. */
  readonly sinceMs?: number;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Takes the event over, as a Lambda's event queue does; never rejects. */
  readonly send: (event: unknown) => void;
}

export interface LocalScheduler {
  /** Sends what is due by now, then nothing. Answers the instant up to which slots have been struck. */
  stop(): number;
}

/**
 * No single wait is longer: a timer counts time in which the machine was awake, and knows nothing of a clock put
 * forward; and Node cannot wait longer than 2^31 - 1 ms at all.
 */
const LONGEST_WAIT_MS = 10_000;

/**
 * What the dispatcher gets of EventBridge Scheduler at a slot: the Input of the deployed schedule, each context
 * attribute replaced as text within text.
 */
export const schedulerEvent = (subject: string, slotMs: number): unknown => {
  const facts = {
    "scheduled-time": shortIsoOf(slotMs),
    "schedule-arn": `arn:aws:scheduler:${REGION}:${ACCOUNT_ID}:schedule/belfry-${STAGE}/${subject}`,
    "execution-id": randomUUID(),
    "attempt-number": "1",
  };
  return JSON.parse(
    Object.entries(facts).reduce(
      (text, [name, fact]) => text.replaceAll(`<aws.scheduler.${name}>`, fact),
      JSON.stringify(schedulerInput([subject])),
    ),
  );
};

/** Strikes each slot of the sources once, from now on: EventBridge Scheduler's part on a laptop. */
export const startLocalScheduler = ({
  sources,
  sinceMs,
  clock,
  timers,
  send,
}: LocalSchedulerOptions): LocalScheduler => {
  let beforeMs = sinceMs ?? clock.nowMs();
  let states: readonly (readonly [SlotSource, ScheduleState])[] = sources.map(
    (source) => [source, begin(source, beforeMs)] as const,
  );
  let timer: { cancel(): void } | undefined;

  const arm = (): void => {
    const nextMs = Math.min(...states.map(([, state]) => state.nextMs ?? Number.POSITIVE_INFINITY));
    const waitMs = Math.min(Math.max(nextMs - clock.nowMs(), 1), LONGEST_WAIT_MS);
    timer = timers.after(waitMs, look);
  };

  const strike = (): void => {
    const nowMs = clock.nowMs();
    const looked = states.map(([source, state]) => ({
      source,
      ...dueSlots(source, state, { beforeMs, nowMs }),
    }));
    states = looked.map(({ source, state }) => [source, state] as const);
    beforeMs = nowMs;
    for (const { source, due } of looked) {
      for (const slotMs of due) send(schedulerEvent(source.name, slotMs));
    }
  };

  const look = (): void => {
    strike();
    arm();
  };

  arm();
  return {
    stop: () => {
      timer?.cancel();
      strike();
      return beforeMs;
    },
  };
};
