import { faultsIn } from "../planted.ts";

const ONE_ATTEMPT = "two attempts with a valid lease at once";
const TWICE = "a run that is over runs again";
const LOST = "an occurrence without an end";
const STALE = "the result of an attempt that lost its lease is taken";
const OVER_RUNNING = "a run is ended under its holder's hands";

/** The conditions under which somebody who does not hold a run changes it, clause by clause. */
export const outsideFaults = faultsIn("lib/core/runs/marks.ts", [
  [
    "a mark by overlap goes over a record",
    '  condition: absent("st"),\n  changes: marked(mark),',
    "  changes: marked(mark),",
    TWICE,
  ],
  [
    "a mark by overlap goes over a queued run",
    '  condition: absent("st"),\n  changes: marked(mark),',
    '  condition: any(absent("st"), equals("st", "queued")),\n  changes: marked(mark),',
    "a run by hand is skipped",
  ],
  [
    "a mark on what was never started needs a record",
    'any(absent("st"), all(equals("st", "queued"), equals("ep", epoch), absent("fence")))',
    'all(equals("st", "queued"), equals("ep", epoch), absent("fence"))',
    LOST,
  ],
  [
    "a mark on what was never started, in whatever state",
    'all(equals("st", "queued"), equals("ep", epoch), absent("fence"))',
    'all(equals("ep", epoch), absent("fence"))',
    "a record of a skip is written over",
  ],
  [
    "a mark on what was never started, in whatever attempt set",
    'all(equals("st", "queued"), equals("ep", epoch), absent("fence"))',
    'all(equals("st", "queued"), absent("fence"))',
    "a message of an earlier attempt set ends a later one",
  ],
  [
    "a mark as never started on what was started",
    'all(equals("st", "queued"), equals("ep", epoch), absent("fence"))',
    'all(equals("st", "queued"), equals("ep", epoch))',
    "a started run counts as not run",
  ],
  [
    "dead letters end another attempt set",
    '  const open = all(equals("ep", mark.epoch), any(equals("st", "queued"), equals("st", "waiting")));',
    '  const open = any(equals("st", "queued"), equals("st", "waiting"));',
    "a letter of an earlier attempt set ends a later one",
  ],
  [
    "dead letters cannot end what is queued",
    '  const open = all(equals("ep", mark.epoch), any(equals("st", "queued"), equals("st", "waiting")));',
    '  const open = all(equals("ep", mark.epoch), equals("st", "waiting"));',
    LOST,
  ],
  [
    "dead letters cannot end what waits",
    '  const open = all(equals("ep", mark.epoch), any(equals("st", "queued"), equals("st", "waiting")));',
    '  const open = all(equals("ep", mark.epoch), equals("st", "queued"));',
    LOST,
  ],
  [
    "dead letters end what is over",
    '  const open = all(equals("ep", mark.epoch), any(equals("st", "queued"), equals("st", "waiting")));',
    '  const open = equals("ep", mark.epoch);',
    "a success becomes dead",
  ],
  [
    "dead letters end a lost attempt of another set",
    '    equals("ep", mark.epoch),\n    equals("st", "running"),\n    lessThan(',
    '    equals("st", "running"),\n    lessThan(',
    "a letter of an earlier attempt set ends a later one",
  ],
  [
    "dead letters end a lease of whatever state",
    '    equals("st", "running"),\n    lessThan("leaseUntilMs", mark',
    '    lessThan("leaseUntilMs", mark',
    "a success becomes dead",
  ],
  [
    "dead letters ignore a live lease",
    '    equals("st", "running"),\n    lessThan("leaseUntilMs", mark.nowMs - mark.clockBoundMs),',
    '    equals("st", "running"),',
    OVER_RUNNING,
  ],
  [
    "dead letters leave no margin for clocks",
    'lessThan("leaseUntilMs", mark.nowMs - mark.clockBoundMs)',
    'lessThan("leaseUntilMs", mark.nowMs)',
    OVER_RUNNING,
  ],
  [
    "dead letters end a lease in its last millisecond",
    'lessThan("leaseUntilMs", mark.nowMs - mark.clockBoundMs)',
    'lessThan("leaseUntilMs", mark.nowMs - mark.clockBoundMs + 1)',
    OVER_RUNNING,
  ],
  [
    "dead letters keep the fence",
    '      set("own", mark.token),\n      increment("fence", 1),',
    '      set("own", mark.token),',
    STALE,
  ],
  [
    "dead letters keep no owner",
    '      set("own", mark.token),\n      increment("fence", 1),',
    '      increment("fence", 1),',
    "a mark whose answer was lost frees no lock",
  ],
  [
    "a cancel of another attempt set",
    '  const open = all(equals("ep", epoch), asSeen, any(',
    "  const open = all(asSeen, any(",
    "a cancel meant for one attempt set ends the next",
  ],
  [
    "a cancel whatever the state",
    '  const open = all(equals("ep", epoch), asSeen, any(...states.map((state) => equals("st", state))));',
    '  const open = all(equals("ep", epoch), asSeen);',
    TWICE,
  ],
  [
    "a cancel goes over an attempt that it has not seen",
    '  const open = all(equals("ep", epoch), asSeen, any(',
    '  const open = all(equals("ep", epoch), any(',
    "nothing of a run is at work after its end",
  ],
  [
    "a cancel takes a running run from its holder",
    'const states = ["queued", "waiting", ...',
    'const states = ["queued", "waiting", "running", ...',
    OVER_RUNNING,
  ],
  [
    "a cancel cannot end what is queued",
    'const states = ["queued", "waiting", ...',
    'const states = ["waiting", ...',
    LOST,
  ],
  [
    "a cancel cannot end what waits",
    'const states = ["queued", "waiting", ...',
    'const states = ["queued", ...',
    "a run that waits cannot be cancelled",
  ],
  [
    "a person cannot cancel a parked run",
    '...(parkedToo ? ["parked"] : [])',
    "",
    "a parked run waits for a person",
  ],
  [
    "replace cancels a parked run",
    '...(parkedToo ? ["parked"] : [])',
    '"parked"',
    "a parked run waits for a person",
  ],
  [
    "a cancel makes a record where the claim makes one",
    'condition: locked && epoch === 1 ? any(open, absent("st")) : open,\n    changes: [\n      set("st", "cancelled"),',
    'condition: epoch === 1 ? any(open, absent("st")) : open,\n    changes: [\n      set("st", "cancelled"),',
    "a record of a run that nobody asked for",
  ],
  [
    "a cancel of a later attempt set makes a record",
    'condition: locked && epoch === 1 ? any(open, absent("st")) : open,\n    changes: [\n      set("st", "cancelled"),',
    'condition: locked ? any(open, absent("st")) : open,\n    changes: [\n      set("st", "cancelled"),',
    "a record appears that nobody reopened",
  ],
  [
    "a cancel of a locked job needs a record",
    'condition: locked && epoch === 1 ? any(open, absent("st")) : open,\n    changes: [\n      set("st", "cancelled"),',
    'condition: open,\n    changes: [\n      set("st", "cancelled"),',
    LOST,
  ],
  [
    "a cancel keeps the fence",
    '      set("own", token),\n      increment("fence", 1),\n      set("endedAtMs", nowMs),',
    '      set("own", token),\n      set("endedAtMs", nowMs),',
    STALE,
  ],
  [
    "a retry from succeeded",
    'const RETRIABLE_STATES = ["dead",',
    'const RETRIABLE_STATES = ["succeeded", "dead",',
    TWICE,
  ],
  [
    "a retry from running",
    'const RETRIABLE_STATES = ["dead",',
    'const RETRIABLE_STATES = ["running", "dead",',
    ONE_ATTEMPT,
  ],
  ["a retry of a parked run is refused", '"dead", "parked", "skipped"', '"dead", "skipped"', LOST],
  [
    "a retry whatever the state",
    'condition: all(equals("ep", seenEpoch), any(...RETRIABLE_STATES.map((state) => equals("st", state)))),',
    'condition: equals("ep", seenEpoch),',
    TWICE,
  ],
  [
    "a retry of an attempt set that was not seen",
    'condition: all(equals("ep", seenEpoch), any(...RETRIABLE_STATES.map((state) => equals("st", state)))),',
    'condition: any(...RETRIABLE_STATES.map((state) => equals("st", state))),',
    "the epoch goes back",
  ],
  [
    "a retry keeps the epoch",
    'set("ep", seenEpoch + 1),',
    'set("ep", seenEpoch),',
    "a message of an earlier attempt set starts a later one",
  ],
  [
    "a retry sets the fence back",
    'set("ep", seenEpoch + 1),',
    'set("ep", seenEpoch + 1),\n    set("fence", 0),',
    STALE,
  ],
  [
    "a retry keeps the attempts that are used up",
    'set("ep", seenEpoch + 1),\n    set("attempts", 0),',
    'set("ep", seenEpoch + 1),',
    "a retried run has its attempts again",
  ],
  [
    "a retry keeps the crashes that are used up",
    'set("ep", seenEpoch + 1),\n    set("attempts", 0),\n    set("crashes", 0),',
    'set("ep", seenEpoch + 1),\n    set("attempts", 0),',
    "a retried run has its attempts again",
  ],
  [
    "a retry keeps the wish to stop",
    '      "cancelAtMs",\n      "cancelWhy",\n      "leaseUntilMs",\n      "nextAttemptAtMs",\n      "endedAtMs",',
    '      "leaseUntilMs",\n      "nextAttemptAtMs",\n      "endedAtMs",',
    LOST,
  ],
  [
    "a dismissal of what is not listed",
    'condition: all(exists("badKey"), not(equals("st", "parked"))),',
    'condition: not(equals("st", "parked")),',
    "a dismissal that does nothing is told as done",
  ],
  [
    "a dismissal of a parked run",
    'condition: all(exists("badKey"), not(equals("st", "parked"))),',
    'condition: exists("badKey"),',
    "a parked run is forgotten",
  ],
  [
    "a stop of what does not run",
    'condition: all(equals("st", "running"), equals("ep", epoch), absent("cancelAtMs")),',
    'condition: all(equals("ep", epoch), absent("cancelAtMs")),',
    "a run that is over is asked to stop",
  ],
  [
    "a stop of another attempt set",
    'condition: all(equals("st", "running"), equals("ep", epoch), absent("cancelAtMs")),',
    'condition: all(equals("st", "running"), absent("cancelAtMs")),',
    "a retried run is stopped by a wish of before",
  ],
  [
    "a stop moves an earlier stop",
    'condition: all(equals("st", "running"), equals("ep", epoch), absent("cancelAtMs")),',
    'condition: all(equals("st", "running"), equals("ep", epoch)),',
    "when a stop was asked for is not what is told",
  ],
  [
    "a first nudge though somebody nudged",
    'seenAtMs === undefined ? absent("nudgedAtMs") : equals("nudgedAtMs", seenAtMs)',
    'seenAtMs === undefined ? not(equals("st", "none")) : equals("nudgedAtMs", seenAtMs)',
    "two passes send the same run",
  ],
  [
    "a further nudge though somebody nudged since",
    'seenAtMs === undefined ? absent("nudgedAtMs") : equals("nudgedAtMs", seenAtMs)',
    'seenAtMs === undefined ? absent("nudgedAtMs") : exists("nudgedAtMs")',
    "two passes send the same run",
  ],
]);
