import type { JobDefinition, Manifest } from "../jobs/job.ts";
import { functionTimeoutMs } from "../jobs/pool.ts";
import { waitBeforeRetryMs } from "../jobs/retry.ts";
import { isMonitor } from "../monitors/monitor.ts";
import { MINUTE_MS, SECOND_MS } from "../time.ts";
import type {
  AlarmDefinition,
  FunctionMetric,
  JobMetric,
  Measured,
  WatchedFunction,
  WatchedQueue,
} from "./alarm.ts";
import type { MetricName } from "./metrics.ts";

export interface AlarmOptions {
  /** How long a minute of the periods is; the embedded stack lives faster. Default 60. */
  readonly minuteS?: number;
}

/** Every alarm of a deployment, in a fixed order. */
export const alarmsOf = (
  { jobs, pools }: Pick<Manifest, "jobs" | "pools">,
  { minuteS = 60 }: AlarmOptions = {},
): readonly AlarmDefinition[] => {
  const names = Object.keys(pools);
  const drafts = [
    ...ABOUT_JOBS.map((draft) => ({ about: "jobs" as const, ...draft })),
    ...WATCHING,
    ...SCHEDULES,
    ...working(names),
    ...names.flatMap((pool) => ofPool(jobs, pool)),
    ...(jobs.some(isMonitor) ? PINGED : []),
    ...jobs.filter(({ ownAlarms }) => ownAlarms).flatMap(({ name }) => ofJob(name)),
  ];
  return drafts.flatMap(inTens).map(({ minutes = 1, times = 1, of = times, ...draft }) => ({
    about: "machinery",
    topic: "notify",
    statistic: "Sum",
    comparison: "at-least",
    threshold: 1,
    missing: "notBreaching",
    periodS: minutes * minuteS,
    datapointsToAlarm: times,
    evaluationPeriods: of,
    ...draft,
  }));
};

/** The alarm that `belfry alert test` rings: it tells of nothing that lasts, so it is over again by itself. */
export const TEST_ALARM = "poison-messages";

/** An alarm but for what most have in common: at least one, in the last minute. */
type Draft = Pick<AlarmDefinition, "key" | "metrics" | "meaning" | "remedy"> &
  Partial<Omit<AlarmDefinition, "periodS" | "datapointsToAlarm" | "evaluationPeriods">> & {
    /** So long is a period; it has to breach in `times` of the last `of`. Default: 1, 1 of 1. */
    readonly minutes?: number;
    readonly times?: number;
    readonly of?: number;
  };

/** An alarm takes so many metrics; a project with more pools gets a second one, and a third. */
const MOST_METRICS = 10;

const inTens = ({ key, metrics, ...draft }: Draft): readonly Draft[] =>
  Array.from({ length: Math.ceil(metrics.length / MOST_METRICS) }, (_, i) => ({
    ...draft,
    key: i === 0 ? key : `${key}-${i + 1}`,
    metrics: metrics.slice(i * MOST_METRICS, (i + 1) * MOST_METRICS),
  }));

const counted = (name: MetricName): readonly Measured[] => [{ of: "service", name }];

/** Counted as things happen, not by what is left lying: what is still there does not hide what comes next. */
const ABOUT_JOBS: readonly Draft[] = [
  {
    key: "runs-dead",
    metrics: counted("RunsDead"),
    meaning: "A run has used up its attempts or its crashes and is dead.",
    remedy: "Look for it with `belfry runs --state dead`, mend the cause, then `belfry retry` the run.",
  },
  {
    key: "failures-in-a-row",
    topic: "page",
    metrics: counted("JobsAtPageThreshold"),
    meaning: "A job has failed so often in a row that somebody is to be woken.",
    remedy:
      "`belfry list` names the job and `belfry show` its error; `belfry pause` it if each further run does harm.",
  },
  {
    key: "runs-missed",
    metrics: counted("RunsMissed"),
    meaning: "Slots had no run, and by their job's misfire policy they get none.",
    remedy: "`belfry runs --state missed` names them; run what is still wanted with `belfry run --slot`.",
  },
  {
    key: "runs-late",
    metrics: counted("RunsLate"),
    meaning: "An occurrence had not started when its grace was over.",
    remedy:
      "`belfry list` names the job; look whether its pool keeps up and whether its schedule is delivered.",
  },
  {
    key: "runs-expired",
    metrics: counted("RunsExpired"),
    meaning: "A run had not started when its start deadline was over, and was given up.",
    remedy:
      "Give its pool more concurrency or move its slow jobs to another; `belfry retry` runs it all the same.",
  },
  {
    key: "runs-stuck",
    metrics: counted("RunsStuck"),
    meaning: "A run's worker is gone: its lease is over and nobody has renewed it.",
    remedy:
      "The run is sent again by itself; where it happens again, look in the worker's log for what ends it.",
  },
  {
    key: "runs-parked",
    metrics: counted("RunsParked"),
    meaning: "A run that may or may not have had its effect waits for a person, and holds its job's lock.",
    remedy: "Find out whether the effect happened, then `belfry retry` or `belfry cancel` the run.",
  },
  {
    key: "attempts-failing",
    metrics: counted("AttemptsFailed"),
    minutes: 5,
    times: 3,
    meaning: "For a quarter of an hour attempts have been failing, and are tried again.",
    remedy: "`belfry runs --state waiting` shows whose; often it is a service that all of them call.",
  },
  {
    key: "attempts-timed-out",
    metrics: counted("AttemptsTimedOut"),
    meaning: "A handler did not end within its job's timeout and was stopped.",
    remedy:
      "`belfry show` tells how far it had got; raise the timeout, split the work, or find what it waits for.",
  },
];

