import type { Alert } from "../../lib/core/alerts/alert.ts";
import { seededRandom } from "../../lib/simulation/random.ts";
import { jobsIn, ZONES } from "./jobs.ts";
import { planFor, SPAN } from "./plan.ts";
import { judgePlan, type Verdict } from "./verdict.ts";
import { makeWorld } from "./world.ts";

export interface ZoneWanted {
  readonly zone: (typeof ZONES)[number];
  readonly seed: number;
  readonly days: number;
  readonly fromMs?: number;
  /** Names of jobs; default: all. */
  readonly jobs?: readonly string[];
  readonly everyPass?: boolean;
  readonly silent?: boolean;
}

export interface ZonePlayed extends Verdict {
  readonly alerts: readonly Alert[];
  readonly passes: number;
}

/** Plays one zone's jobs for so long, with the silences that the seed draws, and judges what was told. */
export const playZone = async (wanted: ZoneWanted): Promise<ZonePlayed> => {
  const { zone, seed, days, fromMs = SPAN.fromMs, everyPass = false, silent = true } = wanted;
  const random = seededRandom(seed * ZONES.length + ZONES.indexOf(zone));
  const untilMs = fromMs + days * 86_400_000;
  const plans = jobsIn(zone)
    .filter(({ name }) => wanted.jobs?.includes(name) ?? true)
    .map((job) => planFor(job, { fromMs, untilMs }, random))
    .map((plan) => (silent ? plan : { ...plan, silences: new Map() }));
  const world = makeWorld({ plans, fromMs, untilMs, random, everyPass });
  await world.play();
  const verdicts = plans.map((plan) => judgePlan(plan, world.alerts, world.hasSucceeded));
  const sum = (of: (verdict: Verdict) => number) => verdicts.reduce((total, one) => total + of(one), 0);
  const others = world.alerts.filter(({ job }) => job === undefined);
  return {
    silences: sum(({ silences }) => silences),
    told: sum(({ told }) => told),
    inPause: sum(({ inPause }) => inPause),
    madeGood: sum(({ madeGood }) => madeGood),
    longestMs: Math.max(...verdicts.map(({ longestMs }) => longestMs)),
    wrong: [
      ...verdicts.flatMap(({ wrong }) => wrong),
      ...others.map(({ kind, reason }) => `${zone}: a false alarm: ${kind}, ${reason}`),
    ],
    alerts: world.alerts,
    passes: world.passes.made,
  };
};
