import { expect, test } from "vitest";
import { type AlarmWay, alarmFaults, wantedAlarms } from "../../../cli/stage/alarm-way.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { jobList } from "../../../lib/core/jobs/job-list.ts";
import { DEPLOYMENT, daily, elsewhere, manifestOf, property, stackOf } from "../infra/setup.ts";

const MANIFEST = manifestOf([daily, elsewhere], { pools: { default: { memoryMb: 256, concurrency: 10 } } });
const WANTED = wantedAlarms(DEPLOYMENT, jobList(MANIFEST, "prod"));
const { resources } = stackOf([daily, elsewhere], MANIFEST);

const policyOf = (id: string, name: string): string => JSON.stringify(property(resources[id], name));
const KEY = { state: "Enabled", isOfAws: false, policy: policyOf("BelfryAlertKey", "KeyPolicy") };

/** As the stack is deployed, by its own template. */
const DEPLOYED: AlarmWay = {
  alarms: new Map(
    Object.values(resources)
      .filter(({ Type }) => Type === "AWS::CloudWatch::Alarm")
      .map((each) => {
        const [action] = property(each, "AlarmActions") as readonly { readonly Ref: string }[];
        const topic = String(property(resources[action?.Ref ?? ""], "TopicName"));
        return [String(property(each, "AlarmName")), { isOn: true, topics: [topic] }];
      }),
  ),
  topics: new Map([
    [
      "notes-prod-belfry-alarms",
      {
        policy: policyOf("BelfryTopicAlarmsPolicy", "PolicyDocument"),
        key: KEY,
        queues: ["notes-prod-belfry-alarms"],
      },
    ],
    [
      "notes-prod-belfry-page",
      { policy: policyOf("BelfryTopicPagePolicy", "PolicyDocument"), key: KEY, queues: [] },
    ],
  ]),
  mappings: ["Enabled"],
};

const faults = (changes: Partial<AlarmWay>) => alarmFaults(DEPLOYMENT, WANTED, { ...DEPLOYED, ...changes });

const withAlarm = (name: string, facts: { isOn: boolean; topics: readonly string[] }) =>
  faults({ alarms: new Map([...DEPLOYED.alarms, [`notes-prod-${name}`, facts]]) });

const withTopic = (name: string, changes: object) => {
  const facts = DEPLOYED.topics.get(`notes-prod-belfry-${name}`);
  if (facts === undefined) throw new Error(`no topic ${name}`);
  return faults({
    topics: new Map([...DEPLOYED.topics, [`notes-prod-belfry-${name}`, { ...facts, ...changes }]]),
  });
};

test("every alarm of the stage's jobs is looked for, and what the template deploys has no fault", () => {
  expect([...WANTED.keys()]).toEqual(alarmsOf(MANIFEST).map(({ key }) => `notes-prod-${key}`));
  expect([...WANTED.keys()].sort()).toEqual([...DEPLOYED.alarms.keys()].sort());
  expect(faults({})).toEqual([]);
});

test("an alarm that is gone, switched off, or goes elsewhere is told", () => {
  const alarms = new Map(DEPLOYED.alarms);
  alarms.delete("notes-prod-runs-dead");
  expect(faults({ alarms })).toEqual(["the alarm notes-prod-runs-dead is missing"]);
  expect(withAlarm("throttles", { isOn: false, topics: ["notes-prod-belfry-alarms"] })).toEqual([
    "the alarm notes-prod-throttles is switched off: it rings for nobody",
  ]);
  expect(withAlarm("notifier-silent", { isOn: true, topics: ["notes-prod-belfry-alarms"] })).toEqual([
    "the alarm notes-prod-notifier-silent does not go to the topic notes-prod-belfry-page",
  ]);
});

test("a topic that is gone, or that CloudWatch may not publish to, is told", () => {
  const topics = new Map(DEPLOYED.topics);
  topics.delete("notes-prod-belfry-page");
  expect(faults({ topics })).toEqual(["the topic notes-prod-belfry-page is missing"]);
  const denied = JSON.stringify({ Statement: [{ Effect: "Deny", Principal: "*", Action: "sns:Publish" }] });
  const other = JSON.stringify({
    Statement: { Effect: "Allow", Principal: { Service: "events.amazonaws.com" }, Action: ["sns:Publish"] },
  });
  for (const policy of [denied, other, "{}"])
    expect(withTopic("page", { policy })).toEqual([
      "CloudWatch may not publish to the topic notes-prod-belfry-page",
    ]);
  const open = JSON.stringify({ Statement: { Effect: "Allow", Principal: { AWS: "*" }, Action: "sns:*" } });
  expect(withTopic("page", { policy: open })).toEqual([]);
});

test("a key that cannot be used, or not by CloudWatch, is told; without one there is nothing to use", () => {
  expect(withTopic("alarms", { key: { ...KEY, state: "PendingDeletion" } })).toEqual([
    "the key of the topic notes-prod-belfry-alarms is PendingDeletion",
  ]);
  const message = ["CloudWatch may not use the key of the topic notes-prod-belfry-alarms"];
  expect(withTopic("alarms", { key: { ...KEY, isOfAws: true } })).toEqual(message);
  const half = JSON.stringify({
    Statement: [
      { Effect: "Allow", Principal: { Service: "cloudwatch.amazonaws.com" }, Action: "kms:Decrypt" },
    ],
  });
  expect(withTopic("alarms", { key: { ...KEY, policy: half } })).toEqual(message);
  expect(withTopic("alarms", { key: undefined })).toEqual([]);
});

test("alarms that do not come as far as the notifier are told", () => {
  const queue = "notes-prod-belfry-alarms";
  expect(withTopic("alarms", { queues: [] })).toEqual([
    `the topic ${queue} does not feed the queue ${queue}`,
  ]);
  expect(faults({ mappings: ["Disabled"] })).toEqual([
    `the notifier takes nothing from the queue ${queue}: its mapping is Disabled`,
  ]);
  expect(faults({ mappings: [] })).toEqual([expect.stringContaining("its mapping is missing")]);
  expect(faults({ mappings: ["Updating"] })).toEqual([]);
});
