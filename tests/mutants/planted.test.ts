import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { FAULTS } from "./faults/all.ts";
import { withFault } from "./planted.ts";

const textOf = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), "utf8");

test("each planted fault finds its place in the code, and changes it", async () => {
  const wrong: string[] = [];
  for (const fault of FAULTS) {
    const text = await textOf(fault.file);
    try {
      if (withFault(text, fault) === text) wrong.push(`"${fault.name}" changes nothing`);
    } catch (error) {
      wrong.push(String(error));
    }
  }
  expect(wrong).toEqual([]);
});

/** Names that a text uses as functions; comments speak of much else. */
const namesIn = (text: string): Set<string> =>
  new Set(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "").match(/(?<![.\w$])[A-Za-z_]\w*/g));

test("each planted fault calls only what its file knows: a fault that cannot run is noticed for nothing", async () => {
  const strangers: string[] = [];
  for (const { file, name, replace } of FAULTS) {
    const known = namesIn(await textOf(file));
    const called = [...replace.matchAll(/(?<![.\w$])([A-Za-z_]\w*)\(/g)].map(([, called = ""]) => called);
    const unknown = called.filter(
      (one) => !known.has(one) && !/^(if|for|while|Number|String|queueMicrotask)$/.test(one),
    );
    strangers.push(...unknown.map((one) => `"${name}" calls ${one}`));
  }
  expect(strangers).toEqual([]);
});

test("each planted fault has a name of its own", () => {
  const names = FAULTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("a text that is not there exactly once is an error that names the fault", () => {
  const fault = { name: "no fence", file: "a.ts", find: "one", replace: "two", violates: "-" };
  expect(withFault("one and more", fault)).toBe("two and more");
  expect(() => withFault("one, one", fault)).toThrow('"no fence": its text is 2 times in a.ts');
  expect(() => withFault("none", { ...fault, find: "zero" })).toThrow("0 times");
});
