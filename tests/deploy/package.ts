import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunView } from "../../lib/core/runs/run.ts";
import { copyOf, folderWith, SOURCES, succeed } from "../deployable/support.ts";
import { type Commands, makeCommands } from "./commands.ts";
import type { Emulator } from "./emulator.ts";
import { STAGE } from "./project.ts";
import { check, until } from "./report.ts";

const INSTALL = ["install", "--prefer-offline", "--no-audit", "--no-fund"];

const JOB = (options: string, result: string): string => `import { defineJob } from "belfry";
export default defineJob({ ${options}handler: async () => ${result} });
`;

const SERVERLESS = "service: tiny\nprovider: { name: aws }\nplugins:\n  - belfry/serverless\n";

/** An alarm that lacks its threshold, made when all of ours is there. */
const FAILING_LATE = `${SERVERLESS}resources:
  Resources:
    Late:
      Type: AWS::CloudWatch::Alarm
      DependsOn: [BelfryDashoperateLambdaFunction, BelfryDispatchFailures]
      Properties:
        Namespace: Late
        MetricName: Late
        Period: 60
        Statistic: Sum
        EvaluationPeriods: 1
        ComparisonOperator: GreaterThanOrEqualToThreshold
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
    "serverless.yml": SERVERLESS,
  });
  await succeed("npm", [...INSTALL, join(sources, tarball), "serverless@npm:osls@^4"], { cwd: folder });
  return folder;
};

const deployFails = async (commands: Commands, folder: string): Promise<void> => {
  const file = join(folder, "serverless.yml");
  writeFileSync(file, FAILING_LATE);
  const { code, stdout, stderr } = await commands.tryServerless(["deploy"]);
  check(code === 1 && /Threshold/.test(`${stdout}${stderr}`), "the deploy fails with its reason", stderr);
  writeFileSync(file, SERVERLESS);
};

const helloRuns = async (commands: Commands): Promise<RunView> => {
  const { runId } = await commands.ask<RunView>("run", "hello");
  const run = await until("its run", async () => {
    const shown = await commands.ask<RunView>("show", runId);
    return shown.state === "succeeded" ? shown : undefined;
  });
  check(run.result === "hello", "the result of the job", run);
  return run;
};

/** What a first deploy leaves that fails at its end is told, and what to do; nothing of it is in the way of the next. */
const failsLate = async (commands: Commands, folder: string): Promise<string> => {
  await deployFails(commands, folder);
  const listed = await commands.belfry(["list", "--stage", STAGE]);
  check(
    listed.code === 4 &&
      /its stack is in UPDATE_ROLLBACK_COMPLETE[\s\S]*serverless deploy --stage/.test(listed.stderr),
    "the command line tells what to do",
    listed,
  );
  return `after a deploy that failed late: "${listed.stderr.split("\n")[0]}"`;
};

/** Deployed beside the other service, in the same account. */
export const packageIsDeployed = async (emulator: Emulator): Promise<string> => {
  const folder = await makeEmptyProject();
  const commands = makeCommands(emulator, folder);
  const failed = await failsLate(commands, folder);
  await commands.serverless("deploy");
  const first = await helloRuns(commands);
  const jobs = await commands.ask<readonly { readonly name: string }[]>("list");
  await deployFails(commands, folder);
  const second = await helloRuns(commands);
  await commands.serverless("remove");
  return `${failed}; then ${jobs.length} jobs (${jobs.map(({ name }) => name).join(", ")}), ${first.runId} ${first.state}; after a second deploy that failed, ${second.runId} ${second.state} on the version before; removed`;
};
