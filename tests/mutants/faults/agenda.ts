import { faultsIn } from "../planted.ts";

const LOST = "a run-time schedule's slot without an end";
const SURPRISE = "nothing fires that nobody asked for";
const OWN = "each run-time schedule is on its own";
const LIMIT = "an owner has as many as may be";

const requestFaults = faultsIn("lib/app/automations/automations.ts", [
  [
    "a run-time schedule is entered after its record",
    "  await enterAhead(deps, id, period);\n  const { item } = await table.write(createAutomation(wanted));\n",
    "  const { item } = await table.write(createAutomation(wanted));\n  await enterAhead(deps, id, period);\n",
    LOST,
  ],
  ["an edit enters no minutes", "      await enterAhead(deps, automation.id, period);\n", "", LOST],
  [
    "whoever has no place makes one more",
    "  if (second.written || has(second.item)) return;\n",
    "  if (second.item !== undefined) return;\n",
    LIMIT,
  ],
  [
    "a place that nobody uses is kept",
    "  await strikeUnused(deps, place, first.item);\n",
    "",
    "a place that nobody uses is given back",
  ],
  [
    "somebody else's may be changed",
    "  const isHis = owner === undefined || automation?.owner === owner;\n",
    "  const isHis = owner !== id;\n",
    OWN,
  ],
]);

const recordFaults = faultsIn("lib/core/automations/automation.ts", [
  [
    "an id is taken from another",
    '  condition: absent("job"),\n  changes: [\n    set("v", ITEM_VERSION),',
    '  condition: absent("none"),\n  changes: [\n    set("v", ITEM_VERSION),',
    OWN,
  ],
  [
    "an edit goes over another",
    '  condition: all(equals("rev", revision), absent("deletedAtMs")),',
    '  condition: absent("deletedAtMs"),',
    "of two edits both take effect",
  ],
  [
    "an edit forgets what was due before",
    "[...stillKnown(seen.periods, nowMs), next]",
    "[...stillKnown(seen.periods, nowMs).slice(1), next]",
    LOST,
  ],
  [
    "an edited schedule has slots before the edit",
    "        startsAtMs: fromMs,\n",
    "        startsAtMs: index * 0,\n",
    SURPRISE,
  ],
  ["a run gets the job's input, not its own", "    input: automation.input,\n  };\n};", "  };\n};", OWN],
]);

const agendaFaults = [
  ...faultsIn("lib/core/automations/agenda.ts", [
    [
      "who makes one leaves the next day to a walk that may not have seen it",
      "LEAD_MS + WINDOW_MS + HOUR_MS",
      "HOUR_MS",
      LOST,
    ],
    [
      "a page is replaced by another watchdog's",
      '        changes: [addMembers("ids", ...page), set(',
      '        changes: [set("ids", new Set(page)), set(',
      LOST,
    ],
    [
      "the agenda goes back",
      '    equals("lookedUntilMs", seen.lookedUntilMs),\n',
      "",
      "a pass looks at what the last one has not",
    ],
  ]),
  ...faultsIn("lib/app/watchdog/agenda.ts", [
    [
      "the agenda moves past a look that failed",
      "      if (failures.length === 0) reached = place;\n",
      "      reached = place;\n",
      LOST,
    ],
    ["no walk plans the next day", "    await planOn(deps, agenda);\n", "", LOST],
    [
      "the walk moves on before its pages are written",
      "  // All pages before the walk moves on",
      "  await deps.table.write(moveWalk(walk, undefined));\n  // All pages before the walk moves on",
      LOST,
    ],
    [
      "who claimed a slot before it was edited away is forgotten",
      "strays: slots[0] === minuteMs ? [] : [minuteMs]",
      "strays: []",
      LOST,
    ],
    [
      "of a removed job's run-time schedules what was claimed stays",
      "await eachInTurn(orphans, (one) => endClaimed(deps, one, minuteMs))",
      "await eachInTurn([], (one: string) => endClaimed(deps, one, minuteMs))",
      LOST,
    ],
  ]),
  ...faultsIn("lib/app/subjects.ts", [
    [
      "a deleted one still fires",
      'automation.deletedAtMs === undefined ? reasonNotToClaim(record, job, slotMs) : "deleted"',
      "reasonNotToClaim(record, job, slotMs)",
      SURPRISE,
    ],
    [
      "its pause is the jobs'",
      "  return id === undefined ? CONTROL_KEY : automationKey(id);",
      "  return id === undefined ? CONTROL_KEY : CONTROL_KEY;",
      OWN,
    ],
  ]),
  ...faultsIn("lib/app/watchdog/watch.ts", [
    [
      "the watchdog looks at no run-time schedules",
      "    ...keptElsewhere(await lookAtAgenda(deps, pass)),\n",
      "",
      LOST,
    ],
  ]),
  ...faultsIn("lib/app/health/health.ts", [
    [
      "a deleted one is told of for ever",
      "automation?.deletedAtMs !== undefined;",
      "automation?.deletedAtMs === -1;",
      "what is well is not told of",
    ],
  ]),
];

export const automationFaults = [...requestFaults, ...recordFaults, ...agendaFaults];
