import { DescribeStackResourceCommand, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { RunView } from "../../lib/core/runs/run.ts";
import type { RunAnswer, RunsAnswer } from "../../lib/inbound/operate/answers.ts";
import type { Aws } from "./aws.ts";
import type { Commands } from "./commands.ts";
import type { Emulator } from "./emulator.ts";
import { SERVICE } from "./project.ts";
import { until } from "./report.ts";

/** What a run of the scenario works with. */
export interface Stage {
  readonly name: string;
  readonly emulator: Emulator;
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

/** The whole answer of a function of ours. @throws Error where it fails */
export const invoke = async (stage: Stage, name: string, event: object): Promise<string> => {
  const { Payload, FunctionError } = await stage.aws.lambda.send(
    new InvokeCommand({
      FunctionName: physicalName(stage, name),
      Payload: new TextEncoder().encode(JSON.stringify(event)),
    }),
  );
  const answer = new TextDecoder().decode(Payload);
  if (FunctionError !== undefined) throw new Error(`${name} failed: ${answer}`);
  return answer;
};

/** By the request that the command line makes, many times at once or over and over. @throws Error for a refusal */
export const operate = async <Answer>(
  stage: Stage,
  method: "GET" | "POST",
  path: string,
  body: object = {},
): Promise<Answer> => {
  const event = { method, path, ...(method === "POST" ? { body: JSON.stringify(body) } : {}) };
  const { status, body: text } = JSON.parse(await invoke(stage, "operate", event)) as {
    readonly status: number;
    readonly body: string;
  };
  if (status >= 300) throw new Error(`operate answers ${method} ${path} with ${text}`);
  return JSON.parse(text) as Answer;
};

export const runsOf = async (stage: Stage, job: string): Promise<readonly RunView[]> =>
  (await operate<RunsAnswer>(stage, "GET", `/v1/runs?job=${job}&limit=100`)).runs;

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

/** By hand, so many: their ids. */
export const runMany = async (stage: Stage, job: string, count: number): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (let i = 0; i < count; i++)
    ids.push((await operate<RunAnswer>(stage, "POST", `/v1/jobs/${job}/runs`)).run.runId);
  return ids;
};
