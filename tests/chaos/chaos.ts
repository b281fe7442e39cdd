/**
 * `npm run chaos -- [--seed N] [--quick] [--runs N] [--seconds N] [--plant FAULT]`: the real functions in real processes over the
 * embedded services. Three dispatchers race on every slot of a job with a lock, of one without, of one with 40 pieces
 * that continues 20 times, and of one in 70 shards; a fifth job is backfilled beside them. Workers, dispatchers and the watchdog are killed at
 * random moments; proxies before DynamoDB and SQS drop calls, answers, delay and throttle.
 * Then all is left in peace, and the records are compared with what the world outside has seen. Ends with one JSON line;
 * exit 1 when a promise is broken, or when the kills hit too few running handlers to show anything. With `--plant`, a
 * fault of `npm run mutants`, by a text in its name, is planted first, and exit 1 says that neither this seed nor the next noticed anything of it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { makeClients } from "../../cli/dev/clients.ts";
import { systemClock } from "../../lib/adapters/system/system.ts";
import { startBackfill } from "../../lib/app/series/backfill.ts";
import { noteAsk } from "../../lib/app/watchdog/looks.ts";
import { composeDeps } from "../../lib/compose/deps.ts";
import { type Occurrence, slotKeyOf } from "../../lib/core/identity.ts";
import { holdersOf, waitersOf } from "../../lib/core/runs/lock.ts";
import { schedulerInput } from "../../lib/core/runs/scheduler-event.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../../lib/core/time.ts";
import { seededRandom } from "../../lib/simulation/random.ts";
import { BACKFILLED, LOCKED, LONG, occurrencesAt, SPLIT, UNLOCKED } from "./chaos-jobs.ts";
import { type ChaosStack, makeChaosStack } from "./chaos-stack.ts";
import { chaosVerdict, lockOf, openRuns, repeatedEffects, repeatedPieces } from "./chaos-verdict.ts";
import { PROXY_FAULTS } from "./fault-proxy.ts";
import { chaosWith, faultNamed } from "./planted-chaos.ts";
import type { Word } from "./role-process.ts";
import { type Member, makeTroupe, type Troupe } from "./troupe.ts";
import type { Execution } from "./witness.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    quick: { type: "boolean", default: false },
    runs: { type: "string" },
    seconds: { type: "string" },
    plant: { type: "string" },
  },
});
const SEED = Number(values.seed);
/** Of each job. */
const RUNS = Number(values.runs ?? (values.quick ? 24 : 200));
/** Of kills and faults where the machine has the time for it, twice that at most; then peace. */
const CHAOS_MS = Number(values.seconds ?? (values.quick ? 25 : 140)) * SECOND_MS;
/** At most: it ends as soon as all is over. */
const PEACE_MS = (values.quick ? 90 : 150) * SECOND_MS;
const LEAST_HITS = values.quick ? 4 : 50;
const DISPATCHERS = 3;
const WORKERS = 4;
const KILL_EVERY_MS = [350, 1_250] as const;
/** Of ten kills, how many hit somebody else than a worker. */
const OTHERS_OF_TEN = 2;
/** Of four kills of a worker, how many wait for one that carries out a handler, and for how long. */
const BUSY_OF_FOUR = 3;
const LONGEST_AIM_MS = 2_000;
/** Slots delivered at once: however slow the machine, runs wait for the lock, which shows whether it keeps them apart. */
const AT_A_TIME = 6;
/** Fewer than the queue of a locked job takes: no slot is to be skipped for a full one. */
const MOST_IN_LINE = 8;
const TRIES = 20;

const told = (text: string): void => console.error(text);

/** One delivery by Lambda: the same request id, whatever became of the last try. */
const deliver = async (member: Member, slotMs: number, requestId: string): Promise<void> => {
  const event = { ...schedulerInput([LOCKED, UNLOCKED, LONG, SPLIT]), scheduledTime: shortIsoOf(slotMs) };
  for (let tried = 0; tried < TRIES; tried++) {
    await member.ready();
    const child = member.child();
    const answered = new Promise<string | undefined>((resolve) => {
      const settle = (error: string | undefined): void => {
        child.off("message", onWord);
        child.off("exit", onExit);
        resolve(error);
      };
      const onWord = (word: Word): void => {
        if (word.kind === "dispatched" && word.requestId === requestId) settle(word.error);
      };
      const onExit = (): void => settle("the dispatcher was killed");
      child.on("message", onWord);
      child.on("exit", onExit);
    });
    if (child.connected) child.send({ event, requestId }, () => undefined);
    if ((await answered) === undefined) return;
    await pause(200);
  }
  throw new Error(`slot ${shortIsoOf(slotMs)} could not be delivered in ${TRIES} tries`);
};

