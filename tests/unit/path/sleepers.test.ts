import { expect, test } from "vitest";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import type { Key } from "../../../lib/core/write.ts";
import { definition } from "../../support/definitions.ts";
import { onRun, type Setup, setup } from "../../support/path.ts";

// Processes that sleep between two steps, as a frozen Lambda or a laptop with its lid closed does.

const job = definition({ name: "single", schedules: ["0 * * * *"] });
const make = () => setup({ now: "2026-10-25T00:00:30Z", jobs: [job] });
const onNote = ({ pk }: Key): boolean => pk.startsWith("O#");

const watchForMinutes = async (env: Setup, minutes: number): Promise<void> => {
  for (let pass = 0; pass < minutes; pass++) {
    await env.moveBy(MINUTE_MS);
    await watch(env.deps);
  }
};

test.each([
  ["between the watchdog's note and the record", onRun],
  ["while the note is on its way", onNote],
])(
  "whoever asks for a run, sleeps %s and dies before the send, is found by the watchdog",
  async (_when, match) => {
    const env = make();
    await watch(env.deps);
    env.meanwhile("write", match, () => watchForMinutes(env, 8));
    env.fail("send", "down");
    await expect(makeRunByHand(env.deps)({ job })).rejects.toThrow();
    expect(env.sent).toHaveLength(0);
    await watchForMinutes(env, 10);
    expect(env.lastSent()).toMatchObject({ subject: "single", trigger: "manual" });
  },
);

test("a note whose writer never came to ask is forgotten after twenty minutes", async () => {
  const env = make();
  await watch(env.deps);
  env.fail("write", "down", onRun);
  await expect(makeRunByHand(env.deps)({ job })).rejects.toThrow();
  await watchForMinutes(env, 25);
  const notes = () => env.writes.filter(({ key }) => onNote(key)).length;
  const before = notes();
  await watchForMinutes(env, 20);
  expect(notes()).toBe(before);
  expect(env.sent).toHaveLength(0);
});
