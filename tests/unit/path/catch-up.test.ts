import { expect, test } from "vitest";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, type Setup, setup } from "../../support/path.ts";

// After an outage several slots of a job are caught up at once. None of them stands in another's way.

const START = "2026-10-24T22:00:30Z";
const all = { policy: "all", max: 100, withinMs: 24 * HOUR_MS } as const;
const jobOf = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "job", schedules: ["*/5 * * * *"], overlap: "skip", misfire: all, ...changes });

/** A deployment that the watchdog has seen, then nothing for so long, then its next pass. */
const afterOutage = async (job: JobDefinition, backIso: string): Promise<Setup> => {
  const env = setup({ now: START, jobs: [job] });
  await watch(env.deps);
  await env.moveTo(backIso);
  env.handle(() => ({ kind: "returned" }));
  await watch(env.deps);
  return env;
};

/** Every message that is there is worked on, and what that sends, in turn. */
const drain = async (env: Setup): Promise<void> => {
  for (let message = env.sent.shift(); message !== undefined; message = env.sent.shift()) {
    await env.work(message.message);
  }
};

const timeOf = (ms: number): string => shortIsoOf(ms).slice(11, 16);
const ran = (env: Setup): readonly string[] => env.attempts.map(({ request }) => timeOf(request.slotMs));
const states = (env: Setup): readonly (readonly [string, unknown])[] =>
  env.table
    .items()
    .filter(({ sk }) => String(sk).startsWith("R#"))
    .map((run) => [String(run["sk"]).slice(13, 18), run["st"]] as const)
    .sort();
const inOutage = ["22:05", "22:10", "22:15", "22:20", "22:25"];

test.each(["skip", { max: 2, whenFull: "skip" }] as const)(
  "with overlap %j, misfire all runs every slot of an outage, one after another in their order",
  async (overlap) => {
    const env = await afterOutage(jobOf({ overlap }), "2026-10-24T22:28:00Z");
    expect(env.sent).toHaveLength(overlap === "skip" ? 1 : 2);
    await drain(env);
    expect(ran(env)).toEqual(inOutage);
    expect(states(env)).toEqual(inOutage.map((time) => [time, "succeeded"]));
    expect(await env.run(at("job", "2026-10-24T22:25:00Z"))).toMatchObject({ trigger: "watchdog" });
    expect(await env.lock("job")).toMatchObject({ held: 0 });
  },
);

test("a slot that comes in time while others are caught up waits for one of them, and is not skipped", async () => {
  const env = await afterOutage(jobOf(), "2026-10-24T22:28:00Z");
  await env.moveTo("2026-10-24T22:30:00Z");
  expect(await env.deliver("2026-10-24T22:30:00Z", ["job"])).toEqual(["waiting"]);
  await env.moveTo("2026-10-24T22:35:00Z");
  expect(await env.deliver("2026-10-24T22:35:00Z", ["job"], "next")).toEqual(["skipped"]);
  expect(await env.run(at("job", "2026-10-24T22:35:00Z"))).toMatchObject({ reason: "queue full" });
  await drain(env);
  expect(ran(env)).toEqual(["22:05", "22:30", "22:10", "22:15", "22:20", "22:25"]);
});

test("the late event of a slot that is caught up, or that was, runs nothing", async () => {
  const env = await afterOutage(jobOf(), "2026-10-24T22:28:00Z");
  expect(await env.deliver("2026-10-24T22:05:00Z", ["job"], "late-1")).toEqual(["duplicate"]);
  expect(await env.deliver("2026-10-24T22:25:00Z", ["job"], "late-2")).toEqual(["waiting"]);
  await drain(env);
  for (const time of inOutage) await env.deliver(`2026-10-24T${time}:00Z`, ["job"], `late ${time}`);
  await drain(env);
  expect(ran(env)).toEqual(inOutage);
});

