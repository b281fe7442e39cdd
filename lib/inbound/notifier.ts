import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { type DeliverDeps, deliver } from "../app/notify/deliver.ts";
import { type AlarmDeps, notifyAlarm } from "../app/notify/notify-alarm.ts";
import { putAlert } from "../app/notify/outbox.ts";
import { readAlarmChange } from "../core/alarms/alarm-change.ts";
import { isRecord } from "../core/json.ts";
import { errorFacts } from "../core/json-safe.ts";

export type NotifierDeps = AlarmDeps & DeliverDeps;

/** What somebody has published to the alarms' topic. */
interface Published {
  /** The same however often it is delivered. */
  readonly id: string;
  readonly text: string;
}

/** As SNS puts it into the queue; what has another form was put there by somebody else, and is told as it is. */
const publishedIn = ({ messageId, body }: SQSRecord): Published => {
  const { Message: text, MessageId: id } = notificationIn(body);
  return typeof text === "string" && typeof id === "string" ? { id, text } : { id: messageId, text: body };
};

const notificationIn = (body: string): { readonly Message?: unknown; readonly MessageId?: unknown } => {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
};

/** What is no alarm and came to the alarms' topic all the same, somebody wants to be told. */
const tell = async (deps: NotifierDeps, { id, text }: Published): Promise<void> => {
  const change = readAlarmChange(text);
  if (change !== undefined) return notifyAlarm(deps, change);
  const reason = `a message that is no alarm came to the alarms' topic: ${text}`;
  const atMs = deps.clock.nowMs();
  await putAlert(deps.table, { id: `sns~${id}`, topic: "notify", kind: "alarm", atMs, reason });
};

/** What could not be stored comes back with its queue, for as long as that keeps it. */
const takeAlarms = async (
  deps: NotifierDeps,
  records: readonly SQSRecord[],
): Promise<SQSBatchResponse["batchItemFailures"]> => {
  // `async` matters: one that cannot be read must fail by itself, not with its batch.
  const taken = await Promise.allSettled(records.map(async (record) => tell(deps, publishedIn(record))));
  return records.flatMap(({ messageId: itemIdentifier }, i) => {
    const one = taken[i];
    if (one?.status !== "rejected") return [];
    const { name, message } = errorFacts(one.reason);
    deps.journal.notice("error", "invocation-failed", { why: `${name}: ${message}` });
    return [{ itemIdentifier }];
  });
};

/**
 * Takes alarms from the queue of their topic, and the minute of its own schedule. Each invocation ends with a pass over the
 * outbox, so that an alarm is told at once and what could not be told before is tried again.
 */
export const notifierHandler =
  (deps: NotifierDeps) =>
  async (event: unknown): Promise<SQSBatchResponse> => {
    const records = isQueueEvent(event) ? event.Records : [];
    const batchItemFailures = await takeAlarms(deps, records);
    // Where it throws, all of them come back, and those that are stored are known by their ids.
    await deliver(deps);
    if (records.length === 0) deps.journal.notice("info", "notifier-pass", {});
    return { batchItemFailures };
  };

const isQueueEvent = (event: unknown): event is SQSEvent =>
  isRecord(event) && Array.isArray(event["Records"]);
