import { NO_ALERTS } from "../lib/core/alerts/alert-channels.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { jobList } from "../lib/core/jobs/job-list.ts";
import { alarmResources } from "./alarms.ts";
import { getArn, type Resources, ref, type Value } from "./cloudformation.ts";
import { dashboardResources } from "./dashboard.ts";
import { type FunctionSpec, functionResources, functionSpecs } from "./functions.ts";
import { onKeptTable } from "./kept-table.ts";
import { type Deployment, functionKey, functionLogicalId } from "./naming.ts";
import { pingOutputs } from "./pings.ts";
import { poolMappings } from "./pools.ts";
import { queueResources } from "./queues.ts";
import { MOST_SCHEDULES, scheduleResources } from "./schedules.ts";
import { TABLE, tableResources } from "./table.ts";
import { topicResources } from "./topics.ts";

export interface StackFacts {
  readonly deployment: Deployment;
  readonly manifest: Manifest;
  readonly nowMs: number;
  /** Resources that the template has besides ours; default none. */
  readonly otherResources?: number;
  /** The name of a table that is there already, to be used instead of one of the stack's own. */
  readonly keptTable?: string;
}

export interface Stack {
  readonly functions: readonly FunctionSpec[];
  /** All but the functions and their log groups, which the Serverless Framework makes. */
  readonly resources: Resources;
  readonly outputs: { readonly [name: string]: { readonly Description: string; readonly Value: Value } };
}

/** What the schedules have in common: two groups, three roles, the minutes of the watchdog and the notifier, a tick. */
const COMMON_SCHEDULES = 8;

/** Of CloudFormation. */
export const MOST_RESOURCES = 500;

/** Everything of a deployment as data: a function of the manifest and of names, so that equal jobs give equal templates. */
export const makeStack = (facts: StackFacts): Stack => {
  const stack = onOwnTable(facts);
  return facts.keptTable === undefined ? stack : onKeptTable(stack, facts.keptTable);
};

const onOwnTable = ({ deployment, manifest, nowMs, otherResources = 0 }: StackFacts): Stack => {
  const functions = functionSpecs({ deployment, manifest });
  const base: Resources = {
    ...tableResources(),
    ...queueResources(deployment, manifest.jobs, Object.keys(manifest.pools)),
    ...functionResources({ deployment, manifest }),
    ...poolMappings(manifest),
    ...topicResources(deployment, manifest.alerts ?? NO_ALERTS),
    ...alarmResources(deployment, manifest),
    ...dashboardResources(deployment, manifest),
  };
  const jobs = jobList(manifest, deployment.stage);
  // Two for each function.
  const taken = Object.keys(base).length + 2 * functions.length + otherResources + COMMON_SCHEDULES;
  const most = Math.max(0, Math.min(MOST_SCHEDULES, MOST_RESOURCES - taken));
  return {
    functions,
    resources: { ...base, ...scheduleResources({ deployment, jobs, nowMs, most }) },
    outputs: {
      ...pingOutputs(manifest),
      BelfryTableName: { Description: "Belfry's table", Value: ref(TABLE) },
      BelfryOperateArn: {
        Description: "Who may invoke it, may operate",
        Value: getArn(functionLogicalId(functionKey("operate"))),
      },
    },
  };
};
