import { defineConfig } from "vitest/config";

/** Checks that install packages, or need a linter that is not ours: apart from the tests of every change. */
export default defineConfig({
  test: {
    include: ["tests/deployable/*.check.ts"],
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
