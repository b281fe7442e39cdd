import { beforeAll, expect, test, vi } from "vitest";
import { STORY_COUNTS, type StoryCounts } from "../../../lib/core/costs/story-counts.ts";
import { playStories } from "../../support/stories.ts";

let played: { readonly [story: string]: StoryCounts };
beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  played = await playStories();
});

/** Names and numbers in a body differ by a digit or two from one time to the next. */
const isOfBytes = (name: string): boolean => /bytes/i.test(name);
const BYTES_MARGIN = 1.03;

const risen = (now: StoryCounts, recorded: StoryCounts): readonly string[] =>
  Object.entries(recorded)
    .map(([name, before]) => ({ name, before, after: now[name as keyof StoryCounts] }))
    .filter(({ name, before, after }) => after > before * (isOfBytes(name) ? BYTES_MARGIN : 1))
    .map(({ name, before, after }) => `${name}: ${before} -> ${after}`);

test.each(Object.entries(STORY_COUNTS))(
  "a run costs no more requests, units or bytes than recorded: %s",
  (story, recorded) => {
    const now = played[story];
    expect(now === undefined ? ["it was not played"] : risen(now, recorded)).toEqual([]);
  },
);

test("what is recorded is what is played", () => {
  expect(Object.keys(STORY_COUNTS)).toEqual(Object.keys(played));
});
