import { randomUUID } from "node:crypto";
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { messageOf } from "../../lib/core/errors.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";
import { lambdaContext } from "./lambda-context.ts";

/** One message as the queue hands it out; the names are those of the Lambda event, not of the SQS API. */
export type ReceivedMessage = Pick<
  SQSRecord,
  "messageId" | "receiptHandle" | "body" | "attributes" | "messageAttributes" | "md5OfBody"
>;

/** What the mapping needs of a queue. Each call rejects when the queue does not answer. */
export interface MessageSource {
  /** At most `max` messages (1 to 10), after at most `waitSeconds`; none is an ordinary answer. */
  receive(max: number, waitSeconds: number): Promise<readonly ReceivedMessage[]>;
  remove(receiptHandle: string): Promise<void>;
  /** Makes the message visible again soon, for somebody else. */
  giveBack(receiptHandle: string): Promise<void>;
}

export interface MappingOptions {
  readonly source: MessageSource;
  readonly queueArn: string;
  readonly region: string;
  readonly functionName: string;
  readonly functionTimeoutMs: number;
  readonly handler: (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;
  /** Messages per invocation, at most. Ours is one at a time, so that no message pays for its neighbour. */
  readonly batchSize?: number;
  /** Invocations at once. */
  readonly concurrency: number;
  /** How long one receive waits for a message, at most 20 s. `stop` waits for the receive under way. */
  readonly waitSeconds?: number;
  readonly clock: Clock;
  readonly timers: Timers;
  /** One line for people: the queue went away, or came back; a batch failed as a whole. */
  readonly report: (line: string) => void;
}

export interface Mapping {
  /** No receive begins after the call. Resolves when all running invocations are over. */
  stop(): Promise<void>;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** So many failures in a row are told: fewer are an emulator that is started again, which is told by itself. */
const SAID_AFTER = 5;
/** SQS hands out no more than that in one receive. */
const MOST_PER_RECEIVE = 10;
const DELETE_TRIES = 5;

const waitBefore = (failures: number): number =>
  Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_WAIT_MS);

const pause = (timers: Timers, waitMs: number): Promise<void> =>
  new Promise((resolve) => {
    timers.after(waitMs, resolve);
  });

const recordOf = (message: ReceivedMessage, { queueArn, region }: MappingOptions): SQSRecord => ({
  ...message,
  eventSource: "aws:sqs",
  eventSourceARN: queueArn,
  awsRegion: region,
});

/**
 * Which messages the function has dealt with. As Lambda judges it: no answer or an empty list = all; an
 * identifier that is empty or not in the batch = none, for nobody knows what the function meant.
 */
export const doneOf = (
  batch: readonly ReceivedMessage[],
  answer: SQSBatchResponse | undefined,
): readonly ReceivedMessage[] => {
  const failed = new Set((answer?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier));
  const known = new Set(batch.map(({ messageId }) => messageId));
  if ([...failed].some((id) => !known.has(id))) return [];
  return batch.filter(({ messageId }) => !failed.has(messageId));
};

const batchesOf = (messages: readonly ReceivedMessage[], size: number): readonly ReceivedMessage[][] =>
  Array.from({ length: Math.ceil(messages.length / size) }, (_, index) =>
    messages.slice(index * size, (index + 1) * size),
  );

/** A lost delete only means one delivery more, which the run's record absorbs: so tried again, not for ever. */
const removeAll = async (options: MappingOptions, messages: readonly ReceivedMessage[]): Promise<void> => {
  for (const { receiptHandle } of messages) {
    for (let failures = 1; failures <= DELETE_TRIES; failures++) {
      try {
        await options.source.remove(receiptHandle);
        break;
      } catch {
        await pause(options.timers, waitBefore(failures));
      }
    }
  }
};

const invoke = async (options: MappingOptions, batch: readonly ReceivedMessage[]): Promise<void> => {
  const { clock, functionName, functionTimeoutMs, handler, region, report } = options;
  const context = lambdaContext({
    functionName,
    region,
    requestId: randomUUID(),
    deadlineMs: clock.nowMs() + functionTimeoutMs,
    clock,
  });
  let answer: SQSBatchResponse | undefined;
  try {
    answer = await handler({ Records: batch.map((message) => recordOf(message, options)) }, context);
  } catch (error) {
    // The messages stay as they are: visibility brings them back, the queue's own redrive bounds that.
    report(`${functionName} failed, its messages come back: ${messageOf(error)}`);
    return;
  }
  await removeAll(options, doneOf(batch, answer));
};

/** A gate for the receive loop: opens each time an invocation ends. */
const slots = (concurrency: number) => {
  const running = new Set<Promise<void>>();
  return {
    free: () => concurrency - running.size,
    oneEnds: async () => {
      await Promise.race(running);
    },
    allEnd: async () => {
      await Promise.all(running);
    },
    run: (work: Promise<void>) => {
      const entry = work.finally(() => running.delete(entry));
      running.add(entry);
    },
  };
};

/**
 * What Lambda's event source mapping does between a queue and a function: receives, invokes with an `SQSEvent`,
 * deletes what the function has not reported as failed. A thrown error fails the whole batch. Nothing is made
 * visible by the mapping; visibility and redrive are the queue's own. Lives through a queue that goes away and
 * comes back, and says so once where it stays away.
 */
export const startMapping = (options: MappingOptions): Mapping => {
  const { batchSize = 1, concurrency, functionName, report, source, timers, waitSeconds = 20 } = options;
  const invocations = slots(concurrency);
  let stopped = false;
  let failures = 0;

  const receive = async (): Promise<readonly ReceivedMessage[]> => {
    const max = Math.min(invocations.free() * batchSize, MOST_PER_RECEIVE);
    try {
      const messages = await source.receive(max, waitSeconds);
      if (failures >= SAID_AFTER) report(`the queue of ${functionName} answers again`);
      failures = 0;
      return messages;
    } catch (error) {
      failures += 1;
      if (failures === SAID_AFTER && !stopped) {
        report(`the queue of ${functionName} does not answer, trying on: ${messageOf(error)}`);
      }
      if (!stopped) await pause(timers, waitBefore(failures));
      return [];
    }
  };

  const loop = async (): Promise<void> => {
    while (!stopped) {
      if (invocations.free() === 0) {
        await invocations.oneEnds();
        continue;
      }
      const messages = await receive();
      if (stopped) {
        await Promise.allSettled(messages.map(({ receiptHandle }) => source.giveBack(receiptHandle)));
        return;
      }
      for (const batch of batchesOf(messages, batchSize)) invocations.run(invoke(options, batch));
    }
  };

  const looping = loop();
  return {
    stop: async () => {
      stopped = true;
      await looping;
      await invocations.allEnd();
    },
  };
};
