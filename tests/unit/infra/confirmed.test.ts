import { ListSubscriptionsByTopicCommand, ListTopicsCommand, SNSClient } from "@aws-sdk/client-sns";
import { mockClient } from "aws-sdk-client-mock";
import { expect, test } from "vitest";
import { warnOfUnconfirmed } from "../../../infra/confirmed.ts";
import { type AlertsConfig, NO_ALERTS } from "../../../lib/core/alerts/alert-channels.ts";
import { DEPLOYMENT } from "./setup.ts";

const arn = (topic: string) => `arn:aws:sns:us-east-1:000000000000:notes-prod-belfry-${topic}`;
const linesFor = async (alerts: AlertsConfig): Promise<readonly string[]> => {
  const lines: string[] = [];
  const warn = (line: string): number => lines.push(line);
  await warnOfUnconfirmed({ region: "us-east-1", deployment: DEPLOYMENT, alerts, warn });
  return lines;
};

const TEAM: AlertsConfig = {
  ...NO_ALERTS,
  channels: [{ kind: "email", name: "team", to: ["ops@example.com", "dev@example.com"] } as const],
};

test("after a deploy, addresses that have not confirmed are named, and no others", async () => {
  const sns = mockClient(SNSClient);
  sns
    .on(ListTopicsCommand, { NextToken: undefined })
    .resolves({ Topics: [{ TopicArn: arn("page") }], NextToken: "more" })
    .on(ListTopicsCommand, { NextToken: "more" })
    .resolves({ Topics: [{ TopicArn: arn("email-team") }] })
    .on(ListSubscriptionsByTopicCommand, { TopicArn: arn("page") })
    .resolves({
      Subscriptions: [
        { Endpoint: "ops@example.com", SubscriptionArn: "PendingConfirmation" },
        { Endpoint: "dev@example.com", SubscriptionArn: `${arn("page")}:1` },
      ],
    })
    .on(ListSubscriptionsByTopicCommand, { TopicArn: arn("email-team") })
    .resolves({
      Subscriptions: [
        { Endpoint: "ops@example.com", SubscriptionArn: `${arn("email-team")}:1` },
        { Endpoint: "dev@example.com", SubscriptionArn: "PendingConfirmation" },
      ],
    });
  expect(await linesFor(TEAM)).toEqual([
    expect.stringMatching(
      /^alerts of the channel "team" do not reach dev@example\.com before it has confirmed/,
    ),
    expect.stringMatching(
      /^alarms about the notifier itself do not reach ops@example\.com before it has confirmed/,
    ),
  ]);
});

test("a project without e-mail asks AWS for nothing", async () => {
  const sns = mockClient(SNSClient);
  expect(await linesFor(NO_ALERTS)).toEqual([]);
  expect(sns.calls()).toEqual([]);
});

test("a deploy is no failure because its addresses could not be asked", async () => {
  mockClient(SNSClient).on(ListTopicsCommand).rejects(new Error("not allowed to sns:ListTopics"));
  expect(await linesFor(TEAM)).toEqual([
    "whether e-mail addresses have confirmed could not be asked: not allowed to sns:ListTopics",
  ]);
});
