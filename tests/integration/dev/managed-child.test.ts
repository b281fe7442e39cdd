import { expect, test } from "vitest";
import { ManagedChild } from "../../../cli/dev/managed-child.ts";
import type { EmulatorsStart } from "../../../cli/dev/messages.ts";
import { systemTimers } from "../../../lib/adapters/system/system.ts";
import { temporaryFolder } from "./support.ts";

test("a child that is stopped before it is ready ends, and is neither missed nor started again", async () => {
  const said: string[] = [];
  const start: EmulatorsStart = { folder: temporaryFolder() };
  const child = new ManagedChild({
    name: "the emulator process",
    entry: new URL("../../../cli/dev/emulators.ts", import.meta.url),
    environment: process.env,
    start: async () => ({ start }),
    timers: systemTimers,
    report: (line) => said.push(line),
    output: () => undefined,
  });
  const begun = child.begin();
  await Promise.resolve();
  await child.stop();
  await begun;
  expect(said).toEqual([]);
});
