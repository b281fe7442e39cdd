import { faultsIn } from "../planted.ts";

const LOST = "an occurrence without an end";
const STALE = "the result of an attempt that lost its lease is taken";

const recordFaults = faultsIn("lib/app/path/record.ts", [
  [
    "the lock is released before the result is stored",
    "  const answer = await repeated(() => deps.table.write(write));",
    "  await leave(deps, visit);\n  const answer = await repeated(() => deps.table.write(write));",
    "more runs at once than may be",
  ],
  [
    "the message is deleted before the result is stored",
    "  const answer = await repeated(() => deps.table.write(write));",
    "  const answer = await deps.table.write(write).catch(() => ({ written: true, item: {} }) as const);",
    LOST,
  ],
  [
    "the record points to a result that is stored after it",
    "  if (result !== undefined && !inline) {\n",
    '  if (result !== undefined && !inline) {\n    await close(deps, ended, { state: "succeeded", failed: false, sideResult: true });\n',
    "a record points to what is there",
  ],
  [
    "a result whose answer was lost is stale",
    "  if (!tookEffect(ended, answer, after)) return stale(deps, ended);\n",
    "  if (!answer.written) return stale(deps, ended);\n",
    "a result knows its own success",
  ],
  [
    "a stale result counts as recorded",
    "  if (!tookEffect(ended, answer, after)) return stale(deps, ended);\n",
    "",
    STALE,
  ],
  [
    "a result recorded by another fence is mine",
    "  if (!tookEffect(ended, answer, after)) return stale(deps, ended);\n",
    '  if (!answer.written && answer.item?.["st"] !== after) return stale(deps, ended);\n',
    STALE,
  ],
  [
    "a finished run keeps its lock",
    "  const settlement = await leave(deps, visit);",
    '  const settlement = { kind: "delete" } as const;',
    "the lock lists what is over",
  ],
  [
    "the next run of a series is left to the watchdog",
    '  if (answer.item?.["series"] !== undefined) await runOfSeriesEnded(deps, visit.job, answer.item);\n',
    "",
    "a run that ends hands out the next",
  ],
  [
    "the message of a stale result is deleted",
    '  await deps.table.write(countStaleResult(holding.occurrence));\n  return { kind: "return" };',
    '  await deps.table.write(countStaleResult(holding.occurrence));\n  return { kind: "delete" };',
    "the message of a run that goes on stays",
  ],
  [
    "the message of a run that waits is deleted",
    '  return { kind: "return", afterMs: Math.max(0, nextAttemptAtMs - deps.clock.nowMs()) };',
    '  return { kind: "delete" };',
    LOST,
  ],
  [
    "what was cut off is tried again, whatever the job says",
    '  job.onUnknown === "park" && (',
    '  job.onUnknown === "retry" && kind === "threw" && (',
    "a run of which nobody knows how far it came is left to a person",
  ],
  [
    "a parking releases the lock",
    "  // The lock stays with the run.\n  return DELETE;",
    "  return leave(deps, ended.visit);",
    "a parked run keeps its lock",
  ],
  [
    "a parking whose answer was lost is stale",
    '  if (!tookEffect(ended, answer, "parked")) return stale(deps, ended);\n',
    "  if (!answer.written) return stale(deps, ended);\n",
    "a result knows its own success",
  ],
  [
    "a failed attempt too many is allowed",
    "  if (failure.permanent || failed > retry.retries) {",
    "  if (failure.permanent || failed > retry.retries + 1) {",
    "a run has the attempts that its job allows",
  ],
  [
    "a failed attempt too few is allowed",
    "  if (failure.permanent || failed > retry.retries) {",
    "  if (failure.permanent || failed >= retry.retries) {",
    "a run has the attempts that its job allows",
  ],
  [
    "a permanent error is tried again",
    "  if (failure.permanent || failed > retry.retries) {",
    "  if (failed > retry.retries) {",
    "a permanent error ends the run",
  ],
  [
    "an attempt that throws after it was asked to stop waits for another",
    'item?.["st"] === "running" ? stopReason(item) : undefined;',
    'item?.["st"] === "" ? stopReason(item) : undefined;',
    "a cancelled run ends",
  ],
  [
    "a refused failure of whomever is mine",
    '  if (!tookEffect(ended, answer, "waiting")) return stale(deps, ended);\n',
    "",
    STALE,
  ],
  [
    "a failure whose answer was lost is stale",
    '  if (!tookEffect(ended, answer, "waiting")) return stale(deps, ended);\n',
    "  if (!answer.written) return stale(deps, ended);\n",
    "a result knows its own success",
  ],
  [
    "a handler that obeyed a wish to stop has failed its attempt",
    'end.kind === "stopped" && cancelled !== undefined',
    'end.kind === "stopped" && cancelled !== undefined && ended.endedAtMs < 0',
    "a cancelled run ends",
  ],
  [
    "a run goes on although somebody asked it to stop",
    '  if (wish !== undefined) {\n    return close(deps, ended, { state: "cancelled", reason: wish, failed: false });\n  }\n',
    "",
    "a cancelled run ends",
  ],
  [
    "a piece whose answer was lost is stale",
    '  if (!tookEffect(ended, answer, "queued")) return stale(deps, ended);\n',
    "  if (!answer.written) return stale(deps, ended);\n",
    "a run that continues later goes on",
  ],
  [
    "the next piece is not asked for",
    "  try {\n    await deps.queue.send(job.pool, message);\n",
    "  try {\n",
    "a run that continues later goes on",
  ],
  [
    "a piece releases the lock of its run",
    "  return askForNext(deps, ended.visit);",
    "  await leave(deps, ended.visit);\n  return askForNext(deps, ended.visit);",
    "more runs at once than may be",
  ],
]);

/**
 * Not planted, because it changes nothing: the message's input left out of a run's input. The start has stored it in the
 * record, or beside it, from where it is read as well.
 */
const visitFaults = faultsIn("lib/app/path/visit.ts", [
  [
    "whoever leaves keeps the lock",
    "  if (isLocked(job)) await release(deps, { job, occurrence, epoch: message.epoch });\n",
    "",
    "the lock lists what is over",
  ],
  [
    "whoever leaves releases the first attempt set",
    "release(deps, { job, occurrence, epoch: message.epoch })",
    "release(deps, { job, occurrence, epoch: 1 })",
    "the lock lists what is over",
  ],
]);

const workFaults = faultsIn("lib/app/path/work.ts", [
  [
    "a message of an unknown job is deleted",
    '    return { kind: "return", afterMs: UNKNOWN_JOB_WAIT_MS };',
    '    return { kind: "delete" };',
    LOST,
  ],
  [
    "a start deadline that is never over",
    "  if (nowMs <= dueMsOf(message) + job.startDeadlineMs) return false;",
    "  if (nowMs > 0) return false;",
    "nothing starts after its start deadline",
  ],
  [
    "an expired run keeps its lock",
    "  if (await expired(deps, visit)) return leave(deps, visit);",
    '  if (await expired(deps, visit)) return { kind: "delete" };',
    "the lock lists what is over",
  ],
  [
    "a started run is expired between its attempts",
    "  return answer.written;\n};",
    "  return true;\n};",
    LOST,
  ],
]);

export const recordingFaults = [...recordFaults, ...visitFaults, ...workFaults];
