import { setTimeout as pause } from "node:timers/promises";
import { DEFAULTS } from "../../lib/core/jobs/job.ts";
import { EMBEDDED_ALARM_MINUTE_MS, EMBEDDED_TIMINGS } from "../../lib/core/settings.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { atSlots, jobFile } from "./project.ts";
import { alarm, allSucceeded, paged, runOf, type Stage, untilMs } from "./stage.ts";
import type { Outcome } from "./watch.ts";

const notified = (kind: string, key: string): string => `chat ${kind} notify ${alarm(key)}`;

const DISPATCHER_RINGS = [
  ...paged("alarm", alarm("dispatch-failures")),
  notified("alarm", "function-errors"),
];
const DISPATCHER_IS_OVER = [
  ...paged("alarm-over", alarm("dispatch-failures")),
  notified("alarm-over", "function-errors"),
];

const FOUND_BY_WATCHDOG = ["event-a", "event-b"];

/** Every claim of the dispatcher is refused, none of the watchdog's. */
export const dispatcherThrows = async (stage: Stage): Promise<readonly Outcome[]> => {
  const { services, watch } = stage;
  const slotMs = await stage.load((atMs) =>
    Object.fromEntries(
      FOUND_BY_WATCHDOG.map((name) => [
        name,
        jobFile({ schedule: atSlots(atMs), overlap: '"allow"', handler: "() => undefined" }),
      ]),
    ),
  );
  services.breakTable((body) =>
    body.includes('"schedule"') && body.includes("event-") ? "refuse" : undefined,
  );
  for (const line of DISPATCHER_RINGS) await watch.until(line, slotMs);
  services.mendTable();
  const outcome = await watch.outcomeOf({
    case: "the dispatcher throws on every event",
    sinceMs: slotMs,
    expected: [...DISPATCHER_RINGS, ...DISPATCHER_IS_OVER],
    check: () =>
      allSucceeded(
        stage,
        FOUND_BY_WATCHDOG.map((job) => runOf(job, slotMs)),
      ),
  });
  return [outcome];
};

/** Comes back so soon, and goes to the dead letters after so many receives: more than two of the alarms' minutes. */
export const DEAD_LETTER_PACE = { visibilityS: 2, receives: 12 } as const;

/** A worker that can start no run gives its message back until it is a dead letter. */
export const deadLetters = async (stage: Stage): Promise<readonly Outcome[]> => {
  const { services, watch } = stage;
  await stage.load(() => ({ letter: jobFile({ overlap: '"allow"', handler: "() => undefined" }) }));
  await services.hurry(DEFAULTS.pool, DEAD_LETTER_PACE.visibilityS, DEAD_LETTER_PACE.receives);
  services.breakTable((body) =>
    body.includes("letter") && body.includes("leaseUntilMs") ? "refuse" : undefined,
  );
  const sinceMs = Date.now();
  const run = await stage.run("letter", {});
  const rings = ["messages-failing", `pool-${DEFAULTS.pool}-dead-letters`];
  for (const key of rings) await watch.until(notified("alarm", key), sinceMs);
  services.mendTable();
  const outcome = await watch.outcomeOf({
    case: "the dead-letter queue fills",
    sinceMs,
    expected: [
      ...rings.toReversed().map((key) => notified("alarm", key)),
      ...rings.map((key) => notified("alarm-over", key)),
    ],
    check: () => allSucceeded(stage, [run]),
  });
  return [outcome];
};

const SILENT = alarm("watchdog-silent");
/** Away for longer, the watchdog says so when it is back. */
const AWAY_MS = 5 * MINUTE_MS + 10 * SECOND_MS;

/** Its first question of a pass gets no answer, as where a function hangs: it makes no pass at all. */
export const watchdogStops = async ({ services, watch }: Stage): Promise<readonly Outcome[]> => {
  const sinceMs = Date.now();
  services.breakTable((body) => (/"W"/.test(body) && /"cursor"/.test(body) ? "hang" : undefined));
  const stopped = await watch.outcomeOf({
    case: "the watchdog is stopped",
    sinceMs,
    expected: paged("alarm", SILENT),
  });
  await untilMs(sinceMs + AWAY_MS);
  const backMs = Date.now();
  services.mendTable();
  const back = await watch.outcomeOf({
    case: "the watchdog is back, and says so",
    sinceMs: backMs,
    expected: ["chat watchdog-back notify -", ...paged("alarm-over", SILENT)],
  });
  return [stopped, back];
};

const OUTAGE_MS = 60 * SECOND_MS;
/** So early that its alarm rings into the outage, and waits for the end of it for longer than Lambda would try. */
const SLOT_IN_OUTAGE_MS = 5 * SECOND_MS;

/** Nobody reaches the table, and a slot falls into that: it is told as soon as somebody does, and the slot is made up for. */
export const storeIsAway = async (stage: Stage): Promise<readonly Outcome[]> => {
  const { services, watch } = stage;
  const sinceMs = await stage.load((atMs) => ({
    meanwhile: jobFile({ schedule: atSlots(atMs + SLOT_IN_OUTAGE_MS), handler: "() => undefined" }),
  }));
  await untilMs(sinceMs);
  services.breakTable(() => "cut");
  await pause(OUTAGE_MS);
  services.mendTable();
  const outcome = await watch.outcomeOf({
    case: "the store is unreachable for 60 s",
    sinceMs,
    expected: [...DISPATCHER_RINGS, ...DISPATCHER_IS_OVER],
    check: () => allSucceeded(stage, [runOf("meanwhile", sinceMs + SLOT_IN_OUTAGE_MS)]),
  });
  return [outcome];
};

/** The alarm that a chat is away looks back so many of its minutes: the failures of five times five. */
const FAILING_IS_OVER_MS = 26 * EMBEDDED_ALARM_MINUTE_MS;

/**
 * The second chat takes nothing from the start on, whatever fails meanwhile: all that the first was told comes
 * afterwards, once.
 */
export const chatIsAway = async (stage: Stage): Promise<readonly Outcome[]> => {
  const { receiver, watch } = stage;
  await stage.load(() => ({
    unheard: jobFile({
      retry: "{ retries: 0 }",
      handler: '() => { throw new Error("made for the drill"); }',
    }),
  }));
  const failed = `failed notify ${await stage.run("unheard", {})}`;
  await watch.until(`chat ${failed}`, receiver.startedAtMs);
  await untilMs(receiver.roomBackAtMs);
  const awayS = (receiver.roomBackAtMs - receiver.startedAtMs) / SECOND_MS;
  const outcome = await watch.outcomeOf({
    case: `a chat is down for ${awayS} s, beside one that is not`,
    sinceMs: receiver.startedAtMs,
    expected: [
      `room ${failed}`,
      `chat ${failed}`,
      notified("alarm", "alerts-failing"),
      notified("alarm-over", "alerts-failing"),
    ],
    patienceMs: EMBEDDED_TIMINGS.longestAlertWaitMs + FAILING_IS_OVER_MS + 30 * SECOND_MS,
    check: async () => {
      const unlike = receiver.unlikeChat();
      if (unlike.length > 0) return unlike.join("; ");
      const tries = receiver.refused.length;
      return tries > 1 ? undefined : `the room was tried ${tries} times while away`;
    },
  });
  return [outcome];
};
