import { isLocked, maxHolders } from "../../lib/app/path/lock-keeper.ts";
import { slotKeyOf } from "../../lib/core/identity.ts";
import { definitionKey, runKey } from "../../lib/core/items.ts";
import type { JobDefinition, Overlap, ShardsDefinition } from "../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { SURROUNDING_FAULTS } from "../../lib/simulation/faults.ts";
import { brokenPromises, type Verdict } from "../../lib/simulation/invariants.ts";
import type { Faults } from "../../lib/simulation/process.ts";
import type { Step } from "../../lib/simulation/trace.ts";
import { definition } from "../support/definitions.ts";
import { makeWorld, type World } from "./world.ts";

export const POLICIES: readonly { readonly name: string; readonly overlap: Overlap }[] = [
  { name: "allow", overlap: "allow" },
  { name: "skip", overlap: "skip" },
  { name: "queue", overlap: "queue" },
  { name: "replace", overlap: "replace" },
  { name: "two, then skip", overlap: { max: 2, whenFull: "skip" } },
  { name: "two, then queue", overlap: { max: 2, whenFull: "queue" } },
];

export type Policy = (typeof POLICIES)[number];

/** The hour before Europe's clocks go forward: slots are instants, and must not care. */
const START_MS = Date.parse("2026-03-28T23:58:30Z");
const SLOT_EVERY_MS = 5 * MINUTE_MS;

export const EVERY_FAULT: Faults = {
  ...SURROUNDING_FAULTS,
  throw: 0.2,
  hang: 0.03,
  continue: 0.15,
  unconfirmed: 0.05,
};

/** What must lose nothing even when no watchdog repairs it. */
export const ANSWERS_AND_DUPLICATES: Faults = {
  repeated: 0.05,
  duplicate: 0.2,
  "duplicate-event": 0.3,
  throw: 0.1,
  continue: 0.15,
};

export interface Scenario {
  readonly seed: number;
  readonly policy: Policy;
  readonly faults: Faults;
  readonly watchdog: boolean;
  readonly slots: number;
  /** People run, cancel, retry and pause as well. */
  readonly operators: boolean;
  /** Deploys change the job's overlap policy for a while, or remove it. Default: false. */
  readonly deploys?: boolean;
  /** Clocks differ by minutes; default: by less than the bound. */
  readonly skewed?: boolean;
  readonly trace?: (step: Step) => void;
  /** They backfill past slots, and retry all dead runs, as well. */
  readonly series?: boolean;
}

/** How the runs of a story are split, by turns; half of them are not. */
const SHARDS: readonly (ShardsDefinition | undefined)[] = [
  undefined,
  { count: 3, joins: true, tolerance: { count: 1 } },
  undefined,
  { joins: false, maxInFlight: 2, tolerance: { percent: 40 } },
];

const shardsOf = (seed: number): { readonly shards?: ShardsDefinition } => {
  // Not always the same with the same overlap policy.
  const shards = SHARDS[(seed + Math.floor(seed / POLICIES.length)) % SHARDS.length];
  return shards === undefined ? {} : { shards };
};

const jobOf = ({ overlap }: Policy, endsAtMs: number, park: boolean): JobDefinition =>
  definition({
    name: "simulated",
    schedules: ["*/5 * * * *"],
    endsAtMs,
    overlap,
    timeoutMs: 4 * MINUTE_MS,
    misfire: { policy: "all", max: 3, withinMs: HOUR_MS },
    onUnknown: park ? "park" : "retry",
    retry: {
      retries: 2,
      firstWaitMs: MINUTE_MS,
      factor: 2,
      maxWaitMs: 4 * MINUTE_MS,
      jitter: 0.5,
      crashes: 3,
    },
  });

