import { expect, test } from "vitest";
import { deleteAutomationOf, editAutomationOf } from "../../../lib/app/automations/automations.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { readAlert } from "../../../lib/core/alerts/outbox.ts";
import { agendaIn, idsIn, moveLooked, packedPages } from "../../../lib/core/automations/agenda.ts";
import { AGENDA_KEY, automationKey, CONTROL_KEY, dueRange } from "../../../lib/core/items.ts";
import { definition } from "../../support/definitions.ts";
import { itemBytes } from "../../support/item-size.ts";
import { at, msOf, setup } from "../../support/path.ts";
import { create, deployed, ends, NOON, REPORT, watchUntil } from "./support.ts";

const SUBJECT = "automation:noon";

test("where nobody made an automation, a pass costs one read more", async () => {
  const env = await deployed();
  env.calls.length = 0;
  await watchUntil(env, "2026-12-01T11:01:00Z");
  expect(env.calls.filter((call) => call.includes("agenda"))).toEqual(["get agenda"]);
});

test("a slot that nothing delivered is dispatched two minutes after it, and the handler gets the automation's input", async () => {
  const env = await deployed();
  await create(env, { input: { city: "Xi'an" } });
  await watchUntil(env, "2026-12-01T12:02:00Z");
  expect(ends(env)).toEqual([]);
  await watchUntil(env, "2026-12-01T12:03:00Z");
  expect(await env.run(at(SUBJECT, NOON))).toMatchObject({ st: "queued", trigger: "watchdog" });
  env.handle(() => ({ kind: "returned", result: 1 }));
  await env.work(env.lastSent());
  expect(env.lastAttempt().request).toMatchObject({ job: "report", input: { city: "Xi'an" } });
  expect(ends(env)).toEqual(["noon 12-01T12:00: succeeded"]);
});

test("its event and the watchdog make one run", async () => {
  const env = await deployed();
  await create(env);
  await env.moveTo("2026-12-01T12:00:01Z");
  expect(await env.deliver(NOON, [SUBJECT])).toEqual(["claimed"]);
  expect(env.calls.filter((call) => call.startsWith("get") && call.includes("control"))).toHaveLength(1);
  await watchUntil(env, "2026-12-01T12:04:01Z");
  expect(await env.deliver(NOON, [SUBJECT], "late")).toEqual(["duplicate"]);
  expect(await env.deliver("2026-12-01T13:00:00Z", [SUBJECT])).toEqual(["off-schedule"]);
  expect(ends(env)).toEqual(["noon 12-01T12:00: queued"]);
});

test("each day is planned ahead by the walk: all slots of a week are dispatched", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "six", cron: "0 */6 * * *", owner: "bob" });
  await watchUntil(env, "2026-12-08T11:00:00Z", 10);
  const days = [1, 2, 3, 4, 5, 6, 7];
  expect(ends(env).filter((end) => end.startsWith("noon"))).toEqual(
    days.map((day) => `noon 12-0${day}T12:00: queued`),
  );
  expect(ends(env).filter((end) => end.startsWith("six"))).toHaveLength(7 * 4);
});

test("a created one is entered for as long as a walk that has not seen it may have planned, and its record comes last", async () => {
  const env = await deployed();
  env.writes.length = 0;
  await create(env, { cron: "0 * * * *" });
  const keys = env.writes.map(({ key }) => `${key.pk.split("#")[0]} ${key.sk}`);
  expect(keys.slice(0, 2)).toEqual(["W agenda", "V owner"]);
  expect(keys.filter((key) => key === "G E#noon")).toHaveLength(37);
  expect(keys.at(-1)).toBe("U noon");
});

test.each([0, 1, 2, 3])(
  "a creation that ends after %i steps fires nothing, and goes on when it is asked again",
  async (steps) => {
    const env = await deployed();
    let written = 0;
    env.fail("write", "down", () => written++ >= steps, 1);
    await expect(create(env)).rejects.toThrow("down");
    await watchUntil(env, "2026-12-01T12:05:00Z");
    expect(ends(env)).toEqual([]);
    await create(env, { cron: "0 12 * * *" });
    await watchUntil(env, "2026-12-02T12:15:00Z", 10);
    expect(ends(env)).toEqual(["noon 12-02T12:00: queued"]);
  },
);

