import { expect, test } from "vitest";
import type { Resource } from "../../../infra/cloudformation.ts";
import { LONGEST_NAME, namesOf } from "../../../infra/naming.ts";
import type { Stack } from "../../../infra/stack.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { functionTimeoutMs } from "../../../lib/core/jobs/pool.ts";
import { maxReceiveCount } from "../../../lib/core/jobs/retry.ts";
import { parseSchedulerEvent } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { byHand, daily, hourly, manifestOf, ofType, property, stackOf, twice } from "./setup.ts";

/** Everything but what a job's own resources are. */
const changed = (a: Stack, b: Stack): readonly string[] => {
  const ids = new Set([...Object.keys(a.resources), ...Object.keys(b.resources)]);
  return [...ids].filter((id) => JSON.stringify(a.resources[id]) !== JSON.stringify(b.resources[id])).sort();
};

test("a removed job takes its own schedule with it and changes nothing else", () => {
  const all = stackOf([daily, hourly, twice, byHand]);
  expect(changed(all, stackOf([hourly, twice, byHand]))).toEqual(["BelfryJobDailySchedule"]);
  expect(changed(all, stackOf([daily, hourly, twice]))).toEqual([]);
  expect(all.functions).toEqual(stackOf([hourly]).functions);
});

test("an expression taken out of a list of three leaves the schedules of the others alone", () => {
  const three = { ...twice, schedules: ["0 1 * * *", ...twice.schedules] };
  const rest = changed(stackOf([three]), stackOf([twice]));
  expect(rest).toEqual([expect.stringMatching(/^BelfryJobTwiceScheduleX[0-9a-f]{8}$/)]);
});

test("the order of jobs and of their expressions changes nothing", () => {
  const other = { ...twice, schedules: twice.schedules.toReversed() };
  const reordered = stackOf([other, hourly, daily]);
  expect(changed(stackOf([daily, hourly, twice]), reordered)).toEqual([]);
});

test("a renamed job keeps its schedule, since it keeps its subject", () => {
  const renamed = definition({ ...daily, name: "nightly", subject: "daily" });
  const ids = changed(stackOf([daily]), stackOf([renamed]));
  expect(ids).toEqual(["BelfryJobDailySchedule"]);
  const { resources } = stackOf([renamed]);
  expect(property(resources["BelfryJobDailySchedule"], "Name")).toBe("daily");
});

/** Names that must be unique in an account and region. */
const physicalNames = ({ functions, resources }: Stack): readonly string[] => [
  ...functions.map(({ name }) => `function ${name}`),
  ...Object.values(resources).flatMap(({ Type, Properties }) => {
    const name = ["QueueName", "RoleName", "TableName", "TopicName", "AlarmName"]
      .map((property) => Properties[property])
      .find((given) => given !== undefined);
    if (name !== undefined) return [`${Type} ${String(name)}`];
    // A schedule's name is unique in its group only.
    return Type === "AWS::Scheduler::ScheduleGroup" ? [`group ${String(Properties["Name"])}`] : [];
  }),
];

test("two stages, and two services, share no name", () => {
  const names = ["dev", "prod", "a", "a-prod"].flatMap((stage) => physicalNames(stackOf([daily], { stage })));
  expect(names.length).toBe(4 * (15 + 2 + alarmsOf(manifestOf([daily])).length));
  expect(new Set(names).size).toBe(names.length);
});

test("pools named like our own queues and groups meet no other name", () => {
  const pool = { memoryMb: 256, concurrency: 2 };
  const pools = Object.fromEntries(
    ["default", "slow", "slow-dead", "dead-slow", "dead", "dispatch-failures", "jobs", "watchdog"].map(
      (name) => [name, pool],
    ),
  );
  const names = physicalNames(stackOf([daily], { pools }));
  expect(new Set(names).size).toBe(names.length);
});

test.each(["group", "role", "tick", "a", "a-b", "adashb", "a1234abcd"])(
  "a job named %s has a logical id of its own, of letters and digits",
  (name) => {
    const others = ["a-b", "a", "adashb"].filter((other) => other !== name);
    const jobs = [name, ...others].map((each) => definition({ ...twice, name: each, subject: each }));
    const stack = stackOf(jobs);
    const base = Object.keys(stackOf([byHand]).resources).length;
    expect(Object.keys(stack.resources)).toHaveLength(base + 2 * jobs.length);
    for (const id of Object.keys(stack.resources)) expect(id).toMatch(/^[A-Za-z0-9]{1,255}$/);
  },
);

test("names fit for a service, a stage and a pool of usual length, and schedules for any job", () => {
  const usual = { service: "customer-notes", stage: "staging" };
  for (const { what, name } of namesOf(usual, ["default", "long-reports"]))
    expect(name.length, name).toBeLessThanOrEqual(LONGEST_NAME[what]);
  const longest = definition({ ...twice, name: "a".repeat(48), subject: "a".repeat(48) });
  for (const [, schedule] of ofType(stackOf([longest]), "AWS::Scheduler::Schedule"))
    expect(String(property(schedule, "Name")).length).toBeLessThanOrEqual(64);
});