const disturb = (world: World, job: JobDefinition, slots: readonly number[]): void => {
  const { random } = world;
  for (const slotMs of slots) {
    const pointed = { job, occurrence: { subject: job.subject, slotKey: slotKeyOf(slotMs) } };
    const later = (): number => slotMs + random.whole(0, 40) * 15_000;
    if (random.chance(0.1)) world.runByHand(job, later());
    if (random.chance(0.08)) world.cancel(pointed, later());
    if (random.chance(0.1)) world.retry(pointed, later() + 10 * MINUTE_MS);
    if (random.chance(0.02)) world.pause(job, later(), random.whole(5, 20) * MINUTE_MS);
  }
};

interface Redeployed {
  /** Every version that the job had. */
  readonly versions: readonly JobDefinition[];
  /** The job was not there for a while; by then the watchdog has seen that it is back. 0 = it was always there. */
  readonly backByMs: number;
}

const LONGEST_WATCH_S = 300;
/** Passes of the watchdog die, too. */
const SEEN_WITHIN_MS = 15 * MINUTE_MS;

/** From the instant on, as soon as a handler is found running; at the latest after five minutes. */
const whileOneRuns = (world: World, atMs: number, act: () => void, looksLeft = LONGEST_WATCH_S): void =>
  void world.time.at(atMs, () => {
    if (looksLeft === 0 || world.executions.some(({ endedAtMs }) => endedAtMs === undefined)) act();
    else whileOneRuns(world, atMs + SECOND_MS, act, looksLeft - 1);
  });

/** In the middle of the story another version of the job is deployed, or none, and then the first one again. */
const redeploy = (world: World, job: JobDefinition, slots: readonly number[]): Redeployed => {
  const { random } = world;
  const changeMs = (slots[Math.floor(slots.length / 4)] ?? 0) + random.whole(0, 600) * 1_000;
  const backMs = changeMs + random.whole(5, 40) * MINUTE_MS;
  const others = POLICIES.filter(({ overlap }) => overlap !== "allow" && overlap !== job.overlap);
  const other = others[random.whole(0, others.length - 1)];
  const removed = random.chance(0.3) || other === undefined;
  const between = removed ? [] : [{ ...job, overlap: other.overlap }];
  whileOneRuns(world, changeMs, () => world.deploy(between));
  whileOneRuns(world, backMs, () => world.deploy([job]));
  const backByMs = removed ? backMs + LONGEST_WATCH_S * SECOND_MS + SEEN_WITHIN_MS : 0;
  return { versions: [job, ...between], backByMs };
};

/** The job as far as all its versions promise the same: how many of its runs may overlap. */
const loosest = (versions: readonly JobDefinition[]): JobDefinition =>
  versions.reduce((loose, job) => (mostOf(job) > mostOf(loose) ? job : loose));

const mostOf = (job: JobDefinition): number => (isLocked(job) ? maxHolders(job) : Number.POSITIVE_INFINITY);

/**
 * Slots that must have had an end. Of a job that was not there for a while: those since the watchdog has seen that it is
 * back, and all that something claimed.
 */
const expectedOf = async (
  world: World,
  { subject }: JobDefinition,
  slots: readonly number[],
  backByMs: number,
) => {
  const definition = await world.stored.get(definitionKey(subject), { consistent: true });
  const sinceMs = Math.min(Number(definition?.["sinceMs"]), backByMs);
  const expected: number[] = [];
  for (const slotMs of slots) {
    const run = await world.stored.get(runKey({ subject, slotKey: slotKeyOf(slotMs) }), { consistent: true });
    if (slotMs > sinceMs || run?.["st"] !== undefined) expected.push(slotMs);
  }
  return expected;
};

const BACKFILLED_SLOTS = 8;

/** Slots before the first one, and sometimes those of the story too; asked for more than once, and perhaps stopped. */
const backfillInBetween = (world: World, job: JobDefinition, slots: readonly number[]) => {
  const { random } = world;
  const [firstMs = 0] = slots;
  const endMs = firstMs + slots.length * SLOT_EVERY_MS;
  const within = (): number => random.whole(firstMs, endMs);
  const request = {
    job,
    fromMs: firstMs - BACKFILLED_SLOTS * SLOT_EVERY_MS,
    toMs: random.chance(0.5) ? firstMs : within(),
    parallel: job.overlap === "allow" ? random.whole(1, 2) : 1,
  };
  world.backfill(request, firstMs + MINUTE_MS);
  for (let times = random.whole(0, 2); times > 0; times--) world.backfill(request, within());
  if (random.chance(0.3)) world.stopSeries(job, "backfill", within());
  if (random.chance(0.5)) world.retryDead(job, within());
  if (random.chance(0.2)) world.stopSeries(job, "retry", within());
  return request;
};

