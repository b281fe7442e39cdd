import type { FlipView } from "../../app/health/list-flips.ts";
import type { JobSummary } from "../../app/inspect/list-jobs.ts";
import type { AlertView } from "../../app/notify/list-alerts.ts";
import type { BackfillPlan } from "../../app/series/backfill.ts";
import type { SeriesView } from "../../app/series/series-view.ts";
import type { AlarmDefinition } from "../../core/alarms/alarm.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import type { RunView } from "../../core/runs/run.ts";

/** What the operate router answers, route by route. Types only: a client may import them without the router. */

/** `GET /v1/jobs` */
export interface JobsAnswer {
  readonly jobs: readonly JobSummary[];
}

/** `GET /v1/jobs/:job/flips`, newest first */
export interface FlipsAnswer {
  readonly flips: readonly FlipView[];
  readonly timezone: string;
}

/** `GET /v1/alarms`: those that ring. Null = CloudWatch judges them, and shows them. */
export interface AlarmsAnswer {
  readonly alarms: readonly AlarmView[] | null;
}

export interface AlarmView extends Pick<AlarmDefinition, "key" | "about" | "topic" | "meaning" | "remedy"> {
  readonly since: string;
}

/** `GET /v1/definitions`: what is deployed, as it was built. */
export interface DefinitionsAnswer {
  readonly stage: string;
  /** Of the manifest. */
  readonly hash: string;
  readonly jobs: readonly JobDefinition[];
}

/** `GET /v1/runs`. The zones are those of the jobs in the list that still exist. */
export interface RunsAnswer {
  readonly runs: readonly RunView[];
  readonly timezones: { readonly [job: string]: string };
}

/** `GET /v1/runs/:id`, `GET /v1/jobs/:job/run` */
export interface RunAnswer {
  readonly run: RunView;
  readonly timezone: string;
}

/** `POST /v1/jobs/:job/runs`, 202 */
export interface AcceptedAnswer extends RunAnswer {
  /** Something that the caller should know, such as that the job is paused. */
  readonly notice?: string;
}

/** `POST /v1/jobs/:job/runs` with `dryRun`, 200: nothing was written. */
export interface DryRunAnswer {
  readonly dryRun: true;
  readonly job: string;
  /** Null = a run of its own, not an occurrence of the schedule. */
  readonly slot: string | null;
  /** Known only for a slot. */
  readonly runId: string | null;
  readonly input: Json;
  readonly timezone: string;
}

/** An RFC 9457 problem, `application/problem+json`. `code` is stable; `field` and `hint` say what to mend. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly field?: string;
  readonly hint?: string;
}

/** `POST /v1/runs/:id/retry`, `/cancel`, `/dismiss`: the run as it is afterwards. */
export type ActAnswer = RunAnswer;

/** `POST /v1/jobs/:job/pause`, `/resume`, `/skip-next`, `/mute`, `/unmute` */
export interface JobActAnswer {
  readonly job: string;
  readonly timezone: string;
  /** Of a pause, or a planned silence. */
  readonly reason?: string;
  readonly until?: string;
  /** The one slot that is skipped. */
  readonly slot?: string;
}

/** `POST /v1/jobs/:job/heartbeat`: the run that the ping counts for, as it is afterwards. */
export interface HeartbeatAnswer extends RunAnswer {
  /** The run's record said so already. */
  readonly duplicate: boolean;
}

/** `GET /v1/jobs/:job/ping-address`: where a monitor's job pings, key and all. */
export interface PingAddressAnswer {
  readonly url: string;
}

/** `GET` and `POST` of a ping address */
export interface PingAnswer {
  readonly runId: string;
  readonly slot: string;
  /** The run's record said so already. */
  readonly duplicate: boolean;
}

/** `POST /v1/jobs/:job/backfill` with `dryRun`, 200: nothing was written. */
export interface BackfillPlanAnswer extends BackfillPlan {
  readonly dryRun: true;
  readonly timezone: string;
}

/** `GET /v1/jobs/:job/series/:kind` (`backfill` or `retry`), and `POST` of its `/stop` */
export interface SeriesAnswer {
  readonly series: SeriesView;
  readonly timezone: string;
}

/** `POST /v1/jobs/:job/backfill`, 202 */
export interface BackfillAnswer extends SeriesAnswer {
  /** It went on already, and was not begun a second time. */
  readonly takenUp: boolean;
}

/** `POST /v1/jobs/:job/retry-dead`, 202; null = the job has no dead runs. */
export interface RetryDeadAnswer {
  readonly series: SeriesView | null;
  readonly timezone: string;
}

/** `GET /v1/series` */
export interface SeriesListAnswer {
  readonly series: readonly SeriesView[];
}

/** `GET /v1/alerts`, newest first */
export interface AlertsAnswer {
  readonly alerts: readonly AlertView[];
}
