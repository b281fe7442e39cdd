/**
 * What lives in the same account at the same time: a second stage of the service, and other services. None of them
 * sees anything of the others.
 */
import {
  DeleteFunctionConcurrencyCommand,
  InvokeCommand,
  PutFunctionConcurrencyCommand,
} from "@aws-sdk/client-lambda";
import { ListQueuesCommand } from "@aws-sdk/client-sqs";
import type { Delivery } from "./companion.ts";
import { SERVICE } from "./project.ts";
import type { Told } from "./receiver.ts";
import { check, until } from "./report.ts";
import { deployed, heard, told as story, struck, toldAs } from "./scenario.ts";
import { outputOf, physicalName, runByHand, runsOf, type Stage, stateOfStack, whenRun } from "./stage.ts";

/** With the first stage of the service beside it. */
export const secondStage = async (stage: Stage, first: Stage): Promise<string> => {
  const seen = await deployed(stage);
  const [ours, theirs] = [await outputOf(stage, "BelfryTableName"), await outputOf(first, "BelfryTableName")];
  check(ours !== theirs, "each stage has a table of its own", ours);
  const runId = await runByHand(stage, "line");
  await whenRun(stage, "line", "succeeded");
  check((await runsOf(stage, "line")).length === 1, "it has no run of the other stage");
  const others = await runsOf(first, "line");
  check(!others.some((run) => run.runId === runId), "the other stage has no run of it", others);
  return `${seen}; ${runId} succeeded there, and ${first.name} knows nothing of it`;
};

/** From now on Lambda refuses each start of the function. */
const hold = async (stage: Stage, name: string): Promise<void> => {
  const FunctionName = physicalName(stage, name);
  await stage.aws.lambda.send(
    new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 0 }),
  );
};

const release = async (stage: Stage, name: string): Promise<void> => {
  const FunctionName = physicalName(stage, name);
  await stage.aws.lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName }));
};

/** The watchdog after a pass, and the dispatcher before its first strike. */
export const held = async (stage: Stage): Promise<string> => {
  await stage.aws.lambda.send(new InvokeCommand({ FunctionName: physicalName(stage, "watchdog") }));
  await hold(stage, "watchdog");
  await hold(stage, "dispatcher");
  return "Lambda starts neither its watchdog nor its dispatcher any more";
};

/**
 * A schedule whose target is throttled: Lambda took its event, could not start the function, and handed it on in the end.
 * The run is late, and somebody is told.
 */
export const throttledIsLate = async (
  stage: Stage,
  { deliveries, told }: { readonly deliveries: readonly Delivery[]; readonly told: readonly Told[] },
): Promise<string> => {
  const { run, delivery } = await struck(stage, "punctual", deliveries);
  check(delivery.end === "delivered", "EventBridge saw nothing of it", delivery);
  const alarm = `${SERVICE}-${stage.name}-dispatch-failures`;
  const alert = await heard(told, alarm, (one) => one.kind === "alarm" && one.alarm === alarm);
  await release(stage, "dispatcher");
  return `${story(run)}, ${run.latenessMs} ms late; ${toldAs(alert)}`;
};

/** What is not there rings, and is over when it is there again. */
export const silenceIsTold = async (stage: Stage, told: readonly Told[]): Promise<string> => {
  const alarm = `${SERVICE}-${stage.name}-watchdog-silent`;
  const heard = (kind: string, mostMs: number): Promise<Told> =>
    until(
      `${alarm}, ${kind}`,
      async () => told.find((one) => one.alarm === alarm && one.kind === kind),
      mostMs,
    );
  const rang = await heard("alarm", 480_000);
  check(!told.some((one) => one.alarm === alarm && one.kind === "alarm-over"), "it goes on ringing", told);
  await release(stage, "watchdog");
  const over = await heard("alarm-over", 180_000);
  return `${toldAs(rang)}; then ${toldAs(over)}`;
};

const queuesOf = async (stage: Stage): Promise<number> => {
  const QueueNamePrefix = physicalName(stage, "");
  const { QueueUrls = [] } = await stage.aws.sqs.send(new ListQueuesCommand({ QueueNamePrefix }));
  return QueueUrls.length;
};

/** The first stage has all that it had. */
export const secondStageRemoved = async (stage: Stage, first: Stage): Promise<string> => {
  const before = await queuesOf(first);
  await stage.commands.serverless("remove");
  check((await stateOfStack(stage)) === undefined, "the second stack is gone");
  const [ours, theirs] = [await queuesOf(stage), await queuesOf(first)];
  check(ours === 0, "no queue of it is left", ours);
  check(before > 0 && theirs === before, "the first stage has all of its queues", [before, theirs]);
  return `${SERVICE}-${stage.name} is gone; ${SERVICE}-${first.name} is ${await stateOfStack(first)}, with ${theirs} queues`;
};
