import {
  alertIndexKey,
  alertKey,
  alertMonthOf,
  deliveryAttribute,
  expiresAtS,
  ITEM_VERSION,
  WAITING_ALERTS,
} from "../items.ts";
import { isRecord } from "../json.ts";
import { trimmed } from "../json-safe.ts";
import {
  absent,
  all,
  any,
  atMost,
  equals,
  exists,
  type Item,
  type Path,
  remove,
  set,
  type Write,
} from "../write.ts";
import type { Alert } from "./alert.ts";

/** Of each text of an alert: it is a pointer to a record, which has the whole of them. */
const MAX_TEXT_BYTES = 1_000;

const shortened = (alert: Alert): Alert => {
  const short = (text: string): string => trimmed(text, MAX_TEXT_BYTES);
  const { reason, error } = alert;
  return {
    ...alert,
    reason: short(reason),
    ...(error && { error: { name: short(error.name), message: short(error.message) } }),
  };
};

/** Stores an alert for whoever delivers it. Refused when it is there already: then it is told, or will be. */
export const storeAlert = (alert: Alert): Write => ({
  key: alertKey(alert.id),
  condition: absent("v"),
  changes: [
    set("v", ITEM_VERSION),
    set("alert", JSON.stringify(shortened(alert))),
    set("atMs", alert.atMs),
    set("badMonth", WAITING_ALERTS),
    set("badKey", alertIndexKey(alert.atMs, alert.id)),
    set("expiresAtS", expiresAtS(alert.atMs)),
  ],
});

/** Undefined for what this version cannot read. */
export const readAlert = (item: Item): Alert | undefined => {
  try {
    const value: unknown = JSON.parse(String(item["alert"]));
    return isRecord(value) && typeof value["id"] === "string" && typeof value["reason"] === "string"
      ? (value as unknown as Alert)
      : undefined;
  } catch {
    return undefined;
  }
};

/** Takes an alert that nobody can read out of the way of the others. */
export const setAside = ({ pk, sk }: Item, nowMs: number): Write => ({
  key: { pk: String(pk), sk: String(sk) },
  condition: equals("badMonth", WAITING_ALERTS),
  changes: [set("badMonth", alertMonthOf(nowMs))],
});

/** How far a channel is with an alert. */
export interface Delivery {
  readonly attempts: number;
  /** Nobody tries before. */
  readonly nextAtMs: number;
  readonly toldAtMs?: number;
  readonly gaveUpAtMs?: number;
  /** Why the last attempt failed. */
  readonly error?: string;
  /** The receiver refused this very alert; it may take others. */
  readonly refused?: true;
}

/** Undefined when the channel has not been tried. */
export const deliveryIn = (item: Item, channel: string): Delivery | undefined => {
  const value: unknown = item[deliveryAttribute(channel)];
  if (!isRecord(value)) return undefined;
  const { attempts, nextAtMs, toldAtMs, gaveUpAtMs, error, refused } = value;
  return {
    attempts: Number(attempts),
    nextAtMs: Number(nextAtMs),
    ...(typeof toldAtMs === "number" && { toldAtMs }),
    ...(typeof gaveUpAtMs === "number" && { gaveUpAtMs }),
    ...(typeof error === "string" && { error }),
    ...(refused === true && { refused }),
  };
};

/** Of every channel that has been tried, by name. */
export const deliveriesIn = (item: Item): readonly (readonly [channel: string, delivery: Delivery])[] => {
  const prefix = deliveryAttribute("");
  return Object.keys(item)
    .filter((name) => name.startsWith(prefix))
    .sort()
    .flatMap((name) => {
      const channel = name.slice(prefix.length);
      const delivery = deliveryIn(item, channel);
      return delivery === undefined ? [] : [[channel, delivery] as const];
    });
};

/** Is the channel through with it, told or not? */
export const isSettled = (delivery: Delivery | undefined): boolean =>
  delivery?.toldAtMs !== undefined || delivery?.gaveUpAtMs !== undefined;

