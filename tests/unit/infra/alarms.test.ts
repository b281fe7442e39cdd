import { expect, test } from "vitest";
import { placeholder } from "../../../infra/cloudformation.ts";
import type { Stack } from "../../../infra/stack.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import type { AlertsConfig } from "../../../lib/core/alerts/alert-channels.ts";
import { definition } from "../../support/definitions.ts";
import { DEPLOYMENT, daily, manifestOf, ofType, property, stackOf } from "./setup.ts";

const ALARMS = alarmsOf(manifestOf([daily]));

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}

/** Every metric that an alarm of the template watches, alone or in a sum. */
const metricsOf = (properties: Stack["resources"][string]["Properties"]): readonly Metric[] => {
  const all = properties["Metrics"] as
    | readonly { readonly MetricStat?: { readonly Metric: Metric } }[]
    | undefined;
  if (all === undefined) return [properties as unknown as Metric];
  return all.flatMap(({ MetricStat }) => (MetricStat === undefined ? [] : [MetricStat.Metric]));
};

test("every alarm of the definitions is in the template, under the deployment's name", () => {
  const alarms = ofType(stackOf([daily]), "AWS::CloudWatch::Alarm");
  expect(alarms.map(([, alarm]) => property(alarm, "AlarmName"))).toEqual(
    ALARMS.map(({ key }) => `notes-prod-${key}`),
  );
  for (const [, alarm] of alarms)
    expect(String(property(alarm, "AlarmDescription")).length).toBeLessThanOrEqual(1_024);
});

test.each(ALARMS)(
  "$key goes to a topic that CloudWatch may publish to, with a key that it may use",
  ({ key }) => {
    const { resources } = stackOf([daily]);
    const alarm = Object.values(resources).find(
      ({ Properties }) => Properties["AlarmName"] === `notes-prod-${key}`,
    );
    const [action] = property(alarm, "AlarmActions") as readonly { readonly Ref: string }[];
    expect(property(alarm, "OKActions")).toEqual([action]);
    const topicId = action?.Ref ?? "";
    const byOurAlarms = {
      StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } },
      ArnLike: {
        "aws:SourceArn": { "Fn::Sub": expect.stringMatching(/:cloudwatch:.*:alarm:notes-prod-\*$/) },
      },
    };
    expect(property(resources[`${topicId}Policy`], "PolicyDocument", "Statement")).toContainEqual({
      Effect: "Allow",
      Principal: { Service: "cloudwatch.amazonaws.com" },
      Action: ["sns:Publish"],
      Resource: [{ Ref: topicId }],
      Condition: byOurAlarms,
    });
    const { Ref: keyId } = property(resources[topicId], "KmsMasterKeyId") as { readonly Ref: string };
    expect(property(resources[keyId], "KeyPolicy", "Statement")).toContainEqual({
      Effect: "Allow",
      Principal: { Service: "cloudwatch.amazonaws.com" },
      Action: ["kms:Decrypt", "kms:GenerateDataKey*"],
      Resource: ["*"],
      Condition: byOurAlarms,
    });
  },
);

test("alarms wait in a queue that takes them from their topic only, until the notifier has stored them", () => {
  const { resources } = stackOf([daily]);
  const queueArn = { "Fn::GetAtt": ["BelfryAlarmsQueue", "Arn"] };
  expect(resources["BelfryTopicAlarmsToNotifier"]?.Properties).toEqual({
    TopicArn: { Ref: "BelfryTopicAlarms" },
    Protocol: "sqs",
    Endpoint: queueArn,
  });
  const statements = property(resources["BelfryAlarmsQueuePolicy"], "PolicyDocument", "Statement");
  expect(statements).toEqual([
    expect.objectContaining({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } }),
    {
      Effect: "Allow",
      Action: ["sqs:SendMessage"],
      Resource: [queueArn],
      Principal: { Service: "sns.amazonaws.com" },
      Condition: { ArnEquals: { "aws:SourceArn": { Ref: "BelfryTopicAlarms" } } },
    },
  ]);
  expect(resources["BelfryAlarmsQueueMapping"]?.Properties).toMatchObject({
    EventSourceArn: queueArn,
    FunctionName: { Ref: "BelfryDashnotifierLambdaFunction" },
    FunctionResponseTypes: ["ReportBatchItemFailures"],
  });
  // As long as SQS keeps anything, and without a number of tries after which it would be gone.
  const queue = resources["BelfryAlarmsQueue"]?.Properties;
  expect(queue).toMatchObject({ MessageRetentionPeriod: 14 * 86_400, VisibilityTimeout: 60 });
  expect(queue).not.toHaveProperty("RedrivePolicy");
});

test("the notifier knows the topic of each e-mail channel", () => {
  const notifier = stackOf([daily], { alerts: TEAM }).functions.find(({ kind }) => kind === "notifier");
  const variables = notifier?.properties["Environment"] as { readonly Variables: object };
  expect(Reflect.get(variables.Variables, "BELFRY_EMAIL_TOPICS")).toEqual({
    "Fn::Sub": `{"team":"${placeholder("BelfryTopicEmailDashteam")}","boss":"${placeholder("BelfryTopicEmailDashboss")}"}`,
  });
});