/** Data that is not there is the alarm: whoever is silent cannot say so. */
const WATCHING: readonly Draft[] = [
  {
    key: "watchdog-silent",
    topic: "page",
    metrics: counted("WatchdogPasses"),
    comparison: "below",
    missing: "breaching",
    times: 5,
    meaning: "The watchdog has made no good pass for five minutes: nobody notices what does not happen.",
    remedy: "Read the log of belfry-watchdog; when it is back it judges everything since its last good pass.",
  },
  {
    key: "notifier-silent",
    topic: "page",
    pastNotifier: true,
    metrics: counted("NotifierPasses"),
    comparison: "below",
    missing: "breaching",
    times: 5,
    meaning: "The notifier has made no good pass for five minutes: what is to be told waits.",
    remedy: "Read the log of belfry-notifier, and `belfry list` meanwhile; nothing that waits is lost.",
  },
  {
    key: "alerts-failing",
    metrics: counted("AlertDeliveriesFailed"),
    minutes: 5,
    times: 3,
    meaning: "For a quarter of an hour a channel has not taken what it is told; it is tried on.",
    remedy:
      "`belfry alerts` names the channel and its answer; when it is mended, try it with `belfry alert test`.",
  },
  {
    key: "alerts-undelivered",
    topic: "page",
    pastNotifier: true,
    metrics: counted("AlertsUndelivered"),
    meaning: "An alert has reached nobody: no channel hears of its topic, or one did not take it for a week.",
    remedy:
      "`belfry alerts` shows it; name a channel under `alerts` in belfry.config.ts, or mend the one there is.",
  },
  {
    key: "alarms-waiting",
    topic: "page",
    pastNotifier: true,
    metrics: [{ of: "queue", queue: { kind: "alarms" }, name: "ApproximateNumberOfMessagesVisible" }],
    statistic: "Minimum",
    minutes: 5,
    times: 3,
    meaning: "For a quarter of an hour alarms have been lying there that the notifier does not take.",
    remedy:
      "Look whether belfry-notifier is fed by the queue of the alarms, and read its log; nothing is lost.",
  },
];

const SCHEDULES: readonly Draft[] = [
  {
    key: "schedules-failing",
    metrics: [
      { of: "schedules", group: "jobs", name: "TargetErrorCount" },
      { of: "schedules", group: "watchdog", name: "TargetErrorCount" },
    ],
    minutes: 5,
    times: 3,
    meaning: "For a quarter of an hour EventBridge has not been able to invoke what its schedules name.",
    remedy:
      "Look whether belfry-dispatcher exists, is throttled, and may be invoked by the schedules' role; deploy again.",
  },
  {
    key: "schedules-dropped",
    topic: "page",
    metrics: [
      { of: "schedules", group: "jobs", name: "InvocationDroppedCount" },
      { of: "schedules", group: "jobs", name: "InvocationsFailedToBeSentToDeadLetterCount" },
    ],
    meaning: "EventBridge has dropped the event of a slot and could not keep it either.",
    remedy:
      "The watchdog makes up for the slot; look whether the schedules' role may send to the queue of dispatch failures.",
  },
  {
    key: "dispatch-failures",
    topic: "page",
    metrics: [{ of: "queue", queue: { kind: "dispatch-failures" }, name: "NumberOfMessagesSent" }],
    meaning: "An event of a schedule could not be delivered, or the dispatcher gave up on it.",
    remedy:
      "Read the log of belfry-dispatcher; belfry-dead-letters tries the event again, and the watchdog its slot.",
  },
];

