import { expect, test } from "vitest";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { cancelRun, retryRun } from "../../../lib/app/operate/operator.ts";
import { create, deployed, watchUntil } from "./support.ts";

const RUN = "automation:noon~20261201T120000Z";
const FAILED = { kind: "threw", permanent: true, error: { name: "Error", message: "no such city" } } as const;

/** A run-time schedule whose first run is dispatched by the watchdog, and what people ask and do. */
const atNoon = async () => {
  const env = await deployed();
  await create(env, { input: { city: "Oslo" } });
  await watchUntil(env, "2026-12-01T12:03:00Z");
  return { env, inspect: makeInspect(env.deps) };
};

test("a run of a run-time schedule is shown with its job, its schedule and the input of that", async () => {
  const { env, inspect } = await atNoon();
  expect(await inspect.run(RUN)).toMatchObject({
    job: "report",
    automation: "noon",
    state: "queued",
    input: { city: "Oslo" },
  });
  expect(await inspect.listRuns({ subject: "automation:noon", limit: 10 })).toMatchObject([
    { runId: RUN, job: "report", automation: "noon", input: { city: "Oslo" } },
  ]);
  env.handle(() => FAILED);
  await env.work(env.lastSent());
  expect(await inspect.listRuns({ state: "dead", limit: 10 })).toMatchObject([
    { runId: RUN, job: "report", automation: "noon", state: "dead" },
  ]);
});

test("a dead run of a run-time schedule is retried as the job that it is of, with the schedule's input", async () => {
  const { env, inspect } = await atNoon();
  env.handle(() => FAILED);
  await env.work(env.lastSent());
  await retryRun(env.deps, await inspect.pointed(RUN));
  env.handle(() => ({ kind: "returned", result: 1 }));
  await env.work(env.lastSent());
  expect(env.lastAttempt().request).toMatchObject({ job: "report", input: { city: "Oslo" } });
  expect(await inspect.run(RUN)).toMatchObject({ state: "succeeded", result: 1 });
});

test("a queued run of a run-time schedule is cancelled", async () => {
  const { env, inspect } = await atNoon();
  expect(await cancelRun(env.deps, await inspect.pointed(RUN), "not today")).toBe("cancelled");
  expect(await inspect.run(RUN)).toMatchObject({ state: "cancelled", reason: "not today" });
});

test("a run of a schedule that nobody made is unknown", async () => {
  const { inspect } = await atNoon();
  await expect(inspect.pointed("automation:none~20261201T120000Z")).rejects.toMatchObject({
    code: "unknown_run",
  });
});
