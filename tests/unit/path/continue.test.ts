import { expect, test } from "vitest";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { cancelRun, retryRun } from "../../../lib/app/operate/operator.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { Overlap } from "../../../lib/core/jobs/job.ts";
import { holdersOf } from "../../../lib/core/runs/lock.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { definition } from "../../support/definitions.ts";
import { itemBytes } from "../../support/item-size.ts";
import { at, failure, onRun, onSide, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-10-08T02:00:00Z";
const NOW = "2026-10-08T02:00:01Z";
const NAME = "a-job-whose-name-is-as-long-as-a-name-may-be-aaa";
const options = {
  schedules: ["0 * * * *"],
  retry: { ...definition({ name: "x" }).retry, retries: 1, crashes: 1 },
};
const long = definition({ name: "long", ...options, overlap: "allow" });
const single = definition({ name: "single", ...options });
const parks = definition({ name: "parks", ...options, overlap: "allow", onUnknown: "park" });
const longName = definition({ name: NAME, schedules: ["* * * * *"], overlap: "allow" });
const run = at("long", SLOT);

const make = (now = NOW) => setup({ now, jobs: [long, single, parks, longName] });

/** Delivers the slot and plays one piece, whose handler ends so. */
const begin = async (env: Setup, subject = "long") => {
  await env.deliver(SLOT, [subject]);
  return env.lastSent();
};

const piece = async (env: Setup, message: RunMessage, state: number | undefined) => {
  env.handle(() => (state === undefined ? { kind: "continue" } : { kind: "continue", state }));
  return env.work(message);
};

const loadedBy = async (env: Setup, message: RunMessage) => {
  env.handle(undefined);
  const visit = env.work(message);
  await env.settle();
  const attempt = env.lastAttempt();
  const state = await attempt.services.loadState();
  return { visit, attempt, state };
};

const viewOf = (env: Setup, subject = "long") => makeReadRun(env.deps)(at(subject, SLOT));

test("a run that continues later is queued again, asks for its next piece, and that one loads its state", async () => {
  const env = make();
  const first = await begin(env);
  expect(await piece(env, first, 7)).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "queued", ep: 1, cont: 1, attempts: 0, crashes: 0 });
  expect(env.sent).toHaveLength(2);
  const { visit, attempt, state } = await loadedBy(env, env.lastSent());
  expect(state).toBe(7);
  attempt.end({ kind: "returned", result: "done" });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", fence: 2, result: "done" });
  expect(env.events.map(({ state: after }) => after)).toEqual(["queued", "succeeded"]);
});

test("continuing without a state leaves the checkpoint as it was saved", async () => {
  const env = make();
  const { visit, attempt } = await loadedBy(env, await begin(env));
  await attempt.services.saveState({ row: 3 });
  attempt.end({ kind: "continue" });
  await visit;
  expect((await loadedBy(env, env.lastSent())).state).toEqual({ row: 3 });
});

test("no attempt is used by a piece, and the next one has all attempts that a run has", async () => {
  const env = make();
  env.handle(() => failure());
  const first = await begin(env);
  await env.work(first);
  await env.moveBy(60_000);
  await piece(env, first, 1);
  expect(await env.run(run)).toMatchObject({ st: "queued", attempts: 0 });
  expect(await env.run(run)).not.toHaveProperty("error");
  env.handle(() => failure());
  await env.work(env.lastSent());
  expect(await env.run(run)).toMatchObject({ st: "waiting", attempts: 1 });
});

test("a run shows its pieces, and each attempt the piece that it worked on", async () => {
  const env = make();
  await piece(env, await begin(env), 1);
  await piece(env, env.lastSent(), 2);
  expect(await viewOf(env)).toMatchObject({
    state: "queued",
    pieces: 3,
    attempts: [
      { n: 1, outcome: "continue" },
      { n: 1, piece: 2, outcome: "continue" },
    ],
  });
  await loadedBy(env, env.lastSent());
  expect((await viewOf(env))?.attempts.at(-1)).toMatchObject({ n: 1, piece: 3, outcome: "running" });
});

