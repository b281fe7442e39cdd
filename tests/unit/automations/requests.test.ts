import { expect, test } from "vitest";
import {
  createFor,
  deleteAutomationOf,
  editAutomationOf,
  listAutomationsOf,
} from "../../../lib/app/automations/automations.ts";
import { pauseJob } from "../../../lib/app/operate/operator.ts";
import { jobOfSubject } from "../../../lib/app/subjects.ts";
import { AUTOMATION_LIMITS } from "../../../lib/core/automations/automation.ts";
import { Conflict, InvalidInput } from "../../../lib/core/errors.ts";
import { definition } from "../../support/definitions.ts";
import { setup } from "../../support/path.ts";
import { create, deployed, ends, watchUntil } from "./support.ts";

test("an automation is made with what was asked for, or with the job's input, in UTC, under an id of its own", async () => {
  const env = await deployed();
  const made = await createFor(env.deps, { job: "report", owner: "ann", cron: "0 9 * * 1-5" });
  expect(made).toMatchObject({ owner: "ann", timezone: "UTC", input: null, paused: null });
  expect(made.id).toMatch(/^[a-z][a-z0-9]{4,14}$/);
  expect(made.nextSlot).toBe("2026-12-02T09:00:00Z");
  const told = { id: "x", cron: "0 9 * * *", timezone: "Asia/Shanghai", input: { city: "Xi'an" } };
  expect(await create(env, told)).toMatchObject({ ...told, nextSlot: "2026-12-02T01:00:00Z" });
});

test.each([
  ["a job that is not there", { job: "rapport" }, "unknown_job", "job"],
  ["an id with capitals", { id: "Noon" }, "invalid_automation", "id"],
  ["an owner without a name", { owner: " " }, "invalid_automation", "owner"],
  ["a cron of every minute", { cron: "* * * * *" }, "too_frequent", "cron"],
  ["one that fires twice within an hour", { cron: "0,50 9 * * *" }, "too_frequent", "cron"],
  ["an interval", { cron: "every(2 hours)" }, "invalid_schedule", "cron"],
  ["a single instant", { cron: "at(2027-01-01T00:00)" }, "invalid_schedule", "cron"],
  ["a year that is over", { cron: "cron(0 9 1 1 ? 2020)" }, "never_fires", "cron"],
  ["no cron at all", { cron: "daily" }, "invalid_schedule", "cron"],
  ["a zone that does not exist", { timezone: "Mars/Base" }, "unknown_timezone", "timezone"],
  ["an input that is too large", { input: "x".repeat(5_000) }, "too_large", "input"],
])("%s is refused with the field, and nothing is written", async (_, change, code, field) => {
  const env = await deployed();
  const before = env.table.items();
  const refusal = await create(env, change).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(InvalidInput);
  expect(refusal).toMatchObject({ code, field });
  expect(env.table.items()).toEqual(before);
});

test("the same request makes one automation, and another one under its id is refused", async () => {
  const env = await deployed();
  const first = await create(env);
  await env.moveBy(5_000);
  expect(await create(env)).toEqual(first);
  await expect(create(env, { cron: "0 13 * * *" })).rejects.toMatchObject({ code: "already_exists" });
  await expect(create(env, { owner: "bob" })).rejects.toBeInstanceOf(Conflict);
  expect(await listAutomationsOf(env.deps, "ann")).toEqual([first]);
  expect(await listAutomationsOf(env.deps, "bob")).toEqual([]);
});

test("the id of a deleted automation is not used again: its history is kept under it", async () => {
  const env = await deployed();
  await create(env);
  await deleteAutomationOf(env.deps, { id: "noon" });
  await expect(create(env)).rejects.toMatchObject({ code: "already_exists" });
});

test("an owner has as many as may be; one that is deleted, or never came, makes room", async () => {
  const env = await deployed();
  const deps = { ...env.deps, limits: { ...AUTOMATION_LIMITS, perOwner: 2 } };
  const make = (id: string, owner = "ann") =>
    createFor(deps, { id, job: "report", owner, cron: "0 12 * * *" });
  await make("one");
  env.fail("write", "down", ({ sk }) => sk === "two");
  await expect(make("two")).rejects.toThrow("down");
  await expect(make("three")).rejects.toMatchObject({ code: "too_many" });
  await make("four", "bob");
  await env.moveBy(21 * 60_000);
  await make("three");
  await expect(make("five")).rejects.toMatchObject({ code: "too_many" });
  await deleteAutomationOf(deps, { id: "one", owner: "ann" });
  await make("five");
  expect((await listAutomationsOf(deps, "ann")).map(({ id }) => id)).toEqual(["five", "three"]);
});

