import type { Clock } from "../../lib/ports/clock.ts";

export interface StopSignals {
  /** The first wish to stop: a signal's name, or that npm is gone. */
  readonly asked: Promise<string>;
  /** The second one: do not wait any longer. */
  readonly askedAgain: Promise<string>;
  isAsked(): boolean;
  /** For the end: a signal that still comes does nothing, so that the exit code stays ours. */
  dispose(): void;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/**
 * A closed terminal may say so more than once; only a person hurries. One Ctrl-C may come twice: from the terminal to
 * the whole group, and from npm, which passes it on.
 */
const SAME_WISH_MS = 1_000;
const PARENT_LOOK_MS = 1_000;

/** Calls back when the npm that started us has gone without a word, as under kill -9. */
const watchNpm = (onGone: () => void): (() => void) => {
  // Without npm, a parent that ends is ordinary: a shell script that started the stack in the background.
  if (process.env["npm_command"] === undefined && process.env["npm_lifecycle_event"] === undefined) {
    return () => undefined;
  }
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) onGone();
  }, PARENT_LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
};

/** From here on a signal no longer ends the process by itself. */
export const listenForStop = (clock: Clock): StopSignals => {
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  let askedAtMs: number | undefined;
  const wish = (name: string): void => {
    if (askedAtMs === undefined) {
      askedAtMs = clock.nowMs();
      first.resolve(name);
    } else if (name !== "SIGHUP" && clock.nowMs() - askedAtMs >= SAME_WISH_MS) second.resolve(name);
  };
  const stopWatching = watchNpm(() => {
    if (askedAtMs === undefined) wish("npm ended");
  });
  for (const signal of SIGNALS) process.on(signal, wish);
  return {
    asked: first.promise,
    askedAgain: second.promise,
    isAsked: () => askedAtMs !== undefined,
    dispose: stopWatching,
  };
};
