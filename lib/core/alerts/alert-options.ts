import { type Alerts, DEFAULTS } from "../jobs/job.ts";
import { defined, duration, flag, number, type Place, type Reader, record } from "../read-options.ts";
import { DAY_MS, MINUTE_MS } from "../time.ts";

const failures = number({ min: 1, max: 100, whole: true });

/** How many failures in a row it takes, or never. */
const failuresOrNever: Reader<number | "never"> = (value, place) =>
  value === "never" ? value : failures(value, place);

const span = duration({ maxMs: 30 * DAY_MS, why: "records of older runs may be gone" });

export const alerts = record({
  notifyAfter: failures,
  pageAfter: failuresOrNever,
  pauseAfter: failures,
  finishWithin: span,
  slowAfter: span,
  remindEvery: duration({ minMs: 10 * MINUTE_MS, maxMs: 30 * DAY_MS, why: "a reminder must come at all" }),
  recovery: flag,
});

/** What was read, with the defaults; notes what contradicts itself. */
export const alertsOf = (read: NonNullable<ReturnType<typeof alerts>>, place: Place): Alerts => {
  const { pageAfter = DEFAULTS.alerts.pageAfter, pauseAfter, finishWithin, slowAfter } = read;
  // A job that pages at once notifies at once: a page goes to the channels of notify as well.
  const most = pageAfter === "never" ? Number.POSITIVE_INFINITY : pageAfter;
  const notifyAfter = read.notifyAfter ?? DEFAULTS.alerts.notifyAfter;
  if (notifyAfter > most)
    place
      .inner("notifyAfter")
      .fault(`it is more than pageAfter (${most}), which wakes somebody`, "lower it, or raise pageAfter");
  if (pauseAfter !== undefined && pauseAfter < notifyAfter)
    place
      .inner("pauseAfter")
      .fault(`it is less than notifyAfter (${notifyAfter})`, "a job that pauses itself says so: raise it");
  return {
    notifyAfter,
    ...(pageAfter === "never" ? {} : { pageAfter }),
    ...defined({ pauseAfter, finishWithinMs: finishWithin, slowAfterMs: slowAfter }),
    remindEveryMs: read.remindEvery ?? DEFAULTS.alerts.remindEveryMs,
    recovery: read.recovery ?? DEFAULTS.alerts.recovery,
  };
};
