import { expect, test } from "vitest";
import { makePing } from "../../../lib/app/monitors/ping.ts";
import { Unavailable } from "../../../lib/core/errors.ts";
import { runKey } from "../../../lib/core/items.ts";
import type { MonitorDefinition } from "../../../lib/core/monitors/monitor.ts";
import { mustBeMonitor } from "../../../lib/core/monitors/monitor.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { pingKey } from "../../../lib/inbound/pings/ping-key.ts";
import { type PingSecrets, pingPath, pingRouter } from "../../../lib/inbound/pings/router.ts";
import { definition } from "../../support/definitions.ts";
import { at, onRun, setup } from "../../support/path.ts";

const SECRET = "the first secret of this test, long enough";
const SECOND = "the second secret of this test, long enough";
const THIRD = "the third secret of this test, long enough";

const monitorOf = (name: string, subject = name): MonitorDefinition =>
  mustBeMonitor(
    definition({
      name,
      subject,
      schedules: ["0 * * * *"],
      overlap: "allow",
      misfire: { policy: "skip", max: 1 },
      monitor: { endWithinMs: 30 * MINUTE_MS },
    }),
  );
const BACKUP = monitorOf("backup");

/** A deployment whose secret the test changes. */
const serve = (jobs = [BACKUP, monitorOf("other"), definition({ name: "local" })]) => {
  const env = setup({ now: "2027-03-01T01:00:30Z", jobs });
  const held = { known: [SECRET], renewed: [SECRET] };
  const secrets: PingSecrets = { known: async () => held.known, renewed: async () => held.renewed };
  const { jobs: list, journal } = env.deps;
  const app = pingRouter({ ping: makePing(env.deps), jobs: list, secrets, journal });
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await app.request(path, init);
    const text = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
  };
  const run = () => {
    const { pk, sk } = runKey(at("backup", "2027-03-01T01:00:00Z"));
    return env.table.items().find((item) => item["pk"] === pk && item["sk"] === sk);
  };
  return { ...env, ask, held, run };
};

const ADDRESS = pingPath([SECRET], BACKUP);

test("the address alone is a success, and /start, /fail and an exit code tell the rest, by GET or POST", async () => {
  const { ask, run } = serve();
  const taken = { status: 200, body: { runId: "backup~20270301T010000Z", slot: "2027-03-01T01:00:00Z" } };
  expect(await ask(`${ADDRESS}/start`)).toMatchObject(taken);
  expect(run()).toMatchObject({ st: "running", trigger: "ping" });
  expect(await ask(`${ADDRESS}/3`, { method: "POST", body: "disk full\n" })).toMatchObject(taken);
  expect(run()).toMatchObject({
    st: "dead",
    error: { name: "ExitCode", message: "it ended with exit code 3: disk full" },
  });
  expect(await ask(`${ADDRESS}/fail?message=no%20tape`)).toMatchObject({ body: { duplicate: true } });
  expect(await ask(`${ADDRESS}/0`)).toMatchObject(taken);
  expect(run()).toMatchObject({ st: "succeeded" });
  expect(await ask(ADDRESS)).toMatchObject({ ...taken, body: { duplicate: true } });
});

test("a ping may name its slot, and how long the job took", async () => {
  const { ask, run } = serve();
  expect(await ask(`${ADDRESS}?slot=2027-03-01T01:00&durationMs=90000`)).toMatchObject({ status: 200 });
  expect(Number(run()?.["endedAtMs"]) - Number(run()?.["startedAtMs"])).toBe(90_000);
});

test("of a long body the beginning is kept, and the ping is taken", async () => {
  const { ask, run } = serve();
  const long = "é".repeat(3_000_000);
  expect(await ask(`${ADDRESS}/ok`, { method: "POST", body: long })).toMatchObject({ status: 200 });
  expect(run()).toMatchObject({ st: "succeeded", result: "é".repeat(200) });
});

const other = pingPath([SECRET], monitorOf("other")).split("/").at(-1) ?? "";
const own = ADDRESS.split("/").at(-1) ?? "";

test.each([
  ["no key", "/ping/backup"],
  ["a wrong key", "/ping/backup/nothing"],
  ["the key of another monitor", `/ping/backup/${other}`],
  ["a key that begins well", `/ping/backup/${own.slice(0, -1)}`],
  ["the secret itself", `/ping/backup/${encodeURIComponent(SECRET)}`],
  ["a monitor that does not exist", `/ping/nothing/${own}`],
  ["a job that runs here", pingPath([SECRET], { ...BACKUP, subject: "local" })],
  ["a path of no ping", "/"],
])("%s is answered as an address that is not there, and writes nothing", async (_, path) => {
  const { ask, writes, notices } = serve();
  for (const init of [{}, { method: "POST", body: "ok" }, { method: "DELETE" }])
    expect(await ask(path, init)).toMatchObject({
      status: 404,
      body: { code: "unknown_address", detail: "there is no monitor at this address" },
    });
  expect(writes).toEqual([]);
  expect(notices).toEqual([]);
});

