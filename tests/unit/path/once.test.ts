import { expect, test } from "vitest";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { checkEffectKey, type Effect, effectOf, MAX_EFFECTS, resultOf } from "../../../lib/core/runs/kept.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, onSide, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-10-08T02:00:00Z";
const NOW = "2026-10-08T02:00:01Z";
const job = definition({ name: "mails", schedules: ["0 * * * *"], overlap: "allow" });
const run = at("mails", SLOT);
const SENT: Effect = { result: { id: "m-1" } };

const started = async (env: Setup) => {
  const visit = env.work(env.lastSent());
  await env.settle();
  return { env, visit, attempt: env.lastAttempt(), services: env.lastAttempt().services };
};

const first = async () => {
  const env = setup({ now: NOW, jobs: [job] });
  await env.deliver(SLOT, ["mails"]);
  return started(env);
};

/** Another worker, by whose clock the lease of whatever ran before is over. */
const takenOver = (env: Setup, now = "2026-10-08T02:05:00Z") => {
  const other = setup({ now, jobs: [job], table: env.table, name: now });
  return started({ ...other, lastSent: env.lastSent });
};

test("what an attempt recorded, later attempts are told, whatever became of the first", async () => {
  const { env, attempt, services, visit } = await first();
  expect(await services.recallEffect("mail")).toBeUndefined();
  await services.recordEffect("mail", SENT);
  attempt.end(failure());
  await visit;
  await env.moveBy(60_000);
  const second = await started(env);
  expect(await second.services.recallEffect("mail")).toEqual(SENT);
  expect(await second.services.recallEffect("other")).toBeUndefined();
});

test("what was recorded is told to a retry of the dead run, and to the next piece", async () => {
  const { env, attempt, services, visit } = await first();
  await services.recallEffect("mail");
  await services.recordEffect("mail", SENT);
  attempt.end({ kind: "threw", permanent: true, error: { name: "Error", message: "no use" } });
  await visit;
  await retryRun(env.deps, { job, occurrence: run });
  const second = await started(env);
  expect(await second.services.recallEffect("mail")).toEqual(SENT);
  second.attempt.end({ kind: "continue" });
  await second.visit;
  expect(await (await started(env)).services.recallEffect("mail")).toEqual(SENT);
});

test("an effect in the first attempt costs one write, and no read", async () => {
  const { env, services } = await first();
  env.calls.length = 0;
  await services.recallEffect("mail");
  await services.recordEffect("mail", SENT);
  await services.recallEffect("mail");
  expect(env.calls).toHaveLength(1);
});

test("an effect without a result is remembered too", async () => {
  const { env, services } = await first();
  await services.recordEffect("mail", {});
  expect(await (await takenOver(env)).services.recallEffect("mail")).toEqual({});
});

test("an effect that could not be recorded before its worker was lost is not known, and is done again", async () => {
  const { env, services } = await first();
  await services.recallEffect("mail");
  expect(await (await takenOver(env)).services.recallEffect("mail")).toBeUndefined();
});

test("a stale attempt cannot record an effect that the next one has asked for", async () => {
  const { env, services: stale } = await first();
  await stale.recallEffect("mail");
  const next = await takenOver(env);
  expect(await next.services.recallEffect("mail")).toBeUndefined();
  await expect(stale.recordEffect("mail", SENT)).rejects.toThrow("another attempt has this run by now");
  await next.services.recordEffect("mail", { result: "by the second" });
  const third = await takenOver(env, "2026-10-08T02:10:00Z");
  expect(await third.services.recallEffect("mail")).toEqual({ result: "by the second" });
});

test("an effect that a stale attempt records before the next one asks for it is known to that one", async () => {
  const { env, services: stale } = await first();
  await stale.recallEffect("mail");
  const next = await takenOver(env);
  await stale.recordEffect("mail", SENT);
  expect(await next.services.recallEffect("mail")).toEqual(SENT);
});

