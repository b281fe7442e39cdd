import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { RunView } from "../../lib/core/runs/run.ts";
import { copyOf, folderWith, SOURCES, succeed } from "../deployable/support.ts";
import { makeCommands } from "./commands.ts";
import type { Emulator } from "./emulator.ts";
import { STAGE } from "./project.ts";
import { check, until } from "./report.ts";

const INSTALL = ["install", "--prefer-offline", "--no-audit", "--no-fund"];

const JOB = (options: string, result: string): string => `import { defineJob } from "belfry";
export default defineJob({ ${options}handler: async () => ${result} });
`;

/** The package as it is published, in an empty folder with two jobs and the least serverless.yml. */
const makeEmptyProject = async (): Promise<string> => {
  const sources = copyOf(SOURCES);
  await succeed("npm", ["pack", "--pack-destination", sources], { cwd: sources });
  const tarball = readdirSync(sources).find((file) => file.endsWith(".tgz")) ?? "";
  const folder = folderWith({
    "package.json": '{"name": "tiny", "private": true}',
    "jobs/hello.ts": JOB("", '"hello"'),
    "jobs/nightly.ts": JOB('schedule: "0 2 * * *", ', "2"),
    "belfry.config.ts": `import { defineConfig } from "belfry";\nexport default defineConfig({ stages: ["${STAGE}"] });\n`,
    "serverless.yml": "service: tiny\nprovider: { name: aws }\nplugins:\n  - belfry/serverless\n",
  });
  await succeed("npm", [...INSTALL, join(sources, tarball), "serverless@npm:osls@^4"], { cwd: folder });
  return folder;
};

/** Deployed beside the other service, in the same account. */
export const packageIsDeployed = async (emulator: Emulator): Promise<string> => {
  const folder = await makeEmptyProject();
  const commands = makeCommands(emulator, folder);
  await commands.serverless("deploy");
  const { runId } = await commands.ask<RunView>("run", "hello");
  const run = await until("its run", async () => {
    const shown = await commands.ask<RunView>("show", runId);
    return shown.state === "succeeded" ? shown : undefined;
  });
  check(run.result === "hello", "the result of the job", run);
  const jobs = await commands.ask<readonly { readonly name: string }[]>("list");
  await commands.serverless("remove");
  return `${jobs.length} jobs (${jobs.map(({ name }) => name).join(", ")}), ${runId} ${run.state}, removed`;
};
