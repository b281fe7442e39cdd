import { ListSchedulesCommand } from "@aws-sdk/client-scheduler";
import type { RunView } from "../../lib/core/runs/run.ts";
import { folderWith, symlinkLibrary } from "../deployable/support.ts";
import type { Aws } from "./aws.ts";
import { makeCommands } from "./commands.ts";
import type { Emulator } from "./emulator.ts";
import { STAGE } from "./project.ts";
import { check, until } from "./report.ts";

const JOBS = 1_000;
/** Of them, so many have two schedules. */
const WITH_TWO = 200;

/** Five hours from now, so that none of them strikes meanwhile. */
const schedulesOf = (i: number): readonly string[] => {
  const hour = (new Date().getUTCHours() + 5 + (i % 15)) % 24;
  const daily = `${i % 60} ${hour} * * *`;
  return i < WITH_TWO ? [daily, `${(i + 7) % 60} ${hour} 1 * *`] : [daily];
};

const jobFile = (i: number): readonly [path: string, content: string] => [
  `jobs/job-${i}.ts`,
  `import { defineJob } from "belfry";
export default defineJob({ schedule: ${JSON.stringify(schedulesOf(i))}, handler: async () => ${i} });
`,
];

/** More schedules than a template has room for: some have their own, the rest share a tick. */
export const thousandAreDeployed = async (emulator: Emulator, { scheduler }: Aws): Promise<string> => {
  const folder = folderWith({
    "package.json": '{"name": "big", "private": true, "type": "module"}',
    "serverless.yml": "service: big\nprovider: { name: aws }\nplugins: [belfry/serverless]\n",
    "belfry.config.ts": `import { defineConfig } from "belfry";\nexport default defineConfig({ stages: ["${STAGE}"] });\n`,
    ...Object.fromEntries(Array.from({ length: JOBS }, (_, i) => jobFile(i))),
  });
  symlinkLibrary(folder);
  const commands = makeCommands(emulator, folder);
  await commands.serverless("deploy");
  const jobs = await commands.ask<readonly unknown[]>("list");
  check(jobs.length === JOBS, "all jobs are known", jobs.length);
  const ticks = await scheduler.send(
    new ListSchedulesCommand({ GroupName: `big-${STAGE}-belfry-jobs`, NamePrefix: "TICK" }),
  );
  check(ticks.Schedules?.length === 1, "there is one tick", ticks.Schedules);
  const { runId } = await commands.ask<RunView>("run", `job-${JOBS - 1}`);
  const run = await until("its run", async () => {
    const shown = await commands.ask<RunView>("show", runId);
    return shown.state === "succeeded" ? shown : undefined;
  });
  await commands.serverless("remove");
  return `${jobs.length} jobs with ${JOBS + WITH_TWO} schedules, ${runId} ${run.state}, removed`;
};
