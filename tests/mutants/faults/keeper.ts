import { faultsIn } from "../planted.ts";

const LOST = "an occurrence without an end";
const TOO_MANY = "more runs at once than may be";
const STUCK = "the lock lists what is over";
const LIVE = "live slots are skipped for live runs only, and runs by hand never";

/**
 * What becomes of the lock when a run is over, and who gets it next.
 *
 * Not planted, because it changes nothing: the look at the record's state left out before a replaced waiter leaves the
 * line. Its text is removed from the line only, and what has become a holder is there no more.
 */
export const keeperFaults = faultsIn("lib/app/path/lock-keeper.ts", [
  [
    "the start deadline of a caught-up slot counts from its wake",
    '  return isTrigger(trigger) ? trigger : "backfill";',
    '  return isTrigger(trigger) ? "backfill" : "backfill";',
    "nothing starts after its start deadline",
  ],
  [
    "the one slot that misfire latest catches up waits in line",
    'policyOf(job) === "skip" && catchesUpSeveral(job.misfire)',
    'policyOf(job) === "skip"',
    LIVE,
  ],
  [
    "any number of runs waits for a lock",
    "  if (waitersOf(lock).length < LONGEST_LINE) return;",
    "  if (lock !== null) return;",
    "what is refused is said before anything is written",
  ],
  [
    "room for one more holder than the policy says",
    '  typeof overlap === "object" ? overlap.max : 1;',
    '  (typeof overlap === "object" ? overlap.max : 1) + 1;',
    TOO_MANY,
  ],
  ["the lock is handed over and nobody told", "    await sendWaiter(deps, job, waiter);\n", "", LOST],
  [
    "a waiter is told before it has the lock",
    "  const token = deps.random.token();\n  const answer = await deps.table.write(\n    handOver(",
    "  const token = deps.random.token();\n  await sendWaiter(deps, job, waiter);\n  const answer = await deps.table.write(\n    handOver(",
    TOO_MANY,
  ],
  [
    "a hand-over whose answer was lost is somebody else's",
    "  if (entry.owner === token && entry.epoch === waiter.epoch) {",
    '  if (entry.owner === "" && entry.epoch === waiter.epoch) {',
    LOST,
  ],
  [
    "a hand-over by whomever is mine",
    "  if (entry.owner === token && entry.epoch === waiter.epoch) {",
    "  if (entry.epoch === waiter.epoch) {",
    "who hands over sends, once",
  ],
  [
    "a hand-over refused by an older entry looks again for ever",
    "    entry.epoch < waiter.epoch\n      ? releaseHolder({ subject: job.subject, slotKey: waiter.slotKey }, entry.epoch)\n      : removeWaiter(job.subject, waiter.text);\n  return (await deps.table.write(mend)).item;",
    "    entry.epoch < waiter.epoch ? undefined : removeWaiter(job.subject, waiter.text);\n  return mend === undefined ? lock : (await deps.table.write(mend)).item;",
    LOST,
  ],
  [
    "a waiter that has the lock already stays in line",
    "      : removeWaiter(job.subject, waiter.text);",
    "      : releaseHolder({ subject: job.subject, slotKey: waiter.slotKey }, -1);",
    STUCK,
  ],
  [
    "a waiter whose older entry holds leaves the line",
    "    entry.epoch < waiter.epoch\n      ?",
    "    entry.epoch < 0\n      ?",
    LOST,
  ],
  [
    "replace: hand-over supersedes runs by hand",
    "  const live = waitersOf(lock).filter((waiter) => waiter.class === 0);",
    "  const live = waitersOf(lock);",
    LIVE,
  ],
  [
    "queue: the older ones that wait are replaced",
    '  if (policyOf(job) !== "replace" || live.length < 2) return lock;',
    "  if (live.length < 2) return lock;",
    "queued slots run",
  ],
  [
    "replace: several wait, none is superseded",
    '  if (policyOf(job) !== "replace" || live.length < 2) return lock;',
    '  if (policyOf(job) !== "none" || live.length < 2) return lock;',
    "of those that wait only the newest runs",
  ],
  [
    "replace: the newest of those that wait is superseded",
    "live.slice(0, -1)",
    "live.slice(1)",
    "replace never drops the newest slot",
  ],
  [
    "replace: a waiter that became holder is taken for over",
    '    if (!isTerminal(String(answer.item?.["st"]))) continue;\n',
    "    seen = (await deps.table.write(releaseHolder(occurrence, epoch))).item ?? seen;\n",
    LOST,
  ],
  [
    "replace: a waiter leaves the line before its record says so",
    "  let seen = lock;\n  for (const { slotKey, epoch, text } of live.slice(0, -1)) {\n    const occurrence = { subject: job.subject, slotKey };\n",
    "  let seen = lock;\n  for (const { slotKey, epoch, text } of live.slice(0, -1)) {\n    const occurrence = { subject: job.subject, slotKey };\n    await deps.table.write(removeWaiter(job.subject, text));\n",
    LOST,
  ],
  [
    "the lock is handed over once, though there is room for two",
    "    seen = await handOverOnce(deps, job, await supersedeOlder(deps, job, seen));\n",
    "    seen = await handOverOnce(deps, job, await supersedeOlder(deps, job, seen));\n    return;\n",
    LOST,
  ],
  [
    "a run that leaves the line removes its other attempt set",
    "any.slotKey === occurrence.slotKey && any.epoch === epoch);",
    "any.slotKey === occurrence.slotKey);",
    LOST,
  ],
  [
    "a waiter that became holder keeps the lock",
    "  if (answer.written) return answer.item;\n  return (await table.write(releaseHolder(occurrence, epoch))).item;",
    "  return answer.item;",
    STUCK,
  ],
  [
    "a release leaves the line as it is",
    "  const lock = answer.written ? answer.item : await leaveWaiters(deps, entry, answer.item);",
    "  const lock = answer.item;",
    STUCK,
  ],
  ["a release wakes nobody", "  await wakeWaiters(deps, entry.job, lock);\n};", "  void lock;\n};", LOST],
  ["a holder that is not over is released", "    if (!isOver(run, epoch)) continue;\n", "", TOO_MANY],
  [
    "a holder is judged by whatever attempt set its record has",
    '  return runEpoch > epoch || (runEpoch === epoch && isTerminal(String(run?.["st"])));',
    '  return runEpoch > epoch || isTerminal(String(run?.["st"]));',
    TOO_MANY,
  ],
  [
    "a holder of an earlier attempt set is not over",
    '  return runEpoch > epoch || (runEpoch === epoch && isTerminal(String(run?.["st"])));',
    '  return runEpoch === epoch && isTerminal(String(run?.["st"]));',
    STUCK,
  ],
  [
    "a parked holder is taken for over",
    '(runEpoch === epoch && isTerminal(String(run?.["st"])))',
    '(runEpoch === epoch && (run?.["st"] === "parked" || isTerminal(String(run?.["st"]))))',
    "a parked run keeps its lock",
  ],
  [
    "a holder without a record is over",
    '  const runEpoch = Number(run?.["ep"] ?? 0);',
    '  const runEpoch = Number(run?.["ep"] ?? 99);',
    TOO_MANY,
  ],
]);