test("an edited schedule starts from the edit: what was due before stays due, and nothing fires twice", async () => {
  const env = await deployed();
  await create(env);
  await watchUntil(env, "2026-12-01T12:01:00Z");
  await editAutomationOf(env.deps, { id: "noon" }, { cron: "30 12 * * *" });
  await watchUntil(env, "2026-12-02T13:01:00Z", 10);
  expect(ends(env)).toEqual([
    "noon 12-01T12:00: queued",
    "noon 12-01T12:30: queued",
    "noon 12-02T12:30: queued",
  ]);
});

test("a new cron makes up for nothing before the edit, even where the watchdog was away", async () => {
  const env = await deployed();
  await create(env);
  await env.moveTo("2026-12-01T13:01:00Z");
  await editAutomationOf(env.deps, { id: "noon" }, { cron: "30 12 * * *" });
  await watchUntil(env, "2026-12-01T13:05:00Z");
  expect(ends(env)).toEqual(["noon 12-01T12:00: queued"]);
});

test("slots before a deletion are skipped where nobody dispatched them; what was claimed goes on", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "claimed" });
  await env.moveTo("2026-12-01T12:00:30Z");
  await env.deliver(NOON, ["automation:claimed"]);
  for (const id of ["noon", "claimed"]) await deleteAutomationOf(env.deps, { id });
  await watchUntil(env, "2026-12-01T12:05:30Z");
  expect(ends(env)).toEqual(["claimed 12-01T12:00: queued", "noon 12-01T12:00: skipped"]);
  expect(await env.run(at(SUBJECT, NOON))).toMatchObject({ reason: "deleted" });
  env.handle(() => ({ kind: "returned", result: 1 }));
  await env.work(env.lastSent());
  await watchUntil(env, "2026-12-02T12:05:30Z");
  expect(ends(env)).toEqual(["claimed 12-01T12:00: succeeded", "noon 12-01T12:00: skipped"]);
});

test("a claim that was not sent is mended although its slot was edited away meanwhile", async () => {
  const env = await deployed({ ...REPORT, overlap: "skip" });
  await create(env);
  await env.moveTo("2026-12-01T12:00:00Z");
  env.fail("send", "down");
  await expect(env.deliver(NOON, [SUBJECT])).rejects.toThrow("down");
  // Its clock is behind: for it, the slot is still to come.
  env.skew(-20_000);
  await editAutomationOf(env.deps, { id: "noon" }, { cron: "0 15 * * *" });
  env.skew(0);
  await watchUntil(env, "2026-12-01T12:04:00Z");
  expect(env.sent.map(({ message }) => message.slotKey)).toEqual([at(SUBJECT, NOON).slotKey]);
});

test.each([
  ["latest", 1, ["missed", "missed", "missed", "queued"]],
  ["latest", 2, ["missed", "missed", "queued", "queued"]],
  ["skip", 1, ["missed", "missed", "missed", "missed"]],
] as const)(
  "after an outage of two days its misfire policy (%s, %i) is that of its job, and nothing is left out",
  async (policy, max, states) => {
    const env = await deployed({ ...REPORT, misfire: { policy, max, withinMs: 48 * 3_600_000 } });
    await create(env, { cron: "0 0,12 * * *" });
    await watchUntil(env, "2026-12-01T11:10:00Z");
    await env.moveTo("2026-12-03T11:00:00Z");
    for (let pass = 0; pass < 3; pass++) {
      await watch(env.deps);
      await env.moveBy(60_000);
    }
    expect(ends(env)).toEqual(
      ["01T12", "02T00", "02T12", "03T00"].map((slot, n) => `noon 12-${slot}:00: ${states[n]}`),
    );
  },
);

