import type { AlarmDefinition, Measured, RingingAlarm } from "../../lib/core/alarms/alarm.ts";
import {
  type AlarmState,
  lookBackMs,
  metricId,
  type Point,
  stateOf,
} from "../../lib/core/alarms/alarm-state.ts";

/** One measurement, on its way from the process that made it. */
export interface Measurement extends Point {
  /** Of its metric. */
  readonly id: string;
}

export const measurement = (measured: Measured, atMs: number, value = 1): Measurement => ({
  id: metricId(measured),
  atMs,
  value,
});

export interface StateChange {
  readonly alarm: AlarmDefinition;
  readonly from: AlarmState | undefined;
  readonly to: AlarmState;
  readonly atMs: number;
}

/** In minutes, as the deployed alarms have it: before a new stack has said anything, its silence is no news. */
const WARM_UP_MINUTES = 15;

/** What CloudWatch is to a deployment: keeps what was measured for as long as an alarm looks back, and judges it. */
export class AlarmBoard {
  readonly #minuteMs: number;
  readonly #points = new Map<string, Point[]>();
  readonly #states = new Map<string, { readonly state: AlarmState; readonly sinceMs: number }>();
  #alarms: readonly AlarmDefinition[] = [];
  #sinceMs: number;

  constructor({ minuteMs, nowMs }: { readonly minuteMs: number; readonly nowMs: number }) {
    this.#minuteMs = minuteMs;
    this.#sinceMs = nowMs;
  }

  /** A new build may have other pools, and so other alarms; those that stay keep their state. */
  use(alarms: readonly AlarmDefinition[]): void {
    this.#alarms = alarms;
    const keys = new Set(alarms.map(({ key }) => key));
    for (const key of this.#states.keys()) if (!keys.has(key)) this.#states.delete(key);
  }

  add({ id, atMs, value }: Measurement): void {
    const points = this.#points.get(id) ?? [];
    points.push({ atMs, value });
    this.#points.set(id, points);
  }

  /** The machine was asleep, and everybody with it: silence until now is no news either. */
  wokeUp(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** Judges every alarm; answers those whose state is another now. */
  judge(nowMs: number): readonly StateChange[] {
    this.#forget(nowMs);
    return this.#alarms.flatMap((alarm): StateChange[] => {
      if (this.#isWarmingUp(alarm, nowMs)) return [];
      const to = stateOf(alarm, (each) => this.#points.get(metricId(each)) ?? [], {
        nowMs,
        minuteMs: this.#minuteMs,
      });
      const from = this.#states.get(alarm.key)?.state;
      if (from === to) return [];
      this.#states.set(alarm.key, { state: to, sinceMs: nowMs });
      return [{ alarm, from, to, atMs: nowMs }];
    });
  }

  ringing(): readonly RingingAlarm[] {
    return this.#alarms.flatMap((alarm): RingingAlarm[] => {
      const known = this.#states.get(alarm.key);
      return known?.state === "alarm" ? [{ alarm, sinceMs: known.sinceMs }] : [];
    });
  }

  /** What came after the last whole minute is not judged yet, and so is no sign of life to judge by. */
  #isWarmingUp({ metrics, missing }: AlarmDefinition, nowMs: number): boolean {
    const isNew = nowMs < this.#sinceMs + WARM_UP_MINUTES * this.#minuteMs;
    const untilMs = Math.floor(nowMs / this.#minuteMs) * this.#minuteMs;
    const hasData = metrics.some((each) =>
      this.#points.get(metricId(each))?.some(({ atMs }) => atMs >= this.#sinceMs && atMs < untilMs),
    );
    return missing === "breaching" && isNew && !hasData;
  }

  #forget(nowMs: number): void {
    const longestMs = Math.max(0, ...this.#alarms.map(lookBackMs)) + this.#minuteMs;
    for (const [id, points] of this.#points) {
      const kept = points.filter(({ atMs }) => atMs > nowMs - longestMs);
      if (kept.length === 0) this.#points.delete(id);
      else this.#points.set(id, kept);
    }
  }
}
