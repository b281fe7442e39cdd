import { type Automation, automationIn, definitionOf } from "../../lib/core/automations/automation.ts";
import { automationSubject, slotMsOf } from "../../lib/core/identity.ts";
import { runRange, slotKeyInSortKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { parseSchedule } from "../../lib/core/schedule/schedule.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, shortIsoOf } from "../../lib/core/time.ts";
import type { Item } from "../../lib/core/write.ts";
import { brokenPromises, type Expected } from "../../lib/simulation/invariants.ts";
import type { Faults } from "../../lib/simulation/process.ts";
import type { SeededRandom } from "../../lib/simulation/random.ts";
import { definition } from "../support/definitions.ts";
import type { Played, Policy } from "./scenario.ts";
import { makeWorld, type World } from "./world.ts";

/** The evening before Europe's clocks go forward. */
const START_MS = Date.parse("2026-03-27T23:58:30Z");
const IDS = ["a", "b", "c", "d", "e"];
const CRONS = ["0 * * * *", "30 */2 * * *", "0 1-23/3 * * *", "30 2,9,14,21 * * *", "0 0,30 3 * ?"];
const ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata"];

export interface AutomationScenario {
  readonly seed: number;
  readonly policy: Policy;
  readonly faults: Faults;
  /** How long people make, change and delete run-time schedules. */
  readonly hours: number;
}

const jobOf = ({ overlap }: Policy): JobDefinition =>
  definition({
    name: "simulated",
    overlap,
    timeoutMs: 4 * MINUTE_MS,
    misfire: { policy: "all", max: 3, withinMs: 12 * HOUR_MS },
    retry: {
      retries: 2,
      firstWaitMs: MINUTE_MS,
      factor: 2,
      maxWaitMs: 4 * MINUTE_MS,
      jitter: 0.5,
      crashes: 3,
    },
  });

/** A record, and when the table took it. */
interface Version {
  readonly automation: Automation;
  readonly takenMs: number;
}

const oneOf = <One>(random: SeededRandom, some: readonly One[]): One => {
  const one = some[random.whole(0, some.length - 1)];
  if (one === undefined) throw new Error("nothing to choose from");
  return one;
};

/** Somebody makes each of them, sometimes asking twice, changes it a few times, pauses it, and perhaps deletes it. */
const disturb = (world: World, job: JobDefinition, hours: number): void => {
  const { random } = world;
  const spanMs = hours * HOUR_MS;
  for (const id of IDS) {
    const madeMs = START_MS + MINUTE_MS + random.whole(0, spanMs / 4);
    const later = (): number => madeMs + random.whole(0, spanMs);
    const schedule = () => ({ cron: oneOf(random, CRONS), timezone: oneOf(random, ZONES) });
    const request = { id, job: job.name, owner: "ann", ...schedule(), input: { id } };
    for (const waitMs of [0, 20, 90]) world.create(request, madeMs + waitMs * MINUTE_MS);
    for (let edits = random.whole(0, 4); edits > 0; edits--) world.edit({ id }, schedule(), later());
    // Close to a slot: there it matters who is first.
    world.edit({ id }, schedule(), Math.round(later() / HOUR_MS) * HOUR_MS + random.whole(-60, 150) * 1_000);
    if (random.chance(0.3)) world.remove({ id }, later());
    const subject = automationSubject(id);
    if (random.chance(0.3)) world.pause({ ...job, subject }, later(), random.whole(1, 6) * HOUR_MS);
  }
};

/** EventBridge has a schedule for each; here it strikes each half hour, and the record says whether it should. */
const strikeAll = (world: World, job: JobDefinition, untilMs: number): void => {
  const firstMs = Math.ceil(START_MS / HOUR_MS) * HOUR_MS;
  for (let slotMs = firstMs; slotMs < untilMs; slotMs += HOUR_MS / 2) {
    for (const id of IDS) {
      // More than its faults drop: what it strikes is not the watchdog's to find.
      if (world.random.chance(0.5)) world.schedule({ ...job, subject: automationSubject(id) }, slotMs);
    }
  }
};

/** Of a period: which slots must have come to an end, and which may have, since the change was not there in time. */
const slotsOf = (versions: readonly Version[]) => {
  const must = new Set<number>();
  const may = new Set<number>();
  const last = versions.at(-1);
  if (last === undefined) return { must, may };
  const { periods, deletedAtMs } = last.automation;
  for (const [index, { cron, timezone, fromMs }] of periods.entries()) {
    const has = (period: { readonly fromMs: number }) => period.fromMs === fromMs;
    const takenMs = versions.find(({ automation }) => automation.periods.some(has))?.takenMs ?? fromMs;
    const endMs = periods[index + 1]?.fromMs ?? deletedAtMs ?? Number.POSITIVE_INFINITY;
    const next = versions.find(
      ({ automation }) =>
        automation.periods.length > periods.findIndex(has) + 1 || automation.deletedAtMs !== undefined,
    );
    const untilMs = Math.max(endMs, next?.takenMs ?? endMs);
    for (const slotMs of parseSchedule(cron, { timezone }).slots(
      fromMs,
      Math.min(untilMs, last.takenMs + 10 * DAY_MS),
    )) {
      may.add(slotMs);
      if (slotMs >= takenMs && slotMs < endMs) must.add(slotMs);
    }
  }
  return { must, may };
};

const judged = async (world: World, job: JobDefinition, history: ReadonlyMap<string, readonly Version[]>) => {
  const expected: Expected[] = [];
  const surprises: string[] = [];
  for (const [id, versions] of history) {
    const subject = automationSubject(id);
    const last = versions.at(-1);
    if (last === undefined) continue;
    const { must, may } = slotsOf(versions);
    const runs = (await world.stored.query(runRange(subject))).filter((run) => run["st"] !== undefined);
    const ran = runs.map((run) => slotMsOf(slotKeyInSortKey(String(run["sk"]))));
    surprises.push(
      ...ran
        .filter((slotMs) => !may.has(slotMs))
        .map((slotMs) => `${id} at ${shortIsoOf(slotMs)}: nobody asked`),
    );
    const slots = [...new Set([...must, ...ran])].sort((left, right) => left - right);
    expected.push({ job: definitionOf(last.automation, job), slots });
  }
  return { expected, surprises };
};

export interface PlayedAutomations extends Played {
  /** Runs that the watchdog had to dispatch. */
  readonly caughtUp: number;
  /** Pages that a walk wrote. */
  readonly planned: number;
}

const quiet = async (world: World, untilMs: number): Promise<void> => {
  world.endFaults();
  // The shop closes: no slot is left whose end would have to be waited for.
  for (const id of IDS) world.remove({ id }, untilMs);
  await world.time.playUntil(untilMs + 8 * HOUR_MS);
};

/** Plays run-time schedules, with faults at every call of whoever makes, changes, dispatches and watches them. */
export const playAutomations = async ({
  seed,
  policy,
  faults,
  hours,
}: AutomationScenario): Promise<PlayedAutomations> => {
  const job = jobOf(policy);
  const history = new Map<string, Version[]>();
  let now = (): number => START_MS;
  const seen = (item: Item): void => {
    const automation = String(item["pk"]).startsWith("U#") ? automationIn(item) : undefined;
    if (automation === undefined) return;
    history.set(automation.id, [...(history.get(automation.id) ?? []), { automation, takenMs: now() }]);
  };
  const world = makeWorld({
    seed,
    startMs: START_MS,
    jobs: [job],
    faults,
    watchdog: true,
    watchEveryMs: 10 * MINUTE_MS,
    automations: IDS.map((id) => ({ ...job, subject: automationSubject(id) })),
    seen,
  });
  now = () => world.time.now();
  const endMs = START_MS + (hours + hours / 4) * HOUR_MS;
  world.start();
  disturb(world, job, hours);
  strikeAll(world, job, endMs);
  await world.time.playUntil(endMs);
  await quiet(world, endMs);
  const { expected, surprises } = await judged(world, job, history);
  const verdict = await brokenPromises(world, expected);
  const items = world.stored.items();
  return {
    world,
    verdict: { ...verdict, doubled: [...verdict.doubled, ...surprises] },
    occurrences: expected.reduce((sum, { slots }) => sum + slots.length, 0),
    caughtUp: items.filter(({ trigger, startedAtMs }) => trigger === "watchdog" && startedAtMs !== undefined)
      .length,
    planned: items.filter(({ pk, sk }) => String(pk).startsWith("G#") && String(sk).startsWith("P#")).length,
  };
};
