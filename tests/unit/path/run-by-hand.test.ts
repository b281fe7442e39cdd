import { expect, test } from "vitest";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { makeRunByHand, type RunByHandRequest } from "../../../lib/app/operate/run-by-hand.ts";
import { isManualKey, readRunId } from "../../../lib/core/identity.ts";
import { CONTROL_KEY, lockKey, runKey } from "../../../lib/core/items.ts";
import { HOUR_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, onLock, onRun, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-12-31T23:00:00Z";
const NOW = "2026-12-31T23:59:59.999Z";
const side = definition({ name: "side", schedules: ["0 * * * *"], overlap: "allow", input: { from: "job" } });
const single = definition({ name: "single", schedules: ["0 * * * *"] });

const make = () => setup({ now: NOW, jobs: [side, single] });
const byHand = (env: Setup, request: Partial<RunByHandRequest> = {}) =>
  makeRunByHand(env.deps)({ job: side, ...request });

test("a run by hand has a key of its own, its record before its message, and a note for the watchdog before both", async () => {
  const env = make();
  const answer = await byHand(env, { input: { day: 1 }, reason: "a customer asked" });
  expect(answer).toEqual({ kind: "accepted", runId: "side~20261231T235959999Z-t00010" });
  expect(env.calls.map((call) => call.slice(0, 7))).toEqual(["write 2", "write R", "send 20", "get con"]);
  const message = env.lastSent();
  expect(isManualKey(message.slotKey)).toBe(true);
  expect(message).toMatchObject({ epoch: 1, trigger: "manual" });
  expect(await env.run(message)).toMatchObject({
    st: "queued",
    trigger: "manual",
    input: { day: 1 },
    reason: "a customer asked",
  });
});

test("two runs by hand in one millisecond are two runs", async () => {
  const env = make();
  const answers = await Promise.all([byHand(env), byHand(env)]);
  expect(new Set(answers.map(({ runId }) => runId)).size).toBe(2);
  expect(env.sent).toHaveLength(2);
});

test("the handler of a run by hand gets the run's own input, else the job's", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  const inputs = [{ day: 1 }, "x".repeat(5_000), undefined];
  for (const input of inputs) {
    await byHand(env, input === undefined ? {} : { input });
    await env.work(env.lastSent());
  }
  expect(env.attempts.map(({ request }) => request.input)).toEqual([
    { day: 1 },
    "x".repeat(5_000),
    { from: "job" },
  ]);
});

test("an input that is too big for the record is the run's own in each attempt", async () => {
  const env = make();
  const input = { rows: "x".repeat(1_000) };
  env.handle(({ attempt }) => (attempt === 1 ? failure() : { kind: "returned" }));
  await byHand(env, { input });
  expect(await env.work(env.lastSent())).toMatchObject({ kind: "return" });
  await env.moveBy(HOUR_MS);
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(env.attempts.map(({ request }) => request.input)).toEqual([input, input]);
});

test("a big input is stored beside the record before the record says so", async () => {
  const env = make();
  await byHand(env, { input: "x".repeat(5_000) });
  expect(env.calls.filter((call) => call.startsWith("write")).map((call) => call.slice(0, 7))).toEqual([
    "write 2",
    "write I",
    "write R",
  ]);
  const run = await env.run(env.lastSent());
  expect(run).toMatchObject({ st: "queued", sideInput: true });
  expect(run).not.toHaveProperty("input");
});

test("a run by hand as a slot is that slot's one occurrence", async () => {
  const env = make();
  expect(await byHand(env, { slotMs: msOf(SLOT) })).toEqual({
    kind: "accepted",
    runId: "side~20261231T230000Z",
  });
  expect(await env.deliver(SLOT, ["side"])).toEqual(["duplicate"]);
  expect(env.sent).toHaveLength(1);
});

test.each([
  ["succeeded", "already done"],
  ["queued", "already in flight"],
  ["running", "already in flight"],
  ["waiting", "already in flight"],
  ["dead", "it ended dead"],
])("a slot that is %s already is refused: %s", async (st, reason) => {
  const env = make();
  await env.put(runKey(at("side", SLOT)), { st, ep: 1 });
  expect(await byHand(env, { slotMs: msOf(SLOT) })).toEqual({
    kind: "refused",
    runId: "side~20261231T230000Z",
    state: st,
    reason,
  });
  expect(env.sent).toEqual([]);
});

test("two people who ask for the same slot get it once", async () => {
  const env = make();
  const answers = await Promise.all([
    byHand(env, { slotMs: msOf(SLOT) }),
    byHand(env, { slotMs: msOf(SLOT) }),
  ]);
  expect(answers.map(({ kind }) => kind).sort()).toEqual(["accepted", "refused"]);
});

