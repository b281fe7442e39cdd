import { INDEX_NAME } from "../lib/core/items.ts";
import { inStage, type Permission, secretSource } from "../lib/core/jobs/job-needs.ts";
import {
  allow,
  arnHere,
  getArn,
  placeholder,
  policyDocument,
  type Resource,
  type Statement,
  sub,
  type Value,
} from "./cloudformation.ts";
import type { FunctionKind } from "./naming.ts";
import { DISPATCH_FAILURES, deadLetterQueueId, poolQueueId } from "./queues.ts";
import { TABLE } from "./table.ts";

/**
 * What each function's own code calls on the table and on the pools' queues; a test compares it with the code. A
 * refused write is read again (`GetItem`) where the store gave no item back.
 */
export const CALLS: {
  readonly [kind in FunctionKind]: { readonly table: readonly string[]; readonly queues: readonly string[] };
} = {
  dispatcher: { table: ["GetItem", "UpdateItem"], queues: ["SendMessage"] },
  worker: {
    table: ["BatchGetItem", "GetItem", "Query", "UpdateItem"],
    queues: ["ChangeMessageVisibility", "SendMessage"],
  },
  "dead-letters": { table: ["GetItem", "UpdateItem"], queues: ["ChangeMessageVisibility", "SendMessage"] },
  watchdog: { table: ["BatchGetItem", "GetItem", "Query", "UpdateItem"], queues: ["SendMessage"] },
  notifier: { table: ["GetItem", "Query", "UpdateItem"], queues: [] },
  operate: { table: ["BatchGetItem", "GetItem", "Query", "UpdateItem"], queues: ["SendMessage"] },
  ping: { table: ["GetItem", "Query", "UpdateItem"], queues: [] },
};

/** Who lists runs that ended badly, goes on with the retry of a job's dead ones, or tells the alerts that wait. */
export const ASK_INDEX: ReadonlySet<FunctionKind> = new Set(["operate", "worker", "watchdog", "notifier"]);
/** Whose queries are all of the index. */
const ASK_ONLY_INDEX: ReadonlySet<FunctionKind> = new Set(["notifier"]);

/** What Lambda itself does with the function's role when a queue feeds it. */
const RECEIVE = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

export interface RoleFacts {
  readonly kind: FunctionKind;
  readonly functionName: string;
  readonly pools: readonly string[];
  /** Of the queues that feed the function. */
  readonly feeds?: readonly string[];
  readonly more?: readonly Statement[];
}

/** A function's own role, with what its code calls and no more. */
export const roleResource = ({ kind, functionName, pools, feeds = [], more = [] }: RoleFacts): Resource => ({
  Type: "AWS::IAM::Role",
  Properties: {
    AssumeRolePolicyDocument: {
      Version: "2012-10-17",
      Statement: [
        { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" },
      ],
    },
    Policies: [
      {
        PolicyName: kind,
        PolicyDocument: policyDocument([
          logs(functionName),
          ...tableStatements(kind),
          ...queueStatements(kind, pools, feeds),
          ...more,
        ]),
      },
    ],
  },
});

/** The log group is made by the stack, so no function may make one. */
const logs = (functionName: string): Statement =>
  allow(
    ["logs:CreateLogStream", "logs:PutLogEvents"],
    [arnHere("logs", `log-group:/aws/lambda/${functionName}:*`)],
  );

const tableStatements = (kind: FunctionKind): readonly Statement[] => {
  const index = sub(`${placeholder(`${TABLE}.Arn`)}/index/${INDEX_NAME}`);
  return [
    allow(
      CALLS[kind].table
        .filter((call) => call !== "Query" || !ASK_ONLY_INDEX.has(kind))
        .map((call) => `dynamodb:${call}`),
      [getArn(TABLE)],
    ),
    ...(ASK_INDEX.has(kind) ? [allow(["dynamodb:Query"], [index])] : []),
  ];
};

const queueStatements = (
  kind: FunctionKind,
  pools: readonly string[],
  feeds: readonly string[],
): readonly Statement[] => {
  const sends = pools.map((pool) => getArn(poolQueueId(pool)));
  const fed = feeds.map(getArn);
  const hides = CALLS[kind].queues.includes("ChangeMessageVisibility") ? ["sqs:ChangeMessageVisibility"] : [];
  return [
    ...(CALLS[kind].queues.includes("SendMessage") ? [allow(["sqs:SendMessage"], sends)] : []),
    ...(fed.length === 0 ? [] : [allow([...RECEIVE, ...hides], fed)]),
  ];
};

export const feedsOfDeadLetters = (pools: readonly string[]): readonly string[] => [
  ...pools.map(deadLetterQueueId),
  DISPATCH_FAILURES,
];

/** `Fn::Sub` where the author wrote `${...}`. */
export const authored = (text: string, stage: string): Value => {
  const filled = inStage(text, stage);
  return filled.includes("${") ? sub(filled) : filled;
};

export const permissionStatement = (
  { actions, resources, conditions }: Permission,
  stage: string,
): Statement => ({
  ...allow(
    actions,
    resources.map((resource) => authored(resource, stage)),
  ),
  // Checked to be JSON when the job was read.
  ...(conditions === undefined ? {} : { Condition: conditions as Value }),
});

/** Reading exactly the secrets that the pool's jobs name. */
export const secretStatements = (references: readonly string[], stage: string): readonly Statement[] => {
  const sources = references.map((reference) => secretSource(reference, stage));
  const namesOf = (service: string) => [
    ...new Set(sources.filter((source) => source.service === service).map(({ name }) => name)),
  ];
  const parameters = namesOf("ssm").map((name) => arnHere("ssm", `parameter/${name.replace(/^\//, "")}`));
  // Secrets Manager adds a hyphen and six characters to the name.
  const secrets = namesOf("secretsmanager").map((name) => arnHere("secretsmanager", `secret:${name}-??????`));
  return [
    ...(parameters.length === 0 ? [] : [allow(["ssm:GetParameters"], parameters)]),
    ...(secrets.length === 0 ? [] : [allow(["secretsmanager:GetSecretValue"], secrets)]),
  ];
};

/** What Lambda needs to run a function inside a network. */
export const networkStatement: Statement = allow(
  [
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
  ],
  ["*"],
);
