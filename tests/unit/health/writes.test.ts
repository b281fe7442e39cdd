import { expect, test } from "vitest";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { DEFAULTS, type JobDefinition } from "../../../lib/core/jobs/job.ts";
import type { AttemptEnd } from "../../../lib/ports/attempts.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack } from "../../support/live-stack.ts";
import { type Fault, failure, setup } from "../../support/path.ts";

const DONE: AttemptEnd = { kind: "returned" };

const jobNamed = (name: string): JobDefinition =>
  definition({
    name,
    schedules: ["0 * * * *"],
    retry: { ...DEFAULTS.retry, retries: 0 },
    alerts: { ...DEFAULTS.alerts, pauseAfter: 2 },
  });

/** The next minute's pass sees a second failure, and pauses the job. */
const aboutToPause = async (): Promise<LiveStack> => {
  const stack = await liveStack({ now: "2027-03-01T00:31:00Z", jobs: [jobNamed("report")] });
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T02:02:00Z");
  return stack;
};

const writesOfPass = async (): Promise<number> => {
  const stack = await aboutToPause();
  const before = stack.writes.length;
  await stack.minute();
  return stack.writes.length - before;
};

const told = (stack: LiveStack) => stack.alerts().map(({ id, kind }) => `${id} ${kind}`);

const EXPECTED = ["flip~report~1 failed", "flip~report~2 paused"];

test.each(["down", "lost", "repeated"] as const)(
  "a pass of which any one write is %s neither loses a flip nor tells it twice",
  async (fault: Fault) => {
    const writes = await writesOfPass();
    expect(writes).toBe(7);
    for (let step = 0; step < writes; step++) {
      const stack = await aboutToPause();
      let seen = 0;
      stack.fail("write", fault, () => seen++ === step);
      await stack.playFor(10 * 60_000);
      expect(told(stack), `write ${step}`).toEqual(EXPECTED);
      const flips = stack.table.items().filter(({ sk }) => String(sk).startsWith("F#"));
      expect(flips.map(({ sk }) => sk)).toEqual(["F#00000001", "F#00000002"]);
    }
  },
);

test("two passes at once flip a job once", async () => {
  const stack = await aboutToPause();
  stack.works.watchdog = false;
  await stack.minute();
  await Promise.all([watch(stack.deps), watch(stack.deps), watch(stack.deps)]);
  expect(told(stack)).toEqual(EXPECTED);
});

/** What one pass asks of the table when the runs of `due` of `all` jobs are over, and each has been well before. */
const requestsOfPass = async (due: number, all: number) => {
  const jobs = Array.from({ length: all }, (_, n) =>
    definition({ name: `job-${n}`, schedules: [n < due ? "0 1 * * *" : "0 13 * * *"], overlap: "allow" }),
  );
  const env = setup({ now: "2027-03-01T00:59:00Z", jobs });
  env.handle(() => DONE);
  await watch(env.deps);
  await env.moveTo("2027-03-01T01:00:00Z");
  const subjects = jobs.slice(0, due).map(({ subject }) => subject);
  if (due > 0) await env.deliver("2027-03-01T01:00:00Z", subjects);
  for (const { message } of env.sent) await env.work(message);
  await env.moveTo("2027-03-01T01:02:01Z");
  env.calls.length = 0;
  env.writes.length = 0;
  await watch(env.deps);
  const count = (port: string) => env.calls.filter((call) => call.startsWith(`${port} `)).length;
  return {
    writes: env.writes.length,
    gets: count("get"),
    batches: count("getMany"),
    queries: count("query"),
  };
};

test("judging sound jobs whose runs are over costs no write, and one read for all of them", async () => {
  const none = await requestsOfPass(0, 1);
  const one = await requestsOfPass(1, 1);
  expect(one.writes).toBe(none.writes);
  expect(one.queries).toBe(none.queries);
  // The runs themselves, and then the health of their jobs.
  expect(one.batches).toBe(none.batches + 2);
  const ten = await requestsOfPass(10, 10);
  expect(ten.batches).toBe(none.batches + 2);
  expect({ ...ten, batches: 0 }).toEqual({ ...one, batches: 0 });
});

test("a pass costs what is due in it, however many jobs there are", async () => {
  expect(await requestsOfPass(5, 200)).toEqual(await requestsOfPass(5, 5));
});
