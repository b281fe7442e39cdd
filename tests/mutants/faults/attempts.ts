import { faultsIn } from "../planted.ts";

const ONE_ATTEMPT = "two attempts with a valid lease at once";
const LOST = "an occurrence without an end";
const PARKED = "a parked run waits for a person, and keeps its lock";

/**
 * Not planted, because it changes nothing but the number of writes: a take-over that does not know its own success looks
 * again, and there finds its own start, or its own end of the run.
 */
const beginFaults = faultsIn("lib/app/path/begin.ts", [
  [
    "the end of a lease is computed after the answer",
    "  if (answer.written) return entered(deps, { item: answer.item, startedAtMs: nowMs, untilMs: leaseUntilMs });",
    "  if (answer.written) return entered(deps, { item: answer.item, startedAtMs: nowMs, untilMs: clock.nowMs() + timings.leaseMs });",
    ONE_ATTEMPT,
  ],
  [
    "a start whose answer was lost is somebody else's",
    '  if (item?.["st"] === "running" && item["own"] === token) {',
    '  if (item?.["st"] === "running" && item["own"] === "") {',
    LOST,
  ],
  [
    "whoever started it, a running run is mine",
    '  if (item?.["st"] === "running" && item["own"] === token) {',
    '  if (item?.["st"] === "running" && item["own"] !== "") {',
    ONE_ATTEMPT,
  ],
  [
    "a handler is entered under a lease that is over",
    "  deps.clock.nowMs() >= lease.untilMs\n",
    "  deps.clock.nowMs() < 0\n",
    ONE_ATTEMPT,
  ],
  [
    "a handler is entered at the end of its lease (> for >=)",
    "  deps.clock.nowMs() >= lease.untilMs\n",
    "  deps.clock.nowMs() > lease.untilMs\n",
    ONE_ATTEMPT,
  ],
  [
    "a message of an earlier attempt set is tried again and again",
    '  if (Number(item?.["ep"] ?? 0) > message.epoch || isTerminal(String(state))) {',
    '  if (Number(item?.["ep"] ?? 0) === message.epoch && isTerminal(String(state))) {',
    "a message comes to its end",
  ],
  [
    "a message of an earlier attempt set is deleted without a release",
    '  if (Number(item?.["ep"] ?? 0) > message.epoch || isTerminal(String(state))) {\n',
    '  if (Number(item?.["ep"] ?? 0) > message.epoch) return settled(DELETE);\n  if (isTerminal(String(state))) {\n',
    LOST,
  ],
  [
    "a message of a run that is over is tried again and again",
    '  if (Number(item?.["ep"] ?? 0) > message.epoch || isTerminal(String(state))) {',
    '  if (Number(item?.["ep"] ?? 0) > message.epoch) {',
    "a message comes to its end",
  ],
  [
    "a message of a run that is over is deleted without a release",
    '    return settled(await leave(deps, visit));\n  }\n  if (state === "parked")',
    '    return settled(DELETE);\n  }\n  if (state === "parked")',
    "the lock lists what is over",
  ],
  [
    "a message releases the lock of a parked run",
    '  if (state === "parked") return settled(DELETE);',
    '  if (state === "parked") return settled(await leave(deps, visit));',
    PARKED,
  ],
  [
    "a message of a parked run comes back for ever",
    '  if (state === "parked") return settled(DELETE);',
    '  if (state === "parked") return settled({ kind: "return", afterMs: MINUTE_MS });',
    "a message comes to its end",
  ],
  [
    "a message of a run that waits is deleted",
    '    return settled({ kind: "return", afterMs: Number(item?.["nextAttemptAtMs"]) - nowMs });',
    "    return settled(DELETE);",
    LOST,
  ],
  [
    "a message of a run under a live lease is deleted",
    '  return settled({ kind: "return", afterMs: visit.job.timeoutMs + leaseMs + clockBoundMs });',
    "  return settled(DELETE);",
    LOST,
  ],
  [
    "a live lease is taken for ended",
    '  if (Number(item["leaseUntilMs"]) < deps.clock.nowMs() - clockBoundMs) return takeOver',
    '  if (Number(item["leaseUntilMs"]) < deps.clock.nowMs() + 86_400_000) return takeOver',
    "a message under a live lease comes back once per attempt",
  ],
  [
    "a lease that ended is never taken over",
    '  if (Number(item["leaseUntilMs"]) < deps.clock.nowMs() - clockBoundMs) return takeOver(deps, visit, item);\n',
    "",
    LOST,
  ],
  [
    "a message without a record is tried again and again",
    "  if (state === undefined && (!isLocked(job) || message.epoch > 1)) {",
    "  if (state === undefined && message.epoch < 0) {",
    "a message comes to its end",
  ],
  [
    "a crash too many is allowed",
    "  if (crashes > job.retry.crashes) {",
    "  if (crashes > job.retry.crashes + 1) {",
    "a run that kills its worker ends",
  ],
  [
    "a crash too few is allowed",
    "  if (crashes > job.retry.crashes) {",
    "  if (crashes >= job.retry.crashes) {",
    "a run has the crashes that its job allows",
  ],
  [
    "what must not repeat is repeated",
    '  if (job.onUnknown === "park") {',
    '  if (job.onUnknown === "park" && crashes < 0) {',
    PARKED,
  ],
  [
    "a lost run that was asked to stop goes on",
    '  if (wish !== undefined) return { state: "cancelled", reason: wish } as const;\n',
    "",
    "a cancelled run ends",
  ],
  [
    "a parker releases the lock",
    '    return settled(end.state === "parked" ? DELETE : await leave(deps, visit));',
    "    return settled(await leave(deps, visit));",
    PARKED,
  ],
  [
    "an end by take-over releases nothing",
    '    return settled(end.state === "parked" ? DELETE : await leave(deps, visit));',
    "    return settled(DELETE);",
    "the lock lists what is over",
  ],
  [
    "a refused end by take-over counts as an end",
    '    if (!answer.written && answer.item?.["own"] !== token) return "again";\n    tellEnd',
    "    tellEnd",
    LOST,
  ],
  [
    "a refused take-over enters the handler",
    '  if (!answer.written && answer.item?.["own"] !== token) return "again";\n  const lease',
    "  const lease",
    ONE_ATTEMPT,
  ],
]);

