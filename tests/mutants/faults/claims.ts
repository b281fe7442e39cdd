import { faultsIn } from "../planted.ts";

const LOST = "an occurrence without an end";
const TOO_MANY = "more runs at once than may be";
const STUCK = "the lock lists what is over";
const LIVE = "live slots are skipped for live runs only, and runs by hand never";

/**
 * Who asks for the lock, in which order, and what a refusal means.
 *
 * Not planted, because it changes nothing: `ep === 1` left out where a claim knows its own record. Whoever reopens or
 * starts a run writes an owner of its own, so a record that still has this token is the one that the claim made.
 * Neither: `class !== 0` left out where the line is judged for full. A run by hand is let into the line before that is
 * asked (planted: "judged as a live slot"); where there is room it would only move the line first, and join all the same.
 */
export const claimFaults = faultsIn("lib/app/path/claims.ts", [
  [
    "what is caught up after an outage skips for what is caught up",
    'trigger === "backfill" || (trigger === "watchdog" && catchesUpInLine(job)) ? 2 : 0',
    'trigger === "backfill" ? 2 : 0',
    "with misfire all, all run",
  ],
  [
    "what is caught up after an outage takes the live slots' places in the line",
    "MAX_QUEUED + caughtUpTogether(ask.job)",
    "MAX_QUEUED",
    "with misfire all, all run",
  ],
  [
    "sent before it is claimed",
    "  const answer = await deps.table.write(claim({ ...ask, token, nowMs: ask.queuedAtMs }));\n",
    "  await send(deps, ask);\n  const answer = await deps.table.write(claim({ ...ask, token, nowMs: ask.queuedAtMs }));\n",
    "a message that nobody claimed",
  ],
  [
    "claimed and not sent",
    "  if (!mine) return duplicate(deps, { ask, token }, answer.item);\n  await send(deps, ask);\n",
    "  if (!mine) return duplicate(deps, { ask, token }, answer.item);\n",
    LOST,
  ],
  [
    "a claim whose answer was lost is a duplicate",
    '  const mine = answer.written || (answer.item?.["own"] === token && answer.item["ep"] === 1);',
    "  const mine = answer.written;",
    LOST,
  ],
  [
    "whoever made the record, its claim is mine",
    '  const mine = answer.written || (answer.item?.["own"] === token && answer.item["ep"] === 1);',
    '  const mine = answer.written || answer.item?.["ep"] === 1;',
    "one message per claim",
  ],
  [
    "locked: sent before it is claimed",
    "    const max = maxHolders(ask.job);\n    const answer",
    "    const max = maxHolders(ask.job);\n    if (look === 0) await send(deps, ask);\n    const answer",
    TOO_MANY,
  ],
  [
    "locked: claimed and not sent",
    "    if (answer.written) {\n      await send(deps, ask);\n",
    "    if (answer.written) {\n",
    LOST,
  ],
  [
    "every claim may only be newer",
    "  let newestOnly = !ask.recorded && ask.epoch === 1;",
    "  let newestOnly = true;",
    "a run by hand does not move the newest slot",
  ],
  [
    "no claim is judged by the newest slot",
    "  let newestOnly = !ask.recorded && ask.epoch === 1;",
    "  let newestOnly = false;",
    "a slot delivered again claims again",
  ],
  ["a record that was read is not believed", "    newestOnly = false;\n  }\n  throw", "  }\n  throw", LOST],
  [
    "a run's own entry in the lock is overlooked",
    "  if (holding !== undefined) return meetOwnHolder(deps, refusal, holding);\n",
    "",
    "a slot delivered again is skipped for itself",
  ],
  [
    "a run's own place in line is overlooked",
    "  if (waiting !== undefined) return meetOwnWaiter(deps, refusal, waiting);\n",
    "",
    "a slot delivered again is a duplicate",
  ],
  [
    "an older slot replaces a newer one",
    '  if (policy === "replace" && isSuperseded(refusal)) {',
    '  if (policy === "replace" && ask.epoch < 0 && isSuperseded(refusal)) {',
    "an older run never replaces a newer",
  ],
  [
    "a run by hand counts as a newer occurrence",
    "(entry) => entry.class === 0 && entry.slotKey > ask.occurrence.slotKey,",
    "(entry) => entry.slotKey > ask.occurrence.slotKey,",
    LIVE,
  ],
  [
    "a run by hand is superseded by a newer slot",
    "  contender.class === 0 &&\n  [...holdersOf",
    "  [...holdersOf",
    LIVE,
  ],
  [
    "a newer waiter does not count as newer",
    "  [...holdersOf(lock), ...waitersOf(lock)].some(\n    (entry) => entry.class === 0",
    "  [...holdersOf(lock)].some(\n    (entry) => entry.class === 0",
    "an older run never replaces a newer",
  ],
  [
    "whether a run is over is not asked of its record",
    '  if (runUnread && (room || policy !== "skip")) return readOwnRun(deps, refusal);\n',
    "",
    "a duplicate of a finished run waits in line",
  ],
  [
    "locked: a finished holder is never removed by others",
    "  if (await releaseEnded(deps, ask.job, lock)) return AGAIN;\n",
    "",
    STUCK,
  ],
  [
    "a run by hand is judged as a live slot",
    "  if (contender.class !== 0) return join(deps, refusal);\n",
    "",
    LIVE,
  ],
  [
    "where the line is full it grows all the same",
    "  if (!isQueueFull(refusal)) return join(deps, refusal);\n  await wakeWaiters",
    '  if (isQueueFull(refusal) || refusal.token !== "") return join(deps, refusal);\n  await wakeWaiters',
    "the line is bounded",
  ],
  [
    "an entry of a smaller epoch is trusted: the retried run is sent",
    "  if (holding.owner === token && holding.epoch === ask.epoch) {",
    "  if (holding.epoch <= ask.epoch) {",
    TOO_MANY,
  ],
  [
    "locked: a claim whose answer was lost is a duplicate",
    "  if (holding.owner === token && holding.epoch === ask.epoch) {",
    '  if (holding.owner === "" && holding.epoch === ask.epoch) {',
    LOST,
  ],
  [
    "an entry of a smaller epoch makes the retry a duplicate",
    "  if (holding.epoch >= ask.epoch) {",
    "  if (holding.epoch >= 0) {",
    LOST,
  ],
  [
    "an entry of the same epoch by another is given up",
    "  if (holding.epoch >= ask.epoch) {",
    "  if (holding.epoch > ask.epoch) {",
    TOO_MANY,
  ],
  [
    "a place in line of a smaller epoch is taken for its own",
    "  if (waiting.epoch < ask.epoch) {",
    "  if (waiting.epoch < 0) {",
    LOST,
  ],
  [
    "a waiter delivered again wakes nobody",
    "  await wakeWaiters(deps, ask.job, lock);\n  await releaseEnded",
    "  await releaseEnded",
    LOST,
  ],
  [
    "a waiter delivered again releases nobody",
    '  await releaseEnded(deps, ask.job, lock);\n  return done("waiting");',
    '  return done("waiting");',
    STUCK,
  ],
  [
    "a record in whatever state is still to run",
    '  if (run?.["st"] !== undefined && !asked) return done(await duplicate(deps, refusal, run));\n',
    "",
    "a duplicate of a finished run waits in line",
  ],
  [
    "a run by hand is not known by its live event",
    '  const asked = run?.["st"] === "queued" && run["ep"] === ask.epoch;',
    '  const asked = run?.["st"] === "none";',
    LOST,
  ],
  [
    "a run of another attempt set is still to run",
    '  const asked = run?.["st"] === "queued" && run["ep"] === ask.epoch;',
    '  const asked = run?.["st"] === "queued";',
    "a message of an earlier attempt set",
  ],
  [
    "the class of a run by hand is what its event says",
    '  const itsClass: Class = trigger === "manual" ? 1 : trigger === "backfill" ? 2 : contender.class;',
    '  const itsClass: Class = trigger === "none" ? 1 : contender.class;',
    LIVE,
  ],
  [
    "replace: one that waits gets the lock before a newer one joins",
    '  if (contender.class !== 0 || policy === "replace") return false;',
    "  if (contender.class !== 0) return false;",
    "of those that wait only the newest runs",
  ],
  [
    "runs by hand count among the live that wait",
    "waitersOf(lock).filter((waiter) => waiter.class === 0).length;",
    "waitersOf(lock).length;",
    LIVE,
  ],
  [
    "one more waits than may (> for >=)",
    "return live >= (policy",
    "return live > (policy",
    "the line is bounded",
  ],
  [
    "a live slot is skipped for a run by hand",
    "holdersOf(refusal.lock).every((holder) => holder.class === 0)",
    "holdersOf(refusal.lock).every((holder) => holder.class >= 0)",
    LIVE,
  ],
  [
    "a live slot is skipped where one of the holders is live",
    "holdersOf(refusal.lock).every((holder)",
    "holdersOf(refusal.lock).some((holder)",
    LIVE,
  ],
  [
    "skip: a live slot waits behind a live run",
    "  if (holdersOf(refusal.lock).every((holder) => holder.class === 0)) {",
    "  if (holdersOf(refusal.lock).length === 0) {",
    "a slot that finds its job running is skipped",
  ],
  [
    "skip: waits in line though its run is over",
    "  return refusal.runUnread ? readOwnRun(deps, refusal) : queueUp(deps, refusal);",
    "  return queueUp(deps, refusal);",
    "a duplicate of a finished run waits in line",
  ],
  [
    "where the line is full a slot is forgotten",
    '    ? skip(deps, refusal, { reason: "queue full", blockedBy: blockerOf(refusal) })',
    '    ? Promise.resolve(done("skipped"))',
    LOST,
  ],
  [
    "replace: stops a run by hand",
    "  if (holder === undefined || holder.class !== 0) return join(deps, refusal);",
    "  if (holder === undefined) return join(deps, refusal);",
    LIVE,
  ],
  [
    "replace: asks nobody to stop",
    "  const asked = await deps.table.write(askToStop(occurrence, holder.epoch, wish));\n",
    "  const asked = { written: true, item: {} as { readonly st?: string } };\n",
    "the newer run follows the older",
  ],
  [
    "replace: waits for a run that has not started",
    '  if (asked.written || state === "parked" || state === "running") return join(deps, refusal);',
    "  return join(deps, refusal);",
    "the newer run follows the older",
  ],
  [
    "replace: a run that was asked to stop already is cancelled",
    '  if (asked.written || state === "parked" || state === "running") return join(deps, refusal);',
    '  if (asked.written || state === "parked") return join(deps, refusal);',
    "the claim comes to an end",
  ],
  [
    "replace: a parked run is cancelled",
    '  if (asked.written || state === "parked" || state === "running") return join(deps, refusal);',
    '  if (asked.written || state === "running") return join(deps, refusal);',
    "a parked run waits for a person",
  ],
  [
    "replace: parked runs are replaced too",
    "    locked: true,\n    parkedToo: false,\n  });\n  if (mayHaveShards",
    "    locked: true,\n    parkedToo: true,\n  });\n  if (mayHaveShards",
    "a parked run waits for a person",
  ],
  [
    "a skip that found a record is told as skipped",
    "  if (!answer.written) return done(await duplicate(deps, refusal, answer.item));\n  deps.journal",
    "  deps.journal",
    "a duplicate is counted",
  ],
  [
    "a join that was refused counts as joined",
    "  if (!answer.written) return AGAIN;\n",
    '  if (!answer.written) return done("waiting");\n',
    LOST,
  ],
  [
    "a waiter does not look again after it joined",
    "  if (!answer.written) return AGAIN;\n  await wakeWaiters(deps, ask.job, answer.item);\n",
    "  if (!answer.written) return AGAIN;\n",
    LOST,
  ],
  [
    "a recorded run of a job without lock is claimed again",
    "  if (!ask.recorded) return claimRun(deps, ask, token);\n",
    "  return claimRun(deps, ask, token);\n",
    LOST,
  ],
  [
    "a recorded run of a job without lock is not sent",
    "  if (!ask.recorded) return claimRun(deps, ask, token);\n  await send(deps, ask);\n",
    "  if (!ask.recorded) return claimRun(deps, ask, token);\n",
    LOST,
  ],
  [
    "a run by hand is claimed as a live one",
    '  if (epoch > 1 || trigger === "manual") return 1;\n',
    "  if (epoch > 1) return 1;\n",
    LIVE,
  ],
  [
    "a retried run is claimed as a live one",
    '  if (epoch > 1 || trigger === "manual") return 1;\n',
    '  if (trigger === "manual") return 1;\n',
    LIVE,
  ],
]);
