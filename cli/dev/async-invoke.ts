import { randomUUID } from "node:crypto";
import { messageOf } from "../../lib/core/errors.ts";
import { isoOf } from "../../lib/core/time.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";

export interface AsyncInvokeOptions {
  readonly functionArn: string;
  readonly handler: (event: unknown, context: { awsRequestId: string }) => Promise<void>;
  /** Waits before the second try, the third, ...; Lambda's own are one minute and two. */
  readonly retryWaitsMs: readonly number[];
  /** The function's on-failure destination. */
  readonly onFailure: (record: FailureRecord) => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly report: (line: string) => void;
}

/** What Lambda sends to an on-failure destination once its tries are used up. */
export interface FailureRecord {
  readonly version: "1.0";
  readonly timestamp: string;
  readonly requestContext: {
    readonly requestId: string;
    readonly functionArn: string;
    readonly condition: "RetriesExhausted";
    readonly approximateInvokeCount: number;
  };
  readonly requestPayload: unknown;
  readonly responseContext: {
    readonly statusCode: 200;
    readonly executedVersion: "$LATEST";
    readonly functionError: "Unhandled";
  };
  readonly responsePayload: {
    readonly errorType: string;
    readonly errorMessage: string;
    readonly trace: readonly string[];
  };
}

export interface AsyncInvoke {
  /** Takes the event and returns at once, as an asynchronous invoke does. */
  send(event: unknown): void;
  /** Waits for invocations under way. Events between two tries are let go: the watchdog finds their slots. */
  stop(): Promise<void>;
}

const payloadOf = (error: unknown): FailureRecord["responsePayload"] =>
  error instanceof Error
    ? { errorType: error.name, errorMessage: error.message, trace: (error.stack ?? "").split("\n") }
    : { errorType: "Error", errorMessage: String(error), trace: [] };

const exhausted = (
  { clock, functionArn }: AsyncInvokeOptions,
  requestId: string,
  event: unknown,
  tries: number,
  error: unknown,
): FailureRecord => ({
  version: "1.0",
  timestamp: isoOf(clock.nowMs()),
  requestContext: { requestId, functionArn, condition: "RetriesExhausted", approximateInvokeCount: tries },
  requestPayload: event,
  responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
  responsePayload: payloadOf(error),
});

/** Lambda's asynchronous invoke: nobody sees the answer, a throw is tried again, then kept for a person. */
export const makeAsyncInvoke = (options: AsyncInvokeOptions): AsyncInvoke => {
  const { handler, onFailure, report, retryWaitsMs, timers } = options;
  const running = new Set<Promise<void>>();
  let stopped = false;

  const pause = (waitMs: number): Promise<void> =>
    new Promise((resolve) => {
      timers.after(waitMs, resolve);
    });

  const attempt = async (event: unknown, requestId: string, tries: number): Promise<void> => {
    try {
      await handler(event, { awsRequestId: requestId });
    } catch (error) {
      const waitMs = retryWaitsMs[tries - 1];
      if (waitMs !== undefined) {
        later(event, requestId, tries + 1, waitMs);
        return;
      }
      const message = messageOf(error);
      report(`the dispatcher gave up on an event after ${tries} tries: ${message}`);
      await onFailure(exhausted(options, requestId, event, tries, error));
    }
  };

  const track = (work: Promise<void>): void => {
    const entry = work
      .catch((error: unknown) => {
        report(`an event is lost to the dispatch-failures queue: ${String(error)}`);
      })
      .finally(() => running.delete(entry));
    running.add(entry);
  };

  const later = (event: unknown, requestId: string, tries: number, waitMs: number): void => {
    // Not tracked: a stop does not wait for the next try.
    void pause(waitMs).then(() => {
      if (!stopped) track(attempt(event, requestId, tries));
    });
  };

  return {
    send: (event) => {
      if (!stopped) track(attempt(event, randomUUID(), 1));
    },
    stop: async () => {
      stopped = true;
      await Promise.all(running);
    },
  };
};
