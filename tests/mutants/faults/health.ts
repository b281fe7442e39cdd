import { faultsIn } from "../planted.ts";

const SILENT = "silence is noticed";
const FALSE_ALARM = "what is well is not told of";
const TWICE = "each change is told once";
const COUNTED = "failures are counted over runs in the order of their slots";

const factFaults = faultsIn("lib/core/health/health-facts.ts", [
  [
    "a run whose grace is over is not late",
    "  return fact.isBackfill ? undefined : fact.dueMs + job.graceMs;",
    "  return undefined;",
    SILENT,
  ],
  [
    "a backfill is late",
    "  return fact.isBackfill ? undefined : fact.dueMs + job.graceMs;",
    "  return fact.dueMs + job.graceMs;",
    FALSE_ALARM,
  ],
  [
    "lateness counts from the claim, not from the slot",
    "  return isOwn ? slotMs : Math.max(",
    "  return isOwn && slotMs < 0 ? slotMs : Math.max(",
    SILENT,
  ],
  [
    "a retried run is late from its slot",
    "  if (reopenedAtMs !== undefined) return Math.max(slotMs, reopenedAtMs);\n",
    "",
    FALSE_ALARM,
  ],
  [
    "a missed slot is no failure",
    'new Set(["dead", "missed", "expired"])',
    'new Set(["dead", "expired"])',
    SILENT,
  ],
  [
    "a lost worker is not seen",
    "fact.leaseOverMs !== undefined && fact.leaseOverMs < nowMs",
    "fact.leaseOverMs !== undefined && fact.leaseOverMs < 0",
    SILENT,
  ],
  [
    "a live worker is taken for lost",
    "fact.leaseOverMs !== undefined && fact.leaseOverMs < nowMs",
    "fact.leaseOverMs !== undefined && fact.leaseOverMs > nowMs",
    FALSE_ALARM,
  ],
  [
    "a run by hand fails the schedule",
    "=> !fires || !isManualKey(slotKey);",
    "=> fires || !isManualKey(slotKey);",
    COUNTED,
  ],
  [
    "an older look hides the end of a run",
    "  return isOver(one) && !isOver(other) ? one : other;",
    "  return other;",
    SILENT,
  ],
  [
    "failures are counted from the oldest run",
    "(left.slotKey < right.slotKey ? 1 : -1)",
    "(left.slotKey < right.slotKey ? -1 : 1)",
    COUNTED,
  ],
]);

const judgeFaults = faultsIn("lib/core/health/judge-health.ts", [
  [
    "a skipped run counts as a failure",
    '(fact.state === "succeeded" || isFailed(fact) ||',
    '(fact.state === "succeeded" || fact.state === "skipped" || isFailed(fact) ||',
    COUNTED,
  ],
  ["a failure that is tried again is over", "  fact.epoch > 1 &&\n", "  fact.epoch > 9 &&\n", FALSE_ALARM],
  [
    "a late run is over when it starts",
    ' : fact.state !== "parked";',
    " : fact.startedAtMs === undefined;",
    FALSE_ALARM,
  ],
  [
    "what is known is told again",
    "toldLevel ?? knownLevel(before, streak)",
    "knownLevel(before, streak)",
    TWICE,
  ],
  [
    "a job that is resumed pauses itself at once",
    "(streak?.sincePause ?? 0) >= pauseAfter",
    "(streak?.count ?? 0) >= pauseAfter",
    "so many failures in a row pause a job",
  ],
  [
    "steady again, it flaps at once",
    "isSteadyAgain ? [] : before.changesMs",
    "isSteadyAgain ? before.changesMs : before.changesMs",
    SILENT,
  ],
  [
    "a run in trouble is not looked at again",
    "    troubles.length > 0 ? nowMs + LOOK_EVERY_MS : undefined,\n",
    "",
    "the end of a trouble is told",
  ],
  [
    "nobody is reminded",
    "known === undefined ? undefined : known.atMs + job.alerts.remindEveryMs",
    "known === undefined ? known : undefined",
    "what stays wrong is told again",
  ],
]);