test("the table is kept, protected, restorable, and forgets by time", () => {
  const table = stackOf([daily]).resources["BelfryTable"];
  expect(table).toMatchObject({
    DeletionPolicy: "Retain",
    UpdateReplacePolicy: "Retain",
    Properties: {
      BillingMode: "PAY_PER_REQUEST",
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      TimeToLiveSpecification: { AttributeName: "expiresAtS", Enabled: true },
      GlobalSecondaryIndexes: [{ IndexName: "bad" }],
    },
  });
  expect(table?.Properties).not.toHaveProperty("TableName");
});

test("a pool's times fit each other: function over its longest job, visibility six times that", () => {
  const long = definition({ name: "long", pool: "slow", timeoutMs: 600_000 });
  const jobs = [daily, long];
  const { resources, functions } = stackOf(jobs);
  const worker = functions.find(({ pool }) => pool === "slow");
  expect(worker?.properties["Timeout"]).toBe(630);
  expect(functionTimeoutMs(jobs, "slow")).toBe(630_000);
  const queue = resources["BelfryPoolSlowQueue"];
  expect(property(queue, "VisibilityTimeout")).toBe(6 * 630);
  expect(property(queue, "RedrivePolicy", "maxReceiveCount")).toBe(maxReceiveCount([long]));
  expect(property(queue, "RedrivePolicy", "deadLetterTargetArn")).toEqual({
    "Fn::GetAtt": ["BelfryPoolSlowDeadLetters", "Arn"],
  });
  const dead = resources["BelfryPoolSlowDeadLetters"];
  expect(property(dead, "MessageRetentionPeriod")).toBe(14 * 86_400);
  expect(property(dead, "RedriveAllowPolicy")).toEqual({
    redrivePermission: "byQueue",
    sourceQueueArns: [{ "Fn::Sub": expect.stringMatching(/:sqs:.*:notes-prod-belfry-pool-slow$/) }],
  });
});

test("every queue is encrypted at rest and refuses calls without TLS", () => {
  const stack = stackOf([daily]);
  const queues = ofType(stack, "AWS::SQS::Queue");
  expect(queues).toHaveLength(6);
  for (const [id, queue] of queues) {
    expect(property(queue, "SqsManagedSseEnabled")).toBe(true);
    expect(stack.resources[`${id}Policy`]).toMatchObject({
      Type: "AWS::SQS::QueuePolicy",
      Properties: {
        Queues: [{ Ref: id }],
        PolicyDocument: {
          Statement: expect.arrayContaining([
            {
              Effect: "Deny",
              Principal: "*",
              Action: ["sqs:*"],
              Resource: [{ "Fn::GetAtt": [id, "Arn"] }],
              Condition: { Bool: { "aws:SecureTransport": "false" } },
            },
          ]),
        },
      },
    });
  }
});

test("each queue feeds one function, which reports failures one by one; a worker takes one message at a time", () => {
  const mappings = ofType(stackOf([daily]), "AWS::Lambda::EventSourceMapping");
  expect(mappings).toHaveLength(6);
  for (const [, mapping] of mappings)
    expect(property(mapping, "FunctionResponseTypes")).toEqual(["ReportBatchItemFailures"]);
  const slow = Object.fromEntries(mappings)["BelfryPoolSlowMapping"];
  expect(slow?.Properties).toMatchObject({
    BatchSize: 1,
    ScalingConfig: { MaximumConcurrency: 2 },
    FunctionName: { Ref: "BelfryDashworkerDashslowLambdaFunction" },
  });
});

test("functions run on Lambda's own Node on arm64, log JSON without Lambda's lines, and loop where they must", () => {
  const { functions } = stackOf([daily]);
  for (const { properties } of functions)
    expect(properties).toMatchObject({
      Runtime: "nodejs24.x",
      Architectures: ["arm64"],
      LoggingConfig: { LogFormat: "JSON", SystemLogLevel: "WARN" },
    });
  const loops = functions.filter(({ properties }) => properties["RecursiveLoop"] === "Allow");
  expect(loops.map(({ key }) => key)).toEqual([
    "belfry-dead-letters",
    "belfry-worker-default",
    "belfry-worker-slow",
  ]);
});

