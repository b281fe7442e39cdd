/**
 * `npm run test:roles [-- --take N --seed S | --only TEXT]`: takes each statement out of the roles of a deployed stage, one at a time
 * (or N of them at random), and asks whether the stage still works. It must not: a right that nothing needs is one too
 * many. Exit 1 for one that nobody missed.
 */
import { parseArgs } from "node:util";
import { makeAws } from "./aws.ts";
import { makeCommands } from "./commands.ts";
import { startEmulator } from "./emulator.ts";
import { makeProject, STAGE } from "./project.ts";
import { startReceiver } from "./receiver.ts";
import { atRandom, nameOf, withoutEach } from "./rights-taken.ts";
import { putSecret, type Stage } from "./stage.ts";

const { values } = parseArgs({
  options: {
    take: { type: "string" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});

const HOURS_MS = 3_600_000;

const choose =
  values.take === undefined
    ? (rights: Parameters<ReturnType<typeof atRandom>>[0]) =>
        rights.filter((right) => nameOf(right).includes(values.only))
    : atRandom(Number(values.take), Number(values.seed));

const emulator = await startEmulator();
const stop = (): void => void emulator.stop().then(() => process.exit(130));
process.once("SIGINT", stop).once("SIGTERM", stop);
const receiver = await startReceiver(emulator);
try {
  const project = makeProject({ firstMs: Date.now() + 6 * HOURS_MS });
  const aws = makeAws(emulator);
  const stage: Stage = { name: STAGE, emulator, aws, commands: makeCommands(emulator, project.folder) };
  await putSecret(stage, "key", "0123456789");
  await putSecret(stage, "hook", receiver.secret);
  await stage.commands.serverless("deploy");
  const { taken, unmissed } = await withoutEach(stage, choose, console.log);
  console.log(`roles: ${taken - unmissed.length} passed, ${unmissed.length} failed (seed ${values.seed})`);
  process.exitCode = unmissed.length > 0 ? 1 : 0;
} finally {
  receiver.stop();
  await emulator.stop();
}