test("somebody else's automation cannot be seen, changed or deleted", async () => {
  const env = await deployed();
  await create(env);
  const his = { id: "noon", owner: "bob" };
  await expect(editAutomationOf(env.deps, his, { input: 1 })).rejects.toMatchObject({
    code: "unknown_automation",
  });
  await expect(deleteAutomationOf(env.deps, his)).rejects.toMatchObject({ code: "unknown_automation" });
  await expect(deleteAutomationOf(env.deps, { id: "none" })).rejects.toMatchObject({ field: "id" });
});

test("an edit changes what is given, is checked as a new one is, and is nothing where it changes nothing", async () => {
  const env = await deployed();
  await create(env, { input: { a: 1 } });
  const edited = await editAutomationOf(env.deps, { id: "noon" }, { cron: "0 15 * * *" });
  expect(edited).toMatchObject({ cron: "0 15 * * *", input: { a: 1 }, nextSlot: "2026-12-01T15:00:00Z" });
  await expect(editAutomationOf(env.deps, { id: "noon" }, { cron: "*/5 * * * *" })).rejects.toMatchObject({
    code: "too_frequent",
  });
  env.writes.length = 0;
  await editAutomationOf(env.deps, { id: "noon" }, { cron: "0 15 * * *", input: { a: 1 } });
  expect(env.writes).toEqual([]);
});

test("of two edits at once both take effect, one after the other", async () => {
  const env = await deployed();
  await create(env);
  env.meanwhile(
    "write",
    ({ sk }) => sk === "noon",
    () => editAutomationOf(env.deps, { id: "noon" }, { input: "other" }),
  );
  await editAutomationOf(env.deps, { id: "noon" }, { cron: "0 15 * * *" });
  const [view] = await listAutomationsOf(env.deps, "ann");
  expect(view).toMatchObject({ cron: "0 15 * * *", input: "other" });
});

test.each(["lost", "repeated"] as const)(
  "an answer that is %s leaves one automation, one edit and one deletion",
  async (fault) => {
    const env = await deployed();
    const again = async (act: () => Promise<unknown>): Promise<void> => {
      env.fail("write", fault, ({ sk }) => sk === "noon");
      await act().catch(act);
    };
    await again(() => create(env));
    await again(() => editAutomationOf(env.deps, { id: "noon" }, { cron: "0 15 * * *" }));
    expect(await listAutomationsOf(env.deps, "ann")).toMatchObject([{ cron: "0 15 * * *" }]);
    await again(() => deleteAutomationOf(env.deps, { id: "noon" }));
    expect(await listAutomationsOf(env.deps, "ann")).toEqual([]);
  },
);

test("a pause is its own: it is shown, its slots are skipped, and the job's pause does not bind it", async () => {
  const env = await deployed();
  await create(env);
  await create(env, { id: "other" });
  const [job] = env.deps.jobs.all;
  const mine = await jobOfSubject(env.deps, "automation:noon");
  if (mine === undefined || job === undefined) throw new Error("no job");
  await pauseJob(env.deps, mine, { reason: "holiday" });
  await pauseJob(env.deps, job, { reason: "not for automations" });
  expect((await listAutomationsOf(env.deps, "ann"))[0]?.paused).toMatchObject({ reason: "holiday" });
  await watchUntil(env, "2026-12-01T12:05:00Z");
  expect(ends(env)).toEqual(["noon 12-01T12:00: skipped", "other 12-01T12:00: queued"]);
});

test("of two owners who make the same id at once one has it, and the other keeps no place for it", async () => {
  const env = await deployed();
  const deps = { ...env.deps, limits: { ...AUTOMATION_LIMITS, perOwner: 1 } };
  const request = { id: "noon", job: "report", cron: "0 12 * * *" };
  env.meanwhile(
    "write",
    ({ sk }) => sk === "noon",
    () => createFor(deps, { ...request, owner: "bob" }),
  );
  await expect(createFor(deps, { ...request, owner: "ann" })).rejects.toMatchObject({
    code: "already_exists",
  });
  expect(await listAutomationsOf(deps, "bob")).toHaveLength(1);
  await createFor(deps, { ...request, id: "other", owner: "ann" });
});

test("a monitor, which runs elsewhere, has no run-time schedules", async () => {
  const env = await deployed(definition({ name: "report", monitor: { endWithinMs: 60_000 } }));
  await expect(create(env)).rejects.toMatchObject({ code: "runs_elsewhere" });
});

test("automations whose job a deploy has removed are listed as orphaned, and go on when it comes back", async () => {
  const env = await deployed();
  await create(env);
  const now = new Date(env.now()).toISOString();
  const without = setup({ now, jobs: [definition({ name: "other" })], table: env.table });
  const orphan = { id: "noon", job: "report", orphaned: true, nextSlot: null };
  expect(await listAutomationsOf(without.deps, "ann")).toMatchObject([orphan]);
  expect(await listAutomationsOf(env.deps, "ann")).toMatchObject([
    { id: "noon", orphaned: false, nextSlot: "2026-12-01T12:00:00Z" },
  ]);
});
