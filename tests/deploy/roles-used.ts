/**
 * Which of the rights that were deployed were used. The emulator's CloudTrail tells who called what; what the services
 * do with a role themselves it does without one, and there IAM is asked.
 */
import { createHash } from "node:crypto";
import { LookupEventsCommand } from "@aws-sdk/client-cloudtrail";
import { DescribeLogGroupsCommand, FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { GetRolePolicyCommand, ListRolePoliciesCommand } from "@aws-sdk/client-iam";
import { GetFunctionConfigurationCommand, ListFunctionsCommand } from "@aws-sdk/client-lambda";
import type { Aws } from "./aws.ts";
import { mayDo, nameOfRole, oneOf } from "./permissions.ts";
import { SERVICE, STAGE } from "./project.ts";

export interface Statement {
  readonly Effect: string;
  readonly Action: readonly string[];
  readonly Resource: readonly string[];
}

/** One statement of a deployed role. */
export interface Right {
  /** `worker-default`, `dispatcher`. */
  readonly owner: string;
  readonly roleArn: string;
  readonly policy: string;
  readonly index: number;
  readonly statement: Statement;
}

const PREFIX = `${SERVICE}-${STAGE}-belfry-`;

interface Owner {
  readonly name: string;
  readonly functionArn: string;
  readonly roleArn: string;
}

export const ownersOf = async ({ lambda }: Aws): Promise<readonly Owner[]> => {
  const { Functions = [] } = await lambda.send(new ListFunctionsCommand({ MaxItems: 50 }));
  const ours = Functions.filter(({ FunctionName }) => FunctionName?.startsWith(PREFIX));
  return Promise.all(
    ours.map(async ({ FunctionName = "" }) => {
      const { FunctionArn = "", Role = "" } = await lambda.send(
        new GetFunctionConfigurationCommand({ FunctionName }),
      );
      return { name: FunctionName.slice(PREFIX.length), functionArn: FunctionArn, roleArn: Role };
    }),
  );
};

export const documentOf = async (
  { iam }: Aws,
  roleArn: string,
  PolicyName: string,
): Promise<readonly Statement[]> => {
  const RoleName = nameOfRole(roleArn);
  const { PolicyDocument = "" } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
  return (JSON.parse(decodeURIComponent(PolicyDocument)) as { readonly Statement: readonly Statement[] })
    .Statement;
};

export const rightsOf = async (
  aws: Aws,
  { name, roleArn }: Pick<Owner, "name" | "roleArn">,
): Promise<readonly Right[]> => {
  const { PolicyNames = [] } = await aws.iam.send(
    new ListRolePoliciesCommand({ RoleName: nameOfRole(roleArn) }),
  );
  const all = await Promise.all(
    PolicyNames.map(async (policy) =>
      (await documentOf(aws, roleArn, policy)).map(
        (statement, index): Right => ({ owner: name, roleArn, policy, index, statement }),
      ),
    ),
  );
  return all.flat();
};

/** As the emulator makes it: one for each function and role. */
const accessKeyOf = ({ functionArn, roleArn }: Owner): string =>
  `ASIA${createHash("sha256").update(`${functionArn}:${roleArn}`).digest("hex").slice(0, 16).toUpperCase()}`;

/** What the services do with a role themselves: for each call, the reason why no function makes it. */
export const BY_SERVICES: readonly (readonly [action: string, owner: RegExp, why: string])[] = [
  ["logs:CreateLogStream", /./, "Lambda writes the log"],
  ["logs:PutLogEvents", /./, "Lambda writes the log"],
  ["sqs:ReceiveMessage", /./, "Lambda polls the queue"],
  ["sqs:DeleteMessage", /./, "Lambda deletes what was handled"],
  ["sqs:GetQueueAttributes", /./, "Lambda watches the queue's length"],
];

/** Rights for what this scenario does not bring about: each has another test. */
const NOT_HERE: readonly (readonly [action: string, owner: RegExp, why: string])[] = [
  ["sqs:ChangeMessageVisibility", /^dead-letters$/, "a dead letter whose run is still held: tests/unit/path"],
  ["dynamodb:BatchGetItem", /^worker/, "pieces of a run in shards: tests/shards"],
  ["dynamodb:Query", /^(?:worker|watchdog)/, "the next of many retries: tests/unit/path"],
];

export const reasonIn = (
  list: readonly (readonly [action: string, owner: RegExp, why: string])[],
  owner: string,
  action: string,
): string | undefined => list.find(([one, whose]) => one === action && whose.test(owner))?.[2];

const wasCalled = async (
  { cloudTrail }: Aws,
  owner: Owner,
  action: string,
  resource: string,
): Promise<boolean> => {
  const { Events = [] } = await cloudTrail.send(
    new LookupEventsCommand({
      LookupAttributes: [
        { AttributeKey: "AccessKeyId", AttributeValue: accessKeyOf(owner) },
        { AttributeKey: "EventName", AttributeValue: action.slice(action.indexOf(":") + 1) },
      ],
      MaxResults: 50,
    }),
  );
  const index = /\/index\/(.+)$/.exec(resource)?.[1];
  return Events.some(
    ({ CloudTrailEvent = "" }) => index === undefined || CloudTrailEvent.includes(`"${index}"`),
  );
};

export interface Usage {
  readonly used: number;
  readonly byServices: number;
  readonly notHere: readonly string[];
  /** Granted, and neither used nor excused. */
  readonly idle: readonly string[];
}

type Fate = "used" | "by a service" | "not here" | "idle";

const kindOf = ({ name }: Owner): string => name.replace(/^worker-.*/, "worker");

/** What became of one call that a role allows. All pools' workers are one code, and have one set of rights. */
const fateOf = async (
  aws: Aws,
  { owner, owners }: { readonly owner: Owner; readonly owners: readonly Owner[] },
  [action, resource]: readonly [action: string, resource: string],
): Promise<Fate> => {
  if (reasonIn(BY_SERVICES, owner.name, action) !== undefined) {
    const asked = { roleArn: owner.roleArn, action, resource: oneOf(resource) };
    return (await mayDo(aws, asked)) ? "by a service" : "idle";
  }
  for (const peer of owners.filter((each) => kindOf(each) === kindOf(owner)))
    if (await wasCalled(aws, peer, action, resource)) return "used";
  return reasonIn(NOT_HERE, owner.name, action) === undefined ? "idle" : "not here";
};

/** Lines of our functions' logs in which AWS refuses a call: none, where every call that was made is a right. */
export const refusedCalls = async ({ logs }: Aws): Promise<readonly string[]> => {
  const asked = { logGroupNamePrefix: `/aws/lambda/${PREFIX}` };
  const { logGroups = [] } = await logs.send(new DescribeLogGroupsCommand(asked));
  const found = await Promise.all(
    logGroups.map(({ logGroupName }) =>
      logs.send(new FilterLogEventsCommand({ logGroupName, filterPattern: '"not authorized to perform"' })),
    ),
  );
  return found.flatMap(({ events = [] }) => events.map(({ message = "" }) => message));
};

/** Every right of every function's role, by what became of it in this scenario. */
export const usageOfRoles = async (aws: Aws): Promise<Usage> => {
  const names: Record<Fate, string[]> = { used: [], "by a service": [], "not here": [], idle: [] };
  const owners = await ownersOf(aws);
  for (const owner of owners)
    for (const { statement } of await rightsOf(aws, owner))
      for (const action of statement.Action) {
        const resource = statement.Resource[0] ?? "";
        const fate = await fateOf(aws, { owner, owners }, [action, resource]);
        names[fate].push(`${owner.name} ${action} on ${resource.slice(resource.lastIndexOf(":") + 1)}`);
      }
  return {
    used: names.used.length,
    byServices: names["by a service"].length,
    notHere: names["not here"],
    idle: names.idle,
  };
};
