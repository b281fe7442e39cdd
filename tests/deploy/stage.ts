import { DescribeStackResourceCommand, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { RunView } from "../../lib/core/runs/run.ts";
import type { Aws } from "./aws.ts";
import type { Commands } from "./commands.ts";
import { SERVICE } from "./project.ts";
import { until } from "./report.ts";

/** What a run of the scenario works with. */
export interface Stage {
  readonly name: string;
  readonly aws: Aws;
  readonly commands: Commands;
}

const stackOf = ({ name }: Stage): string => `${SERVICE}-${name}`;

/** Of a queue or a function of ours. */
export const physicalName = (stage: Stage, name: string): string => `${stackOf(stage)}-belfry-${name}`;

/** Where the project's jobs and channels look for it. */
export const putSecret = async ({ aws, name: stage }: Stage, name: string, value: string): Promise<void> => {
  await aws.secrets.send(
    new CreateSecretCommand({ Name: `${SERVICE}/${stage}/${name}`, SecretString: value }),
  );
};

export const stateOfStack = async (stage: Stage): Promise<string | undefined> => {
  const { aws } = stage;
  const StackName = stackOf(stage);
  const answer = await aws.cloudFormation
    .send(new DescribeStacksCommand({ StackName }))
    .catch(() => undefined);
  return answer?.Stacks?.[0]?.StackStatus;
};

export const outputOf = async (stage: Stage, name: string): Promise<string> => {
  const StackName = stackOf(stage);
  const { Stacks = [] } = await stage.aws.cloudFormation.send(new DescribeStacksCommand({ StackName }));
  const found = Stacks[0]?.Outputs?.find(({ OutputKey }) => OutputKey === name)?.OutputValue;
  if (found === undefined) throw new Error(`the stack has no output ${name}`);
  return found;
};

/** A line of the function's log that has that message, once there is one. */
export const whenLogged = (
  stage: Stage,
  name: string,
  message: string,
  mostMs: number,
): Promise<Record<string, unknown>> =>
  until(
    `a line "${message}" of ${name}`,
    async () => {
      const logGroupName = `/aws/lambda/${physicalName(stage, name)}`;
      const answer = await stage.aws.logs
        .send(new FilterLogEventsCommand({ logGroupName }))
        .catch(() => undefined);
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

export const physicalId = async (stage: Stage, LogicalResourceId: string): Promise<string> => {
  const answer = await stage.aws.cloudFormation.send(
    new DescribeStackResourceCommand({ StackName: stackOf(stage), LogicalResourceId }),
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
export const runMany = async (stage: Stage, job: string, count: number): Promise<readonly string[]> => {
  const FunctionName = physicalName(stage, "operate");
  const ids: string[] = [];
  const event = { method: "POST", path: `/v1/jobs/${job}/runs`, body: "{}" };
  for (let i = 0; i < count; i++) {
    const { Payload } = await stage.aws.lambda.send(
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
