import { faultsIn, near } from "../planted.ts";

const LOST = "an occurrence without an end";
const PARKED = "a parked run waits for a person, and keeps its lock";
const OVER = "a run that is over is touched";

const deadLetterFaults = faultsIn("lib/app/path/dead-letters.ts", [
  [
    "a letter of a run that is over goes on",
    '  if (Number(run?.["ep"] ?? 0) > message.epoch || isTerminal(state)) return drop(deps, letter);\n',
    "",
    OVER,
  ],
  [
    "a letter of an earlier attempt set goes on",
    '  if (Number(run?.["ep"] ?? 0) > message.epoch || isTerminal(state)) return drop(deps, letter);\n',
    "  if (isTerminal(state)) return drop(deps, letter);\n",
    "a letter comes to its end",
  ],
  ["a letter of a parked run ends it", '  if (state === "parked") return DELETE;\n', "", PARKED],
  [
    "a letter of a parked run releases its lock",
    '  if (state === "parked") return DELETE;\n',
    '  if (state === "parked") return drop(deps, letter);\n',
    PARKED,
  ],
  [
    "a live lease is judged as lost",
    '  const live = state === "running" && Number(run["leaseUntilMs"]) + clockBoundMs >= deps.clock.nowMs();',
    '  const live = state === "none" && Number(run["leaseUntilMs"]) + clockBoundMs >= deps.clock.nowMs();',
    "a letter of a run under a live lease is looked at later",
  ],
  [
    "the innocent are marked dead",
    "  return usedUp(job, run) ? end(deps, letter) : sendBack(deps, letter);",
    "  return end(deps, letter);",
    "a run has the attempts that its job allows",
  ],
  [
    "what used up its attempts is sent again",
    "  return usedUp(job, run) ? end(deps, letter) : sendBack(deps, letter);",
    "  return sendBack(deps, letter);",
    LOST,
  ],
  [
    "what was never started is judged by its attempts",
    '  if (run?.["fence"] === undefined) return judgeNeverStarted(deps, letter);',
    "  if (run === undefined) return judgeNeverStarted(deps, letter);",
    "what was never started by its deadline is expired",
  ],
  ["a letter is deleted without being sent again", "  await deps.queue.send(job.pool, message);\n", "", LOST],
  [
    "the letter of a run that started meanwhile is dropped",
    '  if (!answer.written) return { kind: "return" };\n  deps.journal.notice("warn", "expired"',
    '  if (!answer.written) return DELETE;\n  deps.journal.notice("warn", "expired"',
    LOST,
  ],
  [
    "what was never started by its deadline is sent again",
    "  if (nowMs <= dueMsOf(message) + job.startDeadlineMs) return sendBack(deps, letter);",
    "  if (nowMs > 0) return sendBack(deps, letter);",
    "what was never started by its deadline is expired",
  ],
  [
    "dead letters mark what must not repeat as dead",
    '  const state = job.onUnknown === "park" ? "parked" : "dead";',
    '  const state = job.onUnknown === "park" && token === "" ? "parked" : "dead";',
    PARKED,
  ],
  [
    "dead letters release the lock of what they park",
    '  return state === "parked" ? DELETE : drop(deps, letter);',
    "  return drop(deps, letter);",
    PARKED,
  ],
  [
    "dead letters release nothing",
    "  if (isLocked(job)) await release(deps, { job, occurrence, epoch: message.epoch });\n",
    "",
    "the lock lists what is over",
  ],
  [
    "dead letters release before the record says so",
    "  const token = deps.random.token();\n  const state = job.onUnknown",
    "  const token = deps.random.token();\n  await drop(deps, letter);\n  const state = job.onUnknown",
    "more runs at once than may be",
  ],
  [
    "a refused mark counts as a mark",
    '  if (!answer.written && answer.item?.["own"] !== token) return { kind: "return" };\n  tellEnd',
    "  tellEnd",
    LOST,
  ],
  [
    "a mark whose answer was lost is somebody else's",
    '  if (!answer.written && answer.item?.["own"] !== token) return { kind: "return" };\n  tellEnd',
    '  if (!answer.written) return { kind: "return" };\n  tellEnd',
    "a mark knows its own success",
  ],
  [
    "a crash that is not counted yet is forgiven",
    '  const crashes = Number(run["crashes"] ?? 0) + (run["st"] === "running" ? 1 : 0);',
    '  const crashes = Number(run["crashes"] ?? 0);',
    "a run that kills its worker ends",
  ],
]);

