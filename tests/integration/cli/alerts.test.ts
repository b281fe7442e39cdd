import { afterAll, beforeAll, expect, test } from "vitest";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import { cli, startStack } from "./stack.ts";

let stack: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.close());

const belfry = (...args: readonly string[]) => cli(args, { data: stack.data });

test("alert test says of each hop whether it came through, and its exit code says it in one", async () => {
  const good = await belfry("alert", "test");
  expect(good).toMatchObject({ code: 0, stdout: "outbox    ok\nnotifier  ok\nchat      ok\n" });
  const bad = await belfry("alert", "test", "--topic", "page", "--json");
  expect(bad.code).toBe(1);
  expect(bad.json()).toMatchObject({
    ok: false,
    hops: [
      { name: "outbox", ok: true },
      { name: "notifier", ok: true },
      { name: "chat", ok: true },
      { name: "pager", ok: false, why: "PAGER is not in the environment" },
    ],
  });
});

test("alerts lists what was told and to whom", async () => {
  const atMs = Date.now() + 1_000;
  const alert = { id: "x", topic: "page", kind: "failing", atMs, reason: "it throws", job: "daily" } as const;
  await putAlert(stack.table, alert);
  const text = await belfry("alerts");
  expect(text.code).toBe(0);
  expect(text.stdout).toMatch(
    /^AT \(UTC\) +TOPIC +KIND +JOB +WHY +TOLD\n.+ page +failing +daily +it throws +not yet\n/,
  );
  const listed = await belfry("alerts", "--limit", "2", "--json");
  expect(listed.json()).toMatchObject([
    { id: "x", waits: true },
    { kind: "test", waits: false },
  ]);
});

test.each([
  [["alert", "ring"], "what"],
  [["alert", "test", "--topic", "sms"], "topic"],
  [["alerts", "--limit", "0"], "--limit"],
])("%j is wrong usage", async (words, said) => {
  const answer = await belfry(...words);
  expect(answer).toMatchObject({ code: 2, stderr: expect.stringContaining(said) });
});
