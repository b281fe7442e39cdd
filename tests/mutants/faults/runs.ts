import { faultsIn } from "../planted.ts";

const ONE_ATTEMPT = "two attempts with a valid lease at once";
const TWICE = "a run that is over runs again";
const LOST = "an occurrence without an end";
const STALE = "the result of an attempt that lost its lease is taken";

/**
 * The conditions on a run's record, clause by clause, and the changes that other conditions stand on.
 *
 * Not planted, because it changes nothing that anyone can see: `remove("nextAttemptAtMs")` left out of the start. A
 * running run's instant is read by nobody, and the next wait overwrites it.
 */
export const runFaults = faultsIn("lib/core/runs/transitions.ts", [
  [
    "one duplicate too many is kept",
    "duplicates.size < MAX_DUPLICATES",
    "duplicates.size <= MAX_DUPLICATES",
    "a record stays under one write unit",
  ],
  [
    "a claim goes over a record",
    '  condition: absent("st"),\n  changes: [\n    set("st", "queued"),',
    '  changes: [\n    set("st", "queued"),',
    TWICE,
  ],
  [
    "a claim keeps no owner",
    '    set("own", token),\n    ...born(nowMs, trigger),\n    ...optional("input", wanted.input),',
    '    ...born(nowMs, trigger),\n    ...optional("input", wanted.input),',
    LOST,
  ],
  [
    "a start without a condition",
    '    condition: locked && epoch === 1 ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    '    changes: [\n      set("st", "running")',
    TWICE,
  ],
  [
    "a start without the epoch",
    '    equals("ep", epoch),\n    any(equals("st", "queued"), all(',
    '    any(equals("st", "queued"), all(',
    "a message of an earlier attempt set starts a later one",
  ],
  [
    "a start of what is queued is refused",
    'any(equals("st", "queued"), all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs)))',
    'all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs))',
    LOST,
  ],
  [
    "a start of what waits is refused",
    'any(equals("st", "queued"), all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs)))',
    'equals("st", "queued")',
    LOST,
  ],
  [
    "a start before a waiting run is due",
    'all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs))',
    'equals("st", "waiting")',
    "no wait between attempts",
  ],
  [
    "a start only after the instant that a waiting run is due",
    'atMost("nextAttemptAtMs", nowMs)',
    'lessThan("nextAttemptAtMs", nowMs)',
    "the wait is what was recorded",
  ],
  [
    "a start at the due instant of whatever state",
    'all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs))',
    'atMost("nextAttemptAtMs", nowMs)',
    TWICE,
  ],
  [
    "a start from parked",
    'any(equals("st", "queued"), all(equals("st", "waiting")',
    'any(equals("st", "queued"), equals("st", "parked"), all(equals("st", "waiting")',
    "a parked run waits for a person",
  ],
  [
    "a start of a running run",
    'any(equals("st", "queued"), all(equals("st", "waiting")',
    'any(equals("st", "queued"), equals("st", "running"), all(equals("st", "waiting")',
    ONE_ATTEMPT,
  ],
  [
    "a start without a record where the claim makes one",
    'locked && epoch === 1 ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    'epoch === 1 ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    "a run that nobody claimed",
  ],
  [
    "a start of a later attempt set makes a record",
    'locked && epoch === 1 ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    'locked ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    "a record appears that nobody reopened",
  ],
  [
    "a start of a locked job needs a record",
    'locked && epoch === 1 ? any(due, absent("st")) : due,\n    changes: [\n      set("st", "running")',
    'due,\n    changes: [\n      set("st", "running")',
    LOST,
  ],
  [
    "a start keeps the fence",
    '      increment("fence", 1),\n      set("own", token),\n      set("leaseUntilMs", leaseUntilMs),\n      setOnce("startedAtMs", nowMs),',
    '      setOnce("fence", 1),\n      set("own", token),\n      set("leaseUntilMs", leaseUntilMs),\n      setOnce("startedAtMs", nowMs),',
    STALE,
  ],
  [
    "a start without an owner token",
    '      set("own", token),\n      set("leaseUntilMs", leaseUntilMs),\n      setOnce("startedAtMs", nowMs),',
    '      set("leaseUntilMs", leaseUntilMs),\n      setOnce("startedAtMs", nowMs),',
    "a start whose answer was lost is never carried out",
  ],
  [
    "a take-over of what is not running",
    'all(equals("st", "running"), equals("fence", seenFence), lessThan("leaseUntilMs", nowMs - clockBoundMs))',
    'all(equals("fence", seenFence), lessThan("leaseUntilMs", nowMs - clockBoundMs))',
    TWICE,
  ],
  [
    "a take-over of an attempt that was not seen",
    'all(equals("st", "running"), equals("fence", seenFence), lessThan(',
    'all(equals("st", "running"), lessThan(',
    "two that take over count one crash",
  ],
  [
    "a take-over of a live lease",
    ', lessThan("leaseUntilMs", nowMs - clockBoundMs));\n\n/** T3, going',
    ");\n\n/** T3, going",
    ONE_ATTEMPT,
  ],
  [
    "a take-over of a lease that has not ended (> for <)",
    'lessThan("leaseUntilMs", nowMs - clockBoundMs));\n\n/** T3, going',
    '{ kind: "compare", path: "leaseUntilMs", operator: ">", value: nowMs - clockBoundMs });\n\n/** T3, going',
    ONE_ATTEMPT,
  ],
  [
    "a take-over in the last millisecond of the bound (<= for <)",
    'lessThan("leaseUntilMs", nowMs - clockBoundMs));\n\n/** T3, going',
    'atMost("leaseUntilMs", nowMs - clockBoundMs));\n\n/** T3, going',
    ONE_ATTEMPT,
  ],
  [
    "a take-over without a margin for clocks",
    'lessThan("leaseUntilMs", nowMs - clockBoundMs));\n\n/** T3, going',
    'lessThan("leaseUntilMs", nowMs));\n\n/** T3, going',
    ONE_ATTEMPT,
  ],
  [
    "a take-over keeps the fence",
    '    increment("fence", 1),\n    increment("crashes", 1),\n    set("own", wanted.token),\n    set("leaseUntilMs", leaseUntilMs),',
    '    increment("crashes", 1),\n    set("own", wanted.token),\n    set("leaseUntilMs", leaseUntilMs),',
    STALE,
  ],
  [
    "a crash is not counted",
    '    increment("fence", 1),\n    increment("crashes", 1),\n    set("own", wanted.token),\n    set("leaseUntilMs", leaseUntilMs),',
    '    increment("fence", 1),\n    set("own", wanted.token),\n    set("leaseUntilMs", leaseUntilMs),',
    "a run that kills its worker goes on for ever",
  ],
  [
    "a take-over without an owner token",
    '    set("own", wanted.token),\n    set("leaseUntilMs", leaseUntilMs),\n    set("attemptAtMs", wanted.nowMs),',
    '    set("leaseUntilMs", leaseUntilMs),\n    set("attemptAtMs", wanted.nowMs),',
    "a take-over whose answer was lost counts twice",
  ],
  [
    "an end by take-over keeps the fence",
    '    set("st", end.state),\n    increment("fence", 1),\n    increment("crashes", 1),',
    '    set("st", end.state),\n    increment("crashes", 1),',
    STALE,
  ],
  [
    "a lease is renewed, and a result written, whatever the state",
    'const held = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));',
    'const held = (fence: number): Condition => equals("fence", fence);',
    TWICE,
  ],
  [
    "a lease is renewed, and a result written, without the fence",
    'const held = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));',
    'const held = (_fence: number): Condition => equals("st", "running");',
    STALE,
  ],
  [
    "a result is written with the fence or a later one (>= for =)",
    'const held = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));',
    'const held = (fence: number): Condition => all(equals("st", "running"), any(equals("fence", fence), { kind: "compare", path: "fence", operator: ">", value: fence }));',
    STALE,
  ],
  [
    "a renewal without a condition",
    '  condition: held(fence),\n  changes: [set("leaseUntilMs", leaseUntilMs)',
    '  changes: [set("leaseUntilMs", leaseUntilMs)',
    ONE_ATTEMPT,
  ],
  [
    "a result without a condition",
    '  condition: held(fence),\n  changes: [\n    set("st", end.state),',
    '  changes: [\n    set("st", end.state),',
    STALE,
  ],
  [
    "a finished run keeps its lease",
    '    set("tries", end.tries),\n    remove("leaseUntilMs"),',
    '    set("tries", end.tries),',
    "what is over looks as if somebody ran it",
  ],
  [
    "a failed attempt without the fence",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "waiting"),\n    set("nextAttemptAtMs"',
    'condition: absent("cancelAtMs"),\n  changes: [\n    set("st", "waiting"),\n    set("nextAttemptAtMs"',
    STALE,
  ],
  [
    "a failed attempt forgets that it was asked to stop",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "waiting"),\n    set("nextAttemptAtMs"',
    'condition: held(fence),\n  changes: [\n    set("st", "waiting"),\n    set("nextAttemptAtMs"',
    "a cancelled run goes on",
  ],
  [
    "a failed attempt is not counted",
    '  increment("attempts", 1),\n  set("tries", tries),',
    '  set("tries", tries),',
    "a run that fails goes on for ever",
  ],
  [
    "a parking without the fence",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "parked"),',
    'condition: absent("cancelAtMs"),\n  changes: [\n    set("st", "parked"),',
    STALE,
  ],
  [
    "a parking forgets that it was asked to stop",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "parked"),',
    'condition: held(fence),\n  changes: [\n    set("st", "parked"),',
    "a cancelled run ends",
  ],
  [
    "a snooze without the fence",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "waiting"),\n    increment("snoozes", 1)',
    'condition: absent("cancelAtMs"),\n  changes: [\n    set("st", "waiting"),\n    increment("snoozes", 1)',
    STALE,
  ],
  [
    "a snooze forgets that it was asked to stop",
    'condition: heldAndWanted(fence),\n  changes: [\n    set("st", "waiting"),\n    increment("snoozes", 1)',
    'condition: held(fence),\n  changes: [\n    set("st", "waiting"),\n    increment("snoozes", 1)',
    "a cancelled run goes on",
  ],
]);
