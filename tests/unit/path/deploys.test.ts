import { expect, test } from "vitest";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { at, type Setup, setup } from "../../support/path.ts";

// A deploy changes a job while some of its runs are claimed, and meets them all the same.

const SLOT = "2026-10-24T21:40:00Z";
const job = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "job", schedules: ["*/20 * * * *"], ...changes });

/** The deployment before, and one after it over the same table, with the clock where the first one stood. */
const deployed = (before: Setup, changes: Partial<JobDefinition>): Setup =>
  setup({
    now: new Date(before.now()).toISOString(),
    jobs: [job(changes)],
    table: before.table,
    name: "new",
  });

const watchFor = async (env: Setup, minutes: number): Promise<void> => {
  for (let minute = 0; minute < minutes; minute++) {
    await env.moveBy(MINUTE_MS);
    await watch(env.deps);
  }
};

test.each(["skip", "allow"] as const)(
  "with overlap %s, a slot that was claimed and not sent before its schedule changed is sent all the same",
  async (overlap) => {
    const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job({ overlap })] });
    await watch(before.deps);
    await before.moveTo("2026-10-24T21:40:01Z");
    before.fail("send", "down");
    await expect(before.deliver(SLOT, ["job"])).rejects.toThrow("down");
    const after = deployed(before, { overlap, schedules: ["0 3 * * *"] });
    await watchFor(after, 10);
    after.handle(() => ({ kind: "returned" }));
    await after.work(after.lastSent());
    expect(await after.run(at("job", SLOT))).toMatchObject({ st: "succeeded" });
  },
);

test.each([
  { after: "the schedule changed", changes: { schedules: ["0 3 * * *"] } },
  { after: "its job was removed and came back", changes: undefined },
])(
  "a slot that an old dispatcher claims and does not send after $after is sent all the same",
  async ({ changes }) => {
    const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job()] });
    await watch(before.deps);
    await before.moveTo("2026-10-24T21:40:01Z");
    const other = setup({
      now: new Date(before.now()).toISOString(),
      jobs: [definition({ name: "other" })],
      table: before.table,
      name: "between",
    });
    if (changes === undefined) await watch(other.deps);
    const after = deployed(before, changes ?? {});
    await watch(after.deps);
    before.fail("send", "down");
    await expect(before.deliver(SLOT, ["job"])).rejects.toThrow("down");
    await watchFor(after, 10);
    after.handle(() => ({ kind: "returned" }));
    await after.work(after.lastSent());
    expect(await after.run(at("job", SLOT))).toMatchObject({ st: "succeeded" });
  },
);

test("a slot that an old dispatcher claims and does not send after its job was removed ends cancelled", async () => {
  const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job()] });
  await watch(before.deps);
  await before.moveTo("2026-10-24T21:40:01Z");
  const after = setup({
    now: new Date(before.now()).toISOString(),
    jobs: [definition({ name: "other" })],
    table: before.table,
    name: "new",
  });
  await watch(after.deps);
  before.fail("send", "down");
  await expect(before.deliver(SLOT, ["job"])).rejects.toThrow("down");
  await watchFor(after, 10);
  expect(await after.run(at("job", SLOT))).toMatchObject({ st: "cancelled", reason: "job removed" });
});

test("what waits or holds in the lock of a job that allows overlap from now on gets its record, and runs", async () => {
  const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job({ overlap: "queue" })] });
  await watch(before.deps);
  await before.moveTo("2026-10-24T21:40:01Z");
  await before.deliver(SLOT, ["job"]);
  await before.moveTo("2026-10-24T22:00:01Z");
  await before.deliver("2026-10-24T22:00:00Z", ["job"]);
  await before.moveTo("2026-10-24T22:03:00Z");
  await watch(before.deps);

  const after = deployed(before, { overlap: "allow" });
  after.handle(() => ({ kind: "returned" }));
  await after.work(before.lastSent());
  expect(await after.run(at("job", SLOT))).toMatchObject({ st: "succeeded" });
  for (let pass = 0; pass < 20; pass++) {
    await watchFor(after, 10);
    for (const { message } of after.sent.splice(0)) await after.work(message);
  }
  expect(await after.run(at("job", "2026-10-24T22:00:00Z"))).toMatchObject({ st: "succeeded" });
  expect(await after.lock("job")).toMatchObject({ held: 0 });
});

