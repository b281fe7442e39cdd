import type { AlertTopic } from "../core/alerts/alert.ts";

/** A configured channel that tells nothing here. */
export interface AbsentChannel {
  readonly name: string;
  readonly why: string;
}

/** Rings for a test, by the way that a real alert would take. */
export interface Bell {
  /** What is rung: the first hop's name. */
  readonly name: string;
  /** The channels that should hear it. */
  channels(topic: AlertTopic): readonly (string | AbsentChannel)[];
  /** Makes the test alert of that id come to the outbox, now or soon. */
  ring(topic: AlertTopic, id: string): Promise<void>;
}
