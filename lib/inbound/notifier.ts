import { type DeliverDeps, deliver } from "../app/notify/deliver.ts";
import { type AlarmDeps, notifyAlarm } from "../app/notify/notify-alarm.ts";
import { putAlert } from "../app/notify/outbox.ts";
import { readAlarmChange } from "../core/alarms/alarm-change.ts";
import { isRecord } from "../core/json.ts";

export type NotifierDeps = AlarmDeps & DeliverDeps;

interface SnsRecord {
  readonly messageId: string;
  readonly message: string;
}

/** The records of an SNS event; none for the event of the notifier's own schedule. */
const recordsIn = (event: unknown): readonly SnsRecord[] => {
  const records = isRecord(event) ? event["Records"] : undefined;
  if (!Array.isArray(records)) return [];
  return records.map((record: unknown) => {
    const sns = isRecord(record) ? record["Sns"] : undefined;
    if (!isRecord(sns) || typeof sns["Message"] !== "string")
      throw new TypeError("a record that is not of SNS");
    return { messageId: String(sns["MessageId"]), message: sns["Message"] };
  });
};

/** What is no alarm and came to the alarms' topic all the same, somebody wants to be told. */
const tell = async (deps: NotifierDeps, { messageId, message }: SnsRecord): Promise<void> => {
  const change = readAlarmChange(message);
  if (change !== undefined) return notifyAlarm(deps, change);
  const reason = `a message that is no alarm came to the alarms' topic: ${message}`;
  const atMs = deps.clock.nowMs();
  await putAlert(deps.table, { id: `sns~${messageId}`, topic: "notify", kind: "alarm", atMs, reason });
};

/**
 * Takes alarms as SNS delivers them, and the minute of its own schedule. Each invocation ends with a pass over the
 * outbox, so that an alarm is told at once and what could not be told before is tried again.
 */
export const notifierHandler =
  (deps: NotifierDeps) =>
  async (event: unknown): Promise<void> => {
    const records = recordsIn(event);
    const told = await Promise.allSettled(records.map((record) => tell(deps, record)));
    await deliver(deps);
    for (const one of told) if (one.status === "rejected") throw one.reason;
    if (records.length === 0) deps.journal.notice("info", "notifier-pass", {});
  };