test("a run of one piece says nothing of pieces", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await env.work(await begin(env));
  expect(await viewOf(env)).not.toHaveProperty("pieces");
});

test("a run keeps its lock over its pieces, and frees it at its end", async () => {
  const env = make();
  await piece(env, await begin(env, "single"), 1);
  expect(holdersOf(await env.lock("single"))).toHaveLength(1);
  await env.moveTo("2026-10-08T03:00:01Z");
  await env.deliver("2026-10-08T03:00:00Z", ["single"]);
  expect(await env.run(at("single", "2026-10-08T03:00:00Z"))).toMatchObject({ st: "skipped" });
  env.handle(() => ({ kind: "returned" }));
  await env.work({ ...env.lastSent() });
  expect(holdersOf(await env.lock("single"))).toHaveLength(0);
});

test.each(["long", "single"])(
  "a message of %s that could not be sent is replaced by the old one, which comes back",
  async (subject) => {
    const env = make();
    const first = await begin(env, subject);
    env.fail("send", "down");
    expect(await piece(env, first, 5)).toEqual({ kind: "return", afterMs: 1_000 });
    const { state } = await loadedBy(env, first);
    expect(state).toBe(5);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "running", fence: 2, cont: 1 });
  },
);

test.each<readonly [string, Overlap]>([
  ["long", "allow"],
  ["single", "skip"],
])(
  "a crash of %s (%s) between the record and the send is repaired by the watchdog, within minutes and however long it ran",
  async (subject) => {
    const env = make("2026-10-08T01:55:00Z");
    await watch(env.deps);
    await env.moveTo(NOW);
    const first = await begin(env, subject);
    const passUntil = async (minutes: number) => {
      for (let n = 0; n < minutes; n++) {
        await env.moveBy(60_000);
        await watch(env.deps);
      }
    };
    env.handle(undefined);
    const visit = env.work(first);
    await passUntil(14);
    env.fail("send", "down");
    env.lastAttempt().end({ kind: "continue", state: 2 });
    await visit;
    const before = env.sent.length;
    await passUntil(5);
    const again = () => env.sent.slice(before).filter(({ message }) => message.subject === subject);
    expect(again()).toHaveLength(1);
    // And where that message is lost as well, the next one is no half hour away.
    await passUntil(6);
    expect(again()).toHaveLength(2);
    expect((await loadedBy(env, again().at(-1)?.message ?? first)).state).toBe(2);
    expect(again().at(-1)?.message).toMatchObject({ subject, epoch: 1 });
  },
);

test.each(["lost", "repeated"] as const)(
  "where the answer of the record is %s, the run goes on once",
  async (fault) => {
    const env = make();
    const first = await begin(env);
    env.handle(undefined);
    const visit = env.work(first);
    await env.settle();
    env.fail("write", fault, onRun);
    env.lastAttempt().end({ kind: "continue", state: 1 });
    expect(await visit).toEqual({ kind: "delete" });
    expect(await env.run(run)).toMatchObject({ st: "queued", cont: 1 });
    expect(env.codes()).not.toContain("stale-result");
  },
);

test("a piece whose state cannot be stored does not go on: its lease ends, and it is done again", async () => {
  const env = make();
  const first = await begin(env);
  env.handle(undefined);
  const visit = env.work(first);
  await env.settle();
  env.fail("write", "down", onSide, 3);
  env.lastAttempt().end({ kind: "continue", state: 1 });
  await expect(visit).rejects.toThrow("down");
  expect(await env.run(run)).toMatchObject({ st: "running" });
  expect(env.sent).toHaveLength(1);
});

