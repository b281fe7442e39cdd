import { faultsIn } from "../planted.ts";

const LOST = "an occurrence without an end";
const OVER = "a run that is over is touched";

const operatorFaults = faultsIn("lib/app/operate/operator.ts", [
  [
    "reopened before the look is noted",
    "  await noteAsk(deps, occurrence, epoch + 1);\n  const answer = await deps.table.write(wanted);\n",
    "  const answer = await deps.table.write(wanted);\n  await noteAsk(deps, occurrence, epoch + 1);\n",
    LOST,
  ],
  [
    "a retry takes the lock before it reopens the run",
    "  const answer = await deps.table.write(wanted);\n",
    '  if (isLocked(job)) {\n    const again = { job, occurrence, epoch: epoch + 1, trigger: "manual", queuedAtMs: nowMs, recorded: true } as const;\n    await claimAndSend(deps, again, token);\n  }\n  const answer = await deps.table.write(wanted);\n',
    "an entry that never ends",
  ],
  [
    "a retry whose answer was lost is refused",
    '  const mine = answer.item?.["own"] === token && answer.item["ep"] === epoch + 1;',
    "  const mine = false;",
    "a retry knows its own success",
  ],
  [
    "a refused retry goes on",
    "  if (!answer.written && !mine) {\n    throw refused(",
    "  if (!answer.written && !mine && epoch < 0) {\n    throw refused(",
    "what succeeded is not retried",
  ],
  ["a retry claims as the attempt set before", "      epoch: epoch + 1,\n", "      epoch,\n", LOST],
  [
    "cancel asks a running run for nothing",
    '    return asked.written || asked.item?.["st"] === "running" ? "stopping" : { now: asked.item };\n',
    "    return { now: asked.item };\n",
    "a running run is asked to stop",
  ],
  [
    "cancel: a parked run stays",
    "    parkedToo: true,\n",
    "    parkedToo: false,\n",
    "a person ends a parked run",
  ],
  [
    "cancel releases nothing",
    '  if (locked) await release(deps, entry);\n  return "cancelled";',
    '  return "cancelled";',
    "the lock lists what is over",
  ],
  [
    "cancel releases before the record says so",
    "  const answer = await deps.table.write(isPutOff",
    "  if (isLocked(job)) await release(deps, { job, occurrence, epoch });\n  const answer = await deps.table.write(isPutOff",
    "more runs at once than may be",
  ],
  [
    "cancel makes a record of what nobody asked for",
    '  if (run?.["st"] === undefined) await mustBeClaimed(deps, job, occurrence);\n',
    "",
    "only what exists is cancelled",
  ],
]);

const byHandFaults = faultsIn("lib/app/operate/run-by-hand.ts", [
  [
    "recorded before the look is noted",
    "    await noteAsk(deps, occurrence, 1);\n    const made = await record(deps, request, occurrence);\n",
    "    const made = await record(deps, request, occurrence);\n    await noteAsk(deps, occurrence, 1);\n",
    LOST,
  ],
  ["a run by hand has no note", "    await noteAsk(deps, occurrence, 1);\n", "", LOST],
  [
    "a refused record counts as made",
    '    if (made !== undefined) return { kind: "refused", runId, ...made };\n',
    "    void made;\n",
    "a slot that has run is not run by hand",
  ],
  [
    "a record whose answer was lost is somebody else's",
    '  if (answer.written || answer.item?.["own"] === token) return undefined;',
    "  if (answer.written) return undefined;",
    "a record knows its own success",
  ],
  [
    "a run by hand is not sent",
    "    const outcome = await claimAndSend(deps, ask, deps.random.token());\n",
    '    const outcome = isLocked(job) ? await claimAndSend(deps, ask, deps.random.token()) : "claimed";\n',
    LOST,
  ],
  [
    "the record points to an input that is stored after it",
    '  if (input !== undefined && !inline) await storeAside(deps.table, occurrence, "input", input, nowMs);\n  const answer',
    '  const storing = input !== undefined && !inline;\n  if (storing) deps.timings.leaseMs > 0 && queueMicrotask(() => void storeAside(deps.table, occurrence, "input", input, nowMs));\n  const answer',
    "a record points to what is there",
  ],
]);

const dispatchFaults = faultsIn("lib/app/path/dispatch.ts", [
  [
    "a job that fails keeps the others from being claimed",
    "  const settled = await Promise.allSettled(\n    subjects.map((subject) => dispatchOne(",
    "  for (const subject of subjects) await dispatchOne(deps, { subject, slotMs, isTick, requestId, control });\n  const settled = await Promise.allSettled(\n    subjects.map((subject) => dispatchOne(",
    "each job of an event has its try",
  ],
  ["a failed job is told as done", "  if (failures.length === 1) throw failures[0];\n", "", LOST],
  [
    "a pause is not seen",
    "  const reason = found.reasonNotToClaim(slotMs);\n",
    "  const reason = nowMs < 0 ? found.reasonNotToClaim(slotMs) : undefined;\n",
    "a paused slot does not run",
  ],
  [
    "a paused slot is marked over its record",
    "  const answer = await deps.table.write(markAbsent(mark));\n",
    "  const { key, changes } = markAbsent(mark);\n  const answer = await deps.table.write({ key, changes });\n",
    OVER,
  ],
  [
    "a slot that was claimed before the pause is skipped",
    '  if (isLocked(job) && (await listedInLock(deps.table, subject)).has(slotKey)) return "duplicate";\n',
    "",
    "what was claimed before the pause goes on",
  ],
  [
    "a paused slot has no record",
    "  const answer = await deps.table.write(markAbsent(mark));\n",
    "  const answer = { written: mark.nowMs > 0 };\n",
    LOST,
  ],
  [
    "each try of a delivery has an owner of its own",
    "  return claimAndSend(deps, ask, requestId);",
    "  return claimAndSend(deps, ask, deps.random.token());",
    "a retried delivery knows its claims",
  ],
  [
    "the slot is the dispatcher's minute",
    "  const occurrence = { subject, slotKey: slotKeyOf(slotMs) };\n  const mark",
    "  const occurrence = { subject, slotKey: slotKeyOf(nowMs - (nowMs % 60_000)) };\n  const mark",
    "the slot is the event's",
  ],
]);

/**
 * Not planted, because it changes nothing but when the watchdog looks again: the wait for a live lease left out. The mark
 * itself is refused by one (planted: "dead letters ignore a live lease").
 */
const removedFaults = faultsIn("lib/app/watchdog/removed-jobs.ts", [
  [
    "a removed job's parked run is looked at for ever",
    '  if (state === "parked") return;\n',
    "",
    "a look comes to its end",
  ],
  [
    "a removed job's run leaves the lock before it is over",
    '    if (became === "refused") return lookAt(',
    '    if (became === "never") return lookAt(',
    OVER,
  ],
  [
    "a removed job's run stays in the lock",
    "  for (const entry of entries) await table.write(entry);\n",
    "",
    "the lock lists what is over",
  ],
]);

export const requestFaults = [...operatorFaults, ...byHandFaults, ...dispatchFaults, ...removedFaults];
