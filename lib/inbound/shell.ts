import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { errorFacts } from "../core/json-safe.ts";
import type { Journal } from "../ports/journal.ts";

/** What our handlers read of a Lambda context. */
export type Invocation = Pick<Context, "awsRequestId">;

/**
 * What every Lambda of ours has around its handler: an error is logged with the request it belongs to, then thrown
 * on, so that Lambda counts it and retries.
 */
export const shell = <Event, Result>(
  journal: Journal,
  handler: (event: Event, invocation: Invocation) => Promise<Result>,
): ((event: Event, invocation: Invocation) => Promise<Result>) => {
  const wrapped = middy<Event, Result, Error, Context>({ timeoutEarlyInMillis: 0 })
    .onError(({ error, context }) => {
      const { name, message, stack } = errorFacts(error);
      const why = stack ?? `${name}: ${message}`;
      journal.notice("error", "invocation-failed", { requestId: context.awsRequestId, why });
    })
    .handler(handler);
  // The embedded stack has no whole context to give; with the early time-out off, nobody reads the rest of it.
  return (event, invocation) => wrapped(event, invocation as Context);
};
