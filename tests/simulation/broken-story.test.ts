import { expect, test } from "vitest";
import { brokenStory, type Play } from "./broken-story.ts";
import { EVERY_FAULT, play } from "./scenario.ts";

const SECOND_SLOT = "2026-03-29T00:05:00.000Z";

/** Stories in which nothing breaks, judged as if something had in those of four slots and more. */
const judgedAsBroken: Play = async (slots, trace) => {
  const { verdict } = await play({
    seed: 12,
    policy: { name: "skip", overlap: "skip" },
    faults: EVERY_FAULT,
    watchdog: true,
    operators: true,
    slots,
    ...(trace && { trace }),
  });
  expect(verdict).toEqual({ lost: [], doubled: [], stuck: [] });
  return { verdict: { ...verdict, doubled: slots < 4 ? [] : ["simulated~20260329T000500Z ran twice"] } };
};

test("of a seed that breaks a promise the shortest story is told, with all that happened to the run that it names", async () => {
  const story = await brokenStory(judgedAsBroken, 20);
  expect(story).toMatchObject({ slots: 4, broken: ["simulated~20260329T000500Z ran twice"] });
  const lines = story?.lines ?? [];
  expect(lines.filter((line) => !line.includes(SECOND_SLOT))).toEqual([]);
  const places = [/dispatcher-\d+: writes .*held=1/, /: sends /, /: writes st=running/, /: handler begins/];
  const found = places.map((place) => lines.findIndex((line) => place.test(line)));
  expect(found).not.toContain(-1);
  expect([...found].sort((a, b) => a - b)).toEqual(found);
});

test("the same seed tells the same story again", async () => {
  expect(await brokenStory(judgedAsBroken, 20)).toEqual(await brokenStory(judgedAsBroken, 20));
});

test("where nothing breaks there is no story", async () => {
  expect(await brokenStory(judgedAsBroken, 3)).toBeUndefined();
});
