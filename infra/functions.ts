import { alarmName } from "../lib/core/alarms/alarm.ts";
import { TEST_ALARM } from "../lib/core/alarms/alarms.ts";
import { NO_ALERTS } from "../lib/core/alerts/alert-channels.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { needsOfPool } from "../lib/core/jobs/job-needs.ts";
import {
  allow,
  arnHere,
  getArn,
  placeholder,
  type Resource,
  type Resources,
  ref,
  type Statement,
  sub,
  type Value,
} from "./cloudformation.ts";
import {
  type Deployment,
  type FunctionKind,
  functionKey,
  functionLogicalId,
  functionName,
  functionsOf,
  roleLogicalId,
} from "./naming.ts";
import {
  ALARMS_QUEUE,
  NOTIFIER_TIMEOUT_SECONDS,
  notifierResources,
  notifierStatements,
  notifierVariables,
} from "./notifier.ts";
import { pingResources, pingStatements, pingVariables } from "./pings.ts";
import { workerProperties } from "./pools.ts";
import {
  DEAD_LETTERS_TIMEOUT_SECONDS,
  DISPATCH_FAILURES,
  deadLetterQueueId,
  poolQueueId,
  poolTimeoutSeconds,
} from "./queues.ts";
import {
  authored,
  feedsOfDeadLetters,
  networkStatement,
  permissionStatement,
  roleResource,
  secretStatements,
} from "./roles.ts";
import { TABLE } from "./table.ts";

/** One of our functions: what the Serverless Framework uploads, and the whole of its properties but the code. */
export interface FunctionSpec {
  readonly key: string;
  readonly kind: FunctionKind;
  readonly pool?: string;
  readonly name: string;
  /** `<file>.handler`. */
  readonly handler: string;
  readonly roleId: string;
  readonly properties: { readonly [name: string]: Value };
}

export interface FunctionFacts {
  readonly deployment: Deployment;
  readonly manifest: Manifest;
}

/**
 * The import of the AWS SDK is faster with more memory, and a tick may dispatch hundreds of jobs at once. Half of it would
 * save $0.05 per million runs.
 */
const MEMORY_MB = 256;

const TIMEOUT_SECONDS = {
  dispatcher: 60,
  "dead-letters": DEAD_LETTERS_TIMEOUT_SECONDS,
  /** A pass after a long outage looks at many slots. Two passes at once do no harm. */
  watchdog: 300,
  /** A pass over the outbox stops sending before that. */
  notifier: NOTIFIER_TIMEOUT_SECONDS,
  /** `show --wait` asks for twenty seconds at a time. */
  operate: 60,
  /** The HTTP API waits for half a minute. */
  ping: 29,
} as const;

export const functionSpecs = (facts: FunctionFacts): readonly FunctionSpec[] => [
  ...functionsOf(facts.manifest).map((kind) =>
    spec(facts, kind, undefined, {
      MemorySize: MEMORY_MB,
      Timeout: TIMEOUT_SECONDS[kind],
      Environment: {
        Variables: {
          ...stackVariables(facts),
          ...(kind === "notifier" ? notifierVariables(facts.manifest.alerts ?? NO_ALERTS) : {}),
          ...pingVariables(facts.manifest, kind),
        },
      },
      // It sends again what had come back: a loop, which ends by the run's own record.
      ...(kind === "dead-letters" ? { RecursiveLoop: "Allow" } : {}),
    }),
  ),
  ...Object.keys(facts.manifest.pools).map((pool) => spec(facts, "worker", pool, workerSpec(facts, pool))),
];

const spec = (
  { deployment }: FunctionFacts,
  kind: FunctionKind,
  pool: string | undefined,
  own: FunctionSpec["properties"],
): FunctionSpec => {
  const name = functionName(deployment, kind, pool);
  const roleId = roleLogicalId(kind, pool);
  const handler = `${kind}.handler`;
  return {
    key: functionKey(kind, pool),
    kind,
    ...(pool === undefined ? {} : { pool }),
    name,
    handler,
    roleId,
    properties: {
      FunctionName: name,
      Handler: handler,
      Runtime: "nodejs24.x",
      Architectures: ["arm64"],
      Role: getArn(roleId),
      // Without WARN each invocation writes two more lines, which cost more than the invocation.
      LoggingConfig: { LogFormat: "JSON", ApplicationLogLevel: "INFO", SystemLogLevel: "WARN" },
      ...own,
    },
  };
};