const attemptFaults = faultsIn("lib/app/path/attempt.ts", [
  [
    "a lost lease is recorded all the same",
    "  if (keeper.lost()) return afterLostLease(deps, visit, keeper.why());\n",
    "",
    "who lost the lease writes nothing more",
  ],
  [
    "the lease is not kept after the handler began",
    "  keeper.stop();\n",
    "",
    "an attempt that is over renews nothing",
  ],
  [
    "the message of a lost lease is deleted",
    '  return { kind: "return", afterMs: deps.timings.leaseMs + deps.timings.clockBoundMs };',
    '  return { kind: "delete" };',
    LOST,
  ],
  [
    "the fence is not that of the start",
    '  const holding = { occurrence, fence: Number(lease.item["fence"]) };',
    '  const holding = { occurrence, fence: Number(lease.item["fence"]) - 1 };',
    LOST,
  ],
]);

const leaseFaults = faultsIn("lib/app/path/lease.ts", [
  [
    "a lease is never renewed",
    "  let renewal = timers.after(timings.leaseMs / 2, tick);",
    "  let renewal = timers.after(timings.leaseMs * 1_000, tick);",
    "a long run keeps its lease",
  ],
  [
    "a lease is renewed once",
    "    renewal = timers.after(answer === undefined ? timings.leaseMs / 10 : timings.leaseMs / 2, tick);\n",
    "",
    "a long run keeps its lease",
  ],
  [
    "a handler is not stopped before its lease ends",
    "  let guard = armGuard();",
    '  let guard = timers.after(timings.leaseMs * 1_000_000, () => lose("never"));',
    ONE_ATTEMPT,
  ],
  [
    "a renewal without an answer is believed",
    "    if (answer !== undefined) {\n      untilMs = wantedMs;",
    "    untilMs = wantedMs;\n    guard.cancel();\n    guard = armGuard();\n    if (answer !== undefined) {\n      untilMs = wantedMs;",
    ONE_ATTEMPT,
  ],
  [
    "a renewal is believed before its answer",
    "    const answer = await table.write(held.renew(wantedMs, held.progress()))",
    "    untilMs = wantedMs;\n    guard.cancel();\n    guard = armGuard();\n    const answer = await table.write(held.renew(wantedMs, held.progress()))",
    ONE_ATTEMPT,
  ],
  [
    "the end of a renewed lease is computed after the answer",
    "      untilMs = wantedMs;\n",
    "      untilMs = clock.nowMs() + timings.leaseMs;\n",
    ONE_ATTEMPT,
  ],
  [
    "a refused renewal is overlooked",
    "    if (answer?.written === false) return refused(answer.item);\n",
    "    if (answer?.written === false) return;\n",
    ONE_ATTEMPT,
  ],
  [
    "a lost lease leaves its handler running",
    "    held.running.stop(reason);\n",
    "    void reason;\n",
    ONE_ATTEMPT,
  ],
  [
    "the wish to stop is not seen",
    "      if (wish !== undefined) cancel(wish);\n",
    "",
    "a cancelled run ends",
  ],
  [
    "no margin between the stop and the end of the lease",
    "timers.after(Math.max(0, untilMs - stopMarginMs(timings) - clock.nowMs()), () =>",
    "timers.after(Math.max(0, untilMs + stopMarginMs(timings) * 4 - clock.nowMs()), () =>",
    ONE_ATTEMPT,
  ],
]);

export const attemptingFaults = [...beginFaults, ...attemptFaults, ...leaseFaults];
