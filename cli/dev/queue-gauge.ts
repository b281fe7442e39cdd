import { GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { WatchedQueue } from "../../lib/core/alarms/alarm.ts";
import { SECOND_MS } from "../../lib/core/time.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";
import { type Measurement, measurement } from "./alarm-board.ts";

export interface QueueGaugeOptions {
  readonly sqs: SQSClient;
  readonly queues: readonly { readonly queue: WatchedQueue; readonly url: string }[];
  readonly everyMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly measured: (measurements: readonly Measurement[]) => void;
}

/**
 * Measures queues as AWS does by itself: how many messages wait, and for how long. The emulator does not tell the age
 * of the oldest one; since when there was always one is as old or older, and alike where a queue is not being emptied.
 */
export const startQueueGauge = (options: QueueGaugeOptions): { stop(): void } => {
  const { clock, everyMs, measured, queues, sqs, timers } = options;
  const waitingSinceMs = new Map<string, number>();
  let timer: { cancel(): void } | undefined;
  let isStopped = false;

  const gauge = async ({
    queue,
    url,
  }: QueueGaugeOptions["queues"][number]): Promise<readonly Measurement[]> => {
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["ApproximateNumberOfMessages"] }),
    );
    const depth = Number(Attributes?.["ApproximateNumberOfMessages"] ?? 0);
    const nowMs = clock.nowMs();
    if (depth === 0) waitingSinceMs.delete(url);
    const sinceMs = waitingSinceMs.get(url) ?? nowMs;
    if (depth > 0) waitingSinceMs.set(url, sinceMs);
    const ageS = (nowMs - sinceMs) / SECOND_MS;
    return [
      measurement({ of: "queue", queue, name: "ApproximateNumberOfMessagesVisible" }, nowMs, depth),
      measurement({ of: "queue", queue, name: "ApproximateAgeOfOldestMessage" }, nowMs, ageS),
    ];
  };

  const look = async (): Promise<void> => {
    // A queue that does not answer has no data, as with CloudWatch.
    const answers = await Promise.allSettled(queues.map(gauge));
    if (isStopped) return;
    measured(answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])));
    wait();
  };

  const wait = (): void => {
    timer = timers.after(everyMs, () => void look());
  };

  wait();
  return {
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
  };
};
