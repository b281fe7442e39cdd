import { faultsIn } from "../planted.ts";

const AGAIN = "an alert is told again only where it was sent and nobody could write that down";
const LOST = "no alert is lost";
const HELD_UP = "what one channel does not take holds up no other";
const FALSE_ALARM = "a failure is told once: by the watchdog, or by the alarm where the watchdog is silent";

const outboxFaults = faultsIn("lib/core/alerts/outbox.ts", [
  [
    "an alert that is stored again waits again",
    '  key: alertKey(alert.id),\n  condition: absent("v"),\n',
    "  key: alertKey(alert.id),\n",
    AGAIN,
  ],
  [
    "a delivery is claimed over another pass's claim",
    '      any(absent(attribute), all(atMost(part(claim, "nextAtMs"), nowMs), ...unsettled(claim))),\n    ),\n    changes: [set(attribute, { attempts, owner,',
    '      exists("v"),\n    ),\n    changes: [set(attribute, { attempts, owner,',
    AGAIN,
  ],
  [
    "a delivery is claimed although the channel has it",
    'all(atMost(part(claim, "nextAtMs"), nowMs), ...unsettled(claim))',
    'atMost(part(claim, "nextAtMs"), nowMs)',
    AGAIN,
  ],
]);

const deliverFaults = faultsIn("lib/app/notify/deliver.ts", [
  [
    "a message is sent and not marked",
    "    await repeated(() => table.write(markTold(to, clock.nowMs())));\n",
    "",
    AGAIN,
  ],
  [
    "the mark of a message is tried once",
    "    await repeated(() => table.write(markTold(to, clock.nowMs())));\n",
    "    await table.write(markTold(to, clock.nowMs()));\n",
    AGAIN,
  ],
  [
    "a claim whose answer was lost is left for another pass",
    "    const isMine = answer.written || (item !== undefined && isClaimedBy(item, { channel: name, owner }));\n",
    "    const isMine = answer.written;\n    void isClaimedBy;\n    void owner;\n",
    "an alert is told at once",
  ],
  [
    "what another pass has claimed is sent all the same",
    "    if (isMine) mine.push(errand);\n",
    "    if (isMine || item !== undefined) mine.push(errand);\n",
    AGAIN,
  ],
  [
    "a channel that is away is asked by every alert",
    "    if (!goesOn) return;\n",
    "    if (!goesOn) continue;\n",
    "a receiver that says later is left alone",
  ],
  [
    "a channel that wants to be left alone is asked by the next alert",
    "  if (open.some((errand) => waits(errand) && errand.delivery?.refused !== true)) return [];\n",
    "",
    "a receiver that says later is left alone",
  ],
  [
    "one refused alert closes its channel",
    "waits(errand) && errand.delivery?.refused !== true",
    "waits(errand)",
    HELD_UP,
  ],
  [
    "a refused alert goes with others",
    "    if (errand.delivery?.refused === true) {\n",
    "    if (errand.delivery?.refused === undefined && size === 0) {\n",
    HELD_UP,
  ],
  [
    "a page waits for the morning",
    'quietHours !== undefined && topic === "notify" && kind',
    "quietHours !== undefined && topic !== undefined && kind",
    "quiet hours hold what can wait, and nothing else",
  ],
  [
    "what nobody takes waits for ever",
    "    else if (isTooOld(alert, nowMs)) await abandon(deps, channel, { errand, settled });\n",
    "",
    "what nobody takes ends with a record",
  ],
  [
    "a receiver's own wait is not obeyed",
    '  if (answer.kind === "not-now" && answer.retryAfterMs !== undefined)\n    return Math.min(answer.retryAfterMs, LONGEST_RETRY_AFTER_MS);\n',
    "",
    "a receiver that says later is left alone",
  ],
  [
    "a full outbox hides what is new",
    '  return [...oldest, ...newest.filter((item) => !known.has(item["pk"])).reverse()];\n',
    '  return newest.length < 0 ? newest.filter((item) => known.has(item["pk"])) : oldest;\n',
    HELD_UP,
  ],
]);

const alarmFaults = [
  ...faultsIn("lib/app/notify/notify-alarm.ts", [
    [
      "an alarm about jobs is told beside the watchdog",
      '  if (definition?.about === "jobs" && (await isWatchdogAlive(deps))) return;\n',
      "",
      FALSE_ALARM,
    ],
    [
      "an alarm about jobs is never told",
      '  if (definition?.about === "jobs" && (await isWatchdogAlive(deps))) return;\n',
      '  if (definition?.about === "jobs") return;\n',
      LOST,
    ],
    [
      "the end of an alarm that it overtook is forgotten",
      "  const { item } = await table.write(noteTold(change));\n  await tellEnd(deps, change.name, item);\n",
      "  await table.write(noteTold(change));\n",
      "what is told is told to be over",
    ],
  ]),
  ...faultsIn("lib/core/alarms/alarm-change.ts", [
    [
      "an end is told by its own time",
      "isoOf(toldAtMs)}~over",
      "isoOf(overAtMs)}~over",
      "an end is told once",
    ],
    [
      "an end that is older than the ringing ends it",
      "overAtMs <= toldAtMs",
      "overAtMs < 0",
      "what rings is not told to be over",
    ],
    [
      "an older change takes the newer one's place",
      'any(absent("toldAtMs"), lessThan("toldAtMs", atMs))',
      'any(absent("toldAtMs"), lessThan("toldAtMs", atMs), absent("v"))',
      "what rings is not told to be over",
    ],
  ]),
];

const channelFaults = faultsIn("lib/adapters/channels/http.ts", [
  [
    "HTTP 200 is success whatever its body says",
    '  if (typeof code !== "number")\n',
    "  if (code !== undefined || code === undefined)\n",
    LOST,
  ],
  ["a redirect is followed", 'redirect: "manual"', 'redirect: "follow"', "what is told goes to nobody else"],
  [
    "an address without TLS is taken",
    'if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname))) return url;',
    "if (url !== undefined) return url;",
    "what is told is told in private",
  ],
]);

const incidentFaults = faultsIn("lib/adapters/channels/pagerduty.ts", [
  [
    "news without an end is taken for a repeat",
    "if (passing === true) return id;",
    "if (id === job) return id;",
    LOST,
  ],
  [
    "one schedule's recovery ends the incident of another",
    "if (automation !== undefined) return `automation/",
    "if (automation === job) return `automation/",
    LOST,
  ],
]);

const takingFaults = faultsIn("lib/inbound/notifier.ts", [
  [
    "an alarm that cannot be stored is dropped",
    "return [{ itemIdentifier }];",
    "return itemIdentifier === one.status ? [{ itemIdentifier }] : [];",
    LOST,
  ],
]);

export const notifyingFaults = [
  ...incidentFaults,
  ...takingFaults,
  ...outboxFaults,
  ...deliverFaults,
  ...alarmFaults,
  ...channelFaults,
];
