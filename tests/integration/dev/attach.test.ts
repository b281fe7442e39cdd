import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startFauxqs } from "fauxqs";
import { expect, onTestFinished, test } from "vitest";
import {
  descendants,
  endOf,
  gatedJob,
  makeGate,
  makeProject,
  readyDev,
  runJob,
  startDev,
} from "./support.ts";

type Dynalite = (options: object) => Server;
const dynalite = createRequire(import.meta.url)("dynalite") as Dynalite;

const REAL = {
  AWS_ACCESS_KEY_ID: "AKIAREALREALREAL",
  AWS_SECRET_ACCESS_KEY: "real",
  AWS_PROFILE: "production",
  AWS_REGION: "eu-west-1",
};

test("named endpoints are used instead of the embedded ones, and never with the caller's credentials", async () => {
  const signatures = new Set<string>();
  const dynamodb = dynalite({ createTableMs: 0 });
  dynamodb.on("request", (request) => signatures.add(String(request.headers.authorization).slice(0, 40)));
  dynamodb.listen(0, "127.0.0.1");
  await once(dynamodb, "listening");
  const sqs = await startFauxqs({ port: 0, logger: false });
  onTestFinished(async () => {
    dynamodb.close();
    dynamodb.closeAllConnections();
    await sqs.stop();
  });
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  const dev = await readyDev({
    project,
    environment: {
      ...REAL,
      AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${(dynamodb.address() as AddressInfo).port}`,
      AWS_ENDPOINT_URL_SQS: `http://127.0.0.1:${sqs.port}`,
    },
  });
  expect(descendants(dev.child.pid ?? 0).filter(({ command }) => command.endsWith("emulators.ts"))).toEqual(
    [],
  );
  const runId = await runJob(dev, "gated", { gate: gate.url });
  (await gate.next()).open();
  expect(await endOf(dev, runId)).toMatchObject({ state: "succeeded" });
  expect([...signatures].every((text) => text.startsWith("AWS4-HMAC-SHA256 Credential=test/"))).toBe(true);
  expect(sqs.inspectQueue("belfry-dev-default")?.name).toBe("belfry-dev-default");
  expect(readdirSync(join(project, ".belfry"))).not.toContain("dynamodb");
  // Its processes must be gone before their table: dynalite throws where a request comes while it closes.
  dev.child.kill("SIGTERM");
  await dev.exited;
});

test("an endpoint that does not answer ends the start with 4, one line, and what names it", async () => {
  const dev = await startDev({
    project: makeProject({ "jobs/gated.ts": gatedJob(1) }),
    // The discard port: nobody listens there.
    environment: { AWS_ENDPOINT_URL: "http://127.0.0.1:9" },
  });
  expect(await dev.exited).toEqual({ code: 4, signal: null });
  expect(dev.output()).toMatch(/^error: .*ECONNREFUSED 127.0.0.1:9\nAWS_ENDPOINT_URL.* does it run\?$/m);
  expect(dev.output()).not.toMatch(/^\s+at /m);
});

test("with real credentials in the environment, a handler's own client reaches the embedded table only", async () => {
  const project = makeProject({
    "jobs/look.ts": `
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { defineJob } from "belfry";
export default defineJob({
  handler: async () => {
    const client = new DynamoDBClient({});
    const { TableNames } = await client.send(new ListTablesCommand({}));
    const { accessKeyId } = await client.config.credentials();
    return { TableNames, accessKeyId, region: await client.config.region(), table: process.env.BELFRY_TABLE };
  },
});`,
  });
  const dev = await readyDev({ project, environment: REAL });
  const runId = await runJob(dev, "look", {});
  expect((await endOf(dev, runId)).result).toEqual({
    TableNames: ["belfry-dev"],
    accessKeyId: "test",
    region: "us-east-1",
    table: "belfry-dev",
  });
});
