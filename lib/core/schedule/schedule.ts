import { type AwsForm, awsFormOf } from "./aws-form.ts";
import { describeRule, type Language } from "./describe.ts";
import { type Dialect, type Rule, readExpression } from "./rule.ts";
import { checkBounds, firstFromOf, type Slots, slotsFrom } from "./slot-source.ts";
import type { DstPolicy } from "./slots.ts";
import { smallestGapOf } from "./smallest-gap.ts";
import { changeWarnings, type ScheduleWarning, warningsOf } from "./warnings.ts";
import { parseZone, type Zone } from "./zone.ts";

export type { AwsForm } from "./aws-form.ts";
export type { Language } from "./describe.ts";
export type { Dialect } from "./rule.ts";
export type { Slots } from "./slot-source.ts";
export type { DstPolicy } from "./slots.ts";
export { type UnionSchedule, unionOf } from "./union.ts";
export type { ScheduleWarning } from "./warnings.ts";

export interface ScheduleOptions {
  /** IANA name, exactly; default UTC. Unknown = InvalidInput `unknown_timezone`. */
  readonly timezone?: string;
  /** Told; else recognised, and refused where it is ambiguous. */
  readonly dialect?: Dialect;
  /** Default: gap `skip`, repeat `first`, as EventBridge Scheduler. Interval-like schedules ignore it. */
  readonly dst?: Partial<DstPolicy>;
  /** `every` and `rate` have their slots at anchor + k * n. Default: `startsAtMs`, else 1970-01-01T00:00Z. */
  readonly anchorMs?: number;
  /** Slots are in [startsAtMs, endsAtMs). */
  readonly startsAtMs?: number;
  readonly endsAtMs?: number;
  /** Slots closer than this give the warning `too-frequent`. */
  readonly minimumGapMs?: number;
}

export interface Schedule extends Slots {
  /** As it was given. */
  readonly expression: string;
  readonly dialect: Dialect;
  readonly timezone: string;
  /** In words, without the zone. */
  describe(language?: Language): string;
  /** The smallest distance between two slots by the clock on the wall; undefined for at most one slot. */
  readonly smallestGapMs: number | undefined;
  /** What a person should know before trusting it; dates are those of the two years from `aroundMs`. */
  warnings(aroundMs: number): readonly ScheduleWarning[];
  /** Of those, the clock changes in [fromMs, untilMs) that it meets. */
  clockChanges(fromMs: number, untilMs: number): readonly ScheduleWarning[];
  /** How it is deployed. */
  readonly aws: AwsForm;
}

interface Parts {
  readonly rule: Rule;
  readonly zone: Zone;
  readonly dst: DstPolicy;
  readonly anchorMs: number;
  readonly options: ScheduleOptions;
}

/**
 * A class for the sake of its two accessors, whose answers are computed when first asked for: most schedules are
 * read to ask for a slot. (Accessors of an object literal are made anew for each object, which took as long as
 * reading the expression.)
 */
class ParsedSchedule implements Schedule {
  readonly expression: string;
  readonly dialect: Dialect;
  readonly timezone: string;
  readonly slots: Slots["slots"];
  readonly next: Slots["next"];
  readonly previous: Slots["previous"];
  readonly has: Slots["has"];
  readonly #parts: Parts;
  #smallestGap: { readonly ms: number | undefined } | undefined;
  #aws: AwsForm | undefined;

  constructor(expression: string, dialect: Dialect, parts: Parts) {
    const { rule, zone, dst, anchorMs, options } = parts;
    const { slots, next, previous, has } = slotsFrom(firstFromOf(rule, zone, dst, anchorMs), options);
    this.expression = expression;
    this.dialect = dialect;
    this.timezone = zone.name;
    this.slots = slots;
    this.next = next;
    this.previous = previous;
    this.has = has;
    this.#parts = parts;
  }

  describe(language: Language = "en"): string {
    return describeRule(this.#parts.rule, language);
  }

  get smallestGapMs(): number | undefined {
    this.#smallestGap ??= { ms: smallestGapOf(this.#parts.rule) };
    return this.#smallestGap.ms;
  }

  warnings(aroundMs: number): readonly ScheduleWarning[] {
    const { options, ...parts } = this.#parts;
    const { timezone, minimumGapMs } = options;
    const hasTimezone = timezone !== undefined;
    return warningsOf({ ...parts, schedule: this, hasTimezone, minimumGapMs }, aroundMs);
  }

  clockChanges(fromMs: number, untilMs: number): readonly ScheduleWarning[] {
    return changeWarnings(this.#parts, fromMs, untilMs);
  }

  get aws(): AwsForm {
    const { options, ...parts } = this.#parts;
    this.#aws ??= awsFormOf({ ...parts, bounds: options });
    return this.#aws;
  }
}

/**
 * Reads an expression of any dialect: `0 9 * * 1-5`, `cron(0 9 ? * MON-FRI *)`, `rate(15 minutes)`,
 * `every(15 minutes)`, `at(2027-01-01T00:00)`, `0 0 9 ? * MON-FRI`.
 * @throws InvalidInput `invalid_schedule`, `ambiguous_schedule`, `never_fires`, `unknown_timezone`; it names the
 * field, the value and what the field takes.
 */
export const parseSchedule = (expression: string, options: ScheduleOptions = {}): Schedule => {
  checkBounds(options);
  const zone = parseZone(options.timezone ?? "UTC");
  const { dialect, rule } = readExpression(expression, options.dialect);
  const dst: DstPolicy = { gap: options.dst?.gap ?? "skip", repeat: options.dst?.repeat ?? "first" };
  const anchorMs = options.anchorMs ?? options.startsAtMs ?? 0;
  return new ParsedSchedule(expression, dialect, { rule, zone, dst, anchorMs, options });
};