test("the pass that fails looks again from where it began, and dispatches once", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "other" });
  await watchUntil(env, "2026-12-01T12:02:00Z");
  const looked = async () => (await env.table.get(AGENDA_KEY, { consistent: true }))?.["lookedUntilMs"];
  const before = await looked();
  env.fail("send", "down", () => true, 2);
  await env.moveBy(60_000);
  await expect(watch(env.deps)).rejects.toThrow("2 looks");
  expect(await looked()).toBe(before);
  await watchUntil(env, "2026-12-01T12:06:00Z");
  expect(await looked()).toBe(msOf("2026-12-01T12:04:00Z"));
  expect(ends(env)).toEqual(["noon 12-01T12:00: queued", "other 12-01T12:00: queued"]);
  expect(new Set(env.sent.map(({ message }) => message.subject))).toEqual(
    new Set(["automation:noon", "automation:other"]),
  );
});

test("one that nobody can read is said, and keeps the watchdog from none of the others", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "broken" });
  await env.put(automationKey("broken"), { periods: "no JSON" });
  await watchUntil(env, "2026-12-01T12:05:00Z");
  expect(ends(env)).toEqual(["noon 12-01T12:00: queued"]);
  expect(env.notices).toContainEqual({
    code: "automation-unreadable",
    fields: { id: "broken", why: expect.stringContaining("JSON") },
  });
});

test("with its job removed nothing is dispatched, and what was claimed ends as cancelled", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "claimed" });
  await watchUntil(env, NOON);
  await env.deliver(NOON, ["automation:claimed"]);
  const later = setup({
    now: "2026-12-01T12:01:00Z",
    jobs: [definition({ name: "other" })],
    table: env.table,
  });
  await watchUntil(later, "2026-12-01T12:10:00Z");
  expect(ends(env)).toEqual(["claimed 12-01T12:00: cancelled"]);
});

test("each has a health of its own, which its job does not share", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "well" });
  env.handle(({ runId }) =>
    runId.startsWith("automation:noon")
      ? { kind: "threw", permanent: true, error: { name: "Error", message: "no such city" } }
      : { kind: "returned", result: 1 },
  );
  await watchUntil(env, "2026-12-01T12:03:00Z");
  for (const { message } of [...env.sent]) await env.work(message);
  await watchUntil(env, "2026-12-01T12:20:00Z");
  const told = env.table.items().filter(({ sk }) => sk === "alert");
  expect(told.map(({ alert }) => JSON.parse(String(alert)))).toMatchObject([
    { kind: "failed", job: "report", runId: "automation:noon~20261201T120000Z" },
  ]);
  const kept = env.table.items().filter(({ health }) => health !== undefined);
  expect(kept.map(({ pk, sk }) => `${pk}/${sk}`)).toEqual(["J#automation:noon/H"]);
});

test("one that fails so often in a row pauses itself, and neither its job nor another of its schedules", async () => {
  const env = await deployed({ ...REPORT, alerts: { ...REPORT.alerts, pauseAfter: 2 } });
  await create(env, { cron: "0 12-20 * * *" });
  await create(env, { id: "well", cron: "0 12-20 * * *" });
  env.handle(({ runId }) =>
    runId.startsWith("automation:noon")
      ? { kind: "threw", permanent: true, error: { name: "Error", message: "no such city" } }
      : { kind: "returned", result: 1 },
  );
  let worked = 0;
  for (const hour of ["12", "13", "14"]) {
    await watchUntil(env, `2026-12-01T${hour}:03:00Z`);
    for (const { message } of env.sent.slice(worked)) await env.work(message);
    worked = env.sent.length;
    await watchUntil(env, `2026-12-01T${hour}:20:00Z`);
  }
  expect(ends(env)).toEqual([
    "noon 12-01T12:00: dead",
    "noon 12-01T13:00: dead",
    "noon 12-01T14:00: skipped",
    "well 12-01T12:00: succeeded",
    "well 12-01T13:00: succeeded",
    "well 12-01T14:00: succeeded",
  ]);
  const told = env.table.items().filter(({ sk }) => sk === "alert");
  expect(told.map(({ alert }) => JSON.parse(String(alert)))).toMatchObject([
    { kind: "failed", automation: "noon" },
    {
      kind: "paused",
      automation: "noon",
      reason: expect.stringMatching(/it fires again when it is resumed$/),
    },
  ]);
  // The job itself, as a whole, is not paused.
  expect(await env.table.get(CONTROL_KEY, { consistent: true })).toBeUndefined();
});

