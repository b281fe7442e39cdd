import { faultsIn } from "../planted.ts";

const TWICE = "each slot of a series is handed out once";
const ALL = "each slot of a series gets its end";
const ROOM = "a series is never in the way of live slots";
const STOP = "a stopped series hands out nothing";
const ENDS = "a series comes to its end, and gives its places back";
const THEIRS = "what is somebody else's is left alone";

/** Many runs that were asked for at once: each clause of their writes, and each order of steps that matters. */
const writeFaults = faultsIn("lib/core/runs/series.ts", [
  ["a series is begun over an open one", "  condition: not(isOpen),\n", "", TWICE],
  [
    "a new series begins stopped",
    '    ...["stopAtMs", "endedAtMs", "reason", "own", "expiresAtS"].map((name) => remove(name)),',
    '    ...["endedAtMs", "reason", "own", "expiresAtS"].map((name) => remove(name)),',
    ALL,
  ],
  [
    "a hand-out of a series that is over",
    '    isOpen,\n    equals("id", series.id),\n    equals("cursor", series.cursor),',
    '    equals("id", series.id),\n    equals("cursor", series.cursor),',
    STOP,
  ],
  [
    "a hand-out of an older series",
    '    isOpen,\n    equals("id", series.id),\n    equals("cursor", series.cursor),',
    '    isOpen,\n    equals("cursor", series.cursor),',
    TWICE,
  ],
  [
    "a hand-out from a place that is passed",
    '    isOpen,\n    equals("id", series.id),\n    equals("cursor", series.cursor),',
    '    isOpen,\n    equals("id", series.id),',
    TWICE,
  ],
  ["a hand-out without room", '    atMost("held", series.parallel - runs.length),\n', "", ROOM],
  [
    "a hand-out of one too many",
    'atMost("held", series.parallel - runs.length)',
    'atMost("held", series.parallel)',
    ROOM,
  ],
  ["a hand-out after a stop", '    absent("stopAtMs"),\n', "", STOP],
  [
    "runs are handed out and not listed",
    "    ...runs.map(({ slotKey, epoch }) => set(handedAttribute(slotKey), { epoch, handedAtMs: nowMs })),\n",
    "",
    ALL,
  ],
  [
    "a run is settled in any attempt set",
    '  condition: equals([handedAttribute(slotKey), "epoch"], epoch),',
    "  condition: exists(handedAttribute(slotKey)),",
    THEIRS,
  ],
  [
    "a run is settled more than once",
    '  condition: equals([handedAttribute(slotKey), "epoch"], epoch),\n',
    "",
    "the counters of a series add up",
  ],
  [
    "a stop of a series that is over",
    '  condition: all(isOpen, equals("id", id)),',
    '  condition: equals("id", id),',
    STOP,
  ],
  ["a stop of another series", '  condition: all(isOpen, equals("id", id)),', "  condition: isOpen,", STOP],
  [
    "a series ends twice",
    '    condition: all(isOpen, equals("held", 0), nothingLeft),',
    '    condition: all(equals("held", 0), nothingLeft),',
    ENDS,
  ],
  [
    "a series ends before its runs",
    '    condition: all(isOpen, equals("held", 0), nothingLeft),',
    "    condition: all(isOpen, nothingLeft),",
    ENDS,
  ],
  [
    "a series ends before its last slot",
    '    condition: all(isOpen, equals("held", 0), nothingLeft),',
    '    condition: all(isOpen, equals("held", 0)),',
    ALL,
  ],
  [
    "places are taken for a series that has some",
    "    condition: all(absent(entry), any(absent(places), atMost(places, most - wanted.places))),",
    "    condition: any(absent(places), atMost(places, most - wanted.places)),",
    ROOM,
  ],
  [
    "more places are taken than the pool can spare",
    "    condition: all(absent(entry), any(absent(places), atMost(places, most - wanted.places))),",
    "    condition: absent(entry),",
    ROOM,
  ],
  [
    "places are taken by the last that fits less one",
    "atMost(places, most - wanted.places)",
    "atMost(places, most)",
    ROOM,
  ],
  [
    "the places of another series are given back",
    '    condition: equals([entry, "id"], registered.id),\n',
    "",
    ROOM,
  ],
  [
    "places are never given back",
    "    changes: [remove(entry), increment(placesAttribute(registered.pool), -registered.places)],",
    "    changes: [remove(entry)],",
    ENDS,
  ],
]);

