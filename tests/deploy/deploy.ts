/**
 * `npm run test:deploy`: a project is deployed to an emulated AWS by `serverless deploy`, unchanged, and lives through
 * what a deployment lives through. Prints what each step saw; ends with one line of counts; exit 1 when something is not
 * as it should be.
 */
import { readFileSync } from "node:fs";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { startAlarmWatch } from "./alarm-watch.ts";
import { makeAws } from "./aws.ts";
import { makeCommands } from "./commands.ts";
import { startCompanion } from "./companion.ts";
import { type Emulator, startEmulator } from "./emulator.ts";
import { packageIsDeployed } from "./package.ts";
import { makeProject, SERVICE, STAGE } from "./project.ts";
import { startReceiver } from "./receiver.ts";
import { makeReport, type Report } from "./report.ts";
import * as seen from "./scenario.ts";
import { outputOf, runsOf } from "./stage.ts";
import { thousandAreDeployed } from "./thousand.ts";

const MINUTE_MS = 60_000;
/** A deploy takes 15 s on two cores that have nothing else to do. */
const DEPLOY_MS = 45_000;

const nextMinute = (fromMs: number): number => Math.ceil(fromMs / MINUTE_MS) * MINUTE_MS;

const play = async (emulator: Emulator, { step }: Report): Promise<void> => {
  const aws = makeAws(emulator);
  const firstMs = nextMinute(Date.now() + DEPLOY_MS);
  const project = makeProject({ firstMs });
  const commands = makeCommands(emulator, project.folder);
  const stage = { aws, commands };
  const receiver = await startReceiver(emulator);
  const hook = { Name: `${SERVICE}/${STAGE}/hook`, SecretString: receiver.secret };
  await aws.secrets.send(new CreateSecretCommand(hook));
  await step("first deploy", () => seen.deployed(stage));
  const companion = startCompanion(aws, (error) => console.error("companion:", error));
  const alarms = startAlarmWatch(aws, (error) => console.error("alarms:", error));
  const { deliveries } = companion;
  try {
    await step("a schedule whose target is gone", () => seen.targetTakenAway(stage));
    await step("a stage that does not exist", () => seen.noSuchStage(stage));
    await step("a run that waits", () => seen.waitsForItsRetry(stage));
    await step("two runs in line", () => seen.inLine(stage));
    await step("a failing job", () => seen.failsToItsEnd(stage));
    await step("what an operator asks", () => seen.operated(stage));
    await step("a message that no worker can end", () => seen.nobodyCouldEnd(stage));
    await step("a schedule strikes", () => seen.firesOnTime(stage, deliveries));
    await step("who is told of the failing job", () => seen.deadIsTold(receiver.told));
    await step("the same occurrence again", () => seen.sameOccurrenceAgain(stage));
    await step("a delivery that fails", () => seen.deliveredByDeadLetter(stage, deliveries));
    await step("doctor", () => seen.doctorFinds(stage));
    const [leaving] = await runsOf(stage, "leaving");
    project.change({ firstMs, secondMs: nextMinute(Date.now() + DEPLOY_MS) });
    await step("a second deploy, with 20 runs in flight", () => seen.deployedUnderWay(stage));
    await step("schedules that it brought", () => seen.newSchedulesStrike(stage, deliveries));
    await step("an event that nobody can take", () => seen.unfilledIsRefused(stage));
    await step("an alarm", () => seen.alarmIsTold(receiver.told, alarms.rang));
    await step("the job that it removed", () => seen.leavesNothingOpen(stage, leaving?.runId ?? ""));
    await step("the rights of its roles", () => seen.rightsAreUsed(stage));
  } finally {
    await Promise.all([companion.stop(), alarms.stop()]);
    receiver.stop();
  }
  const table = await outputOf(stage, "BelfryTableName");
  const [kept] = await runsOf(stage, "punctual");
  await step("remove", () => seen.removed(stage));
  project.takeTable(table);
  await step("a deploy after it, on the table that is left", () =>
    seen.takenUpAgain(stage, table, kept?.runId ?? ""),
  );
  await step("the package in an empty project", () => packageIsDeployed(emulator));
  await step("a thousand jobs", () => thousandAreDeployed(emulator, aws));
};

const tail = (file: string): string => readFileSync(file, "utf8").split("\n").slice(-40).join("\n");

const main = async (): Promise<void> => {
  const report = makeReport();
  const emulator = await startEmulator();
  const stop = (): void => {
    void emulator.stop().then(() => process.exit(130));
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    await play(emulator, report);
    console.log(`deploy: ${report.passed()} passed, 0 failed`);
  } catch (error) {
    console.error(`${tail(emulator.logFile)}\n\n${error instanceof Error ? error.message : error}`);
    console.log(`deploy: ${report.passed()} passed, 1 failed`);
    process.exitCode = 1;
  } finally {
    await emulator.stop();
  }
};

await main();
