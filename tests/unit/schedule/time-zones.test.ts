import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parseZone } from "../../../lib/core/schedule/zone.ts";

/** The type leaves nothing behind at run time, so it is read as text. */
const listed = async (): Promise<readonly string[]> => {
  const file = new URL("../../../lib/core/time-zones.ts", import.meta.url);
  return [...(await readFile(file, "utf8")).matchAll(/\| "([^"]+)"/g)].map(([, name]) => String(name));
};

test("each zone name that compiles is one that the schedule engine takes", async () => {
  const names = await listed();
  expect(names).toEqual([...new Set(names)].sort());
  expect(names.map((name) => parseZone(name).name)).toEqual(names);
});

test("each zone that Intl lists, and each usual name of UTC, compiles", async () => {
  const names = new Set(await listed());
  const usual = [...Intl.supportedValuesOf("timeZone"), "UTC", "Etc/UTC", "GMT", "US/Eastern", "Etc/GMT+5"];
  expect(usual.filter((name) => !names.has(name))).toEqual([]);
});
