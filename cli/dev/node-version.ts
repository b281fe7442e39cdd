import { existsSync } from "node:fs";
import { join } from "node:path";
import { InvalidInput } from "../../lib/core/errors.ts";

const OLDEST = [22, 13] as const;
/** The runtime of the deployed functions. */
const LAMBDA_MAJOR = 24;

const parts = (version: string): readonly [number, number] => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return [major, minor];
};

/**
 * One line where jobs run on another Node than they will on AWS; undefined where all is well.
 * @throws InvalidInput (`old_node`) for a Node that cannot run the stack at all.
 */
export const nodeNote = (version: string, projectDir: string): string | undefined => {
  const [major, minor] = parts(version);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    throw new InvalidInput("old_node", `Node ${version} is too old, the stack needs ${OLDEST.join(".")}`, {
      hint: "npm install --save-dev node@24",
    });
  }
  if (major === LAMBDA_MAJOR) return undefined;
  const isInstalled = existsSync(join(projectDir, "node_modules", "node", "package.json"));
  const hint = isInstalled
    ? 'the package "node" is there, but its install script did not run: npm rebuild node'
    : "npm install --save-dev node@24 gives the project the Lambda's own";
  return `Node ${version} runs here, Node ${LAMBDA_MAJOR} on Lambda; ${hint}`;
};
