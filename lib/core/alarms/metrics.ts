/** Where our own metrics stand in CloudWatch. */
export const NAMESPACE = "Belfry";

/** Every metric of our own, and what it counts. All are counts but those that end in `Ms`, milliseconds. */
export const METRICS = {
  RunsSucceeded: "runs that succeeded",
  RunsDead: "runs that ended dead: their attempts or crashes are used up",
  RunsParked: "runs that wait for a person to decide",
  RunsSkipped: "occurrences that were skipped",
  RunsCancelled: "runs that were cancelled",
  RunsMissed: "stretches of slots that nothing dispatched in time",
  RunsExpired: "runs that did not start before their deadline",
  RunsCaughtUp: "runs that the watchdog dispatched in EventBridge's place",
  RunsLate: "occurrences that had not started when their grace was over",
  RunsStuck: "runs whose worker is gone",
  JobsAtPageThreshold: "jobs that have failed as often in a row as pages somebody",
  ShardsSucceeded: "shards of runs that are done",
  ShardsFailed: "shards of runs that failed: their attempts or crashes are used up",
  AttemptsFailed: "attempts that failed and will be tried again",
  AttemptsTimedOut: "attempts that were stopped at their timeout",
  DuplicateDeliveries: "deliveries of an occurrence that somebody had claimed",
  OffScheduleEvents: "events for instants that no schedule names",
  StaleResults: "results of attempts that had lost their lease, refused",
  LeasesLost: "attempts that lost their lease",
  PingsRefused: "pings with a monitor's own key that could not be taken: a wrong method, signal or slot",
  PoisonMessages: "messages that nobody can read, kept as records",
  UnknownJobs: "messages for jobs that this deployment does not have",
  RecordsGone: "messages whose run has no record any more",
  MessagesFailed: "messages whose handling failed and that come back",
  InvocationsFailed: "invocations of our functions that threw",
  WatchdogPasses: "passes of the watchdog that went well",
  NotifierPasses: "passes of the notifier that went well",
  AlertsTold: "alerts that a channel has taken",
  AlertDeliveriesFailed: "deliveries of alerts that failed and will be tried again",
  AlertsUndelivered: "alerts that a channel never took, or that no channel hears of",
  durationMs: "how long an attempt took",
  latenessMs: "from the slot to the run's first start",
} as const;

export type MetricName = keyof typeof METRICS;
