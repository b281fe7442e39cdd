import type { SQSRecord } from "aws-lambda";
import type { Deps } from "../app/deps.ts";
import { keepPoison } from "../app/path/dead-letters.ts";
import { dispatch } from "../app/path/dispatch.ts";
import { BelfryError, InvalidInput } from "../core/errors.ts";
import { isRecord } from "../core/json.ts";
import type { SqsHandler } from "./sqs.ts";

type FailureDeps = Pick<Deps, "table" | "queue" | "clock" | "random" | "journal" | "jobs" | "timings">;

/** A schedule's event, and the request that failed on it: its claims carry that as their owner. */
interface Failed {
  readonly event: unknown;
  readonly requestId: string | undefined;
}

/**
 * What failed: the event bare, as EventBridge Scheduler's own dead letters are, or as the `requestPayload` of a Lambda
 * on-failure destination, which also names the request.
 * See https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
 */
const failedIn = (body: string): Failed => {
  const value: unknown = JSON.parse(body);
  if (!isRecord(value) || !("requestPayload" in value)) return { event: value, requestId: undefined };
  const { requestPayload, requestContext } = value;
  const requestId = isRecord(requestContext) ? requestContext["requestId"] : undefined;
  return { event: requestPayload, requestId: typeof requestId === "string" ? requestId : undefined };
};

/**
 * Dispatches what failed before, under the identity it had: a claim that was made is known by its record. What can
 * never be dispatched is kept as poison; what still fails comes back.
 */
export const redispatchEach =
  (deps: FailureDeps): SqsHandler =>
  async ({ Records }) => {
    const settled = await Promise.allSettled(Records.map(async (record) => redispatch(deps, record)));
    const batchItemFailures = Records.flatMap(({ messageId }, index) =>
      settled[index]?.status === "fulfilled" ? [] : [{ itemIdentifier: messageId }],
    );
    return { batchItemFailures };
  };

/** Will it fail so again, however often? */
const isHopeless = (error: unknown): error is Error =>
  error instanceof InvalidInput ||
  error instanceof SyntaxError ||
  (error instanceof AggregateError && error.errors.every(isHopeless));

const redispatch = async (deps: FailureDeps, { messageId, body, attributes }: SQSRecord): Promise<void> => {
  try {
    const { event, requestId } = failedIn(body);
    // Under the same request the claims that were made are known as our own, and what was not sent is sent now.
    await dispatch(deps, event, requestId ?? `redispatch-${messageId}`);
  } catch (error) {
    if (!isHopeless(error)) {
      const why = error instanceof BelfryError ? error.message : String(error);
      deps.journal.notice("error", "message-failed", { messageId, why });
      throw error;
    }
    const sentAtMs = Number(attributes.SentTimestamp);
    await keepPoison(deps, { id: messageId, sentAtMs, body, why: error.message });
  }
};