/** Somebody says it once more when all is well again: then every slot of the range has ended. */
const finishBackfill = async (
  world: World,
  request: ReturnType<typeof backfillInBetween>,
): Promise<readonly number[]> => {
  world.backfill(request, world.time.now());
  await world.time.playUntil(world.time.now() + 3 * HOUR_MS);
  return Array.from({ length: BACKFILLED_SLOTS }, (_, n) => request.fromMs + n * SLOT_EVERY_MS);
};

/** Longer than the longest wait of all, the visibility of a message whose worker died, and a queue of sixteen runs. */
const QUIET_MS = 6 * HOUR_MS;

/** Parked runs wait for a person: when the faults are over, one comes and retries them. */
const retryParked = async (world: World, job: JobDefinition): Promise<void> => {
  for (const item of world.stored.items()) {
    if (item["st"] !== "parked") continue;
    const slotKey = String(item["sk"]).slice(2);
    world.retry({ job, occurrence: { subject: job.subject, slotKey } }, world.time.now());
  }
  // Behind it a whole line may have waited for that person.
  await world.time.playUntil(world.time.now() + QUIET_MS);
};

/** Before or behind: two clocks differ by up to three minutes. */
const MINUTES_OFF_MS = 90 * SECOND_MS;

export interface Played {
  readonly world: World;
  readonly verdict: Verdict;
  readonly occurrences: number;
}

/** One deployment's story: a time of faults, then quiet; and what became of every occurrence. */
export const play = async ({
  seed,
  policy,
  faults,
  watchdog,
  slots: count,
  operators,
  deploys = false,
  skewed = false,
  series = false,
  trace,
}: Scenario): Promise<Played> => {
  const firstSlotMs = Math.ceil(START_MS / SLOT_EVERY_MS) * SLOT_EVERY_MS;
  // With a watchdog, every fifth story leaves what a kill interrupted to a person; not where clocks are far apart, since a
  // lease may be taken for one that is over then, as often as that person decides.
  const park = watchdog && !skewed && seed % 5 === 0;
  const job = { ...jobOf(policy, firstSlotMs + count * SLOT_EVERY_MS, park), ...shardsOf(seed) };
  // Some deployments take several messages an invocation.
  const batch = seed % 4 === 1 ? 5 : 1;
  const more = { ...(skewed && { skewMs: MINUTES_OFF_MS }), ...(trace && { trace }) };
  const world = makeWorld({ seed, startMs: START_MS, jobs: [job], faults, watchdog, batch, ...more });
  const slots = Array.from({ length: count }, (_, index) => firstSlotMs + index * SLOT_EVERY_MS);
  world.start();
  for (const slotMs of slots) world.schedule(job, slotMs);
  if (operators) disturb(world, job, slots);
  const { versions, backByMs } = deploys ? redeploy(world, job, slots) : { versions: [job], backByMs: 0 };
  const backfill = series ? backfillInBetween(world, job, slots) : undefined;
  const faultsEndMs = START_MS + (count + 2) * SLOT_EVERY_MS;
  await world.time.playUntil(faultsEndMs);
  world.endFaults();
  await world.time.playUntil(faultsEndMs + QUIET_MS);
  await retryParked(world, job);
  const past = backfill === undefined ? [] : await finishBackfill(world, backfill);
  const live = await expectedOf(world, job, slots, backByMs);
  const verdict = await brokenPromises(world, [{ job: loosest(versions), slots: [...past, ...live] }]);
  return { world, verdict, occurrences: past.length + slots.length + world.byHand.length };
};
