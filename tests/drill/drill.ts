/**
 * `npm run drill -- [--quick] [--only SCENE] [--json]`: makes each failure for real on a running embedded stack, and waits
 * until it is told. `belfry dev` runs as for anybody, over the emulators' HTTP; a receiver on this machine is each of its channels.
 * Before the table stands a proxy that refuses, cuts or holds calls when it is told to. One line a case:
 * what told of it first, and after how many seconds. Exit 1 unless each was told by exactly the messages that are
 * expected, once each, and nothing else was told.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { durationText } from "../../lib/core/duration.ts";
import { AWS_TIMINGS, EMBEDDED_ALARM_MINUTE_MS, EMBEDDED_TIMINGS } from "../../lib/core/settings.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { failingJobs, neverStarts } from "./job-failures.ts";
import {
  chatIsAway,
  DEAD_LETTER_PACE,
  deadLetters,
  dispatcherThrows,
  storeIsAway,
  watchdogStops,
} from "./machine-failures.ts";
import { openStage, type Stage } from "./stage.ts";
import type { Outcome } from "./watch.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    only: { type: "string" },
  },
});
/** The second chat is away from the beginning, beside all that fails meanwhile. */
const CHAT_AWAY_MS = !values.quick && (values.only ?? "chat") === "chat" ? 10 * MINUTE_MS : 0;
/** Whatever is told twice, or for no reason, is told by then: two passes, and two of the alarms' minutes; in short, a pass. */
const QUIET_MS = (values.quick ? 0.6 : 2) * EMBEDDED_ALARM_MINUTE_MS;

const say = (text: string): void => console.error(text);

const shortened = (): readonly string[] => [
  `a minute of the alarms: ${durationText(EMBEDDED_ALARM_MINUTE_MS)} instead of ${durationText(MINUTE_MS)}`,
  ...(["leaseMs", "clockBoundMs", "firstLookMs", "longestAlertWaitMs"] as const).map(
    (name) =>
      `${name}: ${durationText(EMBEDDED_TIMINGS[name])} instead of ${durationText(AWS_TIMINGS[name])}`,
  ),
  "a pass of the watchdog and of the notifier: each 5 seconds instead of each minute",
  ...(values.quick
    ? []
    : [
        `a message that failed comes back after ${DEAD_LETTER_PACE.visibilityS} s, and is a dead letter after ${DEAD_LETTER_PACE.receives} receives (only where the dead-letter queue fills)`,
      ]),
];

const print = (outcome: Outcome): void => {
  if (values.json) {
    console.log(JSON.stringify(outcome));
    return;
  }
  const { alarm, ok, seconds, told, why } = outcome;
  const after = seconds === null ? "never" : `${seconds.toFixed(1)} s`;
  console.log(
    `${ok ? "told    " : "NOT TOLD"} ${outcome.case.padEnd(50)} ${alarm.padEnd(32)} ${after.padStart(8)}`,
  );
  for (const line of told) say(`           ${line}`);
  if (why !== undefined) console.log(`         ${why}`);
};

const SCENES: { readonly [name: string]: (stage: Stage) => Promise<readonly Outcome[]> } = {
  jobs: (stage) => failingJobs(stage, values.quick),
  dispatcher: dispatcherThrows,
  "dead-letters": deadLetters,
  watchdog: watchdogStops,
  store: storeIsAway,
  chat: chatIsAway,
  scheduler: neverStarts,
};

const scenes = () => {
  const only = values.quick ? "jobs" : values.only;
  const chosen = Object.entries(SCENES).filter(([name]) => only === undefined || name === only);
  if (chosen.length === 0)
    throw new Error(`--only is "${only}"; it may be ${Object.keys(SCENES).join(", ")}`);
  return chosen.map(([, scene]) => scene);
};

const play = async (stage: Stage): Promise<boolean> => {
  let ok = true;
  for (const scene of scenes()) {
    for (const outcome of await scene(stage)) {
      print(outcome);
      ok &&= outcome.ok;
    }
  }
  await pause(QUIET_MS);
  const { faults } = stage.receiver;
  const wrong = [
    ...stage.watch.leftOver().map((line) => `told without need, or twice: ${line}`),
    ...stage.receiver.unlikeChat(),
    ...faults,
  ];
  for (const line of wrong) say(line);
  if (!ok || wrong.length > 0) say(stage.lines().join("\n"));
  return ok && wrong.length === 0;
};

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
const startedAtMs = Date.now();
say(["shortened:", ...shortened()].join("\n  "));
const stage = await openStage(CHAT_AWAY_MS);
say(`the stack is ready after ${Math.round((Date.now() - startedAtMs) / 100) / 10} s`);
try {
  process.exitCode = (await play(stage)) ? 0 : 1;
} finally {
  await stage.close();
}
say(`the drill took ${Math.round((Date.now() - startedAtMs) / SECOND_MS)} s`);
