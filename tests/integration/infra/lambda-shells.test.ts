import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { artifactFiles, type Built } from "../../../infra/artifacts.ts";
import { buildProject, formatFaults } from "../../../infra/build/build.ts";
import type { FunctionKind } from "../../../infra/naming.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { type EmbeddedServices, embeddedServices } from "../../support/embedded-services.ts";
import { receiveEvents } from "../../support/receive.ts";

const JOB = `import { defineJob, PermanentError } from "belfry";
export default defineJob({
  schedule: "0 * * * *",
  handler: async ({ input, slot, job }) => {
    if (input.fail) throw new PermanentError("told to fail");
    return { job, slot, pool: process.env.BELFRY_POOL };
  },
});`;

/** The slot of this hour: not so old that the start deadline is over. */
const SLOT = `${new Date().toISOString().slice(0, 14)}00:00Z`;

let services: EmbeddedServices;
let folder: string;

const build = async (): Promise<Built> => {
  const projectDir = join(folder, "project");
  await mkdir(join(projectDir, "jobs"), { recursive: true });
  await writeFile(join(projectDir, "jobs", "hello.ts"), JOB);
  const answer = await buildProject({ projectDir, outDir: join(folder, "build"), packages: "bundle" });
  if (!answer.ok) throw new Error(formatFaults(answer.faults));
  const { manifest, manifestFile, jobsFile } = answer;
  const [manifestText, jobsText] = await Promise.all([
    readFile(manifestFile, "utf8"),
    readFile(jobsFile, "utf8"),
  ]);
  return { manifest, manifestText, jobsText };
};

/** What the template gives the functions, and where the services are when they are not AWS's own. */
const environment = (): Record<string, string> => {
  const { config } = services;
  return {
    BELFRY_SERVICE: config.service,
    BELFRY_STAGE: config.stage,
    BELFRY_TABLE: config.tableName,
    BELFRY_QUEUES: JSON.stringify(config.queueUrls),
    BELFRY_DEAD_LETTERS: JSON.stringify(config.deadLetterUrls),
    BELFRY_DISPATCH_FAILURES: config.dispatchFailuresUrl,
    BELFRY_POOL: "default",
    AWS_REGION: config.region,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_ENDPOINT_URL_DYNAMODB: config.endpoints?.dynamodb ?? "",
    AWS_ENDPOINT_URL_SQS: config.endpoints?.sqs ?? "",
  };
};

// As Lambda does: the file is imported once, then its handler gets events, and what is thrown is reported. Left to Node,
// an error would be printed with the bundle's one long line, which is more than a pipe takes at once.
const RUNTIME = `
const [file, event] = process.argv.slice(2);
try {
  const { handler } = await import(file);
  const answer = await handler(JSON.parse(event), { awsRequestId: "request-1" });
  process.stderr.write("ANSWER " + JSON.stringify(answer ?? null), () => process.exit());
} catch (error) {
  process.stderr.write(String(error?.message), () => process.exit(1));
}`;

interface Invoked {
  readonly answer: unknown;
  readonly log: readonly { readonly [name: string]: unknown }[];
}

/** One cold invocation in a process of its own, in a folder that has only what the zip has. */
const invoke = async (kind: FunctionKind, event: unknown, env = environment()): Promise<Invoked> => {
  const file = pathToFileURL(join(folder, kind, `${kind}.mjs`)).href;
  const args = [join(folder, "runtime.mjs"), file, JSON.stringify(event)];
  const child = spawn(process.execPath, args, { cwd: join(folder, kind), env });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const answer = /ANSWER (.*)$/s.exec(err)?.[1];
  if (answer === undefined) throw new Error(`${kind} ended without an answer: ${out}${err}`);
  const log = out.split("\n").filter((line) => line.startsWith("{"));
  return { answer: JSON.parse(answer), log: log.map((line) => JSON.parse(line)) };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "belfry shells "));
  const [started, artifacts] = await Promise.all([embeddedServices(), build().then(artifactFiles)]);
  services = started;
  await writeFile(join(folder, "runtime.mjs"), RUNTIME);
  for (const [kind, files] of artifacts)
    for (const [file, content] of Object.entries(files)) {
      const path = join(folder, kind, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    }
});

afterAll(async () => {
  await services.close();
  await rm(folder, { recursive: true, force: true });
});

const event = (subjects: readonly string[] = ["hello"]) => ({
  ...schedulerInput(subjects),
  scheduledTime: SLOT,
});

const nextRecords = async () => {
  const events = await receiveEvents(services.sqs, services.config.queueUrls["default"] ?? "");
  return { Records: events.flatMap(({ Records }) => Records) };
};

const operate = async (path: string, body?: object): Promise<{ status: number; body: unknown }> => {
  const request =
    body === undefined ? { method: "GET", path } : { method: "POST", path, body: JSON.stringify(body) };
  const { answer } = await invoke("operate", request);
  const { status, body: told } = answer as { readonly status: number; readonly body: string };
  return { status, body: JSON.parse(told) };
};

test("a schedule's event goes through the bundled dispatcher and worker to a record that operate shows", async () => {
  await invoke("dispatcher", event());
  const records = await nextRecords();
  expect(records.Records).toHaveLength(1);
  const { answer, log } = await invoke("worker", records);
  expect(answer).toEqual({ batchItemFailures: [] });
  expect(log).toEqual([expect.objectContaining({ job: "hello", state: "succeeded" })]);
  const shown = await operate(`/v1/runs/hello~${SLOT.replaceAll(/[-:]/g, "")}`);
  expect(shown).toMatchObject({
    status: 200,
    body: { run: { state: "succeeded", result: { job: "hello", pool: "default" } } },
  });
});

test("a run by hand that fails for good is dead, with its error and stack", async () => {
  const asked = await operate("/v1/jobs/hello/runs", { input: { fail: true } });
  expect(asked.status).toBe(202);
  await invoke("worker", await nextRecords());
  const { body } = await operate("/v1/runs?job=hello&state=dead");
  expect(JSON.stringify(body)).toContain("told to fail");
});

test("a pass of the watchdog and an empty batch of dead letters end well", async () => {
  const { log } = await invoke("watchdog", {});
  expect(log).toEqual([expect.objectContaining({ message: "watchdog-pass", WatchdogPasses: 1 })]);
  expect((await invoke("dead-letters", { Records: [] })).answer).toEqual({ batchItemFailures: [] });
});

test("a context attribute left as literal text, and an environment with a fault, are errors and no quiet success", async () => {
  const literal = { ...event(), scheduledTime: "<aws.scheduler.scheduled-time>" };
  await expect(invoke("dispatcher", literal)).rejects.toThrow("left <aws.scheduler.scheduled-time> unfilled");
  await expect(invoke("dispatcher", event(), { ...environment(), BELFRY_TABLE: "" })).rejects.toThrow(
    "BELFRY_TABLE is not set",
  );
});
