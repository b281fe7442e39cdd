import type { Alert, AlertKind, AlertTopic } from "../../core/alerts/alert.ts";
import { deliveriesIn, readAlert } from "../../core/alerts/outbox.ts";
import { ANY_ALERT, alertMonthOf, RETENTION_MS, WAITING_ALERTS } from "../../core/items.ts";
import { DAY_MS, shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Table } from "../../ports/table.ts";

export interface AlertView {
  readonly id: string;
  readonly topic: AlertTopic;
  readonly kind: AlertKind;
  readonly at: string;
  readonly job: string | null;
  readonly runId: string | null;
  readonly reason: string;
  /** Is there a channel that does not have it yet? */
  readonly waits: boolean;
  /** Those that have been tried. */
  readonly channels: readonly {
    readonly name: string;
    readonly state: "told" | "waiting" | "given-up";
    readonly attempts: number;
    /** When it was told or given up, or is tried next. */
    readonly at: string;
    readonly error?: string;
  }[];
}

const viewsOf = (item: Item): readonly AlertView[] => {
  const alert = readAlert(item);
  return alert === undefined ? [] : [viewOf(item, alert)];
};

const viewOf = (item: Item, alert: Alert): AlertView => {
  const { id, topic, kind, atMs, job, runId, reason } = alert;
  return {
    id,
    topic,
    kind,
    at: shortIsoOf(atMs),
    job: job ?? null,
    runId: runId ?? null,
    reason,
    waits: item["badMonth"] === WAITING_ALERTS,
    channels: deliveriesIn(item).map(([name, { attempts, nextAtMs, toldAtMs, gaveUpAtMs, error }]) => ({
      name,
      state: toldAtMs !== undefined ? "told" : gaveUpAtMs !== undefined ? "given-up" : "waiting",
      attempts,
      at: shortIsoOf(toldAtMs ?? gaveUpAtMs ?? nextAtMs),
      ...(error !== undefined && { error }),
    })),
  };
};

/** Newest first: what waits and what has been told, from the index alone. */
export const makeListAlerts =
  ({ table, clock }: { readonly table: Table; readonly clock: Clock }) =>
  async (limit: number): Promise<readonly AlertView[]> => {
    const nowMs = clock.nowMs();
    const query = (pk: string, count: number): Promise<readonly Item[]> =>
      table.query({ ...ANY_ALERT, pk, descending: true, limit: count });
    const found = [...(await query(WAITING_ALERTS, limit))];
    const months = new Set(
      Array.from({ length: RETENTION_MS / DAY_MS + 1 }, (_, day) => alertMonthOf(nowMs - day * DAY_MS)),
    );
    let told = 0;
    for (const month of months) {
      if (told >= limit) break;
      const items = await query(month, limit - told);
      told += items.length;
      found.push(...items);
    }
    const keyOf = (item: Item): string => String(item["badKey"]);
    return found
      .sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1))
      .slice(0, limit)
      .flatMap(viewsOf);
  };
