import type { Alert, AlertTopic } from "../../core/alerts/alert.ts";
import { deliveryIn, isSettled } from "../../core/alerts/outbox.ts";
import { messageOf } from "../../core/errors.ts";
import { ANY_ALERT, alertKey, WAITING_ALERTS } from "../../core/items.ts";
import { SECOND_MS, shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { AbsentChannel, Bell } from "../../ports/bell.ts";
import type { Deps } from "../deps.ts";

export interface TestAlertDeps extends Pick<Deps, "table" | "clock" | "timers" | "random"> {
  readonly bell: Bell;
}

/** A step on the way of an alert to people. */
export interface Hop {
  readonly name: string;
  readonly ok: boolean;
  /** Why it failed. */
  readonly why?: string;
}

export interface AlertTest {
  readonly id: Alert["id"];
  readonly topic: AlertTopic;
  readonly ok: boolean;
  readonly hops: readonly Hop[];
}

const WAIT_MS = 25 * SECOND_MS;
const POLL_MS = SECOND_MS;

/** Sends a test alert on the way that a real one takes, and says of each hop whether it came through. */
export const makeTestAlert =
  (deps: TestAlertDeps) =>
  async (topic: AlertTopic): Promise<AlertTest> => {
    const id = `test-${deps.random.token()}`;
    const hops = await hopsOf(deps, topic, id);
    return { id, topic, ok: hops.every(({ ok }) => ok), hops };
  };

const hopsOf = async (deps: TestAlertDeps, topic: AlertTopic, id: string): Promise<readonly Hop[]> => {
  const { bell } = deps;
  const channels = bell.channels(topic);
  if (channels.length === 0) {
    const why = `no channel hears of ${topic}: name one under alerts in belfry.config.ts`;
    return [{ name: "channels", ok: false, why }];
  }
  try {
    await bell.ring(topic, id);
  } catch (error) {
    return [{ name: bell.name, ok: false, why: messageOf(error) }];
  }
  const present = channels.filter((channel) => typeof channel === "string");
  const item = await decided(deps, id, present);
  if (item === undefined) {
    const why = `it has made no alert within ${WAIT_MS / SECOND_MS} seconds: the alarm may ring already, or the log of belfry-notifier says why`;
    return [
      { name: bell.name, ok: true },
      { name: "notifier", ok: false, why },
    ];
  }
  const blocked = await blockedChannels(deps, present);
  return [
    { name: bell.name, ok: true },
    { name: "notifier", ok: true },
    ...channels.map((channel) => hopOf(channel, item, blocked)),
  ];
};

/** The alert once each channel has taken it or failed to, or as it is when the wait is over. */
const decided = async (
  { table, clock, timers }: TestAlertDeps,
  id: string,
  channels: readonly string[],
): Promise<Item | undefined> => {
  const untilMs = clock.nowMs() + WAIT_MS;
  for (;;) {
    const item = await table.get(alertKey(id), { consistent: true });
    const isDecided = (channel: string): boolean => {
      const delivery = item && deliveryIn(item, channel);
      return isSettled(delivery) || delivery?.error !== undefined;
    };
    if (channels.every(isDecided) || clock.nowMs() >= untilMs) return item;
    await new Promise<void>((resolve) => {
      timers.after(POLL_MS, resolve);
    });
  }
};

/** Channels that take nothing at the moment, by what an earlier alert met there. */
const blockedChannels = async (
  { table, clock }: TestAlertDeps,
  channels: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const waiting = await table.query({ ...ANY_ALERT, pk: WAITING_ALERTS, limit: 100 });
  const found = channels.flatMap((channel) =>
    waiting.flatMap((item): [string, string][] => {
      const delivery = deliveryIn(item, channel);
      if (delivery?.error === undefined || isSettled(delivery) || delivery.nextAtMs <= clock.nowMs())
        return [];
      return [[channel, `${delivery.error}; it is tried again at ${shortIsoOf(delivery.nextAtMs)}`]];
    }),
  );
  return new Map(found);
};

const hopOf = (channel: string | AbsentChannel, item: Item, blocked: ReadonlyMap<string, string>): Hop => {
  if (typeof channel !== "string") return { name: channel.name, ok: false, why: channel.why };
  const delivery = deliveryIn(item, channel);
  if (delivery?.toldAtMs !== undefined) return { name: channel, ok: true };
  const why = delivery?.error ?? blocked.get(channel) ?? "it has not been tried yet";
  return { name: channel, ok: false, why };
};
