import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type FaultProxyOptions, startFaultProxy } from "./fault-proxy.ts";

const NONE = { "drop-before": 0, "drop-answer": 0, delay: 0, throttle: 0 };

/** A service that keeps the bodies it was sent, behind a proxy. */
const setup = async (options: Partial<FaultProxyOptions>) => {
  const heard: string[] = [];
  const service = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    heard.push(`${request.headers["x-amz-target"]} ${body}`);
    response.writeHead(201, { "x-amzn-requestid": "r1" }).end("done");
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  const proxy = await startFaultProxy({
    target: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    service: "dynamodb",
    seed: 1,
    faults: NONE,
    delayMs: 1,
    ...options,
  });
  onTestFinished(() => {
    proxy.close();
    service.close();
  });
  const call = (body = "{}") =>
    fetch(proxy.endpoint, { method: "POST", body, headers: { "x-amz-target": "Table.Put" } });
  return { heard, proxy, call };
};

test("without faults a call and its answer go through as they are", async () => {
  const { call, heard } = await setup({});
  const answer = await call('{"a":1}');
  expect([answer.status, answer.headers.get("x-amzn-requestid"), await answer.text()]).toEqual([
    201,
    "r1",
    "done",
  ]);
  expect(heard).toEqual(['Table.Put {"a":1}']);
});

test("a call that is dropped before never reaches the service", async () => {
  const { call, heard, proxy } = await setup({ faults: { ...NONE, "drop-before": 1 } });
  await expect(call()).rejects.toThrow();
  expect(heard).toEqual([]);
  expect(proxy.hits["drop-before"]).toBeGreaterThan(0);
});

test("a service whose answer is dropped has acted", async () => {
  const { call, heard, proxy } = await setup({ faults: { ...NONE, "drop-answer": 1 } });
  await expect(call()).rejects.toThrow();
  expect(heard.length).toBeGreaterThan(0);
  expect(proxy.hits["drop-answer"]).toBe(heard.length);
});

test.each([
  ["dynamodb", "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"],
  ["sqs", "com.amazonaws.sqs#RequestThrottled"],
] as const)("a throttled call of %s is answered in its own wire format", async (service, type) => {
  const { call, heard } = await setup({ service, faults: { ...NONE, throttle: 1 } });
  const answer = await call();
  expect([answer.status, await answer.json()]).toEqual([400, { __type: type, message: "too many calls" }]);
  expect(heard).toEqual([]);
});

test("the same seed fails the same calls", async () => {
  const faults = { ...NONE, throttle: 0.5 };
  const statuses = async (seed: number) => {
    const { call } = await setup({ seed, faults });
    const seen: number[] = [];
    for (let n = 0; n < 20; n++) seen.push((await call()).status);
    return seen;
  };
  const [first, again, other] = [await statuses(3), await statuses(3), await statuses(4)];
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test("when the faults are over, every call goes through", async () => {
  const { call, proxy } = await setup({ faults: { ...NONE, "drop-before": 1 } });
  proxy.endFaults();
  expect((await call()).status).toBe(201);
});
