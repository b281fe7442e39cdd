import { expect, test } from "vitest";
import { idleThreads } from "../../lib/adapters/thread/idle-threads.ts";

const setup = (stay: number) => {
  const waits = new Map<object, () => void>();
  const ended: string[] = [];
  const timers = {
    after: (_waitMs: number, callback: () => void) => {
      const key = {};
      waits.set(key, callback);
      return { cancel: () => void waits.delete(key) };
    },
  };
  const idle = idleThreads<string>(stay, { timers, end: (thread) => ended.push(thread) });
  return {
    idle,
    ended,
    /** Half a minute in which nobody needs one. */
    quiet: (): void => {
      for (const [key, callback] of [...waits]) {
        waits.delete(key);
        callback();
      }
    },
    waiting: (): number => waits.size,
  };
};

test("after a burst so many threads stay, and the others end when nobody has needed them for a while", () => {
  const { idle, ended, quiet } = setup(2);
  for (const thread of ["a", "b", "c", "d"]) idle.add(thread);
  expect(ended).toEqual([]);
  quiet();
  expect(ended).toEqual(["c", "d"]);
  expect([idle.take(), idle.take(), idle.take()]).toEqual(["b", "a", undefined]);
});

test("a thread that is needed again does not end", () => {
  const { idle, ended, quiet, waiting } = setup(1);
  for (const thread of ["a", "b", "c"]) idle.add(thread);
  expect(idle.take()).toBe("c");
  quiet();
  expect(ended).toEqual(["b"]);
  idle.add("c");
  expect(waiting()).toBe(1);
  expect(idle.take()).toBe("c");
  expect(waiting()).toBe(0);
});

test("a thread that dies is none that waits, and nothing waits after the end", () => {
  const { idle, waiting } = setup(1);
  for (const thread of ["a", "b", "c"]) idle.add(thread);
  expect([idle.remove("c"), idle.remove("c")]).toEqual([true, false]);
  idle.clear();
  expect(waiting()).toBe(0);
  expect(idle.take()).toBeUndefined();
});
