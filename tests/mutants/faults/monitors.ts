import { faultsIn } from "../planted.ts";

const SLOT = "a ping counts for the slot it is meant for";
const LAST = "the last word of a monitored job counts";
const AGAIN = "a ping may come again";
const SILENT = "silence is noticed";
const ELSEWHERE = "nothing here runs a monitor";

const slotFaults = faultsIn("lib/core/monitors/monitor.ts", [
  [
    "an early ping counts for the slot before",
    "<= earlyMs ? nextMs : pastMs;",
    "<= earlyMs - nextMs ? nextMs : pastMs;",
    SLOT,
  ],
  [
    "a ping half a day early counts for the next slot",
    "Math.min(periodMs / 2, MOST_EARLY_MS)",
    "Math.max(periodMs / 2, MOST_EARLY_MS)",
    SLOT,
  ],
  ["a margin of its own is not looked at", "monitor.earlyMs ?? ", "", SLOT],
  [
    "a monitor may be run",
    "  if (!isMonitor(job)) return;\n",
    '  if (!isMonitor(job) || job.name !== "") return;\n',
    ELSEWHERE,
  ],
  [
    "a slot is missed without its grace",
    "=> slotMs + graceMs;",
    "=> slotMs + 0 * graceMs;",
    "what is well is not told of",
  ],
]);

const writeFaults = faultsIn("lib/core/monitors/ping.ts", [
  [
    "a ping that comes again is written again",
    "  if (state === STATE_OF[ping.signal]) return undefined;\n",
    "",
    AGAIN,
  ],
  [
    "a start that comes after its own success begins the run again",
    '  if (ping.signal === "start" && state === "succeeded") return undefined;\n',
    "",
    AGAIN,
  ],
  ["a ping writes over what another has written meanwhile", "  condition: unchanged(seen),\n", "", AGAIN],
  [
    "what a later ping says of an ended run is no new attempt set",
    '  set("ep", epoch + 1),\n',
    '  set("ep", epoch),\n',
    LAST,
  ],
  ["a healed run keeps its error", '  "error",\n', "", LAST],
  ["a healed run stays on the list of bad endings", '  "badKey",\n', "", LAST],
]);

const takingFaults = faultsIn("lib/app/monitors/ping.ts", [
  [
    "an end goes to the nearest slot, not to the run that has started",
    "runningMs ?? (await awaitedSlot",
    "(await awaitedSlot",
    SLOT,
  ],
  [
    "a slot that is awaited loses its ping to the next",
    "runningMs ?? (await awaitedSlot(deps, job, schedule)) ?? nearMs",
    "runningMs ?? nearMs",
    SLOT,
  ],
  [
    "a failure exits as a success",
    'request.signal === 0 ? "ok" : "fail"',
    'request.signal >= 0 ? "ok" : "fail"',
    "a failure is no success",
  ],
  [
    "what a ping says waits for the next slot",
    "    await lookAt(deps, occurrence, { atMs: nowMs });\n",
    "",
    SILENT,
  ],
]);

const watchFaults = faultsIn("lib/app/watchdog/watch-slots.ts", [
  [
    "a slot is missed at its first look",
    "pingDueMs(job, slotMs) > pass.nowMs",
    "pingDueMs(job, slotMs) < 0",
    "what is well is not told of",
  ],
]);

const silentFaults = faultsIn("lib/app/watchdog/silent-runs.ts", [
  ["a start without an end goes on for ever", "  if (nowMs <= overMs) {\n", "  if (nowMs > 0) {\n", SILENT],
]);

const OUTSIDE = "only holders of a secret trigger anything from outside";

const addressFaults = [
  ...faultsIn("lib/inbound/pings/ping-key.ts", [
    ["a short secret opens an address", "secrets.filter(isStrong)", "[...secrets]", OUTSIDE],
    [
      "the key of one monitor opens another",
      ".update(`belfry ping",
      '.update("all" || `belfry ping',
      OUTSIDE,
    ],
    ["any key opens an address", "return equal.includes(true);", "return equal.length > 0;", OUTSIDE],
  ]),
  ...faultsIn("lib/inbound/pings/router.ts", [
    [
      "a changed secret is not looked up",
      " || isPingKey(key, await secrets.renewed(), subject)",
      "",
      "an address holds while its secret is changed",
    ],
    [
      "a ping that is refused is not counted",
      '        journal.notice("warn", "ping-refused", { job: job.name, why: error.message });\n',
      "        return context.body(null, 400);\n",
      SILENT,
    ],
    [
      "a look by HEAD is a success",
      'if (method !== "GET" && method !== "POST")',
      'if (method === "PUT")',
      "a ping is meant",
    ],
  ]),
];

export const monitorFaults = [
  ...addressFaults,
  ...slotFaults,
  ...writeFaults,
  ...takingFaults,
  ...watchFaults,
  ...silentFaults,
];
