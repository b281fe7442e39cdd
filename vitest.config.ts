import { defineConfig } from "vitest/config";

/** Tests of rules, which share no state of their process: one process for many files is started once. */
const PURE = "tests/{unit,property,contract,silence}/**/*.test.ts";

export default defineConfig({
  // Our own jobs import the product by its public name, as any user's do; here that is its source.
  ssr: { resolve: { conditions: ["belfry-source", "node"] } },
  test: {
    globalSetup: ["tests/support/global-setup.ts"],
    // Two cores: more workers than that only make the emulators slow.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: "pure", include: [PURE], isolate: false } },
      { extends: true, test: { name: "processes", include: ["tests/**/*.test.ts"], exclude: [PURE] } },
    ],
  },
});