const driveFaults = faultsIn("lib/app/series/series.ts", [
  ["a series asks without a note", "  await noteAsk(deps, occurrence, epoch);\n", "", ALL],
  [
    "a record of somebody else counts as the series' own",
    '  if (run?.["series"] !== series.kind || run["ep"] !== epoch) return',
    '  if (run?.["ep"] !== epoch) return',
    THEIRS,
  ],
  [
    "a record of a later attempt set counts as the one asked for",
    '  if (run?.["series"] !== series.kind || run["ep"] !== epoch) return',
    '  if (run?.["series"] !== series.kind) return',
    THEIRS,
  ],
  ["a run that is on its way is sent again", '  if (run["st"] !== "queued") return series;\n', "", TWICE],
  [
    "a live slot that is near keeps nobody back",
    "|| isLiveSlotNear(deps, job)) return series;",
    ") return series;",
    ROOM,
  ],
  [
    "a lock with several places is kept free before a live slot",
    "  if (!isLocked(job) || maxHolders(job) > 1 || !jobs.firesHere(job)) return false;",
    "  if (!isLocked(job) || !jobs.firesHere(job)) return false;",
    ALL,
  ],
  [
    "a job that allows overlap is kept free before a live slot",
    "  if (!isLocked(job) || maxHolders(job) > 1 || !jobs.firesHere(job)) return false;",
    "  if (maxHolders(job) > 1 || !jobs.firesHere(job)) return false;",
    ALL,
  ],
  [
    "a job whose slots are always near is never handed anything",
    "  return followingMs === undefined || followingMs - nextMs > 2 * job.timeoutMs;",
    "  return true;",
    ALL,
  ],
  [
    "another schedule's slots are handed out",
    "room <= 0 || !hasSameSchedule(job, series) ||",
    "room <= 0 ||",
    "a deploy fires nothing by surprise",
  ],
  [
    "a deploy that changes the schedule stops nothing",
    '  if (job !== undefined) return hasSameSchedule(job, series) ? undefined : "the schedule of its job changed";',
    "  if (job !== undefined) return undefined;",
    ENDS,
  ],
  [
    "older code stops the series of a newer job",
    '  return definition?.["removedAtMs"] === undefined ? undefined : "its job was removed";',
    '  return "its job was removed";',
    ALL,
  ],
  ["whoever was slower asks all the same", "    if (seen.owner !== token) continue;\n", "", TWICE],
  [
    "a hand-out whose answer was lost is somebody else's",
    "    const { item } = await deps.table.write(handOut(series, { ...next, token, nowMs: deps.clock.nowMs() }));",
    "    const { item, written } = await deps.table.write(handOut(series, { ...next, token, nowMs: deps.clock.nowMs() }));\n    if (!written) return series;",
    ALL,
  ],
  [
    "what was handed out is not asked for",
    "    for (const run of next.runs) series = await ask(deps, job, series, run);\n",
    "",
    ALL,
  ],
  [
    "a series that is over keeps its places",
    "  if (mine !== undefined) await deps.table.write(unregisterSeries(mine));\n",
    "",
    ENDS,
  ],
  [
    "a listed run that somebody retried is waited for",
    '  if (epoch > handed.epoch) return settle(deps, series, handed, "left");\n',
    "",
    ENDS,
  ],
  [
    "a listed run that is over is waited for",
    "    return isTerminal(state) ? settle(deps, series, handed, state as SeriesEnd) : series;",
    "    return series;",
    ENDS,
  ],
  [
    "a listed run counts as over before it is",
    "    return isTerminal(state) ? settle(deps, series, handed, state as SeriesEnd) : series;",
    '    return settle(deps, series, handed, isTerminal(state) ? (state as SeriesEnd) : "left");',
    ROOM,
  ],
  [
    "a listed run that nobody asked for is never asked for",
    "    : ask(deps, job, series, handed);",
    "    : series;",
    ALL,
  ],
  [
    "a listed run is asked for again at once",
    "  if (deps.clock.nowMs() < handed.atMs + deps.timings.firstLookMs) return series;\n",
    "",
    "who is about to ask is given the time",
  ],
  [
    "a listed run that nobody asked for is run after a stop",
    "  return job === undefined || series.stopping\n",
    "  return job === undefined\n",
    STOP,
  ],
  [
    "an end that is settled already hands out nothing",
    "    if (series !== undefined) await endIfOver(",
    "    if (answer.written && series !== undefined) await endIfOver(",
    ALL,
  ],
  [
    "places that a dead process took are kept for ever",
    "    if (isOver || isAbandoned) await",
    "    if (isOver) await",
    ENDS,
  ],
  [
    "places of a series that is about to begin are given away",
    "    if (isOver || isAbandoned) await",
    "    if (isOver || !isAbandoned) await",
    ROOM,
  ],
  [
    "places of a series that ended in a crash are kept",
    "    if (isOver || isAbandoned) await",
    "    if (isAbandoned) await",
    ENDS,
  ],
  [
    "the watchdog forgets the series",
    "  return eachInTurn(registeredIn(registry), (registered) => continueOne(deps, registered));",
    "  return eachInTurn(registeredIn(undefined), (registered) => continueOne(deps, registered));",
    ALL,
  ],
]);

