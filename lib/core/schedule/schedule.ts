import type { AwsForm } from "./aws-form.ts";
import { type Dialect, type Rule, readExpression } from "./rule.ts";
import { checkBounds, firstFromOf, type Slots, slotsFrom } from "./slot-source.ts";
import type { DstPolicy } from "./slots.ts";
import { parseZone, type Zone } from "./zone.ts";

export type { AwsExpression, AwsForm } from "./aws-form.ts";
export type { Dialect } from "./rule.ts";
export type { Slots } from "./slot-source.ts";
export type { DstPolicy } from "./slots.ts";
export { type UnionSchedule, unionOf } from "./union.ts";

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

export interface ScheduleWarning {
  /** Stable, for programs. */
  readonly code: string;
  readonly message: string;
}

export type Language = "en" | "zh";

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
  /** How it is deployed. */
  readonly aws: AwsForm;
}

interface Parsed {
  readonly expression: string;
  readonly dialect: Dialect;
  readonly rule: Rule;
  readonly zone: Zone;
  readonly dst: DstPolicy;
  readonly options: ScheduleOptions;
}

const parse = (expression: string, options: ScheduleOptions): Parsed => ({
  expression,
  ...readExpression(expression, options.dialect),
  zone: parseZone(options.timezone ?? "UTC"),
  dst: { gap: options.dst?.gap ?? "skip", repeat: options.dst?.repeat ?? "first" },
  options,
});

/**
 * Reads an expression of any dialect: `0 9 * * 1-5`, `cron(0 9 ? * MON-FRI *)`, `rate(15 minutes)`,
 * `every(15 minutes)`, `at(2027-01-01T00:00)`, `0 0 9 ? * MON-FRI`.
 * @throws InvalidInput `invalid_schedule`, `ambiguous_schedule`, `never_fires`, `unknown_timezone`; it names the
 * field, the value and what the field takes.
 */
export const parseSchedule = (expression: string, options: ScheduleOptions = {}): Schedule => {
  const parsed = parse(expression, options);
  const { dialect, rule, zone, dst } = parsed;
  checkBounds(options);
  const anchorMs = options.anchorMs ?? options.startsAtMs ?? 0;
  return {
    expression,
    dialect,
    timezone: zone.name,
    ...slotsFrom(firstFromOf(rule, zone, dst, anchorMs), options),
    describe: () => expression,
    smallestGapMs: undefined,
    warnings: () => [],
    aws: { kind: "watchdog-completed", expressions: [], why: "not yet translated" },
  };
};
