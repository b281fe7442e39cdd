import { faultsIn } from "../planted.ts";

const TWICE = "a shard that is over runs again";
const BESIDE = "two attempts of a shard at once";
const LOST = "a run whose shards are over, or lost, has no end";
const EARLY = "a run is joined after its last shard";
const JOINS = "a run is joined once";

const writeFaults = [
  ...faultsIn("lib/core/shards/fan-out.ts", [
    [
      "the list of an attempt that lost its lease counts",
      '  condition: all(heldBy(fence), absent("plan")),\n',
      "",
      "one list of a run's shards counts",
    ],
    [
      "shards are opened by whoever had the run",
      '  condition: all(heldBy(fence), any(absent("ph"), equals("ph", "send")), absent("cancelAtMs")),',
      '  condition: all(any(absent("ph"), equals("ph", "send")), absent("cancelAtMs")),',
      JOINS,
    ],
    [
      "shards are opened although somebody asked the run to stop",
      ', any(absent("ph"), equals("ph", "send")), absent("cancelAtMs")),',
      ', any(absent("ph"), equals("ph", "send"))),',
      "a cancelled run ends",
    ],
    [
      "the lease stays while the shards are on their way",
      '    ...["leaseUntilMs", "error", "sideError", "nudges", "sent"',
      '    ...["error", "sideError", "nudges", "sent"',
      "nobody holds a run in its shards",
    ],
    [
      "a stride is complete before its last bucket",
      "fullIn(item).length === bucketCount(stride, total)",
      "fullIn(item).length + 1 >= bucketCount(stride, total)",
      EARLY,
    ],
    [
      "a run is complete before its last stride",
      'fullIn(run).length === strideCount(Number(run["total"]))',
      'fullIn(run).length + 1 >= strideCount(Number(run["total"]))',
      EARLY,
    ],
    [
      "a stride of an earlier attempt set counts",
      '  condition: all(equals("ep", epoch), equals("plan", plan)),',
      '  condition: equals("plan", plan),',
      EARLY,
    ],
    [
      "a run is joined in whatever phase",
      '  condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),\n  changes: [set("ph", "join")',
      '  condition: all(equals("ep", epoch), equals("st", "running")),\n  changes: [set("ph", "join")',
      JOINS,
    ],
    [
      "a run is joined in whatever state",
      '  condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),\n  changes: [set("ph", "join")',
      '  condition: all(equals("ep", epoch), equals("ph", "shards")),\n  changes: [set("ph", "join")',
      "a run that is over is joined",
    ],
  ]),
  ...faultsIn("lib/core/shards/seats.ts", [
    [
      "a bucket is complete before its last shard",
      "full: done + failed === bucketSize(stride, number, total)",
      "full: done + failed + 1 >= bucketSize(stride, number, total)",
      EARLY,
    ],
    [
      "failed shards do not complete a bucket",
      "full: done + failed === bucketSize(stride, number, total)",
      "full: done === bucketSize(stride, number, total)",
      LOST,
    ],
  ]),
  ...faultsIn("lib/core/shards/shard-writes.ts", [
    [
      "a shard starts although it is done",
      '  not(contains("done", String(seat))),\n  not(contains("failed"',
      '  not(contains("failed"',
      TWICE,
    ],
    [
      "a shard starts although it has failed",
      '  not(contains("failed", String(seat))),\n  any(absent("least")',
      '  any(absent("least")',
      TWICE,
    ],
    [
      "a shard starts although its run was stopped",
      '  not(contains("failed", String(seat))),\n  any(absent("least"), atMost("least", epoch)),\n',
      '  not(contains("failed", String(seat))),\n',
      "of a run that was stopped no shard starts",
    ],
    ["a shard starts whoever has it", "    ? [absent(path)]\n", "    ? []\n", BESIDE],
    [
      "a shard's live lease is taken over",
      'any(absent([path, "leaseUntilMs"]), lessThan([path, "leaseUntilMs"], nowMs - clockBoundMs)),',
      'any(absent([path, "leaseUntilMs"]), lessThan([path, "leaseUntilMs"], nowMs + 86_400_000)),',
      BESIDE,
    ],
    [
      "a shard's lease ends without a margin for clocks",
      "nowMs - clockBoundMs)),\n        any(absent([path",
      "nowMs)),\n        any(absent([path",
      BESIDE,
    ],
    [
      "a shard is taken over whoever took it over before",
      '        equals([path, "starts"], seen.starts),\n',
      "",
      BESIDE,
    ],
    [
      "a shard is tried again before it is due",
      '        any(absent([path, "dueAtMs"]), atMost([path, "dueAtMs"], nowMs)),\n',
      "",
      "a shard waits between its attempts",
    ],
    [
      "a shard's lost worker is no crash",
      "const lost = seen?.leaseUntilMs === undefined ? 0 : 1;",
      "const lost = seen?.leaseUntilMs === undefined ? 0 : 0;",
      "a shard that kills its worker ends",
    ],
    [
      "a shard's fence stands still",
      "starts: (seen?.starts ?? 0) + 1",
      "starts: seen?.starts ?? 1",
      "what a shard's attempts hand on has an order",
    ],
    [
      "a shard's end is recorded whoever has it",
      '  condition: heldSeat(holding),\n  changes: [addMembers("done"',
      '  changes: [addMembers("done"',
      BESIDE,
    ],
    [
      "a shard's lease is renewed whoever has it",
      "  condition: all(heldSeat(holding), any(absent",
      "  condition: all(any(absent",
      BESIDE,
    ],
    [
      "a shard of a stopped run keeps its lease",
      '  condition: all(heldSeat(holding), any(absent("least"), atMost("least", holding.epoch))),',
      "  condition: heldSeat(holding),",
      "of a run that was stopped no shard goes on for ever",
    ],
    [
      "a shard's failure is recorded whoever has it",
      "  condition: heldSeat(holding),\n  changes: failSeat(",
      "  changes: failSeat(",
      BESIDE,
    ],
    [
      "a shard is put off whoever has it",
      "  condition: heldSeat(holding),\n  changes: [\n    set(seatAttribute(",
      "  changes: [\n    set(seatAttribute(",
      BESIDE,
    ],
    [
      "the fence of a shard that failed goes back",
      "set(seatAttribute(seat), { starts })",
      "set(seatAttribute(seat), { starts: 0 })",
      "what a shard's attempts hand on has an order",
    ],
    [
      "a lease of a shard is ended as lost while it lives",
      "    condition: all(...isOpen(wanted.at.place.seat, wanted.epoch), ...isFree(path, lost)),\n",
      "    condition: all(...isOpen(wanted.at.place.seat, wanted.epoch)),\n",
      BESIDE,
    ],
    [
      "what has failed since is forgiven",
      '  condition: any(absent("forgiven"), lessThan("forgiven", epoch)),\n',
      "",
      "an attempt that lost its lease changes nothing",
    ],
    [
      "failed shards are forgiven twice in an attempt set",
      'lessThan("forgiven", epoch)',
      'lessThan("forgiven", epoch + 1)',
      "a bucket is counted once",
    ],
  ]),
];