/** Some slots at a time go to each dispatcher at once, as fast as the job with the lock gets on. */
const deliverAll = async (stack: ChaosStack, troupe: Troupe, slots: readonly number[]): Promise<void> => {
  const dispatchers = troupe.members.filter(({ role }) => role === "dispatcher");
  const everyMs = (CHAOS_MS * 0.7 * AT_A_TIME) / slots.length;
  const noting = { table: stack.table, clock: systemClock, timings: stack.config };
  for (let first = 0; first < slots.length; first += AT_A_TIME) {
    const some = slots.slice(first, first + AT_A_TIME);
    const nextMs = Date.now() + everyMs;
    // The slots lie in the past, where the watchdog does not look of itself: the note is its first look.
    for (const occurrence of occurrencesAt(some)) await noteAsk(noting, occurrence, 1);
    await Promise.all(
      some.flatMap((slotMs) =>
        dispatchers.map((member, n) => deliver(member, slotMs, `delivery-${n}-of-${slotMs}`)),
      ),
    );
    await pause(Math.max(0, nextMs - Date.now()));
    for (;;) {
      const lock = await lockOf(stack);
      if (holdersOf(lock).length + waitersOf(lock).length <= MOST_IN_LINE) break;
      await pause(100);
    }
  }
};

/** Process ids of those that carry out a handler now, or did when they were killed; or some part of a run in shards. */
const busyPids = (
  stack: ChaosStack,
  isAt: (execution: Execution) => boolean = () => true,
): ReadonlySet<number> =>
  new Set(
    stack.witness
      .executions()
      .filter((execution) => execution.ended === undefined && isAt(execution))
      .map(({ pid }) => pid),
  );

/** Runs in shards are few, and their lists and hooks short: a kill that waits takes one of them, if there is one. */
const isSplit = ({ job }: Execution): boolean => job === SPLIT;

/** Those of the members that carry out a handler, as soon as there is one; undefined: there was none. */
const busyOnes = async (
  stack: ChaosStack,
  members: () => readonly Member[],
): Promise<readonly Member[] | undefined> => {
  const untilMs = Date.now() + LONGEST_AIM_MS;
  while (Date.now() < untilMs) {
    const among = (pids: ReadonlySet<number>) =>
      members().filter((member) => pids.has(member.child().pid ?? 0));
    const [first, any] = [among(busyPids(stack, isSplit)), among(busyPids(stack))];
    if (any.length > 0) return first.length > 0 ? first : any;
    await pause(20);
  }
  return undefined;
};

/** Kills by seed until told to stop; answers the ids of the killed workers. */
const killAtRandom = async (
  stack: ChaosStack,
  troupe: Troupe,
  stopped: () => boolean,
): Promise<readonly number[]> => {
  const random = seededRandom(SEED + 2);
  const killed: number[] = [];
  while (!stopped()) {
    await pause(random.whole(...KILL_EVERY_MS));
    const isWorker = random.whole(1, 10) > OTHERS_OF_TEN;
    const aims = random.whole(1, 4) <= BUSY_OF_FOUR && isWorker;
    const ready = (): readonly Member[] =>
      troupe.members.filter((member) => member.isReady() && (member.role === "worker") === isWorker);
    const victims = (aims ? await busyOnes(stack, ready) : undefined) ?? ready();
    const victim = victims[random.whole(0, Math.max(0, victims.length - 1))];
    if (victim === undefined || stopped()) continue;
    const pid = await victim.kill();
    if (isWorker) killed.push(pid);
  }
  return killed;
};

/** A person at the command line, through the same failing network: who is told of a failure says it again. */
const backfill = async (stack: ChaosStack, slots: readonly number[]): Promise<void> => {
  const { dynamodb, sqs } = makeClients(stack.endpoints);
  const deps = composeDeps(stack.config, stack.manifest, { db: dynamodb, sqs });
  const job = deps.jobs.bySubject(BACKFILLED);
  const [fromMs, lastMs] = [slots[0], slots.at(-1)];
  if (job === undefined || fromMs === undefined || lastMs === undefined) throw new Error("no slots");
  for (let tried = 0; ; tried++) {
    try {
      await startBackfill(deps, { job, fromMs, toMs: lastMs + 1 });
      break;
    } catch (error) {
      if (tried === TRIES) throw error;
      await pause(500);
    }
  }
  dynamodb.destroy();
  sqs.destroy();
};

const untilOver = async (stack: ChaosStack, wanted: readonly Occurrence[]): Promise<void> => {
  const untilMs = Date.now() + PEACE_MS;
  while (Date.now() < untilMs) {
    const [open, messages] = [await openRuns(stack, wanted), await stack.messagesLeft()];
    if (open === 0 && messages === 0) return;
    await pause(500);
  }
};

