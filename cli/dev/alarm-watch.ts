import type { RingingAlarm } from "../../lib/core/alarms/alarm.ts";
import { alarmsOf } from "../../lib/core/alarms/alarms.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { SECOND_MS } from "../../lib/core/time.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";
import { AlarmBoard, type Measurement, type StateChange } from "./alarm-board.ts";
import { measurementsIn } from "./emf-measurements.ts";

export interface AlarmWatchOptions {
  readonly minuteMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
  /** One line for people. */
  readonly say: (line: string) => void;
  /** What rings now, and what has changed since the last call; once a minute. */
  readonly tell: (ringing: readonly RingingAlarm[], changes: readonly StateChange[]) => void;
}

export interface AlarmWatch {
  use(manifest: Manifest): void;
  /** A line that a child has printed. */
  line(text: string): void;
  measured(measurements: readonly Measurement[]): void;
  stop(): void;
}

const lineOf = ({ alarm, to }: StateChange): string =>
  to === "alarm" ? `alarm ${alarm.key} rings: ${alarm.meaning}` : `alarm ${alarm.key} is over`;

/** A wait that took so many times as long was no wait: the machine was asleep. */
const ASLEEP = 3;

/**
 * The alarms of a deployment, judged outside of everything that they watch: by the supervisor, from its children's log
 * lines and what they measure.
 */
export const startAlarmWatch = ({ clock, minuteMs, say, tell, timers }: AlarmWatchOptions): AlarmWatch => {
  const board = new AlarmBoard({ minuteMs, nowMs: clock.nowMs() });
  let lastMs = clock.nowMs();
  let timer: { cancel(): void } | undefined;

  const look = (): void => {
    const nowMs = clock.nowMs();
    if (nowMs - lastMs > ASLEEP * minuteMs) board.wokeUp(nowMs);
    lastMs = nowMs;
    const changes = board.judge(nowMs);
    for (const change of changes) if (change.from !== undefined || change.to === "alarm") say(lineOf(change));
    tell(board.ringing(), changes);
    wait();
  };

  const wait = (): void => {
    // A moment after the minute is over, so that what was measured at its end is there.
    const untilNextMs = minuteMs - (clock.nowMs() % minuteMs);
    timer = timers.after(untilNextMs + minuteMs / 10, look);
  };

  wait();
  return {
    use: (manifest) => board.use(alarmsOf(manifest, { minuteS: minuteMs / SECOND_MS })),
    line: (text) => {
      for (const one of measurementsIn(text)) board.add(one);
    },
    measured: (measurements) => {
      for (const one of measurements) board.add(one);
    },
    stop: () => timer?.cancel(),
  };
};
