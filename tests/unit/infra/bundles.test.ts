import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import recorded from "../../../bench/bundle-bytes.json" with { type: "json" };
import { bundleFunctions } from "../../../infra/artifacts.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { manifestOf } from "../../support/embedded-services.ts";

const GROWTH = 1.05;

let bundles: ReadonlyMap<string, string>;
beforeAll(async () => {
  bundles = await bundleFunctions();
});
afterEach(() => {
  vi.unstubAllEnvs();
});

test("no bundle has grown by more than 5 % since its size was recorded (npm run bench:bytes records it)", () => {
  const sizes = new Map([...bundles].map(([file, text]) => [file, Buffer.byteLength(text)]));
  expect([...sizes.keys()].sort()).toEqual(Object.keys(recorded).sort());
  const grown = Object.entries(recorded).filter(([file, bytes]) => (sizes.get(file) ?? 0) > bytes * GROWTH);
  expect(grown.map(([file, bytes]) => `${file}: ${bytes} -> ${sizes.get(file)}`)).toEqual([]);
});

test("a bundled function signs its calls with the credentials that Lambda puts into its environment", async () => {
  const signers: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    signers.push(/Credential=(\w+)\//.exec(request.headers.authorization ?? "")?.[1]);
    response.writeHead(400).end('{"__type":"ValidationException"}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const folder = await mkdtemp(join(tmpdir(), "belfry-bundle-"));
  const manifest = manifestOf(definition({ name: "daily", schedules: ["* * * * *"] }));
  await writeFile(join(folder, "dispatcher.mjs"), bundles.get("dispatcher.mjs") ?? "");
  await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
  const queues = JSON.stringify({ default: `http://127.0.0.1:${port}/000000000000/default` });
  for (const [name, value] of Object.entries({
    AWS_ACCESS_KEY_ID: "OFTHEENVIRONMENT",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    BELFRY_SERVICE: "belfry",
    BELFRY_STAGE: "dev",
    BELFRY_TABLE: "table",
    BELFRY_QUEUES: queues,
    BELFRY_DEAD_LETTERS: queues,
    BELFRY_DISPATCH_FAILURES: queues,
  }))
    vi.stubEnv(name, value);
  const { handler } = await import(pathToFileURL(join(folder, "dispatcher.mjs")).href);
  const event = { ...schedulerInput(["daily"]), scheduledTime: "2026-10-08T02:00:00Z" };
  await expect(handler(event, { awsRequestId: "request" })).rejects.toThrow();
  expect(signers).toEqual(["OFTHEENVIRONMENT"]);
  server.close();
  await rm(folder, { recursive: true, force: true });
});
