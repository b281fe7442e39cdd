import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDataFolder } from "../../../cli/dev/data-folder.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const FACTS = { port: 4747, key: "k", pid: 12, startedAt: "2026-10-08T02:00:00.000Z" };
const newFolder = () => join(temporaryFolder(), "data");

test("a folder in use is refused, with its holder, and free again after the release", () => {
  const path = newFolder();
  const held = openDataFolder(path);
  held.writeFacts(FACTS);
  expect(() => openDataFolder(path)).toThrow(
    expect.objectContaining({
      code: "data_in_use",
      message: expect.stringContaining("process 12, port 4747"),
    }),
  );
  expect(JSON.parse(readFileSync(join(path, "dev.json"), "utf8"))).toEqual(FACTS);
  held.release();
  openDataFolder(path).release();
});

test("the key is readable by its user only, and gone after the release", () => {
  const path = newFolder();
  const held = openDataFolder(path);
  held.writeFacts(FACTS);
  expect(statSync(join(path, "dev.json")).mode & 0o777).toBe(0o600);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  held.release();
  expect(existsSync(join(path, "dev.json"))).toBe(false);
});

test("a folder that is made here stays out of the repository around it; one that was there is left as it is", () => {
  const path = newFolder();
  openDataFolder(path).release();
  expect(readFileSync(join(path, ".gitignore"), "utf8")).toBe("*\n");
  const there = temporaryFolder();
  openDataFolder(there).release();
  expect(existsSync(join(there, ".gitignore"))).toBe(false);
});

test("the facts of a killed stack are taken away by the next one", () => {
  const path = newFolder();
  const killed = openDataFolder(path);
  killed.release();
  writeFileSync(join(path, "dev.json"), JSON.stringify(FACTS));
  const next = openDataFolder(path);
  expect(existsSync(join(path, "dev.json"))).toBe(false);
  next.release();
});

test.each([
  ["below a file", (file: string) => join(file, "data")],
  ["a file", (file: string) => file],
])("a data folder that is %s is refused in one line", (_name, place) => {
  const file = join(temporaryFolder(), "file");
  writeFileSync(file, "");
  expect(() => openDataFolder(place(file))).toThrow(expect.objectContaining({ code: "data_folder" }));
});

test("a temporary folder is gone after the release", () => {
  const held = openDataFolder(undefined);
  expect(existsSync(held.path)).toBe(true);
  held.release();
  expect(existsSync(held.path)).toBe(false);
});
