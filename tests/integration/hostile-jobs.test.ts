import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunView } from "../../lib/core/runs/run.ts";
import { type RunningStack, runIn, startStack } from "../support/stack-process.ts";

const PORT = 4793;

const job = (handler: string, options = 'timeout: "2 seconds",'): string => `
import { defineJob, PermanentError } from "belfry";
export default defineJob({
  overlap: "allow",
  retry: { retries: 1, firstWait: "1 second", jitter: 0 },
  ${options}
  handler: ${handler},
});
`;

const JOBS: { readonly [name: string]: string } = {
  flaky: job(
    "async ({ attempt }) => { if (attempt < 3) throw new Error('not yet'); return { attempt }; }",
    "retry: { retries: 3, firstWait: '1 second', factor: 3, jitter: 0 },",
  ),
  "always-throws": job("async () => { throw new RangeError('never works'); }"),
  "gives-up": job("async () => { throw new PermanentError('no use'); }"),
  "hangs-in-await": job("() => new Promise(() => {})"),
  "hangs-in-loop": job("async () => { while (true); }"),
  exits: job("async () => { process.exit(0); }"),
  "eats-memory": job(
    "async () => { const all = []; while (true) all.push(new Array(100_000).fill({})); }",
    "timeout: '1 minute',",
  ),
  "eats-memory-in-one-loop": job(
    "async () => { const all = []; while (true) all.push(new Array(1000).fill({})); }",
    "timeout: '1 minute',",
  ),
  "eats-memory-at-once": job(
    "async () => JSON.parse('[' + '[],'.repeat(40_000_000) + '1]').length",
    "timeout: '1 minute',",
  ),
  neighbour: job("async () => ({ fine: true })"),
};

let project: string;
let stack: RunningStack;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "belfry hostile-"));
  await mkdir(join(project, "jobs"));
  await writeFile(join(project, "package.json"), '{ "name": "hostile", "type": "module" }\n');
  for (const [name, text] of Object.entries(JOBS)) await writeFile(join(project, "jobs", `${name}.ts`), text);
  stack = await startStack(project, PORT);
});
afterAll(async () => {
  await stack.stop();
  await rm(project, { recursive: true, force: true });
});

const ended = async (name: string): Promise<RunView> => {
  const asked = await stack.call(`/v1/jobs/${name}/runs`, { input: { from: "test" } });
  expect(asked.status).toBe(202);
  const { runId } = runIn(asked.body);
  for (;;) {
    const run = runIn((await stack.call(`/v1/runs/${runId}?waitMs=20000`)).body);
    if (run.finishedAt !== null && run.state !== "waiting") return run;
  }
};

const lateness = (run: RunView): readonly number[] =>
  run.attempts.slice(1).map(({ startedAt }, index) => {
    const before = run.attempts[index]?.endedAt ?? startedAt;
    return Date.parse(startedAt) - Date.parse(before);
  });

test("hostile handlers end at their timeout or at once, each on its own, and a neighbour goes on", async () => {
  const names = Object.keys(JOBS);
  const runs = new Map(await Promise.all(names.map(async (name) => [name, await ended(name)] as const)));
  const states = Object.fromEntries([...runs].map(([name, run]) => [name, run.state]));
  expect(states).toEqual({
    flaky: "succeeded",
    "always-throws": "dead",
    "gives-up": "dead",
    "hangs-in-await": "dead",
    "hangs-in-loop": "dead",
    exits: "dead",
    "eats-memory": "dead",
    "eats-memory-in-one-loop": "dead",
    "eats-memory-at-once": "dead",
    neighbour: "succeeded",
  });
  const outcomes = Object.fromEntries(
    [...runs].map(([name, run]) => [name, run.attempts.map(({ outcome }) => outcome)]),
  );
  expect(outcomes).toEqual({
    flaky: ["threw", "threw", "returned"],
    "always-throws": ["threw", "threw"],
    "gives-up": ["threw"],
    "hangs-in-await": ["timed-out", "timed-out"],
    "hangs-in-loop": ["timed-out", "timed-out"],
    exits: ["exited", "exited"],
    "eats-memory": ["out-of-memory", "out-of-memory"],
    "eats-memory-in-one-loop": ["out-of-memory", "out-of-memory"],
    "eats-memory-at-once": ["out-of-memory", "out-of-memory"],
    neighbour: ["returned"],
  });

  const flaky = runs.get("flaky");
  expect(flaky?.result).toEqual({ attempt: 3 });
  const [firstWaitMs = 0, secondWaitMs = 0] = flaky === undefined ? [] : lateness(flaky);
  expect(firstWaitMs).toBeGreaterThanOrEqual(1_000);
  expect(secondWaitMs).toBeGreaterThanOrEqual(3_000);

  const dead = runs.get("always-throws");
  expect(dead?.input).toEqual({ from: "test" });
  expect(dead?.error).toMatchObject({ name: "RangeError", message: "never works" });
  expect(dead?.error?.stack).toMatch(/always-throws\.ts/);
});
