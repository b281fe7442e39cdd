/** The instant now, in milliseconds since 1970. May differ between processes by the clock bound. */
export interface Clock {
  nowMs(): number;
}

/** Calls back once, not before the wait is over. Cancelling after the call does nothing. */
export interface Timers {
  after(waitMs: number, callback: () => void): { cancel(): void };
}

export interface Random {
  /** A text nobody else makes: at least 96 random bits, URL-safe. */
  token(): string;
  /** Uniform in [0, 1). */
  fraction(): number;
}
