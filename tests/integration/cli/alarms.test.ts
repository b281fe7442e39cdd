import { afterAll, beforeAll, expect, test } from "vitest";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { cli, startStack } from "./stack.ts";

let stack: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.close());

const belfry = (...args: readonly string[]) => cli(args, { data: stack.data });

test("where nothing rings, list says so and alarms has nothing to show", async () => {
  expect((await belfry("list")).stdout).toMatch(/\nalarms: none\n$/);
  expect(await belfry("alarms")).toMatchObject({ code: 0, stdout: "", stderr: "no alarm rings\n" });
  expect((await belfry("alarms", "--json")).json()).toEqual([]);
});

test("an alarm that rings is named by list, and alarms says what it means and what to do", async () => {
  const [dead] = alarmsOf({ jobs: [], pools: {} });
  if (dead === undefined) throw new Error("there are no alarms");
  stack.ringing.push({ alarm: dead, sinceMs: Date.parse("2026-10-08T02:06:00Z") });
  expect((await belfry("list")).stdout).toMatch(/\nalarms: runs-dead \("belfry alarms" says more\)\n$/);
  expect((await belfry("alarms")).stdout).toBe(
    `runs-dead, since 2026-10-08T02:06:00Z\n  ${dead.meaning}\n  ${dead.remedy}\n`,
  );
  expect((await belfry("alarms", "--json")).json()).toMatchObject([
    { key: "runs-dead", about: "jobs", topic: "notify", since: "2026-10-08T02:06:00Z" },
  ]);
});
