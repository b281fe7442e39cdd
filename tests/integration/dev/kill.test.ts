import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { allGone, type Dev, descendants, endOf, makeProject, readyDev, runJob } from "./support.ts";

/** `npm run kill-stack` plays the long form, twenty kills. */
const KILLS = Number(process.env["BELFRY_KILLS"] ?? 2);
const RUNS_PER_KILL = 50;

const JOB = `
import { defineJob } from "belfry";
export default defineJob({
  timeout: "1 minute",
  overlap: "allow",
  retry: { firstWait: "1 second", crashes: 50 },
  handler: async ({ attempt, idempotencyKey, input, runId }) => {
    const effect = new URLSearchParams({ runId, attempt, key: idempotencyKey() });
    await (await fetch(\`\${input.receiver}?\${effect}\`)).text();
    return { attempt };
  },
});
`;

interface Effect {
  readonly runId: string;
  readonly attempt: number;
  readonly key: string;
}

/** A system outside the stack: it counts what reaches it, and stops answering after so many. */
const makeReceiver = async () => {
  const effects: Effect[] = [];
  let answersLeft = Number.POSITIVE_INFINITY;
  let held: ServerResponse[] = [];
  let onHeld: (() => void) | undefined;
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "/", "http://receiver").searchParams;
    effects.push({
      runId: query.get("runId") ?? "",
      attempt: Number(query.get("attempt")),
      key: query.get("key") ?? "",
    });
    answersLeft -= 1;
    if (answersLeft >= 0) {
      response.end("done");
      return;
    }
    held.push(response);
    onHeld?.();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    effects,
    /** Resolves when a handler waits between its effect and its record. */
    holdAfter: (answers: number): Promise<void> => {
      answersLeft = answers;
      return new Promise((resolve) => {
        onHeld = resolve;
      });
    },
    answerAll: (): void => {
      answersLeft = Number.POSITIVE_INFINITY;
      for (const response of held) response.end("late");
      held = [];
      onHeld = undefined;
    },
  };
};

const killAll = async (dev: Dev): Promise<void> => {
  const pids = descendants(dev.child.pid ?? 0).map(({ pid }) => pid);
  dev.child.kill("SIGKILL");
  await dev.exited;
  await allGone(pids);
};

const stateOf = async (dev: Dev, runId: string): Promise<string | undefined> =>
  (await dev.ask("GET", `/v1/runs/${runId}`)).body.run?.state;

/** The runs whose effect has happened, but whose record does not say so: what the kill has hit. */
const hitsIn = async (dev: Dev, effects: readonly Effect[]): Promise<readonly string[]> => {
  const runIds = [...new Set(effects.map(({ runId }) => runId))];
  const states = await Promise.all(runIds.map((runId) => stateOf(dev, runId)));
  return runIds.filter((_, index) => states[index] !== "succeeded");
};

test(`after ${KILLS} times kill -9 of the whole stack, every run has ended once, and only effects that a kill cut off from their record were repeated`, async () => {
  const receiver = await makeReceiver();
  const project = makeProject({ "jobs/effect.ts": JOB });
  const runIds: string[] = [];
  const hits: string[] = [];
  let dev = await readyDev({ project });
  for (let kill = 1; kill <= KILLS; kill++) {
    const before = receiver.effects.length;
    // Another moment each time: 3, 10, 17, ... effects into the round.
    const held = receiver.holdAfter(3 + (((kill - 1) * 7) % 40));
    const asked = await Promise.all(
      Array.from({ length: RUNS_PER_KILL }, () => runJob(dev, "effect", { receiver: receiver.url })),
    );
    runIds.push(...asked);
    await held;
    await killAll(dev);
    const cutOff = receiver.effects.slice(before);
    dev = await readyDev({ project });
    hits.push(...(await hitsIn(dev, cutOff)));
    receiver.answerAll();
  }
  for (const runId of runIds) expect(await endOf(dev, runId)).toMatchObject({ state: "succeeded" });

  // Keyed effects, at a receiver that drops repeats: one for each run.
  expect(new Set(receiver.effects.map(({ key }) => key)).size).toBe(runIds.length);
  // Unkeyed ones: one for each run, and one more for each time that a kill has hit it.
  const counts = new Map(runIds.map((runId) => [runId, 0]));
  for (const { runId } of receiver.effects) counts.set(runId, (counts.get(runId) ?? 0) + 1);
  const repeats = [...counts].flatMap(([runId, count]) => Array(count - 1).fill(runId)).sort();
  console.info(
    JSON.stringify({ kills: KILLS, runs: runIds.length, effects: receiver.effects.length, repeats }),
  );
  expect(repeats).toEqual([...hits].sort());
  expect(hits.length).toBeGreaterThanOrEqual(KILLS);
}, 600_000);
