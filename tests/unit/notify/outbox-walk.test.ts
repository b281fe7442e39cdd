import fc from "fast-check";
import { expect, test } from "vitest";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { type DeliverDeps, deliver } from "../../../lib/app/notify/deliver.ts";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import { Unavailable } from "../../../lib/core/errors.ts";
import { ANY_ALERT, WAITING_ALERTS } from "../../../lib/core/items.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import type { Write } from "../../../lib/core/write.ts";
import type { Channel, SendAnswer } from "../../../lib/ports/channel.ts";

const MINUTE_MS = 60_000;
const START_MS = Date.parse("2026-10-08T02:00:00Z");
const CHANNELS = ["chat", "pager"] as const;

/**
 * What can happen to one call: it does nothing; it takes effect and its answer is lost; its process ends before or
 * after it.
 */
const CALL_FATES = ["well", "down", "lost", "killed before", "killed after"] as const;
/** What a receiver can do with one message. */
const SEND_FATES = [
  "taken",
  "away",
  "later",
  "refused",
  "answer lost",
  "killed before",
  "killed after",
] as const;

type CallFate = (typeof CALL_FATES)[number];
type SendFate = (typeof SEND_FATES)[number];

class Killed extends Error {}

/** Mostly well, so that a walk gets somewhere. */
const fates = <F extends string>(well: F, all: readonly F[]): fc.Arbitrary<readonly F[]> =>
  fc.array(
    fc.oneof({ weight: 3, arbitrary: fc.constant(well) }, { weight: 1, arbitrary: fc.constantFrom(...all) }),
    {
      maxLength: 40,
    },
  );

const walks = fc.record({
  calls: fates<CallFate>("well", CALL_FATES),
  sends: fates<SendFate>("taken", SEND_FATES),
  /** Which of the calls under way takes place next. */
  turns: fc.infiniteStream(fc.nat({ max: 1_000 })),
  alerts: fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 6 }),
});
type Walk = typeof walks extends fc.Arbitrary<infer W> ? W : never;

/** Calls under way take place one at a time, in an order that the walk draws. */
const makeTurns = (turns: Iterator<number>) => {
  const waiting: (() => void)[] = [];
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    turn: () => new Promise<void>((resolve) => waiting.push(resolve)),
    run: async (all: Promise<unknown>): Promise<void> => {
      let over = false;
      const end = all.then(() => {
        over = true;
      });
      for (;;) {
        await settle();
        if (over) return end;
        const [next] = waiting.splice(Number(turns.next().value) % Math.max(waiting.length, 1), 1);
        next?.();
      }
    },
  };
};

/** What a walk has seen. */
interface Seen {
  readonly heard: { readonly channel: string; readonly id: string }[];
  /** Faults that left an arrived message unmarked, by channel and alert: each may repeat it once. */
  readonly excuses: Map<string, number>;
  /** Marks that the table did not take; three in a row are one excuse. */
  readonly lostMarks: Map<string, number>;
  readonly quietUntilMs: Map<string, number>;
  readonly broken: string[];
}

const count = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

interface World extends Seen {
  readonly memory: ReturnType<typeof memoryTable>;
  readonly turn: () => Promise<void>;
  readonly calls: CallFate[];
  readonly sends: SendFate[];
  readonly clock: { nowMs: number };
}

/** The channel and the alert, as `chat a1`, of a write that sets this of a delivery. */
const partOf = ({ key, changes }: Write, name: string): string | undefined => {
  const path = changes.find((change) => change.path[1] === name)?.path;
  return path && `${String(path[0]).slice(3)} ${key.pk.slice(2)}`;
};

