import { expect, test } from "vitest";
import { muteJob, unmuteJob } from "../../../lib/app/operate/operator.ts";
import { DEFAULTS, type JobDefinition } from "../../../lib/core/jobs/job.ts";
import { HOUR_MS } from "../../../lib/core/time.ts";
import type { AttemptEnd } from "../../../lib/ports/attempts.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack, toldIn } from "../../support/live-stack.ts";
import { failure, msOf } from "../../support/path.ts";

const DONE: AttemptEnd = { kind: "returned" };

const job: JobDefinition = definition({
  name: "report",
  schedules: ["0 * * * *"],
  retry: { ...DEFAULTS.retry, retries: 0 },
  alerts: { ...DEFAULTS.alerts, remindEveryMs: 2 * HOUR_MS },
});

const started = async (): Promise<LiveStack> => {
  const stack = await liveStack({ now: "2027-03-01T00:31:00Z", jobs: [job] });
  stack.handle(() => DONE);
  return stack;
};

const muteUntil = (stack: LiveStack, iso: string) =>
  muteJob(stack.deps, job, { untilMs: msOf(iso), reason: "database moves" });

test("in a planned silence runs go on and nothing is told; what is still wrong at its end is told once", async () => {
  const stack = await started();
  await muteUntil(stack, "2027-03-01T05:40:00Z");
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T05:40:00Z");
  expect(stack.events.filter(({ state }) => state === "dead").length).toBe(5);
  expect(toldIn(stack)).toEqual([]);
  await stack.playUntil("2027-03-01T06:50:00Z");
  expect(toldIn(stack)).toEqual(["03-01T05:41 page failing x5"]);
});

test("what began and ended in a planned silence is not told at all", async () => {
  const stack = await started();
  await muteUntil(stack, "2027-03-01T05:40:00Z");
  stack.handle(({ slotMs }) => (slotMs === msOf("2027-03-01T02:00:00Z") ? failure() : DONE));
  await stack.playUntil("2027-03-01T08:00:00Z");
  expect(toldIn(stack)).toEqual([]);
});

test("what was told before a planned silence and ends in it is told to be over at its end", async () => {
  const stack = await started();
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T01:30:00Z");
  await muteUntil(stack, "2027-03-01T09:40:00Z");
  await stack.playUntil("2027-03-01T05:30:00Z");
  stack.handle(() => DONE);
  await stack.playUntil("2027-03-01T11:00:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T09:41 notify recovered"]);
});

test("a planned silence that is ended early tells what is wrong within two minutes", async () => {
  const stack = await started();
  await muteUntil(stack, "2027-03-02T00:00:00Z");
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T02:30:00Z");
  await unmuteJob(stack.deps, job);
  await stack.playUntil("2027-03-01T02:40:00Z");
  expect(toldIn(stack)).toEqual(["03-01T02:31 notify failing x2"]);
  await expect(unmuteJob(stack.deps, job)).rejects.toMatchObject({ code: "not_muted" });
});

test("the flips of a planned silence are recorded, told or not", async () => {
  const stack = await started();
  await muteUntil(stack, "2027-03-01T05:40:00Z");
  stack.handle(({ slotMs }) => (slotMs === msOf("2027-03-01T02:00:00Z") ? failure() : DONE));
  await stack.playUntil("2027-03-01T04:00:00Z");
  const flips = stack.table.items().filter(({ sk }) => String(sk).startsWith("F#"));
  expect(flips.map(({ flip }) => JSON.parse(String(flip)))).toMatchObject([
    { n: 1, from: "up", to: "failing" },
    { n: 2, from: "failing", to: "up" },
  ]);
});