/** Which alert, and to which channel. */
export interface DeliveryKey {
  readonly id: string;
  readonly channel: string;
}

const part = ({ channel }: DeliveryKey, name: string): Path => [deliveryAttribute(channel), name];

const unsettled = (of: DeliveryKey) => [absent(part(of, "toldAtMs")), absent(part(of, "gaveUpAtMs"))];

export interface DeliveryClaim extends DeliveryKey {
  readonly owner: string;
  readonly attempts: number;
  readonly nowMs: number;
  /** Whoever claims and is not heard of again keeps others off so long. */
  readonly leaseMs: number;
}

/** Taken before the message is sent: of several who try at once, one sends. */
export const claimDelivery = (claim: DeliveryClaim): Write => {
  const { id, channel, owner, attempts, nowMs, leaseMs } = claim;
  const attribute = deliveryAttribute(channel);
  return {
    key: alertKey(id),
    condition: all(
      exists("v"),
      any(absent(attribute), all(atMost(part(claim, "nextAtMs"), nowMs), ...unsettled(claim))),
    ),
    changes: [set(attribute, { attempts, owner, nextAtMs: nowMs + leaseMs })],
  };
};

/** Of a refused claim: its own first write refused it, whose answer was lost. */
export const isClaimedBy = (
  item: Item,
  { channel, owner }: Pick<DeliveryClaim, "channel" | "owner">,
): boolean => {
  const value: unknown = item[deliveryAttribute(channel)];
  return isRecord(value) && value["owner"] === owner;
};

/** The channel has taken it. Holds whoever claims by now: what is told is told. */
export const markTold = (of: DeliveryKey, nowMs: number): Write => ({
  key: alertKey(of.id),
  condition: exists(deliveryAttribute(of.channel)),
  changes: [set(part(of, "toldAtMs"), nowMs), remove(part(of, "error"))],
});

export interface FailedDelivery extends DeliveryKey {
  readonly owner: string;
  readonly error: string;
  readonly nextAtMs: number;
  readonly refused: boolean;
}

/** The channel has not taken it; only of an attempt that nobody has succeeded. */
export const markFailed = (failed: FailedDelivery): Write => ({
  key: alertKey(failed.id),
  condition: all(equals(part(failed, "owner"), failed.owner), ...unsettled(failed)),
  changes: [
    set(part(failed, "nextAtMs"), failed.nextAtMs),
    set(part(failed, "error"), trimmed(failed.error, MAX_TEXT_BYTES)),
    failed.refused ? set(part(failed, "refused"), true) : remove(part(failed, "refused")),
  ],
});

/** The channel will not hear of it any more. Refused where somebody is trying at this moment. */
export const giveUp = (
  of: DeliveryKey,
  { attempts, error }: Pick<Delivery, "attempts" | "error">,
  nowMs: number,
): Write => {
  const attribute = deliveryAttribute(of.channel);
  return {
    key: alertKey(of.id),
    condition: all(
      exists("v"),
      any(absent(attribute), all(atMost(part(of, "nextAtMs"), nowMs), ...unsettled(of))),
    ),
    changes: [
      set(attribute, {
        attempts,
        nextAtMs: nowMs,
        gaveUpAtMs: nowMs,
        error: error ?? "an earlier alert stood in its way until it was too old",
      }),
    ],
  };
};

/** It waits no more: each of these channels is through with it. */
export const closeAlert = (alert: Alert, channels: readonly string[]): Write => ({
  key: alertKey(alert.id),
  condition: all(
    equals("badMonth", WAITING_ALERTS),
    ...channels.map((channel) =>
      any(
        exists(part({ id: alert.id, channel }, "toldAtMs")),
        exists(part({ id: alert.id, channel }, "gaveUpAtMs")),
      ),
    ),
  ),
  changes: [set("badMonth", alertMonthOf(alert.atMs))],
});