test("a stale attempt goes nowhere: neither its state nor its run", async () => {
  const env = make();
  const first = await begin(env);
  env.handle(undefined);
  const visit = env.work(first);
  await env.settle();
  const late = env.lastAttempt();
  const other = setup({ now: "2026-10-08T02:01:33Z", jobs: [long], table: env.table, name: "o" });
  const taken = other.work(first);
  await other.settle();
  await other.lastAttempt().services.saveState("newer");
  late.end({ kind: "continue", state: "older" });
  expect(await visit).toEqual({ kind: "return" });
  expect(env.codes()).toContain("stale-result");
  expect(env.sent).toHaveLength(1);
  other.lastAttempt().end({ kind: "continue" });
  await taken;
  expect((await loadedBy(other, other.lastSent())).state).toBe("newer");
});

test("a run that was asked to stop does not go on", async () => {
  const env = make();
  const first = await begin(env);
  env.handle(undefined);
  const visit = env.work(first);
  await env.settle();
  await cancelRun(env.deps, { job: long, occurrence: run }, "enough");
  env.lastAttempt().end({ kind: "continue", state: 1 });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "cancelled" });
  expect(env.sent).toHaveLength(1);
});

test("a run between two pieces is cancelled at once, and its message is of no use any more", async () => {
  const env = make();
  await piece(env, await begin(env, "single"), 1);
  await cancelRun(env.deps, { job: single, occurrence: at("single", SLOT) }, "enough");
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "cancelled" });
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(env.attempts).toHaveLength(1);
});

test("a piece that lost its worker is parked where the job says so, and retried from its state", async () => {
  const env = make();
  await piece(env, await begin(env, "parks"), 4);
  env.handle(undefined);
  void env.work(env.lastSent());
  await env.settle();
  env.fail("write", "down", onRun, 100);
  await env.moveBy(60_000);
  const other = setup({ now: "2026-10-08T02:05:00Z", jobs: [parks], table: env.table, name: "o" });
  expect(await other.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(await other.run(at("parks", SLOT))).toMatchObject({ st: "parked", cont: 1 });
  await retryRun(other.deps, { job: parks, occurrence: at("parks", SLOT) });
  expect(await other.run(at("parks", SLOT))).not.toHaveProperty("cont");
  expect((await loadedBy(other, other.lastSent())).state).toBe(4);
});

test("a lost piece is counted as a crash of that piece alone", async () => {
  const env = make();
  let message = await begin(env);
  let now = NOW;
  let last = env;
  for (let n = 1; n <= 4; n++) {
    const dead = setup({ now, jobs: [long], table: env.table, name: `d${n}` });
    void dead.work(message);
    await dead.settle();
    now = new Date(Date.parse(now) + 120_000).toISOString();
    last = setup({ now, jobs: [long], table: env.table, name: `l${n}` });
    await piece(last, message, n);
    message = last.lastSent();
  }
  expect(await last.run(run)).toMatchObject({ st: "queued", cont: 4, crashes: 0, fence: 8 });
});

test("a run that goes on for ever ends dead after a thousand continuations, and says why", async () => {
  const env = make();
  let message = await begin(env);
  for (let n = 0; n < 1_000; n++) {
    await piece(env, message, undefined);
    message = env.lastSent();
  }
  expect(await env.run(run)).toMatchObject({ st: "queued", cont: 1_000 });
  expect(await piece(env, message, undefined)).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({
    st: "dead",
    reason: "it went on 1000 times without an end",
    error: { name: "EndlessRun" },
  });
});

test("a late copy of an earlier piece's message starts nothing beside the next one", async () => {
  const env = make();
  const first = await begin(env);
  await piece(env, first, 1);
  await loadedBy(env, env.lastSent());
  expect(await env.work(first)).toMatchObject({ kind: "return" });
  expect(env.attempts).toHaveLength(2);
});

test("a record of many pieces stays under a kilobyte", async () => {
  const env = make();
  await env.deliver("2026-10-08T02:00:00Z", [NAME]);
  for (let n = 0; n < 20; n++) {
    env.handle(() => ({ kind: "continue", state: n }));
    await env.work(env.lastSent());
  }
  const item = await env.run(at(NAME, SLOT));
  expect(itemBytes(item ?? {})).toBeLessThan(1_024);
});
