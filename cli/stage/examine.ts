import { GetFunctionConfigurationCommand, LambdaClient } from "@aws-sdk/client-lambda";
import {
  GetScheduleCommand,
  type GetScheduleCommandOutput,
  paginateListSchedules,
  SchedulerClient,
} from "@aws-sdk/client-scheduler";
import { GetQueueAttributesCommand, GetQueueUrlCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Deployment, functionName, poolQueueName, scheduleGroupName } from "../../infra/naming.ts";
import { scheduleResources } from "../../infra/schedules.ts";
import type { JobList } from "../../lib/core/jobs/job-list.ts";
import { alarmFaults, wantedAlarms } from "./alarm-way.ts";
import { awsError, CLIENT_OPTIONS } from "./aws.ts";
import {
  type Finding,
  findingsOf,
  type PoolTimes,
  type ScheduleFacts,
  type Schedules,
  scheduleDrift,
  schedulesIn,
  shortVisibility,
} from "./drift.ts";
import { readAlarmWay } from "./examine-alarms.ts";
import { adviceFor, stackName, stackState } from "./stack-state.ts";

const deployAgain = ({ stage }: Deployment): string =>
  `"npx serverless deploy --stage ${stage}" puts it right`;

const stackFindings = async (deployment: Deployment): Promise<readonly Finding[]> => {
  const name = stackName(deployment);
  const state = await stackState(deployment);
  if (state === undefined)
    return [
      {
        about: "stack",
        level: "fault",
        message: `there is no stack ${name}`,
        advice: deployAgain(deployment),
      },
    ];
  const advice = adviceFor(state.status, deployment);
  const message = `the stack ${name} is in ${state.status}`;
  return [
    {
      about: "stack",
      ...(advice === undefined ? { level: "ok", message } : { level: "fault", message, advice }),
    },
  ];
};

const factsOf = (found: GetScheduleCommandOutput): ScheduleFacts => {
  const { ScheduleExpression = "", ScheduleExpressionTimezone = "UTC", State, Target } = found;
  const target = Target?.Arn ?? "";
  return {
    expression: ScheduleExpression,
    timezone: ScheduleExpressionTimezone,
    isEnabled: State === "ENABLED",
    target: target.slice(target.lastIndexOf(":") + 1),
  };
};

/** EventBridge Scheduler answers so many such questions at once without a murmur. */
const AT_ONCE = 10;

const deployedSchedules = async (deployment: Deployment): Promise<Schedules> => {
  const client = new SchedulerClient(CLIENT_OPTIONS);
  const GroupName = scheduleGroupName(deployment, "jobs");
  const names: string[] = [];
  for await (const { Schedules: page = [] } of paginateListSchedules({ client }, { GroupName }))
    names.push(...page.flatMap(({ Name }) => (Name === undefined ? [] : [Name])));
  const found = new Map<string, ScheduleFacts>();
  for (let i = 0; i < names.length; i += AT_ONCE) {
    const some = names.slice(i, i + AT_ONCE);
    const answers = await Promise.all(
      some.map((Name) => client.send(new GetScheduleCommand({ Name, GroupName }))),
    );
    answers.forEach((answer, j) => {
      found.set(some[j] ?? "", factsOf(answer));
    });
  }
  return found;
};

const scheduleFindings = async (
  deployment: Deployment,
  jobs: JobList,
  nowMs: number,
): Promise<readonly Finding[]> => {
  const resources = scheduleResources({ deployment, jobs, nowMs });
  const wanted = schedulesIn(resources, functionName(deployment, "dispatcher"));
  const found = await deployedSchedules(deployment);
  return findingsOf("schedules", scheduleDrift(wanted, found), {
    level: "fault",
    well: `${found.size} schedules are as the jobs of the stage ask for`,
    advice: `somebody changed it by hand; change the job and back, or delete it: ${deployAgain(deployment)}`,
  });
};

const timesOf = async (deployment: Deployment, pool: string): Promise<PoolTimes> => {
  const [lambda, sqs] = [new LambdaClient(CLIENT_OPTIONS), new SQSClient(CLIENT_OPTIONS)];
  const FunctionName = functionName(deployment, "worker", pool);
  const { Timeout = 0 } = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: poolQueueName(deployment, pool) }));
  const answer = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["VisibilityTimeout"] }),
  );
  return { pool, functionS: Timeout, visibilityS: Number(answer.Attributes?.["VisibilityTimeout"] ?? 0) };
};

const queueFindings = async (deployment: Deployment, jobs: JobList): Promise<readonly Finding[]> => {
  const pools = [...new Set(jobs.all.map(({ pool }) => pool))].sort();
  const times = await Promise.all(pools.map((pool) => timesOf(deployment, pool)));
  return findingsOf("queues", shortVisibility(times), {
    level: "fault",
    well: `the queues of ${pools.length} pools hide a message for longer than a run can last`,
    advice: "set it back, or runs may be handed out twice and come back too often",
  });
};

const alarmFindings = async (deployment: Deployment, jobs: JobList): Promise<readonly Finding[]> => {
  const wanted = wantedAlarms(deployment, jobs);
  return findingsOf("alarms", alarmFaults(deployment, wanted, await readAlarmWay(deployment)), {
    level: "fault",
    well: `${wanted.size} alarms reach their topics, and the notifier takes them`,
    advice: `an alarm that reaches nobody is none: ${deployAgain(deployment)}, unless it was changed by hand`,
  });
};

/**
 * What is amiss with a deployed stage, as AWS has it, compared with what its jobs ask for.
 * @param jobs those that the stage runs
 * @throws Unavailable when AWS does not say
 */
export const examine = async (
  deployment: Deployment,
  jobs: JobList,
  nowMs: number,
): Promise<readonly Finding[]> => {
  const asked = [
    stackFindings(deployment),
    scheduleFindings(deployment, jobs, nowMs),
    queueFindings(deployment, jobs),
    alarmFindings(deployment, jobs),
  ];
  const answers = await Promise.all(asked).catch((error: unknown) => {
    throw awsError(error, "look at the schedules, queues, functions, alarms and topics of the stage");
  });
  return answers.flat();
};
