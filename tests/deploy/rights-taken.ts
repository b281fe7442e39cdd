/** Statements taken out of the roles of a deployed stage, one at a time: it must not work without any of them. */
import { PutRolePolicyCommand } from "@aws-sdk/client-iam";
import { UpdateFunctionConfigurationCommand } from "@aws-sdk/client-lambda";
import { seededRandom } from "../../lib/simulation/random.ts";
import { nameOfRole } from "./permissions.ts";
import { documentOf, ownersOf, type Right, rightsOf, type Statement } from "./roles-used.ts";
import { firstFault } from "./smoke.ts";
import { physicalName, type Stage } from "./stage.ts";

const MEMORY_MB = 256;

export const nameOf = ({ owner, statement: { Action, Resource } }: Right): string =>
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
const makeCold = async (stage: Stage, { owner }: Right, round: number): Promise<void> => {
  await stage.aws.lambda.send(
    new UpdateFunctionConfigurationCommand({
      FunctionName: physicalName(stage, owner),
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

/** So many of them, the same for the same seed. */
export const atRandom =
  (count: number, seed: number) =>
  (rights: readonly Right[]): readonly Right[] => {
    const random = seededRandom(seed);
    const order = rights.map((right) => ({ right, at: random.fraction() })).sort((a, b) => a.at - b.at);
    return order.slice(0, count).map(({ right }) => right);
  };

export interface Taken {
  readonly rights: number;
  readonly roles: number;
  readonly taken: number;
  /** Statements without which all works as before: rights too many. */
  readonly unmissed: readonly string[];
}

/** @throws Error when the stage does not even work with all of its rights */
export const withoutEach = async (
  stage: Stage,
  choose: (rights: readonly Right[]) => readonly Right[],
  say: (line: string) => void,
): Promise<Taken> => {
  const owners = await ownersOf(stage.aws);
  const rights = (await Promise.all(owners.map((owner) => rightsOf(stage.aws, owner)))).flat();
  const amiss = await firstFault(stage, rights, 0);
  if (amiss !== undefined) throw new Error(`the stage does not work with all of its rights: ${amiss}`);
  say(`${rights.length} statements of ${owners.length} roles; with all of them the stage works`);
  const unmissed: string[] = [];
  const taken = choose(rights);
  for (const [i, right] of taken.entries()) {
    const missed = await without(stage, rights, { right, round: i + 1 });
    if (missed === undefined) unmissed.push(nameOf(right));
    say(`${missed === undefined ? "NOT MISSED" : "missed"}  ${nameOf(right)}: ${missed ?? "all works"}`);
  }
  return { rights: rights.length, roles: owners.length, taken: taken.length, unmissed };
};
