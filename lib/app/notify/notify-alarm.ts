import type { AlarmDefinition } from "../../core/alarms/alarm.ts";
import {
  type AlarmChange,
  alertOfAlarm,
  alertOfEnd,
  endIn,
  noteOver,
  noteTold,
  testIn,
} from "../../core/alarms/alarm-change.ts";
import { CURSOR_KEY } from "../../core/items.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { putAlert } from "./outbox.ts";

export interface AlarmDeps extends Pick<Deps, "table" | "clock" | "timings"> {
  /** By the alarm's full name; undefined for alarms of somebody else. */
  readonly definitionOf: (name: string) => AlarmDefinition | undefined;
}

/**
 * Makes an alert of an alarm that rings, and of its end where the ringing was told. Alarms about jobs repeat what the
 * watchdog tells by itself: they are told only while it does not work. The same change twice, or an end that comes
 * before its beginning, tells nothing more or less.
 */
export const notifyAlarm = async (deps: AlarmDeps, change: AlarmChange): Promise<void> => {
  const { table } = deps;
  if (change.state === "unknown") return;
  if (change.state === "over") {
    const { item } = await table.write(noteOver(change));
    return tellEnd(deps, change.name, item);
  }
  const test = testIn(change);
  if (test !== undefined) return putAlert(table, test);
  const definition = deps.definitionOf(change.name);
  if (definition?.about === "jobs" && (await isWatchdogAlive(deps))) return;
  await putAlert(table, alertOfAlarm(change, definition));
  const { item } = await table.write(noteTold(change));
  await tellEnd(deps, change.name, item);
};

const tellEnd = async (
  { table, definitionOf }: AlarmDeps,
  name: string,
  item: Item | undefined,
): Promise<void> => {
  const end = endIn(item);
  if (end !== undefined) await putAlert(table, alertOfEnd(name, end, definitionOf(name)?.topic ?? "notify"));
};

/** Its cursor moves with each pass that went well. */
const isWatchdogAlive = async ({ table, clock, timings }: AlarmDeps): Promise<boolean> => {
  const cursor = await table.get(CURSOR_KEY, { consistent: true });
  const untilMs = cursor?.["notesUntilMs"];
  if (typeof untilMs !== "number") return false;
  return clock.nowMs() - (untilMs + timings.clockBoundMs) < 1.5 * timings.firstLookMs;
};
