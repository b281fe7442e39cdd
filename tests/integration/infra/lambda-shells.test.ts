import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
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

const MONITOR = `import { monitor } from "belfry";
export default monitor({ schedule: "0 * * * *" });`;

let services: EmbeddedServices;
let manager: SecretsManager;
let folder: string;

const build = async (): Promise<Built> => {
  const projectDir = join(folder, "project");
  await mkdir(join(projectDir, "jobs"), { recursive: true });
  await writeFile(join(projectDir, "jobs", "hello.ts"), JOB);
  await writeFile(join(projectDir, "jobs", "backup.ts"), MONITOR);
  const answer = await buildProject({ projectDir, outDir: join(folder, "build"), packages: "bundle" });
  if (!answer.ok) throw new Error(formatFaults(answer.faults));
  const { manifest, manifestFile, jobsFile } = answer;
  const [manifestText, jobsText] = await Promise.all([
    readFile(manifestFile, "utf8"),
    readFile(jobsFile, "utf8"),
  ]);
  return { manifest, manifestText, jobsText };
};

const SECRET_ARN = "arn:aws:secretsmanager:us-east-1:000000000000:secret:notes-dev-belfry-pings-a1b2c3";

interface SecretsManager {
  readonly url: string;
  /** Newest first: the current value, and the one before. */
  values: readonly string[];
  close(): void;
}

/** Answers `GetSecretValue` for the one secret. */
const secretsManager = async (): Promise<SecretsManager> => {
  const held = { values: ["the first secret, of over 32 bytes"], url: "", close: () => server.close() };
  const server = createServer(async (request, response) => {
    const { SecretId, VersionStage } = JSON.parse(await text(request));
    const SecretString = SecretId === SECRET_ARN && held.values[VersionStage === "AWSCURRENT" ? 0 : 1];
    response.setHeader("content-type", "application/x-amz-json-1.1");
    if (typeof SecretString === "string") response.end(JSON.stringify({ SecretString }));
    else response.writeHead(400).end(JSON.stringify({ __type: "ResourceNotFoundException" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  held.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return held;
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
    BELFRY_PING_SECRET: SECRET_ARN,
    BELFRY_PING_URL: "https://pings.example",
    AWS_ENDPOINT_URL_SECRETS_MANAGER: manager.url,
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
  // Warnings and errors go to the other stream.
  const log = `${out}\n${err}`.split("\n").filter((line) => line.startsWith("{"));
  return { answer: JSON.parse(answer), log: log.map((line) => JSON.parse(line)) };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "belfry shells "));
  manager = await secretsManager();
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
  manager.close();
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

/** As an HTTP API hands it over. */
const ping = async (url: string, body?: string) => {
  const { pathname, hostname, search } = new URL(url);
  const { answer, log } = await invoke("ping", {
    version: "2.0",
    rawPath: pathname,
    rawQueryString: search.slice(1),
    headers: { host: hostname },
    requestContext: { domainName: hostname, http: { method: body === undefined ? "GET" : "POST" } },
    // What curl sends of itself is no text to an HTTP API.
    ...(body === undefined ? {} : { body: Buffer.from(body).toString("base64"), isBase64Encoded: true }),
  });
  const { statusCode, body: told } = answer as { readonly statusCode: number; readonly body: string };
  return { status: statusCode, body: JSON.parse(told), log: JSON.stringify(log) };
};

const addressOfBackup = async (): Promise<string> =>
  ((await operate("/v1/jobs/backup/ping-address")).body as { readonly url: string }).url;

test("a ping of an HTTP API is taken at the address that operate tells, whose key is in no log", async () => {
  const url = await addressOfBackup();
  expect(url).toMatch(/^https:\/\/pings\.example\/ping\/backup\/[\w-]{43}$/);
  const taken = await ping(`${url}/2`, "disk full");
  expect(taken).toMatchObject({ status: 200, body: { duplicate: false } });
  const { body } = await operate(`/v1/runs/${taken.body.runId}`);
  expect(JSON.stringify(body)).toContain("it ended with exit code 2: disk full");
  const refused = await ping(`${url}?slot=never`);
  expect(refused).toMatchObject({ status: 400 });
  expect(refused.log).toContain('"PingsRefused":1');
  expect(taken.log + refused.log).not.toContain(url.split("/").at(-1));
  expect(await ping(`${url}x`)).toMatchObject({ status: 404 });
});

test("an address holds while its secret is changed once, and no longer", async () => {
  const before = await addressOfBackup();
  const [first = ""] = manager.values;
  manager.values = ["the second secret, of over 32 bytes", first];
  const after = await addressOfBackup();
  expect(after).not.toBe(before);
  for (const url of [before, after]) expect(await ping(url)).toMatchObject({ status: 200 });
  manager.values = ["the third secret, of over 32 bytes", "the second secret, of over 32 bytes"];
  expect(await ping(before)).toMatchObject({ status: 404 });
  expect(await ping(after)).toMatchObject({ status: 200 });
});

test("a secret that cannot be read refuses each ping for now, and the reason is in the log alone", async () => {
  const url = await addressOfBackup();
  manager.values = [];
  const { status, body, log } = await ping(url);
  expect(status).toBe(503);
  expect(body.detail).toBe("the ping could not be taken: send it again");
  expect(log).toContain("ResourceNotFoundException");
});

test("a context attribute left as literal text, and an environment with a fault, are errors and no quiet success", async () => {
  const literal = { ...event(), scheduledTime: "<aws.scheduler.scheduled-time>" };
  await expect(invoke("dispatcher", literal)).rejects.toThrow("left <aws.scheduler.scheduled-time> unfilled");
  await expect(invoke("dispatcher", event(), { ...environment(), BELFRY_TABLE: "" })).rejects.toThrow(
    "BELFRY_TABLE is not set",
  );
});
