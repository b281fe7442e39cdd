import { MINUTE_MS, shortIsoOf } from "../time.ts";
import { awsIntervalForm } from "./aws-interval.ts";
import { awsPatterns } from "./aws-patterns.ts";
import { finderOf, nextWall, type Pattern } from "./pattern.ts";
import { awsCronText } from "./pattern-text.ts";
import type { Rule } from "./rule.ts";
import { type Bounds, firstFromOf } from "./slot-source.ts";
import type { DstPolicy } from "./slots.ts";
import type { Transition, Zone } from "./zone.ts";

/** One EventBridge Scheduler schedule. No start date is ever sent: AWS refuses one in the past. */
export interface AwsExpression {
  /** `cron(...)` or `at(...)`, at most 256 characters. */
  readonly expression: string;
  /** ScheduleExpressionTimezone. */
  readonly timezone: string;
}

/**
 * How a schedule is deployed. `exact`: EventBridge invokes at its slots and no other instant; `superset`: also at
 * instants that are no slots, which the dispatcher drops; `watchdog-completed`: some slots (all, where there are
 * no expressions) are dispatched by the watchdog instead, two minutes after the slot.
 */
export interface AwsForm {
  readonly kind: "exact" | "superset" | "watchdog-completed";
  readonly expressions: readonly AwsExpression[];
  /** In words, where the form is not exact. */
  readonly why: string | undefined;
}

export interface AwsInput {
  readonly rule: Rule;
  readonly zone: Zone;
  readonly dst: DstPolicy;
  readonly anchorMs: number;
  readonly bounds: Bounds;
}

/**
 * Clock changes are looked at in these years: none before EventBridge Scheduler existed (10 November 2022), then
 * 28 years, after which weekdays and dates come round again.
 */
const SINCE_MS = 1_668_038_400_000;
const UNTIL_MS = 2_556_144_000_000;

const isGap = ({ beforeMs, afterMs }: Transition): boolean => afterMs > beforeMs;

/** Does a local time of the pattern fall into what a clock change takes away, or brings twice? */
const isHit = (pattern: Pattern, changes: readonly Transition[]): boolean => {
  const finder = finderOf(pattern);
  return changes.some(({ atMs, beforeMs, afterMs }) => {
    const wall = nextWall(finder, atMs + Math.min(beforeMs, afterMs));
    return wall !== undefined && wall < atMs + Math.max(beforeMs, afterMs);
  });
};

const inZone = (patterns: readonly Pattern[], zone: Zone): readonly AwsExpression[] =>
  patterns.map((pattern) => ({ expression: awsCronText(pattern), timezone: zone.name }));

const openDays = ({ monthDays, weekDays, months, years }: Pattern): boolean =>
  monthDays.isAny && weekDays.isAny && months.length === 12 && years.length === 0;

const ascending = (values: Iterable<number>): readonly number[] => [...new Set(values)].sort((a, b) => a - b);

/** The pattern's times of day in UTC, for each offset that the zone has. */
const inUtc = (pattern: Pattern, offsets: readonly number[]): { pattern: Pattern; isExact: boolean } => {
  const shifts = offsets.map((offset) => Math.round(offset / MINUTE_MS));
  const minutesAt = shifts.map((shift) =>
    ascending(pattern.minutes.map((minute) => (minute - shift + 6_000) % 60)),
  );
  const minutes = ascending(minutesAt.flat());
  const times = shifts.flatMap((shift) =>
    pattern.hours.flatMap((hour) => pattern.minutes.map((minute) => hour * 60 + minute - shift + 14_400)),
  );
  const hours = ascending(times.map((time) => Math.floor(time / 60) % 24));
  const isExact = pattern.hours.length === 24 && minutesAt.every((at) => at.length === minutes.length);
  return { pattern: { ...pattern, minutes, hours }, isExact };
};

/**
 * AWS does not say what a wildcard cron does in an hour that comes twice. Where its slots meet such an hour,
 * UTC has no second reading; where days are restricted too, what AWS may leave out is the watchdog's.
 */
