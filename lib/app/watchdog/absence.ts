import { roughText } from "../../core/duration.ts";
import { CURSOR_KEY } from "../../core/items.ts";
import { MINUTE_MS, shortIsoOf } from "../../core/time.ts";
import { absent, any, type Item, lessThan, set } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { putAlert } from "../notify/outbox.ts";
import type { Cursor } from "./pass.ts";

/** A pass comes each minute. A few may fail to start without anybody having to know. */
const AWAY_AFTER_MS = 5 * MINUTE_MS;

/**
 * When the last pass was, as the cursor tells it: that far it looked then; or, of a pass that did not get through, when it
 * was at work. Undefined = there was none.
 */
export const lastPassMs = (cursor: Item | undefined, firstLookMs: number): number | undefined => {
  const doneUntilMs = cursor?.["doneUntilMs"];
  if (typeof doneUntilMs !== "number") return undefined;
  return Math.max(doneUntilMs + firstLookMs, Number(cursor?.["atWorkAtMs"] ?? 0));
};

/**
 * Back from an outage of its own the watchdog says so, once; what happened meanwhile it judges from the records. A pass that
 * stood still moves the cursor no further than to where it began: to the next one that is no second absence.
 */
export const tellOfAbsence = async (
  { clock, table }: Pick<Deps, "clock" | "table">,
  { lastPassMs: lastMs }: Cursor,
): Promise<void> => {
  const nowMs = clock.nowMs();
  if (lastMs === undefined || nowMs - lastMs <= AWAY_AFTER_MS) return;
  const away = `${roughText(nowMs - lastMs)}, from ${shortIsoOf(lastMs)} to ${shortIsoOf(nowMs)}`;
  await putAlert(table, {
    id: `watchdog-back~${lastMs}`,
    topic: "notify",
    kind: "watchdog-back",
    atMs: nowMs,
    reason: `the watchdog was away for ${away}; it has gone through what happened meanwhile, and tells what is wrong`,
  });
  await noteAtWork({ table, clock });
};

/**
 * So that passes that fail for long are not taken for an absence, wherever the cursor is by now. The next pass tries all
 * again anyway.
 */
export const noteAtWork = async ({ table, clock }: Pick<Deps, "table" | "clock">): Promise<void> => {
  const nowMs = clock.nowMs();
  await table
    .write({
      key: CURSOR_KEY,
      condition: any(absent("atWorkAtMs"), lessThan("atWorkAtMs", nowMs)),
      changes: [set("atWorkAtMs", nowMs)],
    })
    .catch(() => undefined);
};
