import { createHash } from "node:crypto";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { isMonitor } from "../lib/core/monitors/monitor.ts";

/**
 * Names of everything a deployment makes, and what AWS takes of them. All begin with the service and the stage, so
 * that stages and services of one account never meet; roles and the table have none, since AWS names them uniquely.
 */
export interface Deployment {
  /** Of serverless.yml. */
  readonly service: string;
  readonly stage: string;
}

export const FUNCTIONS = ["dispatcher", "dead-letters", "watchdog", "notifier", "operate", "ping"] as const;

export const hasPings = ({ jobs }: Pick<Manifest, "jobs">): boolean => jobs.some(isMonitor);

/** Those that a project needs: pings come where it has a monitor. */
export const functionsOf = (manifest: Pick<Manifest, "jobs">): readonly (typeof FUNCTIONS)[number][] =>
  FUNCTIONS.filter((kind) => kind !== "ping" || hasPings(manifest));

export type FunctionKind = (typeof FUNCTIONS)[number] | "worker";

/** Of serverless.yml's `functions`: what `serverless logs -f` takes. */
export const functionKey = (kind: FunctionKind, pool?: string): string =>
  `belfry-${kind}${pool === undefined ? "" : `-${pool}`}`;

const prefixOf = ({ service, stage }: Deployment): string => `${service}-${stage}-belfry`;

export const functionName = (deployment: Deployment, kind: FunctionKind, pool?: string): string =>
  `${prefixOf(deployment)}-${kind}${pool === undefined ? "" : `-${pool}`}`;

// The kind stands before the pool: with "<pool>-dead", a pool named "slow-dead" would meet the dead letters of "slow".
export const poolQueueName = (deployment: Deployment, pool: string): string =>
  `${prefixOf(deployment)}-pool-${pool}`;
export const deadLetterQueueName = (deployment: Deployment, pool: string): string =>
  `${prefixOf(deployment)}-dead-${pool}`;
export const dispatchFailuresName = (deployment: Deployment): string =>
  `${prefixOf(deployment)}-dispatch-failures`;

/** Between the topic of the alarms and the notifier. */
export const alarmsQueueName = (deployment: Deployment): string => `${prefixOf(deployment)}-alarms`;

export const scheduleGroupName = (deployment: Deployment, group: "jobs" | "watchdog"): string =>
  `${prefixOf(deployment)}-${group}`;

export const dashboardName = prefixOf;

/** Of the HTTP API that takes the pings, and of the secret that their keys are made of. */
export const pingsName = (deployment: Deployment): string => `${prefixOf(deployment)}-pings`;

/**
 * Of SNS: `alarms` from CloudWatch to the notifier, `page` from CloudWatch to people where the notifier cannot tell, and
 * one for each e-mail channel, from the notifier to its addresses.
 */
export type Topic = "alarms" | "page" | `email-${string}`;

export const topicName = (deployment: Deployment, topic: Topic): string => `${prefixOf(deployment)}-${topic}`;

/** Names are lower case, so capitals end each part, and no two lists of names give one logical id. */
export const logicalId = (...parts: readonly string[]): string =>
  `Belfry${parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1).replaceAll("-", "Dash")).join("")}`;

/** As the Serverless Framework makes it from a function's key. */
export const functionLogicalId = (key: string): string =>
  `${key.charAt(0).toUpperCase()}${key.slice(1).replaceAll("-", "Dash").replaceAll("_", "Underscore")}LambdaFunction`;

/** Eight characters for a logical id or a name, of what is too long or too odd to be part of one. */
export const shortHash = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 8);

export const roleLogicalId = (kind: FunctionKind, pool?: string): string =>
  logicalId(kind, ...(pool === undefined ? [] : [pool]), "Role");

export interface Name {
  /** As people say it: `the function`, `the queue`. */
  readonly what: "function" | "queue" | "schedule group";
  readonly name: string;
  /** Whose name could be shorter. */
  readonly pool?: string;
}

/** Characters that AWS allows in a name. */
export const LONGEST_NAME: { readonly [what in Name["what"]]: number } = {
  function: 64,
  queue: 80,
  "schedule group": 64,
};

/** Every name that this deployment gives. */
export const namesOf = (deployment: Deployment, pools: readonly string[]): readonly Name[] => [
  ...FUNCTIONS.map((kind): Name => ({ what: "function", name: functionName(deployment, kind) })),
  ...pools.flatMap((pool): Name[] => [
    { what: "function", name: functionName(deployment, "worker", pool), pool },
    { what: "queue", name: poolQueueName(deployment, pool), pool },
    { what: "queue", name: deadLetterQueueName(deployment, pool), pool },
  ]),
  { what: "queue", name: dispatchFailuresName(deployment) },
  { what: "queue", name: alarmsQueueName(deployment) },
  { what: "schedule group", name: scheduleGroupName(deployment, "jobs") },
  { what: "schedule group", name: scheduleGroupName(deployment, "watchdog") },
];