test("a schedule names its slot by the context attribute, retries its delivery, and keeps what fails", () => {
  const schedule = stackOf([daily]).resources["BelfryJobDailySchedule"];
  expect(schedule?.Properties).toMatchObject({
    Name: "daily",
    GroupName: { Ref: "BelfryScheduleGroup" },
    ScheduleExpression: "cron(0 2 * * ? *)",
    ScheduleExpressionTimezone: "Asia/Shanghai",
    State: "ENABLED",
    FlexibleTimeWindow: { Mode: "OFF" },
    Target: {
      Arn: { "Fn::GetAtt": ["BelfryDashdispatcherLambdaFunction", "Arn"] },
      RoleArn: { "Fn::GetAtt": ["BelfryScheduleRole", "Arn"] },
      RetryPolicy: { MaximumEventAgeInSeconds: 3_600, MaximumRetryAttempts: 30 },
      DeadLetterConfig: { Arn: { "Fn::GetAtt": ["BelfryDispatchFailures", "Arn"] } },
    },
  });
  expect(schedule?.Properties).not.toHaveProperty("StartDate");
  const input = String(property(schedule, "Target", "Input"));
  const filled = input.replace("<aws.scheduler.scheduled-time>", "2026-12-01T18:00:00Z");
  expect(parseSchedulerEvent(JSON.parse(filled))).toMatchObject({ subjects: ["daily"], isTick: false });
  expect(() => parseSchedulerEvent(JSON.parse(input))).toThrow(
    "left <aws.scheduler.scheduled-time> unfilled",
  );
});

test("a job that does not fire in this stage has a disabled schedule there", () => {
  const onlyProd = { ...daily, stages: ["prod"] };
  const stateIn = (stage: string) =>
    property(stackOf([onlyProd], { stage }).resources["BelfryJobDailySchedule"], "State");
  expect([stateIn("dev"), stateIn("prod")]).toEqual(["DISABLED", "ENABLED"]);
});

test("a one-time schedule of the past is left out, one to come is not", () => {
  const once = (at: string) => definition({ name: "once", schedules: [`at(${at})`] });
  expect(stackOf([once("2026-11-30T23:59")]).resources).not.toHaveProperty("BelfryJobOnceSchedule");
  expect(stackOf([once("2026-12-01T00:01")]).resources).toHaveProperty("BelfryJobOnceSchedule");
});

test.each(["watchdog", "notifier"])(
  "the %s has a schedule and a role of its own, apart from the jobs', and a minute is not repeated",
  (kind) => {
    const { resources } = stackOf([daily]);
    const name = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    expect(resources[`Belfry${name}Schedule`]?.Properties).toMatchObject({
      GroupName: { Ref: "BelfryWatchdogScheduleGroup" },
      ScheduleExpression: "rate(1 minute)",
      State: "ENABLED",
      Target: {
        Arn: { "Fn::GetAtt": [`BelfryDash${kind}LambdaFunction`, "Arn"] },
        RoleArn: { "Fn::GetAtt": [`Belfry${name}ScheduleRole`, "Arn"] },
        RetryPolicy: { MaximumRetryAttempts: 0 },
      },
    });
  },
);

test("a pass of the watchdog that failed is not tried again: the next one is due", () => {
  const { resources } = stackOf([daily]);
  expect(resources["BelfryDashwatchdogLambdaFunctionEvents"]?.Properties).toMatchObject({
    MaximumRetryAttempts: 0,
  });
});

test("what the dispatcher could not take goes to the queue where undelivered schedules go", () => {
  expect(stackOf([daily]).resources["BelfryDashdispatcherLambdaFunctionEvents"]?.Properties).toMatchObject({
    MaximumRetryAttempts: 2,
    DestinationConfig: { OnFailure: { Destination: { "Fn::GetAtt": ["BelfryDispatchFailures", "Arn"] } } },
  });
});

const many = (count: number) =>
  Array.from({ length: count }, (_, n) => {
    const name = `job-${String(n).padStart(4, "0")}`;
    return definition({ ...hourly, name, subject: name });
  });

test("past 300 schedules the rest share a tick of every minute that carries all their subjects", () => {
  const stack = stackOf(many(310));
  const schedules = ofType(stack, "AWS::Scheduler::Schedule").map(([id]) => id);
  expect(schedules).toHaveLength(300 + 3);
  const tick = stack.resources["BelfryScheduleTick"];
  expect(property(tick, "ScheduleExpression")).toBe("cron(* * * * ? *)");
  const input = String(property(tick, "Target", "Input")).replace(
    "<aws.scheduler.scheduled-time>",
    "2026-12-01T00:00:00Z",
  );
  const event = parseSchedulerEvent(JSON.parse(input));
  expect(event.isTick).toBe(true);
  expect(event.subjects).toEqual(
    Array.from({ length: 10 }, (_, n) => `job-${String(300 + n).padStart(4, "0")}`),
  );
});

test("jobs that share the tick are left out of it where they do not fire", () => {
  const jobs = many(302).map((job, n) => (n === 300 ? { ...job, stages: ["dev"] } : job));
  const tick: Resource | undefined = stackOf(jobs).resources["BelfryScheduleTick"];
  expect(String(property(tick, "Target", "Input"))).toContain('"subjects":["job-0301"]');
});

test("two thousand jobs still fit into one template", () => {
  const stack = stackOf(many(2_000));
  expect(Object.keys(stack.resources).length + 2 * stack.functions.length).toBeLessThanOrEqual(500);
  expect(JSON.stringify(stack.resources).length).toBeLessThan(1_000_000);
});

test("the same jobs give the same template", () => {
  expect(JSON.stringify(stackOf([daily, twice]))).toBe(JSON.stringify(stackOf([daily, twice])));
});