test("a record whose answer was lost and repeated is its own", async () => {
  const env = make();
  env.fail("write", "repeated", onRun);
  expect(await byHand(env)).toMatchObject({ kind: "accepted" });
  expect(env.sent).toHaveLength(1);
});

test("a slot that is only counted as delivered, and has no record, can be run", async () => {
  const env = make();
  await env.put(runKey(at("side", SLOT)), { dup: new Set(["someone"]) });
  expect(await byHand(env, { slotMs: msOf(SLOT) })).toMatchObject({ kind: "accepted" });
});

// A job with an overlap limit.

test("a run by hand takes the lock as a run by hand", async () => {
  const env = make();
  await byHand(env, { job: single });
  const { slotKey } = env.lastSent();
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${slotKey}`]: { epoch: 1, class: 1 } });
  expect(await env.lock("single")).not.toHaveProperty("top");
});

test("a run by hand waits in line while another run of the job is not over, and says for which", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["single"]);
  expect(await byHand(env, { job: single, reason: "a customer asked" })).toEqual({
    kind: "accepted",
    runId: expect.stringMatching(/^single~20261231T235959999Z-/),
    notice: "it waits for single~20261231T230000Z",
  });
  expect(env.sent).toHaveLength(1);
  await env.work(env.lastSent());
  expect(env.sent).toHaveLength(2);
  await env.work(env.lastSent());
  expect(await env.run(env.lastSent())).toMatchObject({ st: "succeeded", trigger: "manual" });
});

test("a run by hand as a slot that is claimed and not started is refused as in flight", async () => {
  const env = make();
  await env.deliver(SLOT, ["single"]);
  expect(await byHand(env, { job: single, slotMs: msOf(SLOT) })).toMatchObject({
    kind: "refused",
    state: "queued",
    reason: "already in flight",
  });
  expect(env.sent).toHaveLength(1);
});

test("a run by hand that waits says in its record's view for which run, beside why it was asked for", async () => {
  const env = make();
  await env.deliver(SLOT, ["single"]);
  const ids = [
    (await byHand(env, { job: single, reason: "a customer asked" })).runId,
    (await byHand(env, { job: single })).runId,
  ];
  const readRun = makeReadRun({ ...env.deps, table: env.table });
  const views = ids.map(async (id) => readRun(readRunId(id) ?? at("single", SLOT)));
  expect((await Promise.all(views)).map((view) => view?.reason)).toEqual([
    "a customer asked; waits for single~20261231T230000Z",
    "waits for single~20261231T230000Z",
  ]);
});

test("sixty-four runs by hand may wait; one more is refused before anything is written", async () => {
  const env = make();
  await env.deliver(SLOT, ["single"]);
  for (let n = 0; n < 64; n++) expect(await byHand(env, { job: single })).toMatchObject({ kind: "accepted" });
  const writes = env.writes.length;
  await expect(byHand(env, { job: single })).rejects.toMatchObject({
    code: "queue_full",
    message: "64 runs of single wait already; ask again when some are over",
  });
  expect(env.writes).toHaveLength(writes);
});

test("live slots are neither refused nor skipped for a line of runs by hand", async () => {
  const env = make();
  await byHand(env, { job: single });
  for (let n = 0; n < 64; n++) await byHand(env, { job: single });
  expect(await env.deliver(SLOT, ["single"])).toEqual(["waiting"]);
});

test("a lock that a crash left behind does not refuse a run by hand", async () => {
  const env = make();
  const { slotKey } = at("single", SLOT);
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
  });
  await env.put(runKey(at("single", SLOT)), { st: "succeeded", ep: 1 });
  expect(await byHand(env, { job: single })).toMatchObject({ kind: "accepted" });
});

test("a run that takes the lock first makes a run by hand wait, which says so", async () => {
  const env = make();
  env.meanwhile("write", onLock, () => env.deliver(SLOT, ["single"]));
  expect(await byHand(env, { job: single })).toMatchObject({
    kind: "accepted",
    notice: "it waits for single~20261231T230000Z",
  });
  expect(env.sent).toHaveLength(1);
});

test("a run by hand of a paused job goes ahead, and says so", async () => {
  const env = make();
  await env.put(CONTROL_KEY, { "p#side": { sinceMs: 1 } });
  expect(await byHand(env)).toMatchObject({
    kind: "accepted",
    notice: "the job is paused; a run by hand goes ahead all the same",
  });
  expect(env.sent).toHaveLength(1);
});
