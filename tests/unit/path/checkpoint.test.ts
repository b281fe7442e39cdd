import { expect, test } from "vitest";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { CHECKPOINT, sideKey } from "../../../lib/core/items.ts";
import { CHECKPOINT_BYTES, checkpointOf } from "../../../lib/core/runs/kept.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, onSide, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-10-08T02:00:00Z";
const NOW = "2026-10-08T02:00:01Z";
const job = definition({ name: "long", schedules: ["0 * * * *"], overlap: "allow" });
const run = at("long", SLOT);

const started = async (env: Setup) => {
  const visit = env.work(env.lastSent());
  await env.settle();
  return { visit, attempt: env.lastAttempt(), services: env.lastAttempt().services };
};

const first = async () => {
  const env = setup({ now: NOW, jobs: [job] });
  await env.deliver(SLOT, ["long"]);
  return { env, ...(await started(env)) };
};

/** Another worker, by whose clock the lease of whatever ran before is over. */
const takenOver = async (env: Setup, now = "2026-10-08T02:05:00Z") => {
  const other = setup({ now, jobs: [job], table: env.table, name: now });
  const visit = other.work(env.lastSent());
  await other.settle();
  return { env: other, visit, services: other.lastAttempt().services };
};

test("what an attempt saves, the next one loads", async () => {
  const { env, attempt, services, visit } = await first();
  await services.saveState({ row: 1_000 });
  attempt.end(failure());
  await visit;
  await env.moveBy(60_000);
  expect(await (await started(env)).services.loadState()).toEqual({ row: 1_000 });
});

test("what was saved is kept when a dead run is retried", async () => {
  const { env, attempt, services, visit } = await first();
  await services.saveState("half");
  attempt.end({ kind: "threw", permanent: true, error: { name: "Error", message: "no use" } });
  await visit;
  expect(await env.run(run)).toMatchObject({ st: "dead" });
  await retryRun(env.deps, { job, occurrence: run });
  expect(await (await started(env)).services.loadState()).toBe("half");
});

test("an attempt loads what it saved itself, without asking the table", async () => {
  const { env, services } = await first();
  await services.saveState([1]);
  env.calls.length = 0;
  expect(await services.loadState()).toEqual([1]);
  expect(env.calls).toEqual([]);
});

test("the first attempt of a run has nothing to load, and does not ask the table for it", async () => {
  const { env, services } = await first();
  env.calls.length = 0;
  expect(await services.loadState()).toBeUndefined();
  expect(env.calls).toEqual([]);
});

test("each save is one write beside the run's record", async () => {
  const { env, services } = await first();
  env.calls.length = 0;
  await services.saveState(1);
  await services.saveState(2);
  expect(env.calls.map((call) => call.split("#").at(-1))).toEqual([CHECKPOINT, CHECKPOINT]);
});

test("saves that nobody waits for are stored in their order", async () => {
  const { env, services } = await first();
  await Promise.all([1, 2, 3].map((n) => services.saveState(n)));
  const { services: next } = await takenOver(env);
  expect(await next.loadState()).toBe(3);
});

test("a stale attempt cannot save once the next one has loaded, nor once it has saved", async () => {
  const { env, services: stale } = await first();
  await stale.saveState("of the first");
  const { services: next } = await takenOver(env);
  expect(await next.loadState()).toBe("of the first");
  await expect(stale.saveState("too late")).rejects.toThrow("another attempt has this run by now");
  await next.saveState("of the second");
  await expect(stale.saveState("too late")).rejects.toThrow("another attempt has this run by now");
  const { services: third } = await takenOver(env, "2026-10-08T02:10:00Z");
  expect(await third.loadState()).toBe("of the second");
});

test("a stale attempt that loads again learns that it is stale", async () => {
  const { env } = await first();
  const { services: second } = await takenOver(env);
  const { services: third } = await takenOver(env, "2026-10-08T02:10:00Z");
  await third.loadState();
  await expect(second.loadState()).rejects.toThrow("another attempt has this run by now");
});

test("a save is asked again while the table does not answer, and fails when it never does", async () => {
  const { env, services } = await first();
  env.fail("write", "down", onSide, 2);
  await services.saveState(1);
  env.fail("write", "down", onSide, 3);
  await expect(services.saveState(2)).rejects.toThrow("down");
  expect(await services.loadState()).toBe(1);
});

test.each(["lost", "repeated"] as const)("a save whose answer was %s is saved", async (fault) => {
  const { env, services } = await first();
  env.fail("write", fault, onSide);
  await services.saveState("kept");
  const { services: next } = await takenOver(env);
  env.fail("write", fault, onSide);
  expect(await next.loadState()).toBe("kept");
});

test("a late copy of an earlier save does not undo a later one", async () => {
  const { env, services } = await first();
  await services.saveState("earlier");
  const late = env.writes.at(-1);
  await services.saveState("later");
  if (late !== undefined) expect(await env.table.write(late)).toMatchObject({ written: false });
  expect(await (await takenOver(env)).services.loadState()).toBe("later");
});

test("a checkpoint is kept as long as its run", async () => {
  const { env, services } = await first();
  await services.saveState(1);
  const item = await env.table.get(sideKey(run, CHECKPOINT), { consistent: true });
  expect(item?.["expiresAtS"]).toBe((await env.run(run))?.["expiresAtS"]);
});

test.each([
  ["undefined", undefined, "the checkpoint is nothing that JSON can carry: undefined"],
  ["a function", () => 1, "the checkpoint is nothing that JSON can carry: undefined"],
  [
    "a BigInt",
    { at: 1n },
    "the checkpoint is nothing that JSON can carry: Do not know how to serialize a BigInt",
  ],
  [
    "32 KB and a byte",
    "x".repeat(CHECKPOINT_BYTES - 1),
    "the checkpoint has 32769 bytes of JSON; at most 32768 fit",
  ],
])("a checkpoint of %s is refused, and the reason is said", (_what, state, message) => {
  expect(() => checkpointOf(state)).toThrow(message);
});

test("a cycle is refused as no JSON", () => {
  const ring: { self?: unknown } = {};
  ring.self = ring;
  expect(() => checkpointOf(ring)).toThrow(
    "the checkpoint is nothing that JSON can carry: Converting circular",
  );
});

test("exactly 32 KB fit, counted in bytes", () => {
  expect(checkpointOf("x".repeat(CHECKPOINT_BYTES - 2))).toHaveLength(CHECKPOINT_BYTES - 2);
  expect(() => checkpointOf("ü".repeat(CHECKPOINT_BYTES / 2))).toThrow("32770 bytes");
  expect(checkpointOf(null)).toBeNull();
});
