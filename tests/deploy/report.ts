import { setTimeout as pause } from "node:timers/promises";

export interface Report {
  /** Does it, prints what was seen, and counts. */
  step(name: string, act: () => Promise<string>): Promise<void>;
  readonly passed: () => number;
}

/** A step that fails ends the whole: what comes after builds on it. */
export const makeReport = (): Report => {
  const startedMs = performance.now();
  let passed = 0;
  return {
    step: async (name, act) => {
      const fromMs = performance.now();
      const seen = await act().catch((cause: unknown) => {
        throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
      });
      const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
      const [now, took] = [performance.now() - startedMs, performance.now() - fromMs];
      console.log(`${seconds(now).padStart(6)} s  ${name}: ${seen} (${seconds(took)} s)`);
      passed += 1;
    },
    passed: () => passed,
  };
};

/** Asks until there is an answer. */
export const until = async <Answer>(
  what: string,
  ask: () => Promise<Answer | undefined>,
  mostMs = 60_000,
): Promise<Answer> => {
  const untilMs = performance.now() + mostMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > untilMs) throw new Error(`${what} did not happen within ${mostMs / 1_000} s`);
    await pause(250);
  }
};

/** @throws Error that names what was expected, and shows what is */
export const check = (holds: boolean, what: string, seen?: unknown): void => {
  if (!holds)
    throw new Error(`not so: ${what}${seen === undefined ? "" : `; seen: ${JSON.stringify(seen)}`}`);
};
