import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    // Our own jobs import the product by its public name, as any user's do.
    alias: { belfry: fileURLToPath(new URL("./lib/index.ts", import.meta.url)) },
  },
  test: {
    include: ["tests/**/*.test.ts"],
    // Two cores: more workers than that only make the emulators slow.
    maxWorkers: 2,
    testTimeout: 30_000,
  },
});