/** One alarm over all functions or queues of a kind: what hits one of them mostly hits all, and is told once. */
const working = (pools: readonly string[]): readonly Draft[] => {
  const workers = pools.map((pool): WatchedFunction => ({ kind: "worker", pool }));
  const others: readonly WatchedFunction[] = [{ kind: "dispatcher" }, { kind: "dead-letters" }];
  const each = (functions: readonly WatchedFunction[], name: FunctionMetric): readonly Measured[] =>
    functions.map((one) => ({ of: "function", function: one, name }));
  const letters: readonly WatchedQueue[] = [
    { kind: "dispatch-failures" },
    ...pools.map((pool): WatchedQueue => ({ kind: "dead-letters", pool })),
  ];
  return [
    {
      key: "throttles",
      metrics: each([...others, ...workers], "Throttles"),
      minutes: 5,
      times: 2,
      of: 3,
      meaning: "Lambda has refused to start functions: the account's concurrency is used up.",
      remedy:
        "Look which functions of the account take it; ask for a higher quota or lower `concurrency` of the pools.",
    },
    {
      key: "worker-errors",
      metrics: each(workers, "Errors"),
      meaning: "A worker function timed out, ran out of memory or could not start; its messages come back.",
      remedy:
        "Read the log of belfry-worker-<pool>; a missing secret and too little memory are the usual causes.",
    },
    {
      key: "function-errors",
      metrics: each(others, "Errors"),
      meaning: "The dispatcher or the dead-letters function failed; what it had is tried again.",
      remedy: "Read its log: belfry-dispatcher or belfry-dead-letters.",
    },
    {
      key: "messages-failing",
      metrics: counted("MessagesFailed"),
      times: 2,
      of: 3,
      meaning: "Messages could not be dealt with, since the table or a queue did not answer; they come back.",
      remedy: "Mostly it is over by itself; where it stays, look at the table's throttling and at the roles.",
    },
    {
      key: "poison-messages",
      metrics: counted("PoisonMessages"),
      meaning: "A message that nobody can read was taken out of a queue and kept as a record.",
      remedy: "The log line names it; somebody else sends to a queue of Belfry, or an old version did.",
    },
    {
      key: "dead-letters-waiting",
      metrics: letters.map((queue) => ({ of: "queue", queue, name: "ApproximateNumberOfMessagesVisible" })),
      statistic: "Minimum",
      minutes: 5,
      times: 3,
      meaning: "For a quarter of an hour dead letters have been lying there that nobody judges.",
      remedy: "Read the log of belfry-dead-letters: it empties these queues, and cannot.",
    },
  ];
};

const ofPool = (jobs: readonly JobDefinition[], pool: string): readonly Draft[] => [
  {
    key: `pool-${pool}-queue-age`,
    metrics: [{ of: "queue", queue: { kind: "pool", pool }, name: "ApproximateAgeOfOldestMessage" }],
    statistic: "Maximum",
    threshold: queueAgeS(jobs, pool),
    times: 5,
    meaning: `Messages of the pool "${pool}" have waited longer than its runs and retries explain: it is not being emptied fast enough.`,
    remedy: "Look for throttles and worker errors; else give the pool more concurrency.",
  },
  {
    key: `pool-${pool}-dead-letters`,
    metrics: [{ of: "queue", queue: { kind: "dead-letters", pool }, name: "NumberOfMessagesReceived" }],
    meaning: `A message of the pool "${pool}" came back too often: no worker could end its run, or even start it.`,
    remedy:
      "The run is judged by its record and sent again or ended; look in the log of the pool's worker for what ends it.",
  },
];

/** Of a project with monitors. */
const PINGED: readonly Draft[] = [
  {
    key: "ping-errors",
    metrics: [
      { of: "function", function: { kind: "ping" }, name: "Errors" },
      { of: "function", function: { kind: "ping" }, name: "Throttles" },
    ],
    meaning:
      "The function that takes the pings of monitors could not start, or did not answer: a ping that is not repeated is lost.",
    remedy:
      "Read the log of belfry-ping; a run that is missed though it ran is healed by `belfry heartbeat`.",
  },
];

const ofJob = (job: string): readonly Draft[] => {
  const measured = (name: JobMetric): readonly Measured[] => [{ of: "job", name, job }];
  return [
    {
      key: `job-${job}-dead`,
      about: "jobs",
      metrics: measured("RunsDead"),
      meaning: `A run of the job "${job}" is dead.`,
      remedy: `\`belfry show ${job}\` tells why; mend the cause, then \`belfry retry\` the run.`,
    },
    {
      key: `job-${job}-missed`,
      about: "jobs",
      metrics: measured("RunsMissed"),
      meaning: `Slots of the job "${job}" had no run and get none.`,
      remedy: `Run what is still wanted with \`belfry run ${job} --slot\`.`,
    },
    {
      key: `job-${job}-late`,
      about: "jobs",
      metrics: measured("RunsLate"),
      meaning: `A run of the job "${job}" had not started when its grace was over.`,
      remedy: "Look whether its pool keeps up and whether its schedule is delivered.",
    },
  ];
};

/** SQS counts a message's age until it has been received so often, then looks at the next one. */
const RECEIVES_COUNTED = 3;
const SLACK_MS = 5 * MINUTE_MS;

/**
 * What a healthy pool can reach: a run that is received, fails and waits so often, each time for as long as the pool's
 * jobs may.
 */
const queueAgeS = (jobs: readonly JobDefinition[], pool: string): number => {
  const waits = jobs
    .filter((job) => job.pool === pool)
    .map(({ retry }) => waitBeforeRetryMs(retry, 1, 0) + waitBeforeRetryMs(retry, 2, 0));
  const ageMs = RECEIVES_COUNTED * functionTimeoutMs(jobs, pool) + Math.max(0, ...waits) + SLACK_MS;
  return Math.ceil(ageMs / SECOND_MS);
};
