import { expect, test } from "vitest";
import { makeOperator } from "../../lib/app/operator.ts";
import { definition } from "../support/definitions.ts";
import { at, setup } from "../support/path.ts";

/** Stories whose order is scripted, for faults that walks at random meet too seldom. */

const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:00:02Z";
const side = definition({ name: "side", schedules: ["0 * * * *"], overlap: "allow" });

const make = () => {
  const env = setup({ now: NOW, jobs: [side] });
  return { env, operator: makeOperator(env.deps) };
};

test("a run that was stopped and is retried forgets the wish to stop", async () => {
  const { env, operator } = make();
  const pointed = { job: side, occurrence: at("side", SLOT) };
  await env.deliver(SLOT, ["side"]);
  const stopped = env.work(env.lastSent());
  await env.settle();
  expect(await operator.cancel(pointed, "not today")).toBe("stopping");
  await env.moveBy(30_000);
  await stopped;
  expect(await env.run(pointed.occurrence)).toMatchObject({ st: "cancelled" });
  await operator.retry(pointed);
  env.handle(() => ({ kind: "returned", result: 2 }));
  await env.work(env.lastSent());
  expect(await env.run(pointed.occurrence)).toMatchObject({ st: "succeeded", result: 2, ep: 2 });
});
