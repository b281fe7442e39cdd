import type { Resources } from "../../infra/cloudformation.ts";

/** What `doctor` says of one thing. */
export interface Finding {
  readonly about: "stack" | "jobs" | "schedules" | "queues" | "alarms" | "alerts";
  readonly level: "ok" | "warning" | "fault";
  readonly message: string;
  readonly advice?: string;
}

/** A schedule, as it should be or as it is. */
export interface ScheduleFacts {
  readonly expression: string;
  readonly timezone: string;
  readonly isEnabled: boolean;
  /** The name of the function that it invokes. */
  readonly target: string;
}

export type Schedules = ReadonlyMap<string, ScheduleFacts>;

const TICK = "TICK";

/** The jobs' schedules of a stack, by name. All of them invoke the dispatcher. */
export const schedulesIn = (resources: Resources, dispatcher: string): Schedules => {
  const schedules = Object.values(resources).filter(
    ({ Type, Properties: { Target } }) =>
      Type === "AWS::Scheduler::Schedule" && JSON.stringify(Target).includes("DeadLetterConfig"),
  );
  return new Map(
    schedules.map(({ Properties }) => [
      String(Properties["Name"]),
      {
        expression: String(Properties["ScheduleExpression"]),
        timezone: String(Properties["ScheduleExpressionTimezone"]),
        isEnabled: Properties["State"] === "ENABLED",
        target: dispatcher,
      },
    ]),
  );
};

const switched = (isEnabled: boolean): string => (isEnabled ? "on" : "off");

const differences = (wanted: ScheduleFacts, found: ScheduleFacts): readonly string[] => [
  ...(wanted.expression === found.expression
    ? []
    : [`it is ${found.expression} instead of ${wanted.expression}`]),
  ...(wanted.timezone === found.timezone
    ? []
    : [`its zone is ${found.timezone} instead of ${wanted.timezone}`]),
  ...(wanted.isEnabled === found.isEnabled
    ? []
    : [`it is ${switched(found.isEnabled)} instead of ${switched(wanted.isEnabled)}`]),
  ...(wanted.target === found.target ? [] : [`it invokes ${found.target} instead of ${wanted.target}`]),
];

/** Where the schedules in EventBridge are not those that the stage's jobs ask for. One-time ones that are over stay. */
export const scheduleDrift = (wanted: Schedules, found: Schedules): readonly string[] => [
  ...[...wanted].flatMap(([name, facts]) => {
    const there = found.get(name);
    // Past some number of schedules the rest share a tick.
    if (there === undefined) return found.has(TICK) ? [] : [`the schedule ${name} is missing`];
    return differences(facts, there).map((text) => `the schedule ${name}: ${text}`);
  }),
  ...[...found]
    .filter(([name, { expression }]) => name !== TICK && !wanted.has(name) && !expression.startsWith("at("))
    .map(([name]) => `the schedule ${name} belongs to no job of the stage`),
];

export interface PoolTimes {
  readonly pool: string;
  readonly functionS: number;
  readonly visibilityS: number;
}

/** AWS's own rule, or a message comes back while its run is still worked on. */
const VISIBILITY_FACTOR = 6;

export const shortVisibility = (pools: readonly PoolTimes[]): readonly string[] =>
  pools
    .filter(({ functionS, visibilityS }) => visibilityS < VISIBILITY_FACTOR * functionS)
    .map(
      ({ pool, functionS, visibilityS }) =>
        `the queue of the pool ${pool} hides a message for ${visibilityS} s; with a function of ${functionS} s it should be ${VISIBILITY_FACTOR * functionS} s`,
    );

/** One finding for each text, or one that all is well. */
export const findingsOf = (
  about: Finding["about"],
  texts: readonly string[],
  {
    level,
    well,
    advice,
  }: { readonly level: "warning" | "fault"; readonly well: string; readonly advice: string },
): readonly Finding[] =>
  texts.length === 0
    ? [{ about, level: "ok", message: well }]
    : texts.map((message) => ({ about, level, message, advice }));
