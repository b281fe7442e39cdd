import { expect, test } from "vitest";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { definition } from "../../support/definitions.ts";
import { setup } from "../../support/path.ts";

test("a job that cannot be dispatched does not keep the watchdog from the others, and is looked at again", async () => {
  const jobs = ["broken", "fine"].map((name) =>
    definition({ name, schedules: ["0 2 * * *"], overlap: "allow", pool: name }),
  );
  const env = setup({ now: "2026-10-24T12:00:00Z", jobs });
  await watch(env.deps);
  await env.moveTo("2026-10-25T02:03:00Z");
  env.fail("send", "down", ({ pk }) => pk === "broken");
  await expect(watch(env.deps)).rejects.toThrow("down");
  expect(env.sent.map(({ pool }) => pool)).toEqual(["fine"]);
  await env.moveTo("2026-10-25T02:04:00Z");
  await watch(env.deps);
  expect(env.sent.map(({ pool }) => pool)).toContain("broken");
});
