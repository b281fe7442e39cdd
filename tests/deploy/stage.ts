import { DescribeStackResourceCommand, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { RunView } from "../../lib/core/runs/run.ts";
import type { Aws } from "./aws.ts";
import type { Commands } from "./commands.ts";
import { SERVICE, STAGE } from "./project.ts";
import { until } from "./report.ts";

/** What a run of the scenario works with. */
export interface Stage {
  readonly aws: Aws;
  readonly commands: Commands;
}

export const QUEUE = (name: string): string => `${SERVICE}-${STAGE}-belfry-${name}`;

export const stateOfStack = async ({ aws }: Stage): Promise<string | undefined> => {
  const StackName = `${SERVICE}-${STAGE}`;
  const answer = await aws.cloudFormation
    .send(new DescribeStacksCommand({ StackName }))
    .catch(() => undefined);
  return answer?.Stacks?.[0]?.StackStatus;
};

export const outputOf = async ({ aws }: Stage, name: string): Promise<string> => {
  const StackName = `${SERVICE}-${STAGE}`;
  const { Stacks = [] } = await aws.cloudFormation.send(new DescribeStacksCommand({ StackName }));
  const found = Stacks[0]?.Outputs?.find(({ OutputKey }) => OutputKey === name)?.OutputValue;
  if (found === undefined) throw new Error(`the stack has no output ${name}`);
  return found;
};

/** A line of the function's log that has that message, once there is one. */
export const whenLogged = (
  { aws }: Stage,
  functionKey: string,
  message: string,
  mostMs: number,
): Promise<Record<string, unknown>> =>
  until(
    `a line "${message}" of ${functionKey}`,
    async () => {
      const logGroupName = `/aws/lambda/${SERVICE}-${STAGE}-${functionKey}`;
      const answer = await aws.logs.send(new FilterLogEventsCommand({ logGroupName })).catch(() => undefined);
      const lines = (answer?.events ?? []).map(({ message: line = "" }) => readLine(line));
      return lines.find((line) => line?.["message"] === message);
    },
    mostMs,
  );

const readLine = (line: string): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
};

export const physicalId = async ({ aws }: Stage, LogicalResourceId: string): Promise<string> => {
  const answer = await aws.cloudFormation.send(
    new DescribeStackResourceCommand({ StackName: `${SERVICE}-${STAGE}`, LogicalResourceId }),
  );
  return answer.StackResourceDetail?.PhysicalResourceId ?? "";
};

/** By a person who may read the table; the product itself never scans. */
export const itemsOf = async (
  { aws }: Stage,
  TableName: string,
): Promise<readonly Record<string, unknown>[]> => {
  const { Items = [] } = await aws.dynamo.send(new ScanCommand({ TableName, ConsistentRead: true }));
  return Items.map((item) => unmarshall(item));
};

export const runsOf = ({ commands }: Stage, job: string): Promise<readonly RunView[]> =>
  commands.ask<readonly RunView[]>("runs", "--job", job, "--limit", "100");

/** The run of a job that the test picks, once it is in that state. */
export const whenRun = (
  stage: Stage,
  job: string,
  state: RunView["state"],
  {
    mostMs = 60_000,
    pick = () => true,
  }: { readonly mostMs?: number; readonly pick?: (run: RunView) => boolean } = {},
): Promise<RunView> =>
  until(
    `a ${state} run of ${job}`,
    async () => (await runsOf(stage, job)).find((run) => run.state === state && pick(run)),
    mostMs,
  );

/** By hand: its id. */
export const runByHand = async ({ commands }: Stage, job: string): Promise<string> =>
  (await commands.ask<RunView>("run", job)).runId;

/** By hand, so many at once, by the request that the command line makes: their ids. */
export const runMany = async ({ aws }: Stage, job: string, count: number): Promise<readonly string[]> => {
  const FunctionName = `${SERVICE}-${STAGE}-belfry-operate`;
  const ids: string[] = [];
  const event = { method: "POST", path: `/v1/jobs/${job}/runs`, body: "{}" };
  for (let i = 0; i < count; i++) {
    const { Payload } = await aws.lambda.send(
      new InvokeCommand({
        FunctionName,
        Payload: new TextEncoder().encode(JSON.stringify(event)),
      }),
    );
    const answer = new TextDecoder().decode(Payload);
    const { body } = JSON.parse(answer) as { readonly body?: string };
    if (body === undefined) throw new Error(`${FunctionName} answered ${answer}`);
    const { run } = JSON.parse(body) as { readonly run: RunView };
    ids.push(run.runId);
  }
  return ids;
};
