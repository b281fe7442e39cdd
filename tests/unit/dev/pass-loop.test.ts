import { expect, test } from "vitest";
import { startPasses } from "../../../cli/dev/pass-loop.ts";
import { handClock } from "./hand-clock.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("passes follow each other at their distance, never two at once, and failures are said once", async () => {
  const clock = handClock("2026-10-08T02:00:00Z");
  const passes: PromiseWithResolvers<void>[] = [];
  const lines: string[] = [];
  const loop = startPasses(
    () => {
      const pass = Promise.withResolvers<void>();
      passes.push(pass);
      return pass.promise;
    },
    { who: "watchdog", everyMs: 5_000, timers: clock, report: (line) => lines.push(line) },
  );
  expect(passes).toHaveLength(1);
  clock.advance(60_000);
  expect(passes).toHaveLength(1);
  for (const index of [0, 1]) {
    passes[index]?.reject(new Error("no table"));
    await settled();
    clock.advance(5_000);
  }
  passes[2]?.resolve();
  await settled();
  expect(lines).toEqual([expect.stringContaining("no table"), "the watchdog works again"]);
  await loop.stop();
  clock.advance(60_000);
  expect(passes).toHaveLength(3);
});
