import { expect, test } from "vitest";
import { makeOperator } from "../../lib/app/operate/operator.ts";
import { claimAndSend } from "../../lib/app/path/claims.ts";
import { release } from "../../lib/app/path/lock-keeper.ts";
import type { Occurrence } from "../../lib/core/identity.ts";
import { lockKey, runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { holdersOf, waitersOf } from "../../lib/core/runs/lock.ts";
import type { Trigger } from "../../lib/core/runs/message.ts";
import { claim } from "../../lib/core/runs/transitions.ts";
import { definition } from "../support/definitions.ts";
import { at, failure, msOf, onLock, onRun, setup } from "../support/path.ts";

/** Stories whose order is scripted, for faults that walks at random meet too seldom. */

const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:00:02Z";
const NOW_MS = msOf(NOW);

const jobWith = (overlap: JobDefinition["overlap"]) =>
  definition({ name: "job", schedules: ["* * * * *"], overlap });
/** Slots of the hour before, by their minute. */
const slot = (minute: number): Occurrence =>
  at("job", `2026-10-25T00:${String(minute).padStart(2, "0")}:00Z`);

const make = (job: JobDefinition) => {
  const env = setup({ now: NOW, jobs: [job] });
  const ask = (
    occurrence: Occurrence,
    changes: { trigger?: Trigger; recorded?: boolean; epoch?: number } = {},
  ) => {
    const live = {
      job,
      occurrence,
      epoch: 1,
      trigger: "schedule",
      queuedAtMs: NOW_MS,
      recorded: false,
    } as const;
    return claimAndSend(env.deps, { ...live, ...changes }, `claimant of ${occurrence.slotKey}`);
  };
  const lock = () => env.lock("job");
  return {
    env,
    operator: makeOperator(env.deps),
    ask,
    live: (minute: number) => ask(slot(minute)),
    byHand: async (minute: number) => {
      const occurrence = slot(minute);
      await env.table.write(claim({ occurrence, token: "person", nowMs: NOW_MS, trigger: "manual" }));
      return ask(occurrence, { trigger: "manual", recorded: true });
    },
    end: async (minute: number) => {
      await env.put(runKey(slot(minute)), { st: "succeeded", ep: 1 });
      await release(env.deps, { job, occurrence: slot(minute), epoch: 1 });
    },
    holding: async () => holdersOf(await lock()).map(({ slotKey }) => slotKey),
    waiting: async () => waitersOf(await lock()).map(({ slotKey }) => slotKey),
    sent: () => env.sent.map(({ message }) => message.slotKey),
  };
};

test("a run that was stopped and is retried forgets the wish to stop", async () => {
  const { env, operator } = make(jobWith("allow"));
  const pointed = { job: jobWith("allow"), occurrence: at("job", SLOT) };
  await env.deliver(SLOT, ["job"]);
  const stopped = env.work(env.lastSent());
  await env.settle();
  expect(await operator.cancel(pointed, "not today")).toBe("stopping");
  await env.moveBy(30_000);
  await stopped;
  expect(await env.run(pointed.occurrence)).toMatchObject({ st: "cancelled" });
  await operator.retry(pointed);
  env.handle(() => failure());
  await env.work(env.lastSent());
  expect(await env.run(pointed.occurrence)).toMatchObject({ st: "waiting", ep: 2, attempts: 1 });
});

test("with replace, a run by hand of an older slot waits for the newer live one, and runs", async () => {
  const { live, byHand, end, sent } = make(jobWith("replace"));
  await live(2);
  expect(await byHand(1)).toBe("waiting");
  await end(2);
  expect(sent()).toEqual([slot(2), slot(1)].map(({ slotKey }) => slotKey));
});

test("with replace, a slot that comes late behind a newer one that waits is skipped, and does not wait", async () => {
  const { env, live, byHand, waiting } = make(jobWith("replace"));
  await byHand(1);
  expect(await live(3)).toBe("waiting");
  expect(await live(2)).toBe("skipped");
  expect(await env.run(slot(2))).toMatchObject({
    st: "skipped",
    reason: "a newer occurrence is there already",
  });
  expect(await waiting()).toEqual([slot(3).slotKey]);
});

test("with replace, the newest of those that wait gets a lock that is free, not the one before it", async () => {
  const { env, live, holding, sent } = make(jobWith("replace"));
  await env.put(lockKey("job"), { held: 0, w: new Set([`0~${slot(1).slotKey}~1`]) });
  expect(await live(2)).toBe("waiting");
  expect(await env.run(slot(1))).toMatchObject({ st: "cancelled", reason: "replaced" });
  expect(await holding()).toEqual([slot(2).slotKey]);
  expect(sent()).toEqual([slot(2).slotKey]);
});

test("an event that comes again before its retried run has the lock claims nothing for the old attempt set", async () => {
  const { env, live, holding } = make(jobWith("skip"));
  await env.put(runKey(slot(1)), { st: "queued", ep: 2, trigger: "schedule" });
  await env.put(lockKey("job"), { held: 0, top: slot(2).slotKey });
  expect(await live(1)).toBe("duplicate");
  expect(await holding()).toEqual([]);
});

test("with replace, a holder that is parked while it is being replaced stays parked", async () => {
  const { env, live } = make(jobWith("replace"));
  await live(1);
  await env.put(runKey(slot(1)), { st: "waiting", ep: 1, fence: 1 });
  env.meanwhile("write", onRun, async () => undefined);
  env.meanwhile("write", onRun, () => env.put(runKey(slot(1)), { st: "parked" }));
  expect(await live(2)).toBe("waiting");
  expect(await env.run(slot(1))).toMatchObject({ st: "parked" });
});

test("a retried run whose older entry gets the lock before it joins the line gives that up, and claims again", async () => {
  const { env, ask, byHand, holding } = make(jobWith("skip"));
  await byHand(1);
  await env.put(runKey(slot(2)), { st: "queued", ep: 2, trigger: "schedule" });
  env.meanwhile("write", onLock, async () => undefined);
  env.meanwhile("write", onLock, async () => {
    await env.table.write({
      key: lockKey("job"),
      changes: [
        { kind: "remove", path: `h#${slot(1).slotKey}` },
        {
          kind: "set",
          path: `h#${slot(2).slotKey}`,
          value: { epoch: 1, owner: "late", sentAtMs: 1, class: 0 },
        },
      ],
    });
  });
  expect(await ask(slot(2), { epoch: 2, recorded: true })).toBe("claimed");
  expect(await holding()).toEqual([slot(2).slotKey]);
  expect(env.lastSent()).toMatchObject({ slotKey: slot(2).slotKey, epoch: 2 });
});

test("a waiter that has the lock already leaves the line, and is not sent again", async () => {
  const job = jobWith({ max: 2, whenFull: "queue" });
  const { env, holding, waiting, sent } = make(job);
  await env.put(lockKey("job"), {
    held: 1,
    [`h#${slot(1).slotKey}`]: { epoch: 1, owner: "somebody", sentAtMs: 1, class: 0 },
    w: new Set([`0~${slot(1).slotKey}~1`]),
  });
  // Looking again for ever would be no answer either.
  for (let calls = 0; calls < 20; calls++) env.meanwhile("write", onLock, async () => undefined);
  env.fail("write", "down", onLock);
  await release(env.deps, { job, occurrence: slot(3), epoch: 1 });
  expect([await holding(), await waiting(), sent()]).toEqual([[slot(1).slotKey], [], []]);
});

test("a release of an earlier attempt set leaves the later one in line", async () => {
  const job = jobWith("skip");
  const { env, byHand, waiting } = make(job);
  await byHand(1);
  await env.put(lockKey("job"), { w: new Set([`1~${slot(2).slotKey}~2`]) });
  await env.put(runKey(slot(2)), { st: "queued", ep: 2, trigger: "manual" });
  await release(env.deps, { job, occurrence: slot(2), epoch: 1 });
  expect(await waiting()).toEqual([slot(2).slotKey]);
});

test("a holder is over only when its own attempt set is", async () => {
  const { env, live, holding } = make(jobWith("skip"));
  await env.put(runKey(slot(1)), { st: "dead", ep: 1, trigger: "schedule" });
  await env.put(lockKey("job"), {
    held: 1,
    [`h#${slot(1).slotKey}`]: { epoch: 2, owner: "retry", sentAtMs: 1, class: 0 },
  });
  expect(await live(2)).toBe("skipped");
  expect(await holding()).toEqual([slot(1).slotKey]);
});