/** One process: once killed, nothing that it calls takes place any more. */
const makeProcess = (world: World): Pick<DeliverDeps, "table" | "routes"> => {
  const { memory, turn, calls, sends, clock } = world;
  let dead = false;
  const kill = (): never => {
    dead = true;
    throw new Killed();
  };
  const call = async <Answer>(act: () => Promise<Answer>, onLoss: (fate: CallFate) => void) => {
    await turn();
    const fate = dead ? "killed before" : (calls.shift() ?? "well");
    if (fate === "killed before" || fate === "down") {
      onLoss(fate);
      if (fate === "killed before") kill();
      throw new Unavailable("table_unavailable", "down");
    }
    const answer = await act();
    if (fate === "killed after") kill();
    if (fate === "lost") throw new Unavailable("table_unavailable", "lost");
    return answer;
  };
  const arrive = (channel: string, ids: readonly string[]): void => {
    world.heard.push(...ids.map((id) => ({ channel, id })));
  };
  const excuse = (channel: string, ids: readonly string[]): void => {
    for (const id of ids) count(world.excuses, `${channel} ${id}`);
  };
  const answers: { readonly [fate in SendFate]: (channel: string, ids: readonly string[]) => SendAnswer } = {
    taken: (channel, ids) => {
      arrive(channel, ids);
      return { kind: "taken" };
    },
    away: () => ({ kind: "not-now", reason: "HTTP 502" }),
    later: (channel) => {
      world.quietUntilMs.set(channel, clock.nowMs + 7 * MINUTE_MS);
      return { kind: "not-now", reason: "HTTP 429", retryAfterMs: 7 * MINUTE_MS };
    },
    refused: () => ({ kind: "refused", reason: "HTTP 400" }),
    "answer lost": (channel, ids) => {
      arrive(channel, ids);
      excuse(channel, ids);
      throw new Error("socket hang up");
    },
    "killed before": kill,
    "killed after": (channel, ids) => {
      arrive(channel, ids);
      excuse(channel, ids);
      return kill();
    },
  };
  const channelOf = (name: string): Channel => ({
    name,
    alertsPerMessage: name === "chat" ? 3 : 1,
    send: async (alerts) => {
      await turn();
      if (dead) return kill();
      if (clock.nowMs < (world.quietUntilMs.get(name) ?? 0))
        world.broken.push(`${name} was asked before it wanted to be`);
      return answers[sends.shift() ?? "taken"](
        name,
        alerts.map(({ id }) => id),
      );
    },
  });
  return {
    table: {
      ...memory,
      write: (write) =>
        call(
          () => memory.write(write),
          (fate) => {
            const mark = partOf(write, "toldAtMs");
            if (mark !== undefined) count(fate === "down" ? world.lostMarks : world.excuses, mark);
            // What the receiver has asked for may not be written down.
            world.quietUntilMs.delete(partOf(write, "nextAtMs")?.split(" ")[0] ?? "");
          },
        ),
      query: (query) =>
        call(
          () => memory.query(query),
          () => undefined,
        ),
    },
    routes: CHANNELS.map((name) => ({ channel: channelOf(name), topics: ["notify"] })),
  };
};

const play = async (walk: Walk) => {
  const { turn, run } = makeTurns(walk.turns);
  const world: World = {
    memory: memoryTable(),
    turn,
    calls: [...walk.calls],
    sends: [...walk.sends],
    clock: { nowMs: START_MS },
    heard: [],
    excuses: new Map(),
    lostMarks: new Map(),
    quietUntilMs: new Map(),
    broken: [],
  };
  let tokens = 0;
  const pass = (): Promise<void> =>
    deliver({
      ...makeProcess(world),
      clock: { nowMs: () => world.clock.nowMs },
      random: { token: () => `owner-${tokens++}`, fraction: () => 0.5 },
      timings: AWS_TIMINGS,
      journal: { attempt: () => undefined, handlerLine: () => undefined, notice: () => undefined },
    });
  /** As whoever found it would: until the table says so. */
  const store = async (id: string): Promise<void> => {
    const alert = {
      id,
      topic: "notify",
      kind: "failed",
      atMs: world.clock.nowMs,
      reason: "it threw",
    } as const;
    for (let stored = false; !stored; ) {
      stored = await putAlert(makeProcess(world).table, alert).then(
        () => true,
        () => false,
      );
    }
  };
  for (const [i, minutes] of walk.alerts.entries()) {
    await run(store(`a${i}`));
    await run(Promise.allSettled([pass(), pass()]));
    world.clock.nowMs += minutes * MINUTE_MS;
  }
  // The fault-free tail: longer than the longest wait of a refused alert.
  world.calls.length = 0;
  world.sends.length = 0;
  for (let minute = 0; minute < 90; minute++) {
    world.clock.nowMs += MINUTE_MS;
    await run(pass());
  }
  const waiting = await world.memory.query({ ...ANY_ALERT, pk: WAITING_ALERTS });
  return { ...world, waiting };
};

test("under crashes between all steps, lost answers and two notifiers at once, each channel hears each alert, and again only where its mark was lost", async () => {
  await fc.assert(
    fc.asyncProperty(walks, async (walk) => {
      const { heard, excuses, lostMarks, broken, waiting } = await play(walk);
      expect(broken).toEqual([]);
      expect(waiting).toEqual([]);
      for (const part of CHANNELS.flatMap((channel) => walk.alerts.map((_, i) => `${channel} a${i}`))) {
        const times = heard.filter(({ channel, id }) => `${channel} ${id}` === part).length;
        const excused = (excuses.get(part) ?? 0) + Math.floor((lostMarks.get(part) ?? 0) / 3);
        expect(times, part).toBeGreaterThanOrEqual(1);
        expect(times, part).toBeLessThanOrEqual(1 + excused);
      }
    }),
    { numRuns: Number(process.env["OUTBOX_WALKS"] ?? 300) },
  );
});