const intervalLikeForm = (pattern: Pattern, zone: Zone, changes: readonly Transition[]): AwsForm => {
  const { patterns, why } = awsPatterns(pattern);
  const repeats = changes.filter((change) => !isGap(change));
  if (!isHit(pattern, repeats)) {
    return { kind: why === undefined ? "exact" : "superset", expressions: inZone(patterns, zone), why };
  }
  if (!openDays(pattern)) {
    return {
      kind: "watchdog-completed",
      expressions: inZone(patterns, zone),
      why: "AWS does not say whether it fires in the second pass of a repeated hour",
    };
  }
  const offsets = ascending(changes.flatMap(({ beforeMs, afterMs }) => [beforeMs, afterMs]));
  const utc = inUtc(pattern, offsets);
  return {
    kind: utc.isExact ? "exact" : "superset",
    expressions: awsPatterns(utc.pattern).patterns.map((each) => ({
      expression: awsCronText(each),
      timezone: "UTC",
    })),
    why: utc.isExact
      ? undefined
      : "in UTC, for every offset of the zone: only there a repeated hour is clear",
  };
};

const cronForm = (pattern: Pattern, { zone, dst }: AwsInput): AwsForm => {
  const changes = zone.transitionsIn(SINCE_MS, UNTIL_MS);
  if (pattern.isIntervalLike) return intervalLikeForm(pattern, zone, changes);
  const { patterns, why } = awsPatterns(pattern);
  const expressions = inZone(patterns, zone);
  const isMissing =
    (dst.gap === "run-after" && isHit(pattern, changes.filter(isGap))) ||
    (dst.repeat !== "first" &&
      isHit(
        pattern,
        changes.filter((change) => !isGap(change)),
      ));
  if (isMissing) {
    return {
      kind: "watchdog-completed",
      expressions,
      why: "AWS skips local times that do not exist and fires repeated ones at their first pass",
    };
  }
  return { kind: why === undefined ? "exact" : "superset", expressions, why };
};

const onceForm = ({ rule, zone, dst, anchorMs }: AwsInput): AwsForm => {
  const slot = firstFromOf(rule, zone, dst, anchorMs)(Number.NEGATIVE_INFINITY) ?? 0;
  const expression = `at(${shortIsoOf(slot).slice(0, 19)})`;
  return { kind: "exact", expressions: [{ expression, timezone: "UTC" }], why: undefined };
};

const unboundedForm = (input: AwsInput): AwsForm => {
  const { rule, anchorMs } = input;
  if (rule.kind === "once") return onceForm(input);
  return rule.kind === "interval" ? awsIntervalForm(rule.everyMs, anchorMs) : cronForm(rule.pattern, input);
};

/**
 * The deployed form of a schedule. It depends on nothing but the definition, so a deploy or an edit of `every`,
 * `rate` or `startsAt` fires nothing.
 * See the EventBridge Scheduler user guide, "Schedule types".
 */
export const awsFormOf = (input: AwsInput): AwsForm => {
  const form = unboundedForm(input);
  const { startsAtMs, endsAtMs } = input.bounds;
  if (form.kind !== "exact" || (startsAtMs === undefined && endsAtMs === undefined)) return form;
  return { ...form, kind: "superset", why: "instants outside startsAt and endsAt are dropped" };
};

const KINDS: readonly AwsForm["kind"][] = ["exact", "superset", "watchdog-completed"];

/** The form of several schedules of one job: all expressions, each once; as exact as the least exact of them. */
export const joinForms = (forms: readonly AwsForm[]): AwsForm => {
  const expressions = new Map(
    forms.flatMap((form) => form.expressions).map((each) => [`${each.expression} ${each.timezone}`, each]),
  );
  const reasons = [...new Set(forms.flatMap(({ why }) => why ?? []))];
  return {
    kind: KINDS[Math.max(...forms.map(({ kind }) => KINDS.indexOf(kind)))] ?? "exact",
    expressions: [...expressions.values()],
    why: reasons.length === 0 ? undefined : reasons.join("; "),
  };
};
