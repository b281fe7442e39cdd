import { expect, test } from "vitest";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { progressOf } from "../../../lib/core/runs/kept.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-10-08T02:00:00Z";
const job = definition({ name: "import", schedules: ["0 * * * *"], overlap: "allow" });

const started = async () => {
  const env = setup({ now: SLOT, jobs: [job] });
  await env.deliver(SLOT, ["import"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  return { env, visit, attempt: env.lastAttempt() };
};

const shown = async (env: Setup) => (await makeReadRun(env.deps)(at("import", SLOT)))?.progress;

test("progress is shown while the handler runs, at the latest half a lease after it was said", async () => {
  const { env, attempt } = await started();
  attempt.services.progress({ done: 1_000, total: 40_000 });
  expect(await shown(env)).toBeUndefined();
  await env.moveBy(30_000);
  expect(await shown(env)).toEqual({ done: 1_000, total: 40_000 });
  attempt.services.progress({ done: 2_000, total: 40_000 });
  attempt.services.progress({ done: 3_000, total: 40_000 });
  await env.moveBy(30_000);
  expect(await shown(env)).toEqual({ done: 3_000, total: 40_000 });
});

test("progress costs no write: it goes with the renewals and with the end", async () => {
  const count = async (says: boolean) => {
    const { env, attempt, visit } = await started();
    for (let n = 1; n <= 90; n++) {
      if (says) attempt.services.progress({ done: n });
      await env.moveBy(1_000);
    }
    attempt.end({ kind: "returned" });
    await visit;
    return env.writes.length;
  };
  expect(await count(true)).toBe(await count(false));
});

test("a short run's progress is written with its end, and a run that says nothing shows nothing", async () => {
  const { env, attempt, visit } = await started();
  attempt.services.progress({ done: 7 });
  attempt.end({ kind: "returned" });
  await visit;
  expect(await shown(env)).toEqual({ done: 7 });
  expect(env.writes).toHaveLength(3);
  const silent = await started();
  silent.attempt.end({ kind: "returned" });
  await silent.visit;
  expect(await shown(silent.env)).toBeUndefined();
});

test.each([
  ["fails", failure()],
  ["is put off", { kind: "snooze", waitMs: 60_000 }],
  ["continues later", { kind: "continue" }],
] as const)("the progress of an attempt that %s is kept until the next one says more", async (_how, end) => {
  const { env, attempt, visit } = await started();
  attempt.services.progress({ done: 20, total: 40 });
  attempt.end(end);
  await visit;
  expect(await shown(env)).toEqual({ done: 20, total: 40 });
  await env.moveBy(60_000);
  const again = env.work(env.lastSent());
  await env.settle();
  expect(await shown(env)).toEqual({ done: 20, total: 40 });
  env.lastAttempt().services.progress({ done: 40, total: 40 });
  env.lastAttempt().end({ kind: "returned" });
  await again;
  expect(await shown(env)).toEqual({ done: 40, total: 40 });
});

test("progress is counted in numbers from 0 on", () => {
  expect(progressOf(0)).toEqual({ done: 0 });
  expect(progressOf(0.333_333_333_3, 1)).toEqual({ done: 0.333_333, total: 1 });
  expect(progressOf(5, 3)).toEqual({ done: 5, total: 3 });
  expect(progressOf(Number.MAX_SAFE_INTEGER)).toEqual({ done: Number.MAX_SAFE_INTEGER });
});

test.each([
  [Number.NaN, undefined, "progress: done must be a number from 0 on, and is NaN"],
  [-1, undefined, "progress: done must be a number from 0 on, and is -1"],
  [Number.POSITIVE_INFINITY, undefined, "progress: done must be a number from 0 on, and is Infinity"],
  ["3", undefined, "progress: done must be a number from 0 on, and is 3"],
  [3, "4", "progress: total must be a number from 0 on, and is 4"],
])("progress of %s out of %s is refused, and the reason is said", (done, total, message) => {
  expect(() => progressOf(done, total)).toThrow(message);
});
