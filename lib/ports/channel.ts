import type { Alert } from "../core/alerts/alert.ts";

/** What became of one message. */
export type SendAnswer =
  | { readonly kind: "taken" }
  /** The receiver takes nothing now: it is down, says "later", or does not know us. Nothing else is sent to it before. */
  | { readonly kind: "not-now"; readonly reason: string; readonly retryAfterMs?: number }
  /** The receiver does not like this message; it may take others. */
  | { readonly kind: "refused"; readonly reason: string };

/** A way to people: a chat group, a mailing list, a pager. Its reasons never hold a secret. */
export interface Channel {
  readonly name: string;
  /** How many alerts that have waited together may go out as one message; 1 = each by itself. */
  readonly alertsPerMessage: number;
  /** One message, which says all of these alerts. What it throws counts as `not-now`. */
  send(alerts: readonly Alert[]): Promise<SendAnswer>;
}
