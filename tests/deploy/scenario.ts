import { DisableAlarmActionsCommand, EnableAlarmActionsCommand } from "@aws-sdk/client-cloudwatch";
import { PutItemCommand } from "@aws-sdk/client-dynamodb";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { GetScheduleCommand, UpdateScheduleCommand } from "@aws-sdk/client-scheduler";
import { GetQueueUrlCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import type { Finding } from "../../cli/stage/drift.ts";
import type { RunView } from "../../lib/core/runs/run.ts";
import type { RunAnswer } from "../../lib/inbound/operate/answers.ts";
import { ACCOUNT, REGION } from "./aws.ts";
import type { Delivery } from "./companion.ts";
import { pingAt } from "./ping.ts";
import { SERVICE, STAGE } from "./project.ts";
import type { Told } from "./receiver.ts";
import { check, until } from "./report.ts";
import { atRandom, withoutEach } from "./rights-taken.ts";
import { refusedCalls, usageOfRoles } from "./roles-used.ts";
import {
  itemsOf,
  operate,
  outputOf,
  physicalId,
  physicalName,
  putSecret,
  runByHand,
  runMany,
  runsOf,
  type Stage,
  stateOfStack,
  whenLogged,
  whenRun,
} from "./stage.ts";

/** A run's story in a line. */
export const told = ({ runId, state, trigger, attempts, duplicates, reason }: RunView): string =>
  [
    `${runId} ${state}`,
    `${trigger}`,
    `${attempts.length} attempt${attempts.length === 1 ? "" : "s"}`,
    ...(duplicates > 0 ? [`${duplicates} duplicate${duplicates === 1 ? "" : "s"}`] : []),
    ...(reason === undefined ? [] : [`reason "${reason}"`]),
  ].join(", ");

export const deployed = async (stage: Stage): Promise<string> => {
  const { stdout, stderr } = await stage.commands.serverless("deploy");
  const state = await stateOfStack(stage);
  const functions = `${stdout}${stderr}`.match(/^ {2}belfry-\S+: /gm) ?? [];
  check(/_COMPLETE$/.test(state ?? "") && !/ROLLBACK/.test(state ?? ""), "the stack is complete", state);
  return `${state}, ${functions.length} functions of Belfry`;
};

export const noSuchStage = async ({ commands }: Stage): Promise<string> => {
  const { code, stdout, stderr } = await commands.belfry(["list", "--stage", "nowhere"]);
  check(
    code === 4 && stdout === "" && /has no stage "nowhere"/.test(stderr),
    "exit 4 in one clear line",
    stderr,
  );
  return `exit 4, "${stderr.split("\n")[0]}"`;
};

/** Before its first strike, a schedule is turned to a function that is not there. */
export const targetTakenAway = async (stage: Stage): Promise<string> => {
  const { aws } = stage;
  const found = await aws.scheduler.send(
    new GetScheduleCommand({ Name: "astray", GroupName: physicalName(stage, "jobs") }),
  );
  const { Target, FlexibleTimeWindow, ScheduleExpression, ScheduleExpressionTimezone } = found;
  const Arn = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:gone`;
  await aws.scheduler.send(
    new UpdateScheduleCommand({
      Name: "astray",
      GroupName: physicalName(stage, "jobs"),
      FlexibleTimeWindow,
      ScheduleExpression,
      ScheduleExpressionTimezone,
      Target: { ...Target, Arn, RoleArn: Target?.RoleArn },
    }),
  );
  return `the schedule "astray" points to ${Arn}`;
};

export const failsToItsEnd = async (stage: Stage): Promise<string> => {
  await runByHand(stage, "failing");
  const run = await whenRun(stage, "failing", "dead");
  check(run.attempts.length === 3, "a first attempt and two retries", run.attempts);
  const shown = await stage.commands.ask<RunView>("show", run.runId);
  check(shown.error?.message === "attempt 3 of it fails", "the error of the last attempt", shown.error);
  check(/jobs\/failing|jobs\.mjs/.test(shown.error?.stack ?? ""), "the stack", shown.error?.stack);
  return `${told(run)}, error "${shown.error?.message}"`;
};

/**
 * The pool's worker cannot start, for its secret is not there: the message comes back until its queue gives it up. The
 * dead-letters function finds that its run never started, and sends it again.
 */
export const nobodyCouldEnd = async (stage: Stage): Promise<string> => {
  const { aws } = stage;
  const { QueueUrl } = await aws.sqs.send(
    new GetQueueUrlCommand({ QueueName: physicalName(stage, "pool-vault") }),
  );
  // Instead of the nine minutes of this pool: its messages come back at once.
  await aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout: "1" } }));
  const runId = await runByHand(stage, "sealed");
  const judged = await whenLogged(stage, "dead-letters", "sent-again", 120_000);
  check(
    judged["runId"] === runId && judged["state"] === "queued",
    "the message is judged by its record",
    judged,
  );
  await putSecret(stage, "key", "0123456789");
  const run = await whenRun(stage, "sealed", "succeeded", { pick: (each) => each.runId === runId });
  return `given up by its queue, sent again since it never started, then ${told(run)}`;
};

export const struck = async (
  stage: Stage,
  job: string,
  deliveries: readonly Delivery[],
): Promise<{ readonly run: RunView; readonly delivery: Delivery }> => {
  const run = await whenRun(stage, job, "succeeded", {
    mostMs: 300_000,
    pick: ({ trigger }) => trigger === "schedule",
  });
  const delivery = deliveries.find(
    (each) =>
      each.schedule === `${physicalName(stage, "jobs")}/${job}` &&
      Date.parse(each.slot) === Date.parse(run.slot),
  );
  check(delivery !== undefined, `a delivery of ${job} at ${run.slot}`, deliveries);
  return { run, delivery: delivery as Delivery };
};

export const firesOnTime = async (stage: Stage, deliveries: readonly Delivery[]): Promise<string> => {
  const { run } = await struck(stage, "punctual", deliveries);
  const shown = await stage.commands.ask<RunView>("show", run.runId);
  check(shown.state === "succeeded" && shown.attempts.length === 1, "succeeded at the first attempt", shown);
  return `${told(shown)}, ${shown.latenessMs} ms late`;
};

/** The same occurrence once more, as anybody can send it. */
export const sameOccurrenceAgain = async (stage: Stage): Promise<string> => {
  const [run] = await runsOf(stage, "punctual");
  check(run !== undefined, "a run of punctual");
  const event = { version: 1, subjects: ["punctual"], scheduledTime: run?.slot, scheduleArn: "again" };
  await stage.commands.serverless("invoke", "-f", "belfry-dispatcher", "-d", JSON.stringify(event));
  const after = await stage.commands.ask<RunView>("show", run?.runId ?? "");
  check(after.duplicates === 1, "one duplicate is counted", after);
  check((await runsOf(stage, "punctual")).length === 1, "there is still one run");
  return told(after);
};

export const deliveredByDeadLetter = async (
  stage: Stage,
  deliveries: readonly Delivery[],
): Promise<string> => {
  const { run, delivery } = await struck(stage, "astray", deliveries);
  check(delivery.end === "dead letter", "the delivery ended as a dead letter", delivery);
  return `${delivery.tries} tries, "${delivery.error}", then ${told(run)}`;
};

/** A run whose retry is half an hour away when its job goes. */
export const waitsForItsRetry = async (stage: Stage): Promise<string> => {
  await runByHand(stage, "leaving");
  return told(await whenRun(stage, "leaving", "waiting"));
};

/** By its address, as from any host; with another key nobody is there. */
export const pinged = async ({ commands, emulator }: Stage): Promise<string> => {
  const address = await commands.ask<{ readonly url?: string }>("heartbeat", "elsewhere", "--url");
  const { url } = address;
  if (url === undefined) throw new Error(`no address: ${JSON.stringify(address)}`);
  const { status, body } = await pingAt(emulator, url);
  check(status === 200, "the ping is taken", body);
  const { runId } = JSON.parse(body) as { readonly runId: string };
  const run = await commands.ask<RunView>("show", runId);
  check(run.state === "succeeded", "the run that it is of succeeded", run);
  const stranger = await pingAt(emulator, `${url.slice(0, -4)}AAAA`);
  check(stranger.status === 404, "another key opens nothing", stranger);
  return `${told(run)}; with another key ${stranger.status}`;
};

/** The second waits in line, and is woken by the first. */
export const inLine = async (stage: Stage): Promise<string> => {
  const ids = await runMany(stage, "line", 2);
  const runs = await Promise.all(
    ids.map((runId) => whenRun(stage, "line", "succeeded", { pick: (run) => run.runId === runId })),
  );
  return runs.map(told).join("; ");
};

/** What an operator looks at in the morning, and a real alarm through every hop. */
export const operated = async (stage: Stage): Promise<string> => {
  const jobs = await stage.commands.ask<readonly { readonly name: string }[]>("list");
  const dead = await stage.commands.ask<readonly RunView[]>("runs", "--state", "dead");
  check(dead.length === 1 && dead[0]?.job === "failing", "one run is dead", dead);
  const { code, stdout, stderr } = await stage.commands.belfry(["alert", "test", "--stage", STAGE]);
  check(code === 0, "a test alarm reaches every channel", `${stdout}${stderr}`);
  return `${jobs.length} jobs, 1 dead run; alert test: ${stdout
    .trim()
    .replaceAll(/\s*\n\s*/g, ", ")
    .replaceAll(/ +/g, " ")}`;
};

const IN_FLIGHT = 20;

/** How often each run did what it does. */
const effectsOf = async (stage: Stage): Promise<ReadonlyMap<string, number>> => {
  const items = await itemsOf(stage, await physicalId(stage, "EffectsTable"));
  return new Map(items.map(({ id, effects }) => [String(id), Number(effects)]));
};

const openGate = async (stage: Stage): Promise<void> => {
  const TableName = await physicalId(stage, "EffectsTable");
  await stage.aws.dynamo.send(new PutItemCommand({ TableName, Item: { id: { S: "gate" } } }));
};

/**
 * Runs that end only when the deploy is over. The emulator ends the processes of a function whose code changes: harder
 * on a run than AWS is, which lets them finish.
 */
export const deployedUnderWay = async (stage: Stage): Promise<string> => {
  await runMany(stage, "busy", IN_FLIGHT);
  const seen = await deployed(stage);
  const open = (await runsOf(stage, "busy")).filter(({ state }) => state === "queued" || state === "running");
  check(open.length === IN_FLIGHT, "all runs were open during the deploy", open.length);
  await openGate(stage);
  return `${seen}; ${open.length} runs were open all the while`;
};

export const endOnce = async (stage: Stage): Promise<string> => {
  const runs = await until(
    `the end of ${IN_FLIGHT} runs of busy`,
    async () => {
      const all = await runsOf(stage, "busy");
      return all.every(({ state }) => state === "succeeded") ? all : undefined;
    },
    300_000,
  );
  const effects = await effectsOf(stage);
  const counts = runs.map(({ runId }) => effects.get(runId) ?? 0);
  check(
    counts.length === IN_FLIGHT && counts.every((count) => count === 1),
    `each of ${IN_FLIGHT} runs took effect once`,
    counts,
  );
  const attempts = runs.reduce((sum, run) => sum + run.attempts.length, 0);
  return `all succeeded, ${attempts} attempts, each took effect once`;
};

export const newSchedulesStrike = async (stage: Stage, deliveries: readonly Delivery[]): Promise<string> => {
  const { run: added } = await struck(stage, "added", deliveries);
  const { run: changed } = await struck(stage, "changing", deliveries);
  check((await runsOf(stage, "changing")).length === 1, "the changed schedule strikes at its new hour alone");
  check((await runsOf(stage, "punctual")).length === 1, "the deploy fired nothing else");
  return `${told(added)}; ${told(changed)}`;
};

export const leavesNothingOpen = async (stage: Stage, runId: string): Promise<string> => {
  const run = await until(
    "the end of the removed job's run",
    async () => {
      const { run: shown } = await operate<RunAnswer>(stage, "GET", `/v1/runs/${runId}`);
      return shown.state === "cancelled" ? shown : undefined;
    },
    300_000,
  );
  check(run.reason === "job removed", "the reason is told", run);
  const listed = await stage.commands.ask<readonly RunView[]>("runs", "--job", "leaving");
  check(listed.length === 1 && listed[0]?.runId === runId, "the removed job's runs are listed", listed);
  return told(run);
};

/**
 * A schedule's input with its context attributes as they stand, as the emulator's own scheduler sends it: tried three
 * times, then kept. The slot that it meant is run all the same.
 */
export const unfilledIsRefused = async (stage: Stage): Promise<string> => {
  const { aws } = stage;
  const { Target } = await aws.scheduler.send(
    new GetScheduleCommand({ Name: "unfilled", GroupName: physicalName(stage, "jobs") }),
  );
  const Payload = new TextEncoder().encode(Target?.Input ?? "");
  await aws.lambda.send(new InvokeCommand({ FunctionName: Target?.Arn, InvocationType: "Event", Payload }));
  const table = await outputOf(stage, "BelfryTableName");
  const poison = await until("a record of the event that no dispatcher could take", async () =>
    (await itemsOf(stage, table)).find(({ pk }) => String(pk).startsWith("P#")),
  );
  const run = await whenRun(stage, "unfilled", "succeeded", { mostMs: 240_000 });
  return `kept: "${poison["why"]}"; ${told(run)}, by the watchdog`;
};

export const heard = (told: readonly Told[], what: string, isIt: (one: Told) => boolean): Promise<Told> =>
  until(`an alert of ${what}`, async () => told.find(isIt), 150_000);

export const toldAs = ({ kind, topic, title, isSigned }: Told): string => {
  check(isSigned, "the alert is signed");
  return `${topic}, ${kind}: "${title}"`;
};

/** By its alarm, while the watchdog has made no pass; after that by the watchdog, which then knows more of it. */
export const deadIsTold = async (told: readonly Told[]): Promise<string> =>
  toldAs(
    await heard(
      told,
      "the failing job",
      ({ job, alarm }) => job === "failing" || alarm === `${SERVICE}-${STAGE}-runs-dead`,
    ),
  );

/** What rings in this scenario: of a log line, of queues, and of several functions' errors at once. */
const ALARMS = [
  "poison-messages",
  "dispatch-failures",
  "pool-vault-dead-letters",
  "worker-errors",
  "function-errors",
] as const;

/** What was measured rings an alarm, which goes by SNS to the notifier. */
export const alarmsAreTold = async (told: readonly Told[], rang: ReadonlySet<string>): Promise<string> => {
  const alerts: string[] = [];
  for (const key of ALARMS) {
    const alarm = `${SERVICE}-${STAGE}-${key}`;
    alerts.push(toldAs(await heard(told, alarm, (one) => one.kind === "alarm" && one.alarm === alarm)));
    check(rang.has(alarm), `the alarm ${alarm} rang`, [...rang]);
  }
  return alerts.join("; ");
};

/** What was changed by hand in this scenario; and the zones, which the emulator forgets. */
export const doctorFinds = async ({ aws, commands }: Stage): Promise<string> => {
  const AlarmNames = [`${SERVICE}-${STAGE}-alerts-undelivered`];
  await aws.cloudWatch.send(new DisableAlarmActionsCommand({ AlarmNames }));
  const { findings } = await commands.ask<{ readonly findings: readonly Finding[] }>("doctor");
  await aws.cloudWatch.send(new EnableAlarmActionsCommand({ AlarmNames }));
  const faults = findings.filter(({ level }) => level === "fault").map(({ message }) => message);
  for (const expected of [
    /schedule astray: it invokes gone/,
    /pool vault hides a message for 1 s/,
    /alerts-undelivered is switched off/,
  ])
    check(
      faults.some((message) => expected.test(message)),
      `doctor finds ${expected}`,
      faults,
    );
  const others = faults.filter((message) => !/ zone is |astray|vault|alerts-undelivered/.test(message));
  check(others.length === 0, "doctor finds nothing else wrong", others);
  return faults.filter((message) => !/ zone is /.test(message)).join("; ");
};

export const rightsAreUsed = async ({ aws, commands }: Stage): Promise<string> => {
  // The emulator shows the last fifty calls of a kind, and this one was long ago.
  await commands.ask("runs", "--state", "dead");
  const { used, byServices, notHere, idle } = await usageOfRoles(aws);
  check(idle.length === 0, "every right is used, or excused", idle);
  const refused = await refusedCalls(aws);
  check(refused.length === 0, "no call of a function was refused", refused);
  const excused =
    notHere.length === 0 ? "" : `, ${notHere.length} not brought about here (${notHere.join("; ")})`;
  return `no call refused; ${used} used, ${byServices} by the services themselves${excused}`;
};

/** Chosen by the seed, one statement at a time is taken out of a role; without any of them the stage must not work. */
export const rightsAreMissed = async (stage: Stage, count: number, seed: number): Promise<string> => {
  const lines: string[] = [];
  const { taken, unmissed } = await withoutEach(stage, atRandom(count, seed), (line) => lines.push(line));
  check(unmissed.length === 0, "each right is missed", unmissed);
  return `seed ${seed}, ${taken} taken: ${lines.join("; ")}`;
};

export const removed = async (stage: Stage): Promise<string> => {
  const table = await outputOf(stage, "BelfryTableName");
  const { stdout, stderr: said } = await stage.commands.serverless("remove");
  check(`${stdout}${said}`.includes(`the table ${table} stays`), "the removal says what is left", said);
  check((await stateOfStack(stage)) === undefined, "the stack is gone");
  const kept = (await itemsOf(stage, table)).length;
  check(kept > 0, "the table stays with its history");
  const { code, stderr } = await stage.commands.belfry(["list", "--stage", STAGE]);
  check(code === 4, "the stage does not answer any more", stderr);
  return `the stack is gone, its table ${table} stays with ${kept} items; "${stderr.split("\n")[0]}"`;
};

/** With the table that the removed stack has left: history and claims go on. */
export const takenUpAgain = async (stage: Stage, table: string, runId: string): Promise<string> => {
  const seen = await deployed(stage);
  check((await outputOf(stage, "BelfryTableName")) === table, "the stack uses the table that was left");
  const run = await stage.commands.ask<RunView>("show", runId);
  check(run.state === "succeeded", "the history is there", run);
  return `${seen}; ${told(run)} is known`;
};
