/**
 * `npm run test:roles [-- --take N --seed S | --only TEXT]`: takes each statement out of the roles of a deployed stage, one at a time
 * (or N of them at random), and asks whether the stage still works. It must not: a right that nothing needs is one too
 * many. Exit 1 for one that nobody missed.
 */
import { parseArgs } from "node:util";
import { PutRolePolicyCommand } from "@aws-sdk/client-iam";
import { UpdateFunctionConfigurationCommand } from "@aws-sdk/client-lambda";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { seededRandom } from "../../lib/simulation/random.ts";
import { makeAws } from "./aws.ts";
import { makeCommands } from "./commands.ts";
import { startEmulator } from "./emulator.ts";
import { nameOfRole } from "./permissions.ts";
import { makeProject, SERVICE, STAGE } from "./project.ts";
import { startReceiver } from "./receiver.ts";
import { documentOf, ownersOf, type Right, rightsOf, type Statement } from "./roles-used.ts";
import { firstFault } from "./smoke.ts";
import type { Stage } from "./stage.ts";

const { values } = parseArgs({
  options: {
    take: { type: "string" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});

const HOURS_MS = 3_600_000;
const MEMORY_MB = 256;

const nameOf = ({ owner, statement: { Action, Resource } }: Right): string =>
  `${owner}: ${Action.join(", ")} on ${Resource.map((each) => each.slice(each.lastIndexOf(":") + 1)).join(", ")}`;

const put = async (
  { aws }: Stage,
  { roleArn, policy }: Right,
  statements: readonly Statement[],
): Promise<void> => {
  const PolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement: statements });
  await aws.iam.send(
    new PutRolePolicyCommand({ RoleName: nameOfRole(roleArn), PolicyName: policy, PolicyDocument }),
  );
};

/** A function that is warm has read its secrets already. */
const makeCold = async ({ aws }: Stage, { owner }: Right, round: number): Promise<void> => {
  await aws.lambda.send(
    new UpdateFunctionConfigurationCommand({
      FunctionName: `${SERVICE}-${STAGE}-belfry-${owner}`,
      // A new size is a new process.
      MemorySize: MEMORY_MB + round,
    }),
  );
};

/** What was missed without it; undefined = nothing. */
const without = async (
  stage: Stage,
  rights: readonly Right[],
  { right, round }: { readonly right: Right; readonly round: number },
): Promise<string | undefined> => {
  const whole = await documentOf(stage.aws, right.roleArn, right.policy);
  await put(
    stage,
    right,
    whole.filter((_, i) => i !== right.index),
  );
  await makeCold(stage, right, round);
  try {
    return await firstFault(stage, rights, round);
  } finally {
    await put(stage, right, whole);
    await makeCold(stage, right, round);
  }
};

const chosen = (rights: readonly Right[]): readonly Right[] => {
  if (values.take === undefined) return rights.filter((right) => nameOf(right).includes(values.only));
  const random = seededRandom(Number(values.seed));
  const order = rights.map((right) => ({ right, at: random.fraction() })).sort((a, b) => a.at - b.at);
  return order.slice(0, Number(values.take)).map(({ right }) => right);
};

const play = async (stage: Stage): Promise<number> => {
  await stage.commands.serverless("deploy");
  const owners = await ownersOf(stage.aws);
  const rights = (await Promise.all(owners.map((owner) => rightsOf(stage.aws, owner)))).flat();
  const amiss = await firstFault(stage, rights, 0);
  if (amiss !== undefined) throw new Error(`the stage does not work with all of its rights: ${amiss}`);
  console.log(`${rights.length} statements of ${owners.length} roles; with all of them the stage works`);
  let unmissed = 0;
  const taken = chosen(rights);
  for (const [i, right] of taken.entries()) {
    const missed = await without(stage, rights, { right, round: i + 1 });
    if (missed === undefined) unmissed += 1;
    console.log(
      `${missed === undefined ? "NOT MISSED" : "missed"}  ${nameOf(right)}: ${missed ?? "all works"}`,
    );
  }
  console.log(`roles: ${taken.length - unmissed} passed, ${unmissed} failed (seed ${values.seed})`);
  return unmissed;
};

const emulator = await startEmulator();
const stop = (): void => void emulator.stop().then(() => process.exit(130));
process.once("SIGINT", stop).once("SIGTERM", stop);
const receiver = await startReceiver(emulator);
try {
  const project = makeProject({ firstMs: Date.now() + 6 * HOURS_MS });
  const stage = { aws: makeAws(emulator), commands: makeCommands(emulator, project.folder) };
  const secrets = { key: "0123456789", hook: receiver.secret };
  for (const [name, SecretString] of Object.entries(secrets))
    await stage.aws.secrets.send(
      new CreateSecretCommand({ Name: `${SERVICE}/${STAGE}/${name}`, SecretString }),
    );
  process.exitCode = (await play(stage)) > 0 ? 1 : 0;
} finally {
  receiver.stop();
  await emulator.stop();
}
