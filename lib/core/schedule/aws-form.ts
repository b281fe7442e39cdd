/** One EventBridge Scheduler schedule. No start date is ever sent: AWS refuses one in the past. */
export interface AwsExpression {
  /** `cron(...)` or `at(...)`. */
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
