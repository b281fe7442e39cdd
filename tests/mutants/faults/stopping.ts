import { faultsIn } from "../planted.ts";

const STOPPED = "of a run that was stopped no shard starts, and none is at work after its end";

export const stoppingFaults = [
  ...faultsIn("lib/core/shards/stop.ts", [
    [
      "a late copy of an end that is put off is written again",
      '[end.condition]), not(equals("ph", "stop"))),',
      "[end.condition])),",
      "a failed attempt is counted once",
    ],
    [
      "a run in its shards is cancelled in whatever phase",
      '    condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),',
      '    condition: all(equals("ep", epoch), equals("st", "running")),',
      "a run is ended under its holder's hands",
    ],
    [
      "a stopped run ends although it was retried meanwhile",
      'all(equals("ep", epoch), equals("st", "running"), equals("ph", "stop"),',
      'all(equals("st", "running"), equals("ph", "stop"),',
      "an end is that of its attempt set",
    ],
    [
      "a stopped run ends in whatever phase",
      'equals("st", "running"), equals("ph", "stop"), equals("endsAs", state)',
      'equals("st", "running")',
      "a run is ended under its holder's hands",
    ],
    [
      "a stopped run ends twice",
      'equals("st", "running"), equals("ph", "stop"),',
      'equals("ph", "stop"),',
      "what is over stays as it is",
    ],
    [
      "a stopped run ends otherwise than it was to",
      ', equals("endsAs", state)',
      "",
      "a run ends as it was to",
    ],
    ["an end is not put off", 'change.path === "st" ?', 'change.path === "never" ?', STOPPED],
  ]),
  ...faultsIn("lib/app/shards/stop-shards.ts", [
    [
      "shards of a stopped run go on starting",
      "      : (await deps.table.write(stopBucket(at, epoch, deps.clock.nowMs()))).item;",
      "      : item;",
      STOPPED,
    ],
    [
      "a stopped run ends while its shards are at work",
      "  if (lastMs !== undefined && quietAtMs >= nowMs) return",
      "  if (lastMs !== undefined && quietAtMs < 0) return",
      STOPPED,
    ],
    [
      "a stopped run ends without a margin for clocks",
      "(lastMs ?? 0) + deps.timings.clockBoundMs",
      "(lastMs ?? 0)",
      STOPPED,
    ],
  ]),
  ...faultsIn("lib/core/shards/fan-out.ts", [
    [
      "a run that ends while it sends leaves its shards at work",
      '  (shards !== undefined || run["plan"] !== undefined) &&\n',
      '  (shards !== undefined && run["plan"] === undefined) &&\n',
      STOPPED,
    ],
  ]),
  ...faultsIn("lib/app/shards/fan-out.ts", [
    [
      "a run that dies while it sends leaves its shards at work",
      "inShards: await isListed(deps, visit)",
      "inShards: false && (await isListed(deps, visit))",
      STOPPED,
    ],
  ]),
  ...faultsIn("lib/app/shards/shard-attempt.ts", [
    [
      "a shard that is stopped with its run is lost",
      "return isToLeave ? leaveSeat(deps, done) : record(deps, done);",
      "return record(deps, done);",
      "to be stopped is no failure of a shard",
    ],
    [
      "the last shard that leaves a stopped run does not end it",
      'if (phaseOf(run) === "stop") await',
      'if (phaseOf(run) === "never") await',
      "a stopped run ends as soon as nothing of it is at work",
    ],
  ]),
  ...faultsIn("lib/app/operate/operator.ts", [
    [
      "nobody knows of a parked run between the two steps of its end",
      "  if (isPutOff) await lookAt(deps, occurrence, { atMs: nowMs });\n",
      "",
      "an occurrence without an end",
    ],
  ]),
];
