/** Whatever a handler returns or throws, its run ends at once and says so: over the emulators' wire protocols. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { systemClock } from "../../../lib/adapters/system/system.ts";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { composeDeps } from "../../../lib/compose/deps.ts";
import { dispatcherFunction, workerFunction } from "../../../lib/compose/functions.ts";
import { readRunId, slotKeyOf } from "../../../lib/core/identity.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import type { Json } from "../../../lib/core/json.ts";
import type { RunView } from "../../../lib/core/runs/run.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { type EmbeddedServices, embeddedServices, manifestOf } from "../../support/embedded-services.ts";
import { jobsFile } from "../../support/jobs-file.ts";
import { drain } from "../../support/receive.ts";

const deep = (depth: number): Json => (depth === 0 ? 1 : [deep(depth - 1)]);

/** `[what it is, the handler's expression, the result that is shown]` */
const RESULTS: readonly (readonly [string, string, unknown])[] = [
  ["nothing", "undefined", null],
  ["null bytes", '"a\\u0000b"', "a\u0000b"],
  ["half a character", '"\\ud800"', "\ufffd"],
  ["an empty text", '""', ""],
  ["a list", "[1, [2, null]]", [1, [2, null]]],
  ["a name that is empty", '({ "": { "": 1 } })', { "": { "": 1 } }],
  ["a BigInt", "({ count: 2n ** 70n })", { count: "1180591620717411303424" }],
  ["a number over 2^53", "({ id: 2 ** 60 })", { id: 2 ** 60 }],
  ["a number over 10^125", "[1e300, -1e300]", [1e300, -1e300]],
  ["a number under 10^-130", "[5e-324]", [5e-324]],
  ["no number", "[NaN, -Infinity]", ["NaN", "-Infinity"]],
  ["a circle", "(() => { const ring = {}; ring.self = ring; return ring; })()", { self: "[circular]" }],
  ["depth", `JSON.parse(${JSON.stringify(JSON.stringify(deep(40)))})`, deep(40)],
  ["a date and an error", "[new Date(0), new Set([1])]", ["1970-01-01T00:00:00.000Z", {}]],
  ["a megabyte", '"x".repeat(1024 * 1024)', expect.stringMatching(/^"x{30000}.*trimmed: 1048578 bytes/)],
];

/** `[what it is, what the handler throws, the error that is shown]` */
const ERRORS: readonly (readonly [string, string, unknown])[] = [
  ["a text", '"plain text"', { name: "NonError", message: "plain text" }],
  ["nothing", "undefined", { name: "NonError", message: "undefined was thrown" }],
  ["null bytes", 'new Error("a\\u0000b")', { name: "Error", message: "a\u0000b" }],
  ["a BigInt", "12n", { name: "NonError", message: '"12"' }],
  [
    "characters that are cut in half",
    'new Error("\u{1f600}".repeat(100))',
    { message: "\u{1f600}".repeat(100) },
  ],
  [
    "a megabyte",
    'new Error("m".repeat(1024 * 1024))',
    { message: expect.stringMatching(/^m{4000}.*trimmed/) },
  ],
];

const RETURNING = RESULTS.map(([what, text], n) => ({
  what,
  name: `returns-${n}`,
  text: `async () => ${text}`,
}));
const THROWING = ERRORS.flatMap(([what, text], n) => [
  { what, name: `throws-${n}`, text: `async () => { throw ${text}; }` },
]);
const REJECTING = { name: "rejects", text: "() => Promise.reject()" };
const ECHO = { name: "echoes", text: "async ({ input }) => input" };

const jobOf = (name: string): JobDefinition =>
  definition({
    name,
    schedules: ["* * * * *"],
    overlap: "allow",
    retry: { ...definition({ name }).retry, retries: 0, crashes: 0 },
  });
const HANDLERS = [...RETURNING, ...THROWING, REJECTING, ECHO];
const manifest = manifestOf(...HANDLERS.map(({ name }) => jobOf(name)));
const slotIso = `${new Date().toISOString().slice(0, 17)}00Z`;

let services: EmbeddedServices;
let worker: ReturnType<typeof workerFunction>;

beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  services = await embeddedServices();
  const file = await jobsFile(Object.fromEntries(HANDLERS.map(({ name, text }) => [name, text])));
  const clients = { db: services.db, sqs: services.sqs };
  worker = workerFunction(services.config, manifest, { pool: "default", jobsFile: file, clients });
  await worker.ready();
});
afterAll(async () => {
  vi.restoreAllMocks();
  await worker.close();
  await services.close();
});

const readRun = (subject: string, slotKey = slotKeyOf(Date.parse(slotIso))): Promise<RunView | undefined> => {
  const table = dynamoTable(services.db, services.config.tableName);
  return makeReadRun({ table, clock: systemClock, jobs: services.jobs(manifest) })({ subject, slotKey });
};

const work = (): Promise<number> =>
  drain(services.sqs, services.config.queueUrls["default"] ?? "", worker.handler);

const runOnce = async (job: string): Promise<RunView | undefined> => {
  const clients = { db: services.db, sqs: services.sqs };
  const dispatch = dispatcherFunction(services.config, manifest, clients);
  await dispatch({ ...schedulerInput([job]), scheduledTime: slotIso }, { awsRequestId: `request-${job}` });
  await work();
  return readRun(job);
};

test.each(RESULTS.map(([what, , shown], n) => [what, `returns-${n}`, shown] as const))(
  "a result of %s ends the run as succeeded",
  async (_what, job, shown) => {
    expect(await runOnce(job)).toMatchObject({ state: "succeeded", result: shown });
  },
);

test.each(ERRORS.map(([what, , shown], n) => [what, `throws-${n}`, shown] as const))(
  "an error of %s ends the run as dead",
  async (_what, job, shown) => {
    expect(await runOnce(job)).toMatchObject({ state: "dead", reason: "1 attempt failed", error: shown });
  },
);

test("a promise that is rejected with nothing ends the run as dead", async () => {
  expect(await runOnce("rejects")).toMatchObject({
    state: "dead",
    error: { message: "undefined was thrown" },
  });
});

test.each<readonly [string, Json]>([
  ["null bytes and what no queue takes", "a\u0000b\uffff\ufffe"],
  ["a name that is empty", { "": 1 }],
  ["a number over 2^53", { id: 2 ** 60 }],
  ["depth", deep(40)],
])("an input of %s reaches the handler as it is, in a run by hand", async (_what, input) => {
  const deps = composeDeps(services.config, manifest, { db: services.db, sqs: services.sqs });
  const answer = await makeRunByHand(deps)({ job: jobOf("echoes"), input });
  await work();
  const occurrence = readRunId(answer.runId);
  expect(await readRun("echoes", occurrence?.slotKey)).toMatchObject({
    state: "succeeded",
    input,
    result: input,
  });
});