const startTroupe = async (stack: ChaosStack): Promise<Troupe> => {
  const { config, manifest, endpoints, jobsFile, cacheFolder } = stack;
  const troupe = makeTroupe({ config, manifest, endpoints, jobsFile }, cacheFolder);
  await troupe.add("watchdog").ready();
  for (let n = 0; n < DISPATCHERS; n++) troupe.add("dispatcher");
  for (let n = 0; n < WORKERS; n++) troupe.add("worker");
  troupe.add("dead-letters");
  await Promise.all(troupe.members.map((member) => member.ready()));
  return troupe;
};

const chaos = async (): Promise<void> => {
  const startedAtMs = Date.now();
  const endsAtMs = Math.floor(startedAtMs / MINUTE_MS) * MINUTE_MS;
  const slots = Array.from({ length: RUNS }, (_, n) => endsAtMs - (RUNS - n) * MINUTE_MS);
  const stack = await makeChaosStack({ seed: SEED, endsAtMs });
  const troupe = await startTroupe(stack);
  told(
    `${troupe.members.length} processes are ready after ${Math.round((Date.now() - startedAtMs) / 100) / 10} s`,
  );
  const chaosStartsAtMs = Date.now();
  let delivered = false;
  // A slow machine delivers for longer, and is killed for longer.
  const killing = killAtRandom(stack, troupe, () => {
    const lastedMs = Date.now() - chaosStartsAtMs;
    return lastedMs > 2 * CHAOS_MS || (delivered && lastedMs > 0.8 * CHAOS_MS);
  });
  const past = slots.slice(-Math.ceil(RUNS / 4));
  await backfill(stack, past);
  await deliverAll(stack, troupe, slots);
  delivered = true;
  const killed = await killing;
  for (const proxy of stack.proxies) proxy.endFaults();
  told("every slot is delivered; from here on nothing fails");
  const wanted = [
    ...occurrencesAt(slots),
    ...past.map((slotMs) => ({ subject: BACKFILLED, slotKey: slotKeyOf(slotMs) })),
  ];
  await untilOver(stack, wanted);
  const verdict = await chaosVerdict(stack, troupe, wanted);
  const executions = stack.witness.executions();
  const interrupted = busyPids(stack);
  const hits = killed.filter((pid) => interrupted.has(pid));
  const hitsAt = (isAt: (execution: Execution) => boolean): number => {
    const pids = busyPids(stack, isAt);
    return killed.filter((pid) => pids.has(pid)).length;
  };
  const killsInSplit = {
    list: hitsAt(({ part }) => part === "list"),
    shards: hitsAt((execution) => isSplit(execution) && !["list", "join"].includes(execution.part)),
    join: hitsAt(({ part }) => part === "join"),
  };
  const faults = Object.fromEntries(
    PROXY_FAULTS.map((kind) => [kind, stack.proxies.reduce((sum, { hits }) => sum + hits[kind], 0)]),
  );
  await troupe.end();
  await stack.close();
  for (const kind of ["lost", "doubled", "stuck"] as const) {
    for (const text of verdict[kind]) told(`${kind}: ${text}`);
  }
  told(`${hits.length} of ${killed.length} kills of a worker hit a running handler`);
  const broken = verdict.lost.length + verdict.doubled.length + verdict.stuck.length > 0;
  console.log(
    JSON.stringify({
      seed: SEED,
      seconds: Math.round((Date.now() - startedAtMs) / SECOND_MS),
      runs: wanted.length,
      pieces: stack.witness.pieces().length,
      repeatedPieces: repeatedPieces(stack),
      repeatedEffects: repeatedEffects(stack),
      executions: executions.length,
      kills: killed.length,
      killsThatHit: hits.length,
      killsInSplit,
      calls: stack.proxies.reduce((sum, { calls }) => sum + calls(), 0),
      faults,
      lost: verdict.lost.length,
      doubled: verdict.doubled.length,
      stuck: verdict.stuck.length,
      excused: verdict.excused,
    }),
  );
  process.exitCode = !broken && hits.length >= LEAST_HITS ? 0 : 1;
};

/** What chaos does about a fault, told as it tells it: one seed may miss by chance what two do not. */
const bite = async (text: string): Promise<void> => {
  const fault = faultNamed(text);
  for (const seed of [SEED, SEED + 1]) {
    const args = ["--seed", String(seed), ...(values.quick ? ["--quick"] : [])];
    for (const name of ["runs", "seconds"] as const) {
      const value = values[name];
      if (value !== undefined) args.push(`--${name}`, value);
    }
    const { noticed, printed, summary } = await chaosWith(fault, args);
    told(printed.trimEnd());
    told(`${noticed ? "noticed" : "NOT NOTICED"}: ${fault.name} (${fault.file}): ${fault.violates}`);
    console.log(summary);
    process.exitCode = noticed ? 0 : 1;
    if (noticed) return;
  }
};

await (values.plant === undefined ? chaos() : bite(values.plant));
