import { expect, test } from "vitest";
import { httpReceiver } from "../../unit/notify/http-receiver.ts";
import { descendants, makeProject, readyDev, runJob } from "./support.ts";

const JOB = `
import { defineJob } from "belfry";
export default defineJob({ handler: () => undefined });
`;

const CONFIG = `
import { defineConfig, pagerDuty, slack } from "belfry";
export default defineConfig({
  alerts: {
    secrets: { SLACK: "ssm:/notes/{stage}/slack", PAGER: "ssm:/notes/{stage}/pager" },
    notify: [slack({ webhook: "SLACK" })],
    page: [pagerDuty({ routingKey: "PAGER" })],
  },
});
`;

test("an alarm of the embedded stack reaches the terminal and a chat that was away, once; what has no secret here says so", async () => {
  const chat = await httpReceiver("ok");
  chat.answers.push({ status: 503, headers: { "retry-after": "1" } });
  const project = makeProject({
    "jobs/quiet.ts": JOB,
    "belfry.config.ts": CONFIG,
    ".env": `SLACK=${chat.address}/services/hush\n`,
  });
  const dev = await readyDev({ project });
  await dev.line(/alerts go to no pagerduty here: PAGER is neither in \.env nor in the environment/);
  const victim = descendants(dev.child.pid ?? 0).find(({ command }) => command.endsWith("worker.ts"));
  process.kill(victim?.pid ?? 0, "SIGKILL");
  await dev.line(/alert \(notify\) \[dev\] alarm \S+-worker-errors: Why: A worker function timed out/);
  await expect.poll(() => chat.received.length, { timeout: 50_000 }).toBe(2);
  const [refused, taken] = chat.received.map(({ body }) => JSON.parse(body) as { readonly text: string });
  expect(taken).toEqual(refused);
  expect(taken?.text).toMatch(/^\*\[dev\] alarm \S+-worker-errors\*\nWhy: /);
  const tested = await dev.ask("POST", "/v1/alerts/test", { topic: "page" });
  expect(tested.body).toMatchObject({
    ok: false,
    hops: [
      { name: "outbox", ok: true },
      { name: "notifier", ok: true },
      { name: "terminal", ok: true },
      { name: "slack", ok: true },
      { name: "pagerduty", ok: false },
    ],
  });
  expect(chat.received).toHaveLength(3);
  expect(dev.output()).not.toContain("hush");
}, 90_000);

const FAILING = `
import { defineJob } from "belfry";
export default defineJob({
  owner: "reports",
  retry: { retries: 0 },
  handler: () => { throw new Error("no luck"); },
});
`;

test("a run that failed is told in the terminal, with its error and its owner", async () => {
  const dev = await readyDev({ project: makeProject({ "jobs/report.ts": FAILING }) });
  await runJob(dev, "report", {});
  const line = await dev.line(/alert \(notify\) \[dev\] report failed/);
  expect(line).toMatch(/Why: the run is dead.*no luck/);
  expect(line).toContain("Run: report~");
  expect(line).toContain("Owner: reports");
}, 90_000);