const sourceFaults = faultsIn("lib/app/series/series-source.ts", [
  [
    "what is done is run again",
    '  return redo.includes(state) && !isOld ? Number(run["ep"]) + 1 : undefined;',
    '  return !isOld ? Number(run["ep"]) + 1 : undefined;',
    THEIRS,
  ],
  [
    "a record too old to be retried is retried",
    '  return redo.includes(state) && !isOld ? Number(run["ep"]) + 1 : undefined;',
    '  return redo.includes(state) ? Number(run["ep"]) + 1 : undefined;',
    THEIRS,
  ],
  [
    "a slot that its schedule has claimed is handed out",
    "    const epoch = claimed.has(slotKey)\n",
    '    const epoch = slotKey === ""\n',
    THEIRS,
  ],
  [
    "the slot that found no room is passed over",
    "    else if (runs.length === most) return { runs, left, cursor: slotKey };",
    "    else if (runs.length === most) return { runs, left, cursor: slotKeyOf(slotMs + 1) };",
    ALL,
  ],
  [
    "the last slot of a page comes twice",
    "cursor: isLast ? AT_END : slotKeyOf(last + 1) };",
    "cursor: isLast ? AT_END : slotKeyOf(last) };",
    "the counters of a series add up",
  ],
  [
    "a page of slots is taken for the last",
    "  const isLast = slots.length < PAGE || last === undefined;",
    "  const isLast = slots.length <= PAGE || last === undefined;",
    ALL,
  ],
  [
    "dead runs of other jobs are retried",
    '      subjectInPartitionKey(String(item["pk"])) === job.subject\n',
    '      subjectInPartitionKey(String(item["pk"])) !== ""\n',
    THEIRS,
  ],
  [
    "the dead run that found no room is passed over",
    "    if (epoch !== undefined && runs.length === most) return { runs, left: 0, cursor };",
    "    if (epoch !== undefined && runs.length === most) return { runs, left: 0, cursor: badKey };",
    ALL,
  ],
  [
    "a page of dead runs is taken for the month's last",
    "  if (items.length === PAGE) return { runs, left: 0, cursor };\n",
    "",
    ALL,
  ],
  [
    "the months after the first are forgotten",
    "cursor: next > series.until.slice(0, 7) ? AT_END : next };",
    "cursor: AT_END };",
    ALL,
  ],
]);

const beginFaults = faultsIn("lib/app/series/begin-series.ts", [
  [
    "a series is opened before it is registered",
    "  await register(deps, job, wanted);\n  const answer = await deps.table.write(openSeries(wanted, deps.clock.nowMs()));\n",
    "  const answer = await deps.table.write(openSeries(wanted, deps.clock.nowMs()));\n  await register(deps, job, wanted);\n",
    ALL,
  ],
  [
    "a backfill takes every place of its pool",
    "jobs.concurrencyOf(job) - 1;",
    "jobs.concurrencyOf(job);",
    ROOM,
  ],
  ["a backfill takes every place of its lock", "Math.max(1, maxHolders(job) - 1)", "maxHolders(job)", ROOM],
  [
    "places that are the series' own are refused",
    "  if (answer.written || mine?.id === id) return;",
    "  if (answer.written) return;",
    ALL,
  ],
  [
    "a series that is taken up is not listed again",
    "  if (!registeredIn(registry).some(({ id }) => id === series.id)) await register(deps, job, series);\n",
    "",
    ALL,
  ],
]);

const rangeFaults = faultsIn("lib/app/series/backfill.ts", [
  [
    "slots to come are backfilled",
    "  Math.min(toMs, clock.nowMs() - timings.firstLookMs);",
    "  toMs + 0 * (clock.nowMs() - timings.firstLookMs);",
    "no slot runs before its time",
  ],
  [
    "slots that the watchdog has not looked at are backfilled",
    "  Math.min(toMs, clock.nowMs() - timings.firstLookMs);",
    "  Math.min(toMs, clock.nowMs() - 0 * timings.firstLookMs);",
    ROOM,
  ],
  [
    "another range is taken up",
    "  series.fromMs === fromMs &&\n  series.toMs === toMs &&\n",
    "  series.fromMs === fromMs &&\n  toMs > 0 &&\n",
    "the same command again begins no second backfill",
  ],
]);

export const seriesFaults = [...writeFaults, ...driveFaults, ...sourceFaults, ...beginFaults, ...rangeFaults];
