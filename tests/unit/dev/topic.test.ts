import { expect, test } from "vitest";
import { startTopic } from "../../../cli/dev/topic.ts";
import { handClock } from "./hand-clock.ts";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const setup = () => {
  const hand = handClock("2026-10-08T12:00:00Z");
  const taken: string[] = [];
  const queue = { isAway: false, tries: 0 };
  const topic = startTopic({
    send: async (message) => {
      queue.tries += 1;
      if (queue.isAway) throw new Error("no answer");
      taken.push(message);
    },
    timers: hand,
  });
  const second = async (): Promise<void> => {
    hand.advance(1_000);
    await settled();
  };
  return { queue, second, taken, topic };
};

test("messages reach the queue in their order, also those that come while it is away", async () => {
  const { queue, second, taken, topic } = setup();
  topic.publish("a");
  await settled();
  queue.isAway = true;
  for (const message of ["b", "c"]) topic.publish(message);
  for (let n = 0; n < 600; n++) await second();
  expect(taken).toEqual(["a"]);
  queue.isAway = false;
  topic.publish("d");
  await second();
  expect(taken).toEqual(["a", "b", "c", "d"]);
});

test("a topic that is stopped tries no more", async () => {
  const { queue, second, topic } = setup();
  queue.isAway = true;
  topic.publish("a");
  await second();
  topic.stop();
  const { tries } = queue;
  for (let n = 0; n < 60; n++) await second();
  expect(queue.tries).toBe(tries);
});