test("its health ends with it: what was told of a deleted one is told to be over, once, and nobody is reminded", async () => {
  const env = await deployed();
  await create(env);
  env.handle(() => ({ kind: "threw", permanent: true, error: { name: "Error", message: "no" } }));
  await watchUntil(env, "2026-12-01T12:03:00Z");
  await env.work(env.lastSent());
  await watchUntil(env, "2026-12-01T12:20:00Z");
  await deleteAutomationOf(env.deps, { id: "noon" });
  await watchUntil(env, "2026-12-03T12:20:00Z");
  const told = env.table.items().flatMap((item) => readAlert(item) ?? []);
  expect(told).toMatchObject([
    { kind: "failed", automation: "noon" },
    { kind: "removed", automation: "noon", topic: "notify" },
  ]);
});

test("a pass that could not judge its health looks again, and tells", async () => {
  const env = await deployed();
  await create(env);
  env.handle(() => ({ kind: "threw", permanent: true, error: { name: "Error", message: "no" } }));
  await watchUntil(env, NOON);
  await env.deliver(NOON, [SUBJECT]);
  await env.work(env.lastSent());
  await watchUntil(env, "2026-12-01T12:02:00Z");
  env.fail("write", "down", ({ sk }) => sk === "H");
  await env.moveBy(60_000);
  await expect(watch(env.deps)).rejects.toThrow("down");
  await watchUntil(env, "2026-12-01T12:05:00Z");
  expect(env.table.items().filter(({ sk }) => sk === "alert")).toHaveLength(1);
});

test("two watchdogs that pack the same piece of a walk differently leave out nobody", async () => {
  const env = await deployed();
  const ids = Array.from({ length: 100 }, (_, n) => `m${String(n).padStart(14, "0")}`);
  const minuteMs = msOf(NOON);
  for (const page of packedPages(new Map([[minuteMs, ids]]), 0)) await env.table.write(page);
  // The other one has seen one more, and dies after its first page.
  const another = "a".repeat(15);
  const [first] = packedPages(new Map([[minuteMs, [another, ...ids]]]), 0);
  if (first === undefined) throw new Error("no page");
  await env.table.write(first);
  const pages = await env.table.query(dueRange(minuteMs));
  expect(new Set(pages.flatMap(idsIn))).toEqual(new Set([another, ...ids]));
  expect(pages).toHaveLength(2);
});

test("a pass that is late never moves the agenda back", async () => {
  const env = await deployed();
  await create(env);
  const read = async () => agendaIn(await env.table.get(AGENDA_KEY, { consistent: true }));
  const seen = await read();
  if (seen === undefined) throw new Error("no agenda");
  await watchUntil(env, NOON);
  const reached = await read();
  const late = await env.table.write(moveLooked(seen, { lookedUntilMs: seen.lookedUntilMs + 60_000 }));
  expect(late.written).toBe(false);
  expect(await read()).toEqual(reached);
});

test("a walk that ends in the middle of a piece goes on where it began: its pages come before its place", async () => {
  const env = await deployed();
  for (const id of ["one", "two"]) await create(env, { id, cron: "0 6 * * *" });
  await watchUntil(env, "2026-12-01T23:00:00Z", 10);
  env.fail("write", "down", ({ sk }) => sk.startsWith("P#"));
  await expect(watchUntil(env, "2026-12-01T23:20:00Z")).rejects.toThrow("down");
  await watchUntil(env, "2026-12-03T06:14:00Z", 10);
  expect(ends(env).filter((end) => end.includes("12-03"))).toEqual([
    "one 12-03T06:00: queued",
    "two 12-03T06:00: queued",
  ]);
});

test("a record and a page stay within one write unit", async () => {
  const env = await deployed();
  await create(env, { id: "x".repeat(15), timezone: "America/Argentina/ComodRivadavia" });
  const ids = Array.from({ length: 60 }, (_, n) => `m${String(n).padStart(14, "0")}`);
  const pages = [...packedPages(new Map([[msOf(NOON), ids]]), 999)];
  expect(pages).toHaveLength(2);
  for (const page of pages) await env.table.write(page);
  const sizes = env.table.items().map(itemBytes);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_024);
});
