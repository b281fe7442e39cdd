import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { expect, test } from "vitest";
import { ASK_INDEX, CALLS } from "../../../infra/roles.ts";
import { definition } from "../../support/definitions.ts";
import { byHand, daily, property, stackOf, statementsOf } from "./setup.ts";

type Kind = keyof typeof CALLS;
const KINDS = Object.keys(CALLS) as Kind[];

/** The function's code without what it never reaches, names as in the sources. */
const codeOf = async (kind: Kind): Promise<string> => {
  const result = await esbuild.build({
    entryPoints: [fileURLToPath(new URL(`../../../functions/${kind}.ts`, import.meta.url))],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    packages: "external",
    treeShaking: true,
  });
  return result.outputFiles[0]?.text ?? "";
};

/** The calls on AWS that each call of a port becomes. */
const OF_TABLE = [
  [/\btable\w*\.write\(/, ["GetItem", "UpdateItem"]],
  [/\btable\w*\.get\(/, ["GetItem"]],
  [/\btable\w*\.getMany\(/, ["BatchGetItem"]],
  [/\btable\w*\.query\(/, ["Query"]],
] as const;
const OF_QUEUES = [
  // A batch takes the same permission as a single message.
  [/\bqueue\w*\.send(?:Batch)?\(/, ["SendMessage"]],
  [/\bdeliveries\w*\.hide\(/, ["ChangeMessageVisibility"]],
] as const;

const callsIn = (code: string, table: readonly (readonly [RegExp, readonly string[]])[]): string[] =>
  [...new Set(table.flatMap(([call, actions]) => (call.test(code) ? actions : [])))].sort();

test.each(KINDS)("the role of %s names exactly the calls that its code makes", async (kind) => {
  const code = await codeOf(kind);
  expect({ table: callsIn(code, OF_TABLE), queues: callsIn(code, OF_QUEUES) }).toEqual(CALLS[kind]);
  expect(/index: "bad"/.test(code)).toBe(ASK_INDEX.has(kind));
});

test("the code calls its stores by the ports only, so that nothing escapes that list", async () => {
  const commands = await Promise.all(KINDS.map(codeOf));
  const made = new Set(commands.flatMap((code) => code.match(/new \w+Command\(/g) ?? []));
  expect([...made].sort()).toEqual(
    [
      "BatchGetItem",
      "ChangeMessageVisibility",
      "GetItem",
      "GetParameters",
      "GetSecretValue",
      "Publish",
      "Query",
      "SendMessageBatch",
      "SendMessage",
      "SetAlarmState",
      "UpdateItem",
    ].map((name) => `new ${name}Command(`),
  );
});

const actions = (stack: ReturnType<typeof stackOf>, role: string): Record<string, readonly unknown[]> =>
  Object.fromEntries(
    statementsOf(stack.resources[role]).map(({ Action, Resource }) => [Action.join(" "), Resource]),
  );

test("the function of the command line may ring the one alarm that tests the alerts", () => {
  const { resources } = stackOf([daily]);
  const ringing = Object.entries(resources).flatMap(([name, resource]) =>
    resource.Type === "AWS::IAM::Role"
      ? statementsOf(resource)
          .filter(({ Action }) => Action.includes("cloudwatch:SetAlarmState"))
          .map(({ Resource }) => [name, Resource])
      : [],
  );
  expect(ringing).toEqual([
    ["BelfryOperateRole", [{ "Fn::Sub": expect.stringMatching(/:alarm:notes-prod-poison-messages$/) }]],
  ]);
});

test("each role allows that on the table and the queues, its log group, and nothing else", () => {
  const stack = stackOf([daily]);
  const pools = [
    { "Fn::GetAtt": ["BelfryPoolDefaultQueue", "Arn"] },
    { "Fn::GetAtt": ["BelfryPoolSlowQueue", "Arn"] },
  ];
  const logs = {
    "logs:CreateLogStream logs:PutLogEvents": [
      {
        "Fn::Sub": expect.stringMatching(/:logs:.*:log-group:\/aws\/lambda\/notes-prod-belfry-[a-z-]+:\*$/),
      },
    ],
  };
  const table = [{ "Fn::GetAtt": ["BelfryTable", "Arn"] }];
  const index = [{ "Fn::Sub": expect.stringMatching(/^\$\{BelfryTable\.Arn\}\/index\/bad$/) }];
  expect(actions(stack, "BelfryDispatcherRole")).toEqual({
    ...logs,
    "dynamodb:GetItem dynamodb:UpdateItem": table,
    // The last statement: what failed goes to its queue.
    "sqs:SendMessage": [{ "Fn::GetAtt": ["BelfryDispatchFailures", "Arn"] }],
  });
  expect(actions(stack, "BelfryWorkerSlowRole")).toEqual({
    ...logs,
    "dynamodb:BatchGetItem dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem": table,
    "dynamodb:Query": index,
    "sqs:SendMessage": pools,
    "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes sqs:ChangeMessageVisibility": [
      { "Fn::GetAtt": ["BelfryPoolSlowQueue", "Arn"] },
    ],
  });
  expect(actions(stack, "BelfryOperateRole")).toMatchObject({ "dynamodb:Query": index });
});

test("no statement of ours allows every call or every resource", () => {
  const stack = stackOf([daily, byHand]);
  const roles = Object.values(stack.resources).filter(({ Type }) => Type === "AWS::IAM::Role");
  expect(roles).toHaveLength(10);
  for (const role of roles)
    for (const { Action, Resource } of statementsOf(role)) {
      expect(Action.join(" ")).not.toContain("*");
      expect(Resource).not.toContain("*");
    }
});

test("a schedule's role trusts the schedules of its group in this account only, and invokes one function", () => {
  const { resources } = stackOf([daily]);
  const trust = property(resources["BelfryScheduleRole"], "AssumeRolePolicyDocument", "Statement", 0);
  expect(trust).toMatchObject({
    Principal: { Service: "scheduler.amazonaws.com" },
    Condition: {
      StringEquals: {
        "aws:SourceAccount": { Ref: "AWS::AccountId" },
        "aws:SourceArn": {
          "Fn::Sub": expect.stringMatching(/:scheduler:.*:schedule-group\/notes-prod-belfry-jobs$/),
        },
      },
    },
  });
  expect(statementsOf(resources["BelfryWatchdogScheduleRole"])).toEqual([
    {
      Effect: "Allow",
      Action: ["lambda:InvokeFunction"],
      Resource: [
        { "Fn::GetAtt": ["BelfryDashwatchdogLambdaFunction", "Arn"] },
        { "Fn::Sub": expect.stringMatching(/^\$\{BelfryDashwatchdogLambdaFunction\.Arn\}:\*$/) },
      ],
    },
  ]);
});

test("what a job needs goes to the worker of its pool, and to no other function", () => {
  const needy = definition({
    name: "needy",
    pool: "slow",
    permissions: [
      {
        actions: ["s3:GetObject"],
        resources: ["arn:aws:s3:::notes-{stage}/*", ["$", "{Notes.Arn}"].join("")],
        conditions: { StringEquals: { "s3:prefix": "a/" } },
      },
    ],
    environment: { BUCKET: "notes-{stage}" },
    secrets: { API_KEY: "ssm:/notes/{stage}/key", PASSWORD: "secretsmanager:notes/{stage}#password" },
  });
  const stack = stackOf([daily, needy]);
  expect(statementsOf(stack.resources["BelfryWorkerSlowRole"])).toEqual(
    expect.arrayContaining([
      {
        Effect: "Allow",
        Action: ["s3:GetObject"],
        Resource: ["arn:aws:s3:::notes-prod/*", { "Fn::Sub": ["$", "{Notes.Arn}"].join("") }],
        Condition: { StringEquals: { "s3:prefix": "a/" } },
      },
      expect.objectContaining({
        Action: ["ssm:GetParameters"],
        Resource: [{ "Fn::Sub": expect.stringMatching(/:parameter\/notes\/prod\/key$/) }],
      }),
      expect.objectContaining({
        Action: ["secretsmanager:GetSecretValue"],
        Resource: [{ "Fn::Sub": expect.stringMatching(/:secret:notes\/prod-\?{6}$/) }],
      }),
    ]),
  );
  const others = stack.functions.filter(({ pool }) => pool !== "slow");
  expect(others).toHaveLength(6);
  for (const { roleId, properties } of others) {
    expect(JSON.stringify(stack.resources[roleId])).not.toMatch(/s3:|ssm:|secretsmanager/);
    expect(JSON.stringify(properties)).not.toContain("BUCKET");
  }
  const worker = stack.functions.find(({ pool }) => pool === "slow");
  expect(worker?.properties["Environment"]).toMatchObject({ Variables: { BUCKET: "notes-prod" } });
  expect(JSON.stringify(worker)).not.toMatch(/API_KEY|PASSWORD/);
});

test("the notifier may read the secrets of its channels and publish to its e-mail topics, and no more", () => {
  const email = { kind: "email", name: "team", to: ["ops@example.com"] } as const;
  const slack = { kind: "slack", name: "slack", webhook: "SLACK" } as const;
  const alerts = {
    secrets: { SLACK: "ssm:/notes/{stage}/slack" },
    channels: [email, slack],
    topics: { notify: ["team", "slack"], page: [] },
  };
  expect(actions(stackOf([daily], { alerts }), "BelfryNotifierRole")).toEqual({
    "logs:CreateLogStream logs:PutLogEvents": [expect.anything()],
    "dynamodb:GetItem dynamodb:UpdateItem": [{ "Fn::GetAtt": ["BelfryTable", "Arn"] }],
    "dynamodb:Query": [{ "Fn::Sub": expect.stringMatching(/^\$\{BelfryTable\.Arn\}\/index\/bad$/) }],
    "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes": [
      { "Fn::GetAtt": ["BelfryAlarmsQueue", "Arn"] },
    ],
    "ssm:GetParameters": [{ "Fn::Sub": expect.stringMatching(/:parameter\/notes\/prod\/slack$/) }],
    "sns:Publish": [{ Ref: "BelfryTopicEmailDashteam" }],
    "kms:Decrypt kms:GenerateDataKey": [{ "Fn::GetAtt": ["BelfryAlertKey", "Arn"] }],
  });
  const quiet = Object.keys(actions(stackOf([daily]), "BelfryNotifierRole"));
  expect(quiet).toEqual([
    "logs:CreateLogStream logs:PutLogEvents",
    "dynamodb:GetItem dynamodb:UpdateItem",
    "dynamodb:Query",
    "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes",
  ]);
});

test("workers of a pool with a network may make its interfaces, and no other function may", () => {
  const vpc = { securityGroups: ["sg-1"], subnets: ["subnet-1", "subnet-2"] };
  const stack = stackOf([daily], {
    pools: { default: { memoryMb: 256, concurrency: 2 }, inside: { memoryMb: 256, concurrency: 2, vpc } },
  });
  const inside = stack.functions.find(({ pool }) => pool === "inside");
  expect(inside?.properties["VpcConfig"]).toEqual({
    SecurityGroupIds: ["sg-1"],
    SubnetIds: ["subnet-1", "subnet-2"],
  });
  const allowed = stack.functions.filter(({ roleId }) =>
    JSON.stringify(stack.resources[roleId]).includes("ec2:CreateNetworkInterface"),
  );
  expect(allowed.map(({ pool }) => pool)).toEqual(["inside"]);
});