const tellFaults = [
  ...faultsIn("lib/core/health/health-flapping.ts", [
    [
      "a planned silence is told",
      "  if (!flapped && !begins) return { told: isMuted ? [] : news };",
      "  if (!flapped && !begins) return { told: news };",
      "in a planned silence alerts wait",
    ],
    ["nothing is damped", "recent.length >= MAX_CHANGES", "recent.length > MAX_CHANGES", TWICE],
    ["a page is damped", "told: flapped ? pages : [...pages", "told: flapped ? [] : [...pages", SILENT],
  ]),
  ...faultsIn("lib/core/health/health-news.ts", [
    [
      "a lost worker whose run is over by then is not told of",
      "  const stuck = lostWorkers(turn).filter(",
      "  const stuck = lostWorkers(turn).slice(1).filter(",
      SILENT,
    ],
    [
      "a lost worker whose run is over by then is told of each time",
      '!inTrouble.has(fact.slotKey) && !before.noted.includes(keyOf("stuck", fact));',
      "!inTrouble.has(fact.slotKey);",
      TWICE,
    ],
    [
      "failures after a success pass for the old ones",
      "  old === undefined || streak.firstSlotKey > old.lastSlotKey;",
      "  old === undefined || streak.firstSlotKey < old.firstSlotKey;",
      SILENT,
    ],
    [
      "a late start that is over is told at each pass",
      "!inTrouble.has(slotKey) && startedAtMs > (before.lateUntilMs ?? 0);",
      "!inTrouble.has(slotKey) && startedAtMs > 0;",
      TWICE,
    ],
  ]),
];

const storeFaults = [
  ...faultsIn("lib/core/health/health-items.ts", [
    [
      "health goes over what somebody else has judged",
      'condition: seenRevision === undefined ? absent("rev") : equals("rev", seenRevision),',
      'condition: seenRevision === undefined ? absent("pk") : equals("sk", subject),',
      TWICE,
    ],
    [
      "a flip is not stored with the health that it leads to",
      'flips.length === 0 ? remove("untold") : set("untold", JSON.stringify(flips)),',
      'remove("untold"),',
      SILENT,
    ],
  ]),
  ...faultsIn("lib/app/health/health.ts", [
    [
      "a pause that is over keeps a job from pausing itself",
      'any(absent(entry), atMost([entry, "untilMs"], nowMs))',
      'any(absent(entry), atMost([entry, "never"], nowMs))',
      "so many failures in a row pause a job",
    ],
    [
      "what a crash left untold is left so",
      "    if (stored !== undefined && stored.untold.length > 0) await tellAll(deps, look.job, stored);\n    else if",
      "    if",
      SILENT,
    ],
    [
      "a bad run of a sound job is not worth a look",
      "  if (facts.some((fact) => isNotable(job, fact, nowMs))) return true;\n",
      "",
      SILENT,
    ],
    [
      "a good run of a bad job is not worth a look",
      "  return untold.length > 0 || !isSound(health) ||",
      "  return untold.length > 0 ||",
      "the end of a trouble is told",
    ],
  ]),
  ...faultsIn("lib/app/watchdog/watch.ts", [
    ["no health is judged", "    ...(await keepHealth(deps, pass)),\n", "", SILENT],
  ]),
  ...faultsIn("lib/app/definitions.ts", [
    [
      "nobody looks at the health of a removed job",
      "    await lookAt(deps, { subject, slotKey: HEALTH_NOTE }, { atMs: nowMs });\n",
      "",
      "the end of a trouble is told",
    ],
  ]),
  ...faultsIn("lib/app/health/close-health.ts", [
    [
      "a removed job is told of before older code is gone",
      "    if (nowMs < fromMs) await noteAt(name, fromMs);\n    else if",
      "    if",
      FALSE_ALARM,
    ],
    [
      "the end of a removed job that is stored and not told is left so",
      "    if (stored.untold.length > 0) await tellAll(deps, job, stored);\n    else if",
      "    if",
      SILENT,
    ],
    [
      "what waits for a person is told to be over with its job",
      '  return runs.some((run) => run["st"] === "parked");',
      "  return runs.length < 0;",
      SILENT,
    ],
  ]),
  ...faultsIn("lib/app/watchdog/watch-slots.ts", [
    [
      "what is marked as missed is not judged",
      "    if (answer.written) see(pass, occurrence, answer.item);\n",
      "",
      SILENT,
    ],
  ]),
  ...faultsIn("lib/app/watchdog/looks.ts", [
    [
      "nobody looks when the grace is over",
      "isAhead ? Math.min(atMs, dueMs) : atMs",
      "isAhead ? Math.max(atMs, dueMs) : atMs",
      "what is late is told within two minutes of its grace",
    ],
  ]),
  ...faultsIn("lib/app/watchdog/absence.ts", [
    [
      "the watchdog says nothing of its absence",
      "nowMs - lastMs <= AWAY_AFTER_MS",
      "nowMs - lastMs <= nowMs",
      SILENT,
    ],
  ]),
];

export const healthFaults = [...factFaults, ...judgeFaults, ...tellFaults, ...storeFaults];
