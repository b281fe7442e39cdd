import type { Context } from "aws-lambda";
import type { Clock } from "../../lib/ports/clock.ts";
import { ACCOUNT_ID } from "./resources.ts";

export interface Invocation {
  readonly functionName: string;
  readonly region: string;
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly clock: Clock;
}

/** The second argument of a Lambda handler, as far as it has a meaning on a laptop. */
export const lambdaContext = ({
  functionName,
  region,
  requestId,
  deadlineMs,
  clock,
}: Invocation): Context => ({
  awsRequestId: requestId,
  callbackWaitsForEmptyEventLoop: false,
  functionName,
  functionVersion: "$LATEST",
  invokedFunctionArn: `arn:aws:lambda:${region}:${ACCOUNT_ID}:function:${functionName}`,
  logGroupName: `/aws/lambda/${functionName}`,
  logStreamName: "local",
  memoryLimitInMB: "1024",
  getRemainingTimeInMillis: () => Math.max(0, deadlineMs - clock.nowMs()),
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
});
