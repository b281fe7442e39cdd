import { InvalidInput } from "../errors.ts";
import { isManualKey, isSlotKey, slotMsOf } from "../identity.ts";
import { isRecord, type Json } from "../json.ts";

/**
 * What made the occurrence: its schedule, the watchdog in the schedule's place, a person, a backfill, or a monitor's
 * ping.
 */
export const TRIGGERS = ["schedule", "watchdog", "manual", "backfill", "ping"] as const;
export type Trigger = (typeof TRIGGERS)[number];

/** "Somebody please look at this run." Any number of them, early, late or twice, is harmless. */
export interface RunMessage {
  readonly subject: string;
  readonly slotKey: string;
  /** The attempt set meant, from 1. */
  readonly epoch: number;
  readonly trigger: Trigger;
  /** When the run was asked for; the start stores it. */
  readonly queuedAtMs: number;
  /** The message asks for one shard of the run; absent = for the run itself. */
  readonly shard?: ShardMessage;
}

/** Everything that a worker needs to know of a shard, so that it reads nothing. */
export interface ShardMessage {
  /** Which list of the run's shards. */
  readonly plan: number;
  /** From 0. */
  readonly index: number;
  readonly total: number;
  /** Absent = the index as text. */
  readonly key?: string;
  readonly input?: Json;
  /** The run's own input, which each of its shards gets; absent = the job's. */
  readonly runInput?: Json;
  /** The run's own input lies in SIDE. */
  readonly sideInput?: boolean;
}

/** The instant from which the start deadline counts: the slot, or when somebody asked for the run. */
export const dueMsOf = ({ trigger, queuedAtMs, slotKey, epoch }: RunMessage): number => {
  const asked = trigger === "manual" || trigger === "backfill" || epoch > 1 || isManualKey(slotKey);
  return asked ? queuedAtMs : slotMsOf(slotKey);
};

/** Written into each message body, so that a later reader knows what it reads. */
const MESSAGE_VERSION = 1;

/** SQS takes no characters that XML has none of; of those, JSON text can have these two. */
export const messageText = (message: RunMessage): string =>
  JSON.stringify({ v: MESSAGE_VERSION, ...message }).replaceAll(/[\ufffe\uffff]/g, (character) =>
    character === "\ufffe" ? "\\ufffe" : "\\uffff",
  );

const isCount = (value: unknown, least: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= least;

const readShard = (value: unknown): ShardMessage | undefined => {
  if (!isRecord(value)) return undefined;
  const { plan, index, total, key, input, runInput, sideInput } = value;
  if (!isCount(plan, 1) || !isCount(index, 0) || !isCount(total, 1) || index >= total) return undefined;
  return {
    plan,
    index,
    total,
    ...(typeof key === "string" ? { key } : {}),
    ...(input === undefined ? {} : { input: input as Json }),
    ...(runInput === undefined ? {} : { runInput: runInput as Json }),
    ...(sideInput === true ? { sideInput } : {}),
  };
};

export const isTrigger = (value: unknown): value is Trigger => TRIGGERS.some((trigger) => trigger === value);

/**
 * The message in the body of an SQS record.
 * @throws InvalidInput (`poison_message`) when the body is no message of ours; another delivery cannot mend that.
 */
export const parseMessage = (body: string): RunMessage => {
  const poison = (why: string) => new InvalidInput("poison_message", `the message cannot be read: ${why}`);
  let raw: unknown;
  try {
    raw = JSON.parse(body);
  } catch (cause) {
    throw new InvalidInput("poison_message", "the message cannot be read: no JSON", {}, { cause });
  }
  if (!isRecord(raw)) throw poison("not an object");
  const { v, subject, slotKey, epoch, trigger, queuedAtMs, shard: shardValue } = raw;
  if (v !== MESSAGE_VERSION) throw poison(`version ${JSON.stringify(v)} is not ${MESSAGE_VERSION}`);
  if (typeof subject !== "string" || typeof slotKey !== "string") throw poison("no subject or slotKey");
  if (!isSlotKey(slotKey)) throw poison(`"${slotKey}" is no slot key`);
  if (typeof epoch !== "number" || !Number.isInteger(epoch) || epoch < 1) throw poison("no epoch");
  if (!isTrigger(trigger) || typeof queuedAtMs !== "number") throw poison("no trigger or queuedAtMs");
  const shard = readShard(shardValue);
  if (shardValue !== undefined && shard === undefined) throw poison("no shard that can be read");
  return { subject, slotKey, epoch, trigger, queuedAtMs, ...(shard === undefined ? {} : { shard }) };
};
