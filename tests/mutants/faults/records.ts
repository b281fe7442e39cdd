import { faultsIn } from "../planted.ts";

const LOST = "an occurrence without an end";
const STALE = "the result of an attempt that lost its lease is taken";

const recordFaults = faultsIn("lib/app/record.ts", [
  [
    "the lock is released before the result is stored",
    "  const tries = triesOf(ended, end.error?.message);\n  const answer = await repeated(() => deps.table.write(finish(",
    "  const tries = triesOf(ended, end.error?.message);\n  await leave(deps, visit);\n  const answer = await repeated(() => deps.table.write(finish(",
    "more runs at once than may be",
  ],
  [
    "the message is deleted before the result is stored",
    "  const answer = await repeated(() => deps.table.write(finish(holding, { ...end, nowMs: endedAtMs, tries })));",
    "  const answer = await deps.table.write(finish(holding, { ...end, nowMs: endedAtMs, tries })).catch(() => ({ written: true, item: {} }) as const);",
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
    "  if (!answer.written && !mine) return stale(deps, ended);\n  journalEnd(deps, ended, end);",
    "  if (!answer.written) return stale(deps, ended);\n  journalEnd(deps, ended, end);",
    "a result knows its own success",
  ],
  [
    "a stale result counts as recorded",
    "  if (!answer.written && !mine) return stale(deps, ended);\n  journalEnd(deps, ended, end);",
    "  void mine;\n  journalEnd(deps, ended, end);",
    STALE,
  ],
  [
    "a result recorded by another fence is mine",
    '    before?.["own"] === visit.token && before["fence"] === holding.fence && before["st"] === end.state;',
    '    before?.["st"] === end.state;',
    STALE,
  ],
  [
    "a finished run keeps its lock",
    "  journalEnd(deps, ended, end);\n  return leave(deps, visit);",
    '  journalEnd(deps, ended, end);\n  return { kind: "delete" };',
    "the lock lists what is over",
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
    '    answer.item?.["cancelAtMs"] !== undefined &&\n    answer.item["st"] === "running"\n',
    '    answer.item?.["cancelAtMs"] === "" &&\n    answer.item["st"] === "running"\n',
    "a cancelled run ends",
  ],
  [
    "a refused failure of whomever is mine",
    '  if (!answer.written && !(mine && answer.item?.["st"] === "waiting")) return stale(deps, ended);\n',
    "",
    STALE,
  ],
  [
    "a failure whose answer was lost is stale",
    '  if (!answer.written && !(mine && answer.item?.["st"] === "waiting")) return stale(deps, ended);\n',
    "  if (!answer.written) return stale(deps, ended);\n",
    "a result knows its own success",
  ],
  [
    "a run that was asked to stop succeeds with what it returned",
    'lease.item["cancelAtMs"] !== undefined || (end.kind === "stopped" && cancelled)',
    'end.kind === "stopped" && cancelled && ended.endedAtMs < 0',
    "a cancelled run ends",
  ],
  [
    "a result is given up at the first refusal to answer",
    "const RECORD_TRIES = 3;",
    "const RECORD_TRIES = 1;",
    "work that is done is not repeated for a lost answer",
  ],
]);

const visitFaults = faultsIn("lib/app/visit.ts", [
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
  [
    "a run's input is the job's",
    "  if (message.input !== undefined) return message.input;\n",
    "",
    "a run gets its own input",
  ],
]);

const workFaults = faultsIn("lib/app/work.ts", [
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