test("alarms go to the notifier's topic, but for the notifier's own, which goes to people", () => {
  const to = (key: string) => {
    const { resources } = stackOf([daily]);
    return Object.values(resources).find(({ Properties }) => Properties["AlarmName"] === `notes-prod-${key}`)
      ?.Properties["AlarmActions"];
  };
  expect(to("runs-dead")).toEqual([{ Ref: "BelfryTopicAlarms" }]);
  expect(to("watchdog-silent")).toEqual([{ Ref: "BelfryTopicAlarms" }]);
  expect(to("notifier-silent")).toEqual([{ Ref: "BelfryTopicPage" }]);
});

const email = (name: string, ...to: string[]) => ({ kind: "email", name, to }) as const;
const alerts = (...channels: readonly ReturnType<typeof email>[]): AlertsConfig => ({
  secrets: {},
  channels,
  topics: { notify: channels.map(({ name }) => name), page: [] },
});
const TEAM = alerts(
  email("team", "ops@example.com", "dev@example.com"),
  email("boss", "boss@example.com", "ops@example.com"),
);

test("an e-mail channel is a topic with its addresses, and each address hears once of the notifier's own failure", () => {
  const stack = stackOf([daily], { alerts: TEAM });
  const told = ofType(stack, "AWS::SNS::Subscription").map(([, { Properties }]) => Properties);
  const to = (topic: string) =>
    told
      .filter(({ TopicArn }) => JSON.stringify(TopicArn) === JSON.stringify({ Ref: topic }))
      .map(({ Protocol, Endpoint }) => `${Protocol} ${Endpoint}`);
  expect(to("BelfryTopicEmailDashteam")).toEqual(["email ops@example.com", "email dev@example.com"]);
  expect(to("BelfryTopicEmailDashboss")).toEqual(["email boss@example.com", "email ops@example.com"]);
  expect(to("BelfryTopicPage")).toEqual([
    "email ops@example.com",
    "email dev@example.com",
    "email boss@example.com",
  ]);
});

test("a new address changes no other subscription", () => {
  const before = stackOf([daily], { alerts: alerts(email("team", "ops@example.com")) }).resources;
  const after = stackOf([daily], {
    alerts: alerts(email("team", "dev@example.com", "ops@example.com")),
  }).resources;
  expect(after).toMatchObject(before);
  expect(Object.keys(after)).toHaveLength(Object.keys(before).length + 2);
});

test("only CloudWatch's own topics let CloudWatch publish", () => {
  const { resources } = stackOf([daily], { alerts: TEAM });
  expect(JSON.stringify(resources["BelfryTopicEmailDashteamPolicy"])).not.toContain(
    "cloudwatch.amazonaws.com",
  );
});

test("every topic refuses to be published to without TLS, and none uses the key that AWS keeps for SNS", () => {
  const stack = stackOf([daily], { alerts: TEAM });
  const topics = ofType(stack, "AWS::SNS::Topic");
  expect(topics.map(([, topic]) => property(topic, "TopicName"))).toEqual(
    ["alarms", "page", "email-team", "email-boss"].map((topic) => `notes-prod-belfry-${topic}`),
  );
  for (const [id] of topics)
    expect(property(stack.resources[`${id}Policy`], "PolicyDocument", "Statement")).toContainEqual({
      Effect: "Deny",
      Principal: "*",
      Action: ["sns:Publish"],
      Resource: [{ Ref: id }],
      Condition: { Bool: { "aws:SecureTransport": "false" } },
    });
  expect(JSON.stringify(stack.resources)).not.toContain("alias/aws/sns");
});

test("what an alarm measures exists: the queue, the function and the schedule group have that name", () => {
  const stack = stackOf([daily]);
  const names = {
    QueueName: ofType(stack, "AWS::SQS::Queue").map(([, queue]) => property(queue, "QueueName")),
    FunctionName: stack.functions.map(({ name }) => name),
    ScheduleGroup: ofType(stack, "AWS::Scheduler::ScheduleGroup").map(([, group]) => property(group, "Name")),
    service: [DEPLOYMENT.service],
    stage: [DEPLOYMENT.stage],
  };
  const dimensions = ofType(stack, "AWS::CloudWatch::Alarm").flatMap(([, { Properties }]) =>
    metricsOf(Properties).flatMap(({ Dimensions }) => Dimensions),
  );
  expect(new Set(dimensions.map(({ Name }) => Name))).toEqual(new Set(Object.keys(names)));
  for (const { Name, Value } of dimensions) expect(Reflect.get(names, Name)).toContain(Value);
});

