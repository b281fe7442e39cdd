import { InvalidInput } from "../errors.ts";
import { isRecord } from "../json.ts";
import { readInstant } from "../time.ts";

/** One delivery of a schedule: these subjects, at this slot. */
export interface SchedulerEvent {
  readonly subjects: readonly string[];
  /** The instant the schedule names. */
  readonly slotMs: number;
  /** A tick that jobs share: finer than their slots, and so nothing is amiss when it names none of them. */
  readonly isTick: boolean;
}

const EVENT_VERSION = 1;

/**
 * The schedule's input, as it stands in EventBridge; Scheduler puts the facts of each delivery in place of the
 * context attributes. See https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
 */
export const schedulerInput = (subjects: readonly string[], { isTick = false } = {}) => ({
  version: EVENT_VERSION,
  subjects,
  ...(isTick ? { tick: true } : {}),
  scheduledTime: "<aws.scheduler.scheduled-time>",
  scheduleArn: "<aws.scheduler.schedule-arn>",
  executionId: "<aws.scheduler.execution-id>",
  attempt: "<aws.scheduler.attempt-number>",
});

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/**
 * The delivery in an event.
 * @throws InvalidInput (`unknown_event`) for any other shape, and for a context attribute left as literal text: an
 * event that says no slot must be seen as a failure, never guessed into one.
 */
export const parseSchedulerEvent = (event: unknown): SchedulerEvent => {
  const unknown = (why: string, field: string) =>
    new InvalidInput("unknown_event", `not an event of a Belfry schedule: ${why}`, {
      field,
      hint: "invoke the dispatcher only by the schedules that Belfry deploys; to run a job by hand use `belfry run`",
    });
  if (!isRecord(event)) throw unknown("not an object", "event");
  const { version, subjects, scheduledTime, tick } = event;
  if (version !== EVENT_VERSION)
    throw unknown(`version ${JSON.stringify(version)} is not ${EVENT_VERSION}`, "version");
  if (!Array.isArray(subjects) || subjects.length === 0 || !subjects.every(isText))
    throw unknown("no list of subjects", "subjects");
  if (!isText(scheduledTime)) throw unknown("no scheduledTime", "scheduledTime");
  if (scheduledTime.startsWith("<"))
    throw unknown(`the scheduler left ${scheduledTime} unfilled`, "scheduledTime");
  const slotMs = readInstant(scheduledTime);
  if (slotMs === undefined) throw unknown(`"${scheduledTime}" is no instant`, "scheduledTime");
  return { subjects, slotMs, isTick: tick === true };
};