test("a record is asked again while the table does not answer", async () => {
  const { env, services } = await first();
  env.fail("write", "down", onSide, 2);
  await services.recordEffect("mail", SENT);
  expect(await (await takenOver(env)).services.recallEffect("mail")).toEqual(SENT);
});

test.each(["lost", "repeated"] as const)("a record whose answer was %s stands", async (fault) => {
  const { env, services } = await first();
  env.fail("write", fault, onSide);
  await services.recordEffect("mail", SENT);
  const next = await takenOver(env);
  next.env.fail("write", fault, onSide);
  expect(await next.services.recallEffect("mail")).toEqual(SENT);
});

test("a run has room for a hundred keys, counted over its attempts, and keys that it knows are no new ones", async () => {
  const { env, services } = await first();
  for (let n = 0; n < MAX_EFFECTS - 1; n++) {
    await services.recallEffect(`key ${n}`);
    await services.recordEffect(`key ${n}`, { result: n });
  }
  const next = await takenOver(env);
  expect(await next.services.recallEffect("key 7")).toEqual({ result: 7 });
  expect(await next.services.recallEffect("the last")).toBeUndefined();
  await expect(next.services.recallEffect("one more")).rejects.toThrow("once: the run has 100 keys already");
  expect(await next.services.recallEffect("the last")).toBeUndefined();
});

test("the keys of one run are no keys of another, whatever their characters", async () => {
  const { env, services } = await first();
  for (const key of ["#", "a/b", "späße", "\u{10ffff}", "~"]) {
    await services.recallEffect(key);
    await services.recordEffect(key, { result: key });
  }
  const next = await takenOver(env);
  for (const key of ["#", "a/b", "späße", "\u{10ffff}", "~"]) {
    expect(await next.services.recallEffect(key)).toEqual({ result: key });
  }
  const slot = "2026-10-08T03:00:00Z";
  await env.moveTo(slot);
  await env.deliver(slot, ["mails"], "request-2");
  expect(await (await started(env)).services.recallEffect("#")).toBeUndefined();
});

test("where the keys cannot be read the question fails, and is answered when asked again", async () => {
  const { env } = await first();
  const next = await takenOver(env);
  next.env.fail("query", "down");
  await expect(next.services.recallEffect("mail")).rejects.toThrow("down");
  expect(await next.services.recallEffect("mail")).toBeUndefined();
});

test.each([
  ["no text", 7, "once: the key must be a text"],
  ["empty", "", "once: the key is empty"],
  ["over 100 characters", "k".repeat(101), "once: the key has 101 characters; at most 100 fit"],
])("a key that is %s is refused, and the reason is said", (_what, key, message) => {
  expect(() => checkEffectKey(key)).toThrow(message);
});

test("a key of 100 characters is taken", () => {
  expect(checkEffectKey("k".repeat(100))).toBeUndefined();
});

test.each([
  ["a BigInt", 1n, /once\("mail"\) is nothing that JSON can carry: .*BigInt/],
  ["more than 4 KB", "x".repeat(4_095), /once\("mail"\) has 4097 bytes of JSON; at most 4096 fit/],
])(
  "an effect whose result is %s counts as done, and says why the result is not there",
  (_what, result, message) => {
    const effect = effectOf("mail", result);
    expect(() => resultOf(effect)).toThrow(message);
    expect(() => resultOf(effect)).toThrow("The effect is done, and is not repeated");
  },
);

test("a refusal to keep a result is told to later attempts in its place", async () => {
  const { env, services } = await first();
  const effect = effectOf("mail", 1n);
  await services.recordEffect("mail", effect);
  expect(await (await takenOver(env)).services.recallEffect("mail")).toEqual(effect);
});

test("a result is what JSON carries of it, from the first attempt on", () => {
  expect(resultOf(effectOf("k", { at: new Date(0), gone: undefined }))).toEqual({
    at: "1970-01-01T00:00:00.000Z",
  });
  expect(resultOf(effectOf("k", undefined))).toBeUndefined();
  expect(resultOf(effectOf("k", "x".repeat(4_094)))).toHaveLength(4_094);
});