test("with misfire latest the one caught-up slot is a live one: it skips for a live run, as its event would have", async () => {
  const job = jobOf({ misfire: { policy: "latest", max: 1 } });
  const env = setup({ now: START, jobs: [job] });
  await watch(env.deps);
  await env.moveTo("2026-10-24T22:05:01Z");
  await env.deliver("2026-10-24T22:05:00Z", ["job"]);
  await env.moveTo("2026-10-24T22:12:30Z");
  await watch(env.deps);
  expect(await env.run(at("job", "2026-10-24T22:10:00Z"))).toMatchObject({
    st: "skipped",
    blockedBy: "job~20261024T220500Z",
  });
});

test("with queue, misfire all puts every slot of an outage in line, and sixteen that come in time still find a place", async () => {
  const env = await afterOutage(jobOf({ overlap: "queue" }), "2026-10-25T00:28:00Z");
  const lateSlots = 29;
  for (let n = 0; n < 16; n++) {
    const slotMs = msOf("2026-10-25T00:30:00Z") + n * 5 * MINUTE_MS;
    await env.moveTo(shortIsoOf(slotMs));
    expect([n, await env.deliver(shortIsoOf(slotMs), ["job"], `request-${n}`)]).toEqual([n, ["waiting"]]);
  }
  await drain(env);
  expect(env.attempts).toHaveLength(lateSlots + 16);
  const slots = env.attempts.map(({ request }) => request.slotMs);
  expect(slots).toEqual(slots.toSorted((left, right) => left - right));
});

test("with replace, of the slots that are caught up the newest runs, and the others are replaced", async () => {
  const env = await afterOutage(jobOf({ overlap: "replace" }), "2026-10-24T22:28:00Z");
  await drain(env);
  expect(ran(env)).toEqual(["22:25"]);
  expect(states(env).map(([, st]) => st)).toEqual([...Array(4).fill("cancelled"), "succeeded"]);
});

test("a pass that crashes while it catches up is repeated: every slot runs, and none twice", async () => {
  for (let step = 0; step < 24; step++) {
    const env = setup({ now: START, jobs: [jobOf()] });
    await watch(env.deps);
    await env.moveTo("2026-10-24T22:28:00Z");
    env.handle(() => ({ kind: "returned" }));
    let calls = 0;
    const dying = new Proxy(env.deps.table, {
      get: (table, name, receiver) =>
        name === "write" && calls++ >= step
          ? () => Promise.reject(new Error("killed"))
          : Reflect.get(table, name, receiver),
    });
    await watch({ ...env.deps, table: dying }).catch(() => undefined);
    await watch(env.deps);
    await drain(env);
    for (let minute = 0; minute < 8; minute++) {
      await env.moveBy(MINUTE_MS);
      if (env.now() < msOf("2026-10-24T22:31:00Z")) await watch(env.deps);
      await drain(env);
    }
    expect([step, [...ran(env)].sort()]).toEqual([step, inOutage]);
  }
});

test("two passes that catch up at once run each slot once", async () => {
  const env = setup({ now: START, jobs: [jobOf()] });
  await watch(env.deps);
  await env.moveTo("2026-10-24T22:28:00Z");
  env.handle(() => ({ kind: "returned" }));
  await Promise.all([watch(env.deps), watch(env.deps)]);
  await drain(env);
  expect([...ran(env)].sort()).toEqual(inOutage);
});

test("a caught-up slot whose start deadline passes while it waits is expired, and the next one runs", async () => {
  const env = await afterOutage(jobOf({ startDeadlineMs: HOUR_MS }), "2026-10-24T22:28:00Z");
  await env.moveTo("2026-10-24T23:12:00Z");
  await drain(env);
  expect(states(env)).toEqual([
    ["22:05", "expired"],
    ["22:10", "expired"],
    ["22:15", "succeeded"],
    ["22:20", "succeeded"],
    ["22:25", "succeeded"],
  ]);
});

test("a caught-up slot that ends dead does not keep those behind it waiting", async () => {
  const env = await afterOutage(jobOf(), "2026-10-24T22:28:00Z");
  env.handle(() => ({ ...failure(), permanent: true }) as ReturnType<typeof failure>);
  await drain(env);
  expect(states(env)).toEqual(inOutage.map((time) => [time, "dead"]));
});