const workerSpec = (facts: FunctionFacts, pool: string): FunctionSpec["properties"] => {
  const { manifest, deployment } = facts;
  const { environment } = needsOfPool(manifest.jobs, pool);
  const own = Object.entries(environment).map(([name, value]) => [name, authored(value, deployment.stage)]);
  return {
    ...workerProperties(manifest.pools[pool]),
    Timeout: poolTimeoutSeconds(manifest.jobs, pool),
    // A finished run wakes the next one by a send to the queue that feeds the function; our own counters bound it.
    RecursiveLoop: "Allow",
    Environment: {
      Variables: { ...Object.fromEntries(own), ...stackVariables(facts), BELFRY_POOL: pool },
    },
  };
};

/** What `loadConfig` reads. */
const stackVariables = ({ deployment, manifest }: FunctionFacts): { readonly [name: string]: Value } => {
  const pools = Object.keys(manifest.pools);
  const urls = (idOf: (pool: string) => string): Value => {
    const entries = pools.map((pool) => `"${pool}":"${placeholder(idOf(pool))}"`);
    return sub(`{${entries.join(",")}}`);
  };
  return {
    BELFRY_SERVICE: deployment.service,
    BELFRY_STAGE: deployment.stage,
    BELFRY_TABLE: ref(TABLE),
    BELFRY_QUEUES: urls(poolQueueId),
    BELFRY_DEAD_LETTERS: urls(deadLetterQueueId),
    BELFRY_DISPATCH_FAILURES: ref(DISPATCH_FAILURES),
  };
};

/** Roles, event source mappings and what becomes of events that fail. */
export const functionResources = (facts: FunctionFacts): Resources => {
  const pools = Object.keys(facts.manifest.pools);
  const roles = functionSpecs(facts).map((each): [string, Resource] => [each.roleId, roleOf(facts, each)]);
  return {
    ...Object.fromEntries(roles),
    ...eventInvoke("dispatcher", {
      MaximumRetryAttempts: 2,
      MaximumEventAgeInSeconds: 3_600,
      DestinationConfig: { OnFailure: { Destination: getArn(DISPATCH_FAILURES) } },
    }),
    // The next minute's pass does what this one did not.
    ...eventInvoke("watchdog", { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 }),
    ...eventInvoke("notifier", { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 }),
    ...notifierResources(facts.deployment),
    ...pingResources(facts.deployment, facts.manifest),
    ...Object.assign({}, ...feedsOfDeadLetters(pools).map(deadLetterMapping)),
  };
};

const roleOf = ({ deployment, manifest }: FunctionFacts, { kind, pool, name }: FunctionSpec): Resource => {
  const base = { kind, functionName: name, pools: Object.keys(manifest.pools) };
  if (kind === "dead-letters") return roleResource({ ...base, feeds: feedsOfDeadLetters(base.pools) });
  if (kind === "notifier")
    return roleResource({
      ...base,
      feeds: [ALARMS_QUEUE],
      more: notifierStatements(manifest.alerts ?? NO_ALERTS, deployment.stage),
    });
  if (kind === "dispatcher") return roleResource({ ...base, more: [toDispatchFailures] });
  if (kind === "operate")
    return roleResource({ ...base, more: [ringing(deployment), ...pingStatements(manifest)] });
  if (kind === "ping") return roleResource({ ...base, more: pingStatements(manifest) });
  if (pool === undefined) return roleResource(base);
  const { permissions, secrets } = needsOfPool(manifest.jobs, pool);
  const { stage } = deployment;
  return roleResource({
    ...base,
    feeds: [poolQueueId(pool)],
    more: [
      ...secretStatements(Object.values(secrets), stage),
      ...(manifest.pools[pool]?.vpc === undefined ? [] : [networkStatement]),
      ...permissions.map((permission) => permissionStatement(permission, stage)),
    ],
  });
};

/** A test of the alerts rings one alarm of ours. */
const ringing = (deployment: Deployment): Statement =>
  allow(["cloudwatch:SetAlarmState"], [arnHere("cloudwatch", `alarm:${alarmName(deployment, TEST_ALARM)}`)]);

/** Lambda sends there, with the dispatcher's role, what the dispatcher could not take. */
const toDispatchFailures = {
  Effect: "Allow",
  Action: ["sqs:SendMessage"],
  Resource: [getArn(DISPATCH_FAILURES)],
} as const;

const eventInvoke = (
  kind: "dispatcher" | "watchdog" | "notifier",
  rest: FunctionSpec["properties"],
): Resources => {
  const functionId = functionLogicalId(functionKey(kind));
  return {
    [`${functionId}Events`]: {
      Type: "AWS::Lambda::EventInvokeConfig",
      Properties: { FunctionName: ref(functionId), Qualifier: "$LATEST", ...rest },
    },
  };
};

const deadLetterMapping = (queueId: string): Resources => ({
  [`${queueId}Mapping`]: {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: getArn(queueId),
      FunctionName: ref(functionLogicalId(functionKey("dead-letters"))),
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      BatchSize: 10,
    },
  },
});
