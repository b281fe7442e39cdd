import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { workerFunction } from "../../../lib/compose/functions.ts";
import { runKey } from "../../../lib/core/items.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { isoOf, MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { type EmbeddedServices, embeddedServices, manifestOf } from "../../support/embedded-services.ts";
import { jobsFile } from "../../support/jobs-file.ts";
import { drain } from "../../support/receive.ts";

const DISPATCHERS = 10;
/** `npm run race` plays a hundred. */
const ROUNDS = Number(process.env["RACE_ROUNDS"] ?? 15);

const manifest = manifestOf(
  definition({ name: "side-by-side", schedules: ["* * * * *"], overlap: "allow" }),
  definition({ name: "one-at-a-time", schedules: ["* * * * *"] }),
);

let services: EmbeddedServices;
let dispatchers: readonly ChildProcess[];

const startDispatcher = async (): Promise<ChildProcess> => {
  const child = fork(new URL("../../support/dispatcher-process.ts", import.meta.url), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" },
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  child.send({ config: services.config, manifest });
  await once(child, "message");
  return child;
};

beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  services = await embeddedServices();
  dispatchers = await Promise.all(Array.from({ length: DISPATCHERS }, startDispatcher));
}, 120_000);
afterAll(async () => {
  for (const child of dispatchers) child.kill();
  await services.close();
});

/** All dispatchers get the slot at once, each as a delivery of its own. */
const deliverToAll = async (job: string, slotMs: number): Promise<void> => {
  const event = { ...schedulerInput([job]), scheduledTime: shortIsoOf(slotMs) };
  await Promise.all(
    dispatchers.map((child, index) => {
      const answered = once(child, "message");
      child.send({ event, requestId: `delivery-${index}-of-${slotMs}` });
      return answered;
    }),
  );
};

test.each(["side-by-side", "one-at-a-time"])(
  "ten dispatchers given the same slot of %s at once make one claim, one effect, and nine counted duplicates",
  { timeout: 240_000 },
  async (job) => {
    const effect = "async ({ runId }) => { await appendFile(EFFECTS, runId + '\\n'); }";
    const file = await jobsFile({ [job]: effect });
    const effects = join(dirname(file), "effects");
    await prepend(
      file,
      `import { appendFile } from "node:fs/promises"; const EFFECTS = ${JSON.stringify(effects)};\n`,
    );
    const worker = workerFunction(services.config, manifest, { pool: "default", jobsFile: file });
    await worker.ready();
    const table = dynamoTable(services.db, services.config.tableName);
    const lastSlotMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const messages: number[] = [];
    const duplicates: unknown[] = [];
    for (let round = ROUNDS - 1; round >= 0; round--) {
      const slotMs = lastSlotMs - round * MINUTE_MS;
      await deliverToAll(job, slotMs);
      messages.push(await drain(services.sqs, services.config.queueUrls["default"] ?? "", worker.handler));
      const key = runKey({ subject: job, slotKey: isoOf(slotMs) });
      const run = await table.get(key, { consistent: true });
      expect(run?.["st"]).toBe("succeeded");
      duplicates.push(run?.["dup"] instanceof Set ? run["dup"].size : 0);
    }
    await worker.close();
    const done = (await readFile(effects, "utf8")).trim().split("\n");
    expect(messages).toEqual(Array(ROUNDS).fill(1));
    expect(duplicates).toEqual(Array(ROUNDS).fill(DISPATCHERS - 1));
    expect(done).toHaveLength(ROUNDS);
    expect(new Set(done).size).toBe(ROUNDS);
  },
);

const prepend = async (file: string, text: string): Promise<void> => {
  await writeFile(file, text + (await readFile(file, "utf8")));
};
