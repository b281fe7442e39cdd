import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isoOf } from "../../lib/core/time.ts";
import type { Receiver } from "./receiver.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** A pool whose workers may be killed, and one that two runs keep busy. */
export const FRAGILE = "fragile";
export const NARROW = "narrow";

const CONFIG = `
import { defineConfig, webhook } from "belfry";
export default defineConfig({
  pools: { ${FRAGILE}: { concurrency: 2 }, ${NARROW}: { concurrency: 2 } },
  alerts: {
    secrets: { CHAT: "ssm:/drill/chat", ROOM: "ssm:/drill/room", PAGER: "ssm:/drill/pager", KEY: "ssm:/drill/key" },
    notify: [
      webhook({ name: "chat", url: "CHAT", secret: "KEY" }),
      webhook({ name: "room", url: "ROOM", secret: "KEY" }),
    ],
    page: [webhook({ name: "pager", url: "PAGER", secret: "KEY" })],
  },
});
`;

/** Job files by the job's name. */
export type JobFiles = { readonly [job: string]: string };

/** The text of a job file; an option's value is an expression. */
export const jobFile = (options: { readonly [option: string]: string }): string => `
import { at, defineJob } from "belfry";
export default defineJob({ ${Object.entries(options)
  .map(([name, value]) => `${name}: ${value}`)
  .join(", ")} });
`;

/** A schedule of these instants only. */
export const atSlots = (...slots: readonly number[]): string =>
  `[${slots.map((slotMs) => `at("${isoOf(slotMs).slice(0, 19)}")`).join(", ")}]`;

/** An empty project whose channels are the receiver's. */
export const makeProject = async ({ key, url }: Receiver) => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-drill-"));
  await mkdir(join(folder, "node_modules"));
  await mkdir(join(folder, "jobs"));
  await symlink(REPOSITORY, join(folder, "node_modules", "belfry"));
  await symlink(join(REPOSITORY, "node_modules", "@aws-sdk"), join(folder, "node_modules", "@aws-sdk"));
  const write = async (jobs: JobFiles): Promise<void> => {
    for (const [name, text] of Object.entries(jobs))
      await writeFile(join(folder, "jobs", `${name}.ts`), text);
  };
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await writeFile(join(folder, "belfry.config.ts"), CONFIG);
  await writeFile(
    join(folder, ".env"),
    `CHAT=${url}/chat\nROOM=${url}/room\nPAGER=${url}/pager\nKEY=${key}\n`,
  );
  await write({ idle: jobFile({ handler: "() => undefined" }) });
  return { folder, write, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 10 }) };
};
