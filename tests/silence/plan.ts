import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { scheduleOfJob } from "../../lib/core/jobs/job-list.ts";
import { parseZone } from "../../lib/core/schedule/zone.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/core/time.ts";
import type { SeededRandom } from "../../lib/simulation/random.ts";

/**
 * `not-started`: claimed and sent, and no worker takes it. `lost`: no message of it gets through. `not-struck`: its
 * schedule does not fire, and its job is not caught up. `vanished`: a worker starts it and is gone. `failed`: its
 * handler throws.
 */
export const SILENCE_KINDS = ["not-started", "lost", "not-struck", "vanished", "failed"] as const;
export type SilenceKind = (typeof SILENCE_KINDS)[number];

export interface Silence {
  readonly kind: SilenceKind;
  readonly slotMs: number;
  /** From then on it works again. */
  readonly untilMs: number;
  readonly place: Place;
}

/** `in a misfire window`: nothing strikes, and the watchdog makes up for the slot; the run that it sends is then silent. */
export type Place = "any" | "beside a clock change" | "in a pause" | "after a pause" | "in a misfire window";

/** The watchdog makes up for the slot, and nothing else is wrong with it. */
export const isMadeGood = ({ kind, place }: Silence): boolean =>
  kind === "not-struck" && place === "in a misfire window";

export interface Pause {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface JobPlan {
  readonly job: JobDefinition;
  /** By slot. */
  readonly silences: ReadonlyMap<number, Silence>;
  readonly pauses: readonly Pause[];
}

/** So far apart that one is over before the next begins, and that a job does not flap. */
const APART_MS = 8 * HOUR_MS;
/** Of each job, apart from those that clock changes and pauses draw. */
const DRAWN_AT_ANY_TIME = 24;
/** Of each job that is caught up. */
const DRAWN_IN_A_MISFIRE_WINDOW = 8;

const isCaughtUp = ({ misfire }: JobDefinition): boolean => misfire.policy !== "skip";

const kindFor = (job: JobDefinition, place: Place, random: SeededRandom): SilenceKind => {
  const mayNotStrike = !isCaughtUp(job) || place === "in a misfire window";
  const possible = SILENCE_KINDS.filter((kind) => kind !== "not-struck" || mayNotStrike);
  return possible[random.whole(0, possible.length - 1)] ?? "lost";
};

/** Every few months, for some periods of the job; never at an instant that is a slot. */
const pausesOf = (slots: readonly number[], random: SeededRandom): readonly Pause[] => {
  const pauses: Pause[] = [];
  const step = Math.max(6, Math.floor(slots.length / 6));
  for (let first = Math.floor(step / 2); first + 4 < slots.length; first += step) {
    const long = slots.length > 10_000 ? random.whole(20, 600) : random.whole(1, 3);
    const [from, until] = [slots[first], slots[first + long]];
    if (from === undefined || until === undefined) break;
    pauses.push({ fromMs: from - 2 * MINUTE_MS, untilMs: until - 2 * MINUTE_MS });
  }
  return pauses;
};

const isIn = (pauses: readonly Pause[], slotMs: number): boolean =>
  pauses.some(({ fromMs, untilMs }) => fromMs < slotMs && slotMs < untilMs);

/** Draws where a job is silent: at any slot, beside each clock change, in each pause and right after it, while it is caught up. */
export const planFor = (
  job: JobDefinition,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
  random: SeededRandom,
): JobPlan => {
  const schedule = scheduleOfJob(job);
  if (schedule === undefined) throw new TypeError(`${job.name} has no schedule`);
  const slots = [...schedule.slots(fromMs, untilMs)];
  const pauses = pausesOf(slots, random);
  const silences = new Map<number, Silence>();
  const draw = (slotMs: number | undefined, wanted: Place): void => {
    const index = slotMs === undefined ? -1 : slots.indexOf(slotMs);
    // What ends with the next success needs one before the end.
    if (slotMs === undefined || index < 1 || index > slots.length - 4) return;
    const next = slots[index + 1] ?? slotMs;
    // What was skipped for a pause heals nothing: two failures without a success between them are one story.
    const heals = (step: 1 | -1): boolean => {
      for (let at = index + step; ; at += step) {
        const other = slots[at];
        if (other === undefined || silences.has(other)) return other === undefined;
        if (!isIn(pauses, other)) return true;
      }
    };
    if (!heals(1) || !heals(-1)) return;
    if (
      [...silences.keys()].some((other) => Math.abs(other - slotMs) < Math.max(APART_MS, 2 * (next - slotMs)))
    )
      return;
    const lastsMs = random.whole(job.graceMs / MINUTE_MS + 4, 50) * MINUTE_MS;
    const place = isIn(pauses, slotMs) ? "in a pause" : wanted;
    silences.set(slotMs, { kind: kindFor(job, place, random), slotMs, untilMs: slotMs + lastsMs, place });
  };
  for (const { atMs } of parseZone(job.timezone).transitionsIn(fromMs, untilMs)) {
    draw(random.chance(0.5) ? schedule.next(atMs - 1) : schedule.previous(atMs), "beside a clock change");
  }
  for (const { fromMs: pausedMs, untilMs: resumedMs } of pauses) {
    if (random.chance(0.5)) draw(schedule.next(pausedMs), "any");
    else draw(schedule.next(resumedMs), "after a pause");
  }
  for (let n = 0; n < DRAWN_AT_ANY_TIME; n++) {
    const slotMs = slots[random.whole(0, slots.length - 1)];
    draw(slotMs, "any");
  }
  for (let n = 0; isCaughtUp(job) && n < DRAWN_IN_A_MISFIRE_WINDOW; n++) {
    draw(slots[random.whole(0, slots.length - 1)], "in a misfire window");
  }
  return { job, silences, pauses };
};

/** Two years from a winter on: four clock changes. */
export const SPAN = { fromMs: 1_798_761_600_000, longestMs: 2 * 365 * DAY_MS };