test.each([
  ["another method", `${ADDRESS}`, { method: "PUT" }, 405, "a ping is a GET or a POST, not a PUT"],
  ["a signal that is none", `${ADDRESS}/done`, {}, 400, '"done" is neither start, ok, fail nor an exit code'],
  ["an exit code that is none", `${ADDRESS}/-1`, {}, 400, '"-1" is neither start, ok, fail nor an exit code'],
  ["a name that is not known", `${ADDRESS}?slto=x`, {}, 400, "slto is not known"],
  ["a time that is none", `${ADDRESS}?slot=monday`, {}, 400, /monday/],
  ["a duration that is none", `${ADDRESS}?durationMs=long`, {}, 400, /durationMs must be milliseconds/],
  ["a slot that is not in the schedule", `${ADDRESS}?slot=2027-03-01T00:30`, {}, 400, /00:30/],
] as const)(
  "%s is refused with what to mend, and counted, since the key was right",
  async (_, path, init, status, why) => {
    const { ask, notices, run } = serve();
    const answer = await ask(path, init);
    const detail = typeof why === "string" ? why : expect.stringMatching(why);
    expect(answer).toMatchObject({ status, body: { status, detail } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("allow")).toBe(status === 405 ? "GET, POST" : null);
    expect(notices).toEqual([{ code: "ping-refused", fields: { job: "backup", why: answer.body.detail } }]);
    expect(run()).toBeUndefined();
  },
);

test("a look at the address by HEAD tells nothing of the job", async () => {
  const { ask, run } = serve();
  expect(await ask(ADDRESS, { method: "HEAD" })).toMatchObject({ status: 405 });
  expect(run()).toBeUndefined();
});

test("after a change of the secret the address of before is good, and after one more it is not", async () => {
  const { ask, held } = serve();
  held.renewed = [SECOND, SECRET];
  const second = pingPath(held.renewed, BACKUP);
  // Nobody has told the running process of the change.
  expect(await ask(second)).toMatchObject({ status: 200 });
  expect(await ask(ADDRESS)).toMatchObject({ status: 200 });
  held.known = held.renewed = [THIRD, SECOND];
  expect(await ask(second)).toMatchObject({ status: 200 });
  expect(await ask(ADDRESS)).toMatchObject({ status: 404 });
});

test("a secret of fewer than 32 bytes opens nothing, and no address is made of it", async () => {
  const { ask, held } = serve();
  held.known = held.renewed = ["a".repeat(32)];
  const path = pingPath(held.known, BACKUP);
  expect(await ask(path)).toMatchObject({ status: 200 });
  for (const weak of ["a".repeat(31), ""]) {
    held.known = held.renewed = [weak];
    expect(await ask(`/ping/backup/${pingKey(weak, "backup")}`)).toMatchObject({ status: 404 });
    expect(() => pingPath([weak], BACKUP)).toThrow("shorter than 32 bytes");
  }
  held.known = held.renewed = [];
  expect(await ask(path)).toMatchObject({ status: 404 });
  expect(() => pingPath([], BACKUP)).toThrow("shorter than 32 bytes");
});

test("a renamed monitor keeps its address, and the new name opens it too", async () => {
  const { ask } = serve([monitorOf("nightly", "backup")]);
  expect(await ask(ADDRESS)).toMatchObject({ status: 200 });
  expect(await ask(ADDRESS.replace("/backup/", "/nightly/"))).toMatchObject({ status: 200 });
});

test("a table that does not answer is said so that curl tries again, and its error only to whoever runs the stack", async () => {
  const { ask, fail, notices, held } = serve();
  fail("write", "down", onRun);
  const answer = await ask(ADDRESS);
  expect(answer).toMatchObject({ status: 503 });
  expect(answer.headers.get("retry-after")).toBe("1");
  expect(answer.body).toMatchObject({ detail: "the ping could not be taken: send it again" });
  expect(notices.map(({ code }) => code)).toEqual(["invocation-failed"]);
  expect(JSON.stringify(notices)).not.toContain(own);
  expect(await ask(ADDRESS)).toMatchObject({ status: 200 });
  expect(JSON.stringify(notices)).not.toContain(held.known[0]);
});

test("a secret that cannot be read refuses everybody, as something to try again", async () => {
  const { deps } = serve();
  const away = async (): Promise<never> => {
    throw new Unavailable("no_secret", "not now");
  };
  const { jobs, journal } = deps;
  const app = pingRouter({ ping: makePing(deps), jobs, journal, secrets: { known: away, renewed: away } });
  expect((await app.request(ADDRESS)).status).toBe(503);
});