const watchFaults = faultsIn("lib/app/watchdog/watch.ts", [
  [
    "the cursor moves before the pass has looked",
    "  const failures = [\n",
    "  await moveCursor(deps, from, until);\n  const failures = [\n",
    LOST,
  ],
  [
    "what an old dispatcher claims after a deploy is looked at by nobody",
    "    ...(await lookBackAtChanges(deps, pass)),\n",
    "",
    LOST,
  ],
  ["the watchdog looks at no notes", "    ...(await lookAtNotes(deps, pass)),\n", "", LOST],
  ["the watchdog looks at no slots", "    ...(await lookAtSlots(deps, firing, pass)),\n", "", LOST],
  [
    "the cursor moves past looks that failed",
    "  if (failures.every(({ isKept }) => isKept)) await moveCursor",
    "  if (failures.length >= 0) await moveCursor",
    LOST,
  ],
  [
    "the cursor goes back",
    '    condition: equals("doneUntilMs", from.slotsUntilMs),\n',
    "",
    "a pass looks at what the last one has not",
  ],
]);

const placeFaults = near(
  faultsIn("lib/app/watchdog/watch.ts", [
    [
      "one job that fails makes each pass look at all the others again",
      "  if (failures.every(({ isKept }) => isKept)) await moveCursor",
      "  if (failures.length === 0) await moveCursor",
      "a pass costs what is due",
    ],
    [
      "a job whose look failed is not looked at again",
      "    void pass.behind.set(subject.job.subject, lookedUntilMs(pass, subject.job));\n",
      "    void subject;\n",
      LOST,
    ],
    [
      "a job that fails twice begins again at the cursor",
      "  from.behind.get(subject) ?? from.slotsUntilMs;",
      '  (subject === "" ? from.behind.get(subject) : undefined) ?? from.slotsUntilMs;',
      LOST,
    ],
    [
      "passes that fail pass for an absence",
      "  else await noteAtWork(deps);\n",
      "",
      "what is well is not told of",
    ],
  ]),
  "tests/unit/path/watch-failures.test.ts",
);

const absenceFaults = near(
  faultsIn("lib/app/watchdog/absence.ts", [
    [
      "a pass that stood still passes for a second absence",
      "  await noteAtWork({ table, clock });\n",
      "",
      "what is told is told once",
    ],
  ]),
  "tests/unit/path/watch-failures.test.ts",
);

const slotFaults = faultsIn("lib/app/watchdog/watch-slots.ts", [
  [
    "a caught-up slot waits in line without a record",
    "  if (recorded && !(await isFirst(deps, occurrence, token))) return;\n",
    "",
    "a record says what made it",
  ],
  [
    "a slot that is claimed and not started counts as missing",
    '    if (run?.["st"] === undefined && !claimed.has(occurrence.slotKey)) {',
    '    if (run?.["st"] === undefined) {',
    "a claimed slot is not missed",
  ],
  [
    "a slot that is missing is not caught up",
    "  for (const slotMs of toRun) await catchUp(deps, job, pass, slotMs);\n",
    "",
    LOST,
  ],
  ["a run that is caught up has no note", "  await noteAsk(deps, occurrence, 1);\n", "", LOST],
  [
    "claimed before the look is noted: a slot caught up",
    '  await noteAsk(deps, occurrence, 1);\n  const token = deps.random.token();\n  const recorded = catchesUpInLine(job);\n  if (recorded && !(await isFirst(deps, occurrence, token))) return;\n  const ask = { job, occurrence, epoch: 1, trigger: "watchdog", queuedAtMs, recorded } as const;\n  const outcome = await claimAndSend(deps, ask, token)',
    '  const token = deps.random.token();\n  const recorded = catchesUpInLine(job);\n  if (recorded && !(await isFirst(deps, occurrence, token))) return;\n  const ask = { job, occurrence, epoch: 1, trigger: "watchdog", queuedAtMs, recorded } as const;\n  const claimed = await claimAndSend(deps, ask, token);\n  await noteAsk(deps, occurrence, 1);\n  const outcome = await Promise.resolve(claimed)',
    LOST,
  ],
  [
    "a pause is not seen by the watchdog",
    "subject.reasonNotToClaim(slotMs)]));",
    "undefined]));",
    "a paused slot does not run",
  ],
  [
    "a run that is open at its first look is not looked at",
    '  if (!isTerminal(String(run?.["st"]))) await look(deps, { job, occurrence, run });\n',
    "",
    LOST,
  ],
  [
    "a missed slot is not recorded",
    '    await markAll(deps, job, { pass, slots: row, state: "missed", reason });\n',
    "    void row;\n",
    LOST,
  ],
]);

