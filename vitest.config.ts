import { defineConfig } from "vitest/config";

export default defineConfig({
  // Our own jobs import the product by its public name, as any user's do; here that is its source.
  ssr: { resolve: { conditions: ["belfry-source", "node"] } },
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
    // Two cores: more workers than that only make the emulators slow.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