const placeFaults = faultsIn("lib/core/shards/shards.ts", [
  [
    "a key may be there twice",
    "    if (known !== undefined) {\n",
    "    if (known !== undefined && index < 0) {\n",
    "each shard of a list has a key of its own",
  ],
  [
    "there is no end of shards",
    "    if (index >= MAX_SHARDS) {",
    "    if (index >= MAX_SHARDS * 1_000) {",
    "at most 262,144 shards a run",
  ],
]);

const joinFaults = faultsIn("lib/app/shards/join.ts", [
  ["a run is joined, and nobody told", "  await queue.send(job.pool, {\n", "  void ({\n", LOST],
  [
    "a complete stride is not told to its run",
    "  if (answer.written) await joinIfFull({ table, queue, clock }, { job, occurrence }, answer.item);\n",
    "",
    LOST,
  ],
  [
    "a run is joined before its shards are over",
    "  if (run === undefined || !isRunFull(run)) return;\n",
    "  if (run === undefined) return;\n",
    EARLY,
  ],
  [
    "whoever finds a join asked for asks once more, in whatever state",
    '  const waits = now?.["ep"] === epoch && now["st"] === "queued" && phaseOf(now) === "join";\n',
    "  const waits = now !== undefined && answer.written;\n",
    "a join whose message was lost is asked for again",
  ],
]);

const sendFaults = faultsIn("lib/app/shards/send-shards.ts", [
  [
    "what is not confirmed counts as sent",
    '      else if (answer?.kind !== "sent") unconfirmed.push(shard);\n',
    "",
    LOST,
  ],
  [
    "what the queue refuses is forgotten",
    '      if (answer?.kind === "refused") await endUnsent(deps, sender, { shard, reason: answer.reason });\n      else if',
    '      if (answer?.kind === "refused") continue;\n      else if',
    LOST,
  ],
  [
    "a batch is sent again as a whole",
    "    left = unconfirmed;\n",
    "",
    "only what is not confirmed is sent again",
  ],
]);

const planFaults = [
  ...faultsIn("lib/app/shards/fan-out.ts", [
    [
      "the end of the sending does not look at what is over",
      "  await joinIfFull(deps, visit, answer.item);\n  return DELETE;",
      "  return DELETE;",
      LOST,
    ],
    [
      "more failures than tolerated are a success",
      '  return close(deps, ended, { state: "dead", failed: true, ...tooManyFailed(shards) });',
      '  return close(deps, ended, { state: "succeeded", failed: false });',
      "a run with more failed shards than it may have is dead",
    ],
  ]),
  ...faultsIn("lib/app/shards/list-shards.ts", [
    [
      "the list counts before it is complete",
      "    await storeStride(deps, list, { stride: stride++, shards });\n",
      "    stride += 1;\n    void storeStride(deps, list, { stride: stride - 1, shards: [] });\n    void shards;\n",
      LOST,
    ],
  ]),
  ...faultsIn("lib/app/shards/send-all.ts", [
    [
      "sent is noted before it is sent",
      "    const shards = remembered.get(stride) ??",
      "    await deps.table.write(sentUpTo(holding, Math.min(wanted, (stride + 1) * PER_STRIDE)));\n    const shards = remembered.get(stride) ??",
      LOST,
    ],
    [
      "a retried run forgives nothing",
      "    after[place] = { ...bucket, item };\n",
      "    after[place] = bucket;\n    void item;\n",
      "a retry carries out what failed",
    ],
    [
      "a retry marks only those buckets in which some had failed",
      "    if (full && failed === 0) return;\n",
      "    if (failed === 0) return;\n",
      "a bucket is counted once",
    ],
  ]),
];

