import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const tests = globSync("tests/**/*.test.ts")
  .map((file) => readFileSync(file, "utf8"))
  .join("\n");

test("each test that the guarantees quote is there", () => {
  const page = readFileSync("docs/guarantees.md", "utf8");
  const quoted = [...page.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => title);
  expect(quoted.length).toBeGreaterThan(20);
  expect(quoted.filter((title) => !tests.includes(title))).toEqual([]);
});