test("the sum of several metrics counts one without data as nothing", () => {
  const throttles = stackOf([daily]).resources["BelfryAlarmThrottles"];
  expect(property(throttles, "Metrics", 0)).toEqual({
    Id: "sum",
    Expression: "SUM([FILL(m0, 0), FILL(m1, 0), FILL(m2, 0), FILL(m3, 0)])",
    ReturnData: true,
  });
  expect(property(throttles, "Metrics", 4)).toEqual({
    Id: "m3",
    ReturnData: false,
    MetricStat: {
      Metric: {
        Namespace: "AWS/Lambda",
        MetricName: "Throttles",
        Dimensions: [{ Name: "FunctionName", Value: "notes-prod-belfry-worker-slow" }],
      },
      Period: 300,
      Stat: "Sum",
    },
  });
});

test("a job that asks for it has alarms of its own, and no other has", () => {
  const own = definition({ name: "own", ownAlarms: true });
  const without = stackOf([daily, definition({ name: "own" })]).resources;
  const added = Object.entries(stackOf([daily, own]).resources).filter(([id]) => !(id in without));
  expect(added.map(([, { Properties }]) => Properties["AlarmName"])).toEqual([
    "notes-prod-job-own-dead",
    "notes-prod-job-own-missed",
    "notes-prod-job-own-late",
  ]);
  expect(added[0]?.[1].Properties).toMatchObject({
    Namespace: "Belfry",
    MetricName: "RunsDead",
    Dimensions: [
      { Name: "service", Value: "notes" },
      { Name: "stage", Value: "prod" },
      { Name: "job", Value: "own" },
    ],
  });
});

test("more metrics than an alarm takes are watched by several", () => {
  const pool = { memoryMb: 256, concurrency: 2 };
  const pools = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`pool-${n}`, pool]));
  const throttles = ofType(stackOf([daily], { pools }), "AWS::CloudWatch::Alarm").filter(([, alarm]) =>
    String(property(alarm, "AlarmName")).includes("throttles"),
  );
  expect(throttles.map(([, alarm]) => property(alarm, "AlarmName"))).toEqual([
    "notes-prod-throttles",
    "notes-prod-throttles-2",
    "notes-prod-throttles-3",
  ]);
  expect(throttles.map(([, { Properties }]) => metricsOf(Properties).length)).toEqual([10, 10, 3]);
});

interface Dashboard {
  readonly widgets: readonly {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
    readonly properties: {
      readonly alarms?: readonly string[];
      readonly metrics?: readonly (readonly unknown[])[];
      readonly query?: string;
    };
  }[];
}

const dashboardOf = (stack: Stack): Dashboard => {
  const body = property(stack.resources["BelfryDashboard"], "DashboardBody") as {
    readonly "Fn::Sub": string;
  };
  return JSON.parse(body["Fn::Sub"]);
};

test("the dashboard shows every alarm, and graphs of what exists only", () => {
  const stack = stackOf([daily]);
  const { widgets } = dashboardOf(stack);
  const shown = widgets.flatMap(({ properties }) => properties.alarms ?? []);
  expect(shown.map((arn) => arn.split(":alarm:")[1])).toEqual(ALARMS.map(({ key }) => `notes-prod-${key}`));
  const names = JSON.stringify([stack.resources, stack.functions]);
  const lines = widgets.flatMap(({ properties }) => properties.metrics ?? []);
  expect(lines.length).toBeGreaterThan(20);
  for (const [namespace, , ...dimensions] of lines)
    if (namespace !== "Belfry") expect(names).toContain(`"${String(dimensions[1])}"`);
  const logs = widgets.flatMap(({ properties }) => properties.query?.match(/\/aws\/lambda\/[a-z-]+/g) ?? []);
  const functions = stack.functions.map(({ name }) => `/aws/lambda/${name}`);
  expect(logs).toHaveLength(6);
  for (const log of logs) expect(functions).toContain(log);
});

test("a widget of the dashboard shows at most a hundred alarms, which is as many as CloudWatch takes", () => {
  const jobs = Array.from({ length: 40 }, (_, n) => definition({ name: `own-${n}`, ownAlarms: true }));
  const { widgets } = dashboardOf(stackOf(jobs));
  const shown = widgets.flatMap(({ properties }) =>
    properties.alarms === undefined ? [] : [properties.alarms],
  );
  const keys = alarmsOf(manifestOf(jobs)).map(({ key }) => `notes-prod-${key}`);
  expect(shown.flat().map((arn) => arn.split(":alarm:")[1])).toEqual(keys);
  expect(shown.map(({ length }) => length)).toEqual([100, keys.length - 100]);
});

test("no two widgets of the dashboard lie on one another, and none leaves the page", () => {
  const taken = new Set<string>();
  for (const { x, y, width, height } of dashboardOf(stackOf([daily])).widgets) {
    expect(x + width).toBeLessThanOrEqual(24);
    for (let column = x; column < x + width; column++)
      for (let row = y; row < y + height; row++) {
        expect(taken).not.toContain(`${column} ${row}`);
        taken.add(`${column} ${row}`);
      }
  }
});

test("silence right after a first deploy is no alarm", () => {
  const alarms = ofType(stackOf([daily]), "AWS::CloudWatch::Alarm");
  for (const [, { Properties }] of alarms)
    expect(Properties["WarmUpConfiguration"] !== undefined).toBe(
      Properties["TreatMissingData"] === "breaching",
    );
});