const visitFaults = faultsIn("lib/app/shards/shard-visit.ts", [
  [
    "a redelivered shard that is over does not repeat its steps",
    "  await afterBucket(deps, counted, { ...at.place, item: bucket });\n",
    "  if (bucket === undefined) await afterBucket(deps, counted, { ...at.place, item: bucket });\n",
    LOST,
  ],
  [
    "the end of a shard sends no other",
    "  if (maxInFlight !== undefined) await sendNext(",
    "  if (maxInFlight === 0) await sendNext(",
    LOST,
  ],
  [
    "the end of a shard sends one that somebody has",
    "    if (isTaken(seatIn(bucket, place.seat))) return;\n",
    "",
    "at most as many shards as may be are in flight",
  ],
  [
    "the end of a shard sends the next one, though that is over",
    "    if (isShardOver(bucket, place.seat)) continue;\n",
    "",
    LOST,
  ],
]);

const shardFaults = faultsIn("lib/app/shards/shard.ts", [
  [
    "the message of a shard in live hands is deleted",
    '    return settled({ kind: "return", afterMs: job.timeoutMs + leaseMs + clockBoundMs });',
    "    return settled(DELETE);",
    LOST,
  ],
  [
    "the message of a shard that waits is deleted",
    '    return settled({ kind: "return", afterMs: seat.dueAtMs - nowMs });',
    "    return settled(DELETE);",
    LOST,
  ],
  [
    "a shard's crash too many is allowed",
    "crashes <= retry.crashes) return { again: seat };",
    "crashes <= retry.crashes + 1) return { again: seat };",
    "a shard that kills its worker ends",
  ],
  [
    "a shard that must not repeat is repeated",
    '  if (onUnknown !== "park" && crashes',
    "  if (crashes",
    "what must not repeat is not repeated",
  ],
  [
    "a shard's start whose answer was lost is somebody else's",
    "(written || seat.owner === visit.token)",
    "written",
    "a start knows its own success",
  ],
]);

const attemptFaults = faultsIn("lib/app/shards/shard-attempt.ts", [
  [
    "a shard's message is deleted before its end is stored",
    "  const answer = await repeated(() => deps.table.write(endShard(ended.holding)));\n",
    "  const answer = await deps.table.write(endShard(ended.holding)).catch(() => ({ written: true, item: {} }) as const);\n",
    LOST,
  ],
  [
    "a shard's end whose answer was lost is stale",
    "  if (!answer.written && !doneIn(answer.item).has(seatOf(ended))) return stale(deps, ended);\n",
    "  if (!answer.written) return stale(deps, ended);\n",
    "a result knows its own success",
  ],
  [
    "a shard's failed attempt too many is allowed",
    "  if (permanent || failed > retry.retries) return die(",
    "  if (permanent || failed > retry.retries + 1) return die(",
    "a shard has the attempts that its job allows",
  ],
  [
    "a shard fails without its reason",
    "  await storeFailure(deps, visit, { error, attempts: attemptOf(lease.seat) });\n",
    "",
    "a failed shard is shown with its error",
  ],
  [
    "a shard's next piece is not asked for",
    "  await deps.queue.send(visit.job.pool, { ...visit.message, queuedAtMs: deps.clock.nowMs() });\n",
    "",
    LOST,
  ],
  [
    "a lost lease of a shard is recorded all the same",
    "  if (keeper.lost()) return afterLostLease(deps, visit, keeper.why());\n",
    "",
    "who lost the lease writes nothing more",
  ],
]);

const mendFaults = faultsIn("lib/app/shards/mend-shards.ts", [
  [
    "the watchdog does not look into the buckets",
    "  if (wanted.length === 0) return;\n",
    "  if (wanted.length >= 0) return;\n",
    LOST,
  ],
  [
    "the watchdog repeats no step",
    '  await repeatSteps(deps, { job, occurrence, fan, epoch: Number(run["ep"]) }, seen);\n',
    "",
    LOST,
  ],
  [
    "a backlog is sent again at each look",
    '    return state.kind === "idle" && stalled;',
    '    return state.kind === "idle";',
    "what has not started is a backlog before it is lost",
  ],
]);

export const shardingFaults = [
  ...writeFaults,
  ...placeFaults,
  ...joinFaults,
  ...sendFaults,
  ...planFaults,
  ...visitFaults,
  ...shardFaults,
  ...attemptFaults,
  ...mendFaults,
];