test("a limit of several lets a run by hand in while there is room", async () => {
  const env = setup({ now: "2026-10-24T21:40:01Z", jobs: [job({ overlap: { max: 2, whenFull: "skip" } })] });
  await env.deliver(SLOT, ["job"]);
  const request = { job: job({ overlap: { max: 2, whenFull: "skip" } }) };
  expect(await makeRunByHand(env.deps)(request)).toMatchObject({ kind: "accepted" });
  expect(await makeRunByHand(env.deps)(request)).toMatchObject({
    kind: "accepted",
    notice: "it waits for job~20261024T214000Z",
  });
});

test("over a thousand missed slots are recorded although the last of them is claimed meanwhile", async () => {
  const minutely = definition({ name: "job", schedules: ["* * * * *"], misfire: { policy: "skip", max: 1 } });
  const env = setup({ now: "2026-10-24T00:00:30Z", jobs: [minutely] });
  await watch(env.deps);
  await env.moveTo("2026-10-24T23:59:30Z");
  env.meanwhile(
    "write",
    ({ sk }) => sk === "R#2026-10-24T23:57:00.000Z",
    () =>
      env
        .deliver("2026-10-24T23:57:00Z", ["job"])
        .then(async () =>
          env.put({ pk: "J#job", sk: "R#2026-10-24T23:57:00.000Z" }, { st: "running", ep: 1, fence: 1 }),
        ),
  );
  await watch(env.deps);
  expect(await env.run(at("job", "2026-10-24T23:56:00Z"))).toMatchObject({
    st: "missed",
    rangeFromMs: Date.parse("2026-10-24T00:01:00Z"),
  });
});

test.each(["skip", "allow"] as const)(
  "with overlap %s, a run whose message went with its pool is sent to the pool that its job has now",
  async (overlap) => {
    const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job({ overlap, pool: "old" })] });
    await watch(before.deps);
    await before.moveTo("2026-10-24T21:40:01Z");
    await before.deliver(SLOT, ["job"]);
    expect(before.sent.map(({ pool }) => pool)).toEqual(["old"]);
    const after = deployed(before, { overlap, pool: "new" });
    await watchFor(after, 10);
    expect(new Set(after.sent.map(({ pool }) => pool))).toEqual(new Set(["new"]));
    after.handle(() => ({ kind: "returned" }));
    await after.work(after.lastSent());
    expect(await after.run(at("job", SLOT))).toMatchObject({ st: "succeeded" });
  },
);

test("a run between two attempts goes on in the pool that its job has now", async () => {
  const before = setup({ now: "2026-10-24T21:39:00Z", jobs: [job({ pool: "old", overlap: "skip" })] });
  await watch(before.deps);
  await before.moveTo("2026-10-24T21:40:01Z");
  await before.deliver(SLOT, ["job"]);
  before.handle(() => ({ kind: "threw", permanent: false, error: { name: "Error", message: "not yet" } }));
  await before.work(before.lastSent());
  expect(await before.run(at("job", SLOT))).toMatchObject({ st: "waiting" });
  const after = deployed(before, { pool: "new", overlap: "skip" });
  after.handle(() => ({ kind: "returned" }));
  await watchFor(after, 30);
  expect(new Set(after.sent.map(({ pool }) => pool))).toEqual(new Set(["new"]));
  await after.work(after.lastSent());
  expect(await after.run(at("job", SLOT))).toMatchObject({ st: "succeeded" });
});
