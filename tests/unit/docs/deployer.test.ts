import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Resource } from "../../../infra/cloudformation.ts";
import { daily, elsewhere, property, stackOf } from "../infra/setup.ts";

interface Statement {
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
}

const page = readFileSync("docs/deploy.md", "utf8");
const [, json = "{}"] = /^## Who may deploy\n[\s\S]*?```json\n([\s\S]*?)```/m.exec(page) ?? [];
const { Statement: statements } = JSON.parse(json) as { readonly Statement: readonly Statement[] };

const matches = (pattern: string, text: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/[.+?^$(){}|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`).test(text);

const mayDo = ([action, arn]: readonly [string, string]): boolean =>
  statements.some(
    ({ Action, Resource }) =>
      [Action].flat().some((one) => matches(one, action)) &&
      [Resource].flat().some((one) => matches(one, arn)),
  );

const arn = (service: string, path: string): string => `arn:aws:${service}:eu-west-1:ACCOUNT:${path}`;

/** As CloudFormation names what has no name of its own. */
const nameOf = (id: string, resource: Resource, name: string): string =>
  name in resource.Properties ? String(property(resource, name)) : `notes-prod-${id}-1ABCDEF`;

/** One call that each kind of resource needs, by the service authorization reference of AWS. */
const CALLS: {
  readonly [type: string]: (id: string, resource: Resource) => readonly (readonly [string, string])[];
} = {
  "AWS::ApiGatewayV2::Api": () => [
    ["apigateway:POST", "arn:aws:apigateway:eu-west-1::/apis"],
    ["apigateway:POST", "arn:aws:apigateway:eu-west-1::/tags/some-api"],
  ],
  "AWS::ApiGatewayV2::Integration": () => [
    ["apigateway:POST", "arn:aws:apigateway:eu-west-1::/apis/a/integrations"],
  ],
  "AWS::ApiGatewayV2::Route": () => [["apigateway:POST", "arn:aws:apigateway:eu-west-1::/apis/a/routes"]],
  "AWS::ApiGatewayV2::Stage": () => [["apigateway:POST", "arn:aws:apigateway:eu-west-1::/apis/a/stages"]],
  "AWS::CloudWatch::Alarm": (id, each) => [
    ["cloudwatch:PutMetricAlarm", arn("cloudwatch", `alarm:${nameOf(id, each, "AlarmName")}`)],
    ["cloudwatch:DescribeAlarms", arn("cloudwatch", "alarm:*")],
  ],
  "AWS::CloudWatch::Dashboard": (id, each) => [
    ["cloudwatch:PutDashboard", `arn:aws:cloudwatch::ACCOUNT:dashboard/${nameOf(id, each, "DashboardName")}`],
  ],
  "AWS::DynamoDB::Table": (id, each) => [
    ["dynamodb:UpdateContinuousBackups", arn("dynamodb", `table/${nameOf(id, each, "TableName")}`)],
  ],
  "AWS::IAM::Role": (id) => [
    [
      "iam:PutRolePolicy",
      `arn:aws:iam::ACCOUNT:role/${nameOf(id, { Type: "", Properties: {} }, "RoleName")}`,
    ],
    ["iam:PassRole", `arn:aws:iam::ACCOUNT:role/notes-prod-${id}-1ABCDEF`],
    ["iam:ListAttachedRolePolicies", `arn:aws:iam::ACCOUNT:role/notes-prod-${id}-1ABCDEF`],
  ],
  // A tag of a new key is asked for on all keys.
  "AWS::KMS::Key": () => [
    ["kms:CreateKey", "*"],
    ["kms:TagResource", "*"],
    ["kms:EnableKeyRotation", arn("kms", "key/1234")],
  ],
  "AWS::Lambda::EventInvokeConfig": () => [
    ["lambda:PutFunctionEventInvokeConfig", arn("lambda", "function:notes-prod-belfry-dispatcher:$LATEST")],
  ],
  "AWS::Lambda::EventSourceMapping": () => [
    ["lambda:CreateEventSourceMapping", "*"],
    ["lambda:DeleteEventSourceMapping", arn("lambda", "event-source-mapping:1234")],
  ],
  "AWS::Lambda::Permission": () => [
    ["lambda:AddPermission", arn("lambda", "function:notes-prod-belfry-ping")],
  ],
  "AWS::SNS::Subscription": () => [
    ["sns:Subscribe", arn("sns", "notes-prod-belfry-alarms")],
    ["sns:GetSubscriptionAttributes", "*"],
    ["sns:Unsubscribe", "*"],
  ],
  "AWS::SNS::Topic": (id, each) => [["sns:CreateTopic", arn("sns", nameOf(id, each, "TopicName"))]],
  "AWS::SNS::TopicPolicy": () => [["sns:SetTopicAttributes", arn("sns", "notes-prod-belfry-page")]],
  "AWS::SQS::Queue": (id, each) => [["sqs:CreateQueue", arn("sqs", nameOf(id, each, "QueueName"))]],
  "AWS::SQS::QueuePolicy": () => [["sqs:SetQueueAttributes", arn("sqs", "notes-prod-belfry-alarms")]],
  "AWS::Scheduler::Schedule": (_, each) => [
    [
      "scheduler:CreateSchedule",
      arn("scheduler", `schedule/notes-prod-belfry-jobs/${property(each, "Name")}`),
    ],
  ],
  "AWS::Scheduler::ScheduleGroup": (_, each) => [
    ["scheduler:CreateScheduleGroup", arn("scheduler", `schedule-group/${property(each, "Name")}`)],
  ],
  "AWS::SecretsManager::Secret": (id, each) => [
    ["secretsmanager:CreateSecret", arn("secretsmanager", `secret:${nameOf(id, each, "Name")}-a1b2c3`)],
    ["secretsmanager:GetRandomPassword", "*"],
  ],
};

test("the deployer's policy allows what each resource of the stack needs, and no other project's", () => {
  const { functions, resources } = stackOf([daily, elsewhere]);
  const calls = Object.entries(resources).flatMap(([id, each]) => {
    const needed = CALLS[each.Type];
    return needed === undefined ? [[each.Type, "is not known here"] as const] : needed(id, each);
  });
  const made = functions.flatMap(({ name }) => [
    ["lambda:CreateFunction", arn("lambda", `function:${name}`)] as const,
    ["logs:CreateLogGroup", arn("logs", `log-group:/aws/lambda/${name}`)] as const,
  ]);
  expect([...calls, ...made].filter((call) => !mayDo(call))).toEqual([]);
  expect(mayDo(["lambda:UpdateFunctionCode", arn("lambda", "function:other-prod-api")])).toBe(false);
  expect(mayDo(["iam:PutRolePolicy", "arn:aws:iam::ACCOUNT:role/admin"])).toBe(false);
});
