/**
 * `npm run test:deploy [-- --take N --seed S]`: a project is deployed to an emulated AWS by `serverless deploy`, unchanged, and lives through
 * what a deployment lives through. Prints what each step saw; ends with one line of counts; exit 1 when something is not
 * as it should be.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startAlarmWatch } from "./alarm-watch.ts";
import { type Aws, makeAws } from "./aws.ts";
import { refusedInALine } from "./bad-input.ts";
import { held, secondStage, secondStageRemoved, silenceIsTold, throttledIsLate } from "./beside.ts";
import { makeCommands } from "./commands.ts";
import { type Delivery, startCompanion } from "./companion.ts";
import { type Emulator, startEmulator } from "./emulator.ts";
import { packageIsDeployed } from "./package.ts";
import { makeProject, STAGE } from "./project.ts";
import { startReceiver } from "./receiver.ts";
import { makeReport, type Report } from "./report.ts";
import * as seen from "./scenario.ts";
import { outputOf, putSecret, runsOf, type Stage } from "./stage.ts";
import { thousandAreDeployed } from "./thousand.ts";

const { values } = parseArgs({
  options: { take: { type: "string" }, seed: { type: "string", default: "1" } },
});

const MINUTE_MS = 60_000;
/** A deploy takes 15 s on two cores that have nothing else to do, and at most that long on two that have. */
const DEPLOY_MS = 75_000;
const SECOND_DEPLOY_MS = 180_000;

const nextMinute = (fromMs: number): number => Math.ceil(fromMs / MINUTE_MS) * MINUTE_MS;

interface Ground extends Report {
  readonly emulator: Emulator;
  readonly aws: Aws;
}

/** A stage of its own project, with somebody who is told of it. */
const makeStage = async ({ emulator, aws }: Ground, name: string) => {
  const firstMs = nextMinute(Date.now() + DEPLOY_MS);
  const project = makeProject({ firstMs });
  const stage: Stage = { name, emulator, aws, commands: makeCommands(emulator, project.folder, name) };
  const receiver = await startReceiver(emulator);
  await putSecret(stage, "hook", receiver.secret);
  return { stage, project, firstMs, receiver };
};

type Made = Awaited<ReturnType<typeof makeStage>>;

const live = async (
  { step }: Ground,
  { stage, project, firstMs, receiver }: Made,
  { deliveries, rang }: { readonly deliveries: readonly Delivery[]; readonly rang: ReadonlySet<string> },
): Promise<void> => {
  await step("a schedule whose target is gone", () => seen.targetTakenAway(stage));
  await step("a stage that does not exist", () => seen.noSuchStage(stage));
  await step("a run that waits", () => seen.waitsForItsRetry(stage));
  await step("two runs in line", () => seen.inLine(stage));
  await step("a ping from outside", () => seen.pinged(stage));
  await step("a failing job", () => seen.failsToItsEnd(stage));
  await step("what an operator asks", () => seen.operated(stage));
  await step("a message that no worker can end", () => seen.nobodyCouldEnd(stage));
  await step("a schedule strikes", () => seen.firesOnTime(stage, deliveries));
  await step("who is told of the failing job", () => seen.deadIsTold(receiver.told));
  await step("the same occurrence again", () => seen.sameOccurrenceAgain(stage));
  await step("a delivery that fails", () => seen.deliveredByDeadLetter(stage, deliveries));
  await step("doctor", () => seen.doctorFinds(stage));
  const [leaving] = await runsOf(stage, "leaving");
  project.change({ firstMs, secondMs: nextMinute(Date.now() + SECOND_DEPLOY_MS) });
  await step("a second deploy, with 20 runs in flight", () => seen.deployedUnderWay(stage));
  await Promise.all([
    step("the 20 runs that it met", () => seen.endOnce(stage)),
    step("schedules that it brought", () => seen.newSchedulesStrike(stage, deliveries)),
    step("an event that nobody can take", () => seen.unfilledIsRefused(stage)),
    step("alarms", () => seen.alarmsAreTold(receiver.told, rang)),
    step("the job that it removed", () => seen.leavesNothingOpen(stage, leaving?.runId ?? "")),
  ]);
  await step("the rights of its roles", () => seen.rightsAreUsed(stage));
};

const others = async (
  { step, emulator, aws }: Ground,
  { stage, project, receiver }: Made,
  { first, deliveries }: { readonly first: Stage; readonly deliveries: readonly Delivery[] },
): Promise<void> => {
  const { told } = receiver;
  await step("a second stage beside it", () => secondStage(stage, first));
  await step("functions that are not started", () => held(stage));
  await step("the package in an empty project", () => packageIsDeployed(emulator));
  await step("a schedule whose target is throttled", () => throttledIsLate(stage, { deliveries, told }));
  await step("bad input", () => refusedInALine({ ...stage, folder: project.folder }, first));
  await step("a thousand jobs", () => thousandAreDeployed(emulator, aws));
  await step("the watchdog's silence", () => silenceIsTold(stage, told));
  await step("the second stage is removed", () => secondStageRemoved(stage, first));
};

const play = async (emulator: Emulator, report: Report): Promise<void> => {
  const { step } = report;
  const aws = makeAws(emulator);
  const ground = { ...report, emulator, aws };
  const made = await makeStage(ground, STAGE);
  const { stage, project } = made;
  await step("first deploy", () => seen.deployed(stage));
  const companion = startCompanion(aws, (error) => console.error("companion:", error));
  const alarms = startAlarmWatch(aws, (error) => console.error("alarms:", error));
  const second = await makeStage(ground, "other");
  try {
    const { deliveries } = companion;
    const { rang } = alarms;
    await Promise.all([
      live(ground, made, { deliveries, rang }),
      others(ground, second, { first: stage, deliveries }),
    ]);
  } finally {
    await Promise.all([companion.stop(), alarms.stop()]);
  }
  if (values.take !== undefined)
    await step(`${values.take} rights taken away`, () =>
      seen.rightsAreMissed(stage, Number(values.take), Number(values.seed)),
    );
  for (const { receiver } of [made, second]) receiver.stop();
  const table = await outputOf(stage, "BelfryTableName");
  const [kept] = await runsOf(stage, "punctual");
  await step("remove", () => seen.removed(stage));
  project.takeTable(table);
  await step("a deploy after it, on the table that is left", () =>
    seen.takenUpAgain(stage, table, kept?.runId ?? ""),
  );
};

/** What the emulator said last, without the functions' own lines. */
const tail = (file: string): string =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("{"))
    .slice(-40)
    .join("\n");

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
    // After a failure the steps beside it would go on.
    process.exit();
  }
};

await main();
