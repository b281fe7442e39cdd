import { defineConfig } from "belfry";

export default defineConfig({
  stages: ["dev", "staging", "prod"],
  pools: {
    default: { memory: 256, concurrency: 10 },
    // Work of many minutes, so that it never stands in the way of what is due on the minute.
    slow: { memory: 512, concurrency: 2 },
  },
});
