import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { type DeliverDeps, deliver, type Route } from "../../../lib/app/notify/deliver.ts";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import type { Alert } from "../../../lib/core/alerts/alert.ts";
import { type Delivery, deliveryIn } from "../../../lib/core/alerts/outbox.ts";
import { alertKey } from "../../../lib/core/items.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import type { Item } from "../../../lib/core/write.ts";
import type { Channel, SendAnswer } from "../../../lib/ports/channel.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { msOf } from "../../support/path.ts";

export const taken: SendAnswer = { kind: "taken" };
export const away: SendAnswer = { kind: "not-now", reason: "HTTP 502" };
export const refusal: SendAnswer = { kind: "refused", reason: "HTTP 400" };

export interface Receiver {
  readonly channel: Channel;
  /** The ids of each message, in the order of their arrival. */
  readonly heard: string[][];
  /** What it answers; default: taken. */
  answer: (ids: readonly string[]) => SendAnswer | Promise<SendAnswer>;
}

export const makeReceiver = (name: string, alertsPerMessage = 10): Receiver => {
  const receiver: Receiver = {
    heard: [],
    answer: () => taken,
    channel: {
      name,
      alertsPerMessage,
      send: async (alerts) => {
        const ids = alerts.map(({ id }) => id);
        const answer = await receiver.answer(ids);
        if (answer.kind === "taken") receiver.heard.push(ids);
        return answer;
      },
    },
  };
  return receiver;
};

/** A channel of `notify`; pages are told there too. */
export const onNotify = ({ channel }: Receiver): Route => ({ channel, topics: ["notify", "page"] });
export const onPage = ({ channel }: Receiver): Route => ({ channel, topics: ["page"] });

export interface OutboxSetup {
  readonly table: Table;
  readonly notices: { readonly code: string; readonly fields: { readonly [name: string]: unknown } }[];
  nowMs: number;
  readonly deps: DeliverDeps;
  put(id: string, alert?: Partial<Alert>): Promise<void>;
  /** One pass, so many milliseconds later. */
  pass(laterMs?: number): Promise<void>;
  item(id: string): Promise<Item | undefined>;
  delivery(id: string, channel: string): Promise<Delivery | undefined>;
}

export const setupOutbox = (
  routes: readonly Route[],
  options: Pick<DeliverDeps, "quietHours"> & { readonly now?: string; readonly table?: Table } = {},
): OutboxSetup => {
  const { now = "2026-10-08T02:00:00Z", table = memoryTable(), ...rest } = options;
  const notices: OutboxSetup["notices"] = [];
  let tokens = 0;
  const setup: OutboxSetup = {
    table,
    notices,
    nowMs: msOf(now),
    deps: {
      table,
      clock: { nowMs: () => setup.nowMs },
      random: { token: () => `owner-${tokens++}`, fraction: () => 0.5 },
      journal: {
        attempt: () => undefined,
        handlerLine: () => undefined,
        notice: (_level, code, fields) => notices.push({ code, fields }),
      },
      timings: AWS_TIMINGS,
      routes,
      ...rest,
    },
    put: (id, alert) =>
      putAlert(table, {
        id,
        topic: "notify",
        kind: "failed",
        atMs: setup.nowMs,
        reason: "it threw",
        ...alert,
      }),
    pass: async (laterMs = 0) => {
      setup.nowMs += laterMs;
      await deliver(setup.deps);
    },
    item: (id) => table.get(alertKey(id), { consistent: true }),
    delivery: async (id, channel) => {
      const item = await setup.item(id);
      return item && deliveryIn(item, channel);
    },
  };
  return setup;
};
