import { Unavailable } from "../core/errors.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Clock, Random, Timers } from "../ports/clock.ts";
import type { SeededRandom } from "./random.ts";
import type { RealWork } from "./real-work.ts";
import type { Step } from "./trace.ts";
import type { VirtualTime } from "./virtual-time.ts";

/**
 * What can go wrong with one call of a port. `repeated` is the SDK's own retry after a lost answer; `pause` is a
 * process that sleeps for minutes between its call and the effect, its timers with it.
 */
export const FAULT_KINDS = [
  "crash-before",
  "crash-after",
  "throttled",
  "lost-answer",
  "repeated",
  "pause",
] as const;

export interface Faults {
  /** Probability of each kind per call; 0 switches it off. */
  readonly [kind: string]: number;
}

export interface Universe {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly faults: () => Faults;
  /** Nothing fails, and no call takes any time: faster, where neither is to be seen. */
  readonly ideal: boolean;
  readonly work: RealWork;
  /** Told of all that happens, where somebody wants to know why. */
  readonly trace?: (step: Step) => void;
  /** How often each kind hit each port call: `<kind> <port call>` -> times. */
  readonly hits: Map<string, number>;
}

/** Does the fault happen now? Counted, if so. */
export const strikes = (universe: Universe, kind: string, where: string): boolean => {
  const { faults, hits, random } = universe;
  const struck = random.chance(faults()[kind] ?? 0);
  if (struck) hits.set(`${kind} ${where}`, (hits.get(`${kind} ${where}`) ?? 0) + 1);
  return struck;
};

/** One process of the simulated deployment: it has its own clock, and can die at any port call. */
export interface Process {
  readonly name: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly randomPort: Random;
  alive(): boolean;
  /**
   * Did it ever sleep, or may clocks differ by more than the bound? No protocol can stop a handler while its process sleeps,
   * nor before a lease is over that ends by another's clock.
   */
  slept(): boolean;
  /** Called once, when the process dies. */
  onDeath(act: () => void): void;
  kill(): void;
  /**
   * The effect happens between two waits, at one instant, unless a fault prevents it.
   * @param about for whoever traces the story
   */
  call<Answer>(port: string, effect: () => Promise<Answer>, about?: string): Promise<Answer>;
}

interface Life {
  alive(): boolean;
  kill(): void;
  onDeath(act: () => void): void;
}

const makeLife = (): Life => {
  let living = true;
  const deaths: (() => void)[] = [];
  return {
    alive: () => living,
    kill: () => {
      if (!living) return;
      living = false;
      for (const act of deaths) act();
    },
    onDeath: (act) => void deaths.push(act),
  };
};

/** A process's own waits: they end when it is awake, and not at all when it is dead. */
const makeWaits = (time: VirtualTime, { alive }: Life) => {
  let asleepUntilMs = 0;
  const whenAwake = (atMs: number, act: () => void): void =>
    void time.at(atMs, () => {
      if (!alive()) return;
      if (time.now() < asleepUntilMs) whenAwake(asleepUntilMs, act);
      else act();
    });
  const timers: Timers = {
    after: (waitMs, callback) => {
      let cancelled = false;
      whenAwake(time.now() + waitMs, () => {
        if (!cancelled) callback();
      });
      return {
        cancel: () => {
          cancelled = true;
        },
      };
    },
  };
  return {
    timers,
    wait: (waitMs: number): Promise<void> =>
      new Promise((resolve) => whenAwake(time.now() + waitMs, resolve)),
    sleep: (sleepMs: number): void => {
      asleepUntilMs = time.now() + sleepMs;
    },
    slept: (): boolean => asleepUntilMs > 0,
  };
};

/** Calls of ports that take their time, and go wrong by chance. */
const makeCalls = (
  universe: Universe,
  name: string,
  life: Life,
  waits: ReturnType<typeof makeWaits>,
): Process["call"] => {
  const { random, ideal, time, trace } = universe;
  const { wait, sleep } = waits;

  const die = <Answer>(): Promise<Answer> => {
    life.kill();
    // One each: whoever waits on a shared one is kept as long as it is.
    return new Promise(() => undefined);
  };

  if (ideal) return (_port, effect) => effect();
  const faultAt = (port: string, about: string): (typeof FAULT_KINDS)[number] | undefined => {
    const fault = FAULT_KINDS.find((kind) => strikes(universe, kind, port));
    if (fault !== undefined) trace?.({ atMs: time.now(), process: name, what: `${fault} at ${port}`, about });
    return fault;
  };

  return async <Answer>(port: string, effect: () => Promise<Answer>, about = ""): Promise<Answer> => {
    const fault = faultAt(port, about);
    await wait(random.whole(1, random.chance(0.05) ? 2_000 : 20));
    if (fault === "pause") {
      sleep(random.whole(60, 300) * SECOND_MS);
      await wait(1);
    }
    if (fault === "crash-before") return die();
    if (fault === "throttled") throw new Unavailable("simulated", `${port} was throttled`);
    let answer = await effect();
    if (fault === "crash-after") return die();
    await wait(random.whole(1, 20));
    if (fault === "lost-answer") throw new Unavailable("simulated", `the answer of ${port} was lost`);
    if (fault === "repeated") answer = await effect();
    return answer;
  };
};

/** @param skewMs by how much its clock differs */
export const makeProcess = (universe: Universe, name: string, skewMs: number): Process => {
  const { time, random } = universe;
  const life = makeLife();
  const waits = makeWaits(time, life);
  return {
    ...life,
    name,
    clock: { nowMs: () => time.now() + skewMs },
    timers: waits.timers,
    randomPort: { token: () => random.token() + random.token(), fraction: () => random.fraction() },
    slept: waits.slept,
    call: makeCalls(universe, name, life, waits),
  };
};
