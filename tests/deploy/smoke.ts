/** A little of everything that the functions do, in as little time as it takes: does the stage work? */

import { SetAlarmStateCommand } from "@aws-sdk/client-cloudwatch";
import { GetQueueUrlCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import type { AlertTest } from "../../lib/app/notify/test-alert.ts";
import type { RunView } from "../../lib/core/runs/run.ts";
import type { RunAnswer } from "../../lib/inbound/operate/answers.ts";
import { mayDo, oneOf } from "./permissions.ts";
import { pingAt } from "./ping.ts";
import { SERVICE } from "./project.ts";
import { until } from "./report.ts";
import { BY_SERVICES, type Right, reasonIn } from "./roles-used.ts";
import { invoke, operate, physicalName, type Stage } from "./stage.ts";

const MOST_MS = 25_000;
const TWO_MINUTES_MS = 120_000;

const ends = (stage: Stage, runId: string, state: RunView["state"]): Promise<RunView> =>
  until(
    `${runId} ${state}`,
    async () => {
      const { run } = await operate<RunAnswer>(stage, "GET", `/v1/runs/${runId}`).catch(() => ({
        run: undefined,
      }));
      return run?.state === state ? run : undefined;
    },
    MOST_MS,
  );

const byHand = async (stage: Stage, job: string, started: string[]): Promise<string> => {
  const { run } = await operate<RunAnswer>(stage, "POST", `/v1/jobs/${job}/runs`);
  started.push(run.runId);
  return run.runId;
};

/** What IAM is asked: calls of the services with a role, and those that a function makes only now and then. */
const ASKED: typeof BY_SERVICES = [
  ...BY_SERVICES,
  ["sqs:SendMessage", /^dispatcher$/, "Lambda's failure destination"],
  ["sqs:SendMessage", /^watchdog$/, "two minutes after a slot that nothing delivered"],
  ["sqs:SendMessage", /^worker-vault$/, "wakes a run that waits, of which the pool has none"],
  ["dynamodb:BatchGetItem", /./, "with what the others of its statement do"],
  ["dynamodb:Query", /^(?:worker|watchdog|notifier)/, "the next of many retries, and alerts that wait"],
];

const services = async ({ aws }: Stage, rights: readonly Right[]): Promise<void> => {
  for (const { owner, roleArn, statement } of rights)
    for (const action of statement.Action.filter((each) => reasonIn(ASKED, owner, each) !== undefined))
      for (const resource of statement.Resource) {
        const allowed = await mayDo(aws, { roleArn, action, resource: oneOf(resource) });
        if (!allowed) throw new Error(`${owner} may not do ${action} on ${resource}`);
      }
};

const eventAt = (slotMs: number) => ({
  version: 1,
  subjects: ["unfilled"],
  scheduledTime: new Date(slotMs).toISOString(),
  scheduleArn: "smoke",
});

const idAt = (slotMs: number): string =>
  `unfilled~${new Date(slotMs).toISOString().replace(/\.\d+|[-:]/g, "")}`;

/** Two slots of `unfilled` that no other round has. */
const slotsOf = (round: number): readonly [number, number] => {
  const latest = Math.floor(Date.now() / TWO_MINUTES_MS) * TWO_MINUTES_MS;
  return [latest - (2 * round + 5) * TWO_MINUTES_MS, latest - (2 * round + 6) * TWO_MINUTES_MS];
};

const deliverLate = async (stage: Stage, slotMs: number): Promise<void> => {
  const { sqs } = stage.aws;
  const { QueueUrl } = await sqs.send(
    new GetQueueUrlCommand({ QueueName: physicalName(stage, "dispatch-failures") }),
  );
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(eventAt(slotMs)) }));
  await ends(stage, idAt(slotMs), "succeeded");
};

const pinged = async (stage: Stage): Promise<void> => {
  const { url } = await operate<{ readonly url: string }>(stage, "GET", "/v1/jobs/elsewhere/ping-address");
  const { status, body } = await pingAt(stage.emulator, url);
  if (status !== 200) throw new Error(`a ping was answered by ${status}: ${body}`);
};

/** A real alarm, through SNS and the notifier, to the channel. */
const alerted = async (stage: Stage): Promise<void> => {
  const AlarmName = `${SERVICE}-${stage.name}-poison-messages`;
  const quiet = { AlarmName, StateValue: "OK", StateReason: "a test begins" } as const;
  await stage.aws.cloudWatch.send(new SetAlarmStateCommand(quiet));
  const { ok, hops } = await operate<AlertTest>(stage, "POST", "/v1/alerts/test", { topic: "notify" });
  if (!ok) throw new Error(`the test alarm reached nobody: ${JSON.stringify(hops)}`);
};

const checksOf = (
  stage: Stage,
  rights: readonly Right[],
  { round, started }: { readonly round: number; readonly started: string[] },
): readonly Promise<unknown>[] => {
  const [first, second] = slotsOf(round);
  const line = async (): Promise<unknown> => {
    const ids = [await byHand(stage, "line", started), await byHand(stage, "line", started)];
    return Promise.all(ids.map((id) => ends(stage, id, "succeeded")));
  };
  const single = async (job: string, state: RunView["state"]): Promise<unknown> =>
    ends(stage, await byHand(stage, job, started), state);
  const dispatched = async (): Promise<unknown> => {
    await invoke(stage, "dispatcher", eventAt(first));
    return ends(stage, idAt(first), "succeeded");
  };
  return [
    services(stage, rights),
    line(),
    single("failing", "dead"),
    single("sealed", "succeeded"),
    dispatched(),
    deliverLate(stage, second),
    operate(stage, "GET", "/v1/runs?state=dead"),
    pinged(stage),
    invoke(stage, "watchdog", {}),
    invoke(stage, "notifier", {}),
    alerted(stage),
  ];
};

/**
 * The first thing that does not work; undefined = all of it works. What it started and did not see end is cancelled.
 * @param rights all that is to be granted, whether it is just now or not
 * @param round a number of its own for each call
 */
export const firstFault = async (
  stage: Stage,
  rights: readonly Right[],
  round: number,
): Promise<string | undefined> => {
  const started: string[] = [];
  const checks = checksOf(stage, rights, { round, started });
  const failed = await Promise.all(checks).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  if (failed !== undefined) {
    await Promise.allSettled(checks);
    for (const id of started) await operate(stage, "POST", `/v1/runs/${id}/cancel`).catch(() => undefined);
  }
  return failed;
};
