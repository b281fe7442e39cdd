import type { TextContext } from "../../core/alerts/alert-text.ts";
import type { Clock } from "../../ports/clock.ts";

/** What each channel is made from. */
export interface ChannelDeps {
  readonly context: TextContext;
  readonly clock: Clock;
  /** The value of a variable of `alerts.secrets`. @throws Error that names it, when it cannot be read */
  readonly secret: (variable: string) => Promise<string>;
}

/** A chat takes what has waited together as one message. */
export const CHAT_ALERTS_PER_MESSAGE = 10;