const lookFaults = faultsIn("lib/app/watchdog/looks.ts", [
  [
    "a look mends and notes no next one: queued",
    "  await lookAgain(deps, open, deps.clock.nowMs() + distanceMs(deps, open.run));\n",
    "",
    LOST,
  ],
  [
    "a look mends and notes no next one: running",
    "  await lookAgain(deps, open, Math.max(leaseOverMs",
    "  if (leaseOverMs < 0) await lookAgain(deps, open, Math.max(leaseOverMs",
    LOST,
  ],
  [
    "a look mends and notes no next one: waiting",
    "  await lookAgain(deps, open, dueMs",
    "  if (dueMs < 0) await lookAgain(deps, open, dueMs",
    LOST,
  ],
  [
    "a look mends and notes no next one: holder",
    "    await lookAgain(deps, open, nowMs + holderDistanceMs(deps, sinceMs));\n",
    "",
    LOST,
  ],
  [
    "a look mends and notes no next one: in line",
    "    await lookAgain(deps, open, nowMs + distanceMs(deps, run));\n",
    "",
    LOST,
  ],
  [
    "the watchdog looks at claims only, not at ended leases",
    '  if (leaseOverMs < clock.nowMs()) await sendAgain(deps, open, open.run?.["nudgedAtMs"]);\n',
    "",
    LOST,
  ],
  [
    "a live run is sent again",
    "  if (leaseOverMs < clock.nowMs()) await sendAgain(",
    "  if (leaseOverMs > 0) await sendAgain(",
    "a run under a live lease is left alone",
  ],
  [
    "a run that waits is never sent again",
    '  if (dueMs <= nowMs) await sendAgain(deps, open, open.run?.["nudgedAtMs"]);\n',
    "",
    LOST,
  ],
  [
    "a queued run is never sent again",
    '  await sendAgain(deps, open, open.run?.["nudgedAtMs"]);\n  await lookAgain',
    "  await lookAgain",
    LOST,
  ],
  ["a holder is never sent again", "    await sendHolderAgain(deps, open, holder);\n", "", LOST],
  [
    "one in line is never woken by the watchdog",
    "    if (isLocked(job)) await claimAndSend(deps, askOf(deps, open), deps.random.token());\n    else await send(deps, open);\n",
    "",
    LOST,
  ],
  [
    "an entry of an earlier attempt set passes for its own",
    "    entry.slotKey === occurrence.slotKey && entry.epoch === epoch;",
    "    entry.slotKey === occurrence.slotKey && entry.epoch <= epoch;",
    LOST,
  ],
  [
    "the watchdog sends, whoever sent just now",
    '  if (answer.written || answer.item?.["nudgedBy"] === token) await send(deps, open);\n',
    "  void answer;\n  await send(deps, open);\n",
    "two passes send the same run",
  ],
  [
    "the watchdog sends before it says so",
    '  const seenAtMs = typeof seen === "number" ? seen : undefined;\n',
    '  const seenAtMs = typeof seen === "number" ? seen : undefined;\n  await send(deps, open);\n',
    "two passes send the same run",
  ],
  [
    "a parked run is looked at and sent",
    '  if (state === "parked" || isTerminal(String(state))) return true;',
    "  if (isTerminal(String(state))) return true;",
    PARKED,
  ],
  [
    "a note that lies in what the pass has read",
    "Math.max(atMs, clock.nowMs() + SOONEST_LOOK_MS)",
    "Math.min(atMs, clock.nowMs() - 3_600_000)",
    LOST,
  ],
]);

const promiseFaults = faultsIn("lib/app/watchdog/looks.ts", [
  [
    "a note that landed behind what was read is not written again",
    "  } while (clock.nowMs() >= lookAtMs);",
    "  } while (clock.nowMs() < 0);",
    LOST,
  ],
  [
    "a note without its record is dropped",
    "  if (nowMs > promised.askedAtMs + LONGEST_ASK_MS) return;\n",
    "  if (nowMs > promised.askedAtMs) return;\n",
    LOST,
  ],
  [
    "a note without its record is kept for ever",
    "  if (nowMs > promised.askedAtMs + LONGEST_ASK_MS) return;\n",
    "",
    "a look comes to its end",
  ],
  ["a note promises nothing", "    promised: { epoch, askedAtMs },\n", "", LOST],
]);

const turnFaults = faultsIn("lib/app/watchdog/each-in-turn.ts", [
  [
    "one look that fails keeps the watchdog from the others",
    "      failures.push({ error, isKept: await isKept(one, keep) });\n",
    "      throw error;\n",
    "one bad run does not hide the others",
  ],
]);

export const repairingFaults = [
  ...deadLetterFaults,
  ...watchFaults,
  ...placeFaults,
  ...absenceFaults,
  ...slotFaults,
  ...turnFaults,
  ...lookFaults,
  ...promiseFaults,
];
