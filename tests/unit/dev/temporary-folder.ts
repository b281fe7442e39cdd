import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** With a space in its name; gone with the test. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry test "));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
